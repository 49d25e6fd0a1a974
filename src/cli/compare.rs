//! `knee compare`: what changes from one scenario to another.

use super::Outcome;
use super::args::{CompareArgs, Format};
use super::console::Console;
use super::error::Failure;
use super::inputs::{Inputs, renamed, write_files};
use crate::experiment::compare::compare;
use crate::report::{files, json, table};
use crate::scenario::{Document, Override};

pub(super) fn run(args: &CompareArgs, console: &Console) -> Result<Outcome, Failure> {
    let inputs = Inputs::read(&args.common, "compare")?;
    let other = match &args.other {
        Some(name) => {
            let written = Document::load(name)?;
            renamed(&written, written.with_overrides(&common_changes(args)?)?)?
        }
        None => inputs.document.clone(),
    };
    if args.other.is_none() && args.set_a.is_empty() && args.set_b.is_empty() {
        return Err(Failure::NothingToCompare);
    }
    let of = |document: &Document, option, settings: &[String]| -> Result<Document, Failure> {
        Ok(renamed(document, document.with_overrides(&parsed(option, settings)?)?)?)
    };
    let in_a = of(&inputs.document, "--set-a", &args.set_a)?;
    let in_b = of(&other, "--set-b", &args.set_b)?;
    let (a, b) = (in_a.scenario(&inputs.catalog)?, in_b.scenario(&inputs.catalog)?);
    for (name, scenario) in [("A", &a), ("B", &b)] {
        for warning in &scenario.warnings {
            console.warning(&format!("{name}: {warning}"));
        }
    }
    let words = [args.tokens_per_word_a, args.tokens_per_word_b];
    let mut found = compare(&a, &b, args.precision.asked(), words)?;
    found.differences = in_a.differences(&in_b);
    let input = input_text(args, &inputs, &other);
    let origin = files::Origin { command: "compare", input: &input, given: &args.common.given };
    let written =
        write_files(&args.common, "compare", console, |dir| files::write_comparison(dir, &found, origin));
    let text = match args.common.format {
        Format::Json => json::comparison(&found)?,
        Format::Table | Format::Csv => table::comparison(&found, console.look()),
    };
    console.result(&text)?;
    written?;
    Ok(Outcome::Done)
}

fn parsed(option: &'static str, settings: &[String]) -> Result<Vec<Override>, Failure> {
    Ok(settings.iter().map(|set| Override::parse_of(option, set)).collect::<Result<_, _>>()?)
}

/// `--set` and `--seed` apply to both.
fn common_changes(args: &CompareArgs) -> Result<Vec<Override>, Failure> {
    let mut changes = parsed("--set", &args.common.set)?;
    changes.extend(args.common.seed.map(|seed| Override::option("--seed", "seed", &seed.to_string())));
    Ok(changes)
}

/// Both files and every change to them, as text.
fn input_text(args: &CompareArgs, inputs: &Inputs, other: &Document) -> String {
    let changes = [&args.set_a, &args.set_b].map(|settings| settings.join("\n"));
    [inputs.origin().input, &changes[0], other.text(), &changes[1]].join("\n")
}
