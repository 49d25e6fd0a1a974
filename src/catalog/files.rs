//! Where calibration files come from, and strict reading of them.
//!
//! A key the reader does not know is an error: a misspelt efficiency that silently keeps its default
//! would be a wrong answer that looks right.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

use include_dir::{Dir, include_dir};
use serde::de::DeserializeOwned;
use toml::de::{DeTable, DeValue};

use super::CatalogError;
use super::words::in_words;
use crate::disk;
use crate::units::{Bytes, plain};

static EMBEDDED: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/calibration");

/// No kernel reaches less of a peak; below it step times are of another world.
const LEAST_FRACTION: f64 = 0.001;

/// An example that is longer is left out.
const LONGEST_EXAMPLE: usize = 60;

/// One calibration file: where it is from and what it holds (or why it could not be read).
#[derive(Clone, Debug)]
pub(super) struct File {
    pub path: String,
    text: Result<String, String>,
}

/// Files of one kind by stem: embedded ones, replaced by those of the same name on disk.
pub(super) fn load(kind: &str, dir: Option<&Path>) -> BTreeMap<String, File> {
    let mut files = BTreeMap::new();
    let embedded = EMBEDDED.get_dir(kind).into_iter().flat_map(Dir::files);
    for file in embedded.filter(|file| is_toml(file.path())) {
        let text = file.contents_utf8().ok_or_else(|| "is not UTF-8".to_owned());
        let path = format!("calibration/{}", file.path().display());
        files.insert(stem(file.path()), File { path, text: text.map(str::to_owned) });
    }
    let on_disk = dir.and_then(|dir| std::fs::read_dir(dir.join(kind)).ok());
    for entry in on_disk.into_iter().flatten().flatten() {
        let path = entry.path();
        if is_toml(&path) {
            files.insert(stem(&path), File::read(&path));
        }
    }
    files
}

/// The file `name` at the top of the calibration data: the embedded one, then that of `dir` if present.
pub(super) fn load_one(name: &str, dir: Option<&Path>) -> Vec<File> {
    let embedded = EMBEDDED.get_file(name).map(|file| {
        let text = file.contents_utf8().ok_or_else(|| "is not UTF-8".to_owned());
        File { path: format!("calibration/{name}"), text: text.map(str::to_owned) }
    });
    // Whatever is there: what is no file says so when it is read.
    let on_disk = dir.map(|dir| dir.join(name)).filter(|path| path.symlink_metadata().is_ok());
    embedded.into_iter().chain(on_disk.map(|path| File::read(&path))).collect()
}

fn is_toml(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "toml")
}

pub(super) fn stem(path: &Path) -> String {
    path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default()
}

impl File {
    /// A file on disk; failure to read it is kept and reported when it is asked for.
    pub fn read(path: &Path) -> Self {
        let text = disk::read_to_string(path).map_err(|error| format!("cannot be read: {error}"));
        Self { path: path.display().to_string(), text }
    }

    pub fn text(&self) -> Result<&str, CatalogError> {
        self.text.as_deref().map_err(|message| self.invalid(message))
    }

    /// The file as `T`; unknown keys and wrong types are errors that name line and key. `kind`: the folder, or the name,
    /// of the embedded files that are like it, which show what a missing key looks like.
    pub fn parse<T: DeserializeOwned>(&self, kind: &str) -> Result<T, CatalogError> {
        let text = self.text()?;
        toml::from_str(text).map_err(|error| {
            let line = line_of(text, error.span().map_or(0, |span| span.start));
            self.invalid(&format!("line {line}: {}", in_words(text, &error, |key| example(kind, key))))
        })
    }

    /// As [`File::invalid`], at the line where `key` has a value that `is_it`.
    pub fn invalid_at(&self, key: &str, is_it: impl Fn(&DeValue<'_>) -> bool, message: &str) -> CatalogError {
        let text = self.text.as_deref().unwrap_or_default();
        let table = DeTable::parse(text).ok();
        let parts: Vec<&str> = key.split('.').collect();
        let start = table.as_ref().and_then(|table| place(table.get_ref(), &parts, &is_it));
        match start {
            Some(at) => self.invalid(&format!("line {}: {message}", line_of(text, at.start))),
            None => self.invalid(message),
        }
    }

    /// The error that the number at the dotted `key` is `value`.
    pub fn impossible(&self, key: &str, value: f64, must: &str) -> CatalogError {
        let is_it = |found: &DeValue<'_>| {
            let text = match found {
                DeValue::Integer(integer) => integer.as_str(),
                DeValue::Float(float) => float.as_str(),
                _ => return false,
            };
            text.parse::<f64>().is_ok_and(|found| found.total_cmp(&value).is_eq())
        };
        self.invalid_at(key, is_it, &format!("`{key}` is {}; {must}", plain(value)))
    }

    pub fn invalid(&self, message: &str) -> CatalogError {
        CatalogError::Invalid { path: self.path.clone(), message: message.to_owned() }
    }

    /// As [`File::invalid`], at a dotted key in which numbers count the items of lists: `values.1.weight_dtype`.
    pub fn invalid_in(&self, key: &str, message: &str) -> CatalogError {
        let text = self.text.as_deref().unwrap_or_default();
        let table = DeTable::parse(text).ok();
        let value = table.as_ref().and_then(|table| {
            let mut parts = key.split('.');
            let top = table.get_ref().get(parts.next()?)?;
            parts.try_fold(top, |value, part| match value.get_ref() {
                DeValue::Array(items) => items.get(part.parse::<usize>().ok()?),
                other => other.as_table()?.get(part),
            })
        });
        match value {
            Some(value) => self.invalid(&format!("line {}: {message}", line_of(text, value.span().start))),
            None => self.invalid(message),
        }
    }

    /// `value` if it lies in `range`, both ends included.
    pub fn within(&self, key: &str, value: f64, range: (f64, f64)) -> Result<f64, CatalogError> {
        let (least, most) = range;
        if (least..=most).contains(&value) {
            return Ok(value);
        }
        Err(self.impossible(key, value, &format!("it must lie in {} to {}", plain(least), plain(most))))
    }

    /// `value` if it is a fraction of a peak, and not of next to nothing.
    pub fn fraction(&self, key: &str, value: f64) -> Result<f64, CatalogError> {
        if (LEAST_FRACTION..=1.0).contains(&value) {
            return Ok(value);
        }
        Err(self.impossible(key, value, &format!("it is a fraction and must lie in {LEAST_FRACTION} to 1")))
    }

    /// `value` if it is a finite number.
    pub fn finite(&self, key: &str, value: f64) -> Result<f64, CatalogError> {
        if value.is_finite() {
            return Ok(value);
        }
        Err(self.impossible(key, value, "it must be a finite number"))
    }

    /// `value` if it is finite and not negative.
    pub fn not_negative(&self, key: &str, value: f64) -> Result<f64, CatalogError> {
        if value >= 0.0 && value.is_finite() {
            return Ok(value);
        }
        Err(self.impossible(key, value, "it must not be negative"))
    }

    /// `gib` GiB in bytes, `range` in GiB.
    pub fn gib(&self, key: &str, gib: f64, range: (f64, f64)) -> Result<Bytes, CatalogError> {
        Ok(gib_to_bytes(self.within(key, gib, range)?))
    }
}

/// How the embedded files of `kind` write the dotted `key`: `total_gib = 79.18, as calibration/hardware/h100-sxm.toml has
/// it`; one that is a price's, or of any table, by its last part.
fn example(kind: &str, key: &str) -> Option<String> {
    let dir = EMBEDDED.get_dir(kind).into_iter().flat_map(Dir::files);
    let files: Vec<_> = dir.chain(EMBEDDED.get_file(kind)).filter(|file| is_toml(file.path())).collect();
    let parts: Vec<&str> = key.split('.').collect();
    let last = parts.last()?;
    let within = |of: &dyn Fn(&DeTable<'_>) -> Option<Range<usize>>| {
        files.iter().find_map(|file| {
            let text = file.contents_utf8()?;
            let value = text.get(of(DeTable::parse(text).ok()?.get_ref())?)?;
            if value.trim_matches(['[', ']']) == key {
                return Some(format!("the table `{value}`, as calibration/{} has it", file.path().display()));
            }
            let value = if value.contains('\n') || value.len() > LONGEST_EXAMPLE { ".." } else { value };
            Some(format!("`{last} = {value}`, as calibration/{} has it", file.path().display()))
        })
    };
    within(&|table| place(table, &parts, &|_| true)).or_else(|| {
        within(&|table| table.values().find_map(|one| place(one.get_ref().as_table()?, &[last], &|_| true)))
    })
}

/// The line of a byte, counted from 1.
fn line_of(text: &str, at: usize) -> usize {
    text.get(..at).map_or(1, |before| before.matches('\n').count() + 1)
}

/// Where in the text the value at a dotted key stands that `is_it`; of a list of tables the first that has one.
fn place(table: &DeTable<'_>, parts: &[&str], is_it: &dyn Fn(&DeValue<'_>) -> bool) -> Option<Range<usize>> {
    let (first, rest) = parts.split_first()?;
    let value = table.get(*first)?;
    match value.get_ref() {
        found if rest.is_empty() => is_it(found).then(|| value.span()),
        DeValue::Table(table) => place(table, rest, is_it),
        DeValue::Array(items) => items.iter().find_map(|item| place(item.get_ref().as_table()?, rest, is_it)),
        _ => None,
    }
}

/// Bytes of `gib` GiB, rounded.
pub(super) fn gib_to_bytes(gib: f64) -> Bytes {
    libm::rint(gib * GIB) as Bytes
}

/// Bytes in a GiB.
pub(super) const GIB: f64 = 1_073_741_824.0;
