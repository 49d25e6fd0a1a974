//! Speculative decoding: a draft proposes tokens, the model verifies them all in one step.
//!
//! A decoding sequence has 1 + k tokens in a step instead of one and gets between 1 and 1 + k of them.
//! Each draft token is accepted with probability a if all before it were, so that
//!
//! ```text
//! P(at least j drafts accepted) = a^j      mean acceptance length = 1 + a + a^2 + ... + a^k
//! ```
//!
//! in which a follows from the mean acceptance length, as vLLM logs it (the token that the model itself
//! adds counts). Real drafts are accepted better at some places of a text than at others; what that does
//! to one request's time per token is not in here. Every draw belongs to a request and a place in its
//! output, whatever else happens: two scenarios see the same users accept the same drafts.

use crate::cost::{StepCost, StepShape};
use crate::rng::Keyed;
use crate::units::Tokens;

/// How a replica speculates.
#[derive(Clone, Debug, PartialEq)]
pub struct Speculation {
    /// k: drafted tokens per sequence and step.
    pub num_speculative_tokens: u32,
    /// KV slots that a running sequence needs beyond its scheduled tokens: the draft model writes ahead.
    pub lookahead: Tokens,
    /// The draft model's own steps; `None` where drafting costs the GPU nothing (n-gram look-up).
    pub draft: Option<StepCost>,
    /// a^1 to a^k.
    survival: Vec<f64>,
}

impl Speculation {
    /// `mean_acceptance_length` from 1 to 1 + k.
    ///
    /// # Panics
    /// If it is not (the scenario's reader ensures it).
    #[must_use]
    pub fn new(
        num_speculative_tokens: u32,
        mean_acceptance_length: f64,
        lookahead: Tokens,
        draft: Option<StepCost>,
    ) -> Self {
        let longest = 1.0 + f64::from(num_speculative_tokens);
        assert!((1.0..=longest).contains(&mean_acceptance_length), "between 1 and 1 + k");
        let rate = acceptance_rate(num_speculative_tokens, mean_acceptance_length);
        let powers = std::iter::successors(Some(rate), |power| Some(power * rate));
        let survival = powers.take(num_speculative_tokens as usize).collect();
        Self { num_speculative_tokens, lookahead, draft, survival }
    }

    /// How many of `drafts` drafted tokens are accepted for request number `request` after `generated`
    /// output tokens.
    #[must_use]
    pub fn accepted(&self, key: Keyed, request: u64, generated: Tokens, drafts: u32) -> u32 {
        let uniform = key.uniform(request, u64::from(generated));
        self.survival.iter().take(drafts as usize).take_while(|&&survival| uniform < survival).count() as u32
    }

    /// Seconds that the draft model takes beside a step at `speed`: it sees the same tokens once, and then k - 1 times
    /// one more for every sequence.
    #[must_use]
    pub fn draft_s(&self, shape: &StepShape, speed: f64) -> f64 {
        let Some(draft) = &self.draft else { return 0.0 };
        let again = StepShape {
            tokens: shape.sequences,
            sequences: shape.sequences,
            sampled: shape.sequences,
            decode_context: shape.decode_context + shape.prefill_context,
            decode_window_context: shape.decode_window_context + shape.prefill_window_context,
            ..StepShape::default()
        };
        let first = StepShape { sampled: shape.sequences, ..*shape };
        let times = f64::from(self.num_speculative_tokens.saturating_sub(1));
        draft.terms_at(&first, speed).total_s() + times * draft.terms_at(&again, speed).total_s()
    }

    /// The same with a draft model that takes `factor` times as long.
    #[must_use]
    pub fn scaled(&self, factor: f64) -> Self {
        Self { draft: self.draft.as_ref().map(|draft| draft.scaled(factor)), ..self.clone() }
    }
}

/// a for a mean acceptance length, by bisection: 1 + a + ... + a^k rises with a.
fn acceptance_rate(drafts: u32, mean_acceptance_length: f64) -> f64 {
    let mean = |rate: f64| (0..drafts).fold(1.0, |sum, _| 1.0 + rate * sum);
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        if mean(middle) < mean_acceptance_length { low = middle } else { high = middle }
    }
    0.5 * (low + high)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{Purpose, keyed};

    #[test]
    fn the_mean_acceptance_length_is_what_was_asked_for() {
        // 1 + .5 + .25, and the ends.
        assert!((acceptance_rate(2, 1.75) - 0.5).abs() < 1e-12);
        assert!(acceptance_rate(3, 1.0) < 1e-12 && acceptance_rate(3, 4.0) > 1.0 - 1e-12);
        let key = keyed(1, Purpose::Acceptance, 0);
        for (drafts, mean) in [(1, 1.6), (3, 2.4), (5, 3.1), (7, 1.2)] {
            let speculation = Speculation::new(drafts, mean, 0, None);
            let draws = 200_000_u32;
            let accepted =
                (0..draws).map(|draw| speculation.accepted(key, u64::from(draw / 100), draw % 100, drafts));
            let drawn = 1.0 + f64::from(accepted.sum::<u32>()) / f64::from(draws);
            assert!((drawn / mean - 1.0).abs() < 0.01, "{drafts} drafts: {drawn}, not {mean}");
        }
    }

    #[test]
    fn fewer_drafts_accept_no_more_and_the_same_place_accepts_the_same() {
        let speculation = Speculation::new(4, 2.5, 0, None);
        let key = keyed(7, Purpose::Acceptance, 3);
        for request in 0..500 {
            let all = speculation.accepted(key, request, 9, 4);
            assert_eq!(speculation.accepted(key, request, 9, 2), all.min(2));
            assert_eq!(speculation.accepted(key, request, 9, 0), 0);
        }
    }

    /// Once over 6 tokens, twice over the 2 sequences.
    #[test]
    fn the_draft_runs_k_times() {
        let speculation = Speculation::new(3, 2.0, 3, Some(StepCost::affine(1e-3, 1e-4)));
        let shape = StepShape { tokens: 6, sequences: 2, sampled: 6, ..StepShape::default() };
        assert!((speculation.draft_s(&shape, 1.0) - (1.6e-3 + 2.0 * 1.2e-3)).abs() < 1e-15);
    }
}
