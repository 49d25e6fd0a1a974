//! Pipeline parallelism: the layers split over stages of GPUs, each step handed from stage to stage.
//!
//! A stage spends its layers' share of every term that layers make; the last one also samples (output
//! head and the time per sequence). Each stage but the first waits for its input: hidden states and
//! residual of n tokens, of which every GPU of the stage before sends its slice,
//!
//! ```text
//! start-up + 2 x n H x 2 bytes / (p x bus)
//! ```
//!
//! with the start-up of a collective outside CUDA graphs and the bandwidth that an all-reduce of two GPUs
//! sustains, both measured, but not on this: the hop is an estimate. Stages are held to be of one kind of
//! layer on average.

use super::communication::{all_reduce_points, interpolate};
use super::launch::eager_startup_s;
use super::step::{ACTIVATION_BYTES, StepTerms, to_span};
use crate::catalog::{Hardware, Model, ProfileValues};
use crate::units::SimSpan;

/// Hidden states and residual.
const TENSORS: f64 = 2.0;

/// The stages of a pipeline and what lies between them.
#[derive(Clone, Debug, PartialEq)]
pub struct Pipeline {
    layers: Vec<u32>,
    hop_s: f64,
    hop_per_token_s: f64,
}

impl Pipeline {
    /// `stages` stages of `tp` GPUs each; at most as many as the model has layers.
    #[must_use]
    pub fn new(model: &Model, hardware: &Hardware, profile: &ProfileValues, tp: u32, stages: u32) -> Self {
        let bus = interpolate(all_reduce_points(hardware, profile), 2)
            .map_or(hardware.link_bytes_per_s, |point| point.bus_bytes_per_s);
        let bytes = TENSORS * f64::from(model.hidden_size) * ACTIVATION_BYTES / f64::from(tp.max(1));
        Self {
            layers: stage_layers(model.layer_count(), stages),
            hop_s: eager_startup_s(hardware),
            hop_per_token_s: bytes / bus,
        }
    }

    /// A made-up pipeline for tests and teaching.
    #[must_use]
    pub const fn from_parts(layers: Vec<u32>, hop_s: f64, hop_per_token_s: f64) -> Self {
        Self { layers, hop_s, hop_per_token_s }
    }

    /// Layers of each stage.
    #[must_use]
    pub fn layers(&self) -> &[u32] {
        &self.layers
    }

    /// The share of all layers that the stage with most of them holds.
    #[must_use]
    pub fn largest_share(&self) -> f64 {
        let most = self.layers.iter().max().copied().unwrap_or(1);
        f64::from(most) / f64::from(self.layers.iter().sum::<u32>().max(1))
    }

    /// How long each stage is busy with a step of `tokens` tokens whose terms on all layers are `terms`,
    /// in order; waiting for the input counts.
    pub fn stage_times(&self, terms: &StepTerms, tokens: u32) -> impl Iterator<Item = SimSpan> {
        let all: u32 = self.layers.iter().sum();
        let sampling_s = terms.head_s + terms.sequences_s;
        let layers_s = terms.total_s() - sampling_s;
        let hop_s = self.hop_s + self.hop_per_token_s * f64::from(tokens);
        let last = self.layers.len() - 1;
        (0..).zip(&self.layers).map(move |(stage, &layers)| {
            let mut seconds = layers_s * f64::from(layers) / f64::from(all);
            if stage > 0 {
                seconds += hop_s;
            }
            if stage == last {
                seconds += sampling_s;
            }
            to_span(seconds)
        })
    }

    /// The same with hops that take `factor` times as long.
    #[must_use]
    pub fn scaled(&self, factor: f64) -> Self {
        let layers = self.layers.clone();
        Self { layers, hop_s: self.hop_s * factor, hop_per_token_s: self.hop_per_token_s * factor }
    }
}

/// vLLM's split (`get_pp_indices` in vllm/distributed/utils.py): equal shares, and of what remains one each to
/// the stages before the last, from the back.
#[must_use]
pub fn stage_layers(layers: u32, stages: u32) -> Vec<u32> {
    let stages = stages.max(1);
    let mut split = vec![layers / stages; stages as usize];
    for stage in split.iter_mut().rev().skip(1).take((layers % stages) as usize) {
        *stage += 1;
    }
    split
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layers_are_split_as_vllm_does() {
        assert_eq!(stage_layers(32, 1), [32]);
        assert_eq!(stage_layers(80, 4), [20, 20, 20, 20]);
        assert_eq!(stage_layers(61, 2), [31, 30]);
        assert_eq!(stage_layers(61, 8), [7, 7, 8, 8, 8, 8, 8, 7]);
        assert_eq!(stage_layers(5, 3), [2, 2, 1]);
    }

    /// 10 ms of layers over 3 + 1 of them; the second stage waits 1 ms + 4 x 0.5 ms and samples for 2 + 1 ms.
    #[test]
    fn stages_share_the_layers_and_the_last_samples() {
        let terms = StepTerms {
            linear_s: 7e-3,
            attention_s: 2e-3,
            launch_s: 1e-3,
            head_s: 2e-3,
            sequences_s: 1e-3,
            ..StepTerms::default()
        };
        let pipeline = Pipeline::from_parts(vec![3, 1], 1e-3, 0.5e-3);
        let times: Vec<u64> = pipeline.stage_times(&terms, 4).map(SimSpan::as_nanos).collect();
        assert_eq!(times, [7_500_000, 2_500_000 + 3_000_000 + 3_000_000]);
    }
}
