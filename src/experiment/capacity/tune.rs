//! Where to set the number of concurrent requests and the token budget.
//!
//! For a scenario with objectives the best setting is the one with the highest capacity within them; for
//! one without, the one that completes most per second when saturated. A small grid of powers of two
//! about the scenario's own setting answers it, since both curves are flat at their top.
//!
//! Settings are compared by short runs of the same users, whose capacities lie beside the true ones, mostly above, all
//! by about as much. What the setting to choose, the scenario's own and the best of the grid are worth is then found as without tuning.

use super::search::{Effort, Search};
use super::{CapacityError, LoadAxis, answer, estimate_of, has_objectives, paired};
use crate::catalog::Catalog;
use crate::engine::Server;
use crate::experiment::Estimate;
use crate::experiment::saturation::saturate;
use crate::experiment::sweep::Progress;
use crate::scenario::{Document, Override, Scenario};
use crate::units::distinct;

const SEQS: &str = "engine.max_num_seqs";
const BUDGET: &str = "engine.max_num_batched_tokens";
/// Factors on the scenario's own setting.
const SEQS_FACTORS: [f64; 5] = [0.25, 0.5, 1.0, 2.0, 4.0];
const BUDGET_FACTORS: [f64; 4] = [0.25, 0.5, 1.0, 2.0];

/// Fewest replications of a setting.
const REPLICATIONS: u32 = 5;

/// What the best setting has most of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aim {
    /// Load within the objectives, in the unit of the axis.
    Capacity,
    /// Output tokens per second when saturated.
    Throughput,
}

/// One setting and what it reaches.
#[derive(Clone, Debug)]
pub struct Setting {
    pub max_num_seqs: u32,
    pub max_num_batched_tokens: u32,
    /// `None` where no load meets the objectives.
    pub value: Option<Estimate>,
    /// Best less this one, paired by replication, where that is shown not to be 0.
    pub shown_worse: bool,
    by_replication: Vec<f64>,
}

/// What a setting is worth by a search as without tuning.
#[derive(Clone, Debug)]
pub struct Confirmed {
    /// Its place in the settings.
    pub place: usize,
    pub guaranteed: Option<f64>,
    pub estimate: Option<Estimate>,
}

/// The grid and its best.
#[derive(Clone, Debug)]
pub struct Tuning {
    pub base: Scenario,
    pub aim: Aim,
    /// Unit of the values.
    pub unit: String,
    /// In the order of the grid: sequences, then budget.
    pub settings: Vec<Setting>,
    /// Place of the setting with the highest value, and of the one to choose: the nearest to the
    /// scenario's own among those that are not shown to be worse. `None` if none meets the objectives.
    pub best: Option<usize>,
    pub chosen: Option<usize>,
    pub own: (u32, u32),
    /// The setting that the grid says to choose, the scenario's own and the grid's best, each once, where capacities are
    /// compared.
    pub confirmed: Vec<Confirmed>,
}

impl Tuning {
    /// The setting that the short runs said to choose, where the confirming ones do not find it better than the scenario's
    /// own, which is chosen then.
    #[must_use]
    pub fn refuted(&self) -> Option<usize> {
        self.confirmed.first().map(|first| first.place).filter(|place| self.chosen != Some(*place))
    }
}

/// Tries the grid about the scenario's own setting.
///
/// # Errors
/// [`CapacityError`]; a scenario without a batcher has nothing to set.
pub fn tune(
    document: &Document,
    catalog: &Catalog,
    key: Option<&str>,
    effort: Effort,
    progress: &dyn Progress,
) -> Result<Option<Tuning>, CapacityError> {
    let base = document.scenario(catalog)?;
    let Server::Llm(server) = &base.system.server else {
        return Ok(None);
    };
    let shared = base.serving.as_ref().map_or(1, |serving| serving.ranks_sharing_limits());
    let own = (server.batcher.max_num_seqs * shared, server.batcher.max_num_batched_tokens * shared);
    let axis = if has_objectives(&base) { Some(LoadAxis::of(document, catalog, &base, key)?) } else { None };
    let (aim, unit) = match &axis {
        Some(axis) => (Aim::Capacity, axis.unit.clone()),
        None => (Aim::Throughput, "output tok/s".to_owned()),
    };
    let mut settings = Vec::new();
    for (seqs, budget) in grid(own) {
        let changed = document.with_overrides(&overrides(seqs, budget))?;
        // A setting that the engine refuses is no candidate.
        let Ok(scenario) = changed.scenario(catalog) else { continue };
        let reached = match &axis {
            Some(axis) => capacity_of(&changed, catalog, axis, effort, &scenario, progress)?,
            None => throughput_of(&scenario)?,
        };
        let (value, by_replication) = match reached {
            Some((value, by_replication)) => (Some(value), by_replication),
            None => (None, Vec::new()),
        };
        settings.push(Setting {
            max_num_seqs: seqs,
            max_num_batched_tokens: budget,
            value,
            shown_worse: false,
            by_replication,
        });
    }
    let (best, mut chosen) = choose(&mut settings, own);
    let mut confirmed = Vec::new();
    if let Some(axis) = &axis {
        let of_own = settings.iter().position(|setting| setting.is(own));
        // Where nothing meets the objectives there is nothing to confirm.
        let places = distinct([chosen, of_own.filter(|_| chosen.is_some()), best].into_iter().flatten());
        for place in places {
            let changed = document.with_overrides(&settings[place].overrides())?;
            confirmed.push(confirm(place, &changed, catalog, axis, effort, &base, progress)?);
        }
    }
    let of_own = confirmed.iter().find(|one| settings[one.place].is(own));
    if let (Some(found), Some(own)) = (confirmed.first(), of_own)
        && found.place != own.place
        && !is_higher(found, own)
    {
        chosen = Some(own.place);
    }
    Ok(Some(Tuning { base, aim, unit, settings, best, chosen, own, confirmed }))
}

impl Setting {
    /// Whether its sequences and budget are these.
    fn is(&self, (seqs, budget): (u32, u32)) -> bool {
        (self.max_num_seqs, self.max_num_batched_tokens) == (seqs, budget)
    }

    fn overrides(&self) -> [Override; 2] {
        overrides(self.max_num_seqs, self.max_num_batched_tokens)
    }
}

fn overrides(seqs: u32, budget: u32) -> [Override; 2] {
    [Override::new(SEQS, &seqs.to_string()), Override::new(BUDGET, &budget.to_string())]
}

/// Searches as [`super::capacity`] does.
fn confirm(
    place: usize,
    document: &Document,
    catalog: &Catalog,
    axis: &LoadAxis,
    effort: Effort,
    base: &Scenario,
    progress: &dyn Progress,
) -> Result<Confirmed, CapacityError> {
    let at = |load: f64| axis.scenario(document, catalog, load);
    let found = Search::new(axis, &at, effort, base.run.replications, progress).run(true)?;
    let estimate = answer(&found, axis).estimate;
    Ok(Confirmed { place, guaranteed: found.guaranteed, estimate })
}

/// Whether `a` is worth more than `b`: by the estimate, or where one has none by what is guaranteed.
fn is_higher(a: &Confirmed, b: &Confirmed) -> bool {
    match (a.estimate, b.estimate) {
        (Some(a), Some(b)) => a.mean > b.mean,
        _ => a.guaranteed > b.guaranteed,
    }
}

fn grid(own: (u32, u32)) -> Vec<(u32, u32)> {
    let scaled = |value: u32, factor: f64| libm::rint(f64::from(value) * factor).max(1.0) as u32;
    let pairs = SEQS_FACTORS.iter().flat_map(|seqs| {
        BUDGET_FACTORS.iter().map(move |budget| (scaled(own.0, *seqs), scaled(own.1, *budget)))
    });
    // A step must have room for one token of every sequence.
    let mut pairs: Vec<(u32, u32)> = pairs.filter(|(seqs, budget)| budget >= seqs).collect();
    pairs.dedup();
    pairs
}

type Reached = Option<(Estimate, Vec<f64>)>;

fn capacity_of(
    document: &Document,
    catalog: &Catalog,
    axis: &LoadAxis,
    effort: Effort,
    scenario: &Scenario,
    progress: &dyn Progress,
) -> Result<Reached, CapacityError> {
    let at = |load: f64| axis.scenario(document, catalog, load);
    let found = Search::new(axis, &at, effort, scenario.run.replications, progress).run(false)?;
    let (estimate, objective) = estimate_of(&found, axis);
    let by_replication = match (&found.crossing, objective) {
        (Some(crossing), Some(_)) => crossing.by_replication.clone(),
        // Bound by stability: the replications' saturated throughputs are not kept, only their mean.
        _ => Vec::new(),
    };
    Ok(estimate.map(|estimate| (estimate, by_replication)))
}

fn throughput_of(scenario: &Scenario) -> Result<Reached, CapacityError> {
    let mut scenario = scenario.clone();
    // A batch that is run once says nothing about scatter; settings are compared over several draws.
    scenario.run.replications = scenario.run.replications.max(REPLICATIONS);
    let Some(saturation) = saturate(&scenario)? else {
        return Ok(None);
    };
    let tokens_per_request =
        |run: &crate::metrics::RunSummary| run.all.output_tokens as f64 / (run.all.completed.max(1)) as f64;
    let by_replication: Vec<f64> = saturation
        .by_replication
        .iter()
        .zip(&saturation.point.runs)
        .map(|(rate, run)| rate * tokens_per_request(run))
        .collect();
    Ok(Estimate::of(&by_replication).map(|value| (value, by_replication)))
}

/// Marks what is shown to be worse than the best and picks the nearest to `own` among the rest.
fn choose(settings: &mut [Setting], own: (u32, u32)) -> (Option<usize>, Option<usize>) {
    let value = |setting: &Setting| setting.value.map_or(f64::NEG_INFINITY, |value| value.mean);
    let best = (0..settings.len())
        .filter(|at| settings[*at].value.is_some())
        .max_by(|a, b| value(&settings[*a]).total_cmp(&value(&settings[*b])));
    let Some(best) = best else {
        return (None, None);
    };
    let (top, top_values) = (value(&settings[best]), settings[best].by_replication.clone());
    for setting in settings.iter_mut() {
        let worse = paired(&setting.by_replication, &top_values).map(|(_, shown)| shown);
        // Without pairs only values that print alike count as equal.
        setting.shown_worse = worse.unwrap_or(value(setting) < top * 0.995);
    }
    let distance = |setting: &Setting| {
        let octaves = |a: u32, b: u32| libm::log2(f64::from(a) / f64::from(b)).abs();
        octaves(setting.max_num_seqs, own.0) + octaves(setting.max_num_batched_tokens, own.1)
    };
    let chosen = (0..settings.len())
        .filter(|at| !settings[*at].shown_worse)
        .min_by(|a, b| distance(&settings[*a]).total_cmp(&distance(&settings[*b])));
    (Some(best), chosen.or(Some(best)))
}
