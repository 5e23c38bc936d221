//! Lists variables of frames with as much of their values as is shown.
//!
//! MI formats objects whole, up to hundreds of kilobytes for one argument: up to gdb 13 it takes every reference for a simple value, and
//! its `--all-values` does not heed `print frame-arguments`. So the settings that bound a value stand in one line with the question, which
//! holds also where a gdb belongs to several tasks: nobody else's question comes between.

use std::time::Duration;

use sdm_debug::reply::{Value, Variable};
use sdm_debug::{Failure, FailureCode};

use crate::driver::gdb::Gdb;
use crate::driver::text::console_line;
use crate::mi::Results;

/// How long gdb may take for one such question: then it is interrupted, and the answer says what is missing. Whoever is looked at
/// stands meanwhile.
const LIST_WAIT: Duration = Duration::from_secs(20);

/// How much of a value is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bound {
    /// How many elements of an array, a string, a container.
    elements: u32,
    /// How deep structures stand in structures; of what is deeper gdb says `{...}`.
    depth: Option<u32>,
}

/// What gdb's own `bt` shows of arguments: scalars and text, and `...` of all else.
pub(super) const SCALARS: Bound = Bound {
    elements: 200,
    depth: Some(0),
};
/// What tells whether a frame's variables have changed: those of an object count, what they consist of does not.
pub(super) const MEMBERS: Bound = Bound {
    elements: 32,
    depth: Some(1),
};
/// What gdb's own `info locals` shows.
const VALUES: Bound = Bound {
    elements: 200,
    depth: None,
};

/// The answer to an MI command that lists variables, with their values as far as is asked for.
pub(super) async fn list(gdb: &Gdb, bound: Bound, command: &str) -> Result<Results, Failure> {
    let wait = gdb.get().config.command_wait.min(LIST_WAIT);
    gdb.send_within(line(bound, command), wait).await
}

/// The variables of the selected frame, arguments included.
pub(super) async fn variables(gdb: &Gdb) -> Result<Results, Failure> {
    list(gdb, VALUES, "-stack-list-variables --all-values").await
}

fn line(Bound { elements, depth }: Bound, command: &str) -> String {
    let depth = depth.map_or_else(String::new, |depth| {
        format!("with print max-depth {depth} -- ")
    });
    console_line(&format!(
        "with print elements {elements} -- {depth}interpreter-exec mi3 \"{command}\""
    ))
}

/// A value as `bt` shows it: gdb writes `{...}` or, in Fortran, `(...)` for what is too deep.
pub(super) fn shown(text: &str) -> &str {
    match text {
        "{...}" | "(...)" => "...",
        text => text,
    }
}

/// True where gdb has taken too long for a question, or has said too much: what was asked is missing, and no more.
pub(super) fn is_missing(failure: &Failure) -> bool {
    matches!(failure.code, FailureCode::TimedOut | FailureCode::Limit)
}

/// What stands in place of arguments that are missing.
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
    fn bounds_and_question_are_one_line() {
        let expect = r#"-interpreter-exec console "with print elements 200 -- with print max-depth 0 -- interpreter-exec mi3 \"-stack-list-arguments 1 0 2\"""#;
        assert_eq!(line(SCALARS, "-stack-list-arguments 1 0 2"), expect);
        let expect =
            r#"-interpreter-exec console "with print elements 200 -- interpreter-exec mi3 \"-x\"""#;
        assert_eq!(line(VALUES, "-x"), expect);
    }
}
