//! The search for a capacity: worst value over limit against load, with bracket and estimate.

use super::frame::Mark;
use super::frame::palette::{BLUE, INK, PURPLE, VERMILLION};
use super::{Frame, Line, Picture, Scale, subtitle, title};
use crate::experiment::Point;
use crate::experiment::capacity::Capacity;
use crate::report::{fold, format, reading};

/// The chart; `None` where fewer than two loads have a value.
#[must_use]
pub fn capacity(capacity: &Capacity) -> Option<Picture> {
    let values: Vec<(f64, f64)> =
        capacity.points.iter().filter_map(|(load, point)| Some((*load, worst(point)?))).collect();
    if values.len() < 2 {
        return None;
    }
    let last = capacity.points.last()?.0;
    let (least, most) = values
        .iter()
        .fold((1.0_f64, 1.0_f64), |(least, most), (_, value)| (least.min(*value), most.max(*value)));
    let frame = Frame::new(Scale::linear_to(last), Scale::log(least, most * 1.2));
    let unit = &capacity.axis.unit;
    let finding = match (capacity.guaranteed, &capacity.estimate) {
        (Some(held), Some(estimate)) => format!(
            "{} are guaranteed; {} {unit} is the estimate",
            reading::load(held, unit),
            format::interval(estimate)
        ),
        (Some(held), None) if capacity.axis.fewest => format!("{} are enough", reading::load(held, unit)),
        (Some(held), None) => format!("{} are guaranteed", reading::load(held, unit)),
        (None, _) => "No load meets the objectives".to_owned(),
    };
    let mut picture = Picture::default();
    title(&mut picture, &finding, &subtitle(&[&capacity.base]));
    frame.axes(&mut picture, unit, "worst value over limit (log scale)");
    let limit = frame.y_at(1.0);
    picture.dashed(&[(frame.left, limit), (frame.right, limit)], VERMILLION, 2.0, 5.0);
    let mark = |load: f64, name: &str, colour| Mark {
        load,
        name: format!("{name} {}", reading::load(load, unit)),
        colour,
    };
    let marks: Vec<Mark> = [
        capacity
            .guaranteed
            .map(|load| mark(load, if capacity.axis.fewest { "enough:" } else { "guaranteed" }, INK)),
        capacity.estimate.map(|estimate| mark(estimate.mean, "estimate", PURPLE)),
        capacity.first_failing.map(|load| mark(load, "fails at", VERMILLION)),
    ]
    .into_iter()
    .flatten()
    .collect();
    frame.marks(&mut picture, &marks);
    frame.curve(&mut picture, &values, BLUE, Line::Thick);
    Some(picture)
}

fn worst(point: &Point) -> Option<f64> {
    if !fold::shows_latency(point) {
        return None;
    }
    let margins = point.margins();
    margins.iter().map(|margin| margin.ratio.mean).reduce(f64::max).filter(|ratio| *ratio > 0.0)
}
