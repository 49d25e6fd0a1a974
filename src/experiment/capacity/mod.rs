//! The highest load at which every objective holds, robust to noise.
//!
//! Four numbers, told apart: the *guaranteed* load (the last that passes with its confidence bound; too
//! low by design), the *first failing* load above it, the *estimate* of where the objective is met with
//! equality (unbiased, with its interval), and the *band* that the estimate moves in if every step takes
//! as much longer or shorter as the profile was wrong on measurements it had not seen.

mod axis;
mod band;
mod crossing;
mod levers;
mod search;
mod side;
mod tune;

use crate::catalog::Catalog;
use crate::engine::EngineError;
use crate::experiment::estimate::outside;
use crate::experiment::objective::{promised_to_all, refused_at_any_load};
use crate::experiment::point::Point;
use crate::experiment::sweep::Progress;
use crate::experiment::{Estimate, SloVerdict, binding};
use crate::scenario::{Document, RunLength, Scenario, ScenarioErrors};

pub use axis::LoadAxis;
pub use band::Band;
pub(super) use band::{unknown_error, with_steps_scaled};
pub use crossing::{Crossing, paired};
pub use levers::{Lever, LeverOutcome};
pub use search::{Effort, Found};
pub use tune::{Aim, Confirmed, Setting, Tuning, tune};

use search::Search;

/// The answer of `knee capacity`. Loads are in the unit of the axis.
#[derive(Clone, Debug)]
pub struct Capacity {
    /// The scenario as written.
    pub base: Scenario,
    pub axis: LoadAxis,
    pub effort: Effort,
    /// Every load that was simulated, ascending.
    pub points: Vec<(f64, Point)>,
    /// Why no load can pass, where that is known: what is missed without any load, or requests that are refused.
    pub impossible: Option<String>,
    /// `None` if no load passes.
    pub guaranteed: Option<f64>,
    /// `None` if none fails.
    pub first_failing: Option<f64>,
    /// Where the binding objective is met with equality, or the system stops keeping up.
    pub estimate: Option<Estimate>,
    /// The objective that fails first, or that the backlog grows; in words.
    pub binding: Option<String>,
    /// What the system runs out of at the first failing load, in words.
    pub resource: Option<String>,
    pub saturated_per_s: Option<Estimate>,
    pub band: Option<Band>,
    pub levers: Vec<Lever>,
    /// Limits that were reached and claims that are withheld.
    pub notes: Vec<String>,
}

/// Why there is no capacity.
#[derive(Debug, thiserror::Error)]
pub enum CapacityError {
    #[error("{0}")]
    Scenario(#[from] ScenarioErrors),
    #[error("{0}")]
    Engine(#[from] EngineError),
    #[error(
        "capacity is the highest load that meets the objectives, and the scenario has none; give a class \
         an objective, such as slo = {{ ttft_p99_ms = 500 }} (`knee sweep` shows where the backlog grows)"
    )]
    NoObjectives,
    #[error("{0}")]
    PromisedToAll(String),
    #[error(
        "the scenario's arrivals have no one load to search for: {what}; set arrivals.poisson.rate_per_s, or \
         name the key to search with --axis{such_as}"
    )]
    NoLoad { what: &'static str, such_as: &'static str },
}

/// What the worst of it is called where no objective fails first.
const BACKLOG: &str = "the backlog grows without bound";

/// Finds the capacity of `document` along `key` (or its own load).
///
/// # Errors
/// [`CapacityError`].
pub fn capacity(
    document: &Document,
    catalog: &Catalog,
    key: Option<&str>,
    effort: Effort,
    progress: &dyn Progress,
) -> Result<Capacity, CapacityError> {
    let base = document.scenario(catalog)?;
    if !has_objectives(&base) {
        return Err(CapacityError::NoObjectives);
    }
    if let Some(why) = promised_to_all(&base.workload.classes) {
        return Err(CapacityError::PromisedToAll(why));
    }
    let axis = LoadAxis::of(document, catalog, &base, key)?;
    let at = |load: f64| axis.scenario(document, catalog, load);
    let mut found = Search::new(&axis, &at, effort, base.run.replications, progress).run(true)?;
    let mut notes = found.notes.clone();
    notes.extend(lengthened(document, &base, &found));
    let Answer { estimate, objective, doubt } = answer(&found, &axis);
    notes.extend(doubt);
    notes.extend(metastable(&found, &axis));
    let failing = found.first_failing.and_then(|load| point_at(&found.points, load));
    let refused =
        failing.and_then(|point| refused_at_any_load(&point.scenario.workload.classes, &point.runs));
    // Whose requests are refused whatever the load runs out of nothing.
    let failing = failing.filter(|_| refused.is_none());
    let binding = failing.map(|point| match (&objective, &point.slo) {
        // The one that crosses first, which need not be the one that is farthest beyond its limit.
        (Some(objective), _) => objective.clone(),
        (None, SloVerdict::Missed { binding } | SloVerdict::Unclear { binding }) => binding.clone(),
        (None, _) => BACKLOG.to_owned(),
    });
    let band = match estimate {
        Some(estimate) => {
            let (band, note) = band::band(&base, &axis, &at, &found, estimate.mean)?;
            notes.extend(note);
            band
        }
        None => None,
    };
    let levers = match (found.first_failing, failing) {
        // No change of those that are tried makes a lone request several times as fast.
        _ if found.impossible.is_some() => Vec::new(),
        (Some(load), Some(point)) => levers::levers(document, catalog, &axis, load, point, progress)?,
        _ => Vec::new(),
    };
    let resource = failing.filter(|_| found.impossible.is_none()).map(binding::in_words);
    // From here on as the key has it.
    let shown = |load: f64| axis.shown(load);
    if axis.fewest {
        found.points.reverse();
    }
    Ok(Capacity {
        binding: binding.or_else(|| refused.map(|refused| refused.to_string())),
        resource,
        guaranteed: found.guaranteed.map(shown),
        first_failing: found.first_failing.map(shown),
        saturated_per_s: found.saturated_per_s,
        impossible: found.impossible,
        points: found.points.into_iter().map(|(load, point)| (shown(load), point)).collect(),
        base,
        axis,
        effort,
        estimate,
        band,
        levers,
        notes,
    })
}

/// That runs were longer than the scenario says, if it does.
fn lengthened(document: &Document, base: &Scenario, found: &Found) -> Option<String> {
    let key = ["run.requests", "run.duration_s"].into_iter().find(|key| document.has(key))?;
    let length = |scenario: &Scenario| match scenario.run.length {
        RunLength::Requests(requests) => requests as f64,
        RunLength::DurationS(seconds) => seconds,
    };
    let asked = length(base);
    let longest = found.points.iter().map(|(_, point)| length(&point.scenario)).fold(asked, f64::max);
    (longest > asked).then(|| {
        format!(
            "runs of {key} = {asked} are too short for the tails and fluctuations of this load; those here are \
             of up to {longest}"
        )
    })
}

/// Whether anything was promised to anybody.
#[must_use]
pub fn has_objectives(scenario: &Scenario) -> bool {
    scenario.workload.classes.iter().any(|class| !class.slo.objectives.is_empty())
}

/// What a search comes to.
struct Answer {
    /// The load at which the objectives are met with equality; withheld where the bracket contradicts all of it.
    estimate: Option<Estimate>,
    objective: Option<String>,
    /// How the bracket contradicts it, in words.
    doubt: Option<String>,
}

fn answer(found: &Found, axis: &LoadAxis) -> Answer {
    let (estimate, objective) = estimate_of(found, axis);
    let outside = estimate.and_then(|estimate| outside(&estimate, found.guaranteed, found.first_failing));
    let Some((why, is_all)) = outside else { return Answer { estimate, objective, doubt: None } };
    let end = if is_all { ", so it is withheld" } else { "" };
    let doubt = format!("the load at which the objectives are met with equality comes out {why}{end}");
    Answer { estimate: estimate.filter(|_| !is_all), objective, doubt: Some(doubt) }
}

/// The load where the first objective is met with equality, or the saturated throughput where the system
/// stops keeping up before; and the objective.
fn estimate_of(found: &Found, axis: &LoadAxis) -> (Option<Estimate>, Option<String>) {
    if axis.fewest {
        // Nobody has a part of a replica.
        return (None, found.crossing.as_ref().map(|crossing| crossing.objective.clone()));
    }
    let limit = found.saturated_per_s.filter(|_| axis.is_rate() && found.first_failing.is_some());
    match (&found.crossing, limit) {
        (Some(crossing), Some(limit)) if limit.mean < crossing.load.mean && !is_beyond(found, limit) => {
            (Some(limit), None)
        }
        (Some(crossing), _) => (Some(crossing.load), Some(crossing.objective.clone())),
        // Loads that hold up to the limit, of which the first beyond it does not.
        (None, Some(limit)) if found.guaranteed.is_some() => (Some(limit), None),
        (None, _) => (None, None),
    }
}

/// Whether loads pass that are above what a full queue lets the system complete, by their own runs.
fn is_beyond(found: &Found, limit: Estimate) -> bool {
    found.guaranteed.is_some_and(|guaranteed| guaranteed > limit.upper())
}

/// That the guaranteed load holds only as long as nothing fills the queue, where a full one makes the system slower.
fn metastable(found: &Found, axis: &LoadAxis) -> Option<String> {
    let limit = found.saturated_per_s.filter(|limit| axis.is_rate() && is_beyond(found, *limit))?;
    Some(format!(
        "with a full queue {:.3} req/s are completed, fewer than the guaranteed load: it holds while no backlog has formed, \
         and one that has (after an outage or a burst) does not drain under it",
        limit.mean
    ))
}

fn point_at(points: &[(f64, Point)], load: f64) -> Option<&Point> {
    points.iter().find(|(other, _)| *other == load).map(|(_, point)| point)
}
