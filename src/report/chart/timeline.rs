//! Requests in flight and KV use over the time of a run.

use super::frame::palette::{BLUE, FAINT, GREEN, GREY, INK, VERMILLION, WHITE};
use super::picture::{Anchor, HEIGHT, Rgb, WIDTH};
use super::{EndLabel, Frame, LABEL_SIZE, Line, Picture, Scale, look, subtitle, title};
use crate::engine::Server;
use crate::experiment::{Point, Verdict};
use crate::metrics::{RunSummary, TimelineBin};
use crate::report::fold;
use crate::report::format::{mean, percent};
use crate::report::{provenance, reading};

/// Share of the height that the upper panel takes, and what lies between the panels.
const SPLIT: f64 = 0.56;
const GAP: f64 = 100.0;
const OUTSIDE: Rgb = (240, 240, 240);

/// The chart of the first replication; `None` without a timeline.
#[must_use]
pub fn timeline(point: &Point) -> Option<Picture> {
    let run = point.runs.first().filter(|run| run.timeline.len() > 1)?;
    let last = run.timeline.last()?;
    let end_s = last.start_s + last.span_s;
    let most = run.timeline.iter().fold(0.0_f64, |most, bin| most.max(bin.in_flight));
    let whole = Frame {
        top: 215.0,
        right: f64::from(WIDTH) - 190.0,
        ..Frame::new(Scale::linear_to(end_s), Scale::linear_from_zero(most * 1.08))
    };
    let mut picture = Picture::default();
    let load = match point.runs.len() {
        1 => provenance::load(&point.scenario),
        runs => format!("replication 1 of {runs}; {}", provenance::load(&point.scenario)),
    };
    title(&mut picture, &finding(point), &format!("{load}; {}", subtitle(&[&point.scenario])));
    if matches!(point.scenario.system.server, Server::Llm(_)) {
        let height = f64::from(HEIGHT) - 110.0 - whole.top;
        let upper = Frame { bottom: whole.top + height * SPLIT, ..whole };
        let fullest = run.timeline.iter().fold(0.0_f64, |most, bin| most.max(bin.kv_use * 100.0));
        let y = Scale::linear_from_zero((fullest * 1.05).min(100.0));
        let lower = Frame { top: upper.bottom + GAP, y, ..whole };
        requests(run, &upper, end_s, "", &mut picture);
        kv_use(run, &lower, end_s, &mut picture);
    } else {
        requests(run, &whole, end_s, "time, s", &mut picture);
    }
    Some(picture)
}

/// Requests in flight, and of them the running and the waiting ones: a line each.
fn requests(run: &RunSummary, frame: &Frame, end_s: f64, x_name: &str, picture: &mut Picture) {
    outside_window(run, frame, end_s, picture);
    let lines = [
        ("in flight", GREY, series(run, |bin| bin.in_flight)),
        ("running", BLUE, series(run, |bin| bin.running)),
        ("waiting", VERMILLION, series(run, |bin| bin.waiting)),
    ];
    for (from, _, name) in outside(run, end_s) {
        let at = (frame.x_at(from), frame.top - 14.0);
        picture.text(at, name, look(LABEL_SIZE - 4.0, GREY, Anchor::Left));
    }
    frame.axes(picture, x_name, "requests");
    // Named where the window ends: the drain would pull every name down to zero.
    let at_end = |values: &[(f64, f64)]| {
        let inside = values.iter().rev().find(|(time, _)| *time <= run.window.end_s);
        inside.or(values.last()).map_or(0.0, |pair| pair.1)
    };
    let mut labels = Vec::new();
    for (name, colour, values) in &lines {
        frame.curve(picture, values, *colour, Line::Thin);
        let at = (frame.right, frame.y_at(at_end(values)));
        labels.push(EndLabel { at, text: (*name).to_owned(), colour: *colour, bold: false });
    }
    frame.end_labels(picture, labels, WHITE);
}

fn kv_use(run: &RunSummary, frame: &Frame, end_s: f64, picture: &mut Picture) {
    outside_window(run, frame, end_s, picture);
    frame.axes(picture, "time, s", "");
    let name = "KV cache in use, %";
    picture.text((40.0, frame.top - 36.0), name, look(LABEL_SIZE, INK, Anchor::Left));
    frame.curve(picture, &series(run, |bin| bin.kv_use * 100.0), GREEN, Line::Thin);
}

/// Middle of each bin, and its value.
fn series(run: &RunSummary, value: impl Fn(&TimelineBin) -> f64) -> Vec<(f64, f64)> {
    run.timeline.iter().map(|bin| (bin.start_s + bin.span_s / 2.0, value(bin))).collect()
}

/// What the result does not describe: warm-up before the window, drain after it.
fn outside(run: &RunSummary, end_s: f64) -> Vec<(f64, f64, &'static str)> {
    // Where no end of the warm-up was found there is none to show.
    let warmup_s = if run.window.settled { run.window.start_s } else { 0.0 };
    let all = [(0.0, warmup_s, "warm-up"), (run.window.end_s, end_s, "drain")];
    all.into_iter().filter(|(from, to, _)| to - from > 0.004 * end_s).collect()
}

fn outside_window(run: &RunSummary, frame: &Frame, end_s: f64, picture: &mut Picture) {
    for (from, to, _) in outside(run, end_s) {
        let (left, right) = (frame.x_at(from), frame.x_at(to));
        picture.rectangle((left, frame.top), (right, frame.bottom), OUTSIDE);
        picture.line(vec![(left, frame.top), (left, frame.bottom)], FAINT, 1.5);
        picture.line(vec![(right, frame.top), (right, frame.bottom)], FAINT, 1.5);
    }
}

fn finding(point: &Point) -> String {
    if point.stability.verdict == Verdict::Unstable {
        return match reading::growth(point) {
            Some(growth) => format!("Unstable: the backlog grows by {growth} requests every second"),
            None => "Unstable: the backlog grows".to_owned(),
        };
    }
    let state = reading::capitalised(&reading::state(point));
    let in_flight = fold::over_runs(point, |run| run.in_flight).map(|value| mean(&value));
    let mut text = match in_flight {
        Some(in_flight) => format!("{state}: {in_flight} requests in flight on average"),
        None => state,
    };
    if let Some(kv) = fold::kv_use(point) {
        text += &format!(", KV cache {} % used", percent(kv.mean));
    }
    text
}
