//! A scenario: one validated description of model, hardware, engine, deployment, load and objectives.
//!
//! A [`Document`] is the file as written, with overrides; [`Document::scenario`] resolves it into a
//! [`Scenario`] ready to run, or into [`ScenarioErrors`]: everything that is wrong with it, each problem
//! pointing at its line. The keys, their ranges, defaults and meanings are data in [`keys`].

mod difference;
mod document;
pub mod forms;
pub mod keys;
mod lookups;
mod measurements;
mod node;
mod overrides;
mod problem;
mod read;
mod reader;
mod serving;
mod standing;

use std::path::PathBuf;
use std::sync::Arc;

use crate::engine::System;
pub use crate::stats::{RunMode, Warmup};
use crate::workload::Workload;

pub use difference::Difference;
pub use document::{Document, scenario_names};
pub use measurements::{MeasuredData, MeasuredPoint, Measurement, point_columns};
pub use overrides::Override;
pub use problem::{Problem, ScenarioErrors};
pub use serving::{Serving, Speculative};

/// A scenario with every name resolved, every default filled in and every value checked.
#[derive(Clone, Debug)]
pub struct Scenario {
    pub name: String,
    pub description: String,
    /// The file it came from, if any (relative paths in it are relative to its folder).
    pub path: Option<PathBuf>,
    pub seed: u64,
    /// What runs: ready for the engine.
    pub system: System,
    pub workload: Arc<Workload>,
    pub run: RunPlan,
    /// Axes of `[sweep]`; empty if the table is absent.
    pub sweep: Vec<Axis>,
    /// How the axes make points.
    pub sweep_mode: SweepMode,
    /// What the system was built from; `None` for a synthetic server.
    pub serving: Option<Arc<Serving>>,
    /// $/GPU-hour, date and source in words; `None` if no price is known.
    pub price: Option<(f64, String)>,
    /// GPUs of the whole deployment (0 for a synthetic server).
    pub gpus: u32,
    /// Things a reader must know: version fallbacks, clipped values.
    pub warnings: Vec<String>,
    /// Of these, those by which the engine does not start; it is simulated as if it did.
    pub cannot_start: Vec<String>,
}

/// How long and how often to run.
#[derive(Clone, Debug, PartialEq)]
pub struct RunPlan {
    pub mode: RunMode,
    pub length: RunLength,
    pub replications: u32,
    pub warmup: Warmup,
}

/// When a run stops offering requests.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RunLength {
    Requests(u64),
    DurationS(f64),
}

/// One axis of a sweep: a scenario key and the values it takes.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// Dotted key, such as `arrivals.poisson.rate_per_s`.
    pub key: String,
    pub values: Vec<AxisValue>,
}

/// How the values of a sweep's axes make points.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SweepMode {
    /// Every combination.
    #[default]
    Product,
    /// The n-th values of all axes together; all have equally many. A sampled sweep is one.
    Zip,
}

/// A value an axis takes.
#[derive(Clone, Debug, PartialEq)]
pub enum AxisValue {
    Integer(i64),
    Float(f64),
    Text(String),
    Bool(bool),
}
