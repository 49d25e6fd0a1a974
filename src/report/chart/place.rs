//! Names beside points where there is room for them, and none where there is not.

use super::frame::{Frame, LABEL_SIZE, look};
use super::picture::{Anchor, At, Picture, Rgb, TextLook, WIDTH, text_width};

const SIZE: f64 = LABEL_SIZE - 3.0;
/// Distance of a name from the middle of its point.
const GAP: f64 = 18.0;

/// Left, top, right, bottom.
type Rectangle = (f64, f64, f64, f64);

/// Rectangles that are taken, and those that are written over only where there is no other place.
#[derive(Default)]
pub(super) struct Places {
    taken: Vec<Rectangle>,
    avoided: Vec<Rectangle>,
}

impl Places {
    /// Nothing may be written over this point.
    pub(super) fn keep_free(&mut self, at: At) {
        self.taken.push(around(at, 11.0));
    }

    /// This point is written over only where there is no other place.
    pub(super) fn avoid(&mut self, at: At) {
        self.avoided.push(around(at, 7.0));
    }

    /// As [`Places::avoid`], for a line.
    pub(super) fn avoid_line(&mut self, points: &[At]) {
        const STEP: f64 = 6.0;
        for pair in points.windows(2) {
            let ((x, y), (dx, dy)) = (pair[0], (pair[1].0 - pair[0].0, pair[1].1 - pair[0].1));
            let steps = (libm::hypot(dx, dy) / STEP) as u32 + 1;
            let part = |step: u32| f64::from(step) / f64::from(steps);
            self.avoided
                .extend((0..=steps).map(|step| around((x + dx * part(step), y + dy * part(step)), 2.0)));
        }
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
        let place = |(dx, dy): (f64, f64)| {
            let (left, y) = (at.0 + dx, at.1 + dy);
            (left - 4.0, y - half, left + width + 4.0, y + half)
        };
        let is_possible = |place: &Rectangle| {
            let inside = place.0 > frame.left
                && place.2 < f64::from(WIDTH) - 8.0
                && place.1 > frame.top - 2.0 * SIZE
                && place.3 < frame.bottom;
            inside && !self.taken.iter().any(|other| touch(place, other))
        };
        let possible: Vec<Rectangle> = candidates.into_iter().map(place).filter(is_possible).collect();
        let is_clear = |place: &&Rectangle| !self.avoided.iter().any(|other| touch(place, other));
        if let Some(place) = possible.iter().find(is_clear).or_else(|| possible.first()).copied() {
            self.taken.push(place);
            let left_middle = (place.0 + 4.0, place.1 + half);
            picture.text(left_middle, text, TextLook { bold, ..look(SIZE, colour, Anchor::Left) });
        }
    }
}

fn around(at: At, half: f64) -> Rectangle {
    (at.0 - half, at.1 - half, at.0 + half, at.1 + half)
}

fn touch(one: &Rectangle, other: &Rectangle) -> bool {
    one.0 < other.2 && other.0 < one.2 && one.1 < other.3 && other.1 < one.3
}
