//! Cost of a fleet against the time its users wait: what is paid for speed.

use super::frame::palette::{BLUE, GREEN, PURPLE, VERMILLION};
use super::picture::{Anchor, TextLook, WIDTH, text_width};
use super::place::Places;
use super::{Frame, LABEL_SIZE, Line, Picture, Scale, look, title};
use crate::experiment::plan::{Plan, Row};
use crate::report::format::number;
use crate::report::plan::configuration;
use crate::units::distinct;

/// One colour a model; beyond these they repeat.
const COLOURS: [(u8, u8, u8); 4] = [BLUE, VERMILLION, GREEN, PURPLE];

/// The chart; `None` where fewer than two fleets have a price and a latency.
#[must_use]
pub fn cost(plan: &Plan) -> Option<Picture> {
    let spots: Vec<(&Row, f64, f64)> =
        plan.rows.iter().filter_map(|row| Some((row, row.e2e_p50_s()?, row.usd_per_hour()?))).collect();
    if spots.len() < 2 {
        return None;
    }
    let slowest = spots.iter().map(|spot| spot.1).fold(0.0_f64, f64::max);
    let (low, high) =
        spots.iter().fold((f64::INFINITY, 0.0_f64), |(low, high), spot| (low.min(spot.2), high.max(spot.2)));
    let frame = Frame::new(Scale::linear_from_zero(slowest * 1.02), Scale::log(low, high));
    let mut picture = Picture::default();
    let cheapest = spots.iter().min_by(|a, b| a.2.total_cmp(&b.2))?;
    let finding = format!(
        "From ${} an hour: {} on {}",
        number(cheapest.2),
        cheapest.0.candidate.model,
        configuration(cheapest.0)
    );
    let mut subtitle =
        "Smallest fleets that meet the objectives; on the line: none of its model is both cheaper and faster"
            .to_owned();
    if spots.iter().any(|(row, ..)| row.is_estimated()) {
        subtitle += "; hollow: step times are estimated";
    }
    title(&mut picture, &finding, &subtitle);
    frame.axes(&mut picture, "median time to the last token, s", "dollars per hour");
    let models = distinct(spots.iter().map(|(row, ..)| row.candidate.model.as_str()));
    let mut names_at = (frame.left + 20.0, frame.top - 24.0);
    let mut places = Places::default();
    let mut cheapest_of = Vec::new();
    for (position, model) in models.iter().enumerate() {
        let colour = COLOURS[position % COLOURS.len()];
        let own = || spots.iter().filter(|(row, ..)| row.candidate.model == *model);
        let mut frontier: Vec<(f64, f64)> =
            own().filter(|(row, ..)| row.pareto).map(|(_, x, y)| (*x, *y)).collect();
        frontier.sort_by(|a, b| a.0.total_cmp(&b.0));
        frame.curve(&mut picture, &frontier, colour, Line::Thick);
        for (row, x, y) in own() {
            let at = frame.at(*x, *y);
            if row.is_estimated() {
                picture.ring(at, 6.5, colour);
            } else {
                picture.dot(at, 6.5, colour);
            }
            places.avoid(at);
        }
        places.avoid_line(&frontier.iter().map(|(x, y)| frame.at(*x, *y)).collect::<Vec<_>>());
        // Rows are cheapest first.
        if let Some((row, x, y)) = own().next() {
            let at = frame.at(*x, *y);
            places.keep_free(at);
            cheapest_of.push((at, configuration(row), colour));
        }
        // Names side by side; what is too long for the row goes above it.
        let width = text_width(model, LABEL_SIZE, true);
        if names_at.0 + width > f64::from(WIDTH) - 40.0 {
            names_at = (frame.left + 20.0, names_at.1 - 30.0);
        }
        picture.text(names_at, *model, TextLook { bold: true, ..look(LABEL_SIZE, colour, Anchor::Left) });
        names_at.0 += width + 40.0;
    }
    for (at, name, colour) in cheapest_of {
        places.name(&mut picture, &frame, at, &name, colour, false);
    }
    Some(picture)
}
