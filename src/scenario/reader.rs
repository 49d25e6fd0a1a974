//! Typed access to a document that collects problems instead of stopping at the first.
//!
//! A getter returns `None` both for an absent key without a default and for a wrong one; in the second
//! case a problem was recorded, and the scenario is refused in the end whatever is built meanwhile.

use std::path::Path;

use super::keys::{Fallback, Key, Kind, Table, list};
use super::node::{Entry, Node, Span, Value};
use super::problem::{Problem, Source};
use crate::nearest::{did_you_mean, nearest};

/// What was found wrong, or worth knowing, so far.
pub(super) struct Reader<'d> {
    sources: &'d [Source],
    base: &'d Path,
    pub problems: Vec<Problem>,
    pub warnings: Vec<String>,
    /// Of these, those by which the engine does not start.
    pub cannot_start: Vec<String>,
}

/// A table of the document, or the absence of one.
#[derive(Clone)]
pub(super) struct Section<'d> {
    table: &'static Table,
    /// Dotted, as a user would address it: `class.chat`.
    path: String,
    entries: &'d [Entry],
    /// Where it was opened; `None` if it is absent.
    pub span: Option<Span>,
}

impl<'d> Section<'d> {
    /// The value of a key, if it was given.
    pub fn find(&self, key: &'static Key) -> Option<&'d Node> {
        self.entries.iter().find(|entry| entry.key == key.name).map(|entry| &entry.node)
    }

    /// Where a key stands; where its table does, if it does not.
    pub fn place(&self, key: &'static Key) -> Option<Span> {
        self.entries
            .iter()
            .find(|entry| entry.key == key.name)
            .map_or(self.span, |entry| Some(entry.node.span))
    }

    /// The dotted name of a key.
    pub fn dotted(&self, key: &str) -> String {
        dotted(&self.path, key)
    }
}

pub(super) fn dotted(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

impl<'d> Reader<'d> {
    /// `base`: the folder that paths in the document are relative to.
    pub fn new(sources: &'d [Source], base: &'d Path) -> Self {
        Self { sources, base, problems: Vec::new(), warnings: Vec::new(), cannot_start: Vec::new() }
    }

    /// The folder that a path written at `span` is relative to: the scenario's, but for the command line
    /// the working directory.
    pub fn folder(&self, span: Option<Span>) -> &'d Path {
        match span.and_then(|span| self.sources.get(span.source)) {
            Some(source) if source.is_command_line => Path::new(""),
            _ => self.base,
        }
    }

    /// A warning that the engine does not start like this.
    pub fn warn_of_no_start(&mut self, warning: String) {
        self.cannot_start.push(warning.clone());
        self.warnings.push(warning);
    }

    pub fn problem(&mut self, problem: Problem) {
        self.problems.push(problem);
    }

    /// The top of the document.
    pub fn top(&mut self, root: &'d Node, table: &'static Table) -> Section<'d> {
        // The top has no header to point at; the first byte stands for it.
        let span = Span { end: root.span.start, ..root.span };
        self.section(root.entries(), Some(span), table, String::new())
    }

    /// The table that `key` of `parent` holds; an empty one where it is absent or not a table.
    pub fn open(&mut self, parent: &Section<'d>, key: &'static Key, table: &'static Table) -> Section<'d> {
        let path = parent.dotted(key.name);
        match parent.find(key) {
            Some(node) => self.open_node(node, key, table, path),
            None => self.section(&[], None, table, path),
        }
    }

    /// `node` as a table.
    pub fn open_node(
        &mut self,
        node: &'d Node,
        key: &'static Key,
        table: &'static Table,
        path: String,
    ) -> Section<'d> {
        if !matches!(node.value, Value::Table(_)) {
            self.wrong_type(&path, &key.kind, node);
        }
        self.section(node.entries(), Some(node.span), table, path)
    }

    fn section(
        &mut self,
        entries: &'d [Entry],
        span: Option<Span>,
        table: &'static Table,
        path: String,
    ) -> Section<'d> {
        for entry in entries {
            if !table.keys.iter().any(|key| key.name == entry.key) {
                let names = table.keys.iter().map(|key| key.name);
                self.unknown(entry, &path, names);
            }
        }
        Section { table, path, entries, span }
    }

    /// Reports a key that is none of `names`.
    pub fn unknown<'n>(&mut self, entry: &Entry, path: &str, names: impl Iterator<Item = &'n str> + Clone) {
        let name = dotted(path, &entry.key);
        let near = did_you_mean(&nearest(&entry.key, names.clone()));
        let label = near.unwrap_or_else(|| "no such key".to_owned());
        let place = if path.is_empty() { "at the top".to_owned() } else { format!("of `{path}`") };
        let problem = Problem::new(entry.key_span, format!("unknown key `{name}`")).label(label);
        self.problem(problem.help(format!("keys {place}: {}", list(names))));
    }

    pub fn missing(&mut self, section: &Section<'d>, key: &'static Key) {
        let message = format!("missing key `{}`", section.dotted(key.name));
        let label = format!("`{}` is required: {}", key.name, key.meaning);
        let mut problem = Problem::new(section.span, message).label(label);
        problem.help = key.example().map(|example| format!("such as {example}"));
        self.problem(problem);
    }

    fn wrong_type(&mut self, path: &str, kind: &Kind, node: &Node) {
        let mut label = format!("found {}, expected {}", node.describe(), kind.describe());
        // The general upper end is worth a word only to those who pass it.
        if matches!(node.value, Value::Integer(value) if value > 1_000_000_000)
            || matches!(node.value, Value::Float(value) if value > 1e9)
        {
            label += ", at most 1e9";
        }
        self.problem(Problem::new(node.span, format!("wrong type for `{path}`")).label(label));
    }

    fn impossible(&mut self, path: &str, kind: &Kind, node: &Node) {
        let value = match node.value {
            Value::Integer(value) => Some(value as f64),
            Value::Float(value) => Some(value),
            _ => None,
        };
        let label = format!("found {}, expected {}", node.describe(), kind.describe_to(value));
        self.problem(Problem::new(node.span, format!("impossible value for `{path}`")).label(label));
    }

    /// An absent key: reported if it is required.
    fn absent<T>(
        &mut self,
        section: &Section<'d>,
        key: &'static Key,
        default: impl Fn(&Fallback) -> Option<T>,
    ) -> Option<T> {
        debug_assert!(
            section.table.keys.iter().any(|k| std::ptr::eq(*k, key)),
            "`{}` is not a key of [{}]",
            key.name,
            section.table.path
        );
        if key.fallback.is_required() {
            self.missing(section, key);
        }
        default(&key.fallback)
    }

    pub fn text(&mut self, section: &Section<'d>, key: &'static Key) -> Option<String> {
        match section.find(key) {
            Some(node) => self.text_of(node, &section.dotted(key.name)),
            None => self.absent(section, key, |fallback| match fallback {
                Fallback::Text(text) => Some((*text).to_owned()),
                _ => None,
            }),
        }
    }

    /// `node` as a text. An override may leave out the quotes: `--set engine.version=0.19`.
    pub fn text_of(&mut self, node: &Node, path: &str) -> Option<String> {
        let bare = matches!(node.value, Value::Integer(_) | Value::Float(_) | Value::Boolean(_));
        match &node.value {
            Value::Text(text) => Some(text.clone()),
            _ if bare && node.span.source > 0 => {
                let source = self.sources.get(node.span.source)?;
                source.text.get(node.span.start..node.span.end).map(str::to_owned)
            }
            _ => {
                self.wrong_type(path, &Kind::Text, node);
                if bare && let Some(problem) = self.problems.last_mut() {
                    problem.help = Some("put it in quotes".to_owned());
                }
                None
            }
        }
    }

    /// The choice made, one of the key's own.
    pub fn choice(&mut self, section: &Section<'d>, key: &'static Key) -> Option<&'static str> {
        let Kind::Choice(choices) = key.kind else {
            return None;
        };
        let Some(node) = section.find(key) else {
            return self.absent(section, key, |fallback| match fallback {
                Fallback::Text(text) => Some(*text),
                _ => None,
            });
        };
        let path = section.dotted(key.name);
        let Value::Text(text) = &node.value else {
            self.wrong_type(&path, &key.kind, node);
            return None;
        };
        let chosen = choices.iter().find(|choice| *choice == text);
        if chosen.is_none() {
            self.impossible(&path, &key.kind, node);
            if let Some(problem) = self.problems.last_mut() {
                problem.help = did_you_mean(&nearest(text, choices.iter().copied()));
            }
        }
        chosen.copied()
    }

    pub fn boolean(&mut self, section: &Section<'d>, key: &'static Key) -> Option<bool> {
        let node = section.find(key)?;
        match node.value {
            Value::Boolean(value) => Some(value),
            _ => {
                self.wrong_type(&section.dotted(key.name), &key.kind, node);
                None
            }
        }
    }

    pub fn number(&mut self, section: &Section<'d>, key: &'static Key) -> Option<f64> {
        match section.find(key) {
            Some(node) => self.number_of(node, &key.kind, &section.dotted(key.name)),
            None => self.absent(section, key, |fallback| match fallback {
                Fallback::Number(value) => Some(*value),
                _ => None,
            }),
        }
    }

    /// `node` as a number in the range of `kind`.
    pub fn number_of(&mut self, node: &Node, kind: &Kind, path: &str) -> Option<f64> {
        let value = match node.value {
            Value::Integer(value) => value as f64,
            Value::Float(value) => value,
            _ => {
                self.wrong_type(path, kind, node);
                return None;
            }
        };
        let inside = match kind {
            Kind::Number(range) | Kind::NumberOr(_, range) => range.contains(value),
            _ => value.is_finite(),
        };
        if !inside {
            self.impossible(path, kind, node);
        }
        inside.then_some(value)
    }

    /// A whole number that fits the target type, which the key's range must allow.
    pub fn integer<T: TryFrom<i64>>(&mut self, section: &Section<'d>, key: &'static Key) -> Option<T> {
        let value = match section.find(key) {
            Some(node) => self.integer_of(node, &key.kind, &section.dotted(key.name)),
            None => self.absent(section, key, |fallback| match fallback {
                Fallback::Integer(value) => Some(*value),
                _ => None,
            }),
        };
        value.and_then(|value| T::try_from(value).ok())
    }

    /// `node` as a whole number in the range of `kind`.
    pub fn integer_of(&mut self, node: &Node, kind: &Kind, path: &str) -> Option<i64> {
        let (Kind::Integer { min, max } | Kind::IntegerOr(_, min, max)) = *kind else {
            return None;
        };
        match node.value {
            Value::Integer(value) if (min..=max).contains(&value) => Some(value),
            Value::Integer(_) => {
                self.impossible(path, kind, node);
                None
            }
            _ => {
                self.wrong_type(path, kind, node);
                None
            }
        }
    }

    /// Checks `node` against `kind`, where that needs no other key.
    pub fn check(&mut self, node: &Node, kind: &Kind, path: &str) {
        match kind {
            Kind::Integer { .. } => {
                self.integer_of(node, kind, path);
            }
            Kind::Number(_) => {
                self.number_of(node, kind, path);
            }
            Kind::Boolean if !matches!(node.value, Value::Boolean(_)) => self.wrong_type(path, kind, node),
            Kind::Choice(choices) => match &node.value {
                Value::Text(text) if choices.contains(&text.as_str()) => {}
                _ => self.impossible(path, kind, node),
            },
            _ => {}
        }
    }
}
