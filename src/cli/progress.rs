//! How far the work is: on a terminal a bar with the runs done, their rate and the time that remains; elsewhere a line
//! now and then, so that a log shows that it goes on.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::console::Console;
use crate::experiment::Progress;

/// Redraws a second: smooth to the eye, nothing to the processor.
const REDRAWS_PER_S: u8 = 10;
const TEMPLATE: &str = "{bar:40} {pos}/{len} runs, {per_sec}, {eta} left";
/// Where nobody knows how many there will be, as in a search, or there were more than was thought.
const OPEN_END: &str = "{spinner} {pos} runs so far, {per_sec}";
/// The first line comes after so long, every further one after twice the time.
const FIRST_LINE: Duration = Duration::from_secs(15);

pub(super) enum Bar<'a> {
    Drawn(ProgressBar),
    Lines(Lines<'a>),
}

/// What a log is told.
pub(super) struct Lines<'a> {
    console: &'a Console,
    begun: Instant,
    due: Mutex<Duration>,
    done: AtomicU64,
    total: AtomicU64,
}

impl<'a> Bar<'a> {
    pub fn new(console: &'a Console) -> Self {
        if !console.shows_progress() {
            return Self::Lines(Lines {
                console,
                begun: Instant::now(),
                due: Mutex::new(FIRST_LINE),
                done: AtomicU64::new(0),
                total: AtomicU64::new(0),
            });
        }
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(REDRAWS_PER_S));
        bar.set_style(style(OPEN_END));
        Self::Drawn(bar)
    }

    /// Takes the bar off the screen.
    pub fn clear(&self) {
        if let Self::Drawn(bar) = self {
            bar.finish_and_clear();
        }
    }
}

/// The default style is the fallback for a template that does not parse; these do.
fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

impl Lines<'_> {
    /// The line that is due after `elapsed`, if one is.
    fn line(&self, elapsed: Duration) -> Option<String> {
        // Another thread is about to print it.
        let mut due = self.due.try_lock().ok()?;
        if elapsed < *due {
            return None;
        }
        while *due <= elapsed {
            *due *= 2;
        }
        let (done, total) = (self.done.load(Ordering::Relaxed), self.total.load(Ordering::Relaxed));
        let runs =
            if done < total { format!("{done} of {total} runs") } else { format!("{done} runs so far") };
        Some(format!("at work for {} s: {runs}", elapsed.as_secs()))
    }
}

impl Progress for Bar<'_> {
    fn total(&self, runs: u64) {
        match self {
            Self::Drawn(bar) => {
                bar.set_style(style(TEMPLATE));
                bar.set_length(runs);
            }
            Self::Lines(lines) => lines.total.store(runs, Ordering::Relaxed),
        }
    }

    fn done(&self, runs: u64) {
        match self {
            Self::Drawn(bar) => {
                bar.inc(runs);
                // It is still there: more is done than was told, such as what a plan asks of its best fleets.
                if bar.length().is_some_and(|length| bar.position() >= length) {
                    bar.set_style(style(OPEN_END));
                }
            }
            Self::Lines(lines) => {
                lines.done.fetch_add(runs, Ordering::Relaxed);
                if let Some(line) = lines.line(lines.begun.elapsed()) {
                    lines.console.note(&line);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_is_told_now_and_then() {
        let console = Console::new(true);
        let Bar::Lines(lines) = Bar::new(&console) else { panic!("quiet means no bar") };
        lines.total.store(40, Ordering::Relaxed);
        lines.done.store(7, Ordering::Relaxed);
        let after = |seconds: u64| lines.line(Duration::from_secs(seconds));
        assert_eq!(after(14), None);
        assert_eq!(after(16).as_deref(), Some("at work for 16 s: 7 of 40 runs"));
        assert_eq!(after(29), None);
        assert_eq!(after(90).as_deref(), Some("at work for 90 s: 7 of 40 runs"));
        assert_eq!(after(119), None);
        // A search does not know how many runs it will take: it never says that all are done.
        lines.total.store(0, Ordering::Relaxed);
        assert_eq!(after(130).as_deref(), Some("at work for 130 s: 7 runs so far"));
        assert!(after(250).is_some());
    }
}
