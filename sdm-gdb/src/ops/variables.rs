//! Lists variables of frames with bounded values.
//!
//! MI formats whole objects, up to hundreds of kilobytes for one argument. gdb up to 13 takes every reference for a
//! simple value, and `--all-values` ignores `print frame-arguments`. So the settings that bound a value are in the
//! same line as the question. That also holds in a gdb of several tasks, as no other question comes in between.

use std::borrow::Cow;
use std::time::Duration;

use sdm_debug::reply::{Value, Variable};
use sdm_debug::{Failure, FailureCode};

use super::language;
use super::references::{self, FOLLOWING};
use crate::gdb::Gdb;
use crate::text::{console_line, named};
use sdm_mi::{Record, Results, Value as MiValue, parse_line};

/// Time limit for one gdb command that lists variables. Then gdb is interrupted, and the answer names the missing
/// parts. The task stays stopped meanwhile.
const LIST_WAIT: Duration = Duration::from_secs(20);

/// Limits on the printed size of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bound {
    /// Maximum number of elements of an array, a string or a container.
    elements: u32,
    /// Maximum nesting depth of structures; deeper structures print as `{...}`. `None` for no limit.
    depth: Option<u32>,
    /// True if references inside values show their objects in place of addresses.
    follows: bool,
}

/// The limits of gdb's `bt`: scalars and strings, and `...` for everything else.
pub(super) const SCALARS: Bound = Bound {
    elements: 200,
    depth: Some(0),
    follows: false,
};
/// The limits for comparing a frame's variables between probes: members of an object count, their contents do not.
pub(super) const MEMBERS: Bound = Bound {
    elements: 32,
    depth: Some(1),
    follows: false,
};
/// The limits of gdb's `info locals`.
const VALUES: Bound = Bound {
    elements: 200,
    depth: None,
    follows: false,
};

/// The answer to an MI command that lists variables, with values within `bound`.
pub(super) async fn list(gdb: &Gdb, bound: Bound, command: &str) -> Result<Results, Failure> {
    let wait = gdb.get().config.command_wait.min(LIST_WAIT);
    gdb.send_within(line(bound, command), wait).await
}

/// Output of a gdb command line, with values within `bound`.
pub(super) async fn printed(gdb: &Gdb, bound: Bound, command: &str) -> Result<String, Failure> {
    let wait = gdb.get().config.command_wait.min(LIST_WAIT);
    // Prints each variable on one line.
    let command = format!("with print array off -- with print pretty off -- {command}");
    let asked = gdb.send_within(console_line(&bounded(bound, &command)), wait);
    let (result, printed) = asked.capture().printed().await;
    result.map(|_| unquoted(&printed.into_text()))
}

/// The arguments of the selected frame, or its other variables. gdb formats only the requested ones.
pub(super) async fn variables(gdb: &Gdb, arguments: bool) -> Result<Vec<Results>, Failure> {
    let command = match arguments {
        true => {
            let frame = gdb.mi("-stack-info-frame").await?;
            let level = frame
                .tuple("frame")
                .and_then(|it| it.number::<u32>("level"));
            let level = level.unwrap_or_default();
            Cow::Owned(format!(
                "-stack-list-arguments --all-values {level} {level}"
            ))
        }
        false => Cow::Borrowed("-stack-list-locals --all-values"),
    };
    let mut found = each(&list(gdb, VALUES, &command).await?);
    let mut values = found.iter().filter_map(|it| it.text("value"));
    let has_references = values
        .clone()
        .any(|text| references::are_within(text) || is_polymorphic(text));
    let may_point = values.any(|text| text.starts_with("0x") && text != "0x0");
    let follows = has_references
        || may_point && ["fortran", "rust"].contains(&&*language::current(gdb, "").await);
    if !follows {
        return Ok(found);
    }
    let following = Bound {
        follows: true,
        ..VALUES
    };
    match list(gdb, following, &command).await {
        Ok(followed) => found = each(&followed),
        Err(_) => found.iter_mut().for_each(refuse_doubtful),
    }
    Ok(found)
}

/// True for a reference to an object with virtual functions. A list shows only what the reference's type knows of it.
fn is_polymorphic(text: &str) -> bool {
    text.starts_with("@0x") && text.contains("_vptr")
}

/// Replaces a value that gdb may have printed wrong by the reason.
fn refuse_doubtful(variable: &mut Results) {
    let is_doubtful = variable.text("value").is_some_and(references::is_doubtful);
    let name = variable.text("name").unwrap_or_default().to_owned();
    for (key, value) in &mut variable.0 {
        if is_doubtful && key == "value" {
            let text = references::refusal(&name).text;
            *value = MiValue::Text(format!("<{text}>"));
        }
    }
}

/// The variables of an answer.
fn each(results: &Results) -> Vec<Results> {
    let frames = results.tuples("stack-args");
    let arguments = frames.flat_map(|frame| frame.tuples("args"));
    arguments.chain(results.tuples("locals")).cloned().collect()
}

/// The plain text of output lines, some of which are MI stream records (gdb 18, for a command under `frame apply`).
fn unquoted(printed: &str) -> String {
    let line = |line: &str| match parse_line(line.as_bytes()) {
        Record::Stream { text, .. } if line.starts_with('~') => text,
        _ => format!("{line}\n"),
    };
    printed.lines().map(line).collect()
}

/// Adds variables that only gdb's command line lists, a line each, in its order. MI's list also has the values at a
/// function's entry. With `prefer_printed` the command line's values replace those of MI.
pub(super) fn completed(
    mut known: Vec<Variable>,
    printed: &str,
    prefer_printed: bool,
) -> Vec<Variable> {
    let mut all = Vec::new();
    for (name, text) in printed.lines().filter_map(|line| line.split_once(" = ")) {
        let at = known.iter().position(|variable| variable.name == name);
        let by_mi = at.map(|at| known.remove(at));
        match by_mi.filter(|_| !prefer_printed) {
            Some(variable) => all.push(variable),
            None if is_name(name) => all.push(named(name, text)),
            None => {}
        }
    }
    known.retain(|variable| !variable.name.ends_with("@entry"));
    all.append(&mut known);
    all
}

/// True for a variable's name. A line of a pretty-printer's multi-line value is none.
fn is_name(text: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '$');
    text.starts_with(|c: char| !c.is_numeric()) && text.chars().all(is_part)
}

fn line(bound: Bound, command: &str) -> String {
    let command = format!("interpreter-exec mi3 \"{command}\"");
    console_line(&bounded(bound, &command))
}

fn bounded(bound: Bound, command: &str) -> String {
    let Bound {
        elements,
        depth,
        follows,
    } = bound;
    let following = if follows { FOLLOWING } else { "" };
    let depth = depth.map_or_else(String::new, |depth| {
        format!("with print max-depth {depth} -- ")
    });
    format!("{following}with print elements {elements} -- {depth}{command}")
}

/// A value as in `bt`: gdb writes `{...}` or, in Fortran, `(...)` for deeper parts.
pub(super) fn shown(text: &str) -> &str {
    match text {
        "{...}" | "(...)" => "...",
        text => text,
    }
}

/// True if gdb exceeded the limits of time or output: only this answer is missing.
pub(super) fn is_missing(failure: &Failure) -> bool {
    matches!(failure.code, FailureCode::TimedOut | FailureCode::Limit)
}

/// The placeholder for arguments that could not be read, with the reason as its value.
pub(super) fn missing(failure: &Failure) -> Variable {
    Variable {
        name: "...".to_owned(),
        value: Value {
            text: failure.text.clone(),
            cut: None,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_only_in_gdb_console_list_are_added() {
        let known = ["row", "n", "n@entry", "odd name", "n"];
        let known = known.map(|name| named(name, "known")).to_vec();
        let printed =
            "n = 1\nleft_out = <optimized out>\nrow = {...}\nn = 2\n  (0, 0) = 1\n9x = 2\n";
        let all = completed(known, printed, false);
        let all: Vec<_> = all.iter().map(|it| (&*it.name, &*it.value.text)).collect();
        let expect = [
            ("n", "known"),
            ("left_out", "<optimized out>"),
            ("row", "known"),
            ("n", "known"),
            ("odd name", "known"),
        ];
        assert_eq!(all, expect);
        assert_eq!(completed(Vec::new(), "No locals.\n", false), []);
    }

    #[test]
    fn mi_stream_records_are_unquoted() {
        let printed = "#1  0x1 in work (n=1)\n~\"n = 1\\n\"\n~\"s = \\\"a\\\"\\n\"\nm = 2\n";
        let expect = "#1  0x1 in work (n=1)\nn = 1\ns = \"a\"\nm = 2\n";
        assert_eq!(unquoted(printed), expect);
    }

    #[test]
    fn print_limits_and_query_form_one_command() {
        let expect = r#"-interpreter-exec console "with print elements 200 -- with print max-depth 0 -- interpreter-exec mi3 \"-stack-list-arguments 1 0 2\"""#;
        assert_eq!(line(SCALARS, "-stack-list-arguments 1 0 2"), expect);
        let expect =
            r#"-interpreter-exec console "with print elements 200 -- interpreter-exec mi3 \"-x\"""#;
        assert_eq!(line(VALUES, "-x"), expect);
    }
}
