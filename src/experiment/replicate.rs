//! More replications of a point that is already there.

use rayon::prelude::*;

use super::point::{Point, run_once};
use crate::engine::EngineError;
use crate::metrics::RunSummary;
use crate::scenario::Scenario;

/// Runs the replications `from..to` of `scenario`, in parallel, in order.
///
/// # Errors
/// What stops a run: see [`EngineError`].
pub(super) fn replications(scenario: &Scenario, from: u32, to: u32) -> Result<Vec<RunSummary>, EngineError> {
    (from..to).into_par_iter().map(|replication| run_once(scenario, replication)).collect()
}

impl Point {
    /// This point with replications added until there are `replications`, judged anew.
    ///
    /// # Errors
    /// What stops a run: see [`EngineError`].
    pub fn extended(self, replications_wanted: u32) -> Result<Self, EngineError> {
        let have = self.runs.len() as u32;
        if have >= replications_wanted {
            return Ok(self);
        }
        let Self { coordinates, mut scenario, mut runs, .. } = self;
        runs.extend(replications(&scenario, have, replications_wanted)?);
        scenario.run.replications = replications_wanted;
        Self::new(coordinates, scenario, runs).settled()
    }
}
