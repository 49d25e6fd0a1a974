//! `summary.json`: a stable schema, on whose top level stand the keys of vLLM's `bench serve`.
//!
//! Counts are sums over replications, throughputs and quantiles means of the replications' own, `duration` a
//! replication's. A key whose value is withheld, or that nobody had, is absent. Intervals stand in a block of their
//! own under the same names, so that a program written for vLLM's file reads this one unchanged.

mod capacity;
mod compare;
mod curve;
mod point;

use std::collections::BTreeMap;

use serde::Serialize;

pub use capacity::{capacity, tuning};
pub use compare::comparison;
use curve::{ReadingBody, reading_body};
use point::{PointObject, point_object};

use crate::experiment::{Point, SweepResult};
use crate::report::{provenance, reading};
use crate::scenario::{AxisValue, Scenario};

/// Rises when a key changes its meaning or goes away; new keys do not raise it.
pub const SCHEMA_VERSION: u32 = 1;

/// What was simulated.
#[derive(Clone, Debug, Serialize)]
struct Subject {
    scenario: String,
    deployment: String,
    arrivals: String,
    gpus: u32,
    replicas: u32,
    seed: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    gpu: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    engine: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    profile: Option<ProfileNote>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
}

#[derive(Clone, Debug, Serialize)]
struct ProfileNote {
    name: String,
    standing: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    held_out_error: Option<String>,
}

fn subject(scenario: &Scenario) -> Subject {
    let serving = scenario.serving.as_ref();
    Subject {
        scenario: scenario.name.clone(),
        deployment: provenance::deployment(scenario),
        arrivals: provenance::arrivals(scenario),
        gpus: scenario.gpus,
        replicas: scenario.system.replicas,
        seed: scenario.seed,
        model: serving.map(|serving| serving.model.name.clone()),
        gpu: serving.map(|serving| serving.hardware.name.clone()),
        engine: serving.map(|serving| provenance::engine_version(serving)),
        profile: serving.map(|serving| ProfileNote {
            name: serving.profile.name.clone(),
            standing: provenance::standing(serving.profile.standing),
            held_out_error: serving.profile.held_out_error.clone(),
        }),
        warnings: scenario.warnings.clone(),
    }
}

#[derive(Serialize)]
struct RunFile {
    schema_version: u32,
    kind: &'static str,
    knee_version: &'static str,
    #[serde(flatten)]
    subject: Subject,
    #[serde(flatten)]
    point: PointObject,
}

#[derive(Serialize)]
struct SweepFile {
    schema_version: u32,
    kind: &'static str,
    knee_version: &'static str,
    #[serde(flatten)]
    subject: Subject,
    axes: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reading: Option<ReadingBody>,
    points: Vec<SweepPoint>,
}

#[derive(Serialize)]
struct SweepPoint {
    coordinates: BTreeMap<String, serde_json::Value>,
    #[serde(flatten)]
    point: PointObject,
}

/// `summary.json` of a run, indented, with a newline at the end.
///
/// # Errors
/// Never for a finite result: every number was checked; only if serialisation itself fails.
pub fn run(point: &Point) -> Result<String, serde_json::Error> {
    pretty(&RunFile {
        schema_version: SCHEMA_VERSION,
        kind: "run",
        knee_version: env!("CARGO_PKG_VERSION"),
        subject: subject(&point.scenario),
        point: point_object(point),
    })
}

/// `summary.json` of a sweep.
///
/// # Errors
/// As [`run`].
pub fn sweep(result: &SweepResult) -> Result<String, serde_json::Error> {
    let points = result.points.iter().map(|point| SweepPoint {
        coordinates: result.axes.iter().cloned().zip(point.coordinates.iter().map(axis)).collect(),
        point: point_object(point),
    });
    pretty(&SweepFile {
        schema_version: SCHEMA_VERSION,
        kind: "sweep",
        knee_version: env!("CARGO_PKG_VERSION"),
        subject: subject(&result.base),
        axes: result.axes.clone(),
        reading: reading::curve(result).map(|reading| reading_body(result, reading)),
        points: points.collect(),
    })
}

fn axis(value: &AxisValue) -> serde_json::Value {
    match value {
        AxisValue::Integer(integer) => (*integer).into(),
        AxisValue::Float(float) => (*float).into(),
        AxisValue::Text(text) => text.clone().into(),
        AxisValue::Bool(flag) => (*flag).into(),
    }
}

fn pretty<T: Serialize>(value: &T) -> Result<String, serde_json::Error> {
    serde_json::to_string_pretty(value).map(|text| text + "\n")
}
