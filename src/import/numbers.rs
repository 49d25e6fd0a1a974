//! Statistics objects that the tools share, as our latencies in seconds.

use super::error::ImportError;
use super::point::LatencyStats;
use super::tree::At;

/// How a tool spells a mean and a median, and its percentiles.
pub(super) struct Spelling {
    pub mean: &'static str,
    pub p50: &'static str,
    pub p90: &'static str,
    pub p95: &'static str,
    pub p99: &'static str,
}

/// aiperf, genai-perf.
pub(super) const AVG: Spelling = Spelling { mean: "avg", p50: "p50", p90: "p90", p95: "p95", p99: "p99" };
/// inference-perf.
pub(super) const MEDIAN: Spelling =
    Spelling { mean: "mean", p50: "median", p90: "p90", p95: "p95", p99: "p99" };
/// llm-d.
pub(super) const MEAN: Spelling = Spelling { mean: "mean", p50: "p50", p90: "p90", p95: "p95", p99: "p99" };
/// guidellm.
pub(super) const PERCENTILES: Spelling = Spelling {
    mean: "mean",
    p50: "median",
    p90: "percentiles.p90",
    p95: "percentiles.p95",
    p99: "percentiles.p99",
};

impl Spelling {
    /// The latency under `key` of `at`, each figure times `to_seconds`; empty if it is not there.
    pub fn latency(&self, at: &At<'_>, key: &str, to_seconds: f64) -> Result<LatencyStats, ImportError> {
        let Some(at) = at.get(key) else { return Ok(LatencyStats::default()) };
        let seconds = |name| Ok::<_, ImportError>(at.amount(name)?.map(|value| value * to_seconds));
        Ok(LatencyStats {
            mean_s: seconds(self.mean)?,
            p50_s: seconds(self.p50)?,
            p90_s: seconds(self.p90)?,
            p95_s: seconds(self.p95)?,
            p99_s: seconds(self.p99)?,
        })
    }
}

/// Seconds in a unit as the tools write it; per-token units count as their time.
pub(super) fn seconds_in(unit: &str) -> Option<f64> {
    match unit.trim().split('/').next()?.trim() {
        "ns" => Some(1e-9),
        "us" => Some(1e-6),
        "ms" | "milliseconds" => Some(1e-3),
        "s" | "sec" | "seconds" => Some(1.0),
        _ => None,
    }
}

/// A number of users or GPUs that fits, if it is one.
pub(super) fn small_count(value: u64) -> Option<u32> {
    u32::try_from(value).ok().filter(|value| *value > 0)
}
