//! Expert parallelism over the GPUs of tensor parallelism: every GPU holds whole experts instead of a slice
//! of all.
//!
//! Weights per GPU, activations and the two all-reduces per layer stay as they are; what changes is that a
//! step waits for the busiest GPU. With n tokens that each pick k of E experts at random, p GPUs and c(p)
//! the expected largest of p standard normals, it has, as multiples of the mean,
//!
//! ```text
//! 1 + c sqrt(p (E - k) / ((E - 1) n k))    picks to compute
//! 1 + c sqrt(p (1 - q) / (q E))            experts to read, where the share q of all is touched
//! ```
//!
//! Real routers prefer some experts, so the busiest GPU has at least this much more.

use crate::catalog::{Mlp, Model};
use crate::rng::inverse_normal_cdf;

/// Routed experts of a mixture-of-experts model over `gpus` GPUs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Spread {
    experts: f64,
    top_k: f64,
    gpus: f64,
    largest: f64,
}

impl Spread {
    /// `None` for a dense model. All mixture layers of a model have the same number of experts.
    pub fn new(model: &Model, gpus: u32) -> Option<Self> {
        model.layers.iter().find_map(|group| match group.mlp {
            Mlp::Dense { .. } => None,
            Mlp::Moe { experts, top_k, .. } => Some(Self {
                experts: f64::from(experts),
                top_k: f64::from(top_k),
                gpus: f64::from(gpus.max(1)),
                largest: largest_of_normals(gpus),
            }),
        })
    }

    /// Picks on the busiest GPU, in tokens beyond n x the mean, per square root of n.
    pub fn tokens_per_root(&self) -> f64 {
        let Self { experts, top_k, gpus, largest } = *self;
        largest * (gpus * (experts - top_k) / ((experts - 1.0).max(1.0) * top_k)).sqrt()
    }

    /// Experts that the busiest GPU reads, over the mean, where the share `touched` of all is.
    pub fn read_factor(&self, touched: f64) -> f64 {
        if touched <= 0.0 {
            return 1.0;
        }
        let factor = 1.0 + self.largest * (self.gpus * (1.0 - touched) / (touched * self.experts)).sqrt();
        // It cannot read more than it holds.
        factor.min(1.0 / touched).min(self.gpus)
    }
}

/// Expected largest of `count` independent standard normals (Blom 1958).
fn largest_of_normals(count: u32) -> f64 {
    if count < 2 {
        return 0.0;
    }
    let count = f64::from(count);
    inverse_normal_cdf((count - 0.375) / (count + 0.25))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{Purpose, stream};

    /// Means over many draws of the busiest GPU's picks and touched experts, over their means.
    fn drawn(experts: usize, top_k: usize, gpus: usize, tokens: usize) -> (f64, f64) {
        let mut rng = stream(7, Purpose::Class, 0);
        let (mut picks, mut touched) = (0.0, 0.0);
        let rounds = 2000;
        for _ in 0..rounds {
            let mut count = vec![0u32; experts];
            for _ in 0..tokens {
                let mut order: Vec<usize> = (0..experts).collect();
                for place in 0..top_k {
                    let other = place + rng.index(experts - place);
                    order.swap(place, other);
                    count[order[place]] += 1;
                }
            }
            let of_gpu = |gpu: usize| &count[gpu * experts / gpus..(gpu + 1) * experts / gpus];
            let most = |value: &dyn Fn(&[u32]) -> u32| (0..gpus).map(|gpu| value(of_gpu(gpu))).max();
            let all = |value: &dyn Fn(&[u32]) -> u32| (0..gpus).map(|gpu| value(of_gpu(gpu))).sum::<u32>();
            let sum = |counts: &[u32]| counts.iter().sum();
            let held = |counts: &[u32]| counts.iter().filter(|count| **count > 0).count() as u32;
            let over = |value: &dyn Fn(&[u32]) -> u32| {
                f64::from(most(value).unwrap_or(0)) * gpus as f64 / f64::from(all(value))
            };
            picks += over(&sum) / f64::from(rounds);
            touched += over(&held) / f64::from(rounds);
        }
        (picks, touched)
    }

    #[test]
    fn the_busiest_gpu_is_as_busy_as_random_routing_makes_it() {
        for (experts, top_k, gpus, tokens) in
            [(128, 8, 8, 4), (128, 8, 8, 32), (128, 8, 2, 8), (256, 8, 8, 64), (8, 2, 4, 16)]
        {
            let spread = Spread {
                experts: experts as f64,
                top_k: top_k as f64,
                gpus: gpus as f64,
                largest: largest_of_normals(gpus as u32),
            };
            let (picks, touched) = drawn(experts, top_k, gpus, tokens);
            let n = tokens as f64;
            let expected = 1.0 + spread.tokens_per_root() / n.sqrt();
            assert!((expected / picks - 1.0).abs() < 0.06, "picks {expected} {picks} of {experts}/{tokens}");
            let expected = spread.read_factor(1.0 - (1.0 - top_k as f64 / experts as f64).powf(n));
            assert!(
                (expected / touched - 1.0).abs() < 0.06,
                "read {expected} {touched} of {experts}/{tokens}"
            );
        }
    }
}
