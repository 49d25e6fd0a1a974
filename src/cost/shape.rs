//! What a step holds, as sums that cost the same to build for 1 and for 1,000 sequences.

use serde::{Deserialize, Serialize};

use crate::units::Tokens;

/// What one engine step (one fused forward pass) holds. Sums only, so that it costs the same to build
/// for 1 and for 1,000 sequences.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepShape {
    /// n: scheduled tokens, prefill chunks and one per decoding sequence.
    pub tokens: u32,
    /// S: sequences that have tokens in the step.
    pub sequences: u32,
    /// Rows of the output head: sequences whose next token is sampled.
    pub sampled: u32,
    /// Contexts of the decoding sequences, their new token included, summed; and the same with each
    /// context cut at the model's sliding window.
    pub decode_context: u64,
    pub decode_window_context: u64,
    /// Over prefill chunks (h cached, c chunk tokens): sum of c (2h + c), twice the query-key pairs; and
    /// twice the sum over i in 1..=c of min(h + i - 1/2, window), see [`window_pairs_x2`].
    pub prefill_pairs_x2: u64,
    pub prefill_window_pairs_x2: u64,
    /// Over prefill chunks: sum of h + c; and of min(h, window) + c.
    pub prefill_context: u64,
    pub prefill_window_context: u64,
}

impl StepShape {
    /// Adds a prefill chunk of `chunk` tokens after `cached` ones; `samples` if it is the prompt's last.
    /// `window` is the model's sliding window ([`super::StepCost::window`]).
    pub fn add_chunk(&mut self, cached: Tokens, chunk: Tokens, samples: bool, window: Tokens) {
        let (h, c) = (u64::from(cached), u64::from(chunk));
        self.tokens += chunk;
        self.sequences += 1;
        self.sampled += u32::from(samples);
        self.prefill_pairs_x2 += c * (2 * h + c);
        self.prefill_context += h + c;
        self.prefill_window_pairs_x2 += window_pairs_x2(h, c, u64::from(window));
        self.prefill_window_context += h.min(u64::from(window)) + c;
    }
}

/// Twice the query-key pairs of a chunk of `c` tokens after `h` cached under window `w`: the exact
/// sum over the chunk of min(h + i, w), with the same half-token convention as `c (2h + c)`.
#[must_use]
pub fn window_pairs_x2(h: u64, c: u64, w: u64) -> u64 {
    // Tokens before the window is full grow like a triangle; the rest see w each.
    let rising = w.saturating_sub(h).min(c);
    rising * (2 * h + rising) + 2 * w * (c - rising)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The definition, counted pair by pair: token i of the chunk sees min(h + i - 1/2, w) keys, except
    /// that the convention charges a token inside the window half of itself.
    fn counted_pairs_x2(h: u64, c: u64, w: u64) -> u64 {
        (1..=c).map(|i| if h + i <= w { 2 * (h + i) - 1 } else { 2 * w }).sum()
    }

    #[test]
    fn window_pairs_are_the_sum_over_the_chunk() {
        for h in [0, 1, 5, 8, 9, 30] {
            for c in [1, 2, 7, 8, 9, 40] {
                for w in [1, 4, 8, 16, u64::from(Tokens::MAX)] {
                    assert_eq!(window_pairs_x2(h, c, w), counted_pairs_x2(h, c, w), "h {h} c {c} w {w}");
                }
            }
        }
    }

    #[test]
    fn chunks_of_a_prompt_add_up_to_the_prompt() {
        let (mut whole, mut parts) = (StepShape::default(), StepShape::default());
        whole.add_chunk(0, 1000, true, 128);
        parts.add_chunk(0, 600, false, 128);
        parts.add_chunk(600, 400, true, 128);
        assert_eq!(whole.prefill_pairs_x2, 1_000_000);
        assert_eq!(parts.prefill_pairs_x2, whole.prefill_pairs_x2);
        assert_eq!(parts.prefill_window_pairs_x2, whole.prefill_window_pairs_x2);
        assert_eq!((parts.tokens, parts.sequences, parts.sampled), (1000, 2, 1));
        assert_eq!(parts.prefill_context, 600 + 1000);
        assert_eq!(parts.prefill_window_context, 600 + 128 + 400);
    }
}
