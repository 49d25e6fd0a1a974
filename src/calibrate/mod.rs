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
mod profile_file;
mod uncertainty;

use std::collections::BTreeSet;

use crate::catalog::{ProfileValues, Weights};
use crate::experiment::Progress;
use crate::validate::{Cell, ErrorRow, Family, MeasurementError, Scored, error_table};

pub use hold_out::{HoldOut, HoldOutError};
pub use parameter::Parameter;
pub use profile_file::profile_toml;

/// Random half splits from which a held-out error is taken where no cell is held out.
const SPLITS: u64 = 3;
/// About what the fits of a cell take, the splits included: for the progress bar.
const RUNS_PER_CELL: u64 = 900;
/// Fewest cells that are split.
const FEWEST_SPLIT: usize = 6;

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
    /// One standard error, in the unit of the value; `None` where there are too few data to say.
    pub standard_error: Option<f64>,
    pub status: Status,
}

/// How far the data determines a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    Fitted,
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
    let weights_of = |cell: &Cell| cell.serving().model.weights(cell.serving().weight_dtype);
    let mut all_weights: Vec<Weights> = Vec::new();
    for cell in cells {
        if !all_weights.contains(&weights_of(cell)) {
            all_weights.push(weights_of(cell));
        }
    }
    // How many runs a search takes is not known before; the bar is brought to its end after it.
    progress.total(RUNS_PER_CELL * cells.len() as u64);
    let fits = all_weights.into_iter().map(|weights| {
        let of_weights: Vec<Cell> =
            cells.iter().filter(|cell| weights_of(cell) == weights).cloned().collect();
        fit_weights(weights, &of_weights, options, progress)
    });
    let fits = fits.collect::<Result<_, _>>()?;
    Ok(Calibration { gpu, engine, fits })
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
    Ok(Fit {
        weights,
        warnings: warnings(&outcome.parameters, &fitted),
        values: outcome.values,
        parameters: outcome.parameters,
        figures: outcome.figures,
        errors: error_table(&scored),
        fitted: scored,
        held_out,
        held_out_cells: held_out_scored.len(),
        held_out_models: models(&held_out_scored),
        held_out_errors: error_table(&held_out_scored),
    })
}

/// Models of `cells`, each once.
fn models(cells: &[Scored]) -> Vec<String> {
    let mut models: Vec<String> = Vec::new();
    for one in cells {
        let name = &one.cell.serving().model.name;
        if !models.contains(name) {
            models.push(name.clone());
        }
    }
    models
}

/// What the state of the parameters says of the data.
fn warnings(parameters: &[Fitted], cells: &[Cell]) -> Vec<String> {
    let mut warnings = Vec::new();
    let suspicious = |one: &&Fitted| match one.status {
        Status::AtUpperBound => true,
        // No host constant at all is possible; a fraction of nothing is not.
        Status::AtLowerBound => one.parameter.is_fraction(),
        Status::Fitted | Status::NotIdentified => false,
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
        if one.status == Status::NotIdentified {
            warnings.push(format!("{} is not identified by the data; it is a prior", one.parameter.key()));
        }
    }
    let families: BTreeSet<Family> =
        cells.iter().flat_map(|cell| cell.measured.iter().map(|(figure, _)| figure.family())).collect();
    if !families.contains(&Family::Ttft) {
        warnings.push("no TTFT was measured: prefill and front end rest on priors or on E2E".to_owned());
    }
    warnings
}
