//! The continuous batcher: which tokens go into the next step, as vLLM V1's scheduler decides it.
//!
//! Running sequences come first, in order: each decoding one its token, a partial prefill its next
//! chunk. If blocks run short the last admitted (or least urgent) is preempted and recomputed later.
//! If nobody was preempted, waiting requests follow while slots, budget and blocks allow. Only the
//! exceptions cost time in proportion to the batch; a step that changes nothing costs a few additions.
//!
//! At most one prefill is partial and it is the last of the running list: it is partial because it
//! exhausted the budget, so nothing was admitted behind it, and every prefill still running when the
//! budget exceeds the decodes (which `max_num_seqs <= max_num_batched_tokens` guarantees) goes on.

mod ahead;
mod batch_wait;
mod plan;
mod prefill_first;
mod static_batch;

use super::cohort::Cohort;
use super::config::{BatcherConfig, Batching, SchedulingPolicy};
use super::observer::Rejection;
use super::sequence::{NIL, Pool, RunningList, Sequence, Slot, State, final_context};
use super::waiting::WaitingQueue;
use crate::kv::KvSpec;
use crate::units::{Blocks, SimSpan, SimTime, Tokens};
use crate::workload::Request;

pub(super) use plan::StepPlan;

/// Receives what the outputs of a step bring.
pub(super) trait Outputs {
    /// `count` tokens of `class` whose distance to their predecessors is not the step's length.
    fn token_gaps(&mut self, class: u16, gap: SimSpan, count: u32);
    /// The sequence's last token is out.
    fn finished(&mut self, sequence: &Sequence);
}

/// The scheduler of one replica: queue, running list, KV ledger and the decode cohort.
#[derive(Clone, Debug)]
pub(super) struct Batcher<'a> {
    config: &'a BatcherConfig,
    kv: &'a KvSpec,
    window: Tokens,
    pub pool: Pool,
    waiting: WaitingQueue,
    pub running: RunningList,
    pub cohort: Cohort,
    partial: Slot,
    pub free_blocks: Blocks,
    /// Prefills that sample at the end of the step composed last; they join the cohort with the next.
    joining: Vec<Slot>,
    /// Sequences whose last token is in the step that is running or has just ended.
    finishing: Vec<Slot>,
    /// Left the cohort at the last composition: their last token is out when the running step ends.
    leavers: Vec<Slot>,
    /// Sat out the step composed last.
    postponed: Vec<Slot>,
    /// Preempted at the last composition.
    pub preempted: Vec<Slot>,
    /// Static batches: how many may still join, and how many members still lack tokens.
    batch_quota: u32,
    unfinished: u32,
    prefill_first: prefill_first::Memory,
    /// Steps since prompts last ran whose prompts were held back.
    held_steps: u32,
    /// Requests have come since the last composition.
    unseen: bool,
    arrivals: u64,
    admissions: u64,
}

impl<'a> Batcher<'a> {
    pub fn new(config: &'a BatcherConfig, kv: &'a KvSpec, window: Tokens) -> Self {
        let classes = config.class_priority.len();
        Self {
            waiting: WaitingQueue::new(config.scheduling_policy),
            cohort: Cohort::new(kv.block_size, window, classes),
            prefill_first: match &config.batching {
                Batching::PrefillFirst(policy) => prefill_first::Memory::new(policy),
                _ => prefill_first::Memory::default(),
            },
            free_blocks: kv.blocks,
            config,
            kv,
            window,
            pool: Pool::default(),
            running: RunningList::new(),
            partial: NIL,
            joining: Vec::new(),
            finishing: Vec::new(),
            leavers: Vec::new(),
            postponed: Vec::new(),
            preempted: Vec::new(),
            batch_quota: 0,
            unfinished: 0,
            held_steps: 0,
            unseen: false,
            arrivals: 0,
            admissions: 0,
        }
    }

    pub fn waiting_len(&self) -> u32 {
        (self.waiting.len() + self.prefill_first.unreceived()) as u32
    }

    pub fn blocks_used(&self) -> Blocks {
        self.kv.blocks - self.free_blocks
    }

    /// Why the request could never run here, if it could not.
    pub fn refusal(&self, request: &Request) -> Option<Rejection> {
        let total = u64::from(request.input_tokens) + u64::from(request.output_tokens);
        let longest = final_context(request);
        let blocks = u64::from(self.kv.fixed_blocks(longest)) + u64::from(self.kv.blocks_for(longest));
        let never_admitted =
            matches!(self.config.batching, Batching::PrefillFirst(_)) && !self.ever_admitted(request);
        if total > u64::from(self.config.max_model_len)
            || blocks > u64::from(self.kv.blocks)
            || never_admitted
        {
            return Some(Rejection::TooLong);
        }
        let whole = match self.config.batching {
            Batching::GuaranteedNoEvict => request.input_tokens,
            // A paused request comes back with its output as part of the prompt.
            Batching::MaxUtilization => longest,
            Batching::PrefillFirst(_) | Batching::Continuous | Batching::Static => 0,
        };
        let is_cut = self.config.enable_chunked_prefill;
        (!is_cut && whole > self.config.max_num_batched_tokens).then_some(Rejection::OverBudget)
    }

    /// Puts a request into the queue that has no [`Batcher::refusal`].
    pub fn enqueue(&mut self, request: Request) {
        let priority = self.config.class_priority[usize::from(request.class)];
        let fixed = self.kv.fixed_blocks(final_context(&request));
        let slot = self.pool.insert(Sequence::new(request, priority, self.arrivals, fixed));
        self.arrivals += 1;
        self.unseen = true;
        if matches!(self.config.batching, Batching::PrefillFirst(_)) {
            self.prefill_first.come(slot);
        } else {
            self.waiting.push(slot, &self.pool[slot]);
        }
    }

    /// Moves the cohort on to the next step: prefills that have sampled join it, and those whose last
    /// token is in the step before go to `finishing`. Called once per composition, before it: with
    /// pipelining right before, without it before the outputs of the step that has just ended are read.
    #[inline]
    pub fn age(&mut self) {
        let keep_rows = self.config.batching == Batching::Static;
        let prefill_first = matches!(self.config.batching, Batching::PrefillFirst(_));
        let step = self.cohort.step;
        for at in 0..self.joining.len() {
            let slot = self.joining[at];
            let sequence = &mut self.pool[slot];
            let remaining = sequence.request.output_tokens - sequence.generated;
            sequence.entry_step = step;
            sequence.completes_at = step + u64::from(remaining) - 1;
            sequence.late = false;
            if remaining > 1 {
                sequence.state = State::Decoding;
                self.cohort.join(slot, &self.pool[slot]);
                if prefill_first {
                    self.prefill_first.join(slot);
                }
            } else {
                self.finishing.push(slot);
                if keep_rows {
                    self.cohort.add_row(slot, &self.pool[slot]);
                }
            }
        }
        self.joining.clear();
        if prefill_first {
            // It grows older when a decode step is composed.
            self.cohort.complete(&self.pool, keep_rows, &mut self.finishing);
        } else {
            self.cohort.age(&self.pool, keep_rows, &mut self.finishing);
        }
        if !self.finishing.is_empty() {
            let pool = &mut self.pool;
            for &slot in &self.finishing {
                pool[slot].state = State::Finishing;
            }
            self.finishing.sort_unstable_by_key(|&slot| pool[slot].admission);
        }
    }

    /// Composes the step to which [`Batcher::age`] has just moved. `now` matters only to sequences that
    /// leave the cohort when the step before has already ended (no pipelining).
    #[inline]
    pub fn compose(&mut self, now: SimTime, plan: &mut StepPlan) {
        plan.clear();
        self.preempted.clear();
        self.unseen = false;
        if let Batching::PrefillFirst(policy) = self.config.batching {
            self.compose_prefill_first(&policy, plan);
            plan.count_emitted();
            return;
        }
        let postponed_before = std::mem::take(&mut self.postponed);
        if self.config.batching == Batching::Static {
            self.compose_static(plan);
        } else {
            let budget = self.schedule_running(plan);
            if self.preempted.is_empty() {
                self.admit(plan, budget);
            }
        }
        self.add_decodes(plan, &postponed_before);
        if self.waits_for_a_larger_batch(plan) {
            self.hold_back(plan);
        }
        if !self.config.pipelined() {
            self.date_leavers(now);
        }
        // Keep the allocation when, as almost always, nobody was postponed.
        if self.postponed.is_empty() {
            self.postponed = postponed_before;
            self.postponed.clear();
        }
    }

    /// A step of others begins for which the composition came out empty: who decodes stands still meanwhile.
    pub fn sit_out(&mut self) {
        self.prefill_first.stall();
    }

    /// Whether the next composition will be the last one again, a token older, as long as
    /// [`Batcher::only_grows_older`] says so. Who waits was not let in and will not be: slots and budget
    /// stay as they are, and blocks only become fewer.
    pub fn is_steady(&self) -> bool {
        let nobody = [&self.joining, &self.finishing, &self.leavers, &self.postponed, &self.preempted]
            .iter()
            .all(|list| list.is_empty());
        let continuous = self.config.batching == Batching::Continuous && self.config.batch_wait.is_none();
        nobody && !self.unseen && self.partial == NIL && continuous
    }

    /// Nobody completes with the step composed last, and there are blocks for the next.
    #[inline]
    pub fn only_grows_older(&self) -> bool {
        self.cohort.only_grows_older() && self.cohort.blocks_needed_next() <= self.free_blocks
    }

    /// [`Batcher::age`] and [`Batcher::compose`] for a batch that only grows older, but for the contexts
    /// of the plan.
    #[inline]
    pub fn grow_older(&mut self) {
        self.cohort.grow_older();
        self.free_blocks -= self.cohort.blocks_needed();
    }

    /// Phase 1. Returns what is left of the token budget.
    #[inline]
    fn schedule_running(&mut self, plan: &mut StepPlan) -> Tokens {
        let budget = self.config.max_num_batched_tokens - self.cohort.count;
        let mut needed = self.cohort.blocks_needed();
        if self.config.batching == Batching::GuaranteedNoEvict {
            needed = 0;
        }
        let mut chunk = 0;
        if self.partial != NIL {
            let sequence = &self.pool[self.partial];
            chunk = (sequence.known - sequence.computed).min(budget);
            needed += self.chunk_blocks(sequence, chunk);
        }
        if needed > self.free_blocks {
            return self.schedule_running_short_of_blocks(plan);
        }
        self.free_blocks -= needed;
        if chunk > 0 {
            self.add_chunk(plan, self.partial, chunk);
        }
        budget - chunk
    }

    /// Blocks to take for the next chunk of an admitted sequence.
    fn chunk_blocks(&self, sequence: &Sequence, chunk: Tokens) -> Blocks {
        if matches!(self.config.batching, Batching::GuaranteedNoEvict | Batching::MaxUtilization) {
            return 0;
        }
        self.kv.blocks_for(sequence.computed + chunk) - self.kv.blocks_for(sequence.computed)
    }

    /// Phase 1 the long way: sequence by sequence, with preemption.
    fn schedule_running_short_of_blocks(&mut self, plan: &mut StepPlan) -> Tokens {
        let mut budget = self.config.max_num_batched_tokens;
        let mut slot = self.running.head;
        let mut stopped = false;
        while slot != NIL {
            let sequence = &self.pool[slot];
            match sequence.state {
                State::Decoding if stopped => self.postpone(slot),
                State::Decoding => {
                    let needed = u32::from(self.cohort.needs_block(sequence));
                    stopped = !self.make_room(slot, needed, &mut budget);
                    budget -= u32::from(!stopped);
                }
                State::Prefilling if !stopped => {
                    let chunk = (sequence.known - sequence.computed).min(budget);
                    let needed = self.chunk_blocks(sequence, chunk);
                    if self.make_room(slot, needed, &mut budget) {
                        self.add_chunk(plan, slot, chunk);
                        budget -= chunk;
                    } else {
                        stopped = true;
                    }
                }
                // Its last token is already scheduled; it only still holds its place.
                _ => {}
            }
            slot = self.pool[slot].next;
        }
        budget
    }

    /// Takes `needed` blocks for `slot`, preempting others until they are there. False if the victim
    /// had to be `slot` itself.
    fn make_room(&mut self, slot: Slot, needed: Blocks, budget: &mut Tokens) -> bool {
        while needed > self.free_blocks {
            let victim = self.victim();
            let visited = self.pool[victim].admission < self.pool[slot].admission;
            if visited && self.pool[victim].state == State::Decoding {
                *budget += 1;
            }
            self.preempt(victim, visited);
            if victim == slot {
                return false;
            }
        }
        self.free_blocks -= needed;
        true
    }

    /// Who loses its blocks first: the last admitted or, under priority, the least urgent and latest.
    fn victim(&self) -> Slot {
        match self.config.scheduling_policy {
            SchedulingPolicy::Fcfs => self.running.tail,
            SchedulingPolicy::Priority => {
                let mut worst = self.running.head;
                let mut slot = worst;
                while slot != NIL {
                    let key = |slot: Slot| (self.pool[slot].priority, self.pool[slot].arrival);
                    if key(slot) > key(worst) {
                        worst = slot;
                    }
                    slot = self.pool[slot].next;
                }
                worst
            }
        }
    }

    /// Takes slot and blocks from `slot`. `scheduled`: it already had its turn in this composition, so
    /// that its token of the new step is counted in its blocks.
    fn preempt(&mut self, slot: Slot, scheduled: bool) {
        let step = self.cohort.step;
        let sequence = self.pool[slot];
        self.preempted.push(slot);
        self.running.unlink(&mut self.pool, slot);
        match sequence.state {
            State::Finishing => {
                let held = self.kv.blocks_for(sequence.final_context());
                self.free_blocks += sequence.fixed_blocks + held;
                self.pool[slot].state = State::FinishingEvicted;
                return;
            }
            State::Decoding => {
                let through = if scheduled { step } else { step - 1 };
                let held = self.kv.blocks_for(sequence.context_at(through));
                self.free_blocks += sequence.fixed_blocks + held;
                self.cohort.leave(slot, &sequence);
                self.pool[slot].generated += (step - sequence.entry_step) as Tokens;
                self.note_leaver(slot);
            }
            State::Prefilling => {
                let filled = match self.config.batching {
                    Batching::MaxUtilization => sequence.known,
                    _ => sequence.computed,
                };
                self.free_blocks += sequence.fixed_blocks + self.kv.blocks_for(filled);
                self.partial = NIL;
            }
            State::Waiting | State::FinishingEvicted => unreachable!("only members of the running list"),
        }
        let sequence = &mut self.pool[slot];
        sequence.state = State::Waiting;
        sequence.known = sequence.request.input_tokens + sequence.generated;
        sequence.computed = 0;
        sequence.preemptions += 1;
        self.waiting.push_preempted(slot, &self.pool[slot]);
    }

    /// `slot` gets nothing in this step and goes on a step later, everything else unchanged.
    fn postpone(&mut self, slot: Slot) {
        let sequence = self.pool[slot];
        self.cohort.leave(slot, &sequence);
        self.pool[slot].entry_step += 1;
        self.pool[slot].completes_at += 1;
        self.cohort.join(slot, &self.pool[slot]);
        self.note_leaver(slot);
        self.postponed.push(slot);
    }

    /// The gap to its next token is its own, counted from the end of the step before this one.
    fn note_leaver(&mut self, slot: Slot) {
        if !self.pool[slot].late {
            self.pool[slot].late = true;
            self.leavers.push(slot);
        }
    }

    fn date_leavers(&mut self, now: SimTime) {
        for slot in self.leavers.drain(..) {
            self.pool[slot].last_token = now;
        }
    }

    /// Phase 2: waiting requests, while slots, budget and blocks allow.
    #[inline]
    fn admit(&mut self, plan: &mut StepPlan, mut budget: Tokens) {
        while budget > 0 && self.running.len < self.config.max_num_seqs {
            let Some(slot) = self.waiting.peek() else { return };
            let sequence = &self.pool[slot];
            let chunk = sequence.known.min(budget);
            if chunk < sequence.known && !self.config.enable_chunked_prefill {
                return;
            }
            // The gate looks at the whole prompt, yet only the chunk's blocks are taken: several
            // admissions can pass against the same free blocks, as they do in vLLM.
            let taken = self.taken(sequence, chunk);
            let gate = match self.config.batching {
                Batching::Continuous if self.config.full_prompt_gate => sequence.known,
                _ => taken,
            };
            let watermark = if self.running.len > 0 { self.config.watermark_blocks } else { 0 };
            let fixed = sequence.fixed_blocks;
            if fixed + self.kv.blocks_for(gate) + watermark > self.free_blocks {
                return;
            }
            self.free_blocks -= fixed + self.kv.blocks_for(taken);
            self.start(plan, chunk);
            budget -= chunk;
        }
    }

    /// Tokens whose blocks a sequence takes when it is admitted with a first chunk.
    fn taken(&self, sequence: &Sequence, chunk: Tokens) -> Tokens {
        match self.config.batching {
            Batching::GuaranteedNoEvict => sequence.final_context(),
            Batching::MaxUtilization => sequence.known,
            _ => chunk,
        }
    }

    /// Moves the head of the queue to the running list and schedules its first chunk.
    fn start(&mut self, plan: &mut StepPlan, chunk: Tokens) {
        let Some(slot) = self.waiting.pop() else { return };
        let sequence = &mut self.pool[slot];
        sequence.state = State::Prefilling;
        sequence.admission = self.admissions;
        self.admissions += 1;
        self.running.push_back(&mut self.pool, slot);
        self.add_chunk(plan, slot, chunk);
    }

    fn add_chunk(&mut self, plan: &mut StepPlan, slot: Slot, chunk: Tokens) {
        let sequence = &mut self.pool[slot];
        let cached = sequence.computed;
        sequence.computed += chunk;
        let samples = sequence.computed == sequence.known;
        plan.shape.add_chunk(cached, chunk, samples, self.window);
        plan.prefill_tokens += chunk;
        plan.chunks.push(slot);
        if samples {
            plan.sampled.push(slot);
            self.joining.push(slot);
            self.partial = NIL;
        } else {
            self.partial = slot;
        }
    }

    /// Adds the decode cohort, without those who sit this step out, to the plan.
    #[inline]
    fn add_decodes(&mut self, plan: &mut StepPlan, postponed_before: &[Slot]) {
        let mut count = self.cohort.count;
        let mut context = self.cohort.context;
        let mut window_context = self.cohort.window_context();
        plan.steady_decodes.clone_from(&self.cohort.by_class);
        for &slot in &self.postponed {
            let sequence = &self.pool[slot];
            let own = sequence.context_at(self.cohort.step);
            count -= 1;
            context -= u64::from(own);
            window_context -= u64::from(own.min(self.window));
            plan.steady_decodes[usize::from(sequence.request.class)] -= 1;
        }
        for &slot in postponed_before {
            if self.pool[slot].state == State::Decoding && !self.postponed.contains(&slot) {
                self.pool[slot].late = false;
                plan.late.push(slot);
                plan.steady_decodes[usize::from(self.pool[slot].request.class)] -= 1;
            }
        }
        plan.count_emitted();
        plan.shape.tokens += count;
        plan.shape.sequences += count;
        plan.shape.sampled += count;
        plan.shape.decode_context = context;
        plan.shape.decode_window_context = window_context;
    }

    /// Reads the outputs of the step that ends `now`: dates tokens, and gives back the slots and blocks
    /// of those that completed.
    #[inline]
    pub fn outputs(&mut self, now: SimTime, plan: &StepPlan, sink: &mut impl Outputs) {
        for &slot in &plan.sampled {
            let sequence = &mut self.pool[slot];
            if sequence.first_token == SimTime::MAX {
                sequence.first_token = now;
            } else {
                sink.token_gaps(sequence.request.class, now.since(sequence.last_token), 1);
            }
            sequence.last_token = now;
        }
        for &slot in &plan.late {
            let sequence = &self.pool[slot];
            sink.token_gaps(sequence.request.class, now.since(sequence.last_token), 1);
        }
        if plan.decodes {
            let before = self.prefill_first.end_decode(now);
            for (class, &count) in (0..).zip(&plan.stalled_decodes) {
                sink.token_gaps(class, now.since(before), count);
            }
        }
        self.date_leavers(now);
        if self.config.batching == Batching::Static {
            self.finish_static_batch(sink);
            return;
        }
        if !self.finishing.is_empty() {
            self.prefill_first.release();
        }
        for at in 0..self.finishing.len() {
            let slot = self.finishing[at];
            sink.finished(&self.pool[slot]);
            if self.pool[slot].state == State::Finishing {
                self.release(slot);
            }
            self.pool.remove(slot);
        }
        self.finishing.clear();
    }

    fn release(&mut self, slot: Slot) {
        let sequence = &self.pool[slot];
        self.free_blocks += sequence.fixed_blocks + self.kv.blocks_for(sequence.final_context());
        self.running.unlink(&mut self.pool, slot);
    }
}
