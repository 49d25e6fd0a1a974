//! What turns samples into answers: quantiles, intervals, warm-up, knees.
//!
//! - [`Sketch`]: counts, moments and quantiles of latencies, exact while few, 0.1 % when many.
//! - [`mean_interval`], [`student_quantile`]: the interval of a mean over replications.
//! - [`mser`], [`mser_5`]: how much of a run is warm-up.
//! - [`batch_means_interval`]: an interval from one long run.
//! - [`linear_slope`]: least squares, for the growth of a backlog.
//! - [`non_decreasing`]: the non-decreasing curve nearest to noisy points.
//! - [`find_knee`]: where a curve turns up (Kneedle).
//! - [`crossing`]: the load at which a curve reaches a limit.
//!
//! Everything is a pure function of its input, in input order, so results do not depend on threads.
//! What cannot be said (an interval of one value, a knee of a straight line) is `None`, never a number.

mod batch;
mod crossing;
mod isotonic;
mod kneedle;
mod mser;
mod sketch;
mod slope;
mod student;
mod window;

pub use batch::{batch_means, batch_means_interval};
pub use crossing::crossing;
pub use isotonic::non_decreasing;
pub use kneedle::{MIN_KNEE_DEPTH, find_knee};
pub use mser::{mser, mser_5};
pub use sketch::{EXACT_ENTRIES, MERGED_EXACT_ENTRIES, Sketch};
pub use slope::{Slope, linear_slope};
pub use student::{MeanInterval, mean_interval, student_quantile};
pub use window::{RunMode, Warmup};

/// The arithmetic mean; `None` of nothing.
#[must_use]
pub fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// The number at `fraction` of the way from `low` to `high`, as numpy computes it: from the nearer end,
/// so that both ends are hit exactly.
fn lerp(low: f64, high: f64, fraction: f64) -> f64 {
    if fraction < 0.5 { low + (high - low) * fraction } else { high - (high - low) * (1.0 - fraction) }
}
