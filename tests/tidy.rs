//! The rules of form that a compiler does not check.

use std::fs;
use std::path::{Path, PathBuf};

/// The floors: a module imports only from lower ones (`lib.rs` shows them as a picture).
const FLOORS: &[(&str, u32)] = &[
    ("units", 0),
    ("rng", 0),
    ("stats", 0),
    ("queueing", 0),
    ("disk", 0),
    ("nearest", 0),
    ("des", 1),
    ("catalog", 2),
    ("workload", 2),
    ("kv", 2),
    ("cost", 2),
    ("engine", 3),
    ("metrics", 4),
    ("scenario", 4),
    ("experiment", 5),
    ("import", 6),
    ("calibrate", 6),
    ("validate", 6),
    ("report", 7),
    ("cli", 8),
];

/// Imports within a floor that are meant: `cost` prices what `catalog` describes and fills what `kv`
/// counts in; `calibrate` minimises the errors that `validate` reports.
const WITHIN_A_FLOOR: &[(&str, &str)] = &[("cost", "catalog"), ("cost", "kv"), ("calibrate", "validate")];

fn floor(module: &str) -> Option<u32> {
    FLOORS.iter().find(|(name, _)| *name == module).map(|(_, floor)| *floor)
}

fn rust_files(dir: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(dir).expect("a readable folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            files.extend(rust_files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files.sort();
    files
}

fn sources() -> Vec<(PathBuf, String)> {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let files = rust_files(&src);
    files
        .into_iter()
        .map(|path| {
            let text = fs::read_to_string(&path).expect("UTF-8");
            (path.strip_prefix(&src).expect("inside src").to_path_buf(), text)
        })
        .collect()
}

/// The code of a file: without comments (which may link anywhere) and unit tests.
fn code(text: &str) -> impl Iterator<Item = &str> {
    text.lines()
        .take_while(|line| !line.starts_with("#[cfg(test)]"))
        .filter(|line| !line.trim_start().starts_with("//"))
}

fn module_of(path: &Path) -> String {
    let first = path.components().next().expect("a name").as_os_str().to_string_lossy().into_owned();
    first.trim_end_matches(".rs").to_owned()
}

#[test]
fn a_module_imports_only_from_lower_floors() {
    for (path, text) in sources() {
        let module = module_of(&path);
        let is_test = path.file_stem().is_some_and(|stem| stem == "tests");
        if ["lib", "main"].contains(&module.as_str()) || is_test {
            continue;
        }
        let own = floor(&module).unwrap_or_else(|| panic!("{module} has no floor in this test"));
        for line in code(&text) {
            for used in line.split("crate::").skip(1) {
                let name: String = used.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
                let Some(other) = floor(&name) else { continue };
                let allowed = name == module
                    || other < own
                    || WITHIN_A_FLOOR.contains(&(module.as_str(), name.as_str()));
                assert!(
                    allowed,
                    "{}: `{module}` (floor {own}) imports `{name}` (floor {other})",
                    path.display()
                );
            }
        }
    }
}

#[test]
fn every_file_says_what_it_is_for_and_stays_readable() {
    for (path, text) in sources() {
        let name = path.display();
        assert!(text.starts_with("//!"), "{name}: no module head");
        assert!(text.lines().count() <= 600, "{name}: over 600 lines");
    }
}

#[test]
fn the_library_neither_prints_nor_exits() {
    for (path, text) in sources() {
        if ["cli", "main"].contains(&module_of(&path).as_str()) {
            continue;
        }
        for word in ["println!", "eprintln!", "print!(", "process::exit", "todo!", "unimplemented!", "dbg!"] {
            assert!(!code(&text).any(|line| line.contains(word)), "{}: {word}", path.display());
        }
    }
}

#[test]
fn simulated_results_know_no_wall_clock_and_no_hash_order() {
    for (path, text) in sources() {
        if module_of(&path) == "cli" {
            continue;
        }
        for word in ["Instant::now", "SystemTime", "HashMap", "HashSet", "thread_rng", "rand::rng()"] {
            assert!(!code(&text).any(|line| line.contains(word)), "{}: {word}", path.display());
        }
    }
}
