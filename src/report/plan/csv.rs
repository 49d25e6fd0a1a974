//! `plan.csv`: one row a candidate, units in the column names, an empty cell where there is no value.

use serde_json::Value;

use super::columns;
use crate::experiment::plan::Plan;

/// The plan as CSV.
///
/// # Errors
/// Only if the writer fails.
pub fn csv(plan: &Plan) -> Result<Vec<u8>, ::csv::Error> {
    let mut writer = ::csv::Writer::from_writer(Vec::new());
    let rows = columns::all(plan);
    // Candidates that cannot run have fewer columns.
    let header = rows.iter().max_by_key(|row| row.len()).map_or(0, Vec::len);
    if let Some(longest) = rows.iter().find(|row| row.len() == header) {
        writer.write_record(longest.iter().map(|(name, _)| name))?;
    }
    for row in &rows {
        let mut cells: Vec<String> = row.iter().map(|(_, value)| cell(value)).collect();
        cells.resize(header, String::new());
        writer.write_record(cells)?;
    }
    writer.into_inner().map_err(|error| ::csv::Error::from(error.into_error()))
}

fn cell(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
