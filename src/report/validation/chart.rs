//! Predicted against measured on logarithmic axes, with the 10 % band: what lies on the line is right.

use super::SetErrors;
use crate::report::chart::{Anchor, Frame, LABEL_SIZE, Line, Picture, Scale, look, palette, title};
use crate::validate::{Figure, Scored, error_table};

/// Half-width of the band.
const BAND: f64 = 0.10;
/// What is drawn: the figures people look at, told apart by colour.
const DRAWN: [(Figure, (u8, u8, u8)); 4] = [
    (Figure::TtftMean, palette::BLUE),
    (Figure::TtftP99, palette::PURPLE),
    (Figure::TpotMean, palette::VERMILLION),
    (Figure::E2eMean, palette::GREEN),
];

/// Side of the square in which both axes have the same scale, so that errors look the same above and below.
const SIDE: f64 = 562.0;
/// Sets that are named one by one.
const MOST_NAMES: usize = 4;
/// Loads from which dots are drawn smaller.
const MANY: usize = 60;

/// The chart; `None` where nothing of what it draws was measured.
#[must_use]
pub fn chart(sets: &[SetErrors]) -> Option<Picture> {
    let all = || sets.iter().flat_map(|set| &set.scored);
    let pair = |one: &Scored, figure: Figure| one.cell.measured.get(figure).zip(one.simulated.get(figure));
    let values = || {
        let figures = DRAWN.iter().map(|(figure, _)| *figure);
        figures.flat_map(|figure| all().filter_map(move |one| pair(one, figure))).flat_map(|(a, b)| [a, b])
    };
    let (low, high) = (values().reduce(f64::min)? * (1.0 - BAND), values().reduce(f64::max)? * (1.0 + BAND));
    let scale = Scale::log(low, high);
    let mut frame = Frame::new(scale, scale);
    frame.right = frame.left + SIDE;
    frame.top = frame.bottom - SIDE;

    let mut picture = Picture::default();
    let rows = error_table(all());
    let of = |figure: Figure| rows.iter().find(|row| row.figure == figure);
    let medians: Vec<String> = [Figure::TtftMean, Figure::TpotMean]
        .into_iter()
        .filter_map(|figure| Some(format!("{} {:.1} %", figure.name(), of(figure)?.median_percent)))
        .collect();
    let names: Vec<&str> = sets.iter().map(|set| set.name.as_str()).collect();
    let of_what = match names.len() {
        0..=MOST_NAMES => names.join("; "),
        many => format!("{many} measurement sets, {} loads", all().count()),
    };
    title(&mut picture, &format!("Median error: {}", medians.join(", ")), &of_what);
    let band = [
        (low, low * (1.0 - BAND)),
        (high, high * (1.0 - BAND)),
        (high, high * (1.0 + BAND)),
        (low, low * (1.0 + BAND)),
    ];
    picture.area(band.iter().map(|(x, y)| frame.at(*x, *y)).collect(), palette::FAINT);
    frame.axes(&mut picture, "measured, ms", "simulated, ms; band: 10 %");
    frame.curve(&mut picture, &[(low, low), (high, high)], palette::GREY, Line::Thin);

    let radius = if all().count() < MANY { 5.0 } else { 3.5 };
    let tells_apart = all().any(|one| one.cell.holdout) && all().any(|one| !one.cell.holdout);
    let mut at = (frame.right + 60.0, frame.top + 20.0);
    let mut label = |picture: &mut Picture, text: &str, colour| {
        picture.text((at.0 + 18.0, at.1), text, look(LABEL_SIZE, colour, Anchor::Left));
        let here = at;
        at.1 += 34.0;
        here
    };
    for (figure, colour) in DRAWN {
        let Some(row) = of(figure) else { continue };
        for one in all() {
            let Some((measured, simulated)) = pair(one, figure) else { continue };
            let place = frame.at(measured, simulated);
            if tells_apart && one.cell.holdout {
                picture.ring(place, radius, colour);
            } else {
                picture.dot(place, radius, colour);
            }
        }
        let here = label(&mut picture, figure.name(), colour);
        picture.dot(here, 7.0, colour);
        let loads = if row.cells == 1 { "1 load".to_owned() } else { format!("{} loads", row.cells) };
        let errors =
            format!("{loads}: median {:.1} %, worst {:+.1} %", row.median_percent, row.worst_percent);
        label(&mut picture, &errors, palette::GREY);
    }
    if tells_apart {
        let here = label(&mut picture, "not fitted", palette::INK);
        picture.ring(here, 7.0, palette::INK);
    }
    Some(picture)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::Catalog;
    use crate::scenario::Document;
    use crate::validate::{Figures, cells};

    const SET: &str = r#"
[model]
name = "llama-3.1-8b"
[hardware]
gpu = "h100-sxm"
[engine]
name = "vllm"
[[measurement]]
point = [
  { concurrency = 1, input_tokens_mean = 500, output_tokens_mean = 50, ttft_mean_ms = 20, tpot_mean_ms = 8 },
  { concurrency = 4, input_tokens_mean = 500, output_tokens_mean = 50, ttft_mean_ms = 40 },
]
[[measurement]]
holdout = true
point = [
  { concurrency = 2, input_tokens_mean = 500, output_tokens_mean = 50, ttft_mean_ms = 30, tpot_mean_ms = 9 },
]
"#;

    /// Every load, 25 % over what was measured.
    fn scored() -> Vec<Scored> {
        let document = Document::parse(SET, None).expect("TOML");
        let (measurements, _) = document.measurements(&Catalog::new(None)).expect("a valid set");
        let over = |cell: crate::validate::Cell| {
            let mut simulated = Figures::default();
            cell.measured.iter().for_each(|(figure, value)| simulated.set(figure, 1.25 * value));
            Scored { cell, simulated, regime: None }
        };
        cells(&measurements).expect("points").into_iter().map(over).collect()
    }

    #[test]
    fn the_chart_says_how_many_loads_are_how_far_off_and_which_were_fitted() {
        let svg = chart(&[SetErrors { name: "two sets".to_owned(), scored: scored() }])
            .expect("a chart")
            .svg()
            .expect("SVG");
        for words in [
            "Median error: TTFT mean 25.0 %, TPOT mean 25.0 %",
            "3 loads: median 25.0 %, worst +25.0 %",
            "2 loads: median 25.0 %, worst +25.0 %",
            "not fitted",
        ] {
            assert!(svg.contains(words), "`{words}` is not in\n{svg}");
        }
        assert!(!svg.contains("E2E mean"), "nobody measured E2E");
    }

    #[test]
    fn nothing_measured_is_no_chart() {
        assert!(chart(&[SetErrors { name: "none".to_owned(), scored: Vec::new() }]).is_none());
    }
}
