//! A JSON or YAML document as far as an importer needs it, with errors that name the key.
//!
//! Result files reach hundreds of megabytes, nearly all of it prompts, answers and token gaps. So a long
//! text is dropped where it is read, and a list of numbers is held as numbers: the tree is always smaller
//! than its text, whatever is in it.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};

use super::error::{ImportError, Place, quoted};
use crate::units::plain;

/// Texts longer than this are prompts and answers, which nothing here reads.
const LONGEST_TEXT: usize = 4096;
/// The largest number: nanoseconds since 1970 are 1.8e18.
const LARGEST: f64 = 1e19;

/// A value of a document.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Node {
    Null,
    Bool(bool),
    Number(f64),
    Text(Box<str>),
    /// A text that was too long to keep.
    LongText,
    /// A list of numbers only.
    Numbers(Vec<f64>),
    List(Vec<Node>),
    Map(Vec<(Box<str>, Node)>),
}

impl Node {
    /// Parses JSON, Python's `NaN` and `Infinity` (which `json.dumps` writes) read as null.
    pub fn json(file: &str, text: &str) -> Result<Self, ImportError> {
        let parsed = serde_json::from_str(text).or_else(|error| match without_bare_nan(text) {
            Some(cleaned) => serde_json::from_str(&cleaned),
            None => Err(error),
        });
        parsed.map_err(|error| ImportError::Syntax {
            file: file.to_owned(),
            line: error.line() as u64,
            column: error.column() as u64,
            message: match error.is_eof() {
                true => "the file ends in the middle of its JSON; expected the rest of it (was it cut off?)"
                    .to_owned(),
                false => format!("not JSON: {}", without_position(&error.to_string())),
            },
        })
    }

    /// Parses YAML; anchors may not blow the document up.
    pub fn yaml(file: &str, text: &str) -> Result<Self, ImportError> {
        let mut options = serde_saphyr::Options::default();
        // llm-d writes `.inf` for "no limit".
        options.non_finite_float_policy = serde_saphyr::NonFiniteFloatPolicy::PassThrough;
        serde_saphyr::from_str_with_options(text, options).map_err(|error| {
            let at = error.location();
            let (line, column) = at.map_or((1, 1), |at| (at.line(), at.column()));
            // The message repeats the position before its reason.
            let text = error.to_string();
            let first = text.lines().next().unwrap_or_default();
            let reason = first.split_once(&format!("column {column}: ")).map_or(first, |(_, reason)| reason);
            ImportError::Syntax {
                file: file.to_owned(),
                line,
                column,
                message: format!("not YAML: {reason}"),
            }
        })
    }

    /// The value of `key`; of keys given twice the last, as Python reads it. Null counts as absent.
    pub fn get(&self, key: &str) -> Option<&Self> {
        let Self::Map(entries) = self else { return None };
        let value = entries.iter().rev().find(|(name, _)| &**name == key).map(|(_, value)| value);
        value.filter(|value| **value != Self::Null)
    }

    /// Whether this is a map that has all of `keys`, null or not.
    pub fn has(&self, keys: &[&str]) -> bool {
        let Self::Map(entries) = self else { return false };
        keys.iter().all(|key| entries.iter().any(|(name, _)| &**name == *key))
    }

    /// What it is, for a message.
    fn describe(&self) -> String {
        match self {
            Self::Null => "null".to_owned(),
            Self::Bool(value) => format!("`{value}`"),
            Self::Number(value) => format!("`{}`", plain(*value)),
            Self::Text(text) => quoted(text),
            Self::LongText => "a long text".to_owned(),
            Self::Numbers(_) | Self::List(_) => "a list".to_owned(),
            Self::Map(entries) => {
                let keys: Vec<&str> = entries.iter().take(4).map(|(key, _)| &**key).collect();
                format!("an object with {}", quoted(&keys.join(", ")))
            }
        }
    }
}

/// serde_json repeats the position that the error already names.
fn without_position(message: &str) -> &str {
    message.rfind(" at line ").map_or(message, |end| &message[..end])
}

/// `text` with every bare `NaN`, `Infinity` and `-Infinity` as null, if there is any.
fn without_bare_nan(text: &str) -> Option<String> {
    const WORDS: [&str; 3] = ["NaN", "-Infinity", "Infinity"];
    let mut cleaned = String::with_capacity(text.len());
    let (mut rest, mut quoted, mut changed) = (text, false, false);
    while let Some(next) = rest.chars().next() {
        let word = WORDS.iter().find(|word| !quoted && rest.starts_with(**word));
        let taken = match (next, word) {
            (_, Some(word)) => {
                cleaned.push_str("null");
                changed = true;
                rest = &rest[word.len()..];
                continue;
            }
            // An escape takes the next character with it.
            ('\\', None) if quoted => 1 + rest[1..].chars().next().map_or(0, char::len_utf8),
            ('"', None) => {
                quoted = !quoted;
                1
            }
            _ => next.len_utf8(),
        };
        cleaned.push_str(&rest[..taken]);
        rest = &rest[taken..];
    }
    changed.then_some(cleaned)
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NodeVisitor)
    }
}

struct NodeVisitor;

impl<'de> Visitor<'de> for NodeVisitor {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }
    fn visit_unit<E>(self) -> Result<Node, E> {
        Ok(Node::Null)
    }
    fn visit_none<E>(self) -> Result<Node, E> {
        Ok(Node::Null)
    }
    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Node, D::Error> {
        Node::deserialize(deserializer)
    }
    fn visit_bool<E>(self, value: bool) -> Result<Node, E> {
        Ok(Node::Bool(value))
    }
    fn visit_i64<E>(self, value: i64) -> Result<Node, E> {
        Ok(Node::Number(value as f64))
    }
    fn visit_u64<E>(self, value: u64) -> Result<Node, E> {
        Ok(Node::Number(value as f64))
    }
    fn visit_f64<E>(self, value: f64) -> Result<Node, E> {
        Ok(Node::Number(value))
    }
    fn visit_str<E>(self, text: &str) -> Result<Node, E> {
        Ok(if text.len() > LONGEST_TEXT { Node::LongText } else { Node::Text(text.into()) })
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Node, A::Error> {
        let mut numbers = Vec::new();
        while let Some(node) = seq.next_element::<Node>()? {
            if let Node::Number(number) = node {
                numbers.push(number);
                continue;
            }
            let mut nodes: Vec<Node> = numbers.into_iter().map(Node::Number).collect();
            nodes.push(node);
            while let Some(node) = seq.next_element()? {
                nodes.push(node);
            }
            return Ok(Node::List(nodes));
        }
        Ok(Node::Numbers(numbers))
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Node, A::Error> {
        let mut entries = Vec::new();
        while let Some((key, value)) = map.next_entry::<String, Node>()? {
            entries.push((key.into_boxed_str(), value));
        }
        Ok(Node::Map(entries))
    }
}

/// A node and where it stands.
#[derive(Clone, Debug)]
pub(super) struct At<'a> {
    pub node: &'a Node,
    place: Place,
}

impl<'a> At<'a> {
    /// The root of a document, or of `line` of a file of them.
    pub fn root(file: &str, line: Option<u64>, node: &'a Node) -> Self {
        Self { node, place: Place { file: file.to_owned(), line, key: String::new() } }
    }

    /// The error that this is not what was `expected`.
    pub fn error(&self, expected: &str) -> ImportError {
        let found = self.node.describe();
        ImportError::Value { place: self.place.clone(), found, expected: expected.to_owned() }
    }

    fn child(&self, key: &str, node: &'a Node) -> Self {
        let dot = if self.place.key.is_empty() || key.starts_with('[') { "" } else { "." };
        let key = format!("{}{dot}{key}", self.place.key);
        Self { node, place: Place { key, ..self.place.clone() } }
    }

    /// What stands under the dotted `path`; `None` if absent or null.
    pub fn get(&self, path: &str) -> Option<Self> {
        let node = path.split('.').try_fold(self.node, |node, key| node.get(key))?;
        Some(self.child(path, node))
    }

    /// As [`At::get`], where it must be there.
    pub fn need(&self, path: &str) -> Result<Self, ImportError> {
        self.get(path).ok_or_else(|| ImportError::Value {
            place: self.child(path, &Node::Null).place,
            found: "nothing".to_owned(),
            expected: "a value".to_owned(),
        })
    }

    /// Itself as a number up to [`LARGEST`]; a number that was written as text counts.
    pub fn as_number(&self) -> Result<f64, ImportError> {
        let number = match self.node {
            Node::Number(number) => Some(*number),
            Node::Text(text) => text.trim().parse().ok(),
            _ => None,
        };
        let expected = || format!("a number, at most {LARGEST:e}");
        number.filter(|number| number.abs() <= LARGEST).ok_or_else(|| self.error(&expected()))
    }

    /// The number under `path`, if there is anything.
    pub fn number(&self, path: &str) -> Result<Option<f64>, ImportError> {
        self.get(path).map(|at| at.as_number()).transpose()
    }

    /// The number under `path`, which is a quantity that cannot be negative.
    pub fn amount(&self, path: &str) -> Result<Option<f64>, ImportError> {
        let Some(at) = self.get(path) else { return Ok(None) };
        let number = at.as_number()?;
        if number < 0.0 { Err(at.error("a number that is not negative")) } else { Ok(Some(number)) }
    }

    /// The whole number under `path`.
    pub fn count(&self, path: &str) -> Result<Option<u64>, ImportError> {
        let Some(at) = self.get(path) else { return Ok(None) };
        let number = at.as_number()?;
        let whole = (0.0..=9e15).contains(&number) && number.fract() == 0.0;
        if whole { Ok(Some(number as u64)) } else { Err(at.error("a whole number from 0 to 9e15")) }
    }

    /// The text under `path`.
    pub fn text(&self, path: &str) -> Result<Option<&'a str>, ImportError> {
        let Some(at) = self.get(path) else { return Ok(None) };
        match at.node {
            Node::Text(text) => Ok(Some(text)),
            _ => Err(at.error("text")),
        }
    }

    /// The items of a list under `path`; none if it is absent.
    pub fn items(&self, path: &str) -> Result<Vec<Self>, ImportError> {
        self.get(path).map_or_else(|| Ok(Vec::new()), |at| at.elements())
    }

    /// Its own items, where it is a list of objects.
    pub fn elements(&self) -> Result<Vec<Self>, ImportError> {
        match self.node {
            Node::List(nodes) => {
                let items = nodes.iter().enumerate();
                Ok(items.map(|(index, node)| self.child(&format!("[{index}]"), node)).collect())
            }
            Node::Numbers(numbers) if numbers.is_empty() => Ok(Vec::new()),
            _ => Err(self.error("a list of objects")),
        }
    }

    /// The texts of a list under `path`, or the one text that stands there.
    pub fn items_of_text(&self, path: &str) -> Result<Vec<&'a str>, ImportError> {
        let Some(at) = self.get(path) else { return Ok(Vec::new()) };
        let texts: Option<Vec<&str>> = match at.node {
            Node::Text(text) => Some(vec![text]),
            Node::List(nodes) => nodes
                .iter()
                .map(|node| if let Node::Text(text) = node { Some(&**text) } else { None })
                .collect(),
            Node::Numbers(numbers) if numbers.is_empty() => Some(Vec::new()),
            _ => None,
        };
        texts.ok_or_else(|| at.error("a list of texts"))
    }

    /// Whether it is `true`.
    pub fn is_true(&self) -> bool {
        *self.node == Node::Bool(true)
    }

    /// What tells it from the others of its file: `line 3`, `benchmarks[2]`, or nothing.
    pub fn label(&self) -> String {
        self.place.line.map_or_else(|| self.place.key.clone(), |line| format!("line {line}"))
    }

    /// The numbers of a list under `path`, if it is there.
    pub fn numbers(&self, path: &str) -> Result<Option<&'a [f64]>, ImportError> {
        let Some(at) = self.get(path) else { return Ok(None) };
        match at.node {
            Node::Numbers(numbers) => Ok(Some(numbers)),
            _ => Err(at.error("a list of numbers")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn python_writes_nan_and_we_read_null_but_not_inside_text() {
        let node = Node::json("f", r#"{"a": NaN, "b": "NaN \" Infinity", "c": [1, -Infinity]}"#).unwrap();
        assert_eq!(node.get("a"), None);
        assert_eq!(node.get("b"), Some(&Node::Text("NaN \" Infinity".into())));
        assert_eq!(node.get("c"), Some(&Node::List(vec![Node::Number(1.0), Node::Null])));
    }

    #[test]
    fn errors_name_file_line_and_key() {
        let node = Node::json("f.json", r#"{"a": {"b": [1, "x"]}}"#).unwrap();
        let at = At::root("f.json", Some(3), &node);
        let error = at.get("a").unwrap().number("b").unwrap_err();
        assert_eq!(error.to_string(), "f.json, line 3, `a.b`: found a list, expected a number, at most 1e19");
        let error = Node::json("f.json", "{\n\"a\": }").unwrap_err();
        assert_eq!(error.to_string(), "f.json, line 2, column 6: not JSON: expected value");
        let error = Node::json("f.json", "{\n\"a\": ").unwrap_err().to_string();
        assert!(error.starts_with("f.json, line 2, column 5: the file ends in the middle"), "{error}");
    }

    #[test]
    fn long_texts_are_dropped_and_numbers_stay_flat() {
        let text = format!(r#"{{"prompt": "{}", "itls": [1, 2.5]}}"#, "x".repeat(5000));
        let node = Node::json("f", &text).unwrap();
        assert_eq!(node.get("prompt"), Some(&Node::LongText));
        assert_eq!(node.get("itls"), Some(&Node::Numbers(vec![1.0, 2.5])));
    }

    #[test]
    fn yaml_is_the_same_tree() {
        let node = Node::yaml("f", "version: 0.2.1\na:\n  b: [1, 2]\n  c: '7'\nd: .inf\n").unwrap();
        assert_eq!(node.get("version"), Some(&Node::Text("0.2.1".into())));
        assert_eq!(node.get("a").and_then(|a| a.get("b")), Some(&Node::Numbers(vec![1.0, 2.0])));
        assert!(Node::yaml("f", "a: [1\nb: {").is_err());
    }
}
