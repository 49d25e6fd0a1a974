//! A request inside a replica: one explicit state machine, kept in a pool whose slots are reused.

use super::observer::Finished;
use crate::units::{Blocks, SimTime, Tokens};
use crate::workload::Request;

/// Index of a sequence in its replica's [`Pool`].
pub(super) type Slot = u32;
/// No slot.
pub(super) const NIL: Slot = Slot::MAX;

/// Where a sequence is in its life.
///
/// ```text
/// Waiting -> Prefilling -> Decoding -> Finishing -> (slot freed)
///    ^____________|____________|   preemption
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// In the queue, without blocks.
    Waiting,
    /// Admitted; some of its known tokens are not computed yet, or the last of them are in the step
    /// that was composed last.
    Prefilling,
    /// One token per step.
    Decoding,
    /// Its last token is in a step already composed.
    Finishing,
    /// As `Finishing`, but preempted: it has lost its slot and blocks and only awaits its last token.
    FinishingEvicted,
}

/// A request and how far it has come.
///
/// While it decodes nothing here changes: at step s it has `known + (s - entry_step)` tokens of KV,
/// so that a step costs the same for 1 and for 1,000 sequences.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sequence {
    pub request: Request,
    pub state: State,
    /// Its previous token was not out at the end of the previous step, so `last_token` holds when.
    pub late: bool,
    pub priority: i32,
    /// Order of arrival at this replica.
    pub arrival: u64,
    /// Order of admission to the running list.
    pub admission: u64,
    /// Output tokens sampled before the current prefill (more than 0 after a preemption).
    pub generated: Tokens,
    /// Tokens that the current prefill computes: prompt and `generated`.
    pub known: Tokens,
    /// Of these, how many the steps composed so far compute.
    pub computed: Tokens,
    /// Blocks it holds whatever its length.
    pub fixed_blocks: Blocks,
    /// The step whose end samples the first token after the current prefill.
    pub entry_step: u64,
    /// The step that samples its last token.
    pub completes_at: u64,
    pub scheduled: SimTime,
    pub first_token: SimTime,
    pub last_token: SimTime,
    pub preemptions: u32,
    /// Neighbours on the running list.
    pub previous: Slot,
    pub next: Slot,
}

impl Sequence {
    /// What it was, with its last token out at `done`.
    pub const fn life(&self, done: SimTime) -> Finished {
        Finished {
            request: self.request,
            scheduled: self.scheduled,
            first_token: self.first_token,
            done,
            preemptions: self.preemptions,
        }
    }

    /// A request that has just reached the replica.
    pub fn new(request: Request, priority: i32, arrival: u64, fixed_blocks: Blocks) -> Self {
        Self {
            request,
            state: State::Waiting,
            late: false,
            priority,
            arrival,
            admission: 0,
            generated: 0,
            known: request.input_tokens,
            computed: 0,
            fixed_blocks,
            entry_step: 0,
            completes_at: 0,
            scheduled: SimTime::MAX,
            first_token: SimTime::MAX,
            last_token: SimTime::MAX,
            preemptions: 0,
            previous: NIL,
            next: NIL,
        }
    }

    /// KV tokens of a decoding (or finishing) sequence once `step` is computed.
    pub fn context_at(&self, step: u64) -> Tokens {
        self.known + (step - self.entry_step) as Tokens
    }

    /// Tokens of KV that it will have at its longest: the last token sampled has none.
    pub fn final_context(&self) -> Tokens {
        final_context(&self.request)
    }
}

/// Tokens of KV that `request` has at its longest: prompt + output - 1.
pub(super) fn final_context(request: &Request) -> Tokens {
    request.input_tokens + request.output_tokens.saturating_sub(1)
}

/// Sequences in slots that are reused, so that memory follows what is in flight and not what has passed.
#[derive(Clone, Debug, Default)]
pub(super) struct Pool {
    slots: Vec<Sequence>,
    free: Vec<Slot>,
}

impl Pool {
    pub fn insert(&mut self, sequence: Sequence) -> Slot {
        if let Some(slot) = self.free.pop() {
            self.slots[slot as usize] = sequence;
            return slot;
        }
        self.slots.push(sequence);
        (self.slots.len() - 1) as Slot
    }

    pub fn remove(&mut self, slot: Slot) {
        self.free.push(slot);
    }

    pub fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }
}

impl std::ops::Index<Slot> for Pool {
    type Output = Sequence;
    #[inline]
    fn index(&self, slot: Slot) -> &Sequence {
        &self.slots[slot as usize]
    }
}

impl std::ops::IndexMut<Slot> for Pool {
    #[inline]
    fn index_mut(&mut self, slot: Slot) -> &mut Sequence {
        &mut self.slots[slot as usize]
    }
}

/// The running list: in order of admission, threaded through the pool so that any member leaves at once.
#[derive(Clone, Copy, Debug)]
pub(super) struct RunningList {
    pub head: Slot,
    pub tail: Slot,
    pub len: u32,
}

impl RunningList {
    pub const fn new() -> Self {
        Self { head: NIL, tail: NIL, len: 0 }
    }

    pub fn push_back(&mut self, pool: &mut Pool, slot: Slot) {
        pool[slot].previous = self.tail;
        pool[slot].next = NIL;
        if self.tail == NIL {
            self.head = slot;
        } else {
            pool[self.tail].next = slot;
        }
        self.tail = slot;
        self.len += 1;
    }

    pub fn unlink(&mut self, pool: &mut Pool, slot: Slot) {
        let (previous, next) = (pool[slot].previous, pool[slot].next);
        if previous == NIL {
            self.head = next;
        } else {
            pool[previous].next = next;
        }
        if next == NIL {
            self.tail = previous;
        } else {
            pool[next].previous = previous;
        }
        self.len -= 1;
    }
}
