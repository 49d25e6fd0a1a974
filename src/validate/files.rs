//! The two kinds of measured files: a row a request, or a row a load point.

use std::io;
use std::path::{Path, PathBuf};

use csv::StringRecord;

use super::figure::Answer;
use crate::disk;
use crate::scenario::keys::Kind;
use crate::scenario::{MeasuredPoint, point_columns};
use crate::units::{self, SimSpan, SimTime};
use crate::workload::Request;

/// Why a file of measurements cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum MeasurementError {
    #[error("cannot read {}: {source}", file.display())]
    Read { file: PathBuf, source: io::Error },
    #[error("{}, line {line}: found {found}, expected {expected}", file.display())]
    Row { file: PathBuf, line: u64, found: String, expected: String },
    #[error("{}: no column `{column}`; found {found}, expected {expected}", file.display())]
    Column { file: PathBuf, column: String, found: String, expected: String },
    #[error("{}, line {line}, column `{column}`: found {found}, expected {expected}", file.display())]
    Field { file: PathBuf, line: u64, column: String, found: String, expected: String },
    #[error("{}, line {line}: a load point without a load; expected {missing}", file.display())]
    NoLoad { file: PathBuf, line: u64, missing: &'static str },
    #[error("{}, line {line}: {what}", file.display())]
    Contradiction { file: PathBuf, line: u64, what: String },
    #[error("{name}: nothing was measured; expected a figure, such as ttft_mean_ms or requests_per_s")]
    NoFigure { name: String },
    #[error(
        "one measurement is there twice, as {first} and as {second}: the same requests and figures of one deployment; \
         expected each once (a set or a file that is named twice?)"
    )]
    Repeated { first: String, second: String },
    #[error("{}: it has no rows", file.display())]
    Empty { file: PathBuf },
    #[error(
        "{name}: {refused} of {sent} requests do not fit into the context or the KV pool of the deployment"
    )]
    DoesNotFit { name: String, refused: usize, sent: usize },
    #[error(transparent)]
    Engine(#[from] crate::engine::EngineError),
}

/// Nothing that is measured takes longer, nor has more tokens.
const LONGEST_MS: f64 = 1e9;
const LONGEST_S: f64 = 1e9;
const MOST_TOKENS: f64 = 1e9;

/// Columns of a row a request.
const REQUEST_COLUMNS: [&str; 5] = ["send_s", "input_tokens", "output_tokens", "ttft_ms", "e2e_ms"];

/// A CSV file whose columns are found by name.
struct Table {
    file: PathBuf,
    header: Vec<String>,
    rows: Vec<StringRecord>,
}

impl Table {
    fn read(file: &Path) -> Result<Self, MeasurementError> {
        let text = disk::read_to_string(file)
            .map_err(|source| MeasurementError::Read { file: file.to_path_buf(), source })?;
        let wrong = |line: u64, found: String, expected: String| MeasurementError::Row {
            file: file.to_path_buf(),
            line,
            found,
            expected,
        };
        if let Some(line) = disk::open_quote(&text) {
            return Err(wrong(
                line as u64,
                "a quote that nothing closes".to_owned(),
                "two quotes".to_owned(),
            ));
        }
        let failed = |error: csv::Error| {
            let line = error.position().map_or(1, csv::Position::line);
            match error.kind() {
                csv::ErrorKind::UnequalLengths { expected_len, len, .. } => {
                    wrong(line, format!("{len} columns"), format!("{expected_len}, as in the header"))
                }
                _ => wrong(line, error.to_string(), "a CSV row".to_owned()),
            }
        };
        let mut reader =
            csv::ReaderBuilder::new().comment(Some(b'#')).trim(csv::Trim::All).from_reader(text.as_bytes());
        let header: Vec<String> = reader.headers().map_err(failed)?.iter().map(str::to_owned).collect();
        if let Some(name) = units::first_repeated(&header) {
            return Err(wrong(1, format!("two columns `{name}`"), "each column once".to_owned()));
        }
        let rows = reader.records().collect::<Result<Vec<_>, _>>().map_err(failed)?;
        if rows.is_empty() {
            return Err(MeasurementError::Empty { file: file.to_path_buf() });
        }
        Ok(Self { file: file.to_path_buf(), header, rows })
    }

    fn position(&self, column: &str) -> Option<usize> {
        self.header.iter().position(|name| name == column)
    }

    fn require(&self, column: &str, expected: &[&str]) -> Result<usize, MeasurementError> {
        self.position(column).ok_or_else(|| MeasurementError::Column {
            file: self.file.clone(),
            column: column.to_owned(),
            found: Some(self.header.join(","))
                .filter(|text| !text.is_empty())
                .unwrap_or("nothing".to_owned()),
            expected: expected.join(","),
        })
    }

    /// The field as a number of which `is_possible` holds; `None` where it is empty.
    fn number(
        &self,
        row: &StringRecord,
        column: usize,
        expected: &str,
        is_possible: impl Fn(f64) -> bool,
    ) -> Result<Option<f64>, MeasurementError> {
        let text = row.get(column).unwrap_or("");
        if text.is_empty() {
            return Ok(None);
        }
        match text.parse::<f64>() {
            Ok(value) if is_possible(value) => Ok(Some(value)),
            _ => Err(self.field(row, column, text, expected)),
        }
    }

    fn field(&self, row: &StringRecord, column: usize, found: &str, expected: &str) -> MeasurementError {
        let found = if found.is_empty() { "nothing".to_owned() } else { format!("`{found}`") };
        MeasurementError::Field {
            file: self.file.clone(),
            line: row.position().map_or(0, csv::Position::line),
            column: self.header.get(column).cloned().unwrap_or_default(),
            found,
            expected: expected.to_owned(),
        }
    }
}

/// Measured requests in order of sending, the first at 0, and what each came to.
pub(super) fn requests(file: &Path) -> Result<(Vec<Request>, Vec<Answer>), MeasurementError> {
    let table = Table::read(file)?;
    let mut columns = [0; REQUEST_COLUMNS.len()];
    for (column, name) in columns.iter_mut().zip(REQUEST_COLUMNS) {
        *column = table.require(name, &REQUEST_COLUMNS)?;
    }
    let [send, input, output, ttft, e2e] = columns;
    let mut rows = Vec::with_capacity(table.rows.len());
    for row in &table.rows {
        let get = |column, expected: &str, is_possible: &dyn Fn(f64) -> bool| {
            let value = table.number(row, column, expected, is_possible)?;
            value.ok_or_else(|| table.field(row, column, "", expected))
        };
        let is_tokens = |v: f64| (1.0..=MOST_TOKENS).contains(&v) && v == libm::trunc(v);
        let tokens = "a whole number from 1 to 1e9";
        let send_s = get(send, "seconds, from -1e12 to 1e12", &|v| v.abs() <= 1e12)?;
        let input_tokens = get(input, tokens, &is_tokens)? as u32;
        let output_tokens = get(output, tokens, &is_tokens)? as u32;
        let ttft_s =
            get(ttft, "milliseconds from 0.001 to 1e9", &|v| (1e-3..=LONGEST_MS).contains(&v))? / 1e3;
        let e2e_s = get(e2e, "milliseconds from ttft_ms to 1e9", &|v| v / 1e3 >= ttft_s && v <= LONGEST_MS)?;
        let answer = Answer { ttft_s, e2e_s: e2e_s / 1e3, output_tokens };
        rows.push((send_s, input_tokens, answer));
    }
    let earliest = rows.iter().map(|row: &(f64, u32, Answer)| row.0).fold(f64::INFINITY, f64::min);
    if let Some(at) = rows.iter().position(|row| row.0 - earliest > LONGEST_S) {
        let row = &table.rows[at];
        let found = row.get(send).unwrap_or_default();
        return Err(table.field(row, send, found, "seconds within 1e9 of the first request"));
    }
    rows.sort_by(|a, b| a.0.total_cmp(&b.0));
    let first = rows.first().map_or(0.0, |row| row.0);
    let requests = rows.iter().enumerate().map(|(index, (send_s, input_tokens, answer))| {
        let send = SimSpan::from_secs_f64(send_s - first).map_or(SimTime::MAX, |span| SimTime::ZERO + span);
        let (input_tokens, output_tokens) = (*input_tokens, answer.output_tokens);
        Request { index: index as u64, send, input_tokens, output_tokens, class: 0 }
    });
    Ok((requests.collect(), rows.iter().map(|row| row.2).collect()))
}

/// Measured load points. Columns that are not known are passed over: importers write more than is compared.
pub(super) fn points(file: &Path) -> Result<Vec<MeasuredPoint>, MeasurementError> {
    let table = Table::read(file)?;
    let known: Vec<&str> = point_columns().map(|key| key.name).collect();
    for key in point_columns().filter(|key| key.fallback.is_required()) {
        table.require(key.name, &known)?;
    }
    table.rows.iter().map(|row| point(&table, row)).collect()
}

fn point(table: &Table, row: &StringRecord) -> Result<MeasuredPoint, MeasurementError> {
    let mut point = MeasuredPoint::default();
    for key in point_columns() {
        let column = table.position(key.name);
        if let Kind::Choice(choices) = key.kind {
            // An importer that does not know says so.
            let text = column.and_then(|column| row.get(column)).unwrap_or("").trim();
            point.arrival = choices.iter().find(|choice| **choice == text).copied();
            if let (None, Some(column)) = (point.arrival, column)
                && !["", "unknown"].contains(&text)
            {
                return Err(table.field(row, column, text, &key.kind.describe()));
            }
            continue;
        }
        let given = match column {
            Some(column) => {
                let found = row.get(column).and_then(|text| text.parse().ok());
                table.number(row, column, &key.kind.describe_to(found), |v| key.kind.allows(v))?
            }
            None => None,
        };
        match (given.or(key.fallback.number()), column) {
            (Some(value), _) => point.values.push((key.name, value)),
            (None, Some(column)) if key.fallback.is_required() => {
                return Err(table.field(row, column, "", &key.kind.describe()));
            }
            (None, _) => {}
        }
    }
    if let Err(missing) = point.load() {
        let line = row.position().map_or(0, csv::Position::line);
        return Err(MeasurementError::NoLoad { file: table.file.clone(), line, missing });
    }
    if let Some(what) = point.contradiction() {
        let line = row.position().map_or(0, csv::Position::line);
        return Err(MeasurementError::Contradiction { file: table.file.clone(), line, what });
    }
    Ok(point)
}
