//! Whether a point can be true: against arithmetic, and against the chip it ran on.
//!
//! What only casts doubt is a warning; what cannot be is refused, with the reason, and the point is not
//! taken. A quantity that counts the wrong thing (chunks for tokens) is dropped and the point kept.

mod arithmetic;
mod hardware;

pub use hardware::{Given, against_hardware};

pub(super) use arithmetic::arithmetic;
