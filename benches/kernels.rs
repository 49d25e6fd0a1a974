//! The inner loops one by one: event queue, samplers, sketches, and the batcher's step.
//!
//! `cargo bench --bench kernels`; what the figures add up to is in `docs/performance.md`.

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};

use knee::cost::StepCost;
use knee::des::{EventQueue, Least};
use knee::engine::{
    BatcherConfig, Batching, Client, Finished, LlmServer, Observer, Rejection, RouterPolicy, RunUntil,
    SchedulingPolicy, Server, Step, System, run,
};
use knee::kv::KvSpec;
use knee::rng::{Purpose, stream};
use knee::stats::Sketch;
use knee::units::{SimSpan, SimTime, Tokens};
use knee::workload::{Distribution, Request};

/// Takes the earliest event and schedules its successor, with as many others in the queue as replicas.
fn event_queue(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("event queue: pop and push");
    for pending in [1_u64, 10, 1_000, 100_000] {
        let mut queue = EventQueue::new();
        let mut gaps = stream(1, Purpose::ArrivalGap, 0);
        for event in 0..pending {
            queue.push(SimTime::from_nanos(event * 7_919 % 10_000_000), event as u32);
        }
        group.bench_function(BenchmarkId::from_parameter(pending), |bencher| {
            bencher.iter(|| {
                let (now, event) = queue.pop().expect("never empty");
                let step = SimSpan::from_nanos(8_000_000 + (gaps.uniform() * 4e6) as u64);
                queue.push(now + step, event);
            });
        });
    }
}

/// Takes the thing with the least time and gives it a later one, among as many as there are replicas.
fn least(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("least time: take and change");
    for count in [1_u32, 10, 1_000, 100_000] {
        let mut least = Least::new(count, SimTime::ZERO, SimTime::MAX);
        let mut gaps = stream(1, Purpose::ArrivalGap, 0);
        group.bench_function(BenchmarkId::from_parameter(count), |bencher| {
            bencher.iter(|| {
                let (now, index) = least.least();
                least.set(index, now + SimSpan::from_nanos(8_000_000 + (gaps.uniform() * 4e6) as u64));
            });
        });
    }
}

fn samplers(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("one token length");
    let lognormal = Distribution::lognormal(512.0, 4096.0, 1e9).expect("a lognormal");
    let quantiles = vec![(0.0, 1.0), (0.5, 300.0), (0.9, 900.0), (1.0, 8000.0)];
    for (name, distribution) in [
        ("constant", Distribution::Constant { value: 512.0 }),
        ("uniform", Distribution::Uniform { min: 1.0, max: 1024.0 }),
        ("exponential", Distribution::Exponential { mean: 512.0 }),
        ("normal", Distribution::Normal { mean: 512.0, std: 100.0, min: 1.0, max: 8192.0 }),
        ("lognormal", lognormal),
        ("gamma", Distribution::Gamma { mean: 512.0, cv: 0.5 }),
        ("zipf", Distribution::zipf(1000, 1.1)),
        ("empirical", Distribution::Empirical { quantiles: quantiles.into() }),
    ] {
        let mut lengths = stream(1, Purpose::InputLength, 0);
        group.bench_function(name, |bencher| bencher.iter(|| distribution.sample_tokens(&mut lengths)));
    }
}

fn sketches(criterion: &mut Criterion) {
    let latencies: Vec<u64> = {
        let distribution = Distribution::lognormal(4e7, 3e8, 1e12).expect("a lognormal");
        let mut values = stream(1, Purpose::Service, 0);
        (0..100_000).map(|_| distribution.sample(&mut values) as u64).collect()
    };
    let mut group = criterion.benchmark_group("sketch");
    for (name, values) in [("record, exact", &latencies[..1_000]), ("record, histogram", &latencies[..])] {
        group.throughput(Throughput::Elements(values.len() as u64));
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                let mut sketch = Sketch::new();
                values.iter().for_each(|&nanos| sketch.record(nanos));
                sketch
            });
        });
    }
    let mut parts = vec![Sketch::new(); 64];
    for (part, values) in parts.iter_mut().zip(latencies.chunks(1_500)) {
        values.iter().for_each(|&nanos| part.record(nanos));
    }
    group.throughput(Throughput::Elements(64));
    group.bench_function("merge of 64 histograms", |bencher| bencher.iter(|| Sketch::merged(&parts)));
    let union = Sketch::merged(&parts);
    group.throughput(Throughput::Elements(1));
    group.bench_function("quantile", |bencher| bencher.iter(|| union.quantile(black_box(0.99))));
}

/// Counts steps and looks at nothing else.
#[derive(Default)]
struct Counter {
    steps: u64,
}

impl Observer for Counter {
    fn sent(&mut self, _: &Request) {}
    fn rejected(&mut self, _: SimTime, _: &Request, _: Rejection) {}
    fn step(&mut self, _: u32, _: &Step<'_>) {
        self.steps += 1;
    }
    fn served(&mut self, _: u32, _: SimTime, _: SimTime, _: u32, _: u32) {}
    fn token_gaps(&mut self, _: SimTime, _: u16, _: SimSpan, _: u32) {}
    fn preempted(&mut self, _: SimTime, _: u32, _: u16) {}
    fn finished(&mut self, _: u32, _: &Finished) {}
}

/// A closed loop without thinking, whose request i has `output / 2 + i % output` tokens.
struct Users {
    users: u32,
    output: Tokens,
    sent: u64,
}

impl Client for Users {
    fn next_request(&mut self) -> Option<Request> {
        None
    }
    fn users(&self) -> Option<u32> {
        Some(self.users)
    }
    fn request_at(&mut self, send: SimTime) -> Request {
        let index = self.sent;
        self.sent += 1;
        let output_tokens = self.output / 2 + (index % u64::from(self.output)) as Tokens;
        Request { index, send, input_tokens: 100, output_tokens, class: 0 }
    }
    fn think_time(&mut self, _: &Request) -> SimSpan {
        SimSpan::ZERO
    }
}

fn one_replica(blocks: u32) -> System {
    System {
        replicas: 1,
        router: RouterPolicy::RoundRobin,
        server: Server::Llm(Box::new(LlmServer {
            batcher: BatcherConfig {
                batching: Batching::Continuous,
                max_num_seqs: 1024,
                max_num_batched_tokens: 8192,
                max_model_len: 1 << 20,
                enable_chunked_prefill: true,
                full_prompt_gate: false,
                watermark_blocks: 0,
                scheduling_policy: SchedulingPolicy::Fcfs,
                async_scheduling: true,
                batch_wait: None,
                class_priority: vec![0],
            },
            kv: KvSpec { block_size: 16, blocks, state_blocks: 0, window: 0, window_blocks_per_token: 0.0 },
            cost: StepCost::affine(8e-3, 1e-5),
            front_end: SimSpan::ZERO,
            pipeline: None,
            speculation: None,
            data_parallel: None,
        })),
    }
}

/// Whole runs by the number of their steps: outputs so long that almost every step only decodes, and so
/// short that almost every step also ends and starts requests.
fn batcher_steps(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("batcher step");
    group.sample_size(20);
    for (name, output, requests_per_user) in [("long outputs", 4_000, 4), ("short outputs", 8, 100)] {
        for users in [1, 8, 64, 512] {
            let system = one_replica(1 << 30);
            let go = || {
                let until = RunUntil {
                    requests: u64::from(users) * requests_per_user,
                    time: SimTime::MAX,
                    drain: true,
                };
                let mut counter = Counter::default();
                let mut client = Users { users, output, sent: 0 };
                run(&system, &mut client, until, 1, 0, &mut counter).expect("a valid run");
                counter.steps
            };
            group.throughput(Throughput::Elements(go()));
            group.bench_function(BenchmarkId::new(name, users), |bencher| bencher.iter(go));
        }
    }
}

criterion_group!(kernels, event_queue, least, samplers, sketches, batcher_steps);
criterion_main!(kernels);
