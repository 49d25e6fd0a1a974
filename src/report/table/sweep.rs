//! The throughput-latency curve as a table, and its reading below it.

use super::columns::{shown, table};
use super::{Columns, Look, MAX_WIDTH, Tone, headline, labelled, wrapped};
use crate::experiment::{CurveReading, Estimate, Point, SloVerdict, SweepResult, Verdict};
use crate::report::format::{self, ABSENT, chosen, interval};
use crate::report::rank::Ranked;
use crate::report::{grid, money, provenance, reading};
use crate::units::distinct;

/// The whole answer of a sweep.
#[must_use]
pub fn sweep(result: &SweepResult, ranked: &Ranked, look: Look) -> String {
    let scenarios = provenance::scenarios(result);
    let mut lines = headline(&scenarios, &provenance::arrivals_of(&scenarios), look);
    lines.push(String::new());
    lines.extend(rows(result, ranked, look));
    lines.push(String::new());
    let best = best(result, ranked);
    if !best.is_empty() {
        lines.extend(best);
        lines.push(String::new());
    }
    let notes = notes(result, look);
    if !notes.is_empty() {
        lines.extend(notes);
        lines.push(String::new());
    }
    if let Some(reading) = reading::curve(result) {
        lines.extend(readings(result, reading, look));
        lines.push(String::new());
    }
    if !result.combinations.is_empty() {
        lines.extend(combinations(result));
        lines.push(String::new());
    }
    let statistics = provenance::statistics(&result.points, result.base.seed);
    lines.extend(look.paint_all(Tone::Quiet, wrapped(&statistics, MAX_WIDTH)));
    lines.join("\n") + "\n"
}

/// Where no point is among the best.
const NOBODY: &str = "none: no point that meets its objectives has this metric";

/// The points that stand out, in words.
fn best(result: &SweepResult, ranked: &Ranked) -> Vec<String> {
    let name = |at: &usize| grid::name(&result.axes, None, &result.points[*at].coordinates);
    let mut lines = Vec::new();
    for (rank, at) in ranked.top.iter().flatten().enumerate() {
        lines.extend(labelled(if rank == 0 { "best" } else { "" }, &format!("{}. {}", rank + 1, name(at))));
    }
    if ranked.top.as_ref().is_some_and(Vec::is_empty) {
        lines.extend(labelled("best", NOBODY));
    }
    if let Some(pareto) = &ranked.pareto {
        let mut names: Vec<String> = pareto.iter().map(name).collect();
        if names.is_empty() {
            names.push(NOBODY.to_owned());
        }
        lines.extend(labelled("frontier *", &names.join("; ")));
    }
    lines
}

fn rows(result: &SweepResult, ranked: &Ranked, look: Look) -> Vec<String> {
    let (lines, rows) = table(result, ranked);
    // Every row is one line, so the last lines of the table are the rows in order.
    let first_row = lines.len().saturating_sub(rows.len());
    let tone = |position: usize| match position.checked_sub(first_row).and_then(|row| rows.get(row)) {
        Some(row) => tone(row.point),
        None => Tone::Plain,
    };
    lines.iter().enumerate().map(|(position, line)| look.paint(tone(position), line)).collect()
}

fn tone(point: &Point) -> Tone {
    match (point.stability.verdict, &point.slo) {
        (Verdict::Unstable, _) => Tone::Bad,
        (_, SloVerdict::Met) => Tone::Good,
        _ => Tone::Plain,
    }
}

/// What the rows cannot say: what was refused and why, the price behind the dollars.
fn notes(result: &SweepResult, look: Look) -> Vec<String> {
    let mut lines = Vec::new();
    for text in reading::refusals(&result.points) {
        lines.extend(labelled("refused", &text));
    }
    if reading::curve(result).is_none() {
        let prices = result.points.iter().filter_map(|point| money::price(&point.scenario));
        let prices = distinct(prices.map(|price| price.in_words(look.today)));
        if !prices.is_empty() {
            lines.extend(labelled("price", &prices.join("; ")));
        }
    }
    lines
}

/// One line for each curve of a grid: capacity, stability limit and knee.
fn combinations(result: &SweepResult) -> Vec<String> {
    let unit = result.combinations.first().map_or("", |one| one.reading.load_unit);
    let names = ["capacity", "first failing", "stable to", "unstable from", "saturated", "knee"];
    let mut header = vec!["\ncombination".to_owned()];
    header.extend(names.map(|name| {
        let unit = if name == "saturated" { "req/s" } else { unit };
        format!("{name}\n{unit}")
    }));
    let load = |value: Option<f64>| value.map_or(ABSENT.to_owned(), chosen);
    let mut rows: Vec<Vec<String>> = Vec::new();
    let mut dollars: Vec<Option<Estimate>> = Vec::new();
    for (combination, curve) in result.combinations.iter().zip(grid::curves(result)) {
        let reading = &combination.reading;
        let capacity = reading.capacity.as_ref();
        let limit = reading.stability_limit.as_ref();
        let guaranteed = capacity.and_then(|capacity| capacity.guaranteed);
        let at =
            curve.points.iter().find(|point| guaranteed.is_some() && grid::load(result, point) == guaranteed);
        dollars.push(at.and_then(|point| money::usd_per_million(point)));
        rows.push(vec![
            curve.name,
            load(guaranteed),
            load(capacity.and_then(|capacity| capacity.first_failing)),
            load(limit.and_then(|limit| limit.last_stable)),
            load(limit.and_then(|limit| limit.first_unstable)),
            shown(limit.map(|limit| limit.saturated_per_s), interval),
            load(reading.knee.as_ref().map(|knee| knee.load)),
        ]);
    }
    if dollars.iter().any(Option::is_some) {
        header.push("$ per M output\nat capacity".to_owned());
        for (row, usd) in rows.iter_mut().zip(dollars) {
            row.push(shown(usd, format::mean));
        }
    }
    let mut table = Columns::new(&header, 1);
    for row in &rows {
        table.row(row);
    }
    table.lines()
}

/// Capacity, stability limit, knee, tokens and money.
fn readings(result: &SweepResult, reading: &CurveReading, look: Look) -> Vec<String> {
    let mut lines: Vec<String> =
        look.paint_all(Tone::Strong, labelled("capacity", &capacity(reading))).collect();
    lines.extend(binding(reading).into_iter().flat_map(|text| labelled("", &text)));
    lines.extend(labelled("stability limit", &stability(reading)));
    lines.extend(labelled("knee", &knee(reading)));
    if let Some((point, place)) = reading::priced_point(result)
        && let Some(economics) = money::economics(point)
    {
        let tokens = money::tokens(&economics.output_tokens_per_gpu_hour);
        let mut text = format!("{tokens} output tokens per GPU-hour {place}");
        match (economics.usd_per_million_output_tokens, economics.price) {
            (Some(usd), Some(price)) => {
                text +=
                    &format!("; {} per M output tokens ({})", money::usd(&usd), price.in_words(look.today));
            }
            _ => text += "; no price known: set cost.gpu_hour_usd",
        }
        lines.extend(labelled("cost", &text));
    }
    lines
}

fn capacity(reading: &CurveReading) -> String {
    let unit = reading.load_unit;
    let Some(capacity) = &reading.capacity else {
        return "not claimed: the scenario promises nothing (add slo to a class)".to_owned();
    };
    let bracket = match (capacity.guaranteed, capacity.first_failing) {
        (Some(held), Some(failing)) => {
            format!("{} guaranteed (fails at {})", reading::load(held, unit), reading::load(failing, unit))
        }
        (Some(held), None) => {
            format!("at least {}: every load of the sweep passes", reading::load(held, unit))
        }
        (None, Some(failing)) => {
            format!(
                "none shown: no load of the sweep passes with its bound, {} fails",
                reading::load(failing, unit)
            )
        }
        (None, None) => "undecided".to_owned(),
    };
    match (&capacity.estimate, capacity.doubt) {
        (Some(estimate), doubt) => {
            let doubt = doubt.map_or(String::new(), |why| format!(", {why}"));
            format!("{bracket}; objectives met with equality at {} {unit}{doubt}", interval(estimate))
        }
        (None, Some(why)) => {
            format!("{bracket}; where the objectives are met with equality is withheld: {why}")
        }
        (None, None) => bracket,
    }
}

fn binding(reading: &CurveReading) -> Option<String> {
    let binding = reading.capacity.as_ref()?.binding.as_ref()?;
    Some(format!("binding: {binding}"))
}

fn stability(reading: &CurveReading) -> String {
    let Some(limit) = &reading.stability_limit else {
        return "not found in the range swept".to_owned();
    };
    let mut text = reading::stability_sentence(limit, reading.load_unit);
    text += &format!("; {} req/s completed when saturated", interval(&limit.saturated_per_s));
    if !limit.binding.is_empty() {
        text += &format!("; binding: {}", limit.binding);
    }
    text
}

fn knee(reading: &CurveReading) -> String {
    let unit = reading.load_unit;
    match &reading.knee {
        Some(knee) => format!(
            "{} (Kneedle on {} from {} to {}; descriptive, moves with the range)",
            reading::load(knee.load, unit),
            reading::quantity_name(knee.metric, knee.statistic),
            chosen(knee.from),
            reading::load(knee.to, unit),
        ),
        None => "none in the range swept".to_owned(),
    }
}
