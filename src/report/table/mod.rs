//! What a terminal shows: aligned columns without boxes, units in the headers, at most 120 columns wide.

mod capacity;
mod columns;
mod compare;
mod run;
mod sweep;

use comfy_table::{Cell, CellAlignment, ContentArrangement, LineStyle, Table, TableStyle};

use crate::report::provenance;
use crate::scenario::Scenario;

pub use capacity::{capacity, tuning};
pub use compare::comparison;
pub use run::run;
pub use sweep::sweep;

/// Widest line of any table.
pub const MAX_WIDTH: usize = 120;
/// Width of the labels below a table.
const LABEL_WIDTH: usize = 17;

/// How text may be dressed up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Look {
    /// ANSI colours: only on a terminal that wants them.
    pub colour: bool,
    /// Year and month against which prices are old; `None`: ages are left out.
    pub today: Option<(u32, u32)>,
}

/// A line's role, which decides its colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tone {
    Plain,
    Strong,
    Good,
    Bad,
    Quiet,
}

impl Look {
    /// Lines in the colour of their role.
    pub(crate) fn paint_all(self, tone: Tone, lines: Vec<String>) -> impl Iterator<Item = String> {
        lines.into_iter().map(move |line| self.paint(tone, &line))
    }

    /// `text` in the colour of its role.
    pub(crate) fn paint(self, tone: Tone, text: &str) -> String {
        let code = match tone {
            Tone::Plain => return text.to_owned(),
            Tone::Strong => "1",
            Tone::Good => "32",
            Tone::Bad => "31",
            Tone::Quiet => "2",
        };
        if self.colour { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
    }
}

/// A rule under the header and nothing else.
const STYLE: TableStyle = TableStyle::new().header_separator(LineStyle::none().fill('─'));

/// A table whose first `left` columns are left-aligned, and the last if it is words; the others right-aligned.
pub(crate) struct Columns {
    table: Table,
    left: usize,
    words_last: bool,
}

impl Columns {
    pub(crate) fn new(header: &[String], left: usize) -> Self {
        let mut table = Table::new();
        table.load_style(STYLE).set_content_arrangement(ContentArrangement::Disabled);
        let mut columns = Self { table, left, words_last: false };
        let cells = columns.cells(header);
        columns.table.set_header(cells);
        columns
    }

    /// Left-aligns the last column.
    pub(crate) fn words_last(header: &[String], left: usize) -> Self {
        let mut columns = Self::new(header, left);
        columns.words_last = true;
        let cells = columns.cells(header);
        columns.table.set_header(cells);
        columns
    }

    fn cells(&self, texts: &[String]) -> Vec<Cell> {
        let aligned = |(column, text): (usize, &String)| {
            let last = self.words_last && column + 1 == texts.len();
            let alignment =
                if column < self.left || last { CellAlignment::Left } else { CellAlignment::Right };
            Cell::new(text).set_alignment(alignment)
        };
        texts.iter().enumerate().map(aligned).collect()
    }

    pub(crate) fn row(&mut self, texts: &[String]) {
        let cells = self.cells(texts);
        self.table.add_row(cells);
    }

    /// The table's lines, without trailing blanks: columns two blanks apart, one if it is wide.
    pub(crate) fn lines(&mut self) -> Vec<String> {
        let lines = self.spaced(2);
        if lines.iter().all(|line| line.chars().count() <= MAX_WIDTH) { lines } else { self.spaced(1) }
    }

    fn spaced(&mut self, gap: u16) -> Vec<String> {
        for column in self.table.column_iter_mut() {
            column.set_padding((0, gap));
        }
        self.table.lines().map(|line| line.trim_end().to_owned()).collect()
    }
}

/// What was simulated: scenario and deployment, then `load`, the profiles with their errors and what is left
/// out. Of several scenarios (those of a sweep), what they share.
pub(crate) fn headline(scenarios: &[&Scenario], load: &str, look: Look) -> Vec<String> {
    let name = scenarios.first().map_or("", |scenario| scenario.name.as_str());
    let deployment = provenance::deployment_of(scenarios);
    let mut lines = wrapped(&format!("{name}: {deployment}"), MAX_WIDTH);
    if let Some(first) = lines.first_mut().filter(|line| line.starts_with(name)) {
        *first = format!("{}{}", look.paint(Tone::Strong, name), &first[name.len()..]);
    }
    let mut parts = vec![load.to_owned()];
    parts.extend(provenance::profiles_of(scenarios));
    parts.extend(provenance::left_out(scenarios));
    lines.extend(wrapped(&parts.join("; "), MAX_WIDTH));
    lines
}

/// `label` padded to a column, then its text, wrapped: the lines below a table.
pub(crate) fn labelled(label: &str, text: &str) -> Vec<String> {
    let mut lines = wrapped(text, MAX_WIDTH - LABEL_WIDTH);
    for (position, line) in lines.iter_mut().enumerate() {
        let label = if position == 0 { label } else { "" };
        *line = format!("{label:<LABEL_WIDTH$}{line}");
    }
    lines
}

/// `text` broken between words into lines of at most `width` characters, where words allow it.
pub(crate) fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    // A per-cent sign stays with its number.
    for word in text.replace(" %", "\u{a0}%").split(' ') {
        let line = lines
            .last_mut()
            .filter(|line| line.is_empty() || line.chars().count() + 1 + word.chars().count() <= width);
        match line {
            Some(line) if line.is_empty() => line.push_str(word),
            Some(line) => {
                line.push(' ');
                line.push_str(word);
            }
            None => lines.push(word.to_owned()),
        }
    }
    lines.into_iter().map(|line| line.replace('\u{a0}', " ")).collect()
}
