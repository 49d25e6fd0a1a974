//! The throughput-latency curve as a table, and its reading below it.

use super::{Columns, Look, MAX_WIDTH, Tone, headline, labelled, wrapped};
use crate::experiment::{CurveReading, Estimate, Point, SloVerdict, SweepResult, Verdict};
use crate::report::fold::{self, Part};
use crate::report::format::{self, ABSENT, axis_value, chosen, interval, percent};
use crate::report::{provenance, reading};
use crate::workload::Metric;

/// The whole answer of a sweep.
#[must_use]
pub fn sweep(result: &SweepResult, look: Look) -> String {
    let mut lines = headline(&result.base, &provenance::arrivals(&result.base), look);
    lines.push(String::new());
    lines.extend(rows(result, look));
    lines.push(String::new());
    if let Some(reading) = reading::curve(result) {
        lines.extend(readings(result, reading, look));
        lines.push(String::new());
    }
    let statistics = provenance::statistics(&result.points, result.base.seed);
    lines.extend(look.paint_all(Tone::Quiet, wrapped(&statistics, MAX_WIDTH)));
    lines.join("\n") + "\n"
}

/// A column: header and the cell of a point.
struct Column {
    header: String,
    cell: Box<dyn Fn(&Point) -> String>,
}

fn column(header: impl Into<String>, cell: impl Fn(&Point) -> String + 'static) -> Column {
    Column { header: header.into(), cell: Box::new(cell) }
}

fn rows(result: &SweepResult, look: Look) -> Vec<String> {
    let columns = columns(result);
    let header: Vec<String> = columns.iter().map(|column| column.header.clone()).collect();
    let mut table = Columns::words_last(&header, 0);
    for point in &result.points {
        let cells: Vec<String> = columns.iter().map(|column| (column.cell)(point)).collect();
        table.row(&cells);
    }
    let lines = table.lines();
    // Every row is one line, so the last lines of the table are the points in order.
    let first_row = lines.len().saturating_sub(result.points.len());
    let tone = |position: usize| match position.checked_sub(first_row).and_then(|row| result.points.get(row))
    {
        Some(point) => tone(point),
        None => Tone::Plain,
    };
    lines.iter().enumerate().map(|(position, line)| look.paint(tone(position), line)).collect()
}

fn tone(point: &Point) -> Tone {
    match (point.stability.verdict, &point.slo) {
        (Verdict::Unstable, _) => Tone::Bad,
        (_, SloVerdict::Met) => Tone::Good,
        _ => Tone::Plain,
    }
}

fn columns(result: &SweepResult) -> Vec<Column> {
    let any = |holds: &dyn Fn(&Point) -> bool| result.points.iter().any(holds);
    let mut columns = axis_columns(result);
    columns.push(column("done\nreq/s", |point| {
        shown(fold::group_value(point, Part::All, |group| Some(group.completed_per_s)), interval)
    }));
    if any(&has_tokens) {
        columns.push(column("output\ntok/s", |point| {
            let rate = fold::group_value(point, Part::All, |group| Some(group.output_tokens_per_s));
            shown(rate, format::mean)
        }));
    }
    for metric in shown_metrics(result) {
        let name = if metric == Metric::Queue { "queue" } else { reading::metric_name(metric) };
        columns.push(column(format!("{name} ms\np50"), move |point| {
            shown(ms(point, metric, 0.5), format::mean)
        }));
        columns
            .push(column(format!("{name} ms\np99"), move |point| shown(ms(point, metric, 0.99), interval)));
    }
    if any(&|point| point.slo != SloVerdict::NoObjectives) {
        columns.push(column("good\n%", good_percent));
    }
    columns.push(column("in\nflight", in_flight));
    if any(&|point| fold::kv_use(point).is_some()) {
        columns.push(column("KV\n%", |point| shown(fold::kv_use(point), |share| percent(share.mean))));
    }
    columns.push(column("\nstate", state));
    columns
}

fn axis_columns(result: &SweepResult) -> Vec<Column> {
    if let Some(reading) = reading::curve(result) {
        let header = if reading.load_unit == "req/s" { "offered\nreq/s" } else { "\nusers" };
        return vec![column(header, |point| reading::axis_load(point).map_or(ABSENT.to_owned(), chosen))];
    }
    // The last part of a key says what it is; the parts before it only where two are called the same.
    let leaf = |key: &str| key.rsplit('.').next().unwrap_or_default().to_owned();
    let name = |position: usize, key: &String| {
        let twins = result.axes.iter().filter(|other| leaf(other) == leaf(key)).count();
        let header = if twins > 1 { key.clone() } else { leaf(key) };
        column(format!("\n{header}"), move |point| {
            point.coordinates.get(position).map_or(ABSENT.to_owned(), axis_value)
        })
    };
    result.axes.iter().enumerate().map(|(position, key)| name(position, key)).collect()
}

/// The two metrics of the table: those that were promised first, then those that everybody asks for.
fn shown_metrics(result: &SweepResult) -> Vec<Metric> {
    let has = |metric: &Metric| result.points.iter().any(|point| fold::has_metric(point, *metric));
    let classes = &result.base.workload.classes;
    let promised = classes.iter().flat_map(|class| &class.slo.objectives).map(|objective| objective.metric);
    let usual = [Metric::Ttft, Metric::Tpot, Metric::E2e, Metric::Queue];
    let mut metrics: Vec<Metric> = Vec::new();
    for metric in promised.chain(usual).filter(has) {
        if metrics.len() < 2 && !metrics.contains(&metric) {
            metrics.push(metric);
        }
    }
    metrics.sort();
    metrics
}

fn has_tokens(point: &Point) -> bool {
    point.runs.iter().any(|run| run.all.output_tokens_per_s > 0.0)
}

fn ms(point: &Point, metric: Metric, quantile: f64) -> Option<Estimate> {
    let statistic = |latency: &crate::metrics::Latency| {
        if quantile < 0.9 { latency.p50_s } else { latency.p99_s }
    };
    fold::latency(point, Part::All, metric, statistic).map(|value| format::in_ms(&value))
}

fn shown(value: Option<Estimate>, text: impl Fn(&Estimate) -> String) -> String {
    value.as_ref().map_or(ABSENT.to_owned(), text)
}

/// Whether the load is carried, and whether the promises hold there.
fn state(point: &Point) -> String {
    let state = reading::state(point);
    match reading::slo_key(&point.slo) {
        None | Some("unstable") => state,
        Some(slo) => format!("{state}, SLO {slo}"),
    }
}

fn good_percent(point: &Point) -> String {
    shown(fold::group_value(point, Part::All, |group| group.good_fraction), |share| percent(share.mean))
}

/// The mean number in flight: withheld where it grows, because then it is only the length of the run.
fn in_flight(point: &Point) -> String {
    if !fold::shows_latency(point) {
        return ABSENT.to_owned();
    }
    shown(fold::over_runs(point, |run| run.in_flight), format::mean)
}

/// Capacity, stability limit, knee, tokens and money.
fn readings(result: &SweepResult, reading: &CurveReading, look: Look) -> Vec<String> {
    let mut lines: Vec<String> =
        look.paint_all(Tone::Strong, labelled("capacity", &capacity(reading))).collect();
    lines.extend(binding(reading).into_iter().flat_map(|text| labelled("", &text)));
    lines.extend(labelled("stability limit", &stability(reading)));
    lines.extend(labelled("knee", &knee(reading)));
    if let Some((point, place)) = reading::priced_point(result)
        && let Some(economics) = reading::economics(point)
    {
        let mut text = format!(
            "{} output tokens per GPU-hour {place}",
            reading::tokens(economics.output_tokens_per_gpu_hour)
        );
        match (economics.usd_per_million_output_tokens, economics.price) {
            (Some(usd), Some(price)) => text += &format!("; ${usd:.3} per M output tokens ({price})"),
            _ => text += "; no price known: set cost.gpu_hour_usd",
        }
        lines.extend(labelled("cost", &text));
    }
    lines
}

fn capacity(reading: &CurveReading) -> String {
    let unit = reading.load_unit;
    let Some(capacity) = &reading.capacity else {
        return "not claimed: the scenario promises nothing (add slo to a class)".to_owned();
    };
    let bracket = match (capacity.guaranteed, capacity.first_failing) {
        (Some(held), Some(failing)) => {
            format!("{} guaranteed (fails at {})", reading::load(held, unit), reading::load(failing, unit))
        }
        (Some(held), None) => {
            format!("at least {}: every load of the sweep passes", reading::load(held, unit))
        }
        (None, Some(failing)) => {
            format!("below the sweep: {} fails already", reading::load(failing, unit))
        }
        (None, None) => "undecided".to_owned(),
    };
    match &capacity.estimate {
        Some(estimate) => {
            format!("{bracket}; objectives met with equality at {} {unit}", interval(estimate))
        }
        None => bracket,
    }
}

fn binding(reading: &CurveReading) -> Option<String> {
    let binding = reading.capacity.as_ref()?.binding.as_ref()?;
    Some(format!("binding: {binding}"))
}

fn stability(reading: &CurveReading) -> String {
    let Some(limit) = &reading.stability_limit else {
        return "not found in the range swept".to_owned();
    };
    let mut text = reading::stability_sentence(limit, reading.load_unit);
    text += &format!("; {} req/s completed when saturated", interval(&limit.saturated_per_s));
    if !limit.binding.is_empty() {
        text += &format!("; binding: {}", limit.binding);
    }
    text
}

fn knee(reading: &CurveReading) -> String {
    let unit = reading.load_unit;
    match &reading.knee {
        Some(knee) => format!(
            "{} (Kneedle on {} from {} to {}; descriptive, moves with the range)",
            reading::load(knee.load, unit),
            reading::quantity_name(knee.metric, knee.statistic),
            chosen(knee.from),
            reading::load(knee.to, unit),
        ),
        None => "none in the range swept".to_owned(),
    }
}
