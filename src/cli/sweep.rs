//! `knee sweep`: the throughput-latency curve.

use std::collections::BTreeSet;
use std::path::Path;

use super::Outcome;
use super::args::{Format, SweepArgs};
use super::console::Console;
use super::error::Failure;
use super::inputs::{Inputs, folder, write_files};
use super::interrupt;
use super::precision::say_least;
use super::progress::Bar;
use crate::experiment;
use crate::experiment::journal::{Journal, Start};
use crate::experiment::{Journalling, Point, SweepPlan, SweepResult, ends_early, never_warm, wanders};
use crate::report::rank::{self, Ranking};
use crate::report::{csv, files, format, grid, json, table};
use crate::scenario::{Axis, Override};

/// The finished points of a sweep that is not done, in the folder for its files.
const JOURNAL: &str = "sweep.journal";

pub(super) fn run(args: &SweepArgs, console: &Console) -> Result<Outcome, Failure> {
    let common = &args.common;
    let mut inputs = Inputs::read(common, "sweep")?;
    let ranking = ranking(args);
    check_ranking(&ranking, &inputs)?;
    inputs.note_input(&ranking.choices());
    let journal = folder(common, "sweep").join(JOURNAL);
    let result = swept(args, &inputs, &journal, console)?;
    if let Some(precision) = args.precision.asked() {
        say_least(&result.reached, precision, console);
    }
    if let Some(fault) = result.journal.as_ref().and_then(|journal| journal.fault()) {
        console.warning(&fault.to_string());
    }
    let ranked = rank::rank(&result, &ranking)?;
    // Points may warn of what the base does not: each text once, in a fixed order.
    let of_points = result.points.iter().flat_map(|point| &point.scenario.warnings);
    let warnings: BTreeSet<&String> = result.base.warnings.iter().chain(of_points).collect();
    for warning in warnings {
        console.warning(warning);
    }
    let at_some = |is_so: fn(&Point) -> bool, what: &str| {
        let mut so = result.points.iter().filter(|point| is_so(point));
        if let Some(first) = so.next() {
            console.warning(&format!(
                "at {} of {} points, the first with {}, {what}; set run.requests higher",
                1 + so.count(),
                result.points.len(),
                grid::name(&result.axes, None, &first.coordinates)
            ));
        }
    };
    at_some(
        wanders,
        "the backlog wanders over times as long as a run: tail quantiles come out too low and intervals too narrow",
    );
    at_some(
        ends_early,
        "runs end with more than a fifth of their requests under way: latencies are of the quicker ones",
    );
    let cold = result.points.iter().filter(|point| never_warm(point) > 0).count();
    if cold > 0 {
        console.warning(&format!(
            "at {cold} of {} points runs end before run.warmup and are kept whole; set run.requests higher, or \
             run.warmup lower",
            result.points.len()
        ));
    }
    for (coordinates, reason) in &result.unfit {
        let at: Vec<String> = result
            .axes
            .iter()
            .zip(coordinates)
            .map(|(axis, value)| format!("{axis} = {}", format::axis_value(value)))
            .collect();
        console.warning(&format!("not run: {}: {reason}", at.join(", ")));
    }
    // A folder that cannot be written must not cost the answer: it is printed first, then the failure.
    let written = write_files(common, "sweep", console, |dir| {
        let wanted = files::Wanted { parquet: args.parquet, linear: args.linear };
        files::write_sweep(dir, &result, &ranked, wanted, inputs.origin())
    });
    match common.format {
        Format::Table => console.result(&table::sweep(&result, &ranked, console.look()))?,
        Format::Json => console.result(&json::sweep(&result, &ranked)?)?,
        Format::Csv => {
            let bytes = csv::table(&rank::ranked_columns(&result, &ranked))?;
            console.result(&String::from_utf8_lossy(&bytes))?;
        }
    }
    written?;
    if let Some(journal) = &result.journal {
        // Everything is in the files now.
        journal.remove();
        interrupt::hint(None);
    }
    Ok(Outcome::Done)
}

fn ranking(args: &SweepArgs) -> Ranking {
    let top = args.top.zip(args.by.clone()).map(|(most, metric)| (most as usize, metric));
    Ranking { top, pareto: args.pareto.clone() }
}

/// A metric that does not exist is found before the work. The base need not be a scenario by itself: the first
/// point stands for all.
fn check_ranking(ranking: &Ranking, inputs: &Inputs) -> Result<(), Failure> {
    if *ranking == Ranking::default() {
        return Ok(());
    }
    let (axes, _) = inputs.document.axes()?;
    let first = |axis: &Axis| Some(Override::point(&axis.key, axis.values.first()?));
    let changes: Vec<Override> = axes.iter().filter_map(first).collect();
    match inputs.document.with_overrides(&changes)?.scenario(&inputs.catalog) {
        Ok(scenario) => Ok(rank::check(ranking, &axes, &scenario)?),
        // The sweep says what is wrong with it; a point that does not fit leaves the others, and the check to them.
        Err(_) => Ok(()),
    }
}

/// Runs the sweep; unless nothing is to be written, its finished points are kept until the files are there.
fn swept(
    args: &SweepArgs,
    inputs: &Inputs,
    journal: &Path,
    console: &Console,
) -> Result<SweepResult, Failure> {
    let bar = Bar::new(console);
    let on_open = |kept: &Journal, points: usize| {
        let finished = kept.finished();
        if args.resume {
            console.note(&format!("{finished} of {points} points are there already"));
        }
        if kept.is_damaged() {
            console.warning(&format!(
                "{}: cut short, or damaged in part: {finished} of {points} points are kept, the others are run",
                journal.display()
            ));
        }
        interrupt::hint(Some(format!(
            "interrupted; finished points are kept in {}: the same command with --resume goes on with them",
            journal.display()
        )));
    };
    let start = match (args.resume, args.restart) {
        (true, _) => Start::Resume,
        (_, true) => Start::Restart,
        _ => Start::New,
    };
    let kept = Journalling { path: journal, start, on_open: &on_open };
    let plan =
        SweepPlan { precision: args.precision.asked(), journal: (!args.common.no_files).then_some(kept) };
    let result = experiment::sweep_as(&inputs.document, &inputs.catalog, plan, &bar);
    bar.clear();
    Ok(result?)
}
