//! Replications until a number is as precise as asked: sequential stopping.
//!
//! The number is the one the decision hangs on: the statistic of the binding objective where something
//! was promised, else the p99 of TTFT, else the mean of E2E. Replications are added in few large steps,
//! each sized from the scatter so far: testing after every single run would stop at lucky moments, and
//! intervals would cover less than they claim (Y. S. Chow, H. Robbins, "On the asymptotic theory of
//! fixed-width sequential confidence intervals", Ann. Math. Statist. 36 (1965) 457-462).

use super::estimate::Estimate;
use super::point::Point;
use super::stability::Verdict;
use crate::engine::EngineError;
use crate::metrics::{RunMode, RunSummary, latency_of};
use crate::scenario::{RunLength, Scenario};
use crate::workload::{Arrivals, Class, Metric, Statistic};

/// How precise a number is to be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Precision {
    /// Half-width of its 95 % interval over its value.
    pub relative: f64,
    /// The most replications that are run for it.
    pub max_replications: u32,
}

/// Replications where nobody says how many at most.
pub const MAX_REPLICATIONS: u32 = 100;
/// Requests that must lie beyond a quantile in each replication for the quantile to be claimed.
pub const TAIL_REQUESTS: f64 = 10.0;
/// A little more than the scatter asks for, so that the next look is usually the last.
const RESERVE: f64 = 1.1;

/// How precise the number of one point became.
#[derive(Clone, Debug, PartialEq)]
pub struct Reached {
    /// What was made precise: `chat: TTFT p99 <= 500 ms`, `E2E mean`.
    pub quantity: String,
    /// Half-width over value; `None` if there is no number, with the reason.
    pub relative: Result<f64, &'static str>,
    pub replications: u32,
}

impl Reached {
    /// Whether it is as precise as asked.
    #[must_use]
    pub fn meets(&self, precision: Precision) -> bool {
        self.relative.is_ok_and(|relative| relative <= precision.relative)
    }
}

/// Adds replications to `point` until its number is as precise as asked or the limit is reached.
///
/// # Errors
/// What stops a run: see [`EngineError`].
pub fn refine(mut point: Point, precision: Precision) -> Result<(Point, Reached), EngineError> {
    loop {
        let replications = point.runs.len() as u32;
        let (quantity, value) = number_of(&point);
        let relative = match &value {
            _ if is_recorded(&point) => Err("a recorded load is replayed once, so it has no interval"),
            _ if has_no_steady_state(&point) => Err("the point is unstable: it has no steady state"),
            None => Err("no request had the metric"),
            Some(estimate) => Ok(relative_half_width(estimate)),
        };
        let reached = Reached { quantity, relative, replications };
        let Ok(relative) = relative else { return Ok((point, reached)) };
        if relative <= precision.relative || replications >= precision.max_replications {
            return Ok((point, reached));
        }
        let wanted = wanted(replications, relative, precision.relative).min(precision.max_replications);
        point = point.extended(wanted)?;
    }
}

/// How many replications bring the relative half-width from `now` to `target`: it falls with the square
/// root of their number. At most doubled at once, because the scatter itself is an estimate.
pub(super) fn wanted(replications: u32, now: f64, target: f64) -> u32 {
    let ratio = now / target;
    let needed = libm::ceil(f64::from(replications) * ratio * ratio * RESERVE);
    let doubled = replications.max(2).saturating_mul(2);
    if needed >= f64::from(doubled) { doubled } else { (needed as u32).max(replications + 1) }
}

/// Infinite with one replication, where nothing is known of the scatter.
pub(super) fn relative_half_width(estimate: &Estimate) -> f64 {
    match estimate.half_width {
        Some(0.0) => 0.0,
        Some(half_width) => half_width / estimate.mean.abs(),
        None => f64::INFINITY,
    }
}

/// The number that the decision at `point` hangs on, and what it is called.
fn number_of(point: &Point) -> (String, Option<Estimate>) {
    let margins = point.margins();
    let binding = margins.into_iter().max_by(|a, b| a.ratio.upper().total_cmp(&b.ratio.upper()));
    if let Some(margin) = binding {
        return (margin.objective, Some(margin.ratio));
    }
    let over = |value: &dyn Fn(&RunSummary) -> Option<f64>| {
        Estimate::of(&point.runs.iter().filter_map(value).collect::<Vec<_>>())
    };
    match over(&|run| latency_of(&run.all, Metric::Ttft).map(|latency| latency.p99_s)) {
        Some(ttft) => ("TTFT p99".to_owned(), Some(ttft)),
        None => (
            "E2E mean".to_owned(),
            over(&|run| latency_of(&run.all, Metric::E2e).map(|latency| latency.mean_s)),
        ),
    }
}

fn has_no_steady_state(point: &Point) -> bool {
    point.stability.verdict == Verdict::Unstable && point.scenario.run.mode == RunMode::Steady
}

fn is_recorded(point: &Point) -> bool {
    matches!(point.scenario.workload.arrivals, Arrivals::Trace(_))
}

/// Objectives on quantiles that rest on too few requests to be claimed, each with the reason.
#[must_use]
pub fn thin_tails(point: &Point) -> Vec<String> {
    let mut thin = Vec::new();
    for (index, class) in point.scenario.workload.classes.iter().enumerate() {
        let fewest =
            point.runs.iter().filter_map(|run| run.classes.get(index)).map(|group| group.completed).min();
        let (Some(fewest), Some(quantile)) = (fewest, highest_quantile(class)) else { continue };
        let beyond = fewest as f64 * (1.0 - quantile);
        if beyond < TAIL_REQUESTS {
            let needed = libm::ceil(TAIL_REQUESTS / (1.0 - quantile));
            thin.push(format!(
                "{}: {fewest} requests in the window leave {beyond:.1} beyond the {} % quantile; \
                 it is claimed from {needed} requests on (run.requests)",
                class.name,
                libm::rint(quantile * 1e6) / 1e4
            ));
        }
    }
    thin
}

/// Requests of a replication with which every promised quantile rests on enough, if half of them are
/// lost to the warm-up.
#[must_use]
pub fn requests_for_tails(scenario: &Scenario) -> u64 {
    const KEPT: f64 = 0.5;
    let needed = scenario.workload.classes.iter().filter_map(|class| {
        let quantile = highest_quantile(class)?;
        Some(TAIL_REQUESTS / (1.0 - quantile) / class.share.max(f64::MIN_POSITIVE) / KEPT)
    });
    libm::ceil(needed.fold(0.0, f64::max)).min(1e9) as u64
}

/// The length of `scenario`'s runs in requests, as far as it is known before they run.
#[must_use]
pub fn planned_requests(scenario: &Scenario) -> Option<u64> {
    match scenario.run.length {
        RunLength::Requests(requests) => Some(requests),
        RunLength::DurationS(seconds) => Some((seconds * scenario.workload.arrivals.rate_per_s()?) as u64),
    }
}

/// The quantile farthest out of all that the class was promised.
fn highest_quantile(class: &Class) -> Option<f64> {
    let quantiles = class.slo.objectives.iter().filter_map(|objective| match objective.statistic {
        Statistic::Mean => None,
        Statistic::Quantile(quantile) => Some(quantile),
        Statistic::Request => Some(class.slo.attainment),
    });
    quantiles.filter(|quantile| *quantile < 1.0).reduce(f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replications_grow_with_the_square_of_the_precision() {
        // 8 % with 10 replications: 6.4 % need 10 x (8 / 6.4)^2 x 1.1 = 17.2.
        assert_eq!(wanted(10, 0.08, 0.064), 18);
        // At most doubled, at least one more; one replication says nothing.
        assert_eq!(wanted(10, 0.5, 0.01), 20);
        assert_eq!(wanted(100, 0.051, 0.05), 115);
        assert_eq!(wanted(1, f64::INFINITY, 0.05), 4);
    }
}
