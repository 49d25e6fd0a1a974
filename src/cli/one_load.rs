//! `knee run`: one load.

use super::Outcome;
use super::args::{Format, RunArgs};
use super::console::Console;
use super::error::Failure;
use super::inputs::{Inputs, write_files};
use super::precision::say_precision;
use crate::experiment::precision::{refine, thin_tails};
use crate::experiment::{SloVerdict, ends_early, never_warm, run_point, wanders};
use crate::report::{csv, files, json, table};

pub(super) fn run(args: &RunArgs, console: &Console) -> Result<Outcome, Failure> {
    let inputs = Inputs::read(&args.common, "run")?;
    let scenario = inputs.document.scenario(&inputs.catalog)?;
    for warning in &scenario.warnings {
        console.warning(warning);
    }
    if args.check && scenario.workload.classes.iter().all(|class| class.slo.objectives.is_empty()) {
        return Err(Failure::NothingToCheck);
    }
    let mut point = run_point(&scenario)?;
    if let Some(precision) = args.precision.asked() {
        let (refined, reached) = refine(point, precision)?;
        point = refined;
        say_precision(&reached, precision, console);
    }
    if wanders(&point) {
        console.warning(
            "the backlog wanders over times as long as a run: tail quantiles come out too low and intervals too \
             narrow; set run.requests higher",
        );
    }
    if ends_early(&point) {
        console.warning(
            "runs end with more than a fifth of their requests under way: latencies are of the quicker ones; set \
             run.requests higher",
        );
    }
    let cold = never_warm(&point);
    if cold > 0 {
        console.warning(&format!(
            "{cold} of {} runs end before run.warmup and are kept whole; set run.requests higher, or run.warmup lower",
            point.runs.len()
        ));
    }
    for thin in thin_tails(&point) {
        console.warning(&thin);
    }
    // A folder that cannot be written must not cost the answer: it is printed first, then the failure.
    let written =
        write_files(&args.common, "run", console, |dir| files::write_run(dir, &point, inputs.origin()));
    match args.common.format {
        Format::Table => console.result(&table::run(&point, console.look()))?,
        Format::Json => console.result(&json::run(&point)?)?,
        Format::Csv => {
            let bytes = csv::points(&[], std::slice::from_ref(&point))?;
            console.result(&String::from_utf8_lossy(&bytes))?;
        }
    }
    written?;
    // "Not shown to hold" is no yes: a check passes only with its confidence bound.
    let met = point.slo == SloVerdict::Met;
    Ok(if args.check && !met { Outcome::ObjectivesMissed } else { Outcome::Done })
}
