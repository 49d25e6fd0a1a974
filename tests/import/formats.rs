//! Each format against figures worked out by hand.

use knee::import::{Arrival, Format, LengthKind, MeasuredAt};

use super::{close, fixture, only, says};

#[test]
fn vllm_detailed_has_requests_and_what_follows_from_them() {
    let import = fixture("vllm_detailed.json");
    assert_eq!(import.format, Format::VllmBench);
    let point = only(&import);
    assert_eq!(point.arrival, Arrival::Gamma { burstiness: 0.5 });
    close(point.rate_per_s, 2.0);
    assert_eq!((point.completed, point.failed, point.concurrency), (Some(3), Some(1), None));
    close(point.input_tokens.map(|lengths| lengths.mean), 20.0);
    close(point.input_tokens_per_s, 15.0);
    close(point.good_per_s, 0.5);
    // Reported: 298 ms. Not reported: E2E of 0.15, 0.30 and 0.45 s; numpy's 90 % lies at 1.8.
    close(point.ttft.p99_s, 0.298);
    close(point.ttft.p90_s, 0.28);
    close(point.e2e.mean_s, 0.3);
    close(point.e2e.p90_s, 0.42);
    assert!(point.itl.is_empty());
    // The failed request has no answer and is no request.
    let sends: Vec<f64> = import.requests.iter().map(|request| request.send_s).collect();
    assert_eq!(sends, [0.0, 0.5, 1.0]);
    close(import.requests[2].tpot_s(), 0.05);
}

#[test]
fn lengths_that_vary_and_cannot_be_replayed_are_warned_of() {
    let result = |inputs: &str| {
        format!(
            r#"{{"request_rate": 2.0, "completed": 3, "duration": 4.0, "total_input_tokens": 60,
                "total_output_tokens": 30, "request_throughput": 0.75, "mean_ttft_ms": 100.0,
                "input_lens": {inputs}, "output_lens": [10, 10, 10], "ttfts": [0.1, 0.1, 0.1],
                "itls": [[0.01], [0.01], [0.01]]}}"#
        )
    };
    let warnings =
        |inputs: &str| knee::import::import_text("a.json", &result(inputs), None).expect("a result").warnings;
    let wide = warnings("[10, 20, 30]");
    assert!(
        wide.iter().any(|text| text.contains("prompts have 10 to 30 tokens and answers 10 to 10")),
        "{wide:?}"
    );
    assert!(warnings("[20, 20, 20]").iter().all(|text| !text.contains("prompts have")));
}

#[test]
fn vllm_json_lines_keep_their_traps_apart() {
    let import = fixture("vllm_appended.jsonl");
    assert_eq!(import.points.len(), 2);
    let [all_at_once, closed] = &import.points[..] else { unreachable!() };
    // A concurrency of 1e9 is none, a rate of 1e9 is none, and `request_goodput:` is goodput.
    assert_eq!((all_at_once.arrival, all_at_once.concurrency), (Arrival::AllAtOnce, None));
    close(all_at_once.good_per_s, 1.5);
    close(all_at_once.ttft.p50_s, 0.4);
    assert_eq!((closed.arrival, closed.concurrency, closed.rate_per_s), (Arrival::Closed, Some(2), None));
    assert_eq!(closed.label, "line 3");
    // Outputs of one token have no time per output token; "openai" names no engine.
    assert!(closed.tpot.is_empty());
    assert_eq!(closed.server.engine, None);
    // A run of which all failed reports zeros.
    assert_eq!(import.refused.len(), 1);
    assert_eq!(import.refused[0].label, "line 4");
    assert!(import.refused[0].reason.contains("5 failed"), "{:?}", import.refused);
}

#[test]
fn inferencex_lengths_are_uniform_around_nine_tenths_of_nominal() {
    let import = fixture("inferencex.json");
    let point = only(&import);
    // Counted mean 900 of a nominal 1000: uniform from 800 to 1000.
    let input = point.input_tokens.expect("lengths");
    close(Some(input.mean), 900.0);
    assert_eq!(input.kind, LengthKind::Uniform { min: 800.0, max: 1000.0 });
    close(point.ttft.p95_s, 1.9);
    close(point.e2e.p90_s, 10.5);
    close(point.in_flight(), 3.96);
    assert!(import.warnings.is_empty(), "{:?}", import.warnings);
}

#[test]
fn a_console_table_is_found_in_a_log() {
    let import = fixture("vllm_console.txt");
    assert_eq!(import.format, Format::VllmConsole);
    let point = only(&import);
    assert_eq!((point.completed, point.failed, point.concurrency), (Some(20), Some(1), Some(4)));
    assert_eq!(point.arrival, Arrival::Closed);
    close(point.total_tokens_per_s, 240.0);
    close(point.ttft.p99_s, 0.1505);
    close(point.tpot.p99_s, 0.11);
    close(point.output_tokens.map(|lengths| lengths.mean), 20.0);
}

#[test]
fn a_sweep_folder_has_a_point_per_run_and_the_servers_settings() {
    let import = fixture("sweep");
    assert_eq!(import.format, Format::VllmSweep);
    assert_eq!(import.points.len(), 2);
    assert_eq!(import.points[0].label, "SERVE--max_num_seqs=8-BENCH--max_concurrency=2/run=0.json");
    assert_eq!(import.points[1].server.max_num_seqs, Some(8));
    close(import.points[1].ttft.mean_s, 0.11);
}

#[test]
fn guidellm_means_different_things_by_version() {
    let old = fixture("guidellm_0.3.json");
    let point = only(&old);
    assert_eq!((point.arrival, point.rate_per_s), (Arrival::Poisson, Some(2.5)));
    assert_eq!((point.completed, point.failed), (Some(4), Some(1)));
    assert_eq!(point.server.model.as_deref(), Some("acme/tiny-1b"));
    close(point.tpot.mean_s, 0.08);
    close(point.tpot.p99_s, 0.088);
    close(point.e2e.p99_s, 1.1);
    // 72.7 ms is (E2E - TTFT) / 11: neither TPOT nor NTPOT. Prompts are counted twice in the total.
    assert!(point.ntpot.is_empty());
    assert_eq!(point.total_tokens_per_s, None);
    says(&old.warnings, "422.0 tok/s where requests and lengths give 222.0");
    says(&old.left_out, "a sample of them");

    let new = fixture("guidellm_0.5.json");
    let point = only(&new);
    assert_eq!((point.arrival, point.concurrency), (Arrival::Closed, Some(2)));
    // 90.9 ms is E2E / 11: it includes the first token.
    close(point.ntpot.mean_s, 1.0 / 11.0);
    close(point.total_tokens_per_s, 222.0);
    let sends: Vec<(f64, u32)> = new.requests.iter().map(|r| (r.send_s, r.input_tokens)).collect();
    assert_eq!(sends, [(0.0, 90), (0.0, 110), (1.0, 100), (1.0, 100)]);
    close(new.requests[0].tpot_s(), 0.08);
    assert_eq!(new.refused[0].label, "benchmarks[1]");
}

#[test]
fn guidellms_tables_and_the_parsers_summary() {
    let console = fixture("guidellm_console.txt");
    let point = only(&console);
    assert_eq!((point.arrival, point.rate_per_s), (Arrival::Constant, Some(2.5)));
    assert_eq!((point.completed, point.failed), (Some(50), Some(2)));
    close(point.tpot.p99_s, 0.09);
    close(point.e2e.p50_s, 0.99);

    let summary = fixture("guidellm_summary.json");
    let point = only(&summary);
    assert_eq!((point.arrival, point.concurrency), (Arrival::Closed, Some(4)));
    // The key says ms, the value is seconds.
    close(point.e2e.mean_s, 2.0);
    close(point.tpot.mean_s, 0.019);
    assert_eq!(point.output_tokens.map(|lengths| lengths.kind), Some(LengthKind::Nominal));
}

#[test]
fn aiperfs_inter_token_latency_is_tpot_and_its_chunks_are_not_tokens() {
    let import = fixture("aiperf.json");
    let point = only(&import);
    assert_eq!((point.arrival, point.concurrency), (Arrival::Closed, Some(4)));
    close(point.tpot.mean_s, 0.021);
    close(point.tpot.p50_s, 0.0205);
    assert_eq!(point.server.model.as_deref(), Some("acme/tiny-1b"));
    assert_eq!(point.output_tokens.map(|lengths| lengths.kind), Some(LengthKind::Constant));
    // (1980 - 90) / 90 gaps is 21 ms a token; chunks come every 42 ms.
    assert!(point.itl.is_empty());
    says(&import.warnings, "0.50 per token");
    says(&import.warnings, "cancelled");
}

#[test]
fn genai_perfs_outputs_of_five_times_the_number_asked_for_are_not_taken() {
    let import = fixture("genai_perf.json");
    let point = only(&import);
    assert!(point.tpot.is_empty());
    assert_eq!(point.output_tokens_per_s, None);
    let output = point.output_tokens.expect("lengths");
    assert_eq!((output.mean, output.kind), (101.0, LengthKind::Nominal));
    // (2000 - 100) / 100
    says(&import.warnings, "TPOT would be 19.00 ms");
    close(point.e2e.p99_s, 2.2);
    assert_eq!(point.server.engine.as_deref(), Some("tensorrt-llm"));
}

#[test]
fn inference_perf_counts_chunks_and_may_not_send_what_was_asked() {
    let import = fixture("inference_perf.json");
    let point = only(&import);
    close(point.rate_per_s, 10.0);
    assert_eq!(point.failed, Some(3));
    assert!(point.tpot.is_empty() && point.itl.is_empty());
    says(&import.warnings, "2.00 per token");
    says(&import.warnings, "100.00 ms per token");
    says(&import.warnings, "10.0 of 12.0 req/s");
    close(point.ntpot.mean_s, 0.1);

    let yaml = fixture("inference_perf.yaml");
    let point = only(&yaml);
    close(point.tpot.p99_s, 0.12);
    close(point.itl.mean_s, 0.1);
    assert!(yaml.warnings.is_empty(), "{:?}", yaml.warnings);

    let server = fixture("inference_perf_prometheus.json");
    let point = only(&server);
    assert_eq!(point.measured_at, MeasuredAt::Server);
    // Lengths are ratios of rates: 400 / 4 and 80 / 4.
    close(point.input_tokens.map(|lengths| lengths.mean), 100.0);
    close(point.output_tokens.map(|lengths| lengths.mean), 20.0);
}

#[test]
fn llmperfs_inter_token_latency_is_ntpot() {
    let import = fixture("llmperf.json");
    let point = only(&import);
    assert!(point.tpot.is_empty());
    close(point.ntpot.mean_s, 0.025);
    close(point.ntpot.p99_s, 0.03);
    close(point.requests_per_s, 2.0);
    close(point.duration_s, 30.0);
    assert_eq!(point.input_tokens.map(|lengths| lengths.kind), Some(LengthKind::Constant));
    assert_eq!(point.output_tokens.map(|lengths| lengths.kind), Some(LengthKind::Mean));
}

#[test]
fn llmd_reports_carry_units_and_the_server() {
    let old = fixture("llmd_0.1.yaml");
    let point = only(&old);
    assert_eq!((point.completed, point.failed), (Some(40), Some(1)));
    close(point.tpot.mean_s, 0.010);
    close(point.e2e.p50_s, 1.08);
    assert_eq!(point.server.tensor_parallel_size, Some(2));
    assert_eq!(point.server.version.as_deref(), Some("0.9.0"));

    let new = fixture("llmd_0.2.yaml");
    let point = only(&new);
    close(point.tpot.p99_s, 0.02);
    close(point.rate_per_s, 2.0);
    // An infinite concurrency is no limit.
    assert_eq!(point.concurrency, None);
    assert_eq!((point.server.tensor_parallel_size, point.server.replicas), (Some(4), Some(2)));
    assert_eq!(point.server.model.as_deref(), Some("Qwen/Qwen3-14B"));
}

#[test]
fn requests_become_a_point_with_exact_statistics() {
    let import = fixture("requests.csv");
    let point = only(&import);
    assert_eq!((point.completed, point.failed), (Some(3), Some(1)));
    // First send at 10 s, last answer at 11 + 4.2 s.
    close(point.duration_s, 5.2);
    close(point.requests_per_s, 3.0 / 5.2);
    close(point.rate_per_s, 2.0);
    // TPOT of 100 ms and 200 ms; the answer of one token has none.
    close(point.tpot.mean_s, 0.15);
    close(point.ttft.mean_s, 0.2);
    says(&import.understood, "at most 2 of them in flight");
}

#[test]
fn tables_of_points_with_short_names() {
    let import = fixture("points.csv");
    assert_eq!(import.points.len(), 3);
    let point = &import.points[0];
    assert_eq!(
        (point.label.as_str(), point.arrival, point.concurrency),
        ("line 2", Arrival::Closed, Some(8))
    );
    close(point.tpot.p99_s, 0.04);
    assert_eq!(point.server.version.as_deref(), Some("0.11.0"));
    assert_eq!(import.points[2].arrival, Arrival::AllAtOnce);
    assert!(import.points[2].tpot.is_empty());
    says(&import.left_out, "rows without any latency: 1");
}

/// A column without its unit, or of another tool's name, is told with the name that was meant; what is no name of a figure
/// is listed only, and what is there under its own name is not asked for again.
#[test]
fn columns_of_unknown_names_are_told() {
    let text = "concurrency,isl,osl,ttft_mean,tpot_mean_ms,qps,tpot_mean,remark\n1,1000,100,50,7,1,7,a\n";
    let import = knee::import::import_text("mine.csv", text, None).expect("points");
    assert_eq!(
        import.warnings,
        [
            "column `ttft_mean` is not known and not read; did you mean `ttft_mean_ms`?",
            "column `qps` is not known and not read; did you mean `rate_per_s`?",
        ]
    );
    assert!(
        import
            .left_out
            .iter()
            .any(|text| text == "columns of other names: ttft_mean, qps, tpot_mean, remark"),
        "{:?}",
        import.left_out
    );
    let known = "concurrency,isl,osl,tpot_mean_ms\n1,1000,100,7\n";
    let import = knee::import::import_text("mine.csv", known, None).expect("points");
    assert!(import.warnings.is_empty(), "{:?}", import.warnings);
    assert!(import.left_out.iter().all(|text| !text.contains("other names")), "{:?}", import.left_out);
}

#[test]
fn traces_are_recognised_and_taken_whole() {
    let azure =
        "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.5,10,2\n2023-11-16 18:15:47.5,20,3\n";
    let import = knee::import::import_text("a.csv", azure, None).expect("a trace");
    let trace = import.trace.expect("a trace");
    assert_eq!(trace.requests[1].send.as_secs_f64(), 1.0);
    let mooncake = "{\"timestamp\": 0, \"input_length\": 9, \"output_length\": 2, \"hash_ids\": [1]}\n";
    let import = knee::import::import_text("m.jsonl", mooncake, None).expect("a trace");
    assert_eq!(import.format, Format::Trace);
    says(&import.left_out, "hash_ids");
}
