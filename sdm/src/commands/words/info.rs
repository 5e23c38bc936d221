//! `info ...`: what SDM answers itself, and what goes to gdb.

use sdm_debug::Command;

use crate::commands::cursor::Cursor;
use crate::commands::{CommandError, Topic, UserCommand as C};

/// What one word behind `info` asks for: the word, gdb's shortest form of it, and what.
struct Word {
    name: &'static str,
    shortest: &'static str,
    asks: fn() -> C,
}

/// The words that SDM answers itself.
const WORDS: &[Word] = &[
    Word {
        name: "args",
        shortest: "ar",
        asks: || C::Ask(Command::Arguments),
    },
    Word {
        name: "breakpoints",
        shortest: "b",
        asks: || C::Breakpoints { watchpoints: false },
    },
    Word {
        name: "display",
        shortest: "di",
        asks: || C::Displays,
    },
    Word {
        name: "links",
        shortest: "lin",
        asks: || C::About(Topic::Links),
    },
    Word {
        name: "locals",
        shortest: "lo",
        asks: || C::Ask(Command::Locals),
    },
    Word {
        name: "nodes",
        shortest: "no",
        asks: || C::About(Topic::Nodes),
    },
    Word {
        name: "sets",
        shortest: "sets",
        asks: || C::About(Topic::Sets),
    },
    Word {
        name: "threads",
        shortest: "th",
        asks: || C::Ask(Command::Threads),
    },
    Word {
        name: "tree",
        shortest: "tr",
        asks: || C::About(Topic::Tree),
    },
    Word {
        name: "watchpoints",
        shortest: "wat",
        asks: || C::Breakpoints { watchpoints: true },
    },
];

/// The words that SDM answers itself.
pub(in crate::commands) fn words() -> impl Iterator<Item = &'static str> {
    WORDS.iter().map(|word| word.name)
}

/// Reads what follows `info`.
pub(super) fn parse(rest: &mut Cursor<'_>) -> Result<C, CommandError> {
    if rest.is_empty() {
        let names: Vec<_> = words().collect();
        return Err(rest.error(format!(
            "info: expected {}, or another of gdb's",
            names.join(", ")
        )));
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
    if !ahead.is_empty() {
        // A name or a number behind it: gdb's own forms of these words.
        return match word.name {
            name @ ("breakpoints" | "watchpoints") => {
                Err(ahead.error(format!("info {name}: shows all, takes no number")))
            }
            _ => to_gdb(rest),
        };
    }
    *rest = ahead;
    Ok((word.asks)())
}
