//! A whole run taken apart: drawing the requests, recording their lives, simulating them, and all of it.
//!
//! `cargo bench --bench taken_apart`. Drawing and recording is the floor: what a simulation without a simulator
//! would cost. Per-request figures are in `docs/performance.md`.

use std::path::Path;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};

use knee::catalog::Catalog;
use knee::engine::{Finished, Observer, Rejection, Step};
use knee::experiment::{observe, run_once};
use knee::metrics::Recorder;
use knee::scenario::{Document, RunLength, Scenario};
use knee::units::{SimSpan, SimTime};
use knee::workload::{Request, RequestStream};

const REQUESTS: u64 = 100_000;

/// Nobody watches.
struct Nobody;

impl Observer for Nobody {
    fn sent(&mut self, _: &Request) {}
    fn rejected(&mut self, _: SimTime, _: &Request, _: Rejection) {}
    fn step(&mut self, _: u32, _: &Step<'_>) {}
    fn served(&mut self, _: u32, _: SimTime, _: SimTime, _: u32, _: u32) {}
    fn token_gaps(&mut self, _: SimTime, _: u16, _: SimSpan, _: u32) {}
    fn preempted(&mut self, _: SimTime, _: u32, _: u16) {}
    fn finished(&mut self, _: u32, _: &Finished) {}
}

fn scenario(name: &str) -> Scenario {
    let path = format!("{}/benches/scenarios/{name}.toml", env!("CARGO_MANIFEST_DIR"));
    let catalog = Catalog::new(Some(Path::new(env!("CARGO_MANIFEST_DIR")).join("calibration").as_path()));
    let document = Document::load(&path).expect("a scenario file");
    let mut scenario = document.scenario(&catalog).expect("a valid scenario");
    scenario.run.length = RunLength::Requests(REQUESTS);
    scenario
}

fn recorder(scenario: &Scenario) -> Recorder {
    Recorder::new(scenario.workload.classes.iter().map(|class| &class.slo))
}

/// Every request completes, alone, 20 ms + 10 ms per token after it was sent.
fn live(requests: impl Iterator<Item = Request>, observer: &mut impl Observer) {
    for request in requests {
        observer.sent(&request);
        let first_token = request.send + SimSpan::from_nanos(20_000_000 + request.index % 1_000);
        let decode = SimSpan::from_nanos(u64::from(request.output_tokens) * 10_000_000);
        observer.finished(
            0,
            &Finished {
                request,
                scheduled: request.send,
                first_token,
                done: first_token + decode,
                preemptions: 0,
            },
        );
    }
}

fn taken_apart(criterion: &mut Criterion) {
    for name in ["chat-30", "chat-10", "closed-128"] {
        let scenario = scenario(name);
        let mut group = criterion.benchmark_group(name);
        group.sample_size(10).throughput(Throughput::Elements(REQUESTS));
        // A closed loop's requests are drawn on demand: its streams are the same.
        let draw = || {
            let mut stream = RequestStream::new(&scenario.workload, 1, 0);
            let closed = stream.closed_users().is_some();
            (0..REQUESTS).filter_map(move |at| {
                if closed { Some(stream.draw(SimTime::from_nanos(at * 33_000_000))) } else { stream.next() }
            })
        };
        group.bench_function("draw", |bencher| bencher.iter(|| draw().map(|r| r.output_tokens).max()));
        group.bench_function("draw and record", |bencher| {
            let new = || recorder(&scenario);
            bencher.iter_batched_ref(new, |recorder| live(draw(), recorder), BatchSize::PerIteration);
        });
        group.bench_function("draw and simulate", |bencher| {
            bencher.iter(|| observe(&scenario, 0, &mut Nobody));
        });
        group.bench_function("all", |bencher| bencher.iter(|| run_once(&scenario, 0)));
    }
}

criterion_group!(whole, taken_apart);
criterion_main!(whole);
