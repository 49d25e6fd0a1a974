//! `summary.json` of a capacity search and of a tuning.

use serde::Serialize;

use super::curve::Interval;
use super::{SCHEMA_VERSION, Subject, pretty, subject};
use crate::experiment::Point;
use crate::experiment::capacity::{Aim, Capacity, LeverOutcome, Tuning};
use crate::report::{fold, reading};

#[derive(Serialize)]
struct CapacityFile {
    schema_version: u32,
    kind: &'static str,
    knee_version: &'static str,
    #[serde(flatten)]
    subject: Subject,
    axis: String,
    load_unit: String,
    width: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    impossible: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    guaranteed: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    first_failing: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    estimate: Option<Interval>,
    #[serde(skip_serializing_if = "Option::is_none")]
    band: Option<BandBody>,
    #[serde(skip_serializing_if = "Option::is_none")]
    binding: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    resource: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    saturated_per_s: Option<Interval>,
    levers: Vec<LeverBody>,
    notes: Vec<String>,
    points: Vec<Looked>,
}

#[derive(Serialize)]
struct BandBody {
    error: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    error_is_of: Option<String>,
    low: f64,
    high: f64,
}

#[derive(Serialize)]
struct LeverBody {
    key: String,
    value: String,
    possible: bool,
    passes: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    unclear: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    worst_before: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    worst_after: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    gpus: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

/// One load that was simulated.
#[derive(Serialize)]
struct Looked {
    load: f64,
    replications: usize,
    stability: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    slo: Option<&'static str>,
    margins: Vec<MarginBody>,
}

/// An objective's value over its limit.
#[derive(Serialize)]
struct MarginBody {
    objective: String,
    ratio: Interval,
}

/// `summary.json` of a capacity search.
///
/// # Errors
/// As [`super::run`].
pub fn capacity(capacity: &Capacity) -> Result<String, serde_json::Error> {
    pretty(&CapacityFile {
        schema_version: SCHEMA_VERSION,
        kind: "capacity",
        knee_version: env!("CARGO_PKG_VERSION"),
        subject: subject(&capacity.base, &[&capacity.base]),
        axis: capacity.axis.key.clone(),
        load_unit: capacity.axis.unit.clone(),
        width: capacity.effort.width,
        impossible: capacity.impossible.clone(),
        guaranteed: capacity.guaranteed,
        first_failing: capacity.first_failing,
        estimate: capacity.estimate.as_ref().map(Interval::from),
        band: capacity.band.as_ref().map(|band| BandBody {
            error: band.error,
            error_is_of: band.error_is_of.clone(),
            low: band.low,
            high: band.high,
        }),
        binding: capacity.binding.clone(),
        resource: capacity.resource.clone(),
        saturated_per_s: capacity.saturated_per_s.as_ref().map(Interval::from),
        levers: capacity.levers.iter().map(lever).collect(),
        notes: capacity.notes.clone(),
        points: capacity.points.iter().map(|(load, point)| looked(*load, point)).collect(),
    })
}

fn lever(lever: &crate::experiment::capacity::Lever) -> LeverBody {
    let (key, value) = (lever.key.clone(), lever.value.clone());
    let none = LeverBody {
        key,
        value,
        possible: false,
        passes: false,
        unclear: None,
        worst_before: None,
        worst_after: None,
        gpus: None,
        reason: None,
    };
    match &lever.outcome {
        LeverOutcome::Impossible(reason) => LeverBody { reason: Some(reason.clone()), ..none },
        LeverOutcome::Tried { passes, unclear, before, after, gpus } => LeverBody {
            possible: true,
            passes: *passes,
            unclear: unclear.clone(),
            worst_before: before.map(|ratio| ratio.mean),
            worst_after: after.map(|ratio| ratio.mean),
            gpus: Some(*gpus),
            ..none
        },
    }
}

/// Margins of a point that is not stable are withheld: they are only the length of the run.
fn looked(load: f64, point: &Point) -> Looked {
    let margins = if fold::shows_latency(point) { point.margins() } else { Vec::new() };
    Looked {
        load,
        replications: point.runs.len(),
        stability: reading::verdict_key(point.stability.verdict),
        slo: reading::slo_key(&point.slo),
        margins: margins
            .iter()
            .map(|margin| MarginBody {
                objective: margin.objective.clone(),
                ratio: Interval::from(&margin.ratio),
            })
            .collect(),
    }
}

#[derive(Serialize)]
struct TuningFile {
    schema_version: u32,
    kind: &'static str,
    knee_version: &'static str,
    #[serde(flatten)]
    subject: Subject,
    aim: &'static str,
    unit: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    chosen: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    best: Option<usize>,
    settings: Vec<SettingBody>,
    confirmed: Vec<ConfirmedBody>,
}

/// A setting's capacity as `knee capacity` finds it; `setting` is its place in `settings`, whose values are of short runs.
#[derive(Serialize)]
struct ConfirmedBody {
    setting: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    guaranteed: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    estimate: Option<Interval>,
}

#[derive(Serialize)]
struct SettingBody {
    max_num_seqs: u32,
    max_num_batched_tokens: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<Interval>,
    shown_worse: bool,
}

/// `summary.json` of a tuning; `chosen` and `best` are places in `settings`.
///
/// # Errors
/// As [`super::run`].
pub fn tuning(tuning: &Tuning) -> Result<String, serde_json::Error> {
    pretty(&TuningFile {
        schema_version: SCHEMA_VERSION,
        kind: "tuning",
        knee_version: env!("CARGO_PKG_VERSION"),
        subject: subject(&tuning.base, &[&tuning.base]),
        aim: if tuning.aim == Aim::Capacity { "capacity" } else { "throughput" },
        unit: tuning.unit.clone(),
        chosen: tuning.chosen,
        best: tuning.best,
        settings: tuning
            .settings
            .iter()
            .map(|setting| SettingBody {
                max_num_seqs: setting.max_num_seqs,
                max_num_batched_tokens: setting.max_num_batched_tokens,
                value: setting.value.as_ref().map(Interval::from),
                shown_worse: setting.shown_worse,
            })
            .collect(),
        confirmed: tuning
            .confirmed
            .iter()
            .map(|one| ConfirmedBody {
                setting: one.place,
                guaranteed: one.guaranteed,
                estimate: one.estimate.as_ref().map(Interval::from),
            })
            .collect(),
    })
}
