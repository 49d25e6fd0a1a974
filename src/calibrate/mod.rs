//! Fits step-time parameters to measurements, with the simulator inside the loop.
//!
//! A throughput-latency point is compared with a simulated one, so that queueing is not mistaken for step
//! time. Per weight dtype and kind of model: start from the GPU's kernel values, minimise a robust loss on the log errors
//! of every figure that was measured (`least_squares`), state how well each parameter is known
//! (`uncertainty`), put back to its prior what the data does not identify, and score what was held out.
//!
//! ```text
//!  cells --split--> fitted cells --fit--> values, standard errors --+--> profile.toml
//!              \--> held-out cells --score with these values--------+
//! ```

mod fit;
mod hold_out;
mod least_squares;
mod parameter;
mod possible;
mod profile_file;
mod uncertainty;

use std::collections::BTreeSet;

use crate::catalog::{ProfileValues, Standing, Weights};
use crate::experiment::Progress;
use crate::units::distinct;
use crate::validate::{Cell, ErrorRow, Family, Figure, MeasurementError, Scored, error_table};

pub use hold_out::{HoldOut, HoldOutError};
pub use parameter::Parameter;
pub use possible::impossible;
pub use profile_file::profile_toml;

/// Random half splits from which a held-out error is taken where no cell is held out.
const SPLITS: u64 = 3;
/// About what the fits of a cell take, the splits included: for the progress bar.
const RUNS_PER_CELL: u64 = 900;
/// Fewest cells that are split.
const FEWEST_SPLIT: usize = 6;
/// Nothing was calibrated where more than this share of the loads, fitted or held out, is off by more than this factor:
/// the median load of a fit to one server is within 15 %, held-out ones of shipped profiles are within 14 %.
const OFF: [(f64, f64); 2] = [(1.0 / 3.0, 2.0), (0.5, 1.5)];

/// What to fit, and on what.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Parameters to fit besides those that are always tried.
    pub also: Vec<Parameter>,
    /// Cells to hold out besides those that their set holds out.
    pub hold_out: Option<HoldOut>,
}

/// A fitted profile: one fit per weight dtype and kind of model, in the order of first appearance.
#[derive(Clone, Debug)]
pub struct Calibration {
    pub gpu: String,
    pub engine: String,
    pub fits: Vec<Fit>,
}

/// The fit of one weight dtype and kind of model.
#[derive(Clone, Debug)]
pub struct Fit {
    pub weights: Weights,
    /// Calibrated; fitted where nothing was held out to score it on; or estimated where the fit is none, or does not
    /// hold on what was held out: [`Fit::warnings`] say why.
    pub standing: Standing,
    pub values: ProfileValues,
    pub parameters: Vec<Fitted>,
    /// Figures that were fitted, over all fitted cells.
    pub figures: usize,
    pub fitted: Vec<Scored>,
    pub errors: Vec<ErrorRow>,
    /// How cells were held out, in words; `None` if there were too few to hold any out.
    pub held_out: Option<String>,
    pub held_out_cells: usize,
    /// Models of these cells.
    pub held_out_models: Vec<String>,
    pub held_out_errors: Vec<ErrorRow>,
    /// What a reader must know before trusting it.
    pub warnings: Vec<String>,
}

/// What a fit found of one parameter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fitted {
    pub parameter: Parameter,
    pub value: f64,
    /// Where it started, and stays if it is not identified: kernel value or prior.
    pub prior: f64,
    /// One standard error, in the unit of the value, two of which are a 95 % interval however few the data are;
    /// `None` where they are too few to say.
    pub standard_error: Option<f64>,
    pub status: Status,
}

/// How far the data determines a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    Fitted,
    /// The data tells that it is small (beside its prior, say), and not how small.
    NearZero,
    /// The data does not determine it; it stays at its prior.
    NotIdentified,
    /// It ended at a bound: none of it is seen (a host constant's lower bound), or the data contradicts
    /// the model or the deployment that was stated.
    AtLowerBound,
    AtUpperBound,
}

impl Status {
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fitted => "fitted",
            Self::NearZero => "within two errors of zero",
            Self::NotIdentified => "not identified, prior",
            Self::AtLowerBound => "at its lower bound",
            Self::AtUpperBound => "at its upper bound",
        }
    }
}

/// Why nothing was fitted.
#[derive(Debug, thiserror::Error)]
pub enum CalibrateError {
    #[error("measurements of {first} and of {second} cannot share a profile; fit them one by one")]
    Mixed { first: String, second: String },
    #[error("nothing to fit: every measurement of {dtype} weights is held out")]
    AllHeldOut { dtype: &'static str },
    #[error("there are no measurements")]
    Nothing,
    #[error(
        "{name}: {why}; expected figures of this deployment (a wrong unit, another GPU, format or model, or speculative \
         decoding that the set does not tell?)"
    )]
    Impossible { name: String, why: String },
    #[error("`--fit {key}` is named twice; expected each parameter once")]
    Twice { key: &'static str },
    #[error(
        "`--fit {key}` is of mixtures of experts, and {model} has no experts; expected a parameter of dense models"
    )]
    NoExperts { key: &'static str, model: String },
    #[error("`--hold-out` holds out nothing: {rule} is none of the loads; {there_are}")]
    HoldsOutNothing { rule: String, there_are: String },
    #[error(transparent)]
    Measurement(#[from] MeasurementError),
}

/// Fits a profile to `cells`, which share GPU and engine.
///
/// # Errors
/// Cells of several GPUs or engines, nothing to fit, or a cell that cannot be simulated.
pub fn calibrate(
    cells: &[Cell],
    options: &Options,
    progress: &dyn Progress,
) -> Result<Calibration, CalibrateError> {
    let place = |cell: &Cell| {
        let serving = cell.serving();
        (serving.hardware.name.clone(), serving.engine.engine.clone())
    };
    let first = cells.first().ok_or(CalibrateError::Nothing)?;
    let (gpu, engine) = place(first);
    if let Some(other) = cells.iter().find(|cell| place(cell) != (gpu.clone(), engine.clone())) {
        let (other_gpu, other_engine) = place(other);
        return Err(CalibrateError::Mixed {
            first: format!("{engine} on {gpu}"),
            second: format!("{other_engine} on {other_gpu}"),
        });
    }
    if let Some((cell, why)) = cells.iter().find_map(|cell| Some((cell, impossible(cell)?))) {
        return Err(CalibrateError::Impossible { name: cell.name(), why });
    }
    let groups = by_weights(cells);
    check_parameters(&groups, &options.also)?;
    check_hold_out(&groups, options.hold_out.as_ref())?;
    // How many runs a search takes is not known before; the bar is brought to its end after it.
    progress.total(RUNS_PER_CELL * cells.len() as u64);
    let fits = groups.iter().map(|(weights, cells)| fit_weights(*weights, cells, options, progress));
    let fits = fits.collect::<Result<_, _>>()?;
    Ok(Calibration { gpu, engine, fits })
}

/// The cells of each weight dtype and kind of model, in the order of first appearance.
fn by_weights(cells: &[Cell]) -> Vec<(Weights, Vec<Cell>)> {
    let mut groups: Vec<(Weights, Vec<Cell>)> = Vec::new();
    for cell in cells {
        let weights = cell.serving().model.weights(cell.serving().weight_dtype);
        match groups.iter_mut().find(|(known, _)| *known == weights) {
            Some((_, group)) => group.push(cell.clone()),
            None => groups.push((weights, vec![cell.clone()])),
        }
    }
    groups
}

/// What is asked for and cannot be fitted is told, not passed over.
fn check_parameters(groups: &[(Weights, Vec<Cell>)], also: &[Parameter]) -> Result<(), CalibrateError> {
    let has_experts = groups.iter().any(|(weights, _)| weights.kind.has_experts());
    for (index, parameter) in also.iter().enumerate() {
        let key = parameter.key();
        if also[..index].contains(parameter) {
            return Err(CalibrateError::Twice { key });
        }
        if parameter.is_of_experts() && !has_experts {
            let model =
                groups.iter().flat_map(|(_, cells)| cells).map(|cell| cell.serving().model.name.clone());
            return Err(CalibrateError::NoExperts { key, model: model.take(1).collect() });
        }
    }
    Ok(())
}

fn check_hold_out(groups: &[(Weights, Vec<Cell>)], rule: Option<&HoldOut>) -> Result<(), CalibrateError> {
    let Some(rule) = rule else { return Ok(()) };
    let free = |cells: &[Cell]| -> Vec<Cell> { cells.iter().filter(|cell| !cell.holdout).cloned().collect() };
    if groups.iter().any(|(_, cells)| !rule.split(free(cells)).0.is_empty()) {
        return Ok(());
    }
    let all: Vec<Cell> = groups.iter().flat_map(|(_, cells)| free(cells)).collect();
    Err(CalibrateError::HoldsOutNothing { rule: rule.to_string(), there_are: rule.of_loads(&all) })
}

fn fit_weights(
    weights: Weights,
    cells: &[Cell],
    options: &Options,
    progress: &dyn Progress,
) -> Result<Fit, CalibrateError> {
    let is_out = |cell: &Cell| cell.holdout;
    let mut out: Vec<Cell> = cells.iter().filter(|cell| is_out(cell)).cloned().collect();
    let mut fitted: Vec<Cell> = cells.iter().filter(|cell| !is_out(cell)).cloned().collect();
    let mut held_out = (!out.is_empty()).then(|| "held out by the set".to_owned());
    if let Some(rule) = &options.hold_out {
        let (more, rest) = rule.split(fitted);
        held_out = (!more.is_empty()).then(|| rule.to_string());
        out.extend(more);
        fitted = rest;
    }
    if fitted.is_empty() {
        return Err(CalibrateError::AllHeldOut { dtype: weights.dtype.name() });
    }
    let outcome = fit::fit(&fitted, &options.also, progress)?;
    let scored = fit::simulate_all(&fitted, &outcome.values)?;
    let mut held_out_scored = fit::simulate_all(&out, &outcome.values)?;
    if held_out.is_none() && fitted.len() >= FEWEST_SPLIT {
        held_out = Some(format!("{SPLITS} random halves, each scored after a fit on the other half"));
        for seed in 1..=SPLITS {
            let (other, half) = HoldOut::Half { seed }.split(fitted.clone());
            let values = fit::fit(&half, &options.also, progress)?.values;
            held_out_scored.extend(fit::simulate_all(&other, &values)?);
        }
    }
    let doubts = doubts(&outcome.parameters, &scored, &held_out_scored);
    let held_out_errors = error_table(&held_out_scored);
    let standing = match (doubts.is_empty(), held_out_errors.is_empty()) {
        (false, _) => Standing::Estimated,
        (true, true) => Standing::Fitted,
        (true, false) => Standing::Calibrated,
    };
    Ok(Fit {
        weights,
        standing,
        warnings: [not_calibrated(standing, &doubts, fitted.len()), warnings(&outcome.parameters, &fitted)]
            .concat(),
        values: outcome.values,
        parameters: outcome.parameters,
        figures: outcome.figures,
        errors: error_table(&scored),
        fitted: scored,
        held_out,
        held_out_cells: held_out_scored.len(),
        held_out_models: distinct(held_out_scored.iter().map(|one| one.cell.serving().model.name.clone())),
        held_out_errors,
    })
}

/// Why a fit is none that may be called calibrated; empty if it may.
fn doubts(parameters: &[Fitted], fitted: &[Scored], held_out: &[Scored]) -> Vec<String> {
    let mut doubts = Vec::new();
    let at_bound = |one: &&Fitted| {
        one.parameter.is_fraction() && matches!(one.status, Status::AtUpperBound | Status::AtLowerBound)
    };
    for one in parameters.iter().filter(at_bound) {
        doubts.push(format!("{} ended {}, where no chip is", one.parameter.key(), one.status.name()));
    }
    let off_in = |scored: &[Scored], which: &str, why: &str| {
        let text = Figure::ALL.into_iter().find_map(|figure| far_off(scored, figure, which))?;
        Some(format!("{text}: {why}"))
    };
    let contradicted = "the data contradicts itself, the model or the deployment";
    doubts.extend(off_in(fitted, "fitted", contradicted));
    doubts.extend(off_in(held_out, "held-out", "what was fitted does not hold on loads it has not seen"));
    if !parameters.iter().any(|one| one.status == Status::Fitted) {
        doubts.push("the data determines no parameter".to_owned());
    }
    doubts
}

/// How many loads are further off in `figure` than a fit can be; `which` of them these are.
fn far_off(scored: &[Scored], figure: Figure, which: &str) -> Option<String> {
    let factors: Vec<f64> = scored
        .iter()
        .filter_map(|one| Some(1.0 + one.error_percent(figure)? / 100.0))
        .map(|ratio| ratio.max(1.0 / ratio))
        .collect();
    let off = |factor: f64| factors.iter().filter(|one| **one > factor).count();
    let (_, factor) =
        OFF.into_iter().find(|(share, factor)| off(*factor) as f64 > share * factors.len() as f64)?;
    Some(format!(
        "{} is off by more than a factor of {factor} in {} of {} {which} loads",
        figure.name(),
        off(factor),
        factors.len()
    ))
}

/// The warning that a fit to so many `loads` is not calibrated, if it is not.
fn not_calibrated(standing: Standing, doubts: &[String], loads: usize) -> Vec<String> {
    match standing {
        Standing::Estimated => vec![format!("estimated, not calibrated: {}", doubts.join("; "))],
        Standing::Fitted => {
            let on = if loads == 1 { "one load".to_owned() } else { format!("{loads} loads") };
            vec![format!(
                "fitted on {on}, never scored on another: how far it is off elsewhere is not known; hold loads out \
                 (holdout = true in the set, or --hold-out), or measure {FEWEST_SPLIT} or more"
            )]
        }
        Standing::Calibrated | Standing::Measured => Vec::new(),
    }
}

/// What the state of the parameters says of the data.
fn warnings(parameters: &[Fitted], cells: &[Cell]) -> Vec<String> {
    let mut warnings = Vec::new();
    let suspicious = |one: &&Fitted| match one.status {
        Status::AtUpperBound => true,
        // No host constant at all is possible; a fraction of nothing is not.
        Status::AtLowerBound => one.parameter.is_fraction(),
        Status::Fitted | Status::NearZero | Status::NotIdentified => false,
    };
    for one in parameters.iter().filter(suspicious) {
        warnings.push(format!(
            "{} ended {}: the data contradicts the model, or the deployment was not as stated (weight or KV \
             format, prompt lengths, prefix hits)",
            one.parameter.key(),
            one.status.name()
        ));
    }
    for one in parameters {
        if one.parameter == Parameter::Compute && one.status == Status::Fitted && one.value > one.prior {
            warnings.push(format!(
                "compute {:.2} is above the kernels' {:.2}: their shapes differ from the model's",
                one.value, one.prior
            ));
        }
        if one.status == Status::NearZero {
            warnings.push(format!("{} is small, how small the data does not tell", one.parameter.key()));
        }
        if one.status == Status::NotIdentified {
            warnings.push(format!("{} is not identified by the data; it is a prior", one.parameter.key()));
        }
    }
    let is_unknown = |one: &Fitted| one.status != Status::NotIdentified && one.standard_error.is_none();
    if parameters.iter().any(is_unknown) {
        let loads =
            if cells.len() == 1 { "1 load is".to_owned() } else { format!("{} loads are", cells.len()) };
        warnings.push(format!(
            "{loads} too few to tell how well the parameters are known: their standard errors are unknown"
        ));
    }
    let families: BTreeSet<Family> =
        cells.iter().flat_map(|cell| cell.measured.iter().map(|(figure, _)| figure.family())).collect();
    if !families.contains(&Family::Ttft) {
        warnings.push("no TTFT was measured: prefill and front end rest on priors or on E2E".to_owned());
    }
    warnings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fraction_at_a_bound_is_no_calibration_and_no_overhead_is_one() {
        let one =
            |parameter, status| Fitted { parameter, value: 1.0, prior: 0.8, standard_error: None, status };
        let fitted = one(Parameter::FrontEnd, Status::Fitted);
        let doubts = |parameter, status| doubts(&[one(parameter, status), fitted], &[], &[]);
        assert_eq!(
            doubts(Parameter::Compute, Status::AtUpperBound),
            ["compute ended at its upper bound, where no chip is"]
        );
        assert_eq!(doubts(Parameter::Memory, Status::AtLowerBound).len(), 1);
        assert!(doubts(Parameter::OverheadPerLayer, Status::AtLowerBound).is_empty());
        assert!(doubts(Parameter::Compute, Status::Fitted).is_empty());
    }
}
