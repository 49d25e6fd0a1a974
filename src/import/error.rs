//! Why a file could not be imported.

use std::fmt;
use std::io;
use std::path::PathBuf;

use crate::workload::TraceError;

/// Where in a file something stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    pub file: String,
    /// Line, counted from 1, where the format has lines that matter (JSON lines, CSV, text).
    pub line: Option<u64>,
    /// Key path such as `benchmarks[2].metrics`, or a column; empty for the whole of it.
    pub key: String,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if let Some(line) = self.line {
            write!(f, ", line {line}")?;
        }
        if !self.key.is_empty() {
            write!(f, ", `{}`", self.key)?;
        }
        Ok(())
    }
}

/// Why a file could not be imported.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    #[error("cannot read {}: {source}", path.display())]
    Read { path: PathBuf, source: io::Error },
    /// Not the JSON or YAML it looks like.
    #[error("{file}, line {line}, column {column}: {message}")]
    Syntax { file: String, line: u64, column: u64, message: String },
    #[error("{place}: found {found}, expected {expected}")]
    Value { place: Place, found: String, expected: String },
    #[error("{file} is not recognised: {found}; known formats: {known} (force one with --as)")]
    Unrecognised { file: String, found: String, known: String },
    #[error(transparent)]
    Trace(#[from] TraceError),
}

impl ImportError {
    /// The error that a whole file is not what was expected.
    pub(super) fn file(file: &str, found: &str, expected: &str) -> Self {
        let place = Place { file: file.to_owned(), ..Place::default() };
        Self::Value { place, found: found.to_owned(), expected: expected.to_owned() }
    }
}

/// `text` in backquotes, cut to a length that fits a message.
pub(super) fn quoted(text: &str) -> String {
    const LONGEST: usize = 60;
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("`{}...`", &text[..end]),
        None if text.is_empty() => "nothing".to_owned(),
        None => format!("`{text}`"),
    }
}
