//! Which rank a request goes to: see [`RankPolicy`].

use std::cmp::Reverse;

use super::Rank;
use crate::engine::config::{DataParallel, RankPolicy};
use crate::units::SimTime;
use crate::workload::Request;

/// vLLM's coordinator tells front ends at this interval how many requests each rank has
/// (`stats_update_interval_ms` in vllm/v1/engine/coordinator.py).
const PUBLISHED_EVERY_NS: u64 = 100_000_000;

/// What vLLM's front end knows of a rank.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    waiting: u32,
    running: u32,
}

/// The balancer inside the server.
#[derive(Clone, Debug)]
pub(super) struct Balancer {
    policy: RankPolicy,
    ranks: usize,
    /// Round robin: whose turn it is.
    next: usize,
    /// As published last, and which publication that was; those chosen since are among the waiting.
    counts: Vec<Counts>,
    publication: u64,
    /// Of a server that distributes when it composes: what has come since, and room to sort.
    queue: Vec<Request>,
    batch: Vec<Request>,
}

impl Balancer {
    pub fn new(parallel: DataParallel) -> Self {
        let ranks = parallel.ranks as usize;
        Self {
            policy: parallel.policy,
            ranks,
            next: 0,
            counts: vec![Counts::default(); ranks],
            publication: 0,
            queue: Vec::new(),
            batch: Vec::new(),
        }
    }

    /// Requests that are on no rank yet.
    pub fn queue_len(&self) -> u32 {
        self.queue.len() as u32
    }

    /// Called before anything changes at `now`: what was published since the last change is what is there now.
    pub fn pass(&mut self, now: SimTime, ranks: &[Rank<'_>]) {
        if self.policy != RankPolicy::WaitingAndRunning {
            return;
        }
        let publication = now.as_nanos() / PUBLISHED_EVERY_NS;
        if publication == self.publication {
            return;
        }
        self.publication = publication;
        for (counts, rank) in self.counts.iter_mut().zip(ranks) {
            *counts = Counts { waiting: rank.batcher.waiting_len(), running: rank.batcher.running.len };
        }
    }

    /// The rank of a request that arrives; `None` keeps it here until the next composition.
    pub fn pick(&mut self, request: &Request) -> Option<usize> {
        match self.policy {
            RankPolicy::RoundRobin => {
                let pick = self.next;
                self.next = (self.next + 1) % self.ranks;
                Some(pick)
            }
            RankPolicy::WaitingAndRunning => {
                let score = |counts: &Counts| 4 * u64::from(counts.waiting) + u64::from(counts.running);
                let pick = (0..self.ranks).min_by_key(|&rank| score(&self.counts[rank]))?;
                self.counts[pick].waiting += 1;
                Some(pick)
            }
            RankPolicy::PromptTokens => {
                self.queue.push(*request);
                None
            }
        }
    }

    /// Before a composition: hands the queue to the ranks, as far as they have seats.
    pub fn distribute(&mut self, ranks: &mut [Rank<'_>], max_num_seqs: u32) {
        if self.queue.is_empty() {
            return;
        }
        let held = |rank: &Rank<'_>| rank.batcher.pool.len();
        let there: usize = ranks.iter().map(held).sum();
        let seats = (ranks.len() * max_num_seqs as usize).saturating_sub(there);
        let new = self.queue.len().min(seats);
        self.batch.clear();
        self.batch.extend(self.queue.drain(..new));
        // Of equals the first that was sent.
        self.batch.sort_unstable_by_key(|request| (Reverse(request.input_tokens), request.index));
        let share = (there + new).div_ceil(ranks.len());
        let most = ranks.iter().map(held).max().unwrap_or(0).max(share);
        for request in &self.batch {
            let open = ranks.iter_mut().filter(|rank| held(rank) < most);
            if let Some(rank) = open.min_by_key(|rank| (rank.prompt_tokens, held(rank))) {
                rank.enqueue(*request);
            }
        }
    }
}
