//! Reading a model's file, and the bounds within which sizes make sense.

use serde::Deserialize;

use super::files::File;
use super::{Attention, CatalogError, Dtype, LayerGroup, Mlp, Model};
use crate::units::Tokens;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ModelFile {
    hf_id: String,
    #[serde(default)]
    aliases: Vec<String>,
    hidden_size: u32,
    vocab_size: u32,
    tied_embeddings: bool,
    max_position_embeddings: Tokens,
    weight_dtype: Dtype,
    #[serde(default)]
    only_experts_quantised: bool,
    #[serde(default)]
    mtp_layers: u32,
    source: String,
    layers: Vec<LayerGroup>,
}

/// Reads a model's file: the model and its other names.
pub(super) fn read(name: &str, file: &File) -> Result<(Model, Vec<String>), CatalogError> {
    let table: ModelFile = file.parse("models")?;
    let mut aliases = table.aliases;
    aliases.push(table.hf_id.clone());
    let model = Model {
        name: name.to_owned(),
        hf_id: table.hf_id,
        hidden_size: table.hidden_size,
        vocab_size: table.vocab_size,
        tied_embeddings: table.tied_embeddings,
        max_position_embeddings: table.max_position_embeddings,
        layers: table.layers,
        native_weight_dtype: table.weight_dtype,
        only_experts_quantised: table.only_experts_quantised,
        mtp_layers: table.mtp_layers,
        source: table.source,
    };
    if model.layers.is_empty() {
        return Err(
            file.invalid("it has no layers; expected `layers = [{ count = .., attention = .., mlp = .. }]`")
        );
    }
    model.check().map_err(|wrong| file.impossible(&wrong.key, f64::from(wrong.value), &wrong.must))?;
    Ok((model, aliases))
}

/// Bounds well above any real model; together they keep every product of sizes within u64.
pub(super) const MOST_LAYERS: u32 = 1 << 10;
pub(super) const LARGEST_VOCABULARY: u32 = 1 << 20;
pub(super) const WIDEST: u32 = 1 << 17;
pub(super) const MOST: u32 = 1 << 16;

/// A size that no model has.
#[derive(Debug, thiserror::Error)]
#[error("`{key}` is {value}; {must}")]
pub(super) struct Wrong {
    /// Dotted, as in a model's file.
    pub key: String,
    pub value: u32,
    pub must: String,
}

impl Model {
    /// What a reader must ensure before anything is computed from the model: sizes within bounds, at
    /// most as many experts per token as there are.
    pub(super) fn check(&self) -> Result<(), Wrong> {
        within("hidden_size", self.hidden_size, WIDEST)?;
        within("vocab_size", self.vocab_size, LARGEST_VOCABULARY)?;
        within("max_position_embeddings", self.max_position_embeddings, Tokens::MAX)?;
        // None is fine.
        within("mtp_layers", self.mtp_layers.max(1), MOST_LAYERS)?;
        let mut left = MOST_LAYERS;
        for group in &self.layers {
            within("layers.count", group.count, left)?;
            left -= group.count;
            for (key, value, largest) in group.sizes() {
                within(&format!("layers.{key}"), value, largest)?;
            }
            if let Mlp::Moe { experts, top_k, .. } = group.mlp
                && top_k > experts
            {
                let must = format!("it must be at most {experts}, the experts there are");
                return Err(Wrong { key: "layers.mlp.moe.top_k".to_owned(), value: top_k, must });
            }
        }
        Ok(())
    }
}

fn within(key: &str, value: u32, largest: u32) -> Result<(), Wrong> {
    if (1..=largest).contains(&value) {
        return Ok(());
    }
    Err(Wrong { key: key.to_owned(), value, must: format!("it must lie in 1 to {largest}") })
}

impl LayerGroup {
    /// Every size of a layer with its key and bound.
    fn sizes(&self) -> Vec<(&'static str, u32, u32)> {
        let mut sizes = match self.attention {
            Attention::Softmax { heads, kv_heads, head_dim, window, .. } => vec![
                ("attention.softmax.heads", heads, MOST),
                ("attention.softmax.kv_heads", kv_heads, MOST),
                ("attention.softmax.head_dim", head_dim, MOST),
                ("attention.softmax.window", window.unwrap_or(1), Tokens::MAX),
            ],
            Attention::Latent {
                heads,
                q_lora_rank,
                kv_lora_rank,
                qk_nope_head_dim,
                qk_rope_head_dim,
                v_head_dim,
            } => vec![
                ("attention.latent.heads", heads, MOST),
                ("attention.latent.q_lora_rank", q_lora_rank.unwrap_or(1), MOST),
                ("attention.latent.kv_lora_rank", kv_lora_rank, MOST),
                ("attention.latent.qk_nope_head_dim", qk_nope_head_dim, MOST),
                ("attention.latent.qk_rope_head_dim", qk_rope_head_dim, MOST),
                ("attention.latent.v_head_dim", v_head_dim, MOST),
            ],
            Attention::Linear { key_heads, value_heads, key_head_dim, value_head_dim, conv_kernel } => vec![
                ("attention.linear.key_heads", key_heads, MOST),
                ("attention.linear.value_heads", value_heads, MOST),
                ("attention.linear.key_head_dim", key_head_dim, MOST),
                ("attention.linear.value_head_dim", value_head_dim, MOST),
                ("attention.linear.conv_kernel", conv_kernel, MOST),
            ],
        };
        match self.mlp {
            Mlp::Dense { intermediate } => sizes.push(("mlp.dense.intermediate", intermediate, WIDEST)),
            Mlp::Moe { experts, top_k, expert_intermediate, shared_intermediate } => sizes.extend([
                ("mlp.moe.experts", experts, MOST),
                ("mlp.moe.top_k", top_k, MOST),
                ("mlp.moe.expert_intermediate", expert_intermediate, WIDEST),
                // None is fine.
                ("mlp.moe.shared_intermediate", shared_intermediate.max(1), WIDEST),
            ]),
        }
        sizes
    }
}
