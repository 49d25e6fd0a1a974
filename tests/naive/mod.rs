//! The oracle: a naive single-replica engine, vLLM V1's and those of SGLang and TensorRT-LLM, with its client.
//!
//! Every sequence is a struct of its own and every step walks all of them, one token at a time. There are
//! no cohorts, no sums carried from step to step and no free-block counter, so there is little to get
//! wrong; the engine under test must agree with it to the nanosecond. The two share plain data types and
//! the price of a step, nothing else.
//!
//! Steps wait for one another in a list: one under way and, if scheduling is pipelined, one composed behind
//! it; through a pipeline of stages one for each stage. Speculation gives a sequence several tokens a step.
//! Data-parallel ranks are engines whose steps begin and end together.
//!
//! [`simulate`] is the clock: at each instant first the requests that arrive, then the step that ends, then
//! the requests which that end made arrive, and last the wake-up of an idle engine.

mod by_hand;
mod by_hand_parallel;
mod by_hand_policies;
mod by_hand_ranks;
mod client;
mod engine;
pub mod fleet;
mod ranks;
mod scenario;

use knee::cost::StepShape;
use knee::engine::LlmServer;
use knee::units::{Blocks, SimTime, Tokens};

pub use client::Load;
pub use scenario::{Scenario, affine_costs};

use client::Client;
use engine::Engine;

/// What happened, with everything that another engine can be compared by.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Outcome {
    /// In order of completion; of one step's completions, in the order in which the step was composed.
    pub finished: Vec<Record>,
    /// Indices of refused requests, in order of refusal.
    pub rejected: Vec<u64>,
    /// Preemptions, those of sequences included that only had to wait for their last token.
    pub preemptions: u64,
    /// Every executed step.
    pub steps: Vec<StepRecord>,
    /// Gaps between successive tokens of one request, over all requests, in ascending order.
    pub gaps_ns: Vec<u64>,
    /// When the last step ended or the last request reached the engine, whichever was later.
    pub end: SimTime,
}

/// A completed request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    pub index: u64,
    pub send: SimTime,
    /// Start of the first step that it was part of.
    pub scheduled: SimTime,
    pub first_token: SimTime,
    pub done: SimTime,
    /// Times it was put back in the queue.
    pub preemptions: u32,
}

/// An executed step. Through a pipeline `start` is when no older step was in it any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepRecord {
    pub start: SimTime,
    pub end: SimTime,
    pub shape: StepShape,
    pub prefill_tokens: Tokens,
    /// Tokens that reach their clients when it ends.
    pub emitted: u32,
    /// Sequences on the running list, requests in the queue and blocks in use when it started, before the
    /// step after it was composed.
    pub running: u32,
    pub waiting: u32,
    pub blocks_used: Blocks,
}

/// The seed that decides which drafts are accepted.
pub const SEED: u64 = 1;

/// Runs `load` to its end.
pub fn simulate(server: &LlmServer, load: Load) -> Outcome {
    if server.data_parallel.is_some() {
        return ranks::simulate(server, load);
    }
    let mut client = Client::new(load, server.front_end);
    let mut engine = Engine::new(server);
    while let Some(now) = [client.next_arrival(), engine.step_end()].into_iter().flatten().min() {
        engine.outcome.end = now;
        deliver(&mut client, &mut engine, now);
        if engine.step_end() == Some(now) {
            for index in engine.end_step(now) {
                client.answered(index, now);
            }
            deliver(&mut client, &mut engine, now);
        }
        engine.wake(now);
    }
    engine.into_outcome()
}

/// Hands the engine every request that reaches it at `now`. A refused one frees its user, whose next
/// request may arrive at the same instant.
fn deliver(client: &mut Client, engine: &mut Engine<'_>, now: SimTime) {
    while let Some(request) = client.take_arrival(now) {
        if !engine.accept(request) {
            client.answered(request.index, now);
        }
    }
}
