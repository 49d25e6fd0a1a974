//! The binary as its users meet it: commands, streams, files and exit codes.

use std::path::PathBuf;

use assert_cmd::Command;
use serde_json::Value;

/// A short run of the worked example: a server that sustains 22 requests per second.
const SHORT: [&str; 5] = ["worked-example", "--quiet", "--no-files", "--set", "run.replications=2"];

fn knee(arguments: &[&str]) -> Command {
    let mut command = Command::cargo_bin("knee").expect("the binary is built");
    // No file of the developer's working directory takes part.
    command.current_dir(scratch("cwd")).env("NO_COLOR", "1").args(arguments);
    command
}

fn scratch(name: &str) -> PathBuf {
    let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("cli").join(name);
    std::fs::create_dir_all(&dir).expect("a folder for tests");
    dir
}

fn stdout(arguments: &[&str]) -> String {
    let output = knee(arguments).assert().success().get_output().clone();
    String::from_utf8(output.stdout).expect("text")
}

fn stderr_of_failure(arguments: &[&str], code: i32) -> String {
    let output = knee(arguments).assert().code(code).get_output().clone();
    assert!(output.stdout.is_empty(), "a failure prints no result: {arguments:?}");
    String::from_utf8(output.stderr).expect("text")
}

fn with<'a>(command: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [command].into_iter().chain(SHORT).chain(more.iter().copied()).collect()
}

#[test]
fn without_arguments_it_introduces_itself() {
    let text = stdout(&[]);
    assert!(text.contains("knee sweep chat-h100"), "{text}");
}

#[test]
fn help_and_version_are_answers_and_a_wrong_word_is_not() {
    for arguments in [&["--help"][..], &["run", "--help"], &["--version"]] {
        assert!(!stdout(arguments).is_empty());
    }
    let text = stderr_of_failure(&["swep", "chat-h100"], 2);
    assert!(text.contains("sweep"), "{text}");
}

#[test]
fn twenty_a_second_are_carried() {
    // Offered 20/s of a sustained 22/s with 150 output tokens each: 20 req/s and 3,000 output tok/s.
    let set = ["--set", "arrivals.poisson.rate_per_s=20", "--set", "run.duration_s=2000", "--format", "json"];
    let summary: Value = serde_json::from_str(&stdout(&with("run", &set))).expect("JSON");
    let close = |key: &str, expected: f64| {
        let value = summary[key].as_f64().unwrap_or_default();
        assert!((value / expected - 1.0).abs() < 0.05, "{key}: {value}, expected {expected}");
    };
    close("request_throughput", 20.0);
    close("output_throughput", 3000.0);
    assert_eq!(summary["failed"], 0);
    assert_eq!(summary["schema_version"], 1);
}

#[test]
fn thirty_a_second_are_not_and_no_latency_is_printed() {
    let overload = ["--set", "arrivals.poisson.rate_per_s=30"];
    let table = stdout(&with("run", &overload));
    assert!(table.contains("unstable") && !table.contains("P99 E2EL"), "{table}");
    let json = stdout(&with("run", &[overload[0], overload[1], "--format", "json"]));
    let summary: Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(summary["stability"], "unstable");
    assert!(summary.get("p99_e2el_ms").is_none());
    let growth = summary["growth_per_s"].as_f64().expect("growth");
    assert!((growth - 8.0).abs() < 1.5, "{growth}");
    knee(&with("run", &[overload[0], overload[1], "--check"])).assert().code(1);
}

#[test]
fn a_sweep_prints_capacity_and_is_the_same_on_any_number_of_threads() {
    let one = stdout(&with("sweep", &["--threads", "1"]));
    let two = stdout(&with("sweep", &["--threads", "2"]));
    assert_eq!(one, two);
    for part in ["capacity", "stability limit", "knee", "seed 1"] {
        assert!(one.contains(part), "`{part}` is missing in\n{one}");
    }
    let other_seed = stdout(&with("sweep", &["--seed", "2"]));
    assert!(other_seed.contains("seed 2") && other_seed != one);
    let csv = stdout(&with("sweep", &["--format", "csv"]));
    assert!(csv.starts_with("arrivals.poisson.rate_per_s,offered_per_s,completed_per_s"), "{csv}");
}

#[test]
fn files_go_where_they_are_asked_to() {
    let out = scratch("files");
    let folder = out.to_str().expect("a readable path");
    let arguments = ["run", "worked-example", "--set", "run.replications=1", "--out", folder];
    let output = knee(&arguments).assert().success().get_output().clone();
    let notes = String::from_utf8(output.stderr).expect("text");
    assert!(notes.contains("wrote") && notes.contains("summary.json"), "{notes}");
    let printed =
        stdout(&["run", "worked-example", "--set", "run.replications=1", "--no-files", "--format", "json"]);
    assert_eq!(std::fs::read_to_string(out.join("summary.json")).expect("a file"), printed);
    for name in ["curve.csv", "timeline.svg", "timeline.png", "manifest.json"] {
        assert!(out.join(name).is_file(), "{name}");
    }
}

#[test]
fn a_folder_that_cannot_be_written_does_not_cost_the_answer() {
    let file = scratch("no-folder").join("file");
    std::fs::write(&file, "").expect("a file");
    let folder = file.join("below");
    let folder = folder.to_str().expect("a readable path");
    let arguments = ["run", "worked-example", "--set", "run.replications=1", "--out", folder];
    let output = knee(&arguments).assert().code(2).get_output().clone();
    assert!(String::from_utf8(output.stdout).expect("text").contains("Successful requests"));
    assert!(String::from_utf8(output.stderr).expect("text").contains("cannot write"));
}

#[test]
fn wrong_input_is_explained_on_standard_error_with_exit_2() {
    for (set, expected) in [
        ("engine.max_num_seq=3", "max_num_seq"),
        ("arrivals.poisson.rate_per_s=-1", "rate_per_s"),
        ("arrivals.poisson.rate_per_s=\"fast\"", "rate_per_s"),
        ("nonsense", "nonsense"),
    ] {
        let text = stderr_of_failure(&["run", "chat-h100", "--no-files", "--set", set], 2);
        assert!(text.contains(expected) && !text.contains("panicked"), "{set}: {text}");
    }
    let text = stderr_of_failure(&["run", "chat-h1000"], 2);
    assert!(text.contains("chat-h100"), "{text}");
    stderr_of_failure(&["explain", "worked-example"], 2);
    stderr_of_failure(&["run", "chat-h100", "--threads", "0"], 2);
}

/// 31,399 blocks of 16 tokens on each of eight ranks.
#[test]
fn explain_tells_what_ranks_have_each_and_together() {
    let text = stdout(&["explain", "dp-attention", "--quiet", "--no-files"]);
    for words in [
        "H200 SXM 141 GB x8 (data-parallel ranks), vllm 0.23",
        "with 1/8 of what the ranks share",
        "GPU KV cache size: 502,384 tokens",
        "(each of 8 ranks; 4,019,072 tokens over all of them)",
        "8 x decode, batch 64",
        "8 ranks step together",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    let json = stdout(&["explain", "dp-attention", "--quiet", "--no-files", "--format", "json"]);
    let json: Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(
        (&json["data_parallel_ranks"], &json["memory"]["kv_cache_tokens"]),
        (&8.into(), &502_384.into())
    );
}

#[test]
fn explain_prints_what_vllm_logs() {
    let text = stdout(&["explain", "chat-h100", "--quiet", "--no-files"]);
    for part in
        ["GPU KV cache size: ", "Maximum concurrency for 131,072 tokens per request: ", "weight streaming"]
    {
        assert!(text.contains(part), "`{part}` is missing in\n{text}");
    }
    let json = stdout(&["explain", "chat-h100", "--quiet", "--no-files", "--format", "json"]);
    let explanation: Value = serde_json::from_str(&json).expect("JSON");
    assert!(explanation["memory"]["kv_cache_tokens"].as_u64().is_some_and(|tokens| tokens > 100_000));
}

#[test]
fn a_plan_answers_with_a_table_files_and_an_exit_code() {
    let out = scratch("plan");
    let folder = out.to_str().expect("a readable path");
    let users = ["plan", "--users", "500", "--think-time-s", "30", "--gpu", "h100-sxm,h200-sxm", "--tp", "1"];
    let output = knee(&[&users[..], &["--out", folder]].concat()).assert().success().get_output().clone();
    let text = String::from_utf8(output.stdout).expect("text");
    assert!(text.starts_with("ASSUMED, because nothing was said: chat"), "{text}");
    assert!(text.contains("500 users who think 30 s") && text.contains("GPUs"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 120), "{text}");
    for name in ["summary.json", "plan.csv", "cost.svg", "cost.png", "manifest.json"] {
        assert!(out.join(name).is_file(), "{name}");
    }
    let json = stdout(&[&users[..], &["--no-files", "--quiet", "--format", "json"]].concat());
    assert_eq!(std::fs::read_to_string(out.join("summary.json")).expect("a file"), json);
    let plan: Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(plan["candidates"].as_array().map(Vec::len), Some(2));

    let impossible = ["plan", "chat-h100", "--gpu", "h100-sxm", "--tp", "1", "--no-files", "--quiet"];
    let impossible = [&impossible[..], &["--set", "class.chat.slo={ttft_p99_ms=1}"]].concat();
    let output = knee(&impossible).assert().code(1).get_output().clone();
    assert!(String::from_utf8(output.stdout).expect("text").contains("fails without any load"));

    for (wrong, expected) in [
        (&["plan", "--gpu", "l4"][..], "no demand"),
        (&["plan", "--users", "500"], "--think-time-s"),
        (&["plan", "--rate", "-5"], "-5"),
        (&["plan", "--rate", "5", "--template", "talk"], "there are: chat, code"),
        (&["plan", "--rate", "5", "--dtype", "fp9"], "no weight dtype `fp9`"),
        (&["plan", "--rate", "5", "--vary", "engine.max_num_seqs"], "expected key=value"),
    ] {
        let text = stderr_of_failure(wrong, 2);
        assert!(text.contains(expected), "{wrong:?}: {text}");
    }
}

#[test]
fn everything_listed_can_be_shown() {
    for (kind, one) in [
        ("hardware", "h100-sxm"),
        ("models", "llama-3.1-8b"),
        ("engines", "vllm"),
        ("profiles", "h100-sxm-vllm"),
        ("scenarios", "chat-h100"),
    ] {
        let names = stdout(&["list", kind]);
        assert!(names.lines().any(|name| name == one), "{kind}: {names}");
        for name in names.lines() {
            assert!(!stdout(&["show", kind, name]).trim().is_empty(), "{kind} {name}");
        }
    }
    let text = stderr_of_failure(&["show", "hardware", "h100"], 2);
    assert!(text.contains("h100-sxm"), "{text}");
}

#[test]
fn a_shown_scenario_is_a_scenario() {
    let path = scratch("shown").join("mine.toml");
    std::fs::write(&path, stdout(&["show", "scenario", "worked-example"])).expect("a file");
    let path = path.to_str().expect("a readable path");
    stdout(&["run", path, "--quiet", "--no-files", "--set", "run.replications=1"]);
}

#[test]
fn the_end_of_the_clock_is_an_error_and_not_a_short_run() {
    let rates = ["1e-9", "3e-9"].map(|rate| format!("arrivals.poisson.rate_per_s={rate}"));
    for rate in &rates {
        let run = ["run", "mm1", "--no-files", "--set", "run.requests=200", "--set", rate];
        let text = stderr_of_failure(&run, 2);
        assert!(text.contains("584 years"), "{text}");
    }
    let think = "arrivals.closed.think_time_s=1e9";
    let one = ["--set", "arrivals.closed.users=1", "--set", "run.requests=200", "--set", think];
    let text = stderr_of_failure(&[&["run", "mm1", "--no-files"], &one[..]].concat(), 2);
    assert!(text.contains("584 years"), "{text}");
}

#[test]
fn a_loop_that_takes_no_time_is_refused() {
    let closed = ["--set", "arrivals.closed.users=10", "--set", "run.duration_s=10"];
    for what in ["engine.queue_limit=0", "engine.service_time.constant.value_s=0"] {
        let run = [&["run", "mm1", "--no-files"], &closed[..], &["--set", what]].concat();
        let text = stderr_of_failure(&run, 2);
        assert!(text.contains("takes no time"), "{text}");
    }
}

#[test]
fn a_short_run_neither_condemns_nor_promises() {
    let short = ["run", "chat-h100", "--no-files", "--quiet", "--set", "run.requests=60"];
    let text = stdout(&[&short[..], &["--set", "run.replications=1"]].concat());
    assert!(text.contains("stable: 12 req/s is below the saturated"), "{text}");
    assert!(!text.contains("met, with confidence"), "{text}");
}

#[test]
fn a_point_that_does_not_fit_does_not_cost_the_others() {
    let model = ["--set", "model.name=llama-3.1-70b", "--set", "run.requests=200"];
    let axis = ["--set", "sweep={\"engine.tensor_parallel_size\"=[1,4]}"];
    let output =
        knee(&[&["sweep", "chat-h100", "--no-files", "--format", "csv"], &model[..], &axis].concat());
    let output = { output }.assert().success().get_output().clone();
    let (rows, notes) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(rows.lines().count(), 2, "{rows}");
    assert!(notes.contains("tensor_parallel_size = 1: llama-3.1-70b in bf16 does not fit"), "{notes}");
}

#[test]
fn folders_that_are_none_are_refused_before_the_work() {
    let text = stderr_of_failure(&["run", "mm1", "--no-files", "--calibration", "/nowhere"], 2);
    assert!(text.contains("/nowhere"), "{text}");
    let file = scratch("cwd").join("a-file");
    std::fs::write(&file, "").expect("a file");
    let text = stderr_of_failure(&["run", "mm1", "--out", file.to_str().expect("UTF-8")], 2);
    assert!(text.contains("is not a folder"), "{text}");
}

#[test]
fn the_keys_of_a_scenario_are_listed_and_shown() {
    let all = stdout(&["list", "keys"]);
    assert!(all.contains("arrivals.poisson.rate_per_s") && all.contains("lognormal"), "{all}");
    assert!(stdout(&["show", "key", "engine.max_num_seqs"]).contains("sequences that run at once"));
    assert!(stderr_of_failure(&["show", "key", "engine.nope"], 2).contains("engine.nope"));
}

#[test]
fn compare_tells_better_from_no_difference() {
    let base = ["compare", "worked-example", "--quiet", "--no-files", "--format", "json"];
    let slower = [&base[..], &["--set", "run.requests=2000", "--set-b", "deployment.replicas=2"]].concat();
    let summary: Value = serde_json::from_str(&stdout(&slower)).expect("JSON");
    let change = |metric: &str| {
        let rows = summary["rows"].as_array().expect("rows");
        rows.iter().find(|row| row["metric"] == metric).map(|row| row["change"].clone())
    };
    assert_eq!(change("E2E mean"), Some("better".into()), "{summary:#}");
    stderr_of_failure(&base, 2);
}

#[test]
fn capacity_without_objectives_says_what_is_missing() {
    let text = stderr_of_failure(&["capacity", "mm1", "--quiet", "--no-files"], 2);
    assert!(text.contains("slo = { ttft_p99_ms = 500 }"), "{text}");
}
