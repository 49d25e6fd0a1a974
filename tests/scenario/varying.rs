//! Arrivals whose rate varies, as a file says them.

use knee::scenario::{RunLength, RunMode};
use knee::workload::Arrivals;

use super::{MINIMAL, refusal, scenario};

#[test]
fn a_daily_profile_is_run_over_once_and_scales() {
    let sets = ["arrivals.profile.daily_rate_per_s=[1, 3]", "arrivals.profile.scale=2"];
    let day = scenario(MINIMAL, &sets);
    let Arrivals::Profile(profile) = &day.workload.arrivals else { panic!("{:?}", day.workload.arrivals) };
    assert_eq!((profile.mean_per_s(), profile.peak_per_s(), profile.span_s()), (4.0, 6.0, 86_400.0));
    assert_eq!(day.run.mode, RunMode::Benchmark);
    assert_eq!(day.run.length, RunLength::DurationS(86_400.0));
    // No one rate decides whether it is stable.
    assert_eq!(day.workload.arrivals.rate_per_s(), None);
    assert_eq!(day.workload.arrivals.mean_rate_per_s(), Some(4.0));
}

#[test]
fn points_ramps_states_and_weibull_gaps_are_read() {
    let wave = ["arrivals.profile.rate_per_s=[[0, 2], [30.5, 8]]", "arrivals.profile.period_s=60"];
    let Arrivals::Profile(profile) = scenario(MINIMAL, &wave).workload.arrivals.clone() else { panic!() };
    assert!(profile.repeats() && profile.peak_per_s() == 8.0);

    let ramp = ["arrivals.ramp.from_per_s=0", "arrivals.ramp.to_per_s=10", "arrivals.ramp.duration_s=100"];
    let ramp = scenario(MINIMAL, &ramp);
    assert_eq!(ramp.workload.arrivals.mean_rate_per_s(), Some(5.0));
    assert_eq!(ramp.run.length, RunLength::DurationS(100.0));

    let states = "arrivals.mmpp.states=[{rate_per_s=1, mean_dwell_s=30}, {rate_per_s=9, mean_dwell_s=10}]";
    let mmpp = scenario(MINIMAL, &[states, "arrivals.mmpp.scale=2"]);
    assert_eq!((mmpp.workload.arrivals.rate_per_s(), mmpp.run.mode), (Some(6.0), RunMode::Steady));

    let weibull = scenario(MINIMAL, &["arrivals.weibull.rate_per_s=3", "arrivals.weibull.shape=0.7"]);
    assert_eq!(weibull.workload.arrivals.rate_per_s(), Some(3.0));
}

#[test]
fn a_rate_that_cannot_be_is_refused_where_it_stands() {
    let cases = [
        (&["arrivals.profile.scale=2"][..], "exactly one of `rate_per_s` and `daily_rate_per_s` is needed"),
        (&["arrivals.profile.rate_per_s=[[1, 2]]"], "expected times that start at 0 and ascend"),
        (&["arrivals.profile.rate_per_s=[[0, 0], [5, 0]]"], "some rate above 0"),
        (&["arrivals.profile.rate_per_s=[[0, 1, 2]]"], "a pair such as [3600, 12.5]"),
        (&["arrivals.profile.rate_per_s=3"], "expected a list of [seconds, requests per second] points"),
        (&["arrivals.profile.daily_rate_per_s=[1, -2]"], "found -2, expected a number of at least 0"),
        (
            &["arrivals.profile.daily_rate_per_s=[1]", "run.mode=steady"],
            "a rate that varies has no steady state",
        ),
        (&["arrivals.mmpp.states=[]"], "found 0 requests in a cycle of the states"),
        (&["arrivals.mmpp.states=[{rate_per_s=1}]"], "missing key `arrivals.mmpp.states.0.mean_dwell_s`"),
        (&["arrivals.mmpp.scale=1"], "missing key `arrivals.mmpp.states`"),
        (&["arrivals.weibull.rate_per_s=3"], "missing key `arrivals.weibull.shape`"),
        (
            &["arrivals.ramp.from_per_s=0", "arrivals.ramp.to_per_s=0", "arrivals.ramp.duration_s=9"],
            "no request ever comes",
        ),
    ];
    for (sets, words) in cases {
        let message = refusal(MINIMAL, sets);
        assert!(message.contains(words), "{sets:?}: {message}");
    }
}
