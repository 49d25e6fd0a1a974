//! How many requests a deployment refuses whatever the load: those that fit into no step, no context or no pool.

use std::sync::Arc;

use super::objective::most_refused_for;
use super::point::run_once;
use crate::engine::EngineError;
use crate::metrics::RunMode;
use crate::scenario::{RunLength, Scenario};
use crate::workload::{Arrivals, Workload};

/// Requests that are sent.
const REQUESTS: u64 = 1_000;

/// The share of the first thousand requests that is refused, and why most of them are; `None` if none is.
///
/// # Errors
/// What stops a run: see [`EngineError`].
pub fn refused_share(scenario: &Scenario) -> Result<Option<(f64, &'static str)>, EngineError> {
    let mut scenario = scenario.clone();
    if !matches!(scenario.workload.arrivals, Arrivals::Trace(_)) {
        let classes = scenario.workload.classes.clone();
        scenario.workload = Arc::new(Workload { arrivals: Arrivals::AllAtOnce, classes });
    }
    scenario.run.length = RunLength::Requests(REQUESTS);
    scenario.run.mode = RunMode::Benchmark;
    let run = run_once(&scenario, 0)?;
    let share = run.totals.rejected_too_long as f64 / run.totals.offered.max(1) as f64;
    Ok(most_refused_for(&[run]).filter(|_| share > 0.0).map(|why| (share, why)))
}
