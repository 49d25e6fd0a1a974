//! Samplers against their exact distributions.

use statrs::distribution::{ContinuousCDF, Gamma};

use super::*;

const SAMPLES: usize = 20_000;

/// Kolmogorov-Smirnov against an exact distribution function, at the 0.1 % level.
fn assert_distributed(name: &str, mut draw: impl FnMut(&mut Stream) -> f64, cdf: impl Fn(f64) -> f64) {
    let mut random = stream(7, Purpose::Service, 0);
    let mut sample: Vec<f64> = (0..SAMPLES).map(|_| draw(&mut random)).collect();
    sample.sort_by(f64::total_cmp);
    let n = SAMPLES as f64;
    let distance = sample.iter().enumerate().fold(0.0_f64, |worst, (i, &x)| {
        let p = cdf(x);
        worst.max(p - i as f64 / n).max((i + 1) as f64 / n - p)
    });
    assert!(distance * n.sqrt() < 1.95, "{name}: distance {distance}");
}

#[test]
fn uniform_passes_kolmogorov_smirnov() {
    assert_distributed("uniform", Stream::uniform, |x| x);
}

/// Neighbouring pairs, as requests and places in their outputs are, must not resemble each other.
#[test]
fn keyed_draws_are_uniform_and_belong_to_their_pair() {
    let key = keyed(7, Purpose::Acceptance, 0);
    let mut drawn = 0_u64;
    assert_distributed(
        "keyed",
        |_| {
            drawn += 1;
            key.uniform(drawn / 50, drawn % 50)
        },
        |x| x,
    );
    // Lag-one correlation along either number: below four standard errors of none.
    for (a, b) in [(1, 0), (0, 1)] {
        let product = |i: u64| (key.uniform(i, 9 + i) - 0.5) * (key.uniform(i + a, 9 + i + b) - 0.5);
        let mean = (0..SAMPLES as u64).map(product).sum::<f64>() / SAMPLES as f64;
        assert!(mean.abs() < 4.0 / 12.0 / (SAMPLES as f64).sqrt(), "{mean}");
    }
    let again = keyed(7, Purpose::Acceptance, 0);
    assert_eq!(key.uniform(3, 4), again.uniform(3, 4));
    assert_ne!(key.uniform(3, 4), keyed(7, Purpose::Acceptance, 1).uniform(3, 4));
}

#[test]
fn exponential_passes_kolmogorov_smirnov() {
    assert_distributed("exponential", Stream::standard_exponential, |x| -libm::expm1(-x));
}

#[test]
fn normal_passes_kolmogorov_smirnov() {
    assert_distributed("normal", Stream::standard_normal, |x| {
        0.5 * libm::erfc(-x / std::f64::consts::SQRT_2)
    });
}

#[test]
fn gamma_passes_kolmogorov_smirnov() {
    for shape in [0.05, 0.3, 0.999, 1.0, 2.5, 40.0, 1e4] {
        let exact = Gamma::new(shape, 1.0).unwrap();
        assert_distributed(
            &format!("gamma({shape})"),
            |random| random.standard_gamma(shape),
            |x| exact.cdf(x),
        );
    }
}

#[test]
fn gamma_of_an_impossible_shape_is_nan() {
    let mut random = stream(1, Purpose::ArrivalGap, 0);
    for shape in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(random.standard_gamma(shape).is_nan());
    }
}

#[test]
fn index_is_uniform() {
    let mut random = stream(3, Purpose::Routing, 0);
    let mut counts = [0_u32; 7];
    for _ in 0..70_000 {
        counts[random.index(7)] += 1;
    }
    let chi_squared: f64 = counts.iter().map(|&c| (f64::from(c) - 1e4).powi(2) / 1e4).sum();
    // 0.1 % point of chi-squared with 6 degrees of freedom.
    assert!(chi_squared < 22.46, "{chi_squared}: {counts:?}");
    assert_eq!((random.index(0), random.index(1)), (0, 0));
}

/// Of the largest n with many surplus words a third must be rejected: an unbiased index shows no excess.
#[test]
fn index_rejects_surplus_words() {
    let n = (1_usize << 63) + (1 << 62);
    let mut random = stream(3, Purpose::Routing, 1);
    let low = (0..30_000).filter(|_| random.index(n) < n / 3).count() as f64;
    assert!((low - 1e4).abs() < 4.0 * (3e4 * 2.0 / 9.0_f64).sqrt(), "{low}");
}

#[test]
fn uniform_stays_inside_the_open_interval() {
    assert_eq!(open_unit(0), 1.0 / (1_u64 << 53) as f64);
    assert_eq!(1.0 - open_unit(u64::MAX), open_unit(0));
}

/// Streams of different seed, purpose or replication share nothing.
#[test]
fn streams_differ() {
    let mut firsts = Vec::new();
    for seed in [0, 1, u64::MAX] {
        for purpose in [Purpose::ArrivalGap, Purpose::InputLength, Purpose::Pair] {
            for replication in [0, 1, u32::MAX] {
                firsts.push(stream(seed, purpose, replication).chacha.next_u64());
            }
        }
    }
    let drawn = firsts.len();
    firsts.sort_unstable();
    firsts.dedup();
    assert_eq!(firsts.len(), drawn);
}

/// One word a variate, whatever the parameter: the basis of common random numbers.
#[test]
fn variates_stay_in_step() {
    let mut after = [0.1, 1.0, 30.0].map(|shape| {
        let mut random = stream(5, Purpose::ArrivalGap, 2);
        for _ in 0..100 {
            random.standard_gamma(shape);
        }
        random.uniform()
    });
    let mut random = stream(5, Purpose::ArrivalGap, 2);
    for _ in 0..100 {
        random.standard_normal();
    }
    after.sort_by(f64::total_cmp);
    assert_eq!(after, [random.uniform(); 3]);
}

/// Purpose numbers are part of every published result.
#[test]
fn purposes_keep_their_numbers() {
    use Purpose::*;
    let all = [ArrivalGap, InputLength, OutputLength, Class, ThinkTime, Service, Routing, Pair];
    assert_eq!(all.map(|purpose| purpose as u32), [0, 1, 2, 3, 4, 5, 6, 7]);
}

/// Exact bits. If one of these moves, every result of every user moves: say so in the changelog.
#[test]
fn values_are_pinned() {
    let mut random = stream(1, Purpose::ArrivalGap, 0);
    let drawn = [
        random.uniform(),
        random.standard_exponential(),
        random.standard_normal(),
        random.standard_gamma(0.5),
        random.standard_gamma(4.0),
        random.index(1_000_000) as f64,
        stream(u64::MAX, Purpose::Pair, u32::MAX).uniform(),
    ];
    // Literals print and read back to the same bits.
    let pinned = [
        0.9353472563167625,
        0.6164605845896386,
        -1.666047288003066,
        0.07363024985232025,
        6.00731088844,
        103_780.0,
        0.7271970344869568,
    ];
    assert_eq!(drawn.map(f64::to_bits), pinned.map(f64::to_bits), "{drawn:?}");
}
