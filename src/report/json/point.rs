//! One load point: vLLM's keys and what stands beside them.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::experiment::{Estimate, Point};
use crate::metrics::{Group, Latency, ReplicaSummary, RunMode};
use crate::report::fold::{self, Part};
use crate::report::{format, money, reading};
use crate::workload::{Class, Metric};

/// A JSON object with keys in alphabetical order.
type Numbers = BTreeMap<String, f64>;

/// One load point, without its averages: those stand beside it ([`PointObject`]).
#[derive(Clone, Debug, Serialize)]
struct PointBody {
    stability: &'static str,
    stability_reason: String,
    /// Growth of the number in flight, requests per second.
    #[serde(skip_serializing_if = "Option::is_none")]
    growth_per_s: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    slo: Option<&'static str>,
    mode: &'static str,
    replications: usize,
    completed: u64,
    failed: u64,
    total_input_tokens: u64,
    total_output_tokens: u64,
    /// Counts over the whole runs, warm-up and drain included.
    totals: Totals,
    /// 95 % half-widths of the values of the same name.
    intervals: Numbers,
    classes: Vec<ClassBody>,
    replica_means: Vec<Numbers>,
}

#[derive(Clone, Debug, Serialize)]
struct Totals {
    offered: u64,
    admitted: u64,
    completed: u64,
    rejected_too_long: u64,
    /// Of these.
    rejected_over_budget: u64,
    rejected_queue_full: u64,
    in_flight_at_end: u64,
    preemptions: u64,
}

#[derive(Clone, Debug, Serialize)]
struct ClassBody {
    name: String,
    completed: u64,
    failed: u64,
    objectives: Vec<ObjectiveBody>,
    #[serde(flatten)]
    values: Numbers,
}

#[derive(Clone, Debug, Serialize)]
struct ObjectiveBody {
    objective: String,
    limit_ms: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    value_ms: Option<f64>,
}

/// Means and half-widths of everything that is a number, under vLLM's names.
fn values(point: &Point, part: Part) -> (Numbers, Numbers) {
    let mut means = Numbers::new();
    let mut half_widths = Numbers::new();
    let mut put = |name: String, value: Option<Estimate>| {
        let Some(value) = value.filter(|value| value.mean.is_finite()) else {
            return;
        };
        if let Some(half) = value.half_width.filter(|half| half.is_finite()) {
            half_widths.insert(name.clone(), half);
        }
        means.insert(name, value.mean);
    };
    let group = |pick: fn(&Group) -> Option<f64>| fold::group_value(point, part, pick);
    put("offered_request_rate".into(), group(|group| Some(group.offered_per_s)));
    put("request_throughput".into(), group(|group| Some(group.completed_per_s)));
    put("request_goodput".into(), group(|group| group.good_per_s));
    put("good_fraction".into(), group(|group| group.good_fraction));
    put("output_throughput".into(), group(|group| Some(group.output_tokens_per_s)));
    let total = |group: &Group| Some(group.input_tokens_per_s + group.output_tokens_per_s);
    put("total_token_throughput".into(), group(total));
    type Pick = fn(&Latency) -> f64;
    let statistics: [(&str, Pick); 6] = [
        ("mean", |latency| latency.mean_s),
        ("median", |latency| latency.p50_s),
        ("std", |latency| latency.std_s),
        ("p90", |latency| latency.p90_s),
        ("p95", |latency| latency.p95_s),
        ("p99", |latency| latency.p99_s),
    ];
    for metric in Metric::ALL {
        let key = if metric == Metric::E2e { "e2el" } else { metric.key() };
        for (statistic, pick) in statistics {
            let value = fold::latency(point, part, metric, pick);
            put(format!("{statistic}_{key}_ms"), value.map(|value| format::in_ms(&value)));
        }
    }
    (means, half_widths)
}

/// A point as one JSON object: body and values side by side.
#[derive(Clone, Debug, Serialize)]
pub(super) struct PointObject {
    #[serde(flatten)]
    body: PointBody,
    #[serde(skip_serializing_if = "Option::is_none")]
    duration: Option<f64>,
    #[serde(flatten)]
    values: Numbers,
}

pub(super) fn point_object(point: &Point) -> PointObject {
    let (mut values, mut intervals) = values(point, Part::All);
    let in_flight = fold::over_runs(point, |run| run.in_flight);
    if let Some(value) = in_flight.filter(|_| fold::shows_latency(point)) {
        values.insert("mean_in_flight".into(), value.mean);
        intervals.extend(value.half_width.map(|half| ("mean_in_flight".to_owned(), half)));
    }
    if let Some(value) = money::usd_per_million(point) {
        values.insert("usd_per_million_output_tokens".into(), value.mean);
        intervals.extend(value.half_width.map(|half| ("usd_per_million_output_tokens".to_owned(), half)));
    }
    if let Some(job) = money::job(point) {
        values.insert("gpu_hours".into(), job.gpu_hours.mean);
        values.extend(job.usd.map(|usd| ("usd_for_the_job".to_owned(), usd.mean)));
    }
    values.extend(fold::kv_use(point).map(|share| ("mean_kv_use".to_owned(), share.mean)));
    let body = PointBody {
        stability: reading::verdict_key(point.stability.verdict),
        stability_reason: point.stability.reason.clone(),
        growth_per_s: point.stability.growth_per_s.map(|growth| growth.mean),
        slo: reading::slo_key(&point.slo),
        mode: match point.scenario.run.mode {
            RunMode::Steady => "steady",
            RunMode::Benchmark => "benchmark",
        },
        replications: point.runs.len(),
        completed: fold::total(point, |run| run.all.completed),
        failed: fold::total(point, |run| run.all.rejected),
        total_input_tokens: fold::total(point, |run| run.all.input_tokens),
        total_output_tokens: fold::total(point, |run| run.all.output_tokens),
        totals: totals(point),
        intervals,
        classes: classes(point),
        replica_means: replica_means(point),
    };
    PointObject { body, duration: fold::window_s(point), values }
}

fn totals(point: &Point) -> Totals {
    Totals {
        offered: fold::total(point, |run| run.totals.offered),
        admitted: fold::total(point, |run| run.totals.admitted),
        completed: fold::total(point, |run| run.totals.completed),
        rejected_too_long: fold::total(point, |run| run.totals.rejected_too_long),
        rejected_over_budget: fold::total(point, |run| run.totals.rejected_over_budget),
        rejected_queue_full: fold::total(point, |run| run.totals.rejected_queue_full),
        in_flight_at_end: fold::total(point, |run| run.totals.in_flight_at_end),
        preemptions: fold::total(point, |run| run.totals.preemptions),
    }
}

fn classes(point: &Point) -> Vec<ClassBody> {
    let class = |(index, class): (usize, &Class)| {
        let part = Part::Class(index);
        let sum = |pick: fn(&Group) -> u64| fold::total(point, |run| part.of(run).map_or(0, pick));
        let objectives = class.slo.objectives.iter().enumerate().map(|(position, objective)| {
            let value = fold::group_value(point, part, |group| {
                group.objectives.get(position).and_then(|objective| objective.value_s)
            });
            ObjectiveBody {
                objective: reading::quantity_name(objective.metric, objective.statistic),
                limit_ms: objective.limit_s * 1e3,
                value_ms: value.filter(|_| fold::shows_latency(point)).map(|value| value.mean * 1e3),
            }
        });
        ClassBody {
            name: class.name.clone(),
            completed: sum(|group| group.completed),
            failed: sum(|group| group.rejected),
            objectives: objectives.collect(),
            values: values(point, part).0,
        }
    };
    point.scenario.workload.classes.iter().enumerate().map(class).collect()
}

fn replica_means(point: &Point) -> Vec<Numbers> {
    type Pick = fn(&ReplicaSummary) -> f64;
    let fields: [(&str, Pick); 7] = [
        ("busy", |replica| replica.busy),
        ("running", |replica| replica.running),
        ("waiting", |replica| replica.waiting),
        ("kv_use", |replica| replica.kv_use),
        ("kv_use_max", |replica| replica.kv_use_max),
        ("tokens_per_step", |replica| f64::from(replica.mean_step.tokens)),
        ("completed", |replica| replica.completed as f64),
    ];
    (0..point.scenario.system.replicas as usize)
        .map(|index| {
            fields
                .iter()
                .filter_map(|(name, pick)| {
                    let mean = fold::over_runs(point, |run| run.replicas.get(index).map(pick))?;
                    Some(((*name).to_owned(), mean.mean))
                })
                .collect()
        })
        .collect()
}
