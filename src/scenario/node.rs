//! The document as an owned tree whose every part knows where it was written.
//!
//! The parser's own tree borrows the text; this one can be cloned, changed by overrides from other texts,
//! and read again for every point of a sweep.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Bytes `start..end` of the text of the `source`-th source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub source: usize,
    pub start: usize,
    pub end: usize,
}

/// A value and its place.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub value: Value,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub(super) enum Value {
    Text(String),
    Integer(i64),
    Float(f64),
    Boolean(bool),
    Date,
    List(Vec<Node>),
    /// In the order of writing.
    Table(Vec<Entry>),
}

/// A key of a table.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub key: String,
    pub key_span: Span,
    pub node: Node,
}

/// Where a parsed text goes: its source and how far its bytes are shifted there.
#[derive(Clone, Copy)]
pub(super) struct Origin {
    pub source: usize,
    pub shift: usize,
}

impl Origin {
    pub fn span(self, range: std::ops::Range<usize>) -> Span {
        Span { source: self.source, start: range.start + self.shift, end: range.end + self.shift }
    }
}

impl Node {
    pub fn from_table(table: &Spanned<DeTable<'_>>, origin: Origin) -> Self {
        Self { value: Value::Table(entries(table.get_ref(), origin)), span: origin.span(table.span()) }
    }

    pub fn from_value(value: &Spanned<DeValue<'_>>, origin: Origin) -> Self {
        Self { value: convert(value.get_ref(), origin), span: origin.span(value.span()) }
    }

    /// The entries of a table; none of anything else.
    pub fn entries(&self) -> &[Entry] {
        match &self.value {
            Value::Table(entries) => entries,
            _ => &[],
        }
    }

    /// What stands there, for a message.
    pub fn describe(&self) -> String {
        match &self.value {
            Value::Text(text) if text.chars().count() > 40 => "a long text".to_owned(),
            Value::Text(text) => format!("the text {text:?}"),
            Value::Integer(value) => value.to_string(),
            Value::Float(value) => format!("{value:?}"),
            Value::Boolean(value) => value.to_string(),
            Value::Date => "a date".to_owned(),
            Value::List(_) => "a list".to_owned(),
            Value::Table(_) => "a table".to_owned(),
        }
    }
}

fn entries(table: &DeTable<'_>, origin: Origin) -> Vec<Entry> {
    let mut entries: Vec<Entry> = table
        .iter()
        .map(|(key, value)| Entry {
            key: key.get_ref().to_string(),
            key_span: origin.span(key.span()),
            node: Node::from_value(value, origin),
        })
        .collect();
    // The parser sorts by name; people read from the top.
    entries.sort_by_key(|entry| entry.key_span.start);
    entries
}

fn convert(value: &DeValue<'_>, origin: Origin) -> Value {
    match value {
        DeValue::String(text) => Value::Text(text.to_string()),
        DeValue::Integer(integer) => match i64::from_str_radix(integer.as_str(), integer.radix()) {
            Ok(value) => Value::Integer(value),
            // Beyond 64 bits: as a float it is still out of every range, and can be shown.
            Err(_) => Value::Float(integer.as_str().parse().unwrap_or(f64::INFINITY)),
        },
        DeValue::Float(float) => Value::Float(float.as_str().parse().unwrap_or(f64::NAN)),
        DeValue::Boolean(value) => Value::Boolean(*value),
        DeValue::Datetime(_) => Value::Date,
        DeValue::Array(items) => {
            Value::List(items.iter().map(|item| Node::from_value(item, origin)).collect())
        }
        DeValue::Table(table) => Value::Table(entries(table, origin)),
    }
}
