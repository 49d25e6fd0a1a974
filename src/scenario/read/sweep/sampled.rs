//! Axes of a Latin hypercube: each is cut into as many equal strata as there are samples, every stratum
//! is hit once, and which strata meet is random (M. McKay, R. Beckman, W. Conover, Technometrics 21 (1979)
//! 239-245). So every axis is covered evenly, however many there are. The columns of values that come out
//! are zipped.

use super::{axis_kind, end, listed, wrong_axis};
use crate::rng::{Purpose, Stream, stream};
use crate::scenario::keys::Kind;
use crate::scenario::node::{Entry, Value};
use crate::scenario::problem::Problem;
use crate::scenario::reader::Reader;
use crate::scenario::{Axis, AxisValue};

/// The values of one axis, in the order of the samples: a range `{ from, to[, scale] }`, or a list, whose
/// values then come equally often.
pub(super) fn axis(
    reader: &mut Reader<'_>,
    entry: &Entry,
    is_synthetic: bool,
    samples: usize,
    seed: u64,
    position: u32,
) -> Option<Axis> {
    let kind = axis_kind(reader, entry, is_synthetic)?;
    let path = format!("sweep.\"{}\"", entry.key);
    let fractions = strata(samples, &mut stream(seed, Purpose::Sampling, position));
    let values = match &entry.node.value {
        Value::List(items) if !items.is_empty() => {
            let all = listed(reader, items, &kind, &entry.key)?;
            let at = |fraction: f64| all[((fraction * all.len() as f64) as usize).min(all.len() - 1)].clone();
            fractions.into_iter().map(at).collect()
        }
        Value::Table(entries) => range(reader, entry, entries, &kind, &path, &fractions)?,
        _ => {
            wrong_axis(reader, &entry.node, &path);
            return None;
        }
    };
    Some(Axis { key: entry.key.clone(), values })
}

fn range(
    reader: &mut Reader<'_>,
    axis: &Entry,
    entries: &[Entry],
    kind: &Kind,
    path: &str,
    fractions: &[f64],
) -> Option<Vec<AxisValue>> {
    let names = ["from", "to", "scale"];
    for entry in entries.iter().filter(|entry| !names.contains(&entry.key.as_str())) {
        reader.unknown(entry, path, names.into_iter());
    }
    let find = |name: &str| entries.iter().find(|entry| entry.key == name).map(|entry| &entry.node);
    let (Some(from), Some(to)) = (find("from"), find("to")) else {
        let problem = Problem::new(axis.node.span, format!("incomplete `{path}`"));
        reader.problem(problem.label("expected a list or { from = 1, to = 40 }"));
        return None;
    };
    let range = (end(reader, from, kind, &axis.key), end(reader, to, kind, &axis.key));
    let is_log = super::is_logarithmic(reader, find("scale"), path)?;
    let (from, to) = (range.0?, range.1?);
    if is_log && (from <= 0.0 || to <= 0.0) {
        let problem = Problem::new(axis.node.span, format!("impossible value for `{path}`"));
        reader.problem(problem.label("a logarithmic axis needs ends above 0"));
        return None;
    }
    let is_integer = matches!(kind, Kind::Integer { .. } | Kind::IntegerOr(..));
    let value = |fraction: &f64| {
        let value =
            if is_log { from * libm::pow(to / from, *fraction) } else { from + (to - from) * fraction };
        if is_integer { AxisValue::Integer(libm::rint(value) as i64) } else { AxisValue::Float(value) }
    };
    Some(fractions.iter().map(value).collect())
}

/// One fraction of each of `samples` equal strata of (0, 1), in random order.
fn strata(samples: usize, random: &mut Stream) -> Vec<f64> {
    let mut fractions: Vec<f64> =
        (0..samples).map(|stratum| (stratum as f64 + random.uniform()) / samples as f64).collect();
    // Fisher and Yates.
    for last in (1..fractions.len()).rev() {
        fractions.swap(last, random.index(last + 1));
    }
    fractions
}
