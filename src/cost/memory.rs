//! Where a GPU's memory goes, and how many KV blocks are left: the engine's start-up arithmetic.
//!
//! ```text
//! KV pool = total x utilisation - weights / p - activation peak - non-torch - graph estimate
//! ```
//!
//! That is vLLM's. SGLang's share holds weights and KV only, of the memory free before loading; in
//! TensorRT-LLM the pool is a share of what weights, activations and the rest leave.
//!
//! Through a pipeline every stage holds its layers; the first also the embeddings, the last the head and the
//! sampler's copies. vLLM gives all of them as many blocks as the stage has room for that has room for the
//! fewest: the budget is that stage's.
//!
//! Data-parallel ranks hold their own attention weights and KV, and a part of what they share.
//!
//! The activation peak is what the engine's profiling run allocates. With many sequences the sampler
//! dominates it (several f32 copies of sequences x vocabulary, not divided by p); with few sequences and
//! a large token budget the widest layer does. That is why more `max_num_seqs` can make a full GPU
//! slower. The figures of an engine version are data (`calibration/engines`).

use super::{Draft, Ranks, Sharing, stage_layers};
use crate::catalog::{Dtype, EngineDefaults, Hardware, KvShare, Mlp, Model};
use crate::kv::KvSpec;
use crate::units::{Blocks, Bytes, Tokens};

/// What a memory budget follows from.
#[derive(Clone, Copy, Debug)]
pub struct MemoryInputs<'a> {
    pub model: &'a Model,
    pub weight_dtype: Dtype,
    pub kv_dtype: Dtype,
    pub hardware: &'a Hardware,
    /// Block size and what the version's profiling run takes; its other defaults are not read.
    pub engine: &'a EngineDefaults,
    pub max_num_seqs: u32,
    pub max_num_batched_tokens: Tokens,
    pub tensor_parallel_size: u32,
    pub pipeline_parallel_size: u32,
    /// Ranks of `tensor_parallel_size` GPUs each that share weights; `None` without data parallelism.
    pub data_parallel: Option<Ranks>,
    /// Speculative decoding with a model that drafts.
    pub draft: Option<&'a Draft>,
    pub gpu_memory_utilization: f64,
    /// Takes the number of blocks from a log instead of computing it.
    pub num_gpu_blocks_override: Option<Blocks>,
}

/// Where a GPU's memory goes, per GPU, and what is left for the KV cache.
#[derive(Clone, Debug, PartialEq)]
pub struct MemoryBudget {
    /// The stage whose GPU this is, from 0, and how many layers it holds.
    pub stage: u32,
    pub layers: u32,
    pub total: Bytes,
    pub gpu_memory_utilization: f64,
    /// What the utilisation is a share of.
    pub kv_share: KvShare,
    pub weights: Bytes,
    pub activations: Bytes,
    pub non_torch: Bytes,
    pub graphs: Bytes,
    /// What is left for KV, by the engine's formula; negative if the model does not fit.
    pub kv_available: i64,
    /// Bytes of one block on this GPU: full-attention or latent layers. Of a model that has neither: of
    /// its windowed layers; failing these too, one sequence's state.
    pub block_bytes: Bytes,
    pub block_size: Tokens,
    /// Blocks in the pool, vLLM's null block included.
    pub blocks: Blocks,
    /// KV bytes per token over all GPUs of the replica (unsharded), full-attention or latent layers.
    pub kv_bytes_per_token: Bytes,
    /// The sliding window; `Tokens::MAX` without windowed layers.
    pub window: Tokens,
    /// Extra blocks per sequence for windowed layers, per token up to the window, and for constant state.
    pub window_blocks_per_token: f64,
    pub state_blocks: Blocks,
    /// Whether any layer's KV grows with the context beyond a window.
    pub grows: bool,
}

/// The memory budget of one GPU. Never fails: `kv_available` is negative if the model does not fit.
#[must_use]
pub fn memory_budget(inputs: &MemoryInputs<'_>) -> MemoryBudget {
    let split = stage_layers(inputs.model.layer_count(), inputs.pipeline_parallel_size);
    let last = split.len() - 1;
    let stages = (0..).zip(&split).map(|(index, &layers)| Stage {
        index,
        layers,
        share: f64::from(layers) / f64::from(inputs.model.layer_count()),
        is_first: index == 0,
        is_last: index as usize == last,
    });
    let budgets = stages.map(|stage| stage_budget(inputs, stage));
    let tightest = budgets.min_by_key(|(fitting, budget)| (*fitting, budget.kv_available));
    tightest.map_or_else(|| unreachable!("a pipeline has a stage"), |(_, budget)| budget)
}

/// A stage of a pipeline; without one, the only one.
#[derive(Clone, Copy)]
struct Stage {
    index: u32,
    layers: u32,
    /// Of all layers.
    share: f64,
    is_first: bool,
    is_last: bool,
}

/// The blocks that fit on a GPU of `stage`, and its budget.
fn stage_budget(inputs: &MemoryInputs<'_>, stage: Stage) -> (u64, MemoryBudget) {
    let MemoryInputs { model, kv_dtype, hardware, engine, .. } = *inputs;
    let tp = inputs.tensor_parallel_size.max(1);
    // A draft model runs where tokens are sampled.
    let draft = inputs.draft.filter(|_| stage.is_last);
    let weights = weight_bytes_per_gpu(inputs, tp, stage) + draft.map_or(0, |draft| draft.weight_bytes(tp));
    let activations = activation_bytes(inputs, tp, stage);
    let several = tp > 1 || inputs.pipeline_parallel_size > 1 || inputs.data_parallel.is_some();
    let non_torch = if several { engine.non_torch_tp_bytes } else { engine.non_torch_bytes };
    let graphs = if engine.subtracts_graphs { engine.graph_estimate_bytes } else { 0 };
    let taken: f64 = [weights, activations, non_torch, graphs].map(|bytes| bytes as f64).iter().sum();
    let (memory, share) = (hardware.memory_bytes as f64, inputs.gpu_memory_utilization);
    let kv_available = match engine.kv_share {
        KvShare::OfTotal => memory * share - taken,
        KvShare::OfTotalForWeightsAndKv => (memory - non_torch as f64) * share - weights as f64,
        KvShare::OfFree => (memory - taken) * share,
    };
    let kv_available = libm::floor(kv_available) as i64;

    let block_size = engine.block_size.max(1);
    let of_stage = |bytes: Bytes| {
        if stage.share < 1.0 { libm::ceil(bytes as f64 * stage.share) as Bytes } else { bytes }
    };
    let per_block = |bytes: Bytes| bytes.saturating_mul(u64::from(block_size));
    let drafted = draft.map_or(0, |draft| draft.kv_bytes_per_token(kv_dtype, tp));
    let growing = per_block(of_stage(model.growing_kv_bytes_per_token(kv_dtype, tp)) + drafted);
    let windowed = per_block(of_stage(model.window_kv_bytes_per_token(kv_dtype, tp)));
    let state = of_stage(model.state_bytes_per_sequence(tp));
    let block_bytes = [growing, windowed, state].into_iter().find(|bytes| *bytes > 0).unwrap_or(1);
    let fitting = u64::try_from(kv_available).unwrap_or(0) / block_bytes;
    // Without growing layers a sequence's one growing block (see `to_kv_spec`) stands for its state.
    let state_blocks = if growing + windowed == 0 { 0 } else { state.div_ceil(block_bytes) };
    let budget = MemoryBudget {
        stage: stage.index,
        layers: stage.layers,
        total: hardware.memory_bytes,
        gpu_memory_utilization: inputs.gpu_memory_utilization,
        kv_share: engine.kv_share,
        weights,
        activations,
        non_torch,
        graphs,
        kv_available,
        block_bytes,
        block_size,
        blocks: inputs.num_gpu_blocks_override.unwrap_or_else(|| saturate(fitting)),
        kv_bytes_per_token: model.growing_kv_bytes_per_token(kv_dtype, 1),
        window: model.window().unwrap_or(Tokens::MAX),
        window_blocks_per_token: windowed as f64 / block_bytes as f64 / f64::from(block_size),
        state_blocks: saturate(state_blocks),
        grows: growing > 0,
    };
    (fitting, budget)
}

fn saturate(blocks: u64) -> Blocks {
    Blocks::try_from(blocks).unwrap_or(Blocks::MAX)
}

/// MXFP4 kernels pad the experts' hidden width to a multiple of this (vLLM on Hopper): gpt-oss loads
/// 13.4 and 64.4 GiB, as its logs print, instead of 12.8 and 60.6.
const MXFP4_PADDING: u32 = 256;

/// Data-parallel ranks have what they do not share once each, on `tp` GPUs, and the rest once together.
fn weight_bytes_per_gpu(inputs: &MemoryInputs<'_>, tp: u32, stage: Stage) -> Bytes {
    let MemoryInputs { model, weight_dtype: dtype, .. } = *inputs;
    let weights = model.weight_bytes(dtype);
    let padding = if dtype == Dtype::Mxfp4 {
        f64::from(model.hidden_size.next_multiple_of(MXFP4_PADDING)) / f64::from(model.hidden_size)
    } else {
        1.0
    };
    let matrix = f64::from(model.vocab_size) * f64::from(model.hidden_size) * 2.0;
    // Shared or not, each end of a pipeline has its own copy.
    let embeddings_and_head = match (stage.is_first, stage.is_last) {
        (true, true) => weights.embeddings_and_head,
        (false, false) => 0.0,
        _ => matrix,
    };
    let Some(ranks) = inputs.data_parallel else {
        let all = embeddings_and_head + weights.dense * stage.share + weights.routed * padding * stage.share;
        return libm::ceil(all / f64::from(tp)) as Bytes;
    };
    let spread = 1.0 / f64::from(ranks.count);
    let embeddings_and_head = match ranks.sharing {
        Sharing::Experts => embeddings_and_head,
        Sharing::FeedForwardAndHead => matrix * f64::from(tp) + (embeddings_and_head - matrix) * spread,
    };
    let shared = ranks.shared_part(model);
    let dense = weights.dense * (1.0 - shared + shared * spread);
    libm::ceil((embeddings_and_head + dense + weights.routed * padding * spread) / f64::from(tp)) as Bytes
}

/// The profiling run's peak: the sampler's copies over the hidden states, or the widest layer's
/// activations over the residual stream, whichever is larger. Only the last stage samples.
fn activation_bytes(inputs: &MemoryInputs<'_>, tp: u32, stage: Stage) -> Bytes {
    let MemoryInputs { model, engine, .. } = *inputs;
    let tokens = f64::from(inputs.max_num_batched_tokens);
    let hidden = f64::from(model.hidden_size);
    let rows = if stage.is_last { inputs.max_num_seqs } else { 0 };
    let logits = f64::from(rows) * f64::from(model.vocab_size) * 4.0;
    let sampler = engine.sampler_copies * logits + engine.hidden_copies * tokens * hidden * 2.0;
    let widths = model.layers.iter().map(|group| match group.mlp {
        Mlp::Dense { intermediate } => f64::from(intermediate),
        Mlp::Moe { top_k, expert_intermediate, shared_intermediate, .. } => {
            f64::from(top_k) * f64::from(expert_intermediate) + f64::from(shared_intermediate)
        }
    });
    let widest = widths.fold(0.0, f64::max);
    // Gate, up and their product; residual stream, norms, queries, keys, values and attention output.
    // Of the widest layer all ranks' tokens are on every GPU, but a smaller part of the layer; what they are
    // gathered in and summed in comes on top (an estimate).
    let gathered = 2.0 * inputs.data_parallel.map_or(0.0, |ranks| f64::from(ranks.count));
    let layer = tokens * 2.0 * (3.0 * widest / f64::from(tp) + (8.0 + gathered) * hidden);
    libm::ceil(sampler.max(layer)) as Bytes
}

impl MemoryBudget {
    /// The pool as the block ledger sees it: without vLLM's null block. Of a model whose KV does not
    /// grow, a sequence holds one block (its first) and its fixed ones, whatever its length.
    #[must_use]
    pub fn to_kv_spec(&self) -> KvSpec {
        KvSpec {
            block_size: if self.grows { self.block_size } else { Tokens::MAX },
            blocks: self.blocks.saturating_sub(1),
            state_blocks: self.state_blocks,
            window: self.window,
            window_blocks_per_token: self.window_blocks_per_token,
        }
    }

    /// Whether KV bytes per token are constant. They are not with windowed layers or constant state.
    #[must_use]
    pub fn has_constant_bytes_per_token(&self) -> bool {
        self.grows && self.state_blocks == 0 && self.window_blocks_per_token == 0.0
    }

    /// Sequences of `tokens` tokens each that the pool holds at once (vLLM's "maximum concurrency").
    #[must_use]
    pub fn concurrency(&self, tokens: Tokens) -> f64 {
        let spec = self.to_kv_spec();
        let each = f64::from(spec.blocks_for(tokens.max(1))) + f64::from(spec.fixed_blocks(tokens));
        f64::from(self.blocks) / each
    }

    /// Tokens that the pool holds, as vLLM counts them: blocks x block size; where bytes per token are
    /// not constant, the concurrency at `max_model_len` times that length.
    #[must_use]
    pub fn capacity_tokens(&self, max_model_len: Tokens) -> u64 {
        if self.has_constant_bytes_per_token() {
            return u64::from(self.blocks) * u64::from(self.block_size);
        }
        (self.concurrency(max_model_len) * f64::from(max_model_len)) as u64
    }

    /// The two lines that vLLM logs at start-up.
    #[must_use]
    pub fn vllm_startup_lines(&self, max_model_len: Tokens) -> [String; 2] {
        let tokens = self.capacity_tokens(max_model_len);
        [
            format!("GPU KV cache size: {} tokens", thousands(tokens)),
            format!(
                "Maximum concurrency for {} tokens per request: {:.2}x",
                thousands(u64::from(max_model_len)),
                self.concurrency(max_model_len)
            ),
        ]
    }
}

/// `1234567` as `1,234,567`.
fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_separated() {
        for (number, text) in
            [(0, "0"), (999, "999"), (1000, "1,000"), (123_456, "123,456"), (1_234_567, "1,234,567")]
        {
            assert_eq!(thousands(number), text);
        }
    }
}
