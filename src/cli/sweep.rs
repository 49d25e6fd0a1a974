//! `knee sweep`: the throughput-latency curve.

use std::collections::BTreeSet;

use super::Outcome;
use super::args::{Format, SweepArgs};
use super::console::Console;
use super::error::Failure;
use super::inputs::{Inputs, write_files};
use super::precision::say_least;
use super::progress::Bar;
use crate::experiment;
use crate::experiment::precision::refine_sweep;
use crate::report::{csv, files, format, json, table};

pub(super) fn run(args: &SweepArgs, console: &Console) -> Result<Outcome, Failure> {
    let common = &args.common;
    let inputs = Inputs::read(common)?;
    let bar = Bar::new(console);
    let result = experiment::sweep(&inputs.document, &inputs.catalog, &bar);
    bar.clear();
    let mut result = result?;
    if let Some(precision) = args.precision.asked() {
        let (refined, reached) = refine_sweep(result, precision)?;
        result = refined;
        say_least(&reached, precision, console);
    }
    // Points may warn of what the base does not: each text once, in a fixed order.
    let of_points = result.points.iter().flat_map(|point| &point.scenario.warnings);
    let warnings: BTreeSet<&String> = result.base.warnings.iter().chain(of_points).collect();
    for warning in warnings {
        console.warning(warning);
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
    let written =
        write_files(common, console, |dir| files::write_sweep(dir, &result, inputs.origin("sweep")));
    match common.format {
        Format::Table => console.result(&table::sweep(&result, console.look()))?,
        Format::Json => console.result(&json::sweep(&result)?)?,
        Format::Csv => {
            let bytes = csv::points(&result.axes, &result.points)?;
            console.result(&String::from_utf8_lossy(&bytes))?;
        }
    }
    written?;
    Ok(Outcome::Done)
}
