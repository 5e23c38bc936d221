//! What a beginning can become, for the prompt.

use std::borrow::Cow;

use super::info;
use super::table::COMMANDS;

/// The words that what was typed can end in, and where in it the last one begins.
#[must_use]
pub fn candidates(typed: &str) -> (usize, Vec<Cow<'static, str>>) {
    let command_at = match typed.trim_start().strip_prefix('[') {
        Some(inner) => match inner.find(']') {
            Some(end) => typed.len() - inner.len() + end + 1,
            None => return (typed.len(), Vec::new()),
        },
        None => 0,
    };
    let rest = &typed[command_at..];
    let blanks = rest.len() - rest.trim_start().len();
    let from = command_at + blanks;
    let said = &typed[from..];
    let Some((command, argument)) = said.split_once(' ') else {
        return (
            from,
            beginning_with(said, COMMANDS.iter().map(|(name, _)| *name)),
        );
    };
    let argument = argument.trim_start();
    let at = typed.len() - argument.len();
    let words: Vec<&'static str> = match command {
        "info" | "i" => info::words().collect(),
        "help" | "h" => COMMANDS.iter().map(|(name, _)| *name).collect(),
        "output" => vec!["on", "off"],
        "focus" => vec!["all"],
        "stacks" => vec!["--full"],
        "set" => vec!["var", "breakpoint pending on", "breakpoint pending off"],
        _ => Vec::new(),
    };
    (at, beginning_with(argument, words.into_iter()))
}

fn beginning_with(
    typed: &str,
    words: impl Iterator<Item = &'static str>,
) -> Vec<Cow<'static, str>> {
    let words = words.filter(|word| word.starts_with(typed));
    words.map(Cow::Borrowed).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_completed_where_they_stand() {
        for (typed, from, expect) in [
            ("cont", 0, "continue"),
            ("[0-3] ste", 6, "step stepi"),
            ("  rank", 2, "ranks"),
            ("info l", 5, "locals"),
            ("i ar", 2, "args"),
            ("help foc", 5, "focus"),
            ("output o", 7, "on off"),
            ("[0-", 3, ""),
            ("print x", 6, ""),
        ] {
            let (at, words) = candidates(typed);
            assert_eq!((at, words.join(" ").as_str()), (from, expect), "{typed}");
        }
    }
}
