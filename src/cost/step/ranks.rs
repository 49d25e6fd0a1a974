//! Data-parallel ranks that step together: attention over a rank's own tokens, experts over everybody's.
//!
//! Each of D ranks has the weights that it does not share on p GPUs of its own; the shared ones are spread over all
//! D p. Before a shared layer the tokens of all ranks are exchanged, so a rank with own tokens n_r of N needs
//!
//! ```text
//! T_r = t0 + t_seq S_r + T_linear + T_head + T_attention(r) + T_communication,    T = max over ranks of T_r
//! T_linear: Tc = 2 (P_own n_r / p + P_shared N / (D p)) / (F e)    Tm = (W_own / p + W_shared(N) / (D p)) / (B b)
//! ```
//!
//! with h, tiles and the spread of experts as in `step.rs`: routed experts are touched by the N tokens together. Which
//! rank is the slowest is the same in every layer, so the step's maximum is that of the sums. What a rank adds
//! to come up to the longest one (padding) is not costed.

use super::tiles::padding;
use super::{StepCost, StepShape};
use crate::catalog::{Hardware, Model, ProfileValues};
use crate::cost::communication::exchange;

/// Data-parallel ranks of one server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ranks {
    pub count: u32,
    pub sharing: Sharing,
}

/// What ranks spread over all of their GPUs; each has the rest on its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// Routed experts (vLLM, TensorRT-LLM).
    Experts,
    /// All feed-forward layers and the output head; embeddings are whole on every GPU (SGLang).
    FeedForwardAndHead,
}

impl Ranks {
    /// Of a model's parameters outside routed experts, embeddings and head, the share that is spread over all
    /// ranks.
    #[must_use]
    pub fn shared_part(&self, model: &Model) -> f64 {
        match self.sharing {
            Sharing::Experts => 0.0,
            Sharing::FeedForwardAndHead => {
                model.feed_forward_parameters() as f64 / model.parameters().dense as f64
            }
        }
    }

    /// Layers around which tokens are exchanged.
    fn exchanges(&self, model: &Model) -> u32 {
        match self.sharing {
            Sharing::Experts => model.moe_layer_count(),
            Sharing::FeedForwardAndHead => model.layer_count(),
        }
    }
}

/// What follows from the tokens of all ranks together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Shared {
    ranks: f64,
    compute_per_token_s: f64,
    tile_row_s: f64,
    exchange_s: f64,
    exchange_per_token_s: f64,
    /// The output head is spread over all ranks too.
    head: bool,
}

impl Shared {
    pub fn compute_s(&self, all: &StepShape) -> f64 {
        self.compute_per_token_s * f64::from(all.tokens) + self.tile_row_s * f64::from(padding(all.tokens))
    }

    pub fn exchange_s(&self, all: &StepShape) -> f64 {
        self.exchange_s + self.exchange_per_token_s * f64::from(all.tokens)
    }

    pub const fn head_rows(&self, own: &StepShape, all: &StepShape) -> u32 {
        if self.head { all.sampled } else { own.sampled }
    }

    /// What a rank computes on average when all have `tokens` together.
    pub fn mean_compute_s(&self, own_per_token_s: f64, tokens: u64) -> f64 {
        (own_per_token_s / self.ranks + self.compute_per_token_s) * tokens as f64
    }

    pub fn scaled(self, factor: f64) -> Self {
        Self {
            compute_per_token_s: self.compute_per_token_s * factor,
            tile_row_s: self.tile_row_s * factor,
            exchange_s: self.exchange_s * factor,
            exchange_per_token_s: self.exchange_per_token_s * factor,
            ..self
        }
    }
}

impl StepCost {
    /// The price of one of several ranks, of one of which `self` is the price if it had all weights to itself. It
    /// knows steps of as many tokens as all ranks have together, and into how many slices experts are cut.
    #[must_use]
    pub fn with_ranks(
        mut self,
        model: &Model,
        hardware: &Hardware,
        profile: &ProfileValues,
        ranks: Ranks,
    ) -> Self {
        let spread = 1.0 / f64::from(ranks.count);
        let shared_part = ranks.shared_part(model);
        let dense_s = self.linear_compute_per_token_s - self.experts.per_token_s;
        let (exchange_s, exchange_per_token_s) =
            exchange(model, hardware, profile, ranks.count, ranks.exchanges(model));
        let head = ranks.sharing == Sharing::FeedForwardAndHead;
        // Of the matrices outside routed experts, what a GPU has of them, against having all to itself.
        let kept = 1.0 - shared_part + shared_part * spread;
        self.linear_compute_per_token_s = dense_s * (1.0 - shared_part);
        let tile_row_s = self.tile_row_s;
        self.tile_row_s *= 1.0 - shared_part;
        self.linear_compute_half_s *= kept;
        self.linear_memory_s *= kept;
        self.spread_per_root_token_s *= spread;
        self.experts_memory_s.iter_mut().for_each(|read_s| *read_s *= spread);
        self.all_experts_s *= spread;
        if head {
            self.head_compute_per_row_s *= spread;
            self.head_memory_s *= spread;
        }
        self.shared = Some(Shared {
            ranks: f64::from(ranks.count),
            compute_per_token_s: (self.experts.per_token_s + dense_s * shared_part) * spread,
            tile_row_s: tile_row_s * shared_part * spread,
            exchange_s,
            exchange_per_token_s,
            head,
        });
        self
    }

    /// A made-up model of `ranks` ranks for tests and teaching: `self` for a rank's own tokens and
    /// `per_token_s` for each token of all.
    #[must_use]
    pub fn with_shared_tokens(mut self, ranks: u32, per_token_s: f64) -> Self {
        self.shared = Some(Shared {
            ranks: f64::from(ranks),
            compute_per_token_s: per_token_s,
            tile_row_s: 0.0,
            exchange_s: 0.0,
            exchange_per_token_s: 0.0,
            head: false,
        });
        self
    }
}
