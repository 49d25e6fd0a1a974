//! What was promised to a class of requests.

use serde::{Deserialize, Serialize};

/// What was promised to a class.
#[derive(Clone, Debug, PartialEq)]
pub struct Slo {
    /// Objectives on statistics and, with [`Statistic::Request`], limits that each request must meet.
    pub objectives: Vec<Objective>,
    /// Fraction of requests that must meet every [`Statistic::Request`] limit (`attainment`, default 0.99).
    pub attainment: f64,
}

impl Slo {
    /// The share of requests that must meet their limits where nothing else is said.
    pub const DEFAULT_ATTAINMENT: f64 = 0.99;
}

impl Default for Slo {
    fn default() -> Self {
        Self { objectives: Vec::new(), attainment: Self::DEFAULT_ATTAINMENT }
    }
}

/// One promise: `statistic` of `metric` is at most `limit_s` seconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Objective {
    pub metric: Metric,
    pub statistic: Statistic,
    pub limit_s: f64,
}

/// A latency metric, defined in the documentation of [`crate::metrics`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Metric {
    Ttft,
    Tpot,
    Itl,
    E2e,
    Ntpot,
    /// Send to first scheduled.
    Queue,
}

impl Metric {
    /// All metrics, in the order of [`Metric::index`].
    pub const ALL: [Self; 6] = [Self::Ttft, Self::Tpot, Self::Itl, Self::E2e, Self::Ntpot, Self::Queue];

    /// Position in [`Metric::ALL`].
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }

    /// The name used in scenario keys and result columns: `ttft`, `tpot`, `itl`, `e2e`, `ntpot`, `queue`.
    #[must_use]
    pub const fn key(self) -> &'static str {
        match self {
            Self::Ttft => "ttft",
            Self::Tpot => "tpot",
            Self::Itl => "itl",
            Self::E2e => "e2e",
            Self::Ntpot => "ntpot",
            Self::Queue => "queue",
        }
    }

    /// Whether the metric exists only where output tokens are emitted.
    #[must_use]
    pub const fn needs_output_tokens(self) -> bool {
        !matches!(self, Self::E2e | Self::Queue)
    }
}

/// What of a metric is bounded.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Statistic {
    Mean,
    /// A quantile, 0 < q < 1.
    Quantile(f64),
    /// The value of each request, as in `slo = { ttft_ms = 1000, tpot_ms = 40, attainment = 0.99 }`.
    Request,
}

impl Statistic {
    /// The statistic called `mean`, `p50`, `p99`, `p999`: the digits after `p` are decimals of the
    /// quantile, and at least two of them (`p5` could be read as 5 % and as 50 %).
    #[must_use]
    pub fn from_key(key: &str) -> Option<Self> {
        if key == "mean" {
            return Some(Self::Mean);
        }
        let digits = key.strip_prefix('p')?;
        if !(2..=6).contains(&digits.len()) || !digits.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        // `p100` would silently become the tenth percentile.
        if digits.len() > 2 && !digits.starts_with('9') {
            return None;
        }
        let quantile: f64 = format!("0.{digits}").parse().ok()?;
        (quantile > 0.0).then_some(Self::Quantile(quantile))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentile_keys_are_decimals_of_the_quantile() {
        assert_eq!(Statistic::from_key("p50"), Some(Statistic::Quantile(0.5)));
        assert_eq!(Statistic::from_key("p99"), Some(Statistic::Quantile(0.99)));
        assert_eq!(Statistic::from_key("p999"), Some(Statistic::Quantile(0.999)));
        assert_eq!(Statistic::from_key("mean"), Some(Statistic::Mean));
        for key in ["p100", "p00", "p5", "p", "p9x", "median", "p9999999"] {
            assert_eq!(Statistic::from_key(key), None, "{key}");
        }
    }
}
