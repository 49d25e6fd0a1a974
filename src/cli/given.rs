//! The options that a command was given, as they were: what a manifest records beside the scenario.

use clap::ArgMatches;
use clap::parser::ValueSource;

/// Those that change nothing of a result, only where it goes and how it is told.
const LEFT_OUT: [&str; 8] =
    ["scenario", "out", "format", "quiet", "no_files", "threads", "resume", "restart"];

/// Such as `--set engine.max_num_seqs=64`, in the order of the command's help.
pub(super) fn given(definition: &clap::Command, matches: &ArgMatches) -> Vec<String> {
    let Some((name, matches)) = matches.subcommand() else { return Vec::new() };
    let Some(command) = definition.find_subcommand(name) else { return Vec::new() };
    let mut given = Vec::new();
    for argument in command.get_arguments() {
        let id = argument.get_id().as_str();
        if LEFT_OUT.contains(&id) || matches.value_source(id) != Some(ValueSource::CommandLine) {
            continue;
        }
        let option = argument.get_long().map_or(id.to_owned(), |long| format!("--{long}"));
        if !argument.get_action().takes_values() {
            given.push(option);
            continue;
        }
        let values = matches.get_raw(id).into_iter().flatten();
        let values: Vec<String> = values.map(|value| value.to_string_lossy().into_owned()).collect();
        if argument.get_value_delimiter().is_some() {
            given.push(format!("{option} {}", values.join(",")));
        } else {
            given.extend(values.iter().map(|value| format!("{option} {value}")));
        }
    }
    given
}
