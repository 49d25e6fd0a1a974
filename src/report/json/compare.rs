//! `summary.json` of a comparison.

use serde::Serialize;

use super::curve::Interval;
use super::{SCHEMA_VERSION, Subject, pretty, subject};
use crate::experiment::compare::{Change, Comparison};
use crate::report::format::scaled;
use crate::scenario::Difference;

#[derive(Serialize)]
struct CompareFile<'a> {
    schema_version: u32,
    kind: &'static str,
    knee_version: &'static str,
    a: Subject,
    b: Subject,
    replications: usize,
    /// Keys that are not the same in both.
    differences: &'a [Difference],
    rows: Vec<RowBody>,
    cautions: Vec<String>,
}

#[derive(Serialize)]
struct RowBody {
    metric: String,
    unit: &'static str,
    a: Interval,
    b: Interval,
    difference: Interval,
    /// The same in per cent of A's value.
    #[serde(skip_serializing_if = "Option::is_none")]
    difference_percent: Option<Interval>,
    change: &'static str,
}

/// `summary.json` of a comparison.
///
/// # Errors
/// As [`super::run`].
pub fn comparison(comparison: &Comparison) -> Result<String, serde_json::Error> {
    pretty(&CompareFile {
        schema_version: SCHEMA_VERSION,
        kind: "comparison",
        knee_version: env!("CARGO_PKG_VERSION"),
        a: subject(&comparison.a.scenario, &[&comparison.a.scenario]),
        b: subject(&comparison.b.scenario, &[&comparison.b.scenario]),
        replications: comparison.a.runs.len().min(comparison.b.runs.len()),
        differences: &comparison.differences,
        rows: comparison
            .rows
            .iter()
            .map(|row| RowBody {
                metric: row.metric.clone(),
                unit: row.unit,
                a: Interval::from(&row.a),
                b: Interval::from(&row.b),
                difference: Interval::from(&row.difference),
                difference_percent: row.relative().map(|relative| Interval::from(&scaled(&relative, 100.0))),
                change: match row.change {
                    Change::Better => "better",
                    Change::Worse => "worse",
                    Change::NoneShown => "no difference shown",
                },
            })
            .collect(),
        cautions: comparison.cautions.clone(),
    })
}
