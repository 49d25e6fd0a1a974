//! llmperf's summary (2023-08-31): flat keys `results_<metric>_quantiles_pXX` in seconds.
//!
//! Its `inter_token_latency_s` is E2E over all output tokens, the first included: our NTPOT. Our TPOT is
//! not in it: the mean of its quotient is not the quotient of means where outputs vary.

use super::Imported;
use super::error::ImportError;
use super::format::Content;
use super::numbers::small_count;
use super::point::{Arrival, LatencyStats, LoadPoint, ServerFacts, TokenLengths};
use super::tree::At;

pub(super) fn read(into: &mut Imported, name: &str, content: &Content) -> Result<(), ImportError> {
    for at in content.documents(name)? {
        let completed = at.count("results_num_completed_requests")?;
        if completed == Some(0) {
            into.refuse(&at.label(), "no request completed");
            continue;
        }
        into.points.push(point(&at, completed)?);
    }
    into.understand("inter_token_latency_s divides E2E by all output tokens: it is our NTPOT");
    into.leave_out("TPOT and ITL: the file does not have them; per-request output throughput");
    Ok(())
}

fn point(at: &At<'_>, completed: Option<u64>) -> Result<LoadPoint, ImportError> {
    const SECONDS_PER_MINUTE: f64 = 60.0;
    let requests_per_s =
        at.amount("results_num_completed_requests_per_min")?.map(|rate| rate / SECONDS_PER_MINUTE);
    let input = lengths(at, "results_number_input_tokens")?;
    let output_tokens_per_s = at.amount("results_mean_output_throughput_token_per_s")?;
    let input_tokens_per_s = requests_per_s.zip(input).map(|(rate, input)| rate * input.mean);
    let concurrency = at.count("num_concurrent_requests")?.and_then(small_count);
    Ok(LoadPoint {
        label: at.label(),
        arrival: if concurrency.is_some() { Arrival::Closed } else { Arrival::Unknown },
        concurrency,
        completed,
        failed: at.count("results_number_errors")?,
        duration_s: requests_per_s.filter(|rate| *rate > 0.0).zip(completed).map(|(rate, n)| n as f64 / rate),
        requests_per_s,
        input_tokens_per_s,
        output_tokens_per_s,
        total_tokens_per_s: input_tokens_per_s.zip(output_tokens_per_s).map(|(input, output)| input + output),
        input_tokens: input,
        output_tokens: lengths(at, "results_number_output_tokens")?,
        ttft: latency(at, "results_ttft_s")?,
        e2e: latency(at, "results_end_to_end_latency_s")?,
        ntpot: latency(at, "results_inter_token_latency_s")?,
        server: ServerFacts { model: at.text("model")?.map(String::from), ..ServerFacts::default() },
        ..LoadPoint::default()
    })
}

fn latency(at: &At<'_>, name: &str) -> Result<LatencyStats, ImportError> {
    let quantile = |q: &str| at.amount(&format!("{name}_quantiles_{q}"));
    Ok(LatencyStats {
        mean_s: at.amount(&format!("{name}_mean"))?,
        p50_s: quantile("p50")?,
        p90_s: quantile("p90")?,
        p95_s: quantile("p95")?,
        p99_s: quantile("p99")?,
    })
}

fn lengths(at: &At<'_>, name: &str) -> Result<Option<TokenLengths>, ImportError> {
    let (min, max) = (at.amount(&format!("{name}_min"))?, at.amount(&format!("{name}_max"))?);
    Ok(at.amount(&format!("{name}_mean"))?.map(|mean| TokenLengths::counted(mean, min, max)))
}
