//! What a system completes per second while its backlog never empties.
//!
//! A queue that is served in order of arrival keeps up with every load below the throughput it has when
//! it never runs dry (the saturation rule: F. Baccelli, S. Foss, "On the saturation rule for the
//! stability of queues", J. Appl. Prob. 32 (1995) 494-507). So the saturated throughput is the stability
//! limit, found in one short run however long it would take a backlog to show near the limit.

use std::sync::Arc;

use super::estimate::Estimate;
use super::point::{Point, run_once};
use crate::engine::EngineError;
use crate::metrics::{RunMode, RunSummary};
use crate::scenario::{RunLength, Scenario};
use crate::workload::{Arrivals, Workload};

/// The most requests that a saturated run holds in its queue, and the fewest that say anything.
const MOST: u64 = 20_000;
const FEWEST: u64 = 2_000;
/// The rate is taken between these fractions of the completions: after the ramp, before the drain.
const FROM: f64 = 0.1;
const TO: f64 = 0.9;

/// A system with its whole load in the queue at once.
#[derive(Clone, Debug)]
pub struct Saturation {
    /// Completed requests per second.
    pub completed_per_s: Estimate,
    /// The runs behind it.
    pub point: Point,
}

/// Saturates `scenario`: same classes, replicas and replications, all requests at once. `None` for a
/// recorded load, whose requests are not a sample of anything else, and where nothing completes.
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
            (seconds * scenario.workload.arrivals.rate_per_s().unwrap_or(0.0)) as u64
        }
    };
    let mut scenario = scenario.clone();
    let classes = scenario.workload.classes.clone();
    scenario.workload = Arc::new(Workload { arrivals: Arrivals::AllAtOnce, classes });
    scenario.run.length =
        RunLength::Requests(asked.clamp(FEWEST, MOST) * u64::from(scenario.system.replicas));
    scenario.run.mode = RunMode::Benchmark;
    let runs =
        (0..scenario.run.replications).map(|r| run_once(&scenario, r)).collect::<Result<Vec<_>, _>>()?;
    let rates: Vec<f64> = runs.iter().filter_map(rate_per_s).collect();
    let Some(completed_per_s) = Estimate::of(&rates) else {
        return Ok(None);
    };
    Ok(Some(Saturation { completed_per_s, point: Point::new(Vec::new(), scenario, runs) }))
}

fn rate_per_s(run: &RunSummary) -> Option<f64> {
    let total = run.totals.completed as f64;
    let (mut completed, mut from) = (0.0, None);
    for bin in &run.timeline {
        completed += bin.completed_per_s * bin.span_s;
        let end_s = bin.start_s + bin.span_s;
        match from {
            None if completed >= FROM * total => from = Some((completed, end_s)),
            Some((before, since_s)) if completed >= TO * total => {
                return (end_s > since_s).then(|| (completed - before) / (end_s - since_s));
            }
            _ => {}
        }
    }
    None
}
