//! `info ...`: what SDM answers itself, and what goes to gdb.

use super::cursor::Cursor;
use super::{CommandError, UserCommand};

/// gdb's abbreviations of the words after `info`, the longest form first.
const WORDS: &[(&str, &[&str])] = &[
    ("locals", &["lo"]),
    ("args", &["ar"]),
    ("threads", &["th"]),
    ("breakpoints", &["b"]),
];

/// The words that SDM answers itself.
pub(super) fn words() -> impl Iterator<Item = &'static str> {
    WORDS.iter().map(|(full, _)| *full)
}

/// Reads what follows `info`.
pub(super) fn parse_info(rest: &mut Cursor<'_>) -> Result<UserCommand, CommandError> {
    if rest.is_empty() {
        return Err(
            rest.error("info: expected locals, args, threads, breakpoints, or another of gdb's")
        );
    }
    let mut ahead = *rest;
    let word = ahead.word();
    let found = WORDS.iter().find(|(full, shortest)| {
        full.starts_with(word) && shortest.iter().any(|least| word.starts_with(least))
    });
    let Some((full, _)) = found else {
        return Ok(UserCommand::Gdb(format!("info {}", rest.take_rest())));
    };
    if !ahead.is_empty() {
        // A name or a number behind it: gdb's own forms of these words.
        return match *full {
            "breakpoints" => Err(ahead.error("info breakpoints: shows all, takes no number")),
            _ => Ok(UserCommand::Gdb(format!("info {}", rest.take_rest()))),
        };
    }
    *rest = ahead;
    Ok(match *full {
        "locals" => UserCommand::Locals,
        "args" => UserCommand::Arguments,
        "threads" => UserCommand::Threads,
        _ => UserCommand::Breakpoints,
    })
}
