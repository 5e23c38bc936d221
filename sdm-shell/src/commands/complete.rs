//! Completion of a partly typed line of the prompt.

use sdm_view::escape::shown;

use super::cursor::Cursor;
use super::parse::{command_word, prefix_set};
use super::set::PREFIXES;
use super::spec::Completes;
use super::{PREDEFINED, table, words};

/// The kind of completion that fits at the end of a line.
#[derive(Clone, Debug, PartialEq)]
pub enum CompletionKind {
    /// One of these words; the completed word begins at this byte of the line.
    Words(usize, Vec<String>),
    /// A file name that begins at this byte.
    File(usize),
    /// Completions that gdb finds for this gdb command line; the completed word begins at this byte of the
    /// typed line.
    Program(usize, String),
}

/// True for a word that is printed unescaped. Other words cannot be inserted into the line.
#[must_use]
pub fn is_plain(word: &str) -> bool {
    shown(word) == word && !word.contains(['\n', '\x1b'])
}

/// The text that is inserted for a word. No blank follows a word that can be continued, such as a folder.
#[must_use]
pub fn ended(word: &str) -> String {
    match word.ends_with([':', '(', '@', '/', '.']) {
        true => word.to_owned(),
        false => format!("{word} "),
    }
}

/// The texts that are inserted for these words, without those that cannot be inserted.
#[must_use]
pub fn completed(words: &[String]) -> Vec<String> {
    let words = words.iter().filter(|word| is_plain(word));
    words.map(|word| ended(word)).collect()
}

/// Finds the completions of a partly typed line; `named` are the names defined by `defset`.
#[must_use]
pub fn completions(typed: &str, named: &[String]) -> CompletionKind {
    let mut rest = Cursor::new(typed);
    let open = rest.rest().starts_with('[');
    if prefix_set(&mut rest).is_err() || (open && rest.at() == typed.len() && !typed.contains(']'))
    {
        return sets(typed, named);
    }
    let from = rest.at();
    let word = command_word(&mut rest);
    if rest.at() == typed.len() && !typed.ends_with(char::is_whitespace) {
        let names = table::commands().map(|spec| spec.name);
        return some(from, word, names);
    }
    let Ok(spec) = table::find(word, from) else {
        return CompletionKind::Words(typed.len(), Vec::new());
    };
    let at = rest.at().min(typed.len());
    let argument = &typed[at..];
    match spec.completes {
        Completes::Nothing => CompletionKind::Words(typed.len(), Vec::new()),
        Completes::Words(words) => some(at, argument, words.iter().copied()),
        Completes::Info if !argument.contains(' ') => {
            let known = some(at, argument, words::info_words());
            match &known {
                CompletionKind::Words(_, words) if !words.is_empty() => known,
                _ => CompletionKind::Program(at, format!("info {argument}")),
            }
        }
        Completes::Info => CompletionKind::Program(at, format!("info {argument}")),
        Completes::Commands => some(at, argument, table::commands().map(|spec| spec.name)),
        Completes::Sets => sets(typed, named),
        Completes::Files => CompletionKind::File(at),
        Completes::Program => {
            let line = match spec.name {
                "gdb" => argument.to_owned(),
                // SDM commands with the same argument as `print`.
                "compare" | "outliers" | "stats" | "display" => format!("print {argument}"),
                "trace" => format!("break {argument}"),
                name => format!("{name} {argument}"),
            };
            CompletionKind::Program(at, line)
        }
    }
}

fn some<'a>(from: usize, typed: &str, words: impl Iterator<Item = &'a str>) -> CompletionKind {
    let mut found: Vec<_> = words
        .filter(|word| word.starts_with(typed))
        .map(str::to_owned)
        .collect();
    found.sort_unstable();
    CompletionKind::Words(from, found)
}

/// The completions of the last element of a set, which is being typed.
fn sets(typed: &str, named: &[String]) -> CompletionKind {
    let from = typed
        .rfind(|c: char| ",!&^([ ".contains(c))
        .map_or(0, |at| at + 1);
    let last = &typed[from..];
    if let Some(name) = last.strip_prefix('@') {
        let known = PREDEFINED.iter().map(|(name, _)| *name);
        let all = known
            .chain(PREFIXES.iter().copied())
            .chain(named.iter().map(String::as_str));
        return some(from + 1, name, all);
    }
    some(from, last, ["all", "@"].into_iter())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn completion_offers_words_that_fit_the_cursor_position() {
        let named = ["workers".to_owned()];
        for (typed, from, expect) in [
            ("cont", 0, "continue"),
            ("[0-3] step", 6, "step stepi"),
            ("  rank", 2, "ranks"),
            ("info l", 5, "links locals"),
            ("i ar", 2, "args"),
            ("help foc", 5, "focus"),
            ("output o", 7, "off on"),
            ("[0-", 3, ""),
            ("[@st", 2, "stopped"),
            ("[@1&@w", 5, "workers"),
            ("focus @r", 7, "running"),
            ("focus al", 6, "all"),
        ] {
            let found = completions(typed, &named);
            let CompletionKind::Words(at, words) = &found else {
                panic!("{typed}: {found:?}");
            };
            let words = words.join(" ");
            assert_eq!(words, expect, "{typed}");
            assert!(expect.is_empty() || *at == from, "{typed}: {at}");
        }
    }

    #[test]
    fn arguments_are_completed_by_gdb_or_as_file_names() {
        for (typed, expect) in [
            (
                "print ro",
                CompletionKind::Program(6, "print ro".to_owned()),
            ),
            (
                "[0-3] b ex",
                CompletionKind::Program(8, "break ex".to_owned()),
            ),
            (
                "gdb info s",
                CompletionKind::Program(4, "info s".to_owned()),
            ),
            (
                "info sou",
                CompletionKind::Program(5, "info sou".to_owned()),
            ),
            (
                "stats res",
                CompletionKind::Program(6, "print res".to_owned()),
            ),
            ("source ha", CompletionKind::File(7)),
        ] {
            assert_eq!(completions(typed, &[]), expect, "{typed}");
        }
    }
}
