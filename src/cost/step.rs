//! The step-time model.
//!
//! With n scheduled tokens of S sequences on p GPUs (tensor parallelism), datasheet peaks F (FLOP/s of
//! the weights' compute type) and B (bytes/s), and fractions e, b, b_kv, e_a of them:
//!
//! ```text
//! T = t0 + t_seq S + T_linear + T_head + T_attention + T_communication + T_launch
//! T_linear    = sqrt(Tc^2 + Tm^2)       Tc = 2 (P_active n + h P_touched(n)) / (p F e)     Tm = W(n) / (p B b)
//! T_attention = sqrt(T_pairs^2 + T_kv^2)
//! ```
//!
//! Weights are read once per step, whatever mix of prefill and decode it holds. Compute and weight
//! streaming overlap imperfectly: the 2-norm lies between "the longer one" and "one after the other".
//! (Fitted to a Qwen3-14B server, exponents of 1.5, 2, 3 and plain max were within 0.7 points of each
//! other; addition was 5 points worse.) A matrix with m rows of input computes at m / (m + h) of its best
//! rate, so every matrix that is touched takes as long as h rows more; of fp8 weights n is rounded up to whole tiles (in
//! `tiles`). Routed experts have an e, h and b of their own, and
//! n tokens that each pick k of E touch a share of them (both in `experts`).
//!
//! Attention multiplies (T_pairs) and reads KV (T_kv), both sums over the step's sequences that arrive summed
//! in the [`StepShape`]. One launch per layer serves the step's prompts, which multiply, and its decodes,
//! which read, so the two overlap as those of the matrices do. (Held-out TPOT of a mixture of long prompts on
//! Qwen3-14B, H100: 5.2 % with the 2-norm, 6.0 % with the sum; of Qwen3-32B on two RTX PRO 6000, fitted on
//! another model: TTFT 0.3 and 0.9 %, TPOT 2.5 % both; max alone spoils the fit there.)
//!
//! T_launch is what a step waits for the host beyond all of that. One that no CUDA graph launches lasts at least its
//! launches. One with prompt tokens launches some of its kernels one by one: long ones hide the launches of those that
//! follow, short ones do not, so that the step is the 2-norm of the rest and of what launches take. (Against at least its
//! launches, fitted on 1 and 2 GPUs: TTFT of MiniMax-M2.5 on 4 B200 6.9 instead of 17.3 % off in fp8, 10.6 instead of
//! 12.8 % in nvfp4; of gpt-oss-120b on 4 and 8 B200 22 instead of 32 %.)

mod attention;
mod experts;
mod ranks;
mod tiles;

pub use ranks::{Ranks, Sharing};

use super::StepShape;
use super::communication::Communication;
use super::expert_parallel::Spread;
use super::launch::{Graphs, Launch};
use crate::catalog::{Dtype, Hardware, Model, ProfileValues};
use crate::units::{SimSpan, Tokens, rounded};
use attention::{AttentionCost, KvCost};
use experts::{Experts, experts_memory};

/// Activations travel and KV of computed heads is multiplied in bf16.
pub(super) const ACTIVATION_BYTES: f64 = 2.0;

/// Seconds of one step, term by term.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct StepTerms {
    pub overhead_s: f64,
    pub sequences_s: f64,
    pub linear_s: f64,
    /// The two parts that `linear_s` joins: compute alone and weight streaming alone.
    pub linear_compute_s: f64,
    pub linear_memory_s: f64,
    pub head_s: f64,
    pub attention_s: f64,
    /// The two parts that `attention_s` joins: multiplying alone and reading KV alone.
    pub attention_compute_s: f64,
    pub kv_s: f64,
    pub communication_s: f64,
    /// What launching the kernels one by one takes beyond all of the above (see [`Graphs`]).
    pub launch_s: f64,
}

impl StepTerms {
    /// The step's duration in seconds: the sum of the terms that are not parts of another.
    #[must_use]
    #[inline]
    pub fn total_s(&self) -> f64 {
        self.overhead_s
            + self.sequences_s
            + self.linear_s
            + self.head_s
            + self.attention_s
            + self.communication_s
            + self.launch_s
    }
}

/// The step-time model with everything that does not depend on the step folded into coefficients:
/// pricing a step is a few multiplications and two square roots.
#[derive(Clone, Debug, PartialEq)]
pub struct StepCost {
    /// The model's sliding window; `Tokens::MAX` if it has none.
    window: Tokens,
    /// Share of compute that is lost while it never pauses: see [`super::Clock`].
    throttle: f64,
    overhead_s: f64,
    prefill_launch_s: f64,
    per_sequence_s: f64,
    linear_compute_per_token_s: f64,
    /// What h rows more in every matrix cost: of all but the routed experts, and of these over the time to
    /// read them.
    linear_compute_half_s: f64,
    /// What a row costs that only fills up a tile; 0 where tiles are small.
    tile_row_s: f64,
    experts_half_over_read: f64,
    experts: Experts,
    /// Under expert parallelism: what the busiest GPU computes beyond the mean, per square root of tokens.
    spread_per_root_token_s: f64,
    /// Reading the weights of all layers but the routed experts.
    linear_memory_s: f64,
    /// Reading the routed experts that n tokens touch, by n; the last entry holds for all larger n.
    /// Empty for a dense model.
    experts_memory_s: Vec<f64>,
    /// Reading all of them.
    all_experts_s: f64,
    head_compute_per_row_s: f64,
    head_memory_s: f64,
    attention: AttentionCost,
    kv: KvCost,
    communication: Communication,
    launch: Launch,
    /// Under data parallelism: what follows from the tokens of all ranks together.
    shared: Option<ranks::Shared>,
}

impl StepCost {
    /// Folds model, hardware and profile under tensor parallelism `tp`; steps hold at most
    /// `max_num_batched_tokens`.
    ///
    /// # Panics
    /// If a fraction of the profile is outside (0, 1] (the catalog's reader ensures it).
    #[must_use]
    pub fn new(
        model: &Model,
        weight_dtype: Dtype,
        kv_dtype: Dtype,
        hardware: &Hardware,
        profile: &ProfileValues,
        tp: u32,
        max_num_batched_tokens: Tokens,
    ) -> Self {
        let kv_memory = if kv_dtype == Dtype::Fp8 { profile.fp8_kv_memory } else { profile.kv_memory };
        for fraction in [profile.compute, profile.memory, kv_memory, profile.attention_compute] {
            assert!(fraction > 0.0 && fraction <= 1.0, "{fraction} is not a fraction of a peak");
        }
        let gpus = f64::from(tp.max(1));
        let layers = f64::from(model.layer_count());
        let compute = gpus * hardware.compute_flops(weight_dtype) * profile.compute;
        let bf16_compute = gpus * hardware.bf16_flops * profile.compute;
        let stream = gpus * hardware.memory_bandwidth_bytes_per_s * profile.memory;
        let parameters = model.parameters();
        let weights = model.weight_bytes(weight_dtype);
        let head = f64::from(model.vocab_size) * f64::from(model.hidden_size);
        let all_experts_s = weights.routed / (stream * profile.expert_memory);
        let experts = Experts::new(model, profile, gpus * hardware.compute_flops(weight_dtype), tp);
        let dense_per_token_s = 2.0 * parameters.dense as f64 / compute;
        Self {
            window: model.window().unwrap_or(Tokens::MAX),
            throttle: profile.throttle,
            overhead_s: profile.overhead_per_layer_s * layers,
            prefill_launch_s: profile.prefill_launch_per_layer_s * layers,
            per_sequence_s: profile.per_sequence_s,
            linear_compute_per_token_s: dense_per_token_s + experts.per_token_s,
            linear_compute_half_s: profile.half_tokens * dense_per_token_s,
            tile_row_s: if tiles::are_padded(weight_dtype, hardware) { dense_per_token_s } else { 0.0 },
            experts_half_over_read: if all_experts_s > 0.0 { experts.half_s / all_experts_s } else { 0.0 },
            experts,
            spread_per_root_token_s: 0.0,
            linear_memory_s: weights.dense / stream,
            experts_memory_s: experts_memory(
                model,
                all_experts_s,
                profile.expert_correlation,
                max_num_batched_tokens,
            ),
            all_experts_s,
            // The head stays bf16 under every weight format.
            head_compute_per_row_s: 2.0 * head / bf16_compute,
            head_memory_s: ACTIVATION_BYTES * head / stream,
            attention: AttentionCost::new(model, gpus * hardware.bf16_flops * profile.attention_compute),
            kv: KvCost::new(model, kv_dtype, tp, hardware.memory_bandwidth_bytes_per_s * kv_memory),
            communication: Communication::new(model, hardware, profile, tp),
            launch: Launch::NONE,
            shared: None,
        }
    }

    /// The same where every decoding sequence has `queries` tokens in a step: each of them attends to the context
    /// that is read once.
    #[must_use]
    pub fn with_decode_queries(mut self, queries: u32) -> Self {
        self.attention.per_decode_context_s *= f64::from(queries);
        self
    }

    /// The same where only some steps run from CUDA graphs.
    #[must_use]
    pub fn with_graphs(mut self, model: &Model, hardware: &Hardware, tp: u32, graphs: Graphs) -> Self {
        self.launch = Launch::new(model, hardware, tp, graphs);
        self
    }

    /// The same with whole experts on each of the `tp` GPUs instead of a slice of all; nothing changes for
    /// a dense model.
    #[must_use]
    pub fn with_expert_parallel(mut self, model: &Model, tp: u32) -> Self {
        if let Some(spread) = Spread::new(model, tp) {
            self = self.with_expert_slices(1);
            self.spread_per_root_token_s = self.experts.per_token_s * spread.tokens_per_root();
            for read_s in &mut self.experts_memory_s {
                *read_s *= spread.read_factor(*read_s / self.all_experts_s);
            }
        }
        self
    }

    /// The same with each routed expert cut into `slices`, of which a GPU has one.
    #[must_use]
    pub fn with_expert_slices(mut self, slices: u32) -> Self {
        let dense_s = self.linear_compute_per_token_s - self.experts.per_token_s;
        self.experts_half_over_read *= self.experts.cut(slices);
        self.linear_compute_per_token_s = dense_s + self.experts.per_token_s;
        self
    }

    /// A made-up model for tests and teaching: `constant_s` + `per_token_s` x tokens, no window.
    #[must_use]
    pub const fn affine(constant_s: f64, per_token_s: f64) -> Self {
        Self {
            window: Tokens::MAX,
            throttle: 0.0,
            overhead_s: constant_s,
            prefill_launch_s: 0.0,
            per_sequence_s: 0.0,
            linear_compute_per_token_s: per_token_s,
            linear_compute_half_s: 0.0,
            tile_row_s: 0.0,
            experts_half_over_read: 0.0,
            experts: Experts::NONE,
            spread_per_root_token_s: 0.0,
            linear_memory_s: 0.0,
            experts_memory_s: Vec::new(),
            all_experts_s: 0.0,
            head_compute_per_row_s: 0.0,
            head_memory_s: 0.0,
            attention: AttentionCost::NONE,
            kv: KvCost::NONE,
            communication: Communication::NONE,
            launch: Launch::NONE,
            shared: None,
        }
    }

    /// The same model with every step `factor` times as long, for what an error of the profile does.
    ///
    /// # Panics
    /// Unless `factor` is positive and finite.
    #[must_use]
    pub fn scaled(&self, factor: f64) -> Self {
        assert!(factor > 0.0 && factor.is_finite(), "{factor} does not scale a duration");
        Self {
            window: self.window,
            throttle: self.throttle,
            overhead_s: self.overhead_s * factor,
            prefill_launch_s: self.prefill_launch_s * factor,
            per_sequence_s: self.per_sequence_s * factor,
            linear_compute_per_token_s: self.linear_compute_per_token_s * factor,
            linear_compute_half_s: self.linear_compute_half_s * factor,
            tile_row_s: self.tile_row_s * factor,
            experts_half_over_read: self.experts_half_over_read,
            experts: self.experts.scaled(factor),
            spread_per_root_token_s: self.spread_per_root_token_s * factor,
            linear_memory_s: self.linear_memory_s * factor,
            experts_memory_s: self.experts_memory_s.iter().map(|read_s| read_s * factor).collect(),
            all_experts_s: self.all_experts_s * factor,
            head_compute_per_row_s: self.head_compute_per_row_s * factor,
            head_memory_s: self.head_memory_s * factor,
            attention: self.attention.scaled(factor),
            kv: self.kv.scaled(factor),
            communication: self.communication.scaled(factor),
            launch: self.launch.scaled(factor),
            shared: self.shared.map(|shared| shared.scaled(factor)),
        }
    }

    /// Host time below which a step that no CUDA graph launches cannot end; 0 where that is not simulated.
    #[must_use]
    pub const fn launch_floor_s(&self) -> f64 {
        self.launch.step_s
    }

    /// The model's sliding window; `Tokens::MAX` if it has none.
    #[must_use]
    pub const fn window(&self) -> Tokens {
        self.window
    }

    /// The share of compute that is lost while it never pauses.
    #[must_use]
    pub const fn throttle(&self) -> f64 {
        self.throttle
    }

    /// The same on a chip that loses `throttle` of its compute while that never pauses.
    ///
    /// # Panics
    /// Unless `throttle` is in [0, 1).
    #[must_use]
    pub fn with_throttle(mut self, throttle: f64) -> Self {
        assert!((0.0..1.0).contains(&throttle), "{throttle} is not a share that can be lost");
        self.throttle = throttle;
        self
    }

    /// Seconds that the layers' matrices compute for `tokens`, at full clock.
    /// Of data-parallel ranks that have `tokens` together it is the mean.
    pub(super) fn linear_compute_s(&self, tokens: u64) -> f64 {
        match &self.shared {
            None => self.linear_compute_per_token_s * tokens as f64,
            Some(shared) => shared.mean_compute_s(self.linear_compute_per_token_s, tokens),
        }
    }

    /// The terms of a step at full clock.
    #[must_use]
    pub fn terms(&self, shape: &StepShape) -> StepTerms {
        self.terms_at(shape, 1.0)
    }

    /// `terms` of `shape` with the launch that a step without prompt tokens would wait for.
    #[must_use]
    pub fn without_prompt_launch(&self, terms: StepTerms, shape: &StepShape) -> StepTerms {
        let others = StepTerms { launch_s: 0.0, ..terms };
        StepTerms { launch_s: (self.launch.floor_s(shape) - others.total_s()).max(0.0), ..others }
    }

    /// The terms of a step when compute runs at `speed`, in (0, 1], of a cold chip's.
    #[must_use]
    #[inline]
    pub fn terms_at(&self, shape: &StepShape, speed: f64) -> StepTerms {
        match self.shared {
            None => self.terms_of::<false>(shape, shape, speed),
            Some(_) => self.terms_among(shape, shape, speed),
        }
    }

    /// The same for one data-parallel rank whose part of the step is `shape`, when all ranks together have
    /// `all`.
    #[must_use]
    pub fn terms_among(&self, shape: &StepShape, all: &StepShape, speed: f64) -> StepTerms {
        self.terms_of::<true>(shape, all, speed)
    }

    /// Without `RANKS` `all` is `shape`, and nothing need be looked up that only ranks have.
    #[inline]
    fn terms_of<const RANKS: bool>(&self, shape: &StepShape, all: &StepShape, speed: f64) -> StepTerms {
        let all = if RANKS { all } else { shape };
        let tokens = f64::from(shape.tokens);
        let sequences = f64::from(shape.sequences);
        let mut linear_compute_s = self.linear_compute_per_token_s * tokens
            + self.tile_row_s * f64::from(tiles::padding(shape.tokens));
        let mut communication_s = self.communication.time_s(tokens);
        let mut head_rows = shape.sampled;
        if RANKS && let Some(shared) = &self.shared {
            linear_compute_s += shared.compute_s(all);
            communication_s += shared.exchange_s(all);
            head_rows = shared.head_rows(shape, all);
        }
        if self.spread_per_root_token_s > 0.0 {
            linear_compute_s += self.spread_per_root_token_s * f64::from(all.tokens).sqrt();
        }
        let experts_read_s = self.experts_read_s(all.tokens);
        let linear_memory_s = self.linear_memory_s + experts_read_s;
        linear_compute_s += self.linear_compute_half_s + self.experts_half_over_read * experts_read_s;
        linear_compute_s /= speed;
        let head_s = if head_rows == 0 {
            0.0
        } else {
            norm(self.head_compute_per_row_s * f64::from(head_rows), self.head_memory_s)
        };
        let attention_compute_s = self.attention.compute_s(shape);
        let kv_s = self.kv.read_s(shape);
        let mut terms = StepTerms {
            overhead_s: self.overhead_s,
            sequences_s: self.per_sequence_s * sequences,
            linear_s: norm(linear_compute_s, linear_memory_s),
            linear_compute_s,
            linear_memory_s,
            head_s,
            attention_s: joined(attention_compute_s, kv_s),
            attention_compute_s,
            kv_s,
            communication_s,
            launch_s: 0.0,
        };
        // Of whatever graphs do not cover, and of prompts.
        let floor_s = self.launch.floor_s(shape);
        if floor_s > 0.0 {
            terms.launch_s = (floor_s - terms.total_s()).max(0.0);
        }
        if shape.prefill_context > 0 && self.prefill_launch_s > 0.0 {
            let total_s = terms.total_s();
            terms.launch_s += norm(total_s, self.prefill_launch_s) - total_s;
        }
        terms
    }

    fn experts_read_s(&self, tokens: u32) -> f64 {
        match self.experts_memory_s.len() {
            0 => 0.0,
            entries => self.experts_memory_s[(tokens as usize).min(entries - 1)],
        }
    }

    /// How long a step takes when compute runs at `speed` of a cold chip's, rounded to the nanosecond, at
    /// least 1 ns.
    #[must_use]
    #[inline]
    pub fn step_time(&self, shape: &StepShape, speed: f64) -> SimSpan {
        to_span(self.terms_at(shape, speed).total_s())
    }

    /// The same for one data-parallel rank: see [`StepCost::terms_among`].
    #[must_use]
    pub fn step_time_among(&self, shape: &StepShape, all: &StepShape, speed: f64) -> SimSpan {
        to_span(self.terms_among(shape, all, speed).total_s())
    }

    /// [`StepCost::step_time`] with `beside_s` seconds more.
    #[must_use]
    pub fn step_time_with(&self, shape: &StepShape, speed: f64, beside_s: f64) -> SimSpan {
        to_span(self.terms_at(shape, speed).total_s() + beside_s)
    }

    /// No step with a sequence in it is shorter: every term is least for one token of one sequence without
    /// context at full clock, but for what it reads of the experts, which is taken at its least.
    #[must_use]
    pub fn shortest_step(&self) -> SimSpan {
        let one = StepShape { tokens: 1, sequences: 1, ..StepShape::default() };
        let terms = self.terms(&one);
        let read_s = self.experts_memory_s.iter().skip(1).fold(self.experts_read_s(1), |a, &b| a.min(b));
        let linear_s = norm(terms.linear_compute_s, self.linear_memory_s + read_s);
        to_span(StepTerms { linear_s, ..terms }.total_s())
    }

    /// The price of steps in which `sequences` decode and nothing else happens, at `speed`.
    #[must_use]
    pub fn decode_only(&self, sequences: u32, speed: f64) -> DecodeCost {
        let shape = StepShape { tokens: sequences, sequences, sampled: sequences, ..StepShape::default() };
        let terms = self.terms_at(&shape, speed);
        DecodeCost {
            before_attention_s: terms.overhead_s + terms.sequences_s + terms.linear_s + terms.head_s,
            attention_per_context_s: self.attention.per_decode_context_s,
            attention_compute_s: terms.attention_compute_s,
            kv_per_context_s: self.kv.per_context_s,
            kv_per_window_context_s: self.kv.per_window_context_s,
            kv_s: terms.kv_s,
            communication_s: terms.communication_s,
            launch_floor_s: self.launch.floor_s(&shape),
        }
    }
}

/// What [`StepCost`] says of steps that differ only in their contexts: all else is computed once. Terms
/// are added in the same order, so that both agree to the last bit.
#[derive(Clone, Copy, Debug)]
pub struct DecodeCost {
    before_attention_s: f64,
    attention_per_context_s: f64,
    /// Of multiplying, and of reading KV, what does not depend on the contexts.
    attention_compute_s: f64,
    kv_per_context_s: f64,
    kv_per_window_context_s: f64,
    kv_s: f64,
    communication_s: f64,
    /// 0 where a graph launches the step.
    launch_floor_s: f64,
}

impl DecodeCost {
    /// The step's duration: `context` and `window_context` are its shape's `decode_context` and
    /// `decode_window_context`.
    #[must_use]
    #[inline]
    pub fn step_time(&self, context: u64, window_context: u64) -> SimSpan {
        let context = context as f64;
        let attention_compute_s = self.attention_per_context_s * context + self.attention_compute_s;
        let kv_s = self.kv_per_context_s * context
            + self.kv_per_window_context_s * window_context as f64
            + self.kv_s;
        let attention_s = joined(attention_compute_s, kv_s);
        let mut total_s = self.before_attention_s + attention_s + self.communication_s;
        if self.launch_floor_s > 0.0 {
            total_s += (self.launch_floor_s - total_s).max(0.0);
        }
        to_span(total_s)
    }
}

#[inline]
pub(super) fn to_span(seconds: f64) -> SimSpan {
    SimSpan::from_nanos(rounded(seconds * 1e9).max(1))
}

/// The 2-norm of two times that overlap in part.
fn norm(a: f64, b: f64) -> f64 {
    // Correctly rounded on every platform, so bytes do not depend on the machine.
    (a * a + b * b).sqrt()
}

/// Attention from what it multiplies and the KV it reads.
#[inline]
fn joined(compute_s: f64, kv_s: f64) -> f64 {
    // Most steps only decode and multiply nothing to speak of: no root for those.
    if compute_s == 0.0 { kv_s } else { norm(compute_s, kv_s) }
}
