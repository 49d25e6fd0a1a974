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
use curve::{CombinationBody, ReadingBody, combinations, reading_body};
use point::{PointObject, point_object};

use crate::experiment::{LEVEL, Point, SweepResult};
use crate::report::money::{self, Price};
use crate::report::rank::Ranked;
use crate::report::{provenance, reading};
use crate::scenario::{AxisValue, Scenario, Serving};

/// Rises when a key changes its meaning or goes away; new keys do not raise it.
pub const SCHEMA_VERSION: u32 = 1;

/// What was simulated; in a sweep, what its points share: a quantity that varies stands in the points alone.
#[derive(Clone, Debug, Serialize)]
struct Subject {
    scenario: String,
    deployment: String,
    arrivals: String,
    seed: u64,
    /// Confidence level of every half-width.
    interval_level: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    gpus: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    replicas: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    gpu: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    engine: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    profile: Option<ProfileNote>,
    #[serde(skip_serializing_if = "Option::is_none")]
    price: Option<Price>,
    #[serde(skip_serializing_if = "Option::is_none")]
    left_out: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
struct ProfileNote {
    name: String,
    standing: &'static str,
    /// Of the engine, that it was fitted on.
    versions: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    fitted_models: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    held_out_error: Option<String>,
    /// Models that the error is of.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    scored_models: Vec<String>,
}

fn subject(base: &Scenario, scenarios: &[&Scenario]) -> Subject {
    let serving = |pick: fn(&Serving) -> String| {
        shared(scenarios, |scenario| scenario.serving.as_deref().map(pick)).flatten()
    };
    let profile = |scenario: &Scenario| {
        let profile = &scenario.serving.as_ref()?.profile;
        Some(ProfileNote {
            name: profile.name.clone(),
            standing: profile.standing.name(),
            versions: profile.versions.clone(),
            fitted_models: profile.fitted_models().to_vec(),
            held_out_error: profile.held_out_error.clone(),
            scored_models: profile.scored_models().to_vec(),
        })
    };
    Subject {
        scenario: base.name.clone(),
        deployment: provenance::deployment_of(scenarios),
        arrivals: provenance::arrivals_of(scenarios),
        seed: base.seed,
        interval_level: LEVEL,
        gpus: shared(scenarios, |scenario| scenario.gpus),
        replicas: shared(scenarios, |scenario| scenario.system.replicas),
        model: serving(|serving| serving.model.name.clone()),
        gpu: serving(|serving| serving.hardware.name.clone()),
        engine: serving(provenance::engine_version),
        profile: shared(scenarios, profile).flatten(),
        price: shared(scenarios, money::price).flatten(),
        left_out: provenance::left_out(scenarios),
        warnings: base.warnings.clone(),
    }
}

/// A value that all scenarios have in common; `None` where they differ.
fn shared<T: PartialEq>(scenarios: &[&Scenario], value: impl Fn(&Scenario) -> T) -> Option<T> {
    let (first, others) = scenarios.split_first()?;
    let first = value(first);
    others.iter().all(|other| value(other) == first).then_some(first)
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
    #[serde(skip_serializing_if = "Vec::is_empty")]
    combinations: Vec<CombinationBody>,
    points: Vec<SweepPoint>,
}

#[derive(Serialize)]
struct SweepPoint {
    coordinates: BTreeMap<String, serde_json::Value>,
    gpus: u32,
    replicas: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    price: Option<Price>,
    /// 1 is the best of those that `--top` asked for; the others have none.
    #[serde(skip_serializing_if = "Option::is_none")]
    rank: Option<usize>,
    /// Whether no other point beats it in all of what `--pareto` named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pareto: Option<bool>,
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
        subject: subject(&point.scenario, &[&point.scenario]),
        point: point_object(point),
    })
}

/// `summary.json` of a sweep and its best points.
///
/// # Errors
/// As [`run`].
pub fn sweep(result: &SweepResult, ranked: &Ranked) -> Result<String, serde_json::Error> {
    let points = result.points.iter().enumerate().map(|(position, point)| SweepPoint {
        coordinates: result.axes.iter().cloned().zip(point.coordinates.iter().map(axis)).collect(),
        gpus: point.scenario.gpus,
        replicas: point.scenario.system.replicas,
        price: money::price(&point.scenario),
        rank: ranked.rank(position),
        pareto: ranked.is_on_frontier(position),
        point: point_object(point),
    });
    pretty(&SweepFile {
        schema_version: SCHEMA_VERSION,
        kind: "sweep",
        knee_version: env!("CARGO_PKG_VERSION"),
        subject: subject(&result.base, &provenance::scenarios(result)),
        axes: result.axes.clone(),
        reading: reading::curve(result).map(|reading| reading_body(result, reading)),
        combinations: combinations(result),
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
