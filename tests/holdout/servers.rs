//! The servers whose curves are fitted: which rows of the published file are theirs, and how they ran.
//!
//! Settings are those of the load generator's public scripts (SemiAnalysisAI/InferenceX, `benchmarks`).

use knee::calibrate::Parameter::{
    self, AttentionCompute, ExpertCorrelation, Fp8KvMemory, HalfTokens, Memory, PrefillLaunchPerLayer,
};

use super::measured::{Lab, Measured, Model};

/// One profile's worth of curves.
pub struct Server {
    pub name: &'static str,
    pub gpu: &'static str,
    /// As the file writes GPU and engine.
    pub system: &'static str,
    pub backend: &'static str,
    pub models: &'static [Source],
    /// Lengths are the nominal ones, not uniform in 0.8 to 1 of them.
    pub fixed_lengths: bool,
    pub also: &'static [Parameter],
    /// Rows of `points/measured.csv` that are used too, or alone where there are no curves.
    pub measured: Option<&'static Measured>,
    /// Of a server without curves; otherwise its models say.
    pub weights: &'static str,
    /// Its rows are those with attention data parallelism; nothing is fitted to them.
    pub ranks: bool,
    /// Loads in the file, by which a changed file is noticed.
    pub loads: usize,
}

impl Server {
    /// Nothing yet, with lengths as InferenceX draws them.
    const PLAIN: Self = Self {
        name: "",
        gpu: "",
        system: "",
        backend: "",
        models: &[],
        fixed_lengths: false,
        also: &[],
        measured: None,
        weights: "",
        ranks: false,
        loads: 0,
    };
}

impl Server {
    /// In which weights its rows of `points/measured.csv` are.
    pub fn weights(&self) -> &'static str {
        self.models.first().map_or(self.weights, |source| source.weights)
    }
}

/// The rows of one model, and the settings that are the same for all of them.
pub struct Source {
    pub paths: &'static [&'static str],
    pub precision: &'static str,
    /// `None`: every version is close enough to the one that is simulated.
    pub versions: Option<&'static [&'static str]>,
    pub model: &'static str,
    pub weights: &'static str,
    /// Keys of `[engine]`.
    pub engine: &'static str,
    /// Its GPUs, and whether experts are parallel; empty: all that the file has.
    pub deployments: &'static [(u32, bool)],
    /// All of its runs had parallel experts, whatever the file says of some.
    pub always_expert_parallel: bool,
    /// `scheduler_recv_interval` below 16 users and from there on.
    pub recv_interval: Option<(u32, u32)>,
    pub budget: Budget,
    /// Prompts wait for each other where these and the answers are short, on fewer than 8 GPUs.
    pub batch_wait: bool,
}

/// `max_num_batched_tokens`, from a load's nominal lengths.
#[derive(Clone, Copy)]
pub enum Budget {
    /// What the engine's keys or defaults say.
    Engine,
    Prompts(u32),
    /// A prompt, a token of every user and 64, in multiples of 64.
    PromptAndUsers,
    /// The same, but at least so many.
    PromptAndUsersFrom(u32),
}

impl Budget {
    pub fn tokens(self, input: u32, users: u32) -> Option<u32> {
        match self {
            Self::Engine => None,
            Self::Prompts(count) => Some(count * input),
            Self::PromptAndUsers => Some((input + users + 64).next_multiple_of(64)),
            Self::PromptAndUsersFrom(least) => Some((input + users + 64).next_multiple_of(64).max(least)),
        }
    }
}

impl Source {
    /// What is not special about most.
    const PLAIN: Self = Self {
        paths: &[],
        precision: "",
        versions: None,
        model: "",
        weights: "",
        engine: "",
        deployments: &[],
        always_expert_parallel: false,
        recv_interval: None,
        budget: Budget::Engine,
        batch_wait: false,
    };
}

/// No rows yet.
const OFFLINE: Measured = Measured {
    lab: Lab::Nvidia,
    gpu: "",
    weights: "",
    models: &[],
    versions: &["1.0", "1.2"],
    ranks: true,
    loads: 0,
};
const LLAMAS: &[Model] = &[
    ("Llama-3.1-405B-Instruct", "llama-3.1-405b", 1),
    ("Llama-3.1-8B-Instruct", "llama-3.1-8b", 1),
    ("Llama-3.3-70B-Instruct", "llama-3.1-70b", 1),
];
const QWEN3: &[Model] = &[("Qwen3-30B-A3B", "qwen3-30b-a3b", 1), ("Qwen3-235B-A22B", "qwen3-235b-a22b", 1)];
/// The larger one on more than one H100: how much is left for its KV there is not known well enough.
const GPT_OSS_ON_H100: &[Model] = &[("gpt-oss-20b", "gpt-oss-20b", 1), ("gpt-oss-120b", "gpt-oss-120b", 2)];
const BOTH_GPT_OSS: &[Model] = &[("gpt-oss-20b", "gpt-oss-20b", 1), ("gpt-oss-120b", "gpt-oss-120b", 1)];

const LLAMA: &[&str] = &["meta-llama/Llama-3.1-70B"];
/// H200's runs of 2025-10, with `--async-scheduling`.
const LLAMA_UNDER_VLLM: Source = Source {
    paths: LLAMA,
    precision: "fp8",
    model: "llama-3.1-70b",
    weights: "fp8",
    engine: "name = 'vllm'\nversion = '0.14'\nkv_cache_dtype = 'fp8'\nmax_num_seqs = 64\n",
    ..Source::PLAIN
};
const GPT_OSS: &[&str] = &["openai/gpt-oss-120b"];
const KIMI: &[&str] = &["moonshotai/Kimi-K2.5"];
const MINIMAX: &[&str] = &["MiniMaxAI/MiniMax-M2.5"];
const MINIMAX_ON_BLACKWELL: Source = Source {
    paths: MINIMAX,
    precision: "fp8",
    versions: Some(&["0.19.0"]),
    model: "minimax-m2.5",
    weights: "fp8",
    engine: "name = 'vllm'\nversion = '0.19'\ngpu_memory_utilization = 0.9\nkv_cache_dtype = 'fp8'\nblock_size = 32\n\
             enable_prefix_caching = false\n",
    budget: Budget::Prompts(2),
    ..Source::PLAIN
};
const MINIMAX_IN_NVFP4: Source = Source { precision: "fp4", weights: "nvfp4", ..MINIMAX_ON_BLACKWELL };
const QWEN35: &[&str] = &["Qwen/Qwen3.5-397B-A17B"];
const DEEPSEEK: &[&str] = &["deepseek-ai/DeepSeek-R1", "deepseek-ai/DeepSeek-V3"];
/// Reading weights and caches stays at what kernels reach, where there is a table of them.
const DENSE: &[Parameter] = &[HalfTokens, PrefillLaunchPerLayer];
const NO_TABLE: &[Parameter] = &[Memory, HalfTokens, PrefillLaunchPerLayer];
const EXPERTS: &[Parameter] = &[ExpertCorrelation, PrefillLaunchPerLayer];
/// Whose attention kernels have no table here.
const LATENT_EXPERTS_OF_TENSORRT_LLM: &[Parameter] =
    &[ExpertCorrelation, AttentionCompute, PrefillLaunchPerLayer];
const OFFLINE_TOO: &[Parameter] = &[HalfTokens, Fp8KvMemory, PrefillLaunchPerLayer];

/// `scheduler_recv_interval` of the scripts for B200.
const RECV: Option<(u32, u32)> = Some((10, 30));

/// Under SGLang on B200 and B300; the budgets of the scripts are the same for both.
const QWEN35_IN_BF16: Source = Source {
    paths: QWEN35,
    precision: "bf16",
    model: "qwen3.5-397b-a17b",
    weights: "bf16",
    engine: "name = 'sglang'\nversion = '0.5'\ngpu_memory_utilization = 0.82\n\
             max_num_batched_tokens = 32768\nmax_prefill_tokens = 32768\nmax_num_seqs = 128\n",
    recv_interval: RECV,
    ..Source::PLAIN
};
/// Of 0.5.9, on H200 and B200.
const QWEN35_IN_FP8: Source = Source {
    paths: QWEN35,
    precision: "fp8",
    versions: Some(&["0.5.9"]),
    model: "qwen3.5-397b-a17b",
    weights: "fp8",
    ..Source::PLAIN
};
const QWEN35_IN_NVFP4: Source = Source {
    precision: "fp4",
    weights: "nvfp4",
    engine: "name = 'sglang'\nversion = '0.5'\nkv_cache_dtype = 'fp8'\ngpu_memory_utilization = 0.85\n\
             max_num_batched_tokens = 32768\nmax_prefill_tokens = 32768\nmax_num_seqs = 128\n",
    ..QWEN35_IN_BF16
};

const RANKS_OF_GPT_OSS: &str = "name = 'tensorrt-llm'\nversion = '1.2'\nkv_cache_dtype = 'fp8'\n\
                                gpu_memory_utilization = 0.85\nmax_num_batched_tokens = 20000\n\
                                max_num_seqs = 512\nenable_attention_dp = true\n\
                                attention_dp_config = { enable_balance = true }\n";
const RANKS_OF_DEEPSEEK: &str = "name = 'tensorrt-llm'\nversion = '1.2'\nkv_cache_dtype = 'fp8'\n\
                                 gpu_memory_utilization = 0.8\nenable_attention_dp = true\n\
                                 attention_dp_config = { enable_balance = true, timeout_iters = 60, \
                                 batching_wait_iters = 0 }\n";
/// TensorRT-LLM's ranks on B200.
const RANKS: Server =
    Server { gpu: "b200-sxm", system: "b200_sxm", backend: "trtllm", ranks: true, ..Server::PLAIN };
const DEEPSEEK_ON_RANKS: Source = Source {
    paths: DEEPSEEK,
    precision: "fp4",
    versions: Some(&["1.2.0rc6.post2", "1.2.0rc6.post3"]),
    model: "deepseek-v3",
    weights: "nvfp4",
    engine: RANKS_OF_DEEPSEEK,
    budget: Budget::PromptAndUsersFrom(8192),
    ..Source::PLAIN
};

/// In the order of docs/accuracy.md.
pub const SERVERS: &[Server] = &[
    Server {
        name: "h100-sxm sglang bf16 dense",
        gpu: "h100-sxm",
        system: "h100_sxm",
        backend: "sglang",
        models: &[Source {
            paths: &["Qwen/Qwen3-32B"],
            precision: "",
            versions: Some(&["0.5.1.post1"]),
            model: "qwen3-32b",
            weights: "bf16",
            engine: "name = 'sglang'\nversion = '0.5'\n",
            ..Source::PLAIN
        }],
        fixed_lengths: true,
        also: DENSE,
        loads: 46,
        ..Server::PLAIN
    },
    Server {
        name: "h100-sxm tensorrt-llm 1.0.0rc3 fp8 dense",
        gpu: "h100-sxm",
        system: "h100_sxm",
        backend: "trtllm",
        models: &[Source {
            paths: &["Qwen/Qwen3-32B"],
            precision: "fp8",
            versions: Some(&["1.0.0rc3"]),
            model: "qwen3-32b",
            weights: "fp8",
            engine: "name = 'tensorrt-llm'\nversion = '1.0.0rc3'\nkv_cache_dtype = 'fp8'\n",
            budget: Budget::PromptAndUsers,
            ..Source::PLAIN
        }],
        fixed_lengths: true,
        also: DENSE,
        loads: 176,
        ..Server::PLAIN
    },
    Server {
        name: "h100-sxm tensorrt-llm 1.0.0rc3 fp8 experts",
        gpu: "h100-sxm",
        system: "h100_sxm",
        backend: "trtllm",
        models: &[Source {
            paths: &["Qwen/Qwen3-235B-A22B-FP8"],
            precision: "fp8",
            versions: Some(&["1.0.0rc3"]),
            model: "qwen3-235b-a22b",
            weights: "fp8",
            engine: "name = 'tensorrt-llm'\nversion = '1.0.0rc3'\nkv_cache_dtype = 'fp8'\n",
            budget: Budget::PromptAndUsers,
            ..Source::PLAIN
        }],
        fixed_lengths: true,
        also: EXPERTS,
        loads: 126,
        ..Server::PLAIN
    },
    Server {
        name: "h100-sxm vllm 0.12 bf16 dense",
        gpu: "h100-sxm",
        system: "h100_sxm",
        backend: "vllm",
        models: &[Source {
            paths: &["Qwen/Qwen3-32B"],
            precision: "",
            versions: Some(&["0.12.0"]),
            model: "qwen3-32b",
            weights: "bf16",
            engine: "name = 'vllm'\nversion = '0.12'\n",
            budget: Budget::PromptAndUsers,
            ..Source::PLAIN
        }],
        fixed_lengths: true,
        also: DENSE,
        loads: 48,
        ..Server::PLAIN
    },
    Server {
        name: "h100-sxm vllm fp8 dense",
        gpu: "h100-sxm",
        system: "h100_sxm",
        backend: "vllm",
        // The script asks for an fp8 cache, the pool was half as large: with one, prompts of 8,192 tokens had their first
        // token 74 and 86 % too early with 32 and 64 users on two GPUs; without, 14 and 3 %.
        models: &[Source {
            engine: "name = 'vllm'\nversion = '0.14'\nmax_num_seqs = 64\n",
            ..LLAMA_UNDER_VLLM
        }],
        also: DENSE,
        loads: 22,
        ..Server::PLAIN
    },
    Server {
        name: "h200-sxm sglang fp8 latent experts",
        gpu: "h200-sxm",
        system: "h200_sxm",
        backend: "sglang",
        models: &[Source {
            paths: DEEPSEEK,
            precision: "fp8",
            versions: Some(&["0.5.9"]),
            model: "deepseek-v3",
            weights: "fp8",
            engine: "name = 'sglang'\nversion = '0.5'\ngpu_memory_utilization = 0.82\n\
                         max_num_batched_tokens = 32768\nmax_prefill_tokens = 32768\n",
            ..Source::PLAIN
        }],
        also: EXPERTS,
        loads: 13,
        ..Server::PLAIN
    },
    Server {
        name: "h200-sxm sglang fp8 hybrid experts",
        gpu: "h200-sxm",
        system: "h200_sxm",
        backend: "sglang",
        models: &[Source {
            engine: "name = 'sglang'\nversion = '0.5'\nkv_cache_dtype = 'fp8'\n\
                         gpu_memory_utilization = 0.8\nmax_num_batched_tokens = 16384\n",
            ..QWEN35_IN_FP8
        }],
        also: EXPERTS,
        loads: 15,
        ..Server::PLAIN
    },
    Server {
        name: "h200-sxm tensorrt-llm fp8 dense",
        gpu: "h200-sxm",
        system: "h200_sxm",
        backend: "trtllm",
        models: &[Source {
            paths: LLAMA,
            precision: "fp8",
            model: "llama-3.1-70b",
            weights: "fp8",
            engine: "name = 'tensorrt-llm'\nversion = '1.0'\nkv_cache_dtype = 'fp8'\n\
                     max_num_batched_tokens = 16384\n",
            batch_wait: true,
            ..Source::PLAIN
        }],
        also: OFFLINE_TOO,
        measured: Some(&Measured {
            gpu: "H200-SXM-141GB",
            weights: "fp8",
            models: LLAMAS,
            versions: &["1.0"],
            loads: 15,
            ..OFFLINE
        }),
        loads: 28,
        ..Server::PLAIN
    },
    Server {
        name: "h200-sxm tensorrt-llm fp8 latent experts",
        gpu: "h200-sxm",
        system: "h200_sxm",
        backend: "trtllm",
        models: &[Source {
            paths: DEEPSEEK,
            precision: "fp8",
            versions: Some(&["", "1.1.0rc2.post2"]),
            model: "deepseek-v3",
            weights: "fp8",
            engine: "name = 'tensorrt-llm'\nversion = '1.1'\nkv_cache_dtype = 'fp8'\n\
                     gpu_memory_utilization = 0.75\nmax_num_seqs = 128\n",
            // Two series, of 2025-11 and 2025-12, the first without a version and without experts in parallel by the
            // file: TPOT of the 14 loads that both have is the same to 0 to 2 %, which that of two deployments never is.
            always_expert_parallel: true,
            budget: Budget::PromptAndUsers,
            ..Source::PLAIN
        }],
        also: LATENT_EXPERTS_OF_TENSORRT_LLM,
        loads: 15,
        ..Server::PLAIN
    },
    Server {
        name: "h200-sxm vllm fp8 dense",
        gpu: "h200-sxm",
        system: "h200_sxm",
        backend: "vllm",
        models: &[LLAMA_UNDER_VLLM],
        also: DENSE,
        loads: 31,
        ..Server::PLAIN
    },
    Server {
        name: "h200-sxm vllm fp8 experts",
        gpu: "h200-sxm",
        system: "h200_sxm",
        backend: "vllm",
        models: &[Source {
            paths: MINIMAX,
            precision: "fp8",
            versions: Some(&["0.18.0"]),
            model: "minimax-m2.5",
            weights: "fp8",
            engine: "name = 'vllm'\nversion = '0.18'\ngpu_memory_utilization = 0.95\n",
            ..Source::PLAIN
        }],
        also: EXPERTS,
        loads: 16,
        ..Server::PLAIN
    },
    Server {
        name: "h200-sxm vllm 0.16 fp8 experts",
        gpu: "h200-sxm",
        system: "h200_sxm",
        backend: "vllm",
        models: &[Source {
            paths: MINIMAX,
            precision: "fp8",
            versions: Some(&["0.16.0"]),
            model: "minimax-m2.5",
            weights: "fp8",
            engine: "name = 'vllm'\nversion = '0.16'\ngpu_memory_utilization = 0.95\n",
            ..Source::PLAIN
        }],
        also: EXPERTS,
        loads: 14,
        ..Server::PLAIN
    },
    Server {
        name: "h200-sxm vllm int4 latent experts",
        gpu: "h200-sxm",
        system: "h200_sxm",
        backend: "vllm",
        models: &[Source {
            paths: KIMI,
            precision: "int4",
            model: "kimi-k2.5",
            weights: "int4",
            engine: "name = 'vllm'\nversion = '0.16'\ngpu_memory_utilization = 0.95\n",
            ..Source::PLAIN
        }],
        also: EXPERTS,
        loads: 13,
        ..Server::PLAIN
    },
    Server {
        name: "h200-sxm vllm mxfp4 experts",
        gpu: "h200-sxm",
        system: "h200_sxm",
        backend: "vllm",
        models: &[Source {
            paths: GPT_OSS,
            precision: "fp4",
            versions: Some(&["0.18.0"]),
            model: "gpt-oss-120b",
            weights: "mxfp4",
            engine: "name = 'vllm'\nversion = '0.18'\nmax_num_seqs = 64\n",
            ..Source::PLAIN
        }],
        also: EXPERTS,
        loads: 51,
        ..Server::PLAIN
    },
    Server {
        name: "b200-sxm sglang fp8 latent experts",
        gpu: "b200-sxm",
        system: "b200_sxm",
        backend: "sglang",
        models: &[
            // Rows of DeepSeek-R1 mix runs with and without drafts (two TPOT of one load); these do not.
            Source {
                paths: &["deepseek-ai/DeepSeek-V3"],
                precision: "fp8",
                versions: Some(&["0.5.9"]),
                model: "deepseek-v3",
                weights: "fp8",
                engine: "name = 'sglang'\nversion = '0.5'\nkv_cache_dtype = 'fp8'\n\
                         gpu_memory_utilization = 0.82\nmax_num_batched_tokens = 32768\n\
                         max_prefill_tokens = 32768\nmax_num_seqs = 128\n",
                deployments: &[(8, false)],
                recv_interval: RECV,
                ..Source::PLAIN
            },
        ],
        also: EXPERTS,
        loads: 11,
        ..Server::PLAIN
    },
    Server {
        name: "b200-sxm sglang fp8 hybrid experts",
        gpu: "b200-sxm",
        system: "b200_sxm",
        backend: "sglang",
        models: &[
            // Rows of 4 GPUs without expert parallelism are of runs with drafts: at 4 users their TPOT is less
            // than that of 8 GPUs.
            Source {
                engine: "name = 'sglang'\nversion = '0.5'\nkv_cache_dtype = 'fp8'\n\
                         gpu_memory_utilization = 0.82\nmax_num_batched_tokens = 32768\n\
                         max_prefill_tokens = 32768\nmax_num_seqs = 128\n",
                deployments: &[(4, true), (8, false)],
                recv_interval: RECV,
                ..QWEN35_IN_FP8
            },
        ],
        also: EXPERTS,
        loads: 25,
        ..Server::PLAIN
    },
    Server {
        name: "b200-sxm sglang nvfp4 latent experts",
        gpu: "b200-sxm",
        system: "b200_sxm",
        backend: "sglang",
        models: &[Source {
            paths: DEEPSEEK,
            precision: "fp4",
            versions: Some(&["0.5.9"]),
            model: "deepseek-v3",
            weights: "nvfp4",
            engine: "name = 'sglang'\nversion = '0.5'\nkv_cache_dtype = 'fp8'\n\
                     gpu_memory_utilization = 0.85\nmax_num_batched_tokens = 16384\nmax_num_seqs = 256\n",
            recv_interval: RECV,
            ..Source::PLAIN
        }],
        also: EXPERTS,
        loads: 33,
        ..Server::PLAIN
    },
    Server {
        name: "b200-sxm sglang bf16 hybrid experts",
        gpu: "b200-sxm",
        system: "b200_sxm",
        backend: "sglang",
        models: &[QWEN35_IN_BF16],
        also: EXPERTS,
        loads: 15,
        ..Server::PLAIN
    },
    Server {
        name: "b200-sxm sglang nvfp4 hybrid experts",
        gpu: "b200-sxm",
        system: "b200_sxm",
        backend: "sglang",
        models: &[Source {
            versions: Some(&["nightly-dev-20260402-d7256eb6"]),
            recv_interval: Some((30, 30)),
            ..QWEN35_IN_NVFP4
        }],
        also: EXPERTS,
        loads: 12,
        ..Server::PLAIN
    },
    Server {
        name: "b200-sxm tensorrt-llm fp8 dense",
        gpu: "b200-sxm",
        system: "b200_sxm",
        backend: "trtllm",
        models: &[Source {
            paths: LLAMA,
            precision: "fp8",
            model: "llama-3.1-70b",
            weights: "fp8",
            engine: "name = 'tensorrt-llm'\nversion = '1.0'\nkv_cache_dtype = 'fp8'\n\
                     max_num_batched_tokens = 16384\n",
            batch_wait: true,
            ..Source::PLAIN
        }],
        also: DENSE,
        loads: 34,
        ..Server::PLAIN
    },
    Server {
        name: "b200-sxm tensorrt-llm mxfp4 experts",
        gpu: "b200-sxm",
        system: "b200_sxm",
        backend: "trtllm",
        models: &[Source {
            paths: GPT_OSS,
            precision: "fp4",
            model: "gpt-oss-120b",
            weights: "mxfp4",
            engine: "name = 'tensorrt-llm'\nversion = '1.2'\nkv_cache_dtype = 'fp8'\n\
                     gpu_memory_utilization = 0.85\nmax_num_batched_tokens = 20000\n",
            ..Source::PLAIN
        }],
        also: EXPERTS,
        loads: 74,
        ..Server::PLAIN
    },
    Server {
        name: "b200-sxm tensorrt-llm nvfp4 dense",
        gpu: "b200-sxm",
        system: "b200_sxm",
        backend: "trtllm",
        models: &[Source {
            paths: LLAMA,
            precision: "fp4",
            model: "llama-3.1-70b",
            weights: "nvfp4",
            engine: "name = 'tensorrt-llm'\nversion = '1.0'\nkv_cache_dtype = 'fp8'\n\
                     max_num_batched_tokens = 16384\n",
            batch_wait: true,
            ..Source::PLAIN
        }],
        also: NO_TABLE,
        loads: 39,
        ..Server::PLAIN
    },
    Server {
        name: "b200-sxm vllm fp8 dense",
        gpu: "b200-sxm",
        system: "b200_sxm",
        backend: "vllm",
        models: &[Source {
            paths: LLAMA,
            precision: "fp8",
            model: "llama-3.1-70b",
            weights: "fp8",
            engine: "name = 'vllm'\nversion = '0.14'\nkv_cache_dtype = 'fp8'\nmax_num_seqs = 512\n",
            ..Source::PLAIN
        }],
        also: DENSE,
        loads: 60,
        ..Server::PLAIN
    },
    Server {
        name: "b200-sxm vllm fp8 experts",
        gpu: "b200-sxm",
        system: "b200_sxm",
        backend: "vllm",
        models: &[MINIMAX_ON_BLACKWELL],
        also: EXPERTS,
        loads: 40,
        ..Server::PLAIN
    },
    Server {
        name: "b200-sxm vllm nvfp4 experts",
        gpu: "b200-sxm",
        system: "b200_sxm",
        backend: "vllm",
        models: &[MINIMAX_IN_NVFP4],
        also: EXPERTS,
        loads: 40,
        ..Server::PLAIN
    },
    Server {
        name: "b200-sxm vllm mxfp4 experts",
        gpu: "b200-sxm",
        system: "b200_sxm",
        backend: "vllm",
        models: &[Source {
            paths: GPT_OSS,
            precision: "fp4",
            versions: Some(&["0.15.1"]),
            model: "gpt-oss-120b",
            weights: "mxfp4",
            engine: "name = 'vllm'\nversion = '0.15'\nkv_cache_dtype = 'fp8'\nmax_num_seqs = 512\n",
            ..Source::PLAIN
        }],
        also: EXPERTS,
        loads: 56,
        ..Server::PLAIN
    },
    Server {
        name: "b200-sxm vllm nvfp4 dense",
        gpu: "b200-sxm",
        system: "b200_sxm",
        backend: "vllm",
        models: &[Source {
            paths: LLAMA,
            precision: "fp4",
            model: "llama-3.1-70b",
            weights: "nvfp4",
            engine: "name = 'vllm'\nversion = '0.14'\nkv_cache_dtype = 'fp8'\nmax_num_seqs = 512\n",
            ..Source::PLAIN
        }],
        also: NO_TABLE,
        loads: 60,
        ..Server::PLAIN
    },
    Server {
        name: "b300-sxm sglang bf16 hybrid experts",
        gpu: "b300-sxm",
        system: "b300_sxm",
        backend: "sglang",
        models: &[Source { versions: Some(&["0.5.10.post1"]), ..QWEN35_IN_BF16 }],
        also: EXPERTS,
        loads: 20,
        ..Server::PLAIN
    },
    Server {
        name: "b300-sxm sglang fp8 hybrid experts",
        gpu: "b300-sxm",
        system: "b300_sxm",
        backend: "sglang",
        models: &[Source {
            precision: "fp8",
            versions: Some(&["0.5.10.post1"]),
            weights: "fp8",
            engine: "name = 'sglang'\nversion = '0.5'\nkv_cache_dtype = 'fp8'\ngpu_memory_utilization = 0.8\n\
                     max_num_batched_tokens = 16384\nmax_prefill_tokens = 16384\n",
            recv_interval: Some((10, 10)),
            ..QWEN35_IN_BF16
        }],
        also: EXPERTS,
        loads: 14,
        ..Server::PLAIN
    },
    Server {
        name: "b300-sxm sglang nvfp4 hybrid experts",
        gpu: "b300-sxm",
        system: "b300_sxm",
        backend: "sglang",
        models: &[Source { versions: Some(&["0.5.10.post1"]), ..QWEN35_IN_NVFP4 }],
        also: EXPERTS,
        loads: 24,
        ..Server::PLAIN
    },
    Server {
        name: "b300-sxm vllm fp8 experts",
        gpu: "b300-sxm",
        system: "b300_sxm",
        backend: "vllm",
        models: &[MINIMAX_ON_BLACKWELL],
        also: EXPERTS,
        loads: 19,
        ..Server::PLAIN
    },
    Server {
        name: "b300-sxm vllm nvfp4 latent experts",
        gpu: "b300-sxm",
        system: "b300_sxm",
        backend: "vllm",
        models: &[Source {
            paths: KIMI,
            precision: "fp4",
            versions: Some(&["0.19.0"]),
            model: "kimi-k2.5",
            weights: "nvfp4",
            engine: "name = 'vllm'\nversion = '0.19'\ngpu_memory_utilization = 0.9\nenable_prefix_caching = false\n",
            ..Source::PLAIN
        }],
        also: EXPERTS,
        loads: 12,
        ..Server::PLAIN
    },
    Server {
        name: "b300-sxm vllm nvfp4 experts",
        gpu: "b300-sxm",
        system: "b300_sxm",
        backend: "vllm",
        models: &[MINIMAX_IN_NVFP4],
        also: EXPERTS,
        loads: 20,
        ..Server::PLAIN
    },
    Server {
        name: "b200-sxm tensorrt-llm mxfp4 ranks",
        models: &[Source {
            paths: GPT_OSS,
            precision: "fp4",
            model: "gpt-oss-120b",
            weights: "mxfp4",
            engine: RANKS_OF_GPT_OSS,
            ..Source::PLAIN
        }],
        loads: 10,
        ..RANKS
    },
    Server { name: "b200-sxm tensorrt-llm nvfp4 ranks", models: &[DEEPSEEK_ON_RANKS], loads: 11, ..RANKS },
    Server {
        name: "b200-sxm tensorrt-llm fp8 ranks",
        models: &[Source { precision: "fp8", weights: "fp8", ..DEEPSEEK_ON_RANKS }],
        loads: 3,
        ..RANKS
    },
    Server {
        name: "a100-80-sxm vllm mxfp4 experts",
        gpu: "a100-80-sxm",
        weights: "mxfp4",
        measured: Some(&Measured {
            lab: Lab::GpuStack,
            gpu: "A100-SXM-80GB",
            weights: "mxfp4",
            models: BOTH_GPT_OSS,
            loads: 12,
            ..OFFLINE
        }),
        also: &[AttentionCompute],
        ..Server::PLAIN
    },
    Server {
        name: "h100-sxm vllm mxfp4 experts",
        gpu: "h100-sxm",
        weights: "mxfp4",
        measured: Some(&Measured {
            lab: Lab::GpuStack,
            gpu: "H100-SXM-80GB",
            weights: "mxfp4",
            models: GPT_OSS_ON_H100,
            loads: 9,
            ..OFFLINE
        }),
        also: &[AttentionCompute],
        ..Server::PLAIN
    },
    Server {
        name: "h100-sxm tensorrt-llm 1.2 fp8 dense",
        gpu: "h100-sxm",
        weights: "fp8",
        measured: Some(&Measured {
            gpu: "H100-SXM-80GB",
            weights: "fp8",
            models: LLAMAS,
            loads: 12,
            ..OFFLINE
        }),
        also: &[],
        ..Server::PLAIN
    },
    Server {
        name: "h200-sxm tensorrt-llm fp8 experts",
        gpu: "h200-sxm",
        weights: "fp8",
        measured: Some(&Measured {
            gpu: "H200-SXM-141GB",
            weights: "fp8",
            models: QWEN3,
            loads: 12,
            ..OFFLINE
        }),
        also: &[],
        ..Server::PLAIN
    },
    Server {
        name: "gb200 tensorrt-llm nvfp4 dense",
        gpu: "gb200",
        weights: "nvfp4",
        measured: Some(&Measured { gpu: "GB200", weights: "fp4", models: LLAMAS, loads: 9, ..OFFLINE }),
        also: &[],
        ..Server::PLAIN
    },
    Server {
        name: "gb200 tensorrt-llm nvfp4 experts",
        gpu: "gb200",
        weights: "nvfp4",
        measured: Some(&Measured { gpu: "GB200", weights: "fp4", models: QWEN3, loads: 14, ..OFFLINE }),
        also: &[],
        ..Server::PLAIN
    },
    Server {
        name: "rtx-pro-6000 tensorrt-llm nvfp4 dense",
        gpu: "rtx-pro-6000",
        weights: "nvfp4",
        measured: Some(&Measured {
            gpu: "RTX-PRO-6000",
            weights: "fp4",
            models: LLAMAS,
            loads: 10,
            ..OFFLINE
        }),
        also: &[],
        ..Server::PLAIN
    },
    Server {
        name: "rtx-pro-6000 tensorrt-llm nvfp4 experts",
        gpu: "rtx-pro-6000",
        weights: "nvfp4",
        measured: Some(&Measured {
            gpu: "RTX-PRO-6000",
            weights: "fp4",
            models: QWEN3,
            loads: 28,
            ..OFFLINE
        }),
        also: &[],
        ..Server::PLAIN
    },
];
