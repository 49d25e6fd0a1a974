//! Loads as they are drawn: arrival processes against theory, common random numbers, recorded traces.

use std::path::PathBuf;
use std::sync::Arc;

use knee::units::SimTime;
use knee::workload::{
    Arrivals, Class, Distribution, Interpolation, Lengths, MmppState, RateProfile, Request, RequestStream,
    Slo, TraceFormat, Workload, trace,
};

fn class(name: &str, share: f64, input: f64, output: f64) -> Class {
    Class {
        name: name.to_owned(),
        share,
        priority: 0,
        lengths: Lengths::Independent {
            input: Distribution::Exponential { mean: input },
            output: Some(Distribution::Exponential { mean: output }),
        },
        slo: Slo::default(),
    }
}

fn workload(arrivals: Arrivals) -> Workload {
    Workload { arrivals, classes: vec![class("all", 1.0, 500.0, 200.0)] }
}

fn draw(workload: Workload, seed: u64, count: usize) -> Vec<Request> {
    RequestStream::new(&Arc::new(workload), seed, 0).take(count).collect()
}

/// Mean and squared coefficient of variation of the gaps, in seconds.
fn gap_moments(requests: &[Request]) -> (f64, f64) {
    let gaps: Vec<f64> =
        requests.windows(2).map(|pair| pair[1].send.since(pair[0].send).as_secs_f64()).collect();
    let n = gaps.len() as f64;
    let mean = gaps.iter().sum::<f64>() / n;
    let variance = gaps.iter().map(|g| (g - mean).powi(2)).sum::<f64>() / n;
    (mean, variance / (mean * mean))
}

#[test]
fn arrival_processes_have_their_rate_and_their_burstiness() {
    let rate_per_s = 8.0;
    let cases = [
        (Arrivals::Poisson { rate_per_s }, 1.0),
        (Arrivals::Gamma { rate_per_s, burstiness: 0.25 }, 4.0),
        (Arrivals::Gamma { rate_per_s, burstiness: 4.0 }, 0.25),
        (Arrivals::Constant { rate_per_s }, 0.0),
    ];
    for (arrivals, cv2) in cases {
        let (mean, squared) = gap_moments(&draw(workload(arrivals.clone()), 1, 100_000));
        // Four standard errors of the mean; the variance's own error is larger for heavier tails.
        assert!(
            (mean * rate_per_s - 1.0).abs() < 4.0 * (cv2 / 1e5_f64).sqrt() + 1e-6,
            "{arrivals:?}: {mean}"
        );
        assert!((squared - cv2).abs() < 0.06 * cv2 + 1e-6, "{arrivals:?}: {squared}");
    }
}

/// Kolmogorov-Smirnov at the 0.1 % level.
fn assert_distributed(name: &str, mut sample: Vec<f64>, cdf: impl Fn(f64) -> f64) {
    sample.sort_by(f64::total_cmp);
    let n = sample.len() as f64;
    let distance = sample.iter().enumerate().fold(0.0_f64, |worst, (i, &x)| {
        let p = cdf(x);
        worst.max(p - i as f64 / n).max((i + 1) as f64 / n - p)
    });
    assert!(distance * n.sqrt() < 1.95, "{name}: distance {distance}");
}

#[test]
fn weibull_gaps_are_weibull() {
    for (shape, gamma) in [(0.5, 2.0), (1.0, 1.0), (2.0, std::f64::consts::PI.sqrt() / 2.0)] {
        let requests = draw(workload(Arrivals::Weibull { rate_per_s: 4.0, shape }), 1, 20_000);
        let gaps = requests.windows(2).map(|pair| pair[1].send.since(pair[0].send).as_secs_f64()).collect();
        // Scale: mean / Gamma(1 + 1/shape), with the closed forms of that gamma.
        let scale = 0.25 / gamma;
        assert_distributed("weibull", gaps, |x| -libm::expm1(-libm::pow(x / scale, shape)));
    }
}

#[test]
fn requests_of_a_profile_are_spread_as_its_rate() {
    // Given how many came, the times of a Poisson process are independent with distribution function
    // Lambda(t) / Lambda(T).
    let linear = |points: &[(f64, f64)]| RateProfile::new(points, Interpolation::Linear, None).unwrap();
    let up = Arrivals::Profile(Arc::new(linear(&[(0.0, 0.0), (1000.0, 40.0)])));
    let sent = |arrivals: Arrivals, until_s: f64| -> Vec<f64> {
        RequestStream::new(&Arc::new(workload(arrivals)), 2, 0)
            .map(|request| request.send.as_secs_f64())
            .take_while(|at_s| *at_s < until_s)
            .collect()
    };
    let times = sent(up, 1000.0);
    assert!((times.len() as f64 / 20_000.0 - 1.0).abs() < 4.0 / 20_000_f64.sqrt(), "{}", times.len());
    assert_distributed("ramp", times, |t| (t / 1000.0).powi(2));

    // Two days of night and day; the position within the day.
    let day = RateProfile::new(&[(0.0, 1.0), (43_200.0, 3.0)], Interpolation::Step, Some(86_400.0)).unwrap();
    let times = sent(Arrivals::Profile(Arc::new(day)), 2.0 * 86_400.0);
    let within = times.iter().map(|at_s| at_s % 86_400.0).collect();
    assert_distributed("day", within, |t| {
        let half = 43_200.0;
        if t < half { t / half / 4.0 } else { 0.25 + 0.75 * (t - half) / half }
    });
}

#[test]
fn a_flat_profile_and_equal_states_are_the_poisson_process_itself() {
    let poisson = draw(workload(Arrivals::Poisson { rate_per_s: 2.0 }), 3, 2000);
    let points = [(0.0, 2.0), (7.0, 2.0)];
    let profile = RateProfile::new(&points, Interpolation::Linear, Some(10.0)).unwrap();
    let state = MmppState { rate_per_s: 2.0, mean_dwell_s: 5.0 };
    for arrivals in [Arrivals::Profile(Arc::new(profile)), Arrivals::Mmpp(Arc::from([state, state]))] {
        for (a, b) in poisson.iter().zip(&draw(workload(arrivals), 3, 2000)) {
            assert_eq!((a.input_tokens, a.output_tokens), (b.input_tokens, b.output_tokens));
            assert!(a.send.as_nanos().abs_diff(b.send.as_nanos()) <= 10, "{a:?} {b:?}");
        }
    }
}

#[test]
fn a_profile_that_ends_sends_no_more() {
    let down = RateProfile::new(&[(0.0, 4.0), (10.0, 0.0)], Interpolation::Linear, None).unwrap();
    let count = RequestStream::new(&Arc::new(workload(Arrivals::Profile(Arc::new(down)))), 1, 0).count();
    assert!((1..60).contains(&count), "{count}");
}

#[test]
fn another_rate_scales_the_same_users() {
    let slow = draw(workload(Arrivals::Poisson { rate_per_s: 1.0 }), 3, 1000);
    let fast = draw(workload(Arrivals::Poisson { rate_per_s: 4.0 }), 3, 1000);
    for (a, b) in slow.iter().zip(&fast) {
        assert_eq!((a.input_tokens, a.output_tokens), (b.input_tokens, b.output_tokens));
        assert!(a.send.as_nanos().abs_diff(4 * b.send.as_nanos()) <= 4);
    }
}

#[test]
fn a_class_with_other_lengths_leaves_the_other_class_and_the_arrivals_alone() {
    let of = |chat: Lengths| {
        let mut classes = vec![class("chat", 0.5, 500.0, 200.0), class("code", 0.5, 3000.0, 30.0)];
        classes[0].lengths = chat;
        let arrivals = Arrivals::Poisson { rate_per_s: 1.0 };
        draw(Workload { arrivals, classes }, 5, 1000)
    };
    let base = of(Lengths::Independent {
        input: Distribution::Exponential { mean: 500.0 },
        output: Some(Distribution::Exponential { mean: 200.0 }),
    });
    let alternatives = [
        Lengths::Independent {
            input: Distribution::Constant { value: 9.0 },
            output: Some(Distribution::Gamma { mean: 9.0, cv: 2.0 }),
        },
        Lengths::Independent { input: Distribution::zipf(10, 1.0), output: None },
        Lengths::Joint(Arc::new(vec![(1, 2), (3, 4)])),
    ];
    for chat in alternatives {
        for (a, b) in base.iter().zip(&of(chat)) {
            assert_eq!((a.send, a.class, a.index), (b.send, b.class, b.index));
            if a.class == 1 {
                assert_eq!(a, b);
            }
        }
    }
    assert_eq!(base.iter().filter(|r| r.class == 0).count().abs_diff(500) / 64, 0);
}

#[test]
fn seeds_and_replications_differ_and_repeat() {
    let load = Arc::new(workload(Arrivals::Poisson { rate_per_s: 1.0 }));
    let of = |seed, replication| -> Vec<Request> {
        RequestStream::new(&load, seed, replication).take(10).collect()
    };
    assert_eq!(of(1, 0), of(1, 0));
    assert_ne!(of(1, 0), of(1, 1));
    assert_ne!(of(1, 0), of(2, 0));
}

#[test]
fn a_closed_loop_is_drawn_by_answers_and_all_at_once_starts_at_zero() {
    let think_time_s = Distribution::Constant { value: 2.5 };
    let closed = Arc::new(workload(Arrivals::Closed { users: 3, think_time_s }));
    let mut stream = RequestStream::new(&closed, 1, 0);
    assert_eq!(stream.next(), None);
    assert_eq!(stream.think_time().as_secs_f64(), 2.5);
    let at = SimTime::from_nanos(77);
    let (first, second) = (stream.draw(at), stream.draw(at));
    assert_eq!((first.index, first.send, second.index), (0, at, 1));

    let burst = draw(workload(Arrivals::AllAtOnce), 1, 100);
    assert!(burst.iter().all(|r| r.send == SimTime::ZERO) && burst.len() == 100);
}

#[test]
fn a_rate_beyond_the_clock_never_comes() {
    let requests = draw(workload(Arrivals::Constant { rate_per_s: 1e-300 }), 1, 2);
    assert!(requests.iter().all(|r| r.send == SimTime::MAX));
}

/// A recorded trace of the data folder, or `None` (said on stderr) where there is none.
fn recorded(path: &str) -> Option<trace::Trace> {
    let Some(folder) = std::env::var_os("KNEE_DATA") else {
        eprintln!("skipped: KNEE_DATA is not set");
        return None;
    };
    let text = std::fs::read_to_string(PathBuf::from(folder).join("traces").join(path)).unwrap();
    Some(trace::parse(path, &text).unwrap())
}

#[test]
fn the_azure_traces_have_their_published_shape() {
    let cases = [
        ("azure-2023/AzureLLMInferenceTrace_conv_2023.csv", 19_366, 0.9..1.6),
        ("azure-2023/AzureLLMInferenceTrace_code_2023.csv", 8_819, 12.0..14.0),
    ];
    for (path, count, cv) in cases {
        let Some(trace) = recorded(path) else { return };
        assert_eq!(trace.format, TraceFormat::Azure);
        assert_eq!(trace.requests.len(), count);
        assert!(trace.notes.is_empty(), "{:?}", trace.notes);
        let hours = trace.requests.last().unwrap().send.as_secs_f64() / 3600.0;
        assert!((0.9..1.01).contains(&hours), "{path}: {hours} h");
        let (_, squared) = gap_moments(&trace.requests);
        assert!(cv.contains(&squared.sqrt()), "{path}: interarrival CV {}", squared.sqrt());
        // A replay is the trace, whatever the seed.
        let mut load = workload(Arrivals::Trace(Arc::new(trace.clone())));
        load.classes[0].lengths = Lengths::recorded(&trace.requests, 0);
        assert_eq!(draw(load, 9, usize::MAX), trace.requests);
    }
}

#[test]
fn the_mooncake_trace_loses_its_bursts() {
    let Some(trace) = recorded("mooncake/conversation_trace.jsonl") else {
        return;
    };
    assert_eq!((trace.format, trace.requests.len()), (TraceFormat::Mooncake, 12_031));
    assert_eq!(trace.notes.len(), 1);
    let (mean, squared) = gap_moments(&trace.requests);
    assert!((0.29..0.30).contains(&mean), "{mean}");
    assert!(squared < 1.5, "{squared}");
}
