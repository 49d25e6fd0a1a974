//! What would move the capacity: single changes, tried at the first failing load.

use super::crossing::ratios;
use super::search::{FEW, FEWEST};
use super::side::is_clear;
use super::{CapacityError, LoadAxis};
use crate::catalog::Catalog;
use crate::engine::Server;
use crate::experiment::objective::Margin;
use crate::experiment::point::{Point, run_point};
use crate::experiment::sweep::Progress;
use crate::experiment::{Estimate, Verdict};
use crate::scenario::{Document, Override, Scenario};
use crate::stats::mean;

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
        /// Why that is not shown although every mean is within its limit.
        unclear: Option<String>,
        /// Worst value over limit before and after, over replications; `None` where the system does not keep
        /// up or nothing completes.
        before: Option<Estimate>,
        after: Option<Estimate>,
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
    let before = failing.worst().map(|margin| margin.ratio);
    let changes = changes(&failing.scenario);
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
                Ok(scenario) => tried(scenario, failing, before)?,
                Err(CapacityError::Scenario(errors)) => LeverOutcome::Impossible(one_line(&errors)),
                Err(other) => return Err(other),
            };
            progress.done(1);
            Ok(Lever { key: key.to_owned(), value, outcome })
        })
        .collect()
}

fn tried(
    mut scenario: Scenario,
    failing: &Point,
    before: Option<Estimate>,
) -> Result<LeverOutcome, CapacityError> {
    // As long and with the same start removed as what it is compared with.
    scenario.run = failing.scenario.run.clone();
    let most = scenario.run.replications.min(FEWEST);
    scenario.run.replications = most.min(FEW);
    let mut point = run_point(&scenario)?;
    if !is_clear(&point) {
        point = point.extended(most)?;
    }
    if before.is_none() && !is_clear(&point) {
        // Nothing to compare with: as many replications then.
        point = point.extended(failing.scenario.run.replications)?;
    }
    let margins = if before.is_some() { changed(failing, &point) } else { point.margins() };
    let worst_by =
        |of: fn(&Estimate) -> f64| margins.iter().max_by(|a, b| of(&a.ratio).total_cmp(&of(&b.ratio)));
    let is_stable = point.stability.verdict == Verdict::Stable;
    let after = worst_by(|ratio| ratio.mean).map(|margin| margin.ratio);
    let holds = point.stability.verdict != Verdict::Unstable && after.is_some_and(|after| after.mean <= 1.0);
    let beyond = worst_by(Estimate::upper).filter(|margin| margin.ratio.upper() > 1.0);
    let unclear = match beyond {
        _ if !holds => None,
        Some(margin) => Some(format!("the interval of {} reaches beyond the limit", margin.objective)),
        None if !is_stable => Some("whether the system keeps up is undecided".to_owned()),
        None => None,
    };
    let after = after.filter(|_| point.stability.verdict != Verdict::Unstable);
    let passes = holds && unclear.is_none();
    Ok(LeverOutcome::Tried { passes, unclear, before, after, gpus: point.scenario.gpus })
}

/// The margins of the failing load with a change whose few replications are `with`. They see the same users as the first
/// replications without it: what the change does is told by these pairs, and what it does it to by all replications. So
/// what changes nothing comes out as it was, and few runs tell as much as many.
fn changed(failing: &Point, with: &Point) -> Vec<Margin> {
    let before = ratios(failing);
    let paired = |(objective, after): (String, Vec<f64>)| {
        let all = before.iter().find(|(name, _)| *name == objective).map(|(_, all)| all);
        let ratio = all.and_then(|all| moved(all, &after)).or_else(|| Estimate::of(&after))?;
        Some(Margin { objective, ratio })
    };
    ratios(with).into_iter().filter_map(paired).collect()
}

/// The mean of `all` times what `after` is over the first of them, with both intervals (a ratio of means, to first order).
fn moved(all: &[f64], after: &[f64]) -> Option<Estimate> {
    let before = all.get(..after.len())?;
    let (own, with) = (mean(before)?, mean(after)?);
    if own <= 0.0 {
        return None;
    }
    let change = with / own;
    let residuals: Vec<f64> =
        before.iter().zip(after).map(|(before, after)| (after - change * before) / own).collect();
    let (base, spread) = (Estimate::of(all)?, Estimate::of(&residuals)?.half_width?);
    let half_width = base.half_width.map(|half| libm::hypot(spread * base.mean, change * half));
    Some(Estimate { mean: base.mean * change, half_width })
}

/// The single changes that people reach for first.
fn changes(scenario: &Scenario) -> Vec<(&'static str, String)> {
    let replicas = ("deployment.replicas", (scenario.system.replicas + 1).to_string());
    match (&scenario.system.server, &scenario.serving) {
        (Server::Llm(server), Some(serving)) => {
            let batcher = &server.batcher;
            let shared = serving.ranks_sharing_limits();
            let (seqs, budget) = (batcher.max_num_seqs * shared, batcher.max_num_batched_tokens * shared);
            let gpus = serving.tensor_parallel_size * 2;
            // Beyond what a link joins it would be another machine's network.
            let more_gpus = (gpus <= serving.hardware.link_domain.max(8))
                .then(|| ("engine.tensor_parallel_size", gpus.to_string()));
            let mut changes = vec![
                ("engine.max_num_seqs", seqs.saturating_mul(2).to_string()),
                ("engine.max_num_batched_tokens", budget.saturating_mul(2).to_string()),
                ("engine.max_num_batched_tokens", (budget / 2).max(1).to_string()),
                ("engine.kv_cache_dtype", "fp8".to_owned()),
            ];
            changes.extend(more_gpus);
            changes.push(replicas);
            changes
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_change_does_is_told_by_pairs() {
        let all = [0.8, 1.3, 0.9, 1.2, 1.0, 1.1, 0.95, 1.15];
        // Nothing changed: what it was, with its interval.
        let (same, own) = (moved(&all, &all[..3]).expect("a ratio"), Estimate::of(&all).expect("values"));
        assert!((same.mean - own.mean).abs() < 1e-12 && (same.upper() - own.upper()).abs() < 1e-12);
        // A tenth less for everybody: a tenth less, although the first three are no typical ones.
        let tenth: Vec<f64> = all[..3].iter().map(|ratio| 0.9 * ratio).collect();
        let less = moved(&all, &tenth).expect("a ratio");
        assert!(
            (less.mean - 0.9 * own.mean).abs() < 1e-12 && (less.upper() - 0.9 * own.upper()).abs() < 1e-12
        );
        // Not for everybody alike: less certain.
        let uneven = moved(&all, &[0.8, 0.9, 0.9]).expect("a ratio");
        assert!(uneven.half_width > less.half_width, "{uneven:?}");
        assert_eq!(moved(&all[..2], &[1.0, 1.0, 1.0]), None);
    }
}
