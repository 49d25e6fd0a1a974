//! A run cut into time slices of equal length, few whatever the run's length: when they run out,
//! neighbours merge in pairs and the slices become twice as long.

use crate::units::SimTime;

/// What a slice holds.
pub(super) trait Slice: Default {
    /// Takes in the slice that follows in time.
    fn absorb(&mut self, later: Self);
}

/// At most `limit` slices from time 0 on; at least half as many once the run is long enough.
#[derive(Clone, Debug)]
pub(super) struct Slices<T> {
    slices: Vec<T>,
    limit: usize,
    len_ns: u64,
    /// Where the last slice ends.
    end_ns: u64,
}

/// The first slices last 2^24 ns (17 ms); only longer runs have coarser ones.
const FIRST_LEN_NS: u64 = 1 << 24;

impl<T: Slice> Slices<T> {
    pub fn new(limit: usize) -> Self {
        debug_assert!(limit.is_power_of_two());
        Self { slices: vec![T::default()], limit, len_ns: FIRST_LEN_NS, end_ns: FIRST_LEN_NS }
    }

    /// The slice in which `time` falls. Times may go back to slices that exist.
    #[inline]
    pub fn at(&mut self, time: SimTime) -> &mut T {
        let nanos = time.as_nanos();
        if nanos >= self.end_ns {
            self.extend_to(nanos);
        }
        let last = self.slices.len() - 1;
        if nanos >= self.end_ns - self.len_ns {
            return &mut self.slices[last];
        }
        &mut self.slices[(nanos / self.len_ns) as usize]
    }

    /// The slice that holds `start`, `end` and all between, if it is the last one.
    #[inline]
    pub fn whole(&mut self, start: SimTime, end: SimTime) -> Option<&mut T> {
        let inside = start.as_nanos() >= self.end_ns - self.len_ns && end.as_nanos() < self.end_ns;
        if inside { self.slices.last_mut() } else { None }
    }

    /// Calls `add` for every slice that `start..end` touches, with the nanoseconds it shares with it.
    #[inline]
    pub fn spread(&mut self, start: SimTime, end: SimTime, mut add: impl FnMut(&mut T, u64)) {
        let (from, to) = (start.as_nanos(), end.as_nanos());
        if from >= self.end_ns - self.len_ns && to <= self.end_ns {
            let last = self.slices.len() - 1;
            add(&mut self.slices[last], to.saturating_sub(from));
            return;
        }
        self.spread_over_many(start, end, &mut add);
    }

    #[cold]
    fn spread_over_many(&mut self, start: SimTime, end: SimTime, add: &mut dyn FnMut(&mut T, u64)) {
        let (mut from, to) = (start.as_nanos(), end.as_nanos());
        // Extend first: it may change the length of the slices.
        self.at(end);
        while from < to {
            let until = to.min((from / self.len_ns + 1).saturating_mul(self.len_ns));
            add(self.at(SimTime::from_nanos(from)), until - from);
            from = until;
        }
    }

    #[cold]
    fn extend_to(&mut self, nanos: u64) {
        while nanos / self.len_ns >= self.limit as u64 {
            self.halve();
        }
        let count = (nanos / self.len_ns) as usize + 1;
        self.slices.resize_with(count, T::default);
        // The last slice before the end of the clock is a nanosecond short.
        self.end_ns = (count as u64).saturating_mul(self.len_ns);
    }

    fn halve(&mut self) {
        let mut merged = Vec::with_capacity(self.limit);
        let mut slices = self.slices.drain(..);
        while let Some(mut first) = slices.next() {
            if let Some(second) = slices.next() {
                first.absorb(second);
            }
            merged.push(first);
        }
        drop(slices);
        self.slices = merged;
        self.len_ns *= 2;
    }

    /// Length of a slice, nanoseconds.
    pub fn len_ns(&self) -> u64 {
        self.len_ns
    }

    pub fn all(&self) -> &[T] {
        &self.slices
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default, Clone, Debug, PartialEq)]
    struct Sum(u64);
    impl Slice for Sum {
        fn absorb(&mut self, later: Self) {
            self.0 += later.0;
        }
    }

    #[test]
    fn nothing_is_lost_when_slices_merge() {
        let mut slices: Slices<Sum> = Slices::new(64);
        let mut total = 0;
        let mut start = 0;
        for i in 0..5_000_u64 {
            let end = start + i * i * 1_000;
            slices.spread(SimTime::from_nanos(start), SimTime::from_nanos(end), |sum, nanos| sum.0 += nanos);
            total += end - start;
            start = end;
        }
        assert_eq!(slices.all().iter().map(|s| s.0).sum::<u64>(), total);
        assert!((33..=64).contains(&slices.all().len()), "{}", slices.all().len());
        for full in &slices.all()[..slices.all().len() - 1] {
            assert_eq!(full.0, slices.len_ns());
        }
    }
}
