//! A bar with the runs done, their rate and the time that remains: on a terminal only.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::console::Console;
use crate::experiment::Progress;

/// Redraws a second: smooth to the eye, nothing to the processor.
const REDRAWS_PER_S: u8 = 10;
const TEMPLATE: &str = "{bar:40} {pos}/{len} runs, {per_sec}, {eta} left";

pub(super) struct Bar(ProgressBar);

impl Bar {
    pub fn new(console: &Console) -> Self {
        let target = if console.shows_progress() {
            ProgressDrawTarget::stderr_with_hz(REDRAWS_PER_S)
        } else {
            ProgressDrawTarget::hidden()
        };
        let bar = ProgressBar::with_draw_target(None, target);
        // The default style is the fallback for a template that does not parse; this one does.
        bar.set_style(
            ProgressStyle::with_template(TEMPLATE).unwrap_or_else(|_| ProgressStyle::default_bar()),
        );
        Self(bar)
    }

    /// Takes the bar off the screen.
    pub fn clear(&self) {
        self.0.finish_and_clear();
    }
}

impl Progress for Bar {
    fn total(&self, runs: u64) {
        self.0.set_length(runs);
    }

    fn done(&self, runs: u64) {
        self.0.inc(runs);
    }
}
