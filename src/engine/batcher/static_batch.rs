//! The batcher of old, beside the continuous one because the contrast teaches: a batch runs to its longest
//! member, and those who have finished wait in it.

use super::{Batcher, Outputs, StepPlan};
use crate::engine::sequence::NIL;

impl Batcher<'_> {
    /// A static batch: members join only while it forms, with their full length reserved, and it runs
    /// until its longest member is done. Prompts are always chunked: a batch waits for its members.
    pub(super) fn compose_static(&mut self, plan: &mut StepPlan) {
        let mut budget = self.config.max_num_batched_tokens - self.cohort.count;
        if self.partial != NIL {
            let sequence = &self.pool[self.partial];
            let chunk = (sequence.known - sequence.computed).min(budget);
            self.add_chunk(plan, self.partial, chunk);
            budget -= chunk;
        }
        if self.running.len == 0 {
            self.batch_quota = self.waiting_len().min(self.config.max_num_seqs);
        }
        while self.batch_quota > 0 && budget > 0 {
            let Some(slot) = self.waiting.peek() else { return };
            let sequence = &self.pool[slot];
            let needed = sequence.fixed_blocks + self.kv.blocks_for(sequence.final_context());
            if needed > self.free_blocks {
                self.batch_quota = 0;
                return;
            }
            let chunk = sequence.known.min(budget);
            self.free_blocks -= needed;
            self.batch_quota -= 1;
            self.unfinished += 1;
            self.start(plan, chunk);
            budget -= chunk;
        }
    }

    /// Ends the batch if nobody in it lacks tokens and nobody may still join.
    pub(super) fn finish_static_batch(&mut self, sink: &mut impl Outputs) {
        self.unfinished -= self.finishing.len() as u32;
        self.finishing.clear();
        let open = self.batch_quota > 0 && self.waiting.len() > 0;
        if open || self.unfinished > 0 {
            return;
        }
        while self.running.head != NIL {
            let slot = self.running.head;
            sink.finished(&self.pool[slot]);
            self.cohort.forget_row(slot, &self.pool[slot]);
            self.release(slot);
            self.pool.remove(slot);
        }
    }
}
