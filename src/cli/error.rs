//! Why a command failed, and with which exit code.

use std::io;
use std::path::PathBuf;

use super::Outcome;
use crate::calibrate::{CalibrateError, HoldOutError};
use crate::catalog::CatalogError;
use crate::engine::EngineError;
use crate::experiment::SweepError;
use crate::experiment::capacity::CapacityError;
use crate::experiment::plan::PlanError;
use crate::import::ImportError;
use crate::nearest::{self, nearest};
use crate::report::explain::NothingToExplain;
use crate::report::files::WriteError;
use crate::report::rank::RankError;
use crate::scenario::ScenarioErrors;
use crate::units::plain;
use crate::validate::MeasurementError;

/// Anything that keeps a command from giving its answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failure {
    #[error(transparent)]
    Scenario(#[from] ScenarioErrors),
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    #[error(transparent)]
    Engine(#[from] EngineError),
    #[error(transparent)]
    Sweep(SweepError),
    #[error(transparent)]
    Plan(PlanError),
    #[error(transparent)]
    Capacity(CapacityError),
    #[error(
        "--users {} alone is no demand: give --think-time-s too, the seconds from an answer to the user's next \
         request on average, such as --think-time-s 30; or a scenario that has arrivals.closed.think_time_s",
        plain(*.0)
    )]
    NoThinkTime(f64),
    #[error("nothing to compare: name a second scenario, or change one of the two with --set-a or --set-b")]
    NothingToCompare,
    #[error("a synthetic server has no batcher to tune; its servers are engine.servers")]
    NothingToTune,
    #[error(transparent)]
    Explain(#[from] NothingToExplain),
    #[error(transparent)]
    Import(#[from] ImportError),
    #[error("nothing to import: {why}")]
    NothingImported { why: String },
    #[error("{what} {name}: not known; {hint}one of {known}")]
    UnknownName { what: &'static str, name: String, hint: String, known: String },
    #[error(transparent)]
    Rank(#[from] RankError),
    #[error(transparent)]
    Write(#[from] WriteError),
    #[error(transparent)]
    Calibrate(#[from] CalibrateError),
    #[error(transparent)]
    Measurement(#[from] MeasurementError),
    #[error(transparent)]
    HoldOut(#[from] HoldOutError),
    #[error("`--fit {found}` is no parameter; {hint}there are: {there_are}")]
    NoParameter { found: String, hint: String, there_are: String },
    #[error("cannot write to standard output: {0}")]
    Output(io::Error),
    #[error("cannot print the result: {0}")]
    Format(String),
    #[error("cannot use {threads} threads: {source}")]
    Threads { threads: u16, source: rayon::ThreadPoolBuildError },
    #[error(
        "the scenario promises nothing to check; give a class an objective: slo = {{ ttft_p99_ms = 500 }}"
    )]
    NothingToCheck,
    #[error("--calibration {}: no such folder", .0.display())]
    NoCalibration(PathBuf),
    #[error("{}: it is no folder; expected one of .toml files, or nothing", .0.display())]
    NoCalibrationFolder(PathBuf),
    #[error("cannot write into {}: {source}; name another folder with --out, or use --no-files", dir.display())]
    NoFolder { dir: PathBuf, source: io::Error },
    #[error("cannot write {}: {source}; name another file with --output", path.display())]
    NoFile { path: PathBuf, source: io::Error },
    #[error("no scenario key `{key}`; {hint}`knee list keys` prints them all")]
    NoSuchKey { key: String, hint: String },
}

impl From<SweepError> for Failure {
    fn from(error: SweepError) -> Self {
        match error {
            SweepError::Scenario(errors) => Self::Scenario(errors),
            other => Self::Sweep(other),
        }
    }
}

impl From<PlanError> for Failure {
    fn from(error: PlanError) -> Self {
        match error {
            PlanError::Scenario(errors) => Self::Scenario(errors),
            other => Self::Plan(other),
        }
    }
}

impl From<CapacityError> for Failure {
    fn from(error: CapacityError) -> Self {
        match error {
            CapacityError::Scenario(errors) => Self::Scenario(errors),
            other => Self::Capacity(other),
        }
    }
}

impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Self {
        Self::Format(error.to_string())
    }
}

impl From<csv::Error> for Failure {
    fn from(error: csv::Error) -> Self {
        Self::Format(error.to_string())
    }
}

/// `did you mean ...? ` where one of `names` is near to `word`, for the middle of a message.
pub(super) fn hint<'a>(word: &str, names: impl IntoIterator<Item = &'a str>) -> String {
    nearest::hint(&nearest(word, names))
}

impl Failure {
    /// Whether the reader of our output went away, as `head` does.
    pub fn is_broken_pipe(&self) -> bool {
        matches!(self, Self::Output(error) if error.kind() == io::ErrorKind::BrokenPipe)
    }

    pub const fn outcome(&self) -> Outcome {
        match self {
            Self::Format(_) => Outcome::Fault,
            _ => Outcome::BadInput,
        }
    }

    /// The message, as a compiler would show it.
    pub fn render(&self, colour: bool) -> String {
        match self {
            Self::Scenario(errors) => errors.render(colour),
            other if colour => format!("\u{1b}[1;31merror\u{1b}[0m: {other}"),
            other => format!("error: {other}"),
        }
    }
}
