//! How the engine tells what happens in it, and the vocabulary of what happens.

use crate::cost::StepShape;
use crate::units::{SimSpan, SimTime};
use crate::workload::Request;

/// What the engine tells whoever watches. Static dispatch; called in order of simulated time.
pub trait Observer {
    /// `request` was sent (offered) at `request.send`.
    fn sent(&mut self, request: &Request);
    /// It was refused at `now`: too long for the context or the pool, or the queue is full.
    fn rejected(&mut self, now: SimTime, request: &Request, reason: Rejection);
    /// A step of `replica` ended.
    fn step(&mut self, replica: u32, step: &Step<'_>);
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
