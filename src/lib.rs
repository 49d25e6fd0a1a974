//! `knee`: a discrete-event capacity simulator for LLM serving.

pub mod des;
pub mod queueing;
pub mod rng;
pub mod stats;
pub mod units;
