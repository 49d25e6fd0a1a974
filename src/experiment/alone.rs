//! A system under arrivals of our choice, and one without load: what that misses it misses at any load.

use std::sync::Arc;

use super::estimate::Estimate;
use super::objective::Margin;
use super::point::run_point;
use crate::engine::EngineError;
use crate::metrics::RunMode;
use crate::scenario::{RunLength, Scenario, Warmup};
use crate::workload::{Arrivals, Distribution, Workload};

/// Requests, one after the other, that say how fast a system is without load.
const REQUESTS: u64 = 1_000;
pub(super) const REPLICATIONS: u32 = 5;

/// The same requests in a steady run of other arrivals, so many of them so many times.
pub(super) fn under(one: &Scenario, arrivals: Arrivals, requests: u64, replications: u32) -> Scenario {
    let mut scenario = one.clone();
    scenario.workload = Arc::new(Workload { arrivals, classes: one.workload.classes.clone() });
    scenario.run.length = RunLength::Requests(requests);
    scenario.run.replications = replications;
    scenario.run.mode = RunMode::Steady;
    scenario.run.warmup = Warmup::Auto;
    scenario
}

/// One user who asks again as soon as the answer is there.
pub(super) fn alone(one: &Scenario) -> Scenario {
    let think_time_s = Distribution::Constant { value: 0.0 };
    under(one, Arrivals::Closed { users: 1, think_time_s }, REQUESTS, REPLICATIONS)
}

/// The objective that is missed by most without any load, beyond the doubt of its interval; `None` if none is.
///
/// # Errors
/// What stops a run: see [`EngineError`].
pub(super) fn missed(scenario: &Scenario) -> Result<Option<Margin>, EngineError> {
    let point = run_point(&alone(scenario))?;
    let lower = |margin: &Margin| Estimate::lower(&margin.ratio);
    let worst = point.margins().into_iter().max_by(|a, b| lower(a).total_cmp(&lower(b)));
    Ok(worst.filter(|worst| lower(worst) > 1.0))
}
