//! guidellm's report: `{benchmarks: [{metrics: {name: {successful: {mean, median, percentiles}}}}]}`.
//!
//! Only requests that ended well count, so only `successful` is read. Up to 0.3 a benchmark has `args` and
//! `worker`, since 0.4 `config`. Latency of a request is in seconds, everything named `_ms` in ms.
//! `inter_token_latency_ms` is (last - first token) / (tokens - 1) of a request, so our TPOT, but its
//! statistics weigh each request by its tokens. `time_per_output_token_ms` is not our TPOT: since 0.4 it
//! includes the time to the first token (our NTPOT), before it divides by one token too many. Which of the
//! two a file has is told by arithmetic.

use super::Imported;
use super::error::ImportError;
use super::format::Content;
use super::numbers::{PERCENTILES, small_count};
use super::point::{Arrival, LatencyStats, LoadPoint, MeasuredRequest, ServerFacts, TokenLengths};
use super::tree::At;

pub(super) fn read(into: &mut Imported, name: &str, content: &Content) -> Result<(), ImportError> {
    for report in content.documents(name)? {
        if let Some(version) = report.text("metadata.guidellm_version")? {
            into.understand(&format!("written by guidellm {version}"));
        }
        for benchmark in report.items("benchmarks")? {
            read_benchmark(into, &report, &benchmark)?;
        }
    }
    into.understand(
        "successful requests only; inter_token_latency is our TPOT, its statistics weighted by output tokens",
    );
    into.leave_out("our ITL (gaps are not in the report), peak and per-second distributions");
    Ok(())
}

fn read_benchmark(into: &mut Imported, report: &At<'_>, at: &At<'_>) -> Result<(), ImportError> {
    let label = at.label();
    let good = at.count("metrics.request_latency.successful.count")?;
    if good.is_none_or(|count| count == 0) {
        into.refuse(&label, "no request was successful: its zeros are not latencies");
        return Ok(());
    }
    let metric = |name: &str| format!("metrics.{name}.successful");
    let mean = |name: &str| at.amount(&format!("metrics.{name}.successful.mean"));
    let requests_per_s = mean("requests_per_second")?;
    let input = lengths(at, "prompt_token_count")?;
    let mut point = LoadPoint {
        label,
        completed: good,
        failed: totals(at, "errored")?,
        duration_s: at.amount("duration")?,
        requests_per_s,
        input_tokens_per_s: requests_per_s.zip(input).map(|(rate, input)| rate * input.mean),
        output_tokens_per_s: mean("output_tokens_per_second")?,
        total_tokens_per_s: mean("tokens_per_second")?,
        input_tokens: input,
        output_tokens: lengths(at, "output_token_count")?,
        ttft: PERCENTILES.latency(at, &metric("time_to_first_token_ms"), 1e-3)?,
        tpot: PERCENTILES.latency(at, &metric("inter_token_latency_ms"), 1e-3)?,
        e2e: PERCENTILES.latency(at, &metric("request_latency"), 1.0)?,
        server: server(report, at)?,
        ..LoadPoint::default()
    };
    if point.output_tokens.is_some_and(|lengths| lengths.mean <= 1.0) {
        point.tpot = LatencyStats::default();
    }
    let per_token = PERCENTILES.latency(at, &metric("time_per_output_token_ms"), 1e-3)?;
    set_ntpot(into, &mut point, per_token);
    set_load(&mut point, at)?;
    window(into, at)?;
    let requests = requests(into, at, point.completed)?;
    into.requests.extend(requests);
    into.points.push(point);
    Ok(())
}

fn lengths(at: &At<'_>, name: &str) -> Result<Option<TokenLengths>, ImportError> {
    let Some(at) = at.get(&format!("metrics.{name}.successful")) else { return Ok(None) };
    let (min, max) = (at.amount("min")?, at.amount("max")?);
    // A mean summed in floating point may miss a constant by a bit.
    let mean = if min == max { min } else { at.amount("mean")? };
    Ok(mean.map(|mean| TokenLengths::counted(mean, min, max)))
}

/// Requests of a kind over the whole benchmark, by whichever of its counters is the larger.
fn totals(at: &At<'_>, kind: &str) -> Result<Option<u64>, ImportError> {
    let mut largest = None;
    for place in [
        "request_totals",
        "metrics.request_totals",
        "run_stats.requests_made",
        "scheduler_metrics.requests_made",
    ] {
        largest = largest.max(at.count(&format!("{place}.{kind}"))?);
    }
    Ok(largest)
}

/// Decides by arithmetic what time per output token means in this file.
fn set_ntpot(into: &mut Imported, point: &mut LoadPoint, per_token: LatencyStats) {
    let known = (per_token.mean_s, point.e2e.mean_s, point.ttft.mean_s, point.output_tokens);
    let (Some(mean), Some(e2e), Some(ttft), Some(output)) = known else { return };
    let includes_first = (mean * output.mean - e2e).abs() < (mean * output.mean - (e2e - ttft)).abs();
    if includes_first {
        into.understand("time_per_output_token includes the first token: it is our NTPOT");
        point.ntpot = per_token;
    } else {
        into.leave_out(
            "time_per_output_token: this version divides (last - first token) by all tokens, which is neither \
             TPOT nor NTPOT",
        );
    }
}

fn set_load(point: &mut LoadPoint, at: &At<'_>) -> Result<(), ImportError> {
    let Some(strategy) = at.get("config.strategy").or_else(|| at.get("args.strategy")) else { return Ok(()) };
    let limit = strategy.count("streams")?.or(strategy.count("max_concurrency")?);
    point.concurrency = limit.and_then(small_count);
    let kind = strategy.text("type_")?.unwrap_or_default();
    let rate = strategy.amount("rate")?.filter(|rate| *rate > 0.0);
    (point.arrival, point.rate_per_s) = match kind {
        "constant" | "async" => (Arrival::Constant, rate),
        "poisson" => (Arrival::Poisson, rate),
        "concurrent" => (Arrival::Closed, None),
        "synchronous" => {
            point.concurrency = Some(1);
            (Arrival::Closed, None)
        }
        // As many as the limit allows, at once.
        "throughput" if point.concurrency.is_some() => (Arrival::Closed, None),
        "throughput" => (Arrival::AllAtOnce, None),
        _ => (Arrival::Unknown, rate),
    };
    Ok(())
}

fn server(report: &At<'_>, at: &At<'_>) -> Result<ServerFacts, ImportError> {
    let mut model = None;
    for (at, path) in [
        (at, "config.backend.model"),
        (at, "worker.backend_model"),
        (report, "args.model"),
        (report, "config.spec.backend.model"),
    ] {
        model = model.or(at.text(path)?);
    }
    Ok(ServerFacts { model: model.map(String::from), ..ServerFacts::default() })
}

fn window(into: &mut Imported, at: &At<'_>) -> Result<(), ImportError> {
    let trimmed =
        at.amount("warmup_duration")?.unwrap_or(0.0) + at.amount("cooldown_duration")?.unwrap_or(0.0);
    if trimmed > 0.0 {
        into.understand(
            "warm-up and cool-down are outside the window of the statistics, inside the requests",
        );
    }
    Ok(())
}

/// All requests that ended well, if the report has all of them.
fn requests(
    into: &mut Imported,
    at: &At<'_>,
    good: Option<u64>,
) -> Result<Vec<MeasuredRequest>, ImportError> {
    let items = at.items("requests.successful")?;
    let made = totals(at, "successful")?.max(good).unwrap_or_default();
    if items.is_empty() {
        return Ok(Vec::new());
    }
    if (items.len() as u64) < made {
        into.leave_out("requests: the report holds a sample of them, which cannot be replayed");
        return Ok(Vec::new());
    }
    let mut requests = Vec::with_capacity(items.len());
    for item in &items {
        let request = request(into.points.len(), item)?;
        let Some(request) = request else {
            into.leave_out("requests: some have no token counts or times");
            return Ok(Vec::new());
        };
        requests.push(request);
    }
    let first = requests.iter().map(|request| request.send_s).fold(f64::INFINITY, f64::min);
    for request in &mut requests {
        request.send_s -= first;
    }
    requests.sort_by(|a, b| a.send_s.total_cmp(&b.send_s));
    into.understand("per request: send time, tokens, TTFT and latency of every successful request");
    if totals(at, "incomplete")?.is_some_and(|count| count > 0) {
        into.leave_out("incomplete requests: cut off at the end, they loaded the server and have no latency");
    }
    Ok(requests)
}

/// One request, its send time on the wall clock; `None` if something is missing.
fn request(point: usize, at: &At<'_>) -> Result<Option<MeasuredRequest>, ImportError> {
    let tokens = |path: &str| Ok::<_, ImportError>(at.count(path)?.and_then(|n| u32::try_from(n).ok()));
    let start = at.number("request_start_time")?.or(at.number("start_time")?);
    let (Some(send_s), Some(input_tokens), Some(output_tokens), Some(e2e_s)) =
        (start, tokens("prompt_tokens")?, tokens("output_tokens")?, at.amount("request_latency")?)
    else {
        return Ok(None);
    };
    let ttft_s = at.amount("time_to_first_token_ms")?.map(|ms| ms * 1e-3);
    Ok(Some(MeasuredRequest { point, send_s, input_tokens, output_tokens, ttft_s, e2e_s }))
}
