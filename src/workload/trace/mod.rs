//! Recorded loads, in the formats people have them in.
//!
//! The format is recognised by the first line. Whatever it is, a [`Trace`] comes out in order of arrival
//! with its first request at 0. What had to be changed to get there (rows out of order, requests without
//! tokens, coarse timestamps) is said in [`Trace::notes`], never done in silence.

mod azure;
mod knee;
mod mooncake;
pub(super) mod table;

use super::Request;
use crate::units::{SimTime, Tokens};

/// A recorded sequence of requests, in order of arrival, the first at 0.
#[derive(Clone, Debug, PartialEq)]
pub struct Trace {
    /// Where it came from, for the provenance line.
    pub name: String,
    /// Format recognised by its header.
    pub format: TraceFormat,
    /// The requests; `index` and `class` are set, `class` into [`Trace::class_names`].
    pub requests: Vec<Request>,
    /// Class names that occur in the file (one unnamed class if the column is absent).
    pub class_names: Vec<String>,
    /// What was changed on the way in, in words.
    pub notes: Vec<String>,
}

/// Trace file formats that are recognised by their header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceFormat {
    /// `arrival_s,input_tokens,output_tokens[,class][,session]`
    Knee,
    /// `TIMESTAMP,ContextTokens,GeneratedTokens`
    Azure,
    /// JSON lines with `timestamp` (ms), `input_length`, `output_length`
    Mooncake,
}

/// Why a trace, or a file of lengths, cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TraceError {
    #[error("{file}, line {line}, column `{column}`: found {found}, expected {expected}")]
    Field { file: String, line: u64, column: String, found: String, expected: String },
    #[error("{file}, line {line}: {message}")]
    Line { file: String, line: u64, message: String },
    #[error("{file}: found {found}, expected {expected}")]
    Header { file: String, found: String, expected: String },
}

impl TraceError {
    pub(super) fn empty(file: &str) -> Self {
        Self::file(file, "at least one row")
    }

    pub(super) fn file(file: &str, expected: &str) -> Self {
        Self::Header {
            file: file.to_owned(),
            found: "the end of the file".to_owned(),
            expected: expected.to_owned(),
        }
    }
}

/// Reads a trace from its text; `name` is for messages and the provenance line.
///
/// # Errors
/// [`TraceError`] with line, column, what was found and what was expected.
pub fn parse(name: &str, text: &str) -> Result<Trace, TraceError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let first = text.lines().find(|line| !line.trim().is_empty()).unwrap_or("");
    if first.trim_start().starts_with('{') {
        return mooncake::parse(name, text);
    }
    let header: Vec<&str> = first.split(',').map(|c| c.trim().trim_matches('"')).collect();
    if header.contains(&"TIMESTAMP") {
        azure::parse(name, text)
    } else if header.contains(&"arrival_s") {
        knee::parse(name, text)
    } else {
        Err(TraceError::Header {
            file: name.to_owned(),
            found: quoted(first),
            expected: "a header `arrival_s,input_tokens,output_tokens`, an Azure header \
                       `TIMESTAMP,ContextTokens,GeneratedTokens`, or Mooncake's JSON lines"
                .to_owned(),
        })
    }
}

/// A row as recorded, before the rows are put in order.
#[derive(Clone, Copy, Debug)]
struct Row {
    /// Nanoseconds since an arbitrary origin.
    arrival_ns: u128,
    input_tokens: Tokens,
    output_tokens: Tokens,
    class: u16,
}

/// Puts `rows` in order, moves the first to 0 and numbers them.
fn assemble(
    name: &str,
    format: TraceFormat,
    mut rows: Vec<Row>,
    class_names: Vec<String>,
) -> Result<Trace, TraceError> {
    let mut notes: Vec<String> = sort(name, &mut rows).into_iter().collect();
    let origin = rows.first().ok_or_else(|| TraceError::empty(name))?.arrival_ns;
    let clamped = rows.iter().filter(|r| r.input_tokens == 0 || r.output_tokens == 0).count();
    if clamped > 0 {
        notes.push(format!(
            "{name}: {clamped} requests without input or output tokens are replayed with 1 token"
        ));
    }
    if rows.last().is_some_and(|last| u64::try_from(last.arrival_ns - origin).is_err()) {
        return Err(TraceError::Header {
            file: name.to_owned(),
            found: "arrivals that lie centuries apart".to_owned(),
            expected: "all within the clock's 584 years".to_owned(),
        });
    }
    let requests = rows.iter().enumerate().map(|(index, row)| Request {
        index: index as u64,
        send: SimTime::from_nanos((row.arrival_ns - origin) as u64),
        input_tokens: row.input_tokens.max(1),
        output_tokens: row.output_tokens.max(1),
        class: row.class,
    });
    Ok(Trace { name: name.to_owned(), format, requests: requests.collect(), class_names, notes })
}

/// Sorts by arrival, equal arrivals in file order; says so if that changed anything.
fn sort(name: &str, rows: &mut [Row]) -> Option<String> {
    let late = rows.windows(2).filter(|w| w[1].arrival_ns < w[0].arrival_ns).count();
    rows.sort_by_key(|row| row.arrival_ns);
    (late > 0).then(|| format!("{name}: {late} rows came before the row above them; sorted by arrival"))
}

/// `text` in backquotes, cut to a length that fits a message.
fn quoted(text: &str) -> String {
    const LONGEST: usize = 60;
    if text.is_empty() {
        return "nothing".to_owned();
    }
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("`{}...`", &text[..end]),
        None => format!("`{text}`"),
    }
}

#[cfg(test)]
mod tests;
