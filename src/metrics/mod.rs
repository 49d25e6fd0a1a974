//! What a run is judged by.
//!
//! TTFT: send to first token. TPOT: (E2E - TTFT) / (output tokens - 1), per request with at least two
//! tokens. ITL: pooled gaps between tokens, the first excluded. E2E: send to last token. NTPOT: E2E /
//! output tokens. Queue: send to first scheduled. A metric nobody had is absent, never zero.

mod recorder;
mod slices;
mod summary;
mod warmup;

pub use recorder::{Recorder, latencies};
pub use summary::{RunFacts, latency_of};
pub use warmup::{Course, WarmUp};

use serde::{Deserialize, Serialize};

use crate::cost::StepShape;
pub use crate::stats::RunMode;
use crate::workload::Objective;

/// What one run (one replication of one point) came to.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RunSummary {
    pub window: Window,
    pub totals: Totals,
    /// All classes together.
    pub all: Group,
    /// Per class, in the workload's order.
    pub classes: Vec<Group>,
    pub replicas: Vec<ReplicaSummary>,
    /// Time average of the requests in the system, front end included, over the window.
    pub in_flight: Option<f64>,
    /// Whole run, ramp and drain included.
    pub timeline: Vec<TimelineBin>,
    pub evidence: StabilityEvidence,
    /// What the warm-up was chosen from.
    pub course: Course,
}

/// The part of a run that its rates and latencies describe, in seconds of simulated time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Window {
    pub mode: RunMode,
    pub start_s: f64,
    pub end_s: f64,
    /// When the run ended (equal to `end_s` in benchmark mode).
    pub run_s: f64,
    /// False if the start still differs from the rest at half of the run: the run is too short, or does
    /// not settle.
    pub settled: bool,
}

/// Counts over the whole run, not the window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Totals {
    pub offered: u64,
    pub admitted: u64,
    pub completed: u64,
    /// Prompt or output too long for the context, the KV pool, or a step.
    pub rejected_too_long: u64,
    /// Of these, refused for a prompt that must be computed in one step and is longer than one.
    pub rejected_over_budget: u64,
    pub rejected_queue_full: u64,
    pub in_flight_at_end: u64,
    pub preemptions: u64,
}

impl Totals {
    /// Requests refused for each reason, and the reason with the key that decides.
    #[must_use]
    pub fn refusals(&self) -> [(u64, &'static str); 3] {
        [
            (
                self.rejected_too_long.saturating_sub(self.rejected_over_budget),
                "longer than max_model_len or the whole KV pool",
            ),
            (
                self.rejected_over_budget,
                "longer than max_num_batched_tokens, and not cut without engine.enable_chunked_prefill = true",
            ),
            (self.rejected_queue_full, "the queue was full"),
        ]
    }
}

/// Requests of one class (or all), inside the window.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Group {
    pub name: String,
    pub offered: u64,
    pub completed: u64,
    pub rejected: u64,
    /// Of completed requests.
    pub input_tokens: u64,
    pub output_tokens: u64,
    /// Per second of the window, whole deployment. Rates of completed requests and their tokens.
    pub offered_per_s: f64,
    pub completed_per_s: f64,
    pub input_tokens_per_s: f64,
    pub output_tokens_per_s: f64,
    /// Completed requests that met every objective of their class, per second; and as a fraction of
    /// completed + rejected. `None` where nothing was promised.
    pub good_per_s: Option<f64>,
    pub good_fraction: Option<f64>,
    /// By [`Metric::index`](crate::workload::Metric::index); `None` where no request had one.
    pub latency: [Option<Latency>; 6],
    /// What each objective came to, in the class's order (empty for "all").
    pub objectives: Vec<ObjectiveValue>,
    /// Fraction of requests that met every per-request limit, where the class has such limits.
    pub attainment: Option<f64>,
}

/// A latency metric's distribution, in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    pub count: u64,
    pub mean_s: f64,
    pub std_s: f64,
    pub min_s: f64,
    pub p50_s: f64,
    pub p90_s: f64,
    pub p95_s: f64,
    pub p99_s: f64,
    pub max_s: f64,
    /// False where quantiles come from the sketch (relative error at most 0.1 %).
    pub exact: bool,
}

/// What an objective's statistic came to; `None` where no request had the metric.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ObjectiveValue {
    pub objective: Objective,
    pub value_s: Option<f64>,
}

/// One replica, inside the window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ReplicaSummary {
    pub completed: u64,
    pub output_tokens: u64,
    /// Fraction of the window in which a step was running; on a synthetic server, share of its servers
    /// that were busy.
    pub busy: f64,
    /// Time averages.
    pub running: f64,
    pub waiting: f64,
    pub in_flight: f64,
    /// Fraction of usable KV blocks in use: time average and maximum.
    pub kv_use: f64,
    pub kv_use_max: f64,
    pub preemptions: u64,
    /// Steps, and what one held on average (each number rounded).
    pub steps: u64,
    pub mean_step: StepShape,
}

/// A slice of a run, for charts: time averages over `start_s..start_s + span_s`, whole deployment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TimelineBin {
    pub start_s: f64,
    pub span_s: f64,
    pub in_flight: f64,
    pub running: f64,
    pub waiting: f64,
    /// Fraction of usable KV blocks, averaged over replicas.
    pub kv_use: f64,
    pub completed_per_s: f64,
}

/// What the stability verdict is drawn from.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StabilityEvidence {
    /// Completed over offered, second half of the run.
    pub achieved_over_offered: f64,
    /// In-flight at the end over its time average: about 1 when stable, about 2 when it grows linearly.
    pub final_over_mean: f64,
    /// Least-squares slope of the in-flight count over the second half, requests per second.
    pub growth_per_s: f64,
    /// The same of those that wait for a slot, a KV block or a server. While a batch only fills, the number in flight grows
    /// and nobody waits.
    pub waiting_growth_per_s: f64,
    /// Mean in flight over the last half and over the half before it.
    pub mean_last_half: f64,
    pub mean_first_half: f64,
    /// Requests sent per second.
    pub offered_per_s: f64,
    /// Means of the in-flight count over about eight equal batches of the second half: where they hang
    /// together, the run holds too few independent periods to say anything.
    pub batches: Vec<f64>,
}
