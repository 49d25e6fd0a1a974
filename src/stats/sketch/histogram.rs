//! Counts in log-linear buckets: the leading ten bits of a value choose its bucket.
//!
//! Values below 1,024 have a bucket each. Above, every octave is cut into 512 equal buckets, so a
//! bucket is at most 1/512 of its lower end wide and its midpoint at most 1/1024 off.

/// Buckets per octave.
const OCTAVE: usize = 512;

/// Counts by bucket, stored from the lowest octave touched to the highest.
#[derive(Clone, Debug, Default)]
pub(super) struct Histogram {
    first_bucket: usize,
    counts: Vec<u64>,
}

impl Histogram {
    #[inline]
    pub(super) fn add(&mut self, value: u64, n: u64) {
        let bucket = bucket_of(value);
        match self.counts.get_mut(bucket.wrapping_sub(self.first_bucket)) {
            Some(count) => *count += n,
            None => {
                self.cover(bucket, bucket + 1);
                self.counts[bucket - self.first_bucket] += n;
            }
        }
    }

    pub(super) fn merge(&mut self, other: &Self) {
        self.cover(other.first_bucket, other.first_bucket + other.counts.len());
        let offset = other.first_bucket - self.first_bucket;
        for (mine, theirs) in self.counts[offset..].iter_mut().zip(&other.counts) {
            *mine += theirs;
        }
    }

    /// (midpoint, count) of the buckets in use, ascending.
    pub(super) fn midpoints(&self) -> impl Iterator<Item = (f64, u64)> {
        let used = self.counts.iter().enumerate().filter(|&(_, &n)| n > 0);
        used.map(|(i, &n)| (midpoint(self.first_bucket + i), n))
    }

    /// Grows storage, by whole octaves, to hold the buckets `from..to`.
    #[cold]
    fn cover(&mut self, from: usize, to: usize) {
        let from = from - from % OCTAVE;
        let to = to.next_multiple_of(OCTAVE);
        if self.counts.is_empty() {
            self.first_bucket = from;
        }
        if from < self.first_bucket {
            let missing = self.first_bucket - from;
            self.counts.splice(0..0, std::iter::repeat_n(0, missing));
            self.first_bucket = from;
        }
        if to > self.first_bucket + self.counts.len() {
            self.counts.resize(to - self.first_bucket, 0);
        }
    }
}

#[inline]
fn bucket_of(value: u64) -> usize {
    let shift = (u64::BITS - value.leading_zeros()).saturating_sub(OCTAVE.ilog2() + 1);
    shift as usize * OCTAVE + (value >> shift) as usize
}

fn midpoint(bucket: usize) -> f64 {
    let shift = (bucket / OCTAVE).saturating_sub(1);
    let low = ((bucket - shift * OCTAVE) as u64) << shift;
    low as f64 + ((1_u64 << shift) - 1) as f64 / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_contiguous_and_narrow() {
        let mut values: Vec<u64> = (0..5_000).collect();
        values.extend((10..64).flat_map(|e| [(1 << e) - 1, 1 << e, (1 << e) + (1 << (e - 1))]));
        values.push(u64::MAX);
        values.sort_unstable();
        for pair in values.windows(2) {
            let (low, high) = (bucket_of(pair[0]), bucket_of(pair[1]));
            assert!(low <= high && (pair[1] - pair[0] > 1 || high - low <= 1), "{pair:?}");
        }
        for value in values {
            let error = (midpoint(bucket_of(value)) - value as f64).abs();
            assert!(error <= value as f64 / 1024.0, "{value}: {error}");
        }
    }

    #[test]
    fn storage_covers_only_the_octaves_touched() {
        let mut histogram = Histogram::default();
        histogram.add(1 << 30, 1);
        histogram.add((1 << 30) + (1 << 29), 1);
        assert_eq!(histogram.counts.len(), OCTAVE);
        histogram.add(1 << 28, 1);
        assert_eq!(histogram.counts.len(), 3 * OCTAVE);
        assert_eq!(histogram.midpoints().map(|(_, n)| n).sum::<u64>(), 3);
    }
}
