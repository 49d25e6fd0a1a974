//! `[arrivals.*]`: exactly one kind.

use super::{Context, distribution, varying};
use crate::scenario::keys::{arrivals as keys, closed, constant, gamma, list, poisson, root, trace, weibull};
use crate::scenario::node::Value;
use crate::scenario::problem::Problem;
use crate::scenario::reader::{Reader, Section};
use crate::workload::{Arrivals, Distribution};

pub(super) fn read<'d>(
    reader: &mut Reader<'d>,
    context: &Context<'_>,
    top: &Section<'d>,
) -> Option<Arrivals> {
    let section = reader.open(top, &root::ARRIVALS, &keys::ARRIVALS);
    if section.span.is_none() {
        reader.missing(top, &root::ARRIVALS);
        return None;
    }
    let kinds = keys::ARRIVALS.keys;
    let given: Vec<_> = kinds.iter().copied().filter(|kind| section.find(kind).is_some()).collect();
    // All of them are read, so that everything wrong is said at once.
    let mut read: Vec<Option<Arrivals>> =
        given.iter().map(|kind| of_kind(reader, context, &section, kind.name)).collect();
    if given.len() == 1 {
        return read.pop().flatten();
    }
    let place = given.get(1).map_or(section.span, |second| section.place(second));
    let (message, label) = if given.is_empty() {
        ("no arrival kind".to_owned(), format!("one of: {}", list(kinds.iter().map(|k| k.name))))
    } else {
        let names = list(given.iter().map(|kind| format!("`{}`", kind.name)));
        (format!("{} kinds of arrivals: {names}", given.len()), "keep exactly one".to_owned())
    };
    reader.problem(Problem::new(place, message).label(label));
    None
}

fn of_kind<'d>(
    reader: &mut Reader<'d>,
    context: &Context<'_>,
    section: &Section<'d>,
    kind: &str,
) -> Option<Arrivals> {
    match kind {
        "poisson" => {
            let table = reader.open(section, &keys::POISSON, &poisson::POISSON);
            let rate_per_s = reader.number(&table, &poisson::RATE_PER_S)?;
            Some(Arrivals::Poisson { rate_per_s })
        }
        "gamma" => {
            let table = reader.open(section, &keys::GAMMA, &gamma::GAMMA);
            let rate_per_s = reader.number(&table, &gamma::RATE_PER_S);
            let burstiness = reader.number(&table, &gamma::BURSTINESS);
            Some(Arrivals::Gamma { rate_per_s: rate_per_s?, burstiness: burstiness? })
        }
        "constant" => {
            let table = reader.open(section, &keys::CONSTANT, &constant::CONSTANT);
            let rate_per_s = reader.number(&table, &constant::RATE_PER_S)?;
            Some(Arrivals::Constant { rate_per_s })
        }
        "weibull" => {
            let table = reader.open(section, &keys::WEIBULL, &weibull::WEIBULL);
            let rate_per_s = reader.number(&table, &weibull::RATE_PER_S);
            let shape = reader.number(&table, &weibull::SHAPE);
            Some(Arrivals::Weibull { rate_per_s: rate_per_s?, shape: shape? })
        }
        "mmpp" => varying::mmpp(reader, section),
        "profile" => varying::profile(reader, section),
        "ramp" => varying::ramp(reader, section),
        "closed" => closed_loop(reader, context, section),
        "trace" => recorded(reader, context, section),
        _ => all_at_once(reader, section),
    }
}

fn closed_loop<'d>(
    reader: &mut Reader<'d>,
    context: &Context<'_>,
    section: &Section<'d>,
) -> Option<Arrivals> {
    let table = reader.open(section, &keys::CLOSED, &closed::CLOSED);
    let users = reader.integer(&table, &closed::USERS);
    let think_time_s = match table.find(&closed::THINK_TIME_S) {
        Some(node) => distribution::seconds(reader, context, node, &table.dotted("think_time_s")),
        None => Some(Distribution::Constant { value: 0.0 }),
    };
    Some(Arrivals::Closed { users: users?, think_time_s: think_time_s? })
}

fn recorded<'d>(reader: &mut Reader<'d>, context: &Context<'_>, section: &Section<'d>) -> Option<Arrivals> {
    let table = reader.open(section, &keys::TRACE, &trace::TRACE);
    let file = reader.text(&table, &trace::FILE)?;
    let place = table.place(&trace::FILE);
    match context.lookups.trace(reader.folder(place), &file) {
        Ok(trace) => {
            reader.warnings.extend(trace.notes.iter().cloned());
            Some(Arrivals::Trace(trace))
        }
        Err(message) => {
            reader.problem(Problem::new(place, message));
            None
        }
    }
}

/// `[arrivals.all_at_once]`, or `all_at_once = true`.
fn all_at_once<'d>(reader: &mut Reader<'d>, section: &Section<'d>) -> Option<Arrivals> {
    let node = section.find(&keys::ALL_AT_ONCE)?;
    let path = section.dotted(keys::ALL_AT_ONCE.name);
    match &node.value {
        Value::Boolean(true) => Some(Arrivals::AllAtOnce),
        Value::Table(entries) => {
            for entry in entries {
                reader.unknown(entry, &path, std::iter::empty());
            }
            Some(Arrivals::AllAtOnce)
        }
        _ => {
            let expected = keys::ALL_AT_ONCE.kind.describe();
            let label = format!("found {}, expected {expected}", node.describe());
            reader.problem(Problem::new(node.span, format!("wrong type for `{path}`")).label(label));
            None
        }
    }
}
