//! What differs between engines in kind and not in figures: how steps are composed, and of which memory
//! the KV pool is a share.

use serde::Deserialize;

use crate::units::{Bytes, Tokens};

const MIB: f64 = 1_048_576.0;

/// How an engine composes its steps.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scheduler {
    /// vLLM V1.
    Vllm,
    Sglang(SglangScheduler),
    TensorRtLlm(TensorRtLlmScheduler),
}

/// TensorRT-LLM's options, in its own names. All are off unless a scenario says otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TensorRtLlmScheduler {
    /// The capacity policy MAX_UTILIZATION; else GUARANTEED_NO_EVICT.
    pub max_utilization: bool,
    /// Steps in which prompts are held back at most while others decode.
    pub batch_wait_timeout_iters: u32,
    /// Share of the token budget from which on they are not.
    pub batch_wait_max_tokens_ratio: f64,
}

/// SGLang's admission and retraction, in its own names.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SglangScheduler {
    pub max_prefill_tokens: Tokens,
    /// Decode steps between two looks at new requests.
    pub scheduler_recv_interval: u32,
    pub schedule_conservativeness: f64,
    /// Before it is multiplied by the conservativeness.
    pub init_new_token_ratio: f64,
    /// The smallest ratio, as a share of the first one.
    pub min_new_token_ratio_factor: f64,
    /// Decode steps from the first ratio to the smallest.
    pub new_token_ratio_decay_steps: u32,
    pub clip_max_new_tokens: Tokens,
    pub retract_decode_steps: u32,
    /// Set by the version: whether retraction makes room for that many steps or only for the next.
    #[serde(skip)]
    pub retract_to_headroom: bool,
    /// `max_running_requests` is this many contexts of the model over the KV pool, within the limits.
    pub running_requests_per_context: u32,
    pub min_running_requests: u32,
    pub max_running_requests: u32,
}

impl SglangScheduler {
    /// `max_running_requests`, unless it is given, for a pool of `pool` tokens.
    #[must_use]
    pub fn running_requests(&self, pool: u64, context: Tokens) -> u32 {
        let wanted = pool as f64 / f64::from(context.max(1)) * f64::from(self.running_requests_per_context);
        (wanted as u32).clamp(self.min_running_requests, self.max_running_requests)
    }
}

/// What the utilisation is a share of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KvShare {
    /// vLLM: of the whole GPU; weights, activations and the rest are within it.
    #[default]
    OfTotal,
    /// SGLang: of the memory free before loading; weights and KV are within it, activations and graphs
    /// are what it leaves.
    OfTotalForWeightsAndKv,
    /// TensorRT-LLM: of what is free after weights and a dry run.
    OfFree,
}

/// What SGLang leaves outside its static share, in MiB per GPU.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StaticReserve {
    pub constant_mib: f64,
    /// The same from 4 GPUs on: its CUDA graphs then hold more sequences.
    pub constant_tp4_mib: f64,
    pub per_chunk_token_mib: f64,
    pub per_gpu_mib: f64,
    pub at_least_mib: f64,
    /// For each rank of data-parallel attention; the same from 4 GPUs on.
    #[serde(default)]
    pub per_rank_mib: f64,
    #[serde(default)]
    pub per_rank_tp4_mib: f64,
}

/// Chunks are reserved for as if they had at least this many tokens.
const SMALLEST_CHUNK: Tokens = 2048;

impl StaticReserve {
    /// `mem_fraction_static` of a GPU with `memory` bytes: three decimals, as SGLang rounds it. `ranks` of
    /// data-parallel attention, 1 without; `chunked_prefill_size` is what they have together.
    #[must_use]
    pub fn fraction(&self, memory: Bytes, chunked_prefill_size: Tokens, tp: u32, ranks: u32) -> f64 {
        let (constant, per_rank) = if tp < 4 {
            (self.constant_mib, self.per_rank_mib)
        } else {
            (self.constant_tp4_mib, self.per_rank_tp4_mib)
        };
        let padding = if ranks > 1 { per_rank * f64::from(ranks) } else { 0.0 };
        let chunk = self.per_chunk_token_mib * f64::from(chunked_prefill_size.max(SMALLEST_CHUNK));
        let reserved = constant + chunk + self.per_gpu_mib * f64::from(tp) + padding;
        let memory = memory as f64 / MIB;
        let fraction = (memory - reserved.max(self.at_least_mib)) / memory;
        (libm::rint(fraction * 1e3) / 1e3).max(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// H100 with 81,559 MiB, chunks of 8,192: 512 + 12,288 + 2 x 256 + 128 MiB; at 8 GPUs 512 + 12,288
    /// + 2 x 512 + 1,024.
    #[test]
    fn the_static_fraction_is_what_the_reserve_leaves() {
        let reserve = StaticReserve {
            constant_mib: 1024.0,
            constant_tp4_mib: 1536.0,
            per_chunk_token_mib: 1.5,
            per_gpu_mib: 128.0,
            at_least_mib: 10_240.0,
            per_rank_mib: 768.0,
            per_rank_tp4_mib: 2304.0,
        };
        let h100 = 81_559 << 20;
        assert_eq!(reserve.fraction(h100, 8192, 1, 1), 0.835);
        assert_eq!(reserve.fraction(h100, 8192, 8, 1), 0.818);
        // Data-parallel attention: 8 x (3 + 1.5) x 512 MiB more.
        assert_eq!(reserve.fraction(h100, 8192, 8, 8), 0.592);
        // 1,024 + 3,072 + 128 is below the floor.
        assert_eq!(reserve.fraction(h100, 1024, 1, 1), 0.874);
        assert_eq!(reserve.fraction(1 << 20, 8192, 1, 1), 0.0);
    }
}
