//! Azure's production traces: `TIMESTAMP,ContextTokens,GeneratedTokens`.
//!
//! Timestamps such as `2023-11-16 18:15:46.6805900` resolve 100 ns; the later traces write fewer digits
//! and an offset of `+00:00`. Source: github.com/Azure/AzurePublicDataset, CC-BY-4.0.

use super::table::Table;
use super::{Row, Trace, TraceError, TraceFormat, assemble};

const NANOS_PER_SEC: u64 = 1_000_000_000;

pub(super) fn parse(name: &str, text: &str) -> Result<Trace, TraceError> {
    let mut table = Table::new(name, text)?;
    let time = table.column_of(&["TIMESTAMP"])?;
    let input = table.column_of(&["ContextTokens"])?;
    let output = table.column_of(&["GeneratedTokens"])?;
    let mut rows = Vec::new();
    while let Some(row) = table.next_row()? {
        let arrival_ns = timestamp_ns(row.text(time))
            .ok_or_else(|| row.error(time, "a UTC time such as `2023-11-16 18:15:46.6805900`"))?;
        rows.push(Row {
            arrival_ns,
            input_tokens: row.tokens(input)?,
            output_tokens: row.tokens(output)?,
            class: 0,
        });
    }
    assemble(name, TraceFormat::Azure, rows, vec![String::new()])
}

/// Nanoseconds since the year 0 of `YYYY-MM-DD hh:mm:ss[.fraction][Z|+00:00]`.
fn timestamp_ns(text: &str) -> Option<u128> {
    let text = text.strip_suffix("+00:00").or(text.strip_suffix('Z')).unwrap_or(text);
    let (date, clock) = text.split_once([' ', 'T'])?;
    let mut date = date.splitn(3, '-').map(digits);
    let (year, month, day) = (date.next()??, date.next()??, date.next()??);
    let (clock, fraction) = clock.split_once('.').unwrap_or((clock, "0"));
    let mut clock = clock.splitn(3, ':').map(digits);
    let (hour, minute, second) = (clock.next()??, clock.next()??, clock.next()??);
    let valid = year <= 9999
        && (1..=12).contains(&month)
        && (1..=days_in_month(year, month)).contains(&day)
        && hour < 24
        && minute < 60
        && second < 60
        && fraction.len() <= 9;
    if !valid {
        return None;
    }
    let nanos = digits(fraction)? * 10_u64.pow(9 - fraction.len() as u32);
    let seconds = ((days_before(year, month) + day - 1) * 24 + hour) * 3600 + minute * 60 + second;
    Some(u128::from(seconds) * u128::from(NANOS_PER_SEC) + u128::from(nanos))
}

/// A number written in digits only (`parse` alone would take a sign).
fn digits(text: &str) -> Option<u64> {
    let plain = !text.is_empty() && text.len() <= 9 && text.bytes().all(|b| b.is_ascii_digit());
    plain.then(|| text.parse().ok()).flatten()
}

const fn is_leap(year: u64) -> bool {
    year.is_multiple_of(4) && !year.is_multiple_of(100) || year.is_multiple_of(400)
}

const fn days_in_month(year: u64, month: u64) -> u64 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days from the first of year 0 to the first of `month` (proleptic Gregorian calendar).
fn days_before(year: u64, month: u64) -> u64 {
    // The year 0 is a leap year, hence the 1 for every year but itself.
    let leaps = match year.checked_sub(1) {
        Some(last) => last / 4 - last / 100 + last / 400 + 1,
        None => 0,
    };
    let months: u64 = (1..month).map(|m| days_in_month(year, m)).sum();
    year * 365 + leaps + months
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_are_exact_across_midnight_leap_day_and_year() {
        let ns = |text| timestamp_ns(text).unwrap();
        let start = ns("2023-11-16 18:15:46.6805900");
        assert_eq!(ns("2023-11-16 18:15:46.6805901") - start, 100);
        assert_eq!(ns("2023-11-17 18:15:46.6805900") - start, 86_400 * 1_000_000_000);
        assert_eq!(ns("2024-03-01 00:00:00") - ns("2024-02-28 00:00:00"), 2 * 86_400 * 1_000_000_000);
        assert_eq!(ns("2025-01-01 00:00:00") - ns("2024-12-31 23:59:59.5"), 500_000_000);
        // The Unix epoch is day 719,528 of the proleptic calendar.
        assert_eq!(ns("1970-01-01T00:00:00Z"), 719_528 * 86_400 * 1_000_000_000);
    }

    #[test]
    fn what_is_not_a_time_is_refused() {
        for text in [
            "",
            "2023-11-16",
            "2023-02-29 00:00:00",
            "2023-13-01 00:00:00",
            "2023-11-16 24:00:00",
            "2023-11-16 18:15:46.",
            "2023-11-16 18:15:46.1234567890",
            "-2023-11-16 18:15:46",
            "2023-11-16 +8:15:46",
        ] {
            assert_eq!(timestamp_ns(text), None, "{text}");
        }
    }
}
