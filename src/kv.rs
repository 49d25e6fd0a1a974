//! The KV-cache block ledger of a replica.

use crate::units::{Blocks, Tokens};

/// Size and granularity of a KV pool.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KvSpec {
    /// Tokens per block.
    pub block_size: Tokens,
    /// Blocks that requests can use (vLLM's null block is already taken off).
    pub blocks: Blocks,
    /// Blocks per sequence that do not grow with its length (constant state).
    pub state_blocks: Blocks,
    /// Sliding window and blocks per windowed token (0.0 without windowed layers); a sequence reserves
    /// `ceil(min(window, prompt + output - 1) x this)` when it is admitted.
    pub window: Tokens,
    pub window_blocks_per_token: f64,
}

impl KvSpec {
    /// Blocks that a sequence of `total` tokens holds whatever its length.
    #[must_use]
    pub fn fixed_blocks(&self, total: Tokens) -> Blocks {
        if self.window_blocks_per_token == 0.0 {
            return self.state_blocks;
        }
        let window = libm::ceil(f64::from(total.min(self.window)) * self.window_blocks_per_token);
        self.state_blocks.saturating_add(window as Blocks)
    }

    /// Blocks that hold `tokens` tokens of growing KV.
    #[must_use]
    pub const fn blocks_for(&self, tokens: Tokens) -> Blocks {
        tokens.div_ceil(self.block_size)
    }
}
