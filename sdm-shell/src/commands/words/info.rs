//! `info ...`: the topics that SDM answers itself; others go to gdb.

use sdm_debug::Command;
use sdm_debug::command::ValueFormat;

use crate::commands::cursor::Cursor;
use crate::commands::{CommandError, Topic, UserCommand as C};

/// Turns the rest of the line after an `info` word into a command. Returns None if SDM does not answer it.
type Asks = fn(&str) -> Option<C>;

/// A subcommand of `info`.
struct Word {
    name: &'static str,
    /// The shortest accepted abbreviation: that of gdb, if gdb has the topic.
    shortest: &'static str,
    asks: Asks,
}

/// Returns `command` if nothing follows the word.
fn alone(rest: &str, command: C) -> Option<C> {
    rest.is_empty().then_some(command)
}

const fn word(name: &'static str, shortest: &'static str, asks: Asks) -> Word {
    Word {
        name,
        shortest,
        asks,
    }
}

/// The subcommands that SDM answers itself.
const WORDS: &[Word] = &[
    word("args", "ar", |rest| alone(rest, C::Ask(Command::Arguments))),
    word("breakpoints", "b", |rest| {
        alone(rest, C::Breakpoints { watchpoints: false })
    }),
    word("display", "di", |rest| alone(rest, C::Displays)),
    word("links", "lin", |rest| alone(rest, C::About(Topic::Links))),
    word("locals", "lo", |rest| alone(rest, C::Ask(Command::Locals))),
    word("memory", "memo", |rest| alone(rest, C::Memory)),
    word("nodes", "no", |rest| alone(rest, C::About(Topic::Nodes))),
    word("registers", "r", registers),
    word("sets", "sets", |rest| alone(rest, C::About(Topic::Sets))),
    word("sharedlibrary", "sha", |rest| alone(rest, C::Libraries)),
    word("signals", "si", signals),
    word("threads", "th", |rest| {
        alone(rest, C::Ask(Command::Threads))
    }),
    word("tree", "tr", |rest| alone(rest, C::About(Topic::Tree))),
    word("watchpoints", "wat", |rest| {
        alone(rest, C::Breakpoints { watchpoints: true })
    }),
];

/// The subcommands that SDM answers itself.
pub(in crate::commands) fn words() -> impl Iterator<Item = &'static str> {
    WORDS.iter().map(|word| word.name)
}

/// Parses the rest of the line after `info`.
pub(super) fn parse(rest: &mut Cursor<'_>) -> Result<C, CommandError> {
    if rest.is_empty() {
        let names: Vec<_> = words().collect();
        let names = names.join(", ");
        let text = format!("info: expected {names}, or another topic of gdb's `info`");
        return Err(rest.error(text));
    }
    let mut ahead = *rest;
    let said = ahead.word();
    let exact = WORDS.iter().find(|word| word.name == said);
    let found = exact.or_else(|| {
        let short = |word: &&Word| word.name.starts_with(said) && said.starts_with(word.shortest);
        WORDS.iter().find(short)
    });
    let to_gdb = |rest: &mut Cursor<'_>| {
        Ok(C::Ask(Command::Console {
            line: format!("info {}", rest.take_rest()),
        }))
    };
    let Some(word) = found else {
        return to_gdb(rest);
    };
    let behind = ahead.take_rest();
    match (word.asks)(behind) {
        Some(command) => {
            *rest = ahead;
            Ok(command)
        }
        None if matches!(word.name, "breakpoints" | "watchpoints") => {
            let name = word.name;
            Err(rest.error(format!("info {name}: takes no number; it shows all")))
        }
        // A name or a number behind it: gdb's own forms of these words.
        None => to_gdb(rest),
    }
}

/// Names of register groups in gdb.
const REGISTER_GROUPS: [&str; 10] = [
    "all", "float", "general", "mmx", "restore", "save", "sse", "system", "vector", "x87",
];

/// Parses `info registers [NAME...]`. None if a name is a register group: gdb answers such a line.
fn registers(rest: &str) -> Option<C> {
    let names: Vec<String> = rest.split_whitespace().map(ToOwned::to_owned).collect();
    let is_name = |name: &String| !REGISTER_GROUPS.contains(&&**name);
    names
        .iter()
        .all(is_name)
        .then_some(C::Ask(Command::Registers {
            names,
            format: ValueFormat::Natural,
        }))
}

/// Parses `info signals [NAME...]`. None if a signal is given by its number: gdb answers such a line.
fn signals(rest: &str) -> Option<C> {
    let names: Vec<String> = rest.split_whitespace().map(ToOwned::to_owned).collect();
    let is_name = |name: &String| name.starts_with(|first: char| first.is_ascii_alphabetic());
    names
        .iter()
        .all(is_name)
        .then_some(C::Ask(Command::Signals { names }))
}
