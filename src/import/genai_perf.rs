//! NVIDIA genai-perf (`profile_export_genai_perf.json`): as aiperf, with its command's `input_config`.
//!
//! Its output length is known to be miscounted in streaming against Triton's TensorRT-LLM back end: every
//! chunk is tokenised with the text before it. Outputs of far more than the number asked for give it away
//! (they cannot be generated); then output tokens, their throughput and TPOT are not taken.
//! Source: triton-inference-server/perf_analyzer, issue 298.

use super::Imported;
use super::aiperf::measured;
use super::error::ImportError;
use super::format::Content;
use super::numbers::small_count;
use super::point::{Arrival, LatencyStats, LengthKind, LoadPoint, ServerFacts, TokenLengths};
use super::tree::At;

/// Counted over asked-for outputs above which they are miscounted; tokenisers differ by less.
const MISCOUNTED: f64 = 1.3;

pub(super) fn read(into: &mut Imported, name: &str, content: &Content) -> Result<(), ImportError> {
    for at in content.documents(name)? {
        let mut point = measured(&at)?;
        let Some(config) = at.get("input_config") else {
            into.points.push(point);
            continue;
        };
        set_load(&mut point, &config)?;
        let asked = config.amount("output_tokens_mean")?.filter(|asked| *asked >= 1.0);
        if let (Some(asked), Some(counted)) = (asked, point.output_tokens)
            && counted.mean > MISCOUNTED * asked
        {
            drop_output_counts(into, &mut point, asked, counted.mean);
        }
        into.points.push(point);
    }
    into.understand("inter_token_latency is our TPOT (per request, first token excluded)");
    into.leave_out("per-request throughput");
    Ok(())
}

fn set_load(point: &mut LoadPoint, config: &At<'_>) -> Result<(), ImportError> {
    point.rate_per_s = config.amount("request_rate")?;
    point.concurrency = config.count("concurrency")?.and_then(small_count);
    point.arrival = match (point.rate_per_s, point.concurrency) {
        (Some(_), _) => Arrival::Constant,
        (None, Some(_)) => Arrival::Closed,
        (None, None) => Arrival::Unknown,
    };
    let engine = match config.text("backend")? {
        Some("tensorrtllm") => Some("tensorrt-llm".to_owned()),
        Some("vllm") => Some("vllm".to_owned()),
        _ => None,
    };
    let model = config.items_of_text("model")?.first().map(|name| (*name).to_owned());
    point.server = ServerFacts { model, engine, ..ServerFacts::default() };
    Ok(())
}

fn drop_output_counts(into: &mut Imported, point: &mut LoadPoint, asked: f64, counted: f64) {
    let tpot =
        point.e2e.mean_s.zip(point.ttft.mean_s).map(|(e2e, ttft)| (e2e - ttft) / (asked - 1.0).max(1.0));
    let would_be = tpot.map_or(String::new(), |tpot| {
        format!("; if every answer had the {asked} asked for, TPOT would be {:.2} ms", tpot * 1e3)
    });
    into.warn(
        &point.label,
        &format!(
            "outputs are counted as {counted:.0} tokens where {asked} were asked for: genai-perf miscounts in \
             streaming, so output tokens, their throughput, TPOT and ITL are left out{would_be}"
        ),
    );
    point.output_tokens = Some(TokenLengths { mean: asked, kind: LengthKind::Nominal });
    point.output_tokens_per_s = None;
    point.total_tokens_per_s = None;
    point.tpot = LatencyStats::default();
    point.itl = LatencyStats::default();
    point.ntpot = LatencyStats::default();
}
