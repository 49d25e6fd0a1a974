//! What can be typed.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

/// Capacity simulator for LLM serving: throughput-latency curves, knees and costs, without hardware.
#[derive(Debug, Parser)]
#[command(
    name = "knee",
    version,
    max_term_width = 100,
    after_help = "Exit codes: 0 done; 1 objectives cannot be met; 2 wrong input; 3 internal fault."
)]
pub(super) struct Cli {
    #[command(subcommand)]
    pub command: Option<Command>,
}

impl Cli {
    /// Whether notes and progress are to be left out.
    pub fn quiet(&self) -> bool {
        match &self.command {
            Some(Command::Run(run)) => run.common.quiet,
            Some(Command::Sweep(common) | Command::Explain(common)) => common.quiet,
            Some(Command::List(_) | Command::Show(_)) | None => false,
        }
    }
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Simulate one load: vLLM's result table, then per class and per replica, and what binds
    #[command(after_help = "\
Examples:
  knee run chat-h100
  knee run chat-h100 --set arrivals.poisson.rate_per_s=20 --check
  knee run worked-example --format json --no-files")]
    Run(RunArgs),
    /// Sweep a range of loads: the throughput-latency curve, SLO capacity, stability limit and knee
    #[command(after_help = "\
Examples:
  knee sweep chat-h100
  knee sweep chat-h100 --set engine.tensor_parallel_size=2 --out output/tp2
  knee sweep chat-h100 --set run.replications=3 --format csv")]
    Sweep(Common),
    /// Show where memory and step time go: KV cache, vLLM's start-up lines, which resource binds
    #[command(after_help = "\
Examples:
  knee explain chat-h100
  knee explain chat-h100 --set model.weight_dtype=fp8")]
    Explain(Common),
    /// List what is known: hardware, models, engines, profiles, scenarios
    #[command(after_help = "\
Examples:
  knee list
  knee list models")]
    List(ListArgs),
    /// Show one GPU, model, engine, profile or scenario, with its sources
    #[command(after_help = "\
Examples:
  knee show hardware h100-sxm
  knee show model llama-3.1-8b
  knee show scenario chat-h100 > mine.toml")]
    Show(ShowArgs),
}

#[derive(Debug, Args)]
pub(super) struct RunArgs {
    #[command(flatten)]
    pub common: Common,
    /// Exit with 1 unless every objective holds, its confidence bound included
    #[arg(long)]
    pub check: bool,
}

/// More threads than any machine has cores only wait for each other.
const MOST_THREADS: i64 = 1_024;

/// What every command on a scenario takes.
#[derive(Debug, Args)]
pub(super) struct Common {
    /// Path of a scenario file, or the name of a shipped one (`knee list scenarios`)
    pub scenario: String,
    /// Set a scenario key, such as run.requests=2000; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Seed of all random numbers
    #[arg(long, value_parser = clap::value_parser!(u64).range(..=i64::MAX as u64))]
    pub seed: Option<u64>,
    /// Folder for the result's files [default: output/<scenario>]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// What is printed
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub format: Format,
    /// Print the result only: no progress, notes or warnings
    #[arg(long)]
    pub quiet: bool,
    /// Write nothing to disk
    #[arg(long)]
    pub no_files: bool,
    /// Threads to use [default: RAYON_NUM_THREADS, else all]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=MOST_THREADS))]
    pub threads: Option<u16>,
    #[command(flatten)]
    pub data: Data,
}

/// Where calibration data is read from.
#[derive(Debug, Args)]
pub(super) struct Data {
    /// Folder of calibration data that adds to the embedded data and wins over it [default:
    /// calibration, if present]
    #[arg(long, value_name = "DIR")]
    pub calibration: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    /// For people
    Table,
    /// summary.json
    Json,
    /// curve.csv
    Csv,
}

/// What `list` and `show` know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Kind {
    Hardware,
    #[value(alias = "model")]
    Models,
    #[value(alias = "engine")]
    Engines,
    #[value(alias = "profile")]
    Profiles,
    #[value(alias = "scenario")]
    Scenarios,
    /// Keys of the scenario file
    #[value(alias = "key")]
    Keys,
}

impl Kind {
    /// What a list of everything shows; the keys of a scenario file are a reference of their own.
    pub const ALL: [Self; 5] = [Self::Hardware, Self::Models, Self::Engines, Self::Profiles, Self::Scenarios];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Hardware => "hardware",
            Self::Models => "models",
            Self::Engines => "engines",
            Self::Profiles => "profiles",
            Self::Scenarios => "scenarios",
            Self::Keys => "keys",
        }
    }
}

#[derive(Debug, Args)]
pub(super) struct ListArgs {
    /// List only these, one name a line
    #[arg(value_enum)]
    pub kind: Option<Kind>,
    #[command(flatten)]
    pub data: Data,
}

#[derive(Debug, Args)]
pub(super) struct ShowArgs {
    /// What NAME is (also in the singular: model, engine, ...)
    #[arg(value_enum)]
    pub kind: Kind,
    /// Its name, as `knee list` prints it
    pub name: String,
    #[command(flatten)]
    pub data: Data,
}
