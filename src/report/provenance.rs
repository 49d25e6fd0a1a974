//! What was simulated, in two lines, and how, in one: the lines that make a result traceable.

use crate::catalog::Standing;
use crate::engine::{Server, SyntheticServer};
use crate::experiment::{Point, SweepResult, Verdict};
use crate::metrics::RunMode;
use crate::report::fold;
use crate::report::format::{self, chosen, count, counted};
use crate::scenario::{Scenario, Serving};
use crate::units::distinct;
use crate::workload::{Arrivals, Distribution, mmpp_rate_per_s};

/// Confidence level of every printed interval, per cent.
pub const INTERVAL_LEVEL_PERCENT: u32 = 95;

/// Model, weight type, GPU x tensor parallelism x replicas, engine and version; or the synthetic server.
#[must_use]
pub fn deployment(scenario: &Scenario) -> String {
    deployment_of(&[scenario])
}

/// The deployment that scenarios share; what they differ in is given as a range or a choice, never as one
/// of its values.
#[must_use]
pub fn deployment_of(scenarios: &[&Scenario]) -> String {
    let servings: Vec<&Serving> = scenarios.iter().filter_map(|one| one.serving.as_deref()).collect();
    let replicas = range(scenarios.iter().map(|scenario| scenario.system.replicas));
    let several = replicas != "1";
    if servings.is_empty() || servings.len() < scenarios.len() {
        return synthetic_of(scenarios, &replicas);
    }
    let of = |value: &dyn Fn(&Serving) -> String| choice(servings.iter().map(|serving| value(serving)));
    let mut gpus = of(&|serving| serving.hardware.title.clone());
    let tp = range(servings.iter().map(|serving| serving.attention_tp));
    if tp != "1" {
        gpus += &format!(" x{tp} (tensor parallel)");
    }
    let stages = range(servings.iter().map(|serving| serving.pipeline_parallel_size));
    if stages != "1" {
        gpus += &format!(" x{stages} (pipeline stages)");
    }
    let ranks = range(servings.iter().map(|serving| serving.ranks()));
    if ranks != "1" {
        gpus += &format!(" x{ranks} (data-parallel ranks)");
    }
    if several {
        gpus += &format!(", {replicas} replicas");
    }
    let model = of(&|serving| serving.model.name.clone());
    let dtype = of(&|serving| serving.weight_dtype.name().to_owned());
    let engine = of(&|serving| engine_version(serving) + &speculation(serving));
    format!("{model} {dtype} on {gpus}, {engine}")
}

fn synthetic_of(scenarios: &[&Scenario], replicas: &str) -> String {
    let line = |scenario: &&Scenario| match &scenario.system.server {
        Server::Synthetic(server) => synthetic_line(server, scenario.system.replicas),
        Server::Llm(_) => "a language-model server".to_owned(),
    };
    match distinct(scenarios.iter().map(line)).as_slice() {
        [only] => only.clone(),
        _ if replicas == "1" => "synthetic servers that differ".to_owned(),
        _ => format!("synthetic servers, {replicas} replicas"),
    }
}

/// `4` or `2 to 6`.
fn range(values: impl Iterator<Item = u32> + Clone) -> String {
    match (values.clone().min(), values.max()) {
        (Some(low), Some(high)) if low < high => format!("{} to {}", count(low.into()), count(high.into())),
        (low, _) => count(low.unwrap_or(0).into()),
    }
}

/// `a`, `a or b`, `a, b or c`.
fn choice(values: impl Iterator<Item = String>) -> String {
    let values = distinct(values);
    match values.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, others)) => format!("{} or {last}", others.join(", ")),
        None => String::new(),
    }
}

/// The scenarios that a sweep ran, or its base if it ran none.
#[must_use]
pub fn scenarios(result: &SweepResult) -> Vec<&Scenario> {
    if result.points.is_empty() {
        return vec![&result.base];
    }
    result.points.iter().map(|point| &point.scenario).collect()
}

/// How requests arrive in a sweep: every way once.
#[must_use]
pub fn arrivals_of(scenarios: &[&Scenario]) -> String {
    choice(scenarios.iter().map(|scenario| arrivals(scenario)))
}

/// The profiles of a sweep, each once.
#[must_use]
pub fn profiles_of(scenarios: &[&Scenario]) -> Vec<String> {
    distinct(scenarios.iter().filter_map(|scenario| profile(scenario)))
}

/// What the engine does by default and the simulation does not, and what of it no measured server stands behind.
#[must_use]
pub fn left_out(scenarios: &[&Scenario]) -> Option<String> {
    let servings = || scenarios.iter().filter_map(|scenario| scenario.serving.as_deref());
    let caches = servings().any(|serving| serving.engine.enable_prefix_caching);
    // Of an estimate nothing was fitted anyway.
    let fitted = servings().filter(|serving| serving.profile.standing != Standing::Estimated);
    let not_fitted = distinct(fitted.flat_map(Serving::not_fitted));
    let mut parts = Vec::new();
    if caches {
        parts.push("prefix caching not simulated".to_owned());
    }
    if !not_fitted.is_empty() {
        parts.push(format!("{} not fitted, the error is not theirs", not_fitted.join(", ")));
    }
    (!parts.is_empty()).then(|| parts.join("; "))
}

fn synthetic_line(server: &SyntheticServer, replicas: u32) -> String {
    let mean = match &server.service_time_s {
        Distribution::Constant { value } => format!("constant service {}", format::latency(*value)),
        Distribution::Exponential { mean } => format!("exponential service, mean {}", format::latency(*mean)),
        Distribution::Gamma { mean, cv } => {
            format!("gamma service, mean {}, CV {}", format::latency(*mean), chosen(*cv))
        }
        _ => "general service".to_owned(),
    };
    let servers = counted(u64::from(server.servers), "server");
    if replicas > 1 {
        format!("synthetic: {replicas} replicas of {servers}, {mean}")
    } else {
        format!("synthetic: {servers}, {mean}")
    }
}

/// `vllm 0.23`, with the version that was asked for if the table has only a lower one.
#[must_use]
pub fn engine_version(serving: &Serving) -> String {
    let engine = &serving.engine;
    match &engine.asked_version {
        Some(asked) if *asked != engine.version => {
            format!("{} {asked} (as {})", engine.engine, engine.version)
        }
        _ => format!("{} {}", engine.engine, engine.version),
    }
}

/// Such as ` with eagle (3 drafts, 2.4 tokens a step)`; empty without speculation.
fn speculation(serving: &Serving) -> String {
    serving.speculative.as_ref().map_or_else(String::new, |speculative| {
        format!(
            " with {} ({}, {} tokens a step)",
            speculative.method,
            counted(u64::from(speculative.num_speculative_tokens), "draft"),
            chosen(speculative.mean_acceptance_length)
        )
    })
}

/// The profile with what it rests on and its held-out error; `None` for a synthetic server.
#[must_use]
pub fn profile(scenario: &Scenario) -> Option<String> {
    let serving = scenario.serving.as_ref()?;
    let profile = &serving.profile;
    let of = match profile.scored_elsewhere(&serving.model.name) {
        Some(_) => format!(", not of {}", serving.model.name),
        None => String::new(),
    };
    let error = match &profile.held_out_error {
        Some(error) => format!("held-out error{of}: {error}"),
        None => "no held-out error known".to_owned(),
    };
    Some(format!("profile {} ({}); {error}", profile.name, serving.foundation()))
}

/// How requests arrive, and whether that is an open or a closed loop.
#[must_use]
pub fn arrivals(scenario: &Scenario) -> String {
    match &scenario.workload.arrivals {
        Arrivals::Poisson { .. } => "open loop, Poisson arrivals".to_owned(),
        Arrivals::Gamma { burstiness, .. } => {
            format!("open loop, gamma arrivals (burstiness {})", chosen(*burstiness))
        }
        Arrivals::Weibull { shape, .. } => format!("open loop, Weibull arrivals (shape {})", chosen(*shape)),
        Arrivals::Constant { .. } => "open loop, equal gaps".to_owned(),
        Arrivals::Mmpp(states) => {
            format!("open loop, Markov-modulated Poisson arrivals ({} states)", states.len())
        }
        Arrivals::Profile(_) => "open loop, Poisson arrivals whose rate varies".to_owned(),
        Arrivals::Closed { .. } => "closed loop: users who wait for their answer".to_owned(),
        Arrivals::AllAtOnce => "all requests at once".to_owned(),
        Arrivals::Trace(trace) => format!("open loop, trace {}", file_name(&trace.name)),
    }
}

/// The load of one point in words: `12 req/s`, `64 users`, `all at once`.
#[must_use]
pub fn load(scenario: &Scenario) -> String {
    match &scenario.workload.arrivals {
        Arrivals::Poisson { rate_per_s }
        | Arrivals::Gamma { rate_per_s, .. }
        | Arrivals::Weibull { rate_per_s, .. }
        | Arrivals::Constant { rate_per_s } => format!("{} req/s", chosen(*rate_per_s)),
        Arrivals::Mmpp(states) => format!("{} req/s on average", chosen(mmpp_rate_per_s(states))),
        Arrivals::Profile(profile) => format!(
            "{} req/s on average, {} at the peak",
            chosen(profile.mean_per_s()),
            chosen(profile.peak_per_s())
        ),
        Arrivals::Closed { users, .. } => counted(u64::from(*users), "user"),
        Arrivals::AllAtOnce => "all at once".to_owned(),
        Arrivals::Trace(trace) => format!("trace of {}", counted(trace.requests.len() as u64, "request")),
    }
}

/// Replications, requests, interval level, warm-up removed, seed: over the points of one experiment.
#[must_use]
pub fn statistics(points: &[Point], seed: u64) -> String {
    let Some(first) = points.first() else {
        return format!("no points; seed {seed}");
    };
    let replications = first.runs.len() as u64;
    let completed: u64 = points.iter().map(|point| fold::total(point, |run| run.totals.completed)).sum();
    let mut parts = vec![counted(replications, "replication")];
    if points.len() > 1 {
        parts[0] += " a point";
    }
    parts.push(format!("{} requests completed", count(completed)));
    parts.push(if replications > 1 {
        format!("± is a {INTERVAL_LEVEL_PERCENT} % Student interval")
    } else {
        "one replication, so no interval is claimed".to_owned()
    });
    parts.push(match first.scenario.run.mode {
        RunMode::Benchmark => "finite benchmark: ramp and drain kept".to_owned(),
        RunMode::Steady => warm_up(points),
    });
    parts.push(format!("seed {seed}"));
    parts.join("; ")
}

/// How much was deleted as warm-up, over all runs that have a steady state.
fn warm_up(points: &[Point]) -> String {
    let removed: Vec<f64> = points
        .iter()
        .filter(|point| point.stability.verdict != Verdict::Unstable)
        .flat_map(|point| &point.runs)
        .filter(|run| run.window.run_s > 0.0)
        .map(|run| run.window.start_s / run.window.run_s)
        .collect();
    if removed.is_empty() {
        return "no steady state".to_owned();
    }
    let mean = removed.iter().sum::<f64>() / removed.len() as f64;
    let most = removed.iter().fold(0.0_f64, |most, share| most.max(*share));
    format!(
        "warm-up removed: {} % of a run on average, at most {} %",
        format::percent(mean),
        format::percent(most)
    )
}

/// The last part of a path: which folder it lies in is nobody's business.
fn file_name(path: &str) -> &str {
    std::path::Path::new(path).file_name().and_then(|name| name.to_str()).unwrap_or(path)
}
