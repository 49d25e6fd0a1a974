//! Simulated time and the counts everything else is made of.
//!
//! Time is integer nanoseconds, so that two runs of one scenario agree to the last bit and an event
//! queue can order its entries without a fallback for "not comparable". Floating-point seconds enter
//! through one gate, [`SimSpan::from_secs_f64`], which rejects what is not a span of time.

use std::collections::BTreeSet;
use std::fmt;
use std::ops::{Add, AddAssign};

/// A number of tokens of one request or one step.
pub type Tokens = u32;
/// A number of KV-cache blocks.
pub type Blocks = u32;
/// A number of bytes.
pub type Bytes = u64;

/// Nanoseconds in a second.
pub const NANOS_PER_SEC: f64 = 1e9;

/// A point of simulated time, in nanoseconds since the start of the run.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct SimTime(u64);

/// A length of simulated time, in nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct SimSpan(u64);

/// A number in a message: as it is, with an exponent where it would be a row of digits.
#[must_use]
pub fn plain(value: f64) -> String {
    let is_short = value == 0.0 || (1e-9..1e15).contains(&value.abs());
    if is_short { value.to_string() } else { format!("{value:e}") }
}

/// Why a floating-point number is not a span of simulated time.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[error("{} s is not a span of simulated time (it must be finite, not negative and below 584 years)", plain(*seconds))]
pub struct NotASpan {
    /// The offending number of seconds.
    pub seconds: f64,
}

/// `x` rounded to the nearest whole number, halves to even; what is negative or NaN counts as 0.
#[inline]
#[must_use]
pub fn rounded(x: f64) -> u64 {
    const TWO_TO_52: f64 = 4_503_599_627_370_496.0;
    if (0.0..TWO_TO_52).contains(&x) {
        // The last bit of a double between 2^52 and 2^53 is worth 1: the sum is rounded there, and its
        // fraction bits are the number.
        (x + TWO_TO_52).to_bits() - TWO_TO_52.to_bits()
    } else {
        // Whole already, if at all a number.
        x as u64
    }
}

impl SimTime {
    /// The start of the run.
    pub const ZERO: Self = Self(0);
    /// Later than every event: "never".
    pub const MAX: Self = Self(u64::MAX);

    /// The time `nanos` nanoseconds after the start.
    #[must_use]
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }
    /// Nanoseconds since the start.
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }
    /// Seconds since the start.
    #[must_use]
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / NANOS_PER_SEC
    }
    /// The span from `earlier` to `self`; zero if `earlier` is later.
    #[must_use]
    pub const fn since(self, earlier: Self) -> SimSpan {
        SimSpan(self.0.saturating_sub(earlier.0))
    }
}

impl SimSpan {
    /// No time at all.
    pub const ZERO: Self = Self(0);
    /// Longer than the clock runs: "for ever".
    pub const MAX: Self = Self(u64::MAX);

    /// A span of `nanos` nanoseconds.
    #[must_use]
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }
    /// The gate from floating point: `seconds`, rounded to the nearest nanosecond.
    ///
    /// # Errors
    /// [`NotASpan`] if `seconds` is NaN, infinite, negative or beyond the range of the clock.
    pub fn from_secs_f64(seconds: f64) -> Result<Self, NotASpan> {
        let nanos = seconds * NANOS_PER_SEC;
        // From -1/2 to 2^64 as f64, which is even and of which no double below rounds up to; NaN fails
        // both comparisons.
        if (-0.5..18_446_744_073_709_551_616.0).contains(&nanos) {
            Ok(Self(rounded(nanos)))
        } else {
            Err(NotASpan { seconds })
        }
    }
    /// Nanoseconds.
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }
    /// Seconds.
    #[must_use]
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / NANOS_PER_SEC
    }
    /// Milliseconds.
    #[must_use]
    pub fn as_millis_f64(self) -> f64 {
        self.0 as f64 / 1e6
    }
}

/// Saturates at [`SimTime::MAX`], which no run reaches: a run that would ends with an error instead.
impl Add<SimSpan> for SimTime {
    type Output = Self;
    fn add(self, span: SimSpan) -> Self {
        Self(self.0.saturating_add(span.0))
    }
}

impl AddAssign<SimSpan> for SimTime {
    fn add_assign(&mut self, span: SimSpan) {
        *self = *self + span;
    }
}

impl Add for SimSpan {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl fmt::Debug for SimTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "t={}ns", self.0)
    }
}

impl fmt::Debug for SimSpan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}ns", self.0)
    }
}

/// Every value once, in the order of first appearance.
pub fn distinct<T: PartialEq>(values: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut kept = Vec::new();
    for value in values {
        if !kept.contains(&value) {
            kept.push(value);
        }
    }
    kept
}

/// What goes with every key, in the order of first appearance.
pub fn grouped<K: PartialEq, V>(pairs: impl IntoIterator<Item = (K, V)>) -> Vec<(K, Vec<V>)> {
    let mut groups: Vec<(K, Vec<V>)> = Vec::new();
    for (key, value) in pairs {
        match groups.iter_mut().find(|(other, _)| *other == key) {
            Some((_, values)) => values.push(value),
            None => groups.push((key, vec![value])),
        }
    }
    groups
}

/// The first of `names` that is there before; empty ones are nobody's.
#[must_use]
pub fn first_repeated(names: &[String]) -> Option<&str> {
    let mut known = BTreeSet::new();
    names.iter().map(String::as_str).find(|name| !name.is_empty() && !known.insert(*name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gate_rejects_what_is_not_a_span() {
        for seconds in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -1e-3, 1e12] {
            assert!(SimSpan::from_secs_f64(seconds).is_err(), "{seconds}");
        }
        assert_eq!(SimSpan::from_secs_f64(1.5).unwrap().as_nanos(), 1_500_000_000);
        assert_eq!(SimSpan::from_secs_f64(0.0).unwrap(), SimSpan::ZERO);
    }

    #[test]
    fn rounding_is_to_the_nearest_and_halves_to_even() {
        let mut x: f64 = 0.24;
        while x < 1e20 {
            for x in [x, x.floor(), x.floor() + 0.5, x.floor() + 1.5, x.next_up(), x.next_down()] {
                assert_eq!(rounded(x), libm::rint(x) as u64, "{x}");
            }
            x *= 1.0021;
        }
        assert_eq!([-0.0, -3.7, f64::NAN, f64::INFINITY].map(rounded), [0, 0, 0, u64::MAX]);
    }

    #[test]
    fn time_saturates_instead_of_wrapping() {
        assert_eq!(SimTime::MAX + SimSpan::from_nanos(1), SimTime::MAX);
        assert_eq!(SimTime::ZERO.since(SimTime::from_nanos(5)), SimSpan::ZERO);
    }

    #[test]
    fn a_number_in_a_message_is_never_a_row_of_digits() {
        for (value, text) in [
            (0.0, "0"),
            (1.5, "1.5"),
            (-1e7, "-10000000"),
            (1e308, "1e308"),
            (5e-324, "5e-324"),
            (f64::NAN, "NaN"),
            (f64::NEG_INFINITY, "-inf"),
        ] {
            assert_eq!(plain(value), text);
        }
    }
}
