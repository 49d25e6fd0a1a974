//! The Prometheus text of a vLLM server's `/metrics`: counters since the server started.
//!
//! Latencies are histograms, so percentiles are interpolated in their buckets, as Prometheus does. There is
//! no duration, hence no throughput. `time_per_output_token_seconds` was the old name of
//! `inter_token_latency_seconds` (pooled gaps: our ITL); TPOT is `request_time_per_output_token_seconds`.

use std::collections::BTreeMap;

use super::Imported;
use super::error::{ImportError, Place, quoted};
use super::numbers::small_count;
use super::point::{LatencyStats, LoadPoint, MeasuredAt, ServerFacts, TokenLengths};

/// A sample: labels and value.
type Sample = (Vec<(String, String)>, f64);
/// Samples of vLLM's metrics by name (without `vllm:`).
type Samples = BTreeMap<String, Vec<Sample>>;

pub(super) fn read(into: &mut Imported, name: &str, text: &str) -> Result<(), ImportError> {
    let samples = parse(name, text)?;
    if samples.is_empty() {
        return Err(ImportError::file(name, "no metric named `vllm:`", "the /metrics text of a vLLM server"));
    }
    into.server = server(&samples);
    let ended = |reasons: &[&str]| -> f64 {
        let all = samples.get("request_success_total").map_or(&[][..], Vec::as_slice);
        let of_reason = |labels: &[(String, String)]| reasons.contains(&label(labels, "finished_reason"));
        all.iter().filter(|(labels, _)| of_reason(labels)).map(|(_, value)| value).sum()
    };
    let completed = ended(&["stop", "length"]) as u64;
    if completed == 0 {
        into.leave_out("latencies: no request has ended yet");
        return Ok(());
    }
    let itl = latency(&samples, "inter_token_latency_seconds");
    let point = LoadPoint {
        completed: Some(completed),
        failed: Some(ended(&["abort", "error"]) as u64),
        input_tokens: lengths(&samples, "request_prompt_tokens"),
        output_tokens: lengths(&samples, "request_generation_tokens"),
        ttft: latency(&samples, "time_to_first_token_seconds"),
        tpot: latency(&samples, "request_time_per_output_token_seconds"),
        itl: if itl.is_empty() { latency(&samples, "time_per_output_token_seconds") } else { itl },
        e2e: latency(&samples, "e2e_request_latency_seconds"),
        measured_at: MeasuredAt::Server,
        ..LoadPoint::default()
    };
    into.points.push(point);
    into.understand("means are exact (sum over count); percentiles are interpolated in histogram buckets");
    into.warn(
        "",
        "counters cover the server's whole life, warm-up and all loads mixed, and have no duration: no \
         throughput; take them at the start and the end of one load to measure it",
    );
    say_state(into, &samples);
    Ok(())
}

fn label<'a>(labels: &'a [(String, String)], key: &str) -> &'a str {
    labels.iter().find(|(name, _)| name == key).map_or("", |(_, value)| value)
}

/// The sum of a counter over engines.
fn total(samples: &Samples, name: &str) -> Option<f64> {
    samples.get(name).map(|samples| samples.iter().map(|(_, value)| value).sum())
}

fn say_state(into: &mut Imported, samples: &Samples) {
    let hits = total(samples, "prefix_cache_hits_total");
    let queries = total(samples, "prefix_cache_queries_total").filter(|queries| *queries > 0.0);
    if let (Some(hits), Some(queries)) = (hits, queries) {
        into.understand(&format!(
            "prefix cache: {:.1} % of the prompt tokens were found in it",
            100.0 * hits / queries
        ));
    }
    if let Some(preemptions) = total(samples, "num_preemptions_total") {
        into.understand(&format!("{preemptions:.0} preemptions"));
    }
    if let (Some(running), Some(waiting)) =
        (total(samples, "num_requests_running"), total(samples, "num_requests_waiting"))
    {
        into.understand(&format!("at this moment {running:.0} requests run and {waiting:.0} wait"));
    }
}

fn server(samples: &Samples) -> ServerFacts {
    let config = samples.get("cache_config_info").and_then(|samples| samples.first());
    let get = |key: &str| config.map_or("", |(labels, _)| label(labels, key));
    let whole = |key: &str| get(key).parse::<u64>().ok();
    let model = samples.values().flatten().map(|(labels, _)| label(labels, "model_name"));
    ServerFacts {
        model: model.into_iter().find(|name| !name.is_empty()).map(String::from),
        engine: Some("vllm".to_owned()),
        block_size: whole("block_size").and_then(small_count),
        gpu_memory_utilization: get("gpu_memory_utilization").parse().ok().filter(|u: &f64| u.is_finite()),
        kv_cache_dtype: Some(get("cache_dtype")).filter(|dtype| !dtype.is_empty()).map(String::from),
        enable_prefix_caching: match get("enable_prefix_caching") {
            "True" => Some(true),
            "False" => Some(false),
            _ => None,
        },
        num_gpu_blocks: whole("num_gpu_blocks"),
        kv_cache_tokens: whole("kv_cache_size_tokens"),
        max_concurrency: get("kv_cache_max_concurrency").parse().ok().filter(|c: &f64| c.is_finite()),
        ..ServerFacts::default()
    }
}

fn lengths(samples: &Samples, name: &str) -> Option<TokenLengths> {
    let count = total(samples, &format!("{name}_count")).filter(|count| *count > 0.0)?;
    Some(TokenLengths::mean(total(samples, &format!("{name}_sum"))? / count))
}

fn latency(samples: &Samples, name: &str) -> LatencyStats {
    let count = total(samples, &format!("{name}_count")).filter(|count| *count > 0.0);
    let Some(count) = count else { return LatencyStats::default() };
    let mut buckets: Vec<(f64, f64)> = Vec::new();
    for (labels, value) in samples.get(&format!("{name}_bucket")).into_iter().flatten() {
        let Ok(bound) = label(labels, "le").replace("+Inf", "inf").parse::<f64>() else { continue };
        match buckets.iter_mut().find(|(known, _)| *known == bound) {
            Some((_, sum)) => *sum += value,
            None => buckets.push((bound, *value)),
        }
    }
    buckets.sort_by(|a, b| a.0.total_cmp(&b.0));
    LatencyStats {
        mean_s: total(samples, &format!("{name}_sum")).map(|sum| sum / count),
        p50_s: quantile(&buckets, 0.5),
        p90_s: quantile(&buckets, 0.9),
        p95_s: quantile(&buckets, 0.95),
        p99_s: quantile(&buckets, 0.99),
    }
}

/// Linear within the bucket that holds it; `None` in the last, which has no end.
fn quantile(buckets: &[(f64, f64)], q: f64) -> Option<f64> {
    let rank = q * buckets.last()?.1;
    let index = buckets.iter().position(|(_, cumulated)| *cumulated >= rank)?;
    let (bound, cumulated) = buckets[index];
    let (lower, before) = index.checked_sub(1).map_or((0.0, 0.0), |index| buckets[index]);
    let inside = cumulated - before;
    (bound.is_finite() && inside > 0.0).then(|| lower + (bound - lower) * (rank - before) / inside)
}

/// vLLM's samples of a text in Prometheus' exposition format.
fn parse(file: &str, text: &str) -> Result<Samples, ImportError> {
    let mut samples = Samples::new();
    for (number, line) in (1_u64..).zip(text.lines()) {
        let Some(rest) = line.trim().strip_prefix("vllm:") else { continue };
        let sample = parse_sample(rest).ok_or_else(|| ImportError::Value {
            place: Place { file: file.to_owned(), line: Some(number), key: String::new() },
            found: quoted(line.trim()),
            expected: "`name{label=\"value\"} number`".to_owned(),
        })?;
        samples.entry(sample.0).or_default().push(sample.1);
    }
    Ok(samples)
}

fn parse_sample(text: &str) -> Option<(String, Sample)> {
    let end = text.find(['{', ' '])?;
    let (name, mut rest) = text.split_at(end);
    let mut labels = Vec::new();
    if let Some(inside) = rest.strip_prefix('{') {
        rest = inside;
        while !rest.starts_with('}') {
            let (key, value) = rest.split_once("=\"")?;
            let close = closing_quote(value)?;
            labels.push((key.trim_start_matches([',', ' ']).to_owned(), value[..close].to_owned()));
            rest = value[close + 1..].trim_start_matches([',', ' ']);
        }
        rest = &rest[1..];
    }
    // A time stamp may follow the value.
    let value: f64 = rest.split_whitespace().next()?.parse().ok()?;
    (value.is_finite() && value >= 0.0).then(|| (name.to_owned(), (labels, value)))
}

/// The first quote that no backslash escapes.
fn closing_quote(text: &str) -> Option<usize> {
    let mut escaped = false;
    for (index, byte) in text.bytes().enumerate() {
        match byte {
            b'"' if !escaped => return Some(index),
            b'\\' => escaped = !escaped,
            _ => escaped = false,
        }
    }
    None
}
