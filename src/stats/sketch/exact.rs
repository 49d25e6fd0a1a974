//! The values themselves, as (value, count).

use std::borrow::Cow;

/// A multiset of values.
#[derive(Clone, Debug)]
pub(super) struct Exact {
    entries: Vec<(u64, u64)>,
    /// Values strictly increase from entry to entry.
    sorted: bool,
}

impl Default for Exact {
    fn default() -> Self {
        Self { entries: Vec::new(), sorted: true }
    }
}

impl Exact {
    /// Adds `n` times `value`; runs of equal values (a cohort's gaps between tokens) share an entry.
    #[inline]
    pub(super) fn add(&mut self, value: u64, n: u64) {
        match self.entries.last_mut() {
            Some((last, times)) if *last == value => *times += n,
            Some((last, _)) if *last > value => {
                self.sorted = false;
                self.entries.push((value, n));
            }
            _ => self.entries.push((value, n)),
        }
    }

    pub(super) fn extend(&mut self, other: &Self) {
        self.sorted = self.entries.is_empty() && other.sorted;
        self.entries.extend_from_slice(&other.entries);
    }

    /// Number of entries, not of values.
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Entries (value, count) in any order; a value may occur in several.
    pub(super) fn entries(&self) -> impl Iterator<Item = (u64, u64)> {
        self.entries.iter().copied()
    }

    /// True only if there are more than `limit` different values; may be false even so. Costs less than
    /// to sort: values are counted by a hash of 13 bits, and those that share one count once.
    pub(super) fn has_more_distinct_than(&self, limit: usize) -> bool {
        const WORDS: usize = 128;
        let mut seen = [0_u64; WORDS];
        for &(value, _) in &self.entries {
            let hash = value.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 51;
            seen[hash as usize % WORDS] |= 1 << (hash / WORDS as u64);
        }
        seen.iter().map(|word| word.count_ones() as usize).sum::<usize>() > limit
    }

    /// Sorts and gives each value one entry.
    pub(super) fn compact(&mut self) {
        if !self.sorted {
            sort_and_join(&mut self.entries);
            self.sorted = true;
        }
    }

    /// Entries in increasing order, one a value.
    pub(super) fn sorted(&self) -> Cow<'_, [(u64, u64)]> {
        if self.sorted {
            return Cow::Borrowed(&self.entries);
        }
        let mut entries = self.entries.clone();
        sort_and_join(&mut entries);
        Cow::Owned(entries)
    }
}

fn sort_and_join(entries: &mut Vec<(u64, u64)>) {
    entries.sort_unstable();
    entries.dedup_by(|next, kept| {
        let equal = next.0 == kept.0;
        if equal {
            kept.1 += next.1;
        }
        equal
    });
}
