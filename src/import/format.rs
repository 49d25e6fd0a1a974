//! Which tool wrote a file, by what is in it; its name is not asked.

use super::error::{ImportError, quoted};
use super::tree::{At, Node};

/// A file format that can be imported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    VllmBench,
    VllmConsole,
    VllmSweep,
    Guidellm,
    GuidellmConsole,
    GuidellmSummary,
    Aiperf,
    GenaiPerf,
    InferencePerf,
    Llmperf,
    LlmdReport,
    VllmMetrics,
    VllmLog,
    Requests,
    Points,
    Trace,
}

impl Format {
    /// All of them.
    pub const ALL: [Self; 16] = [
        Self::VllmBench,
        Self::VllmConsole,
        Self::VllmSweep,
        Self::Guidellm,
        Self::GuidellmConsole,
        Self::GuidellmSummary,
        Self::Aiperf,
        Self::GenaiPerf,
        Self::InferencePerf,
        Self::Llmperf,
        Self::LlmdReport,
        Self::VllmMetrics,
        Self::VllmLog,
        Self::Requests,
        Self::Points,
        Self::Trace,
    ];

    /// The name that `--as` takes.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::VllmBench => "vllm-bench",
            Self::VllmConsole => "vllm-console",
            Self::VllmSweep => "vllm-sweep",
            Self::Guidellm => "guidellm",
            Self::GuidellmConsole => "guidellm-console",
            Self::GuidellmSummary => "guidellm-summary",
            Self::Aiperf => "aiperf",
            Self::GenaiPerf => "genai-perf",
            Self::InferencePerf => "inference-perf",
            Self::Llmperf => "llmperf",
            Self::LlmdReport => "llm-d",
            Self::VllmMetrics => "vllm-metrics",
            Self::VllmLog => "vllm-log",
            Self::Requests => "requests",
            Self::Points => "points",
            Self::Trace => "trace",
        }
    }

    /// What it is, for people.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::VllmBench => {
                "result of `vllm bench serve` (or a fork: SGLang, InferenceX), JSON or JSON lines"
            }
            Self::VllmConsole => "console table of `vllm bench serve`",
            Self::VllmSweep => "folder of `vllm bench sweep`",
            Self::Guidellm => "guidellm report, 0.2 to 0.8",
            Self::GuidellmConsole => "console tables of guidellm",
            Self::GuidellmSummary => "flat summary of guidellm-results-parser",
            Self::Aiperf => "aiperf export",
            Self::GenaiPerf => "genai-perf export",
            Self::InferencePerf => "inference-perf report, JSON or YAML",
            Self::Llmperf => "llmperf summary",
            Self::LlmdReport => "llm-d benchmark report 0.1 or 0.2, YAML or JSON",
            Self::VllmMetrics => "Prometheus text of a vLLM server's /metrics",
            Self::VllmLog => "start-up log of vLLM",
            Self::Requests => "CSV of requests: send_s,input_tokens,output_tokens,ttft_ms,e2e_ms",
            Self::Points => "CSV of load points, such as curve.csv",
            Self::Trace => {
                "arrival trace: Azure CSV, Mooncake JSON lines, or arrival_s,input_tokens,output_tokens"
            }
        }
    }

    /// The format called `name`.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.name() == name)
    }
}

/// A file's text, parsed as far as its outer form goes.
#[derive(Debug)]
pub(super) enum Content {
    /// One JSON or YAML document.
    Document(Node),
    /// JSON lines, with their line numbers.
    Lines(Vec<(u64, Node)>),
    /// Anything else.
    Text,
}

impl Content {
    /// The documents of a file that holds one or many, and where they stand.
    pub fn documents<'a>(&'a self, file: &str) -> Result<Vec<At<'a>>, ImportError> {
        match self {
            Self::Document(node @ Node::List(_)) => At::root(file, None, node).elements(),
            Self::Document(node) => Ok(vec![At::root(file, None, node)]),
            Self::Lines(lines) => {
                Ok(lines.iter().map(|(line, node)| At::root(file, Some(*line), node)).collect())
            }
            Self::Text => Err(ImportError::file(file, "plain text", "JSON or YAML")),
        }
    }

    /// The document that decides what a file is.
    fn first(&self) -> Option<&Node> {
        match self {
            Self::Document(Node::List(nodes)) => nodes.first(),
            Self::Document(node) => Some(node),
            Self::Lines(lines) => lines.first().map(|(_, node)| node),
            Self::Text => None,
        }
    }
}

/// What a text is, and by what it was recognised.
#[derive(Debug)]
pub(super) struct Recognised {
    pub format: Format,
    pub why: String,
    pub content: Content,
}

/// Recognises `text`, or takes `forced` for it.
pub(super) fn recognise(file: &str, text: &str, forced: Option<Format>) -> Result<Recognised, ImportError> {
    let by_text = |(format, why): (Format, &str)| (format, why.to_owned(), Content::Text);
    let found = match forced {
        None => of_text(text).map(by_text),
        Some(format) if needs_tree(format) => None,
        Some(format) => Some((format, String::new(), Content::Text)),
    };
    let (format, why, content) = match found {
        Some(found) => found,
        None => {
            let content = parse(file, text)?;
            let keys = content.first().and_then(of_document);
            match (forced, keys) {
                (Some(format), Some((other, why)))
                    if !content.first().is_some_and(|node| is(format, node)) =>
                {
                    return Err(of_another(file, format, other, why));
                }
                (Some(format), _) => (format, String::new(), content),
                (None, Some((format, why))) => (format, why.to_owned(), content),
                (None, None) => return Err(unknown(file, text, &content)),
            }
        }
    };
    let why = if forced.is_some() { "--as says so".to_owned() } else { why };
    Ok(Recognised { format, why, content })
}

const fn needs_tree(format: Format) -> bool {
    !matches!(
        format,
        Format::VllmConsole
            | Format::GuidellmConsole
            | Format::VllmMetrics
            | Format::VllmLog
            | Format::Requests
            | Format::Points
            | Format::Trace
    )
}

fn unknown(file: &str, text: &str, content: &Content) -> ImportError {
    let is_schema = content.first().is_some_and(|node| node.has(&["$schema"]) || node.has(&["$defs"]));
    let found = if is_schema {
        "it is a JSON Schema, not a result".to_owned()
    } else {
        let first = text.lines().find(|line| !line.trim().is_empty()).unwrap_or("");
        format!("it begins with {}", quoted(first.trim()))
    };
    let known = Format::ALL.map(Format::name).join(", ");
    ImportError::Unrecognised { file: file.to_owned(), found, known }
}

/// Formats that are told by their text.
fn of_text(text: &str) -> Option<(Format, &'static str)> {
    let head = text.trim_start();
    if head.starts_with(['{', '[']) {
        // Traces can be long: they are recognised by their first line and read by their own parser.
        let first = head.lines().next().unwrap_or("");
        let is_trace = first.contains("\"timestamp\"") && first.contains("\"input_length\"");
        return is_trace.then_some((Format::Trace, "JSON lines with `timestamp` and `input_length`"));
    }
    if let Some(found) = of_header(head) {
        return Some(found);
    }
    let signs = [
        ("Serving Benchmark Result", Format::VllmConsole, "the banner `Serving Benchmark Result`"),
        ("Benchmarks Stats:", Format::GuidellmConsole, "the heading `Benchmarks Stats:`"),
        ("# TYPE vllm:", Format::VllmMetrics, "metric families named `vllm:`"),
        ("\nvllm:", Format::VllmMetrics, "metrics named `vllm:`"),
        ("GPU KV cache size: ", Format::VllmLog, "the line `GPU KV cache size`"),
        ("Available KV cache memory: ", Format::VllmLog, "the line `Available KV cache memory`"),
        ("# GPU blocks: ", Format::VllmLog, "the line `# GPU blocks`"),
        ("LLM engine (v", Format::VllmLog, "the line `Initializing a V1 LLM engine`"),
        ("vLLM API server version", Format::VllmLog, "the line `vLLM API server version`"),
    ];
    signs.into_iter().find(|(sign, ..)| text.contains(sign)).map(|(_, format, why)| (format, why))
}

/// CSV files are told by their header.
fn of_header(head: &str) -> Option<(Format, &'static str)> {
    let header = head.lines().find(|line| !line.starts_with('#'))?;
    let columns: Vec<&str> = header.split(',').map(|column| column.trim().trim_matches('"')).collect();
    let has = |names: &[&str]| names.iter().all(|name| columns.contains(name));
    if has(&["TIMESTAMP", "ContextTokens"]) {
        Some((Format::Trace, "the columns `TIMESTAMP,ContextTokens` of Azure's traces"))
    } else if has(&["arrival_s", "input_tokens"]) {
        Some((Format::Trace, "the columns `arrival_s,input_tokens`"))
    } else if has(&["send_s", "input_tokens"]) {
        Some((Format::Requests, "the columns `send_s,input_tokens`"))
    } else if columns.len() > 2 && columns.iter().any(|c| c.contains("ttft_") || c.contains("tpot_")) {
        Some((Format::Points, "a column of TTFT or TPOT"))
    } else {
        None
    }
}

/// Formats that are told by their keys, and by which; one that has those of several is the first.
const BY_KEYS: [(Format, &str); 8] = [
    (Format::Guidellm, "the key `benchmarks`"),
    (Format::GuidellmSummary, "the keys `ttft_mean_ms` and `request_latency_mean_ms`"),
    (Format::VllmBench, "the keys `request_throughput` and `mean_ttft_ms`"),
    (Format::Aiperf, "the key `input_config.loadgen` or `inter_chunk_latency`"),
    (Format::GenaiPerf, "the keys `input_config` and `request_latency.avg`"),
    (Format::InferencePerf, "the keys `load_summary` and `successes`"),
    (Format::Llmperf, "keys named `results_ttft_s_*`"),
    (Format::LlmdReport, "the key `version` beside `metrics.latency` or `results`"),
];

fn of_document(node: &Node) -> Option<(Format, &'static str)> {
    BY_KEYS.into_iter().find(|(format, _)| is(*format, node))
}

/// Whether a document has the keys by which `format` is told.
fn is(format: Format, node: &Node) -> bool {
    let number = |key| matches!(node.get(key), Some(Node::Number(_)));
    let inside = |key, keys: &[&str]| node.get(key).is_some_and(|node| node.has(keys));
    match format {
        Format::Guidellm => node.has(&["benchmarks"]),
        Format::GuidellmSummary => node.has(&["ttft_mean_ms", "request_latency_mean_ms"]),
        Format::VllmBench => number("mean_ttft_ms") || number("request_throughput") && number("duration"),
        Format::Aiperf => inside("input_config", &["loadgen"]) || inside("inter_chunk_latency", &["avg"]),
        Format::GenaiPerf => node.has(&["input_config"]) && inside("request_latency", &["avg"]),
        Format::InferencePerf => node.has(&["load_summary", "successes"]),
        Format::Llmperf => number("results_ttft_s_mean") || number("results_end_to_end_latency_s_mean"),
        Format::LlmdReport => {
            node.has(&["version"]) && (inside("metrics", &["latency"]) || node.has(&["results"]))
        }
        _ => false,
    }
}

/// The error that `--as` names another format than the file has.
fn of_another(file: &str, asked: Format, is: Format, why: &str) -> ImportError {
    let found = format!("{} ({why})", is.title());
    let expected = format!(
        "{}, as --as {} says; leave out --as, or use --as {}",
        asked.title(),
        asked.name(),
        is.name()
    );
    ImportError::file(file, &found, &expected)
}

/// Parses JSON, JSON lines or YAML.
fn parse(file: &str, text: &str) -> Result<Content, ImportError> {
    let head = text.trim_start();
    if head.is_empty() {
        return Err(ImportError::file(file, "an empty file", "a result, a trace or a log"));
    }
    if !head.starts_with(['{', '[']) {
        // Only a mapping is a document: any text at all is a YAML scalar.
        let node = Node::yaml(file, text);
        return Ok(match node {
            Ok(node @ Node::Map(_)) => Content::Document(node),
            Err(error) if looks_like_yaml(head) => return Err(error),
            _ => Content::Text,
        });
    }
    let lines: Vec<(u64, &str)> =
        (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty()).collect();
    // JSON lines: more than one line, and the first is a whole document.
    let is_lines =
        lines.len() > 1 && lines[0].1.trim_end().ends_with('}') && Node::json(file, lines[0].1).is_ok();
    if !is_lines {
        return Node::json(file, text).map(Content::Document);
    }
    let parsed = lines.into_iter().map(|(number, line)| {
        let node = Node::json(file, line).map_err(|error| match error {
            ImportError::Syntax { file, column, message, .. } => {
                ImportError::Syntax { file, line: number, column, message }
            }
            other => other,
        })?;
        Ok((number, node))
    });
    parsed.collect::<Result<_, _>>().map(Content::Lines)
}

fn looks_like_yaml(head: &str) -> bool {
    let first = head.lines().find(|line| !line.starts_with('#') && *line != "---").unwrap_or("");
    first.split_once(':').is_some_and(|(key, _)| !key.contains(' '))
}
