//! The curves inside a grid: where one axis is a load and others are not, every combination of the others
//! has a throughput-latency curve of its own.

use rayon::prelude::*;

use super::point::Point;
use super::reading::{CurveReading, load_unit, read_curve};
use crate::engine::EngineError;
use crate::scenario::AxisValue;

/// One combination of the axes that are no load, and what its curve says.
#[derive(Clone, Debug)]
pub struct Combination {
    /// Values of the other axes, in their order.
    pub others: Vec<AxisValue>,
    pub reading: CurveReading,
}

/// The position of the only axis that is a load; `None` where none is, or several are.
#[must_use]
pub fn load_axis(axes: &[String]) -> Option<usize> {
    let mut loads = (0..axes.len()).filter(|axis| load_unit(&axes[*axis]).is_some());
    loads.next().filter(|_| loads.next().is_none())
}

/// The values of every axis but `load`.
#[must_use]
pub fn others(coordinates: &[AxisValue], load: Option<usize>) -> Vec<AxisValue> {
    let kept = coordinates.iter().enumerate().filter(|(axis, _)| Some(*axis) != load);
    kept.map(|(_, value)| value.clone()).collect()
}

/// Reads every curve of a grid with exactly one load among several axes, in grid order; none otherwise.
///
/// # Errors
/// As [`read_curve`].
pub(super) fn read_combinations(axes: &[String], points: &[Point]) -> Result<Vec<Combination>, EngineError> {
    let Some(load) = load_axis(axes).filter(|_| axes.len() > 1) else {
        return Ok(Vec::new());
    };
    let mut curves: Vec<(Vec<AxisValue>, Vec<Point>)> = Vec::new();
    for point in points {
        let others = others(&point.coordinates, Some(load));
        let coordinates = point.coordinates.get(load).cloned().into_iter().collect();
        let point = Point { coordinates, ..point.clone() };
        match curves.iter_mut().find(|(known, _)| *known == others) {
            Some((_, curve)) => curve.push(point),
            None => curves.push((others, vec![point])),
        }
    }
    let read = |(others, curve): (Vec<AxisValue>, Vec<Point>)| {
        let reading = read_curve(&axes[load], &curve)?;
        Ok(reading.map(|reading| Combination { others, reading }))
    };
    let readings: Result<Vec<Option<Combination>>, EngineError> = curves.into_par_iter().map(read).collect();
    Ok(readings?.into_iter().flatten().collect())
}
