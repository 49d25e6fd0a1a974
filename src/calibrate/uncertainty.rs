//! How well the data determines each parameter.
//!
//! The errors of one run are not independent: if its mean TTFT comes out 3 % high, so does its median. So
//! figures are grouped into clusters (a run's TTFT; a run's token times, E2E and throughput), and half of
//! an error's variance is taken as shared within its cluster. With weights W and slopes J,
//!
//! ```text
//! cov = A^-1 B A^-1    A = J' W J    B = J' W S W J    S = s^2 (I + 1 1') / 2 in each cluster
//! s^2 = r' W r / sum W x n / (n - p)                   n clusters, p parameters
//! ```
//!
//! s is at least 2 %: two runs of one load on one server differ by that much, whatever a fit says. Which parameters the
//! data identifies is judged by these errors; stated they are [`widening`] as wide, since an s of few clusters is itself
//! not known well, and one of hardly more clusters than parameters not at all.

use super::least_squares::{huber_weight, normal_equations, solve};
use crate::rng::inverse_normal_cdf;
use crate::stats::student_quantile;

/// Share of an error's variance that is common to its cluster.
const SHARED: f64 = 0.5;
/// The least standard deviation of a log error.
const LEAST_DEVIATION: f64 = 0.02;
/// Degrees of freedom below which a spread cannot be told.
const FEWEST_FREE: usize = 2;
/// Relative to the largest diagonal element of A.
const RIDGE: f64 = 1e-9;

/// Standard errors of the parameters in the unit of the Jacobian's columns, `None` where nothing depends
/// on them. `clusters[i]` is the cluster of residual i, ascending from 0.
pub(super) fn standard_errors(
    jacobian: &[Vec<f64>],
    residuals: &[f64],
    weights: &[f64],
    clusters: &[usize],
) -> Option<Vec<f64>> {
    let parameters = jacobian.first().map_or(0, Vec::len);
    let (mut normal, _) = normal_equations(jacobian, residuals, weights);
    // A parameter without influence gets a huge error instead of spoiling the others'.
    let ridge = RIDGE * (0..parameters).map(|i| normal[i][i]).fold(0.0, f64::max);
    (0..parameters).for_each(|i| normal[i][i] += ridge);
    let inverse = inverse(&normal)?;
    let weighted: Vec<f64> = weights.iter().zip(residuals).map(|(w, r)| w * huber_weight(*r)).collect();
    let count = count(clusters);
    let deviation = deviation(residuals, &weighted, count, parameters);

    let mut inner = vec![vec![0.0; parameters]; parameters];
    (0..parameters).for_each(|i| inner[i][i] = ridge);
    let mut add = |score: &[f64], share: f64| {
        for (i, row) in inner.iter_mut().enumerate() {
            for (j, cell) in row.iter_mut().enumerate() {
                *cell += share * score[i] * score[j];
            }
        }
    };
    let mut sums = vec![vec![0.0; parameters]; count];
    for ((row, weight), cluster) in jacobian.iter().zip(&weighted).zip(clusters) {
        let score: Vec<f64> = row.iter().map(|slope| weight * slope).collect();
        add(&score, 1.0 - SHARED);
        sums[*cluster].iter_mut().zip(&score).for_each(|(sum, one)| *sum += one);
    }
    sums.iter().for_each(|sum| add(sum, SHARED));
    let variance = |k: usize| -> f64 {
        let row = &inverse[k];
        let right: Vec<f64> =
            inner.iter().map(|inner| inner.iter().zip(row).map(|(a, b)| a * b).sum()).collect();
        row.iter().zip(&right).map(|(a, b)| a * b).sum()
    };
    Some((0..parameters).map(|k| deviation * variance(k).max(0.0).sqrt()).collect())
}

/// How many clusters there are.
pub(super) fn count(clusters: &[usize]) -> usize {
    clusters.last().map_or(0, |last| last + 1)
}

/// How much wider Student's 95 % interval is than a normal one where s has n - p degrees of freedom; `None` where
/// these are too few for any.
pub(super) fn widening(clusters: usize, parameters: usize) -> Option<f64> {
    let free = clusters.checked_sub(parameters).filter(|free| *free >= FEWEST_FREE)?;
    student_quantile(0.975, free as f64).map(|quantile| quantile / inverse_normal_cdf(0.975))
}

/// s, corrected for the parameters that were fitted to it; with fewer clusters than parameters by as much
/// as one degree of freedom leaves.
fn deviation(residuals: &[f64], weights: &[f64], clusters: usize, parameters: usize) -> f64 {
    let total: f64 = weights.iter().sum();
    if total <= 0.0 {
        return LEAST_DEVIATION;
    }
    let squares: f64 = residuals.iter().zip(weights).map(|(r, w)| w * r * r).sum();
    let free = clusters.saturating_sub(parameters).max(1) as f64;
    (squares / total * clusters as f64 / free).sqrt().max(LEAST_DEVIATION)
}

fn inverse(matrix: &[Vec<f64>]) -> Option<Vec<Vec<f64>>> {
    let size = matrix.len();
    let column = |i: usize| {
        let unit = (0..size).map(|k| f64::from(u8::from(k == i))).collect();
        solve(matrix.to_vec(), unit)
    };
    (0..size).map(column).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A mean of n independent observations of deviation s is known to s / sqrt(n); of clusters of two
    /// whose errors share half their variance, to s sqrt(0.75 / clusters).
    #[test]
    fn the_error_of_a_mean_is_textbook() {
        let residuals: Vec<f64> = (0..40).map(|i| if i % 4 < 2 { 0.05 } else { -0.05 }).collect();
        let jacobian = vec![vec![1.0]; 40];
        let alone: Vec<usize> = (0..40).collect();
        let error = standard_errors(&jacobian, &residuals, &[1.0; 40], &alone).unwrap()[0];
        let expected = 0.05 * (40.0_f64 / 39.0).sqrt() / 40.0_f64.sqrt();
        assert!((error - expected).abs() < 1e-6, "{error} {expected}");

        let pairs: Vec<usize> = (0..40).map(|i| i / 2).collect();
        let error = standard_errors(&jacobian, &residuals, &[1.0; 40], &pairs).unwrap()[0];
        let expected = 0.05 * (20.0_f64 / 19.0).sqrt() * (0.75_f64 / 20.0).sqrt();
        assert!((error - expected).abs() < 1e-6, "{error} {expected}");
    }

    /// Student's table: 4.303 at 2 degrees of freedom, 2.228 at 10, 1.960 at infinitely many.
    #[test]
    fn few_clusters_widen_errors_and_too_few_tell_none() {
        assert_eq!([(2, 1), (2, 4), (4, 3), (0, 0)].map(|(n, p)| widening(n, p)), [None; 4]);
        for (clusters, factor) in [(6, 4.303 / 1.96), (14, 2.228 / 1.96), (1_000_000, 1.0)] {
            let widened = widening(clusters, 4).unwrap();
            assert!((widened - factor).abs() < 1e-3, "{clusters}: {widened}");
        }
    }

    #[test]
    fn a_parameter_without_influence_has_a_huge_error() {
        let jacobian = vec![vec![1.0, 0.0]; 8];
        let clusters: Vec<usize> = (0..8).collect();
        let errors = standard_errors(&jacobian, &[0.01; 8], &[1.0; 8], &clusters).unwrap();
        assert!(errors[0] < 0.02 && errors[1] > 1.0, "{errors:?}");
    }
}
