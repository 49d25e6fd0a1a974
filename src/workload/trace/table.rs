//! A CSV table whose errors name line, column, what was found and what was expected.

use super::{TraceError, quoted};
use crate::disk::open_quote;
use crate::units::{Tokens, first_repeated};

/// The largest number in a file: seconds since 1970 are 1.8e9.
const LARGEST: f64 = 1e12;

/// Rows of a CSV text with a header.
pub(in crate::workload) struct Table<'a> {
    file: &'a str,
    header: csv::StringRecord,
    reader: csv::Reader<&'a [u8]>,
    record: csv::StringRecord,
}

/// A column of a [`Table`], found by name.
#[derive(Clone, Copy)]
pub(in crate::workload) struct Column(usize);

/// The row last read from a [`Table`].
pub(in crate::workload) struct Row<'t> {
    file: &'t str,
    header: &'t csv::StringRecord,
    record: &'t csv::StringRecord,
}

impl<'a> Table<'a> {
    pub fn new(file: &'a str, text: &'a str) -> Result<Self, TraceError> {
        let wrong = |line: usize, message: String| TraceError::Line {
            file: file.to_owned(),
            line: line as u64,
            message,
        };
        if let Some(line) = open_quote(text) {
            return Err(wrong(line, "found a quote that nothing closes, expected two quotes".to_owned()));
        }
        let mut reader =
            csv::ReaderBuilder::new().trim(csv::Trim::All).comment(Some(b'#')).from_reader(text.as_bytes());
        let header = reader.headers().map_err(|e| csv_error(file, &e))?.clone();
        let names: Vec<String> = header.iter().map(str::to_owned).collect();
        if let Some(name) = first_repeated(&names) {
            return Err(wrong(1, format!("found two columns `{name}`, expected each column once")));
        }
        Ok(Self { file, header, reader, record: csv::StringRecord::new() })
    }

    pub fn find_column(&self, name: &str) -> Option<Column> {
        self.header.iter().position(|column| column == name).map(Column)
    }

    /// The column called by one of `names`.
    pub fn column_of(&self, names: &[&str]) -> Result<Column, TraceError> {
        names.iter().find_map(|name| self.find_column(name)).ok_or_else(|| {
            let wanted = names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>();
            self.header_error(&format!("a column {}", wanted.join(" or ")))
        })
    }

    /// The column of a table that has only one.
    pub fn only_column(&self) -> Result<Column, TraceError> {
        if self.header.len() == 1 {
            Ok(Column(0))
        } else {
            Err(self.header_error("one column of values, or the columns `probability,value`"))
        }
    }

    fn header_error(&self, expected: &str) -> TraceError {
        TraceError::Header {
            file: self.file.to_owned(),
            found: format!("the header {}", quoted(&self.header.iter().collect::<Vec<_>>().join(","))),
            expected: expected.to_owned(),
        }
    }

    pub fn next_row(&mut self) -> Result<Option<Row<'_>>, TraceError> {
        match self.reader.read_record(&mut self.record) {
            Ok(true) => Ok(Some(Row { file: self.file, header: &self.header, record: &self.record })),
            Ok(false) => Ok(None),
            Err(error) => Err(csv_error(self.file, &error)),
        }
    }
}

impl<'t> Row<'t> {
    pub fn text(&self, column: Column) -> &'t str {
        self.record.get(column.0).unwrap_or("")
    }

    /// A number from 0 to [`LARGEST`].
    pub fn number(&self, column: Column) -> Result<f64, TraceError> {
        let parsed: Option<f64> = self.text(column).parse().ok();
        parsed
            .filter(|value| (0.0..=LARGEST).contains(value))
            .ok_or_else(|| self.error(column, &format!("a number from 0 to {LARGEST:e}")))
    }

    pub fn tokens(&self, column: Column) -> Result<Tokens, TraceError> {
        let parsed = self.text(column).parse().ok();
        parsed
            .ok_or_else(|| self.error(column, &format!("a whole number of tokens, at most {}", Tokens::MAX)))
    }

    /// The error that `column` of this row is not what was `expected`.
    pub fn error(&self, column: Column, expected: &str) -> TraceError {
        TraceError::Field {
            file: self.file.to_owned(),
            line: self.record.position().map_or(0, csv::Position::line),
            column: self.header.get(column.0).unwrap_or("").to_owned(),
            found: quoted(self.text(column)),
            expected: expected.to_owned(),
        }
    }
}

fn csv_error(file: &str, error: &csv::Error) -> TraceError {
    let message = match error.kind() {
        csv::ErrorKind::UnequalLengths { expected_len, len, .. } => {
            format!("found {len} columns, expected {expected_len}, as in the header")
        }
        _ => error.to_string(),
    };
    TraceError::Line { file: file.to_owned(), line: error.position().map_or(1, csv::Position::line), message }
}
