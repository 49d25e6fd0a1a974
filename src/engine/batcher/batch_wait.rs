//! Prompts that wait while others decode, so that more of them are computed together.
//!
//! TensorRT-LLM holds prompts back after its scheduler has chosen them (`_schedule` in pyexecutor/py_executor.py):
//! the step only decodes, nothing was taken yet for those that are new, and the next step chooses anew.

use super::{Batcher, StepPlan};
use crate::engine::sequence::{NIL, Slot, State};

impl Batcher<'_> {
    /// Whether the prompts of `plan` are to be held back, by the rule of [`BatchWait`]; counts the steps.
    ///
    /// [`BatchWait`]: crate::engine::config::BatchWait
    #[inline]
    pub(super) fn waits_for_a_larger_batch(&mut self, plan: &StepPlan) -> bool {
        let Some(wait) = self.config.batch_wait else { return false };
        let decodes = plan.decoding();
        if plan.chunks.is_empty() || decodes == 0 {
            return false;
        }
        let prompt = |slot: &Slot| u64::from(self.pool[*slot].known);
        let tokens = plan.chunks.iter().map(prompt).sum::<u64>() + u64::from(decodes);
        let enough = wait.max_tokens_ratio * f64::from(self.config.max_num_batched_tokens);
        let waits = self.held_steps < wait.timeout_iters && (tokens as f64) < enough;
        self.held_steps = if waits { self.held_steps + 1 } else { 0 };
        waits
    }

    /// Takes the prompts out of the step composed last, as if it had held only decodes: whoever was admitted
    /// for it returns to the head of the queue, and a prompt that was begun before keeps its place and blocks.
    pub fn hold_back(&mut self, plan: &mut StepPlan) {
        if plan.chunks.is_empty() {
            return;
        }
        let decoding = plan.decoding();
        self.joining.clear();
        self.partial = NIL;
        let mut tokens = plan.prefill_tokens;
        while let Some(slot) = plan.chunks.pop() {
            let computed = self.pool[slot].computed;
            if computed > tokens {
                // Only the first chunk can continue a prompt; the others are all that their prompts have.
                self.pool[slot].computed -= tokens;
                self.partial = slot;
                break;
            }
            tokens -= computed;
            self.send_to_the_head(slot);
        }
        plan.hold_only_decodes(decoding);
    }

    /// Undoes the admission of `slot` in the step composed last.
    fn send_to_the_head(&mut self, slot: Slot) {
        let sequence = self.pool[slot];
        let taken = self.taken(&sequence, sequence.computed);
        self.free_blocks += sequence.fixed_blocks + self.kv.blocks_for(taken);
        self.running.unlink(&mut self.pool, slot);
        let sequence = &mut self.pool[slot];
        sequence.state = State::Waiting;
        sequence.computed = 0;
        self.waiting.push_preempted(slot, &self.pool[slot]);
    }
}
