//! The same explanation for programs.

use serde::Serialize;

use super::NothingToExplain;
use super::steps::{Resource, shapes};
use crate::engine::Server;
use crate::experiment::refused_share;
use crate::report::json::SCHEMA_VERSION;
use crate::report::provenance;
use crate::scenario::Scenario;

#[derive(Serialize)]
struct Explanation<'a> {
    schema_version: u32,
    kind: &'static str,
    scenario: &'a str,
    deployment: String,
    /// Per GPU.
    memory: Memory,
    /// Ranks of data parallelism; absent without. Memory is one rank's, steps are those of all together.
    #[serde(skip_serializing_if = "Option::is_none")]
    data_parallel_ranks: Option<u32>,
    /// Layers of each pipeline stage; absent without a pipeline.
    #[serde(skip_serializing_if = "Option::is_none")]
    pipeline_layers: Option<Vec<u32>>,
    /// Requests that are refused whatever the load; absent where none is.
    #[serde(flatten)]
    refused: Refused,
    steps: Vec<Step>,
}

#[derive(Serialize)]
struct Refused {
    #[serde(skip_serializing_if = "Option::is_none")]
    refused_share: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    refused_for: Option<&'static str>,
}

#[derive(Serialize)]
struct Memory {
    total_bytes: u64,
    gpu_memory_utilization: f64,
    weights_bytes: u64,
    activations_bytes: u64,
    non_torch_bytes: u64,
    graphs_bytes: u64,
    kv_available_bytes: i64,
    block_size: u32,
    num_gpu_blocks: u32,
    kv_cache_tokens: u64,
    kv_bytes_per_token: u64,
    max_model_len: u32,
    max_num_seqs: u32,
    max_num_batched_tokens: u32,
}

#[derive(Serialize)]
struct Step {
    name: String,
    tokens: u32,
    sequences: u32,
    step_ms: f64,
    compute_ms: f64,
    weights_ms: f64,
    kv_ms: f64,
    head_ms: f64,
    overhead_ms: f64,
    communication_ms: f64,
    /// What each pipeline stage takes, the hop before it included; what the draft model takes.
    #[serde(skip_serializing_if = "Option::is_none")]
    stages_ms: Option<Vec<f64>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    draft_ms: Option<f64>,
    binds: &'static str,
}

/// The explanation as JSON, with a newline at the end.
///
/// # Errors
/// [`NothingToExplain`]; inside, a failure of serialisation.
pub fn json(scenario: &Scenario) -> Result<Result<String, serde_json::Error>, NothingToExplain> {
    let (Server::Llm(server), Some(serving)) = (&scenario.system.server, &scenario.serving) else {
        return Err(NothingToExplain::Synthetic);
    };
    let refused = refused_share(scenario)?;
    let refused =
        Refused { refused_share: refused.map(|(share, _)| share), refused_for: refused.map(|(_, why)| why) };
    let memory = &serving.memory;
    let steps = shapes(scenario, server).into_iter().map(|(name, shape)| {
        let terms = server.terms(&shape);
        let ms = |resource: Resource| resource.seconds(&terms) * 1e3;
        Step {
            name,
            tokens: shape.tokens,
            sequences: shape.sequences,
            step_ms: terms.total_s() * 1e3,
            compute_ms: ms(Resource::Compute),
            weights_ms: ms(Resource::Weights),
            kv_ms: ms(Resource::Kv),
            head_ms: ms(Resource::Head),
            overhead_ms: ms(Resource::Overhead),
            communication_ms: ms(Resource::Communication),
            stages_ms: server.pipeline.as_ref().map(|pipeline| {
                pipeline.stage_times(&terms, shape.tokens).map(|time| time.as_secs_f64() * 1e3).collect()
            }),
            draft_ms: server.speculation.as_ref().map(|speculation| speculation.draft_s(&shape, 1.0) * 1e3),
            binds: Resource::binding(&terms).name(),
        }
    });
    let explanation = Explanation {
        schema_version: SCHEMA_VERSION,
        kind: "explain",
        scenario: &scenario.name,
        deployment: provenance::deployment(scenario),
        memory: Memory {
            total_bytes: memory.total,
            gpu_memory_utilization: memory.gpu_memory_utilization,
            weights_bytes: memory.weights,
            activations_bytes: memory.activations,
            non_torch_bytes: memory.non_torch,
            graphs_bytes: memory.graphs,
            kv_available_bytes: memory.kv_available,
            block_size: memory.block_size,
            num_gpu_blocks: memory.blocks,
            kv_cache_tokens: u64::from(memory.blocks) * u64::from(memory.block_size),
            kv_bytes_per_token: memory.kv_bytes_per_token,
            max_model_len: server.batcher.max_model_len,
            max_num_seqs: server.batcher.max_num_seqs,
            max_num_batched_tokens: server.batcher.max_num_batched_tokens,
        },
        data_parallel_ranks: server.data_parallel.map(|parallel| parallel.ranks),
        pipeline_layers: server.pipeline.as_ref().map(|pipeline| pipeline.layers().to_vec()),
        refused,
        steps: steps.collect(),
    };
    Ok(serde_json::to_string_pretty(&explanation).map(|text| text + "\n"))
}
