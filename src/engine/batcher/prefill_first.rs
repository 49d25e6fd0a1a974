//! Composition as SGLang's scheduler decides it: a step holds prompts or decodes, and prompts go first.
//!
//! While prompts run the decode cohort stands still: its step counts decode steps only. A request is
//! admitted when the pool holds its prompt, its output and an estimated share of what the running ones
//! still have to write. The estimate is optimistic: when a decode step finds no room, requests with the
//! fewest output tokens are retracted, to be computed anew later, and the estimate rises. Admission stops
//! at the first that does not fit, until somebody leaves the batch.
//!
//! New requests are looked at once every `scheduler_recv_interval` decode steps, after every step with prompts
//! and when there is nothing to run (`SchedulerRecvSkipper`).
//!
//! Counted as of the step in flight; SGLang's overlapped scheduler sees outputs one step later, which
//! shifts its estimate by at most one token per running request.

use std::cmp::Reverse;

use super::{Batcher, StepPlan};
use crate::engine::config::PrefillFirst;
use crate::engine::sequence::{NIL, Sequence, Slot, State, final_context};
use crate::units::{Blocks, SimTime, Tokens};
use crate::workload::Request;

/// What lasts from step to step.
#[derive(Clone, Debug, Default)]
pub(super) struct Memory {
    /// Share of their remaining output that running requests are assumed to need still.
    new_token_ratio: f64,
    /// Admission has been given up until somebody leaves the batch.
    full: bool,
    /// Somebody completed since the last decode step.
    released: bool,
    /// Joined since the last decode step: the gap to their next token is their own.
    newcomers: Vec<Slot>,
    /// The step in flight decodes: when it ends is not known yet.
    decoding: bool,
    /// Prompts ran since the last decode step, or others without this scheduler.
    stalled: bool,
    /// End of the last decode step.
    decoded_at: SimTime,
    /// Came since the scheduler last looked; and how many decode steps it composed since, if the step composed
    /// last was one.
    inbox: Vec<Slot>,
    decodes_unlooked: Option<u32>,
}

impl Memory {
    pub fn new(policy: &PrefillFirst) -> Self {
        Self { new_token_ratio: policy.init_new_token_ratio, ..Self::default() }
    }

    pub fn join(&mut self, slot: Slot) {
        self.newcomers.push(slot);
    }

    /// When the stalled requests of a decode step that is just ending got their last token; notes that a
    /// decode step ends `now`.
    pub fn end_decode(&mut self, now: SimTime) -> SimTime {
        std::mem::replace(&mut self.decoded_at, now)
    }

    pub fn release(&mut self) {
        self.released = true;
    }

    pub fn come(&mut self, slot: Slot) {
        self.inbox.push(slot);
    }

    pub fn unreceived(&self) -> usize {
        self.inbox.len()
    }

    pub fn stall(&mut self) {
        self.stalled = true;
    }
}

/// What the step being composed can still take.
struct Room {
    /// Tokens of the pool without the held and the estimated ones; without the held ones.
    total: f64,
    current: f64,
    input: Tokens,
    chunk: Tokens,
}

impl Room {
    /// `input` in whole blocks.
    fn take(&mut self, input: Tokens, fixed: Tokens, new: Tokens) {
        self.total -= f64::from(input + fixed + new);
        self.current -= f64::from(input + fixed);
        self.input = self.input.saturating_sub(input);
        self.chunk = self.chunk.saturating_sub(input);
    }
}

impl Batcher<'_> {
    /// A request must leave room in an empty pool, or it would never be admitted. (SGLang itself would
    /// cut its output short.)
    pub(super) fn ever_admitted(&self, request: &Request) -> bool {
        let all = u64::from(request.input_tokens) + u64::from(request.output_tokens);
        let block = u64::from(self.kv.block_size);
        let fixed = u64::from(self.kv.fixed_blocks(final_context(request)));
        all + fixed * block < u64::from(self.kv.blocks) * block
    }

    pub(super) fn compose_prefill_first(&mut self, policy: &PrefillFirst, plan: &mut StepPlan) {
        let decodes = self.prefill_first.decodes_unlooked.unwrap_or(policy.scheduler_recv_interval);
        let mut looks = decodes >= policy.scheduler_recv_interval;
        if looks {
            self.receive();
        }
        self.compose_received(policy, plan);
        if plan.is_empty() && self.preempted.is_empty() && !self.prefill_first.inbox.is_empty() {
            // With nothing to run the scheduler goes round until it looks.
            looks = true;
            self.receive();
            self.compose_received(policy, plan);
        }
        let before = if looks { 0 } else { decodes };
        self.prefill_first.decodes_unlooked = plan.decodes.then_some(before + 1);
    }

    fn receive(&mut self) {
        for at in 0..self.prefill_first.inbox.len() {
            let slot = self.prefill_first.inbox[at];
            self.waiting.push(slot, &self.pool[slot]);
        }
        self.prefill_first.inbox.clear();
    }

    fn compose_received(&mut self, policy: &PrefillFirst, plan: &mut StepPlan) {
        plan.steady_decodes.clear();
        plan.steady_decodes.resize(self.config.class_priority.len(), 0);
        self.compose_prefills(policy, plan);
        if plan.is_empty() {
            self.compose_decodes(policy, plan);
        }
        if plan.is_empty() && self.preempted.is_empty() {
            // Nobody decodes, so the batch just found out that it is not full.
            self.compose_prefills(policy, plan);
        }
        if self.running.len == 0 && self.waiting.len() == 0 {
            self.prefill_first.new_token_ratio = policy.init_new_token_ratio;
        }
        self.prefill_first.stalled |= !plan.chunks.is_empty();
        self.prefill_first.decoding = plan.decodes && self.config.pipelined();
    }

    fn compose_prefills(&mut self, policy: &PrefillFirst, plan: &mut StepPlan) {
        if self.partial == NIL && (self.prefill_first.full || self.waiting.len() == 0) {
            return;
        }
        let mut room = self.room(policy);
        if self.partial != NIL {
            // Its whole prompt was found to fit when it was admitted, and nobody has grown since.
            let sequence = &self.pool[self.partial];
            let remaining = sequence.known - sequence.computed;
            let chunk = remaining.min(room.chunk);
            let new = if chunk < remaining { 0 } else { policy.new_tokens(sequence) };
            self.free_blocks -= self.chunk_blocks(sequence, chunk);
            self.add_chunk(plan, self.partial, chunk);
            room.take(chunk.next_multiple_of(self.kv.block_size), 0, new);
        }
        while let Some(slot) = self.waiting.peek() {
            if self.running.len >= self.config.max_num_seqs {
                self.prefill_first.full = true;
                return;
            }
            let Some((chunk, new)) = self.fitting_chunk(policy, &room, slot, plan) else { return };
            let fixed = self.pool[slot].fixed_blocks;
            self.free_blocks -= fixed + self.kv.blocks_for(chunk);
            self.start(plan, chunk);
            room.take(chunk.next_multiple_of(self.kv.block_size), fixed * self.kv.block_size, new);
            if room.total <= 0.0 || room.current <= 0.0 {
                self.prefill_first.full = true;
                return;
            }
            if room.input == 0 || room.chunk == 0 {
                return;
            }
        }
    }

    fn room(&self, policy: &PrefillFirst) -> Room {
        let mut reserved = 0;
        let mut slot = self.running.head;
        while slot != NIL {
            let sequence = &self.pool[slot];
            let left = match sequence.state {
                State::Decoding => sequence.request.output_tokens - self.decoded(sequence),
                _ => 0,
            };
            reserved += u64::from(left.min(policy.clip_max_new_tokens));
            slot = sequence.next;
        }
        let free = f64::from(self.free_blocks * self.kv.block_size);
        Room {
            total: free - reserved as f64 * self.prefill_first.new_token_ratio,
            current: free,
            input: policy.max_prefill_tokens,
            chunk: if self.config.enable_chunked_prefill {
                self.config.max_num_batched_tokens
            } else {
                Tokens::MAX
            },
        }
    }

    /// Output tokens that a decoding sequence has sampled in the steps composed so far.
    fn decoded(&self, sequence: &Sequence) -> Tokens {
        sequence.generated + (self.cohort.step - sequence.entry_step) as Tokens + 1
    }

    /// The first chunk of a waiting request and the output reserved with it, if it may join the step.
    fn fitting_chunk(
        &mut self,
        policy: &PrefillFirst,
        room: &Room,
        slot: Slot,
        plan: &StepPlan,
    ) -> Option<(Tokens, Tokens)> {
        let page = self.kv.block_size;
        let sequence = &self.pool[slot];
        let left = sequence.request.output_tokens - sequence.generated;
        let fixed = sequence.fixed_blocks * page;
        let total = sequence.known + fixed + left.min(policy.clip_max_new_tokens);
        if f64::from(total) >= room.total {
            self.prefill_first.full = true;
            return None;
        }
        let input = sequence.known.next_multiple_of(page);
        if input >= room.input && !plan.is_empty() {
            return None;
        }
        let (chunk, new) = if input <= room.chunk {
            (sequence.known, policy.new_tokens(sequence))
        } else {
            (room.chunk / page * page, 0)
        };
        if chunk == 0 {
            return None;
        }
        if sequence.fixed_blocks + self.kv.blocks_for(chunk) > self.free_blocks {
            self.prefill_first.full = true;
            return None;
        }
        Some((chunk, new))
    }

    fn compose_decodes(&mut self, policy: &PrefillFirst, plan: &mut StepPlan) {
        let memory = &mut self.prefill_first;
        if std::mem::take(&mut memory.released) {
            memory.full = false;
        }
        if self.cohort.count == 0 {
            return;
        }
        if self.cohort.blocks_needed_next() > self.free_blocks {
            self.prefill_first.full = false;
            self.retract(policy);
            if self.cohort.blocks_needed_next() > self.free_blocks {
                return;
            }
        } else {
            let memory = &mut self.prefill_first;
            memory.new_token_ratio =
                (memory.new_token_ratio - policy.new_token_ratio_decay).max(policy.min_new_token_ratio);
        }
        self.free_blocks -= self.cohort.blocks_needed_next();
        self.cohort.grow_older();
        self.add_decode_rows(plan);
    }

    fn add_decode_rows(&mut self, plan: &mut StepPlan) {
        plan.shape.tokens = self.cohort.count;
        plan.shape.sequences = self.cohort.count;
        plan.shape.sampled = self.cohort.count;
        plan.shape.decode_context = self.cohort.context;
        plan.shape.decode_window_context = self.cohort.window_context();
        plan.decodes = true;
        let memory = &mut self.prefill_first;
        let emitting = if std::mem::take(&mut memory.stalled) {
            plan.stalled_decodes.resize(self.cohort.by_class.len(), 0);
            &mut plan.stalled_decodes
        } else {
            &mut plan.steady_decodes
        };
        emitting.clone_from(&self.cohort.by_class);
        for slot in memory.newcomers.drain(..) {
            emitting[usize::from(self.pool[slot].request.class)] -= 1;
            plan.late.push(slot);
        }
    }

    /// Sends decoding sequences back to the end of the queue, those with the fewest output tokens first
    /// and of these the longest prompt, until the rest can go on. One stays whatever happens.
    fn retract(&mut self, policy: &PrefillFirst) {
        let mut stay: Vec<Slot> = Vec::with_capacity(self.cohort.count as usize);
        let mut slot = self.running.head;
        while slot != NIL {
            if self.pool[slot].state == State::Decoding {
                stay.push(slot);
            }
            slot = self.pool[slot].next;
        }
        stay.sort_by_key(|&slot| {
            let sequence = &self.pool[slot];
            Reverse((self.decoded(sequence), Reverse(sequence.request.input_tokens)))
        });
        while stay.len() > 1 && self.short(policy) {
            if let Some(slot) = stay.pop() {
                self.send_back(slot);
            }
        }
        let sequences = stay.iter().map(|&slot| &self.pool[slot]);
        let (mut decoded, mut all) = (0, 0);
        for sequence in sequences {
            decoded += u64::from(self.decoded(sequence));
            all += u64::from(sequence.request.output_tokens);
        }
        let ahead = u64::from(policy.retract_decode_steps) * stay.len() as u64;
        self.prefill_first.new_token_ratio = ((decoded + ahead) as f64 / (all + 1) as f64).min(1.0);
    }

    fn short(&self, policy: &PrefillFirst) -> bool {
        let free = u64::from(self.free_blocks) * u64::from(self.kv.block_size);
        let headroom = u64::from(policy.retract_decode_steps) * u64::from(self.cohort.count);
        policy.retract_to_headroom && headroom > free || self.cohort.blocks_needed_next() > self.free_blocks
    }

    fn send_back(&mut self, slot: Slot) {
        let sequence = self.pool[slot];
        let held: Blocks = self.kv.blocks_for(sequence.context_at(self.cohort.step));
        self.free_blocks += sequence.fixed_blocks + held;
        let decoded = self.decoded(&sequence);
        self.cohort.leave(slot, &sequence);
        self.running.unlink(&mut self.pool, slot);
        self.preempted.push(slot);
        let newcomer = self.prefill_first.newcomers.iter().position(|&other| other == slot);
        if let Some(at) = newcomer {
            // Its token is dated when the step of its prompt ends.
            self.prefill_first.newcomers.remove(at);
        } else if self.prefill_first.decoding {
            self.leavers.push(slot);
        } else {
            self.pool[slot].last_token = self.prefill_first.decoded_at;
        }
        let sequence = &mut self.pool[slot];
        sequence.state = State::Waiting;
        sequence.generated = decoded;
        sequence.known = sequence.request.input_tokens + decoded;
        sequence.computed = 0;
        sequence.preemptions += 1;
        self.waiting.push(slot, &self.pool[slot]);
    }
}

impl PrefillFirst {
    /// Output reserved for a request in the step that admits it.
    fn new_tokens(&self, sequence: &Sequence) -> Tokens {
        sequence.request.output_tokens.min(self.clip_max_new_tokens)
    }
}
