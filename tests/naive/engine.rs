//! The engine: a running list, a queue, and steps that follow one another, several of them under way at once if
//! there are stages for them.

pub mod compose;
mod prefill_first;

use std::collections::VecDeque;

use knee::cost::{StepCost, StepShape};
use knee::engine::{BatcherConfig, Batching, LlmServer, SchedulingPolicy};
use knee::kv::KvSpec;
use knee::rng::{Keyed, Purpose, keyed};
use knee::units::{Blocks, SimTime, Tokens};
use knee::workload::Request;

use super::{Outcome, Record, SEED, StepRecord};
use compose::{Kind, Plan};

pub struct Engine<'a> {
    server: &'a LlmServer,
    batcher: &'a BatcherConfig,
    kv: &'a KvSpec,
    acceptance: Keyed,
    /// Every request that was ever accepted; the lists below hold positions in it.
    pub sequences: Vec<Sequence>,
    /// In order of admission. Everything on it holds blocks, nothing else does.
    pub running: Vec<usize>,
    /// Next to be admitted first.
    pub waiting: Vec<usize>,
    /// Composed steps, the oldest first, and when each leaves the last stage.
    steps: VecDeque<(Plan, SimTime)>,
    /// When each stage is done with the last step composed.
    stages: Vec<SimTime>,
    /// What a step is to a chip of the stage with most layers.
    on_chip: StepCost,
    /// When each step began, and its tokens.
    started: Vec<(SimTime, u32)>,
    /// Members that the static batch may still admit.
    quota: u32,
    /// Steps in a row whose prompts were held back.
    wait_iters: u32,
    /// Prefill first: the estimate of how much of its remaining output a running request will still need,
    /// whether admission has been given up for now, and whether anything completed since the last decode.
    ratio: f64,
    full: bool,
    released: bool,
    /// Prefill first: requests that the scheduler has not looked at, its counter of steps since it last did, and
    /// what the step composed last was.
    inbox: Vec<usize>,
    counter: u32,
    last: Option<Kind>,
    pub outcome: Outcome,
}

/// One request in the engine.
pub struct Sequence {
    pub request: Request,
    /// Tokens whose KV it holds; steps count from when they are composed, drafts as if all were accepted.
    kv: Tokens,
    /// Tokens that it has slots for: what `kv` has reached, and what a draft model needs.
    slots: Tokens,
    /// Tokens to compute before the next one is sampled: the prompt, after a preemption all known tokens.
    prompt: Tokens,
    /// Output tokens that are out.
    pub emitted: Tokens,
    /// Composed steps that are not out and hold a part of it; and of these, those that sample.
    pub under_way: u32,
    pending: u32,
    /// Times it lost its blocks.
    losses: u32,
    pub scheduled: Option<SimTime>,
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

    /// Output tokens, those included that composed steps will sample at least.
    fn sampled(&self) -> Tokens {
        self.emitted + self.pending
    }

    /// Whether its last token will be sampled by a composed step.
    fn finishing(&self) -> bool {
        self.sampled() >= self.request.output_tokens
    }

    /// Tokens are out, together; the gap to the ones before, if there are any.
    fn emit(&mut self, now: SimTime, tokens: Tokens) -> Option<u64> {
        let gap = self.last_token.map(|before| now.since(before).as_nanos());
        self.first_token.get_or_insert(now);
        self.last_token = Some(now);
        self.emitted += tokens;
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
    pub fn new(server: &'a LlmServer) -> Self {
        let LlmServer { batcher, kv, .. } = server;
        let layers = server.pipeline.as_ref().map_or(1.0, |pipeline| {
            let most = pipeline.layers().iter().max().expect("stages");
            f64::from(*most) / f64::from(pipeline.layers().iter().sum::<u32>())
        });
        Self {
            server,
            batcher,
            kv,
            acceptance: keyed(SEED, Purpose::Acceptance, 0),
            sequences: Vec::new(),
            running: Vec::new(),
            waiting: Vec::new(),
            steps: VecDeque::new(),
            stages: Vec::new(),
            started: Vec::new(),
            on_chip: server.cost.scaled(layers),
            quota: 0,
            wait_iters: 0,
            ratio: match batcher.batching {
                Batching::PrefillFirst(policy) => policy.init_new_token_ratio,
                _ => 0.0,
            },
            full: false,
            released: false,
            inbox: Vec::new(),
            counter: 0,
            last: None,
            outcome: Outcome::default(),
        }
    }

    /// When the oldest step ends.
    pub fn step_end(&self) -> Option<SimTime> {
        self.steps.front().map(|(_, end)| *end)
    }

    /// Requests that came and do not run, looked at by the scheduler or not.
    pub fn waiting_len(&self) -> usize {
        self.waiting.len() + self.inbox.len()
    }

    /// Takes a request into the queue, or refuses it if it is longer than the context or the whole pool.
    pub fn accept(&mut self, request: Request) -> bool {
        if self.refuses(&request) {
            self.outcome.rejected.push(request.index);
            return false;
        }
        self.sequences.push(Sequence {
            request,
            kv: 0,
            slots: 0,
            prompt: request.input_tokens,
            emitted: 0,
            under_way: 0,
            pending: 0,
            losses: 0,
            scheduled: None,
            first_token: None,
            last_token: None,
            preemptions: 0,
        });
        let id = self.sequences.len() - 1;
        if matches!(self.batcher.batching, Batching::PrefillFirst(_)) {
            self.inbox.push(id);
        } else {
            self.enqueue(id, self.waiting.len());
        }
        true
    }

    /// Whether the request could never run here.
    pub fn refuses(&self, request: &Request) -> bool {
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
        all > self.batcher.max_model_len
            || self.kv.fixed_blocks(total) + self.longest(total).div_ceil(self.kv.block_size) > self.kv.blocks
            || whole && longest_prompt > self.batcher.max_num_batched_tokens
            || prefill_first
                && all + self.kv.fixed_blocks(total) * self.kv.block_size
                    >= self.kv.blocks * self.kv.block_size
    }

    /// Ends the oldest step and composes what there is room for; returns the indices of completed requests.
    pub fn end_step(&mut self, now: SimTime) -> Vec<u64> {
        let (plan, _) = self.steps.pop_front().expect("a step is under way");
        let completed = self.output(&plan, now);
        self.become_oldest(now);
        self.fill(now);
        completed
    }

    /// Starts an idle engine if there is work.
    pub fn wake(&mut self, now: SimTime) {
        if self.steps.is_empty() {
            self.fill(now);
        }
    }

    /// Checks that nothing was lost and gives the results away.
    pub fn into_outcome(mut self) -> Outcome {
        assert!(self.running.is_empty() && self.waiting.is_empty(), "idle with work left");
        assert!(self.inbox.is_empty(), "requests that nobody looked at");
        assert_eq!(self.sequences.len(), self.outcome.finished.len(), "a request was lost");
        self.outcome.gaps_ns.sort_unstable();
        self.outcome
    }

    /// Composes steps while there is room for another under way. Requests that come while none can be composed
    /// wait for the end of a step, also where a stage is free.
    ///
    /// A step can come out empty although work is left: a sequence that preempts itself ends the walk, even if
    /// others stand behind it. If nothing else is under way the next is composed on the spot; each round has
    /// one running sequence fewer.
    fn fill(&mut self, now: SimTime) {
        while self.steps.len() < self.server.depth() {
            let before = self.outcome.preemptions;
            let plan = self.compose();
            if !plan.is_empty() {
                self.start(plan, now);
            } else if !self.steps.is_empty() {
                return;
            } else if self.outcome.preemptions == before {
                assert!(self.running.is_empty() && self.waiting.is_empty(), "idle with work left");
                return;
            }
        }
    }

    /// Sends a composed step through the stages, each of which takes it when it has come and the stage is done
    /// with the step before.
    fn start(&mut self, plan: Plan, now: SimTime) {
        let shape = plan.shape(self.server.cost.window());
        self.stages.resize(self.server.pipeline.as_ref().map_or(1, |p| p.layers().len()), SimTime::ZERO);
        let scheduled = self.stages[0].max(now);
        let mut times = Vec::new();
        self.server.stage_times(&shape, self.speed(scheduled), &mut times);
        self.started.push((scheduled, shape.tokens));
        let mut at = now;
        for (free, time) in self.stages.iter_mut().zip(times) {
            at = at.max(*free) + time;
            *free = at;
        }
        for row in &plan.rows {
            let sequence = &mut self.sequences[row.id];
            sequence.scheduled.get_or_insert(scheduled);
            sequence.under_way += 1;
        }
        self.steps.push_back((plan, at));
        if self.steps.len() == 1 {
            self.become_oldest(now);
        }
    }

    /// Notes the state when a step has no older one before it.
    fn become_oldest(&mut self, now: SimTime) {
        let Some((plan, end)) = self.steps.front() else { return };
        let record = self.step_record(plan, plan.shape(self.server.cost.window()), now, *end);
        self.outcome.steps.push(record);
    }

    /// How fast a power-limited chip computes in a step that starts `now`, from all that it has done: at
    /// intervals of at least 0.1 s the share of time it computed enters an average over a second. Of the stages
    /// of a pipeline the one with most layers counts.
    fn speed(&self, now: SimTime) -> f64 {
        let (mut load, mut speed, mut tokens, mut reviewed) = (0.0, 1.0, 0, SimTime::ZERO);
        if self.server.cost.throttle() == 0.0 {
            return speed;
        }
        let starts = self.started.iter().copied();
        for (start, started) in starts.chain([(now, 0)]) {
            let passed = start.since(reviewed);
            if passed.as_nanos() >= 100_000_000 {
                let all = StepShape { tokens, ..StepShape::default() };
                let computed = self.on_chip.terms(&all).linear_compute_s;
                let passed = passed.as_secs_f64();
                let share = (computed / passed).min(1.0);
                load = (load * 1.0 + share * passed) / (1.0 + passed);
                speed = 1.0 - self.server.cost.throttle() * load;
                (tokens, reviewed) = (0, start);
            }
            tokens += started;
        }
        speed
    }

    pub fn step_record(&self, plan: &Plan, shape: StepShape, start: SimTime, end: SimTime) -> StepRecord {
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
            emitted: 0,
            running: self.running.len() as u32,
            waiting: self.waiting_len() as u32,
            blocks_used,
        }
    }

    /// Hands out the tokens that the step brings and removes the requests that are complete with them.
    pub fn output(&mut self, plan: &Plan, now: SimTime) -> Vec<u64> {
        let mut complete = Vec::new();
        for row in &plan.rows {
            let sequence = &mut self.sequences[row.id];
            sequence.under_way -= 1;
            if !row.kind.samples() {
                continue;
            }
            sequence.pending -= 1;
            let left = sequence.request.output_tokens - sequence.emitted;
            if left == 0 {
                // It completed while this step was on its way.
                continue;
            }
            let drafts = if row.kind == Kind::Decode { row.tokens - 1 } else { 0 };
            let (index, emitted) = (sequence.request.index, sequence.emitted);
            let speculation = self.server.speculation.as_ref();
            let accepted = speculation.map_or(0, |s| s.accepted(self.acceptance, index, emitted, drafts));
            if row.losses == sequence.losses {
                sequence.kv -= drafts - accepted;
            }
            let tokens = left.min(1 + accepted);
            self.outcome.gaps_ns.extend(sequence.emit(now, tokens));
            if tokens == left {
                complete.push(row.id);
            }
            self.outcome.steps.last_mut().expect("it has started").emitted += tokens;
        }
        let has_all = |id: &usize| {
            let sequence = &self.sequences[*id];
            sequence.emitted == sequence.request.output_tokens
        };
        let done: Vec<usize> = match self.batcher.batching {
            Batching::Static if self.quota == 0 && self.running.iter().all(has_all) => self.running.clone(),
            Batching::Static => Vec::new(),
            _ => complete,
        };
        self.released |= !done.is_empty();
        self.running.retain(|id| !done.contains(id));
        self.waiting.retain(|id| !done.contains(id));
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

    /// Slots that a request with `total` tokens of KV at its longest may take: its drafts in two steps, none of
    /// them accepted, and those of the draft model.
    fn longest(&self, total: Tokens) -> Tokens {
        let Some(speculation) = &self.server.speculation else { return total };
        let drafts = 2 * speculation.num_speculative_tokens + speculation.lookahead;
        (total + drafts).min(self.batcher.max_model_len)
    }

    /// Blocks that a sequence of `tokens` tokens takes at its longest.
    fn reservation(&self, tokens: Tokens) -> Blocks {
        self.kv.fixed_blocks(tokens) + tokens.div_ceil(self.kv.block_size)
    }

    /// Blocks that a running sequence holds with slots for `slots` tokens.
    fn held(&self, id: usize, slots: Tokens) -> Blocks {
        let total = self.sequences[id].total();
        let tokens = match self.batcher.batching {
            Batching::Continuous | Batching::PrefillFirst(_) => slots,
            Batching::MaxUtilization => slots.max(self.sequences[id].prompt),
            Batching::Static | Batching::GuaranteedNoEvict => total,
        };
        self.kv.fixed_blocks(total) + tokens.div_ceil(self.kv.block_size)
    }

    fn blocks_used(&self) -> Blocks {
        self.running.iter().map(|&id| self.held(id, self.sequences[id].slots)).sum()
    }

    fn free_blocks(&self) -> Blocks {
        self.kv.blocks - self.blocks_used()
    }
}
