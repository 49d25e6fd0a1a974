//! `knee`: reads the command line, runs the command, turns faults into a message and an exit code.

use std::panic;
use std::process::ExitCode;

use knee::cli::{self, Outcome};

fn main() -> ExitCode {
    panic::set_hook(Box::new(report_fault));
    let outcome = panic::catch_unwind(|| cli::run(std::env::args_os())).unwrap_or(Outcome::Fault);
    ExitCode::from(outcome as u8)
}

/// A panic is a bug here, never the user's doing: says so in two lines instead of a backtrace.
fn report_fault(fault: &panic::PanicHookInfo<'_>) {
    let payload = fault.payload();
    let text = payload.downcast_ref::<String>().map(String::as_str);
    let message = text.or(payload.downcast_ref::<&str>().copied()).unwrap_or("no message");
    let place = fault.location().map_or_else(|| "unknown place".to_owned(), ToString::to_string);
    eprintln!("knee {}: internal fault: {message} ({place})", env!("CARGO_PKG_VERSION"));
    eprintln!("This is a bug. Please report it with the command line and the scenario.");
}
