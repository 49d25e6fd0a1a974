//! The files of a run or a sweep, written whole or not at all.
//!
//! Everything is first written to a folder beside the others and then moved into place file by file, so that a
//! reader never sees half a file and a failure leaves what was there before. Nothing in a file depends on the clock,
//! the machine or the number of threads.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::Serialize;

use crate::experiment::capacity::Capacity;
use crate::experiment::compare::Comparison;
use crate::experiment::journal::fnv1a64;
use crate::experiment::plan::Plan;
use crate::experiment::{Point, SweepResult};
use crate::report;
use crate::report::chart::{self, Named, PaintError, Picture};
use crate::report::rank::{Ranked, ranked_columns};
use crate::report::validation::{self, SetErrors};
use crate::report::{csv, json, parquet, provenance};
use crate::scenario::Scenario;

/// What a set of files came from.
#[derive(Clone, Copy, Debug)]
pub struct Origin<'a> {
    /// `run`, `sweep`, `plan`, `capacity`, `compare`.
    pub command: &'static str,
    /// Everything that the result depends on besides this version and the calibration data, as text: the scenario
    /// file and the overrides.
    pub input: &'a str,
    /// The options that were given, such as `--set engine.max_num_seqs=64`.
    pub given: &'a [String],
}

const MANIFEST: &str = "manifest.json";
/// Stems of the pictures.
const PICTURES: [&str; 9] =
    ["throughput", "latency", "frontier", "heat", "timeline", "cost", "capacity", "roofline", "validation"];
/// The other files that are written.
const TABLES: [&str; 7] =
    ["summary.json", "curve.csv", "curve.parquet", "plan.csv", MANIFEST, "validation.json", "sweep.journal"];

/// Names of all files that results are written to, whatever the command.
pub fn names() -> impl Iterator<Item = String> {
    let pictures = PICTURES.iter().flat_map(|stem| ["svg", "png"].map(|kind| format!("{stem}.{kind}")));
    TABLES.iter().map(|name| (*name).to_owned()).chain(pictures)
}

/// Why files could not be written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    #[error("cannot write {}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error(transparent)]
    Paint(#[from] PaintError),
    #[error("cannot write the result as JSON: {0}")]
    Json(#[from] serde_json::Error),
    #[error("cannot write the result as CSV: {0}")]
    Csv(#[from] ::csv::Error),
    #[error("cannot write the result as Parquet: {0}")]
    Parquet(#[from] ::parquet::errors::ParquetError),
}

/// Where results and pictures of a run go; returns the files' names.
///
/// # Errors
/// [`WriteError`]; then no file of `dir` was changed unless moving into place itself failed.
pub fn write_run(dir: &Path, point: &Point, origin: Origin) -> Result<Vec<String>, WriteError> {
    let mut staged = Staged::new(dir)?;
    staged.text("summary.json", json::run(point)?.as_bytes())?;
    staged.text("curve.csv", &csv::points(&[], std::slice::from_ref(point))?)?;
    staged.charts(&chart::of_run(point))?;
    staged.finish(&point.scenario, origin)
}

/// What is wanted of the files of a sweep.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wanted {
    /// `curve.parquet` too.
    pub parquet: bool,
    /// Loads of the pictures on a linear axis, however they were spaced.
    pub linear: bool,
}

/// As [`write_run`], for a sweep and its best points.
///
/// # Errors
/// As [`write_run`].
pub fn write_sweep(
    dir: &Path,
    result: &SweepResult,
    ranked: &Ranked,
    wanted: Wanted,
    origin: Origin,
) -> Result<Vec<String>, WriteError> {
    let mut staged = Staged::new(dir)?;
    staged.text("summary.json", json::sweep(result, ranked)?.as_bytes())?;
    let columns = ranked_columns(result, ranked);
    staged.text("curve.csv", &csv::table(&columns)?)?;
    if wanted.parquet {
        staged.text("curve.parquet", &parquet::table(&columns)?)?;
    }
    staged.charts(&chart::of_sweep(result, wanted.linear))?;
    staged.finish(&result.base, origin)
}

/// As [`write_run`], for a plan.
///
/// # Errors
/// As [`write_run`].
pub fn write_plan(dir: &Path, plan: &Plan, origin: Origin) -> Result<Vec<String>, WriteError> {
    let mut staged = Staged::new(dir)?;
    staged.text("summary.json", report::plan::json(plan)?.as_bytes())?;
    staged.text("plan.csv", &report::plan::csv(plan)?)?;
    staged.charts(&chart::cost(plan).map(|picture| ("cost", picture)).into_iter().collect::<Vec<_>>())?;
    // Each candidate has a profile of its own; what they share is the scenario.
    let shared = plan.rows.first().map(|row| (row.scenario.name.as_str(), row.scenario.seed));
    let (name, seed) = shared.unwrap_or(("plan", 0));
    let manifest = manifest_of(name, seed, None, origin, &staged.names)?;
    staged.place(&manifest)
}

/// As [`write_run`], for a capacity search.
///
/// # Errors
/// As [`write_run`].
pub fn write_capacity(dir: &Path, capacity: &Capacity, origin: Origin) -> Result<Vec<String>, WriteError> {
    let mut staged = Staged::new(dir)?;
    staged.text("summary.json", json::capacity(capacity)?.as_bytes())?;
    if let Some(picture) = chart::capacity(capacity) {
        staged.charts(&[("capacity", picture)])?;
    }
    staged.finish(&capacity.base, origin)
}

/// As [`write_run`], for a comparison.
///
/// # Errors
/// As [`write_run`].
pub fn write_comparison(
    dir: &Path,
    comparison: &Comparison,
    origin: Origin,
) -> Result<Vec<String>, WriteError> {
    let mut staged = Staged::new(dir)?;
    staged.text("summary.json", json::comparison(comparison)?.as_bytes())?;
    staged.finish(&comparison.a.scenario, origin)
}

/// The roofline picture of `knee explain`; no manifest, which would replace that of another result in the same folder.
///
/// # Errors
/// As [`write_run`].
pub fn write_roofline(dir: &Path, picture: Picture) -> Result<Vec<String>, WriteError> {
    let mut staged = Staged::new(dir)?;
    staged.charts(&[("roofline", picture)])?;
    staged.move_into_place()
}

/// Files whose bytes are ready, such as those of an import.
///
/// # Errors
/// As [`write_run`].
pub fn write_bytes(dir: &Path, files: &[(String, Vec<u8>)]) -> Result<Vec<String>, WriteError> {
    let mut staged = Staged::new(dir)?;
    for (name, bytes) in files {
        staged.text(name, bytes)?;
    }
    staged.move_into_place()
}

/// The errors of `knee validate` and their picture. Returns the files' names.
///
/// # Errors
/// As [`write_run`].
pub fn write_validation(dir: &Path, sets: &[SetErrors]) -> Result<Vec<String>, WriteError> {
    let mut staged = Staged::new(dir)?;
    staged.text("validation.json", validation::json(sets)?.as_bytes())?;
    let picture = validation::chart(sets).map(|picture| ("validation", picture));
    staged.charts(&picture.into_iter().collect::<Vec<Named>>())?;
    staged.move_into_place()
}

/// What the results in `dir` came from, as their manifest records it; `None` if there is none.
#[must_use]
pub fn input_of(dir: &Path) -> Option<String> {
    let text = fs::read_to_string(dir.join(MANIFEST)).ok()?;
    let manifest: serde_json::Value = serde_json::from_str(&text).ok()?;
    Some(manifest.get("input_fnv1a64")?.as_str()?.to_owned())
}

/// One file, whole or not at all.
///
/// # Errors
/// As [`write_run`].
pub fn write_file(path: &Path, text: &str) -> Result<(), WriteError> {
    let (Some(dir), Some(name)) = (path.parent(), path.file_name()) else {
        let source = io::Error::new(io::ErrorKind::InvalidInput, "it is not a file's path");
        return Err(io_error(path, source));
    };
    let mut staged = Staged::new(dir)?;
    staged.text(&name.to_string_lossy(), text.as_bytes())?;
    staged.move_into_place().map(|_| ())
}

/// Held while files are written: who ends the process waits for it ([`wait_until_written`]).
static WRITING: Mutex<()> = Mutex::new(());

/// Waits until no files are being written, and keeps others from beginning until the guard is dropped. For
/// whoever is about to end the process, which would leave half-written files behind.
pub fn wait_until_written() -> MutexGuard<'static, ()> {
    // A panic while writing has removed what it had written.
    WRITING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Files that are written but not yet in place.
struct Staged {
    _writing: MutexGuard<'static, ()>,
    dir: PathBuf,
    staging: PathBuf,
    names: Vec<String>,
}

impl Staged {
    fn new(dir: &Path) -> Result<Self, WriteError> {
        // The process number keeps two runs into one folder apart; it never reaches a file.
        let writing = wait_until_written();
        let staging = dir.join(format!(".partial-{}", std::process::id()));
        fs::create_dir_all(&staging).map_err(|source| io_error(&staging, source))?;
        Ok(Self { _writing: writing, dir: dir.to_path_buf(), staging, names: Vec::new() })
    }

    fn path(&mut self, name: &str) -> PathBuf {
        self.names.push(name.to_owned());
        self.staging.join(name)
    }

    fn text(&mut self, name: &str, bytes: &[u8]) -> Result<(), WriteError> {
        let path = self.path(name);
        fs::write(&path, bytes).map_err(|source| io_error(&path, source))
    }

    fn charts(&mut self, charts: &[Named]) -> Result<(), WriteError> {
        for (name, picture) in charts {
            self.text(&format!("{name}.svg"), picture.svg()?.as_bytes())?;
            let path = self.path(&format!("{name}.png"));
            picture.write_png(&path)?;
        }
        Ok(())
    }

    fn finish(self, scenario: &Scenario, origin: Origin) -> Result<Vec<String>, WriteError> {
        let manifest =
            manifest_of(&scenario.name, scenario.seed, provenance::profile(scenario), origin, &self.names)?;
        self.place(&manifest)
    }

    /// Adds the manifest and moves everything into place.
    fn place(mut self, manifest: &str) -> Result<Vec<String>, WriteError> {
        self.text(MANIFEST, manifest.as_bytes())?;
        self.move_into_place()
    }

    fn move_into_place(mut self) -> Result<Vec<String>, WriteError> {
        for name in &self.names {
            let target = self.dir.join(name);
            fs::rename(self.staging.join(name), &target).map_err(|source| io_error(&target, source))?;
        }
        Ok(std::mem::take(&mut self.names))
    }
}

impl Drop for Staged {
    /// Leaves nothing half-done behind; a folder that cannot be removed does no harm.
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.staging);
    }
}

fn io_error(path: &Path, source: io::Error) -> WriteError {
    WriteError::Io { path: path.to_path_buf(), source }
}

/// What a result came from.
#[derive(Serialize)]
struct Manifest<'a> {
    schema_version: u32,
    knee_version: &'static str,
    command: &'static str,
    scenario: &'a str,
    seed: u64,
    /// The options that were given, but for those that change nothing of the result.
    options: &'a [String],
    /// FNV-1a, 64 bits, of the scenario file and the overrides.
    input_fnv1a64: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    profile: Option<String>,
    files: &'a [String],
}

/// The manifest's text; its own name is not among the files.
fn manifest_of(
    scenario: &str,
    seed: u64,
    profile: Option<String>,
    origin: Origin,
    files: &[String],
) -> Result<String, serde_json::Error> {
    let manifest = Manifest {
        schema_version: json::SCHEMA_VERSION,
        knee_version: env!("CARGO_PKG_VERSION"),
        command: origin.command,
        scenario,
        seed,
        options: origin.given,
        input_fnv1a64: format!("{:016x}", fnv1a64(origin.input.as_bytes())),
        profile,
        files,
    };
    Ok(serde_json::to_string_pretty(&manifest)? + "\n")
}
