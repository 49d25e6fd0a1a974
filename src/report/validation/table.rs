//! The error table: a row a figure, for each set all its loads and then by distance from saturation.

use super::SetErrors;
use crate::report::table::{Columns, Look, Tone, labelled};
use crate::validate::{Cell, Regime, Scored, error_table};

/// What `knee validate` prints.
#[must_use]
pub fn table(sets: &[SetErrors], look: Look) -> String {
    let mut lines = Vec::new();
    for set in sets {
        let profile = set.scored.first().map(|one| profile_of(&one.cell)).unwrap_or_default();
        lines.push(format!("{}: {profile}", look.paint(Tone::Strong, &set.name)));
        lines.extend(errors(&set.scored));
        lines.push(String::new());
    }
    lines.extend(labelled(
        "error",
        "simulated over measured - 1; median of its size over loads, and the worst with its sign",
    ));
    lines.extend(labelled(
        "saturation",
        "load over the throughput that the deployment saturates at with such requests: below 80 %, to 95 %, above",
    ));
    lines.join("\n") + "\n"
}

fn profile_of(cell: &Cell) -> String {
    let serving = cell.serving();
    let profile = &serving.profile;
    format!("{} on {}, profile {}", serving.model.name, serving.hardware.name, profile.name)
}

fn errors(scored: &[Scored]) -> Vec<String> {
    let header = ["loads", "figure", "count", "median %", "worst %", "worst load"].map(str::to_owned);
    let mut columns = Columns::words_last(&header, 2);
    let mut group = |name: &str, members: Vec<&Scored>| {
        for (position, row) in error_table(members.iter().copied()).iter().enumerate() {
            columns.row(&[
                if position == 0 { name.to_owned() } else { String::new() },
                row.figure.name().to_owned(),
                row.cells.to_string(),
                format!("{:.1}", row.median_percent),
                format!("{:+.1}", row.worst_percent),
                row.worst_cell.clone(),
            ]);
        }
    };
    group("all", scored.iter().collect());
    for regime in Regime::ALL {
        let members: Vec<&Scored> = scored.iter().filter(|one| one.regime == Some(regime)).collect();
        if !members.is_empty() && members.len() < scored.len() {
            group(regime.name(), members);
        }
    }
    columns.lines()
}
