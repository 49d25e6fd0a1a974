//! `knee explain`: where memory and step time go.

use super::Outcome;
use super::args::{Common, Format};
use super::console::Console;
use super::error::Failure;
use super::inputs::{Inputs, write_files};
use crate::report::{explain, files};

pub(super) fn run(common: &Common, console: &Console) -> Result<Outcome, Failure> {
    let inputs = Inputs::read(common, "explain")?;
    let scenario = inputs.document.scenario(&inputs.catalog)?;
    for warning in &scenario.warnings {
        console.warning(warning);
    }
    let text = match common.format {
        Format::Json => explain::json(&scenario)??,
        Format::Table | Format::Csv => explain::text(&scenario, console.look())?,
    };
    console.result(&text)?;
    if let Some(picture) = explain::roofline(&scenario) {
        write_files(common, "explain", console, |dir| files::write_roofline(dir, picture))?;
    }
    Ok(Outcome::Done)
}
