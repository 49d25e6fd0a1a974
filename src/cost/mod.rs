//! From what a step holds to how long it takes, term by term; and from a deployment to its memory budget.
//!
//! A step is one fused forward pass. Its time is a sum of few terms, each a quantity of work over a
//! datasheet rate times a fraction in (0, 1] (see [`StepCost`]); its memory is what the engine's own
//! start-up arithmetic leaves for KV (see [`MemoryBudget`]). Both follow from the model's architecture,
//! the GPU's datasheet and a handful of calibrated figures, so they extend to models and GPUs that
//! nobody measured.

mod clock;
mod communication;
mod draft;
mod expert_parallel;
mod fit;
mod launch;
mod memory;
mod pipeline;
mod shape;
mod step;
#[cfg(test)]
mod tests;

pub use clock::Clock;
pub use draft::Draft;
pub use fit::{Alternatives, alternatives};
pub use launch::Graphs;
pub use memory::{MemoryBudget, MemoryInputs, memory_budget};
pub use pipeline::{Pipeline, stage_layers};
pub use shape::{StepShape, window_pairs_x2};
pub use step::{DecodeCost, Ranks, Sharing, StepCost, StepTerms};
