//! Statistics on sampled data: do intervals cover what they claim, do rules fire when they should?

use knee::rng::{Purpose, stream};
use knee::stats::{MeanInterval, Sketch, batch_means_interval, mean_interval, mser};

/// An autoregressive series: batches cover its mean at the nominal rate, single values do not.
#[test]
fn covers_the_mean_of_a_correlated_series() {
    let (mut covered, mut covered_naively) = (0, 0);
    for replication in 0..200 {
        let mut random = stream(11, Purpose::Service, replication);
        let mut state = 0.0;
        let series: Vec<f64> = (0..4_000)
            .map(|_| {
                state = 0.8 * state + random.standard_normal();
                state
            })
            .collect();
        let covers = |interval: MeanInterval| interval.mean.abs() <= interval.half_width.unwrap();
        covered += u32::from(covers(batch_means_interval(&series, 20, 0.95).unwrap()));
        covered_naively += u32::from(covers(mean_interval(&series, 0.95).unwrap()));
    }
    assert!((180..=198).contains(&covered), "{covered} of 200");
    assert!(covered_naively < 120, "{covered_naively} of 200");
}

/// Five replications of a skewed quantity: Student's interval covers near its nominal rate.
#[test]
fn student_intervals_of_five_cover_the_mean() {
    let covered = (0..2_000)
        .filter(|&replication| {
            let mut random = stream(13, Purpose::Service, replication);
            let means: Vec<f64> =
                (0..5).map(|_| (0..50).map(|_| random.standard_exponential()).sum::<f64>() / 50.0).collect();
            let interval = mean_interval(&means, 0.95).unwrap();
            (interval.mean - 1.0).abs() <= interval.half_width.unwrap()
        })
        .count();
    assert!((1_860..=1_940).contains(&covered), "{covered} of 2000");
}

/// On 64 segment means without a transient, the warm-up rule hardly ever gives up or deletes much.
#[test]
fn mser_rarely_gives_up_on_stationary_segments() {
    let deleted: Vec<Option<usize>> = (0..500)
        .map(|replication| {
            let mut random = stream(17, Purpose::Service, replication);
            let series: Vec<f64> = (0..64).map(|_| random.standard_normal()).collect();
            mser(&series)
        })
        .collect();
    let gave_up = deleted.iter().filter(|d| d.is_none()).count();
    let kept_most = deleted.iter().flatten().filter(|&&d| d <= 16).count();
    assert!(gave_up <= 25 && kept_most >= 425, "gave up {gave_up}, kept most {kept_most} of 500");
}

/// The tail of an exponential latency through a sketch that has long left exactness.
#[test]
fn a_sketch_reproduces_known_quantiles() {
    let mut random = stream(19, Purpose::Service, 0);
    let mut sketch = Sketch::new();
    for _ in 0..1_000_000 {
        sketch.record((random.standard_exponential() * 1e8) as u64);
    }
    assert!(!sketch.is_exact());
    for (q, four_sigma) in [(0.5, 0.004), (0.9, 0.012), (0.99, 0.04)] {
        let exact = -(1.0_f64 - q).ln();
        let found = sketch.quantile(q).unwrap() / 1e8;
        assert!((found - exact).abs() < four_sigma + 1e-3 * exact, "{q}: {found} {exact}");
    }
    assert!((sketch.mean().unwrap() / 1e8 - 1.0).abs() < 0.004);
    assert!((sketch.std().unwrap() / 1e8 - 1.0).abs() < 0.006);
}
