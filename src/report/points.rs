//! The points of a run or a sweep as a table of typed columns, units in their names: what `curve.csv` and
//! `curve.parquet` hold, and what points are ranked by. A value that is withheld is absent.

use crate::experiment::{Estimate, Point};
use crate::metrics::{Group, Latency};
use crate::report::fold::{self, Part};
use crate::report::{format, money, reading};
use crate::scenario::{Axis, AxisValue, Scenario};
use crate::workload::{Class, Metric};

type Pick = fn(&Latency) -> f64;

const STATISTICS: [(&str, Pick); 5] = [
    ("mean", |latency| latency.mean_s),
    ("p50", |latency| latency.p50_s),
    ("p90", |latency| latency.p90_s),
    ("p95", |latency| latency.p95_s),
    ("p99", |latency| latency.p99_s),
];

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

/// A column, one value a point.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    pub name: String,
    pub values: Values,
}

/// The values of a column; `None` where one is withheld or does not exist.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    /// Simulated: a mean over replications, or the half-width of its interval.
    Simulated(Vec<Option<f64>>),
    /// Given, such as an axis or a price.
    Given(Vec<Option<f64>>),
    Whole(Vec<Option<i64>>),
    Text(Vec<Option<String>>),
    Flag(Vec<Option<bool>>),
}

impl Values {
    /// Rows of the column.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "no column is asked whether it is empty")]
    pub fn len(&self) -> usize {
        match self {
            Self::Simulated(values) | Self::Given(values) => values.len(),
            Self::Whole(values) => values.len(),
            Self::Text(values) => values.len(),
            Self::Flag(values) => values.len(),
        }
    }

    /// As numbers, if they are.
    #[must_use]
    pub fn numbers(&self) -> Option<Vec<Option<f64>>> {
        match self {
            Self::Simulated(values) | Self::Given(values) => Some(values.clone()),
            Self::Whole(values) => Some(values.iter().map(|value| value.map(|whole| whole as f64)).collect()),
            Self::Text(_) | Self::Flag(_) => None,
        }
    }
}

/// The table of `points`, a column for each axis first.
#[must_use]
pub fn columns(axes: &[String], points: &[Point]) -> Vec<Column> {
    let mut table = Table { points, columns: Vec::new() };
    for (position, axis) in axes.iter().enumerate() {
        table.columns.push(Column { name: axis.clone(), values: axis_values(points, position) });
    }
    table.quantities(points.first().map_or(&[][..], |point| &point.scenario.workload.classes));
    table.columns
}

/// The names of the columns of numbers that a sweep over `axes` will have; `scenario` is any of its points.
pub(super) fn number_names(axes: &[Axis], scenario: &Scenario) -> Vec<String> {
    let is_number = |axis: &&Axis| axis.values.iter().all(|value| crate::experiment::number(value).is_some());
    let of_axes = axes.iter().filter(is_number).map(|axis| axis.key.clone());
    let mut table = Table { points: &[], columns: Vec::new() };
    table.quantities(&scenario.workload.classes);
    let numbers = table.columns.into_iter().filter(|column| column.values.numbers().is_some());
    of_axes.chain(numbers.map(|column| column.name)).collect()
}

struct Table<'a> {
    points: &'a [Point],
    columns: Vec<Column>,
}

impl Table<'_> {
    /// Everything but the axes.
    fn quantities(&mut self, classes: &[Class]) {
        for (name, rate) in RATES {
            self.simulated(name, |point| fold::group_value(point, Part::All, rate));
        }
        self.simulated("in_flight", |point| {
            fold::over_runs(point, |run| run.in_flight).filter(|_| fold::shows_latency(point))
        });
        self.simulated("waiting", fold::waiting);
        self.simulated("kv_use", fold::kv_use);
        self.simulated("busy", |point| fold::replica_mean(point, |replica| replica.busy));
        self.latencies("", Part::All);
        self.simulated("growth_per_s", |point| point.stability.growth_per_s);
        self.whole("replications", |point| point.runs.len() as u64);
        self.whole("completed", |point| fold::total(point, |run| run.all.completed));
        self.whole("rejected", |point| fold::total(point, |run| run.all.rejected));
        self.text("slo", |point| reading::slo_key(&point.slo).map(str::to_owned));
        self.text("state", |point| Some(reading::verdict_key(point.stability.verdict).to_owned()));
        let refused = self.points.iter().map(|point| Some(fold::refused_share(point))).collect();
        self.push("refused_share", Values::Simulated(refused));
        self.whole("gpus", |point| u64::from(point.scenario.gpus));
        self.whole("replicas", |point| u64::from(point.scenario.system.replicas));
        let price = |point: &Point| money::price(&point.scenario).map(|price| price.usd_per_gpu_hour);
        self.push("usd_per_gpu_hour", Values::Given(self.points.iter().map(price).collect()));
        self.simulated("usd_per_million_output_tokens", money::usd_per_million);
        for (position, class) in class_names(classes).iter().enumerate() {
            for (name, rate) in CLASS_RATES {
                let of_class = |point: &Point| fold::group_value(point, Part::Class(position), rate);
                self.simulated(&format!("{class}_{name}"), of_class);
            }
            self.latencies(&format!("{class}_"), Part::Class(position));
        }
    }

    fn push(&mut self, name: &str, values: Values) {
        self.columns.push(Column { name: name.to_owned(), values });
    }

    fn simulated(&mut self, name: &str, value: impl Fn(&Point) -> Option<Estimate>) {
        let values = self.points.iter().map(|point| value(point).map(|value| value.mean)).collect();
        self.push(name, Values::Simulated(values));
    }

    fn whole(&mut self, name: &str, value: impl Fn(&Point) -> u64) {
        let values = self.points.iter().map(|point| i64::try_from(value(point)).ok()).collect();
        self.push(name, Values::Whole(values));
    }

    fn text(&mut self, name: &str, value: impl Fn(&Point) -> Option<String>) {
        let values = self.points.iter().map(value).collect();
        self.push(name, Values::Text(values));
    }

    /// The statistics of every metric and the half-width of its p99.
    fn latencies(&mut self, prefix: &str, part: Part) {
        for metric in Metric::ALL {
            let key = metric.key();
            let ms = |point: &Point, pick: Pick| {
                fold::latency(point, part, metric, pick).map(|value| format::in_ms(&value))
            };
            for (statistic, pick) in STATISTICS {
                self.simulated(&format!("{prefix}{key}_{statistic}_ms"), |point| ms(point, pick));
            }
            let half_width = |point: &Point| ms(point, |latency| latency.p99_s)?.half_width;
            let half_widths = self.points.iter().map(half_width).collect();
            self.push(&format!("{prefix}{key}_p99_half_width_ms"), Values::Simulated(half_widths));
        }
    }
}

/// The values of an axis: numbers where all are, texts where they differ in kind.
fn axis_values(points: &[Point], position: usize) -> Values {
    let values: Vec<Option<&AxisValue>> =
        points.iter().map(|point| point.coordinates.get(position)).collect();
    let all = |holds: fn(&AxisValue) -> bool| values.iter().flatten().all(|value| holds(value));
    if all(|value| matches!(value, AxisValue::Integer(_))) {
        let whole =
            |value: &AxisValue| if let AxisValue::Integer(whole) = value { Some(*whole) } else { None };
        return Values::Whole(values.iter().map(|value| value.and_then(whole)).collect());
    }
    if all(|value| matches!(value, AxisValue::Bool(_))) {
        let flag = |value: &AxisValue| if let AxisValue::Bool(flag) = value { Some(*flag) } else { None };
        return Values::Flag(values.iter().map(|value| value.and_then(flag)).collect());
    }
    if all(|value| crate::experiment::number(value).is_some()) {
        return Values::Given(values.iter().map(|value| crate::experiment::number((*value)?)).collect());
    }
    Values::Text(values.iter().map(|value| value.map(text)).collect())
}

/// An axis value with every digit, for programs.
fn text(value: &AxisValue) -> String {
    match value {
        AxisValue::Integer(integer) => integer.to_string(),
        AxisValue::Float(float) => float.to_string(),
        AxisValue::Text(text) => text.clone(),
        AxisValue::Bool(flag) => flag.to_string(),
    }
}

/// The classes that have columns of their own: none where there is but one.
fn class_names(classes: &[Class]) -> Vec<String> {
    if classes.len() < 2 {
        return Vec::new();
    }
    classes.iter().map(|class| class.name.replace(char::is_whitespace, "_")).collect()
}
