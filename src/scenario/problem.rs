//! What is wrong with a scenario, and where.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};

use super::node::Span;

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// What is wrong, in a sentence.
    pub message: String,
    /// At the place: what was found there, or what would be right. May be empty.
    pub label: String,
    /// How to put it right.
    pub help: Option<String>,
    /// The scenario is sound, but its model does not fit into its GPU's memory.
    pub does_not_fit: bool,
    /// MiB of memory that are missing on each GPU, where that is what does not fit.
    pub missing_mib: Option<u32>,
    pub(super) span: Option<Span>,
}

/// A text that problems point into: the scenario file, or one override.
#[derive(Clone, Debug)]
pub(super) struct Source {
    /// Path, or where it came from in words.
    pub origin: String,
    pub text: Arc<str>,
    pub is_command_line: bool,
}

/// Everything that is wrong with a scenario; never empty.
#[derive(Clone, Debug)]
pub struct ScenarioErrors {
    /// In the order of the file, overrides after it.
    pub problems: Vec<Problem>,
    pub(super) sources: Vec<Source>,
}

impl Problem {
    pub(super) fn new(span: impl Into<Option<Span>>, message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            label: String::new(),
            help: None,
            does_not_fit: false,
            missing_mib: None,
            span: span.into(),
        }
    }

    pub(super) fn label(mut self, label: impl Into<String>) -> Self {
        self.label = label.into();
        self
    }

    pub(super) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

/// Longer names and lines are cut: nobody reads a megabyte of a message.
const LONGEST_SHOWN: usize = 400;

/// Beyond this many the reader of the messages has enough to do.
const MOST_SHOWN: usize = 20;

impl ScenarioErrors {
    pub(super) fn new(mut problems: Vec<Problem>, sources: &[Source]) -> Self {
        problems.sort_by_key(|p| p.span.map_or((0, 0), |span| (span.source, span.start)));
        Self { problems, sources: sources.to_vec() }
    }

    /// A problem that has no place in any text.
    pub(super) fn without_place(problem: Problem) -> Self {
        Self::new(vec![problem], &[])
    }

    /// Nothing that is wrong.
    #[must_use]
    pub fn none() -> Self {
        Self::new(Vec::new(), &[])
    }

    /// Whether anything that is wrong, other than what does not fit, stands in `text` of the command line.
    #[must_use]
    pub fn blames(&self, text: &str) -> bool {
        let stands_in = |problem: &&Problem| {
            let source = problem.span.and_then(|span| self.sources.get(span.source));
            !problem.does_not_fit && source.is_some_and(|source| &*source.text == text)
        };
        self.problems.iter().any(|problem| stands_in(&problem))
    }

    /// All problems of several scenarios, those of the first first.
    #[must_use]
    pub fn joined(all: Vec<Self>) -> Self {
        let mut joined = Self { problems: Vec::new(), sources: Vec::new() };
        for Self { problems, sources } in all {
            let before = joined.sources.len();
            joined.problems.extend(problems.into_iter().map(|mut problem| {
                problem.span = problem.span.map(|span| Span { source: span.source + before, ..span });
                problem
            }));
            joined.sources.extend(sources);
        }
        joined
    }

    /// Whether all that is wrong is that a model does not fit: a result of a sweep, not a slip.
    #[must_use]
    pub fn only_about_fit(&self) -> bool {
        self.problems.iter().all(|problem| problem.does_not_fit)
    }

    /// Line of a problem, from 1; `None` where it has no place.
    #[must_use]
    pub fn line(&self, problem: &Problem) -> Option<usize> {
        let span = problem.span?;
        let text = &self.sources.get(span.source)?.text;
        let before = text.get(..span.start.min(text.len()))?;
        Some(before.matches('\n').count() + 1)
    }

    /// All problems with their lines, as a compiler shows them.
    #[must_use]
    pub fn render(&self, color: bool) -> String {
        let renderer = if color { Renderer::styled() } else { Renderer::plain() };
        let mut out = String::new();
        for problem in self.problems.iter().take(MOST_SHOWN) {
            if !out.is_empty() {
                out.push_str("\n\n");
            }
            out.push_str(&self.render_one(problem, &renderer));
        }
        if self.problems.len() > MOST_SHOWN {
            let more = format!("... and {} more problems", self.problems.len() - MOST_SHOWN);
            out.push_str("\n\n");
            out.push_str(&renderer.render(&[Group::with_title(Level::ERROR.primary_title(more.as_str()))]));
        }
        out
    }

    fn render_one(&self, problem: &Problem, renderer: &Renderer) -> String {
        let message = cut(&problem.message);
        let mut group = Group::with_title(Level::ERROR.primary_title(message.as_str()));
        if let Some((span, source)) = problem.span.and_then(|s| Some((s, self.sources.get(s.source)?))) {
            let (text, range, line) = excerpt(&source.text, visible(&source.text, span));
            let mut annotation = AnnotationKind::Primary.span(range);
            let label = cut(&problem.label);
            if !label.is_empty() {
                annotation = annotation.label(label);
            }
            let snippet = Snippet::source(text).line_start(line).path(source.origin.as_str());
            group = group.element(snippet.annotation(annotation));
        } else if let Some(source) = self.sources.first() {
            group = group.element(Level::NOTE.message(format!("in {}", source.origin)));
        }
        if let Some(help) = &problem.help {
            group = group.element(Level::HELP.message(help.as_str()));
        }
        renderer.render(&[group])
    }
}

/// The span's first line, on character boundaries: a caret under a whole table says nothing.
fn visible(text: &str, span: Span) -> Range<usize> {
    let start = boundary(text, span.start);
    let end = boundary(text, span.end.max(span.start)).max(start);
    let line = text[start..end].find('\n').map_or(end, |at| start + at);
    start..line
}

/// The last character boundary of `text` up to a byte.
fn boundary(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

/// The text that shows a range in one line, the range in it, and the number of its first line: all of it, or of a line
/// that is too long what is around the range.
fn excerpt(text: &str, range: Range<usize>) -> (&str, Range<usize>, usize) {
    let first = text[..range.start].rfind('\n').map_or(0, |at| at + 1);
    let last = text[range.start..].find('\n').map_or(text.len(), |at| range.start + at);
    if last - first <= 4 * LONGEST_SHOWN {
        return (text, range, 1);
    }
    let from = boundary(text, range.start.saturating_sub(LONGEST_SHOWN / 4)).max(first);
    let to = boundary(text, range.start + LONGEST_SHOWN / 4).min(last);
    let line = text[..from].matches('\n').count() + 1;
    (&text[from..to], range.start - from..range.end.min(to) - from, line)
}

/// The beginning of what is too long.
fn cut(text: &str) -> String {
    match text.char_indices().nth(LONGEST_SHOWN) {
        Some((end, _)) if text.len() > 4 * LONGEST_SHOWN => format!("{}...", &text[..end]),
        _ => text.to_owned(),
    }
}

impl fmt::Display for ScenarioErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render(false))
    }
}

impl std::error::Error for ScenarioErrors {}
