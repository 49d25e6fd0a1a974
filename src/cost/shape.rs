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

    /// One of `parts` equal parts, rounded up where it does not come out even.
    #[must_use]
    pub fn share(&self, parts: u32) -> Self {
        let wide = u64::from(parts.max(1));
        Self {
            tokens: self.tokens.div_ceil(parts.max(1)),
            sequences: self.sequences.div_ceil(parts.max(1)),
            sampled: self.sampled.div_ceil(parts.max(1)),
            decode_context: self.decode_context.div_ceil(wide),
            decode_window_context: self.decode_window_context.div_ceil(wide),
            prefill_pairs_x2: self.prefill_pairs_x2.div_ceil(wide),
            prefill_window_pairs_x2: self.prefill_window_pairs_x2.div_ceil(wide),
            prefill_context: self.prefill_context.div_ceil(wide),
            prefill_window_context: self.prefill_window_context.div_ceil(wide),
        }
    }

    /// What `copies` of it hold together.
    #[must_use]
    pub fn times(&self, copies: u32) -> Self {
        std::iter::repeat_n(self, copies as usize).sum()
    }
}

impl std::ops::AddAssign<&Self> for StepShape {
    fn add_assign(&mut self, other: &Self) {
        self.tokens += other.tokens;
        self.sequences += other.sequences;
        self.sampled += other.sampled;
        self.decode_context += other.decode_context;
        self.decode_window_context += other.decode_window_context;
        self.prefill_pairs_x2 += other.prefill_pairs_x2;
        self.prefill_window_pairs_x2 += other.prefill_window_pairs_x2;
        self.prefill_context += other.prefill_context;
        self.prefill_window_context += other.prefill_window_context;
    }
}

impl<'a> std::iter::Sum<&'a Self> for StepShape {
    fn sum<I: Iterator<Item = &'a Self>>(shapes: I) -> Self {
        let mut all = Self::default();
        for shape in shapes {
            all += shape;
        }
        all
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

    /// Parts are rounded up, and copies of an even part add up again.
    #[test]
    fn shapes_are_shared_and_added() {
        let mut shape = StepShape { tokens: 6, sequences: 6, sampled: 6, ..StepShape::default() };
        (shape.decode_context, shape.decode_window_context) = (601, 30);
        shape.add_chunk(4, 10, true, 8);
        let part = shape.share(4);
        assert_eq!((part.tokens, part.sequences, part.sampled), (4, 2, 2));
        assert_eq!((part.decode_context, part.prefill_context), (151, 4));
        assert_eq!(part.times(3).tokens, 12);
        assert_eq!(shape.times(4).share(4), shape);
        assert_eq!([shape, part].iter().sum::<StepShape>().prefill_pairs_x2, 180 + 45);
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
