//! The tables `Benchmarks Info` and `Benchmarks Stats` that guidellm prints (0.2, 0.3).
//!
//! A row of each belongs to one benchmark, in the same order. Columns are found by their place; the
//! header is checked, so another layout is refused and not misread.

use super::Imported;
use super::error::{ImportError, Place, quoted};
use super::numbers::small_count;
use super::point::{Arrival, LatencyStats, LoadPoint, TokenLengths};

/// The second header line of each table, and how many columns its rows have.
const INFO_HEADER: &str = "Benchmark|Start Time|End Time|Duration (s)|Comp|Inc|Err|Comp|Inc|Err|Comp|Inc|Err";
const STATS_HEADER: &str =
    "Benchmark|Per Second|Concurrency|mean|mean|mean|median|p99|mean|median|p99|mean|median|p99";

#[derive(Clone, Copy, PartialEq)]
enum Table {
    Info,
    Stats,
}

pub(super) fn read(into: &mut Imported, name: &str, text: &str) -> Result<(), ImportError> {
    let mut table = None;
    let mut rows: [Vec<Row>; 2] = [Vec::new(), Vec::new()];
    for (number, line) in (1_u64..).zip(text.lines()) {
        let cells: Vec<String> = line.split('|').map(|cell| cell.trim().to_owned()).collect();
        let joined = cells.join("|");
        if joined.starts_with(INFO_HEADER) {
            table = Some(Table::Info);
        } else if joined.starts_with(STATS_HEADER) {
            table = Some(Table::Stats);
        } else if cells.len() < 13 || cells[0].starts_with('-') {
            // Rules, headings and text around the tables.
            table = table.filter(|_| line.trim().starts_with('-'));
        } else if let Some(table) = table {
            let row = Row { file: name, line: number, cells };
            rows[usize::from(table == Table::Stats)].push(row);
        }
    }
    let [info, stats] = rows;
    if stats.is_empty() || info.len() != stats.len() {
        let found = format!("{} rows of info and {} of statistics", info.len(), stats.len());
        return Err(ImportError::file(
            name,
            &found,
            "the tables of guidellm 0.2 or 0.3, a row per benchmark",
        ));
    }
    for (info, stats) in info.iter().zip(&stats) {
        into.points.push(point(info, stats)?);
    }
    into.understand("ITL is our TPOT; requests that completed; figures as rounded for printing");
    into.leave_out("TPOT: this version divides by one token too many");
    Ok(())
}

struct Row<'a> {
    file: &'a str,
    line: u64,
    cells: Vec<String>,
}

impl Row<'_> {
    fn number(&self, column: usize) -> Result<f64, ImportError> {
        let cell = self.cells.get(column).map_or("", String::as_str);
        cell.parse().ok().filter(|number: &f64| number.is_finite() && *number >= 0.0).ok_or_else(|| {
            let place = Place {
                file: self.file.to_owned(),
                line: Some(self.line),
                key: format!("column {}", column + 1),
            };
            ImportError::Value { place, found: quoted(cell), expected: "a number".to_owned() }
        })
    }

    /// Mean, median and p99 in three columns.
    fn latency(&self, column: usize, to_seconds: f64) -> Result<LatencyStats, ImportError> {
        Ok(LatencyStats {
            mean_s: Some(self.number(column)? * to_seconds),
            p50_s: Some(self.number(column + 1)? * to_seconds),
            p99_s: Some(self.number(column + 2)? * to_seconds),
            ..LatencyStats::default()
        })
    }
}

fn point(info: &Row<'_>, stats: &Row<'_>) -> Result<LoadPoint, ImportError> {
    // `constant@12.5`, `concurrent@8`, `synchronous`.
    let (kind, value) = stats.cells[0].split_once('@').unwrap_or((&stats.cells[0], ""));
    let value: Option<f64> = value.parse().ok().filter(|value: &f64| value.is_finite() && *value > 0.0);
    let (arrival, rate_per_s, concurrency) = match kind {
        "synchronous" => (Arrival::Closed, None, Some(1)),
        "concurrent" => (Arrival::Closed, None, value.and_then(|users| small_count(users as u64))),
        "constant" => (Arrival::Constant, value, None),
        "poisson" => (Arrival::Poisson, value, None),
        "throughput" => (Arrival::AllAtOnce, None, None),
        _ => (Arrival::Unknown, None, None),
    };
    Ok(LoadPoint {
        label: stats.cells[0].clone(),
        arrival,
        rate_per_s,
        concurrency,
        completed: Some(info.number(4)? as u64),
        failed: Some(info.number(6)? as u64),
        duration_s: Some(info.number(3)?),
        requests_per_s: Some(stats.number(1)?),
        output_tokens_per_s: Some(stats.number(3)?),
        total_tokens_per_s: Some(stats.number(4)?),
        input_tokens: Some(TokenLengths::mean(info.number(7)?)),
        output_tokens: Some(TokenLengths::mean(info.number(10)?)),
        e2e: stats.latency(5, 1.0)?,
        ttft: stats.latency(8, 1e-3)?,
        tpot: stats.latency(11, 1e-3)?,
        ..LoadPoint::default()
    })
}
