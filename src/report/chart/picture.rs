//! A picture as a list of shapes in logical pixels, painted as SVG or PNG.
//!
//! Charts say what stands where; this file alone knows the drawing library. Both painters work on a canvas
//! [`SUPERSAMPLING`] times as large: the SVG is shown at its logical size, so that whole-number coordinates are fine
//! enough; the PNG is averaged down, which smooths the lines that the bitmap painter draws without antialiasing.

use std::path::Path;
use std::sync::Once;

use plotters::backend::{BitMapBackend, SVGBackend};
use plotters::coord::Shift;
use plotters::drawing::{DrawingArea, IntoDrawingArea};
use plotters::element::{Circle, PathElement, Polygon};
use plotters::prelude::{DrawingBackend, FontDesc, FontFamily, FontStyle, RGBColor, Text, WHITE};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{Color, ShapeStyle, TextStyle};

/// Width and height of every picture: 16:9, as projectors are.
pub const WIDTH: u32 = 1600;
pub const HEIGHT: u32 = 900;

const SUPERSAMPLING: u32 = 2;
/// How much too high the bitmap painter sets text, in text sizes.
const BITMAP_TEXT_LIFT: f64 = 0.17;

/// A colour.
pub type Rgb = (u8, u8, u8);

/// A point in logical pixels from the upper left corner.
pub type At = (f64, f64);

/// Which part of a text stands at its point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anchor {
    Left,
    Centre,
    Right,
}

/// How a text looks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TextLook {
    pub size: f64,
    pub colour: Rgb,
    pub anchor: Anchor,
    pub bold: bool,
}

#[derive(Clone, Debug)]
enum Shape {
    Line { points: Vec<At>, colour: Rgb, width: f64 },
    Area { points: Vec<At>, colour: Rgb },
    Dot { at: At, radius: f64, colour: Rgb },
    Text { at: At, text: String, look: TextLook },
}

/// What a picture is painted on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Medium {
    Vector,
    Bitmap,
}

/// What is drawn, the first shape at the bottom.
#[derive(Clone, Debug, Default)]
pub struct Picture {
    shapes: Vec<Shape>,
}

/// Why a picture could not be painted.
#[derive(Debug, thiserror::Error)]
#[error("the chart could not be drawn: {0}")]
pub struct PaintError(String);

impl Picture {
    /// A line through `points`.
    pub fn line(&mut self, points: Vec<At>, colour: Rgb, width: f64) {
        self.shapes.push(Shape::Line { points, colour, width });
    }

    /// A line of dashes, each `dash` long and as far apart.
    pub fn dashed(&mut self, points: &[At], colour: Rgb, width: f64, dash: f64) {
        let mut pieces: Vec<Vec<At>> = Vec::new();
        let mut walked = 0.0;
        for pair in points.windows(2) {
            let (from, to) = (pair[0], pair[1]);
            let length = libm::hypot(to.0 - from.0, to.1 - from.1);
            let at = |s: f64| (from.0 + (to.0 - from.0) * s / length, from.1 + (to.1 - from.1) * s / length);
            let mut s = 0.0;
            while s < length {
                let phase = libm::fmod(walked + s, 2.0 * dash);
                let end = (s + if phase < dash { dash - phase } else { 2.0 * dash - phase }).min(length);
                if phase < dash {
                    pieces.push(vec![at(s), at(end)]);
                }
                // Rounding must not stop the walk.
                s = end.max(s + 1e-6);
            }
            walked += length;
        }
        for piece in pieces {
            self.line(piece, colour, width);
        }
    }

    /// A filled polygon.
    pub fn area(&mut self, points: Vec<At>, colour: Rgb) {
        self.shapes.push(Shape::Area { points, colour });
    }

    /// A filled rectangle between two corners.
    pub fn rectangle(&mut self, (left, top): At, (right, bottom): At, colour: Rgb) {
        self.area(vec![(left, top), (right, top), (right, bottom), (left, bottom)], colour);
    }

    /// A disc.
    pub fn dot(&mut self, at: At, radius: f64, colour: Rgb) {
        self.shapes.push(Shape::Dot { at, radius, colour });
    }

    /// A ring: a disc with a white heart.
    pub fn ring(&mut self, at: At, radius: f64, colour: Rgb) {
        self.dot(at, radius, colour);
        self.dot(at, radius * 0.55, (255, 255, 255));
    }

    /// A text, vertically centred on its point.
    pub fn text(&mut self, at: At, text: impl Into<String>, look: TextLook) {
        self.shapes.push(Shape::Text { at, text: text.into(), look });
    }

    /// A text on a ground of one colour, where lines may pass below it.
    pub fn text_on(&mut self, ground: Rgb, at: At, text: &str, look: TextLook) {
        let width = text_width(text, look.size, look.bold);
        let left = match look.anchor {
            Anchor::Left => at.0,
            Anchor::Centre => at.0 - width / 2.0,
            Anchor::Right => at.0 - width,
        };
        let half = look.size * 0.62;
        self.rectangle((left - 4.0, at.1 - half), (left + width + 4.0, at.1 + half), ground);
        self.text(at, text, look);
    }

    /// The picture as an SVG document.
    ///
    /// # Errors
    /// [`PaintError`] if the drawing library fails.
    pub fn svg(&self) -> Result<String, PaintError> {
        let mut text = String::new();
        let size = (WIDTH * SUPERSAMPLING, HEIGHT * SUPERSAMPLING);
        {
            let area = SVGBackend::with_string(&mut text, size).into_drawing_area();
            self.paint(&area, Medium::Vector)?;
        }
        // Drawn large for fine coordinates, shown at its logical size.
        let drawn = format!("width=\"{}\" height=\"{}\"", size.0, size.1);
        Ok(text.replacen(&drawn, &format!("width=\"{WIDTH}\" height=\"{HEIGHT}\""), 1))
    }

    /// Writes the picture as a PNG file.
    ///
    /// # Errors
    /// [`PaintError`] if the drawing library or the file system fails.
    pub fn write_png(&self, path: &Path) -> Result<(), PaintError> {
        let size = (WIDTH * SUPERSAMPLING, HEIGHT * SUPERSAMPLING);
        let mut large = vec![255; (size.0 * size.1 * 3) as usize];
        {
            let area = BitMapBackend::with_buffer(&mut large, size).into_drawing_area();
            self.paint(&area, Medium::Bitmap)?;
        }
        let small = averaged(&large);
        let mut file = BitMapBackend::new(path, (WIDTH, HEIGHT));
        file.blit_bitmap((0, 0), (WIDTH, HEIGHT), &small).map_err(fault)?;
        file.present().map_err(fault)
    }

    fn paint<B: DrawingBackend>(
        &self,
        area: &DrawingArea<B, Shift>,
        medium: Medium,
    ) -> Result<(), PaintError> {
        register_fonts();
        area.fill(&WHITE).map_err(fault)?;
        for shape in &self.shapes {
            paint_shape(area, shape, medium)?;
        }
        area.present().map_err(fault)
    }
}

fn fault(error: impl std::fmt::Display) -> PaintError {
    PaintError(error.to_string())
}

/// A logical coordinate on the large canvas.
fn large(at: At) -> (i32, i32) {
    let scale = f64::from(SUPERSAMPLING);
    (libm::rint(at.0 * scale) as i32, libm::rint(at.1 * scale) as i32)
}

fn colour(rgb: Rgb) -> RGBColor {
    RGBColor(rgb.0, rgb.1, rgb.2)
}

fn paint_shape<B: DrawingBackend>(
    area: &DrawingArea<B, Shift>,
    shape: &Shape,
    medium: Medium,
) -> Result<(), PaintError> {
    match shape {
        Shape::Line { points, colour: rgb, width } => {
            let pen = ShapeStyle {
                color: colour(*rgb).to_rgba(),
                filled: true,
                stroke_width: libm::rint(width * f64::from(SUPERSAMPLING)).max(1.0) as u32,
            };
            if medium == Medium::Vector {
                let path: Vec<(i32, i32)> = points.iter().map(|at| large(*at)).collect();
                return area.draw(&PathElement::new(path, pen)).map_err(fault);
            }
            // Segment by segment with a disc at each joint: the bitmap painter's own joints spike at sharp turns.
            for pair in points.windows(2) {
                let path = PathElement::new(vec![large(pair[0]), large(pair[1])], pen);
                area.draw(&path).map_err(fault)?;
            }
            for joint in points.iter().skip(1).rev().skip(1) {
                let disc = Circle::new(large(*joint), pen.stroke_width / 2, colour(*rgb).filled());
                area.draw(&disc).map_err(fault)?;
            }
            Ok(())
        }
        Shape::Area { points, colour: rgb } => {
            let corners: Vec<(i32, i32)> = points.iter().map(|at| large(*at)).collect();
            area.draw(&Polygon::new(corners, colour(*rgb).filled())).map_err(fault)
        }
        Shape::Dot { at, radius, colour: rgb } => {
            let radius = libm::rint(radius * f64::from(SUPERSAMPLING)) as u32;
            area.draw(&Circle::new(large(*at), radius, colour(*rgb).filled())).map_err(fault)
        }
        Shape::Text { at, text, look } => paint_text(area, *at, text, look, medium),
    }
}

fn paint_text<B: DrawingBackend>(
    area: &DrawingArea<B, Shift>,
    at: At,
    text: &str,
    look: &TextLook,
    medium: Medium,
) -> Result<(), PaintError> {
    let horizontal = match look.anchor {
        Anchor::Left => HPos::Left,
        Anchor::Centre => HPos::Center,
        Anchor::Right => HPos::Right,
    };
    let font = font(look.size * f64::from(SUPERSAMPLING), look.bold);
    // The bitmap painter centres the line's box; the SVG painter the letters in it, which is what is meant.
    let lift = if medium == Medium::Bitmap { BITMAP_TEXT_LIFT * look.size } else { 0.0 };
    let at = (at.0, at.1 + lift);
    let ink = colour(look.colour);
    let style = TextStyle::from(font).color(&ink).pos(Pos::new(horizontal, VPos::Center));
    area.draw(&Text::new(text.to_owned(), large(at), style)).map_err(fault)
}

/// DejaVu under the generic name, so that a viewer without it takes its own sans-serif face.
fn font(size: f64, bold: bool) -> FontDesc<'static> {
    let style = if bold { FontStyle::Bold } else { FontStyle::Normal };
    FontDesc::new(FontFamily::SansSerif, size, style)
}

/// Gives the drawing library its faces: it reads none from the system.
fn register_fonts() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        for (style, face) in
            [(FontStyle::Normal, dejavu::sans::regular()), (FontStyle::Bold, dejavu::sans::bold())]
        {
            // The faces are part of the binary and well-formed; without them drawing reports the missing font.
            let _ = plotters::style::register_font("sans-serif", style, face);
        }
    });
}

/// Width of a text in logical pixels.
#[must_use]
pub fn text_width(text: &str, size: f64, bold: bool) -> f64 {
    register_fonts();
    font(size, bold).box_size(text).map_or(0.0, |(width, _)| f64::from(width))
}

/// The mean of every square of [`SUPERSAMPLING`] x [`SUPERSAMPLING`] pixels.
fn averaged(large: &[u8]) -> Vec<u8> {
    let (width, height, factor) = (WIDTH as usize, HEIGHT as usize, SUPERSAMPLING as usize);
    let mut small = Vec::with_capacity(width * height * 3);
    let row = width * factor * 3;
    for y in 0..height {
        for x in 0..width {
            for channel in 0..3 {
                let corner = y * factor * row + x * factor * 3 + channel;
                let sum: usize = (0..factor)
                    .flat_map(|dy| (0..factor).map(move |dx| corner + dy * row + dx * 3))
                    .map(|index| usize::from(large[index]))
                    .sum();
                small.push((sum / (factor * factor)) as u8);
            }
        }
    }
    small
}
