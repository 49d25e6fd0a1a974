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

/// What is said of a load of equality that lies outside of the loads it should lie between, the highest that holds and
/// the lowest that fails; and whether all of its interval does, so that it is no estimate at all. `None` inside.
#[must_use]
pub fn outside(estimate: &Estimate, holds: Option<f64>, fails: Option<f64>) -> Option<(&'static str, bool)> {
    if let Some(fails) = fails.filter(|fails| estimate.mean > *fails) {
        let all = estimate.lower() > fails;
        return Some((
            "beyond the first failing load: the runs are too short or too few for this curve",
            all,
        ));
    }
    let holds = holds.filter(|holds| estimate.mean < *holds)?;
    let all = estimate.upper() < holds;
    Some(("below the guaranteed load: the runs are too short or too few for this curve", all))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_load_of_equality_lies_between_the_last_that_holds_and_the_first_that_fails() {
        let of = |mean: f64, half_width: f64| {
            let estimate = Estimate { mean, half_width: Some(half_width) };
            outside(&estimate, Some(28.0), Some(36.0))
                .map(|(why, is_all)| (why.split(' ').next().unwrap_or(""), is_all))
        };
        assert_eq!(of(34.0, 5.0), None);
        assert_eq!(of(38.0, 5.0), Some(("beyond", false)));
        assert_eq!(of(42.0, 5.0), Some(("beyond", true)));
        assert_eq!(of(27.0, 2.0), Some(("below", false)));
        assert_eq!(of(20.0, 2.0), Some(("below", true)));
        assert_eq!(outside(&Estimate { mean: 3.0, half_width: None }, None, None), None);
    }
}
