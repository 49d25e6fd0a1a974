//! The load at which a latency curve reaches a limit.

use super::isotonic::non_decreasing;

/// The `x` at which the increasing curve (`x`, `y`) reaches `limit`, between two of its points.
///
/// `y` is first smoothed to its nearest non-decreasing curve, so there is one crossing; between points
/// it is taken as exponential in `x` (linear in its logarithm), which suits latencies that grow
/// manyfold from one load to the next, and as linear where it is not positive.
///
/// `None` unless a point at or below the limit is followed by one above it, if `x` does not increase
/// strictly, or if a number is not finite.
#[must_use]
pub fn crossing(x: &[f64], y: &[f64], limit: f64) -> Option<f64> {
    let increases = x.windows(2).all(|pair| pair[0] < pair[1]);
    let finite = x.iter().chain(y).all(|v| v.is_finite());
    if x.len() != y.len() || !increases || !finite {
        return None;
    }
    let y = non_decreasing(y);
    let above = y.iter().position(|&v| v > limit)?;
    let below = above.checked_sub(1)?;
    let (low, high) = (y[below], y[above]);
    let fraction =
        if low > 0.0 { libm::log(limit / low) / libm::log(high / low) } else { (limit - low) / (high - low) };
    Some(x[below] + fraction * (x[above] - x[below]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_exact_on_an_exponential() {
        let x = [1.0, 2.0, 4.0, 8.0];
        let y = x.map(|x: f64| x.exp());
        for at in [1.0, 1.3, 3.0, 7.9_f64] {
            assert!((crossing(&x, &y, at.exp()).unwrap() - at).abs() < 1e-12);
        }
    }

    #[test]
    fn noise_leaves_one_crossing() {
        // The pooled middle is 2: the limit is passed once, behind it.
        let at = crossing(&[1.0, 2.0, 3.0, 4.0], &[1.0, 3.0, 1.0, 8.0], 4.0).unwrap();
        assert!((at - 3.5).abs() < 1e-12);
    }

    #[test]
    fn starts_linearly_from_zero() {
        assert_eq!(crossing(&[1.0, 2.0], &[0.0, 4.0], 1.0), Some(1.25));
    }

    #[test]
    fn an_unbracketed_limit_has_no_crossing() {
        let x = [1.0, 2.0, 3.0];
        assert_eq!(crossing(&x, &[1.0, 2.0, 3.0], 3.0), None);
        assert_eq!(crossing(&x, &[1.0, 2.0, 3.0], 0.5), None);
        assert_eq!(crossing(&x, &[1.0, f64::NAN, 3.0], 2.5), None);
        assert_eq!(crossing(&x, &[1.0, 2.0, 3.0], f64::NAN), None);
        assert_eq!(crossing(&[2.0, 1.0], &[1.0, 3.0], 2.0), None);
        assert_eq!(crossing(&[], &[], 2.0), None);
    }
}
