//! The table of all commands, and look-up by name.

use super::CommandError;
use super::spec::Spec;
use super::words::{GROUPS, Group};

/// All commands, group by group.
pub(super) fn commands() -> impl Iterator<Item = &'static Spec> {
    GROUPS.iter().flat_map(|Group { commands, .. }| *commands)
}

/// True for a command's full name and gdb's abbreviations of it.
#[must_use]
pub fn is_command(word: &str) -> bool {
    let mut all = commands();
    all.any(|spec| spec.name == word || spec.short.contains(&word))
}

/// Commands of gdb's TUI, which no gdb of a session has.
const GDB_SCREEN: [&str; 6] = ["fs", "layout", "refresh", "winheight", "winwidth", "ws"];

/// Commands of gdb 13 to 18 that SDM does not take over and that need no terminal, with their usual abbreviations.
const GDB_OWN: [&str; 100] = [
    "add-auto-load-safe-path",
    "add-auto-load-scripts-directory",
    "add-inferior",
    "add-symbol-file",
    "add-symbol-file-from-memory",
    "agent-printf",
    "alias",
    "append",
    "apropos",
    "bookmark",
    "break-range",
    "checkpoint",
    "clone-inferior",
    "compare-sections",
    "compile",
    "complete",
    "core-file",
    "define-prefix",
    "demangle",
    "dir",
    "directory",
    "disconnect",
    "dont-repeat",
    "down-silently",
    "dprintf",
    "eval",
    "exec-file",
    "explore",
    "expression",
    "faas",
    "file",
    "find",
    "flash-erase",
    "forward-search",
    "ftrace",
    "function",
    "generate-core-file",
    "goto-bookmark",
    "gu",
    "guile",
    "inferior",
    "init-if-undefined",
    "interpreter-exec",
    "jit-reader-load",
    "jit-reader-unload",
    "macro",
    "maint",
    "maintenance",
    "mem",
    "memory-tag",
    "monitor",
    "mt",
    "nosharedlibrary",
    "overlay",
    "passcount",
    "path",
    "pipe",
    "print-object",
    "py",
    "python",
    "queue-signal",
    "record",
    "remote",
    "remove-inferiors",
    "remove-symbol-file",
    "restart",
    "restore",
    "reverse-finish",
    "reverse-nexti",
    "reverse-search",
    "reverse-stepi",
    "rni",
    "rsi",
    "search",
    "section",
    "select-frame",
    "sharedlibrary",
    "skip",
    "starti",
    "stop",
    "strace",
    "symbol-file",
    "taas",
    "target",
    "task",
    "tdump",
    "teval",
    "tfaas",
    "tfind",
    "tp",
    "tsave",
    "tstart",
    "tstatus",
    "tstop",
    "tty",
    "tvariable",
    "unset",
    "up-silently",
    "update",
    "with",
];

/// The shortest beginning of a gdb command's name that is taken for it.
const GDB_LETTERS_MIN: usize = 3;

/// True for a command of gdb's own: its name, or the beginning of one.
pub(super) fn is_gdbs(word: &str) -> bool {
    GDB_OWN.contains(&word)
        || word.len() >= GDB_LETTERS_MIN && GDB_OWN.iter().any(|name| name.starts_with(word))
}

/// The command that a word refers to: its full name, an abbreviation of gdb, or a unique prefix.
pub(super) fn find(word: &str, at: usize) -> Result<&'static Spec, CommandError> {
    let called = |spec: &&Spec| spec.name == word || spec.short.contains(&word);
    if let Some(found) = commands().find(called) {
        return Ok(found);
    }
    let begins = |spec: &&Spec| !word.is_empty() && spec.name.starts_with(word);
    let found: Vec<_> = commands().filter(begins).collect();
    match found[..] {
        [one] => Ok(one),
        [] if word.starts_with('@') => Err(CommandError::at(
            at,
            format!(
                "expected a command: `[{word}] bt` asks these ranks, `ranks {word}` shows their state"
            ),
        )),
        [] if GDB_SCREEN.contains(&word) => Err(CommandError::at(
            at,
            format!("Undefined command: \"{word}\".  \"tui enable\" opens sdm's full screen."),
        )),
        [] if word.starts_with('|') => Err(CommandError::at(
            at,
            "\"|\" is gdb's \"pipe\": write \"gdb pipe COMMAND | SHELL\".",
        )),
        [] if is_gdbs(word) && (GDB_OWN.contains(&word) || similar(word).is_none()) => {
            Err(CommandError::at(
                at,
                format!("\"{word}\" is a command of gdb's own: write \"gdb {word} ...\"."),
            ))
        }
        [] => {
            let meant = similar(word).map(|name| format!("  Did you mean \"{name}\"?"));
            let meant = meant.unwrap_or_default();
            Err(CommandError::at(
                at,
                format!(
                    "Undefined command: \"{word}\".{meant}  Try \"help\", or \"gdb {word}\" if gdb has it."
                ),
            ))
        }
        _ => {
            let mut names: Vec<_> = found.iter().map(|spec| spec.name).collect();
            names.sort_unstable();
            Err(CommandError::at(
                at,
                format!("Ambiguous command \"{word}\": {}.", names.join(", ")),
            ))
        }
    }
}

/// The command with the most similar name, for a word that is not a command. None if none is similar.
fn similar(word: &str) -> Option<&'static str> {
    /// Shorter words are not compared, because every name would be similar.
    const LETTERS_MIN: usize = 3;
    /// Maximum length of a word, in letters, that is compared with names for suggestions.
    const LETTERS_MAX: usize = 32;
    let letters = word.chars().count();
    if !(LETTERS_MIN..=LETTERS_MAX).contains(&letters) {
        return None;
    }
    let word = word.to_ascii_lowercase();
    let near = |name: &&str| strsim::damerau_levenshtein(name, &word) <= letters.div_ceil(4);
    let names = commands().map(|spec| spec.name).filter(near);
    names.min_by_key(|name| strsim::damerau_levenshtein(name, &word))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_command_word_is_unique() {
        let mut seen = BTreeSet::new();
        for spec in commands() {
            for word in spec.short.iter().chain([&spec.name]) {
                assert!(seen.insert(*word), "{word} names two commands");
                assert_eq!(find(word, 0).unwrap().name, spec.name);
            }
        }
    }

    #[test]
    fn unique_prefix_is_found_and_similar_name_suggested() {
        assert_eq!(find("conti", 0).unwrap().name, "continue");
        assert_eq!(find("rank", 0).unwrap().name, "ranks");
        assert_eq!(find("stac", 0).unwrap().name, "stacks");
        assert_eq!(
            find("dis", 0).unwrap().name,
            "disable",
            "gdb's abbreviation wins"
        );
        assert_eq!(find("fo", 3).unwrap().name, "focus",);
        assert_eq!(
            find("una", 3).unwrap_err().message,
            "Undefined command: \"una\".  Try \"help\", or \"gdb una\" if gdb has it."
        );
        for (word, meant) in [
            ("brek", "break"),
            ("contniue", "continue"),
            ("thred", "thread"),
            ("Print", "print"),
            ("bactrace", "backtrace"),
        ] {
            let error = find(word, 0).unwrap_err().message;
            assert!(
                error.contains(&format!("Did you mean \"{meant}\"?")),
                "{error}"
            );
        }
        let found = find("defs", 3).map(|spec| spec.name);
        assert_eq!(found, Ok("defset"));
        assert_eq!(
            find("sta", 3).unwrap_err(),
            CommandError::at(3, "Ambiguous command \"sta\": stacks, start, stats.")
        );
    }

    #[test]
    fn error_for_a_gdb_only_command_suggests_the_gdb_prefix() {
        for word in ["tstart", "maint", "dprintf", "checkp", "py", "set-var"] {
            let error = find(word, 0).unwrap_err().message;
            let expected =
                format!("\"{word}\" is a command of gdb's own: write \"gdb {word} ...\".");
            assert_eq!(error == expected, word != "set-var", "{error}");
        }
        for word in GDB_OWN {
            assert!(!is_command(word), "{word} is a command of SDM");
        }
        let near = find("thred", 0).unwrap_err().message;
        assert!(near.contains("Did you mean \"thread\"?"), "{near}");
    }

    #[test]
    fn gdb_tui_commands_refer_to_the_full_screen() {
        for word in GDB_SCREEN {
            let error = find(word, 0).unwrap_err().to_string();
            assert!(error.contains("\"tui enable\""), "{error}");
        }
    }
}
