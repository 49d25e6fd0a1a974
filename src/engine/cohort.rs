//! The sequences that decode: one token each per step, so they only grow older together.
//!
//! Nothing is stored per sequence and step. Contexts are one sum that grows by the head count; block
//! boundaries are counts by residue (a sequence needs a block every `block_size` steps, always at the
//! same residue of the step number); completions wait in a wheel under the step that brings them.

use super::sequence::{NIL, Pool, Sequence, Slot};
use crate::units::Tokens;

/// Slots filed under the step at which something happens to them. A slot further ahead than the wheel
/// is long is met on an earlier turn and left where it is.
#[derive(Clone, Debug)]
struct Wheel {
    heads: Vec<Slot>,
    links: Vec<Link>,
}

#[derive(Clone, Copy, Debug)]
struct Link {
    previous: Slot,
    next: Slot,
    step: u64,
}

const WHEEL_LEN: usize = 1024;

impl Wheel {
    fn new() -> Self {
        Self { heads: vec![NIL; WHEEL_LEN], links: Vec::new() }
    }

    fn bucket(step: u64) -> usize {
        (step as usize) & (WHEEL_LEN - 1)
    }

    fn insert(&mut self, slot: Slot, step: u64) {
        let index = slot as usize;
        if index >= self.links.len() {
            self.links.resize(index + 1, Link { previous: NIL, next: NIL, step: 0 });
        }
        let head = self.heads[Self::bucket(step)];
        self.links[index] = Link { previous: NIL, next: head, step };
        if head != NIL {
            self.links[head as usize].previous = slot;
        }
        self.heads[Self::bucket(step)] = slot;
    }

    fn remove(&mut self, slot: Slot) {
        let Link { previous, next, step } = self.links[slot as usize];
        if previous == NIL {
            self.heads[Self::bucket(step)] = next;
        } else {
            self.links[previous as usize].next = next;
        }
        if next != NIL {
            self.links[next as usize].previous = previous;
        }
    }

    /// Takes out the slots filed under `step`, in no particular order.
    #[inline]
    fn take(&mut self, step: u64, mut with: impl FnMut(Slot)) {
        let mut slot = self.heads[Self::bucket(step)];
        while slot != NIL {
            let link = self.links[slot as usize];
            if link.step == step {
                self.remove(slot);
                with(slot);
            }
            slot = link.next;
        }
    }
}

/// Contexts under a sliding window: those still below it as a sum that ages, the rest as a count.
#[derive(Clone, Debug)]
struct WindowSums {
    window: Tokens,
    below: u32,
    below_context: u64,
    /// Sequences by the step at which their context passes the window.
    passing: Wheel,
}

/// The decoding sequences of a replica, as sums at the step composed last.
#[derive(Clone, Debug)]
pub(super) struct Cohort {
    /// The step to which everything here has aged.
    pub step: u64,
    /// Rows of the step: sequences that decode (in a static batch also those that have finished).
    pub count: u32,
    /// Sum of their contexts once `step` is computed.
    pub context: u64,
    /// Sequences that still emit, by class.
    pub by_class: Vec<u32>,
    /// How many need a new block at steps of each residue.
    residues: Vec<u32>,
    /// `step` modulo the block size.
    residue: usize,
    completions: Wheel,
    windowed: Option<WindowSums>,
}

impl Cohort {
    pub fn new(block_size: Tokens, window: Tokens, classes: usize) -> Self {
        let windowed = (window < Tokens::MAX).then(|| WindowSums {
            window,
            below: 0,
            below_context: 0,
            passing: Wheel::new(),
        });
        Self {
            step: 0,
            count: 0,
            context: 0,
            by_class: vec![0; classes],
            residues: vec![0; block_size as usize],
            residue: 0,
            completions: Wheel::new(),
            windowed,
        }
    }

    /// Sum of the contexts, and of the contexts each cut at the window.
    #[inline]
    pub fn contexts(&self) -> (u64, u64) {
        (self.context, self.window_context())
    }

    /// Sum of the contexts, each cut at the window.
    #[inline]
    pub fn window_context(&self) -> u64 {
        match &self.windowed {
            None => self.context,
            Some(w) => w.below_context + u64::from(w.window) * u64::from(self.count - w.below),
        }
    }

    /// Everybody grows one token older; `finishing` gets those whose last token is in the step that was
    /// current so far. They stop emitting and, unless `keep_rows`, leave.
    #[inline]
    pub fn age(&mut self, pool: &Pool, keep_rows: bool, finishing: &mut Vec<Slot>) {
        self.complete(pool, keep_rows, finishing);
        self.grow_older();
    }

    /// The first half of [`Cohort::age`]: takes out those whose last token is in the current step.
    #[inline]
    pub fn complete(&mut self, pool: &Pool, keep_rows: bool, finishing: &mut Vec<Slot>) {
        let from = finishing.len();
        self.completions.take(self.step, |slot| finishing.push(slot));
        for &slot in &finishing[from..] {
            let sequence = &pool[slot];
            self.by_class[usize::from(sequence.request.class)] -= 1;
            if !keep_rows {
                self.forget_row(slot, sequence);
            }
        }
    }

    /// Whether nobody's last token is in the current step, so that [`Cohort::age`] would only
    /// [`Cohort::grow_older`]. A completion one turn of the wheel ahead may hide it.
    #[inline]
    pub fn only_grows_older(&self) -> bool {
        self.completions.heads[Wheel::bucket(self.step)] == NIL
    }

    /// In how many steps after the current one a sequence completes at the earliest, as far as `limit`.
    #[inline]
    pub fn steps_to_completion(&self, limit: u64) -> u64 {
        let filed = |ahead: &u64| self.completions.heads[Wheel::bucket(self.step + ahead)] != NIL;
        (0..limit).find(filed).unwrap_or(limit)
    }

    /// On to the next step with the same sequences.
    #[inline]
    pub fn grow_older(&mut self) {
        self.step += 1;
        self.residue = self.next_residue();
        self.context += u64::from(self.count);
        if let Some(w) = &mut self.windowed {
            w.below_context += u64::from(w.below);
            let window = u64::from(w.window);
            let (below, below_context) = (&mut w.below, &mut w.below_context);
            w.passing.take(self.step, |_| {
                *below -= 1;
                *below_context -= window + 1;
            });
        }
    }

    /// Adds a sequence whose last prefill chunk is in the current step; it decodes from the next on.
    pub fn join(&mut self, slot: Slot, sequence: &Sequence) {
        self.by_class[usize::from(sequence.request.class)] += 1;
        self.completions.insert(slot, sequence.completes_at);
        self.add_row(slot, sequence);
    }

    /// Adds only the row of a sequence that has nothing more to emit (static batches).
    pub fn add_row(&mut self, slot: Slot, sequence: &Sequence) {
        let context = sequence.context_at(self.step);
        self.count += 1;
        self.context += u64::from(context);
        let residue = self.residue_of(sequence);
        self.residues[residue] += 1;
        if let Some(w) = &mut self.windowed
            && context <= w.window
        {
            w.below += 1;
            w.below_context += u64::from(context);
            w.passing.insert(slot, self.step + u64::from(w.window - context) + 1);
        }
    }

    /// Takes out a sequence before its time.
    pub fn leave(&mut self, slot: Slot, sequence: &Sequence) {
        self.by_class[usize::from(sequence.request.class)] -= 1;
        self.completions.remove(slot);
        self.forget_row(slot, sequence);
    }

    /// Takes out only the row.
    pub fn forget_row(&mut self, slot: Slot, sequence: &Sequence) {
        let context = sequence.context_at(self.step);
        self.count -= 1;
        self.context -= u64::from(context);
        let residue = self.residue_of(sequence);
        self.residues[residue] -= 1;
        if let Some(w) = &mut self.windowed
            && context <= w.window
        {
            w.below -= 1;
            w.below_context -= u64::from(context);
            w.passing.remove(slot);
        }
    }

    /// How many sequences will need a new block for their token of the next step, if all stay.
    #[inline]
    pub fn blocks_needed_next(&self) -> u32 {
        self.residues[self.next_residue()]
    }

    #[inline]
    fn next_residue(&self) -> usize {
        if self.residue + 1 == self.residues.len() { 0 } else { self.residue + 1 }
    }

    /// How many sequences need a new block for their token of the current step.
    #[inline]
    pub fn blocks_needed(&self) -> u32 {
        self.residues[self.residue]
    }

    /// Whether this one needs one for its token of the current step.
    pub fn needs_block(&self, sequence: &Sequence) -> bool {
        self.residue_of(sequence) == self.residue
    }

    /// At step s a sequence computes token `known + (s - entry_step)`, the first of a block when the
    /// tokens before it fill whole blocks: s = entry_step + 1 - known modulo the block size.
    fn residue_of(&self, sequence: &Sequence) -> usize {
        let block = self.residues.len() as u64;
        ((sequence.entry_step + 1 + block - u64::from(sequence.known) % block) % block) as usize
    }
}
