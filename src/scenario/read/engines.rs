//! What SGLang and TensorRT-LLM have that vLLM has not: their own options under their own names, their
//! defaults, and their scheduler's parameters.

use crate::catalog::{EngineDefaults, Hardware, Mlp, Model, Scheduler, SglangScheduler};
use crate::engine::{BatchWait, Batching, PrefillFirst, SchedulingPolicy};
use crate::scenario::keys::{Key, engine as keys};
use crate::scenario::problem::Problem;
use crate::scenario::reader::{Reader, Section};
use crate::units::Tokens;

/// Takes the engine's own options into `defaults`. Problems are recorded.
pub(super) fn own_options<'d>(
    reader: &mut Reader<'d>,
    engine: &Section<'d>,
    defaults: &mut EngineDefaults,
    policy: SchedulingPolicy,
) {
    let conservativeness = reader.number(engine, &keys::SCHEDULE_CONSERVATIVENESS);
    let max_prefill_tokens = reader.integer(engine, &keys::MAX_PREFILL_TOKENS);
    let recv_interval = reader.integer(engine, &keys::SCHEDULER_RECV_INTERVAL);
    let mixed_chunk = reader.boolean(engine, &keys::ENABLE_MIXED_CHUNK);
    let capacity = reader.choice(engine, &keys::CAPACITY_SCHEDULER_POLICY);
    let wait_iters = reader.integer(engine, &keys::BATCH_WAIT_TIMEOUT_ITERS);
    let wait_ratio = reader.number(engine, &keys::BATCH_WAIT_MAX_TOKENS_RATIO);
    let (is_sglang, is_tensorrt_llm) = match &mut defaults.scheduler {
        Scheduler::Vllm => (false, false),
        Scheduler::Sglang(sglang) => {
            sglang.schedule_conservativeness = conservativeness.unwrap_or(sglang.schedule_conservativeness);
            sglang.max_prefill_tokens = max_prefill_tokens.unwrap_or(sglang.max_prefill_tokens);
            sglang.scheduler_recv_interval = recv_interval.unwrap_or(sglang.scheduler_recv_interval);
            (true, false)
        }
        Scheduler::TensorRtLlm(tensorrt_llm) => {
            tensorrt_llm.max_utilization = capacity == Some("MAX_UTILIZATION");
            tensorrt_llm.batch_wait_timeout_iters = wait_iters.unwrap_or(0);
            tensorrt_llm.batch_wait_max_tokens_ratio = wait_ratio.unwrap_or(0.0);
            (false, true)
        }
    };
    if is_sglang && mixed_chunk == Some(true) {
        let place = engine.place(&keys::ENABLE_MIXED_CHUNK);
        let problem = Problem::new(place, "`engine.enable_mixed_chunk` is not built yet".to_owned());
        reader.problem(problem.label("only false is possible"));
    }
    let mut foreign = |key: &'static Key, given: bool, owner: &str| {
        if given {
            let message = format!("{} has no option `{}`: it is {owner}'s", defaults.engine, key.name);
            reader.problem(Problem::new(engine.place(key), message).label("leave it out"));
        }
    };
    foreign(&keys::SCHEDULE_CONSERVATIVENESS, !is_sglang && conservativeness.is_some(), "sglang");
    foreign(&keys::MAX_PREFILL_TOKENS, !is_sglang && max_prefill_tokens.is_some(), "sglang");
    foreign(&keys::SCHEDULER_RECV_INTERVAL, !is_sglang && recv_interval.is_some(), "sglang");
    foreign(&keys::ENABLE_MIXED_CHUNK, !is_sglang && mixed_chunk.is_some(), "sglang");
    foreign(&keys::CAPACITY_SCHEDULER_POLICY, !is_tensorrt_llm && capacity.is_some(), "tensorrt-llm");
    foreign(&keys::BATCH_WAIT_TIMEOUT_ITERS, !is_tensorrt_llm && wait_iters.is_some(), "tensorrt-llm");
    foreign(&keys::BATCH_WAIT_MAX_TOKENS_RATIO, !is_tensorrt_llm && wait_ratio.is_some(), "tensorrt-llm");
    if defaults.scheduler != Scheduler::Vllm && policy == SchedulingPolicy::Priority {
        let message = format!("priority scheduling of {} is not built yet", defaults.engine);
        let problem = Problem::new(engine.place(&keys::SCHEDULING_POLICY), message);
        reader.problem(problem.label("only \"fcfs\" is possible"));
    }
}

/// Whether TensorRT-LLM's wait for a larger batch has a meaning with the rest. Its scheduler leaves the options
/// unread with attention data parallelism, and either alone makes no request wait.
pub(super) fn check_batch_wait(
    reader: &mut Reader<'_>,
    engine: &Section<'_>,
    defaults: &EngineDefaults,
    attention_dp: bool,
    static_batches: bool,
) {
    let Scheduler::TensorRtLlm(tensorrt_llm) = &defaults.scheduler else { return };
    let given = [
        (&keys::BATCH_WAIT_TIMEOUT_ITERS, tensorrt_llm.batch_wait_timeout_iters > 0),
        (&keys::BATCH_WAIT_MAX_TOKENS_RATIO, tensorrt_llm.batch_wait_max_tokens_ratio > 0.0),
    ];
    let other = match (attention_dp, static_batches) {
        (true, _) => Some("`enable_attention_dp`, with which tensorrt-llm does not look at it"),
        (_, true) => Some("static batches, which nothing joins while they run"),
        _ => None,
    };
    if let Some(other) = other {
        for (key, _) in given.iter().filter(|(_, given)| *given) {
            let message = format!("`engine.{}` with {other}", key.name);
            reader.problem(Problem::new(engine.place(key), message).label("leave it out, or 0"));
        }
        return;
    }
    if let [(alone, true), (other, false)] | [(other, false), (alone, true)] = given {
        reader.warnings.push(format!(
            "`engine.{}` makes no prompt wait while `engine.{}` is 0: tensorrt-llm needs both",
            alone.name, other.name
        ));
    }
}

/// Whether what is said of CUDA graphs can hold: only vLLM's are simulated, and none have no size.
pub(super) fn check_graphs(
    reader: &mut Reader<'_>,
    engine: &Section<'_>,
    defaults: &EngineDefaults,
    enforce_eager: bool,
) {
    let size = engine.find(&keys::MAX_CUDAGRAPH_CAPTURE_SIZE);
    if defaults.scheduler != Scheduler::Vllm {
        for key in [&keys::ENFORCE_EAGER, &keys::MAX_CUDAGRAPH_CAPTURE_SIZE] {
            if engine.find(key).is_some() {
                let message = format!("{} has no option `{}`: it is vllm's", defaults.engine, key.name);
                reader.problem(Problem::new(engine.place(key), message).label("leave it out"));
            }
        }
    } else if enforce_eager && size.is_some() {
        let message = "`max_cudagraph_capture_size` with `enforce_eager`, which captures no graphs";
        let place = engine.place(&keys::MAX_CUDAGRAPH_CAPTURE_SIZE);
        reader.problem(Problem::new(place, message.to_owned()).label("leave out one of the two"));
    }
}

/// SGLang's static share on `gpu` for the chunk size and the GPUs and data-parallel ranks at hand; the others' are
/// constants.
pub(super) fn utilization(defaults: &EngineDefaults, gpu: &Hardware, tp: u32, ranks: u32) -> f64 {
    defaults.static_reserve.map_or(defaults.gpu_memory_utilization, |reserve| {
        reserve.fraction(gpu.memory_bytes, defaults.max_num_batched_tokens, tp, ranks)
    })
}

/// Whether chunks hold whole blocks, which SGLang insists on.
pub(super) fn check_chunk(reader: &mut Reader<'_>, engine: &Section<'_>, defaults: &EngineDefaults) {
    let (chunk, page) = (defaults.max_num_batched_tokens, defaults.block_size);
    if matches!(defaults.scheduler, Scheduler::Sglang(_)) && !chunk.is_multiple_of(page) {
        let message = format!("chunks of {chunk} tokens do not hold whole blocks of {page}");
        let problem = Problem::new(engine.place(&keys::MAX_NUM_BATCHED_TOKENS), message);
        reader.problem(problem.label(format!("expected a multiple of {page}")));
    }
}

/// How an engine that does not batch statically does.
pub(super) fn batching(scheduler: &Scheduler) -> Batching {
    match scheduler {
        Scheduler::Vllm => Batching::Continuous,
        Scheduler::TensorRtLlm(tensorrt_llm) if tensorrt_llm.max_utilization => Batching::MaxUtilization,
        Scheduler::TensorRtLlm(_) => Batching::GuaranteedNoEvict,
        Scheduler::Sglang(sglang) => Batching::PrefillFirst(prefill_first(sglang)),
    }
}

/// How long prompts wait for a larger batch, if they do.
pub(super) fn batch_wait(scheduler: &Scheduler) -> Option<BatchWait> {
    let Scheduler::TensorRtLlm(tensorrt_llm) = scheduler else { return None };
    let wait = BatchWait {
        timeout_iters: tensorrt_llm.batch_wait_timeout_iters,
        max_tokens_ratio: tensorrt_llm.batch_wait_max_tokens_ratio,
    };
    (wait.timeout_iters > 0 && wait.max_tokens_ratio > 0.0).then_some(wait)
}

fn prefill_first(sglang: &SglangScheduler) -> PrefillFirst {
    let init = (sglang.init_new_token_ratio * sglang.schedule_conservativeness).min(1.0);
    let min = (init * sglang.min_new_token_ratio_factor).min(1.0);
    PrefillFirst {
        max_prefill_tokens: sglang.max_prefill_tokens,
        scheduler_recv_interval: sglang.scheduler_recv_interval,
        init_new_token_ratio: init,
        min_new_token_ratio: min,
        new_token_ratio_decay: (init - min) / f64::from(sglang.new_token_ratio_decay_steps.max(1)),
        clip_max_new_tokens: sglang.clip_max_new_tokens,
        retract_decode_steps: sglang.retract_decode_steps,
        retract_to_headroom: sglang.retract_to_headroom,
    }
}

/// `max_num_seqs` where it is not given and follows from the KV pool.
pub(super) fn running_requests(scheduler: &Scheduler, kv_tokens: u64, context: Tokens) -> Option<u32> {
    match scheduler {
        Scheduler::Sglang(sglang) => Some(sglang.running_requests(kv_tokens, context)),
        Scheduler::Vllm | Scheduler::TensorRtLlm(_) => None,
    }
}

/// Whether the experts of `model` can be given to `gpus` GPUs, whole and in equal numbers.
pub(super) fn check_expert_parallel(
    reader: &mut Reader<'_>,
    engine: &Section<'_>,
    model: &Model,
    gpus: u32,
) -> Option<()> {
    let place = engine.place(&keys::ENABLE_EXPERT_PARALLEL);
    let experts = model.layers.iter().find_map(|group| match group.mlp {
        Mlp::Dense { .. } => None,
        Mlp::Moe { experts, .. } => Some(experts),
    });
    let Some(experts) = experts else {
        let message =
            "Number of experts in the model must be greater than 0 when expert parallelism is enabled";
        reader.problem(Problem::new(place, message.to_owned()).label(format!("{} has none", model.name)));
        return None;
    };
    if !experts.is_multiple_of(gpus) {
        let message = format!("the {experts} experts of {} cannot be divided over {gpus} GPUs", model.name);
        reader.problem(Problem::new(place, message).label(format!("expected a divisor of {experts}")));
        return None;
    }
    reader.warnings.push(
        "experts are taken to be spread over the GPUs at random: where a router prefers some, the busiest GPU has more to do than simulated"
            .to_owned(),
    );
    Some(())
}
