//! The servers whose curves are fitted: which rows of the published file are theirs, and how they ran.
//!
//! Settings are those of the load generator's public scripts (SemiAnalysisAI/InferenceX, `benchmarks`).

use knee::calibrate::Parameter::{
    self, ExpertMemory, Fp8KvMemory, HalfTokens, Memory, PrefillLaunchPerLayer,
};

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
    /// The GPU as `points/measured.csv` writes it, where the engine's published offline throughputs are used too.
    pub offline: Option<&'static str>,
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
        offline: None,
        loads: 0,
    };
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
    /// `scheduler_recv_interval` below 16 users and from there on.
    pub recv_interval: Option<(u32, u32)>,
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
        recv_interval: None,
    };
}

const LLAMA: &[&str] = &["meta-llama/Llama-3.1-70B"];
/// Hopper's runs of 2025-10, with `--async-scheduling`.
const LLAMA_UNDER_VLLM: Source = Source {
    paths: LLAMA,
    precision: "fp8",
    model: "llama-3.1-70b",
    weights: "fp8",
    engine: "name = 'vllm'\nversion = '0.14'\nkv_cache_dtype = 'fp8'\nmax_num_seqs = 64\n",
    ..Source::PLAIN
};
const GPT_OSS: &[&str] = &["openai/gpt-oss-120b"];
const MINIMAX: &[&str] = &["MiniMaxAI/MiniMax-M2.5"];
const QWEN35: &[&str] = &["Qwen/Qwen3.5-397B-A17B"];
const DEEPSEEK: &[&str] = &["deepseek-ai/DeepSeek-R1", "deepseek-ai/DeepSeek-V3"];
const VLLM: &[Parameter] = &[Memory, HalfTokens];
const VLLM_EXPERTS: &[Parameter] = &[Memory, HalfTokens, ExpertMemory];
const TRT: &[Parameter] = &[Memory, PrefillLaunchPerLayer];
const TRT_OFFLINE: &[Parameter] = &[Memory, HalfTokens, Fp8KvMemory];
const SGLANG: &[Parameter] = &[Memory, PrefillLaunchPerLayer];
const SGLANG_EXPERTS: &[Parameter] = &[Memory, HalfTokens, ExpertMemory, PrefillLaunchPerLayer];

/// `scheduler_recv_interval` of the scripts for B200.
const RECV: Option<(u32, u32)> = Some((10, 30));

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
        also: SGLANG,
        loads: 46,
        ..Server::PLAIN
    },
    Server {
        name: "h100-sxm tensorrt-llm fp8 dense",
        gpu: "h100-sxm",
        system: "h100_sxm",
        backend: "trtllm",
        models: &[Source {
            paths: &["Qwen/Qwen3-32B"],
            precision: "fp8",
            versions: Some(&["1.0.0rc3"]),
            model: "qwen3-32b",
            weights: "fp8",
            engine: "name = 'tensorrt-llm'\nversion = '1.0'\nkv_cache_dtype = 'fp8'\n",
            ..Source::PLAIN
        }],
        also: TRT,
        loads: 176,
        ..Server::PLAIN
    },
    Server {
        name: "h100-sxm tensorrt-llm fp8 experts",
        gpu: "h100-sxm",
        system: "h100_sxm",
        backend: "trtllm",
        models: &[Source {
            paths: &["Qwen/Qwen3-235B-A22B-FP8"],
            precision: "fp8",
            versions: Some(&["1.0.0rc3"]),
            model: "qwen3-235b-a22b",
            weights: "fp8",
            engine: "name = 'tensorrt-llm'\nversion = '1.0'\nkv_cache_dtype = 'fp8'\n",
            ..Source::PLAIN
        }],
        also: TRT,
        loads: 126,
        ..Server::PLAIN
    },
    Server {
        name: "h100-sxm vllm fp8 dense",
        gpu: "h100-sxm",
        system: "h100_sxm",
        backend: "vllm",
        models: &[LLAMA_UNDER_VLLM],
        also: VLLM,
        loads: 22,
        ..Server::PLAIN
    },
    Server {
        name: "h200-sxm sglang fp8 experts",
        gpu: "h200-sxm",
        system: "h200_sxm",
        backend: "sglang",
        models: &[
            Source {
                paths: DEEPSEEK,
                precision: "fp8",
                versions: Some(&["0.5.9"]),
                model: "deepseek-v3",
                weights: "fp8",
                engine: "name = 'sglang'\nversion = '0.5'\ngpu_memory_utilization = 0.82\n\
                         max_num_batched_tokens = 32768\nmax_prefill_tokens = 32768\n",
                ..Source::PLAIN
            },
            Source {
                paths: QWEN35,
                precision: "fp8",
                versions: Some(&["0.5.9"]),
                model: "qwen3.5-397b-a17b",
                weights: "fp8",
                engine: "name = 'sglang'\nversion = '0.5'\nkv_cache_dtype = 'fp8'\n\
                         gpu_memory_utilization = 0.8\nmax_num_batched_tokens = 16384\n",
                ..Source::PLAIN
            },
        ],
        also: SGLANG_EXPERTS,
        loads: 28,
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
                     max_num_batched_tokens = 9416\n",
            ..Source::PLAIN
        }],
        also: TRT_OFFLINE,
        offline: Some("H200-SXM-141GB"),
        loads: 28,
        ..Server::PLAIN
    },
    Server {
        name: "h200-sxm vllm fp8 dense",
        gpu: "h200-sxm",
        system: "h200_sxm",
        backend: "vllm",
        models: &[LLAMA_UNDER_VLLM],
        also: VLLM,
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
            model: "minimax-m2.5",
            weights: "fp8",
            engine: "name = 'vllm'\nversion = '0.18'\ngpu_memory_utilization = 0.95\n",
            ..Source::PLAIN
        }],
        also: VLLM,
        loads: 30,
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
            model: "gpt-oss-120b",
            weights: "mxfp4",
            engine: "name = 'vllm'\nversion = '0.18'\nmax_num_seqs = 64\n",
            ..Source::PLAIN
        }],
        also: VLLM_EXPERTS,
        loads: 60,
        ..Server::PLAIN
    },
    Server {
        name: "b200-sxm sglang fp8 experts",
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
            },
            // Rows of 4 GPUs without expert parallelism are of runs with drafts: at 4 users their TPOT is less
            // than that of 8 GPUs.
            Source {
                paths: QWEN35,
                precision: "fp8",
                versions: Some(&["0.5.9"]),
                model: "qwen3.5-397b-a17b",
                weights: "fp8",
                engine: "name = 'sglang'\nversion = '0.5'\nkv_cache_dtype = 'fp8'\n\
                         gpu_memory_utilization = 0.82\nmax_num_batched_tokens = 32768\n\
                         max_prefill_tokens = 32768\nmax_num_seqs = 128\n",
                deployments: &[(4, true), (8, false)],
                recv_interval: RECV,
            },
        ],
        also: SGLANG_EXPERTS,
        loads: 36,
        ..Server::PLAIN
    },
    Server {
        name: "b200-sxm sglang nvfp4 experts",
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
        also: SGLANG_EXPERTS,
        loads: 33,
        ..Server::PLAIN
    },
    Server {
        name: "b200-sxm sglang bf16 experts",
        gpu: "b200-sxm",
        system: "b200_sxm",
        backend: "sglang",
        models: &[Source {
            paths: QWEN35,
            precision: "bf16",
            model: "qwen3.5-397b-a17b",
            weights: "bf16",
            engine: "name = 'sglang'\nversion = '0.5'\ngpu_memory_utilization = 0.82\n\
                     max_num_batched_tokens = 32768\nmax_prefill_tokens = 32768\nmax_num_seqs = 128\n",
            recv_interval: RECV,
            ..Source::PLAIN
        }],
        also: SGLANG_EXPERTS,
        loads: 15,
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
            ..Source::PLAIN
        }],
        also: TRT,
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
        also: TRT,
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
                     max_num_batched_tokens = 9416\n",
            ..Source::PLAIN
        }],
        also: TRT,
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
        also: VLLM,
        loads: 60,
        ..Server::PLAIN
    },
    Server {
        name: "b200-sxm vllm fp8 experts",
        gpu: "b200-sxm",
        system: "b200_sxm",
        backend: "vllm",
        models: &[Source {
            paths: MINIMAX,
            precision: "fp8",
            versions: Some(&["0.17.0", "0.19.0"]),
            model: "minimax-m2.5",
            weights: "fp8",
            engine: "name = 'vllm'\nversion = '0.19'\ngpu_memory_utilization = 0.95\n",
            ..Source::PLAIN
        }],
        also: VLLM,
        loads: 50,
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
            model: "gpt-oss-120b",
            weights: "mxfp4",
            engine: "name = 'vllm'\nversion = '0.15'\nkv_cache_dtype = 'fp8'\nmax_num_seqs = 512\n",
            ..Source::PLAIN
        }],
        also: VLLM,
        loads: 66,
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
        also: VLLM,
        loads: 60,
        ..Server::PLAIN
    },
    Server {
        name: "b300-sxm vllm fp8 experts",
        gpu: "b300-sxm",
        system: "b300_sxm",
        backend: "vllm",
        models: &[Source {
            paths: MINIMAX,
            precision: "fp8",
            versions: Some(&["0.19.0"]),
            model: "minimax-m2.5",
            weights: "fp8",
            engine: "name = 'vllm'\nversion = '0.19'\ngpu_memory_utilization = 0.95\n",
            ..Source::PLAIN
        }],
        also: VLLM,
        loads: 19,
        ..Server::PLAIN
    },
];
