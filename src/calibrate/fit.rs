//! One fit: which parameters are tried, what is minimised, and which of them the data determines.

use std::collections::BTreeSet;

use rayon::prelude::*;

use super::least_squares::{Minimum, Problem, approach, settle};
use super::parameter::Parameter;
use super::uncertainty::{count, standard_errors, widening};
use super::{CalibrateError, Fitted, Status};
use crate::catalog::{Hardware, ProfileValues, Weights};
use crate::experiment::Progress;
use crate::validate::{Cell, Family, Figure, Figures, Load, MeasurementError, Scored};

/// Parameters that are always tried, besides one of compute; the kernel values of the others are better founded than what
/// end-to-end data say of them.
const ALWAYS: [Parameter; 3] = [Parameter::OverheadPerLayer, Parameter::PerSequence, Parameter::FrontEnd];
/// Not tried where everything is sent at once: steps are full, and first tokens many seconds late.
const HIDDEN_BY_FULL_STEPS: [Parameter; 2] = [Parameter::OverheadPerLayer, Parameter::FrontEnd];
/// Shares of the kernels' compute from which the search starts; the best end is taken.
const COMPUTE_STARTS: [f64; 2] = [1.0, 0.75];
/// One more start, as multiples, where prefill launches are fitted: long steps hide them, and hardly a slope leads up to
/// launches that all steps hide. The search is to come down from a server whose short prompts wait for the host, its
/// long ones for matrices far below their best rate.
const LONG_LAUNCH: [(Parameter, f64); 5] = [
    (Parameter::PrefillLaunchPerLayer, 8.0),
    (Parameter::Compute, 0.2),
    (Parameter::ExpertCompute, 0.2),
    (Parameter::HalfTokens, 0.05),
    (Parameter::ExpertHalfTokens, 0.05),
];
/// And one where the rows that matrices need are fitted: the kernels of the table may not be the engine's, and few
/// rows at the table's rate look like slow memory, in which a search gets stuck.
const FEW_ROWS: [(Parameter, f64); 1] = [(Parameter::HalfTokens, 0.05)];
/// And one where GPUs are joined by PCIe and all-reduces are fitted: how fast those are depends on the board between them
/// and on the engine's kernels, and from several times too slow a search does not come back.
const FAST_LINK: [(Parameter, f64); 1] = [(Parameter::AllReduceBus, 4.0)];
/// Share of compute lost under load where a fit is to find it: an H100 went from 0.71 cold to 0.63.
const THROTTLE_PRIOR: f64 = 0.11;
/// A parameter whose standard error is larger than this share of it, or of its prior, is not identified.
const IDENTIFIED: f64 = 0.5;
/// Share by which step times are changed to see what responds to them.
const RESPONSE_STEP: f64 = 0.03;
/// Distance from a bound, in the logarithm, that counts as being at it: what the search resolves.
const AT_BOUND: f64 = 5e-3;

/// What a fit comes to.
pub(super) struct Outcome {
    pub values: ProfileValues,
    pub parameters: Vec<Fitted>,
    pub figures: usize,
}

/// Fits the parameters that `cells` can tell, from the kernel values; `cells` is not empty and of one GPU
/// and weight dtype.
pub(super) fn fit(
    cells: &[Cell],
    also: &[Parameter],
    progress: &dyn Progress,
) -> Result<Outcome, CalibrateError> {
    let mut prior = kernel_values(&cells[0]);
    let steps_are_full = cells.iter().all(|cell| matches!(cell.load, Load::AllAtOnce));
    if steps_are_full {
        // Nor do they tell that steps with prompts need not wait for the host.
        prior.prefill_launch_per_layer_s = estimated_values(&cells[0]).prefill_launch_per_layer_s;
    }
    if also.contains(&Parameter::Throttle) {
        prior.throttle = THROTTLE_PRIOR;
    }
    // A token multiplies in dense matrices and in experts, and no load tells which of both takes how long; of the
    // former more is known.
    let compute = if has_experts(cells) { Parameter::ExpertCompute } else { Parameter::Compute };
    let mut tried: Vec<Parameter> = Parameter::ALL
        .into_iter()
        .filter(|p| ALWAYS.contains(p) || *p == compute || also.contains(p) || is_told_by_sizes(*p, cells))
        .filter(|p| !p.is_of_experts() || has_experts(cells))
        .filter(|p| !(steps_are_full && HIDDEN_BY_FULL_STEPS.contains(p)))
        .collect();
    let mut parameters: Vec<Fitted> = Vec::new();
    let first: Vec<f64> = tried.iter().map(|p| libm::log(p.start(&prior))).collect();
    let moved = |moves: &[(Parameter, f64)]| -> Vec<f64> {
        let by = |p: &Parameter| moves.iter().find(|(one, _)| one == p).map_or(0.0, |(_, by)| libm::log(*by));
        tried.iter().zip(&first).map(|(p, x)| x + by(p)).collect()
    };
    // A loaded chip sustains less than its kernels reach, by how much is not known.
    let mut starts: Vec<Vec<f64>> = COMPUTE_STARTS.iter().map(|share| moved(&[(compute, *share)])).collect();
    if tried.contains(&Parameter::PrefillLaunchPerLayer) {
        starts.push(moved(&LONG_LAUNCH));
    }
    if tried.contains(&Parameter::HalfTokens) {
        starts.push(moved(&FEW_ROWS));
    }
    if tried.contains(&Parameter::AllReduceBus) && cells[0].serving().hardware.link_domain == 1 {
        starts.push(moved(&FAST_LINK));
    }
    loop {
        let now = tried.clone();
        let mut problem = Simulations::new(cells, &now, &prior, progress)?;
        let near = approach(&problem, &starts)?;
        problem.discount(&near.point)?;
        let mut minimum = approach(&problem, &[near.point])?;
        let mut found = judge(&problem, &minimum);
        if most_doubtful(&found).is_none() {
            // All that are left are told by the data: only now is it worth settling where exactly.
            minimum = settle(&problem, &minimum.point)?;
            found = judge(&problem, &minimum);
        }
        let Some(index) = most_doubtful(&found) else {
            parameters.extend(stated(found, &problem.clusters));
            return Ok(outcome(parameters, &prior, &problem));
        };
        parameters.push(Fitted {
            value: found[index].prior,
            standard_error: None,
            status: Status::NotIdentified,
            ..found[index]
        });
        tried.remove(index);
        let mut rest = minimum.point;
        rest.remove(index);
        starts = vec![rest];
        if tried.is_empty() {
            return Ok(outcome(parameters, &prior, &problem));
        }
    }
}

/// The parameter that the data tells least of, if it tells too little of any.
fn most_doubtful(found: &[Fitted]) -> Option<usize> {
    let doubts = found.iter().map(doubt).enumerate().filter(|(_, doubt)| *doubt > IDENTIFIED);
    doubts.max_by(|a, b| a.1.total_cmp(&b.1)).map(|(index, _)| index)
}

fn outcome(mut parameters: Vec<Fitted>, prior: &ProfileValues, problem: &Simulations) -> Outcome {
    parameters.sort_by_key(|one| one.parameter);
    let mut values = prior.clone();
    for one in parameters.iter().filter(|one| one.status != Status::NotIdentified) {
        one.parameter.apply(one.value, &mut values, problem.hardware);
    }
    Outcome { values, parameters, figures: problem.weights.len() }
}

/// Simulates every cell with `values`, in parallel; results in the cells' order.
pub(super) fn simulate_all(cells: &[Cell], values: &ProfileValues) -> Result<Vec<Scored>, MeasurementError> {
    cells
        .par_iter()
        .map(|cell| {
            let simulated = cell.simulate(&cell.system_with(values))?.figures;
            Ok(Scored { cell: cell.clone(), simulated, regime: None })
        })
        .collect()
}

/// Where a fit starts: what the kernels reach, with prior host constants.
fn kernel_values(cell: &Cell) -> ProfileValues {
    let serving = cell.serving();
    serving.hardware.kernel_values(&serving.engine.engine, weights(cell))
}

/// What the GPU gets where nothing is fitted.
fn estimated_values(cell: &Cell) -> ProfileValues {
    let serving = cell.serving();
    serving.hardware.estimated_values(&serving.engine.engine, weights(cell))
}

fn weights(cell: &Cell) -> Weights {
    let serving = cell.serving();
    serving.model.weights(serving.weight_dtype)
}

/// What all-reduces cost is told apart from the step overhead only by several sizes: the time for which they transfer grows
/// with them, when they start hardly does, so that this takes a GPU that has none to do.
fn is_told_by_sizes(parameter: Parameter, cells: &[Cell]) -> bool {
    let sizes: BTreeSet<u32> = cells.iter().map(|cell| cell.serving().tensor_parallel_size).collect();
    let has_table = !cells[0].serving().hardware.kernels.all_reduce.is_empty();
    match parameter {
        Parameter::AllReduceBus => sizes.len() > 1 && has_table,
        Parameter::AllReduceStartup => sizes.len() > 1 && sizes.contains(&1) && has_table,
        _ => false,
    }
}

/// Cells that are fitted together are of one kind of model.
fn has_experts(cells: &[Cell]) -> bool {
    weights(&cells[0]).kind.has_experts()
}

/// How little a parameter is known: its standard error as a share of the larger of value and prior. (One that is known
/// to be far below its prior must not return to it.)
fn doubt(one: &Fitted) -> f64 {
    one.standard_error.map_or(f64::INFINITY, |error| error / one.value.max(one.prior))
}

/// `found` as it is stated: errors as wide as so few data leave them, and what may be next to nothing called so.
fn stated(found: Vec<Fitted>, clusters: &[usize]) -> Vec<Fitted> {
    let widening = widening(count(clusters), found.len());
    let state = |one: Fitted| {
        let standard_error = one.standard_error.zip(widening).map(|(error, by)| error * by);
        let is_near_zero = standard_error.is_some_and(|error| error > IDENTIFIED * one.value);
        let status = if one.status == Status::Fitted && is_near_zero { Status::NearZero } else { one.status };
        Fitted { standard_error, status, ..one }
    };
    found.into_iter().map(state).collect()
}

/// The problem as the optimiser sees it: log errors of figures, at points of log parameters.
struct Simulations<'a> {
    cells: &'a [Cell],
    parameters: &'a [Parameter],
    prior: &'a ProfileValues,
    hardware: &'a Hardware,
    /// Cell, figure and logarithm of the measured value of each residual.
    targets: Vec<(usize, Figure, f64)>,
    weights: Vec<f64>,
    /// Standard deviation of each residual in units of that of a step time.
    scales: Vec<f64>,
    clusters: Vec<usize>,
    bounds: Vec<(f64, f64)>,
    steps: Vec<f64>,
    progress: &'a dyn Progress,
}

impl<'a> Simulations<'a> {
    fn new(
        cells: &'a [Cell],
        parameters: &'a [Parameter],
        prior: &'a ProfileValues,
        progress: &'a dyn Progress,
    ) -> Result<Self, MeasurementError> {
        let mut targets = Vec::new();
        let mut weights = Vec::new();
        let mut clusters = Vec::new();
        let mut cluster = 0;
        for (index, cell) in cells.iter().enumerate() {
            let told: Vec<(Figure, f64)> = cell.measured.iter().filter(|(f, _)| tells(cell, *f)).collect();
            let of = |family: Family| told.iter().filter(|(f, _)| f.family() == family).count();
            for is_ttft in [true, false] {
                let before = targets.len();
                for (figure, value) in told.iter().filter(|(f, _)| (f.family() == Family::Ttft) == is_ttft) {
                    targets.push((index, *figure, libm::log(*value)));
                    // What a run says of TTFT, of TPOT, ... is one observation each.
                    weights.push(1.0 / of(figure.family()) as f64);
                    clusters.push(cluster);
                }
                cluster += usize::from(targets.len() > before);
            }
            // Refused requests would make figures of another load.
            let tried = cell.simulate(&cell.system_with(prior))?;
            if tried.refused > 0 {
                let (refused, sent) = (tried.refused, cell.request_count());
                return Err(MeasurementError::DoesNotFit { name: cell.name(), refused, sent });
            }
        }
        let log = |(low, high): (f64, f64)| (libm::log(low), libm::log(high));
        Ok(Self {
            cells,
            parameters,
            prior,
            hardware: &cells[0].serving().hardware,
            scales: vec![1.0; targets.len()],
            targets,
            weights,
            clusters,
            bounds: parameters.iter().map(|parameter| log(parameter.bounds())).collect(),
            steps: parameters.iter().map(|parameter| parameter.step()).collect(),
            progress,
        })
    }

    fn values(&self, point: &[f64]) -> ProfileValues {
        let mut values = self.prior.clone();
        for (parameter, x) in self.parameters.iter().zip(point) {
            let (low, high) = parameter.bounds();
            // The logarithm of a bound need not come back to it.
            parameter.apply(libm::exp(*x).clamp(low, high), &mut values, self.hardware);
        }
        values
    }

    /// Takes from each figure as much weight as it amplifies an error of step time, at `point`.
    ///
    /// No model of step time is right to better than a per cent or two, and near saturation TTFT moves five
    /// or ten times as much as step time does: there a figure says less of the parameters than its small
    /// noise suggests. With S its relative response to step times, its variance is taken as 1 + S^2.
    fn discount(&mut self, point: &[f64]) -> Result<(), MeasurementError> {
        let values = self.values(point);
        let slower =
            self.simulate(&[scaled(&values, 1.0 + RESPONSE_STEP), scaled(&values, 1.0 - RESPONSE_STEP)])?;
        let (slow, fast) = slower.split_at(self.cells.len());
        let scale = |target: &(usize, Figure, f64)| {
            let change = self.log_error(slow, *target) - self.log_error(fast, *target);
            let response = change / (2.0 * RESPONSE_STEP);
            (1.0 + response * response).sqrt()
        };
        self.scales = self.targets.iter().map(scale).collect();
        Ok(())
    }

    /// Figures of every cell at each of `values`, in their order.
    fn simulate(&self, values: &[ProfileValues]) -> Result<Vec<Figures>, MeasurementError> {
        let count = self.cells.len();
        (0..values.len() * count)
            .into_par_iter()
            .map(|run| {
                let cell = &self.cells[run % count];
                let figures = cell.simulate(&cell.system_with(&values[run / count]))?.figures;
                self.progress.done(1);
                Ok(figures)
            })
            .collect()
    }

    fn log_error(&self, figures: &[Figures], (cell, figure, measured): (usize, Figure, f64)) -> f64 {
        // A figure that the simulation lacks (no request had one) is out by a factor of e.
        figures[cell].get(figure).map_or(1.0, |simulated| libm::log(simulated) - measured)
    }
}

/// `values` with every step `factor` times as long, as far as peaks allow.
fn scaled(values: &ProfileValues, factor: f64) -> ProfileValues {
    let mut scaled = values.clone();
    for fraction in [
        &mut scaled.compute,
        &mut scaled.memory,
        &mut scaled.expert_compute,
        &mut scaled.kv_memory,
        &mut scaled.fp8_kv_memory,
        &mut scaled.attention_compute,
    ] {
        *fraction = (*fraction / factor).min(1.0);
    }
    scaled.overhead_per_layer_s *= factor;
    scaled.prefill_launch_per_layer_s *= factor;
    scaled.per_sequence_s *= factor;
    for point in &mut scaled.all_reduce {
        *point = point.with_startups(factor);
        point.bus_bytes_per_s /= factor;
    }
    scaled
}

/// Whether a figure says anything about step times: the throughput of a load that is sent whatever
/// happens is that load, unless it saturates; then TTFT says it better.
fn tells(cell: &Cell, figure: Figure) -> bool {
    let is_throughput = figure.family() == Family::Throughput;
    !is_throughput || matches!(cell.load, Load::Users(_) | Load::AllAtOnce)
}

impl Problem for Simulations<'_> {
    type Error = MeasurementError;

    fn residuals(&self, points: &[Vec<f64>]) -> Result<Vec<Vec<f64>>, MeasurementError> {
        let values: Vec<ProfileValues> = points.iter().map(|point| self.values(point)).collect();
        let simulated = self.simulate(&values)?;
        let of_point = |figures: &[Figures]| {
            let targets = self.targets.iter().zip(&self.scales);
            targets.map(|(target, scale)| self.log_error(figures, *target) / scale).collect()
        };
        Ok(simulated.chunks(self.cells.len()).map(of_point).collect())
    }

    fn weights(&self) -> &[f64] {
        &self.weights
    }

    fn bounds(&self) -> &[(f64, f64)] {
        &self.bounds
    }

    fn steps(&self) -> &[f64] {
        &self.steps
    }
}

/// Values, standard errors and states at a minimum.
fn judge(problem: &Simulations, minimum: &Minimum) -> Vec<Fitted> {
    let errors = standard_errors(&minimum.jacobian, &minimum.residuals, &problem.weights, &problem.clusters);
    let one = |(index, parameter): (usize, &Parameter)| {
        let (x, (low, high)) = (minimum.point[index], problem.bounds[index]);
        let (least, most) = parameter.bounds();
        let value = libm::exp(x).clamp(least, most);
        Fitted {
            parameter: *parameter,
            value,
            prior: parameter.value_in(problem.prior),
            standard_error: errors.as_ref().map(|errors| value * errors[index]),
            status: if x - low < AT_BOUND {
                Status::AtLowerBound
            } else if high - x < AT_BOUND {
                Status::AtUpperBound
            } else {
                Status::Fitted
            },
        }
    };
    problem.parameters.iter().enumerate().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Far below its prior it is known well enough not to return there, and yet not known.
    #[test]
    fn what_may_be_nothing_is_not_called_fitted() {
        let one = |value: f64, error: f64| Fitted {
            parameter: Parameter::OverheadPerLayer,
            value,
            prior: 45.0,
            standard_error: Some(error),
            status: Status::Fitted,
        };
        assert!(most_doubtful(&[one(5.0, 5.0)]).is_none());
        let clusters: Vec<usize> = (0..1000).collect();
        let found = stated(vec![one(5.0, 5.0), one(50.0, 5.0)], &clusters);
        assert_eq!(
            found.iter().map(|one| one.status).collect::<Vec<_>>(),
            [Status::NearZero, Status::Fitted]
        );
        assert!((found[0].standard_error.unwrap() - 5.0).abs() < 0.02);
        // Few loads leave errors wide, one tells none.
        let few = stated(vec![one(50.0, 5.0)], &[0, 1, 2]);
        assert!(few[0].standard_error.unwrap() > 10.0);
        assert_eq!(stated(vec![one(50.0, 5.0)], &[0, 1])[0].standard_error, None);
    }
}
