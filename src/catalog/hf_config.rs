//! Hugging Face `config.json` to a [`Model`].
//!
//! Families name the same things differently; each accessor lists the names in use. A family whose
//! layers this model of a transformer cannot express is refused by name rather than half understood.

use serde_json::Value;

use super::model::{Attention, LayerGroup, Mlp, Model};
use super::{CatalogError, Dtype};

/// Families whose layers are not expressible, and why.
const UNSUPPORTED: &[(&str, &str)] = &[
    ("nemotron-nas", "its layers differ one by one"),
    ("nemotron_h", "Mamba layers"),
    ("deepseek_v4", "compressed sparse attention"),
    ("gemma4", "two head sizes that share keys and values"),
    ("gemma4_text", "two head sizes that share keys and values"),
    ("gptj", "ungated feed-forward layers"),
    ("gpt2", "ungated feed-forward layers"),
    ("opt", "ungated feed-forward layers"),
    ("falcon", "ungated feed-forward layers"),
    ("mamba", "Mamba layers"),
    ("mamba2", "Mamba layers"),
];

/// Reads the text of a `config.json`. `name` is what the model will be called, `path` names the file in
/// errors.
///
/// # Errors
/// Not JSON, a missing key (named), a value out of range, or a family that cannot be expressed.
pub(super) fn read(name: &str, path: &str, text: &str) -> Result<Model, CatalogError> {
    let invalid = |message: String| CatalogError::Invalid { path: path.to_owned(), message };
    let root: Value = serde_json::from_str(text).map_err(|error| invalid(format!("is not JSON: {error}")))?;
    let model = Config::new(&root).model(name).map_err(invalid)?;
    model.check().map_err(invalid)?;
    Ok(model)
}

/// A config: the part about text, falling back to the whole.
struct Config<'a> {
    text: &'a Value,
    root: &'a Value,
}

type Result_<T> = Result<T, String>;

impl<'a> Config<'a> {
    fn new(root: &'a Value) -> Self {
        Self { text: root.get("text_config").unwrap_or(root), root }
    }

    /// The value of a key that is present and not null.
    fn get(&self, key: &str) -> Option<&'a Value> {
        [self.text, self.root].into_iter().find_map(|part| part.get(key).filter(|value| !value.is_null()))
    }

    /// The first of `keys` that is present, as a number.
    fn optional(&self, keys: &[&str]) -> Result_<Option<u32>> {
        let Some((key, value)) = keys.iter().find_map(|key| Some((key, self.get(key)?))) else {
            return Ok(None);
        };
        // A negative one is no 0.
        let is_count = |n: &f64| n.fract() == 0.0 && (0.0..=f64::from(u32::MAX)).contains(n);
        let number = value.as_f64().filter(is_count).map(|n| n as u32);
        let most = u32::MAX;
        number
            .map(Some)
            .ok_or_else(|| format!("`{key}` is {value}; it must be a whole number from 0 to {most}"))
    }

    fn required(&self, keys: &[&str]) -> Result_<u32> {
        self.optional(keys)?.ok_or_else(|| format!("the key `{}` is missing", keys.join("` or `")))
    }

    fn flag(&self, key: &str) -> Option<bool> {
        self.get(key)?.as_bool()
    }

    fn model_type(&self) -> &'a str {
        let part = self.text.get("model_type").or_else(|| self.root.get("model_type"));
        part.and_then(Value::as_str).unwrap_or("")
    }

    fn is_gemma(&self) -> bool {
        self.model_type().starts_with("gemma")
    }

    fn model(&self, name: &str) -> Result_<Model> {
        let family = self.model_type();
        if let Some((_, why)) = UNSUPPORTED.iter().find(|(unsupported, _)| *unsupported == family) {
            return Err(format!("models of type `{family}` are not supported ({why})"));
        }
        // Gemma 3's configs leave these to the class defaults.
        let positions = self.optional(&["max_position_embeddings"])?;
        let positions = positions.or_else(|| family.starts_with("gemma3").then_some(131_072));
        let positions = positions.ok_or("the key `max_position_embeddings` is missing")?;
        let layers = self.layers(positions)?;
        let (dtype, keeps_attention) = self.quantisation()?;
        let has_experts = layers.iter().any(|group| matches!(group.mlp, Mlp::Moe { .. }));
        let id = self.root.get("_name_or_path").and_then(Value::as_str).filter(|id| id.contains('/'));
        Ok(Model {
            name: name.to_owned(),
            hf_id: id.unwrap_or(name).to_owned(),
            hidden_size: self.required(&["hidden_size"])?,
            vocab_size: self.required(&["vocab_size"])?,
            tied_embeddings: self.flag("tie_word_embeddings").unwrap_or_else(|| self.is_gemma()),
            max_position_embeddings: positions,
            layers,
            native_weight_dtype: dtype,
            only_experts_quantised: has_experts && (keeps_attention || dtype == Dtype::Mxfp4),
            // DeepSeek's and GLM's name; Qwen3-Next's and Qwen3.5's.
            mtp_layers: self.optional(&["num_nextn_predict_layers", "mtp_num_hidden_layers"])?.unwrap_or(0),
            source: "config.json".to_owned(),
        })
    }

    /// Layers, equal ones grouped in order of first appearance.
    fn layers(&self, positions: u32) -> Result_<Vec<LayerGroup>> {
        let count = self.required(&["num_hidden_layers"])?;
        if count > 1 << 14 {
            return Err(format!("`num_hidden_layers` is {count}; no model has that many"));
        }
        let mut groups: Vec<LayerGroup> = Vec::new();
        for layer in 0..count {
            let (attention, mlp) = (self.attention(layer, positions)?, self.mlp(layer)?);
            match groups.iter_mut().find(|group| group.attention == attention && group.mlp == mlp) {
                Some(group) => group.count += 1,
                None => groups.push(LayerGroup { count: 1, attention, mlp }),
            }
        }
        Ok(groups)
    }

    fn attention(&self, layer: u32, positions: u32) -> Result_<Attention> {
        if self.is_linear(layer)? {
            return Ok(Attention::Linear {
                key_heads: self.required(&["linear_num_key_heads"])?,
                value_heads: self.required(&["linear_num_value_heads"])?,
                key_head_dim: self.required(&["linear_key_head_dim"])?,
                value_head_dim: self.required(&["linear_value_head_dim"])?,
                conv_kernel: self.required(&["linear_conv_kernel_dim"])?,
            });
        }
        let heads = self.required(&["num_attention_heads"])?;
        if let Some(kv_lora_rank) = self.optional(&["kv_lora_rank"])? {
            return Ok(Attention::Latent {
                heads,
                q_lora_rank: self.optional(&["q_lora_rank"])?,
                kv_lora_rank,
                qk_nope_head_dim: self.required(&["qk_nope_head_dim"])?,
                qk_rope_head_dim: self.required(&["qk_rope_head_dim"])?,
                v_head_dim: self.required(&["v_head_dim"])?,
            });
        }
        let head_dim = match self.optional(&["head_dim"])? {
            Some(head_dim) => head_dim,
            None if self.is_gemma() => 256,
            None => self.required(&["hidden_size"])? / heads.max(1),
        };
        let gate = self.flag("attn_output_gate").or_else(|| self.flag("attention_output_gate"));
        Ok(Attention::Softmax {
            heads,
            kv_heads: self.optional(&["num_key_value_heads"])?.unwrap_or(heads),
            head_dim,
            window: self.window(layer)?.filter(|window| *window < positions),
            output_gate: gate.unwrap_or_else(|| self.model_type().starts_with("qwen3_next")),
        })
    }

    /// The kind of `layer` if the config lists one per layer.
    fn layer_type(&self, layer: u32) -> Option<&'a str> {
        self.get("layer_types")?.get(layer as usize)?.as_str()
    }

    fn is_linear(&self, layer: u32) -> Result_<bool> {
        if let Some(kind) = self.layer_type(layer) {
            return Ok(kind == "linear_attention");
        }
        if self.get("linear_num_value_heads").is_none() {
            return Ok(false);
        }
        let interval = self.required(&["full_attention_interval"])?.max(1);
        Ok(!(layer + 1).is_multiple_of(interval))
    }

    fn window(&self, layer: u32) -> Result_<Option<u32>> {
        let family = self.model_type();
        if family.starts_with("llama4") {
            // Chunked local attention on three layers of four: at most a chunk is seen and kept.
            let local = !(layer + 1).is_multiple_of(4);
            return Ok(self.optional(&["attention_chunk_size"])?.filter(|_| local));
        }
        let Some(window) = self.optional(&["sliding_window"])?.filter(|window| *window > 0) else {
            return Ok(None);
        };
        if self.flag("use_sliding_window") == Some(false) {
            return Ok(None);
        }
        let slides = match self.layer_type(layer) {
            Some(kind) => kind == "sliding_attention",
            None if family.starts_with("gemma3") => {
                let pattern = self.optional(&["sliding_window_pattern"])?.unwrap_or(6).max(1);
                !(layer + 1).is_multiple_of(pattern)
            }
            None if matches!(family, "gemma2" | "gpt_oss") => layer.is_multiple_of(2),
            None => true,
        };
        Ok(slides.then_some(window))
    }

    fn mlp(&self, layer: u32) -> Result_<Mlp> {
        let experts = self.optional(&["num_experts", "num_local_experts", "n_routed_experts"])?;
        let experts = experts.filter(|experts| *experts > 0);
        let Some(experts) = experts.filter(|_| self.is_moe(layer)) else {
            let dense = ["dense_intermediate_size", "intermediate_size_mlp", "intermediate_size"];
            return Ok(Mlp::Dense { intermediate: self.required(&dense)? });
        };
        let expert_intermediate = self.required(&["moe_intermediate_size", "intermediate_size"])?;
        let shared = match self.optional(&["shared_expert_intermediate_size", "shared_intermediate_size"])? {
            Some(shared) => shared,
            None if self.model_type().starts_with("llama4") => expert_intermediate,
            None => self.optional(&["n_shared_experts"])?.unwrap_or(0).saturating_mul(expert_intermediate),
        };
        Ok(Mlp::Moe {
            experts,
            top_k: self.required(&["num_experts_per_tok", "experts_per_token", "top_k_experts"])?,
            expert_intermediate,
            shared_intermediate: shared,
        })
    }

    /// Whether a layer of a mixture-of-experts model has experts.
    fn is_moe(&self, layer: u32) -> bool {
        let number = |key| self.get(key).and_then(Value::as_u64);
        let first_dense = number("first_k_dense_replace").unwrap_or(0);
        let listed_dense = self.get("mlp_only_layers").and_then(Value::as_array);
        if listed_dense.is_some_and(|dense| dense.iter().any(|n| n.as_u64() == Some(u64::from(layer)))) {
            return false;
        }
        if let Some(listed) = self.get("moe_layer_freq").and_then(Value::as_array) {
            return listed.get(layer as usize).and_then(Value::as_u64) != Some(0);
        }
        // Every n-th layer: Qwen and Llama 4 count from 1, DeepSeek from 0.
        let from_one = number("decoder_sparse_step").or_else(|| number("interleave_moe_layer_step"));
        let every = from_one.unwrap_or(1).max(1);
        let from_zero = number("moe_layer_freq").unwrap_or(1).max(1);
        u64::from(layer) >= first_dense
            && u64::from(layer + 1).is_multiple_of(every)
            && u64::from(layer).is_multiple_of(from_zero)
    }

    /// The checkpoint's weight format, and whether attention stays bf16 in it.
    fn quantisation(&self) -> Result_<(Dtype, bool)> {
        let Some(config) = self.get("quantization_config") else {
            return Ok((Dtype::Bf16, false));
        };
        let text = |key: &str| config.get(key).and_then(Value::as_str).unwrap_or("").to_lowercase();
        let kept =
            ["modules_to_not_convert", "ignore"].into_iter().filter_map(|key| config.get(key)?.as_array());
        let keeps_attention =
            kept.flatten().filter_map(Value::as_str).any(|module| module.contains("self_attn"));
        let scheme = if text("quant_algo").is_empty() { text("quant_method") } else { text("quant_algo") };
        let dtype = match scheme.as_str() {
            "fp8" | "fbgemm_fp8" => Some(Dtype::Fp8),
            "mxfp4" => Some(Dtype::Mxfp4),
            "nvfp4" => Some(Dtype::Nvfp4),
            "awq" | "gptq" => integer(config.get("bits").and_then(Value::as_u64).unwrap_or(4)),
            _ => config.get("config_groups").and_then(group_format),
        };
        let dtype = dtype.ok_or_else(|| format!("the quantisation `{scheme}` is not known"))?;
        Ok((dtype, keeps_attention))
    }
}

const fn integer(bits: u64) -> Option<Dtype> {
    match bits {
        4 => Some(Dtype::Int4),
        8 => Some(Dtype::Int8),
        _ => None,
    }
}

/// The weight format of the first group of a compressed-tensors or ModelOpt config.
fn group_format(groups: &Value) -> Option<Dtype> {
    let weights = groups.as_object()?.values().next()?.get("weights")?;
    let bits = weights.get("num_bits")?.as_u64()?;
    match (weights.get("type")?.as_str()?, bits) {
        ("float", 8) => Some(Dtype::Fp8),
        ("float", 4) => Some(Dtype::Nvfp4),
        ("int", bits) => integer(bits),
        _ => None,
    }
}
