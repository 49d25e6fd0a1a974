//! Values set from outside the file: `--set key=value` and the points of a sweep.
//!
//! A key is dotted, parts with dots in them quoted. A class is addressed by name or by number:
//! `class.chat.share`, `class.0.share`. Setting one of several alternatives (an arrival kind, a length
//! distribution, `requests` or `duration_s`) removes the others.

use std::sync::Arc;

use toml::de::DeValue;

use super::AxisValue;
use super::forms::FORMS;
use super::keys::{ALTERNATIVES, list};
use super::node::{Entry, Node, Origin, Span, Value};
use super::problem::{Problem, ScenarioErrors, Source};

/// A scenario key and the value it is to have, as TOML text; what is not TOML is taken as a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Override {
    pub key: String,
    pub value: String,
    written: Written,
}

/// Where a value was set, for messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Written {
    /// `--set key=value`, or another option of that form.
    Pair(&'static str),
    /// An option of its own with the value: `--seed 7`.
    Option(&'static str),
    Sweep,
}

impl Override {
    /// From `key=value`, as given to `--set`. Quoted parts of the key may contain `=`.
    ///
    /// # Errors
    /// If there is no `=` or nothing before it.
    pub fn parse(argument: &str) -> Result<Self, ScenarioErrors> {
        Self::parse_of("--set", argument)
    }

    /// As [`Override::parse`], for another `option` of that form.
    ///
    /// # Errors
    /// As [`Override::parse`].
    pub fn parse_of(option: &'static str, argument: &str) -> Result<Self, ScenarioErrors> {
        let mut quoted = false;
        let equals = argument.find(|c| {
            quoted ^= c == '"';
            c == '=' && !quoted
        });
        match equals {
            Some(at) if !argument[..at].trim().is_empty() => {
                Ok(Self::pair(option, argument[..at].trim(), argument[at + 1..].trim()))
            }
            _ => {
                let problem = Problem::new(None, format!("`{option} {argument}` is not `key=value`"));
                let help = format!("such as `{option} engine.max_num_seqs=64`");
                Err(ScenarioErrors::without_place(problem.help(help)))
            }
        }
    }

    #[must_use]
    pub fn new(key: &str, value: &str) -> Self {
        Self::pair("--set", key, value)
    }

    /// One that `option` set as `key=value`.
    #[must_use]
    pub fn pair(option: &'static str, key: &str, value: &str) -> Self {
        Self { key: key.to_owned(), value: value.to_owned(), written: Written::Pair(option) }
    }

    /// One that an `option` of its own set, such as `--seed 7`.
    #[must_use]
    pub fn option(option: &'static str, key: &str, value: &str) -> Self {
        Self { key: key.to_owned(), value: value.to_owned(), written: Written::Option(option) }
    }

    /// One value of a sweep's axis.
    #[must_use]
    pub fn point(key: &str, value: &AxisValue) -> Self {
        let value = match value {
            AxisValue::Integer(value) => value.to_string(),
            // Debug keeps the point or exponent that makes it a TOML float.
            AxisValue::Float(value) => format!("{value:?}"),
            AxisValue::Text(value) => toml::Value::String(value.clone()).to_string(),
            AxisValue::Bool(value) => value.to_string(),
        };
        Self { key: key.to_owned(), value, written: Written::Sweep }
    }

    /// As problems show it.
    #[must_use]
    pub fn as_written(&self) -> String {
        self.source().0.text.to_string()
    }

    /// What problems in it point into, and where in that text the key and the value stand.
    fn source(&self) -> (Source, std::ops::Range<usize>, usize) {
        let (prefix, key, between) = match self.written {
            Written::Pair(option) => (format!("{option} "), self.key.as_str(), "="),
            Written::Option(option) => (String::new(), option, " "),
            Written::Sweep => (String::new(), self.key.as_str(), " = "),
        };
        let is_command_line = self.written != Written::Sweep;
        let origin = if is_command_line { "command line" } else { "a point of [sweep]" };
        let text = format!("{prefix}{key}{between}{}", self.value);
        let source = Source { origin: origin.to_owned(), text: Arc::from(text), is_command_line };
        let key_at = prefix.len()..prefix.len() + key.len();
        (source, key_at.clone(), key_at.end + between.len())
    }
}

/// Writes `change` into `root` and its text into `sources`.
pub(super) fn apply(root: &mut Node, sources: &mut Vec<Source>, change: &Override) -> Result<(), Problem> {
    let (source, key_at, value_at) = change.source();
    let key_span = Span { source: sources.len(), start: key_at.start, end: key_at.end };
    let origin = Origin { source: sources.len(), shift: value_at };
    sources.push(source);
    let value = match DeValue::parse(&change.value) {
        Ok(value) => Node::from_value(&value, origin),
        Err(_) => Node { value: Value::Text(change.value.clone()), span: origin.span(0..change.value.len()) },
    };
    let parts = split(&change.key).ok_or_else(|| {
        Problem::new(key_span, format!("`{}` is not a dotted key", change.key))
            .label("parts are separated by single dots; a part with a dot in it is in double quotes")
    })?;
    set(root, &parts, value, key_span)
}

/// The parts of a dotted key; a part in double quotes may contain dots.
pub(super) fn split(key: &str) -> Option<Vec<String>> {
    let mut parts = vec![String::new()];
    let mut quoted = false;
    for c in key.chars() {
        match (c, parts.last_mut()) {
            ('"', _) => quoted = !quoted,
            ('.', _) if !quoted => parts.push(String::new()),
            (_, Some(part)) => part.push(c),
            (_, None) => return None,
        }
    }
    // The keys of [sweep] are themselves dotted, quoted or not.
    if parts.len() > 2 && parts[0] == "sweep" {
        parts = vec![parts[0].clone(), parts[1..].join(".")];
    }
    let whole = !quoted && parts.iter().all(|part| !part.is_empty());
    whole.then_some(parts)
}

fn set(root: &mut Node, parts: &[String], value: Node, span: Span) -> Result<(), Problem> {
    let Some((last, path)) = parts.split_last() else {
        return Ok(());
    };
    let mut at = root;
    for (depth, part) in path.iter().enumerate() {
        drop_alternatives(at, &parts[..depth], part);
        at = if depth == 1 && parts[0] == "class" { class(at, part, span)? } else { entry(at, part, span) };
    }
    drop_alternatives(at, path, last);
    let target = entry(at, last, span);
    *target = value;
    Ok(())
}

/// The value of `key` in `node`, which becomes a table if it is none; an absent key starts as an empty table.
fn entry<'n>(node: &'n mut Node, key: &str, span: Span) -> &'n mut Node {
    if !matches!(node.value, Value::Table(_)) {
        *node = Node { value: Value::Table(Vec::new()), span };
    }
    let Value::Table(entries) = &mut node.value else { unreachable!("it was just made a table") };
    let at = entries.iter().position(|entry| entry.key == key).unwrap_or_else(|| {
        entries.push(Entry {
            key: key.to_owned(),
            key_span: span,
            node: Node { value: Value::Table(Vec::new()), span },
        });
        entries.len() - 1
    });
    // A mistyped key is the override's fault only if the override brought it in; a known one is not wrong.
    &mut entries[at].node
}

/// The class called `part`, or the one of that number; the number after the last makes a new one.
fn class<'n>(classes: &'n mut Node, part: &str, span: Span) -> Result<&'n mut Node, Problem> {
    if !matches!(classes.value, Value::List(_)) {
        *classes = Node { value: Value::List(Vec::new()), span };
    }
    let Value::List(classes) = &mut classes.value else { unreachable!("it was just made a list") };
    let is_named = |class: &Node| {
        class
            .entries()
            .iter()
            .any(|e| e.key == "name" && matches!(&e.node.value, Value::Text(t) if t == part))
    };
    let at = classes.iter().position(is_named).or_else(|| part.parse().ok());
    match at {
        Some(at) if at < classes.len() => Ok(&mut classes[at]),
        Some(at) if at == classes.len() => {
            classes.push(Node { value: Value::Table(Vec::new()), span });
            Ok(&mut classes[at])
        }
        _ => {
            let names = classes.iter().enumerate().map(|(i, class)| class_name(class, i));
            let label = format!("there are: {}", list(names));
            Err(Problem::new(span, format!("no class `{part}`")).label(label))
        }
    }
}

/// A class's name, or the number it is addressed by.
pub(super) fn class_name(class: &Node, index: usize) -> String {
    let named = class.entries().iter().find_map(|entry| match &entry.node.value {
        Value::Text(name) if entry.key == "name" => Some(name.clone()),
        _ => None,
    });
    named.unwrap_or_else(|| index.to_string())
}

/// Removes from `node`, which stands at `path`, what setting `key` replaces.
fn drop_alternatives(node: &mut Node, path: &[String], key: &str) {
    let Value::Table(entries) = &mut node.value else {
        return;
    };
    entries.retain(|entry| entry.key == key || !replaces(path, key, &entry.key));
}

/// Whether setting `key` in the table at `path` replaces its `sibling`.
fn replaces(path: &[String], key: &str, sibling: &str) -> bool {
    let is_class = path.len() == 2 && path[0] == "class";
    let among = |names: &[&str]| names.contains(&key) && names.contains(&sibling);
    let alternatives = ALTERNATIVES.iter().any(|(table, names)| path.join(".") == *table && among(names));
    let lengths = is_class
        && match key {
            "lengths" => matches!(sibling, "input_tokens" | "output_tokens"),
            "input_tokens" | "output_tokens" => sibling == "lengths",
            _ => false,
        };
    let forms = || FORMS.iter().any(|f| f.name == key) && FORMS.iter().any(|f| f.name == sibling);
    alternatives || lengths || (is_distribution(path) && forms())
}

/// Whether two dotted keys exclude each other: they part at siblings of which one replaces the other.
pub(super) fn exclude_each_other(one: &[String], other: &[String]) -> bool {
    let parting = one.iter().zip(other).position(|(a, b)| a != b);
    parting.is_some_and(|at| replaces(&one[..at], &one[at], &other[at]))
}

/// Whether a distribution stands at `path`.
fn is_distribution(path: &[String]) -> bool {
    path.last().is_some_and(|key| {
        matches!(key.as_str(), "input_tokens" | "output_tokens" | "service_time" | "think_time_s")
    })
}
