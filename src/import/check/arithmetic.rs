//! Laws that hold on any hardware: latencies that add up, Little's law, counts that agree.

use crate::import::point::{Arrival, LatencyStats, LengthKind, LoadPoint, MeasuredAt};
use crate::import::{Format, Imported};

/// Time per token below which no server of any kind works, so the unit must be wrong. The fastest
/// published single-user speeds (wafer-scale, 2025) are about 0.3 ms.
const FASTEST_TPOT_S: f64 = 1e-4;
/// Deviation that rounding, ramps and the mean of a product against the product of means explain.
const TOLERANCE: f64 = 0.1;

/// Checks every point of `imported`.
pub(in crate::import) fn arithmetic(imported: &mut Imported) {
    let reasons = imported.points.iter().map(impossible).collect();
    imported.refuse_points(reasons);
    let format = imported.format;
    let mut doubts: Vec<(String, String)> = Vec::new();
    for point in &mut imported.points {
        let mut found = Vec::new();
        found.extend(chunks_in_tpot(point, format));
        found.extend(chunks_in_itl(point));
        found.extend(total_tokens(point));
        found.extend(outputs(point));
        found.extend(counts(point));
        found.extend(little(point));
        found.extend(offered(point));
        doubts.extend(found.into_iter().map(|text| (point.label.clone(), text)));
    }
    for (label, text) in doubts {
        imported.warn(&label, &text);
    }
}

/// Why a point is none, or cannot be true on any hardware.
fn impossible(point: &LoadPoint) -> Option<String> {
    let rates = [point.requests_per_s, point.output_tokens_per_s, point.total_tokens_per_s];
    if point.latencies().iter().all(|(_, stats)| stats.is_empty()) && rates.iter().all(Option::is_none) {
        return Some("it has no latency and no throughput".to_owned());
    }
    let (ttft, e2e) = (point.ttft.mean_s, point.e2e.mean_s);
    let output = point.output_tokens.map(|lengths| lengths.mean);
    if let (Some(ttft), Some(e2e)) = (ttft, e2e) {
        let answers_are_long = output.is_some_and(|output| output >= 2.0);
        if e2e < ttft || (answers_are_long && e2e == ttft) {
            return Some(format!(
                "mean E2E ({}) does not exceed mean TTFT ({}) though answers have {} tokens",
                ms(e2e),
                ms(ttft),
                output.map_or_else(|| "several".to_owned(), |output| format!("{output:.0}"))
            ));
        }
    }
    let tpot = point.tpot.mean_s.filter(|tpot| *tpot < FASTEST_TPOT_S)?;
    Some(format!(
        "mean TPOT is {tpot:.2e} s: no server is that fast, so the figures are not in the unit the file names \
         (seconds called ms?)"
    ))
}

/// Mean gap between tokens, weighted by tokens: exact if lengths are counted.
fn gap_per_token(point: &LoadPoint) -> Option<f64> {
    let lengths = point.output_tokens.filter(|lengths| lengths.kind != LengthKind::Nominal)?;
    let tokens = lengths.mean - 1.0;
    let gap = (point.e2e.mean_s? - point.ttft.mean_s?) / tokens;
    (tokens > 0.5 && gap > 0.0).then_some(gap)
}

/// Drops a TPOT that divides by chunks. Only some tools do; with the others a deviation comes from long
/// answers being slower than short ones.
fn chunks_in_tpot(point: &mut LoadPoint, format: Format) -> Option<String> {
    const SAME: std::ops::RangeInclusive<f64> = 0.8..=1.25;
    if !matches!(format, Format::InferencePerf | Format::LlmdReport)
        || point.measured_at == MeasuredAt::Server
    {
        return None;
    }
    let gap = gap_per_token(point)?;
    let chunks_per_token = gap / point.tpot.mean_s?;
    if SAME.contains(&chunks_per_token) {
        return None;
    }
    point.tpot = LatencyStats::default();
    point.itl = LatencyStats::default();
    Some(format!(
        "time per output token counts chunks, {chunks_per_token:.2} per token, so TPOT and ITL are left out; \
         (E2E - TTFT) / (output - 1) gives {} per token",
        ms(gap)
    ))
}

/// Drops an ITL that is a gap between chunks: pooled gaps must add up to the time after the first token.
fn chunks_in_itl(point: &mut LoadPoint) -> Option<String> {
    let chunks_per_token = gap_per_token(point)? / point.itl.mean_s?;
    if (chunks_per_token - 1.0).abs() <= TOLERANCE || point.measured_at == MeasuredAt::Server {
        return None;
    }
    point.itl = LatencyStats::default();
    Some(format!(
        "gaps were taken between chunks, {chunks_per_token:.2} per token, not between tokens, so ITL is left out \
         (speculative decoding and stream intervals bundle tokens)"
    ))
}

/// Drops a total that is not the sum of its parts.
fn total_tokens(point: &mut LoadPoint) -> Option<String> {
    let per_request = point.input_tokens?.mean + point.output_tokens?.mean;
    let expected = point.requests_per_s? * per_request;
    let total = point.total_tokens_per_s?;
    if !off(total, expected) || nominal(point) {
        return None;
    }
    point.total_tokens_per_s = None;
    Some(format!(
        "total throughput is {total:.1} tok/s where requests and lengths give {expected:.1}; it is left out"
    ))
}

fn nominal(point: &LoadPoint) -> bool {
    let lengths = [point.input_tokens, point.output_tokens];
    lengths.iter().flatten().any(|lengths| lengths.kind == LengthKind::Nominal)
}

fn outputs(point: &LoadPoint) -> Option<String> {
    let expected = point.requests_per_s? * point.output_tokens?.mean;
    let output = point.output_tokens_per_s?;
    (off(output, expected) && !nominal(point)).then(|| {
        format!(
            "output throughput is {output:.1} tok/s where completed requests and their lengths give {expected:.1}: \
             the two are over different windows or requests"
        )
    })
}

fn counts(point: &LoadPoint) -> Option<String> {
    let completed = point.completed? as f64;
    let expected = point.requests_per_s? * point.duration_s?;
    // One request at the edge of the window is no contradiction.
    (off(expected, completed) && (expected - completed).abs() > 1.5).then(|| {
        format!(
            "{completed} requests completed, but throughput times duration gives {expected:.1}: they are over \
             different windows"
        )
    })
}

/// Little's law: completed per second times E2E is the mean number in flight, which a client bounds.
fn little(point: &LoadPoint) -> Option<String> {
    let users = f64::from(point.concurrency?);
    if point.measured_at == MeasuredAt::Server {
        return None;
    }
    let in_flight = point.in_flight()?;
    if in_flight > (1.0 + TOLERANCE) * users {
        return Some(format!(
            "by Little's law {in_flight:.1} requests were in flight on average, more than the {users:.0} that the \
             client allows: throughput, latency or concurrency is not what it is called"
        ));
    }
    let closed = point.arrival == Arrival::Closed;
    (closed && in_flight < (1.0 - 2.0 * TOLERANCE) * users).then(|| {
        format!(
            "by Little's law {in_flight:.1} requests were in flight on average, not {users:.0}: ramp and drain of a \
             short run, or a client that does not keep up"
        )
    })
}

/// Completed against offered, where a rate is offered.
fn offered(point: &LoadPoint) -> Option<String> {
    let (rate, completed) = (point.rate_per_s?, point.requests_per_s?);
    if point.measured_at == MeasuredAt::Server
        || matches!(point.arrival, Arrival::Closed | Arrival::AllAtOnce)
    {
        return None;
    }
    // Poisson counts scatter by the root of their number.
    let scatter = 4.0 / (point.completed.unwrap_or(1).max(1) as f64).sqrt();
    if completed > rate * (1.0 + TOLERANCE + scatter) {
        return Some(format!("{completed:.2} req/s completed, more than the {rate:.2} offered"));
    }
    (completed < rate * (1.0 - TOLERANCE)).then(|| {
        format!(
            "{completed:.2} of {rate:.2} req/s offered were completed: overload or a short run's ramp and drain; \
             its latencies depend on how long the run was"
        )
    })
}

/// Whether two figures that should agree do not.
fn off(found: f64, expected: f64) -> bool {
    expected > 0.0 && (found / expected - 1.0).abs() > TOLERANCE
}

fn ms(seconds: f64) -> String {
    format!("{:.2} ms", seconds * 1e3)
}
