//! `knee` answers, without hardware: how much load can an LLM deployment carry before its users notice?
//!
//! It is a discrete-event simulator of LLM serving. Calibrated hardware profiles feed a simulated
//! continuous batcher, thousands of load scenarios are swept in parallel, and out come
//! throughput-latency curves, their knees and capacities. This page follows one request through it.
//!
//! # The life of a request
//!
//! ```text
//!            draws          picks         composes         prices        applies
//!  workload ------> client ------> router ------> batcher ------> cost ------> replica
//!                     ^                                                          |
//!                     |  answer (a closed loop asks again)                       | tells
//!                     +----------------------------------------------------------+-------> metrics
//!                                                                                             |
//!                                  report  <--- shows the answer --- experiment <--- folds ---+
//! ```
//!
//! 1. A [`workload`] draws the request: when it is sent, its class, its prompt and output tokens. Every
//!    purpose has a random stream of its own ([`rng`]), so two scenarios see the same users.
//! 2. [`engine::run()`] keeps the clock ([`des`], [`units`]: whole nanoseconds). The request passes the
//!    front end and the router, which picks a replica.
//! 3. The replica's batcher admits it when a sequence slot, token budget and KV blocks ([`kv`]) allow, and
//!    composes each step: its prompt in chunks, then one token per step, together with everybody else's. (Of
//!    data-parallel ranks each has a batcher; their steps begin and end together.)
//! 4. [`cost`] says how long that step takes, from what the [`catalog`] knows of model and hardware.
//! 5. The replica ends the step: tokens are out, blocks come back, or the request is preempted and waits
//!    again. When its last token is out, it is done.
//! 6. [`metrics`] watched all of it and keeps what a summary needs, in memory that does not grow.
//! 7. A [`scenario`] described all of this in one file. An [`experiment`] runs it several times, over a
//!    grid of loads, and judges: stable? objectives met? where is the knee? ([`stats`]; [`queueing`] has
//!    the closed forms that the simulator must reproduce.)
//! 8. [`validate`] holds simulations against measurements, and [`calibrate`] fits step times to them.
//! 9. [`report`] shows the answer as table, JSON, CSV and pictures; [`cli`] is the command line.
//!
//! A module imports only from those below it, in this order: `units`, `rng`, `stats`, `queueing`, `disk`, `nearest`; `des`;
//! `catalog`, `workload`, `kv`, `cost`; `engine`; `metrics`, `scenario`; `experiment`; `import`, `validate`,
//! `calibrate`; `report`; `cli`. [`import`] reads what load generators and servers wrote, [`validate`] holds a
//! simulation against it, and [`calibrate`] fits a profile to it.
//!
//! # In code
//!
//! ```
//! use knee::{catalog::Catalog, experiment, scenario::Document};
//!
//! let document = Document::load("mm1").unwrap();
//! let mut scenario = document.scenario(&Catalog::new(None)).unwrap();
//! scenario.run.replications = 2;
//! let point = experiment::run_point(&scenario).unwrap();
//! assert_eq!(point.stability.verdict, experiment::Verdict::Stable);
//! ```

pub mod calibrate;
pub mod catalog;
pub mod cli;
pub mod cost;
pub mod des;
pub mod disk;
pub mod engine;
pub mod experiment;
pub mod import;
pub mod kv;
pub mod metrics;
pub mod nearest;
pub mod queueing;
pub mod report;
pub mod rng;
pub mod scenario;
pub mod stats;
pub mod units;
pub mod validate;
pub mod workload;
