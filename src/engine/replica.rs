//! A replica that runs a language model: its batcher, the step in flight, the step composed behind it.

use super::batcher::{Batcher, Outputs, StepPlan};
use super::config::LlmServer;
use super::observer::{Observer, QuietStep, Rejection, Step, Stretch};
use super::sequence::Sequence;
use crate::cost::{Clock, DecodeCost, StepCost};
use crate::units::{SimSpan, SimTime};
use crate::workload::Request;

/// What steps cost, with what does not depend on contexts worked out beforehand for the batches that decode
/// and nothing else.
#[derive(Debug)]
pub(super) struct Prices<'a> {
    cost: &'a StepCost,
    /// By number of sequences, at full clock.
    decode_only: Vec<DecodeCost>,
    /// No step is shorter.
    shortest: SimSpan,
}

/// Batches larger than this are priced when they come.
const LARGEST_PRICED: u32 = 256;

impl<'a> Prices<'a> {
    pub fn new(server: &'a LlmServer) -> Self {
        let largest = server.batcher.max_num_seqs.min(LARGEST_PRICED);
        let decode_only = (0..=largest).map(|sequences| server.cost.decode_only(sequences, 1.0)).collect();
        Self { cost: &server.cost, decode_only, shortest: server.cost.shortest_step() }
    }

    #[inline]
    fn decode_only(&self, sequences: u32, speed: f64) -> DecodeCost {
        match self.decode_only.get(sequences as usize) {
            Some(cost) if speed == 1.0 => *cost,
            _ => self.cost.decode_only(sequences, speed),
        }
    }

    #[inline]
    fn step_time(&self, plan: &StepPlan, speed: f64) -> SimSpan {
        let shape = &plan.shape;
        if plan.only_decodes() {
            let cost = self.decode_only(shape.sequences, speed);
            cost.step_time(shape.decode_context, shape.decode_window_context)
        } else {
            self.cost.step_time(shape, speed)
        }
    }
}

/// Quiet steps that are told to the observer at once, at most.
const LONGEST_STRETCH: usize = 16;

/// One engine process on one group of GPUs.
///
/// With pipelined (async) scheduling the step that starts at t was composed when the step before it
/// started, so it holds only requests that had arrived by then; an idle engine composes and starts at
/// once. Without, each step is composed when the one before it has ended.
#[derive(Clone, Debug)]
pub(super) struct Replica<'a> {
    id: u32,
    batcher: Batcher<'a>,
    prices: &'a Prices<'a>,
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
    pub fn new(id: u32, server: &'a LlmServer, prices: &'a Prices<'a>) -> Self {
        let pipelined = server.batcher.pipelined();
        Self {
            id,
            batcher: Batcher::new(&server.batcher, &server.kv, server.cost.window()),
            prices,
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
        if let Some(refusal) = self.batcher.refusal(request) {
            return Err(refusal);
        }
        self.batcher.enqueue(*request);
        Ok(())
    }

    /// Starts an idle engine.
    pub fn wake(&mut self, now: SimTime, observer: &mut impl Observer) {
        self.compose_and_start(now, observer);
    }

    /// When a request completes, at the earliest, if no other comes: until then nobody outside need know
    /// what happens here. Never before the end of the step in flight.
    pub fn due(&self) -> SimTime {
        if self.is_idle() {
            return SimTime::MAX;
        }
        let further = self.batcher.steps_to_completion() - 1;
        if further == 0 {
            return self.end;
        }
        let shortest = if self.is_steady() && self.batcher.has_blocks_for(further) {
            // The steps will be those of a batch that grows older, at full clock or slower. A step at the
            // mean of their contexts is no longer than their mean (time is convex in the context), and
            // none of them is rounded down by more than half a nanosecond.
            let (context, window_context) = self.batcher.cohort.contexts();
            let count = self.batcher.cohort.count;
            let context = context + u64::from(count) * (further - 1) / 2;
            self.prices.decode_only(count, 1.0).step_time(context, window_context).as_nanos() - 1
        } else {
            self.prices.shortest.as_nanos()
        };
        self.end + SimSpan::from_nanos(shortest.saturating_mul(further))
    }

    /// Runs the steps that end before `limit`. Stops early after a completion if `stop_on_completion` (a
    /// closed loop reacts to it). Returns when the last of them ended.
    pub fn run(&mut self, limit: SimTime, stop_on_completion: bool, observer: &mut impl Observer) -> SimTime {
        let mut now = SimTime::ZERO;
        while self.end < limit && (self.completed.is_empty() || !stop_on_completion) {
            now = if self.is_steady() && self.batcher.only_grows_older() {
                self.coast(limit, observer)
            } else {
                self.end_step(observer)
            };
        }
        now
    }

    /// Whether the step in flight and the one composed last hold the same decoding sequences and nothing
    /// else, and the next will too, unless somebody completes or blocks run short.
    fn is_steady(&self) -> bool {
        let plans = if self.pipelined { &self.plans[..] } else { &self.plans[..1] };
        plans.iter().all(StepPlan::only_decodes) && self.batcher.is_steady()
    }

    /// Runs on, before `limit`, while the batch only grows older: the same steps that
    /// [`Replica::end_step`] would take one by one, without looking for what cannot happen. Takes one in
    /// any case, and returns when the last of them ended.
    fn coast(&mut self, limit: SimTime, observer: &mut impl Observer) -> SimTime {
        let mut quiet = [QuietStep::default(); LONGEST_STRETCH];
        let mut steps = 0;
        let shape = self.current().shape;
        let sequences = shape.sequences;
        let mut cost = self.prices.decode_only(sequences, self.clock.speed());
        let (mut context, mut window_context) = (shape.decode_context, shape.decode_window_context);
        let mut end = self.end;
        let mut blocks_used = self.blocks_used;
        while steps < LONGEST_STRETCH {
            quiet[steps] = QuietStep {
                end,
                decode_context: context,
                decode_window_context: window_context,
                blocks_used,
            };
            steps += 1;
            // If pipelined, the step that starts now is the one composed before: a token younger.
            if self.pipelined {
                (context, window_context) = self.batcher.cohort.contexts();
                blocks_used = self.batcher.blocks_used();
                self.batcher.grow_older();
            } else {
                self.batcher.grow_older();
                (context, window_context) = self.batcher.cohort.contexts();
                blocks_used = self.batcher.blocks_used();
            }
            if self.clock.start_step(end, shape.tokens, self.prices.cost) {
                cost = self.prices.decode_only(sequences, self.clock.speed());
            }
            end += cost.step_time(context, window_context);
            if end >= limit || !self.batcher.only_grows_older() {
                break;
            }
        }
        let stretch = Stretch { first: self.step(), steps: &quiet[..steps] };
        observer.stretch(self.id, &stretch);
        self.start = quiet[steps - 1].end;
        self.end = end;
        self.blocks_used = blocks_used;
        self.plans[self.current].set_contexts((context, window_context));
        if self.pipelined {
            self.plans[self.current ^ 1].set_contexts(self.batcher.cohort.contexts());
        }
        self.start
    }

    /// The step in flight.
    fn step(&self) -> Step<'_> {
        let plan = self.current();
        Step {
            start: self.start,
            end: self.end,
            prefill_tokens: plan.prefill_tokens,
            shape: &plan.shape,
            emitted: plan.emitted,
            steady_decodes: &plan.steady_decodes,
            running: self.running,
            waiting: self.waiting,
            blocks_used: self.blocks_used,
        }
    }

    /// The end of a step, which it returns: its outputs, the start of the next, the composition of the
    /// one behind it.
    fn end_step(&mut self, observer: &mut impl Observer) -> SimTime {
        let now = self.end;
        observer.step(self.id, &self.step());
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
        let plan = &self.plans[self.current];
        self.clock.start_step(now, plan.shape.tokens, self.prices.cost);
        self.end = now + self.prices.step_time(plan, self.clock.speed());
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
pub(super) struct Sink<'a, O> {
    pub now: SimTime,
    pub replica: u32,
    pub completed: &'a mut Vec<Request>,
    pub observer: &'a mut O,
}

impl<O: Observer> Outputs for Sink<'_, O> {
    fn token_gaps(&mut self, class: u16, gap: SimSpan, count: u32) {
        self.observer.token_gaps(self.now, class, gap, count);
    }

    fn finished(&mut self, sequence: &Sequence) {
        self.completed.push(sequence.request);
        self.observer.finished(self.replica, &sequence.life(self.now));
    }
}
