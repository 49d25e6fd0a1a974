//! `[model]`, `[hardware]`, `[engine]`: a server that runs a language model.

use std::sync::Arc;

use super::data_parallel::{self, Layout};
use super::{Context, engines, fit, slices, speculative};
use crate::catalog::{CatalogError, Dtype, EngineDefaults, Hardware, Model, Scheduler};
use crate::cost::{Graphs, MemoryInputs, Ranks};
use crate::engine::{BatcherConfig, Batching, DataParallel, LlmServer, SchedulingPolicy};
use crate::scenario::keys::{engine as keys, hardware, model, root};
use crate::scenario::node::{Span, Value};
use crate::scenario::problem::Problem;
use crate::scenario::reader::{Reader, Section};
use crate::scenario::{Serving, Speculative};
use crate::units::{Blocks, SimSpan, Tokens};

/// `class_priority`: the priority of each class, for the batcher.
pub(super) fn read<'d>(
    reader: &mut Reader<'d>,
    context: &Context<'_>,
    top: &Section<'d>,
    class_priority: Vec<i32>,
) -> Option<(LlmServer, Serving)> {
    let engine = reader.open(top, &root::ENGINE, &keys::ENGINE);
    let options = Options::read(reader, &engine);
    let model = find_model(reader, context, top);
    let gpu = find_gpu(reader, context, top);
    let (gpu, profile_name, profile_place) = gpu?;
    let mut defaults = engine_defaults(reader, context, &engine, &gpu)?;
    let (model, weight_dtype) = model?;
    let options = options?;
    let before = reader.problems.len();
    engines::own_options(reader, &engine, &mut defaults, options.scheduling_policy);
    let tp = options.tensor_parallel_size;
    let layout = options.data_parallel.layout(reader, &engine, &defaults, &model, tp);
    options.apply(reader, &engine, &mut defaults, &model, &gpu, &layout)?;
    let stages = options.pipeline_parallel_size;
    layout.check(reader, &engine, stages, options.static_batches);
    let attention_dp = options.data_parallel.attention_dp();
    engines::check_batch_wait(reader, &engine, &defaults, attention_dp, options.static_batches);
    speculative::check(reader, &engine, &defaults.scheduler, &model, stages, options.static_batches);
    let speculative = speculative::read(reader, context, &engine, &model, weight_dtype, &defaults);
    if speculative.as_ref().is_some_and(|one| matches!(one.method, "ngram" | "draft_model")) {
        // As in 0.27 (vllm/config/vllm.py): only EAGLE and its kin are scheduled ahead.
        defaults.async_scheduling = false;
    }
    if reader.problems.len() > before {
        return None;
    }
    check_parallelism(reader, &engine, &model, &gpu, &layout, stages);
    let whole_experts = options.enable_expert_parallel;
    slices::check(reader, &engine, &model, weight_dtype, &layout, whole_experts, &defaults.scheduler);
    if options.enable_expert_parallel {
        engines::check_expert_parallel(reader, &engine, &model, layout.gpus())?;
    }

    let folder = reader.folder(profile_place);
    let weights = model.weights(weight_dtype);
    let profile = context.lookups.profile(context.catalog, folder, &profile_name, &gpu, &defaults, weights);
    let profile = found(reader, profile_place, profile)?;
    let Some(values) = profile.values.first() else {
        let message = format!("profile `{}` has no values", profile.name);
        reader.problem(Problem::new(profile_place, message));
        return None;
    };

    let inputs = MemoryInputs {
        model: &model,
        weight_dtype,
        kv_dtype: options.kv_dtype,
        hardware: &gpu,
        engine: &defaults,
        max_num_seqs: defaults.max_num_seqs,
        max_num_batched_tokens: defaults.max_num_batched_tokens,
        tensor_parallel_size: layout.attention_tp,
        pipeline_parallel_size: options.pipeline_parallel_size,
        data_parallel: layout.ranks,
        draft: speculative.as_ref().and_then(|speculative| speculative.draft.as_ref()),
        gpu_memory_utilization: defaults.gpu_memory_utilization,
        num_gpu_blocks_override: options.num_gpu_blocks_override,
    };
    let (memory, max_model_len) = fit::check(reader, context, top, &engine, &inputs, options.max_model_len)?;
    check_unchunked(reader, &engine, &defaults, max_model_len)?;
    if options.max_num_seqs.is_none() {
        let kv_tokens = memory.capacity_tokens(max_model_len);
        let seqs = engines::running_requests(&defaults.scheduler, kv_tokens, max_model_len);
        defaults.max_num_seqs = seqs.unwrap_or(defaults.max_num_seqs);
    }

    let values = values.clone();
    let batcher = options.batcher(&defaults, max_model_len, memory.blocks, class_priority);
    let serving = Serving {
        model,
        hardware: gpu,
        graphs: options.graphs(&defaults, speculative.as_ref()),
        engine: defaults,
        profile,
        weight_dtype,
        kv_dtype: options.kv_dtype,
        tensor_parallel_size: options.tensor_parallel_size,
        pipeline_parallel_size: options.pipeline_parallel_size,
        attention_tp: layout.attention_tp,
        data_parallel: layout.ranks,
        enable_expert_parallel: options.enable_expert_parallel,
        speculative,
        memory,
    };
    let server = LlmServer {
        batcher,
        kv: serving.memory.to_kv_spec(),
        cost: serving.cost(&values),
        front_end: SimSpan::from_secs_f64(values.front_end_s).unwrap_or(SimSpan::ZERO),
        pipeline: serving.pipeline(&values),
        speculation: serving.speculation(&values),
        data_parallel: layout.ranks.map(|Ranks { count, .. }| DataParallel {
            ranks: count,
            policy: Layout::policy(&serving.engine.scheduler),
            balance: options.data_parallel.balance(),
        }),
    };
    Some((server, serving))
}

/// A catalog's answer, its error reported at `place`.
pub(super) fn found<T>(
    reader: &mut Reader<'_>,
    place: Option<Span>,
    result: Result<T, CatalogError>,
) -> Option<T> {
    let problem = |error: CatalogError| {
        let problem = Problem::new(place, error.to_string());
        match error {
            CatalogError::NoValues { instead, .. } => problem.help(instead),
            _ => problem,
        }
    };
    result.map_err(|error| reader.problem(problem(error))).ok()
}

fn engine_defaults<'d>(
    reader: &mut Reader<'d>,
    context: &Context<'_>,
    engine: &Section<'d>,
    gpu: &Hardware,
) -> Option<EngineDefaults> {
    let name = reader.choice(engine, &keys::NAME);
    let version = reader.text(engine, &keys::VERSION).filter(|version| version != "auto");
    let defaults = context.lookups.engine(context.catalog, name?, version.as_deref(), gpu);
    let key = if version.is_some() { &keys::VERSION } else { &keys::NAME };
    let defaults = found(reader, engine.place(key), defaults)?;
    if let Some(asked) = &defaults.asked_version {
        let EngineDefaults { engine, version, known_versions, .. } = &defaults;
        reader.warnings.push(format!(
            "{engine} {asked} is not known; it is simulated as {version} (known: {})",
            known_versions.join(", ")
        ));
    }
    Some(defaults)
}

/// Bits of a weight by which formats of the same size differ: their scales.
const SAME_SIZE: f64 = 1.1;

fn find_model<'d>(
    reader: &mut Reader<'d>,
    context: &Context<'_>,
    top: &Section<'d>,
) -> Option<(Arc<Model>, Dtype)> {
    if top.find(&root::MODEL).is_none() {
        reader.missing(top, &root::MODEL);
        return None;
    }
    let section = reader.open(top, &root::MODEL, &model::MODEL);
    let dtype = reader.choice(&section, &model::WEIGHT_DTYPE);
    let name = reader.text(&section, &model::NAME)?;
    let place = section.place(&model::NAME);
    let result = context.lookups.model(context.catalog, reader.folder(place), &name);
    let (model, variant) = found(reader, place, result)?;
    let own = variant.unwrap_or(model.native_weight_dtype);
    let dtype = dtype.and_then(Dtype::parse).unwrap_or(own);
    if dtype.bits_per_weight() > SAME_SIZE * own.bits_per_weight() {
        reader.warnings.push(format!(
            "{} is published in {own}: in {dtype} it holds no more than that, takes more memory and is read more slowly",
            model.name
        ));
    }
    Some((model, dtype))
}

/// The GPU; the name of its profile, and where that stands.
fn find_gpu<'d>(
    reader: &mut Reader<'d>,
    context: &Context<'_>,
    top: &Section<'d>,
) -> Option<(Arc<Hardware>, String, Option<Span>)> {
    if top.find(&root::HARDWARE).is_none() {
        reader.missing(top, &root::HARDWARE);
        return None;
    }
    let section = reader.open(top, &root::HARDWARE, &hardware::HARDWARE);
    let profile = reader.text(&section, &hardware::PROFILE);
    let name = reader.text(&section, &hardware::GPU)?;
    let result = context.lookups.hardware(context.catalog, &name);
    let gpu = found(reader, section.place(&hardware::GPU), result)?;
    Some((gpu, profile?, section.place(&hardware::PROFILE)))
}

/// What `max_model_len` says.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum MaxModelLen {
    Default,
    Auto,
    Given(Tokens),
}

/// vLLM captures no larger graph unless told to (`_set_cudagraph_sizes` in vllm/config/vllm.py).
const LARGEST_GRAPH: u32 = 512;

/// `[engine]` as written; `None` takes the engine's default.
struct Options {
    tensor_parallel_size: u32,
    pipeline_parallel_size: u32,
    data_parallel: data_parallel::Options,
    enable_expert_parallel: bool,
    max_num_seqs: Option<u32>,
    max_num_batched_tokens: Option<Tokens>,
    max_model_len: MaxModelLen,
    gpu_memory_utilization: Option<f64>,
    block_size: Option<Tokens>,
    kv_dtype: Dtype,
    enable_chunked_prefill: Option<bool>,
    /// The scenario says itself that no prefix is cached.
    prefix_caching_off: bool,
    num_gpu_blocks_override: Option<u32>,
    scheduling_policy: SchedulingPolicy,
    watermark: Option<f64>,
    static_batches: bool,
    enforce_eager: bool,
    max_cudagraph_capture_size: Option<u32>,
}

impl Options {
    /// `None` if one of them is wrong.
    fn read<'d>(reader: &mut Reader<'d>, engine: &Section<'d>) -> Option<Self> {
        let before = reader.problems.len();
        let prefix_caching_off = not_built(reader, engine);
        let options = Self {
            tensor_parallel_size: reader.integer(engine, &keys::TENSOR_PARALLEL_SIZE).unwrap_or(1),
            pipeline_parallel_size: reader.integer(engine, &keys::PIPELINE_PARALLEL_SIZE).unwrap_or(1),
            data_parallel: data_parallel::Options::read(reader, engine),
            enable_expert_parallel: reader.boolean(engine, &keys::ENABLE_EXPERT_PARALLEL) == Some(true),
            max_num_seqs: reader.integer(engine, &keys::MAX_NUM_SEQS),
            max_num_batched_tokens: reader.integer(engine, &keys::MAX_NUM_BATCHED_TOKENS),
            max_model_len: max_model_len(reader, engine),
            gpu_memory_utilization: reader.number(engine, &keys::GPU_MEMORY_UTILIZATION),
            block_size: reader.integer(engine, &keys::BLOCK_SIZE),
            kv_dtype: match reader.choice(engine, &keys::KV_CACHE_DTYPE) {
                Some("fp8") => Dtype::Fp8,
                _ => Dtype::Bf16,
            },
            enable_chunked_prefill: reader.boolean(engine, &keys::ENABLE_CHUNKED_PREFILL),
            prefix_caching_off,
            num_gpu_blocks_override: reader.integer(engine, &keys::NUM_GPU_BLOCKS_OVERRIDE),
            scheduling_policy: match reader.choice(engine, &keys::SCHEDULING_POLICY) {
                Some("priority") => SchedulingPolicy::Priority,
                _ => SchedulingPolicy::Fcfs,
            },
            watermark: reader.number(engine, &keys::WATERMARK),
            static_batches: reader.choice(engine, &keys::BATCHING) == Some("static"),
            enforce_eager: reader.boolean(engine, &keys::ENFORCE_EAGER) == Some(true),
            max_cudagraph_capture_size: reader.integer(engine, &keys::MAX_CUDAGRAPH_CAPTURE_SIZE),
        };
        (reader.problems.len() == before).then_some(options)
    }

    /// Overrides the version's defaults, with the dependencies between them as vLLM has them.
    fn apply(
        &self,
        reader: &mut Reader<'_>,
        engine: &Section<'_>,
        defaults: &mut EngineDefaults,
        model: &Model,
        gpu: &Hardware,
        layout: &Layout,
    ) -> Option<()> {
        defaults.enable_chunked_prefill =
            self.enable_chunked_prefill.unwrap_or(defaults.enable_chunked_prefill);
        defaults.block_size = self.block_size.unwrap_or(defaults.block_size);
        // Not simulated (see `not_built`): the default is kept only to say what is left out.
        defaults.enable_prefix_caching &= !self.prefix_caching_off;
        if let Some(watermark) = self.watermark {
            if !defaults.watermark_option {
                let message = format!("{} {} has no option `watermark`", defaults.engine, defaults.version);
                reader.problem(Problem::new(engine.place(&keys::WATERMARK), message).label("leave it out"));
                return None;
            }
            defaults.watermark = watermark;
        }
        let is_vllm = defaults.scheduler == Scheduler::Vllm;
        engines::check_graphs(reader, engine, defaults, self.enforce_eager);
        defaults.subtracts_graphs &= !self.enforce_eager;
        if is_vllm && !defaults.enable_chunked_prefill {
            let longest = match self.max_model_len {
                MaxModelLen::Given(tokens) => tokens,
                MaxModelLen::Default | MaxModelLen::Auto => model.max_position_embeddings,
            };
            defaults.max_num_batched_tokens = defaults.max_num_batched_tokens.max(longest);
        }
        defaults.max_num_batched_tokens =
            self.max_num_batched_tokens.unwrap_or(defaults.max_num_batched_tokens);
        let budget = defaults.max_num_batched_tokens;
        let tp = self.tensor_parallel_size;
        defaults.gpu_memory_utilization = self
            .gpu_memory_utilization
            .unwrap_or_else(|| engines::utilization(defaults, gpu, tp, layout.count()));
        if matches!(defaults.scheduler, Scheduler::Sglang(_)) {
            // Its budget is for prompts only.
            defaults.max_num_seqs = self.max_num_seqs.unwrap_or(defaults.max_num_seqs);
            layout.divide(reader, engine, defaults, self.max_num_seqs);
            engines::check_chunk(reader, engine, defaults);
            return Some(());
        }
        defaults.max_num_seqs = self.max_num_seqs.unwrap_or(defaults.max_num_seqs.min(budget));
        if budget < defaults.max_num_seqs {
            let key = if self.max_num_batched_tokens.is_some() {
                &keys::MAX_NUM_BATCHED_TOKENS
            } else {
                &keys::MAX_NUM_SEQS
            };
            let message = format!(
                "max_num_batched_tokens ({budget}) must be greater than or equal to max_num_seqs ({})",
                defaults.max_num_seqs
            );
            let problem = Problem::new(engine.place(key), message);
            reader.problem(problem.label("every running sequence takes at least one token of a step"));
            return None;
        }
        Some(())
    }

    /// vLLM's captured sizes; the other engines' graphs are not told apart.
    fn graphs(&self, defaults: &EngineDefaults, speculative: Option<&Speculative>) -> Option<Graphs> {
        if defaults.scheduler != Scheduler::Vllm {
            return None;
        }
        if self.enforce_eager {
            return Some(Graphs::Off);
        }
        let queries = 1 + speculative.map_or(0, |speculative| speculative.num_speculative_tokens);
        let largest = defaults.max_num_seqs.saturating_mul(2 * queries).min(LARGEST_GRAPH);
        let largest = self.max_cudagraph_capture_size.unwrap_or(largest);
        Some(Graphs::UpTo(largest.min(defaults.max_num_batched_tokens)))
    }

    /// `blocks`: the pool, the engine's null block included, of which it takes the watermark.
    fn batcher(
        &self,
        defaults: &EngineDefaults,
        max_model_len: Tokens,
        blocks: Blocks,
        class_priority: Vec<i32>,
    ) -> BatcherConfig {
        BatcherConfig {
            batching: if self.static_batches {
                Batching::Static
            } else {
                engines::batching(&defaults.scheduler)
            },
            max_num_seqs: defaults.max_num_seqs,
            max_num_batched_tokens: defaults.max_num_batched_tokens,
            max_model_len,
            enable_chunked_prefill: defaults.enable_chunked_prefill,
            full_prompt_gate: defaults.full_prompt_gate,
            watermark_blocks: (defaults.watermark * f64::from(blocks)) as u32,
            scheduling_policy: self.scheduling_policy,
            async_scheduling: defaults.async_scheduling,
            batch_wait: engines::batch_wait(&defaults.scheduler),
            class_priority,
        }
    }
}

fn max_model_len<'d>(reader: &mut Reader<'d>, engine: &Section<'d>) -> MaxModelLen {
    match engine.find(&keys::MAX_MODEL_LEN) {
        None => MaxModelLen::Default,
        Some(node) if matches!(&node.value, Value::Text(text) if text == "auto") => MaxModelLen::Auto,
        Some(_) => {
            reader.integer(engine, &keys::MAX_MODEL_LEN).map_or(MaxModelLen::Default, MaxModelLen::Given)
        }
    }
}

/// A key whose mechanism is not built is accepted at the value that means "off"; whether prefix caching was
/// turned off so.
fn not_built<'d>(reader: &mut Reader<'d>, engine: &Section<'d>) -> bool {
    let prefix_caching = reader.boolean(engine, &keys::ENABLE_PREFIX_CACHING);
    if prefix_caching == Some(true) {
        let key = &keys::ENABLE_PREFIX_CACHING;
        let problem = Problem::new(engine.place(key), format!("`engine.{}` is not built yet", key.name));
        let help = "prompts are independent of each other";
        reader.problem(problem.label("only false is possible").help(help));
    }
    prefix_caching == Some(false)
}

fn check_parallelism(
    reader: &mut Reader<'_>,
    engine: &Section<'_>,
    model: &Model,
    gpu: &Hardware,
    layout: &Layout,
    stages: u32,
) {
    let (tp, ranks) = (layout.attention_tp, layout.count());
    if let Some(heads) = indivisible_heads(model, tp) {
        let message =
            format!("the {heads} attention heads of {} cannot be divided over {tp} GPUs", model.name);
        let problem = Problem::new(engine.place(&keys::TENSOR_PARALLEL_SIZE), message);
        reader.problem(problem.label(format!("expected a divisor of {heads}")));
    }
    if tp > gpu.link_domain {
        reader.warnings.push(format!(
            "tensor_parallel_size = {tp} reaches beyond the {} GPUs that {} joins; the link's speed is assumed throughout",
            gpu.link_domain, gpu.link_name
        ));
    } else if ranks > 1 && layout.gpus() > gpu.link_domain {
        reader.warnings.push(format!(
            "{ranks} data-parallel ranks of {tp} reach beyond the {} GPUs that {} joins; the link's speed is assumed throughout",
            gpu.link_domain, gpu.link_name
        ));
    } else if stages > 1 && tp.saturating_mul(stages) > gpu.link_domain {
        reader.warnings.push(format!(
            "{stages} stages of {tp} reach beyond the {} GPUs that {} joins; the link's speed is assumed throughout",
            gpu.link_domain, gpu.link_name
        ));
    }
}

/// The number of heads of the first kind of layer whose heads `tp` GPUs cannot share evenly. Of
/// key-value heads there may be fewer than GPUs: then they are repeated.
pub(super) fn indivisible_heads(model: &Model, tp: u32) -> Option<u32> {
    use crate::catalog::Attention;
    model.layers.iter().find_map(|group| {
        let heads = match group.attention {
            Attention::Softmax { heads, kv_heads, .. } => {
                let shared = kv_heads % tp == 0 || tp.is_multiple_of(kv_heads);
                if heads % tp == 0 && !shared {
                    return Some(kv_heads);
                }
                heads
            }
            Attention::Latent { heads, .. } => heads,
            Attention::Linear { value_heads, .. } => value_heads,
        };
        (heads % tp != 0).then_some(heads)
    })
}

/// Without chunked prefill a prompt must fit into one step.
fn check_unchunked(
    reader: &mut Reader<'_>,
    engine: &Section<'_>,
    defaults: &EngineDefaults,
    max_model_len: Tokens,
) -> Option<()> {
    let budget = defaults.max_num_batched_tokens;
    // The others refuse such a prompt when it comes.
    let is_vllm = defaults.scheduler == Scheduler::Vllm;
    if !is_vllm || defaults.enable_chunked_prefill || budget >= max_model_len {
        return Some(());
    }
    let message = format!(
        "max_num_batched_tokens ({budget}) is smaller than max_model_len ({max_model_len}). This effectively \
         limits the maximum sequence length to max_num_batched_tokens and makes vLLM reject longer sequences"
    );
    let problem = Problem::new(engine.place(&keys::MAX_NUM_BATCHED_TOKENS), message);
    let help = "increase max_num_batched_tokens or decrease max_model_len, or enable chunked prefill";
    reader.problem(problem.label("without chunked prefill a prompt must fit into one step").help(help));
    None
}
