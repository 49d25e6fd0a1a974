//! A replica of data-parallel ranks: several schedulers, each with a KV pool and requests of its own, whose steps
//! begin and end together.
//!
//! In a mixture of experts every layer gathers the tokens of all ranks, so no rank is ever ahead of another:
//! a step lasts as long as the slowest part of it, and a rank without work runs along with nothing (vLLM's
//! dummy batch) as long as another has some. Each rank's batcher decides as if it were alone. vLLM goes on
//! with dummy batches for up to 32 steps after the last request has left, so that a request which comes
//! then waits for one of them to end; that is not in here.
//!
//! What is told of a step is the sum over ranks.

mod balance;
mod prompt_wait;

use super::batcher::{Batcher, StepPlan};
use super::config::LlmServer;
use super::observer::{Observer, Rejection, Step};
use super::replica::Sink;
use crate::cost::{Clock, StepShape};
use crate::units::SimTime;
use crate::workload::Request;

use balance::Balancer;
use prompt_wait::PromptWait;

/// One rank: its scheduler, and its parts of the step in flight and, if pipelined, of the one composed behind
/// it, which take turns.
#[derive(Clone, Debug)]
struct Rank<'a> {
    batcher: Batcher<'a>,
    plans: [StepPlan; 2],
    /// Of requests that are not complete.
    prompt_tokens: u64,
}

/// One server with its ranks.
#[derive(Clone, Debug)]
pub(super) struct LockStep<'a> {
    id: u32,
    server: &'a LlmServer,
    ranks: Vec<Rank<'a>>,
    balancer: Balancer,
    prompt_wait: Option<PromptWait>,
    clock: Clock,
    pipelined: bool,
    /// Which of the ranks' plans is in flight.
    current: usize,
    /// The parts of the step in flight, and their sum.
    parts: Vec<StepShape>,
    all: StepShape,
    steady_decodes: Vec<u32>,
    /// Start and end of the step in flight; `end` is `MAX` while the server is idle.
    start: SimTime,
    pub end: SimTime,
    /// State when the step in flight started.
    running: u32,
    waiting: u32,
    blocks_used: u32,
    /// Completions since the caller last cleared it.
    pub completed: Vec<Request>,
}

impl<'a> LockStep<'a> {
    /// `None` if `server` has no data-parallel ranks.
    pub fn new(id: u32, server: &'a LlmServer) -> Option<Self> {
        let parallel = server.data_parallel?;
        let rank = |_| Rank {
            batcher: Batcher::new(&server.batcher, &server.kv, server.cost.window()),
            plans: [StepPlan::default(), StepPlan::default()],
            prompt_tokens: 0,
        };
        Some(Self {
            id,
            server,
            ranks: (0..parallel.ranks).map(rank).collect(),
            balancer: Balancer::new(parallel),
            prompt_wait: parallel.balance.map(PromptWait::new),
            clock: Clock::new(&server.cost),
            pipelined: server.batcher.pipelined(),
            current: 0,
            parts: Vec::new(),
            all: StepShape::default(),
            steady_decodes: Vec::new(),
            start: SimTime::ZERO,
            end: SimTime::MAX,
            running: 0,
            waiting: 0,
            blocks_used: 0,
            completed: Vec::new(),
        })
    }

    fn is_idle(&self) -> bool {
        self.end == SimTime::MAX
    }

    pub fn in_flight(&self) -> u32 {
        let ranks = self.ranks.iter().map(|rank| rank.batcher.pool.len() as u32);
        ranks.sum::<u32>() + self.balancer.queue_len()
    }

    /// Takes a request in at `now`, or says why not.
    pub fn accept(&mut self, now: SimTime, request: &Request) -> Result<(), Rejection> {
        // All ranks are alike.
        if let Some(refusal) = self.ranks[0].batcher.refusal(request) {
            return Err(refusal);
        }
        self.balancer.pass(now, &self.ranks);
        if let Some(rank) = self.balancer.pick(request) {
            self.ranks[rank].enqueue(*request);
        }
        Ok(())
    }

    /// Starts an idle server.
    pub fn wake(&mut self, now: SimTime, observer: &mut impl Observer) {
        self.compose_and_start(now, observer);
    }

    /// Ends the step in flight at `now`, its end, and starts the next.
    pub fn end_step(&mut self, now: SimTime, observer: &mut impl Observer) {
        self.balancer.pass(now, &self.ranks);
        self.tell(observer);
        if !self.pipelined {
            self.age();
        }
        self.read_outputs(now, observer);
        self.end = SimTime::MAX;
        if !self.pipelined {
            self.compose_until_decided(now, observer);
            self.start(now);
            return;
        }
        self.current ^= 1;
        if self.ranks.iter().all(|rank| rank.plans[self.current].is_empty()) {
            self.compose_and_start(now, observer);
        } else {
            self.start(now);
            self.compose_next(now, observer);
        }
    }

    /// Tells of the step in flight.
    fn tell(&mut self, observer: &mut impl Observer) {
        let plans = || self.ranks.iter().map(|rank| &rank.plans[self.current]);
        self.steady_decodes.clear();
        // A rank that has done nothing yet has not heard of the classes.
        self.steady_decodes.resize(self.server.batcher.class_priority.len(), 0);
        for plan in plans().filter(|plan| !plan.is_empty()) {
            for (sum, count) in self.steady_decodes.iter_mut().zip(&plan.steady_decodes) {
                *sum += count;
            }
        }
        let working = || plans().filter(|plan| !plan.is_empty());
        observer.step(
            self.id,
            &Step {
                start: self.start,
                end: self.end,
                shape: &self.all,
                prefill_tokens: working().map(|plan| plan.prefill_tokens).sum(),
                emitted: working().map(|plan| plan.emitted).sum(),
                steady_decodes: &self.steady_decodes,
                running: self.running,
                waiting: self.waiting,
                blocks_used: self.blocks_used,
            },
        );
    }

    fn read_outputs(&mut self, now: SimTime, observer: &mut impl Observer) {
        for rank in &mut self.ranks {
            let before = self.completed.len();
            let mut sink = Sink { now, replica: self.id, completed: &mut self.completed, observer };
            rank.batcher.outputs(now, &rank.plans[self.current], &mut sink);
            let done = self.completed[before..].iter().map(|request| u64::from(request.input_tokens));
            rank.prompt_tokens -= done.sum::<u64>();
        }
    }

    /// Composes the step that is to start now. It can come out empty only because somebody gave way: then all
    /// schedulers are called again.
    fn compose_until_decided(&mut self, now: SimTime, observer: &mut impl Observer) {
        loop {
            let at = self.current;
            self.compose(now, at, observer);
            let empty = self.ranks.iter().all(|rank| rank.plans[at].is_empty());
            if !empty || self.ranks.iter().all(|rank| rank.batcher.preempted.is_empty()) {
                return;
            }
            self.age();
        }
    }

    /// With nothing composed: composes a step and, if it holds anything, starts it.
    fn compose_and_start(&mut self, now: SimTime, observer: &mut impl Observer) {
        self.age();
        self.compose_until_decided(now, observer);
        self.start(now);
        if self.pipelined && !self.is_idle() {
            self.compose_next(now, observer);
        }
    }

    fn compose_next(&mut self, now: SimTime, observer: &mut impl Observer) {
        self.age();
        self.compose(now, self.current ^ 1, observer);
    }

    fn age(&mut self) {
        self.ranks.iter_mut().for_each(|rank| rank.batcher.age());
    }

    /// Every rank composes its part of a step into its plan number `at`.
    fn compose(&mut self, now: SimTime, at: usize, observer: &mut impl Observer) {
        let max_num_seqs = self.server.batcher.max_num_seqs;
        self.balancer.distribute(&mut self.ranks, max_num_seqs);
        for rank in &mut self.ranks {
            rank.batcher.compose(now, &mut rank.plans[at]);
            for &slot in &rank.batcher.preempted {
                observer.preempted(now, self.id, rank.batcher.pool[slot].request.class);
            }
        }
        if let Some(wait) = &mut self.prompt_wait
            && wait.holds_back(&self.ranks, at, max_num_seqs)
        {
            self.ranks.iter_mut().for_each(|rank| rank.batcher.hold_back(&mut rank.plans[at]));
        }
    }

    /// Starts the current plans, unless there is nothing in any of them.
    fn start(&mut self, now: SimTime) {
        let current = self.current;
        self.parts.clear();
        self.parts.extend(self.ranks.iter().map(|rank| rank.plans[current].shape));
        self.all = self.parts.iter().sum();
        if self.all.sequences == 0 {
            return;
        }
        self.start = now;
        self.clock.start_step(now, self.all.tokens, &self.server.cost);
        self.end = now + self.server.ranks_time(&self.parts, self.clock.speed());
        (self.running, self.waiting, self.blocks_used) = (0, self.balancer.queue_len(), 0);
        for rank in &mut self.ranks {
            let batcher = &mut rank.batcher;
            self.running += batcher.running.len;
            self.waiting += batcher.waiting_len();
            self.blocks_used += batcher.blocks_used();
            if rank.plans[current].is_empty() {
                batcher.sit_out();
            }
            for &slot in &rank.plans[current].chunks {
                let sequence = &mut batcher.pool[slot];
                sequence.scheduled = sequence.scheduled.min(now);
            }
        }
    }
}

impl Rank<'_> {
    fn enqueue(&mut self, request: Request) {
        self.prompt_tokens += u64::from(request.input_tokens);
        self.batcher.enqueue(request);
    }
}
