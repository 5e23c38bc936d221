//! Rewrites a Fortran expression by the types that gdb's `whatis` prints. This is for a gdb without Python, for
//! commands that do not evaluate the expression, and for watchpoints, in which gdb has to see the variables themselves.

use sdm_debug::{Failure, FailureCode};

use super::functions::edited;
use super::names::{Name, Names, Part, Role};
use crate::gdb::Gdb;

/// The start of the type of a pointer or an allocatable scalar.
const POINTER: &str = "PTR TO -> ( ";
/// The start of gdb's type of the elements of an array of `class(*)`.
const UNTYPED: &str = "PTR TO -> ( void (";
/// Maximum nesting depth of parent types.
const PARENTS_MAX: usize = 16;

/// The expression with `*` in front of its pointers, and with the data of its classes.
///
/// # Errors
/// gdb knows no types of elements that it names. gdb 13 ends itself at such an array.
pub(super) async fn dereferenced(
    gdb: &Gdb,
    place: &str,
    expression: &str,
    found: &Names,
) -> Result<String, Failure> {
    let mut edits = Vec::new();
    for name in &found.all {
        let (plain, inserted) = designator(gdb, place, expression, name).await;
        let kind = type_of(gdb, place, &plain).await.unwrap_or_default();
        if kind.starts_with(UNTYPED) && name.role != Role::Inquiry {
            return Err(refusal_of_elements(&expression[name.range.clone()]));
        }
        let is_pointer = name.role == Role::Value && is_pointer_type(&kind);
        if is_pointer {
            edits.push((name.range.start..name.range.start, "*(".to_owned()));
        }
        edits.extend(inserted.into_iter().map(|(at, text)| (at..at, text)));
        if is_pointer {
            edits.push((name.range.end..name.range.end, ")".to_owned()));
        }
    }
    Ok(edited(expression, 0..expression.len(), edits))
}

fn refusal_of_elements(name: &str) -> Failure {
    let text = format!("gdb does not know the elements of `{name}`, an array of class(*)");
    Failure::new(FailureCode::Unsupported, text)
}

/// The expression with the data of its classes, and otherwise unchanged.
pub(super) async fn plain(gdb: &Gdb, expression: &str, found: &Names) -> String {
    let mut edits = Vec::new();
    for name in &found.all {
        let (_, inserted) = designator(gdb, "", expression, name).await;
        edits.extend(inserted.into_iter().map(|(at, text)| (at..at, text)));
    }
    edited(expression, 0..expression.len(), edits)
}

/// A name in the form that gdb knows, and what was inserted in it: the data of classes, and the components for parent
/// types.
async fn designator(
    gdb: &Gdb,
    place: &str,
    expression: &str,
    name: &Name,
) -> (String, Vec<(usize, String)>) {
    let whole = &expression[name.range.clone()];
    let mut inserted = Vec::new();
    if name.parts.is_empty() || type_of(gdb, place, whole).await.is_some() {
        return (whole.to_owned(), inserted);
    }
    let (mut text, mut done) = (
        expression[name.range.start..name.base].to_owned(),
        name.base,
    );
    for part in &name.parts {
        let (end, is_component) = match part {
            Part::Component(range) => (range.end, true),
            Part::Subscripts(range) => (range.end + 1, false),
        };
        let written = &expression[done..end];
        for _ in 0..PARENTS_MAX {
            if type_of(gdb, place, &format!("{text}{written}"))
                .await
                .is_some()
            {
                break;
            }
            let kind = type_of(gdb, place, &text).await.unwrap_or_default();
            let more = match kind.starts_with("Type __class_") {
                true => "%_data".to_owned(),
                false if is_component => match parent(gdb, place, &text).await {
                    Some(parent) => format!("%{parent}"),
                    None => break,
                },
                false => break,
            };
            text.push_str(&more);
            inserted.push((done, more));
        }
        text.push_str(written);
        done = end;
    }
    (text, inserted)
}

/// The name of the component for the parent type: the first component of a structure, if it has the name of its own
/// type. `None` without one.
async fn parent(gdb: &Gdb, place: &str, structure: &str) -> Option<String> {
    let printed = asked(gdb, place, &format!("ptype {structure}")).await?;
    let first = printed.lines().nth(1)?.trim();
    let (kind, name) = first.strip_prefix("Type ")?.split_once(" :: ")?;
    (kind == name).then(|| name.to_owned())
}

/// gdb's name of the type of an expression; `None` for one that it does not know.
pub(in crate::ops) async fn type_of(gdb: &Gdb, place: &str, expression: &str) -> Option<String> {
    asked(gdb, place, &format!("whatis {expression}")).await
}

async fn asked(gdb: &Gdb, place: &str, line: &str) -> Option<String> {
    let command = sdm_mi::quote(line.as_bytes());
    let asked = gdb.send(format!("-interpreter-exec {place}console {command}"));
    let (result, printed) = asked.capture().printed().await;
    let printed = printed.trim_start_matches("type = ");
    result.is_ok().then(|| printed.trim_end().to_owned())
}

/// True for the type of a pointer to data, as gdb writes it in Fortran.
pub(in crate::ops) fn is_pointer_type(name: &str) -> bool {
    let target = name.strip_prefix(POINTER);
    target.is_some_and(|target| !target.contains("void") && !target.contains("() )"))
}
