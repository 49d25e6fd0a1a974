//! The model that drafts tokens for another: what it adds to memory and to a step.

use std::sync::Arc;

use super::StepCost;
use crate::catalog::{Dtype, Hardware, Model, ProfileValues};
use crate::units::{Bytes, Tokens};

/// A draft model on the GPUs of the model it drafts for, under the same tensor parallelism.
#[derive(Clone, Debug)]
pub struct Draft {
    pub model: Arc<Model>,
    pub weight_dtype: Dtype,
    /// Embeddings and output head are the other model's.
    pub shares_embeddings: bool,
}

impl Draft {
    /// EAGLE and multi-token prediction: one more layer of the kind that `model` ends with, between its
    /// own embeddings and head. The projection that joins hidden state and token is left out.
    #[must_use]
    pub fn one_layer_of(model: &Model, weight_dtype: Dtype) -> Self {
        let mut layer = model.clone();
        if let Some(mut last) = layer.layers.pop() {
            last.count = 1;
            layer.layers = vec![last];
        }
        Self { model: Arc::new(layer), weight_dtype, shares_embeddings: true }
    }

    /// Its weights on one of `tp` GPUs.
    #[must_use]
    pub fn weight_bytes(&self, tp: u32) -> Bytes {
        let weights = self.model.weight_bytes(self.weight_dtype);
        let own = if self.shares_embeddings { 0.0 } else { weights.embeddings_and_head };
        libm::ceil((own + weights.dense + weights.routed) / f64::from(tp.max(1))) as Bytes
    }

    /// Its KV per token on one of `tp` GPUs, held as long as the sequence (windows are not made use of).
    #[must_use]
    pub fn kv_bytes_per_token(&self, kv_dtype: Dtype, tp: u32) -> Bytes {
        self.model.growing_kv_bytes_per_token(kv_dtype, tp)
            + self.model.window_kv_bytes_per_token(kv_dtype, tp)
    }

    /// Its steps, of at most `max_num_batched_tokens`. What the host spends on a sequence is in the steps
    /// of the model it drafts for.
    #[must_use]
    pub fn cost(
        &self,
        kv_dtype: Dtype,
        hardware: &Hardware,
        profile: &ProfileValues,
        tp: u32,
        max_num_batched_tokens: Tokens,
    ) -> StepCost {
        let profile = ProfileValues { per_sequence_s: 0.0, ..profile.clone() };
        StepCost::new(
            &self.model,
            self.weight_dtype,
            kv_dtype,
            hardware,
            &profile,
            tp,
            max_num_batched_tokens,
        )
    }
}
