//! The catalog: every shipped file reads, names resolve, versions fall back, and computed parameter
//! counts agree with published ones.

use std::path::{Path, PathBuf};

use knee::catalog::{
    Attention, Catalog, CatalogError, Dtype, ModelKind, Scheduler, Standing, TensorRtLlmScheduler, Weights,
    age_months,
};
use knee::cost::{MemoryInputs, StepCost, StepShape, memory_budget};

fn catalog() -> Catalog {
    Catalog::new(None)
}

fn here() -> &'static Path {
    Path::new(".")
}

/// A folder of this test's own, empty.
fn scratch(test: &str) -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(test);
    let _ = std::fs::remove_dir_all(&dir);
    std::fs::create_dir_all(&dir).expect("the target folder is writable");
    dir
}

#[test]
fn every_shipped_file_reads() {
    let catalog = catalog();
    let promised = "a10g l4 l40s a100-40-sxm a100-80-sxm a100-80-pcie h100-sxm h100-pcie h200-sxm b200-sxm \
                    b300-sxm gb200 mi300x mi325x mi355x rtx-4090 rtx-5090 rtx-pro-6000";
    let names = catalog.hardware_names();
    for gpu in promised.split_whitespace() {
        assert!(names.iter().any(|name| name == gpu), "{gpu} is missing");
    }
    for name in &names {
        let gpu = catalog.hardware(name).unwrap();
        assert!(gpu.price.is_some() && !gpu.source.is_empty() && !gpu.kernels.source.is_empty(), "{name}");
        for dtype in Dtype::ALL {
            let profile = catalog.profile("auto", &gpu, "vllm", None, dtype, here()).unwrap();
            assert_eq!(profile.values.len(), 1, "{name} {dtype}");
            assert_eq!(profile.values[0].weight_dtype, dtype, "{name}");
            assert!(profile.values[0].compute > 0.0 && profile.values[0].compute <= 1.0, "{name} {dtype}");
        }
        for (engine, versions) in catalog.engine_versions() {
            for version in versions {
                catalog.engine(&engine, Some(&version), &gpu).unwrap();
            }
        }
    }
    for name in catalog.model_names() {
        catalog.model(&name, here()).unwrap();
    }
    for name in catalog.profile_names() {
        let engines = ["vllm", "sglang", "tensorrt-llm"].into_iter();
        let mut gpus = engines.filter_map(|engine| name.strip_suffix(engine)?.strip_suffix('-'));
        let gpu = gpus.next().expect("profiles are named gpu-engine");
        assert_eq!(catalog.gpu_of_profile(&name, here()).unwrap().as_deref(), Some(gpu));
    }
}

#[test]
fn a_fitted_profile_is_preferred_and_says_how_good_it_is() {
    let catalog = catalog();
    let h100 = catalog.hardware("h100-sxm").unwrap();
    let fitted = catalog.profile("auto", &h100, "vllm", None, Dtype::Bf16, here()).unwrap();
    assert_eq!(fitted.standing, Standing::Calibrated);
    assert_eq!(fitted.values[0].compute, 0.6755);
    assert!((fitted.values[0].overhead_per_layer_s * 40.0 - 1.8776e-3).abs() < 1e-6);
    assert!(fitted.held_out_error.is_some());
    let a100 = catalog.hardware("a100-80-pcie").unwrap();
    let prior = catalog.profile("auto", &a100, "vllm", None, Dtype::Bf16, here()).unwrap();
    assert_eq!(prior.standing, Standing::Estimated);
    assert!((prior.values[0].compute - 0.87 * 0.75).abs() < 1e-12);
    // Values for old versions: of those nothing better is known, of newer ones nothing.
    let old = |gpu, version| {
        let profile = catalog.profile("auto", gpu, "vllm", Some(version), Dtype::Bf16, here()).unwrap();
        (profile.until_version, profile.standing)
    };
    let sxm = catalog.hardware("a100-80-sxm").unwrap();
    // That of the A100 was scored on nothing that it was not fitted on.
    for (gpu, standing) in [(&h100, Standing::Calibrated), (&sxm, Standing::Fitted)] {
        assert_eq!(old(gpu, "0.11"), (Some("0.13".to_owned()), standing));
        assert_eq!(old(gpu, "0.13.2"), (Some("0.13".to_owned()), standing));
    }
    assert_eq!(old(&h100, "0.14"), (None, Standing::Calibrated));
    assert_eq!(old(&sxm, "0.14"), (None, Standing::Estimated));
    let error = catalog.profile("h100-sxm-vllm", &a100, "vllm", None, Dtype::Bf16, here()).unwrap_err();
    assert!(error.to_string().contains("a100-80-pcie"), "{error}");
}

/// A mistake in a profile's file is an error, never a profile that is silently not used.
#[test]
fn nonsense_in_a_profile_is_refused() {
    let dir = scratch("nonsense_profile");
    std::fs::create_dir_all(dir.join("profiles")).unwrap();
    let shipped = std::fs::read_to_string("calibration/profiles/a100-80-sxm-vllm.toml").unwrap();
    for (from, to, found) in [
        ("until_version = \"0.13\"", "until_version = \"abc\"", "\"abc\""),
        ("until_version = \"0.13\"", "until_version = \"\"", "\"\""),
        ("front_end_ms = 5.0", "front_end_ms = 1e308", "1000000"),
        ("throttle = 0.0", "throttle = 1.0", "0 to 0.9"),
    ] {
        assert!(shipped.contains(from), "{from}");
        std::fs::write(dir.join("profiles/a100-80-sxm-vllm.toml"), shipped.replacen(from, to, 1)).unwrap();
        let catalog = Catalog::new(Some(&dir));
        let gpu = catalog.hardware("a100-80-sxm").unwrap();
        let error = catalog.profile("auto", &gpu, "vllm", Some("0.11"), Dtype::Bf16, here()).unwrap_err();
        assert!(error.to_string().contains(found), "{error}");
    }
}

#[test]
fn names_resolve_to_one_architecture() {
    let catalog = catalog();
    for (name, short, dtype) in [
        ("llama-3.1-8b", "llama-3.1-8b", None),
        ("meta-llama/Meta-Llama-3.1-8B-Instruct", "llama-3.1-8b", None),
        ("RedHatAI/Llama-3.3-70B-Instruct-FP8-dynamic", "llama-3.1-70b", Some(Dtype::Fp8)),
        ("deepseek-ai/DeepSeek-R1-0528", "deepseek-v3", None),
        ("nvidia/DeepSeek-R1-NVFP4", "deepseek-v3", Some(Dtype::Nvfp4)),
        ("Qwen/Qwen3-30B-A3B-Instruct-2507-FP8", "qwen3-30b-a3b", Some(Dtype::Fp8)),
        ("google/gemma-3-27b-it", "gemma-3-27b", None),
        ("mistralai/Mistral-Small-3.2-24B-Instruct-2506", "mistral-small-3.2-24b", None),
        ("mistralai/Mixtral-8x7B-Instruct-v0.1", "mixtral-8x7b", None),
        ("OpenAI/GPT-OSS-120B", "gpt-oss-120b", None),
    ] {
        let (model, variant) = catalog.model(name, here()).unwrap();
        assert_eq!((model.name.as_str(), variant), (short, dtype), "{name}");
    }
    let error = catalog.model("lama-3.1-8b", here()).unwrap_err().to_string();
    assert!(error.contains("`llama-3.1-8b`"), "{error}");
    let error = catalog.hardware("h100").unwrap_err().to_string();
    assert!(error.contains("`h100-"), "{error}");
}

#[test]
fn engine_versions_fall_back_and_refuse() {
    let catalog = catalog();
    let h100 = catalog.hardware("h100-sxm").unwrap();
    let a100 = catalog.hardware("a100-80-sxm").unwrap();
    let b200 = catalog.hardware("b200-sxm").unwrap();
    let budget = |version, gpu| {
        let engine = catalog.engine("vllm", version, gpu).unwrap();
        (engine.max_num_batched_tokens, engine.max_num_seqs)
    };
    assert_eq!(budget(Some("0.11.0"), &h100), (8192, 1024));
    assert_eq!(budget(Some("0.11.0"), &a100), (2048, 256));
    assert_eq!(budget(Some("0.23"), &b200), (8192, 1024));
    assert_eq!(budget(Some("0.28"), &b200), (16384, 1024));

    let old = catalog.engine("vllm", Some("0.13.2"), &h100).unwrap();
    assert!(!old.async_scheduling && !old.full_prompt_gate && !old.subtracts_graphs);
    assert_eq!((old.version.as_str(), old.asked_version, old.gpu_memory_utilization), ("0.13", None, 0.90));
    let new = catalog.engine("vllm", None, &h100).unwrap();
    assert!(new.async_scheduling && new.full_prompt_gate && new.subtracts_graphs && new.watermark_option);
    assert_eq!((new.version.as_str(), new.gpu_memory_utilization), ("0.33", 0.92));
    let patched = catalog.engine("vllm", Some("0.27.1"), &h100).unwrap();
    assert_eq!((patched.version.as_str(), patched.asked_version), ("0.27", None));
    let beyond = catalog.engine("vllm", Some("0.34.1"), &h100).unwrap();
    assert_eq!((beyond.version.as_str(), beyond.asked_version.as_deref()), ("0.33", Some("0.34.1")));

    for (engine, version, word) in [
        ("vllm", Some("0.6.3"), "V0 scheduler"),
        ("vllm", Some("0.2"), "0.8"),
        ("vllm", Some("latest"), "latest"),
        ("sglang", Some("0.3.6"), "the oldest version simulated is 0.4"),
        ("tensorrt-llm", Some("0.21"), "the oldest version simulated is 1.0"),
        ("vlm", None, "`vllm`"),
    ] {
        let error = catalog.engine(engine, version, &h100).unwrap_err().to_string();
        assert!(error.contains(word), "{engine} {version:?}: {error}");
    }
}

/// Chunk sizes, static fractions and limits as the servers' sources compute them by GPU.
#[test]
fn other_engines_have_their_own_defaults() {
    let catalog = Catalog::new(None);
    for (version, gpu, chunk, fraction) in [
        // (81,080 - 512 - 12,288 - 512 - 128) / 81,080 MiB, and (81,080 - 9,728 - 512) / 81,080.
        ("0.5.9", "h100-sxm", 8192, 0.834),
        ("0.4.6", "h100-sxm", 8192, 0.874),
        ("0.5.9", "rtx-4090", 2048, 0.844),
        ("0.4.6", "rtx-4090", 2048, 0.877),
    ] {
        let gpu = catalog.hardware(gpu).unwrap();
        let defaults = catalog.engine("sglang", Some(version), &gpu).unwrap();
        assert_eq!(defaults.max_num_batched_tokens, chunk, "{version} {}", gpu.name);
        let found = defaults.gpu_memory_utilization;
        assert!((found - fraction).abs() < 0.0015, "{version} {}: {found}", gpu.name);
        let Scheduler::Sglang(scheduler) = defaults.scheduler else { panic!("not SGLang's") };
        assert_eq!(scheduler.retract_to_headroom, version.starts_with("0.4"));
        // 100,000 / 32,768 x 512 lies below the least, 10 contexts above the most.
        assert_eq!(scheduler.running_requests(100_000, 32_768), 2048);
        assert_eq!(scheduler.running_requests(163_840, 32_768), 2560);
        assert_eq!(scheduler.running_requests(327_680, 32_768), 4096);
    }
    let h100 = catalog.hardware("h100-sxm").unwrap();
    // A version newer than all of its own that is another engine's is a slip; one that nobody knows may be to come.
    let error = catalog.engine("sglang", Some("0.23"), &h100).unwrap_err().to_string();
    assert!(error.contains("0.23 is a version of vllm; versions known of sglang: 0.4, 0.5"), "{error}");
    let newer = catalog.engine("sglang", Some("0.6"), &h100).unwrap();
    assert_eq!((newer.version.as_str(), newer.asked_version.as_deref()), ("0.5", Some("0.6")));
    let trt = catalog.engine("tensorrt-llm", None, &h100).unwrap();
    assert_eq!((trt.max_num_seqs, trt.max_num_batched_tokens, trt.block_size), (2048, 8192, 32));
    assert_eq!(trt.scheduler, Scheduler::TensorRtLlm(TensorRtLlmScheduler::default()));
    assert_eq!((trt.gpu_memory_utilization, trt.enable_chunked_prefill), (0.90, false));
}

/// Fused kernels of experts reach a quarter of what dense matrices do; MXFP4's figure is of experts as it stands. An
/// estimate waits for the host, which a fit is to find out.
#[test]
fn an_estimate_is_of_a_kind_of_model() {
    let a100 = catalog().hardware("a100-80-sxm").unwrap();
    let of = |dtype, kind| a100.estimated_values("vllm", Weights { dtype, kind });
    for kind in ModelKind::ALL.into_iter().filter(|kind| kind.has_experts()) {
        let (dense, experts) = (of(Dtype::Bf16, ModelKind::Dense), of(Dtype::Bf16, kind));
        assert_eq!(experts.compute, dense.compute);
        // Its table of fused kernels, and what is left of it end to end; it has none of MXFP4.
        assert_eq!((experts.expert_compute, experts.expert_half_width), (0.37 * 0.45, 56.0));
        assert_eq!(of(Dtype::Mxfp4, kind).expert_compute, 0.65 * dense.compute * 0.45);
        // TensorRT-LLM's own kernels lose nothing in narrow slices.
        let own = a100.estimated_values("tensorrt-llm", Weights { dtype: Dtype::Bf16, kind });
        assert_eq!((own.expert_compute, own.expert_half_width), (0.5 * dense.compute, 0.0));
        assert_eq!(experts.prefill_launch_per_layer_s, 500e-6);
        let start = a100.kernel_values("vllm", Weights { dtype: Dtype::Bf16, kind });
        assert_eq!(start.prefill_launch_per_layer_s, 0.0);
    }
    let qwen = catalog().model("qwen3.5-397b-a17b", here()).unwrap().0;
    assert_eq!(qwen.weights(Dtype::Fp8).kind, ModelKind::HybridMixtureOfExperts);
    let kimi = catalog().model("kimi-k2.5", here()).unwrap().0;
    assert_eq!(kimi.weights(Dtype::Int4).kind, ModelKind::LatentMixtureOfExperts);
    let dense = catalog().model("qwen3.5-27b", here()).unwrap().0;
    assert_eq!(dense.weights(Dtype::Fp8).kind, ModelKind::Dense);
}

/// gpt-oss and Llama share neither kernels nor constants: each is served by values for its kind, and where only another
/// kind was fitted by an estimate.
#[test]
fn a_profile_is_for_a_kind_of_model() {
    let catalog = catalog();
    let h200 = catalog.hardware("h200-sxm").unwrap();
    let of = |dtype, kind| {
        let weights = Weights { dtype, kind };
        catalog.profile("auto", &h200, "vllm", None, weights, here()).unwrap()
    };
    let dense = of(Dtype::Fp8, ModelKind::Dense);
    let experts = of(Dtype::Fp8, ModelKind::MixtureOfExperts);
    for (profile, kind) in [(&dense, ModelKind::Dense), (&experts, ModelKind::MixtureOfExperts)] {
        assert_eq!(profile.values[0].models, Some(kind));
        assert_eq!(profile.standing, Standing::Calibrated);
    }
    assert_ne!(dense.values[0].compute, experts.values[0].compute);
    let other = of(Dtype::Mxfp4, ModelKind::Dense);
    assert_eq!(other.standing, Standing::Estimated);
    assert_eq!(other.values[0], h200.estimated_values("vllm", Dtype::Mxfp4));
    let (model, _) = catalog.model("gpt-oss-120b", here()).unwrap();
    assert_eq!(model.weights(Dtype::Mxfp4).kind, ModelKind::MixtureOfExperts);
}

/// The kernel tables of fp8 are vLLM's: caches on H100 at 0.74 of the bandwidth (bf16 0.89), matrices at half their rate
/// with 49 rows.
#[test]
fn each_engine_has_fp8_kernels_of_its_own() {
    let h100 = catalog().hardware("h100-sxm").unwrap();
    let of = |engine| {
        let values = h100.kernel_values(engine, Dtype::Fp8);
        (values.fp8_kv_memory, values.memory)
    };
    assert_eq!((of("vllm"), of("tensorrt-llm")), ((0.74, 0.87), (0.89, 0.89)));
}

#[test]
fn files_on_disk_win_and_are_read_strictly() {
    let dir = scratch("overlay");
    std::fs::create_dir_all(dir.join("hardware")).unwrap();
    let shipped = std::fs::read_to_string("calibration/hardware/h100-sxm.toml").unwrap();
    let write = |name: &str, text: &str| std::fs::write(dir.join("hardware").join(name), text).unwrap();
    write("h100-sxm.toml", &shipped.replace("total_gib = 79.18", "total_gib = 64.0"));
    write("misspelt.toml", &shipped.replace("bf16_compute", "bf16_compte"));
    write("impossible.toml", &shipped.replace("kv_memory = 0.89", "kv_memory = 1.9"));
    let catalog = Catalog::new(Some(&dir));
    assert_eq!(catalog.hardware("h100-sxm").unwrap().memory_bytes, 64 << 30);
    assert!(catalog.hardware("l4").is_ok(), "embedded files stay");
    for (name, words) in [
        ("misspelt", ["misspelt.toml", "`kernels.bf16_compte`; did you mean `bf16_compute`?"]),
        ("impossible", ["kv_memory", "0.001 to 1"]),
    ] {
        let error = catalog.hardware(name).unwrap_err().to_string();
        assert!(words.iter().all(|word| error.contains(word)), "{error}");
    }
}

#[test]
fn a_price_on_disk_replaces_that_of_its_gpu_only() {
    let dir = scratch("prices");
    let write = |text: &str| std::fs::write(dir.join("prices.toml"), text).unwrap();
    write("[h100-sxm]\nusd_per_gpu_hour = 1.23\ndate = \"2026-10\"\nsource = \"our contract\"\n");
    let catalog = Catalog::new(Some(&dir));
    let price = |name: &str| catalog.hardware(name).unwrap().price.clone().unwrap();
    assert_eq!(
        (price("h100-sxm").usd_per_gpu_hour, age_months(&price("h100-sxm").date, 2026, 12)),
        (1.23, Some(2))
    );
    assert_eq!(price("l4"), Catalog::new(None).hardware("l4").unwrap().price.clone().unwrap());

    write("[h100-sxm]\nusd_per_gpu_hour = 0\ndate = \"2026-10\"\nsource = \"\"\n");
    let error = Catalog::new(Some(&dir)).hardware("h100-sxm").unwrap_err().to_string();
    assert!(error.contains("prices.toml") && error.contains("`h100-sxm.usd_per_gpu_hour` is 0"), "{error}");
    write("[h100-sxm]\nusd_per_gpu_hour = 2\ndate = \"autumn\"\nsource = \"\"\n");
    let error = Catalog::new(Some(&dir)).hardware("h100-sxm").unwrap_err().to_string();
    assert!(error.contains("line 3: `h100-sxm.date` is \"autumn\"; expected a month"), "{error}");
    // A price that is wrong is told whichever GPU is asked about.
    let error = Catalog::new(Some(&dir)).hardware("l4").unwrap_err().to_string();
    assert!(error.contains("`h100-sxm.date`"), "{error}");
    std::fs::remove_file(dir.join("prices.toml")).unwrap();
    std::fs::create_dir(dir.join("prices.toml")).unwrap();
    let error = Catalog::new(Some(&dir)).hardware("l4").unwrap_err().to_string();
    assert!(error.contains("prices.toml: cannot be read: it is a folder"), "{error}");
}

#[test]
fn parameters_and_kv_of_well_known_models() {
    // Published sizes: model cards and technical reports. KV bytes per token in bf16 by hand.
    for (name, total_b, active_b, kv_bytes) in [
        ("llama-3.1-8b", 8.03, 8.03, 131_072),
        ("llama-3.1-405b", 405.85, 405.85, 516_096),
        ("qwen3-0.6b", 0.596, 0.596, 114_688),
        ("qwen3-30b-a3b", 30.53, 3.35, 98_304),
        ("mixtral-8x7b", 46.70, 12.88, 131_072),
        ("gpt-oss-120b", 116.83, 5.71, 73_728),
        ("llama-4-scout", 107.77, 17.17, 196_608),
        ("llama-4-maverick", 400.71, 17.17, 196_608),
        ("deepseek-v3", 671.0, 37.5, 70_272),
        ("kimi-k2", 1026.4, 32.7, 70_272),
        // Hybrids: only full-attention layers keep KV (2 x layers x KV heads x head size x 2 bytes).
        ("qwen3-next-80b-a3b", 79.7, 3.9, 2 * 12 * 2 * 256 * 2),
        ("qwen3.5-27b", 26.9, 26.9, 2 * 16 * 4 * 256 * 2),
        ("qwen3.5-35b-a3b", 34.7, 3.4, 2 * 10 * 2 * 256 * 2),
    ] {
        let model = catalog().model(name, here()).unwrap().0;
        let parameters = model.parameters();
        let (total, active) = (parameters.total() as f64 / 1e9, parameters.active() as f64 / 1e9);
        assert!((total / total_b - 1.0).abs() < 0.005, "{name}: {total} against {total_b}");
        assert!((active / active_b - 1.0).abs() < 0.02, "{name}: {active} against {active_b}");
        assert_eq!(model.kv_bytes_per_token(Dtype::Bf16), kv_bytes, "{name}");
    }
}

#[test]
fn configs_are_read_by_path_or_folder_and_name_what_is_missing() {
    let dir = scratch("configs");
    let config = r#"{"model_type": "brand_new", "hidden_size": 512, "num_hidden_layers": 4, "num_attention_heads": 8,
        "num_key_value_heads": 2, "intermediate_size": 1024, "vocab_size": 1000, "max_position_embeddings": 2048,
        "quantization_config": {"quant_method": "awq", "bits": 4}}"#;
    std::fs::create_dir_all(dir.join("tiny")).unwrap();
    std::fs::write(dir.join("tiny/config.json"), config).unwrap();
    for name in ["tiny", "tiny/config.json"] {
        let (model, variant) = catalog().model(name, &dir).unwrap();
        assert_eq!((model.name.as_str(), model.layer_count(), variant), ("tiny", 4, None));
        assert_eq!(model.native_weight_dtype, Dtype::Int4);
        let attention =
            Attention::Softmax { heads: 8, kv_heads: 2, head_dim: 64, window: None, output_gate: false };
        assert_eq!(model.layers[0].attention, attention);
    }
    for (from, to, word) in [
        ("vocab_size", "vocabulary", "`vocab_size`"),
        ("intermediate_size", "inner", "`intermediate_size`"),
        ("brand_new", "nemotron_h", "nemotron_h"),
        ("512", "-512", "`hidden_size`"),
        // Below 0 is not none.
        ("\"vocab_size\"", "\"num_local_experts\": -1, \"vocab_size\"", "`num_local_experts` is -1"),
        ("1000", "4000000000", "`vocab_size`"),
        ("awq", "aqlm", "`aqlm`"),
    ] {
        std::fs::write(dir.join("broken.json"), config.replace(from, to)).unwrap();
        let error = catalog().model("broken.json", &dir).unwrap_err();
        assert!(matches!(&error, CatalogError::Invalid { message, .. } if message.contains(word)), "{error}");
    }
    assert!(catalog().model("absent.json", &dir).is_err());
}

/// Errors name the file's own key and its line, and nothing is passed over that is not what it should be.
#[test]
fn a_config_is_told_in_its_own_words() {
    let dir = scratch("config-words");
    let config = r#"{
        "model_type": "brand_new",
        "text_config": {
            "hidden_size": 512, "num_hidden_layers": 4,
            "num_attention_heads": 8,
            "num_key_value_heads": 2,
            "num_experts": 16, "num_experts_per_tok": 4, "moe_intermediate_size": 64, "n_shared_experts": 1,
            "layer_types": ["full_attention", "full_attention", "full_attention", "full_attention"]
        },
        "vocab_size": 1000, "max_position_embeddings": 2048, "tie_word_embeddings": false
    }"#;
    let read = |text: &str| {
        std::fs::write(dir.join("m.json"), text).unwrap();
        catalog()
            .model("m.json", &dir)
            .map(|(model, _)| model.layer_count())
            .map_err(|error| error.to_string())
    };
    assert_eq!(read(config), Ok(4));
    assert_eq!(read(&format!("\u{feff}{}", config.replace('\n', "\r\n"))), Ok(4));
    for (from, to, words) in [
        (
            "heads\": 8",
            "heads\": 0",
            "line 5: `num_attention_heads` is 0; expected a whole number from 1 to 65536",
        ),
        (
            "heads\": 8",
            "heads\": 7",
            "line 6: `num_key_value_heads` is 2; expected a divisor of `num_attention_heads`",
        ),
        ("heads\": 8", "heads\": 1e300", "line 5: `num_attention_heads` is 1e+300; expected a whole number"),
        (
            "heads\": 8",
            "heads\": 10",
            "line 5: `num_attention_heads` is 10; expected a divisor of `hidden_size`",
        ),
        (
            "tok\": 4",
            "tok\": 17",
            "line 7: `num_experts_per_tok` is 17; expected at most 16, the experts of a layer",
        ),
        (
            "tok\": 4",
            "toks\": 4",
            "m.json: missing key `num_experts_per_tok` or `experts_per_token` or `top_k_experts`; \
          expected a whole number from 1 to 65536, as the model's page on Hugging Face has it",
        ),
        (
            "shared_experts\": 1",
            "shared_experts\": 1e6",
            "line 7: `n_shared_experts` is 1000000.0; expected a whole \
          number from 0 to 2048",
        ),
        ("\"full_attention\", ", "", "line 8: `layer_types` is a list of 1; expected 4 of full_attention, "),
        (
            "\"full_attention\"]",
            "\"rwkv\"]",
            "line 8: `layer_types` is a list of 4; expected 4 of full_attention, ",
        ),
        (
            "embeddings\": false",
            "embeddings\": \"no\"",
            "line 10: `tie_word_embeddings` is \"no\"; expected true or false",
        ),
        ("\"brand_new\"", "3", "line 2: `model_type` is 3; expected a text in quotes"),
        ("512,", "512,,", "line 4, column 32: not JSON: "),
    ] {
        let text = config.replace(from, to);
        assert_ne!(text, config, "{from}");
        let error = read(&text).expect_err(words);
        assert!(error.contains(words), "{error}");
    }
    let cut = read(&config[..config.len() - 1]).unwrap_err();
    assert!(cut.contains("line 11, column 4: it ends in the middle of its JSON"), "{cut}");
    assert!(read("[]").unwrap_err().contains("it is no JSON object"));
    let nested = read(&"[".repeat(100_000)).unwrap_err();
    assert!(nested.contains("not JSON: recursion limit"), "{nested}");
}

#[test]
fn sizes_of_a_model_are_told_with_their_line() {
    let dir = scratch("model-lines");
    std::fs::create_dir_all(dir.join("models")).unwrap();
    let text = std::fs::read_to_string("calibration/models/qwen3-30b-a3b.toml").unwrap();
    for (from, to, words) in [
        (
            "heads = 32",
            "heads = 0",
            "line 12: `layers.attention.softmax.heads` is 0; it must lie in 1 to 65536",
        ),
        (
            "top_k = 8",
            "top_k = 129",
            "line 13: `layers.mlp.moe.top_k` is 129; it must be at most 128, the experts there are",
        ),
        ("count = 48", "count = 0", "line 11: `layers.count` is 0; it must lie in 1 to 1024"),
        ("vocab_size = 151936", "vocab_size = 0", "line 4: `vocab_size` is 0"),
    ] {
        std::fs::write(dir.join("models/wrong.toml"), text.replacen(from, to, 1)).unwrap();
        let error = Catalog::new(Some(&dir)).model("wrong", here()).unwrap_err().to_string();
        assert!(error.contains("wrong.toml: ") && error.contains(words), "{error}");
    }
}

/// What a missing key looks like is shown by a file that has it.
#[test]
fn a_missing_key_comes_with_an_example() {
    let dir = scratch("missing");
    std::fs::create_dir_all(dir.join("hardware")).unwrap();
    let text = std::fs::read_to_string("calibration/hardware/h100-sxm.toml").unwrap();
    let read = |text: &str| {
        std::fs::write(dir.join("hardware/mine.toml"), text).unwrap();
        Catalog::new(Some(&dir)).hardware("mine").unwrap_err().to_string()
    };
    let kept = |without: &str| {
        let lines = text.lines().filter(|line| !line.starts_with(without));
        lines.collect::<Vec<_>>().join("\n")
    };
    let error = read(&kept("total_gib"));
    assert!(error.contains("missing key `memory.total_gib`; expected such as `total_gib = "), "{error}");
    assert!(error.contains(", as calibration/hardware/a100-40-sxm.toml has it"), "{error}");
    let error = read("title = \"x\"\n");
    assert!(
        error.contains(
            "missing key `memory`; expected such as the table `[memory]`, as calibration/hardware/"
        ),
        "{error}"
    );
    std::fs::write(dir.join("prices.toml"), "[mine]\nusd_per_gpu_hour = 2\nsource = \"x\"\n").unwrap();
    let error = Catalog::new(Some(&dir)).hardware("l4").unwrap_err().to_string();
    assert!(error.contains("missing key `mine.date`; expected such as `date = \"20"), "{error}");
    std::fs::remove_file(dir.join("prices.toml")).unwrap();
    let error = read(&format!("{text}\nestimated = false\n"));
    assert!(error.contains("not TOML: duplicate key `estimated`"), "{error}");
}

#[test]
fn rows_of_all_reduce_are_in_order() {
    let rows = |gpus: [u32; 2]| {
        let row = |gpus| format!("{{ gpus = {gpus}, startup_us = 9.0, bus_gb_per_s = 100.0 }}");
        format!("all_reduce = [\n{},\n{}]\nsource = \"a test\"", row(gpus[0]), row(gpus[1]))
    };
    for (gpus, words) in [
        (
            [4, 2],
            "line 17: `gpus` is 2 after 4 in the rows of `all_reduce`; expected the rows in ascending order",
        ),
        ([4, 4], "line 17: `gpus` is 4 after 4"),
        ([1, 4], "line 16: `values.all_reduce.gpus` is 1; it must lie in 2 to 65536"),
    ] {
        let text = PROFILE.replacen("source = \"a test\"", &rows(gpus), 1);
        let catalog = with_profile("all-reduce-order", "l4-vllm.toml", &text);
        let l4 = catalog.hardware("l4").unwrap();
        let error = catalog.profile("auto", &l4, "vllm", None, Dtype::Bf16, here()).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }
    for (keys, words) in [
        (
            "large_from_kib = 256",
            "line 15: only one of `large_startup_us` and `large_from_kib`; expected both or none",
        ),
        (
            "large_from_kib = 256, large_startup_us = 8",
            "`values.all_reduce.large_startup_us` is 8; it must lie in 9 to ",
        ),
    ] {
        let row = format!("all_reduce = [{{ gpus = 2, startup_us = 9.0, bus_gb_per_s = 100.0, {keys} }}]");
        let text = PROFILE.replacen("source = \"a test\"", &format!("{row}\nsource = \"a test\""), 1);
        let catalog = with_profile("all-reduce-large", "l4-vllm.toml", &text);
        let l4 = catalog.hardware("l4").unwrap();
        let error = catalog.profile("auto", &l4, "vllm", None, Dtype::Bf16, here()).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }
}

/// What people write, and what they mean.
#[test]
fn names_that_were_probably_meant() {
    let catalog = catalog();
    let meant = |error: CatalogError| {
        let text = error.to_string();
        let names = text.split("did you mean ").nth(1).map(|rest| rest.split('?').next().unwrap_or_default());
        names.unwrap_or("nothing").replace('`', "")
    };
    for (name, expected) in [
        ("H100", "h100-sxm or h100-pcie"),
        ("h100-80gb", "h100-sxm or h100-pcie"),
        ("NVIDIA H100 80GB HBM3", "h100-sxm or h100-pcie"),
        ("NVIDIA-A100-SXM4-80GB", "a100-80-sxm or a100-40-sxm"),
        ("a100", "a100-80-sxm, a100-40-sxm or a100-80-pcie"),
        ("h200", "h200-sxm"),
        ("mi300", "mi300x"),
        ("RTX 4090", "rtx-4090"),
        ("4090", "rtx-4090"),
        ("rtx6000", "rtx-pro-6000"),
        ("l40", "l40s"),
        ("v100", "nothing"),
        ("T4", "nothing"),
        ("gb300", "gb200"),
    ] {
        assert_eq!(meant(catalog.hardware(name).unwrap_err()), expected, "{name}");
    }
    for (name, expected) in [
        ("llama3-70b", "llama-3-70b"),
        ("llama3.1-8b", "llama-3.1-8b"),
        ("meta-llama/Llama3.1-8B-Instruct", "llama-3.1-8b"),
        ("llama8b", "llama-3-8b or llama-3.1-8b"),
        ("llama-70b", "llama-3-70b, llama-2-70b or llama-3.1-70b"),
        ("qwen14b", "qwen3-14b or qwen2.5-14b"),
        ("qwne3-14b", "qwen3-14b"),
        ("gpt-oss", "gpt-oss-20b or gpt-oss-120b"),
        ("deepseekv3", "deepseek-v3"),
        ("kimi", "kimi-k2 or kimi-k2.5"),
        ("claude-3", "nothing"),
    ] {
        assert_eq!(meant(catalog.model(name, here()).unwrap_err()), expected, "{name}");
    }
    let h100 = catalog.hardware("h100-sxm").unwrap();
    assert_eq!(meant(catalog.engine("trtllm", None, &h100).unwrap_err()), "tensorrt-llm");
}

/// Every key of a config, in turn, replaced by every kind of nonsense: an error or a model that can be
/// computed with, never a panic.
#[test]
fn nonsense_in_a_config_never_panics() {
    let dir = scratch("nonsense");
    let catalog = catalog();
    let hardware = catalog.hardware("h100-sxm").unwrap();
    let engine = catalog.engine("vllm", None, &hardware).unwrap();
    let profile = catalog.profile("auto", &hardware, "vllm", None, Dtype::Bf16, here()).unwrap();
    let config = serde_json::json!({
        "model_type": "qwen3_next", "hidden_size": 2048, "num_hidden_layers": 8, "num_attention_heads": 16,
        "num_key_value_heads": 2, "head_dim": 256, "intermediate_size": 512, "vocab_size": 151_936,
        "max_position_embeddings": 4096, "full_attention_interval": 4, "linear_num_key_heads": 16,
        "linear_num_value_heads": 32, "linear_key_head_dim": 128, "linear_value_head_dim": 128,
        "linear_conv_kernel_dim": 4, "num_experts": 512, "num_experts_per_tok": 10,
        "moe_intermediate_size": 512, "shared_expert_intermediate_size": 512, "sliding_window": 1024,
        "kv_lora_rank": null, "layer_types": null, "moe_layer_freq": 1, "mlp_only_layers": [],
        "quantization_config": null, "tie_word_embeddings": false
    });
    let nonsense =
        serde_json::json!([0, 1, -1, 1e300, 0.5, 4_294_967_295u32, "x", null, [], {}, true, [1, "x"]]);
    let mut understood = 0;
    for key in config.as_object().unwrap().keys() {
        for value in nonsense.as_array().unwrap() {
            let mut broken = config.clone();
            broken[key] = value.clone();
            std::fs::write(dir.join("broken.json"), broken.to_string()).unwrap();
            let Ok((model, _)) = catalog.model("broken.json", &dir) else {
                continue;
            };
            let inputs = MemoryInputs {
                model: &model,
                weight_dtype: Dtype::Bf16,
                kv_dtype: Dtype::Bf16,
                hardware: &hardware,
                engine: &engine,
                max_num_seqs: u32::MAX,
                max_num_batched_tokens: u32::MAX,
                tensor_parallel_size: 1,
                pipeline_parallel_size: 1,
                data_parallel: None,
                draft: None,
                gpu_memory_utilization: 1.0,
                num_gpu_blocks_override: None,
            };
            assert!(memory_budget(&inputs).concurrency(u32::MAX) >= 0.0);
            let values = &profile.values[0];
            let cost = StepCost::new(&model, Dtype::Bf16, Dtype::Bf16, &hardware, values, 1, 64);
            let mut shape = StepShape::default();
            shape.add_chunk(0, 64, true, cost.window());
            assert!(cost.terms(&shape).total_s().is_finite());
            understood += 1;
        }
    }
    assert!(understood > 40, "{understood}");
}

/// Models of the reference table whose parameter count is not comparable: it counts every layer as
/// ungated softmax attention, where three of four are linear. Its KV column is blank for them.
const TABLE_DIFFERS: &[&str] = &["Qwen3-Next", "Qwen3.5"];
/// Architectures that are refused by name.
const REFUSED: &[&str] = &["gptj", "deepseek_v4", "gemma4_text", "nemotron-nas", "nemotron_h"];

#[test]
fn hugging_face_configs_agree_with_the_reference_table() {
    let Some(data) = std::env::var_os("KNEE_DATA") else {
        println!("skipped: KNEE_DATA is not set");
        return;
    };
    let models = Path::new(&data).join("models");
    let mut table = csv::Reader::from_path(models.join("models.csv")).unwrap();
    let mut compared = 0;
    for row in table.deserialize::<std::collections::HashMap<String, String>>() {
        let row = row.unwrap();
        let id = &row["model"];
        let config = format!("{}.json", id.replace('/', "__"));
        let read = catalog().model(&config, &models);
        if REFUSED.contains(&row["model_type"].as_str()) {
            assert!(read.is_err(), "{id} is understood now");
            continue;
        }
        let model = read.unwrap_or_else(|error| panic!("{id}: {error}")).0;
        if TABLE_DIFFERS.iter().any(|family| id.contains(family)) {
            continue;
        }
        let total = model.parameters().total() as f64 / 1e9;
        let expected: f64 = row["params_b_computed"].parse().unwrap();
        assert!((total / expected - 1.0).abs() < 0.005, "{id}: {total} against {expected}");
        if let Ok(kv_bytes) = row["kv_bytes_per_token_bf16_naive"].parse::<u64>() {
            assert_eq!(model.kv_bytes_per_token(Dtype::Bf16), kv_bytes, "{id}");
        }
        if let Ok((shipped, _)) = catalog().model(id, here()) {
            assert_eq!(shipped.layers, model.layers, "{id}");
            assert_eq!(shipped.parameters(), model.parameters(), "{id}");
        }
        compared += 1;
    }
    assert!(compared >= 60, "only {compared} models were compared");
}

/// A catalog whose folder of profiles holds this one beside the shipped ones.
fn with_profile(test: &str, name: &str, text: &str) -> Catalog {
    let dir = scratch(test);
    std::fs::create_dir_all(dir.join("profiles")).unwrap();
    std::fs::write(dir.join("profiles").join(name), text).unwrap();
    Catalog::new(Some(&dir))
}

const PROFILE: &str = r#"gpu = "l4"
engine = "vllm"

[[values]]
weight_dtype = "bf16"
standing = "calibrated"
versions = "0.23"
compute = 0.7
memory = 0.8
kv_memory = 0.8
attention_compute = 0.6
overhead_per_layer_us = 40
per_sequence_us = 10
front_end_ms = 5
source = "a test"

[[values]]
weight_dtype = "fp8"
standing = "calibrated"
versions = "0.23"
compute = 0.7
memory = 0.8
kv_memory = 0.8
attention_compute = 0.6
overhead_per_layer_us = 40
per_sequence_us = 10
front_end_ms = 5
source = "a test"
"#;

#[test]
fn a_profile_that_would_never_be_used_is_told() {
    let asked = |catalog: &Catalog| {
        let l4 = catalog.hardware("l4").unwrap();
        catalog.profile("auto", &l4, "vllm", None, Dtype::Bf16, here()).map(|profile| profile.name)
    };
    for name in ["l4-vllm.toml", "l4-vllm-mine.toml", "mine.toml", "l4.toml"] {
        let good = with_profile("profile-good", name, PROFILE);
        assert_eq!(asked(&good).unwrap(), name.trim_end_matches(".toml"));
        assert!(good.unusable().is_empty());
    }
    for (name, from, to, words) in [
        ("l40s-vllm.toml", "", "", "line 1: its gpu is `l4`, its name says `l40s`"),
        ("l4-sglang.toml", "", "", "line 2: its engine is `vllm`, its name says `sglang`"),
        ("mine.toml", "\"l4\"", "\"l5\"", "line 1: no GPU named `l5`; there are: a100-40-sxm, "),
        ("mine.toml", "\"vllm\"", "\"vlm\"", "line 2: no engine named `vlm`; did you mean `vllm`?"),
    ] {
        let text = if from.is_empty() { PROFILE.to_owned() } else { PROFILE.replacen(from, to, 1) };
        let catalog = with_profile("profile-wrong", name, &text);
        let error = asked(&catalog).unwrap_err().to_string();
        assert!(error.contains(name) && error.contains(words), "{error}");
        let (folder, _, why) = &catalog.unusable()[0];
        assert!(*folder == "profiles" && why.to_string() == error, "{why}");
    }
}

/// What `knee calibrate` adds to the second table.
const RECORD: &str = r#"[values.fit]
command = "knee calibrate"
data = ["a"]
models = ["b"]
cells_fitted = 1
cells_held_out = 1
[values.fit.standard_error]
compute = 0.01
[values.fit.prior]
compute = 0.6
[values.fit.status]
compute = "fitted"
[values.fit.fit_error_percent]
ttft_mean = 1.0
[values.fit.held_out_error_percent]
ttft_mean = 2.0
[values.fit.valid_range]
concurrency = [1.0, 8.0]
"#;

#[test]
fn a_fit_on_record_reads() {
    let catalog = with_profile("profile-record", "l4-vllm.toml", &format!("{PROFILE}{RECORD}"));
    let l4 = catalog.hardware("l4").unwrap();
    let profile = catalog.profile("auto", &l4, "vllm", None, Dtype::Fp8, here()).unwrap();
    assert_eq!(profile.largest_held_out_error(), Some(0.02));
}

/// A quantity next to nothing, or beyond all bounds, would make steps of a nanosecond or no number at all.
#[test]
fn quantities_of_another_world_are_refused() {
    let quantities = [
        "compute = ",
        "memory = ",
        "kv_memory = ",
        "attention_compute = ",
        "overhead_per_layer_us = ",
        "per_sequence_us = ",
        "front_end_ms = ",
        "expert_memory = ",
        "expert_correlation = ",
        "half_tokens = ",
        "expert_compute = ",
        "expert_half_tokens = ",
        "expert_half_width = ",
        "fp8_kv_memory = ",
        "prefill_launch_per_layer_us = ",
        "throttle = ",
    ];
    let refused = |catalog: &Catalog| {
        let l4 = catalog.hardware("l4")?;
        catalog.profile("auto", &l4, "vllm", None, Dtype::Bf16, here()).map(|_| ())
    };
    for key in quantities {
        let is_fraction = !key.contains("_us") && !key.contains("_ms") && !key.contains("half_");
        let small = ["5e-324", "1e-300"]
            .into_iter()
            .filter(|_| is_fraction && !key.contains("lat") && !key.contains("thr"));
        for value in small.chain(["1e300", "inf", "nan", "-1"]) {
            let mut lines: Vec<String> = PROFILE.lines().map(str::to_owned).collect();
            match lines.iter_mut().find(|line| line.starts_with(key)) {
                Some(line) => *line = format!("{key}{value}"),
                None => lines.insert(14, format!("{key}{value}")),
            }
            let catalog = with_profile("profile-world", "l4-vllm.toml", &lines.join("\n"));
            let error = refused(&catalog).unwrap_err().to_string();
            let name = format!("`values.{}`", key.trim_end_matches(" = "));
            assert!(error.contains(&name) && error.contains("line ") && error.contains(" to "), "{error}");
            assert!(error.len() < 200, "{error}");
        }
    }
    let shipped = std::fs::read_to_string("calibration/hardware/l4.toml").unwrap();
    let dir = scratch("hardware-world");
    std::fs::create_dir_all(dir.join("hardware")).unwrap();
    for key in ["total_gib", "bandwidth_gb_per_s", "bf16_tflops", "gb_per_s", "bf16_compute", "bf16_derate"] {
        for value in ["5e-324", "1e300", "nan"] {
            let start = shipped.find(&format!("\n{key} = ")).unwrap() + key.len() + 4;
            let end = start + shipped[start..].find('\n').unwrap();
            let text = format!("{}{value}{}", &shipped[..start], &shipped[end..]);
            std::fs::write(dir.join("hardware/l4.toml"), text).unwrap();
            let error = Catalog::new(Some(&dir)).hardware("l4").unwrap_err().to_string();
            assert!(error.contains(&format!(".{key}` is ")) && error.contains("line "), "{error}");
        }
    }
}

/// The second of two rows for the same dtype would never be used.
#[test]
fn a_second_row_of_experts_is_refused() {
    let dir = scratch("experts-twice");
    std::fs::create_dir_all(dir.join("hardware")).unwrap();
    let shipped = std::fs::read_to_string("calibration/hardware/l40s.toml").unwrap();
    let text = shipped.replace("weight_dtype = \"fp8\"", "weight_dtype = \"bf16\"");
    std::fs::write(dir.join("hardware/l40s.toml"), &text).unwrap();
    let error = Catalog::new(Some(&dir)).hardware("l40s").unwrap_err().to_string();
    let rows = text.lines().zip(1..).filter(|(line, _)| line.contains("weight_dtype = \"bf16\""));
    let (_, second) = rows.last().unwrap();
    let expected = format!("line {second}: a second row of `kernels.experts` for bf16 weights");
    assert!(error.contains(&expected), "{error}");
}

/// An engine's options are held to bounds too; smallest above largest would panic.
#[test]
fn nonsense_in_an_engine_is_refused() {
    let dir = scratch("engine-world");
    std::fs::create_dir_all(dir.join("engines")).unwrap();
    let shipped = std::fs::read_to_string("calibration/engines/sglang.toml").unwrap();
    for (key, value) in [
        ("min_running_requests", "4294967295"),
        ("schedule_conservativeness", "1e300"),
        ("init_new_token_ratio", "-1"),
        ("scheduler_recv_interval", "0"),
        ("max_num_batched_tokens", "0"),
        ("sampler_copies", "1e300"),
    ] {
        let start = shipped.find(&format!("\n{key} = ")).unwrap() + key.len() + 4;
        let end = start + shipped[start..].find('\n').unwrap();
        let text = format!("{}{value}{}", &shipped[..start], &shipped[end..]);
        std::fs::write(dir.join("engines/sglang.toml"), text).unwrap();
        let catalog = Catalog::new(Some(&dir));
        let h100 = catalog.hardware("h100-sxm").unwrap();
        let error = catalog.engine("sglang", Some("0.5"), &h100).unwrap_err().to_string();
        assert!(error.contains(&format!(".{key}` is ")) && error.contains(": line "), "{key}: {error}");
        assert!(error.contains("it must lie in "), "{error}");
    }
}

/// What is found by its name is never found by a wrong one.
#[test]
fn names_in_an_engine_are_names() {
    let dir = scratch("engine-names");
    std::fs::create_dir_all(dir.join("engines")).unwrap();
    let shipped = std::fs::read_to_string("calibration/engines/vllm.toml").unwrap();
    for (from, to, words) in [
        (
            "engine = \"vllm\"",
            "engine = \"vlm\"",
            "line 2: `engine` is \"vlm\"; expected \"vllm\", as the file is called",
        ),
        ("from = \"0.8\"", "from = \"old\"", "`memory.from` is \"old\"; expected a version such as"),
        (
            "versions = [\"0.6\", \"0.7\"]",
            "versions = []",
            "line 9: `refused.versions` is []; expected versions such as",
        ),
        ("\nbudget = \"", "\nbudget = \"no-", "; expected the name of a table `budget.NAME`: "),
    ] {
        assert!(shipped.contains(from), "{from}");
        std::fs::write(dir.join("engines/vllm.toml"), shipped.replacen(from, to, 1)).unwrap();
        let catalog = Catalog::new(Some(&dir));
        let h100 = catalog.hardware("h100-sxm").unwrap();
        let error = catalog.engine("vllm", None, &h100).unwrap_err().to_string();
        assert!(error.contains("vllm.toml: line ") && error.contains(words), "{error}");
    }
}

/// The second of two tables for the same weights would never be used.
#[test]
fn two_tables_for_the_same_weights_are_refused() {
    let dense = PROFILE.replacen("weight_dtype = \"fp8\"", "weight_dtype = \"bf16\"\nmodels = \"dense\"", 1);
    assert!(with_profile("profile-kinds", "l4-vllm.toml", &dense).unusable().is_empty());
    let versions = PROFILE.replace("\"fp8\"", "\"bf16\"");
    let old = versions.replacen("versions =", "until_version = \"0.13\"\nversions =", 1);
    assert!(with_profile("profile-versions", "l4-vllm.toml", &old).unusable().is_empty());
    for (text, words) in [
        (versions, "line 18: a second `[[values]]` for bf16 weights of all models; expected"),
        (dense.replacen("\"bf16\"", "\"bf16\"\nmodels = \"dense\"", 1), "line 19: a second"),
    ] {
        let why = &with_profile("profile-twice", "l4-vllm.toml", &text).unusable()[0].2;
        assert!(why.to_string().contains(words), "{why}");
    }
}

/// What a file holds of the wrong kind is told as in a scenario: key, line, what was found and what is expected.
#[test]
fn wrong_types_are_told_in_our_words() {
    let dir = scratch("words");
    for folder in ["hardware", "models", "profiles"] {
        std::fs::create_dir_all(dir.join(folder)).unwrap();
    }
    let gpu = std::fs::read_to_string("calibration/hardware/l4.toml").unwrap();
    let model = std::fs::read_to_string("calibration/models/qwen3-8b.toml").unwrap();
    let line_of = |text: &str, part: &str| text[..text.find(part).unwrap()].matches('\n').count() + 1;
    let check = |file: &str, text: &str, from: &str, to: &str, words: &str| {
        assert!(text.contains(from), "{file}: {from}");
        std::fs::write(dir.join(file), text.replacen(from, to, 1)).unwrap();
        let catalog = Catalog::new(Some(&dir));
        let l4 = catalog.hardware("l4");
        let error = match l4 {
            Err(error) => error,
            Ok(_) if file.starts_with("models") => catalog.model("qwen3-8b", here()).unwrap_err(),
            Ok(l4) => catalog.profile("auto", &l4, "vllm", None, Dtype::Bf16, here()).unwrap_err(),
        };
        let expected = format!("{}: line {}: {words}", dir.join(file).display(), line_of(text, from));
        assert_eq!(error.to_string(), expected);
        std::fs::remove_file(dir.join(file)).unwrap();
    };
    let profile = "profiles/l4-vllm.toml";
    check(
        profile,
        PROFILE,
        "compute = 0.7",
        "compute = \"0.7\"",
        "`values.compute` is the text \"0.7\"; expected a number",
    );
    check(
        profile,
        PROFILE,
        "source = \"a test\"",
        "source = 3",
        "`values.source` is 3; expected a text in quotes",
    );
    check(
        profile,
        PROFILE,
        "\"bf16\"",
        "\"bf15\"",
        "`values.weight_dtype` is the text \"bf15\"; expected one of `bf16`, `fp8`, `int8`, `mxfp4`, `nvfp4`, `int4`",
    );
    check(
        profile,
        PROFILE,
        "[[values]]\nweight_dtype = \"bf16\"\n",
        "[[values]]\n",
        "missing key `values.weight_dtype`; expected such as `weight_dtype = \"bf16\"`, as \
         calibration/profiles/a100-80-sxm-vllm.toml has it",
    );
    check(
        "hardware/l4.toml",
        &gpu,
        "domain = 1",
        "domain = -1",
        "`link.domain` is -1; expected a whole number from 0 to 4294967295",
    );
    check(
        "models/qwen3-8b.toml",
        &model,
        "tied_embeddings = false",
        "tied_embeddings = \"no\"",
        "`tied_embeddings` is the text \"no\"; expected true or false",
    );
    check(
        "models/qwen3-8b.toml",
        &model,
        "softmax",
        "softmux",
        "unknown key `layers.attention.softmux`; did you mean `softmax`? keys of `layers.attention`: softmax, latent, \
         linear",
    );
    check(
        "prices.toml",
        "[l4]\nusd_per_gpu_hour = 1\n",
        "1",
        "true",
        "`l4.usd_per_gpu_hour` is true; expected a number",
    );
}

/// A name that is none gets those that there are for this GPU and engine, not one that is spelt alike.
#[test]
fn a_profile_of_another_gpu_gets_those_that_fit() {
    let catalog = catalog();
    let h100 = catalog.hardware("h100-sxm").unwrap();
    for (name, words) in [
        ("l40s-vllm-estimated", "it is the estimate for vllm on l40s; "),
        ("h100-sxm-vlm", "no profile named `h100-sxm-vlm`"),
        ("h200-sxm-vllm", "h200-sxm-vllm.toml: line "),
    ] {
        let error = catalog.profile(name, &h100, "vllm", None, Dtype::Bf16, here()).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
        let hint = "for vllm on h100-sxm: `h100-sxm-vllm`, `h100-sxm-vllm-estimated`; `auto` takes the best";
        assert!(error.ends_with(hint), "{error}");
    }
}

#[test]
fn impossible_values_are_told_with_their_line() {
    // The same key stands in two tables: the line is that of the wrong one.
    let second = |from: &str, to: &str| {
        let (first, second) = PROFILE.split_at(PROFILE.rfind("[[values]]").unwrap());
        format!("{first}{}", second.replacen(from, to, 1))
    };
    for (text, words) in [
        (second("compute = 0.7", "compute = 1.7"), "line 21: `values.compute` is 1.7; it is a fraction"),
        (
            PROFILE.replacen("compute = 0.7", "compute = 2", 1),
            "line 8: `values.compute` is 2; it is a fraction",
        ),
        (
            second("overhead_per_layer_us = 40", "overhead_per_layer_us = -1"),
            "line 25: `values.overhead_per_layer_us` is -1; it must lie in 0 to 1000000",
        ),
        (second("front_end_ms = 5", "front_end_ms = 1e7"), "line 27: `values.front_end_ms` is 10000000"),
        (
            second("versions = \"0.23\"", "versions = \"0.23\"\nuntil_version = \"old\""),
            "line 21: `values.until_version` is \"old\"",
        ),
        (
            format!("{PROFILE}{RECORD}").replacen("ttft_mean = 2.0", "ttft_mean = nan", 1),
            "line 44: `values.fit.held_out_error_percent.ttft_mean` is NaN; it must lie in 0 to 1000000",
        ),
        (
            format!("{PROFILE}{RECORD}").replacen("compute = 0.6\n[", "compute = -inf\n[", 1),
            "line 38: `values.fit.prior.compute` is -inf; it must be a finite number",
        ),
        (
            format!("{PROFILE}{RECORD}").replacen("compute = 0.01", "compute = nan", 1),
            "line 36: `values.fit.standard_error.compute` is NaN",
        ),
        (
            format!("{PROFILE}{RECORD}").replacen("ttft_mean = 1.0", "ttft_mean = inf", 1),
            "line 42: `values.fit.fit_error_percent.ttft_mean` is inf",
        ),
        (
            format!("{PROFILE}{RECORD}").replacen("[1.0, 8.0]", "[1.0, nan]", 1),
            "`values.fit.valid_range.concurrency` is NaN; it must be a finite number",
        ),
        (
            format!("{PROFILE}{RECORD}").replacen("[1.0, 8.0]", "[8.0, 1.0]", 1),
            ": `values.fit.valid_range.concurrency` is [8, 1]; expected the smaller first",
        ),
        (
            second("source", "held_out_error_percent = { ttft_mean = nan }\nsource"),
            "line 28: `values.held_out_error_percent.ttft_mean` is NaN",
        ),
    ] {
        let catalog = with_profile("profile-lines", "l4-vllm.toml", &text);
        let l4 = catalog.hardware("l4").unwrap();
        let error = catalog.profile("auto", &l4, "vllm", None, Dtype::Bf16, here()).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }
}
