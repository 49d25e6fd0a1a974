//! The queue of a replica: first come first served, or by priority.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use super::config::SchedulingPolicy;
use super::sequence::{Sequence, Slot};

/// Requests that have no slot yet, or have lost it.
#[derive(Clone, Debug)]
pub(super) enum WaitingQueue {
    /// Preempted sequences return to the head.
    Fcfs(VecDeque<Slot>),
    /// Smallest (priority, arrival) first, preempted or not.
    Priority(BinaryHeap<Reverse<(i32, u64, Slot)>>),
}

impl WaitingQueue {
    pub fn new(policy: SchedulingPolicy) -> Self {
        match policy {
            SchedulingPolicy::Fcfs => Self::Fcfs(VecDeque::new()),
            SchedulingPolicy::Priority => Self::Priority(BinaryHeap::new()),
        }
    }

    pub fn len(&self) -> usize {
        match self {
            Self::Fcfs(queue) => queue.len(),
            Self::Priority(heap) => heap.len(),
        }
    }

    pub fn push(&mut self, slot: Slot, sequence: &Sequence) {
        match self {
            Self::Fcfs(queue) => queue.push_back(slot),
            Self::Priority(heap) => heap.push(Reverse((sequence.priority, sequence.arrival, slot))),
        }
    }

    pub fn push_preempted(&mut self, slot: Slot, sequence: &Sequence) {
        match self {
            Self::Fcfs(queue) => queue.push_front(slot),
            Self::Priority(_) => self.push(slot, sequence),
        }
    }

    /// Takes out `slot`, wherever it stands.
    pub fn remove(&mut self, slot: Slot) {
        match self {
            Self::Fcfs(queue) => queue.retain(|other| *other != slot),
            Self::Priority(heap) => heap.retain(|Reverse((_, _, other))| *other != slot),
        }
    }

    #[inline]
    pub fn peek(&self) -> Option<Slot> {
        match self {
            Self::Fcfs(queue) => queue.front().copied(),
            Self::Priority(heap) => heap.peek().map(|Reverse((_, _, slot))| *slot),
        }
    }

    pub fn pop(&mut self) -> Option<Slot> {
        match self {
            Self::Fcfs(queue) => queue.pop_front(),
            Self::Priority(heap) => heap.pop().map(|Reverse((_, _, slot))| slot),
        }
    }
}
