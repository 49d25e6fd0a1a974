//! Student's t: the interval of a mean from few independent values.

use std::f64::consts::{PI, SQRT_2};

use super::mean;

/// A mean with the half-width of its confidence interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MeanInterval {
    pub mean: f64,
    /// `None` where one value says nothing about scatter (or the level is not in (0, 1)).
    pub half_width: Option<f64>,
}

/// The mean of independent `values` and its two-sided Student interval at `level` (0.95, say).
///
/// `None` without values.
#[must_use]
pub fn mean_interval(values: &[f64], level: f64) -> Option<MeanInterval> {
    let mean = mean(values)?;
    let n = values.len() as f64;
    let half_width = (values.len() > 1).then(|| student_quantile(0.5 + level / 2.0, n - 1.0)).flatten();
    let squares: f64 = values.iter().map(|v| (v - mean) * (v - mean)).sum();
    let half_width = half_width.map(|t| t * libm::sqrt(squares / (n - 1.0) / n));
    Some(MeanInterval { mean, half_width })
}

/// The `p`-quantile of Student's t with `dof` degrees of freedom (at least 1, not necessarily whole), to
/// a relative error of 1e-9. `None` outside 0 < p < 1 or dof >= 1.
///
/// The distribution function is concave on the positive axis, so Newton's method from 0 climbs to the
/// root and never passes it. Above 10,000 degrees of freedom: the Cornish-Fisher expansion about the
/// normal quantile, Abramowitz and Stegun 26.7.5.
#[must_use]
pub fn student_quantile(p: f64, dof: f64) -> Option<f64> {
    if !(p > 0.0 && p < 1.0 && dof >= 1.0) {
        return None;
    }
    let upper_tail = p.min(1.0 - p);
    let magnitude = if dof <= 1e4 {
        let log_scale = log_gamma_ratio(dof) - 0.5 * libm::log(dof * PI);
        climb(upper_tail, |t| student_tail(t, dof), |t| student_density(t, dof, log_scale))
    } else {
        let z = climb(
            upper_tail,
            |z| 0.5 * libm::erfc(z / SQRT_2),
            |z| libm::exp(-0.5 * z * z) / libm::sqrt(2.0 * PI),
        );
        let z2 = z * z;
        let g1 = (z2 + 1.0) / 4.0;
        let g2 = ((5.0 * z2 + 16.0) * z2 + 3.0) / 96.0;
        let g3 = (((3.0 * z2 + 19.0) * z2 + 17.0) * z2 - 15.0) / 384.0;
        z * (1.0 + (g1 + (g2 + g3 / dof) / dof) / dof)
    };
    Some(if p < 0.5 { -magnitude } else { magnitude })
}

/// The t >= 0 whose `tail` probability is `target`, by Newton's method from 0.
fn climb(target: f64, tail: impl Fn(f64) -> f64, density: impl Fn(f64) -> f64) -> f64 {
    // The heaviest tail (one degree of freedom) doubles t a step: 60 steps reach any p below 1. A
    // tail that f64 cannot tell from 0 (p = 1e-300) needs more, and ends at the bound.
    const MAX_STEPS: usize = 2_000;
    let mut t = 0.0;
    for _ in 0..MAX_STEPS {
        let step = (tail(t) - target) / density(t);
        // Only rounding makes a step that is not upward.
        if step <= t * f64::EPSILON || step.is_nan() {
            break;
        }
        t += step;
    }
    t
}

/// P(T > t) for t >= 0: half the incomplete beta function of dof / (dof + t^2), A&S 26.5.27.
fn student_tail(t: f64, dof: f64) -> f64 {
    let t2 = t * t;
    let (x, y) = (dof / (dof + t2), t2 / (dof + t2));
    let (a, b) = (0.5 * dof, 0.5);
    // x^a y^b / B(a, b), by log1p where x is near 1.
    let log_front = log_gamma_ratio(dof) - 0.5 * libm::log(PI) - a * libm::log1p(t2 / dof) + b * libm::log(y);
    let front = libm::exp(log_front);
    // The fraction converges fast below the mean of the beta distribution; elsewhere by symmetry.
    if x < (a + 1.0) / (a + b + 2.0) {
        0.5 * front * beta_fraction(a, b, x) / a
    } else {
        0.5 - 0.5 * front * beta_fraction(b, a, y) / b
    }
}

fn student_density(t: f64, dof: f64, log_scale: f64) -> f64 {
    libm::exp(log_scale - 0.5 * (dof + 1.0) * libm::log1p(t * t / dof))
}

/// ln(gamma((dof + 1) / 2) / gamma(dof / 2))
fn log_gamma_ratio(dof: f64) -> f64 {
    libm::lgamma(0.5 * (dof + 1.0)) - libm::lgamma(0.5 * dof)
}

/// The continued fraction of the incomplete beta function (DLMF 8.17.22) by the modified Lentz method.
fn beta_fraction(a: f64, b: f64, x: f64) -> f64 {
    // Convergence takes of the order of sqrt(max(a, b)) <= 71 terms.
    const MAX_TERMS: usize = 2_000;
    const TINY: f64 = 1e-300;
    let away_from_zero = |v: f64| if v.abs() < TINY { TINY } else { v };
    let mut c = 1.0;
    let mut d = 1.0 / away_from_zero(1.0 - (a + b) * x / (a + 1.0));
    let mut value = d;
    for m in 1..MAX_TERMS {
        let m = m as f64;
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        let mut change = 1.0;
        for numerator in [even, odd] {
            d = 1.0 / away_from_zero(1.0 + numerator * d);
            c = away_from_zero(1.0 + numerator / c);
            change *= d * c;
        }
        value *= change;
        if (change - 1.0).abs() <= f64::EPSILON {
            break;
        }
    }
    value
}

#[cfg(test)]
mod tests {
    use statrs::distribution::{ContinuousCDF, StudentsT};

    use super::*;

    /// Two-sided 95 % and 99.9 % points as in every printed table.
    #[test]
    fn agrees_with_the_published_table() {
        for (dof, t95, t999) in [
            (1.0, 12.706, 636.619),
            (2.0, 4.303, 31.599),
            (3.0, 3.182, 12.924),
            (4.0, 2.776, 8.610),
            (5.0, 2.571, 6.869),
            (9.0, 2.262, 4.781),
            (30.0, 2.042, 3.646),
            (63.0, 1.998, 3.452),
            (120.0, 1.980, 3.373),
            (1e9, 1.960, 3.291),
        ] {
            assert!((student_quantile(0.975, dof).unwrap() - t95).abs() < 6e-4, "{dof}");
            assert!((student_quantile(0.9995, dof).unwrap() - t999).abs() < 6e-4, "{dof}");
        }
    }

    /// One and two degrees of freedom have closed forms.
    #[test]
    fn agrees_with_closed_forms() {
        for p in [1e-9, 0.001, 0.2, 0.499, 0.51, 0.7, 0.95, 0.9995, 0.999_999_9_f64] {
            let cauchy = if p < 0.5 { -1.0 / (PI * p).tan() } else { 1.0 / (PI * (1.0 - p)).tan() };
            let two = (2.0 * p - 1.0) / (2.0 * p * (1.0 - p)).sqrt();
            for (dof, exact) in [(1.0, cauchy), (2.0, two)] {
                let t = student_quantile(p, dof).unwrap();
                assert!((t / exact - 1.0).abs() < 1e-9, "p = {p}, dof = {dof}: {t} {exact}");
            }
        }
    }

    #[test]
    fn inverts_the_reference_distribution() {
        for dof in [1.0, 1.5, 3.0, 4.0, 7.3, 29.0, 250.0, 9_999.0, 10_001.0] {
            let reference = StudentsT::new(0.0, 1.0, dof).unwrap();
            for p in [1e-6, 0.005, 0.05, 0.3, 0.5, 0.6, 0.9, 0.975, 0.9995] {
                let t = student_quantile(p, dof).unwrap();
                let error = reference.cdf(t) - p;
                assert!(error.abs() < 1e-9 * p.min(1.0 - p) + 1e-12, "p = {p}, dof = {dof}: {t} off {error}");
            }
        }
    }

    #[test]
    fn is_continuous_where_the_method_changes() {
        for p in [0.6, 0.975, 0.9995, 0.999_999_99] {
            let [below, above] = [1e4, 1e4 + 1e-3].map(|dof| student_quantile(p, dof).unwrap());
            assert!((above / below - 1.0).abs() < 1e-9, "{p}: {below} {above}");
        }
    }

    #[test]
    fn what_has_no_quantile_has_none() {
        for (p, dof) in [(0.0, 5.0), (1.0, 5.0), (f64::NAN, 5.0), (0.5, 0.5), (0.5, f64::NAN)] {
            assert_eq!(student_quantile(p, dof), None);
        }
        assert_eq!(student_quantile(0.5, 4.0), Some(0.0));
        assert!(student_quantile(1e-300, 1.0).unwrap() < -1e10);
        assert!(student_quantile(0.9, f64::INFINITY).unwrap().is_finite());
    }

    #[test]
    fn the_interval_of_a_mean() {
        // Mean 3, standard deviation sqrt(2.5), t(4, 0.975) = 2.7764451052.
        let interval = mean_interval(&[1.0, 2.0, 3.0, 4.0, 5.0], 0.95).unwrap();
        assert_eq!(interval.mean, 3.0);
        assert!((interval.half_width.unwrap() - 2.776_445_105_2 * 0.5_f64.sqrt()).abs() < 1e-9);
        assert_eq!(mean_interval(&[7.0], 0.95), Some(MeanInterval { mean: 7.0, half_width: None }));
        assert_eq!(mean_interval(&[1.0, 2.0], 1.0).unwrap().half_width, None);
        assert_eq!(mean_interval(&[], 0.95), None);
    }
}
