//! Our own CSV: `arrival_s,input_tokens,output_tokens[,class][,session]`.

use std::collections::BTreeMap;

use super::table::Table;
use super::{Row, Trace, TraceError, TraceFormat, assemble};
use crate::units::SimSpan;

/// Classes are numbered in order of first appearance. The column `session` is accepted; nothing uses it.
pub(super) fn parse(name: &str, text: &str) -> Result<Trace, TraceError> {
    let mut table = Table::new(name, text)?;
    let arrival = table.column_of(&["arrival_s"])?;
    let input = table.column_of(&["input_tokens"])?;
    let output = table.column_of(&["output_tokens"])?;
    let class = table.find_column("class");
    let mut class_names: Vec<String> = Vec::new();
    let mut numbers: BTreeMap<String, usize> = BTreeMap::new();
    let mut rows = Vec::new();
    while let Some(row) = table.next_row()? {
        let seconds = row.number(arrival)?;
        let span = SimSpan::from_secs_f64(seconds)
            .map_err(|_| row.error(arrival, "seconds within the range of the clock (584 years)"))?;
        let class_name = class.map_or("", |column| row.text(column));
        let class_index = match numbers.get(class_name) {
            Some(&number) => number,
            None => {
                class_names.push(class_name.to_owned());
                numbers.insert(class_name.to_owned(), class_names.len() - 1);
                class_names.len() - 1
            }
        };
        // Only a file with a class column gets beyond one class.
        let class_index = match (u16::try_from(class_index), class) {
            (Ok(index), _) => index,
            (Err(_), Some(column)) => return Err(row.error(column, "at most 65,536 classes")),
            (Err(_), None) => 0,
        };
        rows.push(Row {
            arrival_ns: u128::from(span.as_nanos()),
            input_tokens: row.tokens(input)?,
            output_tokens: row.tokens(output)?,
            class: class_index,
        });
    }
    assemble(name, TraceFormat::Knee, rows, class_names)
}
