//! Every configuration that is tried, and why those that cannot be are not.

use std::path::Path;

use super::{Basis, PlanError, PlanRequest};
use crate::catalog::{Catalog, Dtype, Price};
use crate::scenario::{Override, Scenario, ScenarioErrors};
use crate::units::grouped;

/// Tensor parallel sizes that are tried where none are named: those of a host of eight GPUs, also where
/// they are joined by PCIe only, of which a warning tells.
const USUAL_TENSOR_PARALLEL_SIZES: [u32; 4] = [1, 2, 4, 8];

/// One configuration of a replica.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    pub model: String,
    pub gpu: String,
    pub tensor_parallel_size: u32,
    /// As asked for; `None`: the scenario's, or the model's own.
    pub weight_dtype: Option<String>,
    /// Further scenario keys with their values.
    pub settings: Vec<(String, String)>,
}

/// A candidate that can run: its scenario with one replica.
#[derive(Clone, Debug)]
pub(super) struct Runnable {
    pub candidate: Candidate,
    pub scenario: Scenario,
    pub price: Option<PlanPrice>,
}

/// $/GPU-hour of a candidate's GPU, and where it is from.
#[derive(Clone, Debug, PartialEq)]
pub struct PlanPrice {
    pub usd_per_gpu_hour: f64,
    /// From the price list; `None`: the scenario's own.
    pub listed: Option<Price>,
}

/// A candidate that cannot run, and why.
#[derive(Clone, Debug, PartialEq)]
pub struct Misfit {
    pub candidate: Candidate,
    pub reason: String,
    /// MiB of memory that are missing on each GPU, where that is a reason.
    pub missing_mib: Option<u32>,
}

/// The candidates of a request, models as asked, then GPUs, sizes, dtypes and settings in their order.
pub(super) fn enumerate(request: &PlanRequest, catalog: &Catalog, basis: &Basis) -> Vec<Candidate> {
    let gpus = if !request.gpus.is_empty() { request.gpus.clone() } else { catalog.hardware_names() };
    let dtypes: Vec<Option<String>> = match request.weight_dtypes.as_slice() {
        [] => vec![None],
        named => named.iter().cloned().map(Some).collect(),
    };
    let sizes: &[u32] = match request.tensor_parallel_sizes.as_slice() {
        [] => &USUAL_TENSOR_PARALLEL_SIZES,
        named => named,
    };
    let settings = product(&each_once(&request.vary));
    let mut candidates: Vec<Candidate> = Vec::new();
    for model in &basis.models {
        let own_dtype = published_dtype(model, catalog, basis);
        for gpu in &gpus {
            for &tensor_parallel_size in sizes {
                for weight_dtype in &dtypes {
                    candidates.extend(settings.iter().map(|settings| Candidate {
                        model: model.clone(),
                        gpu: gpu.to_lowercase(),
                        tensor_parallel_size,
                        weight_dtype: weight_dtype.clone().or(own_dtype.map(|dtype| dtype.name().to_owned())),
                        settings: settings.clone(),
                    }));
                }
            }
        }
    }
    // What is asked for twice is one candidate.
    let mut seen = Vec::new();
    candidates.retain(|candidate| {
        let is_new = !seen.contains(candidate);
        if is_new {
            seen.push(candidate.clone());
        }
        is_new
    });
    candidates
}

/// The dtype of a model that stands in for the scenario's, where its published weights are smaller than the scenario's
/// dtype: nobody serves them larger than they are.
pub(super) fn published_dtype(model: &str, catalog: &Catalog, basis: &Basis) -> Option<Dtype> {
    let asked = basis.document.text_at("model.weight_dtype").and_then(Dtype::parse)?;
    if basis.document.text_at("model.name") == Some(model) {
        return None;
    }
    let (found, variant) = catalog.model(model, Path::new("")).ok()?;
    let own = variant.unwrap_or(found.native_weight_dtype);
    (own.bits_per_weight() < asked.bits_per_weight()).then_some(own)
}

/// Keys with all the values that they were given, however often they were.
fn each_once(vary: &[(String, Vec<String>)]) -> Vec<(String, Vec<String>)> {
    let values = |(key, values): &(String, Vec<String>)| {
        values.iter().map(|value| (key.clone(), value.clone())).collect::<Vec<_>>()
    };
    grouped(vary.iter().flat_map(values))
}

/// Every combination of the values of the varied keys, the last fastest.
fn product(vary: &[(String, Vec<String>)]) -> Vec<Vec<(String, String)>> {
    vary.iter().fold(vec![Vec::new()], |combinations, (key, values)| {
        let with = |combination: &Vec<(String, String)>, value: &String| {
            let mut longer = combination.clone();
            longer.push((key.clone(), value.clone()));
            longer
        };
        combinations.iter().flat_map(|c| values.iter().map(move |value| with(c, value))).collect()
    })
}

/// The values of varied keys that are wrong whatever the rest is, as errors say it: every candidate with one is refused,
/// for the value itself. Empty if there are none.
pub(super) fn wrong_values(
    request: &PlanRequest,
    refused: &[(Misfit, ScenarioErrors)],
    runnable: &[Runnable],
) -> Vec<ScenarioErrors> {
    let mut wrong = Vec::new();
    for (key, values) in &request.vary {
        for value in values {
            let has_it =
                |candidate: &Candidate| candidate.settings.iter().any(|(k, v)| (k, v) == (key, value));
            let text = Override::pair("--vary", key, value).as_written();
            let mut of_it = refused.iter().filter(|(misfit, _)| has_it(&misfit.candidate)).peekable();
            let first = of_it.peek().map(|(_, errors)| errors.clone());
            let runs = runnable.iter().any(|one| has_it(&one.candidate));
            if !runs && of_it.all(|(_, errors)| errors.blames(&text)) {
                wrong.extend(first);
            }
        }
    }
    wrong
}

/// Whether the scenario's version is another engine's than the candidate's.
fn is_of_another_engine(candidate: &Candidate, basis: &Basis) -> bool {
    let setting = |wanted: &str| {
        candidate.settings.iter().find(|(key, _)| key == wanted).map(|(_, value)| value.as_str())
    };
    let own = basis.document.text_at("engine.name");
    let is_other =
        setting("engine.name").is_some_and(|name| own.is_none_or(|own| own != name.trim_matches('"')));
    is_other && basis.document.has("engine.version") && setting("engine.version").is_none()
}

/// Resolves a candidate. `Ok(Err(_))`: it cannot run.
pub(super) fn resolve(
    candidate: Candidate,
    catalog: &Catalog,
    basis: &Basis,
) -> Result<Result<Runnable, (Misfit, ScenarioErrors)>, PlanError> {
    let text = |value: &str| toml::Value::String(value.to_owned()).to_string();
    let own_gpu =
        basis.document.text_at("hardware.gpu").is_some_and(|gpu| gpu.eq_ignore_ascii_case(&candidate.gpu));
    let mut changes = vec![
        Override::new("model.name", &text(&candidate.model)),
        Override::new("hardware.gpu", &text(&candidate.gpu)),
        Override::new("engine.tensor_parallel_size", &candidate.tensor_parallel_size.to_string()),
        Override::new("deployment.replicas", "1"),
    ];
    if basis.profile_gpu.as_ref().is_some_and(|gpu| !gpu.eq_ignore_ascii_case(&candidate.gpu)) {
        // A profile is one GPU's.
        changes.push(Override::new("hardware.profile", "\"auto\""));
    }
    changes
        .extend(candidate.weight_dtype.iter().map(|dtype| Override::new("model.weight_dtype", &text(dtype))));
    changes.extend(candidate.settings.iter().map(|(key, value)| Override::pair("--vary", key, value)));
    if is_of_another_engine(&candidate, basis) {
        changes.push(Override::new("engine.version", "\"auto\""));
    }
    let document = basis.document.with_overrides(&changes)?;
    let scenario = match document.scenario(catalog) {
        Ok(scenario) => scenario,
        Err(errors) => {
            let reasons: Vec<&str> = errors.problems.iter().map(|problem| problem.message.as_str()).collect();
            // What cannot be divided does not run with more memory either.
            let missing = errors.problems.iter().find_map(|problem| problem.missing_mib);
            let missing_mib = missing.filter(|_| errors.only_about_fit());
            let misfit = Misfit { candidate, reason: reasons.join("; "), missing_mib };
            return Ok(Err((misfit, errors)));
        }
    };
    if !scenario.cannot_start.is_empty() {
        let reason = scenario.cannot_start.join("; ");
        return Ok(Err((Misfit { candidate, reason, missing_mib: None }, ScenarioErrors::none())));
    }
    let price = price(&scenario, own_gpu || basis.gpu_is_implied);
    Ok(Ok(Runnable { candidate, scenario, price }))
}

/// The scenario's own price holds for its own GPU only.
fn price(scenario: &Scenario, own_gpu: bool) -> Option<PlanPrice> {
    let listed = scenario.serving.as_ref().and_then(|serving| serving.hardware.price.clone());
    match (&scenario.price, &listed) {
        (Some((usd, _)), Some(price)) if own_gpu && *usd != price.usd_per_gpu_hour => {
            Some(PlanPrice { usd_per_gpu_hour: *usd, listed: None })
        }
        (Some((usd, _)), None) if own_gpu => Some(PlanPrice { usd_per_gpu_hour: *usd, listed: None }),
        _ => listed.map(|price| PlanPrice { usd_per_gpu_hour: price.usd_per_gpu_hour, listed: Some(price) }),
    }
}
