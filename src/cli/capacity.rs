//! `knee capacity`: the highest load that meets the objectives.

use super::Outcome;
use super::args::{CapacityArgs, Format};
use super::console::Console;
use super::error::Failure;
use super::inputs::{Inputs, write_files};
use super::progress::Bar;
use crate::experiment::capacity::{self, Effort};
use crate::report::{files, json, table};

pub(super) fn run(args: &CapacityArgs, console: &Console) -> Result<Outcome, Failure> {
    let inputs = Inputs::read(&args.common, "capacity")?;
    let scenario = inputs.document.scenario(&inputs.catalog)?;
    for warning in &scenario.warnings {
        console.warning(warning);
    }
    let default = Effort::default();
    let effort = Effort {
        width: args.precision.precision.or(args.width).unwrap_or(default.width),
        max_replications: args.precision.max_replications.unwrap_or(default.max_replications),
    };
    if args.tune { tune(args, &inputs, effort, console) } else { search(args, &inputs, effort, console) }
}

fn search(
    args: &CapacityArgs,
    inputs: &Inputs,
    effort: Effort,
    console: &Console,
) -> Result<Outcome, Failure> {
    let bar = Bar::new(console);
    let axis = args.axis.as_deref();
    let found = capacity::capacity(&inputs.document, &inputs.catalog, axis, effort, &bar);
    bar.clear();
    let found = found?;
    let written = write_files(&args.common, "capacity", console, |dir| {
        files::write_capacity(dir, &found, inputs.origin())
    });
    let text = match args.common.format {
        Format::Json => json::capacity(&found)?,
        Format::Table | Format::Csv => table::capacity(&found, console.look()),
    };
    console.result(&text)?;
    written?;
    Ok(if found.guaranteed.is_some() { Outcome::Done } else { Outcome::ObjectivesMissed })
}

fn tune(args: &CapacityArgs, inputs: &Inputs, effort: Effort, console: &Console) -> Result<Outcome, Failure> {
    let bar = Bar::new(console);
    let axis = args.axis.as_deref();
    let found = capacity::tune(&inputs.document, &inputs.catalog, axis, effort, &bar);
    bar.clear();
    let found = found?.ok_or(Failure::NothingToTune)?;
    let text = match args.common.format {
        Format::Json => json::tuning(&found)?,
        Format::Table | Format::Csv => table::tuning(&found, console.look()),
    };
    console.result(&text)?;
    Ok(if found.chosen.is_some() { Outcome::Done } else { Outcome::ObjectivesMissed })
}
