//! A grid of scenarios: every combination of the axes' values (or the n-th values of all axes together),
//! each run as often as its plan says.
//!
//! One run is one thread; parallelism is across runs. Longer points start first, so that no core idles
//! at the end; results are folded in grid order, so that they do not depend on the number of threads.

use std::path::Path;
use std::sync::Arc;

use rayon::prelude::*;

use super::combinations::{Combination, read_combinations};
use super::journal::{Journal, JournalError, Start, fnv1a64};
use super::point::Point;
use super::precision::{Precision, Reached, refine};
use super::reading::{CurveReading, read_curve};
use super::replicate::replicate;
use crate::catalog::Catalog;
use crate::engine::EngineError;
use crate::scenario::{Axis, AxisValue, Document, Override, RunLength, Scenario, ScenarioErrors, SweepMode};

/// Told how far a sweep has come; called from many threads.
pub trait Progress: Sync {
    /// So many runs are to be done.
    fn total(&self, runs: u64);
    /// So many more are done.
    fn done(&self, runs: u64);
}

/// Nobody watches.
#[derive(Clone, Copy, Debug)]
pub struct Silent;

impl Progress for Silent {
    fn total(&self, _runs: u64) {}
    fn done(&self, _runs: u64) {}
}

/// A sweep's result: points in grid order and, for a curve, what it says.
#[derive(Clone, Debug)]
pub struct SweepResult {
    /// The scenario without the axes' values or, if it is none by itself, its first point.
    pub base: Scenario,
    /// The keys of the axes.
    pub axes: Vec<String>,
    /// Their runs have no timeline: nothing of a sweep is drawn from it, and thousands of them are long.
    pub points: Vec<Point>,
    /// Points whose model does not fit into their GPU's memory, with the reason; nothing was run there.
    pub unfit: Vec<(Vec<AxisValue>, String)>,
    /// Present where the only axis is a load.
    pub reading: Option<CurveReading>,
    /// In a grid with one load among its axes: the reading of each combination of the others.
    pub combinations: Vec<Combination>,
    /// How precise every point became, where a precision was asked for.
    pub reached: Vec<Reached>,
    /// Where finished points were kept, still open: whoever has the result removes it once that is kept.
    pub journal: Option<Arc<Journal>>,
}

/// Why a sweep could not be done.
#[derive(Debug, thiserror::Error)]
pub enum SweepError {
    #[error("{0}")]
    Scenario(#[from] ScenarioErrors),
    #[error("{0}")]
    Engine(#[from] EngineError),
    #[error("{0}")]
    Journal(#[from] JournalError),
    #[error(
        "the scenario has no [sweep] table: add one, for example \"arrivals.poisson.rate_per_s\" = {{ from = 1, to = 20, points = 20 }}"
    )]
    NoAxes,
    #[error("the sweep has {0} points; the most is {MAX_POINTS}")]
    TooManyPoints(u128),
}

/// The largest grid: beyond it the answer is a smaller grid, not a longer wait.
pub const MAX_POINTS: u128 = 1_000_000;

/// How a sweep is done, besides what its document says.
#[derive(Clone, Copy, Default)]
pub struct SweepPlan<'a> {
    /// Replications are added to every point until it is as precise as this.
    pub precision: Option<Precision>,
    /// Finished points are kept here.
    pub journal: Option<Journalling<'a>>,
}

/// Where the finished points of a sweep are kept until it is done.
#[derive(Clone, Copy)]
pub struct Journalling<'a> {
    pub path: &'a Path,
    /// What is done with the points that are there already.
    pub start: Start,
    /// Told of the open journal and of how many points there are, before anything runs.
    pub on_open: &'a (dyn Fn(&Journal, usize) + Sync),
}

/// Runs the grid that the document's `[sweep]` table describes.
///
/// # Errors
/// [`SweepError`]: an invalid scenario (of any point, found before anything runs), no axes, or a run
/// that could not go on.
pub fn sweep(
    document: &Document,
    catalog: &Catalog,
    progress: &dyn Progress,
) -> Result<SweepResult, SweepError> {
    sweep_as(document, catalog, SweepPlan::default(), progress)
}

/// As [`sweep`], to a precision and with a journal.
///
/// # Errors
/// As [`sweep`]; and a journal that cannot be used ([`JournalError`]).
pub fn sweep_as(
    document: &Document,
    catalog: &Catalog,
    plan: SweepPlan<'_>,
    progress: &dyn Progress,
) -> Result<SweepResult, SweepError> {
    let (axes, mode) = document.axes()?;
    if axes.is_empty() {
        // Says first what else is wrong with the scenario.
        document.scenario(catalog)?;
        return Err(SweepError::NoAxes);
    }
    let points = count(&axes, mode);
    if points > MAX_POINTS {
        return Err(SweepError::TooManyPoints(points));
    }
    let all = match mode {
        SweepMode::Product => product(&axes),
        SweepMode::Zip => zip(&axes),
    };
    let (mut scenarios, mut unfit, mut first_error) = (Vec::new(), Vec::new(), None);
    for coordinates in all {
        match scenario_at(document, catalog, &axes, &coordinates) {
            Ok(scenario) => scenarios.push((coordinates, scenario)),
            Err(errors) if errors.only_about_fit() => {
                let reasons: Vec<&str> = errors.problems.iter().map(|p| p.message.as_str()).collect();
                unfit.push((coordinates, reasons.join("; ")));
                first_error.get_or_insert(errors);
            }
            Err(errors) => return Err(errors.into()),
        }
    }
    let base = match (document.scenario(catalog), scenarios.first(), first_error) {
        (Ok(base), Some(_), _) => base,
        (Err(_), Some((_, scenario)), _) => scenario.clone(),
        (_, None, Some(errors)) => return Err(errors.into()),
        (_, None, None) => return Err(SweepError::NoAxes),
    };
    let journal =
        plan.journal.map(|how| open(how, document, plan.precision, &base, &scenarios)).transpose()?;
    let (points, reached) = run_all(&scenarios, plan.precision, journal.as_ref(), progress)?;
    let reading = match axes.as_slice() {
        [axis] => read_curve(&axis.key, &points)?,
        _ => None,
    };
    let axes: Vec<String> = axes.into_iter().map(|axis| axis.key).collect();
    let combinations = read_combinations(&axes, &points)?;
    let journal = journal.map(Arc::new);
    Ok(SweepResult { base, axes, points, unfit, reading, combinations, reached, journal })
}

/// How many points the axes make.
fn count(axes: &[Axis], mode: SweepMode) -> u128 {
    let lengths = axes.iter().map(|axis| axis.values.len() as u128);
    match mode {
        SweepMode::Product => lengths.product(),
        SweepMode::Zip => lengths.min().unwrap_or(0),
    }
}

/// The n-th values of all axes together.
fn zip(axes: &[Axis]) -> Vec<Vec<AxisValue>> {
    let points = axes.iter().map(|axis| axis.values.len()).min().unwrap_or(0);
    (0..points).map(|at| axes.iter().map(|axis| axis.values[at].clone()).collect()).collect()
}

/// Every combination of the axes' values, the last axis fastest.
fn product(axes: &[Axis]) -> Vec<Vec<AxisValue>> {
    let total: usize = axes.iter().map(|axis| axis.values.len()).product();
    let at = |index: usize| {
        let mut rest = index;
        let mut coordinates: Vec<AxisValue> = axes
            .iter()
            .rev()
            .map(|axis| {
                let value = axis.values[rest % axis.values.len()].clone();
                rest /= axis.values.len();
                value
            })
            .collect();
        coordinates.reverse();
        coordinates
    };
    (0..total).map(at).collect()
}

fn scenario_at(
    document: &Document,
    catalog: &Catalog,
    axes: &[Axis],
    coordinates: &[AxisValue],
) -> Result<Scenario, ScenarioErrors> {
    let changes: Vec<Override> =
        axes.iter().zip(coordinates).map(|(axis, value)| Override::point(&axis.key, value)).collect();
    document.with_overrides(&changes)?.scenario(catalog)
}

/// The journal of this sweep, known by everything that its points come from.
fn open(
    how: Journalling<'_>,
    document: &Document,
    precision: Option<Precision>,
    base: &Scenario,
    scenarios: &[(Vec<AxisValue>, Scenario)],
) -> Result<Journal, JournalError> {
    let coordinates: Vec<&Vec<AxisValue>> = scenarios.iter().map(|(coordinates, _)| coordinates).collect();
    // The resolved scenario holds what was read from other files: calibration, traces.
    let sweep = format!("{}\n{precision:?}\n{coordinates:?}\n{base:?}", document.text());
    let sweep = fnv1a64(sweep.as_bytes());
    let journal = Journal::open(how.path, sweep, how.start)?;
    (how.on_open)(&journal, scenarios.len());
    Ok(journal)
}

fn run_all(
    scenarios: &[(Vec<AxisValue>, Scenario)],
    precision: Option<Precision>,
    journal: Option<&Journal>,
    progress: &dyn Progress,
) -> Result<(Vec<Point>, Vec<Reached>), EngineError> {
    progress.total(scenarios.iter().map(|(_, scenario)| u64::from(scenario.run.replications)).sum());
    let mut longest_first: Vec<usize> = (0..scenarios.len()).collect();
    longest_first.sort_by(|a, b| work(&scenarios[*b].1).total_cmp(&work(&scenarios[*a].1)).then(a.cmp(b)));
    let mut points = longest_first
        .into_par_iter()
        .with_max_len(1)
        .map(|at| {
            let (coordinates, scenario) = &scenarios[at];
            let known = journal.and_then(|journal| journal.take(at));
            let is_new = known.is_none();
            let runs = match known {
                Some(runs) => runs,
                None => replicate(scenario, Vec::new(), scenario.run.replications)?,
            };
            let mut scenario = scenario.clone();
            progress.done(u64::from(scenario.run.replications));
            scenario.run.replications = runs.len() as u32;
            let point = Point::new(coordinates.clone(), scenario, runs).settled()?;
            let (mut point, reached) = match precision {
                Some(precision) => refine(point, precision).map(|(point, reached)| (point, Some(reached)))?,
                None => (point, None),
            };
            point.runs.iter_mut().for_each(|run| run.timeline = Vec::new());
            if let Some(journal) = journal.filter(|_| is_new) {
                journal.add(at, &point.runs);
            }
            Ok((at, point, reached))
        })
        .collect::<Result<Vec<(usize, Point, Option<Reached>)>, EngineError>>()?;
    points.sort_by_key(|(at, ..)| *at);
    let (points, reached): (Vec<Point>, Vec<Option<Reached>>) =
        points.into_iter().map(|(_, point, reached)| (point, reached)).unzip();
    Ok((points, reached.into_iter().flatten().collect()))
}

/// A guess at how long a run takes, only to start the longest first: its requests.
fn work(scenario: &Scenario) -> f64 {
    match scenario.run.length {
        RunLength::Requests(requests) => requests as f64,
        RunLength::DurationS(seconds) => {
            seconds * scenario.workload.arrivals.mean_rate_per_s().unwrap_or(1.0)
        }
    }
}
