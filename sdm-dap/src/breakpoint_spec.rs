//! Translates a client's breakpoint request to gdb: conditions, hit counts, log points, locations.

use sdm_debug::command::{BreakSpec, PointSpec, WatchKind, WatchSpec};

use crate::arguments::PointArgument;
use crate::error::HitCountError;

/// The breakpoint for gdb at this location.
///
/// # Errors
/// The hit condition cannot be expressed.
pub(crate) fn spec(location: String, asked: &PointArgument) -> Result<PointSpec, HitCountError> {
    Ok(PointSpec::Break(BreakSpec {
        location,
        condition: given(&asked.condition),
        pending: true,
        ignore: ignored(asked)?,
        commands: given(&asked.log_message).map_or_else(Vec::new, |message| log_lines(&message)),
        ..BreakSpec::default()
    }))
}

/// The watchpoint for gdb.
///
/// # Errors
/// The hit condition cannot be expressed.
pub(crate) fn watch(expression: &str, asked: &PointArgument) -> Result<PointSpec, HitCountError> {
    let kind = match asked.access_type.as_deref() {
        Some("read") => WatchKind::Read,
        Some("readWrite") => WatchKind::Access,
        _ => WatchKind::Write,
    };
    Ok(PointSpec::Watch(WatchSpec {
        location: true,
        condition: given(&asked.condition),
        ignore: ignored(asked)?,
        ..WatchSpec::new(0, expression, kind)
    }))
}

/// The text of a field; `None` if empty, as editors send an empty text for a field that was left empty.
fn given(text: &Option<String>) -> Option<String> {
    text.clone().filter(|text| !text.trim().is_empty())
}

fn ignored(asked: &PointArgument) -> Result<u32, HitCountError> {
    match given(&asked.hit_condition) {
        Some(condition) => ignore(&condition).ok_or(HitCountError(condition)),
        None => Ok(0),
    }
}

/// The number of hits that gdb ignores for a hit condition. `N` and `>= N` stop from hit N on, `> N` from hit N + 1 on.
/// `None` for other conditions.
fn ignore(condition: &str) -> Option<u32> {
    let condition = condition.trim();
    if let Some(more) = condition
        .strip_prefix('>')
        .filter(|more| !more.starts_with('='))
    {
        return more.trim().parse().ok();
    }
    let count = condition.strip_prefix(">=").unwrap_or(condition);
    let count: u32 = count.trim().parse().ok()?;
    count.checked_sub(1)
}

/// The gdb commands of a log point. For `x is {x}` they print the text with the value inserted, and continue the
/// task.
fn log_lines(message: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let mut rest = message;
    while let Some((before, after)) = rest.split_once('{') {
        let Some((expression, later)) = after.split_once('}') else {
            break;
        };
        lines.extend(echo(before));
        let expression = expression.replace(['\n', '\r'], " ");
        lines.push(format!("output {expression}"));
        rest = later;
    }
    lines.extend(echo(rest));
    lines.push("echo \\n".to_owned());
    lines.push("continue".to_owned());
    lines
}

/// A gdb `echo` command for a text; `None` for an empty text. Characters with a meaning to gdb are escaped by number.
fn echo(text: &str) -> Option<String> {
    let mut line = "echo ".to_owned();
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b':' | b'=' | b',' | b'.' | b'_' | b'-' => {
                line.push(char::from(byte));
            }
            byte => line.push_str(&format!("\\{byte:03o}")),
        }
    }
    (!text.is_empty()).then_some(line)
}

/// A file and a line in gdb's syntax.
pub(crate) fn file_line(path: &str, line: i64) -> String {
    let plain = |c: char| c.is_alphanumeric() || "/._-+".contains(c);
    match path.chars().all(plain) {
        true => format!("{path}:{line}"),
        false => format!("\"{}\":{line}", path.replace('"', "")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hit_conditions_become_gdb_ignore_counts() {
        for (text, expect) in [
            ("3", Some(2)),
            (">= 3", Some(2)),
            ("> 3", Some(3)),
            ("0", None),
            ("% 2", None),
            ("", None),
        ] {
            assert_eq!(ignore(text), expect, "{text}");
        }
    }

    #[test]
    fn log_point_prints_and_continues() {
        let expect = ["echo x\\040is\\040", "output x + 1", "echo \\n", "continue"];
        assert_eq!(log_lines("x is {x + 1}"), expect);
        assert_eq!(log_lines("{")[0], "echo \\173");
    }
}
