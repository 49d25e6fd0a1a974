//! Throughput of a GPU against the speed of the median user: what is traded for what.
//!
//! A hollow point does not meet its objectives, and the title praises none of those; an unstable point has no speed,
//! so that it is counted but not drawn.

use super::frame::palette::{CURVES, GREY, INK, PURPLE, VERMILLION, WHITE};
use super::picture::{Anchor, At, Rgb};
use super::place::Places;
use super::{Frame, LABEL_SIZE, Line, Picture, Scale, look, subtitle, title};
use crate::experiment::{Point, SloVerdict, SweepResult, Verdict};
use crate::report::fold::{self, Part};
use crate::report::format::{chosen, counted, number};
use crate::report::{grid, provenance, reading};
use crate::workload::{Metric, Statistic};

const DOT: f64 = 8.0;
const RING: f64 = 13.0;

/// One point of the plane.
struct Spot<'a> {
    point: &'a Point,
    /// Output tokens per second of the median user, 1 / TPOT.
    speed: f64,
    /// Output tokens per second of one GPU (of the deployment where there is none).
    throughput: f64,
}

/// The points that share everything but their load.
struct Trail<'a> {
    name: String,
    colour: Rgb,
    spots: Vec<Spot<'a>>,
}

/// The chart; `None` where fewer than two points have a speed.
#[must_use]
pub fn frontier(result: &SweepResult) -> Option<Picture> {
    let trails = trails(result);
    let spots: Vec<&Spot> = trails.iter().flat_map(|trail| &trail.spots).collect();
    if spots.len() < 2 {
        return None;
    }
    let most = |value: fn(&Spot) -> f64| spots.iter().fold(0.0_f64, |most, spot| most.max(value(spot)));
    let frame = Frame::new(
        Scale::linear_from_zero(most(|spot| spot.speed) * 1.02),
        Scale::linear_from_zero(most(|spot| spot.throughput) * 1.1),
    );
    let scenarios = provenance::scenarios(result);
    let mut picture = Picture::default();
    title(&mut picture, &finding(result, &spots), &subtitle(&scenarios));
    let on_gpus = scenarios.iter().all(|scenario| scenario.gpus > 0);
    let y_name = if on_gpus { "output tokens/s per GPU" } else { "output tokens/s" };
    frame.axes(&mut picture, "speed of the median user, output tokens/s (1 / TPOT p50)", y_name);
    slowest_allowed(result, &frame, &mut picture);
    let mut places = Places::default();
    for trail in &trails {
        let values: Vec<(f64, f64)> = trail.spots.iter().map(|spot| (spot.speed, spot.throughput)).collect();
        frame.curve(&mut picture, &values, trail.colour, Line::Thin);
        let line: Vec<At> = values.iter().map(|(speed, throughput)| frame.at(*speed, *throughput)).collect();
        places.avoid_line(&line);
    }
    for (trail, spot) in trails.iter().flat_map(|trail| trail.spots.iter().map(move |spot| (trail, spot))) {
        let at = frame.at(spot.speed, spot.throughput);
        places.keep_free(at);
        if meets(spot.point) {
            picture.dot(at, DOT, trail.colour);
        } else {
            picture.ring(at, DOT, trail.colour);
        }
    }
    let written = name_knee_and_capacity(result, &spots, &frame, &mut places, &mut picture);
    name_trails(result, &trails, &frame, &mut places, written, &mut picture);
    note(result, &spots, &frame, &mut picture);
    Some(picture)
}

fn trails(result: &SweepResult) -> Vec<Trail<'_>> {
    let mut trails = Vec::new();
    for (position, curve) in grid::curves(result).into_iter().enumerate() {
        let spots = curve.points.into_iter().filter_map(spot).collect();
        trails.push(Trail { name: curve.name, colour: CURVES[position % CURVES.len()], spots });
    }
    trails
}

fn spot(point: &Point) -> Option<Spot<'_>> {
    let tpot = fold::latency(point, Part::All, Metric::Tpot, |latency| latency.p50_s)?.mean;
    let rate = fold::group_value(point, Part::All, |group| Some(group.output_tokens_per_s))?.mean;
    let gpus = f64::from(point.scenario.gpus.max(1));
    (tpot > 0.0).then(|| Spot { point, speed: 1.0 / tpot, throughput: rate / gpus })
}

/// Whether nothing was promised to anybody, or everything is kept.
fn meets(point: &Point) -> bool {
    matches!(point.slo, SloVerdict::Met | SloVerdict::NoObjectives)
}

/// The speed that an objective on the median TPOT demands: one on another statistic has no place on this axis.
fn slowest_allowed(result: &SweepResult, frame: &Frame, picture: &mut Picture) {
    let objectives = result.base.workload.classes.iter().flat_map(|class| &class.slo.objectives);
    let tightest = objectives
        .filter(|objective| {
            objective.metric == Metric::Tpot && objective.statistic == Statistic::Quantile(0.5)
        })
        .map(|objective| objective.limit_s)
        .filter(|limit_s| *limit_s > 0.0)
        .reduce(f64::min);
    let Some(speed) = tightest.map(|limit_s| 1.0 / limit_s).filter(|speed| frame.x.holds(*speed)) else {
        return;
    };
    let x = frame.x_at(speed);
    picture.dashed(&[(x, frame.top), (x, frame.bottom)], VERMILLION, 2.5, 6.0);
    let text = format!("objective: TPOT p50, at least {} tokens/s", chosen(speed));
    let style = look(LABEL_SIZE - 2.0, VERMILLION, Anchor::Left);
    picture.text_on(WHITE, (x + 10.0, frame.bottom - 22.0), &text, style);
}

/// A load and where it is written.
type Written = (f64, At);

/// Knee and capacity of a curve, each by name; in one where they are the same load. Returns their loads.
fn name_knee_and_capacity(
    result: &SweepResult,
    spots: &[&Spot],
    frame: &Frame,
    places: &mut Places,
    picture: &mut Picture,
) -> Vec<Written> {
    let Some(reading) = reading::curve(result) else {
        return Vec::new();
    };
    let mut written = Vec::new();
    let knee = reading.knee.as_ref().map(|knee| knee.load);
    let capacity = reading.capacity.as_ref().and_then(|capacity| capacity.guaranteed);
    let named = match (knee, capacity) {
        (Some(knee), Some(capacity)) if knee == capacity => vec![(knee, "knee and capacity", PURPLE)],
        _ => {
            let knee = knee.map(|load| (load, "knee", PURPLE));
            knee.into_iter().chain(capacity.map(|load| (load, "capacity", INK))).collect()
        }
    };
    for (load, name, colour) in named {
        for spot in spots.iter().filter(|spot| reading::axis_load(spot.point) == Some(load)) {
            let at = frame.at(spot.speed, spot.throughput);
            picture.ring(at, RING, colour);
            // The heart of the ring must not look like a point that misses its objectives.
            if meets(spot.point) {
                picture.dot(at, RING * 0.4, CURVES[0]);
            }
            let text = format!("{name}, {}", reading::load(load, reading.load_unit));
            places.name(picture, frame, at, &text, colour, true);
            written.push((load, at));
        }
    }
    written
}

/// The name of each trail at its end of most throughput, then the loads along it where there is room.
fn name_trails(
    result: &SweepResult,
    trails: &[Trail],
    frame: &Frame,
    places: &mut Places,
    mut written: Vec<Written>,
    picture: &mut Picture,
) {
    for trail in trails.iter().filter(|trail| !trail.name.is_empty()) {
        let end = trail.spots.iter().max_by(|a, b| a.throughput.total_cmp(&b.throughput));
        if let Some(spot) = end {
            let at = frame.at(spot.speed, spot.throughput);
            places.name(picture, frame, at, &trail.name, trail.colour, trails.len() <= CURVES.len());
        }
    }
    let Some(unit) = grid::load_unit(result) else {
        return;
    };
    // Where points of several trails lie on each other, their load is written once.
    for spot in trails.iter().flat_map(|trail| &trail.spots) {
        if let Some(load) = grid::load(result, spot.point) {
            let at = frame.at(spot.speed, spot.throughput);
            let near = |other: &At| libm::hypot(at.0 - other.0, at.1 - other.1) < 2.0 * DOT;
            if written.iter().any(|(other, there)| *other == load && near(there)) {
                continue;
            }
            written.push((load, at));
            places.name(picture, frame, at, &reading::load(load, unit), GREY, false);
        }
    }
}

/// What a hollow point means and how many points have no place here.
fn note(result: &SweepResult, spots: &[&Spot], frame: &Frame, picture: &mut Picture) {
    let mut parts = Vec::new();
    if spots.iter().any(|spot| !meets(spot.point)) {
        parts.push("hollow: objectives not met".to_owned());
    }
    let unstable = result.points.iter().filter(|point| point.stability.verdict == Verdict::Unstable).count();
    if unstable > 0 && !result.points.iter().any(fold::is_benchmark) {
        let points = counted(unstable as u64, "unstable point");
        parts.push(format!("{points} not drawn"));
    }
    let style = look(LABEL_SIZE - 3.0, GREY, Anchor::Right);
    picture.text((frame.right, frame.top - 22.0), parts.join("; "), style);
}

fn finding(result: &SweepResult, spots: &[&Spot]) -> String {
    let gpu = if result.base.gpus > 0 { "a GPU" } else { "the system" };
    let curve = reading::curve(result).and_then(|reading| reading.capacity.as_ref());
    let capacity = curve.and_then(|capacity| capacity.guaranteed);
    let at_capacity =
        spots.iter().find(|spot| capacity.is_some() && reading::axis_load(spot.point) == capacity);
    if let Some(spot) = at_capacity {
        return format!(
            "At capacity {gpu} yields {} tokens/s, and the median user gets {}",
            number(spot.throughput),
            number(spot.speed)
        );
    }
    let met = spots.iter().filter(|spot| meets(spot.point));
    let Some(best) = met.max_by(|a, b| a.throughput.total_cmp(&b.throughput)) else {
        return "No point of the sweep meets its objectives".to_owned();
    };
    let within = match best.point.slo {
        SloVerdict::NoObjectives => "At most",
        _ => "Objectives hold up to",
    };
    format!(
        "{within} {} tokens/s from {gpu}; the median user then gets {}",
        number(best.throughput),
        number(best.speed)
    )
}
