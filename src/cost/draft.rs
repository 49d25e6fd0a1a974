//! The model that drafts tokens for another: what it adds to memory and to a step.

use std::sync::Arc;

use super::StepCost;
use crate::catalog::{Attention, Dtype, Hardware, LayerGroup, Mlp, Model, ProfileValues};
use crate::units::{Bytes, Tokens};

/// Tokens that an EAGLE-3 head picks from (`draft_vocab_size` of the published heads).
const EAGLE3_VOCABULARY: u32 = 32_000;
/// Width of an EAGLE head's feed-forward over its hidden size where the model has experts: what the heads for
/// gpt-oss and Qwen3-235B have (17,280 and 24,576); those for DeepSeek-V3, Qwen3-30B and Kimi-K2 have 5.7, 3
/// and 2.6.
const EAGLE_WIDTH: u32 = 6;

/// A draft model on the GPUs of the model it drafts for, under the same tensor parallelism.
#[derive(Clone, Debug)]
pub struct Draft {
    pub model: Arc<Model>,
    pub weight_dtype: Dtype,
    shares: Shares,
}

/// What a draft has in common with the model it drafts for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shares {
    Nothing,
    Embeddings,
    EmbeddingsAndHead,
}

impl Draft {
    /// A model of its own that predicts the same vocabulary.
    #[must_use]
    pub const fn whole(model: Arc<Model>, weight_dtype: Dtype) -> Self {
        Self { model, weight_dtype, shares: Shares::Nothing }
    }

    /// Multi-token prediction: one more layer of the kind that `model` ends with, between its own embeddings
    /// and head. The projection that joins hidden state and token is left out.
    #[must_use]
    pub fn prediction_layer_of(model: &Model, weight_dtype: Dtype) -> Self {
        let mut layer = model.clone();
        if let Some(mut last) = layer.layers.pop() {
            last.count = 1;
            layer.layers = vec![last];
        }
        Self { model: Arc::new(layer), weight_dtype, shares: Shares::EmbeddingsAndHead }
    }

    /// EAGLE: one dense layer of full attention in bf16, whatever the model's own layers are (the published heads
    /// are Llama layers), between the model's embeddings and head; EAGLE-3 has a head of its own for fewer
    /// tokens. The projections that join hidden states and token are left out.
    #[must_use]
    pub fn eagle_head_of(model: &Model, eagle3: bool) -> Self {
        let full_attention = |group: &LayerGroup| match group.attention {
            Attention::Softmax { heads, kv_heads, head_dim, .. } => {
                Some(Attention::Softmax { heads, kv_heads, head_dim, window: None, output_gate: false })
            }
            Attention::Latent { .. } | Attention::Linear { .. } => None,
        };
        let llama = Attention::Softmax {
            heads: model.hidden_size.div_ceil(128),
            kv_heads: 8,
            head_dim: 128,
            window: None,
            output_gate: false,
        };
        let width = model.layers.last().and_then(|group| match group.mlp {
            Mlp::Dense { intermediate } => Some(intermediate),
            Mlp::Moe { .. } => None,
        });
        let layer = LayerGroup {
            count: 1,
            attention: model.layers.iter().rev().find_map(full_attention).unwrap_or(llama),
            mlp: Mlp::Dense { intermediate: width.unwrap_or(EAGLE_WIDTH * model.hidden_size) },
        };
        let mut head = Model { layers: vec![layer], only_experts_quantised: false, ..model.clone() };
        let mut shares = Shares::EmbeddingsAndHead;
        if eagle3 && model.vocab_size > EAGLE3_VOCABULARY {
            (head.vocab_size, head.tied_embeddings) = (EAGLE3_VOCABULARY, false);
            shares = Shares::Embeddings;
        }
        Self { model: Arc::new(head), weight_dtype: Dtype::Bf16, shares }
    }

    /// Whether it is part of the model it drafts for, or made for it: of no use without its embeddings.
    #[must_use]
    pub const fn is_a_head(&self) -> bool {
        !matches!(self.shares, Shares::Nothing)
    }

    /// Its weights on one of `tp` GPUs.
    #[must_use]
    pub fn weight_bytes(&self, tp: u32) -> Bytes {
        let weights = self.model.weight_bytes(self.weight_dtype);
        let own = match self.shares {
            Shares::Nothing => weights.embeddings_and_head,
            // Both have the vocabulary's size.
            Shares::Embeddings => weights.embeddings_and_head / 2.0,
            Shares::EmbeddingsAndHead => 0.0,
        };
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

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::catalog::Catalog;

    fn model(name: &str) -> Model {
        (*Catalog::default().model(name, Path::new(".")).expect("it ships").0).clone()
    }

    /// By hand: attention of 64 query and 8 key heads of 64, a feed-forward six times as wide, and a head for
    /// 32,000 tokens, two bytes each; none of gpt-oss's 128 experts.
    #[test]
    fn an_eagle_head_is_a_dense_layer() {
        let parameters = 2880 * 64 * (64 + 2 * 8 + 64) + 3 * 2880 * 17_280 + 32_000 * 2880;
        assert_eq!(Draft::eagle_head_of(&model("gpt-oss-120b"), true).weight_bytes(1), 2 * parameters);
        // Without a head of its own, and with the width of a dense model.
        let parameters = 4096 * 128 * (32 + 2 * 8 + 32) + 3 * 4096 * 14_336;
        assert_eq!(Draft::eagle_head_of(&model("llama-3.1-8b"), false).weight_bytes(1), 2 * parameters);
    }

    #[test]
    fn a_prediction_layer_has_the_experts_of_the_model() {
        let deepseek = model("deepseek-v3");
        let one = Draft::prediction_layer_of(&deepseek, Dtype::Fp8).weight_bytes(1);
        assert!((one as f64 / deepseek.weight_bytes(Dtype::Fp8).routed - 1.0 / 58.0).abs() < 1e-3);
    }
}
