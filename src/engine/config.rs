//! What the simulated system is made of.

use super::speculation::Speculation;
use crate::cost::{Pipeline, StepCost, StepShape, StepTerms};
use crate::kv::KvSpec;
use crate::units::{Blocks, SimSpan, Tokens};
use crate::workload::Distribution;

/// Everything the engine needs to know about the deployment.
#[derive(Clone, Debug)]
pub struct System {
    pub replicas: u32,
    pub router: RouterPolicy,
    pub server: Server,
}

/// What one replica is.
#[derive(Clone, Debug)]
pub enum Server {
    Llm(Box<LlmServer>),
    Synthetic(SyntheticServer),
}

/// A replica that runs a language model.
#[derive(Clone, Debug)]
pub struct LlmServer {
    pub batcher: BatcherConfig,
    pub kv: KvSpec,
    pub cost: StepCost,
    /// HTTP and tokenising: every request reaches the engine this long after it is sent.
    pub front_end: SimSpan,
    /// Stages of layers, with as many steps under way as there are stages; `None`: all layers in one.
    pub pipeline: Option<Pipeline>,
    pub speculation: Option<Speculation>,
    /// Several schedulers that step together; `kv` and the limits of `batcher` are those of one of them.
    pub data_parallel: Option<DataParallel>,
}

/// Data-parallel ranks of one server: each has its own scheduler, KV pool and requests, and all of them
/// wait for each other in every step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataParallel {
    pub ranks: u32,
    pub policy: RankPolicy,
    pub balance: Option<PromptBalance>,
}

/// When TensorRT-LLM holds the prompts of all ranks back (`attention_dp_config` with `enable_balance`;
/// `_balance_adp_requests` in pyexecutor/py_executor.py), so that none computes prompts while others only decode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PromptBalance {
    /// Every so many steps without prompts on each rank, whoever has some computes them.
    pub timeout_iters: u32,
    /// Steps that wait for more once there are prompts on each.
    pub batching_wait_iters: u32,
}

/// Which rank a request goes to, as the engines decide it inside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RankPolicy {
    /// vLLM from 0.10 on (`get_core_engine_for_request` in vllm/v1/engine/core_client.py): the least of 4 x
    /// waiting + running, the first of equals. The counts are published every 100 ms; between, those chosen
    /// count as waiting. As with one API server: several each know only their own choices.
    WaitingAndRunning,
    /// SGLang (`round_robin_scheduler` in managers/data_parallel_controller.py): one after the other.
    RoundRobin,
    /// TensorRT-LLM (`DefaultADPRouter` in pyexecutor/scheduler/adp_router.py): one queue, emptied when a
    /// step is composed, longest prompts first; each to the rank with the fewest prompt tokens in flight
    /// among those that have no more than their share of requests.
    PromptTokens,
}

impl LlmServer {
    /// Data-parallel ranks; 1 without any.
    #[must_use]
    pub fn ranks(&self) -> u32 {
        self.data_parallel.map_or(1, |parallel| parallel.ranks)
    }

    /// KV blocks over all ranks.
    #[must_use]
    pub fn total_blocks(&self) -> Blocks {
        self.kv.blocks.saturating_mul(self.ranks())
    }

    /// Sequences that run at once over all ranks.
    #[must_use]
    pub fn total_seqs(&self) -> u32 {
        self.batcher.max_num_seqs.saturating_mul(self.ranks())
    }

    /// The terms of a step at full clock that holds `shape` over all ranks, an equal part on each.
    #[must_use]
    pub fn terms(&self, shape: &StepShape) -> StepTerms {
        match self.ranks() {
            1 => self.cost.terms(shape),
            ranks => self.cost.terms_among(&shape.share(ranks), shape, 1.0),
        }
    }

    /// The terms of a step of average content, without what prompts wait for the host: that belongs to the steps that
    /// have some, and every mean has a little of one.
    #[must_use]
    pub fn mean_terms(&self, shape: &StepShape) -> StepTerms {
        self.cost.without_prompt_launch(self.terms(shape), &shape.share(self.ranks()))
    }

    /// How long a step is that holds `shapes`, one for each rank (an idle one runs along with nothing),
    /// when compute runs at `speed` of a cold chip's: all wait for the slowest.
    #[must_use]
    pub fn ranks_time(&self, shapes: &[StepShape], speed: f64) -> SimSpan {
        let all: StepShape = shapes.iter().sum();
        let times = shapes.iter().map(|shape| self.cost.step_time_among(shape, &all, speed));
        times.max().unwrap_or(SimSpan::ZERO)
    }

    /// Puts into `times` how long a step is in each stage, in one without a pipeline, when compute runs at
    /// `speed` of a cold chip's.
    pub fn stage_times(&self, shape: &StepShape, speed: f64, times: &mut Vec<SimSpan>) {
        times.clear();
        match (&self.pipeline, &self.speculation) {
            (Some(pipeline), _) => {
                times.extend(pipeline.stage_times(&self.cost.terms_at(shape, speed), shape.tokens));
            }
            (None, Some(speculation)) => {
                let draft_s = speculation.draft_s(shape, speed);
                times.push(self.cost.step_time_with(shape, speed, draft_s));
            }
            (None, None) => times.push(self.cost.step_time(shape, speed)),
        }
    }

    /// Steps that can be under way or composed at once: one for each stage; without a pipeline two if
    /// steps are composed one ahead.
    #[must_use]
    pub fn depth(&self) -> usize {
        match &self.pipeline {
            Some(pipeline) => pipeline.layers().len(),
            None => 1 + usize::from(self.batcher.pipelined()),
        }
    }

    /// Tokens of a request that may be on their way when its next one is scheduled: none through a
    /// pipeline, whose stages are busy with the steps of other requests.
    #[must_use]
    pub fn ahead(&self) -> u32 {
        u32::from(self.pipeline.is_none() && self.batcher.pipelined())
    }
}

/// A replica without model or GPU: `servers` identical servers and one first-come-first-served queue.
#[derive(Clone, Debug)]
pub struct SyntheticServer {
    pub servers: u32,
    pub service_time_s: Distribution,
    /// Requests that may wait (those in service not counted); `None`: any number.
    pub queue_limit: Option<u32>,
}

/// How a replica forms its batches. Names are vLLM's.
#[derive(Clone, Debug, PartialEq)]
pub struct BatcherConfig {
    pub batching: Batching,
    pub max_num_seqs: u32,
    /// At least `max_num_seqs`.
    pub max_num_batched_tokens: Tokens,
    /// Prompt + output of a request may not exceed it.
    pub max_model_len: Tokens,
    pub enable_chunked_prefill: bool,
    pub full_prompt_gate: bool,
    /// Blocks kept free when a waiting request is admitted while others run.
    pub watermark_blocks: u32,
    pub scheduling_policy: SchedulingPolicy,
    /// Pipelined scheduling: step k + 1 is composed when step k starts.
    pub async_scheduling: bool,
    /// TensorRT-LLM without data-parallel ranks: prompts wait until more of them can be computed together.
    pub batch_wait: Option<BatchWait>,
    /// Priority of each class, smaller first.
    pub class_priority: Vec<i32>,
}

impl BatcherConfig {
    /// Whether steps are composed one ahead. A static batch is not: it has nothing to look ahead to.
    #[must_use]
    pub fn pipelined(&self) -> bool {
        self.async_scheduling && self.batching != Batching::Static
    }
}

/// When TensorRT-LLM's PyTorch backend holds prompts back (`_waiting_requests` in pyexecutor/py_executor.py): in a
/// step that would have prompts and decodes, as long as it has held them back in fewer steps than
/// `timeout_iters` since they last ran, and the step has too few tokens.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BatchWait {
    pub timeout_iters: u32,
    /// Of `max_num_batched_tokens`: enough tokens to go on with. Prompts count whole, also those that are cut (as
    /// up to 1.2; what follows 1.2 counts the tokens of the step).
    pub max_tokens_ratio: f64,
}

/// Who joins a step, and which KV blocks a request takes when it is admitted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Batching {
    /// vLLM V1: decodes and prompt chunks share a step; blocks are taken as they are filled.
    Continuous,
    /// A batch runs to its longest member.
    Static,
    /// TensorRT-LLM's GUARANTEED_NO_EVICT: as `Continuous`, but a request is admitted with the blocks of
    /// its longest context, so nobody is ever preempted.
    GuaranteedNoEvict,
    /// TensorRT-LLM's MAX_UTILIZATION: as `Continuous`, but a request is admitted with the blocks of its
    /// whole prompt.
    MaxUtilization,
    /// SGLang: a step holds prompt chunks or decodes, and prompts go first.
    PrefillFirst(PrefillFirst),
}

/// SGLang's admission and retraction, in its own terms. Chunks are cut at
/// [`BatcherConfig::max_num_batched_tokens`] (its `chunked_prefill_size`).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PrefillFirst {
    /// Once a step has a prompt, another is added only below this many prompt tokens.
    pub max_prefill_tokens: Tokens,
    /// Decode steps from one look at what has come to the next; after a step with prompts, and when there is
    /// nothing to run, it looks at once.
    pub scheduler_recv_interval: u32,
    /// Share of their remaining output that running requests are assumed to need still: from `init` it
    /// falls by `decay` with every decode step down to `min`, and rises when requests are retracted.
    pub init_new_token_ratio: f64,
    pub min_new_token_ratio: f64,
    pub new_token_ratio_decay: f64,
    /// No request is assumed to need more output tokens than this.
    pub clip_max_new_tokens: Tokens,
    /// Decode steps that the estimate after a retraction looks ahead.
    pub retract_decode_steps: u32,
    /// Whether a retraction goes on until there is room for that many steps, or only for the next.
    pub retract_to_headroom: bool,
}

/// Who is served first, and who is preempted last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SchedulingPolicy {
    Fcfs,
    Priority,
}

/// Which replica a request goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RouterPolicy {
    RoundRobin,
    Random,
    /// The fewest requests in flight; of equals the one that was least recently chosen.
    LeastOutstanding,
    /// The better of two at random.
    PowerOfTwo,
}
