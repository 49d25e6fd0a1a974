//! Results as a simulation would make them, from formulas: a server that sustains 22 requests per second.

use knee::catalog::Catalog;
use knee::cost::StepShape;
use knee::experiment::{
    Combination, CurveReading, Estimate, Knee, Point, SloCapacity, SloVerdict, Stability, StabilityLimit,
    SweepResult, Verdict,
};
use knee::metrics::{
    Course, Group, Latency, ObjectiveValue, ReplicaSummary, RunMode, RunSummary, StabilityEvidence,
    TimelineBin, Totals, Window,
};
use knee::scenario::{AxisValue, Document, Override, Scenario};
use knee::workload::{Metric, Statistic};

pub const SUSTAINED_PER_S: f64 = 22.0;
const INPUT_TOKENS: u64 = 512;
const OUTPUT_TOKENS: u64 = 150;
const REPLICATIONS: usize = 5;

const SCENARIO: &str = r#"
name = "chat on one H100"
[model]
name = "llama-3.1-8b"
[hardware]
gpu = "h100-sxm"
[engine]
name = "vllm"
version = "0.23"
max_num_seqs = 256
[arrivals.poisson]
rate_per_s = 12.0
[[class]]
name = "chat"
input_tokens = { constant = 512 }
output_tokens = { constant = 150 }
slo = { ttft_p99_ms = 500, tpot_p99_ms = 50 }
[run]
requests = 10000
replications = 5
[cost]
gpu_hour_usd = 2.50
"#;

pub fn scenario(rate_per_s: f64, mode: RunMode) -> Scenario {
    let rate = AxisValue::Float(rate_per_s);
    let mode = AxisValue::Text(if mode == RunMode::Steady { "steady" } else { "benchmark" }.into());
    let changes = [Override::point("arrivals.poisson.rate_per_s", &rate), Override::point("run.mode", &mode)];
    let document = Document::parse(SCENARIO, None).expect("TOML");
    let document = document.with_overrides(&changes).expect("known keys");
    document.scenario(&Catalog::default()).expect("a scenario")
}

fn latency(mean_s: f64, p99_s: f64) -> Latency {
    Latency {
        count: 9000,
        mean_s,
        std_s: mean_s / 2.0,
        min_s: mean_s / 4.0,
        p50_s: mean_s * 0.93,
        p90_s: f64::midpoint(mean_s, p99_s),
        p95_s: p99_s * 0.8,
        p99_s,
        max_s: p99_s * 1.7,
        exact: true,
    }
}

fn group(name: &str, offered_per_s: f64, wobble: f64) -> Group {
    let load = (offered_per_s / SUSTAINED_PER_S).min(0.995);
    let completed = offered_per_s.min(SUSTAINED_PER_S) * wobble;
    let wait = 0.011 * load * load / (1.0 - load) * wobble;
    let tpot = (0.0078 + 0.022 * load * load) * wobble;
    let ttft = 0.024 + wait;
    let end_to_end = ttft + tpot * (OUTPUT_TOKENS - 1) as f64;
    let ttft_p99 = 0.048 + 5.0 * wait;
    let good = if offered_per_s > SUSTAINED_PER_S { 0.04 } else { 1.0 - (load - 0.88).max(0.0) * 0.9 };
    Group {
        name: name.into(),
        offered: (offered_per_s * 500.0) as u64,
        completed: (completed * 500.0) as u64,
        rejected: 0,
        offered_per_s: offered_per_s * wobble,
        completed_per_s: completed,
        input_tokens: (completed * 500.0) as u64 * INPUT_TOKENS,
        output_tokens: (completed * 500.0) as u64 * OUTPUT_TOKENS,
        input_tokens_per_s: completed * INPUT_TOKENS as f64,
        output_tokens_per_s: completed * OUTPUT_TOKENS as f64,
        good_per_s: Some(completed * good),
        good_fraction: Some(good),
        latency: [
            Some(latency(ttft, ttft_p99)),
            Some(latency(tpot, tpot * 1.3)),
            Some(latency(tpot, tpot * 3.1)),
            Some(latency(end_to_end, end_to_end * 1.25)),
            Some(latency(end_to_end / OUTPUT_TOKENS as f64, end_to_end / OUTPUT_TOKENS as f64 * 1.25)),
            Some(latency(wait, 5.0 * wait)),
        ],
        objectives: scenario(1.0, RunMode::Steady).workload.classes[0]
            .slo
            .objectives
            .iter()
            .map(|objective| ObjectiveValue { objective: *objective, value_s: Some(ttft_p99) })
            .collect(),
        attainment: None,
    }
}

fn timeline(offered_per_s: f64, in_flight: f64) -> Vec<TimelineBin> {
    let growth = (offered_per_s - SUSTAINED_PER_S).max(0.0);
    (0..120)
        .map(|bin| {
            let start_s = f64::from(bin) * 4.4;
            let ripple = 1.0 + 0.25 * (start_s * 0.37).sin() * (start_s * 0.051).cos();
            let ramp = (start_s / 20.0).min(1.0) * if start_s > 510.0 { 0.3 } else { 1.0 };
            let total = (in_flight * ripple + growth * start_s) * ramp;
            let running = total.min(256.0);
            TimelineBin {
                start_s,
                span_s: 4.4,
                in_flight: total,
                running,
                waiting: total - running,
                kv_use: (total * 0.0019).min(1.0),
                completed_per_s: offered_per_s.min(SUSTAINED_PER_S),
            }
        })
        .collect()
}

fn run_summary(offered_per_s: f64, replication: usize, mode: RunMode) -> RunSummary {
    let wobble = 1.0 + 0.006 * (replication as f64 - 2.0);
    let all = group("all", offered_per_s, wobble);
    let end_to_end = all.latency[Metric::E2e.index()].map_or(0.0, |latency| latency.mean_s);
    let in_flight = all.completed_per_s * end_to_end;
    let completed = all.completed;
    let start_s = if mode == RunMode::Steady { 20.0 } else { 0.0 };
    RunSummary {
        window: Window { mode, start_s, end_s: start_s + 500.0, run_s: 528.0, settled: true },
        totals: Totals {
            offered: all.offered,
            admitted: all.offered,
            completed,
            in_flight_at_end: all.offered - completed.min(all.offered),
            ..Totals::default()
        },
        classes: vec![group("chat", offered_per_s, wobble)],
        in_flight: Some(in_flight * 1.1),
        replicas: vec![ReplicaSummary {
            completed,
            output_tokens: completed * 150,
            busy: (offered_per_s / SUSTAINED_PER_S).min(1.0),
            running: in_flight,
            waiting: in_flight * 0.1,
            in_flight: in_flight * 1.1,
            kv_use: (in_flight * 0.0019).min(1.0),
            kv_use_max: (in_flight * 0.003).min(1.0),
            preemptions: 0,
            steps: 40_000,
            mean_step: StepShape {
                tokens: (offered_per_s * 8.2) as u32,
                sequences: in_flight as u32,
                sampled: in_flight as u32,
                decode_context: (in_flight * 587.0) as u64,
                ..StepShape::default()
            },
        }],
        timeline: timeline(offered_per_s, in_flight),
        evidence: StabilityEvidence::default(),
        course: Course::default(),
        all,
    }
}

pub fn point(rate_per_s: f64, mode: RunMode) -> Point {
    let growth = rate_per_s - SUSTAINED_PER_S;
    let verdict = if growth > 0.0 { Verdict::Unstable } else { Verdict::Stable };
    let growth_per_s = Estimate { mean: growth.max(0.02), half_width: Some(0.06) };
    let slo = match verdict {
        Verdict::Unstable => SloVerdict::Unstable,
        _ if rate_per_s < 19.5 => SloVerdict::Met,
        _ => SloVerdict::Missed { binding: "chat: TTFT p99 is 612 ms, the objective 500 ms".into() },
    };
    Point {
        coordinates: vec![AxisValue::Float(rate_per_s)],
        scenario: scenario(rate_per_s, mode),
        runs: (0..REPLICATIONS).map(|replication| run_summary(rate_per_s, replication, mode)).collect(),
        stability: Stability {
            verdict,
            growth_per_s: Some(growth_per_s),
            reason: "completed 99.9 % of what was offered".into(),
        },
        slo,
    }
}

/// A curve from 2 to 28 req/s.
pub fn sweep() -> SweepResult {
    let points: Vec<Point> = (1..=14).map(|step| point(f64::from(step) * 2.0, RunMode::Steady)).collect();
    SweepResult {
        base: scenario(12.0, RunMode::Steady),
        axes: vec!["arrivals.poisson.rate_per_s".into()],
        points,
        unfit: Vec::new(),
        combinations: Vec::new(),
        reached: Vec::new(),
        journal: None,
        reading: Some(CurveReading {
            load_unit: "req/s",
            capacity: Some(SloCapacity {
                guaranteed: Some(18.0),
                first_failing: Some(20.0),
                estimate: Some(Estimate { mean: 19.34, half_width: Some(0.31) }),
                doubt: None,
                binding: Some("chat: TTFT p99 is 612 ms, the objective 500 ms".into()),
            }),
            stability_limit: Some(StabilityLimit {
                last_stable: Some(22.0),
                first_unstable: Some(24.0),
                saturated_per_s: Estimate { mean: 22.03, half_width: Some(0.11) },
                binding: "compute in prefill".into(),
            }),
            knee: Some(Knee {
                load: 16.0,
                from: 2.0,
                to: 22.0,
                metric: Metric::Ttft,
                statistic: Statistic::Quantile(0.99),
            }),
        }),
    }
}

/// A grid that is no curve: rate x sequence slots.
pub fn grid() -> SweepResult {
    let mut result = sweep();
    result.axes.push("engine.max_num_seqs".into());
    for (position, point) in result.points.iter_mut().enumerate() {
        point.coordinates.push(AxisValue::Integer(if position % 2 == 0 { 64 } else { 256 }));
    }
    result.reading = None;
    result
}

fn changed(key: &str, value: &AxisValue, text: &str) -> Scenario {
    let document = Document::parse(text, None).expect("TOML");
    let document = document.with_overrides(&[Override::point(key, value)]).expect("a known key");
    document.scenario(&Catalog::default()).expect("a scenario")
}

/// One load axis and one of replicas: two curves.
pub fn fleet() -> SweepResult {
    let mut result = sweep();
    let reading = result.reading.take().expect("a curve");
    result.axes.push("deployment.replicas".into());
    let one = std::mem::take(&mut result.points);
    for replicas in [1, 2] {
        let value = AxisValue::Integer(replicas);
        result.combinations.push(Combination { others: vec![value.clone()], reading: reading.clone() });
        for point in &one {
            let mut point = point.clone();
            point.coordinates.push(value.clone());
            point.scenario = changed("deployment.replicas", &value, SCENARIO);
            result.points.push(point);
        }
    }
    result
}

/// A curve of two classes, the second with three times the latency of the first.
pub fn two_classes() -> SweepResult {
    let second = "[[class]]\nname = \"summary\"\ninput_tokens = { constant = 4000 }\n\
                  output_tokens = { constant = 150 }\nslo = { e2e_p99_ms = 60000 }\n[run]";
    let text = SCENARIO.replace("[run]", second).replace("\ninput_tokens", "\nshare = 0.5\ninput_tokens");
    let mut result = sweep();
    for point in &mut result.points {
        point.scenario = changed("arrivals.poisson.rate_per_s", &point.coordinates[0], &text);
        for run in &mut point.runs {
            let mut group = run.classes[0].clone();
            group.name = "summary".into();
            for latency in group.latency.iter_mut().flatten() {
                latency.p50_s *= 3.0;
                latency.p99_s *= 3.0;
            }
            run.classes.push(group);
        }
    }
    result.base = result.points[0].scenario.clone();
    result
}

/// All requests at once, on one GPU.
pub fn batch() -> Point {
    let text = SCENARIO
        .replace("[arrivals.poisson]\nrate_per_s = 12.0", "[arrivals.all_at_once]")
        .replace("slo = { ttft_p99_ms = 500, tpot_p99_ms = 50 }", "");
    let mut point = point(12.0, RunMode::Benchmark);
    point.scenario = changed("run.mode", &AxisValue::Text("benchmark".into()), &text);
    point.coordinates = vec![AxisValue::Integer(256)];
    point.stability.verdict = Verdict::Undecided;
    point.stability.reason = "all at once: a finite batch has no steady state".into();
    point.slo = SloVerdict::NoObjectives;
    point
}
