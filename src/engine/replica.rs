//! A replica that runs a language model: its batcher, the step in flight, the step composed behind it.

use super::batcher::{Batcher, Outputs, StepPlan};
use super::config::LlmServer;
use super::observer::{Finished, Observer, Rejection, Step};
use super::sequence::Sequence;
use crate::cost::{Clock, StepCost};
use crate::units::{SimSpan, SimTime};
use crate::workload::Request;

/// One engine process on one group of GPUs.
///
/// With pipelined (async) scheduling the step that starts at t was composed when the step before it
/// started, so it holds only requests that had arrived by then; an idle engine composes and starts at
/// once. Without, each step is composed when the one before it has ended.
#[derive(Clone, Debug)]
pub(super) struct Replica<'a> {
    id: u32,
    batcher: Batcher<'a>,
    cost: &'a StepCost,
    clock: Clock,
    pipelined: bool,
    /// The step in flight and, if pipelined, the one composed behind it: they take turns in two plans.
    plans: [StepPlan; 2],
    current: usize,
    /// Start and end of the step in flight; `end` is `MAX` while the engine is idle.
    start: SimTime,
    pub end: SimTime,
    /// State when the step in flight started.
    running: u32,
    waiting: u32,
    blocks_used: u32,
    /// Completions since the caller last cleared it.
    pub completed: Vec<Request>,
}

impl<'a> Replica<'a> {
    pub fn new(id: u32, server: &'a LlmServer) -> Self {
        let pipelined = server.batcher.pipelined();
        Self {
            id,
            batcher: Batcher::new(&server.batcher, &server.kv, server.cost.window()),
            cost: &server.cost,
            clock: Clock::new(&server.cost),
            pipelined,
            plans: [StepPlan::default(), StepPlan::default()],
            current: 0,
            start: SimTime::ZERO,
            end: SimTime::MAX,
            running: 0,
            waiting: 0,
            blocks_used: 0,
            completed: Vec::new(),
        }
    }

    pub fn is_idle(&self) -> bool {
        self.end == SimTime::MAX
    }

    pub fn in_flight(&self) -> u32 {
        self.batcher.pool.len() as u32
    }

    /// Takes a request in, or says why not.
    pub fn accept(&mut self, request: &Request) -> Result<(), Rejection> {
        if !self.batcher.accepts(request) {
            return Err(Rejection::TooLong);
        }
        self.batcher.enqueue(*request);
        Ok(())
    }

    /// Starts an idle engine.
    pub fn wake(&mut self, now: SimTime, observer: &mut impl Observer) {
        self.compose_and_start(now, observer);
    }

    /// Runs the steps that end before `horizon`, the one in flight in any case. Stops early after a
    /// completion if `stop_on_completion` (a closed loop reacts to it). Returns when the last of them
    /// ended.
    pub fn run(
        &mut self,
        horizon: SimTime,
        stop_on_completion: bool,
        observer: &mut impl Observer,
    ) -> SimTime {
        loop {
            let now = if self.is_steady() && self.batcher.only_grows_older() {
                self.coast(horizon, observer)
            } else {
                self.end_step(observer)
            };
            if self.end >= horizon || (stop_on_completion && !self.completed.is_empty()) {
                return now;
            }
        }
    }

    /// Whether the step in flight and the one composed last hold the same decoding sequences and nothing
    /// else, and the next will too, unless somebody completes or blocks run short.
    fn is_steady(&self) -> bool {
        let plans = if self.pipelined { &self.plans[..] } else { &self.plans[..1] };
        plans.iter().all(StepPlan::only_decodes) && self.batcher.is_steady()
    }

    /// Runs on, before `horizon`, while the batch only grows older: the same steps that
    /// [`Replica::end_step`] would take one by one, without looking for what cannot happen. Takes one in
    /// any case, and returns when the last of them ended.
    fn coast(&mut self, horizon: SimTime, observer: &mut impl Observer) -> SimTime {
        let mut cost = self.cost.decode_only(self.current().shape.sequences, self.clock.speed());
        loop {
            let now = self.end;
            self.report_step(observer);
            if self.pipelined {
                self.current ^= 1;
                self.blocks_used = self.batcher.blocks_used();
                self.batcher.grow_older(&mut self.plans[self.current ^ 1]);
            } else {
                self.batcher.grow_older(&mut self.plans[self.current]);
                self.blocks_used = self.batcher.blocks_used();
            }
            let shape = &self.plans[self.current].shape;
            if self.clock.start_step(now, shape.tokens, self.cost) {
                cost = self.cost.decode_only(shape.sequences, self.clock.speed());
            }
            let (context, window_context) = (shape.decode_context, shape.decode_window_context);
            self.start = now;
            self.end = now + cost.step_time(context, window_context);
            if self.end >= horizon || !self.batcher.only_grows_older() {
                return now;
            }
        }
    }

    fn report_step(&self, observer: &mut impl Observer) {
        let plan = self.current();
        observer.step(
            self.id,
            &Step {
                start: self.start,
                end: self.end,
                prefill_tokens: plan.prefill_tokens,
                shape: &plan.shape,
                emitted: plan.emitted,
                steady_decodes: &plan.steady_decodes,
                running: self.running,
                waiting: self.waiting,
                blocks_used: self.blocks_used,
            },
        );
    }

    /// The end of a step, which it returns: its outputs, the start of the next, the composition of the
    /// one behind it.
    fn end_step(&mut self, observer: &mut impl Observer) -> SimTime {
        let now = self.end;
        self.report_step(observer);
        if !self.pipelined {
            self.batcher.age();
        }
        self.read_outputs(now, observer);
        self.end = SimTime::MAX;
        if self.pipelined {
            self.current ^= 1;
            if self.current().is_empty() {
                self.compose_and_start(now, observer);
            } else {
                self.start(now);
                self.compose_next(now, observer);
            }
        } else {
            self.compose_until_decided(now, observer);
            if !self.current().is_empty() {
                self.start(now);
            }
        }
        now
    }

    fn current(&self) -> &StepPlan {
        &self.plans[self.current]
    }

    fn read_outputs(&mut self, now: SimTime, observer: &mut impl Observer) {
        let mut sink = Sink { now, replica: self.id, completed: &mut self.completed, observer };
        self.batcher.outputs(now, &self.plans[self.current], &mut sink);
    }

    /// Composes a step to start now. Under priority the first of the running list can be the one that
    /// must give way, which leaves the step empty: the scheduler is simply called again.
    fn compose_until_decided(&mut self, now: SimTime, observer: &mut impl Observer) {
        loop {
            self.batcher.compose(now, &mut self.plans[self.current]);
            self.report_preemptions(now, observer);
            if !self.current().is_empty() || self.batcher.preempted.is_empty() {
                return;
            }
            self.batcher.age();
        }
    }

    /// With nothing composed: composes a step and, if it holds anything, starts it.
    fn compose_and_start(&mut self, now: SimTime, observer: &mut impl Observer) {
        self.batcher.age();
        self.compose_until_decided(now, observer);
        if self.current().is_empty() {
            return;
        }
        self.start(now);
        if self.pipelined {
            self.compose_next(now, observer);
        }
    }

    fn compose_next(&mut self, now: SimTime, observer: &mut impl Observer) {
        self.batcher.age();
        self.batcher.compose(now, &mut self.plans[self.current ^ 1]);
        self.report_preemptions(now, observer);
    }

    fn start(&mut self, now: SimTime) {
        self.start = now;
        let shape = &self.plans[self.current].shape;
        self.clock.start_step(now, shape.tokens, self.cost);
        self.end = now + self.cost.step_time(shape, self.clock.speed());
        self.running = self.batcher.running.len;
        self.waiting = self.batcher.waiting_len();
        self.blocks_used = self.batcher.blocks_used();
        for &slot in &self.plans[self.current].chunks {
            let sequence = &mut self.batcher.pool[slot];
            sequence.scheduled = sequence.scheduled.min(now);
        }
    }

    fn report_preemptions(&mut self, now: SimTime, observer: &mut impl Observer) {
        for &slot in &self.batcher.preempted {
            observer.preempted(now, self.id, self.batcher.pool[slot].request.class);
        }
    }
}

/// Passes a step's outputs on to the observer and to the caller.
struct Sink<'a, O> {
    now: SimTime,
    replica: u32,
    completed: &'a mut Vec<Request>,
    observer: &'a mut O,
}

impl<O: Observer> Outputs for Sink<'_, O> {
    fn token_gaps(&mut self, class: u16, gap: SimSpan, count: u32) {
        self.observer.token_gaps(self.now, class, gap, count);
    }

    fn finished(&mut self, sequence: &Sequence) {
        self.completed.push(sequence.request);
        let life = Finished {
            request: sequence.request,
            scheduled: sequence.scheduled,
            first_token: sequence.first_token,
            done: self.now,
            preemptions: sequence.preemptions,
        };
        self.observer.finished(self.replica, &life);
    }
}
