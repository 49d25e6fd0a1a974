//! Two scenarios side by side, and what their difference shows.

use super::{Columns, Look, MAX_WIDTH, Tone, headline, labelled, wrapped};
use crate::experiment::Estimate;
use crate::experiment::compare::{Change, Comparison, Row};
use crate::report::format::{ABSENT, interval};
use crate::report::provenance;
use crate::scenario::Difference;

/// A difference whose whole interval is below this share of the value is said to be small.
const SMALL: f64 = 0.01;

/// The whole answer of a comparison.
#[must_use]
pub fn comparison(comparison: &Comparison, look: Look) -> String {
    let mut lines = differences(&comparison.differences);
    lines.push(String::new());
    for (name, point) in [("A", &comparison.a), ("B", &comparison.b)] {
        let load =
            format!("{}, {}", provenance::arrivals(&point.scenario), provenance::load(&point.scenario));
        for (place, line) in headline(&[&point.scenario], &load, look).into_iter().enumerate() {
            lines.push(if place == 0 { format!("{name}  {line}") } else { format!("   {line}") });
        }
    }
    lines.push(String::new());
    let header = ["metric", "unit", "A", "B", "B - A", "%", "B is"].map(str::to_owned);
    let mut table = Columns::words_last(&header, 2);
    for row in &comparison.rows {
        table.row(&cells(row));
    }
    lines.extend(table.lines());
    lines.push(String::new());
    for caution in &comparison.cautions {
        lines.extend(look.paint_all(Tone::Strong, labelled("caution", caution)));
    }
    let pairs = comparison.a.runs.len().min(comparison.b.runs.len());
    let statistics = format!(
        "paired over {pairs} replications on common random numbers; ± is a 95 % Student interval, each metric's \
         own; seed {}",
        comparison.a.scenario.seed
    );
    lines.extend(look.paint_all(Tone::Quiet, wrapped(&statistics, MAX_WIDTH)));
    lines.join("\n") + "\n"
}

/// The most keys that are listed; the others are in `summary.json`.
const MOST_KEYS: usize = 12;
/// A longer value is cut: a whole class, say.
const LONGEST_VALUE: usize = 40;

/// What was changed from A to B.
fn differences(all: &[Difference]) -> Vec<String> {
    let value = |value: &Option<String>| match value {
        Some(text) if text.chars().count() > LONGEST_VALUE => {
            text.chars().take(LONGEST_VALUE).collect::<String>() + "..."
        }
        Some(text) => text.clone(),
        None => "not set".to_owned(),
    };
    let one = |Difference { key, a, b }: &Difference| format!("{key}: {} -> {}", value(a), value(b));
    let mut texts: Vec<String> = all.iter().take(MOST_KEYS).map(one).collect();
    if all.len() > MOST_KEYS {
        texts.push(format!("and {} keys more", all.len() - MOST_KEYS));
    }
    if texts.is_empty() {
        texts.push("no key differs".to_owned());
    }
    let label = |place| if place == 0 { "A -> B" } else { "" };
    texts.iter().enumerate().flat_map(|(place, text)| labelled(label(place), text)).collect()
}

fn cells(row: &Row) -> [String; 7] {
    let percent = row.relative().map_or(ABSENT.to_owned(), |relative| {
        interval(&Estimate {
            mean: relative.mean * 100.0,
            half_width: relative.half_width.map(|half_width| half_width * 100.0),
        })
    });
    // A difference may be certain and yet of no consequence.
    let small = row.relative().is_some_and(|relative| {
        relative.half_width.is_some_and(|half_width| relative.mean.abs() + half_width < SMALL)
    });
    let change = match (row.change, small) {
        (Change::Better, false) => "better",
        (Change::Better, true) => "better, by under 1 %",
        (Change::Worse, false) => "worse",
        (Change::Worse, true) => "worse, by under 1 %",
        (Change::NoneShown, _) => "no difference shown",
    };
    [
        row.metric.clone(),
        row.unit.to_owned(),
        interval(&row.a),
        interval(&row.b),
        interval(&row.difference),
        percent,
        change.to_owned(),
    ]
}
