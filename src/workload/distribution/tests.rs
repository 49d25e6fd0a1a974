//! Samplers against their exact distributions.

use super::*;
use crate::rng::{Purpose, stream};
use statrs::distribution::{self as exact, ContinuousCDF};

const DRAWS: usize = 20_000;

fn draws(distribution: &Distribution, seed: u64) -> Vec<f64> {
    let mut stream = stream(seed, Purpose::InputLength, 0);
    (0..DRAWS).map(|_| distribution.sample(&mut stream)).collect()
}

/// Kolmogorov-Smirnov: the largest distance between the empirical and the exact distribution function
/// stays below the 0.1 % critical value 1.95/sqrt(n).
fn assert_follows(distribution: &Distribution, cdf: impl Fn(f64) -> f64) {
    let mut values = draws(distribution, 7);
    values.sort_by(f64::total_cmp);
    let n = values.len() as f64;
    let distance = values.iter().enumerate().fold(0.0_f64, |worst, (i, x)| {
        let p = cdf(*x);
        worst.max((p - i as f64 / n).abs()).max(((i + 1) as f64 / n - p).abs())
    });
    assert!(distance < 1.95 / n.sqrt(), "{distribution:?}: distance {distance}");
}

#[test]
fn samples_follow_the_exact_distribution_functions() {
    assert_follows(&Distribution::Exponential { mean: 4.0 }, |x| exact::Exp::new(0.25).unwrap().cdf(x));
    assert_follows(&Distribution::Uniform { min: 2.0, max: 9.0 }, |x| (x - 2.0) / 7.0);
    assert_follows(&Distribution::Normal { mean: 50.0, std: 5.0, min: 0.0, max: f64::INFINITY }, |x| {
        exact::Normal::new(50.0, 5.0).unwrap().cdf(x)
    });
    assert_follows(&Distribution::Gamma { mean: 30.0, cv: 2.0 }, |x| {
        exact::Gamma::new(0.25, 0.25 / 30.0).unwrap().cdf(x)
    });
    let lognormal = Distribution::lognormal(512.0, 4096.0, f64::INFINITY).unwrap();
    let Distribution::Lognormal { mu, sigma, .. } = lognormal else { panic!("not a lognormal") };
    assert_follows(&lognormal, |x| exact::LogNormal::new(mu, sigma).unwrap().cdf(x));
    let quantiles = Arc::new(vec![(0.0, 10.0), (0.5, 20.0), (1.0, 100.0)]);
    assert_follows(&Distribution::Empirical { quantiles }, |x| {
        if x < 20.0 { (x - 10.0) / 20.0 } else { 0.5 + (x - 20.0) / 160.0 }
    });
}

#[test]
fn the_lognormal_has_the_mean_and_p99_it_was_built_from() {
    for (mean, p99) in [(512.0, 4096.0), (200.0, 1000.0), (1.0, 1.0001), (10.0, 149.6)] {
        let Distribution::Lognormal { mu, sigma, .. } =
            Distribution::lognormal(mean, p99, f64::INFINITY).unwrap()
        else {
            panic!("not a lognormal")
        };
        let back = ((mu + sigma * sigma / 2.0).exp(), (mu + Z_99 * sigma).exp());
        assert!((back.0 / mean - 1.0).abs() < 1e-12 && (back.1 / p99 - 1.0).abs() < 1e-12);
        assert!(sigma < Z_99, "the smaller of the two solutions");
    }
}

#[test]
fn a_lognormal_that_cannot_exist_is_refused() {
    // exp(z²/2) = 14.97
    assert!((MAX_P99_OVER_MEAN - (Z_99 * Z_99 / 2.0).exp()).abs() < 1e-3);
    assert_eq!(
        Distribution::lognormal(100.0, 1500.0, f64::INFINITY),
        Err(LognormalError::TailTooHeavy { ratio: 15.0 })
    );
    for (mean, p99) in [(100.0, 100.0), (100.0, 50.0), (f64::NAN, 5.0)] {
        assert!(matches!(
            Distribution::lognormal(mean, p99, f64::INFINITY),
            Err(LognormalError::P99NotAboveMean { .. })
        ));
    }
}

#[test]
fn sample_means_agree_with_the_means() {
    let infinite = f64::INFINITY;
    let cases = [
        Distribution::Constant { value: 7.0 },
        Distribution::Uniform { min: 1.0, max: 9.0 },
        Distribution::Exponential { mean: 3.0 },
        // Half of it is clamped below, a sixth above.
        Distribution::Normal { mean: 0.0, std: 1.0, min: 0.0, max: 1.0 },
        Distribution::lognormal(200.0, 1000.0, infinite).unwrap(),
        Distribution::lognormal(200.0, 1000.0, 300.0).unwrap(),
        Distribution::Gamma { mean: 30.0, cv: 0.5 },
        Distribution::zipf(1000, 1.2),
        Distribution::Empirical { quantiles: Arc::new(vec![(0.0, 0.0), (0.9, 10.0), (1.0, 100.0)]) },
    ];
    for distribution in cases {
        let values = draws(&distribution, 3);
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        let variance = values.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>() / (n - 1.0);
        // Four standard errors, and a rounding allowance for the constant.
        let allowed = 4.0 * (variance / n).sqrt() + 1e-9;
        assert!((mean - distribution.mean()).abs() <= allowed, "{distribution:?}: {mean}");
    }
}

#[test]
fn zipf_ranks_have_their_probabilities() {
    let values = draws(&Distribution::zipf(4, 1.0), 5);
    let total = 1.0 + 1.0 / 2.0 + 1.0 / 3.0 + 1.0 / 4.0;
    let chi_square: f64 = (1..=4)
        .map(|k| {
            let expected = DRAWS as f64 / (f64::from(k) * total);
            let seen = values.iter().filter(|v| **v == f64::from(k)).count() as f64;
            (seen - expected).powi(2) / expected
        })
        .sum();
    // The 0.1 % critical value with 3 degrees of freedom.
    assert!(chi_square < 16.27, "{chi_square}");
}

#[test]
fn tokens_are_whole_at_least_one_and_every_length_of_a_range_is_equally_likely() {
    let mut random = stream(1, Purpose::InputLength, 0);
    let tiny = Distribution::Exponential { mean: 1e-9 };
    let huge = Distribution::Constant { value: 1e300 };
    assert_eq!(tiny.sample_tokens(&mut random), 1);
    assert_eq!(huge.sample_tokens(&mut random), Tokens::MAX);
    let range = Distribution::Uniform { min: 3.0, max: 6.0 };
    let mut seen = [0_u32; 4];
    for _ in 0..DRAWS {
        seen[(range.sample_tokens(&mut random) - 3) as usize] += 1;
    }
    let expected = DRAWS as f64 / 4.0;
    let chi_square: f64 = seen.iter().map(|n| (f64::from(*n) - expected).powi(2) / expected).sum();
    assert!(chi_square < 16.27, "{seen:?}");
}

#[test]
fn every_draw_takes_one_variate() {
    let distributions = [
        Distribution::Constant { value: 7.0 },
        Distribution::Uniform { min: 1.0, max: 9.0 },
        Distribution::Gamma { mean: 30.0, cv: 0.5 },
        Distribution::zipf(10, 1.2),
        Distribution::lognormal(200.0, 1000.0, 300.0).unwrap(),
    ];
    let mut reference = stream(9, Purpose::InputLength, 0);
    let _ = reference.uniform();
    let second = reference.uniform();
    for distribution in distributions {
        let mut random = stream(9, Purpose::InputLength, 0);
        let _ = distribution.sample(&mut random);
        assert_eq!(random.uniform(), second, "{distribution:?}");
    }
}
