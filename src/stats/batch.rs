//! Batch means: an interval for the mean of one long, correlated series.

use super::{MeanInterval, mean_interval};

/// Means of consecutive batches of `size` values; the incomplete last batch is left out. Empty if `size`
/// is 0.
#[must_use]
pub fn batch_means(series: &[f64], size: usize) -> Vec<f64> {
    if size == 0 {
        return Vec::new();
    }
    series.chunks_exact(size).map(|batch| batch.iter().sum::<f64>() / size as f64).collect()
}

/// The mean of `series` and its interval at `level` from `batches` batches of equal size, which must be
/// long against the correlation of the series. Up to `batches` - 1 values that fill no batch are left
/// out at the *start*, where warm-up would be.
///
/// `None` with fewer than two batches or fewer values than batches.
///
/// B. Schmeiser, "Batch size effects in the analysis of simulation output", Operations Research 30
/// (1982) 556-568: more than 30 batches gain little.
#[must_use]
pub fn batch_means_interval(series: &[f64], batches: usize, level: f64) -> Option<MeanInterval> {
    if batches < 2 || series.len() < batches {
        return None;
    }
    let size = series.len() / batches;
    let whole = &series[series.len() - size * batches..];
    mean_interval(&batch_means(whole, size), level)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_are_consecutive_and_whole() {
        assert_eq!(batch_means(&[1.0, 3.0, 5.0, 7.0, 9.0], 2), [2.0, 6.0]);
        assert!(batch_means(&[1.0], 0).is_empty());
        let interval = batch_means_interval(&[100.0, 1.0, 3.0, 5.0, 7.0], 2, 0.95).unwrap();
        assert_eq!(interval, mean_interval(&[2.0, 6.0], 0.95).unwrap());
        for (values, batches) in [(vec![1.0; 9], 1), (vec![1.0; 9], 10), (vec![], 0)] {
            assert_eq!(batch_means_interval(&values, batches, 0.95), None);
        }
    }
}
