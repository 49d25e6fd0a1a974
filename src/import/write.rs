//! What was imported, as files: load points, requests, a measurement set that names them, a trace.
//!
//! | file | what |
//! |---|---|
//! | `curve.csv` | one row per load point; `curve-2.csv` and so on where the server differs |
//! | `run.csv` | one row per request: `send_s,input_tokens,output_tokens,ttft_ms,e2e_ms`; one file per run |
//! | `measurements.toml` | the set of both, for `knee calibrate` and `knee validate` |
//! | `trace.csv` | `arrival_s,input_tokens,output_tokens[,class]`, for `[arrivals.trace]` |
//! | `server.toml` | the scenario's tables that a log or a metrics page settles |
//!
//! A point whose requests are there is in `curve.csv` too, but the set names its requests only: nothing is
//! fitted twice.

use std::fmt::Write as _;

use super::names;
use super::point::{LengthKind, LoadPoint, MeasuredRequest, ServerFacts, TokenLengths};
use super::{Arrival, Imported};
use crate::units::distinct;
use crate::workload::trace::Trace;

/// A file's name and its bytes.
pub type NamedFile = (String, Vec<u8>);

/// The files for all that was imported, in the order of the imports. Facts about the server from a log
/// or a metrics page complete the points of the others.
///
/// # Errors
/// Only if the CSV writer fails.
pub fn files(imports: &[Imported]) -> Result<Vec<NamedFile>, csv::Error> {
    let mut shared = ServerFacts::default();
    for import in imports.iter().filter(|import| import.points.is_empty()) {
        shared.fill_from(&import.server);
    }
    let runs = runs(imports, &shared);
    let curves = curves(imports, &shared);
    let mut files = Vec::new();
    for (curve, name) in curves.iter().zip(file_names("curve", curves.len())) {
        files.push((name, curve_csv(&curve.points)?));
    }
    for (run, name) in runs.iter().zip(file_names("run", runs.len())) {
        files.push((name, run_csv(&run.requests)?));
    }
    let traces: Vec<&Trace> = imports.iter().filter_map(|import| import.trace.as_ref()).collect();
    for (trace, name) in traces.iter().zip(file_names("trace", traces.len())) {
        files.push((name, trace_csv(trace)?));
    }
    if !curves.is_empty() {
        files.push(("measurements.toml".to_owned(), set_toml(imports, &curves, &runs).into_bytes()));
    } else if shared != ServerFacts::default() {
        files.push(("server.toml".to_owned(), server_toml(&shared, "").into_bytes()));
    }
    Ok(files)
}

/// `run.csv`, or `run-1.csv` and so on if there are several.
fn file_names(stem: &str, count: usize) -> Vec<String> {
    if count == 1 {
        return vec![format!("{stem}.csv")];
    }
    (1..=count).map(|number| format!("{stem}-{number}.csv")).collect()
}

/// Load points of one server.
struct Curve<'a> {
    server: ServerFacts,
    /// Source and point.
    points: Vec<(&'a str, &'a LoadPoint)>,
    /// Whether their requests are not there, so that the points themselves are the measurement.
    is_measurement: bool,
}

/// The requests of one load point.
struct Run<'a> {
    server: ServerFacts,
    client_max_in_flight: Option<u32>,
    requests: Vec<&'a MeasuredRequest>,
}

fn server_of(point: &LoadPoint, shared: &ServerFacts) -> ServerFacts {
    let mut server = point.server.clone();
    server.fill_from(shared);
    server
}

/// The requests of each point.
fn by_point(import: &Imported) -> Vec<Vec<&MeasuredRequest>> {
    let mut lists = vec![Vec::new(); import.points.len()];
    for request in &import.requests {
        if let Some(list) = lists.get_mut(request.point) {
            list.push(request);
        }
    }
    lists
}

fn runs<'a>(imports: &'a [Imported], shared: &ServerFacts) -> Vec<Run<'a>> {
    let mut runs = Vec::new();
    for import in imports {
        for (point, requests) in import.points.iter().zip(by_point(import)) {
            if !requests.is_empty() {
                let server = server_of(point, shared);
                runs.push(Run { server, client_max_in_flight: point.concurrency, requests });
            }
        }
    }
    runs
}

/// One curve per server, apart those whose points are there as requests.
fn curves<'a>(imports: &'a [Imported], shared: &ServerFacts) -> Vec<Curve<'a>> {
    let mut curves: Vec<Curve<'a>> = Vec::new();
    for import in imports {
        for (point, requests) in import.points.iter().zip(by_point(import)) {
            let server = server_of(point, shared);
            let is_measurement = requests.is_empty();
            let entry = (import.source.as_str(), point);
            let fits =
                |curve: &&mut Curve<'a>| curve.server == server && curve.is_measurement == is_measurement;
            match curves.iter_mut().find(fits) {
                Some(curve) => curve.points.push(entry),
                None => curves.push(Curve { server, points: vec![entry], is_measurement }),
            }
        }
    }
    curves
}

/// Load points with our column names; an empty cell where a value is not known.
fn curve_csv(points: &[(&str, &LoadPoint)]) -> Result<Vec<u8>, csv::Error> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    let mut header: Vec<String> = COLUMNS.iter().map(|(name, _)| (*name).to_owned()).collect();
    header.insert(0, "source".to_owned());
    for (metric, stats) in LoadPoint::default().latencies() {
        header.extend(stats.named().iter().map(|(statistic, _)| format!("{metric}_{statistic}_ms")));
    }
    writer.write_record(&header)?;
    for (source, point) in points {
        let mut row: Vec<String> = vec![(*source).to_owned()];
        row.extend(COLUMNS.iter().map(|(_, cell)| cell(point)));
        for (_, stats) in point.latencies() {
            row.extend(stats.named().iter().map(|(_, value)| number(value.map(to_ms))));
        }
        writer.write_record(&row)?;
    }
    writer.into_inner().map_err(|error| csv::Error::from(error.into_error()))
}

type Cell = fn(&LoadPoint) -> String;

const COLUMNS: &[(&str, Cell)] = &[
    ("label", |p| p.label.clone()),
    ("arrival", |p| p.arrival.key().to_owned()),
    ("rate_per_s", |p| number(p.rate_per_s)),
    ("burstiness", |p| match p.arrival {
        Arrival::Gamma { burstiness } => burstiness.to_string(),
        _ => String::new(),
    }),
    ("concurrency", |p| text(p.concurrency)),
    ("input_tokens_mean", |p| number(p.input_tokens.map(|l| l.mean))),
    ("input_tokens_kind", |p| kind(p.input_tokens)),
    ("input_tokens_min", |p| number(range(p.input_tokens).map(|(min, _)| min))),
    ("input_tokens_max", |p| number(range(p.input_tokens).map(|(_, max)| max))),
    ("output_tokens_mean", |p| number(p.output_tokens.map(|l| l.mean))),
    ("output_tokens_kind", |p| kind(p.output_tokens)),
    ("output_tokens_min", |p| number(range(p.output_tokens).map(|(min, _)| min))),
    ("output_tokens_max", |p| number(range(p.output_tokens).map(|(_, max)| max))),
    ("completed", |p| text(p.completed)),
    ("failed", |p| text(p.failed)),
    ("duration_s", |p| number(p.duration_s)),
    ("requests_per_s", |p| number(p.requests_per_s)),
    ("input_tokens_per_s", |p| number(p.input_tokens_per_s)),
    ("output_tokens_per_s", |p| number(p.output_tokens_per_s)),
    ("total_tokens_per_s", |p| number(p.total_tokens_per_s)),
    ("good_per_s", |p| number(p.good_per_s)),
    ("measured_at", |p| match p.measured_at {
        super::MeasuredAt::Client => "client".to_owned(),
        super::MeasuredAt::Server => "server".to_owned(),
    }),
    ("model", |p| p.server.model.clone().unwrap_or_default()),
    ("gpu", |p| p.server.gpu.clone().unwrap_or_default()),
    ("engine", |p| p.server.engine.clone().unwrap_or_default()),
    ("version", |p| p.server.version.clone().unwrap_or_default()),
    ("weight_dtype", |p| p.server.quantization.clone().unwrap_or_default()),
    ("tensor_parallel_size", |p| text(p.server.tensor_parallel_size)),
    ("pipeline_parallel_size", |p| text(p.server.pipeline_parallel_size)),
];

fn number(value: Option<f64>) -> String {
    value.map_or(String::new(), |value| value.to_string())
}

fn text<T: ToString>(value: Option<T>) -> String {
    value.map_or(String::new(), |value| value.to_string())
}

fn kind(lengths: Option<TokenLengths>) -> String {
    lengths.map_or(String::new(), |lengths| lengths.kind.key().to_owned())
}

fn range(lengths: Option<TokenLengths>) -> Option<(f64, f64)> {
    match lengths?.kind {
        LengthKind::Uniform { min, max } => Some((min, max)),
        LengthKind::Constant | LengthKind::Mean | LengthKind::Nominal => None,
    }
}

/// Milliseconds to a nanosecond, which no tool resolves: 42.501 and not 42.501000000000005.
fn to_ms(seconds: f64) -> f64 {
    const NANOS_PER_S: f64 = 1e9;
    const NANOS_PER_MS: f64 = 1e6;
    libm::rint(seconds * NANOS_PER_S) / NANOS_PER_MS
}

fn run_csv(requests: &[&MeasuredRequest]) -> Result<Vec<u8>, csv::Error> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(["send_s", "input_tokens", "output_tokens", "ttft_ms", "e2e_ms"])?;
    for request in requests {
        writer.write_record([
            (to_ms(request.send_s) / 1e3).to_string(),
            request.input_tokens.to_string(),
            request.output_tokens.to_string(),
            number(request.ttft_s.map(to_ms)),
            to_ms(request.e2e_s).to_string(),
        ])?;
    }
    writer.into_inner().map_err(|error| csv::Error::from(error.into_error()))
}

fn trace_csv(trace: &Trace) -> Result<Vec<u8>, csv::Error> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    let classes = trace.class_names.iter().any(|name| !name.is_empty());
    let header = ["arrival_s", "input_tokens", "output_tokens", "class"];
    let width = if classes { 4 } else { 3 };
    writer.write_record(&header[..width])?;
    for request in &trace.requests {
        let class = trace.class_names.get(usize::from(request.class));
        let row = [
            request.send.as_secs_f64().to_string(),
            request.input_tokens.to_string(),
            request.output_tokens.to_string(),
            class.cloned().unwrap_or_default(),
        ];
        writer.write_record(&row[..width])?;
    }
    writer.into_inner().map_err(|error| csv::Error::from(error.into_error()))
}

fn set_toml(imports: &[Imported], curves: &[Curve<'_>], runs: &[Run<'_>]) -> String {
    let mut out = String::from(
        "# Measurements for `knee calibrate` and `knee validate`, written by `knee import` from:\n",
    );
    for import in imports {
        // Writing to a string cannot fail.
        let _ = writeln!(out, "#   {} ({})", one_line(&import.source), import.format.name());
    }
    let servers = distinct(curves.iter().map(|c| &c.server).chain(runs.iter().map(|r| &r.server)));
    let shared = servers.len() == 1;
    if shared {
        out.push('\n');
        out.push_str(&server_toml(servers[0], ""));
    }
    let mut entry = |key: &str, name: &str, users: Option<u32>, server: &ServerFacts| {
        let _ = writeln!(out, "\n[[measurement]]\n{key} = \"{name}\"");
        let _ = match users {
            Some(users) => writeln!(out, "client_max_in_flight = {users}"),
            None if key == "requests" => {
                writeln!(out, "# client_max_in_flight = 256  # if the client kept at most so many in flight")
            }
            None => Ok(()),
        };
        if !shared {
            out.push_str(&server_toml(server, "measurement."));
        }
    };
    for (run, name) in runs.iter().zip(file_names("run", runs.len())) {
        entry("requests", &name, run.client_max_in_flight, &run.server);
    }
    for (curve, name) in curves.iter().zip(file_names("curve", curves.len())) {
        if curve.is_measurement {
            entry("points", &name, None, &curve.server);
        }
    }
    out
}

/// The scenario's tables that `server` settles, and as comments those that it must have and does not.
fn server_toml(server: &ServerFacts, prefix: &str) -> String {
    let mut out = String::new();
    let required = |out: &mut String, key: &str, value: Option<&String>, example: &str| {
        let _ = match value {
            Some(value) => writeln!(out, "{key} = \"{}\"", escaped(value)),
            None => writeln!(out, "# {key} = \"{example}\"  # not in the source: fill in"),
        };
    };
    let _ = writeln!(out, "[{prefix}model]");
    required(&mut out, "name", server.model.as_ref(), "llama-3.1-8b");
    if let Some(dtype) = server.quantization.as_deref().and_then(names::weight_dtype) {
        let _ = writeln!(out, "weight_dtype = \"{dtype}\"");
    }
    let _ = writeln!(out, "[{prefix}hardware]");
    let key = server.gpu.as_deref().map(|gpu| names::gpu_key(gpu).unwrap_or(gpu).to_owned());
    required(&mut out, "gpu", key.as_ref(), "h100-sxm");
    let _ = writeln!(out, "[{prefix}engine]");
    required(&mut out, "name", server.engine.as_ref(), "vllm");
    required(&mut out, "version", server.version.as_ref(), "0.11.0");
    let mut key = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            let _ = writeln!(out, "{name} = {value}");
        }
    };
    let shown = |value: Option<u32>| value.map(|value| value.to_string());
    key("tensor_parallel_size", shown(server.tensor_parallel_size));
    key("pipeline_parallel_size", shown(server.pipeline_parallel_size));
    key("data_parallel_size", shown(server.data_parallel_size));
    key("enable_expert_parallel", server.enable_expert_parallel.map(|value| value.to_string()));
    key("max_num_seqs", shown(server.max_num_seqs));
    key("max_num_batched_tokens", shown(server.max_num_batched_tokens));
    key("max_model_len", server.max_model_len.map(|value| value.to_string()));
    key("gpu_memory_utilization", server.gpu_memory_utilization.map(|value| value.to_string()));
    key("block_size", shown(server.block_size));
    key("enable_prefix_caching", server.enable_prefix_caching.map(|value| value.to_string()));
    key("num_gpu_blocks_override", server.num_gpu_blocks.map(|value| value.to_string()));
    if let Some(replicas) = server.replicas {
        let _ = writeln!(out, "[{prefix}deployment]\nreplicas = {replicas}");
    }
    out
}

fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// A TOML basic string's inside.
fn escaped(text: &str) -> String {
    one_line(text).replace('\\', "\\\\").replace('"', "\\\"")
}
