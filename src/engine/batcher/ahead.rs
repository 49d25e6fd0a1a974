//! What is sure about the steps to come: what a fleet needs to leave a replica alone until it matters.

use super::{Batcher, Batching, NIL, Slot};

/// Steps that are searched for the next completion; one further ahead is looked for again later.
const LOOK_AHEAD: u64 = 64;

impl Batcher<'_> {
    /// How many steps end, that of the completion included, until a sequence completes, if no request
    /// comes: at least this many. Never 0; 1 means that the step in flight may bring a completion.
    pub fn steps_to_completion(&self) -> u64 {
        match self.config.batching {
            Batching::Continuous | Batching::GuaranteedNoEvict | Batching::MaxUtilization => {}
            Batching::Static | Batching::PrefillFirst(_) => return 1,
        }
        if !self.finishing.is_empty() {
            return 1;
        }
        let remaining = |slot: Slot| {
            let sequence = &self.pool[slot];
            u64::from(sequence.request.output_tokens.saturating_sub(sequence.generated).max(1))
        };
        // The step composed last is the one in flight or, if pipelined, the one behind it.
        let composed = if self.config.pipelined() { 2 } else { 1 };
        let mut steps = composed + self.cohort.steps_to_completion(LOOK_AHEAD);
        for &slot in &self.joining {
            steps = steps.min(composed + remaining(slot) - 1);
        }
        // Others sample their first token in the step after that at the earliest.
        if self.partial != NIL {
            steps = steps.min(composed + remaining(self.partial));
        }
        match (self.waiting.len(), self.waiting.peek()) {
            (0, _) | (_, None) => steps,
            (1, Some(slot)) => steps.min(composed + remaining(slot)),
            _ => steps.min(composed + 1),
        }
    }

    /// Whether blocks surely last for `steps` more steps of the running sequences.
    pub fn has_blocks_for(&self, steps: u64) -> bool {
        let growth = u64::from(self.running.len) * (steps / u64::from(self.kv.block_size) + 1);
        growth <= u64::from(self.free_blocks)
    }
}
