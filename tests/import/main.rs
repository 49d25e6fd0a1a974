//! Importers: each format against figures worked out by hand, the traps of each tool, the checks, the
//! files written, and that no input makes it panic.

mod checks;
mod files;
mod formats;
mod logs;
mod real;
mod robustness;

use std::path::PathBuf;

use knee::import::{Imported, LoadPoint, import_path};

pub fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/import/fixtures").join(name)
}

pub fn fixture(name: &str) -> Imported {
    import_path(&path(name), None).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// The only point of a fixture.
pub fn only(import: &Imported) -> &LoadPoint {
    assert_eq!(import.points.len(), 1, "{}: {:?}", import.source, import.refused);
    &import.points[0]
}

/// Equal to rounding.
#[track_caller]
pub fn close(found: Option<f64>, expected: f64) {
    let found = found.unwrap_or_else(|| panic!("nothing, expected {expected}"));
    assert!((found - expected).abs() <= 1e-9 * expected.abs().max(1e-9), "{found}, expected {expected}");
}

/// Whether a list of messages has one with `part`.
#[track_caller]
pub fn says(messages: &[String], part: &str) {
    assert!(messages.iter().any(|message| message.contains(part)), "no `{part}` in {messages:#?}");
}
