//! Two axes as a map: how the latency that people wait for (or the throughput of batches) lies over both.

use super::frame::palette::{FAINT, GREY, INK, SHADE, VERMILLION, WHITE};
use super::picture::{Anchor, HEIGHT, Rgb, TextLook, WIDTH, text_width};
use super::{LABEL_SIZE, Picture, look, subtitle, title};
use crate::experiment::{Point, SloVerdict, SweepResult, Verdict};
use crate::metrics::Latency;
use crate::report::fold::{self, Part};
use crate::report::format::{axis_value, number};
use crate::report::provenance;
use crate::scenario::AxisValue;
use crate::workload::Metric;

/// More than this along an axis are no cells that one can tell apart.
const MOST_VALUES: usize = 40;
/// The least and the largest value's colours; those between are mixed.
const LIGHT: Rgb = (236, 244, 250);
const DARK: Rgb = (0, 84, 140);
/// Room beside the names of the rows, and the most that these may take.
const MARGIN: f64 = 54.0;
const WIDEST_NAME: f64 = 420.0;
const TOP: f64 = 190.0;
const RIGHT: f64 = WIDTH as f64 - 60.0;
const BOTTOM: f64 = HEIGHT as f64 - 110.0;
const TEXT_SIZE: f64 = 22.0;

/// What the map shows of a point.
struct Quantity {
    name: &'static str,
    of: fn(&Point) -> Option<f64>,
}

const QUANTITIES: [Quantity; 3] = [
    Quantity { name: "TTFT p99, ms", of: |point| latency_ms(point, Metric::Ttft, |latency| latency.p99_s) },
    Quantity { name: "E2E mean, ms", of: |point| latency_ms(point, Metric::E2e, |latency| latency.mean_s) },
    Quantity {
        name: "output tokens/s",
        of: |point| {
            fold::group_value(point, Part::All, |group| Some(group.output_tokens_per_s)).map(|v| v.mean)
        },
    },
];

fn latency_ms(point: &Point, metric: Metric, of: fn(&Latency) -> f64) -> Option<f64> {
    fold::latency(point, Part::All, metric, of).map(|value| value.mean * 1e3)
}

/// The map; `None` unless the sweep has two axes, each with at least two values, of which every point is a
/// combination.
#[must_use]
pub fn heat(result: &SweepResult) -> Option<Picture> {
    let [x_key, y_key] = result.axes.as_slice() else { return None };
    let (xs, ys) = (values(result, 0), values(result, 1));
    let is_grid = xs.len() * ys.len() <= result.points.len() + result.unfit.len();
    if !is_grid || [&xs, &ys].iter().any(|values| !(2..=MOST_VALUES).contains(&values.len())) {
        return None;
    }
    let batches = result.points.iter().all(fold::is_finite_batch);
    let shown = |quantity: &&Quantity| result.points.iter().any(|point| (quantity.of)(point).is_some());
    let quantity = QUANTITIES.iter().skip(if batches { 2 } else { 0 }).find(shown)?;
    let found: Vec<f64> = result.points.iter().filter_map(quantity.of).filter(|value| *value > 0.0).collect();
    let low = found.iter().fold(f64::INFINITY, |low, value| low.min(*value));
    let high = found.iter().fold(0.0_f64, |high, value| high.max(*value));
    let mut picture = Picture::default();
    let finding = finding(result, quantity, low, high);
    title(&mut picture, &finding, &subtitle(&provenance::scenarios(result)));
    let names = ys.iter().map(|value| text_width(&axis_value(value), TEXT_SIZE, false));
    let left_edge = MARGIN + names.fold(60.0, f64::max).min(WIDEST_NAME);
    let (width, height) = ((RIGHT - left_edge) / xs.len() as f64, (BOTTOM - TOP) / ys.len() as f64);
    let corner = |x: usize, y: usize| (left_edge + x as f64 * width, BOTTOM - (y as f64 + 1.0) * height);
    for point in &result.points {
        let at =
            |axis: usize, values: &[AxisValue]| values.iter().position(|v| *v == point.coordinates[axis]);
        let (Some(x), Some(y)) = (at(0, &xs), at(1, &ys)) else { continue };
        let (left, top) = corner(x, y);
        // Cells are ordered by ratio: latencies near saturation grow a hundredfold.
        let share = (quantity.of)(point)
            .map(|value| libm::log(value.max(low) / low) / libm::log(high / low).max(f64::MIN_POSITIVE));
        let ground = share.map_or(SHADE, |share| mixed(share.clamp(0.0, 1.0)));
        picture.rectangle((left + 1.0, top + 1.0), (left + width - 1.0, top + height - 1.0), ground);
        let ink = if share.is_some_and(|share| share > 0.5) { WHITE } else { INK };
        let text = (quantity.of)(point).map_or_else(|| absent(point).to_owned(), number);
        let middle = (left + width / 2.0, top + height / 2.0);
        if text_width(&text, TEXT_SIZE, true) < width - 8.0 && height > TEXT_SIZE {
            let met = matches!(point.slo, SloVerdict::Met | SloVerdict::NoObjectives);
            let colour = if share.is_none() { VERMILLION } else { ink };
            picture.text(middle, text, TextLook { bold: met, ..look(TEXT_SIZE, colour, Anchor::Centre) });
        }
    }
    axis(
        &mut picture,
        x_key,
        &xs,
        |place| (left_edge + (place as f64 + 0.5) * width, BOTTOM + 26.0),
        Anchor::Centre,
    );
    axis(
        &mut picture,
        y_key,
        &ys,
        |place| (left_edge - 14.0, BOTTOM - (place as f64 + 0.5) * height),
        Anchor::Right,
    );
    let promised = result.points.iter().any(|point| point.slo != SloVerdict::NoObjectives);
    let meaning = if promised { "; bold: objectives met" } else { "" };
    let withheld = result.points.iter().any(|point| (quantity.of)(point).is_none());
    let shade = if withheld { "; shaded: not stable" } else { "" };
    let note = format!("{}{meaning}{shade}", quantity.name);
    picture.text((RIGHT, TOP - 26.0), note, look(LABEL_SIZE, GREY, Anchor::Right));
    picture.line(vec![(left_edge, BOTTOM), (RIGHT, BOTTOM)], FAINT, 1.5);
    Some(picture)
}

/// The values of an axis in ascending order where they are numbers, else as they come.
fn values(result: &SweepResult, axis: usize) -> Vec<AxisValue> {
    let mut values: Vec<AxisValue> = Vec::new();
    let points = result.points.iter().map(|point| &point.coordinates);
    for value in points.chain(result.unfit.iter().map(|(coordinates, _)| coordinates)) {
        if let Some(value) = value.get(axis).filter(|value| !values.contains(value)) {
            values.push(value.clone());
        }
    }
    let number = crate::experiment::number;
    values.sort_by(|a, b| match (number(a), number(b)) {
        (Some(a), Some(b)) => a.total_cmp(&b),
        _ => std::cmp::Ordering::Equal,
    });
    values
}

/// Names and values along one side; as many values as have room.
fn axis(
    picture: &mut Picture,
    key: &str,
    values: &[AxisValue],
    at: impl Fn(usize) -> (f64, f64),
    anchor: Anchor,
) {
    let across = anchor == Anchor::Centre;
    let pitch = if across { at(1).0 - at(0).0 } else { at(0).1 - at(1).1 };
    let texts: Vec<String> = values.iter().map(axis_value).collect();
    let widest = texts.iter().map(|text| text_width(text, TEXT_SIZE, false)).fold(0.0, f64::max);
    let every = libm::ceil((if across { widest + 12.0 } else { TEXT_SIZE + 4.0 }) / pitch).max(1.0) as usize;
    for (place, text) in texts.iter().enumerate().step_by(every) {
        picture.text(at(place), text.clone(), look(TEXT_SIZE, GREY, anchor));
    }
    let name = match key.rsplit('.').next().unwrap_or(key) {
        "rate_per_s" => "offered load, req/s",
        leaf => leaf,
    };
    if across {
        let middle = f64::midpoint(at(0).0, at(values.len() - 1).0);
        picture.text((middle, BOTTOM + 70.0), name, look(LABEL_SIZE, INK, Anchor::Centre));
    } else {
        picture.text((40.0, TOP - 26.0), name, look(LABEL_SIZE, INK, Anchor::Left));
    }
}

fn mixed(share: f64) -> Rgb {
    let channel = |light: u8, dark: u8| {
        libm::rint(f64::from(light) + share * (f64::from(dark) - f64::from(light))) as u8
    };
    (channel(LIGHT.0, DARK.0), channel(LIGHT.1, DARK.1), channel(LIGHT.2, DARK.2))
}

fn absent(point: &Point) -> &'static str {
    match point.stability.verdict {
        Verdict::Unstable => "unstable",
        Verdict::Undecided => "undecided",
        Verdict::Stable => "none",
    }
}

fn finding(result: &SweepResult, quantity: &Quantity, low: f64, high: f64) -> String {
    let unstable = result.points.iter().filter(|point| point.stability.verdict == Verdict::Unstable).count();
    let name = quantity.name.rsplit_once(", ").map_or(quantity.name, |(name, _)| name);
    let unit = quantity.name.rsplit_once(", ").map_or("tokens/s", |(_, unit)| unit);
    let name = if name == "output tokens/s" { "Output" } else { name };
    let range = format!("{name} from {} to {} {unit}", number(low), number(high));
    match unstable {
        0 => range,
        _ => format!("{range}; {unstable} of {} points are unstable", result.points.len()),
    }
}
