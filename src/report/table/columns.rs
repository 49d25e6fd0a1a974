//! The columns of a sweep's table: which there are, what stands in them, and which give way on a narrow terminal.

use super::{Columns, MAX_WIDTH};
use crate::experiment::{self, Estimate, Point, SloVerdict, SweepResult};
use crate::report::fold::{self, Part};
use crate::report::format::{self, ABSENT, axis_value, chosen, interval, percent};
use crate::report::rank::Ranked;
use crate::report::{grid, money, reading};
use crate::workload::Metric;

/// One line of the table: a point, or one class of it.
#[derive(Clone, Copy)]
pub(super) struct Row<'a> {
    pub point: &'a Point,
    part: Part,
    /// The point's place in the sweep.
    position: usize,
    /// What concerns the whole point stands only on its first line.
    first: bool,
}

/// How soon a column gives way where the table is too wide: the highest first, 0 never. Everything stays in `curve.csv`.
type Dispensable = u8;

const NEVER: Dispensable = 0;
const OUTPUT: Dispensable = 1;
const KV: Dispensable = 2;
const IN_FLIGHT: Dispensable = 3;
const MEDIAN: Dispensable = 4;
const WAITING: Dispensable = 5;

struct Column {
    header: String,
    dispensable: Dispensable,
    cell: Box<dyn Fn(&Row) -> String>,
}

/// The lines of the table and, below its header, the row that each of them shows.
pub(super) fn table<'a>(result: &'a SweepResult, ranked: &Ranked) -> (Vec<String>, Vec<Row<'a>>) {
    let rows = rows(result);
    let mut columns = columns(result);
    if *ranked != Ranked::default() {
        let marks: Vec<String> = (0..result.points.len()).map(|at| ranked.mark(at)).collect();
        columns.insert(
            0,
            of_part(
                "\nbest",
                NEVER,
                move |row| if row.first { marks[row.position].clone() } else { String::new() },
            ),
        );
    }
    loop {
        let header: Vec<String> = columns.iter().map(|column| column.header.clone()).collect();
        let mut table = Columns::words_last(&header, 0);
        for row in &rows {
            let cells: Vec<String> = columns.iter().map(|column| (column.cell)(row)).collect();
            table.row(&cells);
        }
        let lines = table.lines();
        let most = columns.iter().map(|column| column.dispensable).max().unwrap_or(NEVER);
        if most == NEVER || lines.iter().all(|line| line.chars().count() <= MAX_WIDTH) {
            return (lines, rows);
        }
        columns.retain(|column| column.dispensable < most);
    }
}

fn rows(result: &SweepResult) -> Vec<Row<'_>> {
    let parts = |point: &Point| match point.scenario.workload.classes.len() {
        0 | 1 => vec![Part::All],
        classes => (0..classes).map(Part::Class).collect(),
    };
    let of_point = |(position, point)| {
        let row = move |(line, part)| Row { point, part, position, first: line == 0 };
        parts(point).into_iter().enumerate().map(row).collect::<Vec<_>>()
    };
    result.points.iter().enumerate().flat_map(of_point).collect()
}

/// A column about a class, or about all requests where there is but one.
fn of_part(
    header: impl Into<String>,
    dispensable: Dispensable,
    cell: impl Fn(&Row) -> String + 'static,
) -> Column {
    Column { header: header.into(), dispensable, cell: Box::new(cell) }
}

/// A column about the whole point.
fn of_point(
    header: impl Into<String>,
    dispensable: Dispensable,
    cell: impl Fn(&Point) -> String + 'static,
) -> Column {
    of_part(header, dispensable, move |row| if row.first { cell(row.point) } else { String::new() })
}

fn columns(result: &SweepResult) -> Vec<Column> {
    let any = |holds: &dyn Fn(&Point) -> bool| result.points.iter().any(holds);
    let promised = any(&|point| point.slo != SloVerdict::NoObjectives);
    let batches = result.points.iter().all(fold::is_finite_batch);
    let mut columns = axis_columns(result);
    if has_classes(result) {
        columns.push(of_part("\nclass", NEVER, class_name));
    }
    if batches {
        columns.extend(job_columns(any(&|point| money::price(&point.scenario).is_some())));
    }
    columns.push(of_part("done\nreq/s", NEVER, |row| rate(row, |group| group.completed_per_s, interval)));
    if any(&|point| point.runs.iter().any(|run| run.all.output_tokens_per_s > 0.0)) {
        let keep = if batches { NEVER } else { OUTPUT };
        columns.push(of_part("output\ntok/s", keep, |row| {
            rate(row, |group| group.output_tokens_per_s, format::mean)
        }));
    }
    if promised || !batches {
        columns.extend(latency_columns(result));
    }
    if promised {
        columns.push(of_part("good\n%", NEVER, |row| {
            let good = fold::group_value(row.point, row.part, |group| group.good_fraction);
            shown(good, |share| percent(share.mean))
        }));
    }
    if (batches || grid::is_grid(result)) && any(&|point| money::usd_per_million(point).is_some()) {
        columns.push(of_point("$ per M\noutput", NEVER, |point| {
            shown(money::usd_per_million(point), format::mean)
        }));
    }
    if any(&|point| fold::refused_share(point) > 0.0) {
        columns.push(of_point("refused\n%", NEVER, |point| match fold::refused_share(point) {
            share if share > 0.0 => percent(share),
            _ => String::new(),
        }));
    }
    if !batches {
        columns.push(of_point("in\nflight", IN_FLIGHT, in_flight));
        columns.push(of_point("wait-\ning", WAITING, |point| shown(fold::waiting(point), format::mean)));
    }
    if any(&|point| fold::kv_use(point).is_some()) {
        columns.push(of_point("KV\n%", KV, |point| shown(fold::kv_use(point), |share| percent(share.mean))));
    }
    columns.push(of_point("\nstate", NEVER, state));
    columns
}

fn has_classes(result: &SweepResult) -> bool {
    result.points.iter().any(|point| point.scenario.workload.classes.len() > 1)
}

fn class_name(row: &Row) -> String {
    match row.part {
        Part::Class(index) => row.point.scenario.workload.classes[index].name.clone(),
        Part::All => String::new(),
    }
}

/// When a finite batch is done, and what it takes.
fn job_columns(priced: bool) -> Vec<Column> {
    let part = |pick: fn(money::Job) -> Option<Estimate>| {
        move |point: &Point| shown(money::job(point).and_then(pick), interval)
    };
    let mut columns = vec![of_point("makespan\ns", NEVER, part(|job| Some(job.makespan_s)))];
    columns.push(of_point("\nGPU-hours", NEVER, part(|job| Some(job.gpu_hours))));
    if priced {
        columns.push(of_point("$ for\nthe job", NEVER, part(|job| job.usd)));
    }
    columns
}

fn axis_columns(result: &SweepResult) -> Vec<Column> {
    let load = experiment::load_axis(&result.axes);
    // The last part of a key says what it is; the parts before it only where two are called the same.
    let leaf = |key: &str| key.rsplit('.').next().unwrap_or_default().to_owned();
    let column = |(position, key): (usize, &String)| {
        let twins = result.axes.iter().filter(|other| leaf(other) == leaf(key)).count();
        let unit = grid::load_unit(result).filter(|_| load == Some(position));
        let header = match unit {
            Some("req/s") => "offered\nreq/s".to_owned(),
            Some(unit) => format!("\n{unit}"),
            None if twins > 1 => format!("\n{key}"),
            None => format!("\n{}", leaf(key)),
        };
        of_point(header, NEVER, move |point| match point.coordinates.get(position) {
            Some(value) if unit.is_some() => {
                experiment::number(value).map_or_else(|| axis_value(value), chosen)
            }
            Some(value) => axis_value(value),
            None => ABSENT.to_owned(),
        })
    };
    result.axes.iter().enumerate().map(column).collect()
}

fn latency_columns(result: &SweepResult) -> Vec<Column> {
    let of_metric = |metric: Metric| {
        let name = if metric == Metric::Queue { "queue" } else { reading::metric_name(metric) };
        let median = of_part(format!("{name} ms\np50"), MEDIAN, move |row| {
            let p50 = fold::latency(row.point, row.part, metric, |latency| latency.p50_s);
            shown(p50.map(|value| format::in_ms(&value)), format::mean)
        });
        let tail = of_part(format!("{name} ms\np99"), NEVER, move |row| {
            let p99 = fold::latency(row.point, row.part, metric, |latency| latency.p99_s);
            shown(p99.map(|value| format::in_ms(&value)), interval)
        });
        [median, tail]
    };
    shown_metrics(result).into_iter().flat_map(of_metric).collect()
}

/// The metrics of the table: those that were promised first, then those that everybody asks for. Classes have promises
/// of different kinds, so there is room for one more.
fn shown_metrics(result: &SweepResult) -> Vec<Metric> {
    let has = |metric: &Metric| result.points.iter().any(|point| fold::has_metric(point, *metric));
    let classes = &result.base.workload.classes;
    let promised = classes.iter().flat_map(|class| &class.slo.objectives).map(|objective| objective.metric);
    let usual = [Metric::Ttft, Metric::Tpot, Metric::E2e, Metric::Queue];
    let room = if has_classes(result) && promised.clone().count() > 0 { 3 } else { 2 };
    let mut metrics: Vec<Metric> = Vec::new();
    for metric in promised.chain(usual).filter(has) {
        if metrics.len() < room && !metrics.contains(&metric) {
            metrics.push(metric);
        }
    }
    metrics.sort();
    metrics
}

fn rate(row: &Row, pick: fn(&crate::metrics::Group) -> f64, text: impl Fn(&Estimate) -> String) -> String {
    shown(fold::group_value(row.point, row.part, |group| Some(pick(group))), text)
}

pub(super) fn shown(value: Option<Estimate>, text: impl Fn(&Estimate) -> String) -> String {
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

/// The mean number in flight: withheld where it grows, because then it is only the length of the run.
fn in_flight(point: &Point) -> String {
    if !fold::shows_latency(point) {
        return ABSENT.to_owned();
    }
    shown(fold::over_runs(point, |run| run.in_flight), format::mean)
}
