//! `knee list`: the names that scenarios can use.

use super::Outcome;
use super::args::{Kind, ListArgs};
use super::console::Console;
use super::error::Failure;
use super::inputs::catalog;
use super::keys;
use crate::catalog::Catalog;
use crate::report::table::{MAX_WIDTH, wrapped};
use crate::scenario::scenario_names;

/// Width of the kinds' column.
const KIND_WIDTH: usize = 12;

pub(super) fn run(args: &ListArgs, console: &Console) -> Result<Outcome, Failure> {
    let catalog = catalog(&args.data)?;
    let unusable = catalog.unusable();
    let usable = |kind: Kind| {
        let mut names = names(kind, &catalog);
        for (_, name, error) in unusable.iter().filter(|(of, ..)| *of == kind.name()) {
            names.retain(|other| other != name);
            console.warning(&format!("left out: {error}"));
        }
        names
    };
    let text = match args.kind {
        Some(Kind::Keys) => keys::reference(None)?,
        Some(kind) => usable(kind).join("\n") + "\n",
        None => Kind::ALL.iter().map(|kind| paragraph(*kind, &usable(*kind))).collect(),
    };
    console.result(&text)?;
    if matches!(args.kind, None | Some(Kind::Profiles)) {
        console.note(&estimates(&catalog));
    }
    Ok(Outcome::Done)
}

pub(super) fn names(kind: Kind, catalog: &Catalog) -> Vec<String> {
    match kind {
        Kind::Hardware => catalog.hardware_names(),
        Kind::Models => catalog.model_names(),
        Kind::Engines => engines(catalog),
        Kind::Profiles => catalog.profile_names(),
        Kind::Scenarios => scenario_names(),
        Kind::Keys => keys::names(),
    }
}

/// Engines, and the one that needs no model or GPU.
fn engines(catalog: &Catalog) -> Vec<String> {
    let tabled = catalog.engine_versions().into_iter().map(|(engine, _)| engine);
    tabled.chain(["synthetic".to_owned()]).collect()
}

/// What stands in where no profile was fitted.
fn estimates(catalog: &Catalog) -> String {
    let engines: Vec<String> = catalog.engine_versions().into_iter().map(|(engine, _)| engine).collect();
    format!(
        "every GPU has an estimate for {} too, used where nothing was fitted: `knee show profile <gpu>-<engine>-estimated`",
        engines.join(", ")
    )
}

/// A kind and its names, wrapped.
fn paragraph(kind: Kind, names: &[String]) -> String {
    let lines = wrapped(&names.join(", "), MAX_WIDTH - KIND_WIDTH);
    let head = |position| if position == 0 { kind.name() } else { "" };
    lines
        .iter()
        .enumerate()
        .map(|(position, line)| format!("{:<KIND_WIDTH$}{line}\n", head(position)))
        .collect()
}
