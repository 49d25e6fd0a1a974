//! The memory budget against what real servers printed at start-up.

use std::path::Path;
use std::sync::Arc;

use knee::catalog::{Attention, Catalog, Dtype, Hardware, LayerGroup, Mlp, Model};
use knee::cost::{MemoryBudget, MemoryInputs, Ranks, Sharing, alternatives, memory_budget};
use serde::Deserialize;

const GIB: f64 = 1_073_741_824.0;

/// A published server: what went in, and what its log says.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Server {
    model: String,
    weight_dtype: Dtype,
    gpu: String,
    vllm: String,
    tensor_parallel_size: u32,
    max_num_seqs: u32,
    max_num_batched_tokens: u32,
    gpu_memory_utilization: f64,
    weights_gib: Option<f64>,
    activations_gib: Option<f64>,
    kv_available_gib: Option<f64>,
    blocks: Option<u32>,
    /// Allowed error of the KV figures, 2 if absent.
    within_percent: Option<f64>,
    #[serde(rename = "source")]
    _source: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Servers {
    server: Vec<Server>,
}

fn model(name: &str) -> Arc<Model> {
    Catalog::new(None).model(name, Path::new(".")).unwrap().0
}

fn budget(server: &Server) -> MemoryBudget {
    let catalog = Catalog::new(None);
    let hardware = catalog.hardware(&server.gpu).unwrap();
    memory_budget(&MemoryInputs {
        model: &model(&server.model),
        weight_dtype: server.weight_dtype,
        kv_dtype: Dtype::Bf16,
        hardware: &hardware,
        engine: &catalog.engine("vllm", Some(&server.vllm), &hardware).unwrap(),
        max_num_seqs: server.max_num_seqs,
        max_num_batched_tokens: server.max_num_batched_tokens,
        tensor_parallel_size: server.tensor_parallel_size,
        pipeline_parallel_size: 1,
        data_parallel: None,
        draft: None,
        gpu_memory_utilization: server.gpu_memory_utilization,
        num_gpu_blocks_override: None,
    })
}

fn off_percent(computed: f64, published: f64) -> f64 {
    100.0 * (computed / published - 1.0)
}

/// gpt-oss-120b is made for one GPU of 80 GB: vLLM's defaults leave 0.7 GiB too little there (its sampler's copies of 1,024
/// sequences take 7.4 GiB), half as many sequences, or 0.92 of the memory, are enough.
#[test]
fn what_nearly_fits_is_told_the_options_that_make_room() {
    let catalog = Catalog::new(None);
    let hardware = catalog.hardware("h100-sxm").unwrap();
    let engine = catalog.engine("vllm", Some("0.11"), &hardware).unwrap();
    let gpt_oss = model("gpt-oss-120b");
    let inputs = MemoryInputs {
        weight_dtype: Dtype::Mxfp4,
        max_num_seqs: 1024,
        gpu_memory_utilization: 0.90,
        ..inputs_on(&gpt_oss, &hardware, &engine)
    };
    let found = alternatives(&inputs, 8192, &[]).unwrap();
    assert_eq!((found.max_num_seqs, found.gpu_memory_utilization), (Some(512), Some(0.92)));
}

/// Two equal stages: the last one has the sampler's copies besides, so it has room for fewer blocks, and both get as
/// many. Five of 6, 6, 7, 7 and 6 layers, hardly a sampler: one of 7.
#[test]
fn the_stage_with_room_for_the_fewest_blocks_decides() {
    let catalog = Catalog::new(None);
    let hardware = catalog.hardware("h100-sxm").unwrap();
    let engine = catalog.engine("vllm", Some("0.23"), &hardware).unwrap();
    let llama = model("llama-3.1-8b");
    let inputs = MemoryInputs { max_num_seqs: 1024, ..inputs_on(&llama, &hardware, &engine) };
    let whole = memory_budget(&inputs);
    let halves = memory_budget(&MemoryInputs { pipeline_parallel_size: 2, ..inputs });
    assert_eq!((halves.stage, halves.layers), (1, 16));
    assert_eq!(halves.block_bytes * 2, whole.block_bytes);
    // Half the layers and one of the two matrices at the ends.
    assert_eq!(halves.weights * 2, whole.weights);
    assert_eq!(halves.activations, whole.activations);
    let few = MemoryInputs { pipeline_parallel_size: 5, max_num_seqs: 1, ..inputs };
    let fifths = memory_budget(&few);
    assert_eq!((fifths.stage, fifths.layers), (2, 7));
    assert!(fifths.blocks > whole.blocks * 5);
}

/// DeepSeek-V3 in fp8 on eight GPUs by hand. In routed experts are 653,908,770,816 parameters, in dense and shared
/// feed-forward layers 3,743,416,320, in attention and routers 11,519,852,544, with a scale of four bytes for every 128 x
/// 128 of them; embeddings and head take 1,853,358,080 bytes each. One latent copy on each GPU under tensor parallelism is one of eight caches with ranks.
#[test]
fn ranks_hold_their_own_attention_and_a_part_of_the_experts() {
    let catalog = Catalog::new(None);
    let hardware = catalog.hardware("h200-sxm").unwrap();
    let engine = catalog.engine("vllm", Some("0.23"), &hardware).unwrap();
    let deepseek = model("deepseek-v3");
    let inputs = MemoryInputs {
        weight_dtype: Dtype::Fp8,
        max_num_seqs: 256,
        ..inputs_on(&deepseek, &hardware, &engine)
    };
    let tensor = memory_budget(&MemoryInputs { tensor_parallel_size: 8, ..inputs });
    let (matrix, own, shared, routed) = (1_853_358_080, 11_519_852_544, 3_743_416_320, 653_908_770_816);
    let scaled = |parameters: u64| parameters + parameters / 4096;
    for (sharing, weights) in [
        (Sharing::Experts, 2 * matrix + scaled(own + shared + routed / 8)),
        (Sharing::FeedForwardAndHead, matrix + matrix / 8 + scaled(own + shared / 8 + routed / 8)),
    ] {
        let ranks = Some(Ranks { count: 8, sharing });
        let ranks = memory_budget(&MemoryInputs { data_parallel: ranks, ..inputs });
        assert!(ranks.weights.abs_diff(weights) <= 2, "{} {weights}", ranks.weights);
        assert_eq!(ranks.block_bytes, tensor.block_bytes);
        assert!(ranks.blocks < tensor.blocks && 8 * ranks.blocks > 2 * tensor.blocks);
        assert_eq!(ranks.non_torch, tensor.non_torch);
    }
    // Two ranks of four GPUs: attention is divided by four.
    let ranks = Some(Ranks { count: 2, sharing: Sharing::Experts });
    let two = memory_budget(&MemoryInputs { tensor_parallel_size: 4, data_parallel: ranks, ..inputs });
    let weights = (2 * matrix + scaled(own + shared)) / 4 + scaled(routed / 8);
    assert!(two.weights.abs_diff(weights) <= 2, "{} {weights}", two.weights);
}

#[test]
fn available_kv_memory_of_published_servers() {
    let text = std::fs::read_to_string("calibration/measured/vllm-memory.toml").unwrap();
    let servers: Servers = toml::from_str(&text).unwrap();
    assert_eq!(servers.server.len(), 8);
    for server in &servers.server {
        let budget = budget(server);
        let name = format!("{} on {} with vLLM {}", server.model, server.gpu, server.vllm);
        let within = server.within_percent.unwrap_or(2.0);
        let check = |what: &str, computed: f64, published: Option<f64>, bound: f64| {
            let Some(published) = published else { return };
            let off = off_percent(computed, published);
            println!("{name}: {what} {computed:.3} against {published} ({off:+.2} %)");
            assert!(off.abs() <= bound, "{name}: {what} {computed:.3} against {published} ({off:+.2} %)");
        };
        check("weights GiB", budget.weights as f64 / GIB, server.weights_gib, 1.0);
        check("activations GiB", budget.activations as f64 / GIB, server.activations_gib, 0.3);
        check("KV GiB", budget.kv_available as f64 / GIB, server.kv_available_gib, within);
        check("blocks", f64::from(budget.blocks), server.blocks.map(f64::from), within);
    }
}

/// A model of `layers` equal attention layers, as a row of the table describes it.
fn attention_only(layers: u32, kv_heads: u32, head_dim: u32, window: Option<u32>) -> Model {
    let attention = Attention::Softmax { heads: kv_heads, kv_heads, head_dim, window, output_gate: false };
    Model {
        name: "row".to_owned(),
        hf_id: "row".to_owned(),
        hidden_size: 1024,
        vocab_size: 32_000,
        tied_embeddings: true,
        max_position_embeddings: 131_072,
        layers: vec![LayerGroup { count: layers, attention, mlp: Mlp::Dense { intermediate: 4096 } }],
        native_weight_dtype: Dtype::Bf16,
        only_experts_quantised: false,
        mtp_layers: 0,
        source: "made up".to_owned(),
    }
}

#[test]
fn kv_bytes_per_token_of_published_pools() {
    let Some(data) = std::env::var_os("KNEE_DATA") else {
        println!("skipped: KNEE_DATA is not set");
        return;
    };
    let mut table = csv::Reader::from_path(Path::new(&data).join("points/kv_capacity.csv")).unwrap();
    let mut checked = 0;
    for row in table.deserialize::<std::collections::HashMap<String, String>>() {
        let row = row.unwrap();
        // Rows that give no layers say only a ratio.
        if row["note"].is_empty() || row["exactness"].contains("NOT reproduced") || row["layers"].is_empty() {
            continue;
        }
        let number = |key: &str| row[key].parse::<f64>().unwrap();
        let integer = |key: &str| number(key) as u32;
        assert_eq!(integer("kv_bytes"), 2, "{}", row["id"]);
        let model = attention_only(integer("layers"), integer("kv_heads"), integer("head_dim"), None);
        let per_gpu = model.growing_kv_bytes_per_token(Dtype::Bf16, integer("tp"));
        let computed = number("avail_kv_gib_per_gpu") * GIB / per_gpu as f64;
        let off = off_percent(computed, number("reported_tokens"));
        println!("{} {}: {computed:.0} tokens ({off:+.3} %)", row["id"], row["model"]);
        assert!(off.abs() <= 0.2, "{}: {computed:.0} tokens ({off:+.3} %)", row["id"]);
        checked += 1;
    }
    assert_eq!(checked, 11);
}

fn inputs_on<'a>(
    model: &'a Model,
    hardware: &'a Hardware,
    engine: &'a knee::catalog::EngineDefaults,
) -> MemoryInputs<'a> {
    MemoryInputs {
        model,
        weight_dtype: model.native_weight_dtype,
        kv_dtype: Dtype::Bf16,
        hardware,
        engine,
        max_num_seqs: 256,
        max_num_batched_tokens: 8192,
        tensor_parallel_size: 1,
        pipeline_parallel_size: 1,
        data_parallel: None,
        draft: None,
        gpu_memory_utilization: 0.9,
        num_gpu_blocks_override: None,
    }
}

#[test]
fn start_up_lines_are_those_of_vllm() {
    let catalog = Catalog::new(None);
    let hardware = catalog.hardware("h100-sxm").unwrap();
    let engine = catalog.engine("vllm", Some("0.23"), &hardware).unwrap();
    let qwen = model("qwen3-14b");
    let inputs =
        MemoryInputs { num_gpu_blocks_override: Some(18_038), ..inputs_on(&qwen, &hardware, &engine) };
    let budget = memory_budget(&inputs);
    assert_eq!(
        budget.vllm_startup_lines(8192),
        ["GPU KV cache size: 288,608 tokens", "Maximum concurrency for 8,192 tokens per request: 35.23x"]
    );
    let spec = budget.to_kv_spec();
    assert_eq!((spec.blocks, spec.block_size, spec.state_blocks), (18_037, 16, 0));
}

#[test]
fn hybrid_models_reserve_per_sequence() {
    let catalog = Catalog::new(None);
    let hardware = catalog.hardware("h100-sxm").unwrap();
    let engine = catalog.engine("vllm", Some("0.23"), &hardware).unwrap();

    // gpt-oss: half the layers see 128 tokens, with as many bytes per token as the other half.
    let gpt_oss = model("gpt-oss-20b");
    let budget = memory_budget(&inputs_on(&gpt_oss, &hardware, &engine));
    assert!(!budget.has_constant_bytes_per_token());
    assert_eq!(budget.block_bytes, 16 * 12 * 2 * 8 * 64 * 2);
    let spec = budget.to_kv_spec();
    assert_eq!((spec.window, spec.fixed_blocks(40), spec.fixed_blocks(5000)), (128, 3, 8));

    // Qwen3-Next: 36 layers of constant state: f32 recurrent state and three bf16 convolution inputs.
    let next = model("qwen3-next-80b-a3b");
    let budget =
        memory_budget(&MemoryInputs { tensor_parallel_size: 4, ..inputs_on(&next, &hardware, &engine) });
    let state: u64 = 36 * (32 * 128 * 128 * 4 + (2 * 16 * 128 + 32 * 128) * 3 * 2) / 4;
    let block = 16 * 12 * 2 * 256 * 2;
    assert_eq!(
        (budget.block_bytes, budget.state_blocks),
        (block, u32::try_from(state.div_ceil(block)).unwrap())
    );
    assert_eq!(budget.kv_bytes_per_token, 2 * 12 * 2 * 256 * 2);

    // All layers windowed: a sequence never holds more than its window (and its first block).
    let windowed = attention_only(32, 8, 128, Some(4096));
    let budget = memory_budget(&inputs_on(&windowed, &hardware, &engine));
    let spec = budget.to_kv_spec();
    let held = |tokens| spec.blocks_for(tokens) + spec.fixed_blocks(tokens);
    assert_eq!((held(1600), held(4096), held(100_000)), (101, 257, 257));
    assert_eq!(budget.kv_bytes_per_token, 0);
    assert!(budget.blocks > 0);
}

#[test]
fn a_model_that_does_not_fit_is_told_what_would() {
    let catalog = Catalog::new(None);
    let hardware = catalog.hardware("h100-sxm").unwrap();
    let engine = catalog.engine("vllm", Some("0.23"), &hardware).unwrap();
    let gpus: Vec<_> = catalog.hardware_names().iter().map(|name| catalog.hardware(name).unwrap()).collect();
    let llama = model("llama-3.1-70b");
    let inputs = inputs_on(&llama, &hardware, &engine);
    assert!(memory_budget(&inputs).kv_available < 0);
    let found = alternatives(&inputs, 8192, &gpus).unwrap();
    // 131.4 GiB of weights against 71.3 usable.
    assert!((60.0..66.0).contains(&(found.missing_bytes as f64 / GIB)), "{found:?}");
    assert_eq!(found.tensor_parallel_size, Some(2));
    assert_eq!(found.weight_dtype, Some(Dtype::Nvfp4));
    assert_eq!(found.hardware.as_deref(), Some("b200-sxm"));
    // No share of the memory and no fewer sequences make up for 60 GiB.
    assert_eq!((found.max_num_seqs, found.gpu_memory_utilization), (None, None));
    assert_eq!(alternatives(&inputs_on(&model("llama-3.1-8b"), &hardware, &engine), 8192, &gpus), None);
}
