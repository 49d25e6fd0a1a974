//! llm-d's benchmark report, 0.1 (`metrics`) and 0.2 (`results.request_performance`), YAML or JSON.
//!
//! Every quantity carries its unit, and the unit is obeyed; an unknown one is an error. The report is
//! made from another tool's result, so `time_per_output_token` may count chunks as inference-perf's does.

use super::Imported;
use super::error::ImportError;
use super::format::Content;
use super::numbers::{MEAN, seconds_in, small_count};
use super::point::{Arrival, LatencyStats, LoadPoint, ServerFacts, TokenLengths};
use super::tree::{At, Node};

pub(super) fn read(into: &mut Imported, name: &str, content: &Content) -> Result<(), ImportError> {
    for at in content.documents(name)? {
        read_report(into, &at)?;
    }
    into.understand("each quantity in the unit it names; normalized_time_per_output_token is our NTPOT");
    into.understand("time_per_output_token may count chunks; kept only if they add up to the tokens");
    into.leave_out("service, resource, session and observability metrics");
    Ok(())
}

fn read_report(into: &mut Imported, at: &At<'_>) -> Result<(), ImportError> {
    let old = at.get("metrics");
    let Some(metrics) = old.clone().or_else(|| at.get("results.request_performance.aggregate")) else {
        into.refuse(
            &at.label(),
            "the report has no `metrics` and no `results.request_performance.aggregate`",
        );
        return Ok(());
    };
    let total = metrics.count("requests.total")?;
    let lost =
        metrics.count("requests.failures")?.unwrap_or(0) + metrics.count("requests.incomplete")?.unwrap_or(0);
    let completed = total.map(|total| total.saturating_sub(lost));
    if completed == Some(0) {
        into.refuse(&at.label(), &format!("no request completed ({lost} failed)"));
        return Ok(());
    }
    let rate = |plain: &str, with_unit: &str| -> Result<Option<f64>, ImportError> {
        Ok(metrics
            .amount(&format!("throughput.{plain}"))?
            .or(metrics.amount(&format!("throughput.{with_unit}.mean"))?))
    };
    let latency = |name: &str| latency(&metrics, &format!("latency.{name}"));
    let load = at.get("scenario.load.standardized");
    let from_load = |key: &str| load.as_ref().map_or(Ok(None), |load| finite(load, key));
    let rate_per_s = from_load("rate_qps")?;
    let concurrency = from_load("concurrency")?.and_then(|users| small_count(users as u64));
    let server = if old.is_some() { old_server(into, at)? } else { new_server(into, at)? };
    into.points.push(LoadPoint {
        label: at.label(),
        arrival: if rate_per_s.is_none() && concurrency.is_some() {
            Arrival::Closed
        } else {
            Arrival::Unknown
        },
        rate_per_s,
        concurrency,
        completed,
        failed: metrics.count("requests.failures")?,
        duration_s: metrics.amount("time.duration")?,
        requests_per_s: rate("requests_per_sec", "request_rate")?,
        input_tokens_per_s: rate("input_tokens_per_sec", "input_token_rate")?,
        output_tokens_per_s: rate("output_tokens_per_sec", "output_token_rate")?,
        total_tokens_per_s: rate("total_tokens_per_sec", "total_token_rate")?,
        input_tokens: lengths(&metrics, "requests.input_length")?,
        output_tokens: lengths(&metrics, "requests.output_length")?,
        ttft: latency("time_to_first_token")?,
        tpot: latency("time_per_output_token")?,
        itl: latency("inter_token_latency")?,
        e2e: latency("request_latency")?,
        ntpot: latency("normalized_time_per_output_token")?,
        server,
        ..LoadPoint::default()
    });
    Ok(())
}

/// A number that may be infinite for "no limit".
fn finite(at: &At<'_>, key: &str) -> Result<Option<f64>, ImportError> {
    match at.get(key) {
        Some(at) if matches!(at.node, Node::Number(number) if number.is_infinite()) => Ok(None),
        _ => at.amount(key).map(|number| number.filter(|number| *number > 0.0)),
    }
}

fn latency(metrics: &At<'_>, key: &str) -> Result<LatencyStats, ImportError> {
    let Some(unit) = metrics.get(&format!("{key}.units")) else { return Ok(LatencyStats::default()) };
    let text = metrics.text(&format!("{key}.units"))?.unwrap_or_default();
    let to_seconds =
        seconds_in(text).ok_or_else(|| unit.error("a unit of time such as `ms` or `s/token`"))?;
    MEAN.latency(metrics, key, to_seconds)
}

fn lengths(metrics: &At<'_>, key: &str) -> Result<Option<TokenLengths>, ImportError> {
    let Some(at) = metrics.get(key) else { return Ok(None) };
    let (min, max) = (at.amount("min")?, at.amount("max")?);
    Ok(at.amount("mean")?.map(|mean| TokenLengths::counted(mean, min, max)))
}

/// 0.1: one entry of `host` and `platform` per instance.
fn old_server(into: &mut Imported, at: &At<'_>) -> Result<ServerFacts, ImportError> {
    let accelerators = at.items("scenario.host.accelerator")?;
    let engines = at.items("scenario.platform.engine")?;
    let mut facts = ServerFacts {
        model: at.text("scenario.model.name")?.map(String::from),
        quantization: at.text("scenario.model.quantization")?.map(String::from),
        ..ServerFacts::default()
    };
    if let Some(engine) = engines.first() {
        facts.engine = engine.text("name")?.map(str::to_lowercase);
        facts.version = engine.text("version")?.map(String::from);
    }
    if let Some(first) = accelerators.first() {
        facts.gpu = first.text("model")?.map(String::from);
    }
    let widths: Vec<Option<u64>> =
        accelerators.iter().map(|one| one.count("parallelism.tp")).collect::<Result<_, _>>()?;
    if widths.windows(2).any(|pair| pair[0] != pair[1]) {
        into.warn(&at.label(), "instances differ (prefill and decode?); parallelism is left out");
    } else {
        facts.tensor_parallel_size = widths.first().copied().flatten().and_then(small_count);
        facts.replicas = small_count(accelerators.len() as u64);
    }
    Ok(facts)
}

/// 0.2: the components of `stack` that are inference engines.
fn new_server(into: &mut Imported, at: &At<'_>) -> Result<ServerFacts, ImportError> {
    let mut engines = Vec::new();
    for component in at.items("scenario.stack")? {
        if component.text("standardized.kind")? == Some("inference_engine") {
            engines.push(component);
        }
    }
    if engines.len() > 1 {
        into.warn(
            &at.label(),
            "several kinds of engine serve together (prefill and decode?); the first is described",
        );
    }
    let Some(engine) = engines.first().and_then(|engine| engine.get("standardized")) else {
        return Ok(ServerFacts::default());
    };
    let small = |key: &str| Ok::<_, ImportError>(engine.count(key)?.and_then(small_count));
    let tool = engine.text("tool")?.unwrap_or_default();
    Ok(ServerFacts {
        model: engine.text("model.name")?.map(String::from),
        gpu: engine.text("accelerator.model")?.map(String::from),
        // llm-d's own images run vLLM, of a version that their tag does not tell.
        engine: matches!(tool, "vllm" | "llm-d").then(|| "vllm".to_owned()),
        version: if tool == "vllm" { engine.text("tool_version")?.map(String::from) } else { None },
        tensor_parallel_size: small("accelerator.parallelism.tp")?,
        pipeline_parallel_size: small("accelerator.parallelism.pp")?,
        data_parallel_size: small("accelerator.parallelism.dp")?,
        replicas: small("replicas")?,
        ..ServerFacts::default()
    })
}
