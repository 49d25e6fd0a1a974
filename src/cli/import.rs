//! `knee import`: what load generators, vLLM and production logs wrote, as measurements or a trace.

use std::path::{Path, PathBuf};

use super::Outcome;
use super::args::{Answer, ImportArgs};
use super::console::Console;
use super::error::{Failure, hint};
use super::inputs::{catalog, must_take_files};
use crate::catalog::Dtype;
use crate::import::{self, Imported, check, write};
use crate::report::{files, imported};

pub(super) fn run(args: &ImportArgs, console: &Console) -> Result<Outcome, Failure> {
    let forced = args.format_of_files.as_deref().map(format_of).transpose()?;
    let given = check::Given {
        model: args.model.clone(),
        gpu: args.gpu.clone(),
        tensor_parallel_size: args.tp,
        weight_dtype: args.weight_dtype.as_deref().map(dtype_of).transpose()?,
    };
    let catalog = catalog(&args.data)?;
    let dir = args.out.clone().unwrap_or_else(|| folder(&args.files));
    if !args.no_files {
        must_take_files(&dir)?;
    }
    let mut imports = Vec::with_capacity(args.files.len());
    for path in &args.files {
        let mut one = import::import_path(path, forced)?;
        check::against_hardware(&mut one, &catalog, &given)?;
        imports.push(one);
    }
    if imports.iter().all(is_nothing) {
        return Err(Failure::NothingImported {
            why: imports.iter().map(why_nothing).collect::<Vec<_>>().join("; "),
        });
    }
    // A folder that cannot be written must not cost the answer: it is printed first, then the failure.
    let written = write_files(args, &dir, console, &imports);
    console.result(&match args.format {
        Answer::Json => imported::json(&imports)?,
        Answer::Table => imported::table(&imports, console.look()),
    })?;
    written?;
    for nothing in imports.iter().filter(|one| is_nothing(one)) {
        console.warning(&format!("nothing was taken from {}", why_nothing(nothing)));
    }
    Ok(Outcome::Done)
}

fn is_nothing(one: &Imported) -> bool {
    one.points.is_empty() && one.trace.is_none() && one.server == import::ServerFacts::default()
}

/// The file, and why nothing of it was taken.
fn why_nothing(one: &Imported) -> String {
    let refused: Vec<String> =
        one.refused.iter().map(|refusal| format!("{}: {}", refusal.label, refusal.reason)).collect();
    let why = if refused.is_empty() {
        format!(
            "it has no load point, no trace and nothing about a server where a {} has them",
            one.format.title()
        )
    } else {
        refused.join("; ")
    };
    format!("{}: {why}", one.source)
}

fn format_of(name: &str) -> Result<import::Format, Failure> {
    let known = import::Format::ALL.map(import::Format::name);
    import::Format::parse(name).ok_or_else(|| unknown_name("--as", name, &known))
}

fn dtype_of(name: &str) -> Result<Dtype, Failure> {
    Dtype::parse(name).ok_or_else(|| unknown_name("--weight-dtype", name, &Dtype::ALL.map(Dtype::name)))
}

fn unknown_name(what: &'static str, name: &str, known: &[&str]) -> Failure {
    let hint = hint(name, known.iter().copied());
    Failure::UnknownName { what, name: name.to_owned(), hint, known: known.join(", ") }
}

fn write_files(
    args: &ImportArgs,
    dir: &Path,
    console: &Console,
    imports: &[Imported],
) -> Result<(), Failure> {
    let contents = write::files(imports)?;
    if args.no_files || contents.is_empty() {
        return Ok(());
    }
    let names = files::write_bytes(dir, &contents)?;
    console.note(&format!("wrote {}: {}", dir.display(), names.join(", ")));
    Ok(())
}

/// `output/import-<stem of the first file>`.
fn folder(files: &[PathBuf]) -> PathBuf {
    let stem = files.first().and_then(|path| path.file_stem()).unwrap_or_default().to_string_lossy();
    Path::new("output").join(format!("import-{stem}"))
}
