//! Questions asked of many runs: replications of a point, sweeps over grids, readings of a curve, the
//! capacity within objectives, paired comparisons.

mod alone;
pub mod binding;
pub mod capacity;
mod combinations;
pub mod compare;
mod estimate;
mod first_to_fail;
pub mod journal;
pub mod objective;
pub mod plan;
mod point;
pub mod precision;
mod reading;
mod refused;
mod replicate;
mod saturation;
mod stability;
mod sweep;

pub use combinations::{Combination, load_axis, others};
pub use estimate::{Estimate, LEVEL};
pub use objective::SloVerdict;
pub use point::{Point, observe, run_once, run_point};
pub use reading::{CurveReading, Knee, SloCapacity, StabilityLimit, load_unit, number, read_curve};
pub use refused::refused_share;
pub use saturation::{Saturation, saturate};
pub use stability::{Stability, Verdict, ends_early, never_warm, wanders};
pub use sweep::{
    Journalling, MAX_POINTS, Progress, Silent, SweepError, SweepPlan, SweepResult, sweep, sweep_as,
};
