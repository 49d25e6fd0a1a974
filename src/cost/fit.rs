//! What would fit: alternatives to a deployment whose weights leave no room for KV.

use std::sync::Arc;

use super::memory::{MemoryInputs, memory_budget};
use crate::catalog::{Dtype, Hardware};
use crate::units::Tokens;

/// Ways out, each the smallest of its kind; all else stays as asked.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Alternatives {
    /// Bytes per GPU that are missing.
    pub missing_bytes: u64,
    /// The most of half as many sequences, a quarter, ... with which it fits: the sampler's copies grow with them.
    pub max_num_seqs: Option<u32>,
    /// The least of a few larger shares of the memory with which it fits.
    pub gpu_memory_utilization: Option<f64>,
    /// Fewest GPUs (a power of two within the scale-up domain) over which it fits.
    pub tensor_parallel_size: Option<u32>,
    /// The widest of the smaller weight formats under which it fits.
    pub weight_dtype: Option<Dtype>,
    /// The GPU with the least memory on which it fits.
    pub hardware: Option<String>,
}

/// Shares of a GPU's memory that an engine can be given without running out of it at the next surprise.
const LARGER_SHARES: [f64; 2] = [0.92, 0.95];
/// Fewest sequences worth proposing.
const FEWEST_SEQUENCES: u32 = 8;

/// What would make room for one sequence of `tokens` tokens. `gpus` are the candidates for another GPU.
/// `None` if it fits as it is.
#[must_use]
pub fn alternatives(
    inputs: &MemoryInputs<'_>,
    tokens: Tokens,
    gpus: &[Arc<Hardware>],
) -> Option<Alternatives> {
    let missing_bytes = missing(inputs, tokens);
    if missing_bytes == 0 {
        return None;
    }
    let fits = |inputs: MemoryInputs<'_>| missing(&inputs, tokens) == 0;
    let more_gpus =
        (0..32).map(|power| 1u32 << power).take_while(|tp| *tp <= inputs.hardware.link_domain.max(8));
    let mut more_gpus = more_gpus.filter(|tp| *tp > inputs.tensor_parallel_size);
    let fewer = (1..32).map(|power| inputs.max_num_seqs >> power);
    let mut fewer = fewer.take_while(|count| *count >= FEWEST_SEQUENCES);
    let mut larger = LARGER_SHARES.into_iter().filter(|share| *share > inputs.gpu_memory_utilization);
    let bits = |dtype: &Dtype| dtype.bits_per_weight();
    let mut smaller = Dtype::ALL.into_iter().filter(|dtype| bits(dtype) < bits(&inputs.weight_dtype));
    let bigger = gpus.iter().filter(|gpu| fits(MemoryInputs { hardware: gpu.as_ref(), ..*inputs }));
    let by_memory =
        |a: &&Arc<Hardware>, b: &&Arc<Hardware>| (a.memory_bytes, &a.name).cmp(&(b.memory_bytes, &b.name));
    Some(Alternatives {
        missing_bytes,
        max_num_seqs: fewer.find(|count| fits(MemoryInputs { max_num_seqs: *count, ..*inputs })),
        gpu_memory_utilization: larger
            .find(|share| fits(MemoryInputs { gpu_memory_utilization: *share, ..*inputs })),
        tensor_parallel_size: more_gpus
            .find(|tp| fits(MemoryInputs { tensor_parallel_size: *tp, ..*inputs })),
        weight_dtype: smaller.find(|dtype| fits(MemoryInputs { weight_dtype: *dtype, ..*inputs })),
        hardware: bigger.min_by(by_memory).map(|gpu| gpu.name.clone()),
    })
}

/// Bytes that one GPU lacks for one sequence of `tokens` tokens and the null block.
fn missing(inputs: &MemoryInputs<'_>, tokens: Tokens) -> u64 {
    let budget = memory_budget(inputs);
    let spec = budget.to_kv_spec();
    let blocks = u64::from(spec.blocks_for(tokens.max(1))) + u64::from(spec.fixed_blocks(tokens)) + 1;
    let needed = i128::from(blocks) * i128::from(budget.block_bytes);
    u64::try_from(needed - i128::from(budget.kv_available)).unwrap_or(0)
}
