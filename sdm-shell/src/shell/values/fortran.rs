//! Names of differing elements in the syntax of Fortran, with the lower bounds of their arrays.

use sdm_debug::calls::is_harmless;
use sdm_idset::IdSet;
use sdm_view::compare::{self, Difference};

use crate::shell::SessionHandle;
use crate::shell::ask::printed;
use crate::shell::invocation::Invocation;
use crate::shell::slices::Slices;

/// The path in Fortran syntax of the first element that differs. Its indices count from the arrays' lower bounds, which
/// are read from a task of the difference.
pub(super) async fn path(
    session: &SessionHandle,
    said: &Invocation<'_>,
    expression: &str,
    other: &Difference,
) -> String {
    path_in(session, said, expression, (&other.tasks, &other.path)).await
}

/// The path in Fortran syntax of a part of a value that these tasks have. In Rust it is the path of a part of a tuple.
/// A path in C or C++ stays as it is.
pub(super) async fn path_in(
    session: &SessionHandle,
    said: &Invocation<'_>,
    expression: &str,
    (tasks, found): (&IdSet, &str),
) -> String {
    if !found.starts_with(['(', '%']) {
        return found.to_owned();
    }
    if is_rust(session, said, tasks).await {
        return in_rust(found);
    }
    // The elements of a section are counted from 1.
    let is_section = Slices::of(expression).is_ok_and(|slices| slices.any);
    let may_ask = is_designator(session, said, tasks, expression).await;
    let mut path = String::new();
    for step in compare::steps(found) {
        let bounds = match &step {
            compare::Step::Position(all) if is_section && path.is_empty() => vec![1; all.len()],
            compare::Step::Position(_) if may_ask => {
                let array = format!("{expression}{path}");
                lower_bounds(session, said, tasks, &array).await
            }
            _ => Vec::new(),
        };
        path += &step.text(&bounds);
    }
    path
}

/// True if gdb evaluates in Rust, whose tuples look like arrays of Fortran.
async fn is_rust(session: &SessionHandle, said: &Invocation<'_>, tasks: &IdSet) -> bool {
    let Some(one) = tasks.first().map(IdSet::single) else {
        return false;
    };
    let line = "show language".to_owned();
    let shown = printed(session, said.line, &one, line).await;
    shown.is_some_and(|text| text.contains("rust\""))
}

/// The path of a part of a tuple, in Rust syntax.
fn in_rust(path: &str) -> String {
    let steps = compare::steps(path).into_iter();
    let text = steps.map(|step| match step {
        compare::Step::Text(text) => text.replacen('%', ".", 1),
        compare::Step::Position(all) => all.iter().rev().map(|at| format!(".{at}")).collect(),
    });
    text.collect()
}

/// True if each apparent call in an expression is an element of a Fortran array, so that it can be evaluated again.
pub(super) async fn is_designator(
    session: &SessionHandle,
    said: &Invocation<'_>,
    tasks: &IdSet,
    expression: &str,
) -> bool {
    if is_harmless(expression) {
        return true;
    }
    for (at, _) in expression.match_indices('(') {
        let array = &expression[..at];
        if lower_bounds(session, said, tasks, array).await.is_empty() {
            return false;
        }
    }
    is_harmless(&expression.replace('(', "[").replace(')', "]"))
}

/// The lower bounds of a Fortran array in the first of these tasks; empty if they are unknown.
async fn lower_bounds(
    session: &SessionHandle,
    said: &Invocation<'_>,
    tasks: &IdSet,
    array: &str,
) -> Vec<i64> {
    let Some(one) = tasks.first().map(IdSet::single) else {
        return Vec::new();
    };
    let line = format!("output lbound({array})");
    let text = printed(session, said.line, &one, line)
        .await
        .unwrap_or_default();
    let bounds = |text: &str| {
        let inner = text.trim().strip_prefix('(')?.strip_suffix(')')?;
        let bounds = inner.split(',').map(|bound| bound.trim().parse().ok());
        bounds.collect::<Option<Vec<i64>>>()
    };
    bounds(&text).unwrap_or_default()
}
