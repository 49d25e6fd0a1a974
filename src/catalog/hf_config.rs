//! Hugging Face `config.json` to a [`Model`].
//!
//! Families name the same things differently; each accessor lists the names in use. A family whose
//! layers this model of a transformer cannot express is refused by name rather than half understood.

use serde_json::Value;

use super::hf_keys::{Keys, Result_};
use super::model::{Attention, LayerGroup, Mlp, Model};
use super::model_file::{LARGEST_VOCABULARY, MOST, MOST_LAYERS, WIDEST};
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
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let root: Value = serde_json::from_str(text).map_err(|error| invalid(not_json(&error)))?;
    let model = Keys::new(&root, text).and_then(|keys| Config(keys).model(name)).map_err(invalid)?;
    model.check().map_err(|wrong| invalid(wrong.to_string()))?;
    Ok(model)
}

fn not_json(error: &serde_json::Error) -> String {
    if error.is_eof() {
        let (line, column) = (error.line(), error.column());
        return format!(
            "line {line}, column {column}: it ends in the middle of its JSON; expected the rest of it"
        );
    }
    let text = error.to_string();
    // It repeats the position at its end.
    let what = text.rfind(" at line ").map_or(text.as_str(), |end| &text[..end]);
    format!("line {}, column {}: not JSON: {what}", error.line(), error.column())
}

struct Config<'a>(Keys<'a>);

/// Kinds of layers that `layer_types` may name; chunked ones are told by the family.
const LAYER_TYPES: [&str; 4] =
    ["full_attention", "sliding_attention", "chunked_attention", "linear_attention"];

impl<'a> Config<'a> {
    fn model_type(&self) -> &'a str {
        self.0.get("model_type").and_then(Value::as_str).unwrap_or("")
    }

    fn is_gemma(&self) -> bool {
        self.model_type().starts_with("gemma")
    }

    fn model(&self, name: &str) -> Result_<Model> {
        let keys = &self.0;
        let family = keys.text("model_type")?.unwrap_or("");
        if let Some((_, why)) = UNSUPPORTED.iter().find(|(unsupported, _)| *unsupported == family) {
            let message = format!("models of type `{family}` are not supported ({why})");
            return Err(keys.at("model_type", &message));
        }
        // Gemma 3's configs leave these to the class defaults.
        let of_class = family.starts_with("gemma3").then_some(131_072);
        let positions = match (keys.optional(&["max_position_embeddings"], u32::MAX)?, of_class) {
            (Some(positions), _) | (None, Some(positions)) => positions,
            (None, None) => keys.required(&["max_position_embeddings"], u32::MAX)?,
        };
        let layers = self.layers(positions)?;
        let (dtype, keeps_attention) = self.quantisation()?;
        let has_experts = layers.iter().any(|group| matches!(group.mlp, Mlp::Moe { .. }));
        let id = keys.of_root("_name_or_path").and_then(Value::as_str).filter(|id| id.contains('/'));
        // DeepSeek's and GLM's name; Qwen3-Next's and Qwen3.5's.
        let mtp_layers = keys.count(&["num_nextn_predict_layers", "mtp_num_hidden_layers"], MOST_LAYERS)?;
        Ok(Model {
            name: name.to_owned(),
            hf_id: id.unwrap_or(name).to_owned(),
            hidden_size: keys.required(&["hidden_size"], WIDEST)?,
            vocab_size: keys.required(&["vocab_size"], LARGEST_VOCABULARY)?,
            tied_embeddings: keys.flag("tie_word_embeddings")?.unwrap_or_else(|| self.is_gemma()),
            max_position_embeddings: positions,
            layers,
            native_weight_dtype: dtype,
            only_experts_quantised: has_experts && (keeps_attention || dtype == Dtype::Mxfp4),
            mtp_layers: mtp_layers.unwrap_or(0),
            source: "config.json".to_owned(),
        })
    }

    /// Layers, equal ones grouped in order of first appearance.
    fn layers(&self, positions: u32) -> Result_<Vec<LayerGroup>> {
        let count = self.0.required(&["num_hidden_layers"], MOST_LAYERS)?;
        let kinds = self.layer_types(count)?;
        let mut groups: Vec<LayerGroup> = Vec::new();
        for layer in 0..count {
            let kind = kinds.as_ref().and_then(|kinds| kinds.get(layer as usize).copied());
            let (attention, mlp) = (self.attention(layer, kind, positions)?, self.mlp(layer, count)?);
            match groups.iter_mut().find(|group| group.attention == attention && group.mlp == mlp) {
                Some(group) => group.count += 1,
                None => groups.push(LayerGroup { count: 1, attention, mlp }),
            }
        }
        Ok(groups)
    }

    /// The kinds of the layers, if the config lists one for each.
    fn layer_types(&self, count: u32) -> Result_<Option<Vec<&'a str>>> {
        let expected = format!("{count} of {}, one for each of `num_hidden_layers`", LAYER_TYPES.join(", "));
        let known = |kind: &'a Value| kind.as_str().filter(|kind| LAYER_TYPES.contains(kind));
        let kinds = self.0.list("layer_types", &expected, known)?;
        match kinds {
            Some(kinds) if kinds.len() != count as usize => Err(self.0.wrong("layer_types", &expected)),
            kinds => Ok(kinds),
        }
    }

    fn attention(&self, layer: u32, kind: Option<&str>, positions: u32) -> Result_<Attention> {
        let keys = &self.0;
        if self.is_linear(layer, kind)? {
            return Ok(Attention::Linear {
                key_heads: keys.required(&["linear_num_key_heads"], MOST)?,
                value_heads: keys.required(&["linear_num_value_heads"], MOST)?,
                key_head_dim: keys.required(&["linear_key_head_dim"], MOST)?,
                value_head_dim: keys.required(&["linear_value_head_dim"], MOST)?,
                conv_kernel: keys.required(&["linear_conv_kernel_dim"], MOST)?,
            });
        }
        let heads = keys.required(&["num_attention_heads"], MOST)?;
        if let Some(kv_lora_rank) = keys.optional(&["kv_lora_rank"], MOST)? {
            return Ok(Attention::Latent {
                heads,
                q_lora_rank: keys.optional(&["q_lora_rank"], MOST)?,
                kv_lora_rank,
                qk_nope_head_dim: keys.required(&["qk_nope_head_dim"], MOST)?,
                qk_rope_head_dim: keys.required(&["qk_rope_head_dim"], MOST)?,
                v_head_dim: keys.required(&["v_head_dim"], MOST)?,
            });
        }
        let gate = match keys.flag("attn_output_gate")? {
            Some(gate) => Some(gate),
            None => keys.flag("attention_output_gate")?,
        };
        Ok(Attention::Softmax {
            heads,
            kv_heads: self.kv_heads(heads)?,
            head_dim: self.head_dim(heads)?,
            window: self.window(layer, kind)?.filter(|window| *window < positions),
            output_gate: gate.unwrap_or_else(|| self.model_type().starts_with("qwen3_next")),
        })
    }

    fn kv_heads(&self, heads: u32) -> Result_<u32> {
        let kv_heads = self.0.optional(&["num_key_value_heads"], MOST)?.unwrap_or(heads);
        if !heads.is_multiple_of(kv_heads) {
            let expected = format!("a divisor of `num_attention_heads`, which is {heads}");
            return Err(self.0.wrong("num_key_value_heads", &expected));
        }
        Ok(kv_heads)
    }

    fn head_dim(&self, heads: u32) -> Result_<u32> {
        if let Some(head_dim) = self.0.optional(&["head_dim"], MOST)? {
            return Ok(head_dim);
        }
        if self.is_gemma() {
            return Ok(256);
        }
        let hidden = self.0.required(&["hidden_size"], WIDEST)?;
        if !hidden.is_multiple_of(heads) {
            let expected = format!("a divisor of `hidden_size`, which is {hidden}, or a key `head_dim`");
            return Err(self.0.wrong("num_attention_heads", &expected));
        }
        Ok(hidden / heads)
    }

    fn is_linear(&self, layer: u32, kind: Option<&str>) -> Result_<bool> {
        if let Some(kind) = kind {
            return Ok(kind == "linear_attention");
        }
        if self.0.get("linear_num_value_heads").is_none() {
            return Ok(false);
        }
        let interval = self.0.required(&["full_attention_interval"], MOST_LAYERS)?;
        Ok(!(layer + 1).is_multiple_of(interval))
    }

    fn window(&self, layer: u32, kind: Option<&str>) -> Result_<Option<u32>> {
        let (keys, family) = (&self.0, self.model_type());
        if family.starts_with("llama4") {
            // Chunked local attention on three layers of four: at most a chunk is seen and kept.
            let local = !(layer + 1).is_multiple_of(4);
            return Ok(keys.optional(&["attention_chunk_size"], u32::MAX)?.filter(|_| local));
        }
        let Some(window) = keys.count(&["sliding_window"], u32::MAX)?.filter(|window| *window > 0) else {
            return Ok(None);
        };
        if keys.flag("use_sliding_window")? == Some(false) {
            return Ok(None);
        }
        let slides = match kind {
            Some(kind) => kind == "sliding_attention",
            None if family.starts_with("gemma3") => {
                let pattern = keys.optional(&["sliding_window_pattern"], MOST_LAYERS)?.unwrap_or(6);
                !(layer + 1).is_multiple_of(pattern)
            }
            None if matches!(family, "gemma2" | "gpt_oss") => layer.is_multiple_of(2),
            None => true,
        };
        Ok(slides.then_some(window))
    }

    fn mlp(&self, layer: u32, layers: u32) -> Result_<Mlp> {
        let named = ["num_experts", "num_local_experts", "n_routed_experts"];
        match self.0.count(&named, MOST)? {
            Some(experts) if experts > 0 && self.is_moe(layer, layers)? => self.experts(experts),
            _ => {
                let dense = ["dense_intermediate_size", "intermediate_size_mlp", "intermediate_size"];
                Ok(Mlp::Dense { intermediate: self.0.required(&dense, WIDEST)? })
            }
        }
    }

    fn experts(&self, experts: u32) -> Result_<Mlp> {
        let keys = &self.0;
        let width = keys.required(&["moe_intermediate_size", "intermediate_size"], WIDEST)?;
        let shared =
            match keys.count(&["shared_expert_intermediate_size", "shared_intermediate_size"], WIDEST)? {
                Some(shared) => shared,
                None if self.model_type().starts_with("llama4") => width,
                None => keys.count(&["n_shared_experts"], WIDEST / width)?.unwrap_or(0) * width,
            };
        let named = ["num_experts_per_tok", "experts_per_token", "top_k_experts"];
        let (key, top_k) = keys.named(&named, MOST)?;
        if top_k > experts {
            return Err(keys.wrong(key, &format!("at most {experts}, the experts of a layer")));
        }
        Ok(Mlp::Moe { experts, top_k, expert_intermediate: width, shared_intermediate: shared })
    }

    /// Whether a layer of a mixture-of-experts model has experts.
    fn is_moe(&self, layer: u32, layers: u32) -> Result_<bool> {
        let keys = &self.0;
        let listed_dense = keys.list("mlp_only_layers", "a list of layers, counted from 0", Value::as_u64)?;
        if listed_dense.is_some_and(|dense| dense.contains(&u64::from(layer))) {
            return Ok(false);
        }
        if self.0.get("moe_layer_freq").is_some_and(Value::is_array) {
            let expected = format!("{layers} of 0 and 1, one for each of `num_hidden_layers`");
            let zero_or_one = |item: &Value| item.as_u64().filter(|item| *item < 2);
            let listed = keys.list("moe_layer_freq", &expected, zero_or_one)?.unwrap_or_default();
            let one = listed.get(layer as usize).filter(|_| listed.len() == layers as usize);
            return one.map(|one| *one == 1).ok_or_else(|| keys.wrong("moe_layer_freq", &expected));
        }
        let first_dense = keys.count(&["first_k_dense_replace"], MOST_LAYERS)?.unwrap_or(0);
        // Every n-th layer: Qwen and Llama 4 count from 1, DeepSeek from 0.
        let from_one = keys.optional(&["decoder_sparse_step", "interleave_moe_layer_step"], MOST_LAYERS)?;
        let from_zero = keys.optional(&["moe_layer_freq"], MOST_LAYERS)?;
        Ok(layer >= first_dense
            && (layer + 1).is_multiple_of(from_one.unwrap_or(1))
            && layer.is_multiple_of(from_zero.unwrap_or(1)))
    }

    /// The checkpoint's weight format, and whether attention stays bf16 in it.
    fn quantisation(&self) -> Result_<(Dtype, bool)> {
        const KEY: &str = "quantization_config";
        let Some(config) = self.0.get(KEY) else {
            return Ok((Dtype::Bf16, false));
        };
        if !config.is_object() {
            return Err(self.0.wrong(KEY, "a table with `quant_method`"));
        }
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
            "awq" | "gptq" => config.get("bits").map_or(Some(4), Value::as_u64).and_then(integer),
            _ => config.get("config_groups").and_then(group_format),
        };
        let unknown = || {
            let message = format!(
                "the quantisation `{scheme}` of `{KEY}` is not known; expected fp8, fbgemm_fp8, mxfp4, nvfp4, awq or gptq \
                 with 4 or 8 `bits`, or `config_groups` of such weights"
            );
            self.0.at(KEY, &message)
        };
        let dtype = dtype.ok_or_else(unknown)?;
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
