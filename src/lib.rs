//! `knee`: a discrete-event capacity simulator for LLM serving.

pub mod catalog;
pub mod cost;
pub mod des;
pub mod engine;
pub mod experiment;
pub mod kv;
pub mod metrics;
pub mod queueing;
pub mod rng;
pub mod scenario;
pub mod stats;
pub mod units;
pub mod workload;
