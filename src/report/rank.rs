//! Which points of a sweep are best: the first few by one metric, and those that no other beats in all of several.
//!
//! Only points count whose value exists (no latency of an unstable point does) and that do not miss their
//! objectives; where nothing was promised, every stable point does.

use super::points::{Column, Values, columns, number_names};
use crate::experiment::{Point, SloVerdict, SweepResult, Verdict};
use crate::metrics::RunMode;
use crate::nearest::{hint, nearest};
use crate::scenario::{Axis, Scenario};

/// What was asked for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ranking {
    /// So many of the best by a metric.
    pub top: Option<(usize, String)>,
    /// Metrics of which no other point is better in one and as good in the others.
    pub pareto: Vec<String>,
}

impl Ranking {
    /// What was asked for, as text: the files of a sweep depend on it.
    #[must_use]
    pub fn choices(&self) -> String {
        if *self == Self::default() { String::new() } else { format!("{self:?}\n") }
    }

    /// Every metric that was named, and the option that named it.
    fn metrics(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let by = self.top.iter().map(|(_, metric)| ("--by", metric.as_str()));
        by.chain(self.pareto.iter().map(|metric| ("--pareto", metric.as_str())))
    }
}

/// What is not known of a ranking.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum RankError {
    #[error("{option} {metric}: no such column of numbers in curve.csv; {hint}there are: {there_are}")]
    NoMetric { option: &'static str, metric: String, hint: String, there_are: String },
}

/// The points that stand out, by position in the sweep; `None` where nobody asked.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ranked {
    /// The best first.
    pub top: Option<Vec<usize>>,
    pub pareto: Option<Vec<usize>>,
}

impl Ranked {
    /// The rank of a point, 1 the best, if it is among the best that were asked for.
    #[must_use]
    pub fn rank(&self, position: usize) -> Option<usize> {
        let top = self.top.as_ref()?;
        top.iter().position(|other| *other == position).map(|before| before + 1)
    }

    /// Whether no other point beats this one; `None` where nobody asked.
    #[must_use]
    pub fn is_on_frontier(&self, position: usize) -> Option<bool> {
        self.pareto.as_ref().map(|pareto| pareto.contains(&position))
    }

    /// What the table writes beside a point: its rank, and `*` on the frontier.
    #[must_use]
    pub fn mark(&self, position: usize) -> String {
        let rank = self.rank(position).map_or(String::new(), |rank| format!("{rank}."));
        let star = if self.is_on_frontier(position) == Some(true) { "*" } else { "" };
        [&rank, star].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ")
    }

    /// The columns `rank` and `pareto` of so many points, as far as they were asked for.
    fn columns(&self, points: usize) -> impl Iterator<Item = Column> {
        let rank = self.top.as_ref().map(|_| {
            let rank = |at| self.rank(at).and_then(|rank| i64::try_from(rank).ok());
            Column { name: "rank".to_owned(), values: Values::Whole((0..points).map(rank).collect()) }
        });
        let pareto = self.pareto.as_ref().map(|_| {
            let flags = (0..points).map(|at| self.is_on_frontier(at)).collect();
            Column { name: "pareto".to_owned(), values: Values::Flag(flags) }
        });
        rank.into_iter().chain(pareto)
    }
}

/// The table of a sweep: its points, then their `rank` and `pareto` as far as those were asked for.
#[must_use]
pub fn ranked_columns(result: &SweepResult, ranked: &Ranked) -> Vec<Column> {
    let mut table = columns(&result.axes, &result.points);
    table.extend(ranked.columns(result.points.len()));
    table
}

/// Finds a metric that no sweep over these axes has, before anything runs; `scenario` is any of its points.
///
/// # Errors
/// [`RankError`].
pub fn check(ranking: &Ranking, axes: &[Axis], scenario: &Scenario) -> Result<(), RankError> {
    let names = number_names(axes, scenario);
    match ranking.metrics().find(|(_, metric)| !names.iter().any(|name| name == metric)) {
        Some((option, metric)) => Err(no_metric(option, metric, &names)),
        None => Ok(()),
    }
}

fn no_metric(option: &'static str, metric: &str, names: &[String]) -> RankError {
    let near = nearest(metric, names.iter().map(String::as_str));
    let hint = hint(&near);
    RankError::NoMetric { option, metric: metric.to_owned(), hint, there_are: names.join(", ") }
}

/// Words at the end of a column's name, or the whole of it, of which more is better; of all others less is.
const MORE_IS_BETTER: [&str; 5] =
    ["completed_per_s", "good_per_s", "good_fraction", "input_tokens_per_s", "output_tokens_per_s"];

/// Ranks the points of a sweep.
///
/// # Errors
/// [`RankError`]: a metric that is no column of numbers.
pub fn rank(result: &SweepResult, ranking: &Ranking) -> Result<Ranked, RankError> {
    let columns = columns(&result.axes, &result.points);
    let counts: Vec<bool> = result.points.iter().map(counts).collect();
    // The smaller the better, whatever the metric.
    let scores = |option: &'static str, metric: &str| -> Result<Vec<Option<f64>>, RankError> {
        let values = numbers(&columns, option, metric)?;
        let sign = if MORE_IS_BETTER.iter().any(|name| metric.ends_with(name)) { -1.0 } else { 1.0 };
        Ok(values
            .iter()
            .zip(&counts)
            .map(|(value, counts)| value.filter(|_| *counts).map(|v| sign * v))
            .collect())
    };
    let mut ranked = Ranked::default();
    if let Some((most, metric)) = &ranking.top {
        let scores = scores("--by", metric)?;
        let mut positions: Vec<usize> = (0..scores.len()).filter(|at| scores[*at].is_some()).collect();
        // Equals stay in the order of the sweep.
        positions.sort_by(|a, b| scores[*a].unwrap_or(0.0).total_cmp(&scores[*b].unwrap_or(0.0)));
        positions.truncate(*most);
        ranked.top = Some(positions);
    }
    if !ranking.pareto.is_empty() {
        let scores =
            ranking.pareto.iter().map(|metric| scores("--pareto", metric)).collect::<Result<Vec<_>, _>>()?;
        let point = |at: usize| -> Option<Vec<f64>> { scores.iter().map(|scores| scores[at]).collect() };
        let points: Vec<Option<Vec<f64>>> = (0..result.points.len()).map(point).collect();
        let beaten = |own: &Vec<f64>| {
            let beats =
                |other: &Vec<f64>| other != own && other.iter().zip(own).all(|(other, own)| other <= own);
            points.iter().flatten().any(beats)
        };
        let frontier = |at: &usize| points[*at].as_ref().is_some_and(|own| !beaten(own));
        ranked.pareto = Some((0..points.len()).filter(frontier).collect());
    }
    Ok(ranked)
}

fn numbers(columns: &[Column], option: &'static str, metric: &str) -> Result<Vec<Option<f64>>, RankError> {
    let found = columns.iter().find(|column| column.name == metric);
    found.and_then(|column| column.values.numbers()).ok_or_else(|| {
        let numbers = columns.iter().filter(|column| column.values.numbers().is_some());
        let names: Vec<String> = numbers.map(|column| column.name.clone()).collect();
        no_metric(option, metric, &names)
    })
}

fn counts(point: &Point) -> bool {
    let lasting = point.stability.verdict == Verdict::Stable || point.scenario.run.mode == RunMode::Benchmark;
    match point.slo {
        SloVerdict::Met => true,
        SloVerdict::NoObjectives => lasting,
        _ => false,
    }
}
