//! Stationary probabilities of a finite birth-death chain.

/// The probabilities of states `0..states`, given `ratio(n)` = p(n + 1) / p(n) = birth rate in n over
/// death rate in n + 1, which must not increase with n (so there is one mode).
///
/// Starting from the mode and walking outwards every factor is at most 1: nothing overflows, and what
/// underflows does not count.
pub(super) fn stationary(states: usize, ratio: impl Fn(usize) -> f64) -> Vec<f64> {
    let last = states - 1;
    let mode = (0..last).find(|&n| ratio(n) <= 1.0).unwrap_or(last);
    let mut weights = vec![0.0; states];
    weights[mode] = 1.0;
    for n in mode..last {
        weights[n + 1] = weights[n] * ratio(n);
    }
    for n in (0..mode).rev() {
        weights[n] = weights[n + 1] / ratio(n);
    }
    let total: f64 = weights.iter().sum();
    weights.iter_mut().for_each(|weight| *weight /= total);
    weights
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ratio a / (n + 1) is the truncated Poisson distribution; a = 5,000 overflows any factorial.
    #[test]
    fn survives_factorials() {
        let a = 5_000.0;
        let p = stationary(10_001, |n| a / (n + 1) as f64);
        let mean: f64 = p.iter().enumerate().map(|(n, p)| n as f64 * p).sum();
        assert!((mean / a - 1.0).abs() < 1e-12, "{mean}");
        assert!((p.iter().sum::<f64>() - 1.0).abs() < 1e-12);
        assert_eq!(stationary(1, |_| 2.0), [1.0]);
        assert_eq!(stationary(3, |_| f64::INFINITY), [0.0, 0.0, 1.0]);
    }
}
