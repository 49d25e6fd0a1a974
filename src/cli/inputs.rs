//! From arguments to a scenario, the catalog and the place for files.

use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};

use super::args::{Common, Data};
use super::console::Console;
use super::error::Failure;
use crate::catalog::{self, Catalog};
use crate::disk;
use crate::report::files::{self, Origin, WriteError};
use crate::scenario::{Document, Override};

/// Where calibration data is looked for from the working directory.
const CALIBRATION: &str = "calibration";
/// Where results go from the working directory.
const OUTPUT: &str = "output";

/// The calibration data that the arguments name.
///
/// # Errors
/// A folder that was asked for and is none.
pub(super) fn catalog(data: &Data) -> Result<Catalog, Failure> {
    if let Some(dir) = data.calibration.as_ref().filter(|dir| !dir.is_dir()) {
        return Err(Failure::NoCalibration(dir.clone()));
    }
    let dir = data.calibration.as_deref().unwrap_or(Path::new(CALIBRATION));
    let is_no_folder = |path: &PathBuf| path.symlink_metadata().is_ok() && !path.is_dir();
    if let Some(path) = catalog::FOLDERS.map(|name| dir.join(name)).into_iter().find(is_no_folder) {
        return Err(Failure::NoCalibrationFolder(path));
    }
    Ok(Catalog::new(Some(dir)))
}

/// Sets how many threads are used, if that was asked for.
pub(super) fn use_threads(threads: Option<u16>) -> Result<(), Failure> {
    let Some(threads) = threads else { return Ok(()) };
    rayon::ThreadPoolBuilder::new()
        .num_threads(usize::from(threads))
        .build_global()
        .map_err(|source| Failure::Threads { threads, source })
}

/// A scenario as the arguments change it.
pub(super) struct Inputs {
    pub catalog: Catalog,
    pub document: Document,
    /// The file and every change to it, as text.
    text: String,
    command: &'static str,
}

impl Inputs {
    /// Reads the scenario, applies `--set` and `--seed`, sets the number of threads.
    pub fn read(common: &Common, command: &'static str) -> Result<Self, Failure> {
        Self::of(common, command, Document::load(&common.scenario)?)
    }

    /// As [`Inputs::read`], of a document that is there already.
    pub fn of(common: &Common, command: &'static str, document: Document) -> Result<Self, Failure> {
        use_threads(common.threads)?;
        let mut changes = common.set.iter().map(|set| Override::parse(set)).collect::<Result<Vec<_>, _>>()?;
        changes.extend(common.seed.map(|seed| Override::option("--seed", "seed", &seed.to_string())));
        let mut text = document.text().to_owned();
        for change in &changes {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{} = {}", change.key, change.value);
        }
        if !common.no_files {
            must_take_files(&folder(common, command))?;
        }
        Ok(Self {
            catalog: catalog(&common.data)?,
            document: document.with_overrides(&changes)?,
            text,
            command,
        })
    }

    /// Adds to what the result depends on.
    pub fn note_input(&mut self, text: &str) {
        self.text.push_str(text);
    }

    /// What the files say they came from.
    pub fn origin(&self) -> Origin<'_> {
        Origin { command: self.command, input: &self.text }
    }
}

/// The folder for files: `--out`, else one for the scenario and in it one for the command, whose files have names that
/// other commands' files have too.
pub(super) fn folder(common: &Common, command: &str) -> PathBuf {
    common.out.clone().unwrap_or_else(|| {
        let stem = Path::new(&common.scenario).file_stem().unwrap_or_default();
        Path::new(OUTPUT).join(stem).join(command)
    })
}

/// Says before the work, not after it, that a folder takes no files, or has a folder where a file would go.
pub(super) fn must_take_files(dir: &Path) -> Result<(), Failure> {
    let refuse = |source| Failure::NoFolder { dir: dir.to_path_buf(), source };
    disk::must_take_files(dir).map_err(refuse)?;
    match files::names().map(|name| dir.join(name)).find(|path| path.is_dir()) {
        Some(path) => {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            Err(refuse(io::Error::new(io::ErrorKind::IsADirectory, format!("{name} in it is a folder"))))
        }
        None => Ok(()),
    }
}

/// Writes files unless told not to, and says where they are.
pub(super) fn write_files(
    common: &Common,
    command: &str,
    console: &Console,
    write: impl FnOnce(&Path) -> Result<Vec<String>, WriteError>,
) -> Result<(), Failure> {
    if common.no_files {
        return Ok(());
    }
    let dir = folder(common, command);
    let names = write(&dir)?;
    console.note(&format!("wrote {}: {}", dir.display(), names.join(", ")));
    Ok(())
}
