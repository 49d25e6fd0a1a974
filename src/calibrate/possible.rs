//! What no deployment can have shown: figures below what its chips need to read the weights or to multiply.
//!
//! ```text
//! TPOT >= bytes of the active weights / (GPUs x bandwidth)     of each token that a step can give
//! TTFT >= 2 x active parameters x prompt tokens / (GPUs x peak)
//! ```
//!
//! A fit to such figures ends at the bounds of its parameters, or finds that they say nothing, and looks like one.

use crate::units::plain;
use crate::validate::{Cell, Family, Figure};

/// Why the figures of `cell` cannot be of its deployment.
#[must_use]
pub fn impossible(cell: &Cell) -> Option<String> {
    too_fast_decode(cell).or_else(|| too_fast_prefill(cell)).or_else(|| too_much(cell))
}

/// Of all GPUs of a replica, in words.
fn deployment(cell: &Cell) -> String {
    let serving = cell.serving();
    let (gpus, gpu) = (serving.gpus(), &serving.hardware.name);
    format!("{} with {} weights on {gpus} x {gpu}", serving.model.name, serving.weight_dtype)
}

fn too_fast_decode(cell: &Cell) -> Option<String> {
    let serving = cell.serving();
    let sharing = f64::from(serving.attention_tp) * f64::from(serving.ranks());
    let bandwidth = sharing * serving.hardware.memory_bandwidth_bytes_per_s;
    let tokens = serving.speculative.as_ref().map_or(1, |one| 1 + one.num_speculative_tokens);
    let floor_ms = serving.model.least_step_bytes(serving.weight_dtype) / bandwidth / f64::from(tokens) * 1e3;
    let told = cell.measured.iter().filter(|(figure, _)| figure.family() == Family::Tpot);
    let told = told.map(|(figure, ms)| (figure.name(), ms));
    // Means add up whatever the lengths are.
    let after_first = cell.mean_output_tokens - 1.0;
    let e2e = cell.measured.get(Figure::E2eMean).filter(|_| after_first >= 1.0);
    let gap = e2e.map(|e2e| (e2e - cell.measured.get(Figure::TtftMean).unwrap_or(0.0)) / after_first);
    let (name, ms) = told.chain(gap.map(|ms| ("E2E mean a token", ms))).find(|(_, ms)| *ms < floor_ms)?;
    Some(format!(
        "{name} is {} ms, but {} needs {floor_ms:.2} ms a token to read the weights",
        plain(ms),
        deployment(cell)
    ))
}

fn too_fast_prefill(cell: &Cell) -> Option<String> {
    let serving = cell.serving();
    let flops = serving.model.flops_per_token() * cell.mean_input_tokens;
    let peak = f64::from(serving.gpus()) * serving.hardware.fastest_flops(serving.weight_dtype);
    let floor_ms = flops / peak * 1e3;
    let ms = cell.measured.get(Figure::TtftMean).filter(|ms| *ms < floor_ms)?;
    Some(format!(
        "TTFT mean is {} ms, but {} needs {floor_ms:.2} ms to multiply {:.0} prompt tokens at its peak; prompts \
         served from a prefix cache cannot be fitted",
        plain(ms),
        deployment(cell),
        cell.mean_input_tokens
    ))
}

fn too_much(cell: &Cell) -> Option<String> {
    let serving = cell.serving();
    let requests = cell.measured.get(Figure::RequestThroughput).map(|rate| {
        let tokens = cell.mean_input_tokens + cell.mean_output_tokens;
        (Figure::RequestThroughput, rate, rate * tokens)
    });
    let output =
        cell.measured.get(Figure::OutputThroughput).map(|rate| (Figure::OutputThroughput, rate, rate));
    let gpus = f64::from(serving.gpus()) * f64::from(cell.measurement.system.replicas);
    let peak = gpus * serving.hardware.fastest_flops(serving.weight_dtype);
    let times = |tokens_per_s: f64| tokens_per_s * serving.model.flops_per_token() / peak;
    let (figure, rate, tokens_per_s) =
        requests.into_iter().chain(output).find(|(.., tokens_per_s)| times(*tokens_per_s) > 1.0)?;
    Some(format!(
        "{} is {} per s, which takes {} times the peak of {}",
        figure.name(),
        plain(rate),
        plain((times(tokens_per_s) * 10.0).round() / 10.0),
        deployment(cell)
    ))
}
