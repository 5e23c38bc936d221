//! Arguments that several commands share.

use sdm_debug::command::{BreakSpec, PointSpec};
use sdm_debug::quotes::outside_quotes;

use super::cursor::Cursor;
use super::set::Until;
use super::{CommandError, SetExpr, UserCommand};

/// Maximum number of numbers in the arguments of one command.
const NUMBERS_MAX: usize = 1024;

/// Parses a single whole number, or returns `default` at the end of the line.
pub(super) fn count(
    rest: &mut Cursor<'_>,
    command: &str,
    default: u32,
) -> Result<u32, CommandError> {
    if rest.is_empty() {
        return Ok(default);
    }
    let here = *rest;
    let word = rest.word();
    let value = word
        .parse()
        .map_err(|_| here.error(format!("{command}: expected a number, not `{word}`")))?;
    rest.finish(command)?;
    Ok(value)
}

/// Parses breakpoint numbers: `1 3-5`. `$bpnum`, the most recent breakpoint, is returned as 0. Empty at the end of the
/// line.
pub(super) fn numbers(rest: &mut Cursor<'_>, command: &str) -> Result<Vec<u32>, CommandError> {
    let mut numbers = Vec::new();
    while !rest.is_empty() {
        let here = *rest;
        let word = rest.word();
        if word == "$bpnum" {
            numbers.push(0);
            continue;
        }
        let bad = || here.error(format!("bad breakpoint number '{word}'"));
        let (low, high) = word.split_once('-').unwrap_or((word, word));
        let low: u32 = low.parse().map_err(|_| bad())?;
        let high: u32 = high.parse().map_err(|_| bad())?;
        let span = high.checked_sub(low).ok_or_else(bad)? as usize;
        if numbers.len() + span >= NUMBERS_MAX {
            return Err(here.error(format!("{command}: more than {NUMBERS_MAX} numbers")));
        }
        numbers.extend(low..=high);
    }
    Ok(numbers)
}

/// Parses `[LOCATION] [thread N] [if COND]`. Without a location the breakpoint is at the position of each task, in its
/// selected frame.
pub(super) fn breakpoint(
    rest: &mut Cursor<'_>,
    command: &str,
    (temporary, hardware): (bool, bool),
) -> Result<UserCommand, CommandError> {
    let (location, condition) = split_condition(rest.take_rest());
    let condition = some_condition(condition, command)?;
    let words = format!(" {location}");
    let (location, thread) = match words.rsplit_once(" thread ") {
        None => (location, None),
        Some((location, thread)) => {
            let number = thread.trim().parse().ok().filter(|number| *number > 0);
            let bad = || CommandError::new(format!("{command}: bad thread number '{thread}'"));
            (location.trim(), Some(number.ok_or_else(bad)?))
        }
    };
    Ok(UserCommand::Point(PointSpec::Break(BreakSpec {
        location: location.to_owned(),
        condition,
        temporary,
        hardware,
        thread,
        ..BreakSpec::default()
    })))
}

/// Parses `WHAT [if COND]`. Neither part may be empty.
pub(super) fn place_and_condition<'a>(
    rest: &mut Cursor<'a>,
    command: &str,
) -> Result<(&'a str, Option<String>), CommandError> {
    let (place, condition) = split_condition(rest.take_rest());
    if place.is_empty() {
        return Err(CommandError::new(format!(
            "{command}: expected an expression before `if`"
        )));
    }
    Ok((place, some_condition(condition, command)?))
}

/// The condition after `if`, which may not be empty.
fn some_condition(condition: Option<&str>, command: &str) -> Result<Option<String>, CommandError> {
    if condition.is_some_and(str::is_empty) {
        return Err(CommandError::new(format!(
            "{command}: expected a condition after `if`"
        )));
    }
    Ok(condition.map(str::to_owned))
}

/// Parses a breakpoint's number. `$bpnum`, the most recent breakpoint, is returned as 0.
pub(super) fn number(rest: &mut Cursor<'_>, command: &str) -> Result<u32, CommandError> {
    let here = *rest;
    match rest.word() {
        "" => Err(here.error(format!("{command}: expected a breakpoint number"))),
        "$bpnum" => Ok(0),
        word => {
            let number = word.parse().ok().filter(|number| *number > 0);
            number.ok_or_else(|| here.error(format!("bad breakpoint number '{word}'")))
        }
    }
}

/// Splits at the first `if` that is a word of its own, also if a `(` follows it at once.
fn split_condition(text: &str) -> (&str, Option<&str>) {
    let mut from = 0;
    while let Some(found) = text[from..].find("if") {
        let at = from + found;
        let before = text[..at].chars().next_back();
        let after = text[at + 2..].chars().next();
        let opens = before.is_none_or(char::is_whitespace);
        let closes = after.is_none_or(|c| c.is_whitespace() || c == '(');
        if opens && closes {
            return (text[..at].trim(), Some(text[at + 2..].trim()));
        }
        from = at + 2;
    }
    (text, None)
}

/// Parses `on` or `off`. None at the end of the line.
pub(super) fn on_off(rest: &mut Cursor<'_>, command: &str) -> Result<Option<bool>, CommandError> {
    let here = *rest;
    let value = match rest.word() {
        "" => return Ok(None),
        "on" => true,
        "off" => false,
        word => return Err(here.error(format!("{command}: expected on or off, not `{word}`"))),
    };
    rest.finish(command)?;
    Ok(Some(value))
}

/// Parses `SET TEXT` or `SET --eof`.
pub(super) fn send(rest: &mut Cursor<'_>) -> Result<UserCommand, CommandError> {
    if rest.is_empty() {
        return Err(rest.error("send: expected a set of ranks and a text"));
    }
    let to = SetExpr::take(rest, Until::Blank)?;
    let eof = rest.take_word("--eof");
    if eof {
        rest.finish("send --eof")?;
    }
    Ok(UserCommand::Send {
        to,
        text: rest.take_rest().to_owned(),
        eof,
    })
}

/// Parses `[SET] [SECONDS]`. A single number is a time in seconds, as in `wait 10`.
pub(super) fn wait(rest: &mut Cursor<'_>) -> Result<UserCommand, CommandError> {
    let mut to = None;
    let mut ahead = *rest;
    let first = ahead.word();
    let alone = ahead.is_empty();
    if !first.is_empty() && (!alone || first.parse::<u32>().is_err()) {
        to = Some(SetExpr::take(rest, Until::Blank)?);
    }
    let seconds = if rest.is_empty() {
        None
    } else {
        let here = *rest;
        let value = count(rest, "wait", 0)?;
        if value == 0 {
            return Err(here.error("wait: expected a time of 1 second or more"));
        }
        Some(value)
    };
    Ok(UserCommand::Wait { to, seconds })
}

/// Parses `word` as a repeat count, which is 1 or more.
pub(super) fn positive(here: &Cursor<'_>, command: &str, word: &str) -> Result<u32, CommandError> {
    let count = word.parse().ok().filter(|count| *count > 0);
    count.ok_or_else(|| {
        here.error(format!(
            "{command}: expected a count of 1 or more, not `{word}`"
        ))
    })
}

/// The letters of `/FORMAT`. Empty without a slash.
pub(super) fn format<'a>(rest: &mut Cursor<'a>) -> &'a str {
    let Some(after) = rest.rest().strip_prefix('/') else {
        return "";
    };
    let end = after.find(char::is_whitespace).unwrap_or(after.len());
    rest.skip(1 + end);
    &after[..end]
}

/// The arguments of a program, whose text begins at byte `begin` of the line. No shell interprets them, so
/// text with a meaning for a shell is refused.
pub(super) fn program_arguments(text: &str, begin: usize) -> Result<Vec<String>, CommandError> {
    let meant = outside_quotes(text).find(|(_, c)| "<>|;&`$*?".contains(*c));
    if let Some((at, c)) = meant {
        let message = format!(
            "`{c}` has no meaning here: no shell reads the arguments; quote it to pass it on"
        );
        return Err(CommandError::at(begin + at, message));
    }
    shell_words::split(text).map_err(|_| CommandError::at(begin, "a quote is not closed"))
}

/// Takes the rest of the line as an expression.
pub(super) fn expression(command: &str, rest: &mut Cursor<'_>) -> Result<String, CommandError> {
    if rest.is_empty() {
        return Err(rest.error(format!("{command}: expected an expression")));
    }
    Ok(rest.take_rest().to_owned())
}

/// Takes the rest of the line as a file name; `~/` is the home directory.
pub(super) fn file(command: &str, rest: &mut Cursor<'_>) -> Result<String, CommandError> {
    if rest.is_empty() {
        return Err(rest.error(format!("{command}: expected a file")));
    }
    let text = rest.take_rest();
    let home = std::env::var("HOME").ok().filter(|home| !home.is_empty());
    Ok(match (text.strip_prefix("~/"), home) {
        (Some(below), Some(home)) => format!("{home}/{below}"),
        _ => text.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn condition_begins_at_a_separate_if_word() {
        for (text, expect) in [
            ("main", ("main", None)),
            ("a.c:3 if x == 1", ("a.c:3", Some("x == 1"))),
            ("f if(x)", ("f", Some("(x)"))),
            ("notify", ("notify", None)),
            ("if_ready", ("if_ready", None)),
            ("diff.c:2 if y", ("diff.c:2", Some("y"))),
        ] {
            assert_eq!(split_condition(text), expect, "{text}");
        }
    }
}
