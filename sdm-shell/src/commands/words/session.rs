//! Specifications of the commands about the session and the prompt, and their parsers.

use sdm_debug::Command;

use super::inspection::pass;
use crate::commands::spec::{Completes, PLAIN, Spec};
use crate::commands::{Outside, UserCommand as C, args, table};

pub(super) const COMMANDS: &[Spec] = &[
    Spec {
        name: "define",
        usage: "define NAME",
        what: "defines a command of your own: the lines up to `end`",
        more: "define where-all\n  print $arg0\n  bt\nend\n[0-3] where-all x\n$arg0 to $arg9 are its arguments, $argc their number, $argv all. `show user` shows the definition.",
        parse: |name, rest| {
            let here = *rest;
            let word = rest.word();
            let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
            if word.is_empty() || !word.chars().all(plain) {
                return Err(here.error(format!(
                    "{name}: expected a name of letters, digits, _ and -"
                )));
            }
            if table::is_command(word) {
                return Err(here.error(format!("{name}: `{word}` is a command of sdm")));
            }
            Ok(C::Define(word.to_owned()))
        },
        ..PLAIN
    },
    Spec {
        name: "cd",
        usage: "cd [DIR]",
        what: "changes the directory of sdm and of the next `run`",
        completes: Completes::Files,
        parse: |_, rest| Ok(C::Outside(Outside::GoTo(rest.take_rest().to_owned()))),
        ..PLAIN
    },
    Spec {
        name: "echo",
        usage: "echo TEXT",
        what: "prints a text, for scripts",
        parse: |_, rest| Ok(C::Echo(unescaped(rest.take_rest()))),
        ..PLAIN
    },
    Spec {
        name: "gdb",
        usage: "gdb COMMAND",
        what: "runs a gdb command in the gdb of each rank",
        more: "sdm does not check the command: do not change breakpoints or run the program with it.",
        completes: Completes::Program,
        parse: |name, rest| match rest.take_rest() {
            "" => Err(rest.error(format!("{name}: expected a command for gdb"))),
            line if deletes_breakpoints(line) => Err(rest.error(format!(
                "{name}: the breakpoints are sdm's: write `{line}` without `{name}`"
            ))),
            line => Ok(C::Ask(Command::Console {
                line: line.to_owned(),
            })),
        },
        ..PLAIN
    },
    Spec {
        name: "help",
        short: &["h"],
        usage: "help [COMMAND|all|sets]",
        what: "shows help",
        completes: Completes::Commands,
        parse: |_, rest| {
            Ok(C::Help(match rest.take_rest() {
                "" => None,
                text => Some(text.to_owned()),
            }))
        },
        ..PLAIN
    },
    Spec {
        name: "make",
        usage: "make [ARGS]",
        what: "runs make on this machine",
        more: "`make`, then `run`: starts the job again with the new program.",
        completes: Completes::Files,
        parse: |_, rest| Ok(C::System(format!("make {}", rest.take_rest()))),
        ..PLAIN
    },
    Spec {
        name: "more",
        usage: "more",
        what: "prints the last answer in full",
        parse: |_, _| Ok(C::More),
        ..PLAIN
    },
    Spec {
        name: "output",
        usage: "output on|off | output EXPR",
        what: "shows or hides the program's output; prints a value",
        completes: Completes::Words(&["on", "off"]),
        parse: |name, rest| match rest.rest() {
            "" | "on" | "off" => args::on_off(rest, name).map(C::Output),
            _ => pass(name, rest),
        },
        ..PLAIN
    },
    Spec {
        name: "pwd",
        usage: "pwd",
        what: "shows the directory of sdm",
        parse: |_, _| Ok(C::Outside(Outside::WhereAmI)),
        ..PLAIN
    },
    Spec {
        name: "quit",
        short: &["q", "exit"],
        usage: "quit",
        what: "ends the session",
        more: "Started programs are killed, attached programs keep running.",
        parse: |_, _| Ok(C::Quit),
        ..PLAIN
    },
    Spec {
        name: "report",
        usage: "report FILE",
        what: "writes a report: stacks, values and the state of every rank",
        more: "report hang.html\nOne screen of text (.txt) and JSON (.json) are written beside it.",
        completes: Completes::Files,
        parse: |name, rest| args::file(name, rest).map(C::Report),
        ..PLAIN
    },
    Spec {
        name: "send",
        usage: "send SET TEXT|--eof",
        what: "sends a line to the program's standard input",
        more: "send 0 yes\nsend 0 --eof ends the input.",
        completes: Completes::Sets,
        parse: |_, rest| args::send(rest),
        ..PLAIN
    },
    Spec {
        name: "shell",
        short: &["!"],
        usage: "shell COMMAND",
        what: "runs a shell command on this machine",
        more: "`!ls` is the same as `shell ls`.\nWithout a command, it opens a shell.",
        completes: Completes::Files,
        parse: |_, rest| Ok(C::System(rest.take_rest().to_owned())),
        ..PLAIN
    },
    Spec {
        name: "source",
        usage: "source FILE",
        what: "runs commands from a file, up to the first that fails",
        completes: Completes::Files,
        parse: |name, rest| args::file(name, rest).map(C::Source),
        ..PLAIN
    },
    Spec {
        name: "tui",
        usage: "tui enable|disable",
        what: "switches between full screen and prompt",
        more: "Ctrl-X A at the prompt and on the screen does the same.",
        completes: Completes::Words(&["enable", "disable"]),
        parse: |name, rest| {
            let here = *rest;
            match rest.take_rest() {
                "enable" | "" => Ok(C::FullScreen(true)),
                "disable" => Ok(C::FullScreen(false)),
                _ => Err(here.error(format!("{name}: expected enable or disable"))),
            }
        },
        ..PLAIN
    },
];

/// A text with gdb's backslash escapes replaced: `\n`, `\t`, `\\`. A backslash or a newline as last character is
/// dropped.
fn unescaped(text: &str) -> String {
    let mut plain = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some('n') => plain.push('\n'),
                Some('t') => plain.push('\t'),
                Some(c) => plain.push(c),
                None => {}
            },
            c => plain.push(c),
        }
    }
    let line = plain.strip_suffix('\n').map(str::to_owned);
    line.unwrap_or(plain)
}

/// True for a command of gdb that deletes all breakpoints, or those at a location: SDM would still list them.
fn deletes_breakpoints(line: &str) -> bool {
    let mut words = line.split_whitespace();
    let word = words.next().unwrap_or_default();
    let is = |name: &str, least: usize| word.len() >= least && name.starts_with(word);
    is("clear", 2) || is("delete", 1) && words.all(|it| "breakpoints".starts_with(it))
}
