//! Throughput of a GPU against the speed of one user: what is traded for what.

use super::frame::palette::{BLUE, GREY, INK, PURPLE, VERMILLION, WHITE};
use super::picture::Anchor;
use super::{Frame, LABEL_SIZE, Line, Picture, Scale, look, subtitle, title};
use crate::experiment::{Point, SweepResult};
use crate::report::fold::{self, Part};
use crate::report::format::{axis_value, chosen, number};
use crate::report::reading;
use crate::workload::Metric;

/// One point of the plane.
struct Spot<'a> {
    point: &'a Point,
    /// Output tokens per second of the median user, 1 / TPOT.
    speed: f64,
    /// Output tokens per second of one GPU (of the deployment where there is none).
    throughput: f64,
}

/// The chart; `None` where fewer than two points have a speed.
#[must_use]
pub fn frontier(result: &SweepResult) -> Option<Picture> {
    let spots: Vec<Spot> = result.points.iter().filter_map(spot).collect();
    if spots.len() < 2 {
        return None;
    }
    let most = |value: fn(&Spot) -> f64| spots.iter().fold(0.0_f64, |most, spot| most.max(value(spot)));
    let frame = Frame::new(
        Scale::linear_from_zero(most(|spot| spot.speed) * 1.02),
        Scale::linear_from_zero(most(|spot| spot.throughput) * 1.1),
    );
    let mut picture = Picture::default();
    title(&mut picture, &finding(result, &spots), &subtitle(&result.base));
    let y_name = if result.base.gpus > 0 { "output tokens/s per GPU" } else { "output tokens/s" };
    frame.axes(&mut picture, "speed of the median user, output tokens/s (1 / TPOT p50)", y_name);
    slowest_allowed(result, &frame, &mut picture);
    let curve = reading::curve(result);
    if curve.is_some() {
        let values: Vec<(f64, f64)> = spots.iter().map(|spot| (spot.speed, spot.throughput)).collect();
        frame.curve(&mut picture, &values, BLUE, Line::Thick);
    } else {
        for spot in &spots {
            picture.dot(frame.at(spot.speed, spot.throughput), 8.0, BLUE);
        }
    }
    name_spots(result, &spots, &frame, &mut picture);
    Some(picture)
}

fn spot(point: &Point) -> Option<Spot<'_>> {
    let tpot = fold::latency(point, Part::All, Metric::Tpot, |latency| latency.p50_s)?.mean;
    let rate = fold::group_value(point, Part::All, |group| Some(group.output_tokens_per_s))?.mean;
    let gpus = f64::from(point.scenario.gpus.max(1));
    (tpot > 0.0).then(|| Spot { point, speed: 1.0 / tpot, throughput: rate / gpus })
}

/// The speed that a TPOT objective demands, if one stands in the scenario.
fn slowest_allowed(result: &SweepResult, frame: &Frame, picture: &mut Picture) {
    let objectives = result
        .base
        .workload
        .classes
        .iter()
        .flat_map(|class| class.slo.objectives.iter().map(|objective| (objective, class.slo.attainment)));
    let tightest = objectives
        .filter(|(objective, _)| objective.metric == Metric::Tpot && objective.limit_s > 0.0)
        .min_by(|a, b| a.0.limit_s.total_cmp(&b.0.limit_s));
    let Some((objective, attainment)) = tightest else {
        return;
    };
    let speed = 1.0 / objective.limit_s;
    if !frame.x.holds(speed) {
        return;
    }
    let x = frame.x_at(speed);
    picture.dashed(&[(x, frame.top), (x, frame.bottom)], VERMILLION, 2.5, 6.0);
    let text = format!(
        "objective: {}, at least {} tokens/s",
        reading::objective(objective, attainment),
        chosen(speed)
    );
    picture.text_on(
        WHITE,
        (x + 10.0, frame.bottom - 22.0),
        &text,
        look(LABEL_SIZE - 2.0, VERMILLION, Anchor::Left),
    );
}

/// Loads along the curve, the knee and the capacity by name; every fourth of the others.
fn name_spots(result: &SweepResult, spots: &[Spot], frame: &Frame, picture: &mut Picture) {
    let reading = reading::curve(result);
    let unit = reading.map_or("", |reading| reading.load_unit);
    let knee = reading.and_then(|reading| reading.knee.as_ref()).map(|knee| knee.load);
    let capacity =
        reading.and_then(|reading| reading.capacity.as_ref()).and_then(|capacity| capacity.guaranteed);
    let mut taken: Vec<f64> = Vec::new();
    let put = |picture: &mut Picture, spot: &Spot, text: String, strong: bool, taken: &mut Vec<f64>| {
        let at = frame.at(spot.speed, spot.throughput);
        if taken.iter().any(|y| (y - at.1).abs() < LABEL_SIZE * 1.15) {
            return;
        }
        taken.push(at.1);
        let colour = if strong { INK } else { GREY };
        let style = super::picture::TextLook { bold: strong, ..look(LABEL_SIZE - 2.0, colour, Anchor::Left) };
        picture.text((at.0 + 18.0, at.1 - 6.0), text, style);
    };
    for spot in spots {
        let load = reading::axis_load(spot.point);
        let at = frame.at(spot.speed, spot.throughput);
        let is = |named: Option<f64>| reading.is_some() && named.is_some() && named == load;
        let text = spot.point.coordinates.first().map_or(String::new(), axis_value);
        match (is(knee), is(capacity)) {
            (true, true) => {
                picture.ring(at, 13.0, PURPLE);
                put(picture, spot, format!("knee and capacity, {text} {unit}"), true, &mut taken);
            }
            (true, false) => {
                picture.ring(at, 13.0, PURPLE);
                put(picture, spot, format!("knee, {text} {unit}"), true, &mut taken);
            }
            (false, true) => {
                picture.ring(at, 13.0, INK);
                put(picture, spot, format!("capacity, {text} {unit}"), true, &mut taken);
            }
            (false, false) => {}
        }
    }
    for spot in spots {
        let texts: Vec<String> = spot.point.coordinates.iter().map(axis_value).collect();
        put(picture, spot, format!("{} {unit}", texts.join(" x ")), false, &mut taken);
    }
}

fn finding(result: &SweepResult, spots: &[Spot]) -> String {
    let capacity = reading::curve(result)
        .and_then(|reading| reading.capacity.as_ref())
        .and_then(|capacity| capacity.guaranteed);
    let at_capacity =
        spots.iter().find(|spot| capacity.is_some() && reading::axis_load(spot.point) == capacity);
    let gpu = if result.base.gpus > 0 { "a GPU" } else { "the system" };
    match (at_capacity, spots.iter().max_by(|a, b| a.throughput.total_cmp(&b.throughput))) {
        (Some(spot), _) => format!(
            "At capacity {gpu} yields {} tokens/s and each user gets {}",
            number(spot.throughput),
            number(spot.speed)
        ),
        (None, Some(best)) => format!(
            "At most {} tokens/s from {gpu}, then each user gets {}",
            number(best.throughput),
            number(best.speed)
        ),
        (None, None) => "Throughput against speed".to_owned(),
    }
}
