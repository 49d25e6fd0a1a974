//! `curve.csv`: one row per load point, units in the column names, an empty cell where a value is withheld.

use crate::experiment::{Estimate, Point};
use crate::metrics::{Group, Latency};
use crate::report::fold::{self, Part};
use crate::report::{format, money, reading};
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
    header.extend(["refused_share", "gpus", "replicas", "usd_per_gpu_hour"].map(String::from));
    header.push("usd_per_million_output_tokens".to_owned());
    let classes = class_names(points);
    header.extend(classes.iter().flat_map(|class| class_header(class)));
    writer.write_record(&header)?;
    for point in points {
        let mut cells = row(point, axes.len());
        cells.extend((0..classes.len()).flat_map(|class| class_row(point, class)));
        writer.write_record(cells)?;
    }
    writer.into_inner().map_err(|error| ::csv::Error::from(error.into_error()))
}

/// The classes that have columns of their own: none where there is but one.
fn class_names(points: &[Point]) -> Vec<String> {
    let classes = points.first().map_or(&[][..], |point| &point.scenario.workload.classes);
    if classes.len() < 2 {
        return Vec::new();
    }
    classes.iter().map(|class| class.name.replace(char::is_whitespace, "_")).collect()
}

/// `chat_completed_per_s`, `chat_good_fraction`, `chat_ttft_p50_ms`, `chat_ttft_p99_ms` and so on.
fn class_header(class: &str) -> Vec<String> {
    let mut header: Vec<String> = CLASS_RATES.iter().map(|(name, _)| format!("{class}_{name}")).collect();
    for metric in METRICS {
        let key = metric.key();
        header.extend(STATISTICS.iter().map(|(statistic, _)| format!("{class}_{key}_{statistic}_ms")));
        header.push(format!("{class}_{key}_p99_half_width_ms"));
    }
    header
}

fn class_row(point: &Point, class: usize) -> Vec<String> {
    let part = Part::Class(class);
    let mut row: Vec<String> =
        CLASS_RATES.iter().map(|(_, rate)| mean(fold::group_value(point, part, rate))).collect();
    row.extend(METRICS.iter().flat_map(|metric| latency_cells(point, part, *metric)));
    row
}

fn mean(value: Option<Estimate>) -> String {
    value.map_or(String::new(), |value| value.mean.to_string())
}

/// The statistics of a metric and the half-width of its p99.
fn latency_cells(point: &Point, part: Part, metric: Metric) -> Vec<String> {
    let ms = |pick: Pick| fold::latency(point, part, metric, pick).map(|value| format::in_ms(&value));
    let mut cells: Vec<String> = STATISTICS.iter().map(|(_, pick)| mean(ms(*pick))).collect();
    let half_width = ms(|latency| latency.p99_s).and_then(|value| value.half_width);
    cells.push(half_width.map_or(String::new(), |half| half.to_string()));
    cells
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

const CLASS_RATES: [(&str, Rate); 3] = [RATES[1], RATES[2], RATES[3]];

fn row(point: &Point, axes: usize) -> Vec<String> {
    let mut row: Vec<String> =
        (0..axes).map(|axis| point.coordinates.get(axis).map_or(String::new(), coordinate)).collect();
    row.extend(RATES.iter().map(|(_, rate)| mean(fold::group_value(point, Part::All, rate))));
    let in_flight = fold::over_runs(point, |run| run.in_flight);
    row.push(mean(in_flight.filter(|_| fold::shows_latency(point))));
    row.push(mean(fold::kv_use(point)));
    row.push(mean(fold::replica_mean(point, |replica| replica.busy)));
    row.extend(METRICS.iter().flat_map(|metric| latency_cells(point, Part::All, *metric)));
    row.push(mean(point.stability.growth_per_s));
    row.push(point.runs.len().to_string());
    row.push(fold::total(point, |run| run.all.completed).to_string());
    row.push(fold::total(point, |run| run.all.rejected).to_string());
    row.push(reading::slo_key(&point.slo).unwrap_or_default().to_owned());
    row.push(reading::verdict_key(point.stability.verdict).to_owned());
    row.push(fold::refused_share(point).to_string());
    row.push(point.scenario.gpus.to_string());
    row.push(point.scenario.system.replicas.to_string());
    let price = money::price(&point.scenario);
    row.push(price.map_or(String::new(), |price| price.usd_per_gpu_hour.to_string()));
    row.push(mean(money::usd_per_million(point)));
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
