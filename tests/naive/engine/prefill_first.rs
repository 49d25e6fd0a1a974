//! SGLang's scheduler: a step holds prompts or decodes, never both, and prompts go first.

use std::cmp::Reverse;

use knee::engine::PrefillFirst;
use knee::units::{Blocks, Tokens};

use super::Engine;
use super::compose::{Kind, Plan};

/// What a step with prompts adds to the counter of steps since the scheduler looked at what came; a decode step
/// adds 1.
const WEIGHT_OF_PROMPTS: u32 = 1000;

/// What its adder still has to give.
struct Room {
    /// Tokens of the pool that nobody has or, by the estimate, will have.
    total: f64,
    /// Tokens of the pool that nobody has.
    current: f64,
    input: Tokens,
    chunk: Tokens,
}

impl Room {
    fn take(&mut self, input: Tokens, chunk: Tokens, fixed: Tokens, new: Tokens) {
        self.total -= f64::from(input + fixed + new);
        self.current -= f64::from(input + fixed);
        self.input = self.input.saturating_sub(input);
        self.chunk = self.chunk.saturating_sub(chunk);
    }
}

impl Engine<'_> {
    pub(super) fn compose_prefill_first(&mut self, policy: &PrefillFirst) -> Plan {
        let preemptions = self.outcome.preemptions;
        self.counter += match self.last {
            // Going round with nothing to run counts too, in no time.
            None => policy.scheduler_recv_interval,
            Some(Kind::Decode | Kind::Padding) => 1,
            Some(Kind::Chunk | Kind::LastChunk) => WEIGHT_OF_PROMPTS,
        };
        if self.counter >= policy.scheduler_recv_interval {
            self.look();
        }
        let mut plan = self.compose_known(policy);
        if plan.is_empty() && self.outcome.preemptions == preemptions && !self.inbox.is_empty() {
            self.look();
            plan = self.compose_known(policy);
        }
        self.last = plan.rows.first().map(|row| row.kind);
        plan
    }

    fn look(&mut self) {
        self.counter = 0;
        self.waiting.append(&mut self.inbox);
    }

    fn compose_known(&mut self, policy: &PrefillFirst) -> Plan {
        let preemptions = self.outcome.preemptions;
        let mut plan = self.compose_prefills(policy);
        if plan.is_empty() {
            plan = self.compose_decodes(policy);
        }
        if plan.is_empty() && self.outcome.preemptions == preemptions {
            // Nobody decodes, so the batch just found out that it is not full.
            plan = self.compose_prefills(policy);
        }
        if self.running.is_empty() && self.waiting.is_empty() {
            self.ratio = policy.init_new_token_ratio;
        }
        plan
    }

    fn compose_prefills(&mut self, policy: &PrefillFirst) -> Plan {
        let mut plan = Plan::default();
        let partial = self.running.iter().copied().find(|&id| self.prefilling(id));
        if partial.is_none() && (self.full || self.waiting.is_empty()) {
            return plan;
        }
        let page = self.kv.block_size;
        let mut reserved = 0;
        for &id in &self.running {
            if Some(id) != partial {
                let sequence = &self.sequences[id];
                let left = sequence.request.output_tokens - sequence.sampled();
                reserved += u64::from(left.min(policy.clip_max_new_tokens));
            }
        }
        let free = f64::from(self.free_blocks() * page);
        let chunk = if self.batcher.enable_chunked_prefill {
            self.batcher.max_num_batched_tokens
        } else {
            Tokens::MAX
        };
        let mut room = Room {
            total: free - reserved as f64 * self.ratio,
            current: free,
            input: policy.max_prefill_tokens,
            chunk,
        };
        if let Some(id) = partial {
            let remaining = self.sequences[id].remaining();
            let tokens = remaining.min(room.chunk);
            let new = if tokens < remaining { 0 } else { self.new_tokens(id, policy) };
            self.put(&mut plan, id, tokens);
            let paged = tokens.next_multiple_of(page);
            room.take(paged, paged, 0, new);
        }
        while let Some(&id) = self.waiting.first() {
            if self.running.len() >= self.batcher.max_num_seqs as usize {
                self.full = true;
                break;
            }
            let sequence = &self.sequences[id];
            let left = sequence.request.output_tokens - sequence.sampled();
            let fixed = self.kv.fixed_blocks(sequence.total()) * page;
            let total = sequence.prompt + fixed + left.min(policy.clip_max_new_tokens);
            if f64::from(total) >= room.total {
                self.full = true;
                break;
            }
            let input = sequence.prompt.next_multiple_of(page);
            if input >= room.input && !plan.is_empty() {
                break;
            }
            let (tokens, new) = if input <= room.chunk {
                (sequence.prompt, self.new_tokens(id, policy))
            } else {
                (room.chunk / page * page, 0)
            };
            if tokens == 0 {
                break;
            }
            if self.held(id, tokens) > self.free_blocks() {
                self.full = true;
                break;
            }
            self.waiting.remove(0);
            self.running.push(id);
            self.put(&mut plan, id, tokens);
            let paged = tokens.next_multiple_of(page);
            room.take(paged, paged, fixed, new);
            if room.total <= 0.0 || room.current <= 0.0 {
                self.full = true;
                break;
            }
            if room.input == 0 || room.chunk == 0 {
                break;
            }
        }
        plan
    }

    fn compose_decodes(&mut self, policy: &PrefillFirst) -> Plan {
        let mut plan = Plan::default();
        let mut stay: Vec<usize> =
            self.running.iter().copied().filter(|&id| !self.sequences[id].finishing()).collect();
        if self.released {
            self.full = false;
            self.released = false;
        }
        if stay.is_empty() {
            return plan;
        }
        if self.blocks_of_next(&stay) > self.free_blocks() {
            self.full = false;
            self.retract(policy, &mut stay);
            if self.blocks_of_next(&stay) > self.free_blocks() {
                return plan;
            }
        } else {
            self.ratio = (self.ratio - policy.new_token_ratio_decay).max(policy.min_new_token_ratio);
        }
        for id in self.running.clone() {
            if stay.contains(&id) {
                self.put(&mut plan, id, 1);
            }
        }
        plan
    }

    /// Sends decoding sequences back to the end of the queue, those with the fewest output tokens first,
    /// until the rest can go on; the last one stays whatever happens.
    fn retract(&mut self, policy: &PrefillFirst, stay: &mut Vec<usize>) {
        stay.sort_by_key(|&id| {
            let sequence = &self.sequences[id];
            Reverse((sequence.sampled(), Reverse(sequence.request.input_tokens)))
        });
        while stay.len() > 1 && self.short(policy, stay) {
            let id = stay.pop().expect("more than one");
            self.running.retain(|&other| other != id);
            self.preempt(id);
        }
        let decoded: u64 = stay.iter().map(|&id| u64::from(self.sequences[id].sampled())).sum();
        let ahead = u64::from(policy.retract_decode_steps) * stay.len() as u64;
        let all: u64 = stay.iter().map(|&id| u64::from(self.sequences[id].request.output_tokens)).sum();
        self.ratio = ((decoded + ahead) as f64 / (all + 1) as f64).min(1.0);
    }

    fn short(&self, policy: &PrefillFirst, stay: &[usize]) -> bool {
        if policy.retract_to_headroom {
            let wanted = u64::from(policy.retract_decode_steps) * stay.len() as u64;
            let free = u64::from(self.free_blocks()) * u64::from(self.kv.block_size);
            if wanted > free {
                return true;
            }
        }
        self.blocks_of_next(stay) > self.free_blocks()
    }

    fn blocks_of_next(&self, ids: &[usize]) -> Blocks {
        let more = |&id: &usize| {
            let slots = self.sequences[id].slots;
            self.held(id, slots + 1) - self.held(id, slots)
        };
        ids.iter().map(more).sum()
    }

    fn put(&mut self, plan: &mut Plan, id: usize, tokens: Tokens) {
        let mut no_budget_is_kept = Tokens::MAX;
        self.schedule(plan, &mut no_budget_is_kept, id, tokens);
    }

    fn prefilling(&self, id: usize) -> bool {
        self.sequences[id].kv < self.sequences[id].prompt
    }

    fn new_tokens(&self, id: usize, policy: &PrefillFirst) -> Tokens {
        self.sequences[id].request.output_tokens.min(policy.clip_max_new_tokens)
    }
}
