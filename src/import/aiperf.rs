//! NVIDIA aiperf (`profile_export_aiperf.json`): `{metric: {unit, avg, p1 .. p99, min, max, std}}`.
//!
//! Its `inter_token_latency` is (E2E - TTFT) / (output tokens - 1) per request, so our TPOT; what we call
//! ITL is its `inter_chunk_latency`, if a chunk is a token ([`super::check`] looks whether it is).

use super::Imported;
use super::error::ImportError;
use super::format::Content;
use super::numbers::{AVG, seconds_in, small_count};
use super::point::{Arrival, LatencyStats, LoadPoint, ServerFacts, TokenLengths};
use super::tree::At;

pub(super) fn read(into: &mut Imported, name: &str, content: &Content) -> Result<(), ImportError> {
    for at in content.documents(name)? {
        let mut point = measured(&at)?;
        set_load(&mut point, &at)?;
        if at.get("was_cancelled").is_some_and(|at| at.is_true()) {
            into.warn(&point.label, "the run was cancelled");
        }
        into.points.push(point);
    }
    into.understand("inter_token_latency is our TPOT (per request, first token excluded)");
    into.understand("inter_chunk_latency is our ITL where a chunk is one token");
    into.leave_out("time_to_second_token, per-user throughput, prefill throughput, telemetry");
    Ok(())
}

/// What aiperf and genai-perf write alike.
pub(super) fn measured(at: &At<'_>) -> Result<LoadPoint, ImportError> {
    let average = |key: &str| at.amount(&format!("{key}.avg"));
    let completed = at.count("request_count.avg")?;
    let sum = |a: Option<f64>, b: Option<f64>| a.zip(b).map(|(a, b)| a + b);
    let requests_per_s = average("request_throughput")?;
    let input = lengths(at, "input_sequence_length")?;
    let output_tokens_per_s = average("output_token_throughput")?;
    let input_tokens_per_s = requests_per_s.zip(input).map(|(rate, input)| rate * input.mean);
    Ok(LoadPoint {
        label: at.label(),
        completed,
        failed: at.count("error_request_count.avg")?,
        duration_s: average("benchmark_duration")?,
        requests_per_s,
        input_tokens_per_s,
        output_tokens_per_s,
        total_tokens_per_s: sum(input_tokens_per_s, output_tokens_per_s),
        good_per_s: average("goodput")?,
        input_tokens: input,
        output_tokens: lengths(at, "output_sequence_length")?,
        ttft: latency(at, "time_to_first_token")?,
        tpot: latency(at, "inter_token_latency")?,
        itl: latency(at, "inter_chunk_latency")?,
        e2e: latency(at, "request_latency")?,
        ..LoadPoint::default()
    })
}

fn lengths(at: &At<'_>, key: &str) -> Result<Option<TokenLengths>, ImportError> {
    let Some(at) = at.get(key) else { return Ok(None) };
    let (min, max) = (at.amount("min")?, at.amount("max")?);
    Ok(at.amount("avg")?.map(|mean| TokenLengths::counted(mean, min, max)))
}

/// A latency in the unit that the file names.
fn latency(at: &At<'_>, key: &str) -> Result<LatencyStats, ImportError> {
    let Some(unit) = at.get(&format!("{key}.unit")) else { return Ok(LatencyStats::default()) };
    let text = at.text(&format!("{key}.unit"))?.unwrap_or_default();
    let to_seconds = seconds_in(text).ok_or_else(|| unit.error("a unit of time: ns, us, ms or sec"))?;
    AVG.latency(at, key, to_seconds)
}

fn set_load(point: &mut LoadPoint, at: &At<'_>) -> Result<(), ImportError> {
    let Some(load) = at.get("input_config.loadgen") else { return Ok(()) };
    point.rate_per_s = load.amount("request_rate")?;
    point.concurrency = load.count("concurrency")?.and_then(small_count);
    let mode = load.text("request_rate_mode")?.or(load.text("arrival_pattern")?);
    point.arrival = match (point.rate_per_s, mode) {
        (Some(_), Some("constant")) => Arrival::Constant,
        (Some(_), Some("poisson")) => Arrival::Poisson,
        (Some(_), _) => Arrival::Unknown,
        (None, _) if point.concurrency.is_some() => Arrival::Closed,
        (None, _) => Arrival::Unknown,
    };
    point.server = ServerFacts {
        // Further names are adapters of the first.
        model: at.items_of_text("input_config.endpoint.model_names")?.first().map(|name| (*name).to_owned()),
        ..ServerFacts::default()
    };
    Ok(())
}
