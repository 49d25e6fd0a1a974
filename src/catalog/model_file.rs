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
    let table: ModelFile = file.parse()?;
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
    model.check().map_err(|message| file.invalid(&message))?;
    Ok((model, aliases))
}

/// Bounds well above any real model; together they keep every product of sizes within u64.
const MOST_LAYERS: u64 = 1 << 10;
const LARGEST_VOCABULARY: u32 = 1 << 20;
const WIDEST: u32 = 1 << 17;
const MOST: u32 = 1 << 16;

impl Model {
    /// What a reader must ensure before anything is computed from the model: sizes within bounds, at
    /// most as many experts per token as there are. The error names the key.
    pub(super) fn check(&self) -> Result<(), String> {
        within("hidden_size", self.hidden_size, WIDEST)?;
        within("vocab_size", self.vocab_size, LARGEST_VOCABULARY)?;
        within("max_position_embeddings", self.max_position_embeddings, Tokens::MAX)?;
        let layers: u64 = self.layers.iter().map(|group| u64::from(group.count)).sum();
        if !(1..=MOST_LAYERS).contains(&layers) {
            return Err(format!("it has {layers} layers; there must be 1 to {MOST_LAYERS}"));
        }
        for group in &self.layers {
            for (key, value, largest) in group.sizes() {
                within(key, value, largest)?;
            }
            if let Mlp::Moe { experts, top_k, .. } = group.mlp
                && top_k > experts
            {
                return Err(format!("`top_k` is {top_k}, but there are only {experts} experts"));
            }
        }
        Ok(())
    }
}

fn within(key: &str, value: u32, largest: u32) -> Result<(), String> {
    if (1..=largest).contains(&value) {
        return Ok(());
    }
    Err(format!("`{key}` is {value}; it must lie in 1 to {largest}"))
}

impl LayerGroup {
    /// Every size of a layer with its name and bound.
    fn sizes(&self) -> Vec<(&'static str, u32, u32)> {
        let mut sizes = match self.attention {
            Attention::Softmax { heads, kv_heads, head_dim, window, .. } => vec![
                ("heads", heads, MOST),
                ("kv_heads", kv_heads, MOST),
                ("head_dim", head_dim, MOST),
                ("window", window.unwrap_or(1), Tokens::MAX),
            ],
            Attention::Latent {
                heads,
                q_lora_rank,
                kv_lora_rank,
                qk_nope_head_dim,
                qk_rope_head_dim,
                v_head_dim,
            } => vec![
                ("heads", heads, MOST),
                ("q_lora_rank", q_lora_rank.unwrap_or(1), MOST),
                ("kv_lora_rank", kv_lora_rank, MOST),
                ("qk_nope_head_dim", qk_nope_head_dim, MOST),
                ("qk_rope_head_dim", qk_rope_head_dim, MOST),
                ("v_head_dim", v_head_dim, MOST),
            ],
            Attention::Linear { key_heads, value_heads, key_head_dim, value_head_dim, conv_kernel } => vec![
                ("key_heads", key_heads, MOST),
                ("value_heads", value_heads, MOST),
                ("key_head_dim", key_head_dim, MOST),
                ("value_head_dim", value_head_dim, MOST),
                ("conv_kernel", conv_kernel, MOST),
            ],
        };
        match self.mlp {
            Mlp::Dense { intermediate } => sizes.push(("intermediate", intermediate, WIDEST)),
            Mlp::Moe { experts, top_k, expert_intermediate, shared_intermediate } => sizes.extend([
                ("experts", experts, MOST),
                ("top_k", top_k, MOST),
                ("expert_intermediate", expert_intermediate, WIDEST),
                // None is fine.
                ("shared_intermediate", shared_intermediate.max(1), WIDEST),
            ]),
        }
        sizes
    }
}
