//! A distribution of latencies that is exact while small and stays small when it grows.
//!
//! Values are whole nanoseconds. Up to [`EXACT_ENTRIES`] they are kept, so a short run reports the
//! quantiles a spreadsheet would. Beyond, they are counted in log-linear buckets whose midpoint is at
//! most 1/1024 (0.098 %) off. Count, sum, variance, minimum and maximum are exact in either form, and
//! being integers they do not depend on the order of recording or merging.

mod exact;
mod histogram;

use exact::Exact;
use histogram::Histogram;

use super::lerp;

/// Up to this many values a sketch is always exact, and beyond it as long as no more than half as many
/// are distinct.
pub const EXACT_ENTRIES: usize = 1_024;

/// The same limit for [`Sketch::merged`]: a summary over 64 segments of 1,024 values is still exact.
pub const MERGED_EXACT_ENTRIES: usize = 1_000_000;

/// Counts, moments and quantiles of `u64` nanosecond values.
///
/// ```
/// use knee::stats::Sketch;
/// let mut ttft = Sketch::default();
/// for nanos in [10, 20, 30, 40] {
///     ttft.record(nanos);
/// }
/// assert_eq!(ttft.mean(), Some(25.0));
/// assert_eq!(ttft.quantile(0.5), Some(25.0));
/// assert_eq!(Sketch::default().quantile(0.5), None);
/// ```
#[derive(Clone, Debug)]
pub struct Sketch {
    count: u64,
    sum: u128,
    /// Sum of squares modulo 2^128: enough, because the sum of squared deviations is recovered from it
    /// by exact modular arithmetic.
    squares: u128,
    min: u64,
    max: u64,
    exact_entries: usize,
    form: Form,
}

#[derive(Clone, Debug)]
enum Form {
    Exact(Exact),
    Histogram(Histogram),
}

impl Default for Sketch {
    /// Empty, exact up to [`EXACT_ENTRIES`].
    fn default() -> Self {
        Self::with_exact_entries(EXACT_ENTRIES)
    }
}

impl Sketch {
    /// Empty, exact up to [`EXACT_ENTRIES`].
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn with_exact_entries(exact_entries: usize) -> Self {
        Self {
            count: 0,
            sum: 0,
            squares: 0,
            min: u64::MAX,
            max: 0,
            exact_entries,
            form: Form::Exact(Exact::default()),
        }
    }

    /// The union of `parts`, for reading: exact if all are and hold at most [`MERGED_EXACT_ENTRIES`]
    /// values (or half as many distinct ones). Quantiles of it need no further sorting.
    #[must_use]
    pub fn merged<'a>(parts: impl IntoIterator<Item = &'a Self>) -> Self {
        let mut union = Self::with_exact_entries(MERGED_EXACT_ENTRIES);
        for part in parts {
            union.merge(part);
        }
        union.compact();
        union
    }

    /// Adds one value, in nanoseconds.
    #[inline]
    pub fn record(&mut self, nanos: u64) {
        let value = u128::from(nanos);
        self.add(nanos, 1, value, value * value);
    }

    /// Adds `n` equal values, in nanoseconds, at the cost of one.
    #[inline]
    pub fn record_n(&mut self, nanos: u64, n: u64) {
        if n == 0 {
            return;
        }
        let (value, times) = (u128::from(nanos), u128::from(n));
        self.add(nanos, n, value * times, (value * value).wrapping_mul(times));
    }

    /// Adds `nanos` `n` times; `sum` and `squares` are what that adds up to.
    #[inline(always)]
    fn add(&mut self, nanos: u64, n: u64, sum: u128, squares: u128) {
        self.count += n;
        self.sum += sum;
        self.squares = self.squares.wrapping_add(squares);
        self.min = self.min.min(nanos);
        self.max = self.max.max(nanos);
        match &mut self.form {
            Form::Histogram(histogram) => histogram.add(nanos, n),
            Form::Exact(exact) => {
                exact.add(nanos, n);
                if exact.len() > self.exact_entries {
                    self.make_room();
                }
            }
        }
    }

    /// Adds each of `values`, in nanoseconds, `n` times.
    #[inline]
    pub fn record_each_n(&mut self, values: impl Iterator<Item = u64>, n: u64) {
        let Form::Histogram(histogram) = &mut self.form else {
            values.for_each(|nanos| self.record_n(nanos, n));
            return;
        };
        let (mut count, mut sum, mut squares) = (0_u64, 0_u128, 0_u128);
        for nanos in values {
            let value = u128::from(nanos);
            count += 1;
            sum += value;
            squares = squares.wrapping_add(value * value);
            self.min = self.min.min(nanos);
            self.max = self.max.max(nanos);
            histogram.add(nanos, n);
        }
        let times = u128::from(n);
        self.count += count * n;
        self.sum += sum * times;
        self.squares = self.squares.wrapping_add(squares.wrapping_mul(times));
    }

    /// Adds everything `other` holds. Exact if both are and this sketch's limit allows.
    pub fn merge(&mut self, other: &Self) {
        self.count += other.count;
        self.sum += other.sum;
        self.squares = self.squares.wrapping_add(other.squares);
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        if matches!(other.form, Form::Histogram(_)) {
            self.coarsen();
        }
        match (&mut self.form, &other.form) {
            (Form::Histogram(mine), Form::Histogram(theirs)) => mine.merge(theirs),
            (Form::Histogram(mine), Form::Exact(theirs)) => {
                theirs.entries().for_each(|(v, n)| mine.add(v, n))
            }
            (Form::Exact(mine), Form::Exact(theirs)) => {
                mine.extend(theirs);
                if mine.len() > self.exact_entries {
                    self.make_room();
                }
            }
            (Form::Exact(_), Form::Histogram(_)) => unreachable!("coarsened above"),
        }
    }

    /// Joins equal values; gives up exactness unless that frees half of the room, so that each sort is
    /// paid for by as many records as it sorts.
    #[cold]
    fn make_room(&mut self) {
        if let Form::Exact(exact) = &mut self.form {
            let kept = self.exact_entries / 2;
            if exact.has_more_distinct_than(kept) {
                self.coarsen();
                return;
            }
            exact.compact();
            if exact.len() > kept {
                self.coarsen();
            }
        }
    }

    fn coarsen(&mut self) {
        if let Form::Exact(exact) = &self.form {
            let mut histogram = Histogram::default();
            exact.entries().for_each(|(v, n)| histogram.add(v, n));
            self.form = Form::Histogram(histogram);
        }
    }

    /// Sorts kept values, so that any number of later reads need not.
    pub fn compact(&mut self) {
        if let Form::Exact(exact) = &mut self.form {
            exact.compact();
        }
    }

    /// Whether quantiles are exact rather than within 0.1 %.
    #[must_use]
    pub fn is_exact(&self) -> bool {
        matches!(self.form, Form::Exact(_))
    }

    /// How many values were recorded.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Their sum in nanoseconds.
    #[must_use]
    pub fn sum(&self) -> u128 {
        self.sum
    }

    /// The smallest value, nanoseconds.
    #[must_use]
    pub fn min(&self) -> Option<u64> {
        (self.count > 0).then_some(self.min)
    }

    /// The largest value, nanoseconds.
    #[must_use]
    pub fn max(&self) -> Option<u64> {
        (self.count > 0).then_some(self.max)
    }

    /// The mean, nanoseconds.
    #[must_use]
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum as f64 / self.count as f64)
    }

    /// The standard deviation of the values themselves (divisor n, as `numpy.std` and load generators
    /// print it), nanoseconds. Exact before the last rounding while n times the variance is below
    /// 2^128 ns^2 (a billion values that scatter by a week).
    #[must_use]
    pub fn std(&self) -> Option<f64> {
        if self.count == 0 {
            return None;
        }
        // With sum = mean n + rest (whole numbers), the sum of (x - mean)^2 is
        // squares - mean (sum + rest): both terms may wrap, their difference does not.
        let n = u128::from(self.count);
        let (mean, rest) = (self.sum / n, self.sum % n);
        let about_mean = self.squares.wrapping_sub(mean.wrapping_mul(self.sum.wrapping_add(rest)));
        let (n, rest) = (self.count as f64, rest as f64);
        Some(libm::sqrt(((about_mean as f64 - rest * rest / n) / n).max(0.0)))
    }

    /// The `q`-quantile, nanoseconds: linear interpolation at rank q (n - 1) of the sorted values
    /// (numpy's default, type 7 of Hyndman and Fan 1996). Within 0.1 % of that where
    /// [`Sketch::is_exact`] is false, and never outside [min, max].
    ///
    /// `None` without values or if `q` is not in [0, 1]. Sorts unless [compacted](Sketch::compact).
    #[must_use]
    pub fn quantile(&self, q: f64) -> Option<f64> {
        if self.count == 0 || !(0.0..=1.0).contains(&q) {
            return None;
        }
        let last = self.count - 1;
        let position = q * last as f64;
        let rank = (position as u64).min(last);
        let (low, high) = match &self.form {
            Form::Exact(exact) => neighbours(exact.sorted().iter().map(|&(v, n)| (v as f64, n)), rank),
            Form::Histogram(histogram) => neighbours(histogram.midpoints(), rank),
        };
        let (min, max) = (self.min as f64, self.max as f64);
        let low = if rank == 0 { min } else { low.clamp(min, max) };
        let high = if rank + 1 >= last { max } else { high.clamp(min, max) };
        Some(if rank == last { max } else { lerp(low, high, position - rank as f64) })
    }

    /// How many values are at most `nanos`. Where [`Sketch::is_exact`] is false a bucket counts whole,
    /// by its midpoint, so values within 0.1 % of `nanos` may fall on the wrong side.
    #[must_use]
    pub fn count_at_most(&self, nanos: u64) -> u64 {
        if self.count == 0 || nanos < self.min {
            return 0;
        }
        if nanos >= self.max {
            return self.count;
        }
        match &self.form {
            Form::Exact(exact) => exact.entries().filter(|&(v, _)| v <= nanos).map(|(_, n)| n).sum(),
            Form::Histogram(histogram) => {
                histogram.midpoints().take_while(|&(v, _)| v <= nanos as f64).map(|(_, n)| n).sum()
            }
        }
    }
}

/// The values at 0-based `rank` and the next in an ascending run of (value, count) that holds `rank`.
fn neighbours(ascending: impl Iterator<Item = (f64, u64)>, rank: u64) -> (f64, f64) {
    let mut below = 0;
    let mut low = None;
    let mut last = f64::NAN;
    for (value, n) in ascending {
        below += n;
        last = value;
        if below > rank {
            let low = *low.get_or_insert(value);
            if below > rank + 1 {
                return (low, value);
            }
        }
    }
    (low.unwrap_or(last), last)
}

#[cfg(test)]
mod tests;
