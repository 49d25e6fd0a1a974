//! Whatever the bytes are: an import or an error that names the file, never a panic.

use knee::catalog::Catalog;
use knee::import::check::{Given, against_hardware};
use knee::import::{Format, import_text, write};
use proptest::prelude::*;

use super::path;

const FIXTURES: [&str; 19] = [
    "vllm_detailed.json",
    "vllm_appended.jsonl",
    "inferencex.json",
    "vllm_console.txt",
    "guidellm_0.3.json",
    "guidellm_0.5.json",
    "guidellm_console.txt",
    "guidellm_summary.json",
    "aiperf.json",
    "genai_perf.json",
    "inference_perf.json",
    "inference_perf.yaml",
    "inference_perf_prometheus.json",
    "llmperf.json",
    "llmd_0.2.yaml",
    "vllm_metrics.txt",
    "vllm_log_v1.txt",
    "requests.csv",
    "points.csv",
];

/// What a cut or a typing error puts into a file.
const SPLICES: [&str; 18] = [
    "",
    "-1",
    "0",
    "1e308",
    "1e-320",
    "NaN",
    "\"inf\"",
    "null",
    "{",
    "}",
    "[",
    "]",
    "\"",
    ",",
    ":",
    "\n",
    "é",
    "9999999999999999999",
];

fn import_all(text: &str, forced: Option<Format>) {
    match import_text("file", text, forced) {
        Ok(mut import) => {
            let given = Given {
                gpu: Some("h100-sxm".to_owned()),
                model: Some("qwen3-14b".to_owned()),
                ..Given::default()
            };
            against_hardware(&mut import, &Catalog::new(None), &given).expect("known names");
            write::files(&[import]).expect("files");
        }
        Err(error) => assert!(error.to_string().contains("file"), "{error}"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_damaged_file_is_an_import_or_an_error(
        fixture in 0..FIXTURES.len(),
        damages in prop::collection::vec((0.0..1.0_f64, 0..12_usize, 0..SPLICES.len()), 1..4),
    ) {
        let mut text = std::fs::read_to_string(path(FIXTURES[fixture])).expect("a fixture");
        for (place, length, splice) in damages {
            let boundary = |text: &str, index: usize| (0..=index.min(text.len())).rev().find(|i| text.is_char_boundary(*i));
            let start = boundary(&text, (place * text.len() as f64) as usize).unwrap_or(0);
            let end = boundary(&text, start + length).unwrap_or(start).max(start);
            text.replace_range(start..end, SPLICES[splice]);
        }
        import_all(&text, None);
    }

    #[test]
    fn any_text_as_any_format(text in "\\PC{0,200}", format in 0..Format::ALL.len()) {
        import_all(&text, Some(Format::ALL[format]));
        import_all(&text, None);
    }
}

#[test]
fn errors_name_the_line_and_the_key() {
    for (text, expected) in [
        (
            "{\"mean_ttft_ms\": 1, \"completed\": 5, \"request_rate\": \"fast\"}",
            "`request_rate`: found `fast`",
        ),
        ("{\"mean_ttft_ms\": -1, \"completed\": 5}", "`mean_ttft_ms`: found `-1`"),
        ("{\"mean_ttft_ms\": 1}\n{\"mean_ttft_ms\": }\n", "file, line 2, column 18"),
        ("send_s,input_tokens,output_tokens,e2e_ms\n0,1,1,5\n1,x,1,5\n", "line 3, `input_tokens`: found `x`"),
        ("send_s,input_tokens,output_tokens,e2e\n0,1,1,5\n", "`e2e_ms` or `e2e_s`"),
        ("send_s,input_tokens,output_tokens,e2e_ms\n0,1,1\n", "line 2: found 3 columns"),
        ("# TYPE vllm:x counter\nvllm:x{a=\"b\" 1\n", "line 2: found"),
        ("{\"$schema\": \"x\"}", "JSON Schema"),
        ("", "an empty file"),
        ("hello, world", "begins with `hello, world`"),
        (
            "version: 0.2\nresults: {request_performance: {aggregate: {latency: {request_latency: {mean: 1, units: h}}}}}",
            "found `h`",
        ),
        ("version: [0.2\nresults: 1", "not YAML"),
        ("{\"mean_ttft_ms\": 1, \"compl", "line 1, column 26: the file ends in the middle of its JSON"),
        (
            "send_s,input_tokens,output_tokens,e2e_ms\n0,1,1,\"5\n",
            "line 2: found a quote that nothing closes",
        ),
        (
            "concurrency,ttft_mean_ms,tpot_mean_ms\n1.5,20,5\n",
            "line 2, `concurrency`: found `1.5`, expected a whole number",
        ),
        (
            "concurrency,completed,ttft_mean_ms\n1,2.5,20\n",
            "line 2, `completed`: found `2.5`, expected a whole number",
        ),
        (
            "concurrency,ttft_mean_ms,tpot_mean_ms\n1,1e-300,5\n",
            "`ttft_mean_ms`: found `1e-300`, expected 0, or a number",
        ),
        ("send_s,input_tokens,send_s,e2e_ms\n0,1,1,5\n", "line 1: found two columns `send_s`"),
        (
            "arrival_s,input_tokens,output_tokens,arrival_s\n0,1,1,5\n",
            "line 1: found two columns `arrival_s`",
        ),
    ] {
        let error =
            import_text("file", text, None).err().unwrap_or_else(|| panic!("taken: {text}")).to_string();
        assert!(
            error.contains(expected) && error.starts_with("file"),
            "{text}\n{error}\nexpected {expected}"
        );
    }
}

/// What a table of requests has and no point does is told.
#[test]
fn requests_that_are_not_taken_are_counted() {
    let text = "send_s,input_tokens,output_tokens,ttft_ms,e2e_ms\n0,10,10,20,100\n1,0,10,20,100\n2,10,0,20,100\n\
                3,10,10,,\n4,10,10,20,10\n";
    let imported = import_text("file", text, None).expect("one request");
    assert_eq!(imported.requests.len(), 1);
    assert!(imported.understood[0].starts_with("1 request; "), "{:?}", imported.understood);
    assert!(
        imported.left_out.iter().any(|text| text.ends_with("which failed: 1")),
        "{:?}",
        imported.left_out
    );
    let refused: Vec<&str> = imported.refused.iter().map(|refusal| refusal.label.as_str()).collect();
    assert_eq!(refused, ["2 requests", "1 request"]);
}

/// Of lines nobody knows whether they are all; but what is cut in the middle of one is told.
#[test]
fn a_file_that_was_cut_off_is_not_taken_in_silence() {
    let console = "====== Serving Benchmark Result ======\nSuccessful requests: 5\nRequest throughput (req/s): 2.0\n\
                   Mean TTFT (ms): 30.5\n==============================\n";
    let requests = "send_s,input_tokens,output_tokens,ttft_ms,e2e_ms\n0,10,10,20,100\n1,10,10,20,100\n";
    let points =
        "concurrency,completed,input_tokens_mean,output_tokens_mean,ttft_mean_ms\n4,20,100,20,22.5\n";
    let yaml = "load_summary: {count: 4, achieved_rate: 2.0}\nsuccesses:\n  count: 4\n  latency:\n    \
                time_to_first_token: {mean: 0.2}\n  throughput:\n    requests_per_sec: 2.05\n";
    let is_told = |text: &str| {
        let imported = import_text("file", text, None).unwrap_or_else(|error| panic!("{error}: {text}"));
        imported.warnings.iter().any(|warning| warning.contains("cut off"))
    };
    for text in [console, requests, points, yaml] {
        assert!(!is_told(text), "{text}");
    }
    for text in [requests, points, yaml] {
        assert!(is_told(&text[..text.len() - 2]), "{text}");
    }
    assert!(!is_told(console.trim_end()), "its last line is there");
    let (open, _) = console.trim_end().rsplit_once('\n').expect("lines");
    assert!(is_told(&format!("{open}\n")), "{open}");
}

/// Numbers of another world are refused, with what is possible, in a line that can be read.
#[test]
fn huge_numbers_are_refused_in_few_words() {
    for (text, words) in [
        (
            "{\"backend\": \"vllm\", \"num_prompts\": 4, \"completed\": 1e300, \"request_throughput\": 1, \
             \"mean_ttft_ms\": 5}",
            "`completed`: found `1e300`, expected a number, at most 1e19",
        ),
        (
            "send_s,input_tokens,output_tokens,ttft_ms,e2e_ms\n0,10,10,1e300,1e308\n",
            "line 2, `e2e_ms`: found `1e308`, expected 0, or a number from 1e-9 to 1e13",
        ),
        (
            "send_s,input_tokens,output_tokens,ttft_ms,e2e_ms\n0,5000000000,10,20,100\n",
            "`input_tokens`: found `5000000000`, expected a whole number of tokens, at most 4294967295",
        ),
        (
            "concurrency,input_tokens_mean,output_tokens_mean,ttft_mean_ms\n1e12,10,10,20\n",
            "line 2, `concurrency`: found `1e12`, expected a whole number from 0 to 4294967295",
        ),
    ] {
        let error = import_text("file", text, None).expect_err("refused").to_string();
        assert!(error.contains(words) && error.len() < 200, "{error}");
    }
}
