//! `knee list keys`, `knee show key NAME`: the reference of the scenario file, from the reader's own tables.

use super::error::Failure;
use crate::nearest::{hint, nearest_product};
use crate::report::table::{MAX_WIDTH, wrapped};
use crate::scenario::forms::FORMS;
use crate::scenario::keys::{Key, Kind, SYNTHETIC_ENGINE, TOP, Table};

/// A key's row: dotted name, then what it takes, its default and its meaning.
fn row(path: &str, key: &Key) -> (String, String) {
    let name = if path.is_empty() { key.name.to_owned() } else { format!("{path}.{}", key.name) };
    (name, format!("{}; {}; default: {}", key.meaning, key.kind.describe(), key.fallback.describe()))
}

fn rows_of(table: &'static Table, path: &str, rows: &mut Vec<(String, String)>) {
    for key in table.keys {
        let (name, text) = row(path, key);
        match key.kind {
            Kind::Table(inner) => rows_of(inner, &name, rows),
            Kind::Tables(inner) => rows_of(inner, &format!("{name}.NAME"), rows),
            _ => rows.push((name, text)),
        }
    }
}

fn rows() -> Vec<(String, String)> {
    let mut rows = Vec::new();
    rows_of(TOP, "", &mut rows);
    let mut synthetic = Vec::new();
    rows_of(SYNTHETIC_ENGINE, "engine", &mut synthetic);
    for (name, text) in synthetic {
        if rows.iter().all(|(other, _)| *other != name) {
            rows.push((name, format!("with engine.name = \"synthetic\": {text}")));
        }
    }
    rows
}

/// All dotted keys.
pub(super) fn names() -> Vec<String> {
    rows().into_iter().map(|(name, _)| name).collect()
}

/// The whole reference, or with `only` one key of it.
pub(super) fn reference(only: Option<&str>) -> Result<String, Failure> {
    let chosen: Vec<(String, String)> =
        rows().into_iter().filter(|(name, _)| only.is_none_or(|only| only == name)).collect();
    if let (Some(only), true) = (only, chosen.is_empty()) {
        let names = names();
        // Its last part may be enough to know it by.
        let last = |name: &str| name.rsplit('.').next().unwrap_or_default().to_owned();
        let near = nearest_product(only, names.iter().map(|name| (name.as_str(), last(name))));
        return Err(Failure::NoSuchKey { key: only.to_owned(), hint: hint(&near) });
    }
    let mut text = String::new();
    for (name, meaning) in chosen {
        text += &format!("{name}\n");
        for line in wrapped(&meaning, MAX_WIDTH - 4) {
            text += &format!("    {line}\n");
        }
    }
    if only.is_none() {
        text += &forms();
    }
    Ok(text)
}

fn forms() -> String {
    let mut text = String::from("\ndistributions (of tokens; of seconds where the key ends in _s)\n");
    for form in FORMS {
        let parameter = |p: &crate::scenario::forms::Parameter| {
            if p.required { p.name.to_owned() } else { format!("[{}]", p.name) }
        };
        let parameters: Vec<String> = form.parameters.iter().map(parameter).collect();
        text += &format!("    {{ {} = {{ {} }} }}\n", form.name, parameters.join(", "));
    }
    text += "\nslo = { ttft_p99_ms = 500, tpot_mean_ms = 40, ... }: ttft, tpot, itl, e2e, ntpot or queue; mean, p50,\n";
    text += "p90, p95, p99 or any other; and { ttft_ms = 1000, attainment = 0.99 }: what each request must meet,\n";
    text += "and the share that must\n";
    text += "\nOn the command line: --set class.chat.slo.ttft_p99_ms=300, or any TOML value:\n";
    text += "--set 'sweep={\"arrivals.poisson.rate_per_s\"={from=5,to=40,points=15}}'\n";
    text
}
