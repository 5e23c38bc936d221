//! gdb's value history: `$`, `$$`, `$3` and `$$2` in expressions.
//!
//! A gdb of one task keeps the history by itself. A gdb of several tasks has one history for all. So each task keeps
//! the numbers of its own values, and translates references to them into gdb's numbers.

use std::borrow::Cow;

use sdm_debug::quotes::referred;
use sdm_debug::{Failure, FailureCode};

use crate::gdb::Gdb;

/// The text with references to this task's history translated.
pub(crate) fn own<'a>(gdb: &Gdb, text: &'a str) -> Result<Cow<'a, str>, Failure> {
    match gdb.get().origin.scope() {
        Some(scope) if text.contains('$') => in_numbers(text, &scope.history).map(Cow::Owned),
        _ => Ok(Cow::Borrowed(text)),
    }
}

/// Adds the number of a printed value to this task's history, in a gdb of several tasks.
pub(crate) fn note(gdb: &Gdb, printed: &str) {
    let Some(number) = number(printed) else {
        return;
    };
    if let Some(scope) = gdb.edit().origin.scope_mut() {
        scope.history.push(number);
    }
}

/// The value after `$N = `, without the address of a reference; any other text unchanged.
pub(crate) fn shown(printed: &str) -> &str {
    numbered(printed).map_or(printed, |(_, value)| referred(value))
}

/// gdb's history number in a printed value; `None` if it has no number.
pub(crate) fn number(printed: &str) -> Option<u64> {
    numbered(printed).map(|(number, _)| number)
}

/// Parses `$3 = text`, or `$3` alone, into the number and the text; `None` for other text.
fn numbered(printed: &str) -> Option<(u64, &str)> {
    let rest = printed.strip_prefix('$')?;
    let end = rest
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(rest.len());
    let (number, rest) = rest.split_at(end);
    let value = if rest.is_empty() {
        rest
    } else {
        rest.strip_prefix(" = ")?
    };
    Some((number.parse().ok()?, value))
}

/// The text with a task's history references translated into gdb's numbers.
fn in_numbers(text: &str, values: &[u64]) -> Result<String, Failure> {
    let mut out = String::with_capacity(text.len() + 8);
    let mut rest = text;
    let mut quote = None;
    while let Some(c) = rest.chars().next() {
        let mut taken = c.len_utf8();
        match (quote, c) {
            (_, '\\') => taken += rest[1..].chars().next().map_or(0, char::len_utf8),
            (Some(open), c) if c == open => quote = None,
            (None, '"' | '\'') => quote = Some(c),
            (None, '$') => {
                let end = |text: &str, of: fn(char) -> bool| {
                    text.find(|c: char| !of(c)).unwrap_or(text.len())
                };
                let dollars = end(rest, |c| c == '$');
                let name = end(&rest[dollars..], |c| c.is_alphanumeric() || c == '_');
                taken = dollars + name;
                if let Some(number) = value_meant(dollars, &rest[dollars..taken], values)? {
                    out.push_str(&number);
                    rest = &rest[taken..];
                    continue;
                }
            }
            _ => {}
        }
        out.push_str(&rest[..taken]);
        rest = &rest[taken..];
    }
    Ok(out)
}

/// The value that a word with leading dollars refers to; `None` for a register or a convenience variable.
fn value_meant(dollars: usize, name: &str, values: &[u64]) -> Result<Option<String>, Failure> {
    let gdb = |text: String| Err(Failure::new(FailureCode::Gdb, text));
    let number = match (dollars, name) {
        (1, "") => 0,
        (2, "") => 1,
        (1 | 2, name) => match name.parse::<usize>() {
            Ok(number) => number,
            Err(_) => return Ok(None),
        },
        _ => return Ok(None),
    };
    if dollars == 1 && !name.is_empty() {
        return match number.checked_sub(1).and_then(|at| values.get(at)) {
            Some(value) => Ok(Some(format!("${value}"))),
            None => gdb(format!("History has not yet reached ${number}.")),
        };
    }
    // An empty history gives void, as in gdb.
    match values.len().checked_sub(number + 1) {
        Some(at) => Ok(Some(format!("${}", values[at]))),
        None if values.is_empty() => Ok(Some("$_sdm_void".to_owned())),
        None => gdb(format!("History does not go back to $${number}.")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn task_history_maps_to_gdb_value_numbers() {
        let check = |text: &str, expect: &str| {
            let found = in_numbers(text, &[3, 7, 12]);
            assert_eq!(
                found.unwrap_or_else(|failure| failure.text),
                expect,
                "{text}"
            );
        };
        check("$ + $$", "$12 + $7");
        check("$1+$2 * $$2-$$0", "$3+$7 * $3-$12");
        check("$rip + $_exitcode + $1x", "$rip + $_exitcode + $1x");
        check(r#"f ("$ \" $1", '$', $)"#, r#"f ("$ \" $1", '$', $12)"#);
        check("*$.next", "*$12.next");
        check("$4", "History has not yet reached $4.");
        check("$0", "History has not yet reached $0.");
        check("$$3", "History does not go back to $$3.");
        check("\u{fc}$\\", "\u{fc}$12\\");
        assert_eq!(in_numbers("$$", &[]), Ok("$_sdm_void".to_owned()));
    }

    #[test]
    fn value_number_is_split_from_printed_text() {
        let check = |text, expect| assert_eq!(numbered(text), expect, "{text}");
        check("$3 = {1, 2}\n", Some((3, "{1, 2}\n")));
        check("$12", Some((12, "")));
        check("$x = 1", None);
        check("", None);
        check("$3 + 1", None);
    }
}
