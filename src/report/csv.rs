//! `curve.csv`: one row per load point, units in the column names, an empty cell where a value is withheld.

use super::points::{Column, Values, columns};
use crate::experiment::Point;

/// Digits of a simulated value: the last is a ten-thousandth of a per cent, far below any interval.
const DIGITS: usize = 7;

/// The points as CSV, one row each, after one column per axis.
///
/// # Errors
/// Never for want of data; only if the writer fails.
pub fn points(axes: &[String], points: &[Point]) -> Result<Vec<u8>, ::csv::Error> {
    table(&columns(axes, points))
}

/// The columns as CSV, a header first.
///
/// # Errors
/// As [`points`].
pub fn table(columns: &[Column]) -> Result<Vec<u8>, ::csv::Error> {
    let mut writer = ::csv::Writer::from_writer(Vec::new());
    writer.write_record(columns.iter().map(|column| &column.name))?;
    for row in 0..columns.first().map_or(0, |column| column.values.len()) {
        writer.write_record(columns.iter().map(|column| cell(&column.values, row)))?;
    }
    writer.into_inner().map_err(|error| ::csv::Error::from(error.into_error()))
}

fn cell(values: &Values, row: usize) -> String {
    let text = match values {
        Values::Simulated(values) => values[row].map(|value| rounded(value).to_string()),
        Values::Given(values) => values[row].map(|value| value.to_string()),
        Values::Whole(values) => values[row].map(|value| value.to_string()),
        Values::Text(values) => values[row].clone(),
        Values::Flag(values) => values[row].map(|value| value.to_string()),
    };
    text.unwrap_or_default()
}

/// The nearest number of [`DIGITS`] significant digits; printed, it has no more.
fn rounded(value: f64) -> f64 {
    format!("{value:.*e}", DIGITS - 1).parse().unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::rounded;

    #[test]
    fn simulated_values_have_seven_digits() {
        let printed = |value: f64| rounded(value).to_string();
        assert_eq!(printed(0.123_456_789_012_345), "0.1234568");
        assert_eq!(printed(123_456_789.012), "123456800");
        assert_eq!(printed(1.0 / 3.0 * 1e-5), "0.000003333333");
        assert_eq!(printed(-2.5), "-2.5");
        assert_eq!(printed(0.0), "0");
    }
}
