//! Pictures for a projector: the finding as the title, lines labelled where they end, nothing that is not read.
//!
//! Every chart is a function from a result to a [`Picture`], `None` where the result has nothing to draw.

mod capacity;
mod cost;
mod frame;
mod frontier;
mod heat;
mod latency;
mod picture;
mod place;
mod scale;
mod throughput;
mod timeline;

use crate::experiment::{CurveReading, Point, SweepResult};
use crate::report::{format, provenance, reading};
use crate::scenario::Scenario;

pub use capacity::capacity;
pub use cost::cost;
pub(crate) use frame::{EndLabel, Frame, LABEL_SIZE, Line, look, palette, title};
pub use frontier::frontier;
pub use heat::heat;
pub use latency::latency;
pub(crate) use picture::Anchor;
pub use picture::{PaintError, Picture};
pub(crate) use scale::Scale;
pub use throughput::throughput;
pub use timeline::timeline;

use frame::Mark;

/// A picture and the stem of its files.
pub type Named = (&'static str, Picture);

/// The pictures of a sweep; `linear`: the loads on a linear axis, however they were spaced.
#[must_use]
pub fn of_sweep(result: &SweepResult, linear: bool) -> Vec<Named> {
    let pictures = [
        ("throughput", throughput(result, linear)),
        ("latency", latency(result, linear)),
        ("frontier", frontier(result)),
        ("heat", heat(result)),
    ];
    pictures.into_iter().filter_map(|(name, picture)| Some((name, picture?))).collect()
}

/// The pictures of a run.
#[must_use]
pub fn of_run(point: &Point) -> Vec<Named> {
    timeline(point).map(|picture| ("timeline", picture)).into_iter().collect()
}

/// Model, GPU, engine and how requests arrive: the line below the title. Of a sweep, what its points share.
fn subtitle(scenarios: &[&Scenario]) -> String {
    format!("{}; {}", provenance::deployment_of(scenarios), provenance::arrivals_of(scenarios))
}

/// Load and point of every point of a curve, ascending.
fn by_load(result: &SweepResult) -> Vec<(f64, &Point)> {
    let mut points: Vec<(f64, &Point)> =
        result.points.iter().filter_map(|point| Some((reading::axis_load(point)?, point))).collect();
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    points
}

/// The load from which the backlog grows: the saturated throughput where it lies in the bracket.
fn unstable_from(reading: &CurveReading) -> Option<f64> {
    let limit = reading.stability_limit.as_ref()?;
    let first = limit.first_unstable?;
    let rate = limit.saturated_per_s.mean;
    let in_bracket = rate > limit.last_stable.unwrap_or(0.0) && rate < first;
    Some(if reading.load_unit == "req/s" && in_bracket { rate } else { first })
}

/// The knee and the capacity, where they exist.
fn marks(reading: &CurveReading) -> Vec<Mark> {
    let unit = reading.load_unit;
    let knee = reading.knee.as_ref().map(|knee| Mark {
        load: knee.load,
        name: format!("knee {}", reading::load(knee.load, unit)),
        colour: palette::PURPLE,
    });
    let guaranteed = reading.capacity.as_ref().and_then(|capacity| capacity.guaranteed);
    let capacity = guaranteed.map(|load| Mark {
        load,
        name: format!("capacity {}", reading::load(load, unit)),
        colour: palette::INK,
    });
    match (knee, capacity) {
        (Some(knee), Some(capacity)) if knee.load == capacity.load => {
            let name = format!("knee and capacity {}", reading::load(knee.load, unit));
            vec![Mark { name, ..capacity }]
        }
        (knee, capacity) => knee.into_iter().chain(capacity).collect(),
    }
}

/// The name of the load axis.
fn load_axis_name(unit: &str, scale: &Scale) -> String {
    let name = if unit == "users" { "users (closed loop)" } else { "offered load, req/s" };
    if scale.is_log() { format!("{name}, log scale") } else { name.to_owned() }
}

/// The last pair of a line, where its name stands.
fn end_of(values: &[(f64, f64)]) -> Option<(f64, f64)> {
    values.last().copied()
}

/// `12.3` for a title.
fn short(value: f64) -> String {
    format::number(value)
}
