//! `[sweep]`: quoted scenario keys and the values they take, and how these are put together.

use crate::nearest::{did_you_mean, nearest};
use crate::scenario::keys::{Key, Kind, Table, list, root, synthetic};
use crate::scenario::node::{Entry, Node, Value};
use crate::scenario::overrides;
use crate::scenario::problem::Problem;
use crate::scenario::reader::{Reader, Section};
use crate::scenario::{Axis, AxisValue, SweepMode};

mod sampled;

/// Bounds of one axis and of the whole grid: a sweep of more is a slip of the pen.
const MOST_VALUES: usize = 100_000;
const MOST_POINTS: usize = 1_000_000;

/// Keys of the table that are no axes: axes are dotted.
const MODE: &str = "mode";
const SAMPLES: &str = "samples";
const MODES: [&str; 3] = ["product", "zip", "latin_hypercube"];

/// How the values of the axes are put together.
#[derive(Clone, Copy, PartialEq)]
enum Design {
    Product,
    Zip,
    /// So many points.
    LatinHypercube(usize),
}

/// The axes, and how they make points. `seed` draws the sample of a Latin hypercube.
pub(super) fn read<'d>(
    reader: &mut Reader<'d>,
    top: &Section<'d>,
    is_synthetic: bool,
    seed: u64,
) -> Option<(Vec<Axis>, SweepMode)> {
    let Some(node) = top.find(&root::SWEEP) else {
        return Some((Vec::new(), SweepMode::Product));
    };
    let Value::Table(entries) = &node.value else {
        let label = format!("found {}, expected a table of axes", node.describe());
        reader.problem(Problem::new(node.span, "wrong type for `sweep`").label(label));
        return None;
    };
    let design = design(reader, node, entries);
    let axes: Vec<Option<Axis>> = entries
        .iter()
        .filter(|entry| ![MODE, SAMPLES].contains(&entry.key.as_str()))
        .enumerate()
        .map(|(position, entry)| match design {
            Some(Design::LatinHypercube(samples)) => {
                sampled::axis(reader, entry, is_synthetic, samples, seed, position as u32)
            }
            _ => axis(reader, entry, is_synthetic),
        })
        .collect();
    let axes: Vec<Axis> = axes.into_iter().collect::<Option<_>>()?;
    match design? {
        Design::Product => {
            check_product(reader, node, &axes)?;
            repeats(reader, node, &axes);
            Some((axes, SweepMode::Product))
        }
        Design::Zip => check_zip(reader, node, &axes).map(|()| (axes, SweepMode::Zip)),
        Design::LatinHypercube(_) => Some((axes, SweepMode::Zip)),
    }
}

fn design(reader: &mut Reader<'_>, node: &Node, entries: &[Entry]) -> Option<Design> {
    let find = |name: &str| entries.iter().find(|entry| entry.key == name).map(|entry| &entry.node);
    let mode = find(MODE);
    let chosen = match mode.map(|node| &node.value) {
        None => "product",
        Some(Value::Text(text)) if MODES.contains(&text.as_str()) => text,
        Some(_) => {
            let node = mode.unwrap_or(node);
            let label = format!("found {}, expected one of {}", node.describe(), list(MODES));
            reader.problem(Problem::new(node.span, "impossible value for `sweep.mode`").label(label));
            return None;
        }
    };
    let samples = find(SAMPLES);
    match (chosen, samples) {
        ("latin_hypercube", Some(samples)) => {
            let kind = Kind::Integer { min: 2, max: MOST_VALUES as i64 };
            let samples = reader.integer_of(samples, &kind, "sweep.samples")?;
            Some(Design::LatinHypercube(samples as usize))
        }
        ("latin_hypercube", None) => {
            let problem = Problem::new(mode.map(|node| node.span), "missing key `sweep.samples`");
            reader.problem(problem.label("how many points the Latin hypercube has"));
            None
        }
        (_, Some(samples)) => {
            let problem = Problem::new(samples.span, "`sweep.samples` is of mode \"latin_hypercube\" only");
            reader.problem(problem.label("leave it out, or set mode"));
            None
        }
        ("zip", None) => Some(Design::Zip),
        (_, None) => Some(Design::Product),
    }
}

fn check_product(reader: &mut Reader<'_>, node: &Node, axes: &[Axis]) -> Option<()> {
    let points = axes.iter().fold(1_usize, |points, axis| points.saturating_mul(axis.values.len()));
    if points > MOST_POINTS {
        let problem = Problem::new(node.span, format!("a sweep of {points} points"));
        reader.problem(problem.label(format!("at most {MOST_POINTS} points are run")));
        return None;
    }
    Some(())
}

/// Where every combination is run, a value that is listed twice runs everything twice, to the same result.
fn repeats(reader: &mut Reader<'_>, node: &Node, axes: &[Axis]) {
    for axis in axes {
        let is_same = |a: &AxisValue, b: &AxisValue| match (number(a), number(b)) {
            (Some(a), Some(b)) => a == b,
            _ => a == b,
        };
        let twice = (1..axis.values.len())
            .find(|at| axis.values[..*at].iter().any(|earlier| is_same(earlier, &axis.values[*at])));
        let Some(twice) = twice else { continue };
        let place = node.entries().iter().find(|entry| entry.key == axis.key).map(|entry| entry.node.span);
        let message = format!("`sweep.\"{}\"` has a value twice", axis.key);
        let label = format!("{} would be run twice, to the same result", describe(&axis.values[twice]));
        reader.problem(Problem::new(place, message).label(label));
    }
}

fn number(value: &AxisValue) -> Option<f64> {
    match value {
        AxisValue::Integer(value) => Some(*value as f64),
        AxisValue::Float(value) => Some(*value),
        AxisValue::Text(_) | AxisValue::Bool(_) => None,
    }
}

fn describe(value: &AxisValue) -> String {
    match value {
        AxisValue::Integer(value) => value.to_string(),
        AxisValue::Float(value) => value.to_string(),
        AxisValue::Text(value) => format!("{value:?}"),
        AxisValue::Bool(value) => value.to_string(),
    }
}

/// Zipped axes move together, so they have equally many values.
fn check_zip(reader: &mut Reader<'_>, node: &Node, axes: &[Axis]) -> Option<()> {
    let lengths: Vec<usize> = axes.iter().map(|axis| axis.values.len()).collect();
    if lengths.windows(2).any(|pair| pair[0] != pair[1]) {
        let found = axes.iter().map(|axis| format!("{} of {}", axis.values.len(), axis.key));
        let problem = Problem::new(node.span, "the axes of a zipped sweep have different numbers of values");
        reader.problem(problem.label(format!("found {}", list(found))));
        return None;
    }
    Some(())
}

/// Whether the axes go with each other and with the scenario's arrivals: asked when the sweep is to be run,
/// not when one load of the same file is.
pub(super) fn check_together(reader: &mut Reader<'_>, top: &Section<'_>) {
    let Some(Value::Table(entries)) = top.find(&root::SWEEP).map(|node| &node.value) else {
        return;
    };
    entries.iter().for_each(|entry| same_arrivals(reader, top, entry));
    for (index, entry) in entries.iter().enumerate() {
        let split = |entry: &Entry| overrides::split(&entry.key).unwrap_or_default();
        let rival = entries[..index].iter().find(|e| overrides::exclude_each_other(&split(e), &split(entry)));
        if let Some(rival) = rival {
            let message = format!("the axes `{}` and `{}` replace each other", rival.key, entry.key);
            reader.problem(Problem::new(entry.key_span, message).label("a sweep can vary one of them"));
        }
    }
}

/// An axis over the rate of another arrival kind would replace the scenario's arrivals, and its result would
/// be labelled as theirs.
fn same_arrivals(reader: &mut Reader<'_>, top: &Section<'_>, entry: &Entry) {
    let parts = overrides::split(&entry.key).unwrap_or_default();
    let (Some(Value::Table(kinds)), [first, swept, ..]) =
        (top.find(&root::ARRIVALS).map(|node| &node.value), parts.as_slice())
    else {
        return;
    };
    let other = kinds.iter().find(|kind| kind.key != *swept);
    if let (true, Some(kind)) = (first == root::ARRIVALS.name, other) {
        let message = format!("the arrivals are `{}`, but the sweep varies `{}`", kind.key, entry.key);
        let help = "give the sweep another axis, such as --set 'sweep={\"deployment.replicas\"=[1,2,4]}'";
        let label = format!("would replace `arrivals.{}`", kind.key);
        reader.problem(Problem::new(entry.key_span, message).label(label).help(help));
    }
}

fn axis(reader: &mut Reader<'_>, entry: &Entry, is_synthetic: bool) -> Option<Axis> {
    let kind = axis_kind(reader, entry, is_synthetic)?;
    let path = format!("sweep.\"{}\"", entry.key);
    let values = match &entry.node.value {
        Value::List(items) => listed(reader, items, &kind, &entry.key),
        Value::Table(entries) => described(reader, &entry.node, entries, &kind, &path, &entry.key),
        _ => {
            wrong_axis(reader, &entry.node, &path);
            None
        }
    }?;
    if values.is_empty() || values.len() > MOST_VALUES {
        let problem = Problem::new(entry.node.span, format!("impossible value for `{path}`"));
        reader.problem(problem.label(format!("found {} values, expected 1 to {MOST_VALUES}", values.len())));
        return None;
    }
    Some(Axis { key: entry.key.clone(), values })
}

fn wrong_axis(reader: &mut Reader<'_>, node: &Node, path: &str) {
    let label = format!("found {}, expected a list or {{ from = 1, to = 40, points = 20 }}", node.describe());
    reader.problem(Problem::new(node.span, format!("wrong type for `{path}`")).label(label));
}

/// What the axis' key holds.
fn axis_kind(reader: &mut Reader<'_>, entry: &Entry, is_synthetic: bool) -> Option<Kind> {
    let parts = overrides::split(&entry.key).unwrap_or_default();
    match lookup(&parts, is_synthetic) {
        Ok(kind) => Some(kind),
        Err((table, unknown)) => {
            let names = table.keys.iter().map(|key| key.name);
            let help = match did_you_mean(&nearest(&unknown, names.clone())) {
                _ if unknown.is_empty() => "put the whole dotted key in quotes".to_owned(),
                Some(near) => format!("for `{unknown}` {near}"),
                None => format!("keys there: {}", list(names)),
            };
            let problem = Problem::new(entry.key_span, format!("`{}` is not a scenario key", entry.key));
            let label = "an axis is a dotted scenario key in quotes, such as \"arrivals.poisson.rate_per_s\"";
            reader.problem(problem.label(label).help(help));
            None
        }
    }
}

/// The kind of a dotted key; what is inside a distribution or an SLO is checked when it is used.
fn lookup(parts: &[String], is_synthetic: bool) -> Result<Kind, (&'static Table, String)> {
    let mut table: &'static Table = &root::ROOT;
    let mut parts = parts.iter();
    while let Some(part) = parts.next() {
        let key: Option<&&'static Key> = table.keys.iter().find(|key| key.name == *part);
        let key = key.ok_or_else(|| (table, part.clone()))?;
        table = match key.kind {
            Kind::Table(_) if std::ptr::eq(*key, &root::ENGINE) && is_synthetic => &synthetic::SYNTHETIC,
            Kind::Table(inner) => inner,
            Kind::Tables(inner) => {
                // The class's name or number.
                let _ = parts.next();
                inner
            }
            _ if parts.len() > 0 => return Ok(Kind::Slo),
            kind => return Ok(kind),
        };
    }
    Err((table, String::new()))
}

/// `[1, 2, 4]`
fn listed(reader: &mut Reader<'_>, items: &[Node], kind: &Kind, key: &str) -> Option<Vec<AxisValue>> {
    let before = reader.problems.len();
    let values = items.iter().filter_map(|item| {
        let value = match &item.value {
            Value::Integer(value) => AxisValue::Integer(*value),
            Value::Float(value) => AxisValue::Float(*value),
            Value::Text(value) => AxisValue::Text(value.clone()),
            Value::Boolean(value) => AxisValue::Bool(*value),
            Value::Date | Value::List(_) | Value::Table(_) => {
                let label = format!("found {}, expected a number, a text or a boolean", item.describe());
                reader.problem(
                    Problem::new(item.span, format!("wrong type for a value of `{key}`")).label(label),
                );
                return None;
            }
        };
        reader.check(item, kind, key);
        Some(value)
    });
    let values = values.collect();
    (reader.problems.len() == before).then_some(values)
}

/// `{ from, to, points[, scale] }` or `{ values }`
fn described(
    reader: &mut Reader<'_>,
    node: &Node,
    entries: &[Entry],
    kind: &Kind,
    path: &str,
    key: &str,
) -> Option<Vec<AxisValue>> {
    let names = ["from", "to", "points", "scale", "values"];
    for entry in entries.iter().filter(|entry| !names.contains(&entry.key.as_str())) {
        reader.unknown(entry, path, names.into_iter());
        if let (Value::Table(_), Some(problem)) = (&entry.node.value, reader.problems.last_mut()) {
            problem.help = Some("put the whole dotted key in quotes".to_owned());
        }
    }
    let find = |name: &str| entries.iter().find(|entry| entry.key == name).map(|entry| &entry.node);
    if let Some(values) = find("values") {
        let Value::List(items) = &values.value else {
            wrong_axis(reader, values, path);
            return None;
        };
        return listed(reader, items, kind, key);
    }
    let (Some(from), Some(to), Some(points)) = (find("from"), find("to"), find("points")) else {
        let problem = Problem::new(node.span, format!("incomplete `{path}`"));
        reader.problem(problem.label("expected a list or { from = 1, to = 40, points = 20 }"));
        return None;
    };
    let range = (end(reader, from, kind, key), end(reader, to, kind, key));
    let most = Kind::Integer { min: 2, max: MOST_VALUES as i64 };
    let points = reader.integer_of(points, &most, &format!("{path}.points"));
    let is_log = is_logarithmic(reader, find("scale"), path)?;
    let (from_value, to_value) = (range.0?, range.1?);
    if is_log && (from_value <= 0.0 || to_value <= 0.0) {
        let problem = Problem::new(node.span, format!("impossible value for `{path}`"));
        reader.problem(problem.label("a logarithmic axis needs ends above 0"));
        return None;
    }
    Some(spaced(
        from_value,
        to_value,
        points?,
        is_log,
        matches!(kind, Kind::Integer { .. } | Kind::IntegerOr(..)),
    ))
}

/// What `scale` says; linear if it is absent.
fn is_logarithmic(reader: &mut Reader<'_>, scale: Option<&Node>, path: &str) -> Option<bool> {
    match scale.map(|node| (&node.value, node)) {
        None => Some(false),
        Some((Value::Text(text), _)) if text == "linear" => Some(false),
        Some((Value::Text(text), _)) if text == "log" => Some(true),
        Some((_, node)) => {
            let label = format!("found {}, expected \"linear\" or \"log\"", node.describe());
            reader.problem(
                Problem::new(node.span, format!("impossible value for `{path}.scale`")).label(label),
            );
            None
        }
    }
}

/// One end of an axis: in the range of its key, a whole number where that is one.
fn end(reader: &mut Reader<'_>, node: &Node, kind: &Kind, key: &str) -> Option<f64> {
    match kind {
        Kind::Integer { .. } | Kind::IntegerOr(..) => {
            reader.integer_of(node, kind, key).map(|value| value as f64)
        }
        _ => reader.number_of(node, kind, key),
    }
}

/// `points` values from `from` to `to`; whole numbers are rounded, and repeated ones dropped.
fn spaced(from: f64, to: f64, points: i64, is_log: bool, is_integer: bool) -> Vec<AxisValue> {
    let last = (points - 1) as f64;
    let value = |i: i64| {
        let fraction = i as f64 / last;
        if i == points - 1 {
            to
        } else if is_log {
            from * libm::pow(to / from, fraction)
        } else {
            from + (to - from) * fraction
        }
    };
    let mut values: Vec<AxisValue> =
        (0..points)
            .map(value)
            .map(|value| {
                if is_integer {
                    AxisValue::Integer(libm::rint(value) as i64)
                } else {
                    AxisValue::Float(value)
                }
            })
            .collect();
    values.dedup();
    values
}
