//! The two kinds of run, which are never mixed, and how the warm-up of one of them is removed.

use serde::{Deserialize, Serialize};

/// Whether ramp and drain are removed or kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RunMode {
    /// The warm-up is deleted, the drain is outside the window.
    Steady,
    /// Finite: ramp and drain are kept, throughput divides by wall time, as load generators report.
    Benchmark,
}

/// How the initial transient is removed in steady mode.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Warmup {
    /// A tenth of the run, and more where the replications of a point show a longer transient.
    Auto,
    /// So many seconds.
    Seconds(f64),
}
