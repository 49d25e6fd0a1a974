//! A scenario file as written, before anything in it is believed.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use include_dir::{Dir, include_dir};
use toml::de::DeTable;

use super::keys::list;
use super::lookups::Lookups;
use super::node::{Node, Origin, Value};
use super::overrides::{self, Override};
use super::problem::{Problem, ScenarioErrors, Source};
use super::{Axis, Scenario, SweepMode, read};
use crate::catalog::Catalog;
use crate::disk;
use crate::nearest::{hint, nearest_product};

/// The scenarios of the repository.
static SHIPPED: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/scenarios");

/// Where scenarios on disk are looked for by name, from the working directory.
const FOLDER: &str = "scenarios";

/// A parsed scenario file with overrides applied. Files that it names are read once, also for its clones.
#[derive(Clone, Debug)]
pub struct Document {
    pub(super) root: Node,
    pub(super) sources: Vec<Source>,
    pub(super) path: Option<PathBuf>,
    pub(super) lookups: Arc<Lookups>,
}

impl Document {
    /// The scenario at a path, else `scenarios/<name>.toml` on disk, else the shipped one of that name.
    ///
    /// # Errors
    /// If there is none, with the nearest name; if it cannot be read; if it is not TOML.
    pub fn load(name_or_path: &str) -> Result<Self, ScenarioErrors> {
        let stem = name_or_path.strip_suffix(".toml").unwrap_or(name_or_path);
        let candidates = [PathBuf::from(name_or_path), Path::new(FOLDER).join(format!("{stem}.toml"))];
        let given = Path::new(name_or_path);
        if given.exists() && !given.is_file() {
            let message = format!("cannot read the scenario {name_or_path}: it is not a regular file");
            return Err(ScenarioErrors::without_place(Problem::new(None, message)));
        }
        if let Some(path) = candidates.into_iter().find(|path| path.is_file()) {
            let text = disk::read_to_string(&path).map_err(|error| {
                let message = format!("cannot read the scenario {}: {error}", path.display());
                ScenarioErrors::without_place(Problem::new(None, message))
            })?;
            return Self::parse(&text, Some(&path));
        }
        let shipped = SHIPPED.get_file(format!("{stem}.toml")).and_then(include_dir::File::contents_utf8);
        match shipped {
            Some(text) => {
                let mut document = Self::parse(text, None)?;
                document.sources[0].origin = format!("{FOLDER}/{stem}.toml (shipped)");
                Ok(document)
            }
            None => Err(ScenarioErrors::without_place(not_found(name_or_path, stem))),
        }
    }

    /// The measurement set at a path.
    ///
    /// # Errors
    /// If there is none, if it cannot be read, if it is not TOML.
    pub fn load_set(path: &Path) -> Result<Self, ScenarioErrors> {
        let text = disk::read_to_string(path).map_err(|error| {
            let message = format!("cannot read the measurement set {}: {error}", path.display());
            ScenarioErrors::without_place(Problem::new(None, message))
        })?;
        Self::parse(&text, Some(path))
    }

    /// The scenario written in `text`. Relative paths in it are relative to the folder of `path`, or to
    /// the working directory.
    ///
    /// # Errors
    /// Every place where it is not TOML.
    pub fn parse(text: &str, path: Option<&Path>) -> Result<Self, ScenarioErrors> {
        let sources = vec![Source {
            origin: path.map_or_else(|| "scenario".to_owned(), |path| path.display().to_string()),
            text: Arc::from(text),
            is_command_line: false,
        }];
        let origin = Origin { source: 0, shift: 0 };
        let (table, errors) = DeTable::parse_recoverable(text);
        if !errors.is_empty() {
            let problems = errors.iter().map(|error| {
                let message = format!("not TOML: {}", error.message());
                Problem::new(error.span().map(|span| origin.span(span)), message)
            });
            return Err(ScenarioErrors::new(problems.collect(), &sources));
        }
        Ok(Self {
            root: Node::from_table(&table, origin),
            sources,
            path: path.map(Path::to_path_buf),
            lookups: Arc::default(),
        })
    }

    /// This document with values set from outside, later ones over earlier ones.
    ///
    /// # Errors
    /// Keys that are not dotted keys or address a class that is not there. Whether a key is known and a
    /// value possible is found out by [`Document::scenario`].
    pub fn with_overrides(&self, changes: &[Override]) -> Result<Self, ScenarioErrors> {
        let mut document = self.clone();
        let mut problems = Vec::new();
        for change in changes {
            let applied = overrides::apply(&mut document.root, &mut document.sources, change);
            problems.extend(applied.err());
        }
        if problems.is_empty() { Ok(document) } else { Err(ScenarioErrors::new(problems, &document.sources)) }
    }

    /// The scenario this document describes: every name resolved, every default filled in.
    ///
    /// # Errors
    /// Everything that is wrong with it, at once.
    pub fn scenario(&self, catalog: &Catalog) -> Result<Scenario, ScenarioErrors> {
        read::scenario(self, catalog)
    }

    /// The axes of `[sweep]` and how they make points, without a look at the rest: the document need not describe a valid scenario
    /// as long as every point of its sweep does.
    ///
    /// # Errors
    /// What is wrong with the axes.
    pub fn axes(&self) -> Result<(Vec<Axis>, SweepMode), ScenarioErrors> {
        read::axes(self)
    }

    /// The scenario file as written, without overrides.
    #[must_use]
    pub fn text(&self) -> &str {
        self.sources.first().map_or("", |source| &source.text)
    }

    /// Whether something stands at a dotted key; nothing is resolved or checked.
    #[must_use]
    pub fn has(&self, key: &str) -> bool {
        self.node_at(key).is_some()
    }

    /// The text at a dotted key, if there is one.
    #[must_use]
    pub fn text_at(&self, key: &str) -> Option<&str> {
        match &self.node_at(key)?.value {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The folder that a path at `key` is relative to: the document's, or the current one for the command line.
    #[must_use]
    pub fn folder_of(&self, key: &str) -> &Path {
        let source = self.node_at(key).and_then(|node| self.sources.get(node.span.source));
        if source.is_some_and(|source| source.is_command_line) { Path::new("") } else { self.base() }
    }

    fn node_at(&self, key: &str) -> Option<&Node> {
        key.split('.').try_fold(&self.root, |node, part| {
            node.entries().iter().find(|entry| entry.key == part).map(|entry| &entry.node)
        })
    }

    /// The folder that paths in the document are relative to.
    pub(super) fn base(&self) -> &Path {
        self.path.as_deref().and_then(Path::parent).unwrap_or(Path::new(""))
    }

    /// The stem of its file, for a scenario without a name.
    pub(super) fn stem(&self) -> Option<&str> {
        self.path.as_deref()?.file_stem()?.to_str()
    }
}

/// Names of all scenarios that [`Document::load`] finds, sorted: shipped ones and those on disk.
#[must_use]
pub fn scenario_names() -> Vec<String> {
    let stem = |path: &Path| match path.extension() {
        Some(extension) if extension == "toml" => path.file_stem()?.to_str().map(str::to_owned),
        _ => None,
    };
    let on_disk = std::fs::read_dir(FOLDER).into_iter().flatten().flatten();
    let mut names: Vec<String> = SHIPPED
        .files()
        .filter_map(|file| stem(file.path()))
        .chain(on_disk.filter_map(|file| stem(&file.path())))
        .collect();
    names.sort_unstable();
    names.dedup();
    names
}

fn not_found(name_or_path: &str, stem: &str) -> Problem {
    let names = scenario_names();
    let stem = Path::new(stem).file_name().unwrap_or_default().to_string_lossy();
    let near = nearest_product(&stem, names.iter().map(|name| (name.as_str(), String::new())));
    let help = hint(&near) + &format!("there are: {}; or give the path of a file", list(&names));
    Problem::new(None, format!("no scenario `{name_or_path}`")).help(help)
}
