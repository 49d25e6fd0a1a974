//! A system without load: what it misses then it misses at any load.

use std::sync::Arc;

use super::estimate::Estimate;
use super::objective::{Margin, margins};
use super::point::run_point;
use crate::engine::EngineError;
use crate::metrics::RunMode;
use crate::scenario::{RunLength, Scenario, Warmup};
use crate::workload::{Arrivals, Distribution, Workload};

/// Requests, one after the other, that say how fast a system is without load.
const REQUESTS: u64 = 1_000;
pub(super) const REPLICATIONS: u32 = 5;

/// One user who asks again as soon as the answer is there.
pub(super) fn alone(scenario: &Scenario) -> Scenario {
    let arrivals = Arrivals::Closed { users: 1, think_time_s: Distribution::Constant { value: 0.0 } };
    let mut scenario = scenario.clone();
    scenario.workload = Arc::new(Workload { arrivals, classes: scenario.workload.classes.clone() });
    scenario.run.length = RunLength::Requests(REQUESTS);
    scenario.run.replications = REPLICATIONS;
    scenario.run.mode = RunMode::Steady;
    scenario.run.warmup = Warmup::Auto;
    scenario
}

/// The objective that is missed by most without any load, beyond the doubt of its interval; `None` if none is.
///
/// # Errors
/// What stops a run: see [`EngineError`].
pub(super) fn missed(scenario: &Scenario) -> Result<Option<Margin>, EngineError> {
    let point = run_point(&alone(scenario))?;
    let margins = margins(&scenario.workload.classes, &point.runs);
    let lower = |margin: &Margin| Estimate::lower(&margin.ratio);
    let worst = margins.into_iter().max_by(|a, b| lower(a).total_cmp(&lower(b)));
    Ok(worst.filter(|worst| lower(worst) > 1.0))
}
