//! Queues and clock of a discrete-event simulation; knows nothing of language models.
//!
//! [`EventQueue`] holds any number of events of one kind, [`Least`] one time (or other key) for each of a
//! fixed number of things. What happens first when events of different kinds fall on the same nanosecond
//! is for their owner to say.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::units::SimTime;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    time: SimTime,
    /// Insertion number: ties are first in, first out.
    sequence: u64,
}

/// A priority queue of small events, earliest first; of one instant the one scheduled first.
#[derive(Clone, Debug)]
pub struct EventQueue<E> {
    heap: BinaryHeap<Reverse<Entry<E>>>,
    scheduled: u64,
    now: SimTime,
}

#[derive(Clone, Copy, Debug)]
struct Entry<E> {
    key: Key,
    event: E,
}

impl<E> PartialEq for Entry<E> {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}
impl<E> Eq for Entry<E> {}
impl<E> PartialOrd for Entry<E> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl<E> Ord for Entry<E> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key.cmp(&other.key)
    }
}

impl<E: Copy> Default for EventQueue<E> {
    fn default() -> Self {
        Self::new()
    }
}

impl<E: Copy> EventQueue<E> {
    /// An empty queue at time zero.
    #[must_use]
    pub fn new() -> Self {
        Self { heap: BinaryHeap::new(), scheduled: 0, now: SimTime::ZERO }
    }

    /// Schedules `event`.
    ///
    /// # Panics
    /// If `time` is before the last event taken: scheduling into the past is a bug of the caller.
    pub fn push(&mut self, time: SimTime, event: E) {
        assert!(time >= self.now, "event scheduled into the past: {time:?} < {:?}", self.now);
        let key = Key { time, sequence: self.scheduled };
        self.scheduled += 1;
        self.heap.push(Reverse(Entry { key, event }));
    }

    /// Time of the earliest event.
    #[must_use]
    pub fn peek(&self) -> Option<SimTime> {
        self.heap.peek().map(|Reverse(entry)| entry.key.time)
    }

    /// Takes the earliest event and moves the clock to it.
    pub fn pop(&mut self) -> Option<(SimTime, E)> {
        let Reverse(entry) = self.heap.pop()?;
        self.now = entry.key.time;
        Some((entry.key.time, entry.event))
    }
}

/// One key for each of a fixed number of things: the least is found at once and any changed in log time.
/// Of equal keys the one with the lower index wins.
///
/// It is a tournament: things are the leaves of a binary tree, and each node above holds the winner of
/// its two children.
#[derive(Clone, Debug)]
pub struct Least<K> {
    /// Node 1 is the root; node n has children 2n and 2n + 1; leaves start at `leaves`.
    nodes: Vec<(K, u32)>,
    leaves: usize,
}

impl<K: Copy + Ord> Least<K> {
    /// `count` things (at least one) that all have `key`; `never` is greater than any key they will have.
    #[must_use]
    pub fn new(count: u32, key: K, never: K) -> Self {
        let leaves = (count.max(1) as usize).next_power_of_two();
        let mut nodes = vec![(never, 0); 2 * leaves];
        for (index, leaf) in (0..).zip(&mut nodes[leaves..]) {
            *leaf = (if index < count { key } else { never }, index);
        }
        let mut least = Self { nodes, leaves };
        for node in (1..leaves).rev() {
            least.play(node);
        }
        least
    }

    #[inline]
    fn play(&mut self, node: usize) {
        let (a, b) = (self.nodes[2 * node], self.nodes[2 * node + 1]);
        self.nodes[node] = if b.0 < a.0 { b } else { a };
    }

    /// The least key and whose it is.
    #[must_use]
    #[inline]
    pub fn least(&self) -> (K, u32) {
        self.nodes[1]
    }

    /// The least key of the others; `None` if there is only one thing.
    #[must_use]
    #[inline]
    pub fn runner_up(&self) -> Option<K> {
        let mut node = self.leaves + self.nodes[1].1 as usize;
        let mut best = None;
        while node > 1 {
            let (rival, _) = self.nodes[node ^ 1];
            best = Some(best.map_or(rival, |best: K| best.min(rival)));
            node /= 2;
        }
        best
    }

    /// The key of `index`.
    #[must_use]
    #[inline]
    pub fn key(&self, index: u32) -> K {
        self.nodes[self.leaves + index as usize].0
    }

    /// Changes the key of `index`.
    #[inline]
    pub fn set(&mut self, index: u32, key: K) {
        let mut node = self.leaves + index as usize;
        self.nodes[node].0 = key;
        node /= 2;
        while node > 0 {
            let before = self.nodes[node];
            self.play(node);
            // Above, nothing changes if another won here before and still wins.
            if before.1 != index && self.nodes[node].1 != index {
                return;
            }
            node /= 2;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ties_are_first_in_first_out() {
        let mut queue = EventQueue::new();
        let t = SimTime::from_nanos(5);
        queue.push(t, 'b');
        queue.push(t, 'c');
        queue.push(SimTime::from_nanos(1), 'a');
        assert_eq!(queue.peek(), Some(SimTime::from_nanos(1)));
        let order: String = std::iter::from_fn(|| queue.pop()).map(|(_, event)| event).collect();
        assert_eq!(order, "abc");
    }

    #[test]
    #[should_panic(expected = "into the past")]
    fn the_past_is_closed() {
        let mut queue = EventQueue::new();
        queue.push(SimTime::from_nanos(5), ());
        queue.pop();
        queue.push(SimTime::from_nanos(4), ());
    }

    #[test]
    fn the_tournament_finds_the_least_and_breaks_ties_by_index() {
        for count in [1, 2, 3, 5, 8, 13] {
            let mut least = Least::new(count, 3, u64::MAX);
            let mut state: u64 = 7;
            for turn in 0..2000 {
                let expected = (0..count).min_by_key(|&index| least.key(index)).unwrap();
                assert_eq!(least.least(), (least.key(expected), expected), "{count}, turn {turn}");
                let others = (0..count).filter(|&index| index != expected).map(|index| least.key(index));
                assert_eq!(least.runner_up().filter(|_| count > 1), others.min(), "{count}, turn {turn}");
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                least.set((state >> 33) as u32 % count, (state >> 50) % 7);
            }
        }
    }
}
