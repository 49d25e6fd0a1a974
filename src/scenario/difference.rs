//! Which keys differ between two documents: what a comparison is about.

use serde::Serialize;

use super::Document;
use super::node::{Node, Value};

/// A key whose value is not the same in both.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// Dotted, a class by its name: `class.chat.share`.
    pub key: String,
    /// What is written there; `None`: nothing is.
    pub a: Option<String>,
    pub b: Option<String>,
}

/// Keys at the top that do not change a run.
const WITHOUT_EFFECT: [&str; 3] = ["name", "description", "sweep"];

impl Document {
    /// The keys that are not written alike here and in `other`, in the order of writing, those of `other` alone last.
    /// Defaults are not filled in: a default that one of them spells out is a difference.
    #[must_use]
    pub fn differences(&self, other: &Self) -> Vec<Difference> {
        let mut found = Vec::new();
        differ(&self.root, &other.root, "", &mut found);
        found.retain(|one| {
            let top = one.key.split('.').next().unwrap_or_default();
            !WITHOUT_EFFECT.contains(&top)
        });
        found
    }
}

fn differ(a: &Node, b: &Node, at: &str, found: &mut Vec<Difference>) {
    let (Some(in_a), Some(in_b)) = (parts(a), parts(b)) else {
        let (a, b) = (text(a), text(b));
        if a != b {
            found.push(Difference { key: at.to_owned(), a: Some(a), b: Some(b) });
        }
        return;
    };
    let key = |part: &str| if at.is_empty() { part.to_owned() } else { format!("{at}.{part}") };
    let of = |parts: &[(String, &Node)], part: &str| -> Option<usize> {
        parts.iter().position(|(other, _)| other == part)
    };
    for (part, node) in &in_a {
        match of(&in_b, part) {
            Some(place) => differ(node, in_b[place].1, &key(part), found),
            None => {
                let (key, value) = only(node, key(part));
                found.push(Difference { key, a: Some(value), b: None });
            }
        }
    }
    for (part, node) in in_b.iter().filter(|(part, _)| of(&in_a, part).is_none()) {
        let (key, value) = only(node, key(part));
        found.push(Difference { key, a: None, b: Some(value) });
    }
}

/// The parts of a table, or of a list of tables such as the classes, by name.
fn parts(node: &Node) -> Option<Vec<(String, &Node)>> {
    match &node.value {
        Value::Table(entries) => Some(entries.iter().map(|entry| (entry.key.clone(), &entry.node)).collect()),
        Value::List(items) if items.iter().all(|item| matches!(item.value, Value::Table(_))) => {
            let name = |(place, item): (usize, &Node)| {
                let named = item.entries().iter().find(|entry| entry.key == "name");
                named.map_or_else(|| place.to_string(), |entry| text(&entry.node))
            };
            Some(items.iter().enumerate().map(|one| (name(one), one.1)).collect())
        }
        _ => None,
    }
}

/// What stands in one of the two only: down to its only value, a larger table as a whole.
fn only(node: &Node, key: String) -> (String, String) {
    match parts(node).as_deref() {
        Some([(part, inner)]) => only(inner, format!("{key}.{part}")),
        _ => (key, text(node)),
    }
}

/// The value as TOML, numbers without an empty fraction, texts without quotes.
fn text(node: &Node) -> String {
    match &node.value {
        Value::Text(text) => text.clone(),
        Value::Float(value) => {
            let digits = format!("{value:?}");
            digits.strip_suffix(".0").map_or(digits.clone(), str::to_owned)
        }
        Value::List(items) => format!("[{}]", items.iter().map(text).collect::<Vec<_>>().join(", ")),
        Value::Table(entries) => {
            let entries: Vec<String> =
                entries.iter().map(|entry| format!("{} = {}", entry.key, text(&entry.node))).collect();
            if entries.is_empty() { "{}".to_owned() } else { format!("{{ {} }}", entries.join(", ")) }
        }
        Value::Integer(_) | Value::Boolean(_) | Value::Date => node.describe(),
    }
}
