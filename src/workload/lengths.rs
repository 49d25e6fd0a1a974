//! How long requests are, and the length files that a scenario may name.

use std::sync::Arc;

use super::trace::TraceError;
use super::trace::table::Table;
use super::{Distribution, Request};
use crate::units::Tokens;

/// How long a class's requests are.
#[derive(Clone, Debug, PartialEq)]
pub enum Lengths {
    /// Prompt and output drawn independently; `output` is `None` only on a synthetic server.
    Independent { input: Distribution, output: Option<Distribution> },
    /// Pairs (input, output) drawn together, uniformly, from a list that is never empty.
    Joint(Arc<Vec<(Tokens, Tokens)>>),
}

impl Lengths {
    /// Mean prompt and output tokens, before rounding; no output on a server that emits none.
    #[must_use]
    pub fn mean_tokens(&self) -> (f64, f64) {
        match self {
            Self::Independent { input, output } => {
                (input.mean(), output.as_ref().map_or(0.0, Distribution::mean))
            }
            Self::Joint(pairs) => {
                let count = pairs.len().max(1) as f64;
                let (input, output) = pairs
                    .iter()
                    .fold((0_u64, 0_u64), |(i, o), pair| (i + u64::from(pair.0), o + u64::from(pair.1)));
                (input as f64 / count, output as f64 / count)
            }
        }
    }

    /// The pairs of the `class`-th class of recorded requests.
    #[must_use]
    pub fn recorded(requests: &[Request], class: u16) -> Self {
        let of_class = requests.iter().filter(|r| r.class == class);
        Self::Joint(Arc::new(of_class.map(|r| (r.input_tokens, r.output_tokens)).collect()))
    }
}

/// Pairs from CSV text with the columns `input_tokens,output_tokens` (also `input_length,output_length`).
///
/// # Errors
/// [`TraceError`] at the first line that is not such a pair, or if there is none.
pub fn parse_pairs(name: &str, text: &str) -> Result<Vec<(Tokens, Tokens)>, TraceError> {
    let mut table = Table::new(name, text)?;
    let input = table.column_of(&["input_tokens", "input_length"])?;
    let output = table.column_of(&["output_tokens", "output_length"])?;
    let mut pairs = Vec::new();
    while let Some(row) = table.next_row()? {
        let pair = (row.tokens(input)?, row.tokens(output)?);
        if pair.0 == 0 || pair.1 == 0 {
            return Err(row.error(if pair.0 == 0 { input } else { output }, "at least 1 token"));
        }
        pairs.push(pair);
    }
    if pairs.is_empty() {
        return Err(TraceError::empty(name));
    }
    Ok(pairs)
}

/// An inverse CDF from CSV text: either the columns `probability,value` (probabilities ascending from 0
/// to 1, values not falling), or one column of observed values in any order, whose i-th smallest of n is
/// the quantile i/(n - 1).
///
/// # Errors
/// [`TraceError`] at the first line that does not fit, or if there is no value.
pub fn parse_quantiles(name: &str, text: &str) -> Result<Vec<(f64, f64)>, TraceError> {
    let mut table = Table::new(name, text)?;
    if table.find_column("probability").is_none() {
        return observed_quantiles(name, table);
    }
    let probability = table.column_of(&["probability"])?;
    let value = table.column_of(&["value"])?;
    let mut points: Vec<(f64, f64)> = Vec::new();
    while let Some(row) = table.next_row()? {
        let point = (row.number(probability)?, row.number(value)?);
        match points.last() {
            None if point.0 != 0.0 => return Err(row.error(probability, "probability 0 in the first row")),
            Some(last) if point.0 <= last.0 => {
                return Err(row.error(probability, "a probability above the row before"));
            }
            Some(last) if point.1 < last.1 => {
                return Err(row.error(value, "a value not below the row before"));
            }
            _ => points.push(point),
        }
    }
    match points.last() {
        Some(last) if last.0 == 1.0 && points.len() > 1 => Ok(points),
        Some(_) => Err(TraceError::file(name, "the last probability is 1")),
        None => Err(TraceError::empty(name)),
    }
}

fn observed_quantiles(name: &str, mut table: Table<'_>) -> Result<Vec<(f64, f64)>, TraceError> {
    let column = table.only_column()?;
    let mut values = Vec::new();
    while let Some(row) = table.next_row()? {
        values.push(row.number(column)?);
    }
    values.sort_by(f64::total_cmp);
    match values.as_slice() {
        [] => Err(TraceError::empty(name)),
        [only] => Ok(vec![(0.0, *only), (1.0, *only)]),
        many => {
            let last = (many.len() - 1) as f64;
            Ok(many.iter().enumerate().map(|(i, v)| (i as f64 / last, *v)).collect())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_keep_their_order_and_refuse_empty_requests() {
        let pairs = parse_pairs("p.csv", "input_tokens,output_tokens\n10,20\n30,40\n").unwrap();
        assert_eq!(pairs, [(10, 20), (30, 40)]);
        let error = parse_pairs("p.csv", "input_tokens,output_tokens\n10,0\n").unwrap_err();
        assert_eq!(
            error.to_string(),
            "p.csv, line 2, column `output_tokens`: found `0`, expected at least 1 token"
        );
    }

    #[test]
    fn observed_values_become_an_inverse_cdf() {
        let quantiles = parse_quantiles("v.csv", "input_length\n30\n10\n20\n").unwrap();
        assert_eq!(quantiles, [(0.0, 10.0), (0.5, 20.0), (1.0, 30.0)]);
        assert!(parse_quantiles("v.csv", "probability,value\n0,1\n0.5,3\n").is_err());
        assert!(parse_quantiles("v.csv", "probability,value\n0,1\n1,3\n").is_ok());
    }
}
