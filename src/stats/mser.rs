//! How much of a run is warm-up: the marginal standard error rule.

use super::batch_means;

/// Truncations that would leave fewer values than this are not considered: the statistic of a handful of
/// values is small by accident.
const MIN_KEPT: usize = 5;

/// Values averaged into one by [`mser_5`].
const BATCH: usize = 5;

/// How many leading values of `series` to delete so that the mean of the rest has the least marginal
/// standard error, `sum (y - mean)^2 / kept^2` over the values kept.
///
/// `None` if the minimum lies beyond half of the series (the transient has not ended, or the series never
/// settles) or there are fewer than 10 values: there is not enough data to tell.
///
/// K. P. White, "An effective truncation heuristic for bias reduction in simulation output", Simulation
/// 69 (1997) 323-334.
#[must_use]
pub fn mser(series: &[f64]) -> Option<usize> {
    if series.len() < 2 * MIN_KEPT {
        return None;
    }
    // From the end, by Welford's updates: every truncation's statistic in one pass.
    let (mut mean, mut squares) = (0.0, 0.0);
    let (mut best, mut least) = (None, f64::INFINITY);
    for (deleted, &value) in series.iter().enumerate().rev() {
        let kept = (series.len() - deleted) as f64;
        let deviation = value - mean;
        mean += deviation / kept;
        squares += deviation * (value - mean);
        let statistic = squares / (kept * kept);
        // Among equals the one that deletes least.
        if series.len() - deleted >= MIN_KEPT && statistic <= least {
            (best, least) = (Some(deleted), statistic);
        }
    }
    best.filter(|&deleted| deleted <= series.len() / 2)
}

/// [`mser`] on means of five, which steadies the rule; the answer is in single values.
///
/// K. P. White, M. J. Cobb, S. C. Spratt, "A comparison of five steady-state truncation heuristics for
/// simulation", Winter Simulation Conference 2000, 755-760.
#[must_use]
pub fn mser_5(series: &[f64]) -> Option<usize> {
    mser(&batch_means(series, BATCH)).map(|deleted| deleted * BATCH)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The definition, without the shortcut.
    fn by_definition(series: &[f64]) -> usize {
        let statistic = |deleted: usize| {
            let kept = &series[deleted..];
            let mean = kept.iter().sum::<f64>() / kept.len() as f64;
            kept.iter().map(|y| (y - mean).powi(2)).sum::<f64>() / (kept.len() as f64).powi(2)
        };
        (0..=series.len() - MIN_KEPT).min_by(|&a, &b| statistic(a).total_cmp(&statistic(b))).unwrap()
    }

    /// A repeatable scatter of mean about 0.
    fn noise(i: usize) -> f64 {
        (i * 7_919 % 1_009) as f64 / 1_009.0 - 0.5
    }

    #[test]
    fn finds_the_end_of_a_step() {
        let series: Vec<f64> = (0..64).map(|i| if i < 9 { 10.0 } else { 1.0 } + 0.1 * noise(i)).collect();
        assert_eq!(mser(&series), Some(9));
    }

    #[test]
    fn follows_the_definition_on_a_decaying_transient() {
        let series: Vec<f64> = (0..200).map(|i| 5.0 * (-(i as f64) / 10.0).exp() + noise(i)).collect();
        let deleted = mser(&series).unwrap();
        assert_eq!(deleted, by_definition(&series));
        assert!((5..60).contains(&deleted), "{deleted}");
    }

    #[test]
    fn keeps_a_series_without_transient() {
        let series: Vec<f64> = (0..100).map(noise).collect();
        assert!(mser(&series).unwrap() < 20);
        assert_eq!(mser(&[3.0; 64]), Some(0));
    }

    #[test]
    fn refuses_what_never_settles_or_is_too_short() {
        let ramp: Vec<f64> = (0..64).map(f64::from).collect();
        assert_eq!(mser(&ramp), None);
        assert_eq!(mser(&[1.0; 9]), None);
        assert_eq!(mser(&[f64::NAN; 20]), None);
        assert_eq!(mser(&[]), None);
    }

    #[test]
    fn batches_of_five_count_in_single_values() {
        let series: Vec<f64> = (0..503).map(|i| if i < 50 { 4.0 } else { 0.0 } + noise(i)).collect();
        assert_eq!(mser_5(&series), Some(50));
    }
}
