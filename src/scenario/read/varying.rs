//! `[arrivals.mmpp]`, `[arrivals.profile]`, `[arrivals.ramp]`: rates that vary.

use std::sync::Arc;

use crate::scenario::keys::{NOT_NEGATIVE, arrivals as keys, mmpp, mmpp_state, profile, ramp};
use crate::scenario::node::{Node, Value};
use crate::scenario::problem::Problem;
use crate::scenario::reader::{Reader, Section};
use crate::workload::{Arrivals, Interpolation, MmppState, RateProfile};

const SECONDS_PER_DAY: f64 = 86_400.0;
/// Fewer requests in a cycle of states are a slip of the pen, and would take for ever to draw.
const FEWEST_PER_CYCLE: f64 = 1e-4;

pub(super) fn mmpp<'d>(reader: &mut Reader<'d>, section: &Section<'d>) -> Option<Arrivals> {
    let table = reader.open(section, &keys::MMPP, &mmpp::MMPP);
    let scale = reader.number(&table, &mmpp::SCALE);
    let Some(node) = table.find(&mmpp::STATES) else {
        reader.missing(&table, &mmpp::STATES);
        return None;
    };
    let Value::List(items) = &node.value else {
        wrong_list(reader, node, "arrivals.mmpp.states", "a list of { rate_per_s, mean_dwell_s }");
        return None;
    };
    let states: Vec<Option<MmppState>> = items
        .iter()
        .enumerate()
        .map(|(index, item)| {
            let path = format!("arrivals.mmpp.states.{index}");
            let state = reader.open_node(item, &mmpp::STATES, &mmpp_state::MMPP_STATE, path);
            let rate_per_s = reader.number(&state, &mmpp_state::RATE_PER_S);
            let mean_dwell_s = reader.number(&state, &mmpp_state::MEAN_DWELL_S);
            Some(MmppState { rate_per_s: rate_per_s? * scale?, mean_dwell_s: mean_dwell_s? })
        })
        .collect();
    let states: Vec<MmppState> = states.into_iter().collect::<Option<_>>()?;
    let per_cycle = states.iter().fold(0.0, |sum, state| sum + state.rate_per_s * state.mean_dwell_s);
    if states.is_empty() || per_cycle < FEWEST_PER_CYCLE {
        let problem = Problem::new(node.span, "impossible value for `arrivals.mmpp.states`");
        reader.problem(problem.label(format!(
            "found {per_cycle} requests in a cycle of the states, expected at least {FEWEST_PER_CYCLE}"
        )));
        return None;
    }
    Some(Arrivals::Mmpp(Arc::from(states)))
}

pub(super) fn profile<'d>(reader: &mut Reader<'d>, section: &Section<'d>) -> Option<Arrivals> {
    let table = reader.open(section, &keys::PROFILE, &profile::PROFILE);
    let interpolation = match reader.choice(&table, &profile::INTERPOLATION) {
        Some("linear") => Interpolation::Linear,
        _ => Interpolation::Step,
    };
    let scale = reader.number(&table, &profile::SCALE);
    let given_period_s = reader.number(&table, &profile::PERIOD_S);
    let (node, points, period_s) =
        match (table.find(&profile::RATE_PER_S), table.find(&profile::DAILY_RATE_PER_S)) {
            (Some(node), None) => (node, points(reader, node, "arrivals.profile.rate_per_s"), given_period_s),
            (None, Some(node)) => {
                let period_s = given_period_s.unwrap_or(SECONDS_PER_DAY);
                (node, daily(reader, node, "arrivals.profile.daily_rate_per_s", period_s), Some(period_s))
            }
            (given, _) => {
                let message =
                    "exactly one of `rate_per_s` and `daily_rate_per_s` is needed in `arrivals.profile`";
                let problem = Problem::new(given.map_or(table.span, |node| Some(node.span)), message);
                let label = if given.is_some() {
                    "keep one of them"
                } else {
                    "such as rate_per_s = [[0, 2], [60, 8]]"
                };
                reader.problem(problem.label(label));
                return None;
            }
        };
    let scale = scale?;
    let points: Vec<(f64, f64)> = points?.into_iter().map(|(time_s, rate)| (time_s, rate * scale)).collect();
    let profile = RateProfile::new(&points, interpolation, period_s);
    if profile.is_none() {
        let problem = Problem::new(node.span, "impossible value for `arrivals.profile`");
        reader.problem(
            problem.label(
                "expected times that start at 0 and ascend, all before period_s, and some rate above 0",
            ),
        );
    }
    profile.map(|profile| Arrivals::Profile(Arc::new(profile)))
}

pub(super) fn ramp<'d>(reader: &mut Reader<'d>, section: &Section<'d>) -> Option<Arrivals> {
    let table = reader.open(section, &keys::RAMP, &ramp::RAMP);
    let from = reader.number(&table, &ramp::FROM_PER_S);
    let to = reader.number(&table, &ramp::TO_PER_S);
    let duration_s = reader.number(&table, &ramp::DURATION_S);
    let points = [(0.0, from?), (duration_s?, to?)];
    let profile = RateProfile::new(&points, Interpolation::Linear, None);
    if profile.is_none() {
        let problem = Problem::new(table.span, "impossible value for `arrivals.ramp`");
        reader.problem(problem.label("from_per_s and to_per_s are both 0: no request ever comes"));
    }
    profile.map(|profile| Arrivals::Profile(Arc::new(profile)))
}

/// `[[seconds, requests per second], ...]`.
fn points(reader: &mut Reader<'_>, node: &Node, path: &str) -> Option<Vec<(f64, f64)>> {
    let expected = profile::RATE_PER_S.kind.describe();
    let Value::List(items) = &node.value else {
        wrong_list(reader, node, path, &expected);
        return None;
    };
    let pairs: Vec<Option<(f64, f64)>> = items
        .iter()
        .map(|item| match &item.value {
            Value::List(pair) if pair.len() == 2 => {
                let time_s = rate_of(reader, &pair[0], path);
                let rate = rate_of(reader, &pair[1], path);
                Some((time_s?, rate?))
            }
            _ => {
                wrong_list(reader, item, path, "a pair such as [3600, 12.5]");
                None
            }
        })
        .collect();
    pairs.into_iter().collect()
}

/// Rates of equal parts of a period.
fn daily(reader: &mut Reader<'_>, node: &Node, path: &str, period_s: f64) -> Option<Vec<(f64, f64)>> {
    let Value::List(items) = &node.value else {
        wrong_list(reader, node, path, &profile::DAILY_RATE_PER_S.kind.describe());
        return None;
    };
    let part_s = period_s / items.len().max(1) as f64;
    let rates: Vec<Option<f64>> = items.iter().map(|item| rate_of(reader, item, path)).collect();
    let rates: Vec<f64> = rates.into_iter().collect::<Option<_>>()?;
    Some(rates.into_iter().enumerate().map(|(part, rate)| (part as f64 * part_s, rate)).collect())
}

fn rate_of(reader: &mut Reader<'_>, node: &Node, path: &str) -> Option<f64> {
    reader.number_of(node, &crate::scenario::keys::Kind::Number(NOT_NEGATIVE), path)
}

fn wrong_list(reader: &mut Reader<'_>, node: &Node, path: &str, expected: &str) {
    let label = format!("found {}, expected {expected}", node.describe());
    reader.problem(Problem::new(node.span, format!("wrong type for `{path}`")).label(label));
}
