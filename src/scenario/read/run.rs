//! `[run]`: how long and how often.

use crate::scenario::keys::{Kind, root, run as keys};
use crate::scenario::node::Value;
use crate::scenario::problem::Problem;
use crate::scenario::reader::{Reader, Section};
use crate::scenario::{RunLength, RunPlan, Warmup};
use crate::stats::RunMode;
use crate::units::plain;
use crate::workload::{Arrivals, Trace};

const DEFAULT_REQUESTS: u64 = 10_000;
const DEFAULT_REPLICATIONS: u32 = 5;

pub(super) fn read<'d>(
    reader: &mut Reader<'d>,
    top: &Section<'d>,
    arrivals: Option<&Arrivals>,
) -> Option<RunPlan> {
    let section = reader.open(top, &root::RUN, &keys::RUN);
    // A finite load: what it was is over when it is over.
    let is_finite = matches!(arrivals, Some(Arrivals::Trace(_) | Arrivals::AllAtOnce));
    let varies = matches!(arrivals, Some(Arrivals::Profile(_)));
    let mode = match reader.choice(&section, &keys::MODE) {
        Some("steady") => RunMode::Steady,
        Some(_) => RunMode::Benchmark,
        None if is_finite || varies => RunMode::Benchmark,
        None => RunMode::Steady,
    };
    if varies && mode == RunMode::Steady {
        let problem = Problem::new(section.place(&keys::MODE), "a rate that varies has no steady state");
        reader.problem(problem.label("leave it out, or mode = \"benchmark\"").help(
            "mode \"benchmark\" reports the whole of it; a steady state is that of one rate, such as the peak",
        ));
    }
    let length = length(reader, &section, arrivals);
    let replications = replications(reader, &section, arrivals, is_finite);
    let warmup = warmup(reader, &section);
    if let (RunMode::Benchmark, Some(Warmup::Seconds(1e-9..))) = (mode, warmup) {
        let message = "a warm-up in mode \"benchmark\", which reports the whole run";
        let problem = Problem::new(section.place(&keys::WARMUP), message);
        reader.problem(
            problem
                .label("leave it out, or set run.mode = \"steady\"")
                .help("\"benchmark\" is the default of traces, profiles, ramps and all_at_once"),
        );
    }
    if let (Some(RunLength::DurationS(duration_s)), Some(Warmup::Seconds(warmup_s))) = (length, warmup)
        && warmup_s >= duration_s
    {
        let problem = Problem::new(section.place(&keys::WARMUP), "the warm-up leaves nothing of the run");
        reader.problem(
            problem.label(format!("found {warmup_s}, expected less than duration_s = {duration_s}")),
        );
    }
    if let (Some(RunLength::Requests(requests)), RunMode::Steady) = (length, mode) {
        long_enough(reader, &section, arrivals, requests, warmup);
    }
    if let (Some(RunLength::Requests(requests)), Some(arrivals)) = (length, arrivals) {
        ends_before_the_clock(reader, &section, top, arrivals, requests);
    }
    Some(RunPlan { mode, length: length?, replications: replications?, warmup: warmup? })
}

/// A steady run of `requests` ends when the last of them is sent: that must be after the warm-up and, in a
/// closed loop, well after the users have sent their first, all at time 0: what starts together says little else.
fn long_enough(
    reader: &mut Reader<'_>,
    section: &Section<'_>,
    arrivals: Option<&Arrivals>,
    requests: u64,
    warmup: Option<Warmup>,
) {
    if let Some(Arrivals::Closed { users, .. }) = arrivals
        && requests < 2 * u64::from(*users)
    {
        let problem = Problem::new(section.place(&keys::REQUESTS), "the run ends before it has begun");
        let label = format!(
            "found {requests}, of which {} are sent at time 0 by {users} users: give at least {}",
            requests.min(u64::from(*users)),
            2 * u64::from(*users)
        );
        reader.problem(problem.label(label));
    }
    if let (Some(rate_per_s), Some(Warmup::Seconds(warmup_s))) =
        (arrivals.and_then(Arrivals::rate_per_s), warmup)
        && warmup_s >= requests as f64 / rate_per_s
    {
        let run_s = requests as f64 / rate_per_s;
        let problem = Problem::new(section.place(&keys::WARMUP), "the warm-up leaves nothing of the run");
        let label = format!("found {warmup_s}, but {requests} requests take about {run_s:.0} s");
        reader.problem(problem.label(label));
    }
}

/// Seconds that the clock counts to, in nanoseconds of 64 bits.
const CLOCK_S: f64 = u64::MAX as f64 * 1e-9;
const YEAR_S: f64 = 365.25 * 86_400.0;

/// So many requests at a rate must all be sent before the clock ends, of which chance may need some more.
fn ends_before_the_clock(
    reader: &mut Reader<'_>,
    section: &Section<'_>,
    top: &Section<'_>,
    arrivals: &Arrivals,
    requests: u64,
) {
    let Some(rate_per_s) = arrivals.mean_rate_per_s().filter(|rate| *rate > 0.0) else {
        return;
    };
    let run_s = requests as f64 / rate_per_s;
    if run_s < CLOCK_S {
        return;
    }
    let place = section.place(&keys::REQUESTS).filter(|_| section.find(&keys::REQUESTS).is_some());
    let place = place.or_else(|| top.find(&root::ARRIVALS).map(|node| node.span));
    let years = libm::rint(run_s / YEAR_S);
    let years = if years < 1e9 { years.to_string() } else { "more than a billion".to_owned() };
    let message = format!(
        "run.requests = {requests} at {} req/s take {} years; the clock ends after {:.0} years",
        plain(rate_per_s),
        years,
        libm::floor(CLOCK_S / YEAR_S)
    );
    let most = rate_per_s * CLOCK_S;
    let label = format!("expected at most {most:.0} requests at this rate, or a higher rate");
    reader.problem(Problem::new(place, message).label(label));
}

fn length(reader: &mut Reader<'_>, section: &Section<'_>, arrivals: Option<&Arrivals>) -> Option<RunLength> {
    let given = (section.find(&keys::REQUESTS), section.find(&keys::DURATION_S));
    match given {
        (Some(_), Some(duration)) => {
            let problem = Problem::new(duration.span, "both `run.requests` and `run.duration_s` are given");
            reader.problem(problem.label("keep one of them"));
            None
        }
        (None, Some(duration)) => {
            let duration_s = reader.number_of(duration, &keys::DURATION_S.kind, "run.duration_s")?;
            if matches!(arrivals, Some(Arrivals::AllAtOnce)) {
                let problem = Problem::new(duration.span, "`all_at_once` needs `run.requests`");
                reader.problem(
                    problem.label("every request is sent at time 0; a duration does not limit them"),
                );
                return None;
            }
            Some(RunLength::DurationS(duration_s))
        }
        (requests, None) => {
            let recorded = match arrivals {
                Some(Arrivals::Trace(trace)) => Some(trace),
                _ => None,
            };
            let asked = match requests {
                Some(node) => Some(reader.integer_of(node, &keys::REQUESTS.kind, "run.requests")?),
                None => None,
            };
            let asked = asked.and_then(|asked| u64::try_from(asked).ok());
            // A profile is run over once: a day, a ramp.
            let span_s = match arrivals {
                Some(Arrivals::Profile(profile)) => profile.span_s(),
                _ => 0.0,
            };
            if asked.is_none() && span_s > 0.0 {
                return Some(RunLength::DurationS(span_s));
            }
            Some(RunLength::Requests(match recorded {
                Some(trace) => requests_of(reader, trace, asked),
                None => asked.unwrap_or(DEFAULT_REQUESTS),
            }))
        }
    }
}

/// A trace is replayed whole, or as far as was asked.
fn requests_of(reader: &mut Reader<'_>, trace: &Trace, asked: Option<u64>) -> u64 {
    let recorded = trace.requests.len() as u64;
    if let Some(asked) = asked.filter(|asked| *asked > recorded) {
        let note = format!("run.requests = {asked}, but {} has only {recorded}", trace.name);
        reader.warnings.push(note);
    }
    asked.unwrap_or(recorded).min(recorded)
}

fn replications<'d>(
    reader: &mut Reader<'d>,
    section: &Section<'d>,
    arrivals: Option<&Arrivals>,
    is_finite: bool,
) -> Option<u32> {
    if section.find(&keys::REPLICATIONS).is_none() {
        return Some(if is_finite { 1 } else { DEFAULT_REPLICATIONS });
    }
    let asked: u32 = reader.integer(section, &keys::REPLICATIONS)?;
    if asked > 1 && matches!(arrivals, Some(Arrivals::Trace(_))) {
        let note = format!("run.replications = {asked} is not used: a trace is replayed once");
        reader.warnings.push(note);
        return Some(1);
    }
    Some(asked)
}

fn warmup(reader: &mut Reader<'_>, section: &Section<'_>) -> Option<Warmup> {
    let Some(node) = section.find(&keys::WARMUP) else {
        return Some(Warmup::Auto);
    };
    match (&node.value, keys::WARMUP.kind) {
        (Value::Text(text), Kind::NumberOr(auto, _)) if text == auto => Some(Warmup::Auto),
        _ => {
            let seconds = reader.number_of(node, &keys::WARMUP.kind, "run.warmup")?;
            Some(Warmup::Seconds(seconds))
        }
    }
}
