//! What the TOML reader has to say, in the words of our other messages: key, what was found, what is expected.

use std::ops::Range;

use toml::de::{DeTable, DeValue};

use crate::nearest::{did_you_mean, nearest};

/// Texts that are longer are not repeated in a message.
const LONGEST_TEXT: usize = 40;

/// Why `text` cannot be read, without its line. `example`: how another file writes a dotted key.
pub(super) fn in_words(
    text: &str,
    error: &toml::de::Error,
    example: impl Fn(&str) -> Option<String>,
) -> String {
    let message = error.message().lines().next().unwrap_or_default();
    let Ok(table) = DeTable::parse(text) else {
        let there = error.span().and_then(|span| text.get(span)).filter(|_| message == "duplicate key");
        let key = there.map_or_else(String::new, |key| format!(" `{}`; expected it once", key.trim()));
        return format!("not TOML: {message}{key}");
    };
    let place = error.span().and_then(|span| Place::find(table.get_ref(), &span, "")).unwrap_or_default();
    let Place { path, found } = place;
    if let Some(key) = quoted_after(message, "missing field") {
        let key = dotted(&path, key);
        let such = example(&key).map_or_else(String::new, |such| format!("; expected such as {such}"));
        return format!("missing key `{key}`{such}");
    }
    if let Some(key) = quoted_after(message, "unknown field") {
        return unknown_key(&path, key, message);
    }
    if let (None, Some(key)) = (found, quoted_after(message, "unknown variant")) {
        return unknown_key(&path, key, message);
    }
    let (_, expected) = message.split_once(", expected ").unwrap_or(("", message));
    match found {
        Some(found) => format!("`{path}` is {}; expected {}", describe(found), expected_in_words(expected)),
        None if path.is_empty() => message.to_owned(),
        None => format!("`{path}`: {message}"),
    }
}

/// Where in the document an error is: a dotted key, and the value there.
#[derive(Default)]
struct Place<'t> {
    path: String,
    found: Option<&'t DeValue<'t>>,
}

impl<'t> Place<'t> {
    fn find(table: &'t DeTable<'t>, span: &Range<usize>, path: &str) -> Option<Self> {
        table.iter().find_map(|(key, value)| {
            let path = dotted(path, key.get_ref());
            if key.span() == *span {
                return Some(Self { path, found: None });
            }
            Self::at(value.get_ref(), &value.span(), span, path)
        })
    }

    fn at(value: &'t DeValue<'t>, own: &Range<usize>, span: &Range<usize>, path: String) -> Option<Self> {
        let inside = match value {
            DeValue::Table(table) => Self::find(table, span, &path),
            DeValue::Array(items) => {
                items.iter().find_map(|item| Self::at(item.get_ref(), &item.span(), span, path.clone()))
            }
            _ => None,
        };
        inside.or_else(|| (own == span).then_some(Self { path, found: Some(value) }))
    }
}

fn unknown_key(path: &str, key: &str, message: &str) -> String {
    let keys: Vec<&str> = message.split('`').skip(3).step_by(2).collect();
    let above = path.rsplit_once('.').map_or("", |(above, _)| above);
    let place = if above.is_empty() { "at the top".to_owned() } else { format!("of `{above}`") };
    let near = did_you_mean(&nearest(key, keys.iter().copied()));
    let hint = near.map_or_else(|| ";".to_owned(), |near| format!("; {near}"));
    format!("unknown key `{}`{hint} keys {place}: {}", dotted(above, key), keys.join(", "))
}

/// The name in backquotes that follows `words` at the start of `message`.
fn quoted_after<'m>(message: &'m str, words: &str) -> Option<&'m str> {
    message.strip_prefix(words)?.split('`').nth(1)
}

fn dotted(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

fn describe(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) if text.chars().count() > LONGEST_TEXT => "a long text".to_owned(),
        DeValue::String(text) => format!("the text {text:?}"),
        DeValue::Integer(integer) => integer.as_str().to_owned(),
        DeValue::Float(float) => float.as_str().to_owned(),
        DeValue::Boolean(value) => value.to_string(),
        DeValue::Datetime(_) => "a date".to_owned(),
        DeValue::Array(_) => "a list".to_owned(),
        DeValue::Table(_) => "a table".to_owned(),
    }
}

/// The reader names types of the program's language.
fn expected_in_words(expected: &str) -> String {
    match expected {
        "f64" => "a number".to_owned(),
        "u32" => format!("a whole number from 0 to {}", u32::MAX),
        "u64" | "usize" => "a whole number of at least 0".to_owned(),
        "a string" => "a text in quotes".to_owned(),
        "a boolean" => "true or false".to_owned(),
        "a sequence" => "a list".to_owned(),
        "an array of length 2" => "a list of two numbers".to_owned(),
        "a map" => "a table".to_owned(),
        other if other.starts_with("struct ") => "a table".to_owned(),
        other => other.to_owned(),
    }
}
