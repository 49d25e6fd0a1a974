//! What a result says in words: objectives, the finding, what a token costs at capacity.

use crate::experiment::{self, CurveReading, Point, SloVerdict, StabilityLimit, SweepResult, Verdict};
use crate::metrics::Totals;
use crate::report::fold;
use crate::report::format::{self, chosen, counted};
use crate::workload::{Metric, Objective, Statistic};

/// The metric's name as users know it; end-to-end latency keeps vLLM's abbreviation only in its own table.
#[must_use]
pub const fn metric_name(metric: Metric) -> &'static str {
    match metric {
        Metric::Ttft => "TTFT",
        Metric::Tpot => "TPOT",
        Metric::Itl => "ITL",
        Metric::E2e => "E2E",
        Metric::Ntpot => "NTPOT",
        Metric::Queue => "queue time",
    }
}

/// `mean`, `p99`, `p99.9`; nothing for a limit on each request.
#[must_use]
pub fn statistic_name(statistic: Statistic) -> String {
    match statistic {
        Statistic::Mean => "mean".to_owned(),
        Statistic::Quantile(q) => format!("p{}", chosen(q * 100.0)),
        Statistic::Request => String::new(),
    }
}

/// `TTFT p99`.
#[must_use]
pub fn quantity_name(metric: Metric, statistic: Statistic) -> String {
    format!("{} {}", metric_name(metric), statistic_name(statistic)).trim_end().to_owned()
}

/// `TTFT p99 ≤ 500 ms`, `E2E ≤ 60,000 ms for 99 % of requests`.
#[must_use]
pub fn objective(objective: &Objective, attainment: f64) -> String {
    let quantity = quantity_name(objective.metric, objective.statistic);
    let mut text = format!("{quantity} ≤ {} ms", chosen(objective.limit_s * 1e3));
    if objective.statistic == Statistic::Request {
        text += &format!(" for {} % of requests", format::percent(attainment));
    }
    text
}

/// The state of a point in a word or two: growth of the backlog where it grows.
#[must_use]
pub fn state(point: &Point) -> String {
    if fold::is_finite_batch(point) {
        return "finite batch".to_owned();
    }
    match point.stability.verdict {
        Verdict::Stable => "stable".to_owned(),
        Verdict::Undecided => "undecided".to_owned(),
        Verdict::Unstable => match growth(point) {
            Some(growth) => format!("unstable, +{growth} req/s"),
            None => "unstable".to_owned(),
        },
    }
}

/// Requests per second by which the backlog grows, to two digits.
#[must_use]
pub fn growth(point: &Point) -> Option<String> {
    let growth = point.stability.growth_per_s.as_ref().filter(|growth| growth.mean > 0.0)?;
    Some(format::two_digits(growth.mean))
}

/// The verdict as programs read it.
#[must_use]
pub const fn verdict_key(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Stable => "stable",
        Verdict::Unstable => "unstable",
        Verdict::Undecided => "undecided",
    }
}

/// Whether the objectives hold, as programs read it; `None` where nothing was promised.
#[must_use]
pub const fn slo_key(slo: &SloVerdict) -> Option<&'static str> {
    match slo {
        SloVerdict::NoObjectives => None,
        SloVerdict::Met => Some("met"),
        SloVerdict::Missed { .. } => Some("missed"),
        SloVerdict::Unclear { .. } => Some("unclear"),
        SloVerdict::Unstable => Some("unstable"),
    }
}

/// The one load axis of a curve and its reading, if the sweep is a curve.
#[must_use]
pub fn curve(result: &SweepResult) -> Option<&CurveReading> {
    result.reading.as_ref().filter(|_| result.axes.len() == 1)
}

/// The load of a point on the axis of a curve.
#[must_use]
pub fn axis_load(point: &Point) -> Option<f64> {
    point.coordinates.first().and_then(experiment::number)
}

/// The point whose load is `load`.
#[must_use]
pub fn point_at(points: &[Point], load: f64) -> Option<&Point> {
    points.iter().find(|point| axis_load(point) == Some(load))
}

/// The point at which a deployment is priced, and why that one.
#[must_use]
pub fn priced_point(result: &SweepResult) -> Option<(&Point, &'static str)> {
    let reading = curve(result)?;
    if let Some(capacity) = &reading.capacity {
        let load = capacity.guaranteed?;
        return point_at(&result.points, load).map(|point| (point, "at capacity"));
    }
    let load = reading.stability_limit.as_ref()?.last_stable?;
    point_at(&result.points, load).map(|point| (point, "at the last stable load"))
}

/// `18 req/s`.
#[must_use]
pub fn load(value: f64, unit: &str) -> String {
    let unit = match unit {
        "users" if value == 1.0 => "user",
        "replicas" if value == 1.0 => "replica",
        other => other,
    };
    format!("{} {unit}", chosen(value))
}

/// How many requests were refused and why, a sentence for each reason; over whole runs.
#[must_use]
pub fn refusals(points: &[Point]) -> Vec<String> {
    let sum = |value: fn(&Totals) -> u64| {
        points.iter().map(|point| fold::total(point, |run| value(&run.totals))).sum::<u64>()
    };
    let all = Totals {
        rejected_too_long: sum(|totals| totals.rejected_too_long),
        rejected_over_budget: sum(|totals| totals.rejected_over_budget),
        rejected_queue_full: sum(|totals| totals.rejected_queue_full),
        ..Totals::default()
    };
    let refused = all.refusals().into_iter().filter(|(refused, _)| *refused > 0);
    refused.map(|(refused, why)| format!("{} refused: {why}", counted(refused, "request"))).collect()
}

/// The finding of a curve in one sentence, for the title of its picture.
#[must_use]
pub fn finding(reading: &CurveReading) -> String {
    let unit = reading.load_unit;
    let knee = reading.knee.as_ref().map(|knee| format!("Knee at {}", load(knee.load, unit)));
    let second = match &reading.capacity {
        Some(capacity) => match (capacity.guaranteed, capacity.first_failing) {
            (Some(held), Some(_)) => Some(format!("objectives hold to {}", load(held, unit))),
            (Some(held), None) => Some(format!("objectives hold at every load, to {}", load(held, unit))),
            (None, _) => Some("objectives fail at every load".to_owned()),
        },
        None => reading
            .stability_limit
            .as_ref()
            .and_then(|limit| limit.first_unstable)
            .map(|first| format!("unstable from {}", load(first, unit))),
    };
    match (knee, second) {
        (Some(knee), Some(second)) => format!("{knee}; {second}"),
        (Some(only), None) => only,
        (None, Some(only)) => capitalised(&only),
        (None, None) => "No knee in the range swept".to_owned(),
    }
}

/// Where the backlog starts to grow, in one sentence.
#[must_use]
pub fn stability_sentence(limit: &StabilityLimit, unit: &str) -> String {
    match (limit.last_stable, limit.first_unstable) {
        (Some(stable), Some(unstable)) => {
            format!("stable at {}, unstable at {}", load(stable, unit), load(unstable, unit))
        }
        (Some(stable), None) => format!("not reached: stable up to {}", load(stable, unit)),
        (None, Some(unstable)) => {
            format!("below the range: unstable at {} already", load(unstable, unit))
        }
        (None, None) => "undecided over the whole range".to_owned(),
    }
}

/// The first letter in upper case.
#[must_use]
pub fn capitalised(text: &str) -> String {
    let mut chars = text.chars();
    match chars.next() {
        Some(first) => first.to_uppercase().collect::<String>() + chars.as_str(),
        None => String::new(),
    }
}
