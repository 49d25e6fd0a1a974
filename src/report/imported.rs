//! What `knee import` shows: what a file was taken for, how it was understood, its points, and what is
//! doubtful or was refused.

use serde::Serialize;

use crate::import::{Arrival, Imported, LengthKind, LoadPoint, MeasuredRequest, ServerFacts, TokenLengths};
use crate::report::format;
use crate::report::table::{Columns, Look, MAX_WIDTH, Tone, wrapped};

/// Points that a terminal shows; the rest is counted.
const MOST_POINTS: usize = 40;
/// Messages of one kind that a terminal shows; the rest is counted.
const MOST_MESSAGES: usize = 10;

/// The imports, one below the other.
#[must_use]
pub fn table(imports: &[Imported], look: Look) -> String {
    let parts: Vec<String> = imports.iter().map(|import| one(import, look)).collect();
    parts.join("\n")
}

fn one(import: &Imported, look: Look) -> String {
    let headline = format!("{}: {}", look.paint(Tone::Strong, &import.source), import.format.title());
    let mut lines = wrapped(&headline, MAX_WIDTH);
    lines.push(look.paint(Tone::Quiet, &format!("recognised by {}", import.recognised_by)));
    lines.extend(section("server", &server(common_server(import)), look, Tone::Plain));
    lines.extend(listed("understood", &import.understood, look, Tone::Plain));
    lines.extend(listed("left out", &import.left_out, look, Tone::Quiet));
    if !import.points.is_empty() {
        lines.push(String::new());
        lines.extend(points(&import.points));
    }
    if !import.requests.is_empty() {
        lines.push(format!("{} requests", format::count(import.requests.len() as u64)));
    }
    if let Some(trace) = &import.trace {
        let last = trace.requests.last().map_or(0.0, |request| request.send.as_secs_f64());
        lines.push(format!(
            "trace of {} requests over {} s",
            format::count(trace.requests.len() as u64),
            format::number(last)
        ));
    }
    lines.extend(listed("check", &import.warnings, look, Tone::Strong));
    let refused: Vec<String> =
        import.refused.iter().map(|refusal| format!("{}: {}", refusal.label, refusal.reason)).collect();
    lines.extend(listed("refused", &refused, look, Tone::Bad));
    lines.join("\n") + "\n"
}

/// The server of all points, where it is one; else what the file says as a whole.
fn common_server(import: &Imported) -> &ServerFacts {
    match import.points.split_first() {
        Some((first, rest)) if rest.iter().all(|point| point.server == first.server) => &first.server,
        _ => &import.server,
    }
}

/// A heading and the first of a list under it; nothing if the list is empty.
fn listed(heading: &str, texts: &[String], look: Look, tone: Tone) -> Vec<String> {
    let shown = &texts[..texts.len().min(MOST_MESSAGES)];
    let mut lines = section(heading, shown, look, tone);
    if texts.len() > shown.len() {
        lines.push(format!("  - and {} more (--format json shows all)", texts.len() - shown.len()));
    }
    lines
}

/// As [`listed`], all of the list.
fn section(heading: &str, texts: &[String], look: Look, tone: Tone) -> Vec<String> {
    if texts.is_empty() {
        return Vec::new();
    }
    let mut lines = vec![look.paint(tone, &format!("{heading}:"))];
    for text in texts {
        for (position, line) in wrapped(text, MAX_WIDTH - 4).into_iter().enumerate() {
            let mark = if position == 0 { "- " } else { "  " };
            lines.push(format!("  {mark}{line}"));
        }
    }
    lines
}

fn points(points: &[LoadPoint]) -> Vec<String> {
    let header = [
        "point",
        "load",
        "in/out tok",
        "req/s",
        "out tok/s",
        "TTFT ms",
        "p99",
        "TPOT ms",
        "p99",
        "E2E s",
        "p99",
        "in flight",
    ];
    let mut columns = Columns::new(&header.map(String::from), 2);
    for point in points.iter().take(MOST_POINTS) {
        let ms = |value: Option<f64>| value.map_or_else(dash, |seconds| format::number(seconds * 1e3));
        let plain = |value: Option<f64>| value.map_or_else(dash, format::number);
        let label = if point.label.is_empty() { "all".to_owned() } else { shortened(&point.label) };
        columns.row(&[
            label,
            load(point),
            format!("{}/{}", length(point.input_tokens), length(point.output_tokens)),
            plain(point.requests_per_s),
            plain(point.output_tokens_per_s),
            ms(point.ttft.mean_s),
            ms(point.ttft.p99_s),
            ms(point.tpot.mean_s),
            ms(point.tpot.p99_s),
            plain(point.e2e.mean_s),
            plain(point.e2e.p99_s),
            plain(point.in_flight()),
        ]);
    }
    let mut lines = columns.lines();
    if points.len() > MOST_POINTS {
        lines.push(format!("and {} more points (curve.csv has all)", points.len() - MOST_POINTS));
    }
    lines
}

fn dash() -> String {
    "-".to_owned()
}

/// The end of a long label, where the run is named.
fn shortened(label: &str) -> String {
    const LONGEST: usize = 24;
    let length = label.chars().count();
    if length <= LONGEST {
        return label.to_owned();
    }
    let end: String = label.chars().skip(length - LONGEST + 1).collect();
    format!("…{end}")
}

fn length(lengths: Option<TokenLengths>) -> String {
    lengths.map_or_else(dash, |lengths| {
        let mark = if lengths.kind == LengthKind::Nominal { "~" } else { "" };
        format!("{mark}{}", format::number(lengths.mean))
    })
}

/// How requests were sent, in a word or two.
fn load(point: &LoadPoint) -> String {
    let rate = point.rate_per_s.map(|rate| format!("{}/s", format::number(rate)));
    match (point.arrival, rate, point.concurrency) {
        (Arrival::Closed, _, Some(users)) => format::counted(u64::from(users), "user"),
        (Arrival::AllAtOnce, ..) => "all at once".to_owned(),
        (Arrival::Constant, Some(rate), _) => format!("constant {rate}"),
        (Arrival::Poisson, Some(rate), _) => format!("poisson {rate}"),
        (Arrival::Gamma { burstiness }, Some(rate), _) => format!("gamma({burstiness}) {rate}"),
        (_, Some(rate), _) => rate,
        (_, None, Some(users)) => format!("≤ {users} in flight"),
        (_, None, None) => dash(),
    }
}

/// What is known of a server, a fact a line.
fn server(facts: &ServerFacts) -> Vec<String> {
    let mut lines = Vec::new();
    let mut say = |label: &str, value: Option<String>| {
        if let Some(value) = value {
            lines.push(format!("{label}: {value}"));
        }
    };
    let shown = |value: Option<u32>| value.map(|value| value.to_string());
    let gib = |value: Option<f64>| value.map(|value| format!("{value:.2} GiB"));
    let count = |value: Option<u64>| value.map(format::count);
    let engine = facts.engine.as_ref().map(|engine| match &facts.version {
        Some(version) => format!("{engine} {version}"),
        None => engine.clone(),
    });
    say("model", facts.model.clone());
    say("GPU", facts.gpu.clone());
    say("engine", engine);
    say("tensor parallel size", shown(facts.tensor_parallel_size));
    say("pipeline parallel size", shown(facts.pipeline_parallel_size));
    say("data parallel size", shown(facts.data_parallel_size));
    say("max_model_len", count(facts.max_model_len));
    say("max_num_seqs", shown(facts.max_num_seqs));
    say("max_num_batched_tokens", shown(facts.max_num_batched_tokens));
    say("gpu_memory_utilization", facts.gpu_memory_utilization.map(|value| value.to_string()));
    say("prefix caching", facts.enable_prefix_caching.map(|on| if on { "on" } else { "off" }.to_owned()));
    say("KV cache, tokens", count(facts.kv_cache_tokens));
    say("KV cache, blocks", count(facts.num_gpu_blocks));
    say("KV cache, per GPU", gib(facts.available_kv_cache_gib));
    say("weights, per GPU", gib(facts.weights_gib));
    say("activation peak", gib(facts.activation_peak_gib));
    say("non-torch memory", gib(facts.non_torch_gib));
    say("CUDA graphs", gib(facts.cuda_graphs_gib));
    lines
}

/// The import as JSON: seconds, tokens and requests per second; what is not known is absent.
///
/// # Errors
/// Only if the writer fails.
pub fn json(imports: &[Imported]) -> Result<String, serde_json::Error> {
    let imports: Vec<Object<'_>> = imports.iter().map(object).collect();
    let body = Body { schema_version: crate::report::json::SCHEMA_VERSION, imports };
    Ok(serde_json::to_string_pretty(&body)? + "\n")
}

#[derive(Serialize)]
struct Body<'a> {
    schema_version: u32,
    imports: Vec<Object<'a>>,
}

#[derive(Serialize)]
struct Object<'a> {
    source: &'a str,
    format: &'static str,
    recognised_by: &'a str,
    understood: &'a [String],
    left_out: &'a [String],
    warnings: &'a [String],
    refused: Vec<RefusedObject<'a>>,
    server: &'a ServerFacts,
    points: Vec<PointObject<'a>>,
    requests: &'a [MeasuredRequest],
    #[serde(skip_serializing_if = "Option::is_none")]
    trace: Option<TraceObject>,
}

#[derive(Serialize)]
struct RefusedObject<'a> {
    label: &'a str,
    reason: &'a str,
}

#[derive(Serialize)]
struct PointObject<'a> {
    #[serde(flatten)]
    point: &'a LoadPoint,
    /// By Little's law.
    #[serde(skip_serializing_if = "Option::is_none")]
    in_flight: Option<f64>,
}

#[derive(Serialize)]
struct TraceObject {
    requests: usize,
    duration_s: f64,
}

fn object(import: &Imported) -> Object<'_> {
    let trace = import.trace.as_ref().map(|trace| TraceObject {
        requests: trace.requests.len(),
        duration_s: trace.requests.last().map_or(0.0, |request| request.send.as_secs_f64()),
    });
    Object {
        source: &import.source,
        format: import.format.name(),
        recognised_by: &import.recognised_by,
        understood: &import.understood,
        left_out: &import.left_out,
        warnings: &import.warnings,
        refused: import
            .refused
            .iter()
            .map(|r| RefusedObject { label: &r.label, reason: &r.reason })
            .collect(),
        server: &import.server,
        points: import
            .points
            .iter()
            .map(|point| PointObject { point, in_flight: point.in_flight() })
            .collect(),
        requests: &import.requests,
        trace,
    }
}
