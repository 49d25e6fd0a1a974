//! Event queue and clock of a discrete-event simulation; knows nothing of language models.
//!
//! Events of one instant are processed in the order of their rank, events of one rank in the order in
//! which they were scheduled. Ranks are one documented table, [`Rank`], not numbers spread over the code.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::units::SimTime;

/// What happens first when several events fall on the same nanosecond.
///
/// | rank | event | why here |
/// |---|---|---|
/// | 0 | a client sends, a request reaches a replica | who arrives at t is seen by what is decided at t |
/// | 1 | a step or a service ends | its outputs, the next start and the next composition are one event |
/// | 2 | an idle replica wakes | all arrivals of one instant are in its queue before it composes |
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rank {
    Arrival,
    End,
    Wake,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    time: SimTime,
    rank: Rank,
    /// Insertion number: ties are first in, first out.
    sequence: u64,
}

/// A priority queue of small events, earliest first.
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
    pub fn push(&mut self, time: SimTime, rank: Rank, event: E) {
        assert!(time >= self.now, "event scheduled into the past: {time:?} < {:?}", self.now);
        let key = Key { time, rank, sequence: self.scheduled };
        self.scheduled += 1;
        self.heap.push(Reverse(Entry { key, event }));
    }

    /// Time and rank of the earliest event.
    #[must_use]
    pub fn peek(&self) -> Option<(SimTime, Rank)> {
        self.heap.peek().map(|Reverse(entry)| (entry.key.time, entry.key.rank))
    }

    /// Takes the earliest event and moves the clock to it.
    pub fn pop(&mut self) -> Option<(SimTime, E)> {
        let Reverse(entry) = self.heap.pop()?;
        self.now = entry.key.time;
        Some((entry.key.time, entry.event))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ties_go_by_rank_then_first_in_first_out() {
        let mut queue = EventQueue::new();
        let t = SimTime::from_nanos(5);
        queue.push(t, Rank::Wake, 'd');
        queue.push(t, Rank::End, 'b');
        queue.push(t, Rank::End, 'c');
        queue.push(t, Rank::Arrival, 'a');
        queue.push(SimTime::from_nanos(1), Rank::Wake, '0');
        let order: String = std::iter::from_fn(|| queue.pop()).map(|(_, event)| event).collect();
        assert_eq!(order, "0abcd");
    }

    #[test]
    #[should_panic(expected = "into the past")]
    fn the_past_is_closed() {
        let mut queue = EventQueue::new();
        queue.push(SimTime::from_nanos(5), Rank::End, ());
        queue.pop();
        queue.push(SimTime::from_nanos(4), Rank::End, ());
    }
}
