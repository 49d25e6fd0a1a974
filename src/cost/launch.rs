//! Launching kernels: what the host spends on a step that no CUDA graph holds.
//!
//! The host queues kernels ahead of the GPU. A step that runs from a captured graph is one launch; any
//! other takes at least as long as its kernels take to be launched one by one,
//!
//! ```text
//! T = max(T of the other terms, L (launch + 2 eager all-reduce start-ups))
//! ```
//!
//! so that eager execution shows with small batches of small models and hides behind work otherwise.
//!
//! vLLM captures graphs of 1, 2, 4, 8, 16, 24 ... tokens up to `max_cudagraph_capture_size` and pads a
//! decode batch up to the next of them. The padding costs nothing here: in a fit to a Qwen3-14B server
//! it made no visible difference. Steps with prompt tokens beyond the largest graph run without one on
//! every server, those included that profiles were fitted on; what that costs is in the profile.

use super::StepShape;
use crate::catalog::{Hardware, Model};

/// Host time of launching one layer's kernels one by one, all-reduces not counted. An estimate between two
/// published figures of decode steps without graphs: 8.4 ms for Llama-3.1-8B on H100 (cloudai.pt, .26 ms
/// a layer), 12 ms for Llama-2-7B (vllm-project/vllm#1440, at most .375 ms). It depends on the CPU.
const EAGER_LAUNCH_PER_LAYER_S: f64 = 300e-6;
/// Start-up of an all-reduce outside a graph where it was not measured: what H100, H200 and B200 take.
const EAGER_ALL_REDUCE_STARTUP_S: f64 = 22e-6;

/// Which steps run from CUDA graphs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Graphs {
    /// `enforce_eager`: none.
    Off,
    /// Those that only decode, up to this many tokens (`max_cudagraph_capture_size`).
    UpTo(u32),
}

/// Host time of launching a step, and which steps it is spent on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Launch {
    pub step_s: f64,
    graphs: Graphs,
}

impl Launch {
    /// Every step runs from a graph, or as if it did.
    pub const NONE: Self = Self { step_s: 0.0, graphs: Graphs::UpTo(u32::MAX) };

    pub fn new(model: &Model, hardware: &Hardware, tp: u32, graphs: Graphs) -> Self {
        let all_reduces = if tp > 1 { 2.0 * eager_startup_s(hardware) } else { 0.0 };
        let per_layer = EAGER_LAUNCH_PER_LAYER_S + all_reduces;
        Self { step_s: f64::from(model.layer_count()) * per_layer, graphs }
    }

    pub fn scaled(self, factor: f64) -> Self {
        Self { step_s: self.step_s * factor, ..self }
    }

    /// Host time below which the step cannot end; 0 if a graph launches it.
    #[inline]
    pub fn floor_s(&self, shape: &StepShape) -> f64 {
        let launched_one_by_one = match self.graphs {
            Graphs::Off => true,
            Graphs::UpTo(tokens) => shape.tokens > tokens && shape.prefill_context == 0,
        };
        if launched_one_by_one { self.step_s } else { 0.0 }
    }
}

/// Start-up of a collective outside a CUDA graph.
pub(super) fn eager_startup_s(hardware: &Hardware) -> f64 {
    hardware.kernels.eager_all_reduce_startup_s.unwrap_or(EAGER_ALL_REDUCE_STARTUP_S)
}
