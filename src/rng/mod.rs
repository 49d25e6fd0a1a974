//! Random numbers: one stream per purpose and replication.
//!
//! Every use of chance (arrival gaps, input lengths, routing, ...) draws from its own ChaCha stream, so
//! changing one thing in a scenario leaves all other draws as they were: *common random numbers*. Two
//! scenarios see the same users, and their paired difference is far less noisy than either result.
//! For the same reason samplers draw a *standard* variate, which the caller scales, and every sampler
//! takes one 64-bit word a variate: the n-th variate stays the n-th whatever the parameters are.
//!
//! Results must not depend on the platform, so everything here is IEEE arithmetic and `libm`. Any change
//! that moves a bit of a sampled value changes every published result; the pinned tests stand guard.
//!
//! ```
//! use knee::rng::{Purpose, stream};
//! let mut gaps = stream(1, Purpose::ArrivalGap, 0);
//! let rate_per_s = 12.0;
//! let gap_s = gaps.standard_exponential() / rate_per_s;
//! assert!(gap_s > 0.0);
//! ```

mod gamma;
mod normal;

use rand::rngs::ChaCha8Rng;
use rand::{Rng, SeedableRng};

pub use normal::inverse_normal_cdf;

/// What a stream is drawn for. The numbers are part of every result: never renumber, only append.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Purpose {
    /// Time between two requests.
    ArrivalGap = 0,
    /// Prompt length.
    InputLength = 1,
    /// Output length.
    OutputLength = 2,
    /// Which class a request belongs to.
    Class = 3,
    /// How long a user of a closed loop thinks.
    ThinkTime = 4,
    /// Service time on a synthetic server.
    Service = 5,
    /// A router's random choice.
    Routing = 6,
    /// Which recorded pair of lengths a request takes.
    Pair = 7,
    /// How long a Markov-modulated arrival process stays in a state.
    Dwell = 8,
    /// Points of a sampled sweep; the replication is the number of the axis.
    Sampling = 9,
    /// Whether drafted tokens are accepted (keyed, see [`Keyed`]).
    Acceptance = 10,
    /// Which measurements are held out of a fit.
    HoldOut = 32,
}

/// The stream for one purpose in one replication of a run.
///
/// All streams of a seed share a ChaCha8 key (the seed expanded by SplitMix64) and differ in the nonce
/// (purpose and replication), so no two of them ever overlap.
#[must_use]
pub fn stream(seed: u64, purpose: Purpose, replication: u32) -> Stream {
    let mut expand = SplitMix64(seed);
    let mut key = [0; 32];
    for word in key.chunks_exact_mut(8) {
        word.copy_from_slice(&expand.next_word().to_le_bytes());
    }
    let mut chacha = ChaCha8Rng::from_seed(key);
    chacha.set_stream(u64::from(purpose as u32) << 32 | u64::from(replication));
    Stream { chacha }
}

/// A sequence of independent random variates.
#[derive(Debug)]
pub struct Stream {
    chacha: ChaCha8Rng,
}

impl Stream {
    /// Uniform on the open interval (0, 1): an odd multiple of 2^-53, so that both ends are out and
    /// `1 - u` is as exact as `u`.
    #[inline]
    pub fn uniform(&mut self) -> f64 {
        open_unit(self.chacha.next_u64())
    }

    /// Exponential with mean 1, by inversion: `-ln(u)`, at most 36.8.
    #[inline]
    pub fn standard_exponential(&mut self) -> f64 {
        -libm::log(self.uniform())
    }

    /// Normal with mean 0 and standard deviation 1, by inversion.
    #[inline]
    pub fn standard_normal(&mut self) -> f64 {
        inverse_normal_cdf(self.uniform())
    }

    /// Gamma with the given shape and scale 1 (mean `shape`, squared coefficient of variation
    /// 1/`shape`). NaN, which the clock's gate rejects, if `shape` is not positive and finite.
    ///
    /// The acceptance-rejection loop runs on a small generator seeded by one word of this stream, so
    /// that the streams of two scenarios stay in step although their shapes differ.
    #[inline]
    pub fn standard_gamma(&mut self, shape: f64) -> f64 {
        gamma::standard_gamma(shape, &mut SplitMix64(self.chacha.next_u64()))
    }

    /// Uniform on `0..n`, without bias; 0 if `n` is 0.
    ///
    /// D. Lemire, "Fast random integer generation in an interval", ACM TOMACS 29 (2019).
    #[inline]
    pub fn index(&mut self, n: usize) -> usize {
        let n = n as u64;
        loop {
            let product = u128::from(self.chacha.next_u64()) * u128::from(n);
            let low = product as u64;
            // 2^64 mod n of the low halves would be hit once too often; computed only when near.
            if low >= n || low >= n.wrapping_neg().checked_rem(n).unwrap_or(0) {
                return (product >> 64) as usize;
            }
        }
    }
}

/// Draws that belong to a pair of numbers instead of a place in a sequence: the same pair, the same draw, in
/// whatever order and number they are asked for.
#[derive(Clone, Copy, Debug)]
pub struct Keyed(u64);

/// The keyed draws for one purpose in one replication of a run.
#[must_use]
pub fn keyed(seed: u64, purpose: Purpose, replication: u32) -> Keyed {
    Keyed(stream(seed, purpose, replication).chacha.next_u64())
}

impl Keyed {
    /// Uniform on the open interval (0, 1).
    #[must_use]
    #[inline]
    pub fn uniform(self, a: u64, b: u64) -> f64 {
        let first = SplitMix64(self.0 ^ a).next_word();
        open_unit(SplitMix64(first ^ b).next_word())
    }
}

/// The top 52 bits as the midpoint of one of 2^52 equal cells of (0, 1).
#[inline]
fn open_unit(word: u64) -> f64 {
    const CELL: f64 = 1.0 / (1_u64 << 52) as f64;
    ((word >> 12) as f64 + 0.5) * CELL
}

/// Steele, Lea and Flood's generator (OOPSLA 2014): a bijection of a counter, so different seeds give
/// different keys, and a seed may be any number, 0 included.
struct SplitMix64(u64);

impl SplitMix64 {
    #[inline]
    fn next_word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

#[cfg(test)]
mod tests;
