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
use crate::scenario::{Difference, Document, Override, ScenarioErrors};

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
    given: Vec<String>,
    command: &'static str,
}

/// Tables of the scenario that its name may speak of.
const NAMED: [&str; 4] = ["model", "hardware", "engine", "deployment"];
/// Changes that are named one by one in a title; more are counted.
const MOST_NAMED: usize = 2;

/// `changed`, which was made of `written`, called by more than its name if that may no longer be true:
/// `chat on one H100, with hardware.gpu = l40s`.
pub(super) fn renamed(written: &Document, changed: Document) -> Result<Document, ScenarioErrors> {
    let Some(name) = changed.text_at("name").filter(|name| written.text_at("name") == Some(*name)) else {
        return Ok(changed);
    };
    let mut named = written.differences(&changed);
    named.retain(|one| NAMED.contains(&one.key.split('.').next().unwrap_or_default()));
    let value = |one: &Difference| one.b.clone().unwrap_or_else(|| "default".to_owned());
    let text = match named.as_slice() {
        [] => return Ok(changed),
        few if few.len() <= MOST_NAMED => {
            let each: Vec<String> = few.iter().map(|one| format!("{} = {}", one.key, value(one))).collect();
            each.join(", ")
        }
        many => format!("{} keys changed", many.len()),
    };
    let name = toml::Value::String(format!("{name}, with {text}")).to_string();
    changed.with_overrides(&[Override::option("--set", "name", &name)])
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
            document: renamed(&document, document.with_overrides(&changes)?)?,
            text,
            given: common.given.clone(),
            command,
        })
    }

    /// Adds to what the result depends on.
    pub fn note_input(&mut self, text: &str) {
        self.text.push_str(text);
    }

    /// What the files say they came from.
    pub fn origin(&self) -> Origin<'_> {
        Origin { command: self.command, input: &self.text, given: &self.given }
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
    let before = files::input_of(&dir);
    let names = write(&dir)?;
    console.note(&format!("wrote {}: {}", dir.display(), names.join(", ")));
    if before.is_some() && before != files::input_of(&dir) {
        console.note("they replace the results of other settings; --out DIR keeps both");
    }
    Ok(())
}
