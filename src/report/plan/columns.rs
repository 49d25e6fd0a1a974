//! What is said of a candidate, by the name of its column: the same in CSV and in JSON.

use serde_json::{Value, json};

use super::{View, words};
use crate::experiment::plan::{Candidate, Economics, Misfit, Outcome, Plan, Row};

/// A named value; null where there is none.
pub(super) type Column = (&'static str, Value);

/// Every candidate: sized ones and those that never meet the objectives, then those that cannot run,
/// which have the first columns only.
pub(super) fn all(plan: &Plan) -> Vec<Vec<Column>> {
    plan.rows.iter().map(|row| of_row(plan, row)).chain(plan.misfits.iter().map(of_misfit)).collect()
}

fn of_misfit(misfit: &Misfit) -> Vec<Column> {
    let candidate = &misfit.candidate;
    vec![
        ("model", json!(candidate.model)),
        ("gpu", json!(candidate.gpu)),
        ("tensor_parallel_size", json!(candidate.tensor_parallel_size)),
        ("weight_dtype", json!(candidate.weight_dtype)),
        ("settings", settings(candidate)),
        ("state", json!(if misfit.missing_mib.is_some() { "does not fit" } else { "cannot run" })),
        ("reason", json!(misfit.reason)),
    ]
}

fn settings(candidate: &Candidate) -> Value {
    let all: Vec<String> = candidate.settings.iter().map(|(key, value)| format!("{key}={value}")).collect();
    if all.is_empty() { Value::Null } else { json!(all.join(" ")) }
}

fn of_row(plan: &Plan, row: &Row) -> Vec<Column> {
    let view = View::of(row);
    let view = view.as_ref();
    let job = match &row.outcome {
        Outcome::Job(fleet) => Some(fleet),
        _ => None,
    };
    let (state, reason) = match &row.outcome {
        Outcome::Never(unmet) => ("not met", Some(unmet.to_string())),
        _ => ("met", None),
    };
    let economics = Economics::of(row);
    let usd = economics.and_then(|economics| economics.usd);
    let in_ms = |seconds: Option<f64>| json!(seconds.map(|seconds| seconds * 1e3));
    let dtype = row.scenario.serving.as_ref().map_or("", |serving| serving.weight_dtype.name());
    let fleet_replicas = view.map(|view| view.fleet.replicas).or(job.map(|job| job.replicas));
    let saturated =
        view.map(|view| view.fleet.saturated_per_s.mean).or(job.map(|job| job.saturated_per_s.mean));
    let break_even =
        plan.api_usd_per_million_tokens.and_then(|api| usd.map(|usd| usd.break_even_tokens_per_day(api)));
    vec![
        ("model", json!(row.candidate.model)),
        ("gpu", json!(row.candidate.gpu)),
        ("tensor_parallel_size", json!(row.candidate.tensor_parallel_size)),
        ("weight_dtype", json!(dtype)),
        ("settings", settings(&row.candidate)),
        ("state", json!(state)),
        ("reason", json!(reason)),
        ("profile", json!(row.scenario.serving.as_ref().map(|serving| &serving.profile.name))),
        ("profile_standing", json!(words::standing(row))),
        ("profile_rests_on", json!(row.scenario.serving.as_ref().map(|serving| serving.foundation()))),
        ("pareto", json!(row.pareto)),
        ("replicas", json!(fleet_replicas)),
        ("gpus", json!(row.gpus())),
        ("gpus_n_plus_one", json!(view.map(View::gpus_n_plus_one))),
        ("gpus_without_objectives", json!(view.map(View::gpus_without_objectives))),
        ("mean_rate_per_s", json!(view.map(|view| view.fleet.rates.mean_per_s))),
        ("peak_rate_per_s", json!(view.map(|view| view.fleet.rates.peak_per_s))),
        ("saturated_per_replica_per_s", json!(saturated)),
        ("headroom_fraction", json!(view.map(|view| view.headroom))),
        ("ttft_p99_ms", in_ms(view.and_then(|view| view.ttft_p99_s))),
        ("tpot_p99_ms", in_ms(view.and_then(|view| view.tpot_p99_s))),
        ("e2e_p50_ms", in_ms(view.and_then(|view| view.e2e_p50_s))),
        ("worst_value_over_limit", json!(view.and_then(|view| view.worst_ratio).map(|ratio| ratio.mean))),
        ("refused_fraction", json!(row.refused().map(|(share, _)| share))),
        ("usd_per_gpu_hour", json!(row.price.as_ref().map(|price| price.usd_per_gpu_hour))),
        ("usd_per_hour", json!(usd.map(|usd| usd.per_hour))),
        ("usd_per_month", json!(usd.map(|usd| usd.per_month))),
        ("usd_per_million_input_tokens", json!(usd.map(|usd| usd.per_million_input_tokens))),
        ("usd_per_million_output_tokens", json!(usd.map(|usd| usd.per_million_output_tokens))),
        ("usd_per_million_tokens", json!(usd.map(|usd| usd.per_million_tokens))),
        ("requests_per_usd", json!(usd.map(|usd| usd.requests_per_usd))),
        (
            "output_tokens_per_gpu_hour",
            json!(economics.map(|economics| economics.output_tokens_per_gpu_hour)),
        ),
        ("gpu_hours_per_day", json!(economics.and_then(|economics| economics.gpu_hours_per_day))),
        ("job_hours", json!(job.map(|job| job.hours))),
        ("break_even_tokens_per_day", json!(break_even)),
    ]
}
