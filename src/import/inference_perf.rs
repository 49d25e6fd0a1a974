//! inference-perf (kubernetes-sigs): `stage_N_lifecycle_metrics` and `stage_N_prometheus_metrics`.
//!
//! Everything is in seconds. `time_per_output_token` divides by the chunks of the stream, which may be
//! more or fewer than the tokens; [`super::check`] finds that out and drops it. What was requested is not
//! always sent: the rate offered is `achieved_rate`, and `schedule_delay` says how late requests went out.
//! In the Prometheus form `prompt_len.mean` is no mean per request; lengths are ratios of its rates.

use super::Imported;
use super::error::ImportError;
use super::format::Content;
use super::numbers::MEDIAN;
use super::point::{Arrival, LoadPoint, MeasuredAt, TokenLengths};
use super::tree::At;

pub(super) fn read(into: &mut Imported, name: &str, content: &Content) -> Result<(), ImportError> {
    for at in content.documents(name)? {
        if at.get("successes.rate").is_some() {
            read_prometheus(into, &at)?;
        } else {
            read_lifecycle(into, &at)?;
        }
    }
    Ok(())
}

fn read_lifecycle(into: &mut Imported, at: &At<'_>) -> Result<(), ImportError> {
    let label = at.label();
    let completed = at.count("successes.count")?;
    let failed = at.count("failures.count")?;
    if completed.is_none_or(|count| count == 0) {
        into.refuse(&label, &format!("no request completed ({} failed)", failed.unwrap_or_default()));
        return Ok(());
    }
    let requested = at.amount("load_summary.requested_rate")?;
    let achieved = at.amount("load_summary.achieved_rate")?;
    if requested.is_none() && achieved.is_none() {
        into.refuse(
            &label,
            "a summary over all stages mixes their rates, it is not one load: import stage_N_lifecycle_metrics",
        );
        return Ok(());
    }
    lateness(into, &label, at, requested, achieved)?;
    let throughput = |kind: &str| at.amount(&format!("successes.throughput.{kind}_per_sec"));
    let requests_per_s = throughput("requests")?;
    let latency = |metric: &str| MEDIAN.latency(at, &format!("successes.latency.{metric}"), 1.0);
    let elapsed = || Some(completed? as f64 / requests_per_s.filter(|rate| *rate > 0.0)?);
    into.points.push(LoadPoint {
        label,
        arrival: Arrival::Unknown,
        rate_per_s: achieved.or(requested),
        completed,
        failed,
        duration_s: at.amount("benchmark_time_seconds")?.or_else(elapsed),
        requests_per_s,
        input_tokens_per_s: throughput("input_tokens")?,
        output_tokens_per_s: throughput("output_tokens")?,
        total_tokens_per_s: throughput("total_tokens")?,
        input_tokens: lengths(at, "prompt_len")?,
        output_tokens: lengths(at, "output_len")?,
        ttft: latency("time_to_first_token")?,
        tpot: latency("time_per_output_token")?,
        itl: latency("inter_token_latency")?,
        e2e: latency("request_latency")?,
        ntpot: latency("normalized_time_per_output_token")?,
        ..LoadPoint::default()
    });
    into.understand("seconds; the rate is `achieved_rate`, what was really sent");
    into.understand("normalized_time_per_output_token is our NTPOT");
    into.understand(
        "time_per_output_token and inter_token_latency count chunks; kept only if a chunk is a token",
    );
    into.leave_out(
        "the arrival process: constant or Poisson is in the tool's configuration, not in its report",
    );
    Ok(())
}

fn lengths(at: &At<'_>, key: &str) -> Result<Option<TokenLengths>, ImportError> {
    let Some(at) = at.get(&format!("successes.{key}")) else { return Ok(None) };
    let (min, max) = (at.amount("min")?, at.amount("max")?);
    Ok(at.amount("mean")?.map(|mean| TokenLengths::counted(mean, min, max)))
}

/// Whether the generator kept up with itself.
fn lateness(
    into: &mut Imported,
    label: &str,
    at: &At<'_>,
    requested: Option<f64>,
    achieved: Option<f64>,
) -> Result<(), ImportError> {
    const KEEPS_UP: f64 = 0.95;
    let delay = at.number("load_summary.schedule_delay.mean")?.unwrap_or_default();
    if let (Some(requested), Some(achieved)) = (requested, achieved)
        && achieved < KEEPS_UP * requested
    {
        into.warn(
            label,
            &format!(
                "the load generator did not keep up: {achieved:.1} of {requested:.1} req/s were sent, on average \
                 {delay:.1} s late; the arrivals are bunched, and the latencies do not contain that delay"
            ),
        );
    }
    Ok(())
}

fn read_prometheus(into: &mut Imported, at: &At<'_>) -> Result<(), ImportError> {
    let requests_per_s = at.amount("successes.rate")?.filter(|rate| *rate > 0.0);
    let Some(rate) = requests_per_s else {
        into.refuse(&at.label(), "no request completed in the window of the Prometheus query");
        return Ok(());
    };
    let tokens_per_s = |key: &str| at.amount(&format!("successes.{key}.rate"));
    let (input, output) = (tokens_per_s("prompt_len")?, tokens_per_s("output_len")?);
    let latency = |metric: &str| MEDIAN.latency(at, &format!("successes.{metric}"), 1.0);
    into.points.push(LoadPoint {
        label: at.label(),
        completed: at.count("successes.count")?,
        requests_per_s,
        input_tokens_per_s: input,
        output_tokens_per_s: output,
        total_tokens_per_s: input.zip(output).map(|(input, output)| input + output),
        input_tokens: input.map(|tokens| TokenLengths::mean(tokens / rate)),
        output_tokens: output.map(|tokens| TokenLengths::mean(tokens / rate)),
        ttft: latency("time_to_first_token")?,
        tpot: latency("time_per_output_token")?,
        e2e: latency("request_latency")?,
        measured_at: MeasuredAt::Server,
        ..LoadPoint::default()
    });
    into.understand("measured by the server; lengths are token rates over the request rate");
    into.leave_out("prompt_len.mean and output_len.mean: they are not per request");
    into.warn(
        &at.label(),
        "the window is the Prometheus query's and may reach into other stages; percentiles are interpolated in \
         histogram buckets",
    );
    Ok(())
}
