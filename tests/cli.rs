//! The binary as its users meet it: commands, streams, files and exit codes.

use std::path::{Path, PathBuf};

use assert_cmd::Command;
use knee::calibrate::Parameter;
use knee::catalog::{Catalog, Dtype, ModelKind, Standing, Weights};
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
fn what_cannot_be_written_is_refused_before_the_work() {
    let dir = scratch("no-folder");
    let file = dir.join("file");
    std::fs::write(&file, "").expect("a file");
    let below = file.join("below");
    let (file, below) = (file.to_str().expect("a path"), below.to_str().expect("a path"));
    // A run of years: it would not end in time.
    let long = ["--set", "run.requests=1000000000"];
    let set = dir.join("set.toml");
    std::fs::write(&set, "").expect("a file");
    let set = set.to_str().expect("a path");
    for out in [file, below] {
        for command in [
            &["run", "mm1", "--out", out, long[0], long[1]][..],
            &["sweep", "mm1", "--out", out, long[0], long[1]],
            &["capacity", "chat-h100", "--out", out, long[0], long[1]],
            &["compare", "mm1", "--out", out, "--set-b", "engine.servers=2", long[0], long[1]],
            &["plan", "--rate", "5", "--out", out],
            &["explain", "chat-h100", "--out", out],
            &["validate", "--out", out],
            &["import", "nowhere.json", "--out", out],
        ] {
            let text = stderr_of_failure(command, 2);
            assert!(text.contains(&format!("cannot write into {out}")), "{command:?}: {text}");
            assert!(text.contains("--no-files"), "{text}");
        }
    }
    // Neither a folder, nor a device, nor a place that does not exist can become a profile.
    for output in [dir.to_str().expect("a path"), "/dev/null", below] {
        let text = stderr_of_failure(&["calibrate", set, "-o", output], 2);
        assert!(text.contains(&format!("cannot write {output}")), "{text}");
    }
}

#[cfg(unix)]
#[test]
fn what_would_be_waited_for_for_ever_is_refused() {
    let dir = scratch("pipes");
    let pipe = dir.join("pipe");
    let _ = std::fs::remove_file(&pipe);
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().expect("mkfifo").success());
    let name = pipe.to_str().expect("a path");
    let trace = format!("arrivals.trace.file={name:?}");
    let pairs = format!("class=[{{name=\"a\",lengths={{file={name:?}}}}}]");
    let profile = format!("hardware.profile={:?}", format!("{name}.toml"));
    let _ = std::fs::remove_file(dir.join("pipe.toml"));
    std::os::unix::fs::symlink(&pipe, dir.join("pipe.toml")).expect("a link");
    for command in [
        &["run", name, "--no-files"][..],
        &["run", "chat-h100", "--no-files", "--set", &trace],
        &["run", "chat-h100", "--no-files", "--set", &pairs],
        &["run", "chat-h100", "--no-files", "--set", &profile],
        &["import", name, "--no-files"],
        &["validate", name, "--no-files"],
    ] {
        let text = stderr_of_failure(command, 2);
        assert!(text.contains("not a regular file"), "{command:?}: {text}");
    }
    // What somebody writes at this moment ends.
    let piped = knee(&["import", "/dev/stdin", "--no-files"])
        .write_stdin("arrival_s,input_tokens,output_tokens\n0,10,10\n1,10,10\n")
        .assert()
        .success();
    assert!(String::from_utf8_lossy(&piped.get_output().stdout).contains("2 requests"));
}

#[test]
fn refused_requests_are_no_backlog() {
    // Twenty that are served, then two hundred that are refused within 20 ms, all of them still in the front end.
    let mut trace = "arrival_s,input_tokens,output_tokens\n".to_owned();
    (0..20).for_each(|i| trace += &format!("{},100,10\n", f64::from(i) * 0.5));
    (0..200).for_each(|i| trace += &format!("{},999999,10\n", 10.0 + f64::from(i) * 1e-4));
    let path = scratch("refused").join("trace.csv");
    std::fs::write(&path, trace).expect("a file");
    let file = format!("arrivals.trace.file={:?}", path.to_str().expect("a path"));
    let run = ["run", "chat-h100", "--quiet", "--no-files", "--format", "json", "--set", &file];
    let summary: Value = serde_json::from_str(&stdout(&run)).expect("JSON");
    assert_eq!((&summary["failed"], &summary["completed"]), (&200.into(), &20.into()));
    assert_eq!(summary["stability"], "stable", "{}", summary["stability_reason"]);
}

#[test]
fn refused_requests_are_not_too_much_load() {
    // A sixth of the prompts is longer than the context. What is left of 72 req/s, 60, is below the saturated
    // throughput of 65; all of it together is not.
    let mut run = vec!["run", "chat-h100", "--quiet", "--no-files", "--format", "json"];
    let sets = ["engine.max_model_len=1024", "arrivals.poisson.rate_per_s=72", "run.requests=6000"];
    run.extend(sets.iter().flat_map(|set| ["--set", set]));
    let summary: Value = serde_json::from_str(&stdout(&run)).expect("JSON");
    assert!(summary["failed"].as_u64() > Some(3_000), "{}", summary["failed"]);
    assert_eq!(summary["stability"], "stable", "{}", summary["stability_reason"]);
}

#[test]
fn a_fit_does_not_overwrite_what_it_reads() {
    let folder = scratch("fit-over-set");
    let set = folder.join("set.toml");
    let text = "[model]\nname = 'llama-3.1-8b'\n[hardware]\ngpu = 'h100-sxm'\n[engine]\nname = 'vllm'\n\
                [[measurement]]\nsource = 'a log'\n[[measurement.point]]\nconcurrency = 4\n\
                input_tokens_mean = 500\noutput_tokens_mean = 100\n";
    let path = set.to_str().expect("a path");
    std::fs::write(&set, format!("{text}tpot_mean_ms = 7\n")).expect("a file");
    let error = stderr_of_failure(&["calibrate", path, "-o", path], 2);
    assert!(error.contains("one of the files that are read"), "{error}");
    assert!(std::fs::read_to_string(&set).expect("still there").contains("tpot_mean_ms = 7"));
    // Nor is nothing fitted, or what cannot be.
    let out = folder.join("profile.toml");
    let output = out.to_str().expect("a path");
    for (more, expected) in [
        ("", "nothing was measured"),
        ("ttft_mean_ms = 9\ninput_tokens_min = 900\n", "expected input_tokens_min ≤ mean ≤ max"),
        ("ttft_mean_ms = 9\ncompleted = 1000000000\n", "expected at most 10000000"),
    ] {
        std::fs::write(&set, format!("{text}{more}")).expect("a file");
        let error = stderr_of_failure(&["calibrate", path, "-o", output], 2);
        assert!(error.contains(expected), "{error}");
        assert!(stderr_of_failure(&["validate", path, "--no-files"], 2).contains(expected));
    }
}

#[test]
fn explain_counts_the_steps_of_ranks_as_they_are() {
    let text = stdout(&["explain", "dp-attention", "--quiet", "--no-files"]);
    let row = text.lines().find(|line| line.starts_with("8 x decode, batch 64 ")).expect("a row");
    let number = |at: usize| -> f64 {
        row.split_whitespace().nth(at).expect("a column").replace(',', "").parse().expect("a number")
    };
    // After the five words of the name: tokens, milliseconds, six parts, tokens a second.
    let (tokens, step_ms, per_s) = (number(5), number(6), number(13));
    assert!((per_s / (tokens / step_ms * 1e3) - 1.0).abs() < 0.01, "{row}");
}

#[test]
fn a_fleet_of_ten_thousand_is_run() {
    let fleet = ["--set", "deployment.replicas=10000", "--set", "run.requests=50"];
    let run = [&["run", "mm1", "--quiet", "--no-files", "--format", "json"], &fleet[..]].concat();
    let summary: Value = serde_json::from_str(&stdout(&run)).expect("JSON");
    assert_eq!(summary["stability"], "stable", "{}", summary["stability_reason"]);
}

#[test]
fn capacity_says_what_it_does_not_follow() {
    let text = stderr_of_failure(&["capacity", "daily-profile", "--no-files", "--quiet"], 2);
    assert!(text.contains("their rate varies over time") && text.contains("knee plan"), "{text}");
    let capacity = ["capacity", "worked-example", "--no-files", "--quiet", "--width", "20%"];
    let short = ["--set", "run.requests=100", "--set", "class.0.slo={e2e_p99_ms=20000}"];
    let text = stdout(&[&capacity[..], &short].concat()).replace('\n', " ");
    assert!(text.contains("runs of run.requests = 100 are too short"), "{text}");
}

#[test]
fn what_cannot_be_read_is_not_listed() {
    let dir = scratch("unreadable");
    std::fs::create_dir_all(dir.join("profiles")).expect("a folder");
    std::fs::write(dir.join("profiles/mine.toml"), "gpu = 3").expect("a file");
    let list = ["list", "profiles", "--calibration", dir.to_str().expect("a path")];
    let output = knee(&list).assert().success().get_output().clone();
    let (names, notes) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(names.contains("h100-sxm-vllm") && !names.contains("mine"), "{names}");
    assert!(notes.contains("left out: ") && notes.contains("line 1"), "{notes}");
}

#[test]
fn a_set_that_is_not_there_is_no_scenario() {
    let output = scratch("cwd").join("profile.toml");
    let output = output.to_str().expect("a path");
    for command in [&["validate", "nope", "--no-files"][..], &["calibrate", "nope", "-o", output]] {
        let text = stderr_of_failure(command, 2);
        assert!(text.contains("cannot read the measurement set nope"), "{text}");
    }
}

#[test]
fn explain_counts_the_tokens_that_are_kept() {
    let explain = ["explain", "speculative", "--quiet", "--no-files"];
    let text = stdout(&explain);
    let json: Value =
        serde_json::from_str(&stdout(&[&explain[..], &["--format", "json"]].concat())).expect("JSON");
    let step = &json["steps"][1];
    let ms = |key: &str| step[key].as_f64().expect("a number");
    // Eight sequences get 2.4 tokens each, whatever was drafted.
    let per_s = 8.0 * 2.4 / ((ms("step_ms") + ms("draft_ms")) / 1e3);
    let row = text.lines().find(|line| line.starts_with("decode, batch 8 ")).expect("a row");
    let shown = row.split_whitespace().nth(11).expect("a column").replace(',', "");
    let shown: f64 = shown.parse().unwrap_or_else(|_| panic!("{row}"));
    assert!((shown / per_s - 1.0).abs() < 0.01, "{row}: {per_s}");
}

#[test]
fn a_metric_that_is_none_is_found_before_the_work() {
    let long = ["sweep", "mm1", "--no-files", "--set", "run.requests=1000000000"];
    for (options, expected) in [
        (&["--top", "3", "--by", "e2e_mean"][..], "did you mean `e2e_mean_ms`?"),
        (&["--pareto", "e2e_mean_ms,completed_per_second"], "did you mean `completed_per_s`?"),
        (&["--top", "3", "--by", "nonsense"], "there are: arrivals.poisson.rate_per_s"),
    ] {
        let text = stderr_of_failure(&[&long[..], options].concat(), 2);
        assert!(text.contains(expected), "{options:?}: {text}");
    }
}

#[test]
fn the_best_points_are_marked_for_programs_too() {
    let ranked = ["--top", "2", "--by", "e2e_p99_ms", "--pareto", "completed_per_s,e2e_p99_ms"];
    let csv = stdout(&with("sweep", &[&["--format", "csv"][..], &ranked].concat()));
    let mut reader = csv::Reader::from_reader(csv.as_bytes());
    let header = reader.headers().expect("a header").clone();
    let column = |name: &str| header.iter().position(|one| one == name).expect("a column");
    let (rank, pareto, state) = (column("rank"), column("pareto"), column("state"));
    let rows: Vec<csv::StringRecord> = reader.records().map(|row| row.expect("a row")).collect();
    // The lower the load, the faster; and throughput is bought with latency all along the curve.
    let ranks: Vec<&str> = rows.iter().map(|row| &row[rank]).collect();
    assert!(ranks[0] == "1" && ranks[1] == "2" && ranks[2..].iter().all(|rank| rank.is_empty()), "{csv}");
    assert!(rows.iter().any(|row| &row[pareto] == "true"), "{csv}");
    for row in rows.iter().filter(|row| &row[pareto] == "true") {
        assert_eq!(&row[state], "stable", "{csv}");
    }
    let json: Value =
        serde_json::from_str(&stdout(&with("sweep", &[&["--format", "json"][..], &ranked].concat())))
            .expect("JSON");
    for (point, row) in json["points"].as_array().expect("points").iter().zip(&rows) {
        assert_eq!(point["rank"].as_u64(), row[rank].parse().ok());
        assert_eq!(point["pareto"].to_string(), row[pareto]);
    }
    let plain = stdout(&with("sweep", &["--format", "csv"]));
    assert!(!plain.contains("pareto") && !plain.contains("rank"), "{plain}");
    let help = stdout(&["sweep", "--help"]);
    assert!(help.contains("meet their objectives"), "{help}");
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

/// A negative value is a value that is wrong, not an option that is not known.
#[test]
fn a_negative_value_is_told_as_one() {
    for (arguments, words) in [
        (&["plan", "--rate", "-1"][..], "expected a number above 0"),
        (&["plan", "--users", "-1", "--think-time-s", "3"], "expected a number above 0"),
        (&["plan", "--tp", "-2"], "-2 is not in 1..=4096"),
        (&["run", "chat-h100", "--seed", "-1"], "expected a whole number from 0 to 9223372036854775807"),
        (&["run", "chat-h100", "--threads", "-1"], "-1 is not in 1..=1024"),
        (&["run", "chat-h100", "--precision", "-5%"], "expected a share from 0.1% to 50%"),
        (&["plan", "--rate", "--users", "5"], "'--users' for '--rate"),
        (&["run", "-1"], "no scenario `-1`"),
        (&["calibrate", "x.toml", "-o", "y.toml", "--hold-out", "-1"], "`-1` is no rule for holding out"),
    ] {
        let text = stderr_of_failure(arguments, 2);
        assert!(text.contains(words) && !text.contains("unexpected argument"), "{arguments:?}: {text}");
    }
}

/// Every bound of a measured figure is told, with file, line and column.
#[test]
fn what_cannot_have_been_measured_is_told_with_its_bounds() {
    let folder = scratch("measured-bounds");
    let set = folder.join("set.toml");
    let file = folder.join("data.csv");
    let path = set.to_str().expect("a path");
    let head = "[model]\nname = 'llama-3.1-8b'\n[hardware]\ngpu = 'h100-sxm'\n[engine]\nname = 'vllm'\n[[measurement]]\n";
    let requests = "send_s,input_tokens,output_tokens,ttft_ms,e2e_ms\n0,10,10,20,100\n";
    let points = "concurrency,rate_per_s,input_tokens_mean,output_tokens_mean,ttft_mean_ms,ttft_p50_ms,ttft_p99_ms,e2e_mean_ms\n";
    for (kind, text, words) in [
        (
            "requests",
            format!("{requests}1e12,10,10,20,100\n"),
            "line 3, column `send_s`: found `1e12`, expected seconds within 1e9",
        ),
        (
            "requests",
            format!("{requests}1,10,10,1e300,1e301\n"),
            "`ttft_ms`: found `1e300`, expected milliseconds from 0.001 to 1e9",
        ),
        (
            "requests",
            format!("{requests}1,10,10,20,1e300\n"),
            "`e2e_ms`: found `1e300`, expected milliseconds from ttft_ms to 1e9",
        ),
        (
            "requests",
            format!("{requests}1,4e9,10,20,100\n"),
            "`input_tokens`: found `4e9`, expected a whole number from 1 to 1e9",
        ),
        (
            "points",
            format!("{points}4,,10,10,1e300,,,\n"),
            "`ttft_mean_ms`: found `1e300`, expected a number of at least 0.001 and at most 1000000000",
        ),
        (
            "points",
            format!("{points}4,,10,10,1e-300,,,\n"),
            "`ttft_mean_ms`: found `1e-300`, expected a number of at least 0.001",
        ),
        (
            "points",
            format!("{points}4,,10,10,50,,,20\n"),
            "line 2: ttft_mean_ms = 50, e2e_mean_ms = 20; expected ttft_mean_ms ≤ e2e_mean_ms",
        ),
        (
            "points",
            format!("{points}4,,10,10,,50,20,\n"),
            "line 2: ttft_p50_ms = 50, ttft_p99_ms = 20; expected ttft_p50_ms ≤ ttft_p99_ms",
        ),
        (
            "points",
            format!("{points}4,,0.5,10,50,,,\n"),
            "`input_tokens_mean`: found `0.5`, expected a number of at least 1",
        ),
        (
            "points",
            "concurrency,input_tokens_mean,output_tokens_mean,tpot_mean_ms\n4,10,1,5\n".to_owned(),
            "line 2: tpot_mean_ms of answers of 1 token; expected 2 tokens or more, or no TPOT",
        ),
        (
            "points",
            format!("{points},1e-300,10,10,50,,,\n"),
            "`rate_per_s`: found `1e-300`, expected a number of at least 0.000001",
        ),
    ] {
        std::fs::write(&file, text).expect("a file");
        std::fs::write(&set, format!("{head}{kind} = 'data.csv'\n")).expect("a file");
        let error = stderr_of_failure(&["validate", path, "--no-files"], 2);
        assert!(error.contains(words) && error.contains("data.csv"), "{error}");
        assert!(error.len() < 400, "{error}");
    }
    // A set of nothing, and what is no text.
    std::fs::write(&set, format!("{head}name = 'none'\npoint = []\n")).expect("a file");
    let error = stderr_of_failure(&["validate", path, "--no-files"], 2);
    assert!(error.contains("none: nothing was measured"), "{error}");
    std::fs::write(&set, [0xff, 0xfe]).expect("a file");
    for command in ["validate", "run"] {
        let error = stderr_of_failure(&[command, path, "--no-files"], 2);
        assert!(error.contains("it is in UTF-16; expected text in UTF-8"), "{error}");
    }
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

/// All tables of a profile in the order of its file, by name or by path; it took seconds to ask for every pair of GPU
/// and engine.
#[test]
fn a_profile_is_shown_as_its_file_has_it() {
    let shown = stdout(&["show", "profile", "h100-sxm-vllm"]);
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("calibration/profiles/h100-sxm-vllm.toml");
    let text = std::fs::read_to_string(&file).expect("a profile");
    assert_eq!(shown.matches("h100-sxm-vllm: vllm").count(), text.matches("[[values]]").count());
    assert_eq!(stdout(&["show", "profile", file.to_str().expect("a path")]), shown);
    let error = stderr_of_failure(&["show", "profile", "h100-sxm-vlm"], 2);
    assert!(error.contains("did you mean `h100-sxm-vllm`"), "{error}");
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

#[test]
fn commands_do_not_replace_each_others_files() {
    let dir = scratch("cwd").join("output/worked-example");
    for command in ["run", "capacity"] {
        let arguments = [command, "worked-example", "--quiet", "--set", "run.requests=3000"];
        knee(&arguments).assert().success();
    }
    for command in ["run", "capacity"] {
        let text = std::fs::read_to_string(dir.join(command).join("summary.json")).expect("a file");
        let summary: Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(summary["kind"], command);
    }
}

#[test]
fn the_names_of_result_files_are_known_before_the_work() {
    let dir = scratch("names");
    let out = dir.to_str().expect("a path");
    let grid = "sweep={\"engine.max_num_seqs\"=[4,8],\"arrivals.poisson.rate_per_s\"=[1,2]}";
    for command in [
        &["run", "worked-example", "--set", "run.requests=2000"][..],
        &["sweep", "worked-example", "--set", "run.requests=2000", "--parquet"],
        &["sweep", "chat-h100", "--set", "run.requests=200", "--set", grid],
        &["capacity", "worked-example"],
        &["compare", "worked-example", "--set-b", "deployment.replicas=2"],
        &["plan", "--rate", "1", "--gpu", "h100-sxm"],
        &["explain", "chat-h100"],
        &["validate"],
    ] {
        knee(&[command, &["--quiet", "--out", out]].concat()).assert().success();
    }
    let known: Vec<String> = knee::report::files::names().collect();
    for entry in std::fs::read_dir(&dir).expect("a folder") {
        let name = entry.expect("an entry").file_name().to_string_lossy().into_owned();
        assert!(known.contains(&name), "{name}");
    }
}

#[test]
fn a_folder_in_place_of_a_result_is_found_before_the_work() {
    let dir = scratch("folder-as-file");
    let out = dir.to_str().expect("a path");
    for (name, command) in [
        ("latency.png", "sweep"),
        ("summary.json", "run"),
        ("capacity.svg", "capacity"),
        ("manifest.json", "run"),
    ] {
        std::fs::create_dir_all(dir.join(name)).expect("a folder");
        let long = [command, "worked-example", "--out", out, "--set", "run.requests=1000000000"];
        let text = stderr_of_failure(&long, 2);
        assert!(text.contains(&format!("{name} in it is a folder")), "{text}");
        std::fs::remove_dir(dir.join(name)).expect("the folder");
    }
}

#[test]
fn an_estimate_is_shown_as_a_profile_that_says_the_same() {
    let dir = scratch("estimate");
    std::fs::create_dir_all(dir.join("profiles")).expect("a folder");
    for (gpu, engine) in [("l40s", "vllm"), ("h200-sxm", "tensorrt-llm"), ("mi300x", "sglang")] {
        let name = format!("{gpu}-{engine}-estimated");
        let text = stdout(&["show", "profile", &name]);
        std::fs::write(dir.join("profiles").join(format!("{gpu}-{engine}.toml")), text).expect("written");
        let (shipped, copied) = (Catalog::new(None), Catalog::new(Some(&dir)));
        let hardware = shipped.hardware(gpu).expect("a GPU");
        for weights in
            ModelKind::ALL.into_iter().flat_map(|kind| Dtype::ALL.map(|dtype| Weights { dtype, kind }))
        {
            let of = |catalog: &Catalog, name: &str| {
                let profile = catalog.profile(name, &hardware, engine, None, weights, Path::new(""));
                let profile = profile.expect("a profile");
                assert_eq!(profile.standing, Standing::Estimated);
                profile.values.first().cloned().expect("values")
            };
            let (estimate, copy) = (of(&shipped, &name), of(&copied, "auto"));
            assert_eq!((estimate.models, copy.models), (Some(weights.kind), Some(weights.kind)));
            for parameter in Parameter::of_values(weights.kind.has_experts()) {
                let (a, b) = (parameter.value_in(&estimate), parameter.value_in(&copy));
                assert!(
                    (a - b).abs() <= 1e-9 * a.abs(),
                    "{name} {weights:?} {}: {a} and {b}",
                    parameter.key()
                );
            }
        }
    }
    let output = knee(&["list", "profiles"]).assert().success().get_output().clone();
    assert!(String::from_utf8_lossy(&output.stderr).contains("estimate"), "estimates are mentioned");
    assert!(!String::from_utf8_lossy(&output.stdout).contains("estimate"), "names only");
}

#[test]
fn compare_says_what_was_changed_and_its_verdicts_agree() {
    let sets = ["--set-b", "engine.max_num_seqs=16", "--set-b", "arrivals.poisson.rate_per_s=12.0"];
    let base = ["compare", "chat-h100", "--quiet", "--no-files", "--set", "run.requests=2000"];
    let text = stdout(&[&base[..], &sets].concat());
    assert!(text.starts_with("A -> B           engine.max_num_seqs: 256 -> 16\n\n"), "{text}");
    let summary: Value =
        serde_json::from_str(&stdout(&[&base[..], &sets, &["--format", "json"]].concat())).expect("JSON");
    let expected = serde_json::json!([{ "key": "engine.max_num_seqs", "a": "256", "b": "16" }]);
    assert_eq!(summary["differences"], expected);
    let change = |metric: &str| {
        let rows = summary["rows"].as_array().expect("rows");
        rows.iter().find(|row| row["metric"] == metric).map(|row| row["change"].clone())
    };
    assert!(change("output").is_some());
    assert_eq!(change("output"), change("cost of output"), "{summary:#}");

    let gpus = stdout(&[&base[..], &["--set-b", "hardware.gpu=l40s"]].concat());
    let gpus = gpus.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in [
        "different step times: A h100-sxm-vllm (calibrated on qwen3-14b, not on llama-3.1-8b, under vllm 0.23), B \
         l40s-vllm-estimated (estimated: kernels by tables of this GPU, host times are priors)",
        "those of two do not cancel",
    ] {
        assert!(gpus.contains(part), "{gpus}");
    }
    assert!(!text.contains("different step times"), "{text}");

    let kinds = ["--set-b", "arrivals.constant.rate_per_s=12", "--set-b", "class.chat.slo.ttft_p99_ms=600"];
    let text = stdout(&[&base[..], &kinds].concat());
    for line in [
        "arrivals.poisson.rate_per_s: 12 -> not set",
        "arrivals.constant.rate_per_s: not set -> 12",
        "class.chat.slo.ttft_p99_ms: 500 -> 600",
    ] {
        assert!(text.contains(line), "`{line}` is not in\n{text}");
    }
}

#[test]
fn a_plan_says_what_its_rows_rest_on_and_says_reasons_once() {
    let plan = ["plan", "--rate", "2", "--gpu", "l40s,h100-sxm", "--no-files", "--quiet"];
    let text = stdout(&[&plan[..], &["--tp", "1,2", "--model", "llama-3.1-8b,llama-3.1-70b"]].concat());
    let row = |start: &str| text.lines().find(|line| line.starts_with(start)).unwrap_or_default();
    assert!(row("l40s bf16 ").contains(" estimated "), "{text}");
    assert!(row("h100-sxm bf16 ").contains(" calibrated "), "{text}");
    assert!(text.contains("calibrated and estimated step times are ranked together"), "{text}");
    // The cheapest is an estimate: the first that is not stands beside it.
    assert!(
        text.contains("rests on an estimate of its step times; cheapest that does not: h100-sxm"),
        "{text}"
    );
    let misfits = "llama-3.1-70b, GiB of memory missing on each GPU: l40s x1 92.1, x2 26.8; h100-sxm x1 63.1";
    assert!(text.replace("\n                 ", " ").contains(misfits), "{text}");
    let json = stdout(&[&plan[..], &["--tp", "1", "--format", "json"]].concat());
    let json: Value = serde_json::from_str(&json).expect("JSON");
    let of_l40s = json["candidates"].as_array().and_then(|all| all.iter().find(|one| one["gpu"] == "l40s"));
    let of_l40s = of_l40s.expect("a candidate");
    assert_eq!(
        (&of_l40s["profile"], &of_l40s["profile_standing"]),
        (&"l40s-vllm-estimated".into(), &"estimated".into())
    );

    // Users of a scenario think as long as it says.
    let users =
        ["plan", "closed-loop", "--users", "20", "--gpu", "h100-sxm", "--tp", "1", "--no-files", "--quiet"];
    assert!(stdout(&users).contains("20 users who think 10 s"));
}

#[test]
fn a_manifest_and_a_title_say_what_was_changed() {
    let out = scratch("changed");
    let folder = out.to_str().expect("a path");
    let run =
        ["run", "chat-h100", "--out", folder, "--set", "run.requests=500", "--set", "run.replications=1"];
    let manifest = || -> Value {
        serde_json::from_str(&std::fs::read_to_string(out.join("manifest.json")).expect("a file"))
            .expect("JSON")
    };
    let output = knee(&[&run[..], &["--seed", "3", "--threads", "1"]].concat()).assert().success();
    let text = String::from_utf8_lossy(&output.get_output().stdout).into_owned();
    // Neither load, length nor seed is what the name speaks of.
    assert!(text.starts_with("chat on one H100: "), "{text}");
    let options = ["--set run.requests=500", "--set run.replications=1", "--seed 3"];
    assert_eq!(manifest()["options"], serde_json::json!(options));
    let again = knee(&[&run[..], &["--seed", "3"]].concat()).assert().success().get_output().clone();
    assert!(!String::from_utf8_lossy(&again.stderr).contains("replace"), "{again:?}");

    let other = knee(&[&run[..], &["--set", "hardware.gpu=l40s"]].concat()).assert().success();
    let (text, notes) = (
        String::from_utf8_lossy(&other.get_output().stdout).into_owned(),
        String::from_utf8_lossy(&other.get_output().stderr).into_owned(),
    );
    assert!(text.starts_with("chat on one H100, with hardware.gpu = l40s: "), "{text}");
    assert!(notes.contains("they replace the results of other settings"), "{notes}");
    assert_eq!(manifest()["scenario"], "chat on one H100, with hardware.gpu = l40s");
    // The same value once more changes nothing; a name of one's own is kept.
    let same = ["run", "chat-h100", "--no-files", "--quiet", "--set", "run.requests=500"];
    let text = stdout(&[&same[..], &["--set", "engine.tensor_parallel_size=1"]].concat());
    assert!(text.starts_with("chat on one H100: "), "{text}");
    let text = stdout(&[&same[..], &["--set", "hardware.gpu=l40s", "--set", "name=mine"]].concat());
    assert!(text.starts_with("mine: "), "{text}");

    let plan = ["plan", "--rate", "1", "--gpu", "h100-sxm,l40s", "--tp", "1", "--out", folder];
    knee(&plan).assert().success();
    assert_eq!(manifest()["options"], serde_json::json!(["--rate 1", "--gpu h100-sxm,l40s", "--tp 1"]));
}

/// TensorRT-LLM computes a prompt in one step, and refuses one that is longer than a step.
#[test]
fn prompts_that_no_load_makes_shorter_are_told_at_once() {
    let with = |command: &'static str, more: &[&'static str]| {
        let mut all = vec![command, "chat-h100", "--no-files", "--quiet"];
        for set in [
            "engine.name=tensorrt-llm",
            "engine.version=auto",
            "engine.enable_chunked_prefill=false",
            "engine.max_num_batched_tokens=16",
            "engine.max_num_seqs=16",
            "run.requests=1000",
        ] {
            all.extend(["--set", set]);
        }
        all.extend(more);
        all
    };
    let text = stdout(&with("explain", &[]));
    assert!(
        text.contains("REFUSED whatever the load: ") && text.contains("max_num_batched_tokens"),
        "{text}"
    );
    let json: Value = serde_json::from_str(&stdout(&with("explain", &["--format", "json"]))).expect("JSON");
    assert!(json["refused_share"].as_f64().is_some_and(|share| share > 0.98), "{}", json["refused_share"]);
    let output = knee(&with("capacity", &[])).assert().code(1).get_output().clone();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("of the requests are refused at any load"), "{text}");
    // One load says so, no search for smaller ones.
    assert_eq!(text.lines().filter(|line| line.ends_with("refused at any load")).count(), 1, "{text}");
    assert!(text.contains("capacity         none: ") && !text.contains("TPOT p99 ≤"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 120), "{text}");
}

#[test]
fn more_blocks_than_memory_are_said_in_words() {
    let explain = ["explain", "chat-h100", "--no-files", "--set", "engine.gpu_memory_utilization=0.2"];
    let set = ["--set", "engine.num_gpu_blocks_override=100000"];
    let output = knee(&[&explain[..], &set].concat()).assert().success().get_output().clone();
    let (text, warnings) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(text.contains("nothing is left: 0.77 GiB too little") && !text.contains(" -0.77"), "{text}");
    assert!(text.contains("100,000 blocks take 195.31 GiB, 195.31 GiB more than is left"), "{text}");
    assert!(warnings.contains("no engine could start like that"), "{warnings}");
    let fits = ["explain", "chat-h100", "--no-files", "--set", "engine.num_gpu_blocks_override=20000"];
    let output = knee(&fits).assert().success().get_output().clone();
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(text.matches("num_gpu_blocks_override").count(), 1, "only in the title:\n{text}");
    assert!(!String::from_utf8_lossy(&output.stderr).contains("warning"));
}

#[test]
fn a_run_that_completes_nothing_is_not_called_stable() {
    for scenario in ["chat-h100", "mm1", "closed-loop"] {
        let tiny = ["run", scenario, "--no-files", "--quiet", "--set", "run.duration_s=0.0005"];
        let text = stdout(&tiny);
        assert!(text.contains("undecided: no request completed in the window"), "{text}");
    }
}

#[test]
fn formats_and_names_that_a_command_does_not_take_are_refused() {
    for command in ["capacity", "compare", "explain", "import"] {
        assert!(!stdout(&[command, "--help"]).contains("csv:"), "{command}");
        let text = stderr_of_failure(&[command, "chat-h100", "--format", "csv"], 2);
        assert!(text.contains("[possible values: table, json]"), "{text}");
    }
    for command in ["run", "sweep", "plan"] {
        assert!(stdout(&[command, "--help"]).contains("csv:"), "{command}");
    }
    for arguments in [
        &["sweep", "mm1", "--no-files", "--pareto", ","][..],
        &["sweep", "mm1", "--no-files", "--pareto", "e2e_p99_ms,"],
        &["plan", "--rate", "5", "--gpu", ","],
        &["plan", "--rate", "5", "--model", "llama-3.1-8b,,"],
        &["plan", "--rate", "5", "--dtype", ""],
        &["calibrate", "set.toml", "-o", "p.toml", "--fit", "memory,"],
    ] {
        let text = stderr_of_failure(arguments, 2);
        assert!(text.contains("a value is required"), "{arguments:?}: {text}");
    }
    let text = stderr_of_failure(&["plan", "--rate", "5", "--vary", "engine.max_num_seqs=1,"], 2);
    assert!(text.contains("expected key=value"), "{text}");
}

#[test]
fn what_several_sets_have_in_common_is_said_once() {
    let output = knee(&["validate", "--no-files"]).assert().success().get_output().clone();
    let notes = String::from_utf8_lossy(&output.stderr);
    let mut warnings: Vec<&str> = notes.lines().filter(|line| line.starts_with("warning")).collect();
    let all = warnings.len();
    warnings.sort_unstable();
    warnings.dedup();
    assert!(all > 0 && warnings.len() == all, "{notes}");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("qwen3.5-397b-a17b, deepseek-v3 on b200-sxm, profile b200-sxm-sglang"), "{text}");
}

/// An exit code of 2 without a word of why is no answer.
#[test]
fn an_import_of_nothing_says_why() {
    let dir = scratch("import-nothing");
    let file = |name: &str, text: &str| {
        let path = dir.join(name);
        std::fs::write(&path, text).expect("written");
        path.to_str().expect("a path").to_owned()
    };
    let aiperf = std::fs::read_to_string("tests/import/fixtures/aiperf.json").expect("a fixture");
    let aiperf = file("a.json", &aiperf);
    for format in ["guidellm", "guidellm-summary", "inference-perf", "llmperf", "llm-d", "vllm-bench"] {
        let text = stderr_of_failure(&["import", &aiperf, "--no-files", "--as", format], 2);
        assert!(
            text.starts_with("error: ") && text.contains("a.json: found aiperf export"),
            "{format}: {text}"
        );
        assert!(text.contains("leave out --as, or use --as aiperf"), "{format}: {text}");
    }
    let failed = file("f.json", "{\"mean_ttft_ms\": 0, \"completed\": 0, \"failed\": 8}");
    let text = stderr_of_failure(&["import", &failed, "--no-files"], 2);
    assert!(text.contains("error: nothing to import: ") && text.contains("no request completed"), "{text}");
    let other = file("o.json", "{\"x\": 1}");
    for format in ["guidellm", "llm-d", "inference-perf", "aiperf", "genai-perf", "llmperf", "vllm-bench"] {
        let text = stderr_of_failure(&["import", &other, "--no-files", "--as", format], 2);
        assert!(text.starts_with("error: ") && text.contains("o.json"), "{format}: {text}");
    }
    let text = stderr_of_failure(&["import", &other, "--as", "guidelm"], 2);
    assert!(text.contains("did you mean `guidellm`?"), "{text}");
}

#[test]
fn a_file_where_calibration_has_a_folder_is_told() {
    let dir = scratch("calibration-folder");
    std::fs::write(dir.join("hardware"), "x").expect("written");
    let text = stderr_of_failure(&["list", "--calibration", dir.to_str().expect("a path")], 2);
    assert!(text.contains("hardware: it is no folder; expected one of .toml files"), "{text}");
}

#[test]
fn an_estimate_of_a_dense_model_has_nothing_of_experts() {
    let text = stdout(&["show", "profile", "h100-sxm-vllm-estimated"]);
    for table in text.split("[[values]]").skip(1) {
        assert_eq!(table.contains("expert_"), !table.contains("models = \"dense\""), "{table}");
    }
}

#[test]
fn a_profile_shows_its_all_reduces_and_a_step_its_launch() {
    let text = stdout(&["show", "profile", "b200-sxm-sglang"]);
    assert!(text.contains("8 GPUs: 8.30 us + 232 GB/s"), "{text}");
    let text = stdout(&["show", "profile", "rtx-4090-vllm"]);
    assert!(text.contains("fitted, never scored"), "{text}");
    let text = stdout(&["show", "profile", "a100-80-sxm-vllm"]);
    assert!(text.contains("fitted on") && !text.contains("scored on"), "{text}");
    let launch = ["explain", "chat-h100", "--no-files", "--set", "hardware.profile=h100-sxm-vllm-estimated"];
    let text = stdout(&launch).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        text.contains(
            "A step with prompt tokens takes at least 16.0 ms: the host launches it, 500 us for each of 32 layers"
        ),
        "{text}"
    );
}
