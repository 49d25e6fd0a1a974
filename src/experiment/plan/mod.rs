//! How many GPUs a demand needs, which, and what that costs.
//!
//! Every candidate (GPU x tensor parallelism x weight dtype x settings) is sized by simulating its fleet
//! behind the router under the peak rate, never by dividing the rate by one replica's capacity: a fleet
//! pools its load, and its tail is not that of its parts. The smallest fleet that meets the objectives
//! says what the demand costs; one replica more is what it takes to lose one and still meet them.

mod candidates;
mod demand;
mod job;
mod money;
mod size;
mod template;
mod varied;

use std::cmp::Ordering;
use std::collections::BTreeMap;

use rayon::prelude::*;

use super::capacity::{unknown_error, with_steps_scaled};
use super::objective::most_refused_for;
use super::sweep::Progress;
use crate::catalog::{Catalog, CatalogError, Dtype, Standing};
use crate::engine::EngineError;
use crate::metrics::latency_of;
use crate::scenario::{Document, Override, Scenario, ScenarioErrors};
use crate::units::distinct;
use crate::workload::Metric;

pub use candidates::{Candidate, Misfit, PlanPrice};
pub use demand::{Demand, Rates};
pub use job::{Job, JobFleet};
pub use money::{Dollars, Economics};
pub use size::{Fleet, Sizing, Unmet};
pub use template::{TEMPLATES, Template};

/// Lengths by which an answer that rests on a template is repeated.
const OTHER_LENGTHS: [f64; 2] = [0.5, 2.0];
/// The model where none is named.
const USUAL_MODEL: &str = "llama-3.1-8b";

/// What is to be planned.
#[derive(Clone, Debug)]
pub struct PlanRequest {
    /// The scenario, which may be empty: what it lacks comes from the template.
    pub document: Document,
    pub template: Template,
    /// `None`: as the scenario's arrivals say.
    pub demand: Option<Demand>,
    /// Peak over mean; a profile has its own.
    pub peak_factor: f64,
    /// A finite job instead of a demand.
    pub job: Option<Job>,
    /// Empty lists: the scenario's model, every GPU known, the usual sizes, the model's own dtype.
    pub models: Vec<String>,
    pub gpus: Vec<String>,
    pub tensor_parallel_sizes: Vec<u32>,
    pub weight_dtypes: Vec<String>,
    /// Scenario keys and the values each takes, such as `engine.max_num_seqs`.
    pub vary: Vec<(String, Vec<String>)>,
    /// Largest fleet that is considered.
    pub max_gpus: u32,
    /// What an API asks for a million tokens, input and output together.
    pub api_usd_per_million_tokens: Option<f64>,
}

impl PlanRequest {
    /// Everything but the scenario, as text: what else the answer depends on.
    #[must_use]
    pub fn choices(&self) -> String {
        let Self { template, demand, peak_factor, job, models, gpus, .. } = self;
        let Self { tensor_parallel_sizes, weight_dtypes, vary, max_gpus, api_usd_per_million_tokens, .. } =
            self;
        let load = (template, demand, peak_factor, job, models, gpus);
        let rest = (tensor_parallel_sizes, weight_dtypes, vary, max_gpus, api_usd_per_million_tokens);
        format!("{load:?} {rest:?}")
    }
}

/// Why nothing could be planned.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    #[error("{0}")]
    Scenario(#[from] ScenarioErrors),
    #[error("{0}")]
    Catalog(#[from] CatalogError),
    #[error("{0}")]
    Engine(#[from] EngineError),
    #[error(
        "no demand: give --rate, --users with --think-time-s, --tokens-per-day or --job-requests with --window-h, or a scenario whose arrivals have a rate"
    )]
    NoDemand,
    #[error("no weight dtype `{0}`; there are: bf16, fp8, mxfp4, nvfp4, int8, int4")]
    Dtype(String),
    #[error(
        "`--vary {key}`: a plan sets it itself, so a row could not be of another value; expected {instead}"
    )]
    Varied { key: String, instead: &'static str },
    #[error("plan needs a language model: the engine of this scenario is synthetic")]
    Synthetic,
}

/// The answer.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The template that stood in for what was not said.
    pub template: Option<Template>,
    pub demand: Option<Demand>,
    pub peak_factor: f64,
    pub job: Option<Job>,
    pub api_usd_per_million_tokens: Option<f64>,
    /// By model in the order asked, cheapest first, those that never meet the objectives last.
    pub rows: Vec<Row>,
    /// Candidates that cannot run.
    pub misfits: Vec<Misfit>,
    /// The cheapest row of each model with other lengths, where a template stood in.
    pub other_lengths: Vec<OtherLengths>,
    /// The cheapest row of each model with longer and shorter steps, where its profile's error is known.
    pub profile_errors: Vec<ProfileError>,
    /// What of the scenario does not hold for every candidate.
    pub notes: Vec<String>,
}

/// A candidate and what it came to.
#[derive(Clone, Debug)]
pub struct Row {
    pub candidate: Candidate,
    /// With one replica.
    pub scenario: Scenario,
    pub price: Option<PlanPrice>,
    pub outcome: Outcome,
    /// No candidate of the same model is both cheaper and faster (or one of them, and equal in the other).
    pub pareto: bool,
}

/// What a candidate came to.
#[derive(Clone, Debug)]
pub enum Outcome {
    Fleet(Box<Fleet>),
    Job(Box<JobFleet>),
    /// Why no fleet does it.
    Never(Unmet),
}

impl Outcome {
    /// GPUs of the fleet.
    #[must_use]
    pub fn gpus(&self) -> Option<u32> {
        match self {
            Self::Fleet(fleet) => Some(fleet.gpus),
            Self::Job(fleet) => Some(fleet.gpus),
            Self::Never(_) => None,
        }
    }
}

/// How far an answer moves with the lengths.
#[derive(Clone, Debug)]
pub struct OtherLengths {
    pub candidate: Candidate,
    /// All lengths are so many times those of the template.
    pub scale: f64,
    pub gpus: u32,
    /// GPUs with these lengths; `None` where no fleet meets the objectives.
    pub other_gpus: Option<u32>,
}

/// How far an answer moves with the error of its step-time profile.
#[derive(Clone, Debug)]
pub struct ProfileError {
    pub candidate: Candidate,
    /// The profile's largest held-out error as a fraction; `None` if none is on record.
    pub error: Option<f64>,
    /// Whose error it is, where not that of what is simulated; of no error, why not.
    pub error_is_of: Option<String>,
    pub gpus: u32,
    /// GPUs if every step is longer, and shorter, by the error; `None` where no fleet meets the objectives.
    pub gpus_if_longer: Option<u32>,
    pub gpus_if_shorter: Option<u32>,
}

impl Plan {
    /// What a reader must know of the candidates that have a fleet, each with those it is true of.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        let mut by_text: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for row in self.rows.iter().filter(|row| row.gpus().is_some()) {
            let Candidate { model, gpu, tensor_parallel_size, .. } = &row.candidate;
            for warning in &row.scenario.warnings {
                by_text.entry(warning).or_default().push(format!("{model} on {gpu} x{tensor_parallel_size}"));
            }
        }
        by_text.into_iter().map(|(text, of)| format!("{}: {text}", of.join(", "))).collect()
    }
}

impl Row {
    /// GPUs of the fleet.
    #[must_use]
    pub fn gpus(&self) -> Option<u32> {
        self.outcome.gpus()
    }

    /// Whether its step times are estimated, in whole or in part, not fitted to measurements.
    #[must_use]
    pub fn is_estimated(&self) -> bool {
        self.scenario.serving.as_ref().is_some_and(|serving| serving.standing() == Standing::Estimated)
    }

    /// The share of the requests that its fleet refuses for being too long, and why most of them are; `None` if none is.
    #[must_use]
    pub fn refused(&self) -> Option<(f64, &'static str)> {
        let point = match &self.outcome {
            Outcome::Fleet(fleet) => &fleet.point,
            Outcome::Job(fleet) => &fleet.point,
            Outcome::Never(_) => return None,
        };
        let totals = || point.runs.iter().map(|run| &run.totals);
        let refused: u64 = totals().map(|totals| totals.rejected_too_long).sum();
        let offered: u64 = totals().map(|totals| totals.offered).sum();
        let why = most_refused_for(&point.runs)?;
        (refused > 0).then(|| (refused as f64 / offered as f64, why))
    }

    /// How little its step times are founded: 0 for a fit that was scored, 3 for a guess.
    fn doubt(&self) -> u8 {
        let Some(serving) = self.scenario.serving.as_ref() else { return 0 };
        match serving.standing() {
            Standing::Estimated if !serving.guessed().is_empty() => 3,
            Standing::Estimated => 2,
            Standing::Fitted => 1,
            Standing::Measured | Standing::Calibrated => 0,
        }
    }

    /// What the fleet costs in an hour.
    #[must_use]
    pub fn usd_per_hour(&self) -> Option<f64> {
        Some(f64::from(self.gpus()?) * self.price.as_ref()?.usd_per_gpu_hour)
    }

    /// What decides the order: the fleet's dollars in an hour, or those of the whole job.
    #[must_use]
    pub fn usd(&self) -> Option<f64> {
        match &self.outcome {
            Outcome::Job(fleet) => Some(self.usd_per_hour()? * fleet.hours),
            _ => self.usd_per_hour(),
        }
    }

    /// Median time to the last token in seconds under the peak.
    #[must_use]
    pub fn e2e_p50_s(&self) -> Option<f64> {
        let Outcome::Fleet(fleet) = &self.outcome else {
            return None;
        };
        let medians: Vec<f64> = fleet
            .point
            .runs
            .iter()
            .filter_map(|run| latency_of(&run.all, Metric::E2e))
            .map(|e2e| e2e.p50_s)
            .collect();
        crate::stats::mean(&medians)
    }
}

/// The scenario that candidates are variations of.
struct Basis {
    document: Document,
    models: Vec<String>,
    /// Whether no GPU stands in the scenario, so that its price holds for every one.
    gpu_is_implied: bool,
    /// The GPU of the profile that the scenario names, if it names one.
    profile_gpu: Option<String>,
}

impl Basis {
    /// The scenario, or none, with what it lacks from the template, whose lengths are scaled; whether any
    /// of the template was used.
    fn new(request: &PlanRequest, catalog: &Catalog, scale: f64) -> Result<(Self, bool), PlanError> {
        let mut changes: Vec<(String, String)> = Vec::new();
        let document = request.document.clone();
        if document.text().is_empty() {
            let name = if request.job.is_some() { "a job" } else { request.template.name };
            changes.push(("name".to_owned(), format!("\"plan for {name}\"")));
            // Of a context longer than its memory holds, an operator serves what it does hold.
            if !document.has("engine.max_model_len") {
                changes.push(("engine.max_model_len".to_owned(), "\"auto\"".to_owned()));
            }
        }
        let lengths_missing = !document.has("class") && document.text_at("arrivals.trace.file").is_none();
        if lengths_missing {
            changes.extend(request.template.class_keys(scale));
        }
        if !document.has("arrivals") {
            changes.push(("arrivals.poisson.rate_per_s".to_owned(), "1".to_owned()));
        }
        if !document.has("deployment.router") {
            changes.push(("deployment.router".to_owned(), "\"least_outstanding\"".to_owned()));
        }
        let own_model = document.text_at("model.name").unwrap_or(USUAL_MODEL).to_owned();
        let models =
            distinct(if request.models.is_empty() { vec![own_model] } else { request.models.clone() });
        let gpu_is_implied = document.text_at("hardware.gpu").is_none();
        let profile_gpu = match document.text_at("hardware.profile") {
            Some(name) => catalog.gpu_of_profile(name, document.folder_of("hardware.profile"))?,
            None => None,
        };
        let changes: Vec<Override> = changes.iter().map(|(key, value)| Override::new(key, value)).collect();
        let document = document.with_overrides(&changes)?;
        Ok((Self { document, models, gpu_is_implied, profile_gpu }, lengths_missing))
    }

    /// What of the scenario does not hold for all candidates.
    fn notes(&self, request: &PlanRequest, catalog: &Catalog, candidates: &[Candidate]) -> Vec<String> {
        let mut notes = Vec::new();
        let profile = self.profile_gpu.as_ref().zip(self.document.text_at("hardware.profile"));
        if let Some((gpu, name)) = profile
            && candidates.iter().any(|candidate| !candidate.gpu.eq_ignore_ascii_case(gpu))
        {
            notes.push(format!("hardware.profile = {name:?} is of {gpu}; the other GPUs take \"auto\""));
        }
        let dtype = self.document.text_at("model.weight_dtype").filter(|_| request.weight_dtypes.is_empty());
        for model in &self.models {
            let own = candidates::published_dtype(model, catalog, self);
            notes.extend(dtype.zip(own).map(|(asked, own)| {
                let own = own.name();
                format!("{model} is planned in {own}, as it is published, not in the scenario's {asked} (--dtype {asked} does)")
            }));
        }
        if !request.document.has("deployment.router") && request.job.is_none() {
            notes.push("replicas are behind a least_outstanding router (deployment.router)".to_owned());
        }
        notes
    }
}

/// Plans.
///
/// # Errors
/// [`PlanError`]: names that are not known, a scenario that is wrong whatever the candidate, no demand,
/// or a run that could not go on. That nothing meets the objectives is an answer, not an error.
pub fn plan(request: &PlanRequest, catalog: &Catalog, progress: &dyn Progress) -> Result<Plan, PlanError> {
    if request.document.text_at("engine.name") == Some("synthetic") {
        return Err(PlanError::Synthetic);
    }
    check_names(request, catalog)?;
    varied::check(request)?;
    let (basis, from_template) = Basis::new(request, catalog, 1.0)?;
    let candidates = candidates::enumerate(request, catalog, &basis);
    let notes = basis.notes(request, catalog, &candidates);
    let (mut runnable, mut refused) = (Vec::new(), Vec::new());
    for candidate in candidates {
        match candidates::resolve(candidate, catalog, &basis)? {
            Ok(one) => runnable.push(one),
            Err(misfit) => refused.push(misfit),
        }
    }
    let wrong = candidates::wrong_values(request, &refused, &runnable);
    if !wrong.is_empty() {
        return Err(ScenarioErrors::joined(wrong).into());
    }
    let misfits = refused.into_iter().map(|(misfit, _)| misfit).collect();
    if runnable.is_empty() {
        check_without_candidates(request, catalog, &basis)?;
    }
    let own = || runnable.first().and_then(|one| Demand::of(&one.scenario.workload.arrivals));
    let is_told = request.document.has("arrivals") && request.job.is_none();
    let demand = request.demand.or_else(|| own().filter(|_| is_told));
    if demand.is_none() && request.job.is_none() && !runnable.is_empty() {
        return Err(PlanError::NoDemand);
    }
    progress.total(runnable.len() as u64);
    let rows = runnable
        .into_par_iter()
        .with_max_len(1)
        .map(|one| {
            let outcome = outcome(request, demand, &one.scenario)?;
            progress.done(1);
            let candidates::Runnable { candidate, scenario, price } = one;
            Ok(Row { candidate, scenario, price, outcome, pareto: false })
        })
        .collect::<Result<Vec<Row>, EngineError>>()?;
    let rows = ranked(rows, &basis.models);
    let other_lengths =
        if from_template { other_lengths(request, catalog, demand, &rows)? } else { Vec::new() };
    let profile_errors = profile_errors(request, demand, &rows)?;
    Ok(Plan {
        template: from_template.then_some(request.template),
        demand,
        peak_factor: request.peak_factor,
        job: request.job,
        api_usd_per_million_tokens: request.api_usd_per_million_tokens,
        rows,
        misfits,
        other_lengths,
        profile_errors,
        notes,
    })
}

fn check_names(request: &PlanRequest, catalog: &Catalog) -> Result<(), PlanError> {
    for gpu in &request.gpus {
        catalog.hardware(gpu)?;
    }
    for model in &request.models {
        catalog.model(model, std::path::Path::new(""))?;
    }
    match request.weight_dtypes.iter().find(|dtype| Dtype::parse(dtype).is_none()) {
        Some(unknown) => Err(PlanError::Dtype(unknown.clone())),
        None => Ok(()),
    }
}

/// Nothing runs: is it the candidates, or the scenario itself? A small model on a large GPU tells.
fn check_without_candidates(
    request: &PlanRequest,
    catalog: &Catalog,
    basis: &Basis,
) -> Result<(), ScenarioErrors> {
    let varied = request
        .vary
        .iter()
        .filter_map(|(key, values)| Some(Override::pair("--vary", key, values.first()?.as_str())));
    let stand_in = [
        ("model.name", "\"llama-3.1-8b\""),
        ("model.weight_dtype", "\"bf16\""),
        ("hardware.gpu", "\"b300-sxm\""),
        ("hardware.profile", "\"auto\""),
        ("engine.tensor_parallel_size", "1"),
    ];
    let changes: Vec<Override> =
        stand_in.into_iter().map(|(key, value)| Override::new(key, value)).chain(varied).collect();
    basis.document.with_overrides(&changes)?.scenario(catalog).map(|_| ())
}

fn outcome(request: &PlanRequest, demand: Option<Demand>, one: &Scenario) -> Result<Outcome, EngineError> {
    match (request.job, demand) {
        (Some(job), _) => Ok(match job::size_job(one, job, request.max_gpus)? {
            Ok(fleet) => Outcome::Job(Box::new(fleet)),
            Err(unmet) => Outcome::Never(unmet),
        }),
        (None, Some(demand)) => Ok(match size::size(one, demand, request.peak_factor, request.max_gpus)? {
            Sizing::Fleet(fleet) => Outcome::Fleet(fleet),
            Sizing::Never(reason) => Outcome::Never(reason),
        }),
        (None, None) => Ok(Outcome::Never("no demand".into())),
    }
}

/// Rows by model, cheapest first (by GPUs where no price is known), of equal ones the better founded, then the one of
/// fewer GPUs; marked where none is better.
fn ranked(mut rows: Vec<Row>, models: &[String]) -> Vec<Row> {
    let position = |row: &Row| models.iter().position(|model| *model == row.candidate.model);
    // A stable sort: equals stay in the order of the request.
    rows.sort_by(|a, b| {
        let cost = |row: &Row| row.usd().unwrap_or(f64::INFINITY);
        let latency = |row: &Row| row.e2e_p50_s().unwrap_or(f64::INFINITY);
        let gpus = |row: &Row| row.gpus().unwrap_or(u32::MAX);
        position(a)
            .cmp(&position(b))
            .then(a.gpus().is_none().cmp(&b.gpus().is_none()))
            .then(cost(a).total_cmp(&cost(b)))
            .then_with(|| if a.usd().is_none() { gpus(a).cmp(&gpus(b)) } else { Ordering::Equal })
            .then_with(|| a.doubt().cmp(&b.doubt()))
            .then(gpus(a).cmp(&gpus(b)))
            .then(latency(a).total_cmp(&latency(b)))
    });
    let values: Vec<Option<(f64, f64)>> =
        rows.iter().map(|row| Some((row.usd()?, row.e2e_p50_s()?))).collect();
    for at in 0..rows.len() {
        let Some(own) = values[at] else { continue };
        let better = |other: usize| {
            rows[other].candidate.model == rows[at].candidate.model
                && values[other].is_some_and(|v| v.0 <= own.0 && v.1 <= own.1 && v != own)
        };
        rows[at].pareto = !(0..rows.len()).any(better);
    }
    rows
}

/// The first row of each model that has a fleet: rows are cheapest first.
fn cheapest(rows: &[Row]) -> Vec<&Row> {
    let mut cheapest: Vec<&Row> = Vec::new();
    for row in rows.iter().filter(|row| row.gpus().is_some()) {
        if cheapest.iter().all(|known| known.candidate.model != row.candidate.model) {
            cheapest.push(row);
        }
    }
    cheapest
}

/// The cheapest row of each model, sized again with longer and shorter steps.
fn profile_errors(
    request: &PlanRequest,
    demand: Option<Demand>,
    rows: &[Row],
) -> Result<Vec<ProfileError>, EngineError> {
    cheapest(rows)
        .into_par_iter()
        .map(|row| {
            let serving = row.scenario.serving.as_deref();
            let error = serving.and_then(|serving| serving.profile.largest_held_out_error());
            let sized = |factor: f64| {
                let scaled = with_steps_scaled(row.scenario.clone(), factor);
                outcome(request, demand, &scaled).map(|outcome| outcome.gpus())
            };
            let (longer, shorter) = match error {
                Some(error) if error < 1.0 => rayon::join(|| sized(1.0 + error), || sized(1.0 - error)),
                // Nothing is shorter by all of its length.
                Some(error) => (sized(1.0 + error), Ok(None)),
                None => (Ok(None), Ok(None)),
            };
            Ok(ProfileError {
                candidate: row.candidate.clone(),
                error,
                error_is_of: serving.and_then(|serving| match error {
                    Some(_) => serving.error_is_of(),
                    None => Some(unknown_error(&serving.profile)),
                }),
                gpus: row.gpus().unwrap_or_default(),
                gpus_if_longer: longer?,
                gpus_if_shorter: shorter?,
            })
        })
        .collect()
}

/// The cheapest row of each model, sized again with half and double lengths.
fn other_lengths(
    request: &PlanRequest,
    catalog: &Catalog,
    demand: Option<Demand>,
    rows: &[Row],
) -> Result<Vec<OtherLengths>, PlanError> {
    let tasks: Vec<(&Row, f64)> =
        cheapest(rows).into_iter().flat_map(|row| OTHER_LENGTHS.map(|scale| (row, scale))).collect();
    tasks
        .into_par_iter()
        .map(|(row, scale)| {
            let (basis, _) = Basis::new(request, catalog, scale)?;
            let other_gpus = match candidates::resolve(row.candidate.clone(), catalog, &basis)? {
                Ok(one) => outcome(request, demand, &one.scenario)?.gpus(),
                Err(_) => None,
            };
            let gpus = row.gpus().unwrap_or_default();
            Ok(OtherLengths { candidate: row.candidate.clone(), scale, gpus, other_gpus })
        })
        .collect()
}
