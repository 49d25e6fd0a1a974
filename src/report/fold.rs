//! One point folded over its replications: the values that every output shows.
//!
//! Rates and quantiles are means of the replications' own values with a Student interval; counts are sums.
//! Steady-state latencies of a point that is not stable are withheld here, in one place, so that no output can leak them.

use crate::engine::Server;
use crate::experiment::{Estimate, Point, Verdict};
use crate::metrics::{Group, Latency, ReplicaSummary, RunMode, RunSummary, latency_of};
use crate::workload::{Arrivals, Metric};

/// Whether steady-state latencies of this point mean anything: not where the backlog grows, and not where it
/// may, for then they are the length of the run.
///
/// A finite benchmark reports what a load generator would have printed, whatever the load.
#[must_use]
pub fn shows_latency(point: &Point) -> bool {
    point.stability.verdict == Verdict::Stable || is_benchmark(point)
}

/// Whether the point is a finite benchmark rather than a steady state.
#[must_use]
pub fn is_benchmark(point: &Point) -> bool {
    point.scenario.run.mode == RunMode::Benchmark
}

/// Whether all requests are there at once: a job that ends, without a load that could be stable or not.
#[must_use]
pub fn is_finite_batch(point: &Point) -> bool {
    matches!(point.scenario.workload.arrivals, Arrivals::AllAtOnce)
}

/// The share of requests that were refused, over whole runs; 0 where none were.
#[must_use]
pub fn refused_share(point: &Point) -> f64 {
    let refused = total(point, |run| run.totals.rejected_too_long + run.totals.rejected_queue_full);
    refused as f64 / total(point, |run| run.totals.offered).max(1) as f64
}

/// Mean and interval of a value over the replications that have it; `None` where none has.
#[must_use]
pub fn over_runs(point: &Point, value: impl Fn(&RunSummary) -> Option<f64>) -> Option<Estimate> {
    let values: Vec<f64> = point.runs.iter().filter_map(value).collect();
    Estimate::of(&values)
}

/// Requests that wait on a replica for the first of their tokens to be scheduled, or again after preemption: all replicas'
/// together, on average. Withheld where the backlog grows, because then it is only the length of the run.
#[must_use]
pub fn waiting(point: &Point) -> Option<Estimate> {
    let of_run = |run: &RunSummary| Some(run.replicas.iter().map(|replica| replica.waiting).sum());
    over_runs(point, of_run).filter(|_| shows_latency(point))
}

/// Sum of a count over the replications.
#[must_use]
pub fn total(point: &Point, value: impl Fn(&RunSummary) -> u64) -> u64 {
    point.runs.iter().map(value).sum()
}

/// Which group of requests a value describes: all, or a class by its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    All,
    Class(usize),
}

impl Part {
    /// The group in a run.
    #[must_use]
    pub fn of(self, run: &RunSummary) -> Option<&Group> {
        match self {
            Self::All => Some(&run.all),
            Self::Class(index) => run.classes.get(index),
        }
    }
}

/// A value of a group over replications.
#[must_use]
pub fn group_value(point: &Point, part: Part, value: impl Fn(&Group) -> Option<f64>) -> Option<Estimate> {
    over_runs(point, |run| part.of(run).and_then(&value))
}

/// A statistic of a latency metric, in seconds; `None` where it is withheld or nobody had it.
#[must_use]
pub fn latency(
    point: &Point,
    part: Part,
    metric: Metric,
    statistic: impl Fn(&Latency) -> f64,
) -> Option<Estimate> {
    if !shows_latency(point) {
        return None;
    }
    group_value(point, part, |group| latency_of(group, metric).map(&statistic))
}

/// Whether any replication has the metric, withheld or not.
#[must_use]
pub fn has_metric(point: &Point, metric: Metric) -> bool {
    point.runs.iter().any(|run| latency_of(&run.all, metric).is_some())
}

/// A sum over replicas (requests in flight), averaged over replications.
#[must_use]
pub fn replica_sum(point: &Point, value: impl Fn(&ReplicaSummary) -> f64) -> Option<Estimate> {
    over_runs(point, |run| (!run.replicas.is_empty()).then(|| run.replicas.iter().map(&value).sum()))
}

/// A mean over replicas (KV use, busy fraction), averaged over replications.
#[must_use]
pub fn replica_mean(point: &Point, value: impl Fn(&ReplicaSummary) -> f64) -> Option<Estimate> {
    over_runs(point, |run| {
        let sum: f64 = run.replicas.iter().map(&value).sum();
        (!run.replicas.is_empty()).then(|| sum / run.replicas.len() as f64)
    })
}

/// Mean fraction of the KV pool in use; `None` on a server without one.
#[must_use]
pub fn kv_use(point: &Point) -> Option<Estimate> {
    match point.scenario.system.server {
        Server::Llm(_) => replica_mean(point, |replica| replica.kv_use),
        Server::Synthetic(_) => None,
    }
}

/// Seconds of the window, a replication's mean.
#[must_use]
pub fn window_s(point: &Point) -> Option<f64> {
    over_runs(point, |run| Some(run.window.end_s - run.window.start_s)).map(|span| span.mean)
}
