//! `summary.json` of a plan: the columns of `plan.csv`, and what they rest on.

use serde_json::{Map, Value, json};

use super::columns;
use crate::experiment::plan::{Demand, Plan, ProfileError};
use crate::report::json::SCHEMA_VERSION;

/// The plan as JSON; a value that is absent has no key. Candidates have the keys of `plan.csv`.
///
/// # Errors
/// If it cannot be written.
pub fn json(plan: &Plan) -> Result<String, serde_json::Error> {
    let candidates: Vec<Map<String, Value>> = columns::all(plan)
        .into_iter()
        .map(|row| {
            let present = row.into_iter().filter(|(_, value)| !value.is_null());
            present.map(|(name, value)| (name.to_owned(), value)).collect()
        })
        .collect();
    let mut body = json!({
        "schema_version": SCHEMA_VERSION,
        "kind": "plan",
        "assumed": plan.template.map(|template| template.in_words()),
        "demand": plan.demand.map(demand),
        "peak_factor": plan.peak_factor,
        "job": plan.job.map(|job| json!({ "requests": job.requests, "window_h": job.window_h })),
        "api_usd_per_million_tokens": plan.api_usd_per_million_tokens,
        "notes": (!plan.notes.is_empty()).then_some(&plan.notes),
        "candidates": candidates,
        "prices": plan.rows.iter().filter_map(|row| {
            let listed = row.price.as_ref()?.listed.as_ref()?;
            let price = json!({
                "usd_per_gpu_hour": listed.usd_per_gpu_hour, "date": listed.date, "source": listed.source,
            });
            Some((row.candidate.gpu.clone(), price))
        }).collect::<Map<String, Value>>(),
        "other_lengths": plan.other_lengths.iter().map(|other| json!({
            "model": other.candidate.model,
            "gpu": other.candidate.gpu,
            "tensor_parallel_size": other.candidate.tensor_parallel_size,
            "scale": other.scale,
            "gpus_as_assumed": other.gpus,
            "gpus": other.other_gpus,
        })).collect::<Vec<_>>(),
    });
    body["profile_errors"] = plan.profile_errors.iter().map(profile_error).collect();
    if let Value::Object(entries) = &mut body {
        entries.retain(|_, value| !value.is_null());
    }
    Ok(serde_json::to_string_pretty(&body)? + "\n")
}

fn profile_error(of: &ProfileError) -> Value {
    json!({
        "model": of.candidate.model,
        "gpu": of.candidate.gpu,
        "tensor_parallel_size": of.candidate.tensor_parallel_size,
        "error": of.error,
        "error_is_of": of.error.and(of.error_is_of.as_ref()),
        "gpus": of.gpus,
        "gpus_if_longer": of.gpus_if_longer,
        "gpus_if_shorter": of.gpus_if_shorter,
    })
}

fn demand(demand: Demand) -> Value {
    match demand {
        Demand::RatePerS(rate) => json!({ "rate_per_s": rate }),
        Demand::Users { users, think_time_s } => json!({ "users": users, "think_time_s": think_time_s }),
        Demand::TokensPerDay(tokens) => json!({ "tokens_per_day": tokens }),
        Demand::Profile { mean_per_s, peak_per_s } => {
            json!({ "mean_rate_per_s": mean_per_s, "peak_rate_per_s": peak_per_s })
        }
    }
}
