//! On which side of its objectives a load is, and how sure that is.

use crate::experiment::point::Point;
use crate::experiment::precision::thin_tails;
use crate::experiment::stability::{self, Verdict};
use crate::experiment::{Estimate, SloVerdict};

/// How many times as wide as the 95 % interval it must be to lie clearly on one side: with five replications
/// that is an interval of 99.5 %.
const CLEARLY: f64 = 2.0;
/// Correlation of batches of an eighth of a run's second half beyond which it is lengthened.
const LONG_ENOUGH: f64 = 0.3;

/// Whether a load holds with its confidence bound, in a steady state that was shown.
pub(super) fn passes(point: &Point) -> bool {
    point.stability.verdict == Verdict::Stable && point.slo == SloVerdict::Met
}

/// Whether the replications there are leave no doubt on which side of its objectives a load is.
pub(super) fn is_clear(point: &Point) -> bool {
    let margins = point.margins();
    let reach = |ratio: &Estimate| CLEARLY * ratio.half_width.unwrap_or(f64::INFINITY);
    let fails = margins.iter().any(|margin| margin.ratio.mean - reach(&margin.ratio) > 1.0);
    let holds = margins.iter().all(|margin| margin.ratio.mean + reach(&margin.ratio) < 1.0);
    match point.stability.verdict {
        Verdict::Undecided => false,
        Verdict::Unstable => fails,
        Verdict::Stable => fails || (holds && passes(point)),
    }
}

/// Whether the runs of a point are long enough for its tails and against their own fluctuations.
pub(super) fn is_long_enough(point: &Point) -> bool {
    thin_tails(point).is_empty()
        && stability::cut_short(&point.runs).is_none()
        && point.runs.iter().all(|run| run.window.settled)
        && correlation(point) <= LONG_ENOUGH
}

fn correlation(point: &Point) -> f64 {
    let evidence: Vec<_> = point.runs.iter().map(|run| &run.evidence).collect();
    stability::batch_correlation(&evidence)
}
