//! Prompts that wait until every rank has some: see [`PromptBalance`].

use super::Rank;
use crate::engine::config::PromptBalance;

/// The counts of one server; in TensorRT-LLM each rank keeps them, and all see the same.
#[derive(Clone, Debug)]
pub(super) struct PromptWait {
    balance: PromptBalance,
    /// Steps in which not all ranks had prompts, since such prompts could last run.
    waited: u32,
    /// Steps in which all had some, since they last ran.
    batched: u32,
}

impl PromptWait {
    pub fn new(balance: PromptBalance) -> Self {
        Self { balance, waited: 0, batched: 0 }
    }

    /// Whether the prompts of the step that all ranks have composed into their plan number `at` are to be held
    /// back; counts the steps. A rank without requests decodes a dummy as long as another has some.
    pub fn holds_back(&mut self, ranks: &[Rank<'_>], at: usize, max_num_seqs: u32) -> bool {
        let is_idle = |rank: &Rank<'_>| rank.batcher.pool.len() == 0;
        if ranks.iter().all(is_idle) {
            return false;
        }
        let decoding = |rank: &Rank<'_>| if is_idle(rank) { 1 } else { rank.plans[at].decoding() };
        let all_decode = ranks.iter().all(|rank| decoding(rank) > 0);
        let all_have_seats = ranks.iter().all(|rank| decoding(rank) < max_num_seqs);
        let all_have_prompts = ranks.iter().all(|rank| !rank.plans[at].chunks.is_empty());
        if all_have_seats && all_have_prompts {
            self.waited = 0;
            let waits = all_decode && self.batched < self.balance.batching_wait_iters;
            if all_decode {
                self.batched = if waits { self.batched + 1 } else { 0 };
            }
            return waits;
        }
        self.waited += 1;
        let waits = all_decode && self.waited < self.balance.timeout_iters;
        if !waits {
            self.waited = 0;
        }
        waits
    }
}
