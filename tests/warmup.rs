//! What automatic warm-up deletes, and that it biases nothing.
//!
//! The long study of its bias: `cargo test --release --test warmup -- --ignored --nocapture`; its result stands
//! in docs/statistics.md.

use knee::catalog::Catalog;
use knee::experiment::{Estimate, Point, run_point};
use knee::metrics::{Latency, latency_of};
use knee::queueing::Mmc;
use knee::scenario::{Document, Override, Scenario};
use knee::workload::Metric;
use rayon::prelude::*;

/// Servers of ten requests per second each.
fn queue(servers: u32) -> String {
    format!(
        "name = \"M/M/{servers}\"\n[engine]\nname = \"synthetic\"\nservers = {servers}\n\
         service_time = {{ exponential = {{ mean_s = 0.1 }} }}\n[arrivals.poisson]\nrate_per_s = 1\n\
         [[class]]\nname = \"all\"\n"
    )
}

const RATE: &str = "arrivals.poisson.rate_per_s";
const CHAT: &str = "chat-h100";
/// Without the rare huge prompts whose mean takes millions of requests to see.
const SHORT_INPUT: (&str, &str) = ("class.0.input_tokens.lognormal", "{ mean = 512, p99 = 2048 }");

fn scenario(text: &str, changes: &[(&str, &str)], seed: u64) -> Scenario {
    let mut overrides: Vec<Override> = changes.iter().map(|(key, value)| Override::new(key, value)).collect();
    overrides.push(Override::new("seed", &seed.to_string()));
    let document = if text.contains('\n') { Document::parse(text, None) } else { Document::load(text) };
    let document = document.and_then(|document| document.with_overrides(&overrides)).expect("known keys");
    document.scenario(&Catalog::default()).expect("a scenario")
}

fn starts_s(point: &Point) -> Vec<f64> {
    point.runs.iter().map(|run| run.window.start_s).collect()
}

#[test]
fn one_warm_up_is_chosen_for_all_replications_whatever_the_order() {
    let changes = [("arrivals.closed.users", "100"), ("arrivals.closed.think_time_s", "20")];
    let few = run_point(&scenario(CHAT, &changes, 3)).unwrap();
    let more = [&changes[..], &[("run.replications", "12")]].concat();
    let at_once = run_point(&scenario(CHAT, &more, 3)).unwrap();
    let extended = few.extended(12).unwrap();
    let starts = starts_s(&extended);
    assert!(starts.iter().all(|start| *start == starts[0]), "{starts:?}");
    assert_eq!(format!("{:?}", extended.runs), format!("{:?}", at_once.runs));
}

/// 128 users who all ask at time 0, and again as soon as they have an answer: their number never changes.
#[test]
fn the_burst_of_a_closed_loop_is_deleted() {
    let changes = [("arrivals.closed.users", "128"), ("arrivals.closed.think_time_s", "0")];
    let of = |warmup: &str| {
        let changes = [&changes[..], &[("run.warmup", warmup)]].concat();
        run_point(&scenario(CHAT, &changes, 1)).unwrap()
    };
    let mean = |point: &Point| estimate(point, Metric::Ttft, |latency| latency.mean_s);
    let (kept, deleted, late) = (mean(&of("0")), mean(&of("auto")), mean(&of("120")));
    assert!(kept.lower() > 1.05 * late.mean, "{kept:?} {late:?}");
    assert!((deleted.mean - late.mean).abs() < deleted.half_width.unwrap(), "{deleted:?} {late:?}");
}

/// 600 users with equal thinking times who all ask at time 0 stay in step for many rounds: more than the
/// tenth that is always deleted.
#[test]
fn a_long_transient_is_deleted() {
    let changes = [
        ("arrivals.closed.users", "600"),
        ("arrivals.closed.think_time_s", "20"),
        ("run.replications", "20"),
    ];
    let point = run_point(&scenario(CHAT, &changes, 1)).unwrap();
    let run = &point.runs[0];
    assert!(run.window.start_s > 0.2 * run.window.run_s, "{:?}", run.window);
}

/// From empty at utilisation 0.95: the relaxation time, 1 / (mu (1 - sqrt(rho))^2), is 156 s.
#[test]
fn the_filling_of_an_empty_queue_is_deleted() {
    let changes = [(RATE, "9.5"), ("run.requests", "20000"), ("run.replications", "40")];
    let point = run_point(&scenario(&queue(1), &changes, 1)).unwrap();
    assert!(starts_s(&point)[0] > 156.0, "{:?}", point.runs[0].window);
}

fn estimate(point: &Point, metric: Metric, of: fn(&Latency) -> f64) -> Estimate {
    let values: Vec<f64> =
        point.runs.iter().map(|run| of(latency_of(&run.all, metric).expect("completed"))).collect();
    Estimate::of(&values).expect("several replications")
}

const STATISTICS: [fn(&Latency) -> f64; 3] =
    [|latency| latency.mean_s, |latency| latency.p95_s, |latency| latency.p99_s];

/// Mean relative error of `points` points, its interval, and the mean half-width of a point, for mean, p95
/// and p99.
fn errors(text: &str, changes: &[(&str, &str)], metric: Metric, truth: [f64; 3], points: u64) {
    let found: Vec<[Estimate; 3]> = (0..points)
        .into_par_iter()
        .map(|seed| {
            let point = run_point(&scenario(text, changes, 1_000 + seed)).expect("it runs");
            STATISTICS.map(|of| estimate(&point, metric, of))
        })
        .collect();
    print!("{:10} {changes:?}, {points} points:", text.lines().next().unwrap_or_default());
    for (at, name) in ["mean", "p95", "p99"].into_iter().enumerate() {
        let relative: Vec<f64> = found.iter().map(|f| 100.0 * (f[at].mean / truth[at] - 1.0)).collect();
        let bias = Estimate::of(&relative).expect("several points");
        let half_width =
            found.iter().map(|f| 100.0 * f[at].half_width.unwrap() / truth[at]).sum::<f64>() / points as f64;
        let covered = found.iter().filter(|f| (f[at].lower()..=f[at].upper()).contains(&truth[at])).count();
        print!(
            "  {name} {:+.2} ±{:.2} % (a point's half-width {half_width:.1} %, covers {:.1} %)",
            bias.mean,
            bias.half_width.unwrap(),
            100.0 * covered as f64 / points as f64
        );
        assert!(bias.mean.abs() < half_width, "{name}: {bias:?} against {half_width}");
    }
    println!();
}

#[test]
#[ignore = "thousands of runs"]
fn automatic_warm_up_biases_neither_means_nor_tails() {
    for servers in [1, 4] {
        for (rho, requests, points) in [(0.5, "10000", 400), (0.8, "10000", 400), (0.95, "200000", 100)] {
            let rate = rho * 10.0 * f64::from(servers);
            let queue_of = Mmc::new(rate, 10.0, servers).unwrap();
            let (p95, p99) = (queue_of.wait_quantile(0.95), queue_of.wait_quantile(0.99));
            let truth = [queue_of.means().wait_s, p95, p99];
            let changes = [(RATE, &*format!("{rate:?}")), ("run.requests", requests)];
            errors(&queue(servers), &changes, Metric::Queue, truth, points);
        }
    }
    let rate = "28.871";
    let queue_of = Mmc::new(28.871, 10.0, 4).unwrap();
    let truth = [queue_of.means().wait_s, queue_of.wait_quantile(0.95), queue_of.wait_quantile(0.99)];
    errors(&queue(4), &[(RATE, rate)], Metric::Queue, truth, 400);
    let closed = [("arrivals.closed.users", "128"), ("arrivals.closed.think_time_s", "0")];
    for changes in [vec![SHORT_INPUT, (RATE, "24")], [&[SHORT_INPUT], &closed[..]].concat()] {
        let long = [("run.requests", "400000"), ("run.replications", "20"), ("run.warmup", "200")];
        let long = run_point(&scenario(CHAT, &[&changes[..], &long].concat(), 999_999)).unwrap();
        let truth = STATISTICS.map(|of| estimate(&long, Metric::Ttft, of).mean);
        errors(CHAT, &changes, Metric::Ttft, truth, 200);
    }
}
