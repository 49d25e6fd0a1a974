//! A replica whose steps overlap or bring an uncertain number of tokens: pipeline stages, speculation.
//!
//! [`super::replica::Replica`] lets its decoding sequences grow older as one, which needs every one of them
//! in every step and one token for each. Neither holds here. Through a pipeline the running sequences
//! form groups, one for each step under way: a sequence is scheduled again when its last token is out,
//! together with whoever else is there then. vLLM forms the groups by accident (whoever fits into a
//! step), never splits or evens them out, and composes nothing between the ends of two steps, so at light
//! load one group can hold everybody while other stages idle. Under speculation every sequence goes its
//! own way. So this one walks its sequences: a step costs time in proportion to them.
//!
//! vLLM's `step_with_batch_queue` is the model: compose while fewer steps than stages are under way, then
//! wait for the oldest.

mod scheduler;

use std::collections::VecDeque;

use super::config::LlmServer;
use super::observer::{Observer, Rejection, Step};
use crate::cost::{Clock, Pipeline, StepCost, StepShape};
use crate::rng::Keyed;
use crate::units::{SimSpan, SimTime, Tokens};
use crate::workload::Request;

use scheduler::{Row, Scheduler};

/// A step composed and on its way through the stages.
#[derive(Clone, Debug, Default)]
struct Underway {
    rows: Vec<Row>,
    shape: StepShape,
    prefill_tokens: Tokens,
    /// When it leaves the last stage.
    end: SimTime,
}

/// One engine process on the GPUs of all its stages.
#[derive(Clone, Debug)]
pub(super) struct StagedReplica<'a> {
    id: u32,
    server: &'a LlmServer,
    scheduler: Scheduler<'a>,
    /// The oldest first; and a used one whose allocation serves the next.
    steps: VecDeque<Underway>,
    spare: Underway,
    /// When each stage is done with the last step composed.
    stages: Vec<SimTime>,
    times: Vec<SimSpan>,
    /// The clock of the chips, and what a step is to one of those with most layers.
    clock: Clock,
    on_chip: StepCost,
    /// Since when the oldest step has none before it, and the state at that time.
    start: SimTime,
    running: u32,
    waiting: u32,
    blocks_used: u32,
    /// When the oldest step ends; `MAX` while the engine is idle.
    pub end: SimTime,
    /// Completions since the caller last cleared it.
    pub completed: Vec<Request>,
}

impl<'a> StagedReplica<'a> {
    /// `acceptance` decides which drafts are accepted.
    pub fn new(id: u32, server: &'a LlmServer, acceptance: Keyed) -> Self {
        let most = server.pipeline.as_ref().map_or(1.0, Pipeline::largest_share);
        let on_chip = server.cost.scaled(most);
        Self {
            clock: Clock::new(&on_chip),
            on_chip,
            id,
            server,
            scheduler: Scheduler::new(server, acceptance),
            steps: VecDeque::new(),
            spare: Underway::default(),
            stages: vec![SimTime::ZERO; server.pipeline.as_ref().map_or(1, |p| p.layers().len())],
            times: Vec::new(),
            start: SimTime::ZERO,
            running: 0,
            waiting: 0,
            blocks_used: 0,
            end: SimTime::MAX,
            completed: Vec::new(),
        }
    }

    pub fn in_flight(&self) -> u32 {
        self.scheduler.pool.len() as u32
    }

    /// Takes a request in, or says why not.
    pub fn accept(&mut self, request: &Request) -> Result<(), Rejection> {
        if !self.scheduler.accepts(request) {
            return Err(Rejection::TooLong);
        }
        self.scheduler.enqueue(*request);
        Ok(())
    }

    /// Starts an idle engine.
    pub fn wake(&mut self, now: SimTime, observer: &mut impl Observer) {
        self.fill(now, observer);
    }

    /// Ends the oldest step at `now`, its end, and composes what there is room for.
    pub fn end_step(&mut self, now: SimTime, observer: &mut impl Observer) {
        let Some(mut step) = self.steps.pop_front() else { return };
        let emitted = self.scheduler.draw(&mut step.rows);
        observer.step(
            self.id,
            &Step {
                start: self.start,
                end: now,
                shape: &step.shape,
                prefill_tokens: step.prefill_tokens,
                emitted,
                steady_decodes: &[],
                running: self.running,
                waiting: self.waiting,
                blocks_used: self.blocks_used,
            },
        );
        self.output(now, &step, observer);
        self.spare = step;
        self.become_oldest(now);
        self.fill(now, observer);
    }

    /// Hands out what the step brings.
    fn output(&mut self, now: SimTime, step: &Underway, observer: &mut impl Observer) {
        // Members of a group have got their last tokens together: their gaps are told together.
        let mut together: Option<(u16, SimSpan, u32)> = None;
        for row in &step.rows {
            let before = self.scheduler.pool[row.slot].last_token;
            let class = self.scheduler.pool[row.slot].request.class;
            let done = self.scheduler.output(row, now);
            if row.emits > 0 && before != SimTime::MAX {
                let gap = now.since(before);
                together = match together {
                    Some((c, g, count)) if (c, g) == (class, gap) => Some((c, g, count + 1)),
                    other => {
                        if let Some((class, gap, count)) = other {
                            observer.token_gaps(now, class, gap, count);
                        }
                        Some((class, gap, 1))
                    }
                };
            }
            if done {
                let sequence = &self.scheduler.pool[row.slot];
                self.completed.push(sequence.request);
                observer.finished(self.id, &sequence.life(now));
            }
            self.scheduler.let_go(row.slot);
        }
        if let Some((class, gap, count)) = together {
            observer.token_gaps(now, class, gap, count);
        }
    }

    /// Composes steps while there is room for another under way. One can come out empty although work is left:
    /// under priority a sequence that gives way ends the walk. If nothing else is under way the scheduler
    /// is called again.
    fn fill(&mut self, now: SimTime, observer: &mut impl Observer) {
        while self.steps.len() < self.server.depth() {
            let mut step = std::mem::take(&mut self.spare);
            step.rows.clear();
            self.scheduler.compose(&mut step.rows);
            for &slot in &self.scheduler.preempted {
                observer.preempted(now, self.id, self.scheduler.pool[slot].request.class);
            }
            if !step.rows.is_empty() {
                self.send(step, now);
                continue;
            }
            self.spare = step;
            if !self.steps.is_empty() || self.scheduler.preempted.is_empty() {
                break;
            }
        }
        self.end = self.steps.front().map_or(SimTime::MAX, |step| step.end);
    }

    /// Sends a composed step through the stages: each takes it when it has come and the one before is gone.
    fn send(&mut self, mut step: Underway, now: SimTime) {
        (step.shape, step.prefill_tokens) = self.scheduler.shape(&step.rows, self.server.cost.window());
        let scheduled = self.stages[0].max(now);
        self.clock.start_step(scheduled, step.shape.tokens, &self.on_chip);
        self.server.stage_times(&step.shape, self.clock.speed(), &mut self.times);
        let mut at = now;
        for (free, &time) in self.stages.iter_mut().zip(&self.times) {
            at = at.max(*free) + time;
            *free = at;
        }
        step.end = at;
        for row in &step.rows {
            let sequence = &mut self.scheduler.pool[row.slot];
            sequence.scheduled = sequence.scheduled.min(scheduled);
        }
        self.steps.push_back(step);
        if self.steps.len() == 1 {
            self.become_oldest(now);
        }
    }

    /// Notes the state when a step has no older one before it.
    fn become_oldest(&mut self, now: SimTime) {
        self.start = now;
        self.running = self.scheduler.running.len;
        self.waiting = self.scheduler.waiting_len();
        self.blocks_used = self.scheduler.blocks_used();
    }
}
