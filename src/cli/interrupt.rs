//! Ctrl-C: nothing half-written stays behind, and what can be gone on with is said.

use std::process;
use std::sync::{Mutex, PoisonError};

use crate::report::files;

/// What the shell expects of a program that was interrupted: 128 and the number of the signal.
const INTERRUPTED: i32 = 130;

/// What is said when the program is interrupted now.
static HINT: Mutex<Option<String>> = Mutex::new(None);

/// Ends the process on an interruption, after the files that are being written.
pub(super) fn watch() {
    let end = || {
        let _written = files::wait_until_written();
        if let Some(hint) = HINT.lock().unwrap_or_else(PoisonError::into_inner).as_ref() {
            eprintln!("{hint}");
        }
        process::exit(INTERRUPTED);
    };
    // Without a handler an interruption ends the process as well, only without a word.
    let _ = ctrlc::set_handler(end);
}

/// Sets what is said when the program is interrupted from now on.
pub(super) fn hint(text: Option<String>) {
    *HINT.lock().unwrap_or_else(PoisonError::into_inner) = text;
}
