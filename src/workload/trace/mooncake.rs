//! Mooncake's JSON lines: `{"timestamp": ms, "input_length": n, "output_length": n, "hash_ids": [...]}`.
//!
//! The published traces are quantised: a dozen requests share a timestamp, and the next one comes 3 s
//! later. Replayed as they stand they would be bursts that never happened. So the requests of a timestamp
//! are spread evenly, in file order, from it to the next one, but no further than the trace's usual
//! (median) distance between timestamps. The prefix hashes are not used.
//! Source: github.com/kvcache-ai/Mooncake, Apache-2.0.

use serde::Deserialize;

use super::{Row, Trace, TraceError, TraceFormat, assemble, quoted, sort};
use crate::units::{Tokens, plain};

const NANOS_PER_MS: f64 = 1e6;
/// Within the clock.
const LONGEST_NS: f64 = 1.8e19;

#[derive(Deserialize)]
struct Line {
    timestamp: f64,
    input_length: Tokens,
    output_length: Tokens,
}

pub(super) fn parse(name: &str, text: &str) -> Result<Trace, TraceError> {
    let mut rows = Vec::new();
    for (number, line) in (1_u64..).zip(text.lines()) {
        if line.trim().is_empty() {
            continue;
        }
        let parsed: Line = serde_json::from_str(line).map_err(|error| TraceError::Line {
            file: name.to_owned(),
            line: number,
            message: format!(
                "found {}, expected an object with `timestamp`, `input_length`, `output_length` ({error})",
                quoted(line)
            ),
        })?;
        let nanos = parsed.timestamp * NANOS_PER_MS;
        if !(0.0..LONGEST_NS).contains(&nanos) {
            return Err(TraceError::Field {
                file: name.to_owned(),
                line: number,
                column: "timestamp".to_owned(),
                found: format!("`{}`", plain(parsed.timestamp)),
                expected: format!("milliseconds from 0 to {:e}", LONGEST_NS / NANOS_PER_MS),
            });
        }
        rows.push(Row {
            arrival_ns: libm::rint(nanos) as u128,
            input_tokens: parsed.input_length,
            output_tokens: parsed.output_length,
            class: 0,
        });
    }
    let sorted = sort(name, &mut rows);
    let spread = spread_ties(&mut rows);
    let mut trace = assemble(name, TraceFormat::Mooncake, rows, vec![String::new()])?;
    trace.notes.extend(sorted);
    if let Some(span_ms) = spread {
        trace.notes.push(format!(
            "{name}: timestamps are quantised; requests of one timestamp are spread evenly over {span_ms} ms"
        ));
    }
    Ok(trace)
}

/// Spreads rows (in order) that share a timestamp up to the next timestamp, at most the median distance
/// between timestamps, which is returned in ms if there were any such rows.
fn spread_ties(rows: &mut [Row]) -> Option<u128> {
    let times: Vec<u128> = rows.iter().map(|row| row.arrival_ns).collect();
    let mut gaps: Vec<u128> = times.windows(2).map(|w| w[1] - w[0]).filter(|gap| *gap > 0).collect();
    gaps.sort_unstable();
    let usual = *gaps.get(gaps.len() / 2)?;
    let mut spread = false;
    let mut start = 0;
    for ties in rows.chunk_by_mut(|a, b| a.arrival_ns == b.arrival_ns) {
        let end = start + ties.len();
        let to_next = times.get(end).map_or(usual, |next| next - times[start]);
        let width = to_next.min(usual);
        let count = ties.len() as u128;
        for (k, row) in (0_u128..).zip(ties.iter_mut()) {
            row.arrival_ns += width * k / count;
        }
        spread |= count > 1;
        start = end;
    }
    spread.then_some(usual / 1_000_000)
}
