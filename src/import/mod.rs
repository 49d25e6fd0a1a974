//! Reads what load generators, vLLM servers and production logs write, in our words.
//!
//! Every tool names its metrics its own way, and the same word means different things: guidellm's time
//! per output token includes the first, aiperf's inter-token latency is the per-request mean, others count
//! chunks for tokens. There is one file per format here, and it is the only place that knows that format.
//! What comes out is an [`Imported`]: load points, requests, facts about the server or a trace, with what
//! was understood, what was left out, and what cannot be true.
//!
//! [`import_path`] recognises a file by its content; [`check`] holds the points against arithmetic
//! (Little's law, latencies that add up) and against the chip; [`mod@write`] makes a measurement set of them.

mod aiperf;
pub mod check;
mod error;
mod format;
mod genai_perf;
mod guidellm;
mod guidellm_console;
mod guidellm_summary;
mod inference_perf;
mod llmd;
mod llmperf;
mod names;
mod numbers;
mod point;
mod points_csv;
mod requests_csv;
mod tree;
mod vllm_bench;
mod vllm_console;
mod vllm_log;
mod vllm_metrics;
mod vllm_sweep;
pub mod write;

use std::path::Path;

pub use error::{ImportError, Place};
pub use format::Format;
pub use point::{
    Arrival, LatencyStats, LengthKind, LoadPoint, MeasuredAt, MeasuredRequest, ServerFacts, TokenLengths,
};

use crate::disk;
use crate::workload::trace::{self, Trace};
use format::{Content, Recognised};

/// What was read from one file or folder.
#[derive(Clone, Debug)]
pub struct Imported {
    /// The file's name as given.
    pub source: String,
    pub format: Format,
    /// By what the format was recognised.
    pub recognised_by: String,
    /// How the tool's names were mapped onto ours.
    pub understood: Vec<String>,
    /// What the file holds and no point does, and why.
    pub left_out: Vec<String>,
    /// Load points in the file's order.
    pub points: Vec<LoadPoint>,
    /// Requests of the points, where the file has all of them with their send times.
    pub requests: Vec<MeasuredRequest>,
    /// What the file says about the server as a whole; each point has its own as well.
    pub server: ServerFacts,
    pub trace: Option<Trace>,
    /// What the reader must know before using the figures.
    pub warnings: Vec<String>,
    /// Points that were not taken because they cannot be true.
    pub refused: Vec<Refusal>,
}

/// A point that was not taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Where it stands in its source.
    pub label: String,
    pub reason: String,
}

impl Imported {
    fn new(source: &str, format: Format, recognised_by: String) -> Self {
        Self {
            source: source.to_owned(),
            format,
            recognised_by,
            understood: Vec::new(),
            left_out: Vec::new(),
            points: Vec::new(),
            requests: Vec::new(),
            server: ServerFacts::default(),
            trace: None,
            warnings: Vec::new(),
            refused: Vec::new(),
        }
    }

    fn understand(&mut self, text: &str) {
        say_once(&mut self.understood, text);
    }

    fn leave_out(&mut self, text: &str) {
        say_once(&mut self.left_out, text);
    }

    fn warn(&mut self, label: &str, text: &str) {
        let text = if label.is_empty() { text.to_owned() } else { format!("{label}: {text}") };
        say_once(&mut self.warnings, &text);
    }

    fn refuse(&mut self, label: &str, reason: &str) {
        let label = if label.is_empty() { "the result" } else { label };
        self.refused.push(Refusal { label: label.to_owned(), reason: reason.to_owned() });
    }

    /// Keeps the points that have no reason against them, with their requests; one entry a point.
    fn refuse_points(&mut self, reasons: Vec<Option<String>>) {
        let mut new_index = Vec::with_capacity(reasons.len());
        let mut kept = 0;
        for (reason, point) in reasons.into_iter().zip(std::mem::take(&mut self.points)) {
            if let Some(reason) = reason {
                self.refuse(&point.label, &reason);
                new_index.push(None);
            } else {
                self.points.push(point);
                new_index.push(Some(kept));
                kept += 1;
            }
        }
        self.requests.retain_mut(|request| {
            let index = new_index.get(request.point).copied().flatten();
            request.point = index.unwrap_or_default();
            index.is_some()
        });
    }
}

fn say_once(list: &mut Vec<String>, text: &str) {
    if !list.iter().any(|known| known == text) {
        list.push(text.to_owned());
    }
}

/// Reads a file, or a folder that `vllm bench sweep` wrote; `forced` skips the recognition.
///
/// # Errors
/// [`ImportError`], naming file, line or key, what was found and what was expected.
pub fn import_path(path: &Path, forced: Option<Format>) -> Result<Imported, ImportError> {
    if path.is_dir() {
        return vllm_sweep::read(path);
    }
    let text = disk::read_to_string(path)
        .map_err(|source| ImportError::Read { path: path.to_path_buf(), source })?;
    import_text(&path.display().to_string(), &text, forced)
}

/// As [`import_path`], from a text; `name` is for messages.
///
/// # Errors
/// As [`import_path`].
pub fn import_text(name: &str, text: &str, forced: Option<Format>) -> Result<Imported, ImportError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let Recognised { format, why, content } = format::recognise(name, text, forced)?;
    let mut imported = Imported::new(name, format, why);
    read(&mut imported, name, text, &content)?;
    warn_of_open_end(&mut imported, text);
    let server = imported.server.clone();
    for point in &mut imported.points {
        point.server.fill_from(&server);
    }
    check::arithmetic(&mut imported);
    Ok(imported)
}

/// JSON that was cut off is none; of lines nobody knows whether they are all. But whole ones end.
fn warn_of_open_end(into: &mut Imported, text: &str) {
    // Tables of `vllm bench serve` have a last line to tell it by.
    let tells_its_end = text.trim_start().starts_with(['{', '[']) || into.format == Format::VllmConsole;
    if !tells_its_end && !text.ends_with('\n') {
        into.warn(
            "",
            "its last line has no end: if the file was cut off, that line is half of one and others are missing",
        );
    }
}

fn read(into: &mut Imported, name: &str, text: &str, content: &Content) -> Result<(), ImportError> {
    match into.format {
        Format::VllmBench => vllm_bench::read(into, name, content),
        Format::VllmConsole => vllm_console::read(into, name, text),
        Format::VllmSweep => {
            Err(ImportError::file(name, "a file", "the folder that `vllm bench sweep` wrote"))
        }
        Format::Guidellm => guidellm::read(into, name, content),
        Format::GuidellmConsole => guidellm_console::read(into, name, text),
        Format::GuidellmSummary => guidellm_summary::read(into, name, content),
        Format::Aiperf => aiperf::read(into, name, content),
        Format::GenaiPerf => genai_perf::read(into, name, content),
        Format::InferencePerf => inference_perf::read(into, name, content),
        Format::Llmperf => llmperf::read(into, name, content),
        Format::LlmdReport => llmd::read(into, name, content),
        Format::VllmMetrics => vllm_metrics::read(into, name, text),
        Format::VllmLog => vllm_log::read(into, name, text),
        Format::Requests => requests_csv::read(into, name, text),
        Format::Points => points_csv::read(into, name, text),
        Format::Trace => read_trace(into, name, text),
    }
}

fn read_trace(into: &mut Imported, name: &str, text: &str) -> Result<(), ImportError> {
    let trace = trace::parse(name, text)?;
    for note in &trace.notes {
        into.warn("", note);
    }
    into.understand("arrival times, from the first request; prompt and output tokens of each request");
    if trace.format == trace::TraceFormat::Mooncake {
        into.leave_out("`hash_ids`: shared prefixes are not replayed");
    }
    into.trace = Some(trace);
    Ok(())
}
