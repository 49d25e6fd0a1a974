//! Where a curve turns up: the Kneedle method, offline form.
//!
//! The knee describes a curve *on the range it was computed on*: another range, another knee. It is no
//! capacity and no limit.

use super::isotonic::non_decreasing;

/// The least depth below the diagonal of the unit square that makes a knee. A parabola has depth 0.25,
/// a straight line 0; what is flatter than this has no place that deserves the name.
pub const MIN_KNEE_DEPTH: f64 = 0.05;

const MIN_POINTS: usize = 4;

/// The index at which the increasing, convex curve (`x`, `y`) turns from flat to steep.
///
/// After smoothing `y` to its nearest non-decreasing curve, both axes are scaled to [0, 1]; the knee is
/// the point furthest below the diagonal. `None` with fewer than four points, if `x` does not increase
/// strictly or a number is not finite, and if no point lies deeper than [`MIN_KNEE_DEPTH`].
///
/// V. Satopaa, J. Albrecht, D. Irwin, B. Raghavan, "Finding a 'kneedle' in a haystack: detecting knee
/// points in system behavior", ICDCS Workshops 2011, 166-171. Isotonic smoothing stands for the paper's
/// spline, and the one deepest point for its online threshold, since the whole curve is known.
#[must_use]
pub fn find_knee(x: &[f64], y: &[f64]) -> Option<usize> {
    let increases = x.windows(2).all(|pair| pair[0] < pair[1]);
    let finite = x.iter().chain(y).all(|v| v.is_finite());
    if x.len() != y.len() || x.len() < MIN_POINTS || !increases || !finite {
        return None;
    }
    let y = non_decreasing(y);
    let last = x.len() - 1;
    let (width, height) = (x[last] - x[0], y[last] - y[0]);
    if height <= 0.0 {
        return None;
    }
    let depth = |i: usize| (x[i] - x[0]) / width - (y[i] - y[0]) / height;
    let deepest = (1..last).max_by(|&a, &b| depth(a).total_cmp(&depth(b)).then(b.cmp(&a)))?;
    (depth(deepest) > MIN_KNEE_DEPTH).then_some(deepest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grid(n: usize, to: f64) -> Vec<f64> {
        (0..n).map(|i| to * i as f64 / (n - 1) as f64).collect()
    }

    /// On y = 1 / (1 - x) over [0, a] the slope equals the chord's at x = 1 - sqrt(1 - a).
    #[test]
    fn finds_the_knee_of_a_queue() {
        for end in [0.9, 0.95, 0.99] {
            let x = grid(1_001, end);
            let y: Vec<f64> = x.iter().map(|x| 1.0 / (1.0 - x)).collect();
            let exact = 1.0 - (1.0 - end).sqrt();
            let found = x[find_knee(&x, &y).unwrap()];
            assert!((found - exact).abs() <= end / 1_000.0, "{found} {exact}");
        }
    }

    #[test]
    fn finds_a_corner_whatever_the_units() {
        let x = [100.0, 200.0, 300.0, 400.0, 500.0];
        for scale in [1e-9, 1.0, 1e9] {
            let y = [1.0, 1.0, 1.0, 1.1, 9.0].map(|v| v * scale);
            assert_eq!(find_knee(&x, &y), Some(3));
        }
    }

    #[test]
    fn a_dip_and_a_spike_do_not_move_it() {
        let x = grid(21, 20.0);
        let y: Vec<f64> =
            x.iter().map(|&x| if x <= 14.0 { 1.0 + 0.01 * x } else { 5.0 * (x - 13.8) }).collect();
        assert_eq!(find_knee(&x, &y), Some(14));
        let mut noisy = y;
        noisy[4] = 0.2;
        noisy[7] = 3.0;
        assert_eq!(find_knee(&x, &noisy), Some(14));
    }

    #[test]
    fn what_has_no_knee_has_none() {
        let x = grid(11, 1.0);
        let line: Vec<f64> = x.iter().map(|x| 3.0 * x + 1.0).collect();
        let concave: Vec<f64> = x.iter().map(|x| x.sqrt()).collect();
        let falling: Vec<f64> = x.iter().map(|x| 2.0 - x).collect();
        for y in [line, concave, falling, vec![1.0; 11]] {
            assert_eq!(find_knee(&x, &y), None, "{y:?}");
        }
        assert_eq!(find_knee(&[1.0, 2.0, 3.0], &[0.0, 0.0, 1.0]), None);
        assert_eq!(find_knee(&[1.0, 2.0, 2.0, 3.0], &[0.0, 0.0, 0.0, 1.0]), None);
        assert_eq!(find_knee(&[1.0, 2.0, 3.0, 4.0], &[0.0, 0.0, f64::INFINITY, 1.0]), None);
        assert_eq!(find_knee(&[1.0, 2.0, 3.0, 4.0], &[0.0]), None);
    }
}
