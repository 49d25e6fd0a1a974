//! Where the objectives are met with equality: the unbiased half of a capacity.

use crate::experiment::estimate::{Estimate, LEVEL};
use crate::experiment::objective;
use crate::experiment::point::Point;
use crate::experiment::stability::Verdict;
use crate::stats::{linear_slope, mean, student_quantile};

/// The load at which the first objective is met with equality.
#[derive(Clone, Debug, PartialEq)]
pub struct Crossing {
    pub load: Estimate,
    /// The load of each replication, in order: what a paired comparison of two capacities needs.
    pub by_replication: Vec<f64>,
    /// Growth of the logarithm of value over limit per unit of load.
    pub log_slope: f64,
    /// The objective, in words.
    pub objective: String,
}

/// How far, relative to the bracket, points may lie that help to tell the slope of the curve.
const NEAR: f64 = 1.10;
/// Values this small have no useful logarithm: nobody waits there.
const LEAST_RATIO: f64 = 1e-3;

/// The crossing between the loads of `low`, where every objective holds on average, and `high`, where
/// one does not. `None` if no objective crosses there.
///
/// The replications share their random numbers over all loads, so the mean over them of value over limit
/// is a smooth curve of the load; its logarithm is interpolated to 0. A replication's relative distance
/// from the mean there, divided by the slope, is how far its own crossing lies from the mean's; Student's
/// interval over those is the interval of the estimate. The slope is fitted to all of `points` near the
/// bracket, since two neighbours are too close together to tell it.
#[must_use]
pub fn crossing(points: &[(f64, Point)], low: f64, high: f64) -> Option<Crossing> {
    let at = |load: f64| points.iter().find(|(other, _)| *other == load).map(|(_, point)| point);
    let (below, above) = (ratios(at(low)?), ratios(at(high)?));
    let mut first: Option<Crossing> = None;
    for (objective, over) in &above {
        let Some((_, under)) = below.iter().find(|(name, _)| name == objective) else { continue };
        let candidate = crossing_of(points, (low, under), (high, over), objective);
        let is_lower =
            |candidate: &Crossing| first.as_ref().is_none_or(|first| candidate.load.mean < first.load.mean);
        if let Some(candidate) = candidate.filter(is_lower) {
            first = Some(candidate);
        }
    }
    first
}

fn crossing_of(
    points: &[(f64, Point)],
    (low, under): (f64, &[f64]),
    (high, over): (f64, &[f64]),
    objective: &str,
) -> Option<Crossing> {
    let replications = under.len().min(over.len());
    let (under, over) = (&under[..replications], &over[..replications]);
    let (y_low, y_high) = (log_mean(under)?, log_mean(over)?);
    if y_low > 0.0 || y_high <= 0.0 {
        return None;
    }
    let fraction = -y_low / (y_high - y_low);
    let load = low + fraction * (high - low);
    let alike: Vec<&(f64, Point)> = points.iter().filter(|(_, point)| is_like(points, low, point)).collect();
    let slope = local_slope(&alike, load, objective).unwrap_or((y_high - y_low) / (high - low));
    let here: Vec<f64> =
        under.iter().zip(over).map(|(under, over)| under + fraction * (over - under)).collect();
    let middle = mean(&here)?;
    let by_replication: Vec<f64> = here.iter().map(|ratio| load - (ratio / middle - 1.0) / slope).collect();
    let half_width = Estimate::of(&by_replication)?.half_width;
    Some(Crossing {
        load: Estimate { mean: load, half_width },
        by_replication,
        log_slope: slope,
        objective: objective.to_owned(),
    })
}

/// Whether `point` has runs as long, and at least as many, as the one at `load`: quantiles of shorter runs lie lower.
fn is_like(points: &[(f64, Point)], load: f64, point: &Point) -> bool {
    let at_load = points.iter().find(|(other, _)| *other == load);
    at_load.is_some_and(|(_, end)| {
        point.scenario.run.length == end.scenario.run.length && point.runs.len() >= end.runs.len()
    })
}

/// Growth of the log of the mean ratio per unit of load near `load`, over the replications that all near
/// points have; `None` where it does not clearly grow.
fn local_slope(points: &[&(f64, Point)], load: f64, objective: &str) -> Option<f64> {
    let near = || points.iter().filter(|(at, _)| *at >= load / NEAR && *at <= load * NEAR);
    let common = near().map(|(_, point)| point.runs.len()).min()?;
    let (mut loads, mut logs) = (Vec::new(), Vec::new());
    for (at, point) in near() {
        let ratios = ratios(point).into_iter().find(|(name, _)| name == objective)?.1;
        logs.push(log_mean(ratios.get(..common)?)?);
        loads.push(*at);
    }
    let slope = linear_slope(&loads, &logs)?.slope;
    (slope > 0.0).then_some(slope)
}

/// The logarithm of the mean value over limit of an objective at a point, over its first `replications`.
pub(super) fn log_ratio(point: &Point, objective: &str, replications: usize) -> Option<f64> {
    let ratios = ratios(point).into_iter().find(|(name, _)| name == objective)?.1;
    log_mean(ratios.get(..replications)?)
}

/// The load at which the logarithm of an objective's mean ratio is `level`, between the points that have runs like the one
/// at `at`, or beyond them by the crossing's slope.
pub(super) fn load_at_level(
    points: &[(f64, Point)],
    at: f64,
    crossing: &Crossing,
    level: f64,
) -> Option<f64> {
    let alike = points
        .iter()
        .filter(|(_, point)| is_like(points, at, point) && point.stability.verdict == Verdict::Stable);
    let curve: Option<Vec<(f64, f64)>> = alike
        .map(|(load, point)| Some((*load, log_ratio(point, &crossing.objective, point.runs.len())?)))
        .collect();
    let curve = curve?;
    let between = curve.windows(2).find(|pair| pair[0].1 <= level && level < pair[1].1);
    if let Some([low, high]) = between {
        return Some(low.0 + (level - low.1) / (high.1 - low.1) * (high.0 - low.0));
    }
    let nearest = curve.iter().min_by(|a, b| (a.1 - level).abs().total_cmp(&(b.1 - level).abs()))?;
    Some(nearest.0 + (level - nearest.1) / crossing.log_slope)
}

fn log_mean(ratios: &[f64]) -> Option<f64> {
    Some(libm::log(mean(ratios)?.max(LEAST_RATIO)))
}

/// Value over limit of every objective, per replication; objectives that some replication lacks are left
/// out.
pub(super) fn ratios(point: &Point) -> Vec<(String, Vec<f64>)> {
    let classes = &point.scenario.workload.classes;
    let mut all: Vec<(String, Vec<f64>)> = Vec::new();
    for run in &point.runs {
        for margin in objective::margins(classes, std::slice::from_ref(run)) {
            match all.iter_mut().find(|(name, _)| *name == margin.objective) {
                Some((_, ratios)) => ratios.push(margin.ratio.mean),
                None => all.push((margin.objective, vec![margin.ratio.mean])),
            }
        }
    }
    all.retain(|(_, ratios)| ratios.len() == point.runs.len());
    all
}

/// The mean of `b - a` over paired replications and whether its 95 % interval leaves out 0.
#[must_use]
pub fn paired(a: &[f64], b: &[f64]) -> Option<(Estimate, bool)> {
    let differences: Vec<f64> = a.iter().zip(b).map(|(a, b)| b - a).collect();
    let difference = Estimate::of(&differences)?;
    // One pair has no interval, so nothing is shown.
    student_quantile(LEVEL, differences.len() as f64 - 1.0)?;
    let shown = difference.lower() > 0.0 || difference.upper() < 0.0;
    Some((difference, shown))
}
