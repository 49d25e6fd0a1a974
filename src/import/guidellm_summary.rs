//! The flat summary that guidellm-results-parser makes of a guidellm benchmark.
//!
//! Its trap: `request_latency_*_ms` is copied from guidellm's `request_latency` and is in seconds.
//! Lengths are the configured ones.

use super::Imported;
use super::error::ImportError;
use super::format::Content;
use super::numbers::small_count;
use super::point::{Arrival, LatencyStats, LengthKind, LoadPoint, ServerFacts, TokenLengths};
use super::tree::At;

pub(super) fn read(into: &mut Imported, name: &str, content: &Content) -> Result<(), ImportError> {
    for at in content.documents(name)? {
        let completed = at.count("successful_requests")?;
        if completed == Some(0) {
            into.refuse(&at.label(), "no request was successful: its zeros are not latencies");
            continue;
        }
        into.points.push(point(&at, completed)?);
    }
    into.understand("itl is our TPOT (guidellm's inter-token latency), weighted by output tokens");
    into.understand("request_latency_*_ms is in seconds, whatever its name says");
    into.leave_out(
        "time_per_output_token: not TPOT; total tokens per second: early guidellm counts prompts twice",
    );
    Ok(())
}

fn point(at: &At<'_>, completed: Option<u64>) -> Result<LoadPoint, ImportError> {
    let stats = |name: &str, to_seconds: f64| {
        let value = |statistic| at.amount(&format!("{name}_{statistic}_ms"));
        Ok::<_, ImportError>(LatencyStats {
            mean_s: value("mean")?.map(|value| value * to_seconds),
            p99_s: value("p99")?.map(|value| value * to_seconds),
            ..LatencyStats::default()
        })
    };
    let nominal = |key: &str| {
        let mean = at.amount(key)?;
        Ok::<_, ImportError>(mean.map(|mean| TokenLengths { mean, kind: LengthKind::Nominal }))
    };
    let rate = at.amount("rate")?;
    let (arrival, rate_per_s, concurrency) = match at.text("strategy")?.unwrap_or_default() {
        "constant" => (Arrival::Constant, rate, None),
        "poisson" => (Arrival::Poisson, rate, None),
        "concurrent" => (Arrival::Closed, None, rate.and_then(|users| small_count(users as u64))),
        "synchronous" => (Arrival::Closed, None, Some(1)),
        "throughput" => (Arrival::AllAtOnce, None, None),
        _ => (Arrival::Unknown, rate, None),
    };
    Ok(LoadPoint {
        label: at.label(),
        arrival,
        rate_per_s,
        concurrency,
        completed,
        failed: at.count("errored_requests")?,
        duration_s: at.amount("duration")?,
        requests_per_s: at.amount("throughput_mean_rps")?,
        output_tokens_per_s: at.amount("output_tokens_per_second_mean")?,
        input_tokens: nominal("prompt_tokens")?,
        output_tokens: nominal("output_tokens")?,
        ttft: stats("ttft", 1e-3)?,
        tpot: stats("itl", 1e-3)?,
        e2e: stats("request_latency", 1.0)?,
        server: ServerFacts { model: at.text("backend_model")?.map(String::from), ..ServerFacts::default() },
        ..LoadPoint::default()
    })
}
