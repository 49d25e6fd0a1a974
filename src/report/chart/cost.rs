//! Cost of a fleet against the time its users wait: what is paid for speed.

use super::frame::palette::{BLUE, GREEN, PURPLE, VERMILLION};
use super::picture::{Anchor, TextLook};
use super::{Frame, LABEL_SIZE, Line, Picture, Scale, look, title};
use crate::experiment::plan::{Plan, Row};
use crate::report::format::number;
use crate::report::plan::configuration;

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
    title(
        &mut picture,
        &finding,
        "Smallest fleets that meet the objectives; on the line: none of its model is both cheaper and faster",
    );
    frame.axes(&mut picture, "median time to the last token, s", "dollars per hour");
    let mut models: Vec<&str> = Vec::new();
    for (row, ..) in &spots {
        if !models.contains(&row.candidate.model.as_str()) {
            models.push(&row.candidate.model);
        }
    }
    for (position, model) in models.iter().enumerate() {
        let colour = COLOURS[position % COLOURS.len()];
        let own = || spots.iter().filter(|(row, ..)| row.candidate.model == *model);
        for (_, x, y) in own() {
            picture.dot(frame.at(*x, *y), 6.0, colour);
        }
        let mut frontier: Vec<(f64, f64)> =
            own().filter(|(row, ..)| row.pareto).map(|(_, x, y)| (*x, *y)).collect();
        frontier.sort_by(|a, b| a.0.total_cmp(&b.0));
        frame.curve(&mut picture, &frontier, colour, Line::Thick);
        // Rows are cheapest first.
        if let Some((row, x, y)) = own().next() {
            let at = frame.at(*x, *y);
            let text = configuration(row);
            picture.text((at.0 + 14.0, at.1 + 20.0), text, look(LABEL_SIZE - 2.0, colour, Anchor::Left));
        }
        let style = TextLook { bold: true, ..look(LABEL_SIZE, colour, Anchor::Left) };
        picture.text((frame.left + 20.0 + 330.0 * position as f64, frame.top - 24.0), *model, style);
    }
    Some(picture)
}
