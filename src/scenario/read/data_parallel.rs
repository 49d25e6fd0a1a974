//! Data-parallel ranks that step together, under each engine's own options.
//!
//! | engine | options | GPUs of a rank | ranks |
//! |---|---|---|---|
//! | vLLM | `data_parallel_size`, of a mixture of experts | `tensor_parallel_size` | `data_parallel_size` |
//! | SGLang | `data_parallel_size` with `enable_dp_attention` | `tensor_parallel_size / data_parallel_size` | `data_parallel_size` |
//! | TensorRT-LLM | `enable_attention_dp` | 1 | `tensor_parallel_size` |
//!
//! Without these an engine's data parallelism means servers that know nothing of each other: replicas.

use crate::catalog::{EngineDefaults, Model, Scheduler};
use crate::cost::{Ranks, Sharing};
use crate::engine::{PromptBalance, RankPolicy};
use crate::scenario::keys::{Key, attention_dp_config, engine as keys};
use crate::scenario::problem::Problem;
use crate::scenario::reader::{Reader, Section};

/// SGLang admits more boldly under data-parallel attention (`_handle_data_parallelism` in server_args.py).
const CONSERVATIVENESS_FACTOR: f64 = 0.3;

/// What the options say.
#[derive(Clone, Copy, Debug)]
pub(super) struct Options {
    size: u32,
    dp_attention: Option<bool>,
    attention_dp: Option<bool>,
    balance: Option<PromptBalance>,
}

/// GPUs of one rank, and the ranks if there are several.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    pub attention_tp: u32,
    pub ranks: Option<Ranks>,
}

impl Options {
    pub fn read<'d>(reader: &mut Reader<'d>, engine: &Section<'d>) -> Self {
        Self {
            size: reader.integer(engine, &keys::DATA_PARALLEL_SIZE).unwrap_or(1),
            dp_attention: reader.boolean(engine, &keys::ENABLE_DP_ATTENTION),
            attention_dp: reader.boolean(engine, &keys::ENABLE_ATTENTION_DP),
            balance: balance(reader, engine),
        }
    }

    /// Whether prompts of one rank wait for those of others.
    pub fn balance(&self) -> Option<PromptBalance> {
        self.balance
    }

    /// Whether TensorRT-LLM's attention data parallelism is on, be it over one GPU.
    pub fn attention_dp(&self) -> bool {
        self.attention_dp == Some(true)
    }

    /// The ranks over `tp` = `tensor_parallel_size`. Problems are recorded; with one the layout is of no use.
    pub fn layout(
        &self,
        reader: &mut Reader<'_>,
        engine: &Section<'_>,
        defaults: &EngineDefaults,
        model: &Model,
        tp: u32,
    ) -> Layout {
        let mut refuse = Refusals { reader, engine, name: &defaults.engine };
        let is_moe = model.moe_layer_count() > 0;
        let alone = Layout { attention_tp: tp, ranks: None };
        let of = |attention_tp: u32, count: u32, sharing: Sharing| match count {
            1 => alone,
            _ => Layout { attention_tp, ranks: Some(Ranks { count, sharing }) },
        };
        self.check_owners(&mut refuse, &defaults.scheduler, tp);
        match defaults.scheduler {
            Scheduler::Vllm if self.size > 1 && !is_moe => {
                let ranks = format!("{} is no mixture of experts: its ranks", model.name);
                refuse.independent(self.size, &ranks, "least_outstanding");
                alone
            }
            Scheduler::Vllm => of(tp, self.size, Sharing::Experts),
            Scheduler::Sglang(_) if self.size > 1 && self.dp_attention != Some(true) => {
                refuse.independent(self.size, "without `enable_dp_attention` the ranks", "round_robin");
                alone
            }
            Scheduler::Sglang(_) if !tp.is_multiple_of(self.size) => {
                let message = format!("tensor_parallel_size ({tp}) must be divisible by data_parallel_size");
                refuse.one(&keys::DATA_PARALLEL_SIZE, message, &format!("expected a divisor of {tp}"));
                alone
            }
            Scheduler::Sglang(_) => of(tp / self.size, self.size, Sharing::FeedForwardAndHead),
            Scheduler::TensorRtLlm(_) if self.size > 1 => {
                let label = "`enable_attention_dp = true` makes every GPU of tensor_parallel_size a rank";
                refuse.foreign(&keys::DATA_PARALLEL_SIZE, "vllm's and sglang's", label);
                alone
            }
            Scheduler::TensorRtLlm(_) if self.attention_dp == Some(true) && !is_moe => {
                let message =
                    format!("attention data parallelism of {}, a dense model, is not built", model.name);
                refuse.one(&keys::ENABLE_ATTENTION_DP, message, "only for mixtures of experts");
                alone
            }
            Scheduler::TensorRtLlm(_) if self.attention_dp == Some(true) => of(1, tp, Sharing::Experts),
            Scheduler::TensorRtLlm(_) => alone,
        }
    }

    /// Whether the options are the engine's own, and those of ranks come with ranks.
    fn check_owners(&self, refuse: &mut Refusals<'_, '_, '_, '_>, scheduler: &Scheduler, tp: u32) {
        let is_tensorrt_llm = matches!(scheduler, Scheduler::TensorRtLlm(_));
        if self.dp_attention.is_some() && !matches!(scheduler, Scheduler::Sglang(_)) {
            refuse.foreign(&keys::ENABLE_DP_ATTENTION, "sglang's", "leave it out");
        }
        if self.attention_dp.is_some() && !is_tensorrt_llm {
            refuse.foreign(&keys::ENABLE_ATTENTION_DP, "tensorrt-llm's", "leave it out");
        }
        if refuse.engine.find(&keys::ATTENTION_DP_CONFIG).is_some() && !is_tensorrt_llm {
            refuse.foreign(&keys::ATTENTION_DP_CONFIG, "tensorrt-llm's", "leave it out");
        } else if self.balance.is_some() && (tp == 1 || !self.attention_dp()) {
            let message = "`engine.attention_dp_config.enable_balance` without ranks".to_owned();
            let label = "it needs `enable_attention_dp = true` and several GPUs in tensor_parallel_size";
            refuse.one(&keys::ATTENTION_DP_CONFIG, message, label);
        }
    }
}

/// `[engine.attention_dp_config]`, unless it is off.
fn balance<'d>(reader: &mut Reader<'d>, engine: &Section<'d>) -> Option<PromptBalance> {
    engine.find(&keys::ATTENTION_DP_CONFIG)?;
    let table = &attention_dp_config::ATTENTION_DP_CONFIG;
    let section = reader.open(engine, &keys::ATTENTION_DP_CONFIG, table);
    let is_on = reader.boolean(&section, &attention_dp_config::ENABLE_BALANCE);
    let timeout_iters = reader.integer(&section, &attention_dp_config::TIMEOUT_ITERS);
    let batching_wait_iters = reader.integer(&section, &attention_dp_config::BATCHING_WAIT_ITERS);
    for key in [&attention_dp_config::TIMEOUT_ITERS, &attention_dp_config::BATCHING_WAIT_ITERS] {
        if is_on != Some(true) && section.find(key).is_some() {
            reader.warnings.push(format!(
                "`engine.attention_dp_config.{}` makes no rank wait without `enable_balance = true`",
                key.name
            ));
        }
    }
    let (timeout_iters, batching_wait_iters) = (timeout_iters?, batching_wait_iters?);
    (is_on == Some(true)).then_some(PromptBalance { timeout_iters, batching_wait_iters })
}

impl Layout {
    /// GPUs over which routed experts are spread.
    pub fn gpus(&self) -> u32 {
        self.attention_tp.saturating_mul(self.count())
    }

    pub fn count(&self) -> u32 {
        self.ranks.map_or(1, |ranks| ranks.count)
    }

    /// How the engine balances requests over its ranks.
    pub fn policy(scheduler: &Scheduler) -> RankPolicy {
        match scheduler {
            Scheduler::Vllm => RankPolicy::WaitingAndRunning,
            Scheduler::Sglang(_) => RankPolicy::RoundRobin,
            Scheduler::TensorRtLlm(_) => RankPolicy::PromptTokens,
        }
    }

    /// Whether what else is asked for goes with several ranks.
    pub fn check(&self, reader: &mut Reader<'_>, engine: &Section<'_>, stages: u32, static_batches: bool) {
        if self.ranks.is_none() {
            return;
        }
        for (key, given) in [
            (&keys::PIPELINE_PARALLEL_SIZE, stages > 1),
            (&keys::SPECULATIVE_CONFIG, engine.find(&keys::SPECULATIVE_CONFIG).is_some()),
            (&keys::BATCHING, static_batches),
        ] {
            if given {
                let message = format!("`engine.{}` with data-parallel ranks is not built yet", key.name);
                reader.problem(Problem::new(engine.place(key), message).label("leave one of the two out"));
            }
        }
    }

    /// SGLang's chunk size and its limit of running requests are those of all ranks together; here they become
    /// one rank's. `max_num_seqs` as given.
    pub fn divide(
        &self,
        reader: &mut Reader<'_>,
        engine: &Section<'_>,
        defaults: &mut EngineDefaults,
        max_num_seqs: Option<u32>,
    ) {
        let ranks = self.count();
        let Scheduler::Sglang(sglang) = &mut defaults.scheduler else { return };
        if ranks == 1 {
            return;
        }
        sglang.schedule_conservativeness *= CONSERVATIVENESS_FACTOR;
        defaults.max_num_batched_tokens /= ranks;
        if max_num_seqs.is_some() {
            defaults.max_num_seqs /= ranks;
        }
        for (key, value) in [
            (&keys::MAX_NUM_BATCHED_TOKENS, defaults.max_num_batched_tokens),
            (&keys::MAX_NUM_SEQS, defaults.max_num_seqs),
        ] {
            if value == 0 {
                let message = format!("`{}` of all {ranks} ranks together leaves nothing for each", key.name);
                reader.problem(
                    Problem::new(engine.place(key), message).label(format!("expected at least {ranks}")),
                );
            }
        }
    }
}

/// Records what is wrong.
struct Refusals<'a, 'r, 'd, 'e> {
    reader: &'a mut Reader<'r>,
    engine: &'a Section<'d>,
    name: &'e str,
}

impl Refusals<'_, '_, '_, '_> {
    fn one(&mut self, key: &'static Key, message: String, label: &str) {
        self.reader.problem(Problem::new(self.engine.place(key), message).label(label));
    }

    fn foreign(&mut self, key: &'static Key, owners: &str, label: &str) {
        let message = format!("{} has no option `{}`: it is {owners}", self.name, key.name);
        self.one(key, message, label);
    }

    fn independent(&mut self, size: u32, ranks: &str, router: &str) {
        let message = format!("data_parallel_size = {size} means independent engines here");
        let place = self.engine.place(&keys::DATA_PARALLEL_SIZE);
        let label = format!("{ranks} share nothing and do not wait for each other");
        let help = format!("`deployment.replicas = {size}` behind `router = \"{router}\"` simulates that");
        self.reader.problem(Problem::new(place, message).label(label).help(help));
    }
}
