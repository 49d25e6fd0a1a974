//! Real files, if `KNEE_DATA` names the folder that has them: figures read from them by eye.

use std::path::PathBuf;

use knee::import::{Arrival, Format, Imported, import_path};

use super::{close, only, says};

/// The import of a real file; `None`, with a note, without the data.
fn real(name: &str) -> Option<Result<Imported, knee::import::ImportError>> {
    let Some(root) = std::env::var_os("KNEE_DATA") else {
        eprintln!("skipped: KNEE_DATA is not set");
        return None;
    };
    Some(import_path(&PathBuf::from(root).join(name), None))
}

fn import(name: &str) -> Option<Imported> {
    real(name).map(|result| result.unwrap_or_else(|error| panic!("{name}: {error}")))
}

#[test]
fn vllm_results() {
    let Some(failed) = import("formats/vllm-bench-serve/bench_serve_all_requests_failed_v0.25.1.json") else {
        return;
    };
    assert!(failed.points.is_empty() && failed.refused[0].reason.contains("8 failed"));
    let Some(import_) = import("formats/vllm-bench-serve/bench_serve_v0.25.1.json") else { return };
    let point = only(&import_);
    assert_eq!((point.arrival, point.concurrency), (Arrival::Closed, Some(2)));
    close(point.ttft.p99_s, 0.734_404_917_410_142_8);
    close(point.input_tokens.map(|lengths| lengths.mean), 32.0);
    let Some(lines) = import("formats/vllm-bench-serve/nerdalert_appended_results.jsonl") else { return };
    assert_eq!(lines.points.len(), 12);
    assert_eq!((lines.points[1].arrival, lines.points[1].rate_per_s), (Arrival::Poisson, Some(10.0)));
    close(lines.points[1].tpot.mean_s, 0.011_844_500_969_877_462);
    assert_eq!(lines.points[5].arrival, Arrival::AllAtOnce);
    let Some(x) = import("formats/vllm-bench-serve/inferencex_benchmark_serving_sweep_c64.json") else {
        return;
    };
    close(only(&x).input_tokens.map(|lengths| lengths.mean), 4_621_482.0 / 640.0);
    close(only(&x).e2e.p95_s, 49.259_916_676_05);
    let Some(late) = import("formats/vllm-bench-serve/tsho_rate4.json") else { return };
    says(&late.warnings, "2.56 of 4.00 req/s");
    let Some(console) = import("formats/vllm-bench-serve/console_output.txt") else { return };
    close(only(&console).total_tokens_per_s, 1020.76);
    close(only(&console).tpot.p50_s, 0.0074);
    let Some(sweep) = import("formats/vllm-bench-sweep") else { return };
    assert_eq!(only(&sweep).server.max_num_seqs, Some(4));
}

#[test]
fn guidellm_reports() {
    let Some(full) = import("formats/guidellm/benchmarks_full_with_requests.json") else { return };
    let point = only(&full);
    assert_eq!((point.arrival, point.rate_per_s), (Arrival::Constant, Some(10.0)));
    close(point.tpot.mean_s, 0.010_423_929_083_078_537);
    close(point.ttft.p99_s, 1.019_422_531_127_929_7);
    assert_eq!((full.requests.len(), full.requests[0].input_tokens), (586, 122));
    let Some(early) = import("formats/guidellm/benchmarks_stripped_v0.3.json") else { return };
    says(&early.warnings, "992.7 tok/s where requests and lengths give 596.2");
    assert!(early.requests.is_empty() && only(&early).ntpot.is_empty());
    let Some(recent) =
        import("formats/guidellm/danielkorat_intel_xpu_Qwen_Qwen3-30B-A3B_tp4_quant-fp8_benchmarks.json")
    else {
        return;
    };
    close(only(&recent).ntpot.mean_s, 0.038_672_089_221_348_1);
    assert_eq!((only(&recent).completed, recent.requests.len()), (Some(19), 23));
    let Some(v2) = import("formats/guidellm/guidellm_report_v2.json") else { return };
    assert_eq!((v2.points.len(), v2.points[1].rate_per_s), (2, Some(4.0)));
    assert_eq!(v2.points[0].server.model.as_deref(), Some("e2e-mock-model"));
    let Some(console) = import("formats/guidellm/benchmarks_stripped_console.txt") else { return };
    close(only(&console).ttft.p99_s, 0.0213);
    let Some(flat) = import("formats/guidellm/rsevilla87_parsed_results.json") else { return };
    close(only(&flat).e2e.p99_s, 2.349_313_020_706_176_8);
}

#[test]
fn nvidias_tools() {
    let Some(aiperf) = import("formats/aiperf/profile_export_aiperf.json") else { return };
    let point = only(&aiperf);
    assert_eq!((point.arrival, point.concurrency, point.completed), (Arrival::Closed, Some(16), Some(500)));
    close(point.tpot.p99_s, 0.052_418_293_940_847_16);
    close(point.itl.mean_s, 0.042_179_564_441_223_76);
    close(point.duration_s, 531.394_033_446);
    let Some(genai) = import("formats/genai-perf/profile_export_genai_perf.json") else { return };
    assert!(only(&genai).tpot.is_empty());
    says(&genai.warnings, "2566 tokens where 500 were asked for");
}

#[test]
fn inference_perf_and_llmperf() {
    let Some(stage) = import("formats/inference-perf/stage_4_lifecycle_metrics.json") else { return };
    close(only(&stage).rate_per_s, 106.493_719_852_452_13);
    assert!(only(&stage).tpot.is_empty());
    says(&stage.warnings, "2.10 per token");
    let Some(server) = import("formats/inference-perf/stage_4_prometheus_metrics.json") else { return };
    close(only(&server).input_tokens.map(|lengths| lengths.mean), 33_378.500_614 / 163.178_173);
    let Some(all) = import("formats/inference-perf/summary_lifecycle_metrics.json") else { return };
    assert!(all.points.is_empty() && all.refused[0].reason.contains("all stages"));
    let Some(yaml) = import("formats/inference-perf/llmd_fixture_lifecycle.yaml") else { return };
    close(only(&yaml).rate_per_s, 1.5);
    let Some(llmperf) = import("formats/llmperf/anyscale_70b.json") else { return };
    close(only(&llmperf).ntpot.mean_s, 0.015_836_127_776_049_42);
    says(&llmperf.warnings, "3.3 requests were in flight on average, not 5");
}

#[test]
fn llmd_examples_hold_figures_that_cannot_be() {
    let Some(old) = import("formats/llm-d-benchmark-report/br_v0_1_example.yaml") else { return };
    assert!(old.points.is_empty() && old.refused[0].reason.contains("unit"), "{:?}", old.refused);
    let Some(new) = import("formats/llm-d-benchmark-report/br_v0_2_1_example.yaml") else { return };
    assert!(new.points.is_empty() && new.refused[0].reason.contains("does not exceed"), "{:?}", new.refused);
    let Some(schema) = real("formats/llm-d-benchmark-report/br_v0_2_1_json_schema.json") else { return };
    assert!(schema.unwrap_err().to_string().contains("JSON Schema"));
}

#[test]
fn a_servers_metrics() {
    let Some(import_) = import("formats/vllm-prometheus/metrics_vllm_0_25_1_loaded.txt") else { return };
    let point = only(&import_);
    assert_eq!(point.completed, Some(600));
    close(point.ttft.mean_s, 88.244_990_825_653_08 / 664.0);
    close(point.tpot.mean_s, 3.641_358_996_619_241_7 / 600.0);
    // 332 of 664 are in the bucket from 0.1 (166) to 0.25 s (593).
    close(point.ttft.p50_s, 0.1 + 0.15 * 166.0 / 427.0);
    assert_eq!(
        (import_.server.num_gpu_blocks, import_.server.kv_cache_tokens),
        (Some(25_028), Some(400_448))
    );
}

#[test]
fn requests_points_and_traces() {
    let Some(run) = import("requests/qwen3-14b_h100_vllm0.23/w5_sweep-agg24.csv") else { return };
    assert_eq!(run.format, Format::Requests);
    let throughput = only(&run).requests_per_s.expect("a throughput");
    assert!((throughput - 17.4).abs() < 0.05, "{throughput}");
    says(&run.understood, "in flight at once");
    let Some(points) = import("points/measured.csv") else { return };
    // 2,957 rows, of which 457 have throughput only.
    assert_eq!(points.points.len(), 2500);
    let Some(curves) = import("points/concurrency_curves.csv") else { return };
    assert_eq!(curves.points[0].concurrency, Some(128));
    close(curves.points[0].tpot.mean_s, 0.033_442_9);
    let Some(azure) = import("traces/azure-2023/AzureLLMInferenceTrace_code_2023.csv") else { return };
    assert_eq!(azure.trace.map(|trace| trace.requests.len()), Some(8819));
    let Some(mooncake) = import("traces/mooncake/conversation_trace.jsonl") else { return };
    assert_eq!(mooncake.trace.map(|trace| trace.requests.len()), Some(12_031));
}
