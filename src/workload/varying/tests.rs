//! Varying rates against their exact cumulative rate.

use super::*;

#[test]
fn a_step_profile_inverts_its_cumulative_rate() {
    // 2 req/s for 10 s, none for 10 s, 4 req/s for 10 s: 60 requests a period.
    let points = [(0.0, 2.0), (10.0, 0.0), (20.0, 4.0)];
    let profile = RateProfile::new(&points, Interpolation::Step, Some(30.0)).unwrap();
    assert_eq!((profile.mean_per_s(), profile.peak_per_s(), profile.span_s()), (2.0, 4.0, 30.0));
    for (count, at_s) in [(0.0, 0.0), (10.0, 5.0), (20.0, 20.0), (40.0, 25.0), (60.0, 30.0), (85.0, 51.25)] {
        assert_eq!(profile.time_of(count), Some(at_s), "{count}");
    }
}

#[test]
fn a_linear_profile_inverts_its_cumulative_rate() {
    // 0 to 4 req/s in 10 s: t²/5 requests by t; then 4 req/s for ever.
    let ramp = RateProfile::new(&[(0.0, 0.0), (10.0, 4.0)], Interpolation::Linear, None).unwrap();
    assert_eq!(ramp.mean_per_s(), 2.0);
    for (count, at_s) in [(0.2, 1.0), (5.0, 5.0), (20.0, 10.0), (24.0, 11.0)] {
        assert!((ramp.time_of(count).unwrap() - at_s).abs() < 1e-12, "{count}");
    }
    // Down to nothing: 20 requests in all, the last of them at the end.
    let down = RateProfile::new(&[(0.0, 4.0), (10.0, 0.0)], Interpolation::Linear, None).unwrap();
    assert!((down.time_of(15.0).unwrap() - 5.0).abs() < 1e-12);
    assert_eq!(down.time_of(20.5), None);
    // Linear and repeating: from the last point back to the first.
    let wave = RateProfile::new(&[(0.0, 0.0), (5.0, 4.0)], Interpolation::Linear, Some(10.0)).unwrap();
    assert_eq!(wave.mean_per_s(), 2.0);
    assert!((wave.time_of(30.0).unwrap() - 15.0).abs() < 1e-9);
}

#[test]
fn profiles_that_are_none_are_refused() {
    let step = |points: &[(f64, f64)], period| RateProfile::new(points, Interpolation::Step, period);
    assert!(step(&[], None).is_none());
    assert!(step(&[(1.0, 1.0)], None).is_none(), "starts late");
    assert!(step(&[(0.0, 1.0), (0.0, 2.0)], None).is_none(), "does not ascend");
    assert!(step(&[(0.0, 0.0), (9.0, 0.0)], None).is_none(), "never a request");
    assert!(step(&[(0.0, 1.0), (9.0, 2.0)], Some(9.0)).is_none(), "no time for the last rate");
    assert!(step(&[(0.0, -1.0), (9.0, 2.0)], None).is_none());
    assert!(step(&[(0.0, f64::NAN)], None).is_none());
    assert!(step(&[(0.0, 3.0)], None).is_some_and(|one| one.time_of(6.0) == Some(2.0)));
}

#[test]
fn time_never_runs_back() {
    let points = [(0.0, 0.3), (7.0, 0.0), (9.0, 5.0), (9.5, 1.0)];
    for interpolation in [Interpolation::Step, Interpolation::Linear] {
        let profile = RateProfile::new(&points, interpolation, Some(12.0)).unwrap();
        let times: Vec<f64> = (0..100_000).map(|i| profile.time_of(f64::from(i) * 0.01).unwrap()).collect();
        assert!(times.windows(2).all(|pair| pair[0] <= pair[1]));
    }
}

#[test]
fn a_modulated_process_has_its_rate_and_its_index_of_dispersion() {
    // Two states: the count over a long time has variance / mean = 1 + 2 (r1 - r2)² p1 p2 / (lambda (q1 + q2))
    // with q the rates of leaving (W. Fischer, K. Meier-Hellstern, "The MMPP cookbook", Perf. Eval. 18 (1993)).
    let states = [
        MmppState { rate_per_s: 1.0, mean_dwell_s: 30.0 },
        MmppState { rate_per_s: 9.0, mean_dwell_s: 10.0 },
    ];
    assert_eq!(mmpp_rate_per_s(&states), 3.0);
    let expected = 1.0 + 2.0 * 64.0 * 0.75 * 0.25 / (3.0 * (1.0 / 30.0 + 1.0 / 10.0));
    let (window_s, windows) = (2_000.0, 4_000);
    let mut gap = stream(11, Purpose::ArrivalGap, 0);
    let mut modulation = Modulation::new(&states, 11, 0);
    let mut counts = vec![0.0_f64; windows];
    loop {
        let at_s = modulation.advance(&states, gap.standard_exponential());
        match counts.get_mut((at_s / window_s) as usize) {
            Some(count) => *count += 1.0,
            None => break,
        }
    }
    let mean = counts.iter().sum::<f64>() / windows as f64;
    let variance = counts.iter().map(|c| (c - mean).powi(2)).sum::<f64>() / (windows - 1) as f64;
    assert!((mean / (3.0 * window_s) - 1.0).abs() < 0.005, "{mean}");
    // Standard error of a variance: sqrt(2 / n) = 2.2 %; the finite window takes 0.4 % off.
    assert!((variance / mean / expected - 1.0).abs() < 0.08, "{} against {expected}", variance / mean);
}
