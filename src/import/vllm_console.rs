//! The table that `vllm bench serve` prints, alone or inside a longer log; several make several points.
//!
//! Its labels change their case and wording between versions (`Total Token throughput`, `Total token
//! throughput`), so they are compared without case. The offered rate is not in it before 0.11.

use super::Imported;
use super::error::{ImportError, Place, quoted};
use super::numbers::small_count;
use super::point::{Arrival, LoadPoint, TokenLengths};

const BANNER: &str = "Serving Benchmark Result";

pub(super) fn read(into: &mut Imported, name: &str, text: &str) -> Result<(), ImportError> {
    let mut open: Option<Table> = None;
    for (number, line) in (1_u64..).zip(text.lines()) {
        if line.contains(BANNER) {
            finish(into, open.replace(Table::default()));
            if let Some(table) = &mut open {
                table.point.label = format!("line {number}");
            }
        } else if let Some(table) = &mut open {
            table.is_closed |= is_rule(line);
            table.line(name, number, line)?;
        }
    }
    if open.is_none() {
        return Err(ImportError::file(name, "no table", "the banner `Serving Benchmark Result`"));
    }
    finish(into, open);
    into.understand("ttft, tpot, itl and e2el are ours, in ms to two digits, as printed");
    into.leave_out("peak throughput and peak concurrency");
    Ok(())
}

/// A table as far as it was read.
#[derive(Default)]
struct Table {
    point: LoadPoint,
    input: Option<f64>,
    output: Option<f64>,
    /// Its last line was there.
    is_closed: bool,
}

/// The line of `=` that ends a table.
fn is_rule(line: &str) -> bool {
    let line = line.trim();
    line.len() > 10 && line.chars().all(|c| c == '=')
}

impl Table {
    fn line(&mut self, file: &str, number: u64, line: &str) -> Result<(), ImportError> {
        let Some((label, value)) = line.rsplit_once(':') else { return Ok(()) };
        let label = label.trim().to_lowercase();
        let value = value.trim();
        let Ok(parsed) = value.parse::<f64>() else { return self.not_a_number(file, number, &label, value) };
        if !parsed.is_finite() {
            return self.not_a_number(file, number, &label, value);
        }
        let point = &mut self.point;
        match label.as_str() {
            "successful requests" => point.completed = Some(parsed as u64),
            "failed requests" => point.failed = Some(parsed as u64),
            "maximum request concurrency" => point.concurrency = small_count(parsed as u64),
            "request rate configured (rps)" => point.rate_per_s = Some(parsed),
            "benchmark duration (s)" => point.duration_s = Some(parsed),
            "total input tokens" => self.input = Some(parsed),
            "total generated tokens" => self.output = Some(parsed),
            "request throughput (req/s)" => point.requests_per_s = Some(parsed),
            "request goodput (req/s)" => point.good_per_s = Some(parsed),
            "output token throughput (tok/s)" => point.output_tokens_per_s = Some(parsed),
            "input token throughput (tok/s)" => point.input_tokens_per_s = Some(parsed),
            "total token throughput (tok/s)" => point.total_tokens_per_s = Some(parsed),
            _ => self.latency(&label, parsed * 1e-3),
        }
        Ok(())
    }

    /// `median ttft (ms)` and its like.
    fn latency(&mut self, label: &str, seconds: f64) {
        let Some(words) = label.strip_suffix(" (ms)") else { return };
        let Some((statistic, metric)) = words.split_once(' ') else { return };
        let statistic = if statistic == "median" { "p50" } else { statistic };
        let metric = match metric {
            "e2el" | "e2e latency" => "e2e",
            other => other,
        };
        for (name, stats) in self.point.latencies_mut() {
            for (key, slot) in stats.named_mut() {
                if name == metric && key == statistic {
                    *slot = Some(seconds);
                }
            }
        }
    }

    /// A label of ours must have a number; other lines of a log may hold anything.
    fn not_a_number(&self, file: &str, number: u64, label: &str, value: &str) -> Result<(), ImportError> {
        let ours = label.ends_with(" (ms)") || label.ends_with(" (tok/s)") || label.ends_with(" (req/s)");
        let unlimited = matches!(value, "inf" | "None");
        if !ours || unlimited {
            return Ok(());
        }
        let place = Place { file: file.to_owned(), line: Some(number), key: label.to_owned() };
        Err(ImportError::Value { place, found: quoted(value), expected: "a number".to_owned() })
    }
}

fn finish(into: &mut Imported, table: Option<Table>) {
    let Some(Table { mut point, input, output, is_closed }) = table else { return };
    if !is_closed {
        let label = point.label.clone();
        into.warn(
            &label,
            "the table does not end in its line of `=`: figures may be missing (was it cut off?)",
        );
    }
    if point.completed == Some(0) {
        into.refuse(&point.label, "no request completed: its zeros are not latencies");
        return;
    }
    let per_request = |total: Option<f64>| Some(TokenLengths::mean(total? / point.completed? as f64));
    point.input_tokens = per_request(input);
    point.output_tokens = per_request(output);
    if point.input_tokens_per_s.is_none() {
        point.input_tokens_per_s =
            point.total_tokens_per_s.zip(point.output_tokens_per_s).map(|(t, o)| t - o);
    }
    point.arrival = match (point.rate_per_s, point.concurrency) {
        (Some(_), _) => Arrival::Poisson,
        (None, Some(_)) => {
            into.warn(
                "",
                "the table prints no request rate: with a limit on concurrency it is taken for `inf`, a closed \
                 loop; if the run had a rate, set it in curve.csv",
            );
            Arrival::Closed
        }
        (None, None) => Arrival::Unknown,
    };
    into.points.push(point);
}
