//! Which points of a sweep are best: the first few by one metric, and those that no other beats in all of several.
//!
//! Only points count whose value exists (no latency of an unstable point does) and that do not miss their
//! objectives; where nothing was promised, every stable point does.

use super::points::{Column, columns};
use crate::experiment::{Point, SloVerdict, SweepResult, Verdict};
use crate::metrics::RunMode;

/// What was asked for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ranking {
    /// So many of the best by a metric.
    pub top: Option<(usize, String)>,
    /// Metrics of which no other point is better in one and as good in the others.
    pub pareto: Vec<String>,
}

/// What is not known of a ranking.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum RankError {
    #[error("`{metric}` is no metric of this sweep; there are: {there_are}")]
    NoMetric { metric: String, there_are: String },
}

/// The points that stand out, by position in the sweep.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ranked {
    /// The best first.
    pub top: Vec<usize>,
    pub pareto: Vec<usize>,
}

impl Ranked {
    /// What the table writes beside a point: its rank, and `*` on the frontier.
    #[must_use]
    pub fn mark(&self, position: usize) -> String {
        let rank = self.top.iter().position(|other| *other == position);
        let rank = rank.map_or(String::new(), |rank| format!("{}.", rank + 1));
        let star = if self.pareto.contains(&position) { "*" } else { "" };
        [&rank, star].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ")
    }
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
    let scores = |metric: &str| -> Result<Vec<Option<f64>>, RankError> {
        let values = numbers(&columns, metric)?;
        let sign = if MORE_IS_BETTER.iter().any(|name| metric.ends_with(name)) { -1.0 } else { 1.0 };
        Ok(values
            .iter()
            .zip(&counts)
            .map(|(value, counts)| value.filter(|_| *counts).map(|v| sign * v))
            .collect())
    };
    let mut ranked = Ranked::default();
    if let Some((most, metric)) = &ranking.top {
        let scores = scores(metric)?;
        let mut positions: Vec<usize> = (0..scores.len()).filter(|at| scores[*at].is_some()).collect();
        // Equals stay in the order of the sweep.
        positions.sort_by(|a, b| scores[*a].unwrap_or(0.0).total_cmp(&scores[*b].unwrap_or(0.0)));
        positions.truncate(*most);
        ranked.top = positions;
    }
    if !ranking.pareto.is_empty() {
        let scores = ranking.pareto.iter().map(|metric| scores(metric)).collect::<Result<Vec<_>, _>>()?;
        let point = |at: usize| -> Option<Vec<f64>> { scores.iter().map(|scores| scores[at]).collect() };
        let points: Vec<Option<Vec<f64>>> = (0..result.points.len()).map(point).collect();
        let beaten = |own: &Vec<f64>| {
            let beats =
                |other: &Vec<f64>| other != own && other.iter().zip(own).all(|(other, own)| other <= own);
            points.iter().flatten().any(beats)
        };
        let frontier = |at: &usize| points[*at].as_ref().is_some_and(|own| !beaten(own));
        ranked.pareto = (0..points.len()).filter(frontier).collect();
    }
    Ok(ranked)
}

fn numbers(columns: &[Column], metric: &str) -> Result<Vec<Option<f64>>, RankError> {
    columns.iter().find(|column| column.name == metric).and_then(|column| column.values.numbers()).ok_or_else(
        || {
            let numbers = columns.iter().filter(|column| column.values.numbers().is_some());
            RankError::NoMetric {
                metric: metric.to_owned(),
                there_are: numbers.map(|column| column.name.as_str()).collect::<Vec<_>>().join(", "),
            }
        },
    )
}

fn counts(point: &Point) -> bool {
    let lasting = point.stability.verdict == Verdict::Stable || point.scenario.run.mode == RunMode::Benchmark;
    match point.slo {
        SloVerdict::Met => true,
        SloVerdict::NoObjectives => lasting,
        _ => false,
    }
}
