//! `knee show`: one thing that is known, with where its figures come from.

mod engine;
mod estimate;
mod hardware;
mod model;
mod profile;

use super::Outcome;
use super::args::{Kind, ShowArgs};
use super::console::Console;
use super::error::Failure;
use super::inputs::catalog;
use super::keys;
use crate::report::table::labelled;
use crate::scenario::Document;

pub(super) fn run(args: &ShowArgs, console: &Console) -> Result<Outcome, Failure> {
    let catalog = catalog(&args.data)?;
    let name = args.name.as_str();
    let text = match args.kind {
        Kind::Hardware => hardware::describe(&*catalog.hardware(name)?),
        Kind::Models => model::describe(&catalog, name)?,
        Kind::Engines => engine::describe(&catalog, name)?,
        Kind::Profiles => match catalog.profile_names().iter().any(|known| known == name) {
            false if !catalog.estimates(name)?.is_empty() => estimate::toml(&catalog.estimates(name)?),
            _ => profile::describe(&catalog, name)?,
        },
        Kind::Keys => keys::reference(Some(name))?,
        Kind::Scenarios => Document::load(name)?.text().to_owned(),
    };
    console.result(&text)?;
    Ok(Outcome::Done)
}

/// A title and labelled lines.
struct Page(Vec<String>);

impl Page {
    fn new(title: impl Into<String>) -> Self {
        Self(vec![title.into(), String::new()])
    }

    fn line(&mut self, label: &str, text: impl AsRef<str>) {
        self.0.extend(labelled(label, text.as_ref()));
    }

    fn lines(&mut self, lines: impl IntoIterator<Item = String>) {
        self.0.extend(lines);
    }

    fn text(self) -> String {
        self.0.join("\n") + "\n"
    }
}
