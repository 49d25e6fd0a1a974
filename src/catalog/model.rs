//! Model architectures: what a layer is made of, and the parameters and KV bytes that follow from it.

use serde::Deserialize;

use super::Dtype;
use crate::units::{Bytes, Tokens};

/// A model's architecture.
#[derive(Clone, Debug)]
pub struct Model {
    /// Short name (`llama-3.1-8b`) or the stem of the config file.
    pub name: String,
    /// Hugging Face id.
    pub hf_id: String,
    pub hidden_size: u32,
    pub vocab_size: u32,
    pub tied_embeddings: bool,
    pub max_position_embeddings: Tokens,
    /// Layers of one kind, in order of first appearance; counts add up to the number of layers.
    pub layers: Vec<LayerGroup>,
    /// What the published checkpoint stores its weights as.
    pub native_weight_dtype: Dtype,
    /// Parameters that stay bf16 under a quantised `weight_dtype` besides embeddings and head
    /// (gpt-oss: everything but the experts).
    pub only_experts_quantised: bool,
    /// Layers for multi-token prediction that the checkpoint brings besides `layers`; 0: none.
    pub mtp_layers: u32,
    pub source: String,
}

/// `count` layers of the same shape.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LayerGroup {
    pub count: u32,
    pub attention: Attention,
    pub mlp: Mlp,
}

/// The attention (or state-space) half of a layer.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Attention {
    /// Multi-head or grouped-query attention; `window` is the sliding window, if any.
    Softmax {
        heads: u32,
        kv_heads: u32,
        head_dim: u32,
        window: Option<Tokens>,
        /// Output gate doubles the query projection (Qwen3-Next, Qwen3.5).
        #[serde(default)]
        output_gate: bool,
    },
    /// Multi-head latent attention (DeepSeek).
    Latent {
        heads: u32,
        q_lora_rank: Option<u32>,
        kv_lora_rank: u32,
        qk_nope_head_dim: u32,
        qk_rope_head_dim: u32,
        v_head_dim: u32,
    },
    /// Linear attention (gated delta net): constant state per sequence.
    Linear { key_heads: u32, value_heads: u32, key_head_dim: u32, value_head_dim: u32, conv_kernel: u32 },
}

/// The feed-forward half of a layer.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Mlp {
    /// Gated: three matrices of hidden x intermediate.
    Dense {
        intermediate: u32,
    },
    Moe {
        experts: u32,
        top_k: u32,
        expert_intermediate: u32,
        shared_intermediate: u32,
    },
}

/// A model's parameters by where they sit. Norms and biases are left out (below 0.1 %).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Parameters {
    /// Token embeddings.
    pub embeddings: u64,
    /// Output head; 0 if it shares the embeddings' matrix.
    pub head: u64,
    /// Layers without routed experts: attention, dense and shared feed-forward, routers.
    pub dense: u64,
    /// All routed experts.
    pub routed: u64,
    /// Routed experts that one token uses.
    pub routed_active: u64,
}

impl Parameters {
    #[must_use]
    pub const fn total(&self) -> u64 {
        self.embeddings + self.head + self.dense + self.routed
    }
    /// Parameters that one token uses, embeddings and head included.
    #[must_use]
    pub const fn active(&self) -> u64 {
        self.embeddings + self.head + self.dense + self.routed_active
    }
    /// P_active of the step-time model: layers only.
    #[must_use]
    pub const fn active_in_layers(&self) -> u64 {
        self.dense + self.routed_active
    }
}

/// Bytes of a model's weights under one format, over all GPUs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WeightBytes {
    /// Embeddings and output head: bf16 under every format.
    pub embeddings_and_head: f64,
    pub dense: f64,
    pub routed: f64,
}

impl Model {
    /// Number of layers.
    #[must_use]
    pub fn layer_count(&self) -> u32 {
        self.layers.iter().map(|group| group.count).sum()
    }

    /// Parameters by where they sit.
    #[must_use]
    pub fn parameters(&self) -> Parameters {
        let matrix = u64::from(self.vocab_size) * u64::from(self.hidden_size);
        let mut sum = Parameters {
            embeddings: matrix,
            head: if self.tied_embeddings { 0 } else { matrix },
            ..Parameters::default()
        };
        for group in &self.layers {
            let layer = group.layer_parameters(u64::from(self.hidden_size));
            sum.dense += u64::from(group.count) * layer.dense;
            sum.routed += u64::from(group.count) * layer.routed;
            sum.routed_active += u64::from(group.count) * layer.routed_active;
        }
        sum
    }

    /// Of [`Parameters::dense`], those of feed-forward layers: dense and shared ones.
    #[must_use]
    pub fn feed_forward_parameters(&self) -> u64 {
        let layer = |mlp: &Mlp| match *mlp {
            Mlp::Dense { intermediate } => u64::from(intermediate),
            Mlp::Moe { shared_intermediate, .. } => u64::from(shared_intermediate),
        };
        let widths = self.layers.iter().map(|group| u64::from(group.count) * layer(&group.mlp));
        3 * u64::from(self.hidden_size) * widths.sum::<u64>()
    }

    /// Layers with routed experts.
    #[must_use]
    pub fn moe_layer_count(&self) -> u32 {
        let moe = self.layers.iter().filter(|group| matches!(group.mlp, Mlp::Moe { .. }));
        moe.map(|group| group.count).sum()
    }

    /// Bytes of the weights stored as `dtype`.
    #[must_use]
    pub fn weight_bytes(&self, dtype: Dtype) -> WeightBytes {
        let parameters = self.parameters();
        let quantised = dtype.bits_per_weight() / 8.0;
        let dense = if self.only_experts_quantised { 2.0 } else { quantised };
        WeightBytes {
            embeddings_and_head: (parameters.embeddings + parameters.head) as f64 * 2.0,
            dense: parameters.dense as f64 * dense,
            routed: parameters.routed as f64 * quantised,
        }
    }

    /// Bytes of weights that a step of one token reads at least: its own experts only, and the head, which is bf16.
    #[must_use]
    pub fn least_step_bytes(&self, dtype: Dtype) -> f64 {
        let bytes = self.weight_bytes(dtype);
        let parameters = self.parameters();
        let share = if parameters.routed > 0 {
            parameters.routed_active as f64 / parameters.routed as f64
        } else {
            0.0
        };
        let head = f64::from(self.vocab_size) * f64::from(self.hidden_size) * 2.0;
        bytes.dense + bytes.routed * share + head
    }

    /// FLOP that the layers take for one token, attention left out.
    #[must_use]
    pub fn flops_per_token(&self) -> f64 {
        2.0 * self.parameters().active_in_layers() as f64
    }

    /// KV bytes per token over all layers that keep any, windowed ones included: the usual headline
    /// figure. Exact for contexts within the window.
    #[must_use]
    pub fn kv_bytes_per_token(&self, kv_dtype: Dtype) -> Bytes {
        self.growing_kv_bytes_per_token(kv_dtype, 1) + self.window_kv_bytes_per_token(kv_dtype, 1)
    }

    /// KV bytes per token on one of `tp` GPUs of layers whose KV grows with the context (full and latent
    /// attention). KV heads are divided, at least one each; a latent is one copy on every GPU.
    #[must_use]
    pub fn growing_kv_bytes_per_token(&self, kv_dtype: Dtype, tp: u32) -> Bytes {
        self.kv_bytes(kv_dtype, tp, |attention| attention.window().is_none())
    }

    /// The same of layers with a sliding window.
    #[must_use]
    pub fn window_kv_bytes_per_token(&self, kv_dtype: Dtype, tp: u32) -> Bytes {
        self.kv_bytes(kv_dtype, tp, |attention| attention.window().is_some())
    }

    fn kv_bytes(&self, kv_dtype: Dtype, tp: u32, counts: impl Fn(&Attention) -> bool) -> Bytes {
        let groups = self.layers.iter().filter(|group| counts(&group.attention));
        let elements: u64 =
            groups.map(|group| u64::from(group.count) * group.attention.kv_elements_per_token(tp)).sum();
        elements * kv_dtype.kv_bytes()
    }

    /// Bytes of state that linear-attention layers keep per sequence, whatever its length, on one of
    /// `tp` GPUs.
    #[must_use]
    pub fn state_bytes_per_sequence(&self, tp: u32) -> Bytes {
        let states = self.layers.iter().map(|group| u64::from(group.count) * group.attention.state_bytes());
        states.sum::<u64>().div_ceil(u64::from(tp.max(1)))
    }

    /// The sliding window; `None` if no layer has one. (Models have one window size.)
    #[must_use]
    pub fn window(&self) -> Option<Tokens> {
        self.layers.iter().find_map(|group| group.attention.window())
    }
}

impl LayerGroup {
    /// Parameters of one layer of the group.
    fn layer_parameters(&self, hidden: u64) -> Parameters {
        let mut layer = Parameters { dense: self.attention.parameters(hidden), ..Parameters::default() };
        match self.mlp {
            Mlp::Dense { intermediate } => layer.dense += 3 * hidden * u64::from(intermediate),
            Mlp::Moe { experts, top_k, expert_intermediate, shared_intermediate } => {
                let expert = 3 * hidden * u64::from(expert_intermediate);
                layer.dense += hidden * u64::from(experts) + 3 * hidden * u64::from(shared_intermediate);
                layer.routed = u64::from(experts) * expert;
                layer.routed_active = u64::from(top_k) * expert;
            }
        }
        layer
    }
}

impl Attention {
    /// The layer's sliding window.
    #[must_use]
    pub const fn window(&self) -> Option<Tokens> {
        match self {
            Self::Softmax { window, .. } => *window,
            Self::Latent { .. } | Self::Linear { .. } => None,
        }
    }

    fn parameters(&self, hidden: u64) -> u64 {
        let wide = u64::from;
        match *self {
            Self::Softmax { heads, kv_heads, head_dim, output_gate, .. } => {
                let queries = wide(heads) * if output_gate { 2 } else { 1 };
                hidden * wide(head_dim) * (queries + 2 * wide(kv_heads) + wide(heads))
            }
            Self::Latent {
                heads,
                q_lora_rank,
                kv_lora_rank,
                qk_nope_head_dim,
                qk_rope_head_dim,
                v_head_dim,
            } => {
                let heads = wide(heads);
                let q_width = heads * wide(qk_nope_head_dim + qk_rope_head_dim);
                let query = q_lora_rank.map_or(hidden * q_width, |rank| wide(rank) * (hidden + q_width));
                let kv_down = hidden * wide(kv_lora_rank + qk_rope_head_dim);
                let kv_up = wide(kv_lora_rank) * heads * wide(qk_nope_head_dim + v_head_dim);
                query + kv_down + kv_up + heads * wide(v_head_dim) * hidden
            }
            Self::Linear { key_heads, value_heads, key_head_dim, value_head_dim, conv_kernel } => {
                let keys = wide(key_heads) * wide(key_head_dim);
                let values = wide(value_heads) * wide(value_head_dim);
                // Queries, keys, values, output gate, two gates per value head; convolution; output.
                hidden * (2 * keys + 2 * values + 2 * wide(value_heads))
                    + (2 * keys + values) * wide(conv_kernel)
                    + values * hidden
            }
        }
    }

    fn kv_elements_per_token(&self, tp: u32) -> u64 {
        match *self {
            Self::Softmax { kv_heads, head_dim, .. } => {
                2 * u64::from(kv_heads.div_ceil(tp.max(1))) * u64::from(head_dim)
            }
            Self::Latent { kv_lora_rank, qk_rope_head_dim, .. } => {
                u64::from(kv_lora_rank) + u64::from(qk_rope_head_dim)
            }
            Self::Linear { .. } => 0,
        }
    }

    /// Elements of a linear layer's recurrent state; 0 for other layers.
    #[must_use]
    pub const fn state_elements(&self) -> u64 {
        match *self {
            Self::Linear { value_heads, key_head_dim, value_head_dim, .. } => {
                value_heads as u64 * key_head_dim as u64 * value_head_dim as u64
            }
            Self::Softmax { .. } | Self::Latent { .. } => 0,
        }
    }

    /// Bytes of a linear layer's state: recurrent state in f32 (`mamba_ssm_dtype` of the published
    /// configs), the convolution's last inputs in bf16; 0 for other layers.
    #[must_use]
    pub const fn state_bytes(&self) -> Bytes {
        match *self {
            Self::Linear { key_heads, value_heads, key_head_dim, value_head_dim, conv_kernel } => {
                let channels =
                    2 * key_heads as u64 * key_head_dim as u64 + value_heads as u64 * value_head_dim as u64;
                4 * self.state_elements() + 2 * channels * (conv_kernel as u64).saturating_sub(1)
            }
            Self::Softmax { .. } | Self::Latent { .. } => 0,
        }
    }
}
