//! The groups in which help and manual pages show options: of `sdm run` the ten that matter most come first, under no
//! heading of their own.

use clap::{Arg, Command};

/// The first group of `sdm run`, in its order.
pub(super) const FIRST: [&str; 10] = [
    "processes",
    "launcher",
    "host",
    "command",
    "command-file",
    "interactive",
    "batch",
    "hang-timeout",
    "report",
    "keep",
];

/// The other groups, each with the long names of its options in order. An option that is in no group keeps its own
/// heading.
const GROUPS: [(&str, &[&str]); 11] = [
    (
        "Processes",
        &["directory", "env", "stdin", "output", "no-stop", "profile"],
    ),
    (
        "Emulation",
        &["hosts", "latency", "bandwidth", "roundtrips", "bytes"],
    ),
    ("Samples", &["samples", "rate", "for", "watch"]),
    (
        "Files",
        &["dot", "observations", "replay", "flame", "speedscope"],
    ),
    (
        "Resource manager",
        &["cluster", "queue", "name", "nodes", "time", "option"],
    ),
    (
        "Other hosts",
        &[
            "host",
            "hostfile",
            "launcher-option",
            "server-path",
            "stage",
            "fanout",
            "port",
            "interface",
            "tunnel",
            "reverse",
            "key-handover",
        ],
    ),
    ("Answers", &["json", "timeout"]),
    (
        "Screen",
        &[
            "tui", "web", "browser", "ascii", "palette", "linear", "bind", "no-mouse",
        ],
    ),
    (
        "Runs without a prompt (--batch)",
        &[
            "time-limit",
            "on-crash",
            "on-timeout",
            "notify",
            "no-report",
            "junit",
        ],
    ),
    (
        "Servers",
        &[
            "tasks-per-server",
            "start-wait",
            "partial",
            "topology",
            "transport",
            "control",
            "pmix",
        ],
    ),
    ("gdb", &["gdb", "by", "printers", "force"]),
];

/// Maximum number of options that a command shows in one list.
const LIST_MAX: usize = 8;

/// A command whose options are in groups, if they are too many for one list.
pub(super) fn in_groups(command: Command) -> Command {
    let first: &[&str] = match command.get_name() {
        "run" => &FIRST,
        _ => &[],
    };
    if command.get_opts().count() <= LIST_MAX {
        return command;
    }
    command.mut_args(|option| in_group(option, first))
}

fn in_group(option: Arg, first: &[&str]) -> Arg {
    let Some(name) = option.get_long().map(str::to_owned) else {
        return option;
    };
    if let Some(at) = first.iter().position(|known| *known == name) {
        return option.display_order(at);
    }
    for (heading, names) in GROUPS {
        if let Some(at) = names.iter().position(|known| *known == name) {
            return option.help_heading(heading).display_order(at);
        }
    }
    option
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use clap::CommandFactory;

    use super::*;

    /// The long names of options and the heading of each.
    fn options() -> Vec<(String, Option<String>)> {
        let command = crate::cli::Cli::command();
        let run = command.find_subcommand("run").unwrap();
        let named = run.get_arguments().filter_map(|it| {
            let heading = it.get_help_heading().map(str::to_owned);
            Some((it.get_long()?.to_owned(), heading))
        });
        named.collect()
    }

    #[test]
    fn every_option_of_run_is_in_a_help_group() {
        let options = options();
        let first = options.iter().filter(|(_, heading)| heading.is_none());
        let first: BTreeSet<&str> = first.map(|(name, _)| &**name).collect();
        assert_eq!(first, BTreeSet::from(FIRST), "those without a heading");
        let all = crate::cli::Cli::command();
        let all = all.get_subcommands().flat_map(|it| it.get_arguments());
        let known: BTreeSet<&str> = all.filter_map(|it| it.get_long()).collect();
        for (heading, names) in GROUPS {
            let unknown: Vec<_> = names.iter().filter(|name| !known.contains(*name)).collect();
            assert!(unknown.is_empty(), "{heading}: {unknown:?}");
        }
    }

    #[test]
    fn help_of_run_shows_the_first_group_first() {
        let mut command = crate::cli::Cli::command();
        let run = command.find_subcommand_mut("run").unwrap();
        let text = run.render_help().to_string();
        let lines: Vec<&str> = text.lines().collect();
        let begin = lines.iter().position(|line| *line == "Options:").unwrap();
        let name = |line: &&str| {
            let (_, rest) = line.split_once("--")?;
            let is_option = line.starts_with("  -") || line.starts_with("      --");
            let end = rest.find(|c: char| !c.is_ascii_lowercase() && c != '-')?;
            is_option.then(|| rest[..end].to_owned())
        };
        let shown: Vec<_> = lines[begin..]
            .iter()
            .filter_map(name)
            .take(FIRST.len())
            .collect();
        assert_eq!(shown, FIRST);
    }

    #[test]
    fn options_of_every_command_are_in_short_lists() {
        let command = crate::cli::Cli::command();
        for verb in command.get_subcommands() {
            let mut counts = BTreeMap::new();
            for option in verb.get_opts().filter(|it| !it.is_hide_set()) {
                *counts.entry(option.get_help_heading()).or_insert(0) += 1;
            }
            let is_short = counts.values().all(|count| *count <= 12);
            assert!(is_short, "{}: {counts:?}", verb.get_name());
        }
    }
}
