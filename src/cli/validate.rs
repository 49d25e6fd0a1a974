//! `knee validate`: simulated against measured.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::Outcome;
use super::args::{Answer, ValidateArgs};
use super::console::Console;
use super::error::Failure;
use super::inputs::{catalog, must_take_files, use_threads};
use super::progress::Bar;
use crate::catalog::Catalog;
use crate::report::files;
use crate::report::validation::{self, SetErrors};
use crate::scenario::{Document, Override};
use crate::validate::{cells, score};

/// Where results go from the working directory.
const OUTPUT: &str = "output/validate";

pub(super) fn run(args: &ValidateArgs, console: &Console) -> Result<Outcome, Failure> {
    use_threads(args.threads)?;
    let catalog = catalog(&args.data)?;
    let dir = args.out.clone().unwrap_or_else(|| PathBuf::from(OUTPUT));
    if !args.no_files {
        must_take_files(&dir)?;
    }
    let bar = Bar::new(console);
    let mut sets = Vec::new();
    let mut said = BTreeSet::new();
    for document in documents(args, &catalog)? {
        let document = match &args.profile {
            Some(profile) => {
                document.with_overrides(&[Override::option("--profile", "hardware.profile", profile)])?
            }
            None => document,
        };
        let (measurements, warnings) = document.measurements(&catalog)?;
        // Sets share models and engines, and with them what is to be said: once is enough.
        for warning in warnings.into_iter().filter(|warning| said.insert(warning.clone())) {
            console.warning(&warning);
        }
        let scored = score(&cells(&measurements)?, &bar);
        bar.clear();
        sets.push(SetErrors { name: document.title(), scored: scored? });
    }
    let written = if args.no_files {
        Ok(())
    } else {
        files::write_validation(&dir, &sets)
            .map(|names| console.note(&format!("wrote {}: {}", dir.display(), names.join(", "))))
    };
    match args.format {
        Answer::Table => console.result(&validation::table(&sets, console.look()))?,
        Answer::Json => console.result(&validation::json(&sets)?)?,
    }
    written?;
    Ok(Outcome::Done)
}

/// The sets asked for; without any, the published figures behind the shipped profiles.
fn documents(args: &ValidateArgs, catalog: &Catalog) -> Result<Vec<Document>, Failure> {
    if !args.sets.is_empty() {
        let load = |set: &PathBuf| Document::load_set(set).map_err(Failure::from);
        return args.sets.iter().map(load).collect();
    }
    let mut all = Vec::new();
    for (path, text) in catalog.measured_sets()? {
        all.push(Document::parse(text, Some(Path::new(path)))?);
    }
    Ok(all)
}
