//! What a vLLM server says about itself.

use knee::import::{Format, MeasuredAt};

use super::{close, fixture, only, says};

#[test]
fn the_start_up_log_of_v1() {
    let import = fixture("vllm_log_v1.txt");
    assert_eq!(import.format, Format::VllmLog);
    let server = &import.server;
    assert_eq!(server.version.as_deref(), Some("0.11.0"));
    assert_eq!(server.model.as_deref(), Some("Qwen/Qwen3-14B"));
    assert_eq!(server.kv_cache_tokens, Some(288_608));
    // 288,608 / 16
    assert_eq!(server.num_gpu_blocks, Some(18_038));
    says(&import.understood, "18038 blocks of 16 tokens (vLLM's default)");
    assert_eq!((server.max_model_len, server.max_num_seqs), (Some(40_960), Some(256)));
    assert_eq!((server.max_num_batched_tokens, server.tensor_parallel_size), (Some(8192), Some(2)));
    assert_eq!((server.enable_prefix_caching, server.quantization.as_deref()), (Some(true), None));
    // The smaller of two workers.
    close(server.available_kv_cache_gib, 44.04);
    close(server.weights_gib, 13.7);
    close(server.cuda_graphs_gib, 0.61);
    close(server.max_concurrency, 7.05);
    assert!(import.warnings.is_empty(), "{:?}", import.warnings);
}

#[test]
fn the_start_up_log_of_v0() {
    let import = fixture("vllm_log_v0.txt");
    let server = &import.server;
    assert_eq!((server.num_gpu_blocks, server.kv_cache_tokens), (Some(1952), Some(31_232)));
    close(server.weights_gib, 14.99);
    close(server.activation_peak_gib, 2.07);
    close(server.non_torch_gib, 0.35);
    close(server.total_memory_gib, 23.58);
    close(server.gpu_memory_utilization, 0.9);
    close(server.available_kv_cache_gib, 3.81);
}

#[test]
fn metrics_add_up_over_engines_and_interpolate_in_buckets() {
    let import = fixture("vllm_metrics.txt");
    let point = only(&import);
    assert_eq!((point.completed, point.failed, point.measured_at), (Some(20), Some(2), MeasuredAt::Server));
    close(point.e2e.mean_s, 1.2);
    // 20 requests: the 10th ends the first bucket, the 18th is 8 of 10 into the second.
    close(point.e2e.p50_s, 1.0);
    close(point.e2e.p90_s, 1.8);
    // The old name of the pooled gaps; its 90 % lies in the bucket without an end.
    close(point.itl.mean_s, 0.1);
    assert_eq!(point.itl.p90_s, None);
    assert!(point.tpot.is_empty());
    assert_eq!(point.requests_per_s, None);
    close(point.output_tokens.map(|lengths| lengths.mean), 11.0);
    assert_eq!(import.server.num_gpu_blocks, Some(1000));
    assert_eq!(import.server.enable_prefix_caching, Some(false));
}
