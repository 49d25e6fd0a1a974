//! The engine against an independent, naive one: invariant "equality with the naive engine".

mod naive;

use std::path::Path;
use std::sync::Arc;

use knee::catalog::{Catalog, Dtype};
use knee::cost::{Pipeline, StepCost};
use knee::engine::{
    Batching, Client, DataParallel, Finished, Observer, RankPolicy, Rejection, RouterPolicy, RunUntil,
    Server, Speculation, Step, System, run,
};
use knee::units::{SimSpan, SimTime, Tokens};
use knee::workload::{Arrivals, Request, RequestStream, Trace, TraceFormat, Workload};
use naive::fleet::{self, FleetOutcome};
use naive::{Load, Outcome, Record, SEED, Scenario, StepRecord, affine_costs};

/// Fills an [`Outcome`] from what the engine tells of all replicas together.
#[derive(Default)]
struct Recorder {
    outcome: Outcome,
}

/// Fills a [`FleetOutcome`].
struct FleetRecorder {
    replicas: Vec<Recorder>,
    outcome: FleetOutcome,
}

impl Observer for FleetRecorder {
    fn sent(&mut self, _: &Request) {}
    fn rejected(&mut self, _: SimTime, request: &Request, _: Rejection) {
        self.outcome.rejected.push(request.index);
    }
    fn step(&mut self, replica: u32, step: &Step<'_>) {
        self.replicas[replica as usize].step(replica, step);
    }
    fn served(&mut self, _: u32, _: SimTime, _: SimTime, _: u32, _: u32) {}
    fn token_gaps(&mut self, now: SimTime, class: u16, gap: SimSpan, count: u32) {
        self.replicas[0].token_gaps(now, class, gap, count);
    }
    fn preempted(&mut self, now: SimTime, replica: u32, class: u16) {
        self.replicas[replica as usize].preempted(now, replica, class);
    }
    fn finished(&mut self, replica: u32, life: &Finished) {
        let recorder = &mut self.replicas[replica as usize];
        recorder.finished(replica, life);
        let record = *recorder.outcome.finished.last().expect("just recorded");
        self.outcome.finished.push((replica as usize, record));
    }
}

impl Observer for Recorder {
    fn sent(&mut self, _: &Request) {}
    fn rejected(&mut self, _: SimTime, request: &Request, _: Rejection) {
        self.outcome.rejected.push(request.index);
    }
    fn step(&mut self, _: u32, step: &Step<'_>) {
        self.outcome.steps.push(StepRecord {
            start: step.start,
            end: step.end,
            shape: *step.shape,
            prefill_tokens: step.prefill_tokens,
            emitted: step.emitted,
            running: step.running,
            waiting: step.waiting,
            blocks_used: step.blocks_used,
        });
        let steady: u32 = step.steady_decodes.iter().sum();
        let gap = step.end.since(step.start).as_nanos();
        self.outcome.gaps_ns.extend((0..steady).map(|_| gap));
    }
    fn served(&mut self, _: u32, _: SimTime, _: SimTime, _: u32, _: u32) {}
    fn token_gaps(&mut self, _: SimTime, _: u16, gap: SimSpan, count: u32) {
        self.outcome.gaps_ns.extend((0..count).map(|_| gap.as_nanos()));
    }
    fn preempted(&mut self, _: SimTime, _: u32, _: u16) {
        self.outcome.preemptions += 1;
    }
    fn finished(&mut self, _: u32, life: &Finished) {
        self.outcome.finished.push(Record {
            index: life.request.index,
            send: life.request.send,
            scheduled: life.scheduled,
            first_token: life.first_token,
            done: life.done,
            preemptions: life.preemptions,
        });
    }
}

/// Plays a [`Load`].
struct Player {
    open: std::vec::IntoIter<Request>,
    users: Option<u32>,
    think: Vec<SimSpan>,
    requests: Vec<(Tokens, Tokens, u16)>,
    sent: u64,
}

impl Client for Player {
    fn next_request(&mut self) -> Option<Request> {
        self.open.next()
    }
    fn users(&self) -> Option<u32> {
        self.users
    }
    fn request_at(&mut self, send: SimTime) -> Request {
        let index = self.sent;
        self.sent += 1;
        let (input_tokens, output_tokens, class) = self.requests[index as usize % self.requests.len()];
        Request { index, send, input_tokens, output_tokens, class }
    }
    fn think_time(&mut self, request: &Request) -> SimSpan {
        self.think[request.index as usize % self.think.len()]
    }
}

fn run_fast(scenario: &Scenario) -> Outcome {
    let mut recorder = Recorder::default();
    let end = play(scenario, 1, RouterPolicy::RoundRobin, &mut recorder);
    recorder.outcome.end = end;
    recorder.outcome.gaps_ns.sort_unstable();
    recorder.outcome
}

fn run_fleet(scenario: &Scenario, replicas: u32, router: RouterPolicy) -> FleetOutcome {
    let recorders = (0..replicas).map(|_| Recorder::default()).collect();
    let mut recorder = FleetRecorder { replicas: recorders, outcome: FleetOutcome::default() };
    play(scenario, replicas, router, &mut recorder);
    let mut outcome = recorder.outcome;
    for replica in recorder.replicas {
        let mut own = replica.outcome;
        outcome.gaps_ns.append(&mut own.gaps_ns);
        outcome.engines.push(own);
    }
    outcome.gaps_ns.sort_unstable();
    outcome
}

/// Plays the scenario's load; returns when the run ended.
fn play(scenario: &Scenario, replicas: u32, router: RouterPolicy, observer: &mut impl Observer) -> SimTime {
    match scenario.load.clone() {
        Load::Open(requests) => {
            let total = requests.len() as u64;
            let open = requests.into_iter();
            let mut player = Player { open, users: None, think: vec![], requests: vec![], sent: 0 };
            run_under(scenario, replicas, router, &mut player, total, observer)
        }
        Load::Closed { users, think, requests, total } => {
            let open = vec![].into_iter();
            let mut player = Player { open, users: Some(users), think, requests, sent: 0 };
            run_under(scenario, replicas, router, &mut player, total, observer)
        }
    }
}

fn run_under(
    scenario: &Scenario,
    replicas: u32,
    router: RouterPolicy,
    client: &mut impl Client,
    requests: u64,
    observer: &mut impl Observer,
) -> SimTime {
    let system = System { replicas, router, server: Server::Llm(Box::new(scenario.server.clone())) };
    let until = RunUntil { requests, time: SimTime::MAX, drain: true };
    run(&system, client, until, SEED, 0, observer).expect("the clock suffices").time
}

/// A real model with a sliding window of 128 tokens in every other layer.
fn windowed_cost() -> StepCost {
    let catalog = Catalog::new(None);
    let hardware = catalog.hardware("h100-sxm").expect("in the catalog");
    let (model, _) = catalog.model("gpt-oss-20b", Path::new(".")).expect("in the catalog");
    let profile =
        catalog.profile("auto", &hardware, "vllm", None, Dtype::Bf16, Path::new(".")).expect("a profile");
    StepCost::new(&model, Dtype::Bf16, Dtype::Bf16, &hardware, &profile.values[0], 1, 8192)
}

/// Same lives, refusals, preemptions, steps and gaps to the nanosecond; the seed in the message replays it.
#[test]
fn naive_equals_fast() {
    let mut costs = affine_costs();
    costs.push(windowed_cost());
    costs.push(StepCost::affine(1e-3, 1e-3).with_throttle(0.3));
    costs.push(windowed_cost().with_throttle(0.15));
    for seed in 0..seeds(3_000) {
        let scenario = Scenario::random(seed, &costs);
        assert_equal(seed, &scenario, &run_fast(&scenario));
    }
}

/// The same where outputs are so long that steps come in long stretches in which nothing else happens,
/// and completions lie further ahead than the engine's calendar of them is long.
#[test]
fn naive_equals_fast_over_long_outputs() {
    let mut costs = affine_costs();
    costs.push(windowed_cost());
    costs.push(StepCost::affine(5.3e-3, 210e-6).with_throttle(0.5));
    costs.push(windowed_cost().with_throttle(0.15));
    for seed in 0..seeds(150) {
        let scenario = Scenario::random_long(seed, &costs);
        assert_equal(seed, &scenario, &run_fast(&scenario));
    }
}

/// The same where prompts wait for a larger batch.
#[test]
fn naive_equals_fast_with_batch_wait() {
    let mut costs = affine_costs();
    costs.push(windowed_cost());
    costs.push(StepCost::affine(1e-3, 1e-3).with_throttle(0.3));
    for seed in 0..seeds(2_000) {
        let scenario = Scenario::random_batch_wait(seed, &costs);
        assert_equal(seed, &scenario, &run_fast(&scenario));
    }
}

/// The same through pipeline stages and with speculation.
#[test]
fn naive_equals_staged() {
    let mut costs = affine_costs();
    costs.push(windowed_cost());
    costs.push(StepCost::affine(1e-3, 1e-3).with_throttle(0.3));
    costs.push(windowed_cost().with_throttle(0.15));
    for seed in 0..seeds(3_000) {
        let scenario = Scenario::random_staged(seed, &costs);
        assert_equal(seed, &scenario, &run_fast(&scenario));
    }
}

/// The same with data-parallel ranks.
#[test]
fn naive_equals_ranks() {
    let mut costs = affine_costs();
    costs.push(windowed_cost());
    costs.push(StepCost::affine(1e-3, 1e-3).with_throttle(0.3));
    costs.push(windowed_cost().with_throttle(0.15));
    for seed in 0..seeds(3_000) {
        let scenario = Scenario::random_ranks(seed, &costs);
        assert_equal(seed, &scenario, &run_fast(&scenario));
    }
}

/// The same where prompts of one rank wait for those of the others.
#[test]
fn naive_equals_ranks_with_balance() {
    let mut costs = affine_costs();
    costs.push(windowed_cost());
    costs.push(StepCost::affine(1e-3, 1e-3).with_throttle(0.3));
    for seed in 0..seeds(2_000) {
        let scenario = Scenario::random_balance(seed, &costs);
        assert_equal(seed, &scenario, &run_fast(&scenario));
    }
}

/// One stage is no pipeline, and no drafts are no speculation: both engines of the product agree.
#[test]
fn staged_equals_fast() {
    let mut costs = affine_costs();
    costs.push(StepCost::affine(1e-3, 1e-3).with_throttle(0.3));
    for seed in 0..seeds(1_000) {
        let mut scenario = Scenario::random(seed, &costs);
        if scenario.server.batcher.batching != Batching::Continuous {
            continue;
        }
        let fast = run_fast(&scenario);
        if scenario.server.batcher.async_scheduling {
            scenario.server.speculation = Some(Speculation::new(0, 1.0, 0, None));
        } else {
            scenario.server.pipeline = Some(Pipeline::from_parts(vec![1], 0.0, 0.0));
        }
        assert_eq!(run_fast(&scenario), fast, "seed {seed}: {scenario:?}");
    }
}

/// One rank is no data parallelism, alone or in a fleet: both engines of the product agree.
#[test]
fn one_rank_equals_none() {
    let mut costs = affine_costs();
    costs.push(StepCost::affine(1e-3, 1e-3).with_throttle(0.3));
    for seed in 0..seeds(1_000) {
        let mut scenario = Scenario::random(seed, &costs);
        if scenario.server.batcher.batching == Batching::Static {
            continue;
        }
        let (one, router) = (run_fast(&scenario), RouterPolicy::LeastOutstanding);
        let fleet = run_fleet(&scenario, 3, router);
        scenario.server.data_parallel =
            Some(DataParallel { ranks: 1, policy: RankPolicy::WaitingAndRunning, balance: None });
        assert_eq!(run_fast(&scenario), one, "seed {seed}: {scenario:?}");
        assert!(run_fleet(&scenario, 3, router) == fleet, "seed {seed}: {scenario:?}");
    }
}

/// The same for fleets: each replica's steps, and the order in which requests complete over all of them.
#[test]
fn naive_fleet_equals_fast() {
    let mut costs = affine_costs();
    costs.push(windowed_cost());
    costs.push(windowed_cost().with_throttle(0.15));
    for seed in 0..seeds(300) {
        let scenario = match seed % 10 {
            9 => Scenario::random_long(seed, &costs),
            6..9 => Scenario::random_staged(seed, &costs),
            4..6 => Scenario::random_batch_wait(seed, &costs),
            _ => Scenario::random(seed, &costs),
        };
        let replicas = 2 + (seed % 3) as u32;
        for router in [RouterPolicy::RoundRobin, RouterPolicy::LeastOutstanding] {
            let fast = run_fleet(&scenario, replicas, router);
            let naive = fleet::simulate(&scenario, replicas as usize, router);
            let about = || format!("seed {seed}, {replicas} replicas, {router:?}: {scenario:?}");
            assert_eq!(fast.finished, naive.finished, "{}", about());
            assert!(fast == naive, "{}", about());
        }
    }
}

/// The same with the open loads as recorded traces, replayed by the product's own client.
#[test]
fn naive_equals_fast_under_a_trace() {
    let costs = affine_costs();
    for seed in 0..seeds(300) {
        let scenario = Scenario::random(seed, &costs);
        let Load::Open(requests) = scenario.load.clone() else {
            continue;
        };
        let total = requests.len() as u64;
        let trace = Trace {
            name: "recorded".to_owned(),
            format: TraceFormat::Knee,
            requests,
            class_names: vec![],
            notes: vec![],
        };
        let workload = Workload { arrivals: Arrivals::Trace(Arc::new(trace)), classes: vec![] };
        let mut stream = RequestStream::new(&Arc::new(workload), seed, 0);
        let mut recorder = Recorder::default();
        let end = run_under(&scenario, 1, RouterPolicy::RoundRobin, &mut stream, total, &mut recorder);
        recorder.outcome.end = end;
        recorder.outcome.gaps_ns.sort_unstable();
        assert_equal(seed, &scenario, &recorder.outcome);
    }
}

/// How many scenarios to compare on; `KNEE_SEEDS` for a longer search.
fn seeds(usual: u64) -> u64 {
    std::env::var("KNEE_SEEDS").ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(usual)
}

fn assert_equal(seed: u64, scenario: &Scenario, fast: &Outcome) {
    let naive = &scenario.simulate();
    if fast == naive {
        return;
    }
    for (at, (fast, naive)) in fast.steps.iter().zip(&naive.steps).enumerate() {
        assert_eq!(fast, naive, "seed {seed}, step {at}: {scenario:?}");
    }
    assert_eq!(fast.finished, naive.finished, "seed {seed}: {scenario:?}");
    assert_eq!(fast, naive, "seed {seed}: {scenario:?}");
}
