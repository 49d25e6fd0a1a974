//! Data-parallel ranks: engines of which each decides for itself what it computes, and none goes on before all are
//! through with the step (vLLM's documentation, "Data Parallel Deployment": forward passes are aligned, and a
//! rank without requests runs a dummy pass as long as another has some).

use std::collections::VecDeque;

use knee::cost::StepShape;
use knee::engine::{DataParallel, LlmServer, RankPolicy};
use knee::units::{SimTime, Tokens};
use knee::workload::Request;

use super::client::Client;
use super::engine::{
    Engine,
    compose::{Kind, Plan},
};
use super::{Load, Outcome, StepRecord};

/// Between two publications of how many requests wait and run on each rank.
const PUBLISHED_EVERY_NS: u64 = 100_000_000;

struct Ranks<'a> {
    server: &'a LlmServer,
    parallel: DataParallel,
    engines: Vec<Engine<'a>>,
    /// Composed steps, the oldest first: every rank's part, and when all are through.
    steps: VecDeque<(Vec<Plan>, SimTime)>,
    /// When the step composed last is through.
    free: SimTime,
    /// When each step began, and its tokens.
    started: Vec<(SimTime, u32)>,
    /// Requests sent to any rank.
    sent: usize,
    /// What is known outside of each rank's waiting and running requests, and when it was published.
    known: Vec<(usize, usize)>,
    publication: u64,
    /// In no rank yet.
    queue: Vec<Request>,
    /// TensorRT-LLM's `adp_ctx_waiting_iters_count` and `adp_ctx_batching_wait_iters_count`.
    waiting_iters: u32,
    batching_iters: u32,
    outcome: Outcome,
}

/// Runs `load` to its end; what steps hold is summed over the ranks.
pub fn simulate(server: &LlmServer, load: Load) -> Outcome {
    let mut client = Client::new(load, server.front_end);
    let mut ranks = Ranks::new(server);
    let step_end = |ranks: &Ranks<'_>| ranks.steps.front().map(|(_, end)| *end);
    while let Some(now) = [client.next_arrival(), step_end(&ranks)].into_iter().flatten().min() {
        ranks.outcome.end = now;
        ranks.publish(now);
        ranks.deliver(&mut client, now);
        if step_end(&ranks) == Some(now) {
            for index in ranks.end_step(now) {
                client.answered(index, now);
            }
            ranks.deliver(&mut client, now);
        }
        if ranks.steps.is_empty() {
            ranks.fill(now);
        }
    }
    ranks.into_outcome()
}

impl<'a> Ranks<'a> {
    fn new(server: &'a LlmServer) -> Self {
        let parallel = server.data_parallel.expect("ranks");
        Self {
            server,
            parallel,
            engines: (0..parallel.ranks).map(|_| Engine::new(server)).collect(),
            steps: VecDeque::new(),
            free: SimTime::ZERO,
            started: Vec::new(),
            sent: 0,
            known: vec![(0, 0); parallel.ranks as usize],
            publication: 0,
            queue: Vec::new(),
            waiting_iters: 0,
            batching_iters: 0,
            outcome: Outcome::default(),
        }
    }

    /// Nothing has changed since the last event, so what was published in between is what is there now.
    fn publish(&mut self, now: SimTime) {
        let publication = now.as_nanos() / PUBLISHED_EVERY_NS;
        if publication > self.publication {
            self.publication = publication;
            self.known = self.engines.iter().map(|e| (e.waiting_len(), e.running.len())).collect();
        }
    }

    fn deliver(&mut self, client: &mut Client, now: SimTime) {
        while let Some(request) = client.take_arrival(now) {
            if self.engines[0].refuses(&request) {
                self.outcome.rejected.push(request.index);
                client.answered(request.index, now);
                continue;
            }
            let ranks = self.engines.len();
            let rank = match self.parallel.policy {
                RankPolicy::RoundRobin => self.sent % ranks,
                RankPolicy::WaitingAndRunning => {
                    let score = |rank: &usize| 4 * self.known[*rank].0 + self.known[*rank].1;
                    (0..ranks).min_by_key(score).expect("a rank")
                }
                RankPolicy::PromptTokens => {
                    self.queue.push(request);
                    continue;
                }
            };
            self.sent += 1;
            self.known[rank].0 += 1;
            assert!(self.engines[rank].accept(request));
        }
    }

    /// Distributes the queue: as many as all ranks together have seats for, the longest prompts first, each to
    /// the rank with the fewest prompt tokens of those that are not above the average.
    fn distribute(&mut self) {
        let in_flight = |engine: &Engine<'_>| -> (Tokens, u32) {
            let sequences = engine.sequences.iter();
            let there = sequences.filter(|s| s.emitted < s.request.output_tokens);
            there.fold((0, 0), |(tokens, count), s| (tokens + s.request.input_tokens, count + 1))
        };
        let mut loads: Vec<(Tokens, u32)> = self.engines.iter().map(in_flight).collect();
        let there: u32 = loads.iter().map(|load| load.1).sum();
        let seats = self.parallel.ranks * self.server.batcher.max_num_seqs;
        let count = self.queue.len().min(seats.saturating_sub(there) as usize);
        let mut new: Vec<Request> = self.queue.drain(..count).collect();
        new.sort_by_key(|request| u32::MAX - request.input_tokens);
        let average = (there + count as u32).div_ceil(self.parallel.ranks);
        let most = loads.iter().map(|load| load.1).max().expect("a rank").max(average);
        for request in new {
            let open = (0..loads.len()).filter(|&rank| loads[rank].1 < most);
            let rank = open.min_by_key(|&rank| loads[rank]).expect("a seat");
            loads[rank].0 += request.input_tokens;
            loads[rank].1 += 1;
            assert!(self.engines[rank].accept(request));
        }
    }

    /// Composes steps while another can be under way. All ranks are asked at once; if none has anything, and one
    /// only because it gave way to another, they are asked again.
    fn fill(&mut self, now: SimTime) {
        while self.steps.len() < self.server.depth() {
            self.distribute();
            let preempted =
                |engines: &[Engine<'_>]| -> u64 { engines.iter().map(|e| e.outcome.preemptions).sum() };
            let before = preempted(&self.engines);
            let mut plans: Vec<Plan> = self.engines.iter_mut().map(Engine::compose).collect();
            if self.prompts_wait(&plans) {
                self.engines.iter_mut().zip(&mut plans).for_each(|(engine, plan)| engine.hold_back(plan));
            }
            if plans.iter().any(|plan| !plan.is_empty()) {
                self.start(plans, now);
            } else if !self.steps.is_empty() {
                return;
            } else if preempted(&self.engines) == before {
                let idle = |engine: &Engine<'_>| engine.running.is_empty() && engine.waiting_len() == 0;
                assert!(self.queue.is_empty() && self.engines.iter().all(idle), "idle with work left");
                return;
            }
        }
    }

    /// TensorRT-LLM's `_balance_adp_requests`: whether the prompts of a step wait on all ranks. A rank without
    /// requests decodes a dummy as long as another has some; when none has, no step is asked for.
    fn prompts_wait(&mut self, plans: &[Plan]) -> bool {
        let Some(balance) = self.parallel.balance else { return false };
        let unfinished =
            |engine: &Engine<'_>| engine.sequences.iter().any(|s| s.emitted < s.request.output_tokens);
        let busy: Vec<bool> = self.engines.iter().map(unfinished).collect();
        if !busy.contains(&true) {
            return false;
        }
        let (mut decodes, mut prompts) = (Vec::new(), Vec::new());
        for (plan, &busy) in plans.iter().zip(&busy) {
            let decoding = plan.rows.iter().filter(|row| row.kind == Kind::Decode).count();
            decodes.push(if busy { decoding } else { 1 });
            prompts.push(plan.rows.len() - decoding);
        }
        let seats = self.server.batcher.max_num_seqs as usize;
        let all_decode = decodes.iter().all(|&count| count > 0);
        if decodes.iter().all(|&count| count < seats) && prompts.iter().all(|&count| count > 0) {
            self.waiting_iters = 0;
            if !all_decode {
                return false;
            }
            if self.batching_iters < balance.batching_wait_iters {
                self.batching_iters += 1;
                return true;
            }
            self.batching_iters = 0;
            return false;
        }
        self.waiting_iters += 1;
        if self.waiting_iters >= balance.timeout_iters || !all_decode {
            self.waiting_iters = 0;
            return false;
        }
        true
    }

    fn start(&mut self, plans: Vec<Plan>, now: SimTime) {
        let begin = self.free.max(now);
        let shapes = self.shapes(&plans);
        let tokens = shapes.iter().map(|shape| shape.tokens).sum();
        self.free = begin + self.server.ranks_time(&shapes, self.speed(begin));
        self.started.push((begin, tokens));
        for (engine, plan) in self.engines.iter_mut().zip(&plans) {
            for row in &plan.rows {
                engine.sequences[row.id].scheduled.get_or_insert(begin);
                engine.sequences[row.id].under_way += 1;
            }
        }
        self.steps.push_back((plans, self.free));
        if self.steps.len() == 1 {
            self.become_oldest(now);
        }
    }

    fn shapes(&self, plans: &[Plan]) -> Vec<StepShape> {
        plans.iter().map(|plan| plan.shape(self.server.cost.window())).collect()
    }

    /// As for a single engine, of a chip that computes the mean of what the ranks do.
    fn speed(&self, now: SimTime) -> f64 {
        let (mut load, mut speed, mut tokens, mut reviewed) = (0.0, 1.0, 0, SimTime::ZERO);
        let throttle = self.server.cost.throttle();
        for (start, started) in self.started.iter().copied().chain([(now, 0)]) {
            let passed = start.since(reviewed);
            if throttle > 0.0 && passed.as_nanos() >= 100_000_000 {
                let (all, none) = (StepShape { tokens, ..StepShape::default() }, StepShape::default());
                let compute_s = |own, all| self.server.cost.terms_among(own, all, 1.0).linear_compute_s;
                let own = compute_s(&all, &none) / f64::from(self.parallel.ranks);
                let share = ((own + compute_s(&none, &all)) / passed.as_secs_f64()).min(1.0);
                load = (load + share * passed.as_secs_f64()) / (1.0 + passed.as_secs_f64());
                speed = 1.0 - throttle * load;
                (tokens, reviewed) = (0, start);
            }
            tokens += started;
        }
        speed
    }

    fn become_oldest(&mut self, now: SimTime) {
        let Some((plans, end)) = self.steps.front() else { return };
        let shapes = self.shapes(plans);
        for ((engine, plan), shape) in self.engines.iter_mut().zip(plans).zip(shapes) {
            let record = engine.step_record(plan, shape, now, *end);
            engine.outcome.steps.push(record);
        }
        let queued = self.queue.len() as u32;
        self.engines[0].outcome.steps.last_mut().expect("just recorded").waiting += queued;
    }

    fn end_step(&mut self, now: SimTime) -> Vec<u64> {
        let (plans, _) = self.steps.pop_front().expect("a step is under way");
        let mut completed = Vec::new();
        let mut records = Vec::new();
        for (engine, plan) in self.engines.iter_mut().zip(&plans) {
            let before = engine.outcome.finished.len();
            completed.extend(engine.output(plan, now));
            self.outcome.finished.extend(&engine.outcome.finished[before..]);
            records.push(*engine.outcome.steps.last().expect("it has started"));
        }
        self.outcome.steps.push(sum(&records));
        self.become_oldest(now);
        self.fill(now);
        completed
    }

    fn into_outcome(self) -> Outcome {
        let mut outcome = self.outcome;
        for engine in self.engines {
            let own = engine.into_outcome();
            outcome.preemptions += own.preemptions;
            outcome.gaps_ns.extend(own.gaps_ns);
        }
        outcome.gaps_ns.sort_unstable();
        outcome
    }
}

/// A step from its parts.
fn sum(records: &[StepRecord]) -> StepRecord {
    let add = |of: fn(&StepRecord) -> u32| records.iter().map(of).sum();
    StepRecord {
        start: records[0].start,
        end: records[0].end,
        shape: records.iter().map(|record| &record.shape).sum(),
        prefill_tokens: add(|record| record.prefill_tokens),
        emitted: add(|record| record.emitted),
        running: add(|record| record.running),
        waiting: add(|record| record.waiting),
        blocks_used: add(|record| record.blocks_used),
    }
}
