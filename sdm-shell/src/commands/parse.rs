//! Parsing of a line of text into a [`Line`].

use super::cursor::Cursor;
use super::set::Until;
use super::spec::Spec;
use super::{CommandError, Line, SetExpr, UserCommand, table};

/// Parses one line.
///
/// # Errors
/// The line is not a valid command. The error points at the invalid character, if there is one.
pub fn parse(line: &str) -> Result<Line, CommandError> {
    let mut rest = Cursor::new(line);
    let to = prefix_set(&mut rest)?;
    if rest.is_empty() || rest.rest().starts_with('#') {
        if to.is_some() {
            return Err(rest.error("expected a command after the set"));
        }
        let comment = !rest.is_empty();
        return Ok(Line {
            to,
            command: UserCommand::Nothing { comment },
            repeats: false,
        });
    }
    let (spec, command) = command(&mut rest)?;
    rest.finish(spec.name)?;
    Ok(Line {
        to,
        command,
        repeats: spec.repeats,
    })
}

/// A line divided into its target set, the command's name, and the rest.
#[derive(Clone, Debug, PartialEq)]
pub struct CommandLine<'a> {
    /// The target set in front of the command. None if the line has none.
    pub to: Option<SetExpr>,
    /// The first word.
    pub word: &'a str,
    /// The rest of the line after the name.
    pub rest: &'a str,
}

/// Divides a line without checking that the command exists. None if the line does not begin with a word.
#[must_use]
pub fn called(line: &str) -> Option<CommandLine<'_>> {
    let mut rest = Cursor::new(line);
    let to = prefix_set(&mut rest).ok()?;
    let word = command_word(&mut rest);
    let rest = rest.take_rest();
    (!word.is_empty()).then_some(CommandLine { to, word, rest })
}

/// Parses a command and its arguments.
pub(super) fn command(rest: &mut Cursor<'_>) -> Result<(&'static Spec, UserCommand), CommandError> {
    let at = rest.at();
    let spec = table::find(command_word(rest), at)?;
    let command = (spec.parse)(spec.name, rest)?;
    Ok((spec, command))
}

/// A line with the command's full name and without the target set: `[0-3] c &` becomes `continue &`. A line without a
/// known command is only trimmed.
#[must_use]
pub fn spelled_out(line: &str) -> String {
    let mut rest = Cursor::new(line);
    let at = match prefix_set(&mut rest) {
        Ok(_) => rest.at(),
        Err(_) => return line.trim().to_owned(),
    };
    let word = command_word(&mut rest);
    let after = &line[at + word.len()..];
    match table::find(word, at) {
        Ok(spec) => format!("{}{}", spec.name, after.trim_end()),
        Err(_) => line.trim().to_owned(),
    }
}

/// Parses `[SET]` at the start of a line. None if the line does not begin with a bracket.
pub(super) fn prefix_set(rest: &mut Cursor<'_>) -> Result<Option<SetExpr>, CommandError> {
    if !rest.rest().starts_with('[') {
        return Ok(None);
    }
    rest.skip(1);
    SetExpr::take(rest, Until::Bracket).map(Some)
}

/// Takes the command's name, which ends at the first character that cannot be part of it: `p*q`, `print/x
/// y`.
pub(super) fn command_word<'a>(rest: &mut Cursor<'a>) -> &'a str {
    let text = rest.rest();
    if text.starts_with('!') {
        rest.skip(1);
        return "!";
    }
    let end = text
        .find(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != '-')
        .unwrap_or(text.len());
    if end == 0 {
        return rest.word();
    }
    rest.skip(end);
    &text[..end]
}

#[cfg(test)]
mod tests;
