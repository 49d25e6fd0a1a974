//! `vllm bench serve --save-result`: JSON, JSON lines (`--append-result`), and what forks of it write
//! (SGLang's `bench_serving`, InferenceX's `benchmark_serving`).
//!
//! Its names are ours. Its traps: the rate is `"inf"` for "all at once" and the concurrency null or 1e9
//! for "no limit"; older versions write `request_goodput:` with the colon; a run of which every request
//! failed reports zeros. Percentiles depend on `--metric-percentiles`, E2E on `--percentile-metrics`.
//! With `--save-detailed` there is a list per quantity: `ttfts` and `itls` in seconds.

use super::Imported;
use super::error::ImportError;
use super::format::Content;
use super::numbers::small_count;
use super::point::{
    Arrival, LatencyStats, LengthKind, LoadPoint, MeasuredRequest, ServerFacts, TokenLengths,
};
use super::tree::{At, Node};

/// At this and above a rate or a concurrency means "no limit".
const NO_LIMIT: f64 = 1e9;
/// Longest over shortest length beyond which a mean does not stand for all: InferenceX draws up to 1.25 times.
const WIDE: f64 = 1.3;

pub(super) fn read(into: &mut Imported, name: &str, content: &Content) -> Result<(), ImportError> {
    for at in content.documents(name)? {
        read_one(into, &at)?;
    }
    if !into.points.is_empty() {
        into.understand(
            "ttft, tpot, itl and e2el are ours, in ms; throughput is over the run's `duration`, ramp and drain \
             included",
        );
        into.understand("lengths are the counted totals over completed requests, not the nominal ones");
    }
    Ok(())
}

/// Reads one result; also used for the files of a sweep folder.
pub(super) fn read_one(into: &mut Imported, at: &At<'_>) -> Result<(), ImportError> {
    let label = at.label();
    let completed = at.count("completed")?;
    if completed == Some(0) {
        let failed = at.count("failed")?.or(at.count("num_prompts")?).unwrap_or_default();
        into.refuse(&label, &format!("no request completed ({failed} failed): its zeros are not latencies"));
        return Ok(());
    }
    let mut point = LoadPoint { label, completed, server: server(at)?, ..LoadPoint::default() };
    set_load(&mut point, at)?;
    set_counts(&mut point, at)?;
    set_latencies(&mut point, at)?;
    if at.node.has(&["request_goodput:", "best_of"]) {
        inferencex_lengths(into, &mut point);
    }
    let requests = requests(into, &point, at)?;
    if requests.iter().any(|request| request.send_s.is_nan()) {
        warn_of_lengths(into, &point.label, &requests);
    }
    fill_from_requests(&mut point, &requests);
    into.requests.extend(requests.into_iter().filter(|request| request.send_s.is_finite()));
    into.points.push(point);
    Ok(())
}

/// Of requests that cannot be replayed only the mean lengths are kept, and a simulation of these has no long prompts.
fn warn_of_lengths(into: &mut Imported, label: &str, requests: &[MeasuredRequest]) {
    let range = |tokens: fn(&MeasuredRequest) -> u32| {
        let least = requests.iter().map(tokens).min().unwrap_or_default();
        (least, requests.iter().map(tokens).max().unwrap_or_default())
    };
    let (input, output) = (range(|request| request.input_tokens), range(|request| request.output_tokens));
    let varies = |(least, most): (u32, u32)| f64::from(most) > WIDE * f64::from(least.max(1));
    if varies(input) || varies(output) {
        into.warn(
            label,
            &format!(
                "prompts have {} to {} tokens and answers {} to {}, of which only the means are kept: without \
                 `start_times` (vLLM from 0.12) its requests cannot be replayed. All alike they wait less than \
                 they did, and what is fitted to this makes up for it",
                input.0, input.1, output.0, output.1
            ),
        );
    }
}

/// A rate or a concurrency: `None` for "no limit", an error where there is no number at all.
fn limit(at: &At<'_>, key: &str) -> Result<Option<f64>, ImportError> {
    let Some(value) = at.get(key) else { return Ok(None) };
    if matches!(value.node, Node::Text(text) if text.trim().eq_ignore_ascii_case("inf")) {
        return Ok(None);
    }
    let number = value.as_number()?;
    if number <= 0.0 {
        return Err(value.error("a number above 0, or \"inf\""));
    }
    Ok(Some(number).filter(|number| *number < NO_LIMIT))
}

fn set_load(point: &mut LoadPoint, at: &At<'_>) -> Result<(), ImportError> {
    point.rate_per_s = limit(at, "request_rate")?;
    let concurrency = limit(at, "max_concurrency")?;
    point.concurrency = concurrency.and_then(|users| small_count(users as u64));
    let burstiness = at.amount("burstiness")?.unwrap_or(1.0);
    point.arrival = match (point.rate_per_s, point.concurrency) {
        (Some(_), _) if burstiness == 1.0 => Arrival::Poisson,
        (Some(_), _) => Arrival::Gamma { burstiness },
        (None, Some(_)) => Arrival::Closed,
        (None, None) if at.get("request_rate").is_some() => Arrival::AllAtOnce,
        (None, None) => Arrival::Unknown,
    };
    Ok(())
}

fn set_counts(point: &mut LoadPoint, at: &At<'_>) -> Result<(), ImportError> {
    let sent = at.count("num_prompts")?;
    let missing = || Some(sent?.saturating_sub(point.completed?));
    point.failed = at.count("failed")?.or_else(missing);
    point.duration_s = at.amount("duration")?;
    point.requests_per_s = at.amount("request_throughput")?;
    point.output_tokens_per_s = at.amount("output_throughput")?;
    point.total_tokens_per_s = at.amount("total_token_throughput")?.or(at.amount("total_throughput")?);
    let input = |total: f64| Some(total - point.output_tokens_per_s?);
    point.input_tokens_per_s = at
        .amount("input_throughput")?
        .or_else(|| point.total_tokens_per_s.and_then(input).filter(|input| *input >= 0.0));
    point.good_per_s = at.amount("request_goodput")?.or(at.amount("request_goodput:")?);
    let per_request = |total: Option<f64>| Some(TokenLengths::mean(total? / point.completed? as f64));
    point.input_tokens = per_request(at.amount("total_input_tokens")?);
    point.output_tokens = per_request(at.amount("total_output_tokens")?);
    Ok(())
}

fn set_latencies(point: &mut LoadPoint, at: &At<'_>) -> Result<(), ImportError> {
    for (metric, stats) in point.latencies_mut() {
        let spellings: &[&str] = match metric {
            "ttft" => &["ttft_ms"],
            "tpot" => &["tpot_ms"],
            "itl" => &["itl_ms"],
            "e2e" => &["e2el_ms", "e2e_latency_ms"],
            _ => continue,
        };
        for spelling in spellings {
            for (statistic, slot) in stats.named_mut() {
                let other = if statistic == "p50" { "median" } else { statistic };
                let ms = at.amount(&format!("{statistic}_{spelling}"))?;
                let ms = ms.or(at.amount(&format!("{other}_{spelling}"))?);
                *slot = slot.or(ms.map(|ms| ms * 1e-3));
            }
        }
        // Outputs of one token have no gaps; the tool then writes zeros.
        if stats.named().iter().all(|(_, value)| value.is_none_or(|value| value == 0.0)) {
            *stats = LatencyStats::default();
        }
    }
    Ok(())
}

/// InferenceX draws each length uniformly from 0.8 to 1.0 of the nominal one.
fn inferencex_lengths(into: &mut Imported, point: &mut LoadPoint) {
    const LOWEST: f64 = 0.8;
    const MEAN: f64 = 0.9;
    for lengths in [&mut point.input_tokens, &mut point.output_tokens].into_iter().flatten() {
        let (min, max) = (lengths.mean * LOWEST / MEAN, lengths.mean / MEAN);
        lengths.kind = LengthKind::Uniform { min, max };
    }
    into.understand(
        "InferenceX's fork: lengths are uniform in 0.8 to 1.0 of the nominal ones (its --random-range-ratio), so \
         their mean is 0.9 of nominal; the counted means are used",
    );
}

fn server(at: &At<'_>) -> Result<ServerFacts, ImportError> {
    let small = |key| Ok::<_, ImportError>(at.count(key)?.and_then(small_count));
    // "openai" is a request format, not an engine.
    let engine = at.text("backend")?.and_then(|backend| match backend {
        "vllm" | "sglang" => Some(backend),
        "sglang-oai" | "sglang-oai-chat" => Some("sglang"),
        "tensorrt-llm" | "trt" => Some("tensorrt-llm"),
        _ => None,
    });
    Ok(ServerFacts {
        model: at.text("model_id")?.map(String::from),
        engine: engine.map(String::from),
        tensor_parallel_size: small("tensor_parallel_size")?,
        pipeline_parallel_size: small("pipeline_parallel_size")?,
        max_num_seqs: small("max_num_seqs")?,
        max_num_batched_tokens: small("max_num_batched_tokens")?,
        max_model_len: at.count("max_model_len")?,
        gpu_memory_utilization: at.amount("gpu_memory_utilization")?,
        ..ServerFacts::default()
    })
}

/// The requests of `--save-detailed` that ended well; their send time is NaN where it is not known.
fn requests(
    into: &mut Imported,
    point: &LoadPoint,
    at: &At<'_>,
) -> Result<Vec<MeasuredRequest>, ImportError> {
    let (Some(inputs), Some(outputs), Some(ttfts)) =
        (at.numbers("input_lens")?, at.numbers("output_lens")?, at.numbers("ttfts")?)
    else {
        return Ok(Vec::new());
    };
    let starts = at.numbers("start_times")?.filter(|starts| !starts.is_empty());
    let gaps = at.get("itls");
    let count = inputs.len();
    for (key, length) in [("output_lens", outputs.len()), ("ttfts", ttfts.len())] {
        if length != count {
            return Err(at
                .need(key)?
                .error(&format!("a list of {count}, as `input_lens` (it has {length})")));
        }
    }
    let at_once = point.arrival == Arrival::AllAtOnce;
    if starts.is_none() && !at_once {
        into.leave_out(
            "the requests: without `start_times` they cannot be replayed (vLLM before 0.12 has none)",
        );
    } else {
        into.understand("per request: E2E is its TTFT plus its `itls`; failed requests are left out");
    }
    let origin = starts.map_or(0.0, |starts| starts.iter().copied().fold(f64::INFINITY, f64::min));
    let mut requests = Vec::new();
    for index in 0..count {
        let Some(e2e_s) = e2e(gaps.as_ref(), index, ttfts[index])? else { continue };
        let start = match starts {
            Some(starts) => starts.get(index).map_or(f64::NAN, |start| start - origin),
            None if at_once => 0.0,
            None => f64::NAN,
        };
        let tokens = [inputs[index], outputs[index]];
        // A failed request has no answer.
        if tokens[1] < 1.0 || tokens.iter().any(|tokens| !(0.0..=f64::from(u32::MAX)).contains(tokens)) {
            continue;
        }
        requests.push(MeasuredRequest {
            point: into.points.len(),
            send_s: start,
            input_tokens: tokens[0] as u32,
            output_tokens: tokens[1] as u32,
            ttft_s: Some(ttfts[index]),
            e2e_s,
        });
    }
    Ok(requests)
}

/// TTFT plus gaps of request `index`; `None` if there are no such gaps.
fn e2e(gaps: Option<&At<'_>>, index: usize, ttft_s: f64) -> Result<Option<f64>, ImportError> {
    let Some(gaps) = gaps else { return Ok(None) };
    let sum = match gaps.node {
        Node::List(lists) => match lists.get(index) {
            Some(Node::Numbers(numbers)) => Some(numbers.iter().sum::<f64>()),
            _ => None,
        },
        Node::Numbers(numbers) if numbers.is_empty() => None,
        _ => return Err(gaps.error("a list of lists of seconds")),
    };
    Ok(sum.map(|sum| ttft_s + sum))
}

/// Statistics that the file does not have, from its requests.
fn fill_from_requests(point: &mut LoadPoint, requests: &[MeasuredRequest]) {
    if requests.is_empty() {
        return;
    }
    let own = LoadPoint::of_requests(requests);
    let of = |pick: fn(&MeasuredRequest) -> Option<f64>| {
        LatencyStats::of(requests.iter().filter_map(pick).collect())
    };
    let computed =
        [of(|r| r.ttft_s), of(MeasuredRequest::tpot_s), LatencyStats::default(), of(|r| Some(r.e2e_s))];
    for ((_, stats), computed) in point.latencies_mut().into_iter().zip(computed) {
        for ((_, slot), (_, value)) in stats.named_mut().into_iter().zip(computed.named()) {
            *slot = slot.or(value);
        }
    }
    point.input_tokens = own.input_tokens.or(point.input_tokens);
    point.output_tokens = own.output_tokens.or(point.output_tokens);
}
