//! Attention: multiplying queries with keys and values, and reading these from the cache.

use crate::catalog::{Attention, Dtype, Model};
use crate::cost::StepShape;

/// Compute of attention: seconds per unit of the [`StepShape`]'s sums.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct AttentionCost {
    per_pair_x2_s: f64,
    per_window_pair_x2_s: f64,
    /// Latent attention decodes in the latent space, where compute is not negligible.
    pub per_decode_context_s: f64,
    /// Linear attention.
    per_token_s: f64,
}

/// Reading (and of linear attention also writing back) what sequences keep.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct KvCost {
    pub per_context_s: f64,
    pub per_window_context_s: f64,
    per_sequence_s: f64,
}

impl AttentionCost {
    pub const NONE: Self =
        Self { per_pair_x2_s: 0.0, per_window_pair_x2_s: 0.0, per_decode_context_s: 0.0, per_token_s: 0.0 };

    /// `flops`: what attention sustains over all GPUs.
    pub fn new(model: &Model, flops: f64) -> Self {
        let mut cost = Self::NONE;
        for group in &model.layers {
            let layers = f64::from(group.count);
            match group.attention {
                Attention::Softmax { heads, head_dim, window, .. } => {
                    // Scores and values: 2 FLOP each per pair and head element; sums hold twice the pairs.
                    let per_pair_x2 = layers * 2.0 * f64::from(heads) * f64::from(head_dim) / flops;
                    match window {
                        None => cost.per_pair_x2_s += per_pair_x2,
                        Some(_) => cost.per_window_pair_x2_s += per_pair_x2,
                    }
                }
                Attention::Latent {
                    heads,
                    kv_lora_rank,
                    qk_nope_head_dim,
                    qk_rope_head_dim,
                    v_head_dim,
                    ..
                } => {
                    let heads = layers * f64::from(heads);
                    let expanded = f64::from(qk_nope_head_dim + qk_rope_head_dim + v_head_dim);
                    cost.per_pair_x2_s += heads * expanded / flops;
                    let latent = 2.0 * f64::from(kv_lora_rank) + f64::from(qk_rope_head_dim);
                    cost.per_decode_context_s += 2.0 * heads * latent / flops;
                }
                Attention::Linear { .. } => {
                    cost.per_token_s += layers * 2.0 * group.attention.state_elements() as f64 / flops;
                }
            }
        }
        cost
    }

    /// Seconds that the step multiplies.
    #[inline]
    pub fn compute_s(&self, shape: &StepShape) -> f64 {
        self.per_pair_x2_s * shape.prefill_pairs_x2 as f64
            + self.per_window_pair_x2_s * shape.prefill_window_pairs_x2 as f64
            + self.per_decode_context_s * shape.decode_context as f64
            + self.per_token_s * f64::from(shape.tokens)
    }

    pub fn scaled(self, factor: f64) -> Self {
        Self {
            per_pair_x2_s: self.per_pair_x2_s * factor,
            per_window_pair_x2_s: self.per_window_pair_x2_s * factor,
            per_decode_context_s: self.per_decode_context_s * factor,
            per_token_s: self.per_token_s * factor,
        }
    }
}

impl KvCost {
    pub const NONE: Self = Self { per_context_s: 0.0, per_window_context_s: 0.0, per_sequence_s: 0.0 };

    /// `bandwidth`: what KV reads sustain on one GPU.
    pub fn new(model: &Model, kv_dtype: Dtype, tp: u32, bandwidth: f64) -> Self {
        Self {
            per_context_s: model.growing_kv_bytes_per_token(kv_dtype, tp) as f64 / bandwidth,
            per_window_context_s: model.window_kv_bytes_per_token(kv_dtype, tp) as f64 / bandwidth,
            // A recurrent state is read and written back.
            per_sequence_s: 2.0 * model.state_bytes_per_sequence(tp) as f64 / bandwidth,
        }
    }

    /// Seconds that the step reads.
    #[inline]
    pub fn read_s(&self, shape: &StepShape) -> f64 {
        self.per_context_s * (shape.decode_context + shape.prefill_context) as f64
            + self.per_window_context_s * (shape.decode_window_context + shape.prefill_window_context) as f64
            + self.per_sequence_s * f64::from(shape.sequences)
    }

    pub fn scaled(self, factor: f64) -> Self {
        Self {
            per_context_s: self.per_context_s * factor,
            per_window_context_s: self.per_window_context_s * factor,
            per_sequence_s: self.per_sequence_s * factor,
        }
    }
}
