//! What is said when a scenario is wrong: one message each, all at once, at the right place.

use knee::engine::Server;
use knee::scenario::{Document, Override};

use super::{MINIMAL, SYNTHETIC, assert_refused, minimal, refusal, resolve, scenario};

#[test]
fn an_unknown_key() {
    assert_refused(
        &minimal("[arrivals.poisson]", "[deployment]\nreplica = 2\n[arrivals.poisson]"),
        &[],
        "
error: unknown key `deployment.replica`
 --> scenario:7:1
  |
7 | replica = 2
  | ^^^^^^^ did you mean `replicas`?
  |
  = help: keys of `deployment`: replicas, router",
    );
}

#[test]
fn graphs_that_cannot_be() {
    let both = ["engine.enforce_eager=true", "engine.max_cudagraph_capture_size=8"];
    assert!(refusal(MINIMAL, &both).contains("which captures no graphs"));
    let sglang = ["engine.name=sglang", "engine.enforce_eager=true"];
    assert!(refusal(MINIMAL, &sglang).contains("sglang has no option `enforce_eager`: it is vllm's"));
}

#[test]
fn pipelines_and_drafts_that_cannot_be() {
    let stages = |more: &str| refusal(MINIMAL, &["engine.pipeline_parallel_size=2", more]);
    assert!(stages("engine.name=sglang").contains("`engine.pipeline_parallel_size` is built for vllm only"));
    assert!(stages("engine.batching=static").contains("`engine.pipeline_parallel_size` with static batches"));
    let message = refusal(MINIMAL, &["engine.pipeline_parallel_size=33"]);
    assert!(message.contains("the 32 layers of llama-3.1-8b cannot be split over 33 stages"), "{message}");

    let eagle = "engine.speculative_config={ method = \"eagle\", num_speculative_tokens = 3, mean_acceptance_length = 2 }";
    assert!(
        refusal(MINIMAL, &[eagle, "engine.pipeline_parallel_size=2"]).contains("through pipeline stages")
    );
    assert!(refusal(MINIMAL, &[eagle, "model.name=qwen3-next-80b-a3b"]).contains("recurrent state"));
    assert!(refusal(MINIMAL, &[eagle, "engine.name=tensorrt-llm"]).contains("is built for vllm only"));
    let speculative = |table: &str| refusal(MINIMAL, &[&format!("engine.speculative_config={{ {table} }}")]);
    for (table, words) in [
        (
            "method = \"eagle\", num_speculative_tokens = 1, mean_acceptance_length = 2.5",
            "expected at most 2",
        ),
        (
            "method = \"eagle\", num_speculative_tokens = 1, mean_acceptance_length = 0.5",
            "a number of at least 1",
        ),
        (
            "method = \"medusa\", num_speculative_tokens = 1, mean_acceptance_length = 1",
            "expected one of \"ngram\"",
        ),
        (
            "method = \"ngram\", mean_acceptance_length = 1.5",
            "missing key `engine.speculative_config.num_speculative_tokens`",
        ),
        (
            "method = \"draft_model\", num_speculative_tokens = 1, mean_acceptance_length = 1",
            "missing key `engine.speculative_config.model`",
        ),
        (
            "method = \"eagle\", model = \"qwen3-0.6b\", num_speculative_tokens = 1, mean_acceptance_length = 1",
            "leave it out",
        ),
        (
            "method = \"draft_model\", model = \"qwen3-0.6b\", num_speculative_tokens = 1, mean_acceptance_length = 1",
            "Target and draft model should have the same vocabulary size",
        ),
    ] {
        let message = speculative(table);
        assert!(message.contains(words), "{table}: {message}");
    }
}

#[test]
fn a_wrong_type() {
    assert_refused(
        &minimal("rate_per_s = 12.0", "rate_per_s = \"fast\""),
        &[],
        "
error: wrong type for `arrivals.poisson.rate_per_s`
 --> scenario:7:14
  |
7 | rate_per_s = \"fast\"
  |              ^^^^^^ found the text \"fast\", expected a number above 0",
    );
}

#[test]
fn a_negative_rate() {
    assert_refused(
        &minimal("12.0", "-3"),
        &[],
        "
error: impossible value for `arrivals.poisson.rate_per_s`
 --> scenario:7:14
  |
7 | rate_per_s = -3
  |              ^^ found -3, expected a number above 0",
    );
}

#[test]
fn shares_that_do_not_add_up() {
    let text =
        format!("{SYNTHETIC}[[class]]\nname = \"a\"\nshare = 0.7\n[[class]]\nname = \"b\"\nshare = 0.4\n");
    assert_refused(
        &text,
        &[],
        "
error: the shares of the classes add up to 1.1, not 1
  --> scenario:12:9
   |
12 | share = 0.4
   |         ^^^ shares: a 0.7, b 0.4",
    );
    // A third three times is 1 for people.
    let thirds = SYNTHETIC.to_owned() + &"[[class]]\nshare = 0.3333333\n".repeat(3);
    let shares: f64 = scenario(&thirds, &[]).workload.classes.iter().map(|class| class.share).sum();
    assert!((shares - 1.0).abs() < 1e-12);
}

#[test]
fn a_model_that_does_not_fit() {
    let message = refusal(&minimal("llama-3.1-8b", "llama-3.1-70b"), &["engine.version=0.23"]);
    let lines: Vec<&str> = message.lines().collect();
    assert!(lines[0].starts_with("error: llama-3.1-70b in bf16 does not fit on one h100-sxm: "), "{message}");
    assert!(lines[0].ends_with(" GiB are missing on each GPU"), "{message}");
    assert_eq!(lines[1..4], [" --> scenario:3:8", "  |", "3 | name = \"llama-3.1-70b\""]);
    // 70.6 billion parameters of 2 bytes.
    assert!(lines[4].contains("weights 131.4 + activations "), "{message}");
    assert_eq!(
        lines[6],
        "  = help: what would fit, each alone: tensor_parallel_size = 2, weight_dtype = \"fp8\", gpu = \"b200-sxm\""
    );
    // What it proposes does fit.
    for change in ["engine.tensor_parallel_size=2", "model.weight_dtype=fp8", "hardware.gpu=b200-sxm"] {
        scenario(&minimal("llama-3.1-8b", "llama-3.1-70b"), &["engine.version=0.23", change]);
    }
}

#[test]
fn everything_is_reported_at_once_and_in_order() {
    let text = r#"
nam = "x"
seed = "one"
[hardware]
gpu = "h100"
[engine]
max_seqs = 4
enable_prefix_caching = true
[arrivals.poisson]
rate_per_s = -3
[arrivals.closed]
users = 2.5
[[class]]
name = "a"
share = 0.6
output_tokens = { lognorml = { mean = 3, p99 = 4 } }
slo = { ttft_p9_ms = 4 }
[[class]]
input_tokens = { uniform = { min = 9, max = 3 } }
output_tokens = { lognormal = { mean = 3, p99 = 400 } }
[run]
requests = 10
duration_s = 5
[sweep]
"engine.max_num_sqs" = [1, 2]
"#;
    let errors = resolve(text, &[]).unwrap_err();
    let found: Vec<(Option<usize>, &str)> =
        errors.problems.iter().map(|p| (errors.line(p), p.message.as_str())).collect();
    let expected = [
        (Some(1), "missing key `model`"),
        (Some(2), "unknown key `nam`"),
        (Some(3), "wrong type for `seed`"),
        (
            Some(5),
            "no GPU named `h100`; did you mean `h100-sxm` or `h100-pcie`? `knee list hardware` shows all",
        ),
        (Some(7), "unknown key `engine.max_seqs`"),
        (Some(8), "`engine.enable_prefix_caching` is not built yet"),
        (Some(10), "impossible value for `arrivals.poisson.rate_per_s`"),
        (Some(11), "2 kinds of arrivals: `poisson`, `closed`"),
        (Some(12), "wrong type for `arrivals.closed.users`"),
        (Some(13), "missing key `class.a.input_tokens`"),
        (Some(16), "unknown distribution `lognorml` for `class.a.output_tokens`"),
        (Some(17), "unknown key `class.a.slo.ttft_p9_ms`"),
        (Some(18), "missing key `class.1.share`"),
        (Some(19), "impossible value for `class.1.input_tokens.uniform`"),
        (Some(20), "impossible value for `class.1.output_tokens.lognormal`"),
        (Some(23), "both `run.requests` and `run.duration_s` are given"),
        (Some(25), "`engine.max_num_sqs` is not a scenario key"),
    ];
    let gpu = 3;
    for (i, (line, message)) in expected.iter().enumerate() {
        assert_eq!(found[i].0, *line, "{found:#?}");
        // The catalog words its own message.
        assert!(i == gpu || found[i].1 == *message, "{found:#?}");
    }
    assert_eq!(found.len(), expected.len(), "{found:#?}");
}

#[test]
fn syntax_errors_point_at_their_place() {
    let message = Document::parse("a = \n[x\nb = 3", None).unwrap_err().render(false);
    assert!(message.contains("--> scenario:1:5") && message.contains("--> scenario:2:3"), "{message}");
    assert!(Document::parse("a = 1\na = 2", None).is_err());
}

#[test]
fn what_is_not_built_is_refused_and_its_off_value_accepted() {
    let message = refusal(MINIMAL, &["engine.enable_prefix_caching=true"]);
    assert!(message.starts_with("error: `engine.enable_prefix_caching` is not built yet"), "{message}");
    scenario(MINIMAL, &["engine.enable_prefix_caching=false"]);
}

#[test]
fn ranks_that_are_replicas_or_cannot_be() {
    let dense = refusal(MINIMAL, &["engine.data_parallel_size=4"]);
    assert!(dense.starts_with("error: data_parallel_size = 4 means independent engines here"), "{dense}");
    assert!(dense.contains("llama-3.1-8b is no mixture of experts"), "{dense}");
    let help = "`deployment.replicas = 4` behind `router = \"least_outstanding\"`";
    assert!(dense.contains(help), "{dense}");

    let moe = |sets: &[&str]| refusal(MINIMAL, &[&["model.name=qwen3-30b-a3b"], sets].concat());
    let two = "engine.data_parallel_size=2";
    let eagle = "engine.speculative_config={ method = \"eagle\", num_speculative_tokens = 3, mean_acceptance_length = 2 }";
    let sglang = ["engine.name=sglang", "engine.enable_dp_attention=true"];
    let tensorrt_llm = "engine.name=tensorrt-llm";
    for (sets, words) in [
        (&[two, "engine.pipeline_parallel_size=2"][..], "`engine.pipeline_parallel_size` with data-parallel"),
        (&[two, eagle], "`engine.speculative_config` with data-parallel ranks is not built yet"),
        (&[two, "engine.batching=static"], "`engine.batching` with data-parallel ranks"),
        (&["engine.data_parallel_size=3", "engine.enable_expert_parallel=true"], "the 128 experts of"),
        (&["engine.enable_dp_attention=true"], "vllm has no option `enable_dp_attention`: it is sglang's"),
        (&["engine.enable_attention_dp=true"], "no option `enable_attention_dp`: it is tensorrt-llm's"),
        (&["engine.name=sglang", two], "without `enable_dp_attention` the ranks share nothing"),
        (&["engine.name=sglang", two], "behind `router = \"round_robin\"`"),
        (&[sglang[0], sglang[1], two], "tensor_parallel_size (1) must be divisible by data_parallel_size"),
        (
            &[sglang[0], sglang[1], two, "engine.tensor_parallel_size=2", "engine.max_num_seqs=1"],
            "`max_num_seqs` of all 2 ranks together leaves nothing for each",
        ),
        (&[tensorrt_llm, two], "`enable_attention_dp = true` makes every GPU of tensor_parallel_size a rank"),
    ] {
        let message = moe(sets);
        assert!(message.contains(words), "{words}: {message}");
    }
    let dense = ["engine.enable_attention_dp=true", tensorrt_llm, "engine.tensor_parallel_size=2"];
    assert!(refusal(MINIMAL, &dense).contains("only for mixtures of experts"));
    let adp = [tensorrt_llm, "engine.enable_attention_dp=true", "engine.tensor_parallel_size=2"];
    let waits = ["engine.batch_wait_timeout_iters=20", "engine.batch_wait_max_tokens_ratio=0.5"];
    let message = moe(&[&adp[..], &waits].concat());
    for key in ["batch_wait_timeout_iters", "batch_wait_max_tokens_ratio"] {
        let words =
            format!("`engine.{key}` with `enable_attention_dp`, with which tensorrt-llm does not look at it");
        assert!(message.contains(&words), "{message}");
    }
    let balance = "engine.attention_dp_config={ enable_balance = true }";
    let config = |table: &str| format!("engine.attention_dp_config={table}");
    for (sets, words) in [
        (&[balance][..], "vllm has no option `attention_dp_config`: it is tensorrt-llm's"),
        (&[adp[0], balance], "`engine.attention_dp_config.enable_balance` without ranks"),
        (&[adp[0], adp[1], balance], "`enable_attention_dp = true` and several GPUs in tensor_parallel_size"),
        (
            &[adp[0], adp[1], adp[2], &config("{ timeout_iters = -1 }")],
            "impossible value for `engine.attention_dp_config.timeout_iters`",
        ),
        (
            &[adp[0], adp[1], adp[2], &config("{ batching_wait_iters = 0.5 }")],
            "`engine.attention_dp_config.batching_wait_iters`",
        ),
        (&[adp[0], adp[1], adp[2], &config("{ balance = true }")], "unknown key"),
        (&[adp[0], adp[1], adp[2], &config("true")], "expected a table"),
    ] {
        let message = moe(sets);
        assert!(message.contains(words), "{words}: {message}");
    }
    let off = ["model.name=qwen3-30b-a3b", "engine.batch_wait_timeout_iters=0"];
    scenario(MINIMAL, &[&adp[..], &off].concat());
    let large = ["model.name=deepseek-v3", "engine.data_parallel_size=2"];
    let message = refusal(MINIMAL, &large);
    assert!(message.contains("does not fit on 2 data-parallel ranks of 1 x h100-sxm"), "{message}");
    // SGLang itself turns it off for one.
    scenario(MINIMAL, &sglang);
}

#[test]
fn vllm_refuses_in_its_own_words() {
    for (sets, words) in [
        (
            &["engine.max_num_batched_tokens=128", "engine.max_num_seqs=256"][..],
            "max_num_batched_tokens (128) must be greater than or equal to max_num_seqs (256)",
        ),
        (
            &[
                "engine.max_num_batched_tokens=2048",
                "engine.max_num_seqs=64",
                "engine.enable_chunked_prefill=false",
            ],
            "max_num_batched_tokens (2048) is smaller than max_model_len (131072)",
        ),
        (
            &["engine.max_model_len=131073"],
            "User-specified max_model_len (131073) is greater than the derived max_model_len",
        ),
        (
            &["hardware.gpu=l4", "engine.max_model_len=131072", "engine.max_num_seqs=64"],
            "To serve at least one request with the models's max seq len (131072), 16.00 GiB KV cache is needed",
        ),
    ] {
        let message = refusal(MINIMAL, sets);
        assert!(message.contains(words), "{message}");
    }
    // Nobody asked for the whole context: it is clipped, and that is said.
    let small = ["hardware.gpu=l4", "engine.max_num_seqs=64"];
    for more in [
        &[][..],
        &["engine.max_model_len=auto"],
        &["engine.num_gpu_blocks_override=1001", "engine.max_model_len=20000"],
    ] {
        let clipped = scenario(MINIMAL, &[&small, more].concat());
        assert!(clipped.warnings[0].contains("clipped to"), "{:?}", clipped.warnings);
    }
    let Server::Llm(server) = scenario(MINIMAL, &["engine.num_gpu_blocks_override=1001"]).system.server
    else {
        panic!("not an LLM server")
    };
    assert_eq!((server.kv.blocks, server.batcher.max_model_len), (1000, 16_000));
}

#[test]
fn heads_are_divided_evenly() {
    let message = refusal(MINIMAL, &["engine.tensor_parallel_size=3"]);
    assert!(
        message.contains("the 32 attention heads of llama-3.1-8b cannot be divided over 3 GPUs"),
        "{message}"
    );
    let wide = scenario(MINIMAL, &["engine.tensor_parallel_size=2", "hardware.gpu=l40s"]);
    assert_eq!(wide.gpus, 2);
}

#[test]
fn an_engine_that_is_not_built_is_refused_where_it_is_named() {
    let message = refusal(MINIMAL, &["engine.name=sglang", "engine.version=0.3"]);
    assert!(message.contains("command line:1:22") && message.contains("sglang"), "{message}");
    let message = refusal(MINIMAL, &["engine.version=0.6.3"]);
    assert!(message.contains("command line:1:22") && message.contains("0.6.3"), "{message}");
    let newer = scenario(MINIMAL, &["engine.version=0.99"]);
    assert!(newer.warnings[0].contains("vllm 0.99 is not known; it is simulated as"), "{:?}", newer.warnings);
}

#[test]
fn axes_that_replace_each_other_or_the_arrivals() {
    let axes = |set: &str| {
        let changes = [Override::parse(set).expect("a key and a value")];
        let document = Document::parse(MINIMAL, None).and_then(|d| d.with_overrides(&changes));
        document.and_then(|d| d.axes()).expect_err("no sweep").render(false)
    };
    let text = axes("sweep={\"run.requests\"=[50,90],\"run.duration_s\"=[1,2]}");
    assert!(text.contains("the axes `run.requests` and `run.duration_s` replace each other"), "{text}");
    let text = axes("sweep={\"arrivals.constant.rate_per_s\"=[1,2]}");
    assert!(text.contains("the arrivals are `poisson`, but the sweep varies"), "{text}");
    // One load of the same file is not concerned.
    scenario(MINIMAL, &["sweep={\"arrivals.poisson.rate_per_s\"=[1,2]}", "arrivals.closed.users=7"]);
}

#[test]
fn a_run_that_ends_before_it_begins_or_in_its_warm_up() {
    for requests in [100, 199] {
        let closed = ["arrivals.closed.users=100", &format!("run.requests={requests}")];
        let text = refusal(MINIMAL, &closed);
        assert!(text.contains("the run ends before it has begun") && text.contains("at least 200"), "{text}");
    }
    scenario(MINIMAL, &["arrivals.closed.users=100", "run.requests=200"]);
    let warm = refusal(MINIMAL, &["run.warmup=1e6", "run.requests=100"]);
    assert!(warm.contains("the warm-up leaves nothing of the run"), "{warm}");
}

#[test]
fn a_name_that_would_write_on_the_terminal() {
    for name in ["\"a\\u001b[31mb\"", "\"\""] {
        assert!(refusal(MINIMAL, &[&format!("name={name}")]).contains("impossible value for `name`"));
    }
}

#[test]
fn an_engines_own_options_are_refused_by_the_others() {
    for (sets, words) in [
        (&["engine.max_prefill_tokens=4096"][..], "vllm has no option `max_prefill_tokens`: it is sglang's"),
        (
            &["engine.scheduler_recv_interval=10"],
            "vllm has no option `scheduler_recv_interval`: it is sglang's",
        ),
        (
            &["engine.name=sglang", "engine.capacity_scheduler_policy=MAX_UTILIZATION"],
            "sglang has no option `capacity_scheduler_policy`: it is tensorrt-llm's",
        ),
        (
            &["engine.name=tensorrt-llm", "engine.schedule_conservativeness=0.3"],
            "tensorrt-llm has no option `schedule_conservativeness`: it is sglang's",
        ),
        (
            &["engine.name=sglang", "engine.enable_mixed_chunk=true"],
            "`engine.enable_mixed_chunk` is not built",
        ),
        (
            &["engine.batch_wait_timeout_iters=20"],
            "vllm has no option `batch_wait_timeout_iters`: it is tensorrt-llm's",
        ),
        (
            &["engine.name=sglang", "engine.batch_wait_max_tokens_ratio=0.5"],
            "sglang has no option `batch_wait_max_tokens_ratio`: it is tensorrt-llm's",
        ),
        (
            &["engine.name=tensorrt-llm", "engine.batch_wait_max_tokens_ratio=1.5"],
            "expected a number from 0 to 1",
        ),
        (
            &["engine.name=tensorrt-llm", "engine.batch_wait_timeout_iters=-1"],
            "expected a whole number from 0",
        ),
        (
            &["engine.name=tensorrt-llm", "engine.batch_wait_timeout_iters=5", "engine.batching=static"],
            "`engine.batch_wait_timeout_iters` with static batches",
        ),
        (&["engine.name=sglang", "engine.watermark=0.05"], "sglang 0.5 has no option `watermark`"),
        (
            &["engine.name=tensorrt-llm", "engine.scheduling_policy=priority"],
            "priority scheduling of tensorrt-llm is not built yet",
        ),
        (
            &["engine.name=sglang", "engine.block_size=64", "engine.max_num_batched_tokens=1000"],
            "chunks of 1000 tokens do not hold whole blocks of 64",
        ),
    ] {
        let message = refusal(MINIMAL, sets);
        assert!(message.contains(words), "{message}");
    }
}

#[test]
fn many_problems_are_counted_and_not_all_shown() {
    let many: String = (0..5_000).map(|i| format!("k{i} = 0\n")).collect();
    let text = refusal(&(many + MINIMAL), &[]);
    assert!(text.contains("... and 4980 more problems"), "{}", &text[text.len() - 200..]);
}

#[test]
fn experts_are_divided_evenly() {
    let experts = "engine.enable_expert_parallel=true";
    let message = refusal(MINIMAL, &[experts]);
    assert!(message.contains("must be greater than 0 when expert parallelism is enabled"), "{message}");
    let many = ["model.name=qwen3-30b-a3b", experts, "engine.tensor_parallel_size=4"];
    let spread = scenario(MINIMAL, &many);
    assert!(spread.warnings.iter().any(|warning| warning.contains("busiest GPU")), "{:?}", spread.warnings);
    scenario(MINIMAL, &[&many[..], &["engine.enable_expert_parallel=false"]].concat());
}

/// Half a column does not exist; nor, in a checkpoint that is quantised in blocks, half a block.
#[test]
fn a_megabyte_of_a_name_is_cut() {
    let long = "a".repeat(1_000_000);
    for text in [format!("{long} = 1\n{MINIMAL}"), format!("name = \"{long}\"\n{MINIMAL}")] {
        let message = refusal(&text, &[]);
        assert!(message.len() < 10_000, "{}", message.len());
    }
}

#[test]
fn columns_are_divided_evenly() {
    let mine = |columns: &str, gpus: &str, more: &[&str]| {
        let dir = std::env::temp_dir().join(format!("knee-columns-{}-{columns}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let config = format!(
            r#"{{"model_type": "x", "hidden_size": 2048, "num_hidden_layers": 4, "num_attention_heads": 32,
            "num_key_value_heads": 4, "vocab_size": 1000, "max_position_embeddings": 2048, "num_experts": 16,
            "num_experts_per_tok": 4, {columns}}}"#
        );
        std::fs::write(dir.join("m.json"), config).unwrap();
        let name = format!("model.name={}", dir.join("m.json").display());
        let tp = format!("engine.tensor_parallel_size={gpus}");
        let result = resolve(MINIMAL, &[&[name.as_str(), tp.as_str()], more].concat());
        std::fs::remove_dir_all(&dir).unwrap();
        result.map(|scenario| scenario.warnings).map_err(|errors| errors.render(false))
    };
    let experts = "\"moe_intermediate_size\": 8";
    let refused = mine(experts, "16", &[]).unwrap_err();
    for words in [
        "the 8 columns of an expert of m cannot be divided over 16 GPUs",
        "expected a divisor of 8",
        "whole experts",
    ] {
        assert!(refused.contains(words), "{refused}");
    }
    assert!(mine(experts, "8", &[]).is_ok());
    assert!(mine(experts, "16", &["engine.enable_expert_parallel=true"]).is_ok());
    let shared = "\"moe_intermediate_size\": 64, \"shared_expert_intermediate_size\": 12";
    let refused = mine(shared, "8", &[]).unwrap_err();
    assert!(
        refused.contains("the 12 columns of the shared experts of m cannot be divided over 8 GPUs"),
        "{refused}"
    );
    let dense = "\"first_k_dense_replace\": 4, \"moe_intermediate_size\": 64, \"intermediate_size\": 100";
    let refused = mine(dense, "8", &[]).unwrap_err();
    assert!(refused.contains("the 100 columns of a feed-forward layer"), "{refused}");
    // vLLM cuts experts over the ranks of data parallelism too.
    let refused = mine(experts, "8", &["engine.data_parallel_size=2"]).unwrap_err();
    assert!(refused.contains("cannot be divided over 16 GPUs"), "{refused}");

    let blocks = |gpus: &str, more: &[&str]| mine("\"moe_intermediate_size\": 1536", gpus, more).unwrap();
    let told =
        |warnings: Vec<String>| warnings.iter().any(|warning| warning.contains("quantised in blocks of 128"));
    let fp8 = "model.weight_dtype=fp8";
    assert!(told(blocks("8", &[fp8])));
    assert!(!told(blocks("4", &[fp8])));
    assert!(!told(blocks("8", &[fp8, "engine.enable_expert_parallel=true"])));
    assert!(!told(blocks("8", &[])));
}

#[test]
fn a_missing_key_comes_with_an_example() {
    for (text, words) in [
        (minimal("name = \"llama-3.1-8b\"", ""), "such as name = \"llama-3.1-8b\""),
        (minimal("[model]\nname = \"llama-3.1-8b\"", ""), "such as [model] with name = \"llama-3.1-8b\""),
        (minimal("gpu = \"h100-sxm\"", ""), "such as gpu = \"h100-sxm\""),
        (minimal("rate_per_s = 12.0", ""), "such as rate_per_s = 2.0"),
        (minimal("[arrivals.poisson]\nrate_per_s = 12.0", ""), "such as arrivals.poisson.rate_per_s = 2.0"),
        (minimal("input_tokens = 512", ""), "such as input_tokens = 512"),
    ] {
        let message = refusal(&text, &[]);
        assert!(message.contains("missing key") && message.contains(words), "{message}");
    }
}

#[test]
fn a_value_beyond_the_largest_is_told_the_largest() {
    let large = refusal(MINIMAL, &["run.requests=2000000000"]);
    assert!(large.contains("a whole number of at least 1 and at most 1000000000"), "{large}");
    let fast = refusal(MINIMAL, &["arrivals.poisson.rate_per_s=2e9"]);
    assert!(fast.contains("a number above 0 and at most 1000000000"), "{fast}");
}

#[test]
fn a_run_that_outlasts_the_clock_names_its_key() {
    let slow = ["arrivals.poisson.rate_per_s=1e-9", "run.requests=200"];
    let text = refusal(MINIMAL, &slow);
    // 200 requests, 1e9 s apart, of 31,557,600 s a year.
    assert!(text.contains("run.requests = 200 at 0.000000001 req/s take 6338 years"), "{text}");
    assert!(text.contains("expected at most 18 requests at this rate"), "{text}");
}

#[test]
fn a_warm_up_where_the_whole_run_is_reported() {
    for load in ["arrivals.all_at_once=true", "run.mode=benchmark"] {
        let text = refusal(MINIMAL, &[load, "run.warmup=10"]);
        assert!(text.contains("a warm-up in mode \"benchmark\", which reports the whole run"), "{text}");
        scenario(MINIMAL, &[load, "run.warmup=auto"]);
        scenario(MINIMAL, &[load, "run.warmup=0"]);
    }
    scenario(MINIMAL, &["run.warmup=10"]);
}

#[test]
fn what_does_not_fit_is_what_is_blamed() {
    let draft = |name: &str| {
        format!(
            "engine.speculative_config={{ method = \"draft_model\", model = \"{name}\", \
             num_speculative_tokens = 3, mean_acceptance_length = 2 }}"
        )
    };
    let text = refusal(MINIMAL, &["model.name=qwen3-8b", &draft("qwen3-32b")]);
    assert!(
        text.contains("qwen3-8b fits, but not together with its draft model qwen3-32b in bf16"),
        "{text}"
    );
    let text = refusal(MINIMAL, &["model.name=qwen3-32b", "hardware.gpu=l4", &draft("qwen3-8b")]);
    assert!(text.contains("qwen3-32b in bf16 does not fit"), "{text}");
    scenario(MINIMAL, &["model.name=qwen3-32b", &draft("qwen3-0.6b")]);

    // vLLM keeps a block for itself: one block holds nobody, two hold one.
    let text = refusal(MINIMAL, &["engine.num_gpu_blocks_override=1"]);
    assert!(
        text.contains("leaves no KV block for a request") && text.contains("expected at least 2"),
        "{text}"
    );
    scenario(MINIMAL, &["engine.num_gpu_blocks_override=2"]);
    // Of 79.2 GiB a fifth is hardly more than the weights: room for small blocks alone.
    let tight = ["engine.gpu_memory_utilization=0.2115", "engine.version=0.23", "engine.max_num_seqs=256"];
    let text = refusal(MINIMAL, &[&tight[..], &["engine.block_size=4096"]].concat());
    assert!(text.contains("a block of 4096 tokens takes 0.50 GiB"), "{text}");
    scenario(MINIMAL, &[&tight[..], &["engine.block_size=16"]].concat());
}

#[test]
fn speculation_that_the_model_or_the_version_does_not_have() {
    let with = |method: &str| {
        format!(
            "engine.speculative_config={{ method = \"{method}\", num_speculative_tokens = 1, \
             mean_acceptance_length = 1.5 }}"
        )
    };
    let text = refusal(MINIMAL, &[&with("mtp")]);
    assert!(text.contains("llama-3.1-8b has no layer for multi-token prediction"), "{text}");
    let deepseek = [
        "model.name=deepseek-v3",
        "hardware.gpu=h200-sxm",
        "engine.tensor_parallel_size=8",
        "engine.version=0.9",
    ];
    scenario(MINIMAL, &[&deepseek[..], &[&with("mtp")]].concat());
    let old = "engine.version=0.8";
    for method in ["mtp", "eagle3"] {
        let text = refusal(MINIMAL, &[&deepseek[..], &[&with(method), old]].concat());
        assert!(text.contains(&format!("vllm 0.8 does not take method = \"{method}\"")), "{text}");
        assert!(text.contains("from 0.9 on"), "{text}");
    }
    for method in ["ngram", "eagle"] {
        scenario(MINIMAL, &[&with(method), old]);
    }
    let draft = "engine.speculative_config={ method = \"draft_model\", model = \"qwen3-0.6b\", \
                 num_speculative_tokens = 1, mean_acceptance_length = 1.5 }";
    let text = refusal(MINIMAL, &["model.name=qwen3-8b", draft, "engine.version=0.13"]);
    assert!(text.contains("vllm 0.13 does not take method = \"draft_model\""), "{text}");
    scenario(MINIMAL, &["model.name=qwen3-8b", draft, "engine.version=0.14"]);
}

/// Who names a profile does not want another in its place.
#[test]
fn a_named_profile_without_values_for_what_is_served() {
    for (sets, wanted, instead) in [
        (
            &["hardware.profile=h100-sxm-vllm", "model.weight_dtype=int4"][..],
            "profile `h100-sxm-vllm` has no values for int4 weights of dense models under vllm 0.23; it has: bf16 of \
             dense models, bf16 of dense models (vllm up to 0.13), fp8 of dense models",
            "\"auto\" takes h100-sxm-vllm-estimated (estimated)",
        ),
        (
            &["hardware.gpu=a100-80-sxm", "hardware.profile=a100-80-sxm-vllm"],
            "no values for bf16 weights of dense models under vllm 0.23; it has: bf16 of dense models (vllm up to 0.13)",
            "\"auto\" takes a100-80-sxm-vllm-estimated (estimated)",
        ),
    ] {
        let message = refusal(MINIMAL, &[&["engine.version=0.23"][..], sets].concat());
        assert!(message.contains(wanted) && message.contains(instead), "{message}");
        assert!(message.contains("hardware.profile="), "{message}");
    }
    scenario(MINIMAL, &["hardware.profile=h100-sxm-vllm-estimated", "model.weight_dtype=int4"]);
}

/// SGLang keeps memory for the activations of its steps; what it leaves to weights and KV is nothing here.
#[test]
fn steps_that_leave_no_memory_to_weights_are_what_is_told() {
    let text = "[model]\nname = 'llama-3.1-8b'\n[hardware]\ngpu = 'h100-sxm'\n[engine]\nname = 'sglang'\n\
                max_num_batched_tokens = 200000\n[arrivals.poisson]\nrate_per_s = 1.0\n";
    let message = refusal(text, &[]);
    assert!(message.contains("weights 15.0 GiB, of 78.7 GiB x 0 for weights and KV"), "{message}");
    assert!(message.contains("max_num_batched_tokens = 200000 leave no memory to weights"), "{message}");
}
