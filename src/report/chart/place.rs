//! Names beside points where there is room for them, and none where there is not.

use super::frame::{Frame, LABEL_SIZE, look};
use super::picture::{Anchor, At, Picture, Rgb, TextLook, WIDTH, text_width};

const SIZE: f64 = LABEL_SIZE - 3.0;
/// Distance of a name from the middle of its point.
const GAP: f64 = 18.0;

/// Rectangles that are taken: left, top, right, bottom.
#[derive(Default)]
pub(super) struct Places {
    taken: Vec<(f64, f64, f64, f64)>,
}

impl Places {
    /// Nothing may be written over this point.
    pub(super) fn keep_free(&mut self, at: At) {
        self.taken.push((at.0 - 11.0, at.1 - 11.0, at.0 + 11.0, at.1 + 11.0));
    }

    /// Writes `text` right of `at`, else left, above or below it; not at all where it would touch something.
    pub(super) fn name(
        &mut self,
        picture: &mut Picture,
        frame: &Frame,
        at: At,
        text: &str,
        colour: Rgb,
        bold: bool,
    ) {
        let width = text_width(text, SIZE, bold);
        let half = SIZE * 0.6;
        let candidates = [
            (GAP, 0.0),
            (-GAP - width, 0.0),
            (GAP, -SIZE * 1.1),
            (GAP, SIZE * 1.1),
            (-GAP - width, -SIZE * 1.1),
            (-GAP - width, SIZE * 1.1),
            (-width / 2.0, -GAP - half),
            (-width / 2.0, GAP + half),
        ];
        for (dx, dy) in candidates {
            let (left, y) = (at.0 + dx, at.1 + dy);
            let place = (left - 4.0, y - half, left + width + 4.0, y + half);
            let inside = place.0 > frame.left
                && place.2 < f64::from(WIDTH) - 8.0
                && place.1 > frame.top - 2.0 * SIZE
                && place.3 < frame.bottom;
            let touches = |other: &(f64, f64, f64, f64)| {
                place.0 < other.2 && other.0 < place.2 && place.1 < other.3 && other.1 < place.3
            };
            if inside && !self.taken.iter().any(touches) {
                self.taken.push(place);
                picture.text((left, y), text, TextLook { bold, ..look(SIZE, colour, Anchor::Left) });
                return;
            }
        }
    }
}
