//! What must hold in every run, whatever the scenario; each invariant is a numbered test.

#[allow(dead_code)]
mod naive;

use std::collections::HashMap;

use knee::engine::{
    Batching, Finished, LlmServer, Observer, Rejection, RouterPolicy, RunEnd, RunUntil, Server, Step, System,
    run,
};
use knee::metrics::{Recorder, RunFacts, RunMode, WarmUp};
use knee::units::{SimSpan, SimTime};
use knee::workload::{Class, Distribution, Lengths, Request, Slo};
use naive::{Load, Scenario, affine_costs};

const SCENARIOS: u64 = 400;
const ROUTERS: [RouterPolicy; 4] = [
    RouterPolicy::RoundRobin,
    RouterPolicy::Random,
    RouterPolicy::LeastOutstanding,
    RouterPolicy::PowerOfTwo,
];

/// Keeps everything that happened.
#[derive(Default)]
struct Diary {
    sent: HashMap<u64, Request>,
    rejected: Vec<u64>,
    finished: Vec<Finished>,
    steps: Vec<(u32, SimTime, SimTime, u32, u32, u32)>,
    /// What is told of requests goes by time; of steps, replica by replica.
    last: SimTime,
    last_of: HashMap<u32, SimTime>,
}

impl Diary {
    fn at(&mut self, now: SimTime) {
        assert!(now >= self.last, "time runs back from {:?} to {now:?}", self.last);
        self.last = now;
    }

    fn at_replica(&mut self, replica: u32, now: SimTime) {
        let last = self.last_of.entry(replica).or_default();
        assert!(now >= *last, "time of replica {replica} runs back from {last:?} to {now:?}");
        *last = now;
    }
}

impl Observer for Diary {
    fn sent(&mut self, request: &Request) {
        self.at(request.send);
        assert!(self.sent.insert(request.index, *request).is_none(), "sent twice");
    }
    fn rejected(&mut self, now: SimTime, request: &Request, _: Rejection) {
        self.at(now);
        self.rejected.push(request.index);
    }
    fn step(&mut self, replica: u32, step: &Step<'_>) {
        self.at_replica(replica, step.end);
        self.steps.push((replica, step.start, step.end, step.waiting, step.running, step.blocks_used));
    }
    fn served(&mut self, _: u32, _: SimTime, _: SimTime, _: u32, _: u32) {}
    fn token_gaps(&mut self, _: SimTime, _: u16, gap: SimSpan, _: u32) {
        assert!(gap > SimSpan::ZERO, "two tokens at once");
    }
    fn preempted(&mut self, now: SimTime, replica: u32, _: u16) {
        self.at_replica(replica, now);
    }
    fn finished(&mut self, replica: u32, life: &Finished) {
        self.at(life.done);
        self.at_replica(replica, life.done);
        self.finished.push(*life);
    }
}

/// Plays the open loads of the generator, one in five with data-parallel ranks; closed ones belong to the
/// comparison with the naive engine.
fn open_scenarios() -> impl Iterator<Item = (u64, Scenario, Vec<Request>)> {
    let costs = affine_costs();
    (0..SCENARIOS).filter_map(move |seed| {
        let scenario = match seed % 5 {
            4 => Scenario::random_ranks(seed, &costs),
            _ => Scenario::random(seed, &costs),
        };
        let Load::Open(requests) = scenario.load.clone() else {
            return None;
        };
        Some((seed, scenario, requests))
    })
}

struct Sender(std::vec::IntoIter<Request>);

impl knee::engine::Client for Sender {
    fn next_request(&mut self) -> Option<Request> {
        self.0.next()
    }
    fn users(&self) -> Option<u32> {
        None
    }
    fn request_at(&mut self, _: SimTime) -> Request {
        unreachable!("an open loop")
    }
    fn think_time(&mut self, _: &Request) -> SimSpan {
        SimSpan::ZERO
    }
}

fn play(
    scenario: &Scenario,
    requests: Vec<Request>,
    replicas: u32,
    router: RouterPolicy,
    observer: &mut impl Observer,
) -> RunEnd {
    let is_static = scenario.server.batcher.batching == Batching::Static;
    let server = LlmServer {
        batcher: scenario.server.batcher.clone(),
        kv: scenario.server.kv,
        cost: scenario.server.cost.clone(),
        front_end: scenario.server.front_end,
        pipeline: None,
        speculation: None,
        // Static batches have no ranks.
        data_parallel: scenario.server.data_parallel.filter(|_| !is_static),
    };
    let system = System { replicas, router, server: Server::Llm(Box::new(server)) };
    let until = RunUntil { requests: requests.len() as u64, time: SimTime::MAX, drain: true };
    run(&system, &mut Sender(requests.into_iter()), until, 1, 0, observer).expect("a valid run")
}

/// Runs every open scenario on one replica and on a fleet, and hands the diary to `check`.
fn for_all(check: impl Fn(&Diary, &Scenario)) {
    for (seed, scenario, requests) in open_scenarios() {
        for replicas in [1, 3] {
            let router = ROUTERS[seed as usize % ROUTERS.len()];
            let mut diary = Diary::default();
            play(&scenario, requests.clone(), replicas, router, &mut diary);
            check(&diary, &scenario);
        }
    }
}

#[test]
fn invariant_1_requests_are_conserved() {
    for_all(|diary, _| {
        let mut ended: Vec<u64> = diary.finished.iter().map(|life| life.request.index).collect();
        ended.extend(&diary.rejected);
        ended.sort_unstable();
        let mut sent: Vec<u64> = diary.sent.keys().copied().collect();
        sent.sort_unstable();
        assert_eq!(ended, sent, "every request ends exactly once");
    });
}

#[test]
fn invariant_2_kv_blocks_never_exceed_the_pool_nor_sequences_their_slots() {
    for_all(|diary, scenario| {
        for &(.., running, blocks) in &diary.steps {
            assert!(blocks <= scenario.server.total_blocks() && running <= scenario.server.total_seqs());
        }
    });
}

#[test]
fn invariant_3_time_never_runs_back_and_a_replica_runs_one_step_at_a_time() {
    // The diary checks the order of all events as they come.
    for_all(|diary, _| {
        let mut free: HashMap<u32, SimTime> = HashMap::new();
        for &(replica, start, end, ..) in &diary.steps {
            assert!(end > start && start >= free.get(&replica).copied().unwrap_or_default());
            free.insert(replica, end);
        }
    });
}

#[test]
fn invariant_4_littles_law_holds_on_every_path() {
    for (seed, scenario, requests) in open_scenarios() {
        let mut diary = Diary::default();
        play(&scenario, requests.clone(), 2, RouterPolicy::LeastOutstanding, &mut diary);
        let classes = classes(&scenario);
        let mut recorder = Recorder::new(classes.iter().map(|class| &class.slo));
        let end = play(&scenario, requests, 2, RouterPolicy::LeastOutstanding, &mut recorder);
        let front_end = scenario.server.front_end.as_secs_f64();
        let time_in_system: f64 =
            diary.finished.iter().map(|l| l.done.since(l.request.send).as_secs_f64()).sum::<f64>()
                + front_end * diary.rejected.len() as f64;
        let facts = RunFacts {
            mode: RunMode::Benchmark,
            end,
            classes: &classes,
            replicas: 2,
            blocks_per_replica: scenario.server.total_blocks(),
            servers_per_replica: 1,
        };
        let summary = recorder.summarise(&facts, WarmUp::NONE);
        let in_system: f64 = summary.timeline.iter().map(|bin| bin.in_flight * bin.span_s).sum();
        let off = (in_system - time_in_system).abs() / time_in_system.max(1e-12);
        assert!(off < 1e-9, "seed {seed}: L T = {in_system}, sum of W = {time_in_system}");
    }
}

#[test]
fn invariant_5_no_token_before_its_prefill_and_no_end_before_its_start() {
    for_all(|diary, scenario| {
        for life in &diary.finished {
            let Request { send, output_tokens, .. } = life.request;
            assert!(life.scheduled >= send + scenario.server.front_end, "scheduled before it arrived");
            assert!(life.first_token > life.scheduled, "a token before its prefill");
            assert!(life.done >= life.first_token);
            assert!(output_tokens == 1 || life.done > life.first_token, "tokens out of thin air");
        }
    });
}

#[test]
fn invariant_6_a_replica_with_work_works() {
    // A replica that ends a step and has requests starts the next at that very instant: with one
    // replica, whoever waits while no step runs has just arrived.
    for (seed, scenario, requests) in open_scenarios() {
        let mut diary = Diary::default();
        play(&scenario, requests, 1, RouterPolicy::RoundRobin, &mut diary);
        for life in &diary.finished {
            let arrival = life.request.send + scenario.server.front_end;
            let mut free_since = SimTime::ZERO;
            for &(_, start, end, ..) in &diary.steps {
                // An idle gap free_since..start: nobody may be inside the system in it.
                let idle = start > free_since;
                let inside = arrival < start && life.done > free_since && arrival.max(free_since) < start;
                assert!(
                    !(idle && inside),
                    "seed {seed}: idle with request {} in the system",
                    life.request.index
                );
                free_since = end;
            }
        }
    }
}

#[test]
fn invariant_7_a_static_batch_ends_together() {
    for (_, mut scenario, requests) in open_scenarios() {
        scenario.server.batcher.batching = Batching::Static;
        let mut diary = Diary::default();
        play(&scenario, requests, 1, RouterPolicy::RoundRobin, &mut diary);
        // Batches do not overlap: whoever is scheduled after another's start is done no earlier, unless
        // both belong to one batch and end together.
        let mut lives = diary.finished.clone();
        lives.sort_by_key(|life| (life.scheduled, life.request.index));
        for pair in lives.windows(2) {
            let (first, second) = (&pair[0], &pair[1]);
            assert!(second.done == first.done || second.scheduled >= first.done, "batches overlap");
        }
    }
}

fn classes(scenario: &Scenario) -> Vec<Class> {
    let one = Distribution::Constant { value: 1.0 };
    (0..scenario.server.batcher.class_priority.len())
        .map(|index| Class {
            name: format!("class {index}"),
            share: 1.0,
            priority: 0,
            lengths: Lengths::Independent { input: one.clone(), output: Some(one.clone()) },
            slo: Slo::default(),
        })
        .collect()
}
