//! How long it takes to read the experts that a step touches, by its tokens.
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

use crate::catalog::{Mlp, Model};
use crate::units::Tokens;

/// Untouched share of experts below which all count as touched.
const NEGLIGIBLE_SHARE: f64 = 1e-12;
/// Tokens beyond which no more experts are touched: such a step has been computing for long when it has read them,
/// and the last of them come slowly where picks are correlated.
const MOST_TOKENS: u32 = 65_536;

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
