//! `knee sweep`: the throughput-latency curve.

use std::collections::BTreeSet;
use std::fs;
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
use crate::experiment::journal::JournalError;
use crate::experiment::{Journalling, Point, SweepError, SweepPlan, SweepResult, never_warm, wanders};
use crate::report::rank::{self, Ranking};
use crate::report::{csv, files, format, grid, json, table};

/// The finished points of a sweep that is not done, in the folder for its files.
const JOURNAL: &str = "sweep.journal";

pub(super) fn run(args: &SweepArgs, console: &Console) -> Result<Outcome, Failure> {
    let common = &args.common;
    let inputs = Inputs::read(common)?;
    let journal = folder(common).join(JOURNAL);
    let result = swept(args, &inputs, &journal, console)?;
    if let Some(precision) = args.precision.asked() {
        say_least(&result.reached, precision, console);
    }
    if let Some(fault) = &result.journal_fault {
        console.warning(fault);
    }
    let ranked = rank::rank(&result, &ranking(args))?;
    // Points may warn of what the base does not: each text once, in a fixed order.
    let of_points = result.points.iter().flat_map(|point| &point.scenario.warnings);
    let warnings: BTreeSet<&String> = result.base.warnings.iter().chain(of_points).collect();
    for warning in warnings {
        console.warning(warning);
    }
    let short: Vec<&Point> = result.points.iter().filter(|point| wanders(point)).collect();
    if let Some(first) = short.first() {
        console.warning(&format!(
            "at {} of {} points, the first with {}, the backlog wanders over times as long as a run: tail \
             quantiles come out too low and intervals too narrow; set run.requests higher",
            short.len(),
            result.points.len(),
            grid::name(&result.axes, None, &first.coordinates)
        ));
    }
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
    let written = write_files(common, console, |dir| {
        files::write_sweep(dir, &result, args.parquet, inputs.origin("sweep"))
    });
    match common.format {
        Format::Table => console.result(&table::sweep(&result, &ranked, console.look()))?,
        Format::Json => console.result(&json::sweep(&result)?)?,
        Format::Csv => {
            let bytes = csv::points(&result.axes, &result.points)?;
            console.result(&String::from_utf8_lossy(&bytes))?;
        }
    }
    written?;
    if !common.no_files {
        // Everything is in the files now. One that cannot be removed is found to be complete the next time.
        let _ = fs::remove_file(&journal);
        interrupt::hint(None);
    }
    Ok(Outcome::Done)
}

fn ranking(args: &SweepArgs) -> Ranking {
    let top = args.top.zip(args.by.clone()).map(|(most, metric)| (most as usize, metric));
    Ranking { top, pareto: args.pareto.clone() }
}

/// Runs the sweep; unless nothing is to be written, its finished points are kept until the files are there.
fn swept(
    args: &SweepArgs,
    inputs: &Inputs,
    journal: &Path,
    console: &Console,
) -> Result<SweepResult, Failure> {
    if journal.exists() && !args.resume && !args.common.no_files {
        console.note(&format!("{}: of an interrupted sweep, which is not gone on with", journal.display()));
    }
    let bar = Bar::new(console);
    let on_open = |finished: usize, points: usize| {
        if args.resume {
            console.note(&format!("{finished} of {points} points are there already"));
        }
        interrupt::hint(Some(format!(
            "interrupted; finished points are kept in {}: the same command with --resume goes on with them",
            journal.display()
        )));
    };
    let kept = Journalling { path: journal, resume: args.resume, on_open: &on_open };
    let as_asked = |journal| {
        let plan = SweepPlan { precision: args.precision.asked(), journal };
        experiment::sweep_as(&inputs.document, &inputs.catalog, plan, &bar)
    };
    let result = match as_asked((!args.common.no_files).then_some(kept)) {
        // A folder that cannot be written must not cost the answer.
        Err(SweepError::Journal(error @ JournalError::Io { .. })) if !args.resume => {
            console.warning(&error.to_string());
            as_asked(None)
        }
        result => result,
    };
    bar.clear();
    Ok(result?)
}
