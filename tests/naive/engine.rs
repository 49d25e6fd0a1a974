//! The engine: a running list, a queue, and steps that follow one another.

mod compose;
mod prefill_first;

use knee::cost::{StepCost, StepShape};
use knee::engine::{BatcherConfig, Batching, SchedulingPolicy};
use knee::kv::KvSpec;
use knee::units::{Blocks, SimTime, Tokens};
use knee::workload::Request;

use super::{Outcome, Record, StepRecord};
use compose::{Kind, Plan};

pub struct Engine<'a> {
    batcher: &'a BatcherConfig,
    kv: &'a KvSpec,
    cost: &'a StepCost,
    /// Every request that was ever accepted; the lists below hold positions in it.
    sequences: Vec<Sequence>,
    /// In order of admission. Everything on it holds blocks, nothing else does.
    running: Vec<usize>,
    /// Next to be admitted first.
    waiting: Vec<usize>,
    /// The step now executing and when it ends.
    executing: Option<(Plan, SimTime)>,
    /// The step that follows it, if scheduling is pipelined; possibly empty.
    ahead: Plan,
    /// Members that the static batch may still admit.
    quota: u32,
    /// Prefill first: the estimate of how much of its remaining output a running request will still need,
    /// whether admission has been given up for now, and whether anything completed since the last decode.
    ratio: f64,
    full: bool,
    released: bool,
    pub outcome: Outcome,
}

/// One request in the engine.
struct Sequence {
    request: Request,
    /// Tokens whose KV it holds; steps count from when they are composed.
    kv: Tokens,
    /// Tokens to compute before the next one is sampled: the prompt, after a preemption all known tokens.
    prompt: Tokens,
    /// Output tokens sampled; steps count from when they are composed.
    sampled: Tokens,
    /// Output tokens that are out.
    emitted: Tokens,
    scheduled: Option<SimTime>,
    first_token: Option<SimTime>,
    last_token: Option<SimTime>,
    preemptions: u32,
}

impl Sequence {
    /// Tokens of KV at its longest: the last output token is never fed back.
    fn total(&self) -> Tokens {
        self.request.input_tokens + self.request.output_tokens - 1
    }

    /// Tokens that it could process now: the rest of its prompt, or the token it sampled last.
    fn remaining(&self) -> Tokens {
        if self.kv < self.prompt { self.prompt - self.kv } else { 1 }
    }

    /// Whether its last token has been sampled by a composed step.
    fn finishing(&self) -> bool {
        self.sampled == self.request.output_tokens
    }

    /// A token is out; the gap to the one before, if there is one.
    fn emit(&mut self, now: SimTime) -> Option<u64> {
        let gap = self.last_token.map(|before| now.since(before).as_nanos());
        self.first_token.get_or_insert(now);
        self.last_token = Some(now);
        self.emitted += 1;
        gap
    }

    fn record(&self, done: SimTime) -> Record {
        assert_eq!(self.emitted, self.request.output_tokens, "{:?}", self.request);
        Record {
            index: self.request.index,
            send: self.request.send,
            scheduled: self.scheduled.expect("a completed request was scheduled"),
            first_token: self.first_token.expect("a completed request has a token"),
            done,
            preemptions: self.preemptions,
        }
    }
}

impl<'a> Engine<'a> {
    pub fn new(batcher: &'a BatcherConfig, kv: &'a KvSpec, cost: &'a StepCost) -> Self {
        Self {
            batcher,
            kv,
            cost,
            sequences: Vec::new(),
            running: Vec::new(),
            waiting: Vec::new(),
            executing: None,
            ahead: Plan::default(),
            quota: 0,
            ratio: match batcher.batching {
                Batching::PrefillFirst(policy) => policy.init_new_token_ratio,
                _ => 0.0,
            },
            full: false,
            released: false,
            outcome: Outcome::default(),
        }
    }

    /// When the step now executing ends.
    pub fn step_end(&self) -> Option<SimTime> {
        self.executing.as_ref().map(|(_, end)| *end)
    }

    /// Takes a request into the queue, or refuses it if it is longer than the context or the whole pool.
    pub fn accept(&mut self, request: Request) -> bool {
        let total = request.input_tokens + request.output_tokens - 1;
        let all = request.input_tokens + request.output_tokens;
        let prefill_first = matches!(self.batcher.batching, Batching::PrefillFirst(_));
        let longest_prompt = match self.batcher.batching {
            Batching::GuaranteedNoEvict => request.input_tokens,
            // It may come back with all of its output but the last token.
            Batching::MaxUtilization => total,
            _ => 0,
        };
        let whole = !self.batcher.enable_chunked_prefill;
        if all > self.batcher.max_model_len
            || self.reservation(total) > self.kv.blocks
            || whole && longest_prompt > self.batcher.max_num_batched_tokens
            || prefill_first
                && all + self.kv.fixed_blocks(total) * self.kv.block_size
                    >= self.kv.blocks * self.kv.block_size
        {
            self.outcome.rejected.push(request.index);
            return false;
        }
        self.sequences.push(Sequence {
            request,
            kv: 0,
            prompt: request.input_tokens,
            sampled: 0,
            emitted: 0,
            scheduled: None,
            first_token: None,
            last_token: None,
            preemptions: 0,
        });
        let id = self.sequences.len() - 1;
        self.enqueue(id, self.waiting.len());
        true
    }

    /// Ends the step now executing and starts the next one; returns the indices of completed requests.
    pub fn end_step(&mut self, now: SimTime) -> Vec<u64> {
        let (plan, _) = self.executing.take().expect("a step is executing");
        let completed = self.output(&plan, now);
        let ahead = std::mem::take(&mut self.ahead);
        if ahead.is_empty() {
            self.start_afresh(now);
        } else {
            self.start(ahead, now);
        }
        completed
    }

    /// Starts an idle engine if there is work.
    pub fn wake(&mut self, now: SimTime) {
        if self.executing.is_none() {
            self.start_afresh(now);
        }
    }

    /// Checks that nothing was lost and gives the results away.
    pub fn into_outcome(mut self) -> Outcome {
        assert!(self.running.is_empty() && self.waiting.is_empty(), "idle with work left");
        assert_eq!(self.sequences.len(), self.outcome.finished.len(), "a request was lost");
        self.outcome.gaps_ns.sort_unstable();
        self.outcome
    }

    /// Composes a step and starts it at once. A step can come out empty although work is left: a sequence
    /// that preempts itself ends the walk, even if others stand behind it. An empty step takes no time, so
    /// the next one is composed on the spot; each round has one running sequence fewer.
    fn start_afresh(&mut self, now: SimTime) {
        loop {
            let before = self.outcome.preemptions;
            let plan = self.compose();
            if !plan.is_empty() {
                return self.start(plan, now);
            }
            if self.outcome.preemptions == before {
                assert!(self.running.is_empty() && self.waiting.is_empty(), "idle with work left");
                return;
            }
        }
    }

    /// Starts a composed step and, if scheduling is pipelined, composes the one after it.
    fn start(&mut self, plan: Plan, now: SimTime) {
        let shape = plan.shape(self.cost.window());
        let end = now + self.cost.step_time(&shape, self.speed(now));
        for row in &plan.rows {
            self.sequences[row.id].scheduled.get_or_insert(now);
        }
        self.outcome.steps.push(self.step_record(&plan, shape, now, end));
        self.executing = Some((plan, end));
        if self.batcher.async_scheduling && self.batcher.batching != Batching::Static {
            self.ahead = self.compose();
        }
    }

    /// How fast a power-limited chip computes in a step that starts `now`, from all that it has done: at
    /// intervals of at least 0.1 s the share of time it computed enters an average over a second.
    fn speed(&self, now: SimTime) -> f64 {
        let (mut load, mut speed, mut tokens, mut reviewed) = (0.0, 1.0, 0, SimTime::ZERO);
        if self.cost.throttle() == 0.0 {
            return speed;
        }
        let starts = self.outcome.steps.iter().map(|step| (step.start, step.shape.tokens));
        for (start, started) in starts.chain([(now, 0)]) {
            let passed = start.since(reviewed);
            if passed.as_nanos() >= 100_000_000 {
                let all = StepShape { tokens, ..StepShape::default() };
                let computed = self.cost.terms(&all).linear_compute_s;
                let passed = passed.as_secs_f64();
                let share = (computed / passed).min(1.0);
                load = (load * 1.0 + share * passed) / (1.0 + passed);
                speed = 1.0 - self.cost.throttle() * load;
                (tokens, reviewed) = (0, start);
            }
            tokens += started;
        }
        speed
    }

    fn step_record(&self, plan: &Plan, shape: StepShape, start: SimTime, end: SimTime) -> StepRecord {
        let blocks_used = self.blocks_used();
        assert!(blocks_used <= self.kv.blocks, "more blocks than the pool has");
        let bounded = self.batcher.enable_chunked_prefill
            || !matches!(self.batcher.batching, Batching::PrefillFirst(_));
        assert!(!bounded || shape.tokens <= self.batcher.max_num_batched_tokens, "over the budget");
        assert!(self.running.len() <= self.batcher.max_num_seqs as usize, "too many sequences");
        let chunks = plan.rows.iter().filter(|row| row.kind == Kind::Chunk || row.kind == Kind::LastChunk);
        StepRecord {
            start,
            end,
            shape,
            prefill_tokens: chunks.map(|row| row.tokens).sum(),
            emitted: plan.rows.iter().filter(|row| row.kind.samples()).count() as u32,
            running: self.running.len() as u32,
            waiting: self.waiting.len() as u32,
            blocks_used,
        }
    }

    /// Hands out the tokens that the step sampled and removes the requests that are complete with them.
    fn output(&mut self, plan: &Plan, now: SimTime) -> Vec<u64> {
        for row in plan.rows.iter().filter(|row| row.kind.samples()) {
            let gap = self.sequences[row.id].emit(now);
            self.outcome.gaps_ns.extend(gap);
        }
        let has_all = |id: &usize| {
            let sequence = &self.sequences[*id];
            sequence.emitted == sequence.request.output_tokens
        };
        let done: Vec<usize> = match self.batcher.batching {
            Batching::Static if self.quota == 0 && self.running.iter().all(has_all) => self.running.clone(),
            Batching::Static => Vec::new(),
            // From the step, not from the running list: it may have been preempted meanwhile.
            _ => plan.rows.iter().map(|row| row.id).filter(has_all).collect(),
        };
        self.released |= !done.is_empty();
        self.running.retain(|id| !done.contains(id));
        for &id in &done {
            self.outcome.finished.push(self.sequences[id].record(now));
        }
        done.iter().map(|&id| self.sequences[id].request.index).collect()
    }

    /// Puts a request in the queue: at `place`, or where its priority belongs.
    fn enqueue(&mut self, id: usize, place: usize) {
        let place = match self.batcher.scheduling_policy {
            SchedulingPolicy::Fcfs => place,
            SchedulingPolicy::Priority => {
                self.waiting.iter().filter(|&&other| self.urgency(other) < self.urgency(id)).count()
            }
        };
        self.waiting.insert(place, id);
    }

    /// Smaller is served first and preempted last.
    fn urgency(&self, id: usize) -> (i32, u64) {
        let request = &self.sequences[id].request;
        (self.batcher.class_priority[usize::from(request.class)], request.index)
    }

    /// Blocks that a sequence of `tokens` tokens takes at its longest.
    fn reservation(&self, tokens: Tokens) -> Blocks {
        self.kv.fixed_blocks(tokens) + tokens.div_ceil(self.kv.block_size)
    }

    /// Blocks that a running sequence holds with `kv` tokens.
    fn held(&self, id: usize, kv: Tokens) -> Blocks {
        let total = self.sequences[id].total();
        let tokens = match self.batcher.batching {
            Batching::Continuous | Batching::PrefillFirst(_) => kv,
            Batching::MaxUtilization => kv.max(self.sequences[id].prompt),
            Batching::Static | Batching::GuaranteedNoEvict => total,
        };
        self.kv.fixed_blocks(total) + tokens.div_ceil(self.kv.block_size)
    }

    fn blocks_used(&self) -> Blocks {
        self.running.iter().map(|&id| self.held(id, self.sequences[id].kv)).sum()
    }

    fn free_blocks(&self) -> Blocks {
        self.kv.blocks - self.blocks_used()
    }
}
