//! A sweep over several axes, or over one that is no load: what its points are called and how they belong together.

use crate::experiment::{self, Point, SweepResult};
use crate::report::format::axis_value;
use crate::scenario::AxisValue;

/// Points that differ only in their load, in grid order, and the name of what they share.
pub struct Curve<'a> {
    /// `2 replicas, round_robin`; empty where the load is the only axis.
    pub name: String,
    pub others: Vec<AxisValue>,
    pub points: Vec<&'a Point>,
}

/// Whether the sweep is no plain curve over a load.
#[must_use]
pub fn is_grid(result: &SweepResult) -> bool {
    result.axes.len() > 1 || experiment::load_axis(&result.axes).is_none()
}

/// The curves of a sweep, in grid order; without a load axis every point is one by itself.
#[must_use]
pub fn curves(result: &SweepResult) -> Vec<Curve<'_>> {
    let load = experiment::load_axis(&result.axes);
    let mut curves: Vec<Curve> = Vec::new();
    for point in &result.points {
        let others = experiment::others(&point.coordinates, load);
        match curves.iter_mut().find(|curve| curve.others == others) {
            Some(curve) => curve.points.push(point),
            None => {
                curves.push(Curve { name: name(&result.axes, load, &others), others, points: vec![point] })
            }
        }
    }
    curves
}

/// A point's load, if exactly one axis is one.
#[must_use]
pub fn load(result: &SweepResult, point: &Point) -> Option<f64> {
    experiment::number(point.coordinates.get(experiment::load_axis(&result.axes)?)?)
}

/// The unit of the load axis, if exactly one axis is one.
#[must_use]
pub fn load_unit(result: &SweepResult) -> Option<&'static str> {
    experiment::load_unit(&result.axes[experiment::load_axis(&result.axes)?])
}

/// What a combination of values is called: `2 replicas, round_robin, max_num_seqs 64`.
#[must_use]
pub fn name(axes: &[String], load: Option<usize>, others: &[AxisValue]) -> String {
    let keys = axes.iter().enumerate().filter(|(axis, _)| Some(*axis) != load).map(|(_, key)| key);
    let parts: Vec<String> = keys.zip(others).map(|(key, value)| value_name(key, value)).collect();
    parts.join(", ")
}

/// A value with enough of its key to be understood: words speak for themselves, numbers do not.
fn value_name(key: &str, value: &AxisValue) -> String {
    let leaf = key.rsplit('.').next().unwrap_or_default();
    let text = axis_value(value);
    match (leaf, value) {
        ("replicas" | "users" | "servers", AxisValue::Integer(1)) => {
            format!("1 {}", leaf.trim_end_matches('s'))
        }
        ("replicas" | "users" | "servers", _) => format!("{text} {leaf}"),
        ("tensor_parallel_size", _) => format!("TP {text}"),
        ("rate_per_s", _) => format!("{text} req/s"),
        (_, AxisValue::Text(_)) => text,
        _ => format!("{leaf} {text}"),
    }
}
