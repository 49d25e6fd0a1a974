//! What a scenario means: defaults, distributions, objectives, synthetic servers, traces.

use std::path::PathBuf;

use knee::catalog::{Catalog, Dtype, Standing};
use knee::cost::Graphs;
use knee::engine::{BatchWait, Batching, DataParallel, RankPolicy, RouterPolicy, SchedulingPolicy, Server};
use knee::experiment::run_point;
use knee::metrics::RunMode;
use knee::scenario::{Document, Override, RunLength, Warmup};
use knee::workload::{Arrivals, Distribution, Lengths, Metric, Statistic};

use super::{MINIMAL, SYNTHETIC, refusal, scenario};

#[test]
fn a_minimal_scenario_has_the_documented_defaults() {
    let scenario = scenario(MINIMAL, &[]);
    assert_eq!(scenario.seed, 1);
    assert_eq!((scenario.system.replicas, scenario.system.router), (1, RouterPolicy::RoundRobin));
    assert_eq!(scenario.run.mode, RunMode::Steady);
    assert_eq!(scenario.run.length, RunLength::Requests(10_000));
    assert_eq!((scenario.run.replications, scenario.run.warmup), (5, Warmup::Auto));
    assert!(scenario.sweep.is_empty() && scenario.warnings.is_empty(), "{:?}", scenario.warnings);
    let class = &scenario.workload.classes[0];
    assert_eq!((class.name.as_str(), class.share, class.priority), ("default", 1.0, 0));
    assert!(class.slo.objectives.is_empty());
    let serving = scenario.serving.as_ref().unwrap();
    assert_eq!((serving.weight_dtype, serving.kv_dtype), (Dtype::Bf16, Dtype::Bf16));
    assert_eq!((serving.engine.engine.as_str(), scenario.gpus), ("vllm", 1));
    let Server::Llm(server) = &scenario.system.server else { panic!("not an LLM server") };
    assert_eq!(server.batcher.batching, Batching::Continuous);
    assert_eq!(server.batcher.scheduling_policy, SchedulingPolicy::Fcfs);
    assert_eq!(server.batcher.max_num_batched_tokens, serving.engine.max_num_batched_tokens);
    assert_eq!(server.kv.blocks + 1, serving.memory.blocks);
}

/// vLLM captures twice `max_num_seqs`, at most 512 and never more than a step holds; without graphs their
/// memory goes to the KV pool.
#[test]
fn cuda_graphs_hold_batches_up_to_a_size() {
    let graphs = |sets: &[&str]| scenario(MINIMAL, sets).serving.unwrap().graphs;
    assert_eq!(graphs(&[]), Some(Graphs::UpTo(512)));
    assert_eq!(graphs(&["engine.max_num_seqs=100"]), Some(Graphs::UpTo(200)));
    assert_eq!(graphs(&["engine.max_cudagraph_capture_size=64"]), Some(Graphs::UpTo(64)));
    let small = ["engine.max_num_batched_tokens=48", "engine.max_num_seqs=48"];
    assert_eq!(graphs(&small), Some(Graphs::UpTo(48)));
    assert_eq!(graphs(&["engine.enforce_eager=true"]), Some(Graphs::Off));
    assert_eq!(graphs(&["engine.name=sglang"]), None);
    let memory = |sets: &[&str]| scenario(MINIMAL, sets).serving.unwrap().memory.clone();
    let (with, without) = (memory(&[]), memory(&["engine.enforce_eager=true"]));
    assert_eq!(without.graphs, 0);
    assert_eq!(without.kv_available - with.kv_available, with.graphs as i64);
}

#[test]
fn stages_and_drafts_reach_the_engine() {
    let of = |sets: &[&str]| {
        let scenario = scenario(MINIMAL, sets);
        let Server::Llm(server) = &scenario.system.server else { panic!("not an LLM server") };
        (server.clone(), scenario)
    };
    let (server, piped) = of(&["engine.pipeline_parallel_size=3", "engine.tensor_parallel_size=2"]);
    assert_eq!(server.pipeline.unwrap().layers(), [11, 11, 10]);
    assert_eq!((piped.gpus, piped.serving.unwrap().gpus()), (6, 6));

    let speculates = |table: &str| of(&[&format!("engine.speculative_config={{ {table} }}")]);
    let (server, eagle) =
        speculates("method = \"eagle\", num_speculative_tokens = 3, mean_acceptance_length = 2.4");
    let speculation = server.speculation.unwrap();
    assert_eq!((speculation.num_speculative_tokens, speculation.lookahead), (3, 3));
    assert!(speculation.draft.is_some() && server.batcher.async_scheduling);
    // One layer more than the model's 32.
    let (plain, drafted) = (scenario(MINIMAL, &[]).serving.unwrap(), eagle.serving.unwrap());
    assert_eq!(drafted.memory.block_bytes * 32, plain.memory.block_bytes * 33);
    let layer = (4096 * 10_240 + 3 * 4096 * 14_336) * 2;
    assert_eq!(drafted.memory.weights - plain.memory.weights, layer);

    let (server, _) =
        speculates("method = \"ngram\", num_speculative_tokens = 5, mean_acceptance_length = 1.5");
    assert_eq!(server.speculation.as_ref().unwrap().lookahead, 0);
    assert!(server.speculation.unwrap().draft.is_none() && !server.batcher.async_scheduling);
}

/// vLLM has as many GPUs as ranks of tensor_parallel_size; SGLang and TensorRT-LLM have the ranks within it.
#[test]
fn data_parallel_ranks_reach_the_engine() {
    const MODEL: [&str; 3] = ["model.name=deepseek-v3", "hardware.gpu=h200-sxm", "engine.max_model_len=auto"];
    let of = |sets: &[&str]| {
        let scenario = scenario(MINIMAL, &[&MODEL, sets].concat());
        let Server::Llm(server) = scenario.system.server else { panic!("not an LLM server") };
        let serving = scenario.serving.unwrap();
        assert_eq!((scenario.gpus, serving.gpus()), (8, 8));
        (server, serving)
    };
    let (server, plain) = of(&["engine.tensor_parallel_size=8", "engine.data_parallel_size=1"]);
    assert_eq!((server.data_parallel, plain.attention_tp, plain.ranks()), (None, 8, 1));

    let vllm = |ranks| Some(DataParallel { ranks, policy: RankPolicy::WaitingAndRunning, balance: None });
    let (server, serving) = of(&["engine.data_parallel_size=8", "engine.enable_expert_parallel=true"]);
    assert_eq!((server.data_parallel, serving.attention_tp), (vllm(8), 1));
    // Each rank has the version's own limits and a pool of its own.
    assert_eq!(server.batcher.max_num_seqs, plain.engine.max_num_seqs);
    assert_eq!(server.total_blocks(), server.kv.blocks * 8);
    assert!(server.total_blocks() > 2 * plain.memory.blocks);
    let (server, serving) = of(&["engine.data_parallel_size=4", "engine.tensor_parallel_size=2"]);
    assert_eq!((server.data_parallel, serving.attention_tp), (vllm(4), 2));

    let eight = ["engine.name=sglang", "engine.tensor_parallel_size=8"];
    let (one, _) = of(&eight);
    let ranks =
        ["engine.data_parallel_size=4", "engine.enable_dp_attention=true", "engine.max_num_seqs=1024"];
    let (server, serving) = of(&[&eight[..], &ranks].concat());
    let policy = RankPolicy::RoundRobin;
    assert_eq!(
        (server.data_parallel, serving.attention_tp),
        (Some(DataParallel { ranks: 4, policy, balance: None }), 2)
    );
    // Chunks, running requests and conservativeness of all become those of a rank.
    assert_eq!(server.batcher.max_num_batched_tokens * 4, one.batcher.max_num_batched_tokens);
    assert_eq!(server.batcher.max_num_seqs, 256);
    let ratio = |batching| match batching {
        Batching::PrefillFirst(policy) => policy.init_new_token_ratio,
        _ => panic!("not SGLang's"),
    };
    assert!((ratio(server.batcher.batching) - 0.3 * ratio(one.batcher.batching)).abs() < 1e-12);

    let eight = ["engine.name=tensorrt-llm", "engine.tensor_parallel_size=8"];
    let (server, serving) = of(&[&eight[..], &["engine.enable_attention_dp=true"]].concat());
    let policy = RankPolicy::PromptTokens;
    assert_eq!(
        (server.data_parallel, serving.attention_tp),
        (Some(DataParallel { ranks: 8, policy, balance: None }), 1)
    );
    let (server, _) = of(&[&eight[..], &["engine.enable_attention_dp=false"]].concat());
    assert_eq!(server.data_parallel, None);
    // The engine's own defaults, 50 and 10 steps.
    for (config, balance) in [
        ("enable_balance = true", Some((50, 10))),
        ("enable_balance = true, timeout_iters = 0, batching_wait_iters = 3", Some((0, 3))),
        ("timeout_iters = 7", None),
    ] {
        let config = format!("engine.attention_dp_config={{ {config} }}");
        let (server, _) = of(&[&eight[..], &["engine.enable_attention_dp=true", &config]].concat());
        let read = server.data_parallel.unwrap().balance;
        assert_eq!(read.map(|read| (read.timeout_iters, read.batching_wait_iters)), balance);
    }
}

/// The pool in bytes follows each engine's own formula, and the batcher each engine's policy.
#[test]
fn other_engines_bring_their_policy_and_their_share_of_memory() {
    let sglang = scenario(MINIMAL, &["engine.name=sglang", "engine.schedule_conservativeness=0.5"]);
    let Server::Llm(server) = &sglang.system.server else { panic!("not an LLM server") };
    let Batching::PrefillFirst(policy) = server.batcher.batching else { panic!("not SGLang's") };
    assert_eq!((policy.init_new_token_ratio, policy.max_prefill_tokens), (0.35, 16_384));
    assert_eq!(policy.scheduler_recv_interval, 1);
    assert!((policy.min_new_token_ratio - 0.35 * 0.14).abs() < 1e-12);
    assert!((policy.new_token_ratio_decay - 0.35 * 0.86 / 600.0).abs() < 1e-12);
    let memory = &sglang.serving.as_ref().unwrap().memory;
    let before = (memory.total - memory.non_torch) as f64;
    let pool = before * memory.gpu_memory_utilization - memory.weights as f64;
    assert!((memory.kv_available as f64 - pool).abs() < 2.0, "{memory:?}");
    // 131,072 tokens of context into about 400,000: below the least of 2,048 running requests.
    assert_eq!((server.kv.block_size, server.batcher.max_num_seqs), (1, 2048));
    assert_eq!(server.batcher.max_num_batched_tokens, 8192);

    let trt = scenario(MINIMAL, &["engine.name=tensorrt-llm"]);
    let Server::Llm(server) = &trt.system.server else { panic!("not an LLM server") };
    assert_eq!(server.batcher.batching, Batching::GuaranteedNoEvict);
    assert!(!server.batcher.enable_chunked_prefill && server.batcher.async_scheduling);
    let memory = &trt.serving.as_ref().unwrap().memory;
    let free = memory.total - memory.weights - memory.activations - memory.non_torch - memory.graphs;
    assert!((memory.kv_available as f64 - 0.9 * free as f64).abs() < 2.0, "{memory:?}");
    assert_eq!(server.batcher.batch_wait, None);
    let policy = "engine.capacity_scheduler_policy=MAX_UTILIZATION";
    let packed = scenario(MINIMAL, &["engine.name=tensorrt-llm", policy]);
    let Server::Llm(server) = &packed.system.server else { panic!("not an LLM server") };
    assert_eq!(server.batcher.batching, Batching::MaxUtilization);
    let (iters, ratio) = ("engine.batch_wait_timeout_iters=20", "engine.batch_wait_max_tokens_ratio=0.5");
    let waiting = scenario(MINIMAL, &["engine.name=tensorrt-llm", iters, ratio]);
    let Server::Llm(server) = &waiting.system.server else { panic!("not an LLM server") };
    let wait = BatchWait { timeout_iters: 20, max_tokens_ratio: 0.5 };
    assert_eq!((server.batcher.batch_wait, waiting.warnings.len()), (Some(wait), 0));
    // Either alone makes nobody wait, which is said.
    for (alone, other) in [(iters, "ratio` is 0"), (ratio, "iters` is 0")] {
        let off = scenario(MINIMAL, &["engine.name=tensorrt-llm", alone]);
        let Server::Llm(server) = &off.system.server else { panic!("not an LLM server") };
        assert_eq!(server.batcher.batch_wait, None);
        assert!(off.warnings[0].contains(other), "{:?}", off.warnings);
    }
}

#[test]
fn a_model_is_also_known_by_its_hugging_face_id_whose_variant_sets_the_dtype() {
    let scenario = scenario(MINIMAL, &["model.name=RedHatAI/Meta-Llama-3.1-8B-Instruct-FP8"]);
    assert_eq!(scenario.serving.unwrap().weight_dtype, Dtype::Fp8);
}

#[test]
fn every_distribution_can_be_written() {
    let mean = |value: &str| {
        let scenario = scenario(MINIMAL, &[&format!("class.0.input_tokens={value}")]);
        match &scenario.workload.classes[0].lengths {
            Lengths::Independent { input, .. } => input.mean(),
            Lengths::Joint(_) => panic!("not independent"),
        }
    };
    let close = |value: &str, expected: f64| {
        let mean = mean(value);
        assert!((mean / expected - 1.0).abs() < 1e-9, "{value}: {mean}");
    };
    close("512", 512.0);
    close("{ constant = 512 }", 512.0);
    close("{ constant = { value = 512 } }", 512.0);
    close("{ uniform = { min = 820, max = 1024 } }", 922.0);
    // vLLM rounds the ends outwards: 819 to 1229.
    close("{ range_ratio = { mean = 1024, ratio = 0.2 } }", 1024.0);
    close("{ exponential = { mean = 300 } }", 300.0);
    close("{ normal = { mean = 400, std = 20 } }", 400.0);
    close("{ lognormal = { mean = 512, p99 = 4096 } }", 512.0);
    close("{ gamma = { mean = 300, cv = 0.5 } }", 300.0);
    close("{ zipf = { max = 3, exponent = 0 } }", 2.0);
    close("{ empirical = { quantiles = [[0, 10], [0.5, 20], [1, 100]] } }", 0.5 * 15.0 + 0.5 * 60.0);
}

#[test]
fn objectives_name_metric_statistic_and_milliseconds() {
    let set = "class.0.slo={ ttft_p99_ms = 500, tpot_mean_ms = 40, e2e_ms = 9000, attainment = 0.95 }";
    let slo = scenario(MINIMAL, &[set]).workload.classes[0].slo.clone();
    let objectives: Vec<_> = slo.objectives.iter().map(|o| (o.metric, o.statistic, o.limit_s)).collect();
    assert_eq!(
        objectives,
        [
            (Metric::Ttft, Statistic::Quantile(0.99), 0.5),
            (Metric::Tpot, Statistic::Mean, 0.04),
            (Metric::E2e, Statistic::Request, 9.0),
        ]
    );
    assert_eq!(slo.attainment, 0.95);
    let message = refusal(SYNTHETIC, &["class.0.slo.ttft_p99_ms=500"]);
    assert!(message.contains("a synthetic server has it only with output_tokens"), "{message}");
}

#[test]
fn a_synthetic_server_needs_neither_model_nor_gpu() {
    let exponential = scenario(SYNTHETIC, &["engine.servers=3", "engine.queue_limit=0"]);
    let Server::Synthetic(server) = &exponential.system.server else { panic!("not synthetic") };
    assert_eq!(server.service_time_s, Distribution::Exponential { mean: 0.1 });
    assert_eq!((server.servers, server.queue_limit, exponential.gpus), (3, Some(0), 0));
    let constant = scenario(SYNTHETIC, &["engine.requests_per_s=22"]);
    let Server::Synthetic(server) = &constant.system.server else { panic!("not synthetic") };
    assert_eq!(server.service_time_s, Distribution::Constant { value: 1.0 / 22.0 });
    for (set, words) in [
        ("engine.service_time=0.1", "expected a distribution such as { exponential = { mean_s = 0.05 } }"),
        ("engine.service_time.exponential.mean=0.1", "did you mean `mean_s`?"),
        ("engine.max_num_seqs=4", "a synthetic server has no such option"),
        ("model.name=llama-3.1-8b", "a synthetic server has no [model]"),
    ] {
        let message = refusal(SYNTHETIC, &[set]);
        assert!(message.contains(words), "{message}");
    }
}

#[test]
fn a_trace_brings_its_own_lengths_classes_and_length_of_run() {
    let folder = std::env::temp_dir().join(format!("knee-scenario-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.join(name), text).unwrap();
    write("t.csv", "arrival_s,input_tokens,output_tokens,class\n5,10,2,chat\n6,20,4,code\n8,30,6,chat\n");
    write("pairs.csv", "input_length,output_length\n100,10\n300,30\n");
    let resolve = |text: &str| {
        let path = folder.join("s.toml");
        Document::parse(text, Some(&path)).and_then(|document| document.scenario(&Catalog::new(None)))
    };
    let head = "[model]\nname = \"llama-3.1-8b\"\n[hardware]\ngpu = \"h100-sxm\"\n";

    let replay = format!(
        "{head}[arrivals.trace]\nfile = \"t.csv\"\n[[class]]\nname = \"code\"\npriority = 3\nslo = {{ ttft_ms = 1000 }}\n"
    );
    let scenario = resolve(&replay).unwrap();
    assert_eq!((scenario.name.as_str(), scenario.run.mode), ("s", RunMode::Benchmark));
    assert_eq!((scenario.run.length, scenario.run.replications), (RunLength::Requests(3), 1));
    let classes = &scenario.workload.classes;
    let described: Vec<_> =
        classes.iter().map(|c| (c.name.as_str(), c.lengths.mean_tokens(), c.priority)).collect();
    assert_eq!(described, [("chat", (20.0, 4.0), 0), ("code", (20.0, 4.0), 3)]);
    assert_eq!((classes[0].slo.objectives.len(), classes[1].slo.objectives.len()), (0, 1));

    let missing = resolve(&replay.replace("\"code\"", "\"cod\"")).unwrap_err().to_string();
    assert!(missing.contains("no class `cod` in t.csv") && missing.contains("chat, code"), "{missing}");

    let pairs = format!(
        "{head}[arrivals.constant]\nrate_per_s = 1\n[[class]]\nlengths = {{ file = \"pairs.csv\" }}\n"
    );
    let scenario = resolve(&pairs).unwrap();
    assert_eq!(scenario.workload.classes[0].lengths.mean_tokens(), (200.0, 20.0));
    let missing = resolve(&pairs.replace("pairs.csv", "other.csv")).unwrap_err().to_string();
    assert!(missing.contains("cannot read") && missing.contains("other.csv"), "{missing}");
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn a_recorded_hour_is_replayed_whole() {
    let Some(folder) = std::env::var_os("KNEE_DATA") else {
        eprintln!("skipped: KNEE_DATA is not set");
        return;
    };
    let file = PathBuf::from(folder).join("traces/azure-2023/AzureLLMInferenceTrace_conv_2023.csv");
    let set = format!("arrivals.trace.file={}", file.display());
    let scenario = scenario(MINIMAL, &[&set]);
    assert!(matches!(scenario.workload.arrivals, Arrivals::Trace(_)));
    assert_eq!(scenario.run.length, RunLength::Requests(19_366));
    // The class's own lengths are not used, and that is said.
    assert_eq!(scenario.warnings.len(), 2, "{:?}", scenario.warnings);
}

/// What a planner must know of step times: whether any part of them is estimated, and whose the error is.
#[test]
fn step_times_are_estimated_as_soon_as_a_part_of_them_is() {
    let shipped = |name: &str, sets: &[(&str, &str)]| {
        let sets: Vec<Override> = sets.iter().map(|(key, value)| Override::new(key, value)).collect();
        let document = Document::load(name).unwrap().with_overrides(&sets).unwrap();
        document.scenario(&Catalog::new(None)).unwrap().serving.unwrap()
    };
    for (name, set, parts) in [
        ("chat-h100", ("seed", "1"), &[][..]),
        ("chat-h100", ("engine.enforce_eager", "true"), &["steps without CUDA graphs"]),
        ("pipeline", ("engine.tensor_parallel_size", "1"), &["pipeline stages"]),
        ("speculative", ("seed", "1"), &["speculation"]),
        ("dp-attention", ("seed", "1"), &["data-parallel ranks"]),
        ("chat-h100", ("engine.tensor_parallel_size", "4"), &["tensor parallelism of 4 (only 1)"]),
    ] {
        let serving = shipped(name, &[set]);
        assert_eq!(serving.not_fitted(), parts, "{name}");
        let expected = if parts.is_empty() { serving.profile.standing } else { Standing::Estimated };
        assert_eq!(serving.standing(), expected, "{name}");
    }
    // The fit of old versions had two GPUs or more, and no server of one.
    let old = [("engine.version", "0.12"), ("engine.tensor_parallel_size", "1")];
    assert_eq!(shipped("chat-h100", &old).not_fitted(), ["tensor parallelism of 1 (only 2 to 8)"]);
    assert!(shipped("chat-h100", &[old[0], ("engine.tensor_parallel_size", "4")]).not_fitted().is_empty());
    let own = [("model.name", "qwen3-14b"), ("model.weight_dtype", "bf16")];
    let (other, own) = (shipped("chat-h100", &[]), shipped("chat-h100", &own));
    assert_eq!(other.foundation(), "calibrated on qwen3-14b, not on llama-3.1-8b, under vllm 0.23");
    assert_eq!(other.error_is_of().as_deref(), Some("of qwen3-14b, not of llama-3.1-8b"));
    assert_eq!(
        (own.foundation().as_str(), own.error_is_of()),
        ("calibrated on qwen3-14b under vllm 0.23", None)
    );
    // Fitted on one model, scored on another; and never scored.
    let rtx = shipped("chat-h100", &[("hardware.gpu", "rtx-pro-6000")]);
    assert_eq!(rtx.foundation(), "calibrated on llama-3.1-8b under vllm 0.19");
    assert_eq!(rtx.error_is_of().as_deref(), Some("of qwen3-32b, not of llama-3.1-8b"));
    let unscored = shipped("chat-h100", &[("hardware.gpu", "rtx-4090"), ("engine.max_model_len", "auto")]);
    assert_eq!(unscored.foundation(), "fitted under vllm 0.19, never scored");
    // Estimates say whether their kernels were measured on the GPU, and whose they are if not.
    for (gpu, dtype, words) in [
        ("l40s", "bf16", "estimated: kernels by tables of this GPU, host times are priors"),
        ("mi355x", "bf16", "guessed: MI300X's prior; no operator table for CDNA 4; host times are priors"),
        ("rtx-pro-6000", "nvfp4", "guessed: fp4 kernels by those of fp8; host times are priors"),
    ] {
        let serving = shipped("chat-h100", &[("hardware.gpu", gpu), ("model.weight_dtype", dtype)]);
        assert_eq!((serving.foundation().as_str(), serving.standing()), (words, Standing::Estimated));
        assert_eq!(serving.guessed().is_empty(), words.starts_with("estimated"));
    }
}

#[test]
fn weights_larger_than_they_are_published_are_warned_of() {
    let warned = |model: &str, dtype: &str| {
        let sets = [
            ("model.name", model),
            ("model.weight_dtype", dtype),
            ("hardware.gpu", "b300-sxm"),
            ("engine.tensor_parallel_size", "8"),
        ];
        let sets: Vec<Override> = sets.iter().map(|(key, value)| Override::new(key, value)).collect();
        let document = Document::load("chat-h100").unwrap().with_overrides(&sets).unwrap();
        let scenario = document.scenario(&Catalog::new(None)).unwrap();
        scenario.warnings.iter().any(|warning| warning.contains("is published in"))
    };
    assert!(warned("gpt-oss-120b", "fp8") && warned("deepseek-v3", "bf16"));
    assert!(!warned("gpt-oss-120b", "mxfp4") && !warned("llama-3.1-8b", "fp8"));
    // Formats of one size are alternatives.
    assert!(!warned("gpt-oss-120b", "nvfp4"));
}

#[test]
fn a_prompt_that_is_not_cut_names_the_budget_it_exceeds() {
    let run = |sets: &[&str]| {
        let own = ["engine.name=tensorrt-llm", "engine.max_num_batched_tokens=100", "engine.max_num_seqs=16"];
        let load = ["run.requests=200", "run.replications=1", "arrivals.poisson.rate_per_s=5"];
        let scenario = scenario(MINIMAL, &[&own[..], &load, sets].concat());
        run_point(&scenario).unwrap().runs[0].totals
    };
    let long = "class=[{ input_tokens = 101, output_tokens = 10 }]";
    let whole = run(&[long]);
    assert_eq!((whole.rejected_over_budget, whole.completed), (whole.rejected_too_long, 0));
    let why = whole.refusals()[1];
    assert!(why.0 > 190, "{why:?}");
    assert!(
        why.1.contains("max_num_batched_tokens, and not cut without engine.enable_chunked_prefill"),
        "{why:?}"
    );
    assert_eq!(run(&[long, "engine.enable_chunked_prefill=true"]).rejected_too_long, 0);
    // A paused request would come back with its output.
    let fits = "class=[{ input_tokens = 100, output_tokens = 10 }]";
    assert_eq!(run(&[fits]).rejected_over_budget, 0);
    assert!(run(&[fits, "engine.capacity_scheduler_policy=MAX_UTILIZATION"]).rejected_over_budget > 190);
    let short = run(&["engine.max_model_len=100", long]);
    assert!(short.rejected_too_long > 190 && short.rejected_over_budget == 0, "{short:?}");
}

#[test]
fn auto_is_the_newest_version_whatever_the_engine() {
    let of = |sets: &[&str]| scenario(MINIMAL, sets).serving.unwrap().engine.clone();
    let newest = of(&["engine.name=tensorrt-llm"]).version;
    let sets = ["engine.version=0.23", "engine.name=tensorrt-llm", "engine.version=auto"];
    assert_eq!(of(&sets).version, newest);
    let message = refusal(MINIMAL, &["engine.version=0.23", "engine.name=tensorrt-llm"]);
    assert!(message.contains("engine.version = \"auto\" takes the newest"), "{message}");
}

#[test]
fn waits_of_ranks_without_balance_are_warned_of() {
    let ranks =
        ["engine.name=tensorrt-llm", "engine.enable_attention_dp=true", "engine.tensor_parallel_size=8"];
    let config = |table: &str| {
        let set = format!("engine.attention_dp_config={table}");
        let model = ["model.name=deepseek-v3", "hardware.gpu=h200-sxm"];
        scenario(MINIMAL, &[&ranks[..], &model, &[&set]].concat()).warnings.join("; ")
    };
    let without = config("{ timeout_iters = 50, batching_wait_iters = 10 }");
    for key in ["timeout_iters", "batching_wait_iters"] {
        assert!(
            without.contains(&format!("{key}` makes no rank wait without `enable_balance = true`")),
            "{without}"
        );
    }
    assert!(!config("{ enable_balance = true, timeout_iters = 50 }").contains("makes no rank wait"));
}
