//! The command line: arguments in, an answer on standard output, an exit code.
//!
//! Results go to standard output, everything else (progress, notes, warnings, errors) to standard error. One file per
//! command; [`run`] is called by `main` and returns what the process should end with.

mod args;
mod calibrate;
mod capacity;
mod compare;
mod console;
mod error;
mod explain;
mod given;
mod import;
mod inputs;
mod interrupt;
mod keys;
mod list;
mod one_load;
mod plan;
mod precision;
mod progress;
mod show;
mod sweep;
mod today;
mod validate;

use std::any::TypeId;
use std::ffi::OsString;

use clap::{CommandFactory, FromArgMatches};

use args::{Cli, Command};
use console::Console;
use error::Failure;

/// How a command ended, by exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The answer is yes, or the work is done.
    Done = 0,
    /// The objectives cannot be met.
    ObjectivesMissed = 1,
    /// The input is wrong.
    BadInput = 2,
    /// A fault of this program.
    Fault = 3,
}

/// Runs the command in `arguments` (the program's name first) and says how the process should end.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> Outcome {
    let parsed = definition().try_get_matches_from(arguments).and_then(|matches| {
        let mut cli = Cli::from_arg_matches(&matches)?;
        cli.note_given(given::given(&definition(), &matches));
        Ok(cli)
    });
    let cli = match parsed {
        Ok(cli) => cli,
        Err(message) => {
            // Help and version are answers; everything else is wrong input. A closed pipe is nobody's fault.
            let _ = message.print();
            return if message.use_stderr() { Outcome::BadInput } else { Outcome::Done };
        }
    };
    let console = Console::new(cli.quiet());
    interrupt::watch();
    let outcome = match &cli.command {
        None => introduce(&console),
        Some(Command::Run(arguments)) => one_load::run(arguments, &console),
        Some(Command::Sweep(arguments)) => sweep::run(arguments, &console),
        Some(Command::Plan(arguments)) => plan::run(arguments, &console),
        Some(Command::Capacity(arguments)) => capacity::run(arguments, &console),
        Some(Command::Compare(arguments)) => compare::run(arguments, &console),
        Some(Command::Explain(arguments)) => explain::run(arguments, &console),
        Some(Command::Import(arguments)) => import::run(arguments, &console),
        Some(Command::Calibrate(arguments)) => calibrate::run(arguments, &console),
        Some(Command::Validate(arguments)) => validate::run(arguments, &console),
        Some(Command::List(arguments)) => list::run(arguments, &console),
        Some(Command::Show(arguments)) => show::run(arguments, &console),
    };
    match outcome {
        Ok(outcome) => outcome,
        // The reader of our output has seen enough.
        Err(failure) if failure.is_broken_pipe() => Outcome::Done,
        Err(failure) => {
            console.error(&failure);
            failure.outcome()
        }
    }
}

const INTRODUCTION: &str = "\
knee simulates LLM serving: how much load a deployment carries before its users notice, and why.

  knee sweep chat-h100      the throughput-latency curve of a chat service on one H100, with its knee
  knee run chat-h100        one load of it, as `vllm bench serve` would print it
  knee capacity chat-h100   the highest load that meets its objectives, and what would move it
  knee plan --users 500 --think-time-s 30 --gpu l40s,h100-sxm
                            how many GPUs 500 people need, and what they cost
  knee explain chat-h100    where its memory and the time of a step go
  knee list                 GPUs, models, engines, profiles and scenarios it knows

A scenario is a TOML file; any of its keys can be set: --set arrivals.poisson.rate_per_s=20
`knee show scenario chat-h100` prints one to start from. `knee --help` lists every command.
";

fn introduce(console: &Console) -> Result<Outcome, Failure> {
    console.result(INTRODUCTION)?;
    Ok(Outcome::Done)
}

/// The definition of the command line, for its own test.
#[must_use]
pub fn definition() -> clap::Command {
    // A plan needs no scenario; every other command does.
    let optional = |scenario: clap::Arg| {
        scenario
            .required(false)
            .default_value(NO_SCENARIO)
            .hide_default_value(true)
            .help("Path of a scenario file, or the name of a shipped one; what it lacks is assumed")
    };
    let command = Cli::command().mut_subcommand("plan", |plan| plan.mut_arg("scenario", optional));
    command.mut_subcommands(|command| command.mut_args(with_negative_values))
}

/// `--rate -1` is a wrong value and not an argument that is not known: the value's own check is to say so.
fn with_negative_values(argument: clap::Arg) -> clap::Arg {
    if !argument.get_action().takes_values() {
        return argument;
    }
    let value = argument.get_value_parser().type_id();
    let numbers = [TypeId::of::<f64>(), TypeId::of::<u16>(), TypeId::of::<u32>(), TypeId::of::<u64>()];
    if numbers.into_iter().any(|number| value == number) {
        argument.allow_hyphen_values(true)
    } else {
        argument.allow_negative_numbers(true)
    }
}

/// What stands for the scenario that was not given.
const NO_SCENARIO: &str = "";

#[cfg(test)]
mod tests {
    #[test]
    fn the_command_line_is_consistent() {
        super::definition().debug_assert();
    }
}
