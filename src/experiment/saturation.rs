//! What a system completes per second while its backlog never empties.
//!
//! A queue that is served in order of arrival keeps up with every load below the throughput it has when
//! it never runs dry (the saturation rule: F. Baccelli, S. Foss, "On the saturation rule for the
//! stability of queues", J. Appl. Prob. 32 (1995) 494-507). So the saturated throughput is the stability
//! limit, found in one short run however long it would take a backlog to show near the limit.
//!
//! The load that saturates is a Poisson stream somewhat above what a burst of everything at once is served
//! at. The burst alone would do for a single server; a batcher whose requests all start together, and all
//! are of one length, prefills and decodes in lockstep, which is slower than the mix it has in service.
//!
//! A replica that never runs dry completes what it completes wherever its requests come from, so that the
//! throughputs of saturated replicas add up: of a fleet one replica is simulated, and multiplied. (A burst over
//! the whole fleet lasts as long as its slowest replica; what is a quarter above that saturates no longer.)

use std::sync::Arc;

use super::estimate::Estimate;
use super::point::{Point, run_once};
use super::replicate::replicate;
use crate::engine::EngineError;
use crate::metrics::{ReplicaSummary, RunSummary, Totals};
use crate::scenario::{RunLength, Scenario};
use crate::stats::{RunMode, Warmup};
use crate::workload::{Arrivals, Workload};

/// The most requests of a saturated run of one replica, and the fewest that say anything.
const MOST: u64 = 20_000;
const FEWEST: u64 = 2_000;
/// A run has at least so many times the requests that are in service at once, up to a bound: one that a batch holds as a
/// whole never fills it, and its second half completes next to nothing.
const TIMES_IN_SERVICE: f64 = 6.0;
const MOST_TO_FILL: u64 = 200_000;
/// The one replica of a fleet runs as many times as long as there are replicas, up to this.
const MOST_TIMES: u32 = 8;
/// Replications unless one was asked for, which has no interval: that of two or three is too wide to decide.
const FEWEST_REPLICATIONS: u32 = 5;
/// How far above the throughput of a burst the saturating load is.
const OVERLOAD: f64 = 1.25;
/// As many as this wait for each that runs where the backlog never empties: a quarter too much adds up to as many as run.
const WAITING_OF_RUNNING: f64 = 0.1;
/// By how much, and how often, the load is raised where fewer do.
const RAISE: f64 = 1.5;
const MOST_RAISES: u32 = 10;

/// A system that always has a backlog.
#[derive(Clone, Debug)]
pub struct Saturation {
    /// Completed requests per second.
    pub completed_per_s: Estimate,
    /// Requests per second that it keeps up with: those that fit into neither context nor pool included, which it
    /// refuses at no cost.
    pub offered_per_s: Estimate,
    /// Completed ones of each replication, in order.
    pub by_replication: Vec<f64>,
    /// The runs behind it, of one replica.
    pub point: Point,
}

/// Saturates `scenario`: same classes and replicas, at least as many replications. `None` for a recorded load, whose
/// requests are not a sample of anything else, and where nothing completes.
///
/// # Errors
/// What stops a run: see [`EngineError`].
pub fn saturate(scenario: &Scenario) -> Result<Option<Saturation>, EngineError> {
    if matches!(scenario.workload.arrivals, Arrivals::Trace(_)) {
        return Ok(None);
    }
    let asked = match scenario.run.length {
        RunLength::Requests(requests) => requests,
        RunLength::DurationS(seconds) => {
            (seconds * scenario.workload.arrivals.mean_rate_per_s().unwrap_or(0.0)) as u64
        }
    };
    let replicas = scenario.system.replicas;
    let mut one = scenario.clone();
    one.system.replicas = 1;
    one.gpus = scenario.gpus / replicas;
    let requests = asked.clamp(FEWEST, MOST) * u64::from(replicas.min(MOST_TIMES));
    let Some((requests, burst)) = filling_burst(&one, requests)? else {
        return Ok(None);
    };
    let fitting = fitting_share(std::slice::from_ref(&burst));
    let replications = match scenario.run.replications {
        1 => 1,
        asked => asked.max(FEWEST_REPLICATIONS),
    };
    let rate_per_s = OVERLOAD * burst.all.completed_per_s / fitting;
    let Some((overloaded, runs)) = backlogged(&one, rate_per_s, requests, replications)? else {
        return Ok(None);
    };
    let rates: Vec<f64> = runs.iter().map(|run| f64::from(replicas) * run.all.completed_per_s).collect();
    let Some(completed_per_s) = Estimate::of(&rates).filter(|rate| rate.mean > 0.0) else {
        return Ok(None);
    };
    let fitting = fitting_share(&runs);
    let half_width = completed_per_s.half_width.map(|half| half / fitting);
    Ok(Some(Saturation {
        completed_per_s,
        offered_per_s: Estimate { mean: completed_per_s.mean / fitting, half_width },
        by_replication: rates,
        point: Point::new(Vec::new(), overloaded, runs),
    }))
}

/// A burst of at least `requests` that is served over and over, and how many it has; `None` if a batch holds most of the
/// largest one.
fn filling_burst(scenario: &Scenario, mut requests: u64) -> Result<Option<(u64, RunSummary)>, EngineError> {
    loop {
        let burst = run_once(&with_load(scenario, Arrivals::AllAtOnce, requests, RunMode::Benchmark), 0)?;
        let in_service: f64 = burst.replicas.iter().map(|replica| replica.running).sum();
        // What a batch holds as a whole does not wait, however long its last answers take.
        if TIMES_IN_SERVICE * in_service <= requests as f64 && has_backlog(&burst) {
            return Ok(Some((requests, burst)));
        }
        if requests >= MOST_TO_FILL {
            return Ok((2.0 * in_service <= requests as f64).then_some((requests, burst)));
        }
        requests = (4 * requests).min(MOST_TO_FILL);
    }
}

/// Runs of at least `requests` in which some always wait, and the scenario of them. A burst lasts as long as its longest
/// answer, and what it is served at can be far below what fills the system; then the load is raised.
fn backlogged(
    scenario: &Scenario,
    mut rate_per_s: f64,
    mut requests: u64,
    replications: u32,
) -> Result<Option<(Scenario, Vec<RunSummary>)>, EngineError> {
    for raise in 0..MOST_RAISES {
        // A rate that is not a rate: nothing completed.
        if !(rate_per_s > 0.0 && rate_per_s.is_finite()) {
            break;
        }
        let mut overloaded = with_load(scenario, Arrivals::Poisson { rate_per_s }, requests, RunMode::Steady);
        // The first half fills the system, the second is measured.
        overloaded.run.warmup = Warmup::Seconds(0.5 * requests as f64 / rate_per_s);
        // The first is nearly always enough; of later ones a single run tells first.
        if raise == 0 || has_backlog(&run_once(&overloaded, 0)?) {
            let runs = replicate(&overloaded, Vec::new(), replications)?;
            if runs.iter().all(has_backlog) {
                return Ok(Some((overloaded, runs)));
            }
        }
        rate_per_s *= RAISE;
        requests = (2 * requests).min(MOST_TO_FILL.max(requests));
    }
    Ok(None)
}

fn has_backlog(run: &RunSummary) -> bool {
    let sum = |of: fn(&ReplicaSummary) -> f64| run.replicas.iter().map(of).sum::<f64>();
    let is_full = run.totals.rejected_queue_full > 0;
    is_full || sum(|replica| replica.waiting) > WAITING_OF_RUNNING * sum(|replica| replica.running)
}

/// Share of the requests that are not too long for the deployment.
fn fitting_share(runs: &[RunSummary]) -> f64 {
    let sum = |of: fn(&Totals) -> u64| runs.iter().map(|run| of(&run.totals)).sum::<u64>() as f64;
    let (sent, too_long) = (sum(|totals| totals.offered), sum(|totals| totals.rejected_too_long));
    if too_long < sent { 1.0 - too_long / sent } else { 1.0 }
}

fn with_load(scenario: &Scenario, arrivals: Arrivals, requests: u64, mode: RunMode) -> Scenario {
    let mut scenario = scenario.clone();
    let classes = scenario.workload.classes.clone();
    scenario.workload = Arc::new(Workload { arrivals, classes });
    scenario.run.length = RunLength::Requests(requests);
    scenario.run.mode = mode;
    scenario
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::Catalog;
    use crate::scenario::Document;

    /// 3,000 servers of one second each complete 3,000 per second, and hold all of a run of 2,000 requests.
    #[test]
    fn a_batch_that_holds_a_whole_run_is_filled_by_a_longer_one() {
        let text = "[engine]\nname = 'synthetic'\nservers = 3000\nservice_time = { constant = { value_s = 1.0 } }\n\
                    [arrivals.poisson]\nrate_per_s = 50\n[run]\nrequests = 300\nreplications = 2\n";
        let document = Document::parse(text, None).expect("TOML");
        let scenario = document.scenario(&Catalog::new(None)).expect("a scenario");
        let saturation = saturate(&scenario).expect("a run").expect("saturated");
        let completed_per_s = saturation.completed_per_s.mean;
        assert!((completed_per_s / 3000.0 - 1.0).abs() < 0.02, "{completed_per_s}");
    }
}
