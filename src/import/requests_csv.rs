//! One row per request: `send_s,input_tokens,output_tokens,ttft_ms,e2e_ms`, other columns left out.
//!
//! Latencies may be in seconds (`ttft_s`, `e2e_s`); a column without its unit is not guessed at. A row
//! without an E2E is a request that failed.

use super::Imported;
use super::error::{ImportError, Place, quoted};
use super::point::{LoadPoint, MeasuredRequest};
use crate::disk::open_quote;
use crate::units::first_repeated;

/// The smallest number in a file but 0: nothing that is measured is less.
const SMALLEST: f64 = 1e-9;
/// The largest number in a file: milliseconds since 1970 are 1.8e12.
const LARGEST: f64 = 1e13;

pub(super) fn read(into: &mut Imported, name: &str, text: &str) -> Result<(), ImportError> {
    let mut table = Table::new(name, text)?;
    let send = table.need("send_s")?;
    let (input, output) = (table.need("input_tokens")?, table.need("output_tokens")?);
    let (e2e, e2e_scale) = table
        .latency("e2e")?
        .ok_or_else(|| ImportError::file(name, "no column of E2E", "a column `e2e_ms` or `e2e_s`"))?;
    let ttft = table.latency("ttft")?;
    let read = [Some(send), Some(input), Some(output), Some(e2e), ttft.map(|(column, _)| column)];
    let others = (0..).zip(table.names()).filter(|(column, _)| !read.contains(&Some(*column)));
    let others: Vec<String> = others.map(|(_, name)| quoted(name)).collect();
    if !others.is_empty() {
        into.leave_out(&format!("columns that are not read: {}", others.join(", ")));
    }
    let (mut failed, mut impossible, mut empty) = (0_u64, 0_u64, 0_u64);
    while let Some(row) = table.next_row()? {
        let Some(e2e_s) = row.number(e2e)?.map(|value| value * e2e_scale) else {
            failed += 1;
            continue;
        };
        let ttft_s = match ttft {
            Some((column, scale)) => row.number(column)?.map(|value| value * scale),
            None => None,
        };
        if ttft_s.is_some_and(|ttft_s| ttft_s > e2e_s) {
            impossible += 1;
            continue;
        }
        let request = MeasuredRequest {
            point: 0,
            send_s: row.number(send)?.ok_or_else(|| row.error(send, "seconds"))?,
            input_tokens: row.tokens(input)?,
            output_tokens: row.tokens(output)?,
            ttft_s,
            e2e_s,
        };
        if request.input_tokens == 0 || request.output_tokens == 0 {
            empty += 1;
        } else {
            into.requests.push(request);
        }
    }
    if failed > 0 {
        into.leave_out(&format!("requests without an E2E, which failed: {failed}"));
    }
    if empty > 0 {
        into.refuse(&requests_of(empty), "they have no prompt or no answer (0 tokens)");
    }
    if impossible > 0 {
        into.refuse(&requests_of(impossible), "their first token comes after their last");
    }
    if into.requests.is_empty() {
        return Err(ImportError::file(name, "no request that ended", "at least one row with an E2E"));
    }
    let first = into.requests.iter().map(|request| request.send_s).fold(f64::INFINITY, f64::min);
    for request in &mut into.requests {
        request.send_s -= first;
    }
    into.requests.sort_by(|a, b| a.send_s.total_cmp(&b.send_s));
    let mut point = LoadPoint::of_requests(&into.requests);
    point.failed = Some(failed);
    into.understand(&format!(
        "{}; at most {} of them in flight at once; throughput is over first send to last answer",
        requests_of(into.requests.len() as u64),
        most_in_flight(&into.requests)
    ));
    into.leave_out("the arrival process: the sends are replayed as they are");
    into.points.push(point);
    Ok(())
}

fn requests_of(count: u64) -> String {
    format!("{count} request{}", if count == 1 { "" } else { "s" })
}

/// The largest number of requests in flight; a request that ends as another is sent makes room for it.
fn most_in_flight(requests: &[MeasuredRequest]) -> i64 {
    let mut events: Vec<(f64, i64)> = Vec::with_capacity(2 * requests.len());
    for request in requests {
        events.push((request.send_s, 1));
        events.push((request.send_s + request.e2e_s, -1));
    }
    events.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let running = events.iter().scan(0, |now, (_, change)| {
        *now += change;
        Some(*now)
    });
    running.max().unwrap_or_default()
}

/// Rows of a CSV text with a header; errors name line and column.
pub(super) struct Table<'a> {
    file: &'a str,
    header: csv::StringRecord,
    reader: csv::Reader<&'a [u8]>,
    record: csv::StringRecord,
}

/// The row last read.
pub(super) struct Row<'t> {
    file: &'t str,
    header: &'t csv::StringRecord,
    record: &'t csv::StringRecord,
}

impl<'a> Table<'a> {
    pub fn new(file: &'a str, text: &'a str) -> Result<Self, ImportError> {
        if let Some(line) = open_quote(text) {
            return Err(wrong(file, line as u64, "a quote that nothing closes", "two quotes"));
        }
        let mut reader =
            csv::ReaderBuilder::new().trim(csv::Trim::All).comment(Some(b'#')).from_reader(text.as_bytes());
        let header = reader.headers().map_err(|error| failed(file, &error))?.clone();
        let names: Vec<String> = header.iter().map(str::to_owned).collect();
        if let Some(name) = first_repeated(&names) {
            return Err(wrong(file, 1, &format!("two columns `{name}`"), "each column once"));
        }
        Ok(Self { file, header, reader, record: csv::StringRecord::new() })
    }

    pub fn find(&self, name: &str) -> Option<usize> {
        self.header.iter().position(|column| column == name)
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.header.iter()
    }

    fn need(&self, name: &str) -> Result<usize, ImportError> {
        self.find(name).ok_or_else(|| {
            let header = self.header.iter().collect::<Vec<_>>().join(",");
            ImportError::file(
                self.file,
                &format!("the header {}", quoted(&header)),
                &format!("a column `{name}`"),
            )
        })
    }

    /// The column of a latency in ms or s and what makes it seconds.
    fn latency(&self, metric: &str) -> Result<Option<(usize, f64)>, ImportError> {
        if let Some(column) = self.find(metric) {
            let column = self.header.get(column).unwrap_or_default();
            let expected = format!("its unit in its name: `{metric}_ms` or `{metric}_s`");
            return Err(ImportError::file(self.file, &format!("a column `{column}`"), &expected));
        }
        let ms = self.find(&format!("{metric}_ms")).map(|column| (column, 1e-3));
        Ok(ms.or_else(|| self.find(&format!("{metric}_s")).map(|column| (column, 1.0))))
    }

    pub fn next_row(&mut self) -> Result<Option<Row<'_>>, ImportError> {
        let more = self.reader.read_record(&mut self.record).map_err(|error| failed(self.file, &error))?;
        Ok(more.then_some(Row { file: self.file, header: &self.header, record: &self.record }))
    }
}

impl<'t> Row<'t> {
    pub fn text(&self, column: usize) -> &'t str {
        self.record.get(column).unwrap_or("")
    }

    pub fn line(&self) -> u64 {
        self.record.position().map_or(0, csv::Position::line)
    }

    /// 0, or a number from [`SMALLEST`] to [`LARGEST`]; `None` in an empty cell.
    pub fn number(&self, column: usize) -> Result<Option<f64>, ImportError> {
        let text = self.text(column);
        if text.is_empty() {
            return Ok(None);
        }
        let is_possible = |number: &f64| *number == 0.0 || (SMALLEST..=LARGEST).contains(number);
        let number = text.parse().ok().filter(is_possible);
        let expected = || format!("0, or a number from {SMALLEST:e} to {LARGEST:e}");
        number.map(Some).ok_or_else(|| self.error(column, &expected()))
    }

    /// The same where only a whole number makes sense.
    pub fn count(&self, column: usize) -> Result<Option<u64>, ImportError> {
        match self.number(column)? {
            Some(number) if number.fract() != 0.0 => Err(self.error(column, "a whole number")),
            number => Ok(number.map(|number| number as u64)),
        }
    }

    fn tokens(&self, column: usize) -> Result<u32, ImportError> {
        let expected = || format!("a whole number of tokens, at most {}", u32::MAX);
        self.text(column).parse().map_err(|_| self.error(column, &expected()))
    }

    pub fn error(&self, column: usize, expected: &str) -> ImportError {
        let place = Place {
            file: self.file.to_owned(),
            line: Some(self.line()),
            key: self.header.get(column).unwrap_or_default().to_owned(),
        };
        ImportError::Value { place, found: quoted(self.text(column)), expected: expected.to_owned() }
    }
}

fn failed(file: &str, error: &csv::Error) -> ImportError {
    let line = error.position().map_or(1, csv::Position::line);
    let (found, expected) = match error.kind() {
        csv::ErrorKind::UnequalLengths { expected_len, len, .. } => {
            (format!("{len} columns"), format!("{expected_len}, as in the header"))
        }
        _ => (error.to_string(), "a CSV row".to_owned()),
    };
    wrong(file, line, &found, &expected)
}

fn wrong(file: &str, line: u64, found: &str, expected: &str) -> ImportError {
    let place = Place { file: file.to_owned(), line: Some(line), key: String::new() };
    ImportError::Value { place, found: found.to_owned(), expected: expected.to_owned() }
}
