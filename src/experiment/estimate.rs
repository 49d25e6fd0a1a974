//! A number from several replications, with its interval.

use crate::stats::mean_interval;

/// Confidence level of every interval that is printed.
pub const LEVEL: f64 = 0.95;

/// A mean over replications with its two-sided 95 % Student interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    pub mean: f64,
    /// Half-width of the interval; `None` with fewer than two replications, where nothing is claimed.
    pub half_width: Option<f64>,
}

impl Estimate {
    /// From one value a replication; `None` if there are none.
    #[must_use]
    pub fn of(values: &[f64]) -> Option<Self> {
        let interval = mean_interval(values, LEVEL)?;
        Some(Self { mean: interval.mean, half_width: interval.half_width })
    }

    /// The upper end of the interval, or the mean where there is no interval.
    #[must_use]
    pub fn upper(&self) -> f64 {
        self.mean + self.half_width.unwrap_or(0.0)
    }

    /// The lower end of the interval, or the mean where there is no interval.
    #[must_use]
    pub fn lower(&self) -> f64 {
        self.mean - self.half_width.unwrap_or(0.0)
    }
}
