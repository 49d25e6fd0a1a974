//! Simulated against measured, load by load.
//!
//! A measurement set ([`crate::scenario::Measurement`]) becomes [`Cell`]s, one for each load that was
//! measured. A cell is simulated as it was measured: a run of recorded requests at its send times, or as
//! the closed loop that a capped client is; a concurrency point with all users starting at time 0, ramp
//! and drain included, as load generators report. What comes out are the same [`Figures`] on both sides.
//!
//! ```text
//!  set.toml + *.csv  --cells-->  Cell  --simulate-->  Figures simulated
//!                                 |                          |
//!                                 +------ Figures measured --+--score-->  Scored  --table-->  ErrorRow
//! ```
//!
//! Fitting ([`crate::calibrate`]) minimises the same errors that this module reports.

mod cell;
mod figure;
mod files;
mod score;

pub use cell::{Cell, Load, Simulated, cells, check_repeated};
pub use figure::{Family, Figure, Figures};
pub use files::MeasurementError;
pub use score::{
    ErrorRow, Regime, Scored, error_percent, error_table, error_words, median_error_percent, score,
};
