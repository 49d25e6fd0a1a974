//! The keys of a `config.json`, with errors that name line, key, what was found and what would be right.

use serde_json::Value;

/// An error in words, with its line.
pub(super) type Result_<T> = Result<T, String>;

/// A config: the part about text, falling back to the whole.
pub(super) struct Keys<'a> {
    text: &'a Value,
    root: &'a Value,
    /// As written, for lines.
    written: &'a str,
}

impl<'a> Keys<'a> {
    pub fn new(root: &'a Value, written: &'a str) -> Result_<Self> {
        let text = root.get("text_config").filter(|value| !value.is_null());
        let keys = Self { text: text.unwrap_or(root), root, written };
        if !root.is_object() {
            return Err("it is no JSON object; expected a model's config.json".to_owned());
        }
        if !keys.text.is_object() {
            return Err(keys.wrong("text_config", "a table of keys"));
        }
        Ok(keys)
    }

    /// The value of a key that is present and not null.
    pub fn get(&self, key: &str) -> Option<&'a Value> {
        [self.text, self.root].into_iter().find_map(|part| part.get(key).filter(|value| !value.is_null()))
    }

    /// The value of a key of the whole, not of the part about text.
    pub fn of_root(&self, key: &str) -> Option<&'a Value> {
        self.root.get(key)
    }

    /// `message` about a key that is there, with its line.
    pub fn at(&self, key: &str, message: &str) -> String {
        let is_inside = !std::ptr::eq(self.text, self.root) && self.text.get(key).is_some();
        let path = if is_inside { vec!["text_config", key] } else { vec![key] };
        match line_of_key(self.written, &path) {
            Some(line) => format!("line {line}: {message}"),
            None => message.to_owned(),
        }
    }

    /// The error that `key` is not what was `expected`.
    pub fn wrong(&self, key: &str, expected: &str) -> String {
        let found = self.get(key).map_or_else(|| "nothing".to_owned(), described);
        self.at(key, &format!("`{key}` is {found}; expected {expected}"))
    }

    /// The first of `keys` that is present, as a whole number from `least` to `most`; and which one it is.
    fn first(&self, keys: &[&'static str], least: u32, most: u32) -> Result_<Option<(&'static str, u32)>> {
        let Some((key, value)) = keys.iter().find_map(|key| Some((*key, self.get(key)?))) else {
            return Ok(None);
        };
        let is_it = |n: &f64| n.fract() == 0.0 && (f64::from(least)..=f64::from(most)).contains(n);
        let number = value.as_f64().filter(is_it).map(|n| (key, n as u32));
        number.map(Some).ok_or_else(|| self.wrong(key, &format!("a whole number from {least} to {most}")))
    }

    /// The first of `keys` that is present, as a whole number up to `most`, which 0 may be.
    pub fn count(&self, keys: &[&'static str], most: u32) -> Result_<Option<u32>> {
        Ok(self.first(keys, 0, most)?.map(|(_, number)| number))
    }

    /// The first of `keys` that is present, as a whole number from 1 to `most`.
    pub fn optional(&self, keys: &[&'static str], most: u32) -> Result_<Option<u32>> {
        Ok(self.first(keys, 1, most)?.map(|(_, number)| number))
    }

    /// The same, where one must be there.
    pub fn required(&self, keys: &[&'static str], most: u32) -> Result_<u32> {
        self.named(keys, most).map(|(_, number)| number)
    }

    /// The same with the key that it stands under.
    pub fn named(&self, keys: &[&'static str], most: u32) -> Result_<(&'static str, u32)> {
        self.first(keys, 1, most)?.ok_or_else(|| {
            format!(
                "missing key `{}`; expected a whole number from 1 to {most}, as the model's page on Hugging Face has it in \
                 its config.json",
                keys.join("` or `")
            )
        })
    }

    pub fn flag(&self, key: &str) -> Result_<Option<bool>> {
        let Some(value) = self.get(key) else { return Ok(None) };
        value.as_bool().map(Some).ok_or_else(|| self.wrong(key, "true or false"))
    }

    pub fn text(&self, key: &str) -> Result_<Option<&'a str>> {
        let Some(value) = self.get(key) else { return Ok(None) };
        value.as_str().map(Some).ok_or_else(|| self.wrong(key, "a text in quotes"))
    }

    /// A list of which `of` makes something of every item.
    pub fn list<T>(
        &self,
        key: &str,
        expected: &str,
        of: impl Fn(&'a Value) -> Option<T>,
    ) -> Result_<Option<Vec<T>>> {
        let Some(value) = self.get(key) else { return Ok(None) };
        let items = value.as_array().and_then(|items| items.iter().map(of).collect());
        items.map(Some).ok_or_else(|| self.wrong(key, expected))
    }
}

/// A value for a message: short.
fn described(value: &Value) -> String {
    const LONGEST: usize = 40;
    match value {
        Value::Array(items) if !items.is_empty() => format!("a list of {}", items.len()),
        Value::Object(keys) if !keys.is_empty() => "a table".to_owned(),
        other => {
            let text = other.to_string();
            if text.chars().count() > LONGEST { "a long text".to_owned() } else { text }
        }
    }
}

/// The line, from 1, on which the last key at `path` stands in `text`, which is JSON.
fn line_of_key(text: &str, path: &[&str]) -> Option<usize> {
    let mut keys: Vec<&str> = Vec::new();
    let (mut at, mut found) = (0, None);
    while let Some(c) = text.get(at..).and_then(|rest| rest.chars().next()) {
        match c {
            '"' => {
                let end = at + 1 + end_of_text(&text[at + 1..]);
                let is_key = text[end..].trim_start_matches('"').trim_start().starts_with(':');
                if let Some(last) = keys.last_mut().filter(|_| is_key) {
                    *last = &text[at + 1..end];
                    found = if keys == path { Some(at) } else { found };
                }
                at = end;
            }
            '{' | '[' => keys.push(""),
            '}' | ']' => drop(keys.pop()),
            _ => {}
        }
        at += text.get(at..).and_then(|rest| rest.chars().next()).map_or(1, char::len_utf8);
    }
    found.map(|at| text[..at].matches('\n').count() + 1)
}

/// Where the text that was opened ends: at its quote.
fn end_of_text(text: &str) -> usize {
    let mut escaped = false;
    let is_end = |(_, c): &(usize, char)| {
        let ends = *c == '"' && !escaped;
        escaped = *c == '\\' && !escaped;
        ends
    };
    text.char_indices().find(is_end).map_or(text.len().saturating_sub(1), |(at, _)| at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_keys() {
        let text = "{\"a\": \"b\\\"é\", \"l\": [{\"b\": 1}],\n\"text_config\": {\n \"b\" : {\"b\": 2}\n},\n\"b\": 3}";
        assert!(serde_json::from_str::<Value>(text).is_ok());
        assert_eq!(line_of_key(text, &["a"]), Some(1));
        assert_eq!(line_of_key(text, &["text_config", "b"]), Some(3));
        assert_eq!(line_of_key(text, &["b"]), Some(5));
        assert_eq!(line_of_key(text, &["c"]), None);
        assert_eq!(line_of_key("{\"a", &["a"]), None);
        assert_eq!(line_of_key("\"", &["a"]), None);
    }
}
