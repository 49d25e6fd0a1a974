//! The replications of a point: run in parallel, their warm-up chosen together.

use rayon::prelude::*;

use super::point::{Point, observe};
use crate::engine::{EngineError, RunEnd, Server};
use crate::metrics::{Course, Recorder, RunFacts, RunSummary, WarmUp};
use crate::scenario::{Scenario, Warmup};

/// A finished run whose warm-up is not chosen yet.
pub(super) struct Recorded {
    recorder: Recorder,
    end: RunEnd,
    pub course: Course,
}

impl Recorded {
    /// Runs one replication.
    pub fn of(scenario: &Scenario, replication: u32) -> Result<Self, EngineError> {
        let mut recorder = Recorder::new(scenario.workload.classes.iter().map(|class| &class.slo));
        let end = observe(scenario, replication, &mut recorder)?;
        let course = recorder.ended(end);
        Ok(Self { recorder, end, course })
    }

    pub fn summarise(self, scenario: &Scenario, warm_up: WarmUp) -> RunSummary {
        let (blocks_per_replica, servers_per_replica) = match &scenario.system.server {
            Server::Llm(server) => (server.total_blocks(), 1),
            Server::Synthetic(server) => (0, server.servers),
        };
        let facts = RunFacts {
            mode: scenario.run.mode,
            end: self.end,
            classes: &scenario.workload.classes,
            replicas: scenario.system.replicas,
            blocks_per_replica,
            servers_per_replica,
        };
        self.recorder.summarise(&facts, warm_up)
    }
}

/// Brings `runs`, the first replications of `scenario`, to `wanted`, in order. More replications may show
/// a warm-up that fewer did not: then the earlier ones, whose segments were not kept, are run again.
///
/// # Errors
/// What stops a run: see [`EngineError`].
pub(super) fn replicate(
    scenario: &Scenario,
    runs: Vec<RunSummary>,
    wanted: u32,
) -> Result<Vec<RunSummary>, EngineError> {
    let have = runs.len() as u32;
    let warmup = scenario.run.warmup;
    if let Warmup::Seconds(_) = warmup {
        // Nothing to choose together, so nothing to keep until all are done.
        let new = (have..wanted).into_par_iter().map(|replication| {
            Ok(Recorded::of(scenario, replication)?.summarise(scenario, WarmUp::of(warmup, &[])))
        });
        let new: Vec<RunSummary> = new.collect::<Result<_, EngineError>>()?;
        return Ok(runs.into_iter().chain(new).collect());
    }
    let recorded = |from: u32, to: u32| -> Result<Vec<Recorded>, EngineError> {
        (from..to).into_par_iter().map(|replication| Recorded::of(scenario, replication)).collect()
    };
    let summarised = |recorded: Vec<Recorded>, warm_up: WarmUp| -> Vec<RunSummary> {
        recorded.into_par_iter().map(|one| one.summarise(scenario, warm_up)).collect()
    };
    let new = recorded(have, wanted)?;
    let earlier: Vec<&Course> = runs.iter().map(|run| &run.course).collect();
    let before = WarmUp::of(warmup, &earlier);
    let all: Vec<&Course> = earlier.into_iter().chain(new.iter().map(|one| &one.course)).collect();
    let warm_up = WarmUp::of(warmup, &all);
    let runs = if warm_up == before { runs } else { summarised(recorded(0, have)?, warm_up) };
    Ok(runs.into_iter().chain(summarised(new, warm_up)).collect())
}

impl Point {
    /// This point with replications added until there are `replications`, judged anew.
    ///
    /// # Errors
    /// What stops a run: see [`EngineError`].
    pub fn extended(self, replications_wanted: u32) -> Result<Self, EngineError> {
        if self.runs.len() as u32 >= replications_wanted {
            return Ok(self);
        }
        let Self { coordinates, mut scenario, runs, .. } = self;
        let runs = replicate(&scenario, runs, replications_wanted)?;
        scenario.run.replications = replications_wanted;
        Self::new(coordinates, scenario, runs).settled()
    }
}
