//! Standard gamma variates, from `rand_distr` (Marsaglia and Tsang's method).

use std::convert::Infallible;

use rand::TryRng;
use rand_distr::{Distribution, Gamma};

use super::SplitMix64;

/// A gamma variate of the given shape and scale 1; NaN if `shape` is not positive and finite.
pub(super) fn standard_gamma(shape: f64, random: &mut SplitMix64) -> f64 {
    match Gamma::new(shape, 1.0) {
        Ok(gamma) if shape.is_finite() => gamma.sample(random),
        _ => f64::NAN,
    }
}

impl TryRng for SplitMix64 {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        Ok((self.next_word() >> 32) as u32)
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        Ok(self.next_word())
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        for chunk in bytes.chunks_mut(8) {
            chunk.copy_from_slice(&self.next_word().to_le_bytes()[..chunk.len()]);
        }
        Ok(())
    }
}
