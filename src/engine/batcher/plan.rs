//! A composed step.

use crate::cost::StepShape;
use crate::engine::sequence::Slot;

/// What a composed step holds beyond the decode cohort, which is implicit.
#[derive(Clone, Debug, Default)]
pub(in crate::engine) struct StepPlan {
    pub shape: StepShape,
    /// Sequences with a prefill chunk in this step.
    pub chunks: Vec<Slot>,
    /// Of these, the ones whose chunk is the last of their prefill: they sample a token.
    pub sampled: Vec<Slot>,
    /// Decoding sequences that sat out the step before: their gap is their own.
    pub late: Vec<Slot>,
    /// Decoding sequences by class without the late ones, and how many emit in all.
    pub steady_decodes: Vec<u32>,
    pub prefill_tokens: u32,
    /// Prefill first: whether the step decodes, and decoding sequences by class that stood still while
    /// prompts ran; they are not among the steady ones.
    pub decodes: bool,
    pub stalled_decodes: Vec<u32>,
    /// Tokens that leave the replica when the step ends.
    pub emitted: u32,
}

impl StepPlan {
    pub fn is_empty(&self) -> bool {
        self.shape.sequences == 0
    }

    pub(super) fn clear(&mut self) {
        self.shape = StepShape::default();
        self.chunks.clear();
        self.sampled.clear();
        self.late.clear();
        self.prefill_tokens = 0;
        self.decodes = false;
        self.stalled_decodes.clear();
    }

    /// Sets how many tokens leave the replica when the step ends.
    pub(super) fn count_emitted(&mut self) {
        let grouped = self.steady_decodes.iter().chain(&self.stalled_decodes).sum::<u32>();
        self.emitted = grouped + self.late.len() as u32 + self.sampled.len() as u32;
    }

    /// Makes it another step of the same decoding sequences.
    pub fn set_contexts(&mut self, (context, window_context): (u64, u64)) {
        self.shape.decode_context = context;
        self.shape.decode_window_context = window_context;
    }

    /// Sequences that decode in it.
    pub fn decoding(&self) -> u32 {
        self.shape.sequences - self.chunks.len() as u32
    }

    /// Makes it a step of its `decoding` sequences alone.
    pub(super) fn hold_only_decodes(&mut self, decoding: u32) {
        let StepShape { decode_context, decode_window_context, .. } = self.shape;
        self.shape = StepShape {
            tokens: decoding,
            sequences: decoding,
            sampled: decoding,
            decode_context,
            decode_window_context,
            ..StepShape::default()
        };
        self.chunks.clear();
        self.sampled.clear();
        self.prefill_tokens = 0;
        self.count_emitted();
    }

    /// Whether it holds the decode cohort and nothing else.
    pub fn only_decodes(&self) -> bool {
        !self.is_empty() && self.chunks.is_empty() && self.late.is_empty()
    }
}
