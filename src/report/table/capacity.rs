//! The capacity within objectives as a table of the loads that were tried, and the answer below it.

use super::{Columns, Look, MAX_WIDTH, Tone, headline, labelled, wrapped};
use crate::experiment::capacity::{Aim, Capacity, Confirmed, Lever, LeverOutcome, Setting, Tuning};
use crate::experiment::objective::refused_at_any_load;
use crate::experiment::{Estimate, Point, SloVerdict, Verdict};
use crate::report::format::{self, ABSENT, chosen, interval, number};
use crate::report::{fold, provenance, reading};

/// The whole answer of a capacity search.
#[must_use]
pub fn capacity(capacity: &Capacity, look: Look) -> String {
    let mut lines = headline(&[&capacity.base], &provenance::arrivals(&capacity.base), look);
    lines.push(String::new());
    lines.extend(rows(capacity, look));
    lines.push(String::new());
    for (label, text) in answers(capacity) {
        let tone = if label == "capacity" { Tone::Strong } else { Tone::Plain };
        lines.extend(look.paint_all(tone, labelled(label, &text)));
    }
    lines.extend(levers(capacity));
    for note in &capacity.notes {
        lines.extend(labelled("note", note));
    }
    lines.push(String::new());
    let statistics = statistics(capacity);
    lines.extend(look.paint_all(Tone::Quiet, wrapped(&statistics, MAX_WIDTH)));
    lines.join("\n") + "\n"
}

/// Replications, requests, warm-up and seed of the search.
fn statistics(capacity: &Capacity) -> String {
    let runs = || capacity.points.iter().map(|(_, point)| point.runs.len());
    let completed: u64 =
        capacity.points.iter().flat_map(|(_, point)| &point.runs).map(|run| run.totals.completed).sum();
    let removed = capacity
        .points
        .iter()
        .flat_map(|(_, point)| &point.runs)
        .map(|run| run.window.start_s / run.window.run_s)
        .fold(0.0, f64::max);
    let (fewest, most) = (runs().min().unwrap_or(0), runs().max().unwrap_or(0));
    let replications = if fewest == most { most.to_string() } else { format!("{fewest} to {most}") };
    format!(
        "{replications} replications a load, on common random numbers; {} requests completed; ± is a 95 % Student \
         interval; warm-up removed: at most {} % of a run; seed {}",
        format::count(completed),
        format::percent(removed),
        capacity.base.seed
    )
}

fn rows(capacity: &Capacity, look: Look) -> Vec<String> {
    let header =
        [capacity.axis.unit.as_str(), "replications", "requests a run", "worst value / limit", "state"];
    let mut table = Columns::words_last(&header.map(str::to_owned), 0);
    for (load, point) in &capacity.points {
        table.row(&[
            chosen(*load),
            point.runs.len().to_string(),
            point.runs.first().map_or(ABSENT.to_owned(), |run| format::count(run.totals.offered)),
            worst(point),
            state(point),
        ]);
    }
    let lines = table.lines();
    let first = lines.len().saturating_sub(capacity.points.len());
    let tone = |place: usize| match place.checked_sub(first).and_then(|row| capacity.points.get(row)) {
        Some((_, point)) if point.slo == SloVerdict::Met => Tone::Good,
        Some((_, point)) if point.stability.verdict == Verdict::Unstable => Tone::Bad,
        _ => Tone::Plain,
    };
    lines.iter().enumerate().map(|(place, line)| look.paint(tone(place), line)).collect()
}

/// The largest value over its limit; withheld where the backlog grows, or may.
fn worst(point: &Point) -> String {
    if !fold::shows_latency(point) {
        return ABSENT.to_owned();
    }
    let margins = point.margins();
    let worst = margins.iter().max_by(|a, b| a.ratio.upper().total_cmp(&b.ratio.upper()));
    worst.map_or(ABSENT.to_owned(), |margin| interval(&margin.ratio))
}

fn state(point: &Point) -> String {
    let state = reading::state(point);
    let classes = &point.scenario.workload.classes;
    if let Some(refused) = refused_at_any_load(classes, &point.runs) {
        // Why stands below the table.
        return refused.share;
    }
    match &point.slo {
        SloVerdict::Met => format!("{state}, passes"),
        SloVerdict::Missed { binding } => format!("{state}, fails: {}", short(binding)),
        SloVerdict::Unclear { binding } => format!("{state}, unclear: {}", short(binding)),
        SloVerdict::NoObjectives | SloVerdict::Unstable => state,
    }
}

/// An objective without what is said of refused requests, for which a column has no room.
fn short(binding: &str) -> &str {
    binding.split(", with ").next().unwrap_or(binding)
}

fn answers(capacity: &Capacity) -> Vec<(&'static str, String)> {
    let unit = &capacity.axis.unit;
    let load = |value: f64| reading::load(value, unit);
    let bracket = match (capacity.guaranteed, capacity.first_failing) {
        (None, _) if capacity.impossible.is_some() => {
            format!("none: {}", capacity.impossible.as_deref().unwrap_or_default())
        }
        (Some(enough), Some(failing)) if capacity.axis.fewest => {
            format!("{} are enough; with {} the objectives fail", load(enough), chosen(failing))
        }
        (Some(1.0), None) if capacity.axis.fewest => format!("{} is enough", load(1.0)),
        (Some(enough), None) if capacity.axis.fewest => {
            format!("{} are enough: every number that was tried passes", load(enough))
        }
        // Runs that do not outlast an answer show no steady state, of however many replicas.
        (None, Some(failing)) if capacity.axis.fewest => {
            format!(
                "none shown: not even {} in runs this long; a larger run.requests may show fewer",
                load(failing)
            )
        }
        (Some(held), Some(failing)) => {
            format!("{} guaranteed; first failing load {}", load(held), load(failing))
        }
        (Some(held), None) => format!("at least {}: every load that was tried passes", load(held)),
        (None, Some(failing)) => format!("none: {} fails already", load(failing)),
        (None, None) => "undecided".to_owned(),
    };
    let mut answers = vec![("capacity", bracket)];
    if let Some(estimate) = &capacity.estimate {
        let text = format!("{} {unit}, where the objectives are met with equality", interval(estimate));
        answers.push(("estimate", text));
    }
    if let Some(band) = &capacity.band {
        let text = format!(
            "{} to {} {unit} if every step takes {:.1} % longer or shorter (the profile's largest held-out error{})",
            number(band.low),
            number(band.high),
            band.error * 100.0,
            band.error_is_of.as_ref().map_or(String::new(), |of| format!(", {of}"))
        );
        answers.push(("profile band", text));
    }
    if let Some(binding) = capacity.binding.as_ref().filter(|_| capacity.impossible.is_none()) {
        let resource = capacity.resource.as_ref().map_or(String::new(), |text| format!("; {text}"));
        answers.push(("binding", format!("{binding}{resource}")));
    }
    if let Some(saturated) = &capacity.saturated_per_s {
        answers.push(("saturated", format!("{} req/s completed with a full queue", interval(saturated))));
    }
    answers
}

fn levers(capacity: &Capacity) -> Vec<String> {
    let Some(load) = capacity.first_failing else { return Vec::new() };
    let mut label = format!("at {} ", reading::load(load, &capacity.axis.unit));
    let mut lines = Vec::new();
    for lever in &capacity.levers {
        lines.extend(labelled(&label, &lever_text(lever, capacity.base.gpus)));
        label.clear();
    }
    lines
}

fn lever_text(lever: &Lever, gpus_now: u32) -> String {
    let change = format!("{} = {}", lever.key, lever.value);
    match &lever.outcome {
        LeverOutcome::Impossible(reason) => format!("{change}: not possible ({reason})"),
        LeverOutcome::Tried { passes, unclear, before, after, gpus } => {
            let ratio = |value: &Option<Estimate>| value.as_ref().map_or("unstable".to_owned(), interval);
            let verdict = if *passes { "PASSES" } else { "fails" };
            let verdict =
                unclear.as_ref().map_or(verdict.to_owned(), |why| format!("not shown to pass: {why}"));
            let cost = if *gpus == gpus_now { String::new() } else { format!(", {gpus} GPUs") };
            format!("{change}: {verdict} (worst value / limit {} -> {}{cost})", ratio(before), ratio(after))
        }
    }
}

/// The answer of `--tune`.
#[must_use]
pub fn tuning(tuning: &Tuning, look: Look) -> String {
    let mut lines = headline(&[&tuning.base], &provenance::arrivals(&tuning.base), look);
    lines.push(String::new());
    let value = match tuning.aim {
        Aim::Capacity => format!("short runs, {}", tuning.unit),
        Aim::Throughput => format!("saturated, {}", tuning.unit),
    };
    let header = ["max_num_seqs", "max_num_batched_tokens", &value, "against the best"];
    let mut table = Columns::words_last(&header.map(str::to_owned), 0);
    for (place, setting) in tuning.settings.iter().enumerate() {
        table.row(&[
            setting.max_num_seqs.to_string(),
            setting.max_num_batched_tokens.to_string(),
            setting.value.as_ref().map_or(ABSENT.to_owned(), interval),
            remark(tuning, place, setting),
        ]);
    }
    lines.extend(table.lines());
    lines.push(String::new());
    let answer = match tuning.chosen.map(|place| &tuning.settings[place]) {
        Some(chosen) if tuning.refuted().is_some() => format!(
            "max_num_seqs = {}, max_num_batched_tokens = {}, the scenario's own: long runs do not find the best of the \
             short ones better",
            chosen.max_num_seqs, chosen.max_num_batched_tokens
        ),
        Some(chosen) => format!(
            "max_num_seqs = {}, max_num_batched_tokens = {}: nearest to the scenario's own ({}, {}) of those \
             not shown to be worse than the best",
            chosen.max_num_seqs, chosen.max_num_batched_tokens, tuning.own.0, tuning.own.1
        ),
        None => "no setting meets the objectives at any load".to_owned(),
    };
    lines.extend(look.paint_all(Tone::Strong, labelled("setting", &answer)));
    for (position, text) in confirmed(tuning).iter().enumerate() {
        lines.extend(labelled(if position == 0 { "capacity" } else { "" }, text));
    }
    if !tuning.confirmed.is_empty() {
        let note = "the table is of short runs, which compare settings with each other; capacities are those that \
                    knee capacity finds without --tune";
        lines.extend(labelled("note", note));
    }
    lines.join("\n") + "\n"
}

/// What settings are worth by long runs, a line each.
fn confirmed(tuning: &Tuning) -> Vec<String> {
    let of = |one: &Confirmed| {
        let setting = &tuning.settings[one.place];
        let load = |load: f64| format!("{} guaranteed", reading::load(load, &tuning.unit));
        let guaranteed = one.guaranteed.map_or("no load guaranteed".to_owned(), load);
        let estimate = one.estimate.as_ref().map(interval);
        let estimate = estimate.map_or(String::new(), |text| format!(", estimate {text}"));
        let pair = (setting.max_num_seqs, setting.max_num_batched_tokens);
        let own = if pair == tuning.own { ", the scenario's own" } else { "" };
        format!("{guaranteed}{estimate} with {}, {}{own}", pair.0, pair.1)
    };
    tuning.confirmed.iter().map(of).collect()
}

fn remark(tuning: &Tuning, place: usize, setting: &Setting) -> String {
    let text = match setting.value {
        None => "no load meets the objectives",
        Some(_) if tuning.best == Some(place) => "best",
        Some(_) if setting.shown_worse => "worse",
        Some(_) => "no difference shown",
    };
    if tuning.chosen == Some(place) { format!("{text}  <- choose") } else { text.to_owned() }
}
