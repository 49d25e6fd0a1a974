//! Tests of the sketch against sorted values.

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

const QS: [f64; 9] = [0.0, 0.001, 0.25, 0.5, 0.75, 0.9, 0.99, 0.999, 1.0];

fn sketch_of(values: &[u64]) -> Sketch {
    let mut sketch = Sketch::new();
    values.iter().for_each(|&v| sketch.record(v));
    sketch
}

/// numpy's definition, straight from the sorted values.
fn quantile_of_sorted(sorted: &[u64], q: f64) -> f64 {
    let position = q * (sorted.len() - 1) as f64;
    let below = position.floor() as usize;
    let above = (below + 1).min(sorted.len() - 1);
    lerp(sorted[below] as f64, sorted[above] as f64, position - below as f64)
}

fn assert_agrees(sketch: &Sketch, values: &[u64]) {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    let n = sorted.len() as f64;
    let sum: u128 = sorted.iter().map(|&v| u128::from(v)).sum();
    assert_eq!((sketch.count(), sketch.sum()), (sorted.len() as u64, sum));
    assert_eq!((sketch.min(), sketch.max()), (sorted.first().copied(), sorted.last().copied()));
    let mean = sum as f64 / n;
    let variance = sorted.iter().map(|&v| (v as f64 - mean).powi(2)).sum::<f64>() / n;
    let std = sketch.std().unwrap();
    assert!((std - variance.sqrt()).abs() <= 1e-9 * std + 1e-12 * mean, "{std} {}", variance.sqrt());
    for q in QS {
        let (ours, exact) = (sketch.quantile(q).unwrap(), quantile_of_sorted(&sorted, q));
        let tolerance = if sketch.is_exact() { 0.0 } else { 1e-3 * exact };
        assert!((ours - exact).abs() <= tolerance, "q = {q}: {ours} against {exact}");
    }
}

/// Values as latencies scatter: over many octaves, with ties.
fn latencies(size: std::ops::Range<usize>) -> impl Strategy<Value = Vec<u64>> {
    let wide = (0_u32..45, 0_u64..1 << 20).prop_map(|(e, m)| (m << e) >> 15);
    vec(prop_oneof![wide, 0_u64..50], size)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_small_sketch_is_exact(values in latencies(1..300)) {
        let sketch = sketch_of(&values);
        prop_assert!(sketch.is_exact());
        assert_agrees(&sketch, &values);
    }

    #[test]
    fn a_large_sketch_is_within_a_thousandth(values in latencies(4 * EXACT_ENTRIES..12 * EXACT_ENTRIES)) {
        assert_agrees(&sketch_of(&values), &values);
    }

    #[test]
    fn merging_equals_recording_all(parts in vec(latencies(0..EXACT_ENTRIES), 1..6)) {
        let all = parts.concat();
        prop_assume!(!all.is_empty());
        let sketches: Vec<Sketch> = parts.iter().map(|part| sketch_of(part)).collect();
        let union = Sketch::merged(&sketches);
        prop_assert!(union.is_exact());
        assert_agrees(&union, &all);
        let mut folded = Sketch::new();
        sketches.iter().for_each(|part| folded.merge(part));
        assert_agrees(&folded, &all);
        // In any order the same answers to the last bit.
        let mut reversed = Sketch::new();
        sketches.iter().rev().for_each(|part| reversed.merge(part));
        prop_assert_eq!(folded.std(), reversed.std());
    }

    #[test]
    fn many_equal_values_are_as_many_records(runs in vec((0_u64..1 << 40, 1_u64..40), 1..200)) {
        let mut at_once = Sketch::new();
        runs.iter().for_each(|&(v, n)| at_once.record_n(v, n));
        let one_by_one: Vec<u64> = runs.iter().flat_map(|&(v, n)| vec![v; n as usize]).collect();
        prop_assert!(at_once.is_exact());
        assert_agrees(&at_once, &one_by_one);
    }

    #[test]
    fn counting_follows_the_values(values in latencies(1..6_000), limit in 0_u64..1 << 40) {
        let sketch = sketch_of(&values);
        let at_most = |limit: f64| values.iter().filter(|&&v| v as f64 <= limit).count() as u64;
        let counted = sketch.count_at_most(limit);
        if sketch.is_exact() {
            prop_assert_eq!(counted, at_most(limit as f64));
        } else {
            let limit = limit as f64;
            prop_assert!((at_most(limit * 0.999)..=at_most(limit * 1.001)).contains(&counted));
        }
    }
}

#[test]
fn nothing_recorded_is_nothing_known() {
    let empty = Sketch::merged([&Sketch::new(), &Sketch::new()]);
    assert_eq!((empty.count(), empty.sum(), empty.count_at_most(u64::MAX)), (0, 0, 0));
    assert_eq!((empty.min(), empty.max()), (None, None));
    assert_eq!((empty.mean(), empty.std(), empty.quantile(0.5)), (None, None, None));
    let mut one = Sketch::new();
    one.record_n(9, 0);
    assert_eq!(one.count(), 0);
    one.record(5);
    assert_eq!((one.mean(), one.std(), one.quantile(0.99)), (Some(5.0), Some(0.0), Some(5.0)));
    for q in [-0.1, 1.1, f64::NAN] {
        assert_eq!(one.quantile(q), None);
    }
}

/// `numpy.quantile([15, 20, 35, 40, 50], [.05, .3, .4, .5, 1])`.
#[test]
fn quantiles_are_numpys() {
    let sketch = sketch_of(&[50, 15, 40, 20, 35]);
    let got = [0.05, 0.3, 0.4, 0.5, 1.0].map(|q| sketch.quantile(q).unwrap());
    assert_eq!(got, [16.0, 23.0, 29.0, 35.0, 50.0]);
}

#[test]
fn a_billion_equal_values_cost_one_entry_and_stay_exact() {
    let mut sketch = Sketch::new();
    for _ in 0..10_000 {
        sketch.record_n(20_000_000, 100_000);
        sketch.record_n(30_000_000, 100_000);
    }
    assert!(sketch.is_exact());
    assert_eq!((sketch.count(), sketch.mean()), (2_000_000_000, Some(25e6)));
    assert_eq!((sketch.std(), sketch.quantile(0.5)), (Some(5e6), Some(25e6)));
}

#[test]
fn exactness_ends_where_documented() {
    let values: Vec<u64> = (0..EXACT_ENTRIES as u64).map(|v| v * 7_919 % 10_007).collect();
    let mut sketch = sketch_of(&values);
    assert!(sketch.is_exact());
    sketch.record(1 << 40);
    assert!(!sketch.is_exact());
    let parts = vec![sketch_of(&values); 64];
    assert!(Sketch::merged(&parts).is_exact());
    assert!(!Sketch::merged(parts.iter().chain([&sketch])).is_exact());
}

/// A spread of one nanosecond on top of a century: no cancellation.
#[test]
fn variance_survives_a_large_mean() {
    let century = 3_155_760_000_000_000_000;
    let sketch = sketch_of(&[century, century + 1, century + 2, century + 3]);
    assert_eq!(sketch.std(), Some(1.25_f64.sqrt()));
}
