//! The names of the commands, gdb's abbreviations among them.

use super::CommandError;

/// Which command a word names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Word {
    Backtrace,
    Break,
    Call,
    Continue,
    Delete,
    Detach,
    Disable,
    Down,
    Enable,
    Finish,
    Focus,
    Frame,
    Gdb,
    Hbreak,
    Help,
    Info,
    Interrupt,
    Kill,
    Next,
    Nexti,
    Output,
    Pass,
    Print,
    Quit,
    Ranks,
    Run,
    Send,
    Set,
    Source,
    Stacks,
    Step,
    Stepi,
    Tbreak,
    Thread,
    Up,
    Wait,
}

/// Every command by its full name, in the order of `help`.
pub(super) const COMMANDS: &[(&str, Word)] = &[
    ("backtrace", Word::Backtrace),
    ("break", Word::Break),
    ("call", Word::Call),
    ("continue", Word::Continue),
    ("delete", Word::Delete),
    ("detach", Word::Detach),
    ("disable", Word::Disable),
    ("disassemble", Word::Pass),
    ("down", Word::Down),
    ("enable", Word::Enable),
    ("finish", Word::Finish),
    ("focus", Word::Focus),
    ("frame", Word::Frame),
    ("gdb", Word::Gdb),
    ("hbreak", Word::Hbreak),
    ("help", Word::Help),
    ("info", Word::Info),
    ("interrupt", Word::Interrupt),
    ("kill", Word::Kill),
    ("list", Word::Pass),
    ("next", Word::Next),
    ("nexti", Word::Nexti),
    ("output", Word::Output),
    ("print", Word::Print),
    ("ptype", Word::Pass),
    ("quit", Word::Quit),
    ("ranks", Word::Ranks),
    ("run", Word::Run),
    ("send", Word::Send),
    ("set", Word::Set),
    ("show", Word::Pass),
    ("source", Word::Source),
    ("stacks", Word::Stacks),
    ("start", Word::Run),
    ("step", Word::Step),
    ("stepi", Word::Stepi),
    ("tbreak", Word::Tbreak),
    ("thread", Word::Thread),
    ("up", Word::Up),
    ("wait", Word::Wait),
    ("whatis", Word::Pass),
    ("where", Word::Backtrace),
    ("x", Word::Pass),
];

/// gdb's abbreviations that are no unique prefix, and their commands.
pub(super) const ABBREVIATIONS: &[(&str, &str)] = &[
    ("b", "break"),
    ("br", "break"),
    ("brk", "break"),
    ("bt", "backtrace"),
    ("c", "continue"),
    ("cont", "continue"),
    ("d", "delete"),
    ("dis", "disable"),
    ("disa", "disable"),
    ("disas", "disassemble"),
    ("exit", "quit"),
    ("f", "frame"),
    ("fg", "continue"),
    ("fin", "finish"),
    ("h", "help"),
    ("i", "info"),
    ("inf", "info"),
    ("inspect", "print"),
    ("k", "kill"),
    ("l", "list"),
    ("n", "next"),
    ("ni", "nexti"),
    ("p", "print"),
    ("q", "quit"),
    ("r", "run"),
    ("s", "step"),
    ("si", "stepi"),
    ("t", "thread"),
    ("tb", "tbreak"),
    ("tbr", "tbreak"),
    ("thb", "hbreak"),
    ("u", "up"),
    ("w", "wait"),
];

/// The command that a word names: in full, by gdb's abbreviation, or by a unique prefix.
pub(super) fn find(word: &str, at: usize) -> Result<(&'static str, Word), CommandError> {
    let by_name = |name: &str| COMMANDS.iter().copied().find(|(full, _)| *full == name);
    let short = ABBREVIATIONS.iter().find(|(short, _)| *short == word);
    if let Some(found) = by_name(short.map_or(word, |(_, full)| full)) {
        return Ok(found);
    }
    let found: Vec<_> = COMMANDS
        .iter()
        .copied()
        .filter(|(full, _)| !word.is_empty() && full.starts_with(word))
        .collect();
    match found[..] {
        [one] => Ok(one),
        [] => Err(CommandError::at(
            at,
            format!("Undefined command: \"{word}\".  Try \"help\"."),
        )),
        [first, ref others @ ..] if others.iter().all(|(_, word)| *word == first.1) => Ok(first),
        _ => {
            let names: Vec<_> = found.iter().map(|(name, _)| *name).collect();
            Err(CommandError::at(
                at,
                format!("Ambiguous command \"{word}\": {}.", names.join(", ")),
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted_and_its_abbreviations_lead_somewhere() {
        assert!(COMMANDS.windows(2).all(|pair| pair[0].0 < pair[1].0));
        for (short, full) in ABBREVIATIONS {
            assert_eq!(find(short, 0).unwrap().0, *full);
        }
    }

    #[test]
    fn prefixes_are_unique_or_refused_by_name() {
        assert_eq!(find("cont", 0).unwrap().0, "continue");
        assert_eq!(find("rank", 0).unwrap().0, "ranks");
        assert_eq!(find("stac", 0).unwrap().0, "stacks");
        assert_eq!(
            find("de", 3).unwrap_err(),
            CommandError::at(3, "Ambiguous command \"de\": delete, detach.")
        );
        assert_eq!(
            find("frobnicate", 0).unwrap_err().message,
            "Undefined command: \"frobnicate\".  Try \"help\"."
        );
    }
}
