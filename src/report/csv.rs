//! `curve.csv`: one row per load point, units in the column names, an empty cell where a value is withheld.

use crate::experiment::{Estimate, Point};
use crate::metrics::{Group, Latency};
use crate::report::fold::{self, Part};
use crate::report::{format, reading};
use crate::scenario::AxisValue;
use crate::workload::Metric;

type Pick = fn(&Latency) -> f64;

const METRICS: [Metric; 6] = Metric::ALL;
const STATISTICS: [(&str, Pick); 4] = [
    ("mean", |latency| latency.mean_s),
    ("p50", |latency| latency.p50_s),
    ("p90", |latency| latency.p90_s),
    ("p99", |latency| latency.p99_s),
];

/// The points as CSV, one row each, after one column per axis.
///
/// # Errors
/// Never for want of data; only if the writer fails.
pub fn points(axes: &[String], points: &[Point]) -> Result<Vec<u8>, ::csv::Error> {
    let mut writer = ::csv::Writer::from_writer(Vec::new());
    let mut header: Vec<String> = axes.to_vec();
    header.extend(RATES.iter().map(|(name, _)| (*name).to_owned()));
    header.extend(["in_flight", "kv_use", "busy"].map(String::from));
    for metric in METRICS {
        header.extend(STATISTICS.iter().map(|(statistic, _)| format!("{}_{statistic}_ms", metric.key())));
        header.push(format!("{}_p99_half_width_ms", metric.key()));
    }
    header
        .extend(["growth_per_s", "replications", "completed", "rejected", "slo", "state"].map(String::from));
    writer.write_record(&header)?;
    for point in points {
        writer.write_record(row(point, axes.len()))?;
    }
    writer.into_inner().map_err(|error| ::csv::Error::from(error.into_error()))
}

type Rate = fn(&Group) -> Option<f64>;

const RATES: [(&str, Rate); 6] = [
    ("offered_per_s", |group| Some(group.offered_per_s)),
    ("completed_per_s", |group| Some(group.completed_per_s)),
    ("good_per_s", |group| group.good_per_s),
    ("good_fraction", |group| group.good_fraction),
    ("input_tokens_per_s", |group| Some(group.input_tokens_per_s)),
    ("output_tokens_per_s", |group| Some(group.output_tokens_per_s)),
];

fn row(point: &Point, axes: usize) -> Vec<String> {
    let mean = |value: Option<Estimate>| value.map_or(String::new(), |value| value.mean.to_string());
    let mut row: Vec<String> =
        (0..axes).map(|axis| point.coordinates.get(axis).map_or(String::new(), coordinate)).collect();
    row.extend(RATES.iter().map(|(_, rate)| mean(fold::group_value(point, Part::All, rate))));
    let in_flight = fold::over_runs(point, |run| run.in_flight);
    row.push(mean(in_flight.filter(|_| fold::shows_latency(point))));
    row.push(mean(fold::kv_use(point)));
    row.push(mean(fold::replica_mean(point, |replica| replica.busy)));
    for metric in METRICS {
        let ms =
            |pick: Pick| fold::latency(point, Part::All, metric, pick).map(|value| format::in_ms(&value));
        row.extend(STATISTICS.iter().map(|(_, pick)| mean(ms(*pick))));
        let half_width = ms(|latency| latency.p99_s).and_then(|value| value.half_width);
        row.push(half_width.map_or(String::new(), |half| half.to_string()));
    }
    row.push(mean(point.stability.growth_per_s));
    row.push(point.runs.len().to_string());
    row.push(fold::total(point, |run| run.all.completed).to_string());
    row.push(fold::total(point, |run| run.all.rejected).to_string());
    row.push(reading::slo_key(&point.slo).unwrap_or_default().to_owned());
    row.push(reading::verdict_key(point.stability.verdict).to_owned());
    row
}

/// An axis value with every digit, for programs.
fn coordinate(value: &AxisValue) -> String {
    match value {
        AxisValue::Integer(integer) => integer.to_string(),
        AxisValue::Float(float) => float.to_string(),
        AxisValue::Text(text) => text.clone(),
        AxisValue::Bool(flag) => flag.to_string(),
    }
}
