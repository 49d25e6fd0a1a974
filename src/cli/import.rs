//! `knee import`: what load generators, vLLM and production logs wrote, as measurements or a trace.

use std::path::{Path, PathBuf};

use super::Outcome;
use super::args::{Answer, ImportArgs};
use super::console::Console;
use super::error::Failure;
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
    // A folder that cannot be written must not cost the answer: it is printed first, then the failure.
    let written = write_files(args, &dir, console, &imports);
    console.result(&match args.format {
        Answer::Json => imported::json(&imports)?,
        Answer::Table => imported::table(&imports, console.look()),
    })?;
    written?;
    let nothing = imports.iter().all(|one| {
        one.points.is_empty() && one.trace.is_none() && one.server == import::ServerFacts::default()
    });
    Ok(if nothing { Outcome::BadInput } else { Outcome::Done })
}

fn format_of(name: &str) -> Result<import::Format, Failure> {
    let known = || import::Format::ALL.map(import::Format::name).join(", ");
    import::Format::parse(name).ok_or_else(|| Failure::UnknownName {
        what: "--as",
        name: name.to_owned(),
        known: known(),
    })
}

fn dtype_of(name: &str) -> Result<Dtype, Failure> {
    let known = || Dtype::ALL.map(Dtype::name).join(", ");
    Dtype::parse(name).ok_or_else(|| Failure::UnknownName {
        what: "--weight-dtype",
        name: name.to_owned(),
        known: known(),
    })
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
