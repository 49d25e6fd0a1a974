//! The two streams: results on one, everything else on the other.

use std::io::{self, IsTerminal, Write};

use super::error::Failure;
use super::today;
use crate::report::table::Look;

/// Standard output and standard error, and how each may be dressed.
pub(super) struct Console {
    quiet: bool,
    plain: bool,
}

impl Console {
    pub fn new(quiet: bool) -> Self {
        // https://no-color.org: set and not empty means no colour, whatever the value.
        let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let dumb = std::env::var_os("TERM").is_some_and(|value| value == "dumb");
        Self { quiet, plain: no_color || dumb }
    }

    /// How results may look.
    pub fn look(&self) -> Look {
        Look { colour: !self.plain && io::stdout().is_terminal(), today: today::year_and_month() }
    }

    /// Whether messages may be coloured.
    pub fn colour_messages(&self) -> bool {
        !self.plain && io::stderr().is_terminal()
    }

    /// Whether a progress bar may be drawn.
    pub fn shows_progress(&self) -> bool {
        !self.quiet && io::stderr().is_terminal()
    }

    /// Prints a result.
    pub fn result(&self, text: &str) -> Result<(), Failure> {
        let mut out = io::stdout().lock();
        out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(Failure::Output)
    }

    /// Says something that is no result.
    pub fn note(&self, text: &str) {
        if !self.quiet {
            say(text);
        }
    }

    /// Says what the reader must know to trust the result.
    pub fn warning(&self, text: &str) {
        if !self.quiet {
            let word = if self.colour_messages() { "\u{1b}[1;33mwarning\u{1b}[0m" } else { "warning" };
            say(&format!("{word}: {text}"));
        }
    }

    /// Says why there is no result; `--quiet` does not silence it.
    pub fn error(&self, failure: &Failure) {
        say(&failure.render(self.colour_messages()));
    }
}

fn say(text: &str) {
    // Nothing can be done about a message that cannot be delivered.
    let _ = writeln!(io::stderr().lock(), "{text}");
}
