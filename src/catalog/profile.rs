//! Step-time parameters: fitted profiles, and the estimate used where nothing was fitted.

use std::collections::BTreeMap;

use serde::Deserialize;
use toml::de::DeValue;

use super::engine::{compare, is_up_to, is_version};
use super::files::File;
use super::hardware::{AllReduceRow, ExpertKernels, HALF_TOKENS, HALF_WIDTH, read_all_reduce};
use super::record::{self, FitRecord};
use super::{AllReduce, Attention, CatalogError, Dtype, Hardware, Mlp, Model};

/// Fitted step-time parameters for (GPU, engine, weight dtype).
#[derive(Clone, Debug)]
pub struct Profile {
    pub name: String,
    pub gpu: String,
    pub engine: String,
    /// Versions it was fitted on, in words.
    pub versions: String,
    /// The last version that it holds for; `None`: the newest too.
    pub until_version: Option<String>,
    /// Values per weight dtype. What [`super::Catalog::profile`] returns holds exactly one: those of
    /// the weight dtype asked for.
    pub values: Vec<ProfileValues>,
    pub standing: Standing,
    /// Held-out error in words, such as "TTFT mean 1.4 %, TPOT 2.3 %"; `None` if never scored.
    pub held_out_error: Option<String>,
    /// The same in per cent, by figure (`ttft_mean`); empty if never scored.
    pub held_out_error_percent: BTreeMap<String, f64>,
    /// Error on the published figures in `calibration/measured`, in words.
    pub published_error: Option<String>,
    pub source: String,
    /// How it was fitted; `None` for one that `knee calibrate` did not write.
    pub fit: Option<FitRecord>,
}

/// Models that share kernels: a mixture of experts spends its time in grouped matrix products; how many launches a prompt
/// takes depends on the attention.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ModelKind {
    Dense,
    MixtureOfExperts,
    /// With latent attention.
    LatentMixtureOfExperts,
    /// With layers of linear attention.
    HybridMixtureOfExperts,
}

impl ModelKind {
    pub const ALL: [Self; 4] =
        [Self::Dense, Self::MixtureOfExperts, Self::LatentMixtureOfExperts, Self::HybridMixtureOfExperts];

    /// As a profile writes it.
    #[must_use]
    pub const fn key(self) -> &'static str {
        match self {
            Self::Dense => "dense",
            Self::MixtureOfExperts => "mixture_of_experts",
            Self::LatentMixtureOfExperts => "latent_mixture_of_experts",
            Self::HybridMixtureOfExperts => "hybrid_mixture_of_experts",
        }
    }

    /// For people.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Dense => "dense models",
            Self::MixtureOfExperts => "mixtures of experts",
            Self::LatentMixtureOfExperts => "mixtures of experts with latent attention",
            Self::HybridMixtureOfExperts => "mixtures of experts with linear attention",
        }
    }

    #[must_use]
    pub const fn has_experts(self) -> bool {
        !matches!(self, Self::Dense)
    }
}

/// The weights that a profile is asked for; of a dtype alone: a dense model's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Weights {
    pub dtype: Dtype,
    pub kind: ModelKind,
}

impl From<Dtype> for Weights {
    fn from(dtype: Dtype) -> Self {
        Self { dtype, kind: ModelKind::Dense }
    }
}

impl Model {
    /// What a profile for this model is asked for when its weights are stored as `dtype`.
    #[must_use]
    pub fn weights(&self, dtype: Dtype) -> Weights {
        let has_experts = self.layers.iter().any(|group| matches!(group.mlp, Mlp::Moe { .. }));
        let attends = |is_it: fn(&Attention) -> bool| self.layers.iter().any(|group| is_it(&group.attention));
        let kind = if !has_experts {
            ModelKind::Dense
        } else if attends(|attention| matches!(attention, Attention::Linear { .. })) {
            ModelKind::HybridMixtureOfExperts
        } else if attends(|attention| matches!(attention, Attention::Latent { .. })) {
            ModelKind::LatentMixtureOfExperts
        } else {
            ModelKind::MixtureOfExperts
        };
        Weights { dtype, kind }
    }
}

/// How well founded a number is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Standing {
    Measured,
    /// Fitted to measurements, and scored on others.
    Calibrated,
    /// Fitted to measurements, and never scored on others: how far it is off elsewhere nobody knows.
    Fitted,
    Estimated,
}

impl Standing {
    /// As a profile writes it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Measured => "measured",
            Self::Calibrated => "calibrated",
            Self::Fitted => "fitted",
            Self::Estimated => "estimated",
        }
    }
}

/// The step-time parameters of physics: see [`crate::cost`].
#[derive(Clone, Debug, PartialEq)]
pub struct ProfileValues {
    pub weight_dtype: Dtype,
    /// The models they hold for; `None`: all.
    pub models: Option<ModelKind>,
    /// e: fraction of the dense peak of the weights' compute type ([`Hardware::compute_flops`]).
    pub compute: f64,
    /// b: fraction of memory bandwidth when streaming weights.
    pub memory: f64,
    /// The same of routed experts that are not cut: fraction of the same peak.
    pub expert_compute: f64,
    /// Rows an expert, and columns of its intermediate size on a GPU, at which they reach half of it.
    pub expert_half_tokens: f64,
    pub expert_half_width: f64,
    /// Rate of reading the experts that random routing would touch, over that of dense matrices; above 1 where
    /// routing prefers some experts, so that fewer are touched.
    pub expert_memory: f64,
    /// phi: correlation of two tokens' picking of an expert, in [0, 1); 0: every token picks at random.
    pub expert_correlation: f64,
    /// h: tokens at which GEMMs reach half of `compute`; 0: at any number alike, but for whole tiles.
    pub half_tokens: f64,
    /// b_kv and e_a.
    pub kv_memory: f64,
    /// b_kv of an fp8 cache.
    pub fp8_kv_memory: f64,
    pub attention_compute: f64,
    /// t0 = this x layers.
    pub overhead_per_layer_s: f64,
    /// Host time to launch a step with prompt tokens, per layer; 0 where graphs or long kernels hide it.
    pub prefill_launch_per_layer_s: f64,
    /// t_seq.
    pub per_sequence_s: f64,
    /// fr: HTTP and tokenising, before the engine sees the request.
    pub front_end_s: f64,
    /// Share of `compute` that a power-limited chip loses while it multiplies without a pause, in [0, 1):
    /// see [`crate::cost::Clock`].
    pub throttle: f64,
    /// Overrides of the hardware's all-reduce points; empty: the hardware's.
    pub all_reduce: Vec<AllReduce>,
    /// Standing of these values (a profile may mix).
    pub standing: Standing,
    pub note: String,
}

/// Bounds of what a profile may hold, well beyond any server: of a rate over another, a correlation, tokens, times
/// in the unit of their key, and the share of compute that is lost.
const RATES: (f64, f64) = (0.01, 100.0);
const CORRELATIONS: (f64, f64) = (0.0, 0.99);
const HOST_US: (f64, f64) = (0.0, 1e6);
const FRONT_END_MS: (f64, f64) = (0.0, 1e6);
const LOST: (f64, f64) = (0.0, 0.9);
/// Host constants where nothing was fitted: priors within the range of the servers that were (31 to 111 us
/// per layer, 8 to 52 us per sequence, 2 to 21 ms).
const PRIOR_OVERHEAD_PER_LAYER_S: f64 = 45e-6;
/// The same of layers with experts, which take more launches: fits found 24 to 145 us, 70 in the mean.
const PRIOR_OVERHEAD_OF_EXPERTS_S: f64 = 70e-6;
const PRIOR_PER_SEQUENCE_S: f64 = 12e-6;
const PRIOR_FRONT_END_S: f64 = 5e-3;
/// SGLang's: seven fits on H100, H200 and B200 found 11 to 158 ms, 78 in the median.
const PRIOR_FRONT_END_OF_SGLANG_S: f64 = 75e-3;
/// fp8 over bf16 GEMM efficiency where fp8 kernels were not measured: mean of H100 (.50/.84),
/// H200 (.55/.82), B200 (.45/.72) and L40S (.48/.65).
const FP8_OVER_BF16: f64 = 0.66;
/// Reading routed experts relative to dense matrices in profiles that do not say: gpt-oss-120b on H200.
const EXPERT_MEMORY: f64 = 0.78;
/// Correlation of two tokens' picks: fits to MiniMax-M2.5, gpt-oss-120b, DeepSeek-V3, Kimi-K2.5 and Qwen3.5-397B on H200,
/// B200 and B300 found 0.02 to 0.23 (docs/accuracy.md).
const EXPERT_CORRELATION: f64 = 0.1;
/// What is left of the compute of experts' kernels end to end, where rows are gathered, quantised and unevenly spread: fits
/// found 0.37 to 0.7 of the tables.
const EXPERTS_END_TO_END: f64 = 0.45;
/// Fused kernels of experts where a GPU has no table of them: compute over that of dense matrices, and rows and columns at
/// which they reach half of it. Means of the tables of A100, H100, H200, B200 and L40S. Rows are a share of those that take
/// as long to multiply as the weights to read: narrow weights, and chips that multiply slowly, need few (0.05 to 1.5, most
/// 0.15 to 0.45).
const EXPERTS_OVER_DENSE: f64 = 0.65;
const EXPERT_HALF_TOKENS_OVER_RIDGE: f64 = 0.3;
const EXPERT_HALF_WIDTH: f64 = 280.0;
/// The same of TensorRT-LLM, whose kernels of experts have no tables here and lose little in narrow slices: the fit to
/// Qwen3-235B on H100 has 0.72 of its dense matrices, that to DeepSeek-V3 on H200 0.36.
const OWN_EXPERTS_OVER_DENSE: f64 = 0.5;
/// Launching a step with prompt tokens where nothing was fitted, per layer: fits to dense models under vLLM and
/// TensorRT-LLM on H100, H200 and B200 found 0.5 to 1.0 ms.
const PRIOR_PREFILL_LAUNCH_PER_LAYER_S: f64 = 500e-6;
/// Share of the fp8 efficiency that fp4 units reach of their doubled peak: a guess.
const FP4_OVER_FP8: f64 = 0.75;

impl Hardware {
    /// F: dense peak FLOP/s of the type that weights stored as `dtype` are computed in. fp8 and nvfp4
    /// compute in their own type where the chip has the units; every other format is dequantised and
    /// computed in bf16.
    #[must_use]
    pub fn compute_flops(&self, dtype: Dtype) -> f64 {
        let own = match dtype {
            Dtype::Fp8 => self.fp8_flops,
            Dtype::Nvfp4 => self.fp4_flops,
            Dtype::Bf16 | Dtype::Int8 | Dtype::Mxfp4 | Dtype::Int4 => None,
        };
        own.unwrap_or(self.bf16_flops)
    }

    /// Kernel values, derated to what is sustained, with prior host constants: what an estimated profile holds.
    #[must_use]
    pub fn estimated_values(&self, engine: &str, weights: impl Into<Weights>) -> ProfileValues {
        let Weights { dtype, kind } = weights.into();
        let kernels = &self.kernels;
        let bf16 = kernels.bf16_compute * kernels.bf16_derate;
        let fp8 = kernels.fp8_compute.unwrap_or(kernels.bf16_compute * FP8_OVER_BF16) * kernels.fp8_derate;
        // The tables of fp8 are vLLM's. TensorRT-LLM has kernels of its own: end-to-end runs on H100 and H200 put its
        // caches at the rate of bf16 ones (1.0 +/- 0.3 and 0.4).
        let own_kernels = engine == "tensorrt-llm";
        let fp8_kv_memory = kernels.fp8_kv_memory.filter(|_| !own_kernels).unwrap_or(kernels.kv_memory);
        let (compute, memory) = match dtype {
            Dtype::Fp8 if self.fp8_flops.is_some() => {
                (fp8, kernels.fp8_memory.filter(|_| !own_kernels).unwrap_or(kernels.bf16_memory))
            }
            Dtype::Nvfp4 if self.fp4_flops.is_some() => (fp8 * FP4_OVER_FP8, kernels.bf16_memory),
            _ => (bf16, kernels.bf16_memory),
        };
        let experts = self.estimated_experts(dtype, own_kernels, compute, memory);
        let kernels_are = if kernels.estimated { "estimated" } else { "measured" };
        ProfileValues {
            weight_dtype: dtype,
            models: Some(kind),
            compute,
            memory,
            expert_compute: experts.compute,
            expert_half_tokens: experts.half_tokens,
            expert_half_width: experts.half_width,
            expert_memory: experts.memory / memory,
            expert_correlation: EXPERT_CORRELATION,
            half_tokens: 0.0,
            kv_memory: kernels.kv_memory,
            fp8_kv_memory,
            attention_compute: kernels.attention_compute,
            overhead_per_layer_s: if kind.has_experts() {
                PRIOR_OVERHEAD_OF_EXPERTS_S
            } else {
                PRIOR_OVERHEAD_PER_LAYER_S
            },
            prefill_launch_per_layer_s: PRIOR_PREFILL_LAUNCH_PER_LAYER_S,
            per_sequence_s: PRIOR_PER_SEQUENCE_S,
            front_end_s: if engine == "sglang" { PRIOR_FRONT_END_OF_SGLANG_S } else { PRIOR_FRONT_END_S },
            throttle: 0.0,
            all_reduce: Vec::new(),
            standing: Standing::Estimated,
            note: format!(
                "{kernels_are} kernel fractions of {} with prior host constants; nothing fitted",
                self.name
            ),
        }
    }

    /// Routed experts of weights stored as `dtype`, where dense matrices reach `compute` and `memory`.
    fn estimated_experts(&self, dtype: Dtype, own_kernels: bool, compute: f64, memory: f64) -> ExpertKernels {
        // What is dequantised first takes as long under both.
        if own_kernels && !matches!(dtype, Dtype::Mxfp4 | Dtype::Int4) {
            let compute = compute * OWN_EXPERTS_OVER_DENSE;
            return ExpertKernels { weight_dtype: dtype, compute, half_tokens: 0.0, half_width: 0.0, memory };
        }
        let table = self.kernels.experts.iter().find(|one| one.weight_dtype == dtype).copied();
        let flops = self.compute_flops(dtype) * compute * EXPERTS_OVER_DENSE;
        let ridge =
            dtype.bits_per_weight() / 8.0 * flops / (2.0 * memory * self.memory_bandwidth_bytes_per_s);
        let kernels = table.unwrap_or(ExpertKernels {
            weight_dtype: dtype,
            compute: compute * EXPERTS_OVER_DENSE,
            half_tokens: EXPERT_HALF_TOKENS_OVER_RIDGE * ridge,
            half_width: EXPERT_HALF_WIDTH,
            memory,
        });
        ExpertKernels { compute: kernels.compute * EXPERTS_END_TO_END, ..kernels }
    }

    /// What of an estimate for `weights` no table of this GPU says, in words.
    #[must_use]
    pub fn kernels_not_measured(&self, engine: &str, weights: impl Into<Weights>) -> Vec<String> {
        let Weights { dtype, kind } = weights.into();
        let kernels = &self.kernels;
        if kernels.estimated {
            return vec![kernels.source.trim_start_matches("estimated: ").to_owned()];
        }
        let has_table = kernels.experts.iter().any(|one| one.weight_dtype == dtype);
        let parts = [
            ("fp8 kernels by those of bf16", {
                dtype == Dtype::Fp8 && self.fp8_flops.is_some() && kernels.fp8_compute.is_none()
            }),
            ("fp4 kernels by those of fp8", dtype == Dtype::Nvfp4 && self.fp4_flops.is_some()),
            ("kernels of experts by those of other GPUs", {
                kind.has_experts() && !has_table && engine != "tensorrt-llm"
            }),
            ("kernels of experts by other fits", kind.has_experts() && engine == "tensorrt-llm"),
        ];
        parts.into_iter().filter(|(_, is_it)| *is_it).map(|(part, _)| part.to_owned()).collect()
    }

    /// What the kernels reach, with prior host constants: where a fit starts. Launches are not waited for, unless the fit
    /// finds that they are. A dense model's compute is not derated: the fit finds what is sustained. Of a mixture's it
    /// leaves that of dense matrices alone.
    #[must_use]
    pub fn kernel_values(&self, engine: &str, weights: impl Into<Weights>) -> ProfileValues {
        let weights = weights.into();
        let mut hardware = self.clone();
        if !weights.kind.has_experts() {
            hardware.kernels.bf16_derate = 1.0;
            hardware.kernels.fp8_derate = 1.0;
        }
        ProfileValues { prefill_launch_per_layer_s: 0.0, ..hardware.estimated_values(engine, weights) }
    }

    /// A profile of [`Hardware::estimated_values`].
    pub(super) fn estimated_profile(&self, engine: &str, weights: Weights) -> Profile {
        let values = self.estimated_values(engine, weights);
        Profile {
            name: estimate_name(&self.name, engine),
            gpu: self.name.clone(),
            engine: engine.to_owned(),
            versions: "none".to_owned(),
            until_version: None,
            standing: Standing::Estimated,
            held_out_error: None,
            held_out_error_percent: BTreeMap::new(),
            published_error: None,
            fit: None,
            source: format!("{} ({})", values.note, self.kernels.source),
            values: vec![values],
        }
    }
}

/// What the estimate of a GPU's step times under an engine is called.
pub(super) fn estimate_name(gpu: &str, engine: &str) -> String {
    format!("{gpu}-{engine}-estimated")
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ProfileFile {
    gpu: String,
    engine: String,
    values: Vec<ValuesTable>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ValuesTable {
    weight_dtype: Dtype,
    models: Option<ModelKind>,
    standing: Standing,
    versions: String,
    until_version: Option<String>,
    compute: f64,
    memory: f64,
    expert_compute: Option<f64>,
    expert_half_tokens: Option<f64>,
    #[serde(default)]
    expert_half_width: f64,
    expert_memory: Option<f64>,
    #[serde(default)]
    expert_correlation: f64,
    #[serde(default)]
    half_tokens: f64,
    kv_memory: f64,
    fp8_kv_memory: Option<f64>,
    attention_compute: f64,
    overhead_per_layer_us: f64,
    #[serde(default)]
    prefill_launch_per_layer_us: f64,
    per_sequence_us: f64,
    front_end_ms: f64,
    #[serde(default)]
    throttle: f64,
    #[serde(default)]
    all_reduce: Vec<AllReduceRow>,
    held_out_error: Option<String>,
    /// Of a profile that `knee calibrate` did not write; otherwise it stands in the fit.
    #[serde(default)]
    held_out_error_percent: BTreeMap<String, f64>,
    published_error: Option<String>,
    fit: Option<FitRecord>,
    source: String,
    #[serde(default)]
    note: String,
}

/// The profile for `weights`: one for this kind of model, else one for all. What was fitted on another kind is none: the
/// step overhead of DeepSeek-V3 under TensorRT-LLM, say, is three times that of dense models there, and with it Qwen3-235B
/// comes out at half of its published throughput.
pub(super) fn best(profiles: Vec<Profile>, version: Option<&str>, weights: Weights) -> Option<Profile> {
    let holds = |profile: &Profile| match (&profile.until_version, version) {
        (None, _) => true,
        (Some(_), None) => false,
        (Some(last), Some(version)) => is_up_to(version, last),
    };
    let distance = |profile: &Profile| {
        let values = profile.values.first().filter(|values| values.weight_dtype == weights.dtype)?;
        let is_for_kind = values.models.is_none_or(|kind| kind == weights.kind);
        // One for old versions knows them better than one for all.
        (is_for_kind && holds(profile)).then_some((values.models.is_none(), profile.until_version.is_none()))
    };
    let nearest = profiles.into_iter().filter_map(|one| Some((distance(&one)?, one)));
    nearest.min_by_key(|(distance, _)| *distance).map(|(_, profile)| profile)
}

/// What the tables of a profile are for: `bf16 of all models, bf16 of dense models (vllm up to 0.13)`.
pub(super) fn tables(profiles: &[Profile]) -> String {
    let mut texts: Vec<String> = Vec::new();
    for profile in profiles {
        let until = profile.until_version.as_ref();
        let until = until.map_or(String::new(), |last| format!(" ({} up to {last})", profile.engine));
        for values in &profile.values {
            let kind = values.models.map_or("all models", ModelKind::name);
            texts.push(format!("{} of {kind}{until}", values.weight_dtype.name()));
        }
    }
    texts.join(", ")
}

/// Reads a profile's file: one profile per table of values, in the file's order.
pub(super) fn read(name: &str, file: &File) -> Result<Vec<Profile>, CatalogError> {
    let ProfileFile { gpu, engine, values } = file.parse("profiles")?;
    if values.is_empty() {
        return Err(file.invalid("it has no `[[values]]`"));
    }
    check_distinct(&values, file)?;
    values
        .into_iter()
        .enumerate()
        .map(|(index, table)| {
            let all_reduce = read_all_reduce(&format!("values.{index}.all_reduce"), &table.all_reduce, file)?;
            let mut values = ProfileValues { all_reduce, ..read_values(&table, file)? };
            record::check(&table.held_out_error_percent, table.fit.as_ref(), file)?;
            let of_fit = table.fit.as_ref().map(|fit| fit.held_out_error_percent.clone());
            let mut profile = Profile {
                name: name.to_owned(),
                gpu: gpu.clone(),
                engine: engine.clone(),
                versions: table.versions,
                until_version: table.until_version,
                standing: values.standing,
                values: Vec::new(),
                held_out_error: table.held_out_error,
                held_out_error_percent: of_fit.unwrap_or(table.held_out_error_percent),
                published_error: table.published_error,
                fit: table.fit,
                source: table.source,
            };
            if values.standing == Standing::Calibrated {
                values.standing = profile.standing_at_most();
            }
            profile.standing = values.standing;
            profile.values.push(values);
            Ok(profile)
        })
        .collect()
}

/// Of two tables for the same weights and versions one would never be used.
fn check_distinct(values: &[ValuesTable], file: &File) -> Result<(), CatalogError> {
    for (index, table) in values.iter().enumerate() {
        let ValuesTable { weight_dtype, models, until_version, .. } = table;
        let is_same = |other: &&ValuesTable| {
            let of_versions = match (until_version, &other.until_version) {
                (Some(a), Some(b)) => compare(a, b).is_eq(),
                (a, b) => a == b,
            };
            of_versions && (other.weight_dtype, other.models) == (*weight_dtype, *models)
        };
        if values[..index].iter().any(|other| is_same(&other)) {
            let models = models.map_or("all models", ModelKind::name);
            let until =
                until_version.as_ref().map_or_else(String::new, |last| format!(" up to version {last}"));
            let message = format!(
                "a second `[[values]]` for {weight_dtype} weights of {models}{until}; expected one of them, or other \
                 `weight_dtype`, `models` or `until_version`"
            );
            return Err(file.invalid_in(&format!("values.{index}.weight_dtype"), &message));
        }
    }
    Ok(())
}

fn read_values(table: &ValuesTable, file: &File) -> Result<ProfileValues, CatalogError> {
    let fraction = |key: &str, value: f64| file.fraction(&format!("values.{key}"), value);
    let within = |key: &str, value: f64, range| file.within(&format!("values.{key}"), value, range);
    let host_s = |key: &str, value: f64| within(key, value, HOST_US).map(|us| us * 1e-6);
    if let Some(version) = table.until_version.as_ref().filter(|version| !is_version(version)) {
        let message = format!("`values.until_version` is {version:?}; expected a version such as \"0.13\"");
        let is_it = |found: &DeValue<'_>| matches!(found, DeValue::String(text) if text == version);
        return Err(file.invalid_at("values.until_version", is_it, &message));
    }
    let half_tokens = within("half_tokens", table.half_tokens, HALF_TOKENS)?;
    Ok(ProfileValues {
        weight_dtype: table.weight_dtype,
        models: table.models,
        compute: fraction("compute", table.compute)?,
        memory: fraction("memory", table.memory)?,
        expert_compute: fraction("expert_compute", table.expert_compute.unwrap_or(table.compute))?,
        expert_half_tokens: match table.expert_half_tokens {
            Some(tokens) => within("expert_half_tokens", tokens, HALF_TOKENS)?,
            None => half_tokens,
        },
        expert_half_width: within("expert_half_width", table.expert_half_width, HALF_WIDTH)?,
        expert_memory: within("expert_memory", table.expert_memory.unwrap_or(EXPERT_MEMORY), RATES)?,
        expert_correlation: within("expert_correlation", table.expert_correlation, CORRELATIONS)?,
        half_tokens,
        kv_memory: fraction("kv_memory", table.kv_memory)?,
        fp8_kv_memory: fraction("fp8_kv_memory", table.fp8_kv_memory.unwrap_or(table.kv_memory))?,
        attention_compute: fraction("attention_compute", table.attention_compute)?,
        overhead_per_layer_s: host_s("overhead_per_layer_us", table.overhead_per_layer_us)?,
        prefill_launch_per_layer_s: host_s("prefill_launch_per_layer_us", table.prefill_launch_per_layer_us)?,
        per_sequence_s: host_s("per_sequence_us", table.per_sequence_us)?,
        front_end_s: within("front_end_ms", table.front_end_ms, FRONT_END_MS)? * 1e-3,
        throttle: within("throttle", table.throttle, LOST)?,
        all_reduce: Vec::new(),
        standing: table.standing,
        note: table.note.clone(),
    })
}
