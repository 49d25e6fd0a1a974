//! Every key of a scenario file: its type and range, its default, its meaning.
//!
//! One table for everything that needs it: the reader takes a key's range and default from here, the
//! suggestions for a mistyped key its neighbours, the reference and the schema their rows. A key that is
//! not here cannot be read, for the reader asks by these constants.

use crate::units::plain;

/// A table of the file, such as `[engine]`.
#[derive(Debug)]
pub struct Table {
    /// Dotted, empty for the top of the file; an array of tables by its name alone.
    pub path: &'static str,
    pub keys: &'static [&'static Key],
}

/// One key.
#[derive(Debug)]
pub struct Key {
    pub name: &'static str,
    pub kind: Kind,
    pub fallback: Fallback,
    pub meaning: &'static str,
}

/// What a key holds.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    Text,
    Choice(&'static [&'static str]),
    Integer {
        min: i64,
        max: i64,
    },
    Number(Range),
    Boolean,
    /// The text, or a number in the range.
    NumberOr(&'static str, Range),
    IntegerOr(&'static str, i64, i64),
    /// A distribution of token counts; a bare number is a constant.
    Tokens,
    /// `[probability, value]` points of an inverse distribution function.
    Points,
    /// `[seconds, requests per second]` points of a rate that varies.
    Rates,
    /// Requests per second in equal parts of a day.
    DailyRates,
    /// A distribution of seconds: the key carries the unit.
    Seconds,
    /// A distribution of seconds whose parameters carry the unit.
    TimesWithUnit,
    /// `{ file = "pairs.csv" }`
    LengthFile,
    /// `<metric>_<statistic>_ms`, `<metric>_ms` and `attainment`.
    Slo,
    /// Quoted scenario keys with the values they take.
    Axes,
    /// `true`, or a table without keys.
    Flag,
    Table(&'static Table),
    Tables(&'static Table),
}

/// Numbers from `min` (itself excluded if `open`) to `max`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Range {
    pub min: f64,
    pub open: bool,
    pub max: f64,
}

/// What holds where the key is absent.
#[derive(Clone, Copy, Debug)]
pub enum Fallback {
    /// With an example of it.
    Required(&'static str),
    /// In words: the value depends on something else, or nothing is needed.
    Depends(&'static str),
    Integer(i64),
    Number(f64),
    Text(&'static str),
}

const LARGEST: f64 = 1e9;
pub(super) const POSITIVE: Range = Range { min: 0.0, open: true, max: LARGEST };
pub(super) const NOT_NEGATIVE: Range = Range { open: false, ..POSITIVE };
pub(super) const FRACTION: Range = Range { min: 0.0, open: true, max: 1.0 };
pub(super) const UP_TO_ONE: Range = Range { min: 0.0, open: false, max: 1.0 };
const AT_LEAST_ONE: Range = Range { min: 1.0, open: false, max: LARGEST };
const COUNT: Kind = Kind::Integer { min: 1, max: 1_000_000_000 };
const GPUS: Kind = Kind::Integer { min: 1, max: 4096 };

impl Fallback {
    /// Such as "the engine's" or "16".
    #[must_use]
    pub fn describe(&self) -> String {
        match self {
            Self::Required(_) => "none, it must be given".to_owned(),
            Self::Depends(words) => (*words).to_owned(),
            Self::Integer(value) => value.to_string(),
            Self::Number(value) => value.to_string(),
            Self::Text(text) => format!("\"{text}\""),
        }
    }
}

impl Key {
    /// How it can be written: its own example, or for a table those of its keys that must be there.
    #[must_use]
    pub fn example(&self) -> Option<String> {
        match (self.fallback, self.kind) {
            (Fallback::Required(example), _) => Some(example.to_owned()),
            (_, Kind::Table(table)) => {
                let example =
                    table.keys.iter().filter(|key| key.fallback.is_required()).find_map(|key| key.example());
                example.map(|example| format!("[{}] with {example}", table.path))
            }
            (_, Kind::Tokens) => Some(format!("{} = 512", self.name)),
            _ => None,
        }
    }
}

impl Range {
    #[must_use]
    pub fn contains(&self, value: f64) -> bool {
        let above = if self.open { value > self.min } else { value >= self.min };
        above && value <= self.max
    }

    /// Such as "a number above 0"; the largest number that can be written is left out.
    #[must_use]
    pub fn describe(&self) -> String {
        let Self { min, open, max } = self;
        match (*open, *max == LARGEST) {
            (true, true) => format!("a number above {min}"),
            (false, true) => format!("a number of at least {min}"),
            (true, false) => format!("a number above {min} and at most {max}"),
            (false, false) => format!("a number from {min} to {max}"),
        }
    }
}

impl Kind {
    /// As [`Kind::describe`], for a `value` that is refused: where it is too large, with the largest there is.
    #[must_use]
    pub fn describe_to(&self, value: Option<f64>) -> String {
        let (words, max) = match self {
            Self::Number(range) | Self::NumberOr(_, range) => (self.describe(), range.max),
            Self::Integer { max, .. } | Self::IntegerOr(_, _, max) => (self.describe(), *max as f64),
            _ => return self.describe(),
        };
        let is_told = max < LARGEST;
        match value {
            Some(value) if value > max && !is_told => format!("{words} and at most {}", plain(max)),
            _ => words,
        }
    }

    /// Such as "a whole number of at least 1".
    #[must_use]
    pub fn describe(&self) -> String {
        match self {
            Self::Text => "a text".to_owned(),
            Self::Choice(choices) => format!("one of {}", list(choices.iter().map(|c| format!("\"{c}\"")))),
            Self::Integer { min, max } => integers(*min, *max),
            Self::Number(range) => range.describe(),
            Self::Boolean => "true or false".to_owned(),
            Self::NumberOr(word, range) => format!("\"{word}\" or {}", range.describe()),
            Self::IntegerOr(word, min, max) => format!("\"{word}\" or {}", integers(*min, *max)),
            Self::Points => "a list of [probability, value] points".to_owned(),
            Self::Rates => "a list of [seconds, requests per second] points".to_owned(),
            Self::DailyRates => "a list of requests per second, in equal parts of a day".to_owned(),
            Self::Tokens => "a number of tokens or a distribution of them".to_owned(),
            Self::Seconds => "a number of seconds or a distribution of them".to_owned(),
            Self::TimesWithUnit => "a distribution of seconds".to_owned(),
            Self::LengthFile => "{ file = \"pairs.csv\" }".to_owned(),
            Self::Slo => "a table of objectives".to_owned(),
            Self::Axes | Self::Table(_) => "a table".to_owned(),
            Self::Flag => "true or a table without keys".to_owned(),
            Self::Tables(_) => "a list of tables".to_owned(),
        }
    }
}

impl Kind {
    /// Whether a bare number is a possible value, as far as its range says.
    #[must_use]
    pub fn allows(&self, value: f64) -> bool {
        match self {
            Self::Integer { min, max } => {
                value == libm::trunc(value) && (*min as f64..=*max as f64).contains(&value)
            }
            Self::Number(range) => range.contains(value),
            _ => false,
        }
    }
}

impl Fallback {
    /// The number that holds where the key is absent.
    #[must_use]
    pub const fn number(&self) -> Option<f64> {
        match self {
            Self::Number(value) => Some(*value),
            _ => None,
        }
    }

    #[must_use]
    pub const fn is_required(&self) -> bool {
        matches!(self, Self::Required(_))
    }
}

const LARGEST_INTEGER: i64 = 1_000_000_000;

fn integers(min: i64, max: i64) -> String {
    if max >= LARGEST_INTEGER {
        format!("a whole number of at least {min}")
    } else {
        format!("a whole number from {min} to {max}")
    }
}

/// "a, b, c".
pub(super) fn list<T: ToString>(items: impl IntoIterator<Item = T>) -> String {
    let items: Vec<String> = items.into_iter().map(|item| item.to_string()).collect();
    items.join(", ")
}

macro_rules! table {
    ($module:ident, $table:ident, $path:literal: $($id:ident = $name:literal, $kind:expr, $fallback:expr, $meaning:literal;)*) => {
        /// The keys of one table.
        pub(super) mod $module {
            use super::*;
            $(#[doc = $meaning] pub static $id: Key = Key {
                name: $name,
                kind: $kind,
                fallback: $fallback,
                meaning: $meaning,
            };)*
            pub static $table: Table = Table { path: $path, keys: &[$(&$id),*] };
        }
    };
}

use Fallback::{Depends, Required};

table! { root, ROOT, "":
    NAME = "name", Kind::Text, Depends("the file's stem"), "what the scenario is called in results";
    DESCRIPTION = "description", Kind::Text, Fallback::Text(""), "what it is about, in a sentence or two";
    SEED = "seed", Kind::Integer { min: 0, max: i64::MAX }, Fallback::Integer(1), "seed of all random streams";
    MODEL = "model", Kind::Table(&model::MODEL), Depends("required unless the engine is synthetic"), "the language model";
    HARDWARE = "hardware", Kind::Table(&hardware::HARDWARE), Depends("required unless the engine is synthetic"), "the GPU";
    ENGINE = "engine", Kind::Table(&engine::ENGINE), Depends("vLLM with its own defaults"), "the serving engine and its options";
    DEPLOYMENT = "deployment", Kind::Table(&deployment::DEPLOYMENT), Depends("one replica"), "how many replicas, behind which router";
    ARRIVALS = "arrivals", Kind::Table(&arrivals::ARRIVALS), Required("arrivals.poisson.rate_per_s = 2.0"), "when requests are sent: exactly one kind";
    CLASS = "class", Kind::Tables(&class::CLASS), Depends("one class taking everything, with a trace"), "groups of requests with the same lengths and promises";
    RUN = "run", Kind::Table(&run::RUN), Depends("10,000 requests, 5 replications"), "how long and how often to run";
    SWEEP = "sweep", Kind::Axes, Depends("no sweep"), "scenario keys (quoted) and the values they take; mode = \"product\", \"zip\" or \"latin_hypercube\" (with samples) puts them together";
    COST = "cost", Kind::Table(&cost::COST), Depends("the catalog's price"), "what a GPU costs";
}

table! { model, MODEL, "model":
    NAME = "name", Kind::Text, Required("name = \"llama-3.1-8b\""), "short name, Hugging Face id, or path to a config.json";
    WEIGHT_DTYPE = "weight_dtype", Kind::Choice(&["auto", "bf16", "fp8", "mxfp4", "nvfp4", "int8", "int4"]), Depends("the model's own"), "number format of the weights";
}

table! { hardware, HARDWARE, "hardware":
    GPU = "gpu", Kind::Text, Required("gpu = \"h100-sxm\""), "the GPU, such as h100-sxm";
    PROFILE = "profile", Kind::Text, Fallback::Text("auto"), "step-time profile: auto, a name, or a path";
}

/// Engines with a model behind them.
pub(super) const ENGINES: &[&str] = &["vllm", "sglang", "tensorrt-llm", "synthetic"];

table! { engine, ENGINE, "engine":
    NAME = "name", Kind::Choice(ENGINES), Fallback::Text("vllm"), "the engine";
    VERSION = "version", Kind::Text, Depends("the newest in the table"), "its version; brings that version's defaults; auto: the newest in the table";
    TENSOR_PARALLEL_SIZE = "tensor_parallel_size", GPUS, Fallback::Integer(1), "GPUs that share every layer";
    PIPELINE_PARALLEL_SIZE = "pipeline_parallel_size", GPUS, Fallback::Integer(1), "vllm only: stages of layers, each of tensor_parallel_size GPUs";
    DATA_PARALLEL_SIZE = "data_parallel_size", GPUS, Fallback::Integer(1), "ranks that step together, each with scheduler, KV cache and attention of its own: vllm on tensor_parallel_size GPUs each, sglang within them";
    ENABLE_DP_ATTENTION = "enable_dp_attention", Kind::Boolean, Depends("sglang: false"), "sglang only: the ranks of data_parallel_size share feed-forward layers (without it they are replicas)";
    ENABLE_ATTENTION_DP = "enable_attention_dp", Kind::Boolean, Depends("tensorrt-llm: false"), "tensorrt-llm only: every GPU of tensor_parallel_size is a rank of its own but for routed experts";
    ENABLE_EXPERT_PARALLEL = "enable_expert_parallel", Kind::Boolean, Depends("false"), "whole experts on one GPU each, over the GPUs of all ranks";
    MAX_NUM_SEQS = "max_num_seqs", Kind::Integer { min: 1, max: 1_000_000 }, Depends("the engine's"), "sequences that run at once";
    MAX_NUM_BATCHED_TOKENS = "max_num_batched_tokens", COUNT, Depends("the engine's"), "token budget of a step";
    MAX_MODEL_LEN = "max_model_len", Kind::IntegerOr("auto", 1, 1_000_000_000), Depends("the model's own, or what the KV pool holds"), "prompt + output of a request may not exceed it";
    GPU_MEMORY_UTILIZATION = "gpu_memory_utilization", Kind::Number(FRACTION), Depends("the engine's"), "fraction of GPU memory the engine takes";
    BLOCK_SIZE = "block_size", Kind::Integer { min: 1, max: 4096 }, Depends("the engine's"), "tokens per KV block";
    KV_CACHE_DTYPE = "kv_cache_dtype", Kind::Choice(&["auto", "bf16", "fp8"]), Fallback::Text("auto"), "number format of the KV cache; auto: bf16";
    ENABLE_PREFIX_CACHING = "enable_prefix_caching", Kind::Boolean, Depends("false"), "shared prompt prefixes (only false is built)";
    ENABLE_CHUNKED_PREFILL = "enable_chunked_prefill", Kind::Boolean, Depends("the engine's"), "prompts may be split over steps";
    NUM_GPU_BLOCKS_OVERRIDE = "num_gpu_blocks_override", COUNT, Depends("computed from memory"), "KV blocks, as an engine's log prints them";
    SCHEDULING_POLICY = "scheduling_policy", Kind::Choice(&["fcfs", "priority"]), Fallback::Text("fcfs"), "who is served first";
    WATERMARK = "watermark", Kind::Number(UP_TO_ONE), Depends("the engine's"), "fraction of blocks kept free at admission";
    SCHEDULE_CONSERVATIVENESS = "schedule_conservativeness", Kind::Number(POSITIVE), Depends("sglang: 1.0"), "sglang only: scales the output that running requests are assumed to need still";
    MAX_PREFILL_TOKENS = "max_prefill_tokens", COUNT, Depends("sglang: 16384"), "sglang only: prompt tokens up to which a step takes another prompt";
    SCHEDULER_RECV_INTERVAL = "scheduler_recv_interval", Kind::Integer { min: 1, max: 1000 }, Depends("sglang: 1"), "sglang only: decode steps between two looks at new requests";
    ENABLE_MIXED_CHUNK = "enable_mixed_chunk", Kind::Boolean, Depends("sglang: false"), "sglang only: decodes in prompt steps (only false is built)";
    CAPACITY_SCHEDULER_POLICY = "capacity_scheduler_policy", Kind::Choice(&["GUARANTEED_NO_EVICT", "MAX_UTILIZATION"]), Depends("tensorrt-llm: GUARANTEED_NO_EVICT"), "tensorrt-llm only: whether a request is admitted with room for its whole output or its prompt";
    ATTENTION_DP_CONFIG = "attention_dp_config", Kind::Table(&attention_dp_config::ATTENTION_DP_CONFIG), Depends("none"), "tensorrt-llm only: when the ranks of enable_attention_dp compute prompts";
    BATCH_WAIT_TIMEOUT_ITERS = "batch_wait_timeout_iters", Kind::Integer { min: 0, max: 1_000_000 }, Depends("tensorrt-llm: 0"), "tensorrt-llm only: steps for which prompts wait at most, while others decode, to be computed together; 0: none";
    BATCH_WAIT_MAX_TOKENS_RATIO = "batch_wait_max_tokens_ratio", Kind::Number(UP_TO_ONE), Depends("tensorrt-llm: 0"), "tensorrt-llm only: share of max_num_batched_tokens that ends that wait when prompts and decodes of a step reach it; 0: none";
    SPECULATIVE_CONFIG = "speculative_config", Kind::Table(&speculative_config::SPECULATIVE_CONFIG), Depends("none"), "vllm only: speculative decoding by acceptance length";
    ENFORCE_EAGER = "enforce_eager", Kind::Boolean, Depends("vllm: false"), "vllm only: no CUDA graphs; every step takes at least as long as launching its kernels";
    MAX_CUDAGRAPH_CAPTURE_SIZE = "max_cudagraph_capture_size", COUNT, Depends("vllm: 2 x max_num_seqs, at most 512"), "vllm only: largest decode batch that a CUDA graph holds, in tokens";
    BATCHING = "batching", Kind::Choice(&["continuous", "static"]), Fallback::Text("continuous"), "whether a batch changes at every step or runs to its longest member";
}

table! { attention_dp_config, ATTENTION_DP_CONFIG, "engine.attention_dp_config":
    ENABLE_BALANCE = "enable_balance", Kind::Boolean, Depends("false"), "while all ranks decode, prompts wait until each has some";
    TIMEOUT_ITERS = "timeout_iters", Kind::Integer { min: 0, max: 1_000_000 }, Fallback::Integer(50), "with enable_balance: every so many steps without prompts on each rank, those that are there run";
    BATCHING_WAIT_ITERS = "batching_wait_iters", Kind::Integer { min: 0, max: 1_000_000 }, Fallback::Integer(10), "with enable_balance: steps for which prompts wait for more once each rank has some";
}

table! { speculative_config, SPECULATIVE_CONFIG, "engine.speculative_config":
    METHOD = "method", Kind::Choice(&["ngram", "eagle", "eagle3", "mtp", "draft_model"]), Required("method = \"eagle3\""), "who drafts: look-up in the prompt, a layer more of the model, or a smaller model";
    NUM_SPECULATIVE_TOKENS = "num_speculative_tokens", Kind::Integer { min: 1, max: 64 }, Required("num_speculative_tokens = 3"), "tokens drafted for each sequence and step";
    MEAN_ACCEPTANCE_LENGTH = "mean_acceptance_length", Kind::Number(AT_LEAST_ONE), Required("mean_acceptance_length = 2.4"), "tokens that a sequence gets per step on average, the model's own one included, as vLLM logs it";
    MODEL = "model", Kind::Text, Depends("none"), "draft_model only: the model that drafts";
}

table! { synthetic, SYNTHETIC, "engine":
    NAME = "name", Kind::Choice(ENGINES), Fallback::Text("vllm"), "the engine";
    SERVERS = "servers", Kind::Integer { min: 1, max: 1_000_000 }, Fallback::Integer(1), "identical servers behind one queue, in each replica";
    SERVICE_TIME = "service_time", Kind::TimesWithUnit, Depends("from requests_per_s"), "how long a server is busy with a request";
    REQUESTS_PER_S = "requests_per_s", Kind::Number(POSITIVE), Depends("from service_time"), "requests that one server completes a second: a constant service time of its inverse";
    QUEUE_LIMIT = "queue_limit", Kind::Integer { min: 0, max: 1_000_000_000 }, Depends("none"), "requests that may wait in a replica";
}

table! { deployment, DEPLOYMENT, "deployment":
    REPLICAS = "replicas", Kind::Integer { min: 1, max: 100_000 }, Fallback::Integer(1), "copies of the engine";
    ROUTER = "router", Kind::Choice(&["round_robin", "random", "least_outstanding", "power_of_two"]), Fallback::Text("round_robin"), "which replica a request goes to";
}

table! { arrivals, ARRIVALS, "arrivals":
    POISSON = "poisson", Kind::Table(&poisson::POISSON), Depends("one kind is required"), "independent users: exponential gaps";
    GAMMA = "gamma", Kind::Table(&gamma::GAMMA), Depends("one kind is required"), "gamma-distributed gaps";
    WEIBULL = "weibull", Kind::Table(&weibull::WEIBULL), Depends("one kind is required"), "Weibull-distributed gaps";
    CONSTANT = "constant", Kind::Table(&constant::CONSTANT), Depends("one kind is required"), "equal gaps";
    MMPP = "mmpp", Kind::Table(&mmpp::MMPP), Depends("one kind is required"), "independent users whose rate jumps between states";
    PROFILE = "profile", Kind::Table(&profile::PROFILE), Depends("one kind is required"), "independent users whose rate follows a curve, such as a day's";
    RAMP = "ramp", Kind::Table(&ramp::RAMP), Depends("one kind is required"), "independent users whose rate rises or falls steadily";
    CLOSED = "closed", Kind::Table(&closed::CLOSED), Depends("one kind is required"), "users who wait for their answer, think, and ask again";
    ALL_AT_ONCE = "all_at_once", Kind::Flag, Depends("one kind is required"), "every request at time 0";
    TRACE = "trace", Kind::Table(&trace::TRACE), Depends("one kind is required"), "recorded arrivals and lengths";
}

table! { poisson, POISSON, "arrivals.poisson":
    RATE_PER_S = "rate_per_s", Kind::Number(POSITIVE), Required("rate_per_s = 2.0"), "requests per second";
}

table! { gamma, GAMMA, "arrivals.gamma":
    RATE_PER_S = "rate_per_s", Kind::Number(POSITIVE), Required("rate_per_s = 2.0"), "requests per second";
    BURSTINESS = "burstiness", Kind::Number(Range { min: 0.0, open: true, max: 1e6 }), Fallback::Number(1.0), "vLLM's: squared coefficient of variation of the gaps = 1/burstiness";
}

table! { constant, CONSTANT, "arrivals.constant":
    RATE_PER_S = "rate_per_s", Kind::Number(POSITIVE), Required("rate_per_s = 2.0"), "requests per second";
}

table! { weibull, WEIBULL, "arrivals.weibull":
    RATE_PER_S = "rate_per_s", Kind::Number(POSITIVE), Required("rate_per_s = 2.0"), "requests per second";
    SHAPE = "shape", Kind::Number(Range { min: 0.1, open: false, max: 100.0 }), Required("shape = 0.7"), "below 1 burstier than independent users, above 1 more regular";
}

table! { mmpp, MMPP, "arrivals.mmpp":
    STATES = "states", Kind::Tables(&mmpp_state::MMPP_STATE), Required("states = [{ rate_per_s = 1.0, mean_dwell_s = 60 }, { rate_per_s = 9.0, mean_dwell_s = 10 }]"), "visited in turn, each for an exponential time";
    SCALE = "scale", Kind::Number(POSITIVE), Fallback::Number(1.0), "factor on all rates";
}

table! { mmpp_state, MMPP_STATE, "arrivals.mmpp.states":
    RATE_PER_S = "rate_per_s", Kind::Number(NOT_NEGATIVE), Required("rate_per_s = 2.0"), "requests per second in this state";
    MEAN_DWELL_S = "mean_dwell_s", Kind::Number(Range { min: 1e-3, open: false, max: LARGEST }), Required("mean_dwell_s = 60"), "mean time spent in it";
}

table! { profile, PROFILE, "arrivals.profile":
    RATE_PER_S = "rate_per_s", Kind::Rates, Depends("required unless daily_rate_per_s is given"), "[seconds, requests per second] points, the first at 0 s";
    DAILY_RATE_PER_S = "daily_rate_per_s", Kind::DailyRates, Depends("from rate_per_s"), "requests per second in equal parts of a day (24: hours), repeating";
    INTERPOLATION = "interpolation", Kind::Choice(&["step", "linear"]), Fallback::Text("step"), "whether a rate holds until the next point or runs straight to it";
    PERIOD_S = "period_s", Kind::Number(POSITIVE), Depends("a day with daily_rate_per_s; else the last rate holds for ever"), "when the profile starts again";
    SCALE = "scale", Kind::Number(POSITIVE), Fallback::Number(1.0), "factor on all rates";
}

table! { ramp, RAMP, "arrivals.ramp":
    FROM_PER_S = "from_per_s", Kind::Number(NOT_NEGATIVE), Required("from_per_s = 1.0"), "requests per second at the start";
    TO_PER_S = "to_per_s", Kind::Number(NOT_NEGATIVE), Required("to_per_s = 10.0"), "requests per second at the end, which then holds";
    DURATION_S = "duration_s", Kind::Number(POSITIVE), Required("duration_s = 600"), "time from one to the other";
}

table! { closed, CLOSED, "arrivals.closed":
    USERS = "users", Kind::Integer { min: 1, max: 10_000_000 }, Required("users = 64"), "users, each with one request in flight at most";
    THINK_TIME_S = "think_time_s", Kind::Seconds, Fallback::Number(0.0), "time from an answer to the user's next request";
}

table! { trace, TRACE, "arrivals.trace":
    FILE = "file", Kind::Text, Required("file = \"trace.csv\""), "CSV of ours or Azure's, or Mooncake's JSON lines; relative to the scenario file";
}

table! { class, CLASS, "class":
    NAME = "name", Kind::Text, Depends("default, or class-<number>"), "what the class is called";
    SHARE = "share", Kind::Number(FRACTION), Depends("1 for a single class"), "fraction of the requests; all shares add up to 1";
    PRIORITY = "priority", Kind::Integer { min: -2_147_483_648, max: 2_147_483_647 }, Fallback::Integer(0), "smaller is served first under scheduling_policy = \"priority\"";
    INPUT_TOKENS = "input_tokens", Kind::Tokens, Depends("required with a model, unless lengths is given"), "prompt tokens of a request";
    OUTPUT_TOKENS = "output_tokens", Kind::Tokens, Depends("required with a model, unless lengths is given"), "tokens it generates";
    LENGTHS = "lengths", Kind::LengthFile, Depends("input_tokens and output_tokens"), "pairs of input_tokens,output_tokens drawn together from a CSV";
    SLO = "slo", Kind::Slo, Depends("none: goodput and capacity are not claimed"), "objectives, such as { ttft_p99_ms = 500 }";
}

table! { run, RUN, "run":
    REQUESTS = "requests", COUNT, Depends("10,000; a trace: all of it; a profile: once over it"), "requests of a replication";
    DURATION_S = "duration_s", Kind::Number(POSITIVE), Depends("from requests"), "simulated time in which requests are sent";
    MODE = "mode", Kind::Choice(&["steady", "benchmark"]), Depends("steady; trace, all_at_once, profile and ramp: benchmark"), "steady removes warm-up and drain, benchmark keeps them as load generators do";
    REPLICATIONS = "replications", Kind::Integer { min: 1, max: 10_000 }, Depends("5; trace and all_at_once: 1"), "independent repetitions";
    WARMUP = "warmup", Kind::NumberOr("auto", NOT_NEGATIVE), Fallback::Text("auto"), "seconds deleted from the start; auto: a tenth of the run, more where the replications together show a longer start";
}

table! { cost, COST, "cost":
    GPU_HOUR_USD = "gpu_hour_usd", Kind::Number(NOT_NEGATIVE), Depends("the catalog's price"), "price of one GPU for an hour";
}

table! { measurement, MEASUREMENT, "measurement":
    NAME = "name", Kind::Text, Depends("the file's stem"), "what the measurement is called in results";
    SOURCE = "source", Kind::Text, Fallback::Text(""), "who measured it, and where it was published";
    REQUESTS = "requests", Kind::Text, Depends("one of requests, points, point"), "CSV with a row a request: send_s,input_tokens,output_tokens,ttft_ms,e2e_ms; relative to the set";
    CLIENT_MAX_IN_FLIGHT = "client_max_in_flight", COUNT, Depends("requests are replayed at their send times"), "the client's cap: the requests are replayed as a closed loop of that many";
    POINTS = "points", Kind::Text, Depends("one of requests, points, point"), "CSV with a row a load point, its columns named as the keys of measurement.point; relative to the set";
    POINT = "point", Kind::Tables(&measured_point::MEASURED_POINT), Depends("one of requests, points, point"), "load points written in the set itself";
    HOLDOUT = "holdout", Kind::Boolean, Depends("false"), "scored, never fitted";
    MODEL = "model", Kind::Table(&model::MODEL), Depends("the set's"), "what differs from the set's table";
    HARDWARE = "hardware", Kind::Table(&hardware::HARDWARE), Depends("the set's"), "what differs from the set's table";
    ENGINE = "engine", Kind::Table(&engine::ENGINE), Depends("the set's"), "what differs from the set's table";
    DEPLOYMENT = "deployment", Kind::Table(&deployment::DEPLOYMENT), Depends("the set's"), "what differs from the set's table";
}

const MILLISECONDS: Kind = Kind::Number(Range { min: 1e-3, open: false, max: LARGEST });

const PER_SECOND: Kind = Kind::Number(Range { min: 1e-6, open: false, max: LARGEST });

table! { measured_point, MEASURED_POINT, "measurement.point":
    ARRIVAL = "arrival", Kind::Choice(&["closed", "poisson", "gamma", "constant", "all_at_once"]), Depends("closed with a concurrency, else poisson"), "how requests were sent";
    CONCURRENCY = "concurrency", COUNT, Depends("needed for closed"), "users of a closed loop who all start at time 0";
    RATE_PER_S = "rate_per_s", PER_SECOND, Depends("needed for poisson, gamma and constant"), "requests per second";
    BURSTINESS = "burstiness", Kind::Number(POSITIVE), Fallback::Number(1.0), "vLLM's, of gamma arrivals";
    COMPLETED = "completed", COUNT, Depends("10 a user; 1,000 without users"), "requests of the run";
    INPUT_TOKENS_MEAN = "input_tokens_mean", Kind::Number(AT_LEAST_ONE), Required("input_tokens_mean = 512"), "mean prompt tokens";
    INPUT_TOKENS_MIN = "input_tokens_min", Kind::Number(POSITIVE), Depends("the mean"), "prompts are uniform from here, both ends scaled to the mean";
    INPUT_TOKENS_MAX = "input_tokens_max", Kind::Number(POSITIVE), Depends("the mean"), "prompts are uniform to here";
    OUTPUT_TOKENS_MEAN = "output_tokens_mean", Kind::Number(AT_LEAST_ONE), Required("output_tokens_mean = 128"), "mean tokens generated";
    OUTPUT_TOKENS_MIN = "output_tokens_min", Kind::Number(POSITIVE), Depends("the mean"), "outputs are uniform from here, both ends scaled to the mean";
    OUTPUT_TOKENS_MAX = "output_tokens_max", Kind::Number(POSITIVE), Depends("the mean"), "outputs are uniform to here";
    TTFT_MEAN_MS = "ttft_mean_ms", MILLISECONDS, Depends("not measured"), "mean time to first token";
    TTFT_P50_MS = "ttft_p50_ms", MILLISECONDS, Depends("not measured"), "median time to first token";
    TTFT_P99_MS = "ttft_p99_ms", MILLISECONDS, Depends("not measured"), "99th percentile of the time to first token";
    TPOT_MEAN_MS = "tpot_mean_ms", MILLISECONDS, Depends("not measured"), "mean time per output token after the first";
    TPOT_P50_MS = "tpot_p50_ms", MILLISECONDS, Depends("not measured"), "median time per output token after the first";
    TPOT_P99_MS = "tpot_p99_ms", MILLISECONDS, Depends("not measured"), "99th percentile of the time per output token after the first";
    E2E_MEAN_MS = "e2e_mean_ms", MILLISECONDS, Depends("not measured"), "mean time from sending to the last token";
    E2E_P50_MS = "e2e_p50_ms", MILLISECONDS, Depends("not measured"), "median time from sending to the last token";
    E2E_P99_MS = "e2e_p99_ms", MILLISECONDS, Depends("not measured"), "99th percentile of the time from sending to the last token";
    REQUESTS_PER_S = "requests_per_s", PER_SECOND, Depends("not measured"), "requests completed per second of the whole run";
    OUTPUT_TOKENS_PER_S = "output_tokens_per_s", PER_SECOND, Depends("not measured"), "output tokens per second of the whole run";
}

/// The top of a measurement set.
pub static MEASUREMENT_SET: Table = Table {
    path: "",
    keys: &[
        &root::NAME,
        &root::DESCRIPTION,
        &root::MODEL,
        &root::HARDWARE,
        &root::ENGINE,
        &root::DEPLOYMENT,
        &MEASUREMENTS,
    ],
};
/// The entries of a measurement set.
pub static MEASUREMENTS: Key = Key {
    name: "measurement",
    kind: Kind::Tables(&measurement::MEASUREMENT),
    fallback: Required("[[measurement]] with points = \"curve.csv\""),
    meaning: "what was measured: requests of a run, or load points",
};

/// The top of the file, from which every table is reached but the synthetic engine's.
pub static TOP: &Table = &root::ROOT;
/// `[engine]` where `engine.name = "synthetic"`.
pub static SYNTHETIC_ENGINE: &Table = &synthetic::SYNTHETIC;

/// Keys of which one replaces the other: setting one from outside removes its siblings.
pub(super) const ALTERNATIVES: &[(&str, &[&str])] = &[
    (
        "arrivals",
        &[
            "poisson",
            "gamma",
            "weibull",
            "constant",
            "mmpp",
            "profile",
            "ramp",
            "closed",
            "all_at_once",
            "trace",
        ],
    ),
    ("arrivals.profile", &["rate_per_s", "daily_rate_per_s"]),
    ("run", &["requests", "duration_s"]),
    ("engine", &["service_time", "requests_per_s"]),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn check(table: &Table, path: &str) {
        for (i, key) in table.keys.iter().enumerate() {
            assert!(!key.meaning.is_empty());
            assert!(table.keys[..i].iter().all(|other| other.name != key.name), "`{}` twice", key.name);
            if let Kind::Table(inner) | Kind::Tables(inner) = key.kind {
                let expected =
                    if path.is_empty() { key.name.to_owned() } else { format!("{path}.{}", key.name) };
                assert_eq!(inner.path, expected);
                check(inner, inner.path);
            }
            // A default must itself be possible.
            match (key.kind, key.fallback) {
                (Kind::Integer { min, max }, Fallback::Integer(value)) => {
                    assert!((min..=max).contains(&value), "{}", key.name);
                }
                (Kind::Number(range), Fallback::Number(value)) => {
                    assert!(range.contains(value), "{}", key.name)
                }
                (Kind::Choice(choices), Fallback::Text(value)) => {
                    assert!(choices.contains(&value), "{}", key.name)
                }
                _ => {}
            }
        }
    }

    /// Its tables of a scenario keep their own paths inside an entry.
    fn check_measurements() {
        for table in [&MEASUREMENT_SET, &measurement::MEASUREMENT, &measured_point::MEASURED_POINT] {
            for (i, key) in table.keys.iter().enumerate() {
                assert!(!key.meaning.is_empty());
                assert!(table.keys[..i].iter().all(|other| other.name != key.name), "`{}` twice", key.name);
            }
        }
    }

    #[test]
    fn the_tables_are_consistent() {
        check(TOP, "");
        check(SYNTHETIC_ENGINE, SYNTHETIC_ENGINE.path);
        check_measurements();
    }
}
