//! How long it takes to read the experts that a step touches, by its tokens.

use crate::catalog::{Mlp, Model};
use crate::units::Tokens;

/// Untouched share of experts below which all count as touched.
const NEGLIGIBLE_SHARE: f64 = 1e-12;

/// Seconds to read the experts that n tokens touch, for n = 0, 1, ... until practically all are; `all_s`
/// reads every expert of the model.
pub(super) fn experts_memory(model: &Model, all_s: f64, max_num_batched_tokens: Tokens) -> Vec<f64> {
    let groups: Vec<(f64, f64)> =
        model.layers.iter().filter_map(|group| expert_share(group.count, &group.mlp)).collect();
    let all: f64 = groups.iter().map(|(parameters, _)| parameters).sum();
    if groups.is_empty() {
        return Vec::new();
    }
    let mut table = Vec::new();
    for tokens in 0..=max_num_batched_tokens {
        let untouched =
            |&(parameters, unpicked): &(f64, f64)| parameters * libm::pow(unpicked, f64::from(tokens));
        let share = 1.0 - groups.iter().map(untouched).sum::<f64>() / all;
        table.push(all_s * share);
        if 1.0 - share < NEGLIGIBLE_SHARE {
            break;
        }
    }
    table
}

/// Size of a group's routed experts in units of hidden size, and the chance 1 - k/E that a token does
/// not pick a given one.
fn expert_share(layers: u32, mlp: &Mlp) -> Option<(f64, f64)> {
    match *mlp {
        Mlp::Dense { .. } => None,
        Mlp::Moe { experts, top_k, expert_intermediate, .. } => {
            let size = f64::from(layers) * f64::from(experts) * f64::from(expert_intermediate);
            Some((size, 1.0 - f64::from(top_k) / f64::from(experts)))
        }
    }
}
