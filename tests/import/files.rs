//! The files written: they read back as what was imported.

use knee::import::{Arrival, Format, Imported, import_path, import_text, write};

use super::{fixture, path};

fn text(files: &[write::NamedFile], name: &str) -> String {
    let found = files.iter().find(|(known, _)| known == name);
    let names: Vec<&str> = files.iter().map(|(name, _)| name.as_str()).collect();
    let (_, bytes) = found.unwrap_or_else(|| panic!("no {name} among {names:?}"));
    String::from_utf8(bytes.clone()).expect("text")
}

fn files(imports: &[Imported]) -> Vec<write::NamedFile> {
    write::files(imports).expect("files")
}

#[test]
fn a_curve_reads_back_as_itself() {
    for name in ["inferencex.json", "vllm_appended.jsonl", "llmd_0.1.yaml", "guidellm_0.3.json", "points.csv"]
    {
        let import = fixture(name);
        let mut points = Vec::new();
        for (file, bytes) in files(std::slice::from_ref(&import)) {
            if file.starts_with("curve") {
                let curve = String::from_utf8(bytes).expect("text");
                let back = import_text(&file, &curve, None).unwrap_or_else(|error| panic!("{name}: {error}"));
                assert_eq!(back.format, Format::Points);
                points.extend(back.points);
            }
        }
        assert_eq!(points.len(), import.points.len(), "{name}");
        for (mut found, expected) in points.into_iter().zip(&import.points) {
            if expected.label.is_empty() {
                found.label.clear();
            }
            assert_eq!(found.label, expected.label, "{name}");
            assert_eq!(found.arrival, expected.arrival, "{name}");
            assert_eq!(found.input_tokens, expected.input_tokens, "{name}");
            assert_eq!(found.output_tokens_per_s, expected.output_tokens_per_s, "{name}");
            assert_eq!(found.server.model, expected.server.model, "{name}");
            for ((metric, a), (_, b)) in found.latencies().into_iter().zip(expected.latencies()) {
                for ((statistic, a), (_, b)) in a.named().into_iter().zip(b.named()) {
                    let same = a.is_some() == b.is_some()
                        && (a.unwrap_or_default() - b.unwrap_or_default()).abs() < 1e-9;
                    assert!(same, "{name} {metric} {statistic}: {a:?}, expected {b:?}");
                }
            }
        }
    }
}

#[test]
fn requests_are_a_run_and_the_set_names_them_once() {
    let import = fixture("guidellm_0.5.json");
    let files = files(std::slice::from_ref(&import));
    let run = import_text("run.csv", &text(&files, "run.csv"), None).expect("requests");
    assert_eq!(run.requests, import.requests);
    let set: toml::Table = text(&files, "measurements.toml").parse().expect("TOML");
    let measurements = set["measurement"].as_array().expect("a list");
    assert_eq!(measurements.len(), 1, "the point of those requests is not a second measurement");
    assert_eq!(measurements[0]["requests"].as_str(), Some("run.csv"));
    assert_eq!(measurements[0]["client_max_in_flight"].as_integer(), Some(2));
    assert_eq!(set["model"]["name"].as_str(), Some("acme/tiny-1b"));
}

#[test]
fn a_log_completes_the_points_beside_it() {
    let imports = [fixture("vllm_log_v1.txt"), fixture("vllm_appended.jsonl")];
    let set: toml::Table = text(&files(&imports), "measurements.toml").parse().expect("TOML");
    assert_eq!(set["engine"]["version"].as_str(), Some("0.11.0"));
    assert_eq!(set["engine"]["num_gpu_blocks_override"].as_integer(), Some(18_038));
    assert_eq!(set["measurement"][0]["points"].as_str(), Some("curve.csv"));
    let alone = files(&imports[..1]);
    assert!(text(&alone, "server.toml").contains("max_num_batched_tokens = 8192"));
}

#[test]
fn servers_that_differ_get_curves_and_tables_of_their_own() {
    let imports = [fixture("llmd_0.1.yaml"), fixture("llmd_0.2.yaml")];
    let files = files(&imports);
    let set: toml::Table = text(&files, "measurements.toml").parse().expect("TOML");
    let measurements = set["measurement"].as_array().expect("a list");
    assert_eq!(measurements[1]["points"].as_str(), Some("curve-2.csv"));
    assert_eq!(measurements[1]["engine"]["tensor_parallel_size"].as_integer(), Some(4));
    assert!(text(&files, "curve-2.csv").contains("0.11.0"));
}

#[test]
fn a_trace_is_written_in_our_format() {
    let azure =
        "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.5,10,2\n2023-11-16 18:15:47.75,20,3\n";
    let import = import_text("a.csv", azure, None).expect("a trace");
    let written = text(&files(&[import]), "trace.csv");
    assert_eq!(written, "arrival_s,input_tokens,output_tokens\n0,10,2\n1.25,20,3\n");
}

#[test]
fn the_command_prints_and_writes() {
    let out = std::path::PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("import");
    let knee = |arguments: &[&str]| {
        let mut command = assert_cmd::Command::cargo_bin("knee").expect("the binary");
        command.env("NO_COLOR", "1").arg("import").args(arguments);
        command
    };
    let file = path("inferencex.json");
    let file = file.to_str().expect("a readable path");
    let folder = out.to_str().expect("a readable path");
    let assert = knee(&[file, "--out", folder]).assert().success();
    let table = String::from_utf8(assert.get_output().stdout.clone()).expect("text");
    assert!(table.contains("4 users") && table.contains("uniform"), "{table}");
    for name in ["curve.csv", "measurements.toml"] {
        assert!(out.join(name).is_file(), "{name}");
    }
    let assert = knee(&[file, "--no-files", "--format", "json"]).assert().success();
    let json: serde_json::Value = serde_json::from_slice(&assert.get_output().stdout).expect("JSON");
    assert_eq!(json["imports"][0]["points"][0]["arrival"], "closed");
    assert!(json["imports"][0]["points"][0].get("rate_per_s").is_none(), "{json}");
    // Nothing usable, or a wrong name: exit 2.
    let failed = out.join("failed.json");
    std::fs::write(&failed, r#"{"mean_ttft_ms": 0.0, "completed": 0, "failed": 3}"#).expect("a file");
    knee(&[failed.to_str().expect("a path"), "--no-files"]).assert().code(2);
    knee(&[file, "--no-files", "--as", "guidelm"]).assert().code(2);
    knee(&[file, "--no-files", "--gpu", "h1000"]).assert().code(2);
    knee(&["no-such-file.json", "--no-files"]).assert().code(2);
}

#[test]
fn a_forced_format_is_obeyed() {
    let import = import_path(&path("vllm_console.txt"), Some(Format::VllmConsole)).expect("a table");
    assert_eq!(import.points[0].arrival, Arrival::Closed);
    assert!(import_path(&path("vllm_console.txt"), Some(Format::Guidellm)).is_err());
}
