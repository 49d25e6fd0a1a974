//! Which keys differ between two documents: what a comparison is about.

use serde::Serialize;

use super::Document;
use super::keys::{Fallback, Kind, TOP};
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
    /// A default that one of them spells out is no difference, unless the default depends on something else.
    #[must_use]
    pub fn differences(&self, other: &Self) -> Vec<Difference> {
        let mut found = Vec::new();
        differ(&self.root, &other.root, "", &mut found);
        found.retain(|one| {
            let top = one.key.split('.').next().unwrap_or_default();
            let default = default_of(&one.key);
            let is_default = |side: &Option<String>| side.is_none() || *side == default;
            let spelt_out = default.is_some() && is_default(&one.a) && is_default(&one.b);
            !WITHOUT_EFFECT.contains(&top) && !spelt_out
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

/// The default of a dotted key, as [`text`] writes it, where it is one value.
fn default_of(key: &str) -> Option<String> {
    let mut parts = key.split('.');
    let mut table = TOP;
    loop {
        let part = parts.next()?;
        let found = table.keys.iter().find(|key| key.name == part)?;
        match (found.kind, found.fallback) {
            (Kind::Table(inner), _) => table = inner,
            (Kind::Tables(inner), _) => {
                // Its name.
                parts.next()?;
                table = inner;
            }
            (_, Fallback::Integer(value)) => return Some(value.to_string()),
            (_, Fallback::Number(value)) => return Some(value.to_string()),
            (_, Fallback::Text(value)) => return Some(value.to_owned()),
            (_, Fallback::Required(_) | Fallback::Depends(_)) => return None,
        }
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
