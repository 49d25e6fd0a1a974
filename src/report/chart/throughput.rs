//! Throughput and goodput against offered load: the three numbers that must not be mixed up, side by side.

use super::frame::palette::{BLUE, GREEN, GREY, SHADE, WHITE};
use super::{
    EndLabel, Frame, Line, Picture, Scale, by_load, end_of, load_axis_name, marks, subtitle, title,
    unstable_from,
};
use crate::experiment::{CurveReading, Point, SweepResult};
use crate::report::fold::{self, Part};
use crate::report::provenance;
use crate::report::reading::{self, load};

/// The chart; `None` for a sweep that is no curve.
#[must_use]
pub fn throughput(result: &SweepResult, linear: bool) -> Option<Picture> {
    let reading = reading::curve(result)?;
    let points = by_load(result);
    let rate = |pick: fn(&crate::metrics::Group) -> Option<f64>| -> Vec<(f64, f64)> {
        let value =
            |(load, point): &(f64, &Point)| Some((*load, fold::group_value(point, Part::All, pick)?.mean));
        points.iter().filter_map(value).collect()
    };
    let completed = rate(|group| Some(group.completed_per_s));
    let good = rate(|group| group.good_per_s);
    let loads: Vec<f64> = points.iter().map(|(load, _)| *load).collect();
    let most_load = *loads.last()?;
    let most = completed.iter().fold(0.0_f64, |most, pair| most.max(pair.1));
    let frame = Frame::new(Scale::of_loads(&loads, linear), Scale::linear_from_zero(most * 1.12));

    let mut picture = Picture::default();
    title(&mut picture, &finding(reading), &subtitle(&provenance::scenarios(result)));
    let unstable = unstable_from(reading);
    if let Some(from) = unstable {
        frame.unstable(&mut picture, from);
    }
    frame.axes(&mut picture, &load_axis_name(reading.load_unit, &frame.x), "requests per second");
    let mut labels = Vec::new();
    let (mut offered, mut taken) = (Vec::new(), Vec::new());
    if reading.load_unit == "req/s" {
        let end = most_load.min(frame.y.high());
        offered = diagonal(&frame, loads[0], end);
        frame.curve(&mut picture, &offered, GREY, Line::Dashed);
        let label = EndLabel { at: frame.at(end, end), text: "offered".into(), colour: GREY, bold: false };
        // Where more is offered than the frame is high, the line ends inside and so does its name.
        if end < most_load {
            // As many places as it has letters: a name is not to be written over.
            let ends = frame.at(end, end);
            taken.extend(
                (0..label.text.len()).map(|letter| (ends.0 + 14.0 * letter as f64, frame.top + 17.0)),
            );
            frame.end_labels(&mut picture, vec![label], SHADE);
        } else {
            labels.push(label);
        }
    }
    frame.marks(&mut picture, &marks(reading));
    for (values, name, colour) in [(&good, "goodput", GREEN), (&completed, "completed", BLUE)] {
        frame.curve(&mut picture, values, colour, Line::Thick);
        labels.extend(end_of(values).map(|(x, y)| EndLabel {
            at: frame.at(x, y),
            text: name.to_owned(),
            colour,
            bold: true,
        }));
    }
    frame.end_labels(&mut picture, labels, WHITE);
    if let Some(from) = unstable {
        let lines = completed.iter().chain(&good).chain(&offered);
        taken.extend(lines.map(|(x, y)| frame.at(*x, *y)));
        frame.name_unstable(&mut picture, from, &taken);
    }
    Some(picture)
}

/// Completed equals offered, up to `end`: straight on a linear axis, in steps of a hundredth on a logarithmic one.
fn diagonal(frame: &Frame, first: f64, end: f64) -> Vec<(f64, f64)> {
    if !frame.x.is_log() {
        return vec![(0.0, 0.0), (end, end)];
    }
    let step = |index: i32| first * libm::pow(end / first, f64::from(index) / 100.0);
    (0..=100).map(|index| (step(index), step(index))).collect()
}

fn finding(reading: &CurveReading) -> String {
    let unit = reading.load_unit;
    let limit = reading.stability_limit.as_ref();
    let held = reading.capacity.as_ref().and_then(|capacity| capacity.guaranteed);
    let saturated = limit.map(|limit| super::short(limit.saturated_per_s.mean));
    match (held, limit.and_then(|limit| limit.first_unstable), saturated) {
        (Some(held), _, Some(saturated)) => {
            format!("Objectives hold to {}; throughput tops out at {saturated} req/s", load(held, unit))
        }
        (Some(held), Some(first), None) => {
            format!("Objectives hold to {}; the backlog grows from {}", load(held, unit), load(first, unit))
        }
        (Some(held), None, _) => {
            format!("Objectives hold to {}; the system keeps up everywhere", load(held, unit))
        }
        (None, _, Some(saturated)) => {
            format!("Throughput tops out at {saturated} req/s, whatever is offered")
        }
        (None, Some(first), None) => format!("The backlog grows from {}", load(first, unit)),
        (None, None, _) => "The system keeps up with every load swept".to_owned(),
    }
}
