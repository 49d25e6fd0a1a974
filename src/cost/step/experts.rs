//! Routed experts: what they compute, and how long it takes to read those that a step touches.
//!
//! Their fused kernels are slower the narrower the slices are into which tensor parallelism cuts an expert: with w of
//! its intermediate columns on a GPU and m rows, at w / (w + w_h) and m / (m + h) of their best rate e. (Law and
//! constants: operator tables of NVIDIA AIConfigurator, 20 to 1,459 shapes a GPU and dtype, from 128 columns and one
//! token on; it is 5 to 13 % off in the median. Without w it is 10 to 21 %.) The time that an expert computes falls less
//! than with the number of its slices: from 2,048 columns on one GPU to 256 on each of eight by 4.2 with w_h = 300.
//!
//! A token picks k of E experts, each with the chance q = k/E. Which ones are liked differs from step to step (a
//! router has favourites, and texts that are alike pick alike), so that two tokens pick an expert with the
//! correlation phi. With chances that are beta distributed over the experts, of mean q and such that the
//! correlation is phi, n tokens leave untouched
//!
//! ```text
//! u(0) = 1    u(n + 1) = u(n) (1 - q (1 - phi) / (1 + (n - 1) phi))
//! ```
//!
//! of them (the beta-binomial distribution's share of zeros, Skellam 1948): one token touches exactly k, and
//! phi = 0 is random routing, (1 - q)^n.

use crate::catalog::{Mlp, Model, ProfileValues};
use crate::units::Tokens;

/// Untouched share of experts below which all count as touched.
const NEGLIGIBLE_SHARE: f64 = 1e-12;
/// Tokens beyond which no more experts are touched: such a step has been computing for long when it has read them,
/// and the last of them come slowly where picks are correlated.
const MOST_TOKENS: u32 = 65_536;

/// What the routed experts of all layers compute.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Experts {
    /// For each token of a step.
    pub per_token_s: f64,
    /// As if h rows more went through each of them.
    pub half_s: f64,
    /// How many times as long they take as uncut ones of any width: 1 + w_h / w, and w_h over the whole width.
    narrow: f64,
    half_of_width: f64,
}

impl Experts {
    pub const NONE: Self = Self { per_token_s: 0.0, half_s: 0.0, narrow: 1.0, half_of_width: 0.0 };

    /// `flops`: the peak of all GPUs, of which each has one of `slices`.
    pub fn new(model: &Model, profile: &ProfileValues, flops: f64, slices: u32) -> Self {
        // All mixture layers of a model have experts of the same width.
        let Some(width) = model.layers.iter().find_map(|group| width(&group.mlp)) else { return Self::NONE };
        let parameters = model.parameters();
        let best = flops * profile.expert_compute;
        let mut experts = Self {
            per_token_s: 2.0 * parameters.routed_active as f64 / best,
            half_s: 2.0 * profile.expert_half_tokens * parameters.routed as f64 / best,
            narrow: 1.0,
            half_of_width: profile.expert_half_width / width,
        };
        experts.cut(slices);
        experts
    }

    /// Cuts each into `slices`, 1 of a whole one; returns how many times as long they take as before.
    pub fn cut(&mut self, slices: u32) -> f64 {
        let narrow = 1.0 + self.half_of_width * f64::from(slices.max(1));
        let longer = narrow / self.narrow;
        self.narrow = narrow;
        self.per_token_s *= longer;
        self.half_s *= longer;
        longer
    }

    pub fn scaled(self, factor: f64) -> Self {
        Self { per_token_s: self.per_token_s * factor, half_s: self.half_s * factor, ..self }
    }
}

fn width(mlp: &Mlp) -> Option<f64> {
    match *mlp {
        Mlp::Dense { .. } => None,
        Mlp::Moe { expert_intermediate, .. } => Some(f64::from(expert_intermediate)),
    }
}

/// Seconds to read the experts that n tokens touch, for n = 0, 1, ... until practically all are; `all_s`
/// reads every expert of the model, `correlation` is phi.
pub(super) fn experts_memory(
    model: &Model,
    all_s: f64,
    correlation: f64,
    max_num_batched_tokens: Tokens,
) -> Vec<f64> {
    let groups: Vec<(f64, f64)> =
        model.layers.iter().filter_map(|group| expert_share(group.count, &group.mlp)).collect();
    let all: f64 = groups.iter().map(|(parameters, _)| parameters).sum();
    if groups.is_empty() {
        return Vec::new();
    }
    let mut untouched = vec![1.0; groups.len()];
    let mut table = Vec::new();
    for tokens in 0..=max_num_batched_tokens.min(MOST_TOKENS) {
        let rest: f64 =
            groups.iter().zip(&untouched).map(|((parameters, _), share)| parameters * share).sum();
        let share = 1.0 - rest / all;
        table.push(all_s * share);
        if 1.0 - share < NEGLIGIBLE_SHARE {
            break;
        }
        let alike = 1.0 + (f64::from(tokens) - 1.0) * correlation;
        for ((_, picked), share) in groups.iter().zip(&mut untouched) {
            *share *= 1.0 - picked * (1.0 - correlation) / alike;
        }
    }
    table
}

/// Size of a group's routed experts in units of hidden size, and the chance k/E that a token picks a given one.
fn expert_share(layers: u32, mlp: &Mlp) -> Option<(f64, f64)> {
    match *mlp {
        Mlp::Dense { .. } => None,
        Mlp::Moe { experts, top_k, expert_intermediate, .. } => {
            let size = f64::from(layers) * f64::from(experts) * f64::from(expert_intermediate);
            Some((size, f64::from(top_k) / f64::from(experts)))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::experts_memory;
    use crate::catalog::Catalog;

    /// E[(1 - p)^n] over a beta distribution of mean q and parameters a, b with a + b = (1 - phi) / phi.
    fn untouched(q: f64, phi: f64, tokens: f64) -> f64 {
        let sum = (1.0 - phi) / phi;
        let b = sum * (1.0 - q);
        (libm::lgamma(b + tokens) - libm::lgamma(b) + libm::lgamma(sum) - libm::lgamma(sum + tokens)).exp()
    }

    #[test]
    fn tokens_that_pick_alike_touch_fewer_experts() {
        let (model, _) = Catalog::new(None).model("gpt-oss-120b", Path::new(".")).expect("in the catalog");
        let q = 4.0 / 128.0;
        let table = |phi| experts_memory(&model, 1.0, phi, 4096);
        let close = |found: f64, right: f64| assert!((found / right - 1.0).abs() < 1e-9, "{found} {right}");
        for phi in [0.005, 0.05, 0.3] {
            let table = table(phi);
            assert_eq!(table.len(), 4097);
            for tokens in [1, 2, 7, 64, 513, 4096] {
                close(table[tokens], 1.0 - untouched(q, phi, tokens as f64));
            }
            // Both of two tokens pick an expert with the chance q^2 + phi q (1 - q).
            close(table[2], 2.0 * q - (q * q + phi * q * (1.0 - q)));
        }
        for tokens in [1, 2, 7, 64, 513] {
            close(table(0.0)[tokens], 1.0 - (1.0 - q).powi(tokens as i32));
        }
        // Random picks leave nothing soon.
        assert!(table(0.0).len() < 1000);
    }
}
