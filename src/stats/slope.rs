//! Least squares: does a quantity grow, and by how much?

use super::{mean, student_quantile};

/// A fitted straight line's slope.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Slope {
    /// Change of y per unit of x.
    pub slope: f64,
    /// Its standard error if residuals are independent; `None` with two points, which every line fits.
    pub standard_error: Option<f64>,
    /// Points that were fitted.
    pub points: usize,
}

impl Slope {
    /// Half-width of the slope's two-sided Student interval at `level`.
    #[must_use]
    pub fn half_width(&self, level: f64) -> Option<f64> {
        let t = student_quantile(0.5 + level / 2.0, self.points as f64 - 2.0)?;
        Some(t * self.standard_error?)
    }
}

/// The least-squares slope of `y` on `x`. `None` with fewer than two points, slices of different length
/// or no spread in `x`.
#[must_use]
pub fn linear_slope(x: &[f64], y: &[f64]) -> Option<Slope> {
    if x.len() != y.len() || x.len() < 2 {
        return None;
    }
    let (x_mean, y_mean) = (mean(x)?, mean(y)?);
    let deviations = || x.iter().zip(y).map(|(x, y)| (x - x_mean, y - y_mean));
    let sxx: f64 = deviations().map(|(dx, _)| dx * dx).sum();
    if sxx <= 0.0 || sxx.is_nan() {
        return None;
    }
    let slope = deviations().map(|(dx, dy)| dx * dy).sum::<f64>() / sxx;
    let residual: f64 = deviations().map(|(dx, dy)| (dy - slope * dx) * (dy - slope * dx)).sum();
    let standard_error = (x.len() > 2).then(|| libm::sqrt(residual / (x.len() - 2) as f64 / sxx));
    Some(Slope { slope, standard_error, points: x.len() })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first of F. J. Anscombe's four data sets (The American Statistician 27, 1973): slope 0.500,
    /// standard error 0.118.
    #[test]
    fn agrees_with_a_published_regression() {
        let x = [10.0, 8.0, 13.0, 9.0, 11.0, 14.0, 6.0, 4.0, 12.0, 7.0, 5.0];
        let y = [8.04, 6.95, 7.58, 8.81, 8.33, 9.96, 7.24, 4.26, 10.84, 4.82, 5.68];
        let fit = linear_slope(&x, &y).unwrap();
        assert!((fit.slope - 0.500_1).abs() < 1e-4);
        assert!((fit.standard_error.unwrap() - 0.117_9).abs() < 1e-4);
        // t(9, 0.975) = 2.262
        assert!((fit.half_width(0.95).unwrap() - 2.262 * 0.117_9).abs() < 1e-3);
    }

    #[test]
    fn a_line_is_fitted_exactly() {
        let fit = linear_slope(&[0.0, 1.0, 2.0], &[5.0, 13.0, 21.0]).unwrap();
        assert_eq!((fit.slope, fit.standard_error), (8.0, Some(0.0)));
    }

    #[test]
    fn what_has_no_slope_has_none() {
        assert_eq!(linear_slope(&[1.0], &[1.0]), None);
        assert_eq!(linear_slope(&[1.0, 1.0], &[1.0, 2.0]), None);
        assert_eq!(linear_slope(&[1.0, 2.0], &[1.0]), None);
        let two = linear_slope(&[0.0, 2.0], &[0.0, 1.0]).unwrap();
        assert_eq!((two.slope, two.standard_error, two.half_width(0.95)), (0.5, None, None));
    }
}
