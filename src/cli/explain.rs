//! `knee explain`: where memory and step time go.

use super::Outcome;
use super::args::{Common, Format};
use super::console::Console;
use super::error::Failure;
use super::inputs::{Inputs, write_files};
use crate::report::{explain, files};

pub(super) fn run(common: &Common, console: &Console) -> Result<Outcome, Failure> {
    let inputs = Inputs::read(common)?;
    let scenario = inputs.document.scenario(&inputs.catalog)?;
    for warning in &scenario.warnings {
        console.warning(warning);
    }
    let text = match common.format {
        Format::Table => explain::text(&scenario, console.look())?,
        Format::Json => explain::json(&scenario)??,
        Format::Csv => return Err(Failure::WrongFormat("csv")),
    };
    console.result(&text)?;
    if let Some(picture) = explain::roofline(&scenario) {
        write_files(common, console, |dir| files::write_roofline(dir, picture))?;
    }
    Ok(Outcome::Done)
}
