//! The engine against an independent, naive one: invariant "equality with the naive engine".

mod naive;

use std::path::Path;

use knee::catalog::{Catalog, Dtype};
use knee::cost::StepCost;
use knee::engine::{
    Client, Finished, LlmServer, Observer, Rejection, RouterPolicy, RunUntil, Server, Step, System, run,
};
use knee::units::{SimSpan, SimTime, Tokens};
use knee::workload::Request;
use naive::{Load, Outcome, Record, Scenario, StepRecord, affine_costs};

/// Fills an [`Outcome`] from what the engine tells.
#[derive(Default)]
struct Recorder {
    outcome: Outcome,
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
    let (mut player, requests) = match scenario.load.clone() {
        Load::Open(requests) => {
            let total = requests.len() as u64;
            let open = requests.into_iter();
            (Player { open, users: None, think: vec![], requests: vec![], sent: 0 }, total)
        }
        Load::Closed { users, think, requests, total } => {
            (Player { open: vec![].into_iter(), users: Some(users), think, requests, sent: 0 }, total)
        }
    };
    let system = System {
        replicas: 1,
        router: RouterPolicy::RoundRobin,
        server: Server::Llm(Box::new(LlmServer {
            batcher: scenario.batcher.clone(),
            kv: scenario.kv,
            cost: scenario.cost.clone(),
            front_end: scenario.front_end,
        })),
    };
    let until = RunUntil { requests, time: SimTime::MAX, drain: true };
    let mut recorder = Recorder::default();
    let end = run(&system, &mut player, until, 1, 0, &mut recorder).expect("the clock suffices");
    recorder.outcome.end = end.time;
    recorder.outcome.gaps_ns.sort_unstable();
    recorder.outcome
}

/// A real model with a sliding window of 128 tokens in every other layer.
fn windowed_cost() -> StepCost {
    let catalog = Catalog::new(None);
    let hardware = catalog.hardware("h100-sxm").expect("in the catalog");
    let (model, _) = catalog.model("gpt-oss-20b", Path::new(".")).expect("in the catalog");
    let profile = catalog.profile("auto", &hardware, "vllm", Dtype::Bf16, Path::new(".")).expect("a profile");
    StepCost::new(&model, Dtype::Bf16, Dtype::Bf16, &hardware, &profile.values[0], 1, 8192)
}

/// Same lives, refusals, preemptions, steps and gaps to the nanosecond; the seed in the message replays it.
#[test]
fn naive_equals_fast() {
    let mut costs = affine_costs();
    costs.push(windowed_cost());
    for seed in 0..3_000 {
        let scenario = Scenario::random(seed, &costs);
        let naive = scenario.simulate();
        let fast = run_fast(&scenario);
        if fast == naive {
            continue;
        }
        for (at, (fast, naive)) in fast.steps.iter().zip(&naive.steps).enumerate() {
            assert_eq!(fast, naive, "seed {seed}, step {at}: {scenario:?}");
        }
        assert_eq!(fast.finished, naive.finished, "seed {seed}: {scenario:?}");
        assert_eq!(fast, naive, "seed {seed}: {scenario:?}");
    }
}
