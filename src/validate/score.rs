//! Errors of a simulation against what was measured, cell by cell and in a table.

use rayon::prelude::*;

use super::cell::Cell;
use super::figure::{Figure, Figures};
use super::files::MeasurementError;
use crate::experiment::Progress;

/// Requests from which saturated throughput is read at least: ramp and drain weigh little then.
const SATURATING_REQUESTS: usize = 1000;
/// Shares of the saturated throughput at which a load is near it, and at it or beyond.
const NEAR: f64 = 0.8;
const SATURATED: f64 = 0.95;

/// Where a load stands against the throughput that the deployment saturates at with such requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Regime {
    /// Less than 80 % of it is offered (of a closed loop: completed).
    Below,
    /// 80 to 95 %.
    At,
    /// More.
    Above,
}

impl Regime {
    pub const ALL: [Self; 3] = [Self::Below, Self::At, Self::Above];

    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Below => "below saturation",
            Self::At => "near saturation",
            Self::Above => "saturated",
        }
    }
}

/// A cell and what its simulation came to.
#[derive(Clone, Debug)]
pub struct Scored {
    pub cell: Cell,
    pub simulated: Figures,
    /// `None` where it was not asked for.
    pub regime: Option<Regime>,
}

impl Scored {
    /// Signed error of the simulation in per cent, where the figure was measured.
    #[must_use]
    pub fn error_percent(&self, figure: Figure) -> Option<f64> {
        Some(error_percent(self.simulated.get(figure)?, self.cell.measured.get(figure)?))
    }
}

/// Signed error of `simulated` in per cent of `measured`.
#[must_use]
pub fn error_percent(simulated: f64, measured: f64) -> f64 {
    100.0 * (simulated / measured - 1.0)
}

/// Simulates every cell with the profile its set asks for, in parallel; results in the cells' order.
///
/// # Errors
/// A run that cannot go on, or requests that the deployment cannot serve.
pub fn score(cells: &[Cell], progress: &dyn Progress) -> Result<Vec<Scored>, MeasurementError> {
    progress.total(2 * cells.len() as u64);
    cells.par_iter().map(|cell| score_one(cell, progress)).collect()
}

fn score_one(cell: &Cell, progress: &dyn Progress) -> Result<Scored, MeasurementError> {
    let system = &cell.measurement.system;
    let simulated = cell.simulate(system)?;
    progress.done(1);
    if simulated.refused > 0 {
        let (refused, sent) = (simulated.refused, cell.request_count());
        return Err(MeasurementError::DoesNotFit { name: cell.name(), refused, sent });
    }
    let saturated_per_s = cell.saturated_per_s(system, SATURATING_REQUESTS)?;
    progress.done(1);
    let load_per_s = cell.offered_per_s().or(simulated.figures.get(Figure::RequestThroughput));
    let regime = match load_per_s.zip(saturated_per_s) {
        Some((load, saturated)) if load < NEAR * saturated => Regime::Below,
        Some((load, saturated)) if load < SATURATED * saturated => Regime::At,
        _ => Regime::Above,
    };
    Ok(Scored { cell: cell.clone(), simulated: simulated.figures, regime: Some(regime) })
}

/// Errors of one figure over the cells of one group.
#[derive(Clone, Debug, PartialEq)]
pub struct ErrorRow {
    pub figure: Figure,
    /// Cells in which it was measured.
    pub cells: usize,
    /// Median of the absolute errors, in per cent.
    pub median_percent: f64,
    /// The signed error that is largest in size, in per cent, and the cell it is of.
    pub worst_percent: f64,
    pub worst_cell: String,
}

/// Errors by figure over `scored`; figures that nobody measured are left out.
#[must_use]
pub fn error_table<'a>(scored: impl IntoIterator<Item = &'a Scored> + Clone) -> Vec<ErrorRow> {
    Figure::ALL.into_iter().filter_map(|figure| error_row(figure, scored.clone())).collect()
}

fn error_row<'a>(figure: Figure, scored: impl IntoIterator<Item = &'a Scored>) -> Option<ErrorRow> {
    let errors: Vec<(f64, &Scored)> =
        scored.into_iter().filter_map(|one| Some((one.error_percent(figure)?, one))).collect();
    let (worst_percent, worst) =
        errors.iter().copied().reduce(|worst, one| if one.0.abs() > worst.0.abs() { one } else { worst })?;
    Some(ErrorRow {
        figure,
        cells: errors.len(),
        median_percent: median_error_percent(errors.iter().map(|(error, _)| *error))?,
        worst_percent,
        worst_cell: worst.cell.name(),
    })
}

/// The errors that profiles state, such as "TTFT mean 1.4 %, TPOT mean 2.3 %": medians over cells.
#[must_use]
pub fn error_words(rows: &[ErrorRow]) -> Option<String> {
    const STATED: [Figure; 6] = [
        Figure::TtftMean,
        Figure::TtftP99,
        Figure::TpotMean,
        Figure::TpotP99,
        Figure::E2eMean,
        Figure::RequestThroughput,
    ];
    let stated = rows.iter().filter(|row| STATED.contains(&row.figure));
    let words: Vec<String> =
        stated.map(|row| format!("{} {:.1} %", row.figure.name(), row.median_percent)).collect();
    (!words.is_empty()).then(|| words.join(", "))
}

/// Median of the sizes of signed errors; `None` of none.
#[must_use]
pub fn median_error_percent(errors: impl IntoIterator<Item = f64>) -> Option<f64> {
    let mut sizes: Vec<f64> = errors.into_iter().map(f64::abs).collect();
    sizes.sort_by(f64::total_cmp);
    let upper = *sizes.get(sizes.len() / 2)?;
    let lower = sizes[(sizes.len() - 1) / 2];
    Some(f64::midpoint(lower, upper))
}
