//! A model.

use std::path::Path;

use super::Page;
use crate::catalog::{Attention, Catalog, CatalogError, Dtype, LayerGroup, Mlp};
use crate::report::format::{count, number};

pub(super) fn describe(catalog: &Catalog, name: &str) -> Result<String, CatalogError> {
    let (model, _) = catalog.model(name, Path::new(""))?;
    let parameters = model.parameters();
    let mut page = Page::new(format!("{} ({})", model.name, model.hf_id));
    let billions = |parameters: u64| format!("{} billion", number(parameters as f64 / 1e9));
    page.line("parameters", format!("{} ({})", billions(parameters.total()), count(parameters.total())));
    if parameters.active() != parameters.total() {
        page.line("active a token", billions(parameters.active()));
    }
    page.line("hidden size", count(u64::from(model.hidden_size)));
    page.line("vocabulary", count(u64::from(model.vocab_size)));
    page.line("context", format!("{} tokens", count(u64::from(model.max_position_embeddings))));
    page.line("weights", format!("published as {}", model.native_weight_dtype.name()));
    page.line("KV per token", format!("{} bytes (bf16)", count(model.kv_bytes_per_token(Dtype::Bf16))));
    for group in &model.layers {
        page.line("layers", layers(group));
    }
    page.line("source", &model.source);
    Ok(page.text())
}

fn layers(group: &LayerGroup) -> String {
    let attention = match &group.attention {
        Attention::Softmax { heads, kv_heads, head_dim, window, .. } => {
            let window =
                window.map_or(String::new(), |window| format!(", window {}", count(u64::from(window))));
            format!("attention with {heads} heads, {kv_heads} KV heads of {head_dim}{window}")
        }
        Attention::Latent { heads, kv_lora_rank, qk_rope_head_dim, .. } => {
            format!("latent attention with {heads} heads, rank {kv_lora_rank} + {qk_rope_head_dim}")
        }
        Attention::Linear { key_heads, value_heads, .. } => {
            format!("linear attention with {key_heads} key and {value_heads} value heads")
        }
    };
    let mlp = match &group.mlp {
        Mlp::Dense { intermediate } => format!("dense MLP of {}", count(u64::from(*intermediate))),
        Mlp::Moe { experts, top_k, expert_intermediate, shared_intermediate } => {
            let shared = if *shared_intermediate > 0 {
                format!(" and a shared one of {}", count(u64::from(*shared_intermediate)))
            } else {
                String::new()
            };
            format!("{top_k} of {experts} experts of {}{shared}", count(u64::from(*expert_intermediate)))
        }
    };
    format!("{} x {attention}; {mlp}", group.count)
}
