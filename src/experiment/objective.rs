//! Whether the promises hold at a point.

use std::fmt;

use super::estimate::Estimate;
use super::stability::{Verdict, cut_short};
use crate::metrics::{Group, RunMode, RunSummary};
use crate::workload::{Class, Objective, Statistic};

/// Whether the objectives hold at a point.
#[derive(Clone, Debug, PartialEq)]
pub enum SloVerdict {
    /// Nothing was promised.
    NoObjectives,
    /// Every objective holds, its confidence bound included.
    Met,
    /// Some objective's estimate fails.
    Missed { binding: String },
    /// The estimates pass but a confidence bound does not, or stability is undecided.
    Unclear { binding: String },
    /// The system does not keep up, so the objectives cannot hold for long.
    Unstable,
}

/// How one objective came out: its value over its limit, at most 1 where it holds.
#[derive(Clone, Debug, PartialEq)]
pub struct Margin {
    /// Class and objective in words: `chat: TTFT p99 ≤ 500 ms`.
    pub objective: String,
    /// Value over limit, over replications (for attainment: missed share over allowed share).
    pub ratio: Estimate,
}

/// The margin of every objective of every class, over the replications; those whose metric nobody had
/// are left out.
#[must_use]
pub fn margins(classes: &[Class], runs: &[RunSummary]) -> Vec<Margin> {
    let mut margins = Vec::new();
    for (index, class) in classes.iter().enumerate() {
        let groups: Vec<&Group> = runs.iter().filter_map(|run| run.classes.get(index)).collect();
        for (at, objective) in class.slo.objectives.iter().enumerate() {
            let ratios: Vec<f64> = groups.iter().filter_map(|group| value_over_limit(group, at)).collect();
            let mut words = format!("{}: {}", class.name, in_words(objective, class.slo.attainment));
            if groups.iter().any(|group| too_many_refused(group, objective.statistic)) {
                let refused = 100.0 * groups.iter().map(|g| refused(g)).sum::<f64>() / groups.len() as f64;
                words += &format!(", with {refused:.2} % of the requests refused");
                words += &most_refused_for(runs).map_or(String::new(), |why| format!(" ({why})"));
            }
            margins.extend(Estimate::of(&ratios).map(|ratio| Margin { objective: words, ratio }));
        }
        if class.slo.objectives.iter().any(|o| o.statistic == Statistic::Request) {
            let allowed = 1.0 - class.slo.attainment;
            let ratios: Vec<f64> =
                groups.iter().filter_map(|g| g.attainment).map(|met| over(1.0 - met, allowed)).collect();
            let objective = format!(
                "{}: {} % of requests within their limits",
                class.name,
                percent(class.slo.attainment)
            );
            margins.extend(Estimate::of(&ratios).map(|ratio| Margin { objective, ratio }));
        }
    }
    margins
}

/// The worst value over limit of one replication: 1 where an objective is met with equality.
#[must_use]
pub fn worst_ratio(classes: &[Class], run: &RunSummary) -> Option<f64> {
    let runs = std::slice::from_ref(run);
    margins(classes, runs).iter().map(|margin| margin.ratio.mean).reduce(f64::max)
}

/// Judges a point.
#[must_use]
pub fn judge(classes: &[Class], runs: &[RunSummary], stability: Verdict) -> SloVerdict {
    let margins = margins(classes, runs);
    if classes.iter().all(|class| class.slo.objectives.is_empty()) {
        return SloVerdict::NoObjectives;
    }
    if stability == Verdict::Unstable {
        return SloVerdict::Unstable;
    }
    let worst = |of: fn(&Estimate) -> f64| {
        margins.iter().max_by(|a, b| of(&a.ratio).total_cmp(&of(&b.ratio))).map(|m| (of(&m.ratio), m))
    };
    let Some((upper, at_bound)) = worst(Estimate::upper) else {
        return SloVerdict::Unclear { binding: "no request completed in the window".to_owned() };
    };
    if let Some((mean, at_mean)) = worst(|ratio| ratio.mean)
        && mean > 1.0
    {
        return SloVerdict::Missed { binding: at_mean.objective.clone() };
    }
    if upper > 1.0 {
        return SloVerdict::Unclear { binding: at_bound.objective.clone() };
    }
    // A finite batch has no steady state to be undecided about.
    if stability == Verdict::Undecided && runs.iter().any(|run| run.window.mode == RunMode::Steady) {
        return SloVerdict::Unclear { binding: "whether the system keeps up is undecided".to_owned() };
    }
    if let Some(share) = cut_short(runs) {
        let binding = format!("runs end with {:.0} % of their requests under way", 100.0 * share);
        return SloVerdict::Unclear { binding };
    }
    match too_short_for(classes, runs) {
        Some(binding) => SloVerdict::Unclear { binding },
        None => SloVerdict::Met,
    }
}

/// Per-request limits are judged together by attainment, so they have no ratio of their own. A refused
/// request has no latency, but it has not met its objective either: refusals beyond the share that the
/// quantile leaves fail it.
fn value_over_limit(group: &Group, at: usize) -> Option<f64> {
    let result = group.objectives.get(at)?;
    let limit_s = result.objective.limit_s;
    match result.objective.statistic {
        Statistic::Request => None,
        Statistic::Mean => result.value_s.map(|value_s| over(value_s, limit_s)),
        Statistic::Quantile(q) if too_many_refused(group, result.objective.statistic) => {
            Some(over(refused(group), 1.0 - q))
        }
        Statistic::Quantile(_) => result.value_s.map(|value_s| over(value_s, limit_s)),
    }
}

/// Why most of those were refused that were.
pub(super) fn most_refused_for(runs: &[RunSummary]) -> Option<&'static str> {
    let reasons = runs.iter().flat_map(|run| run.totals.refusals());
    reasons.filter(|(refused, _)| *refused > 0).max_by_key(|(refused, _)| *refused).map(|(_, why)| why)
}

/// Requests that are refused whatever the load, in words: `share: why`.
#[derive(Clone, Debug)]
pub struct Refused {
    pub share: String,
    pub why: &'static str,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.share, self.why)
    }
}

/// That more requests are refused than an objective leaves, for being what they are and not for the load.
#[must_use]
pub fn refused_at_any_load(classes: &[Class], runs: &[RunSummary]) -> Option<Refused> {
    if runs.iter().any(|run| run.totals.rejected_queue_full > 0) {
        return None;
    }
    let too_many = |index: usize, class: &Class| {
        let mut groups = runs.iter().filter_map(|run| run.classes.get(index));
        let left_out = |statistic| match statistic {
            // Of nobody there is no mean.
            Statistic::Mean => 1.0 - f64::EPSILON,
            Statistic::Quantile(q) => 1.0 - q,
            Statistic::Request => 1.0 - class.slo.attainment,
        };
        groups.any(|group| class.slo.objectives.iter().any(|one| refused(group) > left_out(one.statistic)))
    };
    if !classes.iter().enumerate().any(|(index, class)| too_many(index, class)) {
        return None;
    }
    let sum = |of: fn(&RunSummary) -> u64| runs.iter().map(of).sum::<u64>() as f64;
    let share = sum(|run| run.all.rejected) / sum(|run| run.all.rejected + run.all.completed).max(1.0);
    let why = most_refused_for(runs)?;
    Some(Refused { share: format!("{:.3} % of the requests are refused at any load", 100.0 * share), why })
}

/// That limits are promised to every request of a class, which no number of requests shows; in words.
#[must_use]
pub fn promised_to_all(classes: &[Class]) -> Option<String> {
    let is_of_all = |class: &&Class| {
        class.slo.attainment >= 1.0 && class.slo.objectives.iter().any(|o| o.statistic == Statistic::Request)
    };
    let class = classes.iter().find(is_of_all)?;
    Some(format!(
        "{}: every request is promised its limits (attainment = 1), which no number of requests shows; expected less \
         than 1, such as attainment = 0.999",
        class.name
    ))
}

/// The share of a group's requests that were refused.
fn refused(group: &Group) -> f64 {
    group.rejected as f64 / (group.completed + group.rejected).max(1) as f64
}

fn too_many_refused(group: &Group, statistic: Statistic) -> bool {
    matches!(statistic, Statistic::Quantile(q) if refused(group) > 1.0 - q)
}

/// Requests beyond a quantile (or an attainment) below which a run says nothing about it.
const FEWEST_BEYOND: f64 = 5.0;

/// The first objective that the runs are too short for, with what would do.
fn too_short_for(classes: &[Class], runs: &[RunSummary]) -> Option<String> {
    classes.iter().enumerate().find_map(|(index, class)| {
        let completed = runs.iter().filter_map(|run| run.classes.get(index)).map(|g| g.completed).min()?;
        let beyond = |objective: &Objective| match objective.statistic {
            Statistic::Mean => None,
            Statistic::Quantile(q) => Some(1.0 - q),
            Statistic::Request => Some(1.0 - class.slo.attainment),
        };
        class.slo.objectives.iter().find_map(|objective| {
            let share = beyond(objective)?;
            (completed as f64 * share < FEWEST_BEYOND).then(|| {
                let words = in_words(objective, class.slo.attainment);
                let enough = libm::ceil(FEWEST_BEYOND / share);
                format!(
                    "{}: {words}: a run of {completed} completed requests says too little, {enough} are needed",
                    class.name
                )
            })
        })
    })
}

fn over(value: f64, limit: f64) -> f64 {
    if limit > 0.0 {
        value / limit
    } else if value > 0.0 {
        f64::MAX
    } else {
        1.0
    }
}

/// An objective as people write it: `TTFT p99 ≤ 500 ms`.
#[must_use]
pub fn in_words(objective: &Objective, attainment: f64) -> String {
    let metric = objective.metric.key().to_uppercase();
    let limit_ms = objective.limit_s * 1e3;
    match objective.statistic {
        Statistic::Mean => format!("{metric} mean ≤ {limit_ms} ms"),
        Statistic::Quantile(q) => format!("{metric} p{} ≤ {limit_ms} ms", percent(q)),
        Statistic::Request => format!("{metric} ≤ {limit_ms} ms for {} %", percent(attainment)),
    }
}

fn percent(fraction: f64) -> f64 {
    libm::rint(fraction * 1e6) / 1e4
}
