//! What a throughput-latency curve says: three numbers that are never mixed up.
//!
//! *SLO capacity*: the highest load at which every objective holds with confidence. *Stability limit*:
//! where the backlog starts to grow. *Knee*: where latency turns up, a description of the curve's shape
//! on the range that was looked at.

use super::estimate::outside;
use super::first_to_fail::first_to_fail;
use super::point::Point;
use super::saturation::saturate;
use super::{Estimate, SloVerdict, Verdict, binding, objective};
use crate::engine::EngineError;
use crate::metrics::latency_of;
use crate::scenario::AxisValue;
use crate::stats::{crossing, find_knee};
use crate::workload::{Metric, Statistic};

/// What a curve says. Loads are in the unit of the axis ([`CurveReading::load_unit`]).
#[derive(Clone, Debug)]
pub struct CurveReading {
    /// `req/s` or `users`.
    pub load_unit: &'static str,
    /// `None` where nothing was promised.
    pub capacity: Option<SloCapacity>,
    pub stability_limit: Option<StabilityLimit>,
    pub knee: Option<Knee>,
}

/// The highest load at which the objectives hold.
#[derive(Clone, Debug, PartialEq)]
pub struct SloCapacity {
    /// Last passing load, with every lower one passing too: the guaranteed one. `None` if the lowest
    /// load does not pass.
    pub guaranteed: Option<f64>,
    /// First failing load above it; `None` if no load fails.
    pub first_failing: Option<f64>,
    /// Load at which the worst objective is met with equality, interpolated between the loads of the
    /// sweep, over replications; `None` where the curve becomes unstable first.
    pub estimate: Option<Estimate>,
    /// Where that load came out, if not between the two above; with all of its interval outside it is withheld.
    pub doubt: Option<&'static str>,
    /// The objective that fails first, in words.
    pub binding: Option<String>,
}

/// Where the backlog starts to grow.
#[derive(Clone, Debug, PartialEq)]
pub struct StabilityLimit {
    /// Highest stable load, and lowest unstable one above it.
    pub last_stable: Option<f64>,
    pub first_unstable: Option<f64>,
    /// Completed requests per second while the backlog never empties.
    pub saturated_per_s: Estimate,
    /// What the system runs out of there, in words.
    pub binding: String,
}

/// The knee of the latency curve by Kneedle.
#[derive(Clone, Debug, PartialEq)]
pub struct Knee {
    pub load: f64,
    /// The range of stable loads it was computed on, on which it depends.
    pub from: f64,
    pub to: f64,
    /// The latency whose curve it is.
    pub metric: Metric,
    pub statistic: Statistic,
}

/// The unit of the load that the axis `key` varies, if it is a load.
#[must_use]
pub fn load_unit(key: &str) -> Option<&'static str> {
    match key.strip_prefix("arrivals.")? {
        "poisson.rate_per_s" | "gamma.rate_per_s" | "weibull.rate_per_s" | "constant.rate_per_s" => {
            Some("req/s")
        }
        "closed.users" => Some("users"),
        _ => None,
    }
}

/// Reads the curve of `points`, which differ in one axis that is a load.
///
/// # Errors
/// What stops the extra runs that find the saturated throughput.
pub fn read_curve(key: &str, points: &[Point]) -> Result<Option<CurveReading>, EngineError> {
    let Some(load_unit) = load_unit(key) else {
        return Ok(None);
    };
    let mut curve: Vec<(f64, &Point)> =
        points.iter().filter_map(|point| Some((number(point.coordinates.first()?)?, point))).collect();
    curve.sort_by(|a, b| a.0.total_cmp(&b.0));
    if curve.is_empty() {
        return Ok(None);
    }
    Ok(Some(CurveReading {
        load_unit,
        capacity: capacity(&curve)?,
        stability_limit: stability_limit(&curve)?,
        knee: knee(&curve),
    }))
}

/// An axis value as a number, if it is one.
#[must_use]
pub fn number(value: &AxisValue) -> Option<f64> {
    match value {
        AxisValue::Integer(value) => Some(*value as f64),
        AxisValue::Float(value) => Some(*value),
        AxisValue::Text(_) | AxisValue::Bool(_) => None,
    }
}

fn capacity(curve: &[(f64, &Point)]) -> Result<Option<SloCapacity>, EngineError> {
    if curve.iter().all(|(_, point)| point.slo == SloVerdict::NoObjectives) {
        return Ok(None);
    }
    let passing = curve.iter().take_while(|(_, point)| point.slo == SloVerdict::Met).count();
    let fails =
        |(_, point): &(f64, &Point)| matches!(point.slo, SloVerdict::Missed { .. } | SloVerdict::Unstable);
    let failing = curve[passing..].iter().position(fails).map(|after| passing + after);
    let binding = match failing {
        Some(at) => {
            let first = first_to_fail(at.checked_sub(1).map(|below| curve[below]), curve[at])?;
            Some(first.unwrap_or_else(|| "the backlog grows without bound".to_owned()))
        }
        None => None,
    };
    let failing = failing.map(|at| curve[at]);
    let guaranteed = passing.checked_sub(1).map(|last| curve[last].0);
    let first_failing = failing.map(|(load, _)| load);
    let estimate = equality_load(curve);
    let doubt = estimate.and_then(|estimate| outside(&estimate, guaranteed, first_failing));
    Ok(Some(SloCapacity {
        guaranteed,
        first_failing,
        estimate: estimate.filter(|_| !doubt.is_some_and(|(_, is_all)| is_all)),
        doubt: doubt.map(|(why, _)| why),
        binding,
    }))
}

/// The load at which the worst objective is met with equality, per replication, then averaged. Only where
/// the curve leaves the objectives before it leaves stability: in between, a latency is the length of the
/// run, and interpolating towards it would give a number that means nothing.
fn equality_load(curve: &[(f64, &Point)]) -> Option<Estimate> {
    let loads: Vec<f64> = curve.iter().map(|(load, _)| *load).collect();
    let stable = curve.iter().take_while(|(_, point)| point.stability.verdict != Verdict::Unstable).count();
    let replications = curve.iter().map(|(_, point)| point.runs.len()).min()?;
    let ratio = |(_, point): &(f64, &Point), replication: usize| {
        objective::worst_ratio(&point.scenario.workload.classes, &point.runs[replication])
    };
    let last = curve.get(stable.checked_sub(1)?)?;
    let at_last: Option<Vec<f64>> = (0..replications).map(|r| ratio(last, r)).collect();
    if crate::stats::mean(&at_last?)? <= 1.0 {
        return None;
    }
    let mut crossings = Vec::new();
    for replication in 0..replications {
        let ratios: Option<Vec<f64>> = curve.iter().map(|at| ratio(at, replication)).collect();
        crossings.push(crossing(&loads, &ratios?, 1.0)?);
    }
    Estimate::of(&crossings)
}

fn stability_limit(curve: &[(f64, &Point)]) -> Result<Option<StabilityLimit>, EngineError> {
    let is = |verdict: Verdict| move |(_, point): &&(f64, &Point)| point.stability.verdict == verdict;
    let Some((_, highest)) = curve.last() else {
        return Ok(None);
    };
    let Some(saturation) = saturate(&highest.scenario)? else {
        return Ok(None);
    };
    Ok(Some(StabilityLimit {
        last_stable: curve.iter().rfind(is(Verdict::Stable)).map(|(load, _)| *load),
        first_unstable: curve.iter().find(is(Verdict::Unstable)).map(|(load, _)| *load),
        saturated_per_s: saturation.completed_per_s,
        binding: binding::in_words(&saturation.point),
    }))
}

fn knee(curve: &[(f64, &Point)]) -> Option<Knee> {
    let stable: Vec<(f64, f64)> = curve
        .iter()
        .filter(|(_, point)| point.stability.verdict == Verdict::Stable)
        .filter_map(|(load, point)| Some((*load, mean_e2e_s(point)?)))
        .collect();
    let (loads, latencies): (Vec<f64>, Vec<f64>) = stable.into_iter().unzip();
    let at = find_knee(&loads, &latencies)?;
    Some(Knee {
        load: loads[at],
        from: *loads.first()?,
        to: *loads.last()?,
        metric: Metric::E2e,
        statistic: Statistic::Mean,
    })
}

fn mean_e2e_s(point: &Point) -> Option<f64> {
    let values: Option<Vec<f64>> = point
        .runs
        .iter()
        .map(|run| latency_of(&run.all, Metric::E2e).map(|latency| latency.mean_s))
        .collect();
    crate::stats::mean(&values?)
}
