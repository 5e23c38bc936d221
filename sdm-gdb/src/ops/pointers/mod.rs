//! Rewrites expressions of Fortran and Rust for gdb. In Fortran pointers evaluate to their targets, and components of
//! classes have their plain names. In Rust indices give the elements.
//!
//! gdb takes pointers and allocatable scalars for addresses: `count + 1` is the next address, `count == 4` never holds,
//! and `count = 7` changes the pointer itself. It does not know `self%id` of a class. So functions in gdb's Python stand
//! around each name of an expression. They decide by the type of the value, when gdb evaluates the expression: a
//! condition is right in the scope of its breakpoint. In a gdb without Python the types are asked for beforehand, and
//! the driver evaluates conditions.

mod functions;
mod names;
mod rust;
mod types;
mod words;

use std::borrow::Cow;

use sdm_debug::{Failure, FailureCode};

use super::language;
use crate::gdb::Gdb;
use crate::text::console_line;
use functions::{held, single};
use names::{Name, Names, Role, names};
pub(super) use types::{is_pointer_type, type_of};
use words::is_taken;

/// The expression, in which Fortran's pointers evaluate to their targets, and Rust's indices to elements. A single name
/// stays as it is, because gdb shows the target itself.
pub(super) async fn valued<'a>(
    gdb: &Gdb,
    place: &str,
    expression: &'a str,
) -> Result<Cow<'a, str>, Failure> {
    rewritten(gdb, place, expression, false).await
}

/// Like [`valued`], for an expression whose value gdb uses and does not show: a single name is rewritten too.
pub(super) async fn operand<'a>(gdb: &Gdb, expression: &'a str) -> Result<Cow<'a, str>, Failure> {
    rewritten(gdb, "", expression, true).await
}

/// The expression with Rust's indices as elements; `None` without an index, in another language, or without functions.
pub(super) async fn in_rust(gdb: &Gdb, place: &str, expression: &str) -> Option<String> {
    let indexed = rust::indexed(expression)?;
    let is_rust = language::current(gdb, place).await == "rust";
    (is_rust && has_functions(gdb).await).then_some(indexed)
}

async fn rewritten<'a>(
    gdb: &Gdb,
    place: &str,
    expression: &'a str,
    is_used: bool,
) -> Result<Cow<'a, str>, Failure> {
    if let Some(indexed) = in_rust(gdb, place, expression).await {
        return Ok(Cow::Owned(indexed));
    }
    let same = Ok(Cow::Borrowed(expression));
    let Some(found) = names(expression) else {
        return same;
    };
    let is_single = !is_used && is_single(expression, &found);
    let is_plain = is_single && found.all.iter().all(|name| name.parts.is_empty());
    let is_known = is_plain && !is_taken(expression);
    if is_known || found.all.is_empty() || !language::is_fortran(gdb, place).await {
        return same;
    }
    Ok(Cow::Owned(match has_functions(gdb).await {
        false if is_plain => return same,
        true if is_single => single(expression, &found),
        true => held(expression, &found),
        false if is_single => {
            types::dereferenced(gdb, place, expression, &as_addresses(found)).await?
        }
        false => types::dereferenced(gdb, place, expression, &found).await?,
    }))
}

/// The expression for the value of a pointer that a Fortran expression names, for a variable object. `None` unless the
/// expression is a single name.
pub(super) async fn object(gdb: &Gdb, place: &str, expression: &str) -> Option<String> {
    let found = names(expression).filter(|found| is_single(expression, found))?;
    match has_functions(gdb).await {
        true => Some(held(expression, &found)),
        false => types::dereferenced(gdb, place, expression, &found)
            .await
            .ok(),
    }
}

/// The expression as gdb itself knows it, with `%_data` for the data of a class, for a command that does not evaluate
/// it.
pub(super) async fn plain<'a>(gdb: &Gdb, expression: &'a str) -> Cow<'a, str> {
    let found = names(expression).filter(|it| it.all.iter().any(|name| !name.parts.is_empty()));
    match found {
        Some(found) if language::is_fortran(gdb, "").await => {
            types::plain(gdb, expression, &found).await.into()
        }
        _ => expression.into(),
    }
}

/// The failure of an assignment to a pointer itself.
pub(super) fn refusal(name: &str) -> Failure {
    let text = format!("{name:?} is a pointer: gdb would change the pointer and not its target");
    let hint =
        "assign to the variable by its name at the prompt, for example `set var p%count = 7`";
    Failure::new(FailureCode::Unsupported, text).with_hint(hint)
}

/// The expression for a watchpoint, given its type: gdb watches a pointer and its target.
///
/// # Errors
/// gdb does not know the type of an element that the expression names.
pub(super) async fn watched<'a>(
    gdb: &Gdb,
    expression: &'a str,
    kind: &str,
) -> Result<Cow<'a, str>, Failure> {
    let Some(found) = names(expression).filter(|found| !found.all.is_empty()) else {
        return Ok(expression.into());
    };
    Ok(match is_single(expression, &found) {
        true if is_pointer_type(kind) => format!("*({expression})").into(),
        false if language::is_fortran(gdb, "").await => {
            types::dereferenced(gdb, "", expression, &found)
                .await?
                .into()
        }
        _ => expression.into(),
    })
}

/// The expression for the present address of what a Fortran name of unknown type or an expression of Rust with an index
/// denotes, for a watchpoint with this number. `None` if gdb watches the expression itself.
pub(super) async fn place(
    gdb: &Gdb,
    (expression, is_known): (&str, bool),
    number: u32,
) -> Option<String> {
    let address = match in_rust(gdb, "", expression).await {
        Some(indexed) => indexed,
        None if is_known => return None,
        None => {
            let found = names(expression).filter(|found| is_single(expression, found))?;
            if !language::is_fortran(gdb, "").await || !has_functions(gdb).await {
                return None;
            }
            single(expression, &found)
        }
    };
    let line = format!("set $sdm_watched_{number} = &{address}");
    gdb.mi(console_line(&line)).await.ok()?;
    Some(format!("*$sdm_watched_{number}"))
}

/// Rewrites a condition like [`valued`]; `None` if gdb cannot. The result is in Fortran or Rust: gdb refuses it at a
/// place in another language.
pub(super) async fn condition(gdb: &Gdb, condition: &str) -> Option<String> {
    if let Some(indexed) = rust::indexed(condition) {
        let is_known = has_functions(gdb).await;
        return is_known.then(|| format!("({indexed}) as bool"));
    }
    let found = names(condition).filter(|found| !found.all.is_empty())?;
    let valued = has_functions(gdb).await.then(|| held(condition, &found))?;
    Some(format!(".not. .not. ({valued})"))
}

/// The Fortran condition that always holds.
pub(super) const ANY: &str = ".true.";
/// The condition that always holds, in any language.
pub(super) const ALWAYS: &str = "1 == 1";

/// True if [`condition`] may rewrite a condition.
pub(super) fn is_rewritten(condition: &str) -> bool {
    has_names(condition) || rust::indexed(condition).is_some()
}

/// The condition rewritten for the language of the current frame. `None` if gdb cannot evaluate the rewritten Fortran
/// condition.
pub(super) async fn condition_here<'a>(gdb: &Gdb, condition: &'a str) -> Option<Cow<'a, str>> {
    if language::is_fortran(gdb, "").await {
        return self::condition(gdb, condition).await.map(Cow::Owned);
    }
    let indexed = in_rust(gdb, "", condition).await;
    Some(indexed.map_or(Cow::Borrowed(condition), Cow::Owned))
}

/// True if an expression may name variables of Fortran.
pub(super) fn has_names(expression: &str) -> bool {
    names(expression).is_some_and(|found| !found.all.is_empty())
}

/// The variables that an expression of Fortran names, without their parts.
pub(super) fn base_names(expression: &str) -> Vec<&str> {
    let all = names(expression).map(|found| found.all).unwrap_or_default();
    let base = |name: &Name| &expression[name.range.start..name.base];
    all.iter().map(base).collect()
}

/// Words of gdb's command line before an expression.
const WORDS: [&str; 6] = ["call", "inspect", "output", "p", "print", "printf"];

/// Rewrites the expression in a line for gdb's command line like [`valued`].
pub(super) async fn in_line<'a>(gdb: &Gdb, line: &'a str) -> Result<Cow<'a, str>, Failure> {
    let (command, valued) = match expression_in(line) {
        Some(from) => (&line[..from], valued(gdb, "", &line[from..]).await?),
        // A component of Fortran is at the address that gdb knows, unlike an element of Rust.
        None => match line.strip_prefix('x').and_then(|it| it.find(' ')) {
            Some(at) => {
                let (command, expression) = line.split_at(at + 2);
                let indexed = in_rust(gdb, "", expression).await;
                (command, indexed.map_or(Cow::Borrowed(""), Cow::Owned))
            }
            None => return Ok(Cow::Borrowed(line)),
        },
    };
    Ok(match valued {
        Cow::Borrowed(_) => Cow::Borrowed(line),
        Cow::Owned(valued) => Cow::Owned(format!("{command}{valued}")),
    })
}

/// True for a line whose expression names variables, so that [`in_line`] may rewrite it.
pub(super) fn is_valued_in(line: &str) -> bool {
    expression_in(line).is_some_and(|from| has_names(&line[from..]))
}

/// True for an expression that begins with a name and assigns to it. `width 80` in `set width 80` is none.
fn is_assigned(expression: &str) -> bool {
    let first = names(expression).and_then(|found| found.all.first().cloned());
    first.is_some_and(|name| {
        let behind = expression[name.range.end..].trim_start().strip_prefix('=');
        name.range.start == 0 && behind.is_some_and(|it| !it.starts_with('='))
    })
}

/// The offset of the expression in a line that evaluates one; `None` for another line.
pub(super) fn expression_in(line: &str) -> Option<usize> {
    let blanks = |from: usize| line.len() - line[from..].trim_start().len();
    let after = line.rfind(" -- ").map_or(0, |at| at + 4);
    let start = blanks(after);
    let word = |from: usize| {
        let end = line[from..]
            .find([' ', '/', '\t'])
            .map_or(line.len(), |at| from + at);
        (&line[from..end], end)
    };
    let (name, end) = word(start);
    if name == "set" {
        let from = blanks(end);
        let (further, end) = word(from);
        if further.len() > 2 && "variable".starts_with(further) {
            return Some(blanks(end));
        }
        let is_assignment = further.starts_with('$') || is_assigned(&line[from..]);
        return is_assignment.then_some(from);
    }
    if !WORDS.contains(&name) {
        // The options of `print` end here.
        let (begin, _) = word(blanks(0));
        let is_print = WORDS.contains(&begin) && after > 0;
        return is_print.then_some(start);
    }
    let end = match line[end..].starts_with('/') {
        true => line[end..].find(' ').map_or(line.len(), |at| end + at),
        false => end,
    };
    // The format of `printf`.
    let format = line[end..].rfind('"').filter(|_| name == "printf");
    Some(blanks(format.map_or(end, |at| end + at + 1)))
}

fn is_single(expression: &str, found: &Names) -> bool {
    let first = found.all.first().filter(|it| it.role == Role::Value);
    first.is_some_and(|it| expression[it.range.clone()] == *expression.trim())
}

/// Marks the first name as an address, so that its value does not replace it.
fn as_addresses(mut found: Names) -> Names {
    if let Some(first) = found.all.first_mut() {
        first.role = Role::Address;
    }
    found
}

/// True if gdb can call SDM's Python functions in Fortran, which older gdbs and those without Python cannot.
pub(super) async fn has_functions(gdb: &Gdb) -> bool {
    if let Some(known) = gdb.get().lacks.function {
        return !known;
    }
    let line = console_line("with language fortran -- output $_sdm_held(1)");
    let answer = gdb.send(line).capture().printed().await.0;
    let is_known = !matches!(&answer, Err(failure) if failure.code != FailureCode::Gdb);
    gdb.edit().lacks.function = is_known.then_some(answer.is_err());
    answer.is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expression_of_a_command_line_is_found() {
        let found = |line| expression_in(line).map(|from| &line[from..]);
        for (line, expect) in [
            ("output count + 1", Some("count + 1")),
            ("output/x  count", Some("count")),
            ("print -array on -- count*2", Some("count*2")),
            ("with print elements 9 -- output/d n*2", Some("n*2")),
            ("set var count = 7", Some("count = 7")),
            ("set variable  n=7", Some("n=7")),
            ("printf \"%d\\n\", count, n", Some(", count, n")),
            ("set $t = count", Some("$t = count")),
            ("set p%n = count", Some("p%n = count")),
            ("set print elements 4", None),
            ("set width 80", None),
            ("info locals", None),
            ("x/2x &count", None),
        ] {
            assert_eq!(found(line), expect, "{line}");
        }
    }
}
