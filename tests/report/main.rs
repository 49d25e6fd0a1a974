//! Every output of a run and a sweep, from results made by formula.

mod fixture;
mod tables;

use std::path::Path;

use knee::catalog::Catalog;
use knee::experiment::Estimate;
use knee::metrics::RunMode;
use knee::report::rank::Ranked;
use knee::report::table::{Look, MAX_WIDTH};
use knee::report::{csv, files, json, table};
use knee::scenario::{Document, Override};
use knee::workload::Metric;

const LATENCY_KEYS: [&str; 3] = ["mean_ttft_ms", "median_tpot_ms", "p99_e2el_ms"];

fn rows(bytes: &[u8]) -> Vec<std::collections::BTreeMap<String, String>> {
    let mut reader = ::csv::Reader::from_reader(bytes);
    reader.deserialize().map(|row| row.expect("a row")).collect()
}

#[test]
fn tables_fit_a_terminal() {
    let plain = Look::default();
    let texts = [
        table::sweep(&fixture::sweep(), &Ranked::default(), plain),
        table::sweep(&fixture::grid(), &Ranked::default(), plain),
        table::run(&fixture::point(12.0, RunMode::Steady), plain),
        table::run(&fixture::point(28.0, RunMode::Steady), plain),
        table::run(&fixture::point(28.0, RunMode::Benchmark), plain),
    ];
    for text in &texts {
        println!("{text}");
        for line in text.lines() {
            assert!(line.chars().count() <= MAX_WIDTH, "{} columns: {line}", line.chars().count());
        }
        assert!(!text.contains('\u{1b}'), "colour on a plain terminal");
        assert!(!text.contains("NaN"), "{text}");
    }
}

#[test]
fn a_sweep_tells_the_three_numbers_apart() {
    let text = table::sweep(&fixture::sweep(), &Ranked::default(), Look::default());
    // Lines are wrapped and columns padded.
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in [
        "capacity 18 req/s guaranteed (fails at 20 req/s)",
        "19.3 ±0.3 req/s",
        "stability limit stable at 22 req/s, unstable at 24 req/s; 22.0 ±0.1 req/s completed when saturated",
        "knee 16 req/s (Kneedle on TTFT p99 from 2 to 22 req/s",
        "unstable, +6.0 req/s",
        "seed 1",
        "profile h100-sxm-vllm (calibrated on qwen3-14b, not on llama-3.1-8b, under vllm 0.23); held-out error, not of \
         llama-3.1-8b: on Qwen3-14B",
        // 18 req/s x 150 tokens x 3600 s = 9.72 M tokens for $2.50.
        // The relative half-width of the tokens per second is that of both figures.
        "9.7 ±0.1 M output tokens per GPU-hour at capacity; $0.257 ±0.003 per M output tokens ($2.50 per GPU-hour from",
    ] {
        assert!(text.contains(part), "`{part}` is missing in\n{text}");
    }
}

#[test]
fn a_load_of_equality_beyond_one_that_fails_is_doubted_or_withheld() {
    let said = |estimate: Option<Estimate>| {
        let mut result = fixture::sweep();
        let capacity = result.reading.as_mut().and_then(|reading| reading.capacity.as_mut()).unwrap();
        (capacity.estimate, capacity.doubt) = (estimate, Some("beyond the first failing load"));
        table::sweep(&result, &Ranked::default(), Look::default())
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ")
    };
    let doubted = said(Some(Estimate { mean: 21.0, half_width: Some(2.0) }));
    assert!(doubted.contains("met with equality at 21 ±2 req/s, beyond the first failing load"), "{doubted}");
    let withheld = said(None);
    assert!(withheld.contains("met with equality is withheld: beyond the first failing load"), "{withheld}");
}

#[test]
fn a_grid_has_coordinates_and_no_reading() {
    let text = table::sweep(&fixture::grid(), &Ranked::default(), Look::default());
    assert!(text.contains("max_num_seqs") && text.contains("offered"), "{text}");
    assert!(!text.contains("capacity") && !text.contains("knee "), "{text}");
}

#[test]
fn no_output_shows_a_steady_latency_of_an_unstable_point() {
    let unstable = fixture::point(30.0, RunMode::Steady);
    let text = table::run(&unstable, Look::default());
    assert!(!text.contains("TTFT (ms)") && text.contains("unstable, +8.0"), "{text}");
    let summary: serde_json::Value = serde_json::from_str(&json::run(&unstable).unwrap()).unwrap();
    for key in LATENCY_KEYS {
        assert!(summary.get(key).is_none(), "{key}");
    }
    assert_eq!(summary["stability"], "unstable");
    let csv = csv::points(&[], std::slice::from_ref(&unstable)).unwrap();
    for metric in Metric::ALL {
        assert_eq!(rows(&csv)[0][&format!("{}_p99_ms", metric.key())], "");
    }
    assert_eq!(rows(&csv)[0]["growth_per_s"], "8");
}

#[test]
fn a_benchmark_keeps_its_latencies_under_overload() {
    let overloaded = fixture::point(30.0, RunMode::Benchmark);
    let summary: serde_json::Value = serde_json::from_str(&json::run(&overloaded).unwrap()).unwrap();
    for key in LATENCY_KEYS {
        assert!(summary[key].as_f64().is_some_and(|ms| ms > 0.0), "{key}");
    }
    assert_eq!(summary["stability"], "unstable");
}

#[test]
fn the_summary_sums_counts_and_averages_rates() {
    let point = fixture::point(12.0, RunMode::Steady);
    let summary: serde_json::Value = serde_json::from_str(&json::run(&point).unwrap()).unwrap();
    let completed: u64 = point.runs.iter().map(|run| run.all.completed).sum();
    assert_eq!(summary["completed"], completed);
    assert_eq!(summary["failed"], 0);
    assert_eq!(summary["duration"], 500.0);
    let close = |key: &str, expected: f64| {
        let value = summary[key].as_f64().unwrap();
        assert!((value / expected - 1.0).abs() < 1e-12, "{key}: {value}, expected {expected}");
    };
    close("request_throughput", 12.0);
    close("output_throughput", 1800.0);
    close("total_token_throughput", 12.0 * 662.0);
    // Student's t with 4 degrees of freedom, 2.776, over the replications' standard error.
    let half = summary["intervals"]["request_throughput"].as_f64().unwrap();
    let standard_error = 12.0 * 0.006 * (10.0_f64 / 4.0).sqrt() / 5.0_f64.sqrt();
    assert!((half / (2.776_445 * standard_error) - 1.0).abs() < 1e-5, "{half}");
}

#[test]
fn the_curve_has_a_row_for_each_load() {
    let result = fixture::sweep();
    let rows = rows(&csv::points(&result.axes, &result.points).unwrap());
    assert_eq!(rows.len(), 14);
    assert_eq!(rows[5]["arrivals.poisson.rate_per_s"], "12");
    assert_eq!(rows[5]["state"], "stable");
    assert_eq!(rows[13]["state"], "unstable");
}

#[test]
fn a_grid_states_no_swept_quantity_as_fixed() {
    let result = fixture::fleet();
    let text = table::sweep(&result, &Ranked::default(), Look::default());
    let header = text.lines().next().unwrap();
    assert!(header.contains("1 to 2 replicas"), "{header}");
    let summary: serde_json::Value =
        serde_json::from_str(&json::sweep(&result, &Ranked::default()).unwrap()).unwrap();
    assert!(summary.get("replicas").is_none() && summary.get("gpus").is_none());
    assert_eq!(summary["model"], "llama-3.1-8b");
    assert_eq!(summary["interval_level"], 0.95);
    assert_eq!(summary["price"]["usd_per_gpu_hour"], 2.5);
    for (point, rows) in result.points.iter().zip(rows(&csv::points(&result.axes, &result.points).unwrap())) {
        assert_eq!(rows["gpus"], point.scenario.gpus.to_string());
        assert_eq!(rows["usd_per_gpu_hour"], "2.5");
        let stable = point.stability.verdict == knee::experiment::Verdict::Stable;
        assert_eq!(!rows["usd_per_million_output_tokens"].is_empty(), stable);
    }
    for (point, body) in result.points.iter().zip(summary["points"].as_array().unwrap()) {
        assert_eq!(body["replicas"], point.scenario.system.replicas);
    }
    // One line below the table for each number of replicas, with its name.
    assert!(text.contains("1 replica ") && text.contains("2 replicas "), "{text}");
}

#[test]
fn each_class_has_rows_and_columns_of_its_own() {
    let result = fixture::two_classes();
    let text = table::sweep(&result, &Ranked::default(), Look::default());
    assert!(text.lines().any(|line| line.contains("summary")), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= MAX_WIDTH), "{text}");
    let rows = rows(&csv::points(&result.axes, &result.points).unwrap());
    let chat: f64 = rows[3]["chat_ttft_p99_ms"].parse().unwrap();
    let summary: f64 = rows[3]["summary_ttft_p99_ms"].parse().unwrap();
    assert!((summary / chat - 3.0).abs() < 2e-6, "{chat} {summary}");
    assert_eq!(rows[13]["chat_ttft_p99_ms"], "", "withheld where unstable");
}

#[test]
fn a_finite_batch_has_a_makespan_and_a_price_but_no_verdict() {
    let point = fixture::batch();
    let text = table::run(&point, Look::default());
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    // 500 s of one GPU at $2.50 an hour.
    assert!(text.contains("500 s on 1 GPU: 0.139 GPU-hours, $0.347 for the job"), "{text}");
    assert!(!text.contains("undecided"), "{text}");
    let mut result = fixture::sweep();
    result.axes = vec!["engine.max_num_seqs".into()];
    result.reading = None;
    result.points = vec![point];
    let text = table::sweep(&result, &Ranked::default(), Look::default());
    assert!(text.contains("finite batch") && text.contains("makespan") && text.contains("0.347"), "{text}");
}

#[test]
fn one_replication_claims_no_confidence_and_refusals_have_words() {
    let mut point = fixture::point(12.0, RunMode::Steady);
    point.runs.truncate(1);
    point.runs[0].totals.rejected_too_long = 43_712;
    point.runs[0].totals.rejected_over_budget = 12;
    let text = table::run(&point, Look::default());
    assert!(text.contains("met in this run; one replication, no confidence claimed"), "{text}");
    assert!(
        text.contains("43,700 requests refused: longer than max_model_len or the whole KV pool"),
        "{text}"
    );
    assert!(text.contains("12 requests refused: longer than max_num_batched_tokens, and not cut"), "{text}");
}

#[test]
fn an_explanation_leaves_the_manifest_of_a_sweep_alone() {
    let dir = scratch("explain");
    let origin = files::Origin { command: "sweep", input: "name = \"x\"", given: &[] };
    files::write_sweep(&dir, &fixture::sweep(), &Ranked::default(), Default::default(), origin).unwrap();
    let before = std::fs::read(dir.join("manifest.json")).unwrap();
    let picture = knee::report::explain::roofline(&fixture::scenario(12.0, RunMode::Steady)).unwrap();
    let names = files::write_roofline(&dir, picture).unwrap();
    assert_eq!(names, ["roofline.svg", "roofline.png"]);
    assert_eq!(std::fs::read(dir.join("manifest.json")).unwrap(), before);
}

#[test]
fn files_are_complete_and_the_same_every_time() {
    let (first, second) = (scratch("first"), scratch("second"));
    let origin = files::Origin { command: "sweep", input: "name = \"x\"", given: &[] };
    let names = files::write_sweep(&first, &fixture::sweep(), &Ranked::default(), Default::default(), origin)
        .unwrap();
    files::write_sweep(&second, &fixture::sweep(), &Ranked::default(), Default::default(), origin).unwrap();
    for name in [
        "summary.json",
        "curve.csv",
        "manifest.json",
        "latency.svg",
        "latency.png",
        "throughput.png",
        "frontier.svg",
    ] {
        assert!(names.iter().any(|written| written == name), "{name} is missing in {names:?}");
    }
    for name in &names {
        let (a, b) = (std::fs::read(first.join(name)).unwrap(), std::fs::read(second.join(name)).unwrap());
        assert!(!a.is_empty() && a == b, "{name} differs");
    }
    let left: Vec<_> = std::fs::read_dir(&first).unwrap().collect();
    assert_eq!(left.len(), names.len(), "nothing half-done is left behind");
    let run = scratch("run");
    for (rate, mode) in [(12.0, RunMode::Steady), (30.0, RunMode::Steady)] {
        let names =
            files::write_run(&run.join(rate.to_string()), &fixture::point(rate, mode), origin).unwrap();
        assert!(names.contains(&"timeline.png".to_owned()), "{names:?}");
    }
}

fn scratch(name: &str) -> std::path::PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("report").join(name);
    let _ = std::fs::remove_dir_all(&dir);
    dir
}

/// Of an M/M/1 queue at utilisation 0.8 there wait 0.8^2 / 0.2 = 3.2 on average, by Pollaczek and Khinchine.
#[test]
fn as_many_wait_as_theory_says() {
    let rate = Override::new("arrivals.poisson.rate_per_s", "8");
    let document = Document::load("mm1").and_then(|document| document.with_overrides(&[rate]));
    let scenario = document.expect("shipped").scenario(&Catalog::new(None)).expect("a scenario");
    let point = knee::experiment::run_point(&scenario).expect("a run");
    let waiting = knee::report::fold::waiting(&point).expect("a stable queue");
    assert!((waiting.mean / 3.2 - 1.0).abs() < 0.05, "{waiting:?}");
}
