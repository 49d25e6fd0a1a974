//! What cannot be true is refused, what is doubtful is said.

use knee::catalog::{Catalog, Dtype};
use knee::import::check::{Given, against_hardware};
use knee::import::{Imported, import_text};

use super::{fixture, says};

/// A vLLM result with `changes` to a consistent one: 4 users, E2E 1 s, 4 req/s, 11 tokens out.
fn result(changes: &[(&str, &str)]) -> Imported {
    let mut fields = vec![
        ("model_id", "\"qwen3-14b\""),
        ("num_prompts", "40"),
        ("request_rate", "\"inf\""),
        ("max_concurrency", "4"),
        ("duration", "10.0"),
        ("completed", "40"),
        ("total_input_tokens", "4000"),
        ("total_output_tokens", "440"),
        ("request_throughput", "4.0"),
        ("output_throughput", "44.0"),
        ("total_token_throughput", "444.0"),
        ("mean_ttft_ms", "200.0"),
        ("mean_tpot_ms", "80.0"),
        ("mean_itl_ms", "80.0"),
        ("mean_e2el_ms", "1000.0"),
    ];
    for change in changes {
        match fields.iter_mut().find(|field| field.0 == change.0) {
            Some(field) => *field = *change,
            None => fields.push(*change),
        }
    }
    let fields: Vec<String> = fields.iter().map(|(key, value)| format!("\"{key}\": {value}")).collect();
    import_text("result.json", &format!("{{{}}}", fields.join(", ")), None).expect("a result")
}

#[test]
fn a_consistent_result_raises_nothing() {
    let import = result(&[]);
    assert_eq!(import.points.len(), 1);
    assert!(import.warnings.is_empty() && import.refused.is_empty(), "{:?}", import.warnings);
}

#[test]
fn littles_law_bounds_what_is_in_flight() {
    says(
        &result(&[("max_concurrency", "3")]).warnings,
        "4.0 requests were in flight on average, more than the 3",
    );
    says(&result(&[("max_concurrency", "8")]).warnings, "not 8");
}

#[test]
fn counts_and_throughputs_must_agree() {
    says(&result(&[("duration", "20.0")]).warnings, "40 requests completed");
    says(&result(&[("output_throughput", "60.0")]).warnings, "output throughput is 60.0");
    let doubled = result(&[("total_token_throughput", "844.0")]);
    says(&doubled.warnings, "844.0 tok/s where requests and lengths give 444.0");
    assert_eq!(doubled.points[0].total_tokens_per_s, None);
    says(&result(&[("request_rate", "8.0"), ("max_concurrency", "null")]).warnings, "4.00 of 8.00 req/s");
}

#[test]
fn gaps_between_chunks_are_no_inter_token_latency() {
    let import = result(&[("mean_itl_ms", "160.0")]);
    says(&import.warnings, "0.50 per token");
    assert!(import.points[0].itl.is_empty());
    assert_eq!(import.points[0].tpot.mean_s, Some(0.08));
}

#[test]
fn latencies_that_do_not_add_up_are_refused() {
    let import = result(&[("mean_e2el_ms", "150.0")]);
    assert!(import.points.is_empty());
    assert!(import.refused[0].reason.contains("does not exceed mean TTFT"), "{:?}", import.refused);
    // Seconds under a key of ms.
    let import = result(&[("mean_tpot_ms", "0.08"), ("mean_ttft_ms", "0.2"), ("mean_e2el_ms", "1.0")]);
    assert!(import.refused[0].reason.contains("unit"), "{:?}", import.refused);
}

#[test]
fn a_result_without_figures_is_no_point() {
    let import = import_text("f.json", r#"{"mean_ttft_ms": 0.0, "completed": 5}"#, None).expect("a result");
    assert!(import.points.is_empty());
    assert!(import.refused[0].reason.contains("no latency and no throughput"), "{:?}", import.refused);
}

fn checked(mut import: Imported, given: &Given) -> Imported {
    against_hardware(&mut import, &Catalog::new(None), given).expect("known names");
    import
}

#[test]
fn no_server_beats_the_time_to_stream_its_weights() {
    // 13.99e9 parameters in layers and head, 2 bytes each, over 3.35e12 B/s: 8.35 ms.
    let fast = || result(&[("mean_tpot_ms", "6.0"), ("mean_itl_ms", "6.0"), ("mean_e2el_ms", "260.0")]);
    let given = Given { gpu: Some("h100-sxm".to_owned()), ..Given::default() };
    let import = checked(fast(), &given);
    assert!(import.points.is_empty());
    assert!(import.refused[0].reason.contains("needs 8.35"), "{:?}", import.refused);
    // Half the bytes, or half the work per GPU, make it possible.
    let fp8 = Given { weight_dtype: Some(Dtype::Fp8), ..given.clone() };
    assert_eq!(checked(fast(), &fp8).points.len(), 1);
    let tp2 = Given { tensor_parallel_size: Some(2), ..given.clone() };
    let import = checked(fast(), &tp2);
    assert_eq!(import.points.len(), 1);
    assert_eq!(import.points[0].server.gpu.as_deref(), Some("h100-sxm"));
    says(&import.understood, "held against the chip");
}

#[test]
fn no_server_exceeds_its_peak() {
    // 2 x 13.2e9 FLOPs a token: 989e12 FLOP/s are 37 thousand tokens a second.
    let given = Given { gpu: Some("h100-sxm".to_owned()), ..Given::default() };
    let outputs = [("output_throughput", "80000.0"), ("total_token_throughput", "80400.0")];
    let import = checked(result(&outputs), &given);
    assert!(import.refused[0].reason.contains("times the peak"), "{:?}", import.refused);
    // Prompts may come from a prefix cache: a doubt only.
    let prompts = [
        ("total_input_tokens", "800000"),
        ("request_throughput", "4.0"),
        ("total_token_throughput", "80044.0"),
    ];
    let import = checked(result(&prompts), &given);
    assert_eq!(import.points.len(), 1);
    says(&import.warnings, "prefix cache");
}

#[test]
fn everybodys_kv_must_fit_the_bandwidth() {
    // 2,000 users in decode for 10 s each at 200 req/s and 20 ms a token, with 4,000 tokens of context:
    // 40 layers x 2 x 8 heads x 128 = 81,920 bytes a token, so 655 GB a step.
    let changes = [
        ("max_concurrency", "2040"),
        ("num_prompts", "4000"),
        ("completed", "4000"),
        ("duration", "20.0"),
        ("total_input_tokens", "15000000"),
        ("total_output_tokens", "2004000"),
        ("request_throughput", "200.0"),
        ("output_throughput", "100200.0"),
        ("total_token_throughput", "850200.0"),
        ("mean_tpot_ms", "20.0"),
        ("mean_itl_ms", "20.0"),
        ("mean_e2el_ms", "10200.0"),
    ];
    let given = Given { gpu: Some("h100-sxm".to_owned()), tensor_parallel_size: Some(1), ..Given::default() };
    let mut import = result(&changes);
    assert!(import.warnings.is_empty(), "{:?}", import.warnings);
    // Forty replicas have the FLOPs, and 16.4 GB of KV each a step, with 28 GB of weights: 2.2 TB/s.
    import.points[0].server.replicas = Some(40);
    assert!(checked(import.clone(), &given).warnings.is_empty());
    // At 10 ms a token (and twice the rate) it would be 4.4 TB/s.
    let point = &mut import.points[0];
    point.tpot.mean_s = Some(0.010);
    point.server.replicas = Some(40);
    let import = checked(import, &given);
    says(&import.warnings, "times the bandwidth of 1 x h100-sxm");
}

#[test]
fn a_table_names_gpu_model_and_format_itself() {
    let import = checked(fixture("points.csv"), &Given::default());
    assert_eq!(import.points.len(), 2);
    assert_eq!(import.refused[0].label, "line 3");
}

#[test]
fn a_name_that_is_given_must_be_known() {
    let given = Given { gpu: Some("h1000".to_owned()), ..Given::default() };
    let error = against_hardware(&mut result(&[]), &Catalog::new(None), &given).unwrap_err();
    assert!(error.to_string().contains("h1000"), "{error}");
}
