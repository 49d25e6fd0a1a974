//! Who gets how many tokens in the next step.
//!
//! What a step does to its sequences counts from here on, so the step after it can be composed before it
//! has run.

use knee::cost::StepShape;
use knee::engine::{Batching, SchedulingPolicy};
use knee::units::Tokens;

use super::Engine;

/// A composed step, in the order in which it was composed.
#[derive(Default)]
pub struct Plan {
    pub rows: Vec<Row>,
    /// Sequences that ran before it was composed and still do; those behind them on the list were admitted for it.
    seated: usize,
}

/// One sequence's part of a step.
pub struct Row {
    pub id: usize,
    /// Tokens whose KV was there before.
    cached: Tokens,
    pub tokens: Tokens,
    pub kind: Kind,
    /// How often the sequence had lost its blocks by then.
    pub losses: u32,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Chunk,
    /// The prompt's last chunk: a token is sampled.
    LastChunk,
    Decode,
    /// A member of a static batch that has all its tokens: it costs what a decode costs.
    Padding,
}

impl Kind {
    /// Whether the step samples a token that a client gets.
    pub const fn samples(self) -> bool {
        matches!(self, Self::LastChunk | Self::Decode)
    }
}

impl Plan {
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    pub fn shape(&self, window: Tokens) -> StepShape {
        let mut shape = StepShape::default();
        for row in &self.rows {
            match row.kind {
                Kind::Chunk | Kind::LastChunk => {
                    shape.add_chunk(row.cached, row.tokens, row.kind == Kind::LastChunk, window);
                }
                Kind::Decode | Kind::Padding => {
                    let context = row.cached + row.tokens;
                    shape.tokens += row.tokens;
                    shape.sequences += 1;
                    shape.sampled += row.tokens;
                    shape.decode_context += u64::from(context);
                    shape.decode_window_context += u64::from(context.min(window));
                }
            }
        }
        shape
    }
}

impl Engine<'_> {
    pub fn compose(&mut self) -> Plan {
        match self.batcher.batching {
            Batching::Continuous | Batching::GuaranteedNoEvict | Batching::MaxUtilization => {
                self.compose_continuous()
            }
            Batching::Static => self.compose_static(),
            Batching::PrefillFirst(policy) => self.compose_prefill_first(&policy),
        }
    }

    fn compose_continuous(&mut self) -> Plan {
        let preemptions = self.outcome.preemptions;
        let mut plan = Plan::default();
        let mut budget = self.batcher.max_num_batched_tokens;
        self.compose_running(&mut plan, &mut budget);
        plan.seated = self.running.len();
        if self.outcome.preemptions == preemptions {
            self.compose_waiting(&mut plan, &mut budget);
        }
        if self.waits(&plan) {
            self.hold_back(&mut plan);
        }
        plan
    }

    /// TensorRT-LLM's `_schedule` and `_waiting_requests`: whether the prompts of a step wait for others.
    fn waits(&mut self, plan: &Plan) -> bool {
        let Some(wait) = self.batcher.batch_wait else { return false };
        let (decodes, prompts): (Vec<&Row>, Vec<&Row>) =
            plan.rows.iter().partition(|row| row.kind == Kind::Decode);
        if decodes.is_empty() || prompts.is_empty() {
            // Nothing is asked, and the count stands.
            return false;
        }
        let scheduled = decodes.iter().map(|row| row.tokens).sum::<Tokens>()
            + prompts.iter().map(|row| self.sequences[row.id].prompt).sum::<Tokens>();
        let enough = wait.max_tokens_ratio * f64::from(self.batcher.max_num_batched_tokens);
        if self.wait_iters >= wait.timeout_iters || f64::from(scheduled) >= enough {
            self.wait_iters = 0;
            return false;
        }
        self.wait_iters += 1;
        true
    }

    /// Leaves the decodes of a step. What was admitted for it is back in the queue, where it stood.
    pub fn hold_back(&mut self, plan: &mut Plan) {
        let admitted = self.running.split_off(plan.seated);
        self.waiting.splice(0..0, admitted);
        plan.rows.retain(|row| {
            if row.kind == Kind::Decode {
                return true;
            }
            let sequence = &mut self.sequences[row.id];
            sequence.kv = row.cached;
            sequence.slots = row.cached;
            sequence.pending -= u32::from(row.kind.samples());
            false
        });
    }

    /// Phase 1: the running list in order, preempting where blocks run out.
    fn compose_running(&mut self, plan: &mut Plan, budget: &mut Tokens) {
        let mut next = 0;
        while next < self.running.len() && *budget > 0 {
            let id = self.running[next];
            // Settled before any preemption: tokens that a victim gives back are for those behind.
            let tokens = self.wanted(id).min(*budget);
            if tokens == 0 {
                next += 1;
                continue;
            }
            let slots = self.sequences[id].slots;
            let needed = self.slots_with(id, tokens);
            while self.held(id, needed) - self.held(id, slots) > self.free_blocks() {
                let place = self.victim();
                let victim = self.running.remove(place);
                *budget += self.unschedule(plan, victim);
                self.preempt(victim);
                if victim == id {
                    return;
                }
                if place < next {
                    next -= 1;
                }
            }
            self.schedule(plan, budget, id, tokens);
            self.sequences[id].slots = needed;
            next += 1;
        }
    }

    /// Tokens that a running sequence would have in a step: none if its last token will be out by then or it
    /// must see a token first that is on its way.
    fn wanted(&self, id: usize) -> Tokens {
        let sequence = &self.sequences[id];
        if sequence.finishing() || sequence.pending > self.server.ahead() {
            return 0;
        }
        if sequence.kv < sequence.prompt {
            return sequence.remaining();
        }
        let drafts = self.server.speculation.as_ref().map_or(0, |s| s.num_speculative_tokens);
        // vLLM's limit: the token after the last of the context is never computed.
        (1 + drafts).min((self.batcher.max_model_len - 1).saturating_sub(sequence.kv))
    }

    /// Slots that a running sequence has once it has `tokens` tokens more.
    fn slots_with(&self, id: usize, tokens: Tokens) -> Tokens {
        let sequence = &self.sequences[id];
        let lookahead = self.server.speculation.as_ref().map_or(0, |s| s.lookahead);
        sequence.slots.max((sequence.kv + tokens + lookahead).min(self.batcher.max_model_len))
    }

    /// Phase 2: the queue from its head, until one does not fit.
    fn compose_waiting(&mut self, plan: &mut Plan, budget: &mut Tokens) {
        while self.running.len() < self.batcher.max_num_seqs as usize && *budget > 0 {
            let Some(&id) = self.waiting.first() else { return };
            let sequence = &mut self.sequences[id];
            if sequence.under_way > 0 {
                // What it lost its blocks for is still in a stage.
                return;
            }
            sequence.prompt = sequence.request.input_tokens + sequence.emitted;
            let remaining = sequence.remaining();
            if !self.batcher.enable_chunked_prefill && remaining > *budget {
                return;
            }
            let tokens = remaining.min(*budget);
            let gate = if self.batcher.full_prompt_gate { remaining } else { tokens };
            let reserve = if self.running.is_empty() { 0 } else { self.batcher.watermark_blocks };
            if self.held(id, gate) + reserve > self.free_blocks() {
                return;
            }
            self.waiting.remove(0);
            self.running.push(id);
            self.schedule(plan, budget, id, tokens);
        }
    }

    /// A batch is formed when the one before is gone, and admits its members as the token budget allows.
    /// Chunked prefill on or off makes no difference to it: a prompt is always cut at the budget.
    fn compose_static(&mut self) -> Plan {
        let mut plan = Plan::default();
        let mut budget = self.batcher.max_num_batched_tokens;
        if self.running.is_empty() {
            self.quota = self.batcher.max_num_seqs.min(self.waiting.len() as u32);
        }
        for id in self.running.clone() {
            if budget > 0 {
                let tokens = self.sequences[id].remaining().min(budget);
                self.schedule(&mut plan, &mut budget, id, tokens);
            }
        }
        while self.quota > 0 && budget > 0 {
            let id = self.waiting[0];
            if self.reservation(self.sequences[id].total()) > self.free_blocks() {
                self.quota = 0;
                break;
            }
            self.quota -= 1;
            self.waiting.remove(0);
            self.running.push(id);
            let tokens = self.sequences[id].remaining().min(budget);
            self.schedule(&mut plan, &mut budget, id, tokens);
        }
        plan
    }

    /// Gives a running sequence `tokens` tokens of the step.
    pub(super) fn schedule(&mut self, plan: &mut Plan, budget: &mut Tokens, id: usize, tokens: Tokens) {
        let sequence = &mut self.sequences[id];
        let cached = sequence.kv;
        let kind = if cached + tokens < sequence.prompt {
            Kind::Chunk
        } else if cached < sequence.prompt {
            Kind::LastChunk
        } else if sequence.finishing() {
            Kind::Padding
        } else {
            Kind::Decode
        };
        sequence.kv += tokens;
        sequence.slots = sequence.slots.max(sequence.kv);
        sequence.pending += u32::from(kind.samples());
        *budget -= tokens;
        let losses = sequence.losses;
        plan.rows.push(Row { id, cached, tokens, kind, losses });
    }

    /// Takes a sequence out of the step that is being composed; the tokens that this sets free.
    fn unschedule(&mut self, plan: &mut Plan, id: usize) -> Tokens {
        let Some(place) = plan.rows.iter().position(|row| row.id == id) else {
            return 0;
        };
        let row = plan.rows.remove(place);
        self.sequences[id].kv = row.cached;
        self.sequences[id].pending -= u32::from(row.kind.samples());
        row.tokens
    }

    /// Who is preempted: a place on the running list.
    fn victim(&self) -> usize {
        let last = self.running.len() - 1;
        match self.batcher.scheduling_policy {
            SchedulingPolicy::Fcfs => last,
            SchedulingPolicy::Priority => {
                (0..=last).max_by_key(|&place| self.urgency(self.running[place])).unwrap_or(last)
            }
        }
    }

    /// What a sequence that has left the running list loses. One whose last token is on its way has
    /// nothing to recompute: it completes when that token is out.
    pub(super) fn preempt(&mut self, id: usize) {
        self.outcome.preemptions += 1;
        let sequence = &mut self.sequences[id];
        sequence.kv = 0;
        sequence.slots = 0;
        sequence.losses += 1;
        if !sequence.finishing() {
            sequence.prompt = sequence.request.input_tokens + sequence.sampled();
            sequence.preemptions += 1;
            let place = match self.batcher.batching {
                Batching::PrefillFirst(_) => self.waiting.len(),
                _ => 0,
            };
            self.enqueue(id, place);
        }
    }
}
