//! Loads that others publish as single rows of `points/measured.csv`: everything is sent at once, and what is measured is
//! the throughput, in one lab's runs TTFT and TPOT too.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

/// The rows of one server.
#[derive(Clone, Copy)]
pub struct Measured {
    pub lab: Lab,
    /// GPU and weights as the file writes them.
    pub gpu: &'static str,
    pub weights: &'static str,
    pub models: &'static [Model],
    /// Of [`Lab::Nvidia`]: the versions taken.
    pub versions: &'static [&'static str],
    /// Rows with data-parallel attention too.
    pub ranks: bool,
    /// Rows in the file, by which a changed file is noticed.
    pub loads: usize,
}

/// Who measured, and with what.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Lab {
    /// TensorRT-LLM's performance overview: offline throughput.
    Nvidia,
    /// GPUStack's performance lab: vLLM with random prompts of one length each.
    GpuStack,
}

/// A model as the file and as the catalog write it, and on how few GPUs its rows are taken.
pub type Model = (&'static str, &'static str, u32);

/// Requests where the file does not say, and most that are simulated: a run is as steady with so many.
const REQUESTS: u32 = 1000;
/// Fewest tokens of an answer: shorter ones are bound by what takes in the requests.
const SHORTEST_OUTPUT: f64 = 10.0;
/// `max_num_batched_tokens` of the offline runs, at least: a prompt goes into one step.
const OFFLINE_TOKENS: u32 = 33_000;
/// What TensorRT-LLM's prompts leave of it to the others' tokens.
const BESIDE_A_PROMPT: u32 = 512;

type Row = BTreeMap<String, String>;

fn of<'r>(row: &'r Row, name: &str) -> &'r str {
    row.get(name).map_or("", String::as_str)
}

/// Rows of the server, each with its model's name in the catalog.
pub fn rows(server: &Measured, file: &Path) -> Vec<(&'static str, Row)> {
    let mut table =
        csv::Reader::from_path(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let rows = table.deserialize();
    let rows = rows.map(|row| row.unwrap_or_else(|error| panic!("{}: {error}", file.display())));
    rows.filter_map(|row: Row| Some((model(server, &row)?, row))).collect()
}

/// The catalog's name of the model of `row`, if the row is the server's.
fn model(server: &Measured, row: &Row) -> Option<&'static str> {
    let number = |name| of(row, name).parse::<f64>().ok();
    let is_of_lab = match server.lab {
        Lab::Nvidia => {
            of(row, "source") == "tensorrt-llm-perf-overview"
                && server.versions.contains(&of(row, "engine_version"))
                && matches!(of(row, "pp"), "" | "1")
        }
        Lab::GpuStack => {
            (of(row, "source"), of(row, "engine")) == ("gpustack-performance-lab", "vLLM")
                && of(row, "isl_kind") == "random-fixed"
                && number("osl_mean").is_some_and(|tokens| tokens >= SHORTEST_OUTPUT)
        }
    };
    let is_its = (of(row, "gpu"), of(row, "weight_dtype")) == (server.gpu, server.weights)
        && (server.ranks || !of(row, "notes").contains("attention-DP"));
    let name = of(row, "model").rsplit('/').next().unwrap_or_default();
    let (_, model, fewest) = server.models.iter().find(|(written, ..)| *written == name)?;
    let gpus: u32 = of(row, "n_gpus").parse().unwrap_or(1);
    (is_of_lab && is_its && gpus >= *fewest).then_some(model)
}

/// Entries of a measurement set in `weights`. Of a model's rows the first is held out if `is_held_out(0)`, and so on.
pub fn entries(server: &Measured, weights: &str, is_held_out: impl Fn(usize) -> bool, file: &Path) -> String {
    let mut places: BTreeMap<&str, usize> = BTreeMap::new();
    let mut text = String::new();
    for (model, row) in rows(server, file) {
        let place = places.entry(model).or_default();
        let holdout = is_held_out(*place);
        *place += 1;
        let (by, engine) = match server.lab {
            Lab::Nvidia => ("NVIDIA, TensorRT-LLM performance overview", under_tensorrt_llm(&row)),
            Lab::GpuStack => ("GPUStack performance lab", under_vllm(&row)),
        };
        let requests = of(&row, "n_requests").parse().unwrap_or(REQUESTS);
        // Writing to a string cannot fail.
        let _ = write!(
            text,
            "\n[[measurement]]\n\
             name = \"{model}-{weights} TP{tp} offline\"\n\
             source = \"{by}\"\n\
             holdout = {holdout}\n\
             [measurement.model]\nname = \"{model}\"\nweight_dtype = \"{weights}\"\n\
             [measurement.engine]\n{engine}\
             [[measurement.point]]\narrival = \"all_at_once\"\ncompleted = {requests}\n\
             input_tokens_mean = {input}\noutput_tokens_mean = {output}\n",
            tp = tensor_parallel_size(&row),
            input = of(&row, "isl_mean"),
            output = of(&row, "osl_mean"),
        );
        for (key, column) in
            [("ttft_mean_ms", "ttft_mean_ms"), ("tpot_mean_ms", "tpot_mean_ms"), ("requests_per_s", "req_s")]
        {
            if !of(&row, column).is_empty() {
                let _ = writeln!(text, "{key} = {}", of(&row, column));
            }
        }
    }
    text
}

/// Attention ranks of the row, 1 without.
fn ranks(row: &Row) -> u32 {
    of(row, "dp").parse().unwrap_or(1)
}

fn tensor_parallel_size(row: &Row) -> u32 {
    ranks(row).max(of(row, "tp").parse().unwrap_or(1))
}

fn under_tensorrt_llm(row: &Row) -> String {
    let input: f64 = of(row, "isl_mean").parse().unwrap_or_default();
    let tokens = OFFLINE_TOKENS.max(input as u32 + BESIDE_A_PROMPT);
    let ranks =
        if ranks(row) > 1 { "enable_attention_dp = true\nenable_expert_parallel = true\n" } else { "" };
    format!(
        "name = 'tensorrt-llm'\nversion = '{}'\nkv_cache_dtype = 'fp8'\nmax_num_batched_tokens = {tokens}\n\
         tensor_parallel_size = {}\n{ranks}",
        of(row, "engine_version"),
        tensor_parallel_size(row)
    )
}

/// Options stand in the command that the notes give.
fn under_vllm(row: &Row) -> String {
    let notes = of(row, "notes");
    let option = |name: &str| {
        let value = notes.split(name).nth(1)?.trim_start_matches(['=', ' ']);
        Some(value.chars().take_while(char::is_ascii_digit).collect::<String>())
    };
    // 0.10 and 0.11 schedule ahead only when asked to, which is what 0.14 does.
    let written = of(row, "engine_version").rsplit_once('.').map_or("", |(version, _)| version);
    let version = if notes.contains("--async-scheduling") { "0.14" } else { written };
    let mut text = format!(
        "name = 'vllm'\nversion = '{version}'\ntensor_parallel_size = {}\n",
        tensor_parallel_size(row)
    );
    for (flag, key) in
        [("--max-model-len", "max_model_len"), ("--max-num-batched-tokens", "max_num_batched_tokens")]
    {
        if let Some(value) = option(flag) {
            let _ = writeln!(text, "{key} = {value}");
        }
    }
    text
}
