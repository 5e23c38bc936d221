//! Words for a shell's completion of `sdm` command lines: from the command line's definition, and current
//! names.

use std::ffi::OsString;
use std::io;

use clap::Command;
use clap_complete::Shell;
use clap_complete::engine::{ArgValueCandidates, CompletionCandidate};
use clap_complete::env::{CompleteEnv, Shells};

use crate::cli::Cli;
use crate::cluster::names;
use crate::sink::Sink;

/// The variable that a shell sets to its own name to request completions.
const VARIABLE: &str = "COMPLETE";

type Names = fn() -> Vec<String>;

/// Arguments that take names: the command (None for all commands), the argument's id, and the source of
/// names.
const NAMED: [(Option<&str>, &str, Names); 13] = [
    (None, "manager", names::clusters),
    (None, "queue", names::queues),
    (None, "profile", profiles),
    (None, "session", sessions),
    (None, "element", names::elements),
    (None, "job", names::jobs),
    (None, "jobs", names::jobs),
    (None, "target", names::jobs_of_clusters),
    (Some("start"), "names", names::clusters),
    (Some("stop"), "names", names::clusters),
    (Some("remove"), "names", names::clusters),
    (Some("edit"), "name", names::clusters),
    (Some("add"), "kind", names::types),
];

/// Answers a shell's request for completions. Returns true if the process was started for that only.
///
/// # Errors
/// [`io::Error`] if the answer cannot be written, or the request is invalid.
pub(super) fn answered(args: &[OsString]) -> io::Result<bool> {
    let here = std::env::current_dir().ok();
    let asked = CompleteEnv::with_factory(definition).var(VARIABLE);
    let answered = asked.try_complete(args.iter().cloned(), here.as_deref());
    answered.map_err(|error| io::Error::other(error.to_string()))
}

/// Prints the script by which a shell asks `sdm` for completions.
pub(super) fn script(shell: Shell) -> io::Result<()> {
    let name = shell.to_string();
    let shells = Shells::builtins();
    let shell = shells
        .completer(&name)
        .ok_or_else(|| io::Error::other(format!("{name}: no completions")))?;
    let mut text = Vec::new();
    shell.write_registration(VARIABLE, "sdm", "sdm", "sdm", &mut text)?;
    Sink::Output.pass(&text)
}

fn definition() -> Command {
    with_names(<Cli as clap::CommandFactory>::command())
}

fn with_names(mut command: Command) -> Command {
    let verb = command.get_name().to_owned();
    let found: Vec<(clap::Id, Names)> = command
        .get_arguments()
        .filter_map(|arg| {
            let is_its = |(of, id, _): &&(Option<&str>, &str, Names)| {
                arg.get_id() == *id && of.is_none_or(|of| of == verb)
            };
            let named = NAMED.iter().find(is_its)?;
            Some((arg.get_id().clone(), named.2))
        })
        .collect();
    for (id, names) in found {
        let candidates = move || names().into_iter().map(CompletionCandidate::new).collect();
        command = command.mut_arg(id, |arg| arg.add(ArgValueCandidates::new(candidates)));
    }
    command.mut_subcommands(with_names)
}

fn profiles() -> Vec<String> {
    crate::settings::known_profiles(&<Cli as clap::CommandFactory>::command())
}

fn sessions() -> Vec<String> {
    let sessions = sdm_keep::sessions().unwrap_or_default();
    sessions.into_iter().map(|it| it.name).collect()
}
