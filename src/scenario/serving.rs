//! The calibrated parts behind a language-model server, and its step times under given parameters.

use std::sync::Arc;

use crate::catalog::{Dtype, EngineDefaults, Hardware, Model, Profile, ProfileValues, Scheduler};
use crate::cost::{Draft, Graphs, MemoryBudget, Pipeline, Ranks, StepCost};
use crate::engine::Speculation;
use crate::units::Tokens;

/// The calibrated parts behind a language-model server.
#[derive(Clone, Debug)]
pub struct Serving {
    pub model: Arc<Model>,
    pub hardware: Arc<Hardware>,
    /// Those of the version, with what the scenario overrides.
    pub engine: EngineDefaults,
    pub profile: Profile,
    pub weight_dtype: Dtype,
    pub kv_dtype: Dtype,
    /// As the scenario says it; [`Serving::attention_tp`] is what a rank has of it.
    pub tensor_parallel_size: u32,
    pub pipeline_parallel_size: u32,
    /// GPUs that divide the attention of one data-parallel rank; without ranks `tensor_parallel_size`.
    pub attention_tp: u32,
    /// Ranks that step together; `None` for one scheduler.
    pub data_parallel: Option<Ranks>,
    pub enable_expert_parallel: bool,
    /// Which steps run from CUDA graphs; `None` where the engine's limits are not simulated.
    pub graphs: Option<Graphs>,
    pub speculative: Option<Speculative>,
    pub memory: MemoryBudget,
}

/// Speculative decoding as a scenario describes it.
#[derive(Clone, Debug)]
pub struct Speculative {
    /// vLLM's name of the method.
    pub method: &'static str,
    pub num_speculative_tokens: u32,
    /// Tokens that a sequence gets per step on average, the model's own one counted.
    pub mean_acceptance_length: f64,
    /// `None` if nothing but the prompt is consulted (n-gram look-up).
    pub draft: Option<Draft>,
}

impl Serving {
    /// GPUs of one replica.
    #[must_use]
    pub const fn gpus(&self) -> u32 {
        self.attention_tp.saturating_mul(self.ranks()).saturating_mul(self.pipeline_parallel_size)
    }

    /// How many ranks share what the scenario gives as `max_num_seqs` and `max_num_batched_tokens`: SGLang's
    /// are those of all together, the others' are each rank's.
    #[must_use]
    pub fn ranks_sharing_limits(&self) -> u32 {
        match self.engine.scheduler {
            Scheduler::Sglang(_) => self.ranks(),
            Scheduler::Vllm | Scheduler::TensorRtLlm(_) => 1,
        }
    }

    /// Data-parallel ranks of one replica; 1 without any.
    #[must_use]
    pub const fn ranks(&self) -> u32 {
        match self.data_parallel {
            Some(ranks) => ranks.count,
            None => 1,
        }
    }

    /// The most tokens that a step can hold on one rank. SGLang's budget does not bound its decode steps, nor a prompt
    /// that is not cut.
    fn largest_step(&self) -> Tokens {
        self.engine.max_num_batched_tokens.max(self.engine.max_num_seqs)
    }

    /// The step-time model of this server under the step-time parameters `values`.
    #[must_use]
    pub fn cost(&self, values: &ProfileValues) -> StepCost {
        let Self { model, hardware, attention_tp: tp, .. } = self;
        let (weights, kv) = (self.weight_dtype, self.kv_dtype);
        let (ranks, gpus) = (self.ranks(), tp * self.ranks());
        let largest = self.largest_step().saturating_mul(ranks);
        let mut cost = StepCost::new(model, weights, kv, hardware, values, *tp, largest);
        cost = if self.enable_expert_parallel {
            cost.with_expert_parallel(model, gpus)
        } else {
            cost.with_expert_slices(gpus)
        };
        if let Some(ranks) = self.data_parallel {
            cost = cost.with_ranks(model, hardware, values, ranks);
        }
        if let Some(speculative) = &self.speculative {
            cost = cost.with_decode_queries(1 + speculative.num_speculative_tokens);
        }
        match self.graphs {
            Some(graphs) => cost.with_graphs(model, hardware, gpus, graphs),
            None => cost,
        }
    }

    /// Its pipeline, if it has stages.
    #[must_use]
    pub fn pipeline(&self, values: &ProfileValues) -> Option<Pipeline> {
        let Self { model, hardware, attention_tp: tp, pipeline_parallel_size: stages, .. } = self;
        (*stages > 1).then(|| Pipeline::new(model, hardware, values, *tp, *stages))
    }

    /// How it speculates, if it does.
    #[must_use]
    pub fn speculation(&self, values: &ProfileValues) -> Option<Speculation> {
        let Speculative { num_speculative_tokens, mean_acceptance_length, draft, .. } =
            self.speculative.as_ref()?;
        let (tp, largest) = (self.attention_tp, self.largest_step());
        let cost = draft.as_ref().map(|draft| draft.cost(self.kv_dtype, &self.hardware, values, tp, largest));
        // A draft model writes the KV of what it drafts (`num_lookahead_tokens` of vLLM's scheduler).
        let lookahead = if draft.is_some() { *num_speculative_tokens } else { 0 };
        Some(Speculation::new(*num_speculative_tokens, *mean_acceptance_length, lookahead, cost))
    }
}
