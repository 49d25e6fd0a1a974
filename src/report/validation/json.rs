//! The errors for programs: every load with both sides, and the table.

use serde::Serialize;

use super::SetErrors;
use crate::validate::{ErrorRow, Figure, Regime, Scored, error_table};

#[derive(Serialize)]
struct Validation<'a> {
    schema_version: u32,
    sets: Vec<Set<'a>>,
}

#[derive(Serialize)]
struct Set<'a> {
    name: &'a str,
    errors: Vec<Group>,
    loads: Vec<Load<'a>>,
}

#[derive(Serialize)]
struct Group {
    /// `all`, or a distance from saturation.
    loads: &'static str,
    figure: &'static str,
    count: usize,
    median_percent: f64,
    worst_percent: f64,
    worst_load: String,
}

#[derive(Serialize)]
struct Load<'a> {
    name: String,
    profile: &'a str,
    holdout: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    saturation: Option<&'static str>,
    figures: Vec<Compared>,
}

#[derive(Serialize)]
struct Compared {
    figure: &'static str,
    measured: f64,
    simulated: f64,
    error_percent: f64,
}

const SCHEMA_VERSION: u32 = 1;

/// `validation.json`.
///
/// # Errors
/// Only if a number is not finite.
pub fn json(sets: &[SetErrors]) -> Result<String, serde_json::Error> {
    let sets = sets.iter().map(|set| Set {
        name: &set.name,
        errors: groups(&set.scored),
        loads: set.scored.iter().map(load).collect(),
    });
    let validation = Validation { schema_version: SCHEMA_VERSION, sets: sets.collect() };
    Ok(serde_json::to_string_pretty(&validation)? + "\n")
}

fn groups(scored: &[Scored]) -> Vec<Group> {
    let of = |loads: &'static str, rows: Vec<ErrorRow>| {
        rows.into_iter().map(move |row| Group {
            loads,
            figure: row.figure.column(),
            count: row.cells,
            median_percent: row.median_percent,
            worst_percent: row.worst_percent,
            worst_load: row.worst_cell,
        })
    };
    let mut groups: Vec<Group> = of("all", error_table(scored)).collect();
    for regime in Regime::ALL {
        let members = scored.iter().filter(|one| one.regime == Some(regime));
        groups.extend(of(regime.name(), error_table(members)));
    }
    groups
}

fn load(one: &Scored) -> Load<'_> {
    let compared = |figure: Figure| {
        Some(Compared {
            figure: figure.column(),
            measured: one.cell.measured.get(figure)?,
            simulated: one.simulated.get(figure)?,
            error_percent: one.error_percent(figure)?,
        })
    };
    Load {
        name: one.cell.name(),
        profile: &one.cell.serving().profile.name,
        holdout: one.cell.holdout,
        saturation: one.regime.map(Regime::name),
        figures: Figure::ALL.into_iter().filter_map(compared).collect(),
    }
}
