//! The commands and options of `sdm`, kept in a file so that none changes unnoticed: scripts use them.

use std::path::Path;

use clap::{Arg, Command, CommandFactory};

use super::Cli;

/// The names of an argument and of its possible values: `--launcher, -l: mpirun mpiexec`.
fn row(argument: &Arg) -> String {
    let mut names = Vec::new();
    names.extend(argument.get_long().map(|name| format!("--{name}")));
    let more = argument.get_all_aliases().unwrap_or_default();
    names.extend(more.iter().map(|name| format!("--{name}")));
    names.extend(argument.get_short().map(|letter| format!("-{letter}")));
    if names.is_empty() {
        names.push(format!("<{}>", argument.get_id()));
    }
    let values = argument.get_possible_values();
    let values: String = values
        .iter()
        .map(|it| format!(" {}", it.get_name()))
        .collect();
    let mark = if values.is_empty() { "" } else { ":" };
    format!("{}{mark}{values}", names.join(", "))
}

fn add(command: &Command, path: &str, lines: &mut Vec<String>) {
    let mut rows: Vec<String> = command.get_arguments().map(row).collect();
    rows.sort();
    lines.extend(rows.into_iter().map(|row| format!("{path} {row}")));
    let verbs = command.get_subcommands();
    for verb in verbs.filter(|verb| verb.get_name() != "help") {
        add(verb, &format!("{path} {}", verb.get_name()), lines);
    }
}

#[test]
fn commands_and_options_match_the_recorded_list() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/cli/option_list.txt");
    let mut lines = Vec::new();
    let mut command = Cli::command();
    command.build();
    add(&command, "sdm", &mut lines);
    let now = lines.join("\n") + "\n";
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, &now).expect("a file");
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    let gone: Vec<&str> = kept
        .lines()
        .filter(|line| !lines.iter().any(|it| it == line))
        .collect();
    assert!(
        kept == now,
        "{}: UPDATE_GOLDEN=1 writes it anew; no longer there: {gone:#?}",
        path.display()
    );
}
