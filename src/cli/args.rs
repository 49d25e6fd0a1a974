//! What can be typed.

use std::path::PathBuf;

use clap::builder::{EnumValueParser, NonEmptyStringValueParser, TypedValueParser as _};
use clap::{Arg, Args, Parser, Subcommand, ValueEnum};

use crate::experiment::plan::{TEMPLATES, Template};
use crate::experiment::precision::{MAX_REPLICATIONS, Precision};

/// Capacity simulator for LLM serving: throughput-latency curves, knees and costs, without hardware.
#[derive(Debug, Parser)]
#[command(
    name = "knee",
    version,
    max_term_width = 100,
    after_help = "Exit codes: 0 done; 1 objectives not met (run --check, capacity, plan); 2 wrong input; 3 a bug; \
                  130 interrupted."
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
            Some(Command::Sweep(sweep)) => sweep.common.quiet,
            Some(Command::Capacity(capacity)) => capacity.common.quiet,
            Some(Command::Compare(compare)) => compare.common.quiet,
            Some(Command::Explain(common)) => common.quiet,
            Some(Command::Plan(plan)) => plan.common.quiet,
            Some(Command::Import(import)) => import.quiet,
            Some(Command::Calibrate(calibrate)) => calibrate.quiet,
            Some(Command::Validate(validate)) => validate.quiet,
            Some(Command::List(_) | Command::Show(_)) | None => false,
        }
    }

    /// Keeps the options as they were given, for the manifest of the files.
    pub fn note_given(&mut self, given: Vec<String>) {
        let common = match &mut self.command {
            Some(Command::Run(run)) => &mut run.common,
            Some(Command::Sweep(sweep)) => &mut sweep.common,
            Some(Command::Capacity(capacity)) => &mut capacity.common,
            Some(Command::Compare(compare)) => &mut compare.common,
            Some(Command::Explain(common)) => common,
            Some(Command::Plan(plan)) => &mut plan.common,
            _ => return,
        };
        common.given = given;
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
  knee sweep chat-h100 --set run.replications=3 --format csv
  knee sweep fleet --top 3 --by usd_per_million_output_tokens --pareto output_tokens_per_s,ttft_p99_ms
  knee sweep large.toml --out output/large --parquet --resume")]
    Sweep(SweepArgs),
    /// Find the highest load that meets the objectives, what binds there and what would move it
    #[command(
        mut_arg("format", without_csv),
        after_help = "\
Examples:
  knee capacity chat-h100
  knee capacity chat-h100 --width 2% --max-replications 100
  knee capacity chat-h100 --tune
  knee capacity overnight-h100 --tune"
    )]
    Capacity(CapacityArgs),
    /// Compare two scenarios on the same random numbers: better, worse, or no difference shown
    #[command(
        mut_arg("format", without_csv),
        after_help = "\
Examples:
  knee compare chat-h100 --set-b engine.tensor_parallel_size=2
  knee compare chat-h100 my-scenario.toml --precision 2%"
    )]
    Compare(CompareArgs),
    /// How many GPUs a demand needs, which, and what they cost
    #[command(after_help = "\
Without a scenario a template stands in for lengths and objectives, and the answer says so first.

Examples:
  knee plan --users 500 --think-time-s 30 --gpu l40s,h100-sxm --model llama-3.1-8b,qwen3-32b
  knee plan chat-h100 --rate 60
  knee plan --template rag --tokens-per-day 2e9 --peak-factor 3 --api-price-per-m 0.60
  knee plan --template offline --job-requests 1e6 --window-h 8 --gpu h100-sxm")]
    Plan(Box<PlanArgs>),
    /// Show where memory and step time go: KV cache, vLLM's start-up lines, which resource binds
    #[command(
        mut_arg("format", without_csv),
        after_help = "\
Examples:
  knee explain chat-h100
  knee explain chat-h100 --set model.weight_dtype=fp8"
    )]
    Explain(Common),
    /// Read a load generator's result, a trace or a vLLM log; write measurements or a trace
    #[command(after_help = "\
The format is recognised by the file's content: `vllm bench serve` (JSON, JSON lines, console, sweep
folder) and its forks, guidellm, aiperf, genai-perf, inference-perf, llmperf, llm-d reports, vLLM's
/metrics and start-up log, CSV of requests or of load points, Azure and Mooncake traces.
With --model and --gpu, points that the chip cannot have produced are refused.

Examples:
  knee import result.json
  knee import guidellm.json server.log --gpu h100-sxm --out measured/
  knee import sweep-folder/ --model qwen3-14b --gpu h100-sxm --tp 2
  knee import AzureLLMInferenceTrace_conv.csv
  knee import /tmp/out.txt --as vllm-console --format json --no-files")]
    Import(ImportArgs),
    /// Fit a step-time profile to measurements, with held-out error, bounds and standard errors
    #[command(after_help = "\
Examples:
  knee calibrate measurements.toml -o profile.toml
  knee calibrate curves.toml -o profile.toml --fit memory --hold-out half:1
  knee calibrate curves.toml -o profile.toml --hold-out concurrency=32..

A set names the deployment and the files of what was measured on it:
  [model]
  name = \"qwen3-14b\"
  [hardware]
  gpu = \"h100-sxm\"
  [engine]
  version = \"0.23\"
  [[measurement]]
  requests = \"run.csv\"          # send_s,input_tokens,output_tokens,ttft_ms,e2e_ms
  [[measurement]]
  points = \"curve.csv\"          # concurrency,input_tokens_mean,output_tokens_mean,ttft_mean_ms,tpot_mean_ms,...
  holdout = true                 # scored, never fitted")]
    Calibrate(CalibrateArgs),
    /// Simulate what was measured and show the errors, by set, figure and distance from saturation
    #[command(after_help = "\
Examples:
  knee validate                              the figures behind the shipped profiles
  knee validate measurements.toml
  knee validate measurements.toml --profile profile.toml --format json")]
    Validate(ValidateArgs),
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
    #[command(flatten)]
    pub precision: PrecisionArgs,
}

#[derive(Debug, Args)]
pub(super) struct SweepArgs {
    #[command(flatten)]
    pub common: Common,
    #[command(flatten)]
    pub precision: PrecisionArgs,
    /// Go on with the points that an interrupted sweep of the same scenario has finished
    #[arg(long, conflicts_with = "no_files")]
    pub resume: bool,
    /// Discard the points that an interrupted sweep has finished, and start over
    #[arg(long, conflicts_with_all = ["no_files", "resume"])]
    pub restart: bool,
    /// Write curve.parquet too: the columns of curve.csv with their types and every digit
    #[arg(long, conflicts_with = "no_files")]
    pub parquet: bool,
    /// Loads on a linear axis in pictures, also where the sweep spaced them by a factor
    #[arg(long, conflicts_with = "no_files")]
    pub linear: bool,
    /// Mark and list so many of the best points, and give them a `rank` in the files; only points count
    /// that meet their objectives and, without any, that are stable
    #[arg(long, value_name = "N", requires = "by", value_parser = clap::value_parser!(u32).range(1..))]
    pub top: Option<u32>,
    /// What is best: a column of numbers in curve.csv, such as usd_per_million_output_tokens
    #[arg(long, value_name = "METRIC", requires = "top")]
    pub by: Option<String>,
    /// Mark the points that no other beats in all of these columns of curve.csv, such as
    /// output_tokens_per_s,ttft_p99_ms, and give all a `pareto` flag in the files; points count as for --top
    #[arg(long, value_name = "METRICS", value_delimiter = ',', value_parser = NonEmptyStringValueParser::new())]
    pub pareto: Vec<String>,
}

#[derive(Debug, Args)]
pub(super) struct CapacityArgs {
    #[command(flatten)]
    pub common: Common,
    #[command(flatten)]
    pub precision: PrecisionArgs,
    /// First failing load over guaranteed load, less one [default: 5%]
    #[arg(long, value_name = "PER CENT", value_parser = share, conflicts_with = "precision")]
    pub width: Option<f64>,
    /// Scenario key to search instead of the load; the more, the worse (of deployment.replicas: the fewest)
    #[arg(long, value_name = "KEY")]
    pub axis: Option<String>,
    /// Find the best max_num_seqs and token budget instead: for the highest capacity, or without
    /// objectives for the highest throughput
    #[arg(long)]
    pub tune: bool,
}

#[derive(Debug, Args)]
pub(super) struct CompareArgs {
    #[command(flatten)]
    pub common: Common,
    /// The other scenario [default: the same]
    pub other: Option<String>,
    #[command(flatten)]
    pub precision: PrecisionArgs,
    /// Set a scenario key of the first only; may be repeated
    #[arg(long = "set-a", value_name = "KEY=VALUE")]
    pub set_a: Vec<String>,
    /// Set a scenario key of the second only; may be repeated
    #[arg(long = "set-b", value_name = "KEY=VALUE")]
    pub set_b: Vec<String>,
    /// Tokens that the first's tokeniser makes of a word of your text
    #[arg(long, value_name = "N", value_parser = ratio)]
    pub tokens_per_word_a: Option<f64>,
    /// The same for the second
    #[arg(long, value_name = "N", value_parser = ratio)]
    pub tokens_per_word_b: Option<f64>,
}

/// How precise results are to be.
#[derive(Debug, Args)]
pub(super) struct PrecisionArgs {
    /// Add replications until the 95 % interval's half-width is below this share of the value (of the
    /// binding objective's statistic, else TTFT p99, else E2E mean)
    #[arg(long, value_name = "PER CENT", value_parser = share)]
    pub precision: Option<f64>,
    /// The most replications of a load
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=10_000))]
    pub max_replications: Option<u32>,
}

impl PrecisionArgs {
    /// What was asked for, if anything.
    pub fn asked(&self) -> Option<Precision> {
        let max_replications = self.max_replications.unwrap_or(MAX_REPLICATIONS);
        self.precision.map(|relative| Precision { relative, max_replications })
    }
}

/// `5%` or `0.05`.
fn share(text: &str) -> Result<f64, String> {
    let value = match text.trim().strip_suffix('%') {
        Some(percent) => percent.trim().parse::<f64>().map(|percent| percent / 100.0),
        None => text.trim().parse::<f64>(),
    };
    match value {
        Ok(value) if (0.001..=0.5).contains(&value) => Ok(value),
        _ => Err("expected a share from 0.1% to 50%, such as 5% or 0.05".to_owned()),
    }
}

fn ratio(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if value > 0.0 && value.is_finite() => Ok(value),
        _ => Err("expected a positive number, such as 1.33".to_owned()),
    }
}

#[derive(Debug, Args)]
pub(super) struct CalibrateArgs {
    /// Measurement sets: TOML files, all of one GPU and one engine
    #[arg(required = true)]
    pub sets: Vec<PathBuf>,
    /// File for the fitted profile
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
    /// Parameters to fit besides compute (of a mixture: expert_compute), overheads and front end: memory,
    /// expert_half_tokens, expert_half_width, expert_memory, expert_correlation, half_tokens, kv_memory,
    /// fp8_kv_memory, attention_compute, prefill_launch_per_layer_us, throttle (all-reduces are fitted
    /// where several tensor-parallel sizes tell)
    #[arg(long, value_name = "PARAMETER", value_delimiter = ',', value_parser = NonEmptyStringValueParser::new())]
    pub fit: Vec<String>,
    /// Load points to score and not to fit: half:SEED, or tensor_parallel_size, input_tokens,
    /// output_tokens or concurrency with a range, such as concurrency=32..
    #[arg(long, value_name = "RULE")]
    pub hold_out: Option<String>,
    /// Print nothing but the result
    #[arg(long)]
    pub quiet: bool,
    /// Threads to use [default: RAYON_NUM_THREADS, else all]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub threads: Option<u16>,
    #[command(flatten)]
    pub data: Data,
}

#[derive(Debug, Args)]
pub(super) struct ValidateArgs {
    /// Measurement sets: TOML files [default: the published figures behind the shipped profiles]
    pub sets: Vec<PathBuf>,
    /// Profile to score instead of the one a set asks for: a name, or a path
    #[arg(long, value_name = "PROFILE")]
    pub profile: Option<String>,
    /// What is printed
    #[arg(long, value_enum, default_value_t = Answer::Table)]
    pub format: Answer,
    /// Folder for the result's files [default: output/validate]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Write nothing to disk
    #[arg(long)]
    pub no_files: bool,
    /// Print nothing but the result
    #[arg(long)]
    pub quiet: bool,
    /// Threads to use [default: RAYON_NUM_THREADS, else all]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub threads: Option<u16>,
    #[command(flatten)]
    pub data: Data,
}

/// What commands print that have no table of load points.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Answer {
    /// For people
    Table,
    /// For programs
    Json,
}

/// `--format` of a command on a scenario that has no table of load points.
fn without_csv(format: Arg) -> Arg {
    let parser = EnumValueParser::<Answer>::new().map(|answer| match answer {
        Answer::Table => Format::Table,
        Answer::Json => Format::Json,
    });
    format.value_parser(parser)
}

/// What `import` takes.
#[derive(Debug, Args)]
pub(super) struct ImportArgs {
    /// Files to read, or folders that `vllm bench sweep` wrote
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Take every file for this format instead of recognising it
    #[arg(long = "as", value_name = "FORMAT")]
    pub format_of_files: Option<String>,
    /// Model that was served (`knee list models`, or a Hugging Face id)
    #[arg(long)]
    pub model: Option<String>,
    /// GPU it was served on (`knee list hardware`)
    #[arg(long)]
    pub gpu: Option<String>,
    /// Tensor-parallel size [default: the file's, else 1 with --gpu]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub tp: Option<u32>,
    /// Format of the weights, such as fp8 [default: by the model's name]
    #[arg(long, value_name = "DTYPE")]
    pub weight_dtype: Option<String>,
    /// Folder for the files [default: output/import-<FILE>]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// What is printed
    #[arg(long, value_enum, default_value_t = Answer::Table)]
    pub format: Answer,
    /// Print the result only: no notes
    #[arg(long)]
    pub quiet: bool,
    /// Write nothing to disk
    #[arg(long)]
    pub no_files: bool,
    #[command(flatten)]
    pub data: Data,
}

/// More threads than any machine has cores only wait for each other.
const MOST_THREADS: i64 = 1_024;

#[derive(Debug, Args)]
pub(super) struct PlanArgs {
    #[command(flatten)]
    pub common: Common,
    /// Demand in requests per second on average
    #[arg(long, value_name = "PER_S", value_parser = positive, group = "demand")]
    pub rate: Option<f64>,
    /// Demand as people who ask, think, and ask again; with --think-time-s, unless the scenario has users
    /// who think ([arrivals.closed])
    #[arg(long, value_name = "N", value_parser = positive, group = "demand")]
    pub users: Option<f64>,
    /// Seconds from an answer to the user's next request, on average
    #[arg(long, value_name = "S", value_parser = not_negative, requires = "users")]
    pub think_time_s: Option<f64>,
    /// Demand in input and output tokens a day
    #[arg(long, value_name = "N", value_parser = positive, group = "demand")]
    pub tokens_per_day: Option<f64>,
    /// A finite job of so many requests that nobody waits for
    #[arg(long, value_name = "N", value_parser = positive, group = "demand", requires = "window_h")]
    pub job_requests: Option<f64>,
    /// Hours within which the job must be done
    #[arg(long, value_name = "H", value_parser = positive, requires = "job_requests")]
    pub window_h: Option<f64>,
    /// Peak over mean demand: the fleet is sized for the peak and priced by the mean
    #[arg(long, value_name = "F", value_parser = at_least_one, default_value_t = 1.0)]
    pub peak_factor: f64,
    /// Workload where no scenario says one: chat, code, rag, long-document, offline
    #[arg(long, value_name = "NAME", value_parser = template)]
    pub template: Option<Template>,
    /// Models, separated by commas [default: the scenario's, else llama-3.1-8b]
    #[arg(long, value_name = "A,B", value_delimiter = ',', value_parser = NonEmptyStringValueParser::new())]
    pub model: Vec<String>,
    /// GPUs, separated by commas [default: all]
    #[arg(long, value_name = "A,B", value_delimiter = ',', value_parser = NonEmptyStringValueParser::new())]
    pub gpu: Vec<String>,
    /// Tensor parallel sizes, separated by commas [default: 1,2,4,8]
    #[arg(long, value_name = "N,M", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub tp: Vec<u32>,
    /// Weight dtypes, separated by commas [default: the scenario's, else the model's own]
    #[arg(long, value_name = "A,B", value_delimiter = ',', value_parser = NonEmptyStringValueParser::new())]
    pub dtype: Vec<String>,
    /// Values of a scenario key to try, such as engine.max_num_seqs=128,256; may be repeated
    #[arg(long, value_name = "KEY=A,B", value_parser = varied)]
    pub vary: Vec<(String, Vec<String>)>,
    /// Largest fleet to consider
    #[arg(long, value_name = "N", default_value_t = 512, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub max_gpus: u32,
    /// Dollars that an API asks for a million tokens, input and output together: prints the break-even
    #[arg(long, value_name = "USD", value_parser = positive)]
    pub api_price_per_m: Option<f64>,
}

fn number(text: &str, holds: impl Fn(f64) -> bool, expected: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if value.is_finite() && holds(value) => Ok(value),
        _ => Err(format!("expected {expected}")),
    }
}

fn positive(text: &str) -> Result<f64, String> {
    number(text, |value| (1e-6..=1e15).contains(&value), "a number above 0, from 1e-6 to 1e15")
}

fn not_negative(text: &str) -> Result<f64, String> {
    number(text, |value| (0.0..=1e9).contains(&value), "a number of at least 0, at most 1e9")
}

fn at_least_one(text: &str) -> Result<f64, String> {
    number(text, |value| (1.0..=1e6).contains(&value), "a number of at least 1, at most 1e6")
}

/// A seed: 63 bits, as a scenario file holds it.
fn seed(text: &str) -> Result<u64, String> {
    let value = text.parse().ok().filter(|seed| *seed <= i64::MAX as u64);
    value.ok_or_else(|| format!("expected a whole number from 0 to {}", i64::MAX))
}

fn template(name: &str) -> Result<Template, String> {
    Template::find(name)
        .ok_or_else(|| format!("there are: {}", TEMPLATES.map(|template| template.name).join(", ")))
}

fn varied(text: &str) -> Result<(String, Vec<String>), String> {
    match text.split_once('=') {
        Some((key, values))
            if !key.trim().is_empty() && values.split(',').all(|value| !value.trim().is_empty()) =>
        {
            let values = values.split(',').map(|value| value.trim().to_owned()).collect();
            Ok((key.trim().to_owned(), values))
        }
        _ => Err("expected key=value,value such as engine.max_num_seqs=128,256".to_owned()),
    }
}

/// What every command on a scenario takes.
#[derive(Clone, Debug, Args)]
pub(super) struct Common {
    /// Path of a scenario file, or the name of a shipped one (`knee list scenarios`)
    pub scenario: String,
    /// Set a scenario key, such as run.requests=2000; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Seed of all random numbers
    #[arg(long, value_parser = seed)]
    pub seed: Option<u64>,
    /// Folder for the result's files [default: output/<scenario>/<command>]
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
    /// The options as they were given.
    #[arg(skip)]
    pub given: Vec<String>,
}

/// Where calibration data is read from.
#[derive(Clone, Debug, Args)]
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
    /// For programs: summary.json
    Json,
    /// A row a load (curve.csv), or a candidate (plan.csv)
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
