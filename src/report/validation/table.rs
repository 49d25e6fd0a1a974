//! The error table: a row a figure, for each set all its loads and then by distance from saturation.

use super::SetErrors;
use crate::report::table::{Columns, Look, MAX_WIDTH, Tone, labelled, wrapped};
use crate::scenario::Serving;
use crate::units::distinct;
use crate::validate::{Regime, Scored, error_table};

/// What `knee validate` prints.
#[must_use]
pub fn table(sets: &[SetErrors], look: Look) -> String {
    let mut lines = Vec::new();
    for set in sets {
        let profile = simulated(&set.scored);
        let heading = wrapped(&format!("{}: {profile}", set.name), MAX_WIDTH);
        lines.extend(look.paint_all(Tone::Strong, heading));
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

/// What a set's loads were simulated with: its models, GPUs and profiles, each once.
fn simulated(scored: &[Scored]) -> String {
    let each = |of: fn(&Serving) -> &str| distinct(scored.iter().map(|one| of(one.cell.serving())));
    let profiles = each(|serving| &serving.profile.name);
    format!(
        "{} on {}, profile{} {}",
        each(|serving| &serving.model.name).join(", "),
        each(|serving| &serving.hardware.name).join(", "),
        if profiles.len() > 1 { "s" } else { "" },
        profiles.join(", ")
    )
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
