//! What GPUs say to each other in a step: all-reduces of tensor parallelism, exchanges between data-parallel
//! ranks.

use super::step::ACTIVATION_BYTES;
use crate::catalog::{AllReduce, Hardware, Model, ProfileValues};

/// What all-reduces of a step with n tokens take.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Communication {
    startup_s: f64,
    large_startup_s: f64,
    /// Tokens from which messages are large.
    large_from: f64,
    per_token_s: f64,
}

impl Communication {
    pub const NONE: Self =
        Self { startup_s: 0.0, large_startup_s: 0.0, large_from: f64::INFINITY, per_token_s: 0.0 };

    /// Two all-reduces of n x hidden activations per layer: 2 L (alpha + 2 (p - 1) / p x n H bytes / bus), with an alpha for
    /// small messages and one for large ones.
    pub fn new(model: &Model, hardware: &Hardware, profile: &ProfileValues, tp: u32) -> Self {
        let Some(point) = interpolate(all_reduce_points(hardware, profile), tp) else {
            return Self::NONE;
        };
        let times = 2.0 * f64::from(model.layer_count());
        let gpus = f64::from(tp);
        let bytes = f64::from(model.hidden_size) * ACTIVATION_BYTES;
        Self {
            startup_s: times * point.startup_s,
            large_startup_s: times * point.large_startup_s,
            large_from: point.large_from_bytes / bytes,
            per_token_s: times * 2.0 * (gpus - 1.0) / gpus * bytes / point.bus_bytes_per_s,
        }
    }

    #[inline]
    pub fn time_s(&self, tokens: f64) -> f64 {
        let startup_s = if tokens < self.large_from { self.startup_s } else { self.large_startup_s };
        startup_s + self.per_token_s * tokens
    }

    pub fn scaled(self, factor: f64) -> Self {
        Self {
            startup_s: self.startup_s * factor,
            large_startup_s: self.large_startup_s * factor,
            per_token_s: self.per_token_s * factor,
            ..self
        }
    }
}

/// A rank's tokens go to all `ranks` before a shared feed-forward layer and come back summed after it: an
/// all-gather and a reduce-scatter, which together move what an all-reduce moves,
/// `layers` x (2 alpha + 2 (D - 1) / D x N H bytes / bus) with the N tokens of all ranks. (The default of vLLM,
/// `allgather_reducescatter`, and of SGLang; TensorRT-LLM's all-to-all moves less.) Start-ups and bandwidth
/// are those of an all-reduce over as many GPUs: an estimate. Returns the constant and the part per token.
pub(super) fn exchange(
    model: &Model,
    hardware: &Hardware,
    profile: &ProfileValues,
    ranks: u32,
    layers: u32,
) -> (f64, f64) {
    let Some(point) = interpolate(all_reduce_points(hardware, profile), ranks) else {
        return (0.0, 0.0);
    };
    let (layers, ranks) = (f64::from(layers), f64::from(ranks));
    let bytes = 2.0 * (ranks - 1.0) / ranks * f64::from(model.hidden_size) * ACTIVATION_BYTES;
    (layers * 2.0 * point.startup_s, layers * bytes / point.bus_bytes_per_s)
}

/// The profile's all-reduce figures; the hardware's if it has none.
pub(super) fn all_reduce_points<'a>(hardware: &'a Hardware, profile: &'a ProfileValues) -> &'a [AllReduce] {
    match profile.all_reduce.as_slice() {
        [] => &hardware.kernels.all_reduce,
        fitted => fitted,
    }
}

/// The all-reduce figures for `gpus` GPUs: linear between points in the logarithm of their number,
/// constant beyond the ends. `None` for one GPU, and where nothing is known.
pub(super) fn interpolate(points: &[AllReduce], gpus: u32) -> Option<AllReduce> {
    if gpus < 2 {
        return None;
    }
    let upper = points.iter().find(|point| point.gpus >= gpus).or(points.last())?;
    let lower = points.iter().rfind(|point| point.gpus <= gpus).or(points.first())?;
    if lower.gpus == upper.gpus {
        return Some(AllReduce { gpus, ..*upper });
    }
    let log = |gpus: u32| libm::log2(f64::from(gpus));
    let weight = (log(gpus) - log(lower.gpus)) / (log(upper.gpus) - log(lower.gpus));
    let between = |low: f64, high: f64| low + weight * (high - low);
    Some(AllReduce {
        gpus,
        startup_s: between(lower.startup_s, upper.startup_s),
        large_startup_s: between(lower.large_startup_s, upper.large_startup_s),
        large_from_bytes: upper.large_from_bytes,
        bus_bytes_per_s: between(lower.bus_bytes_per_s, upper.bus_bytes_per_s),
    })
}
