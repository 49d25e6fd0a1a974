//! Distributions over lengths and times, and how one value of them is drawn.
//!
//! Every draw takes exactly one variate of its stream whatever the distribution, a constant included:
//! the inverse CDF of a uniform, or a scaled standard exponential, normal or gamma. That is what lets two
//! scenarios that differ in one length see otherwise the same users.

use std::sync::Arc;

use crate::rng::Stream;
use crate::units::Tokens;

/// Standard normal quantile of 0.99.
const Z_99: f64 = 2.326_347_874_040_841;

/// The largest p99/mean that a lognormal can have: exp(z²/2) with z the 0.99 quantile of the normal.
pub const MAX_P99_OVER_MEAN: f64 = 14.968_5;

/// A distribution over non-negative numbers; its unit is that of the key that holds it.
///
/// Lengths are rounded to whole tokens and to at least 1 where they are drawn.
#[derive(Clone, Debug, PartialEq)]
pub enum Distribution {
    Constant {
        value: f64,
    },
    /// Continuous for times; for tokens every whole number from `min` to `max` is equally likely.
    Uniform {
        min: f64,
        max: f64,
    },
    Exponential {
        mean: f64,
    },
    /// Truncated at `min` and `max` by clamping.
    Normal {
        mean: f64,
        std: f64,
        min: f64,
        max: f64,
    },
    /// `exp(mu + sigma z)`, clamped at `max`; built by [`Distribution::lognormal`] from mean and p99.
    Lognormal {
        mu: f64,
        sigma: f64,
        max: f64,
    },
    Gamma {
        mean: f64,
        cv: f64,
    },
    /// P(k) proportional to k^-exponent on 1..=n; `cdf[k - 1]` = P(at most k). Built by
    /// [`Distribution::zipf`].
    Zipf {
        exponent: f64,
        cdf: Arc<Vec<f64>>,
    },
    /// Inverse CDF, linear between the points (probability, value); probabilities ascend from 0 to 1.
    Empirical {
        quantiles: Arc<Vec<(f64, f64)>>,
    },
}

/// Why no lognormal has the wanted mean and p99.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum LognormalError {
    #[error("p99 / mean = {ratio:.1}, but no lognormal has more than {MAX_P99_OVER_MEAN:.1}")]
    TailTooHeavy { ratio: f64 },
    #[error("p99 = {p99} is not above the mean {mean}")]
    P99NotAboveMean { mean: f64, p99: f64 },
}

impl Distribution {
    /// The lognormal with this mean and 99th percentile, both positive.
    ///
    /// With mean = exp(mu + s²/2) and p99 = exp(mu + z s), ln(p99/mean) = z s - s²/2, whose two solutions
    /// are s = z ± sqrt(z² - 2 ln(p99/mean)); the smaller is the one people mean.
    ///
    /// # Errors
    /// [`LognormalError`] if p99 does not exceed the mean, or by more than a factor of exp(z²/2).
    pub fn lognormal(mean: f64, p99: f64, max: f64) -> Result<Self, LognormalError> {
        let ratio = p99 / mean;
        if ratio.is_nan() || ratio <= 1.0 {
            return Err(LognormalError::P99NotAboveMean { mean, p99 });
        }
        let log_ratio = libm::log(ratio);
        let discriminant = Z_99 * Z_99 - 2.0 * log_ratio;
        if discriminant < 0.0 {
            return Err(LognormalError::TailTooHeavy { ratio });
        }
        // z - sqrt(z² - 2l) without the cancellation that a small l would suffer.
        let sigma = 2.0 * log_ratio / (Z_99 + libm::sqrt(discriminant));
        let mu = libm::log(mean) - sigma * sigma / 2.0;
        Ok(Self::Lognormal { mu, sigma, max })
    }

    /// The Zipf distribution on 1..=`max`.
    #[must_use]
    pub fn zipf(max: u32, exponent: f64) -> Self {
        let mut cdf: Vec<f64> = Vec::with_capacity(max as usize);
        let mut sum = 0.0;
        for k in 1..=max.max(1) {
            sum += libm::pow(f64::from(k), -exponent);
            cdf.push(sum);
        }
        for value in &mut cdf {
            *value /= sum;
        }
        Self::Zipf { exponent, cdf: Arc::new(cdf) }
    }

    /// The mean before rounding to whole tokens (clamping included).
    #[must_use]
    pub fn mean(&self) -> f64 {
        match self {
            Self::Constant { value } => *value,
            Self::Uniform { min, max } => f64::midpoint(*min, *max),
            Self::Exponential { mean } | Self::Gamma { mean, .. } => *mean,
            Self::Normal { mean, std, min, max } => clamped_normal_mean(*mean, *std, *min, *max),
            Self::Lognormal { mu, sigma, max } => capped_lognormal_mean(*mu, *sigma, *max),
            Self::Zipf { exponent, cdf } => {
                // sum k^(1-s) / sum k^-s, and the first term of the second sum is 1 = cdf[0] x sum.
                let sum: f64 = (1..=cdf.len()).map(|k| libm::pow(k as f64, 1.0 - exponent)).sum();
                cdf.first().map_or(1.0, |first| sum * first)
            }
            Self::Empirical { quantiles } => quantiles
                .windows(2)
                .map(|pair| (pair[1].0 - pair[0].0) * f64::midpoint(pair[0].1, pair[1].1))
                .sum(),
        }
    }

    /// One value.
    #[must_use]
    pub fn sample(&self, stream: &mut Stream) -> f64 {
        match self {
            Self::Constant { value } => {
                let _ = stream.uniform();
                *value
            }
            Self::Uniform { min, max } => min + (max - min) * stream.uniform(),
            Self::Exponential { mean } => mean * stream.standard_exponential(),
            Self::Normal { mean, std, min, max } => {
                (mean + std * stream.standard_normal()).max(*min).min(*max)
            }
            Self::Lognormal { mu, sigma, max } => libm::exp(mu + sigma * stream.standard_normal()).min(*max),
            Self::Gamma { mean, cv } => {
                // Shape 1/cv²; the mean of the standard gamma is its shape.
                let shape = 1.0 / (cv * cv);
                mean / shape * stream.standard_gamma(shape)
            }
            Self::Zipf { cdf, .. } => {
                let u = stream.uniform();
                let below = cdf.partition_point(|p| *p <= u);
                (below.min(cdf.len().saturating_sub(1)) + 1) as f64
            }
            Self::Empirical { quantiles } => interpolate(quantiles, stream.uniform()),
        }
    }

    /// One length: rounded to the nearest whole token, at least 1.
    #[must_use]
    pub fn sample_tokens(&self, stream: &mut Stream) -> Tokens {
        match self {
            Self::Uniform { min, max } => {
                let (low, high) = (to_tokens(*min), to_tokens(*max));
                let width = f64::from(high.saturating_sub(low)) + 1.0;
                let step = libm::floor(stream.uniform() * width);
                low.saturating_add(step as Tokens).min(high.max(low))
            }
            _ => to_tokens(self.sample(stream)),
        }
    }
}

/// Rounded, at least 1; saturating at the largest token count (NaN becomes 1).
fn to_tokens(value: f64) -> Tokens {
    // `as` saturates.
    (libm::rint(value) as Tokens).max(1)
}

/// Linear interpolation in an inverse CDF at probability `u`.
fn interpolate(quantiles: &[(f64, f64)], u: f64) -> f64 {
    let upper = quantiles.partition_point(|(p, _)| *p <= u);
    match (upper.checked_sub(1).map(|i| quantiles[i]), quantiles.get(upper)) {
        (Some((p0, v0)), Some((p1, v1))) => v0 + (v1 - v0) * (u - p0) / (p1 - p0),
        (Some((_, value)), None) => value,
        (None, Some((_, value))) => *value,
        (None, None) => 0.0,
    }
}

/// Standard normal distribution function.
fn phi(z: f64) -> f64 {
    0.5 * libm::erfc(-z / std::f64::consts::SQRT_2)
}

/// Standard normal density.
fn density(z: f64) -> f64 {
    libm::exp(-z * z / 2.0) / libm::sqrt(2.0 * std::f64::consts::PI)
}

/// E[min(max(X, a), b)] of a normal X.
fn clamped_normal_mean(mean: f64, std: f64, a: f64, b: f64) -> f64 {
    if std == 0.0 {
        return mean.max(a).min(b);
    }
    let (za, zb) = ((a - mean) / std, (b - mean) / std);
    let inside = mean * (phi(zb) - phi(za)) + std * (density(za) - density(zb));
    let above = if b.is_finite() { b * phi(-zb) } else { 0.0 };
    let below = if a.is_finite() { a * phi(za) } else { 0.0 };
    inside + above + below
}

/// E[min(X, b)] of a lognormal X.
fn capped_lognormal_mean(mu: f64, sigma: f64, b: f64) -> f64 {
    let mean = libm::exp(mu + sigma * sigma / 2.0);
    if !b.is_finite() {
        return mean;
    }
    let z = (libm::log(b) - mu) / sigma;
    mean * phi(z - sigma) + b * phi(-z)
}

#[cfg(test)]
mod tests;
