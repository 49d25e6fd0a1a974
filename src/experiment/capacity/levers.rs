//! What would move the capacity: single changes, tried at the first failing load.

use super::{CapacityError, LoadAxis};
use crate::catalog::Catalog;
use crate::engine::Server;
use crate::experiment::objective;
use crate::experiment::point::{Point, run_point};
use crate::experiment::sweep::Progress;
use crate::experiment::{SloVerdict, Verdict};
use crate::scenario::{Document, Override, RunPlan, Scenario};

/// One change and what it does at the first failing load.
#[derive(Clone, Debug)]
pub struct Lever {
    /// Scenario key and value.
    pub key: String,
    pub value: String,
    pub outcome: LeverOutcome,
}

/// What a change does.
#[derive(Clone, Debug, PartialEq)]
pub enum LeverOutcome {
    /// It was simulated.
    Tried {
        /// Every objective holds, its confidence bound included.
        passes: bool,
        /// Worst value over limit before and after, means over replications; `None` where the system
        /// does not keep up or nothing completes.
        before: Option<f64>,
        after: Option<f64>,
        /// GPUs of the deployment with it.
        gpus: u32,
    },
    /// The scenario is not valid with it; the reason in one line.
    Impossible(String),
}

/// Tries every single change at `load`, where `failing` was simulated without them.
pub(super) fn levers(
    document: &Document,
    catalog: &Catalog,
    axis: &LoadAxis,
    load: f64,
    failing: &Point,
    progress: &dyn Progress,
) -> Result<Vec<Lever>, CapacityError> {
    let before = worst(failing);
    let changes = changes(&failing.scenario);
    progress.total(changes.len() as u64);
    changes
        .into_iter()
        // A key that is itself the axis would undo the load.
        .filter(|(key, _)| *key != axis.key)
        .map(|(key, value)| {
            let change = Override::new(key, &value);
            let outcome = match document
                .with_overrides(&[change])
                .map_err(CapacityError::from)
                .and_then(|document| axis.scenario(&document, catalog, load))
            {
                Ok(scenario) => tried(scenario, &failing.scenario.run, before)?,
                Err(CapacityError::Scenario(errors)) => LeverOutcome::Impossible(one_line(&errors)),
                Err(other) => return Err(other),
            };
            progress.done(1);
            Ok(Lever { key: key.to_owned(), value, outcome })
        })
        .collect()
}

fn tried(mut scenario: Scenario, run: &RunPlan, before: Option<f64>) -> Result<LeverOutcome, CapacityError> {
    // As long, as often and with the same start removed as what it is compared with.
    scenario.run = run.clone();
    let point = run_point(&scenario)?;
    let passes = point.slo == SloVerdict::Met && point.stability.verdict == Verdict::Stable;
    Ok(LeverOutcome::Tried { passes, before, after: worst(&point), gpus: point.scenario.gpus })
}

/// Worst value over limit; `None` where the backlog grows, because there it is only the run's length.
fn worst(point: &Point) -> Option<f64> {
    if point.stability.verdict == Verdict::Unstable {
        return None;
    }
    let margins = objective::margins(&point.scenario.workload.classes, &point.runs);
    margins.iter().map(|margin| margin.ratio.mean).reduce(f64::max)
}

/// The single changes that people reach for first.
fn changes(scenario: &Scenario) -> Vec<(&'static str, String)> {
    let replicas = ("deployment.replicas", (scenario.system.replicas + 1).to_string());
    match (&scenario.system.server, &scenario.serving) {
        (Server::Llm(server), Some(serving)) => {
            let batcher = &server.batcher;
            let shared = serving.ranks_sharing_limits();
            let (seqs, budget) = (batcher.max_num_seqs * shared, batcher.max_num_batched_tokens * shared);
            vec![
                ("engine.max_num_seqs", seqs.saturating_mul(2).to_string()),
                ("engine.max_num_batched_tokens", budget.saturating_mul(2).to_string()),
                ("engine.max_num_batched_tokens", (budget / 2).max(1).to_string()),
                ("engine.kv_cache_dtype", "fp8".to_owned()),
                ("engine.tensor_parallel_size", (serving.tensor_parallel_size * 2).to_string()),
                replicas,
            ]
        }
        (Server::Synthetic(server), _) => {
            vec![("engine.servers", (server.servers + 1).to_string()), replicas]
        }
        (Server::Llm(_), None) => vec![replicas],
    }
}

/// The first line of what is wrong, without where.
fn one_line(errors: &crate::scenario::ScenarioErrors) -> String {
    let text = errors.to_string();
    let line = text.lines().next().unwrap_or_default();
    line.trim_start_matches("error: ").to_owned()
}
