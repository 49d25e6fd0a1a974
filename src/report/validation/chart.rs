//! Predicted against measured on logarithmic axes, with the 10 % band: what lies on the line is right.

use super::SetErrors;
use crate::report::chart::{Frame, LABEL_SIZE, Line, Picture, Scale, look, palette, title};
use crate::validate::{Figure, error_table};

/// Half-width of the band.
const BAND: f64 = 0.10;
/// What is drawn: the figures people look at, told apart by colour.
const DRAWN: [(Figure, (u8, u8, u8)); 4] = [
    (Figure::TtftMean, palette::BLUE),
    (Figure::TtftP99, palette::PURPLE),
    (Figure::TpotMean, palette::VERMILLION),
    (Figure::E2eMean, palette::GREEN),
];

/// The chart; `None` where nothing of what it draws was measured.
#[must_use]
pub fn chart(sets: &[SetErrors]) -> Option<Picture> {
    let all = || sets.iter().flat_map(|set| &set.scored);
    let pairs = |figure: Figure| -> Vec<(f64, f64)> {
        all().filter_map(|one| one.cell.measured.get(figure).zip(one.simulated.get(figure))).collect()
    };
    let drawn: Vec<_> = DRAWN
        .into_iter()
        .map(|(figure, colour)| (figure, colour, pairs(figure)))
        .filter(|(_, _, pairs)| !pairs.is_empty())
        .collect();
    let values = || drawn.iter().flat_map(|(_, _, pairs)| pairs).flat_map(|(a, b)| [*a, *b]);
    let least = values().reduce(f64::min)?;
    let most = values().reduce(f64::max)?;
    let scale = Scale::log(least * (1.0 - BAND), most * (1.0 + BAND));
    let frame = Frame::new(scale, scale);
    let (low, high) = (least * (1.0 - BAND), most * (1.0 + BAND));

    let mut picture = Picture::default();
    let rows = error_table(all());
    let of = |figure: Figure| rows.iter().find(|row| row.figure == figure);
    let medians: Vec<String> = [Figure::TtftMean, Figure::TpotMean]
        .into_iter()
        .filter_map(|figure| Some(format!("{} {:.1} %", figure.name(), of(figure)?.median_percent)))
        .collect();
    let names: Vec<&str> = sets.iter().map(|set| set.name.as_str()).collect();
    title(&mut picture, &format!("Median error: {}", medians.join(", ")), &names.join("; "));
    let band = [
        (low, low * (1.0 - BAND)),
        (high, high * (1.0 - BAND)),
        (high, high * (1.0 + BAND)),
        (low, low * (1.0 + BAND)),
    ];
    picture.area(band.iter().map(|(x, y)| frame.at(*x, *y)).collect(), palette::FAINT);
    frame.axes(&mut picture, "measured, ms", "simulated, ms; band: 10 %");
    frame.curve(&mut picture, &[(low, low), (high, high)], palette::GREY, Line::Thin);
    for (row, (figure, colour, pairs)) in drawn.iter().enumerate() {
        for (measured, simulated) in pairs {
            picture.dot(frame.at(*measured, *simulated), 5.0, *colour);
        }
        let at = (frame.right + 30.0, frame.top + 20.0 + 34.0 * row as f64);
        picture.dot(at, 7.0, *colour);
        picture.text(
            (at.0 + 18.0, at.1),
            figure.name(),
            look(LABEL_SIZE, *colour, crate::report::chart::Anchor::Left),
        );
    }
    Some(picture)
}
