//! The parts that all charts share: title, axes, direct labels, marked loads, the unstable region.

use super::picture::{Anchor, At, HEIGHT, Picture, Rgb, TextLook, WIDTH, text_width};
use super::scale::Scale;
use crate::report::format::{chosen, number};

/// Okabe and Ito's colours, which people with any colour vision can tell apart.
pub mod palette {
    use super::Rgb;
    pub const BLUE: Rgb = (0, 114, 178);
    pub const VERMILLION: Rgb = (213, 94, 0);
    pub const GREEN: Rgb = (0, 158, 115);
    pub const PURPLE: Rgb = (170, 68, 153);
    pub const ORANGE: Rgb = (230, 159, 0);
    pub const SKY: Rgb = (86, 180, 233);
    /// One for each curve, in turn.
    pub const CURVES: [Rgb; 6] = [BLUE, VERMILLION, GREEN, PURPLE, ORANGE, SKY];
    pub const INK: Rgb = (34, 34, 34);
    pub const GREY: Rgb = (105, 105, 105);
    pub const FAINT: Rgb = (226, 226, 226);
    pub const WHITE: Rgb = (255, 255, 255);
    pub const SHADE: Rgb = (251, 236, 226);
}

use palette::{FAINT, GREY, INK, SHADE};

const MARGIN: f64 = 40.0;
/// On one line, and on two.
const TITLE_SIZES: [f64; 2] = [38.0, 27.0];
const SUBTITLE_SIZES: [f64; 2] = [23.0, 20.0];
const TICK_SIZE: f64 = 24.0;
/// Size of the labels beside lines.
pub const LABEL_SIZE: f64 = 25.0;
const LABEL_PITCH: f64 = 29.0;

/// A text of the charts' usual kind.
#[must_use]
pub const fn look(size: f64, colour: Rgb, anchor: Anchor) -> TextLook {
    TextLook { size, colour, anchor, bold: false }
}

/// Title (the finding) and subtitle (what was simulated); where one line is too short for either, on two smaller ones.
pub fn title(picture: &mut Picture, finding: &str, subtitle: &str) {
    let room = f64::from(WIDTH) - 2.0 * MARGIN;
    let mut write = |text: &str, middle: f64, sizes: [f64; 2], colour, bold| {
        let [usual, smaller] = sizes;
        let one_line = text_width(text, usual, bold) <= room;
        let size = if one_line { usual } else { smaller };
        let lines = if one_line { vec![text.to_owned()] } else { two_lines(text, size, bold, room) };
        let above = (lines.len() - 1) as f64 / 2.0;
        for (position, line) in lines.into_iter().enumerate() {
            let y = middle + (position as f64 - above) * size * 1.15;
            picture.text((MARGIN, y), line, TextLook { bold, ..look(size, colour, Anchor::Left) });
        }
    };
    write(finding, 48.0, TITLE_SIZES, INK, true);
    write(subtitle, 95.0, SUBTITLE_SIZES, GREY, false);
}

/// `text` broken between words into at most two lines as even as can be, after a comma or semicolon if there is one to
/// break at; the second cut where even they are too short.
fn two_lines(text: &str, size: f64, bold: bool, room: f64) -> Vec<String> {
    let width = |part: &str| text_width(part, size, bold);
    let spaces = || text.match_indices(' ').map(|(at, _)| at).filter(|at| width(&text[..*at]) <= room);
    let both_fit = |at: &usize| width(&text[at + 1..]) <= room;
    let uneven = |at: &usize| (width(&text[..*at]) - width(&text[at + 1..])).abs();
    let even = |ends: &mut dyn Iterator<Item = usize>| ends.min_by(|a, b| uneven(a).total_cmp(&uneven(b)));
    let after_a_part = even(&mut spaces().filter(|at| text[..*at].ends_with([',', ';'])).filter(both_fit));
    let end = after_a_part.or_else(|| even(&mut spaces().filter(both_fit))).or_else(|| spaces().next_back());
    match end {
        Some(end) => vec![text[..end].to_owned(), fitted(&text[end + 1..], size, bold, room)],
        None => vec![fitted(text, size, bold, room)],
    }
}

/// `text`, with its end cut off where it is wider than `room`.
fn fitted(text: &str, size: f64, bold: bool, room: f64) -> String {
    let mut text = text.to_owned();
    if text_width(&text, size, bold) <= room {
        return text;
    }
    while !text.is_empty() && text_width(&format!("{text}…"), size, bold) > room {
        text.pop();
    }
    text + "…"
}

/// A rectangle with two scales.
#[derive(Clone, Copy, Debug)]
pub struct Frame {
    pub left: f64,
    pub top: f64,
    pub right: f64,
    pub bottom: f64,
    pub x: Scale,
    pub y: Scale,
}

impl Frame {
    /// The usual frame, with room for direct labels at its right.
    #[must_use]
    pub fn new(x: Scale, y: Scale) -> Self {
        Self {
            left: 130.0,
            top: 228.0,
            right: f64::from(WIDTH) - 310.0,
            bottom: f64::from(HEIGHT) - 110.0,
            x,
            y,
        }
    }

    /// Position of a value pair.
    #[must_use]
    pub fn at(&self, x: f64, y: f64) -> At {
        (self.x_at(x), self.y_at(y))
    }

    /// Horizontal position of a value.
    #[must_use]
    pub fn x_at(&self, x: f64) -> f64 {
        self.left + self.x.position(x) * (self.right - self.left)
    }

    /// Vertical position of a value.
    #[must_use]
    pub fn y_at(&self, y: f64) -> f64 {
        self.bottom - self.y.position(y) * (self.bottom - self.top)
    }

    /// Grid lines, ticks and the names of the axes; the vertical axis' name stands above it, to be read upright.
    pub fn axes(&self, picture: &mut Picture, x_name: &str, y_name: &str) {
        for tick in self.y.ticks() {
            let y = self.y_at(tick);
            picture.line(vec![(self.left, y), (self.right, y)], FAINT, 1.5);
            picture.text((self.left - 14.0, y), tick_label(tick), look(TICK_SIZE, GREY, Anchor::Right));
        }
        for tick in self.x.ticks() {
            let x = self.x_at(tick);
            picture.line(vec![(x, self.bottom), (x, self.bottom + 8.0)], GREY, 1.5);
            picture.text((x, self.bottom + 26.0), tick_label(tick), look(TICK_SIZE, GREY, Anchor::Centre));
        }
        picture.line(vec![(self.left, self.bottom), (self.right, self.bottom)], GREY, 2.0);
        let middle = f64::midpoint(self.left, self.right);
        picture.text((middle, self.bottom + 70.0), x_name, look(LABEL_SIZE, INK, Anchor::Centre));
        picture.text((MARGIN, 146.0), y_name, look(LABEL_SIZE, INK, Anchor::Left));
    }

    /// Shades the loads above `from`, where the backlog grows.
    pub fn unstable(&self, picture: &mut Picture, from: f64) {
        let left = self.x_at(from);
        if self.right - left < 2.0 {
            return;
        }
        picture.rectangle((left, self.top), (self.right, self.bottom), SHADE);
    }

    /// Says inside the frame what the shaded region is, at its top or its bottom, else between them: where the fewest of
    /// `taken` would be covered. A narrow region's name begins left of it.
    pub fn name_unstable(&self, picture: &mut Picture, from: f64, taken: &[At]) {
        let text = "unstable: backlog grows";
        let width = text_width(text, LABEL_SIZE, true) + 16.0;
        let left = self.x_at(from).min(self.right - width);
        let covered = |y: f64| {
            let inside = |at: &&At| {
                at.0 > left - 20.0 && at.0 < left + width + 20.0 && (at.1 - y).abs() < 1.3 * LABEL_SIZE
            };
            taken.iter().filter(inside).count()
        };
        let (top, bottom) = (self.top + 24.0, self.bottom - 24.0);
        let between = (1..8).map(|eighth| top + (bottom - top) * f64::from(eighth) / 8.0);
        // Of equals the first.
        let places = [top, bottom].into_iter().chain(between);
        let y = places.min_by_key(|y| covered(*y)).unwrap_or(top);
        let style = TextLook { bold: true, ..look(LABEL_SIZE, palette::VERMILLION, Anchor::Left) };
        picture.text_on(SHADE, (left + 8.0, y), text, style);
    }

    /// Thin vertical bars with caps: pairs of a load and the ends of its interval.
    pub fn whiskers(&self, picture: &mut Picture, intervals: &[(f64, f64, f64)], colour: Rgb) {
        const CAP: f64 = 7.0;
        for (x, low, high) in intervals {
            let (x, top, bottom) = (self.x_at(*x), self.y_at(*high), self.y_at(*low));
            picture.line(vec![(x, top), (x, bottom)], colour, 1.5);
            for y in [top, bottom] {
                picture.line(vec![(x - CAP, y), (x + CAP, y)], colour, 1.5);
            }
        }
    }

    /// A line of values, leaving out the pairs that the scales do not hold.
    pub fn curve(&self, picture: &mut Picture, values: &[(f64, f64)], colour: Rgb, line: Line) {
        let points: Vec<At> = values
            .iter()
            .filter(|(x, y)| self.x.holds(*x) && y.is_finite())
            .map(|(x, y)| self.at(*x, *y))
            .collect();
        match line {
            Line::Thick => picture.line(points.clone(), colour, 4.5),
            Line::Thin => picture.line(points.clone(), colour, 3.0),
            Line::Dashed => picture.dashed(&points, colour, 3.0, 10.0),
        }
        if line == Line::Thick {
            for point in points {
                picture.dot(point, 6.5, colour);
            }
        }
    }

    /// Labels at the ends of lines on a ground of one colour, moved apart where they would touch.
    pub fn end_labels(&self, picture: &mut Picture, mut labels: Vec<EndLabel>, ground: Rgb) {
        labels.sort_by(|a, b| a.at.1.total_cmp(&b.at.1));
        let mut heights: Vec<f64> = labels.iter().map(|label| label.at.1).collect();
        spread(&mut heights, LABEL_PITCH, self.top + 17.0, self.bottom - 17.0);
        for (label, y) in labels.iter().zip(heights) {
            let style = TextLook { bold: label.bold, ..look(LABEL_SIZE, label.colour, Anchor::Left) };
            picture.text_on(ground, (label.at.0 + 16.0, y), &label.text, style);
        }
    }

    /// Vertical lines at loads, named above the frame.
    pub fn marks(&self, picture: &mut Picture, marks: &[Mark]) {
        let mut marks = marks.to_vec();
        marks.sort_by(|a, b| a.load.total_cmp(&b.load));
        let row = self.top - 18.0;
        // The leftmost name ends at its line and the others begin at theirs; one that would touch its neighbour is
        // set a row higher.
        let mut free_from = [0.0_f64; 2];
        for (position, mark) in marks.iter().enumerate() {
            let x = self.x_at(mark.load);
            let width = text_width(&mark.name, LABEL_SIZE, true);
            let to_the_left = position == 0 && marks.len() > 1 && x - width > self.left;
            let left = if to_the_left { x - width } else { x.min(f64::from(WIDTH) - width - 8.0) };
            let raised = usize::from(left < free_from[0] + 14.0 && left >= free_from[1] + 14.0);
            free_from[raised] = left + width;
            let y = row - raised as f64 * LABEL_PITCH;
            picture.dashed(&[(x, self.top - 2.0), (x, self.bottom)], mark.colour, 3.0, 7.0);
            let style = TextLook { bold: true, ..look(LABEL_SIZE, mark.colour, Anchor::Left) };
            picture.text((left, y), mark.name.clone(), style);
        }
    }
}

/// How a curve is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Line {
    Thick,
    Thin,
    Dashed,
}

/// The name of a line at its end.
#[derive(Clone, Debug)]
pub struct EndLabel {
    pub at: At,
    pub text: String,
    pub colour: Rgb,
    pub bold: bool,
}

/// A load worth naming.
#[derive(Clone, Debug)]
pub struct Mark {
    pub load: f64,
    pub name: String,
    pub colour: Rgb,
}

fn tick_label(tick: f64) -> String {
    if tick != 0.0 && tick.abs() < 0.01 { number(tick) } else { chosen(tick) }
}

/// Moves sorted positions apart to at least `pitch` within `low..=high`, each as little as a sweep allows.
fn spread(positions: &mut [f64], pitch: f64, low: f64, high: f64) {
    let mut floor = low;
    for position in positions.iter_mut() {
        *position = position.max(floor);
        floor = *position + pitch;
    }
    let mut ceiling = high;
    for position in positions.iter_mut().rev() {
        *position = position.min(ceiling);
        ceiling = *position - pitch;
    }
}

#[cfg(test)]
mod tests {
    use super::{spread, text_width, two_lines};

    #[test]
    fn a_long_title_takes_two_lines_before_it_is_cut() {
        let text = "six words that need two lines";
        let room = text_width("six words that need", 20.0, true);
        assert_eq!(two_lines(text, 20.0, true, room), ["six words that", "need two lines"]);
        let room = text_width("six, words that need", 20.0, true);
        assert_eq!(two_lines("six words, that need two", 20.0, true, room), ["six words,", "that need two"]);
        let lines = two_lines(&text.repeat(3), 20.0, true, room);
        assert_eq!(lines.len(), 2);
        assert!(lines[1].ends_with('…'), "{lines:?}");
    }

    #[test]
    fn labels_are_moved_apart_and_stay_inside() {
        let mut positions = [5.0, 6.0, 7.0, 99.0, 99.5];
        spread(&mut positions, 10.0, 0.0, 100.0);
        assert_eq!(positions, [5.0, 15.0, 25.0, 90.0, 100.0]);
    }
}
