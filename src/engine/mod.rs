//! The simulated system: replicas behind a router, each with a continuous batcher.
//!
//! [`run()`] owns clock and events and knows clients and replicas only; a replica owns its batcher, its
//! KV blocks and the step in flight; the batcher decides what the next step holds. Whoever wants to know
//! what happened implements [`Observer`].

mod batcher;
mod client;
mod cohort;
mod config;
mod lockstep;
mod observer;
mod replica;
mod router;
mod run;
mod sequence;
mod speculation;
mod staged;
mod synthetic;
mod waiting;

pub use config::{
    BatchWait, BatcherConfig, Batching, DataParallel, LlmServer, PrefillFirst, PromptBalance, RankPolicy,
    RouterPolicy, SchedulingPolicy, Server, SyntheticServer, System,
};
pub use observer::{Finished, Observer, QuietStep, Rejection, Step, Stretch};
pub use run::{Client, EngineError, RunEnd, RunUntil, run};
pub use speculation::Speculation;
