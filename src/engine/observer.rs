//! How the engine tells what happens in it, and the vocabulary of what happens.

use crate::cost::StepShape;
use crate::units::{SimSpan, SimTime};
use crate::workload::Request;

/// What the engine tells whoever watches. Static dispatch. What it tells of requests (sent, rejected,
/// finished) comes in order of simulated time. What it tells of a replica does so replica by replica:
/// nobody looks at a replica until it must be known what happened there.
pub trait Observer {
    /// `request` was sent (offered) at `request.send`.
    fn sent(&mut self, request: &Request);
    /// It was refused at `now`: too long for the context, the pool or a step, or the queue is full.
    fn rejected(&mut self, now: SimTime, request: &Request, reason: Rejection);
    /// A step of `replica` ended.
    fn step(&mut self, replica: u32, step: &Step<'_>);
    /// Steps of `replica` ended in which the same sequences grew older and nothing else happened. Override
    /// it where their sum can be had for less than the steps one by one.
    fn stretch(&mut self, replica: u32, stretch: &Stretch<'_>) {
        stretch.each(|step| self.step(replica, step));
    }
    /// A synthetic server was in this state from `from` to `to`.
    fn served(&mut self, replica: u32, from: SimTime, to: SimTime, busy: u32, waiting: u32);
    /// `count` tokens that are not among [`Step::steady_decodes`] came `gap` after their predecessors
    /// (the sequence was preempted or postponed in between, or the server is synthetic).
    fn token_gaps(&mut self, now: SimTime, class: u16, gap: SimSpan, count: u32);
    /// A running sequence lost its blocks and will be recomputed.
    fn preempted(&mut self, now: SimTime, replica: u32, class: u16);
    /// A request completed.
    fn finished(&mut self, replica: u32, request: &Finished);
}

/// Why a request was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rejection {
    /// Prompt + output exceed `max_model_len` or the whole pool.
    TooLong,
    /// A prompt that is not cut exceeds the tokens of a step.
    OverBudget,
    /// The queue limit was reached.
    QueueFull,
}

/// One executed step.
#[derive(Clone, Copy, Debug)]
pub struct Step<'a> {
    pub start: SimTime,
    pub end: SimTime,
    /// What was scheduled; of it the prompt tokens; and the tokens emitted at the end of the step.
    pub shape: &'a StepShape,
    pub prefill_tokens: u32,
    pub emitted: u32,
    /// Sequences, by class, that emit a token in this step and emitted one when it started: their gap is
    /// the step's length.
    pub steady_decodes: &'a [u32],
    /// Sequences on the running list, requests in the queue and blocks in use when the step started.
    pub running: u32,
    pub waiting: u32,
    pub blocks_used: u32,
}

/// Steps one after the other in which the same sequences decode and nothing else happens: they differ in
/// what is listed in [`QuietStep`].
#[derive(Clone, Copy, Debug)]
pub struct Stretch<'a> {
    /// The first of them.
    pub first: Step<'a>,
    /// All of them, the first included; never empty.
    pub steps: &'a [QuietStep],
}

/// What tells a step of a [`Stretch`] from the others; fields as in [`Step`] and [`StepShape`]. It starts
/// when the one before it ends.
#[derive(Clone, Copy, Debug, Default)]
pub struct QuietStep {
    pub end: SimTime,
    pub decode_context: u64,
    pub decode_window_context: u64,
    pub blocks_used: u32,
}

impl Stretch<'_> {
    /// Calls `with` for each step in turn.
    pub fn each(&self, mut with: impl FnMut(&Step<'_>)) {
        let mut shape = *self.first.shape;
        let mut start = self.first.start;
        for quiet in self.steps {
            shape.decode_context = quiet.decode_context;
            shape.decode_window_context = quiet.decode_window_context;
            let (end, blocks_used) = (quiet.end, quiet.blocks_used);
            with(&Step { start, end, shape: &shape, blocks_used, ..self.first });
            start = end;
        }
    }
}

/// A completed request's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Finished {
    pub request: Request,
    /// When it was first part of a step (the step's start) or its service began.
    pub scheduled: SimTime,
    /// When its first token was out; equal to `done` where the server emits none.
    pub first_token: SimTime,
    /// When its last token was out.
    pub done: SimTime,
    pub preemptions: u32,
}
