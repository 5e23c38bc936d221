//! Has gdb evaluate Fortran's pointers and allocatable scalars by what they hold.
//!
//! gdb takes both for addresses: `count + 1` is the next address, `count == 4` never holds, and `count = 7` changes the
//! pointer itself. So a function in gdb's Python (`sdm-child/src/printers.py`) stands around each name of an
//! expression. It decides by the type of the value, when gdb evaluates the expression: a condition is right in the
//! scope of its breakpoint. In a gdb without Python the types are asked for beforehand, and the driver evaluates
//! conditions.

mod names;

use std::borrow::Cow;
use std::ops::Range;

use sdm_debug::{Failure, FailureCode};

use super::strides;
use crate::gdb::Gdb;
use crate::text::console_line;
use names::{Comparison, Names, names};

/// The start of the type of a pointer or an allocatable scalar.
const POINTER: &str = "PTR TO -> ( ";

/// The expression with the values of its pointers. An expression that is a single name stays as it is: gdb shows it
/// by what it holds.
pub(super) async fn valued<'a>(
    gdb: &Gdb,
    place: &str,
    expression: &'a str,
) -> Result<Cow<'a, str>, Failure> {
    match names(expression).filter(|found| !is_single(expression, found)) {
        Some(found) => in_fortran(gdb, place, expression, &found).await,
        None => Ok(Cow::Borrowed(expression)),
    }
}

/// The same for an expression whose value gdb does not show but use.
pub(super) async fn operand<'a>(gdb: &Gdb, expression: &'a str) -> Result<Cow<'a, str>, Failure> {
    match names(expression) {
        Some(found) => in_fortran(gdb, "", expression, &found).await,
        None => Ok(Cow::Borrowed(expression)),
    }
}

async fn in_fortran<'a>(
    gdb: &Gdb,
    place: &str,
    expression: &'a str,
    found: &Names,
) -> Result<Cow<'a, str>, Failure> {
    if found.all.is_empty() || !strides::is_fortran(gdb, place).await {
        return Ok(Cow::Borrowed(expression));
    }
    Ok(Cow::Owned(replaced(gdb, place, expression, found).await))
}

/// A text of deferred length by its structure, where its length is; `None` for anything but a component.
pub(super) fn text(expression: &str) -> Option<String> {
    let found = names(expression).filter(|found| is_single(expression, found))?;
    found.all[0].structure?;
    Some(held(expression, &found))
}

/// The value of a pointer that a Fortran expression names, for a variable object.
pub(super) async fn object(gdb: &Gdb, place: &str, expression: &str) -> Option<String> {
    let found = names(expression).filter(|found| is_single(expression, found))?;
    Some(replaced(gdb, place, expression, &found).await)
}

/// The failure of an assignment to a pointer itself.
pub(super) fn refusal(name: &str) -> Failure {
    let text =
        format!("{name:?} is a pointer, which gdb would change in place of what it points to");
    let hint = "assign by its name in the program: `set var p%count = 7`";
    Failure::new(FailureCode::Unsupported, text).with_hint(hint)
}

/// The expression for a watchpoint, given its type: gdb watches a pointer and what it points to.
pub(super) async fn watched<'a>(gdb: &Gdb, expression: &'a str, kind: &str) -> Cow<'a, str> {
    let Some(found) = names(expression).filter(|found| !found.all.is_empty()) else {
        return Cow::Borrowed(expression);
    };
    match is_single(expression, &found) {
        true if is_pointer_type(kind) => format!("*({expression})").into(),
        false if strides::is_fortran(gdb, "").await => {
            dereferenced(gdb, "", expression, &found).await.into()
        }
        _ => expression.into(),
    }
}

/// A condition with the values of its pointers, for gdb to evaluate; `None` if the user's own is to be used. It is
/// Fortran: gdb refuses it at a place in another language.
pub(super) async fn condition(gdb: &Gdb, condition: &str) -> Option<String> {
    let valued = pending(gdb, condition).await?;
    Some(format!(".not. .not. ({valued})"))
}

/// The Fortran condition that always holds.
pub(super) const ANY: &str = ".true.";

/// For a condition with elements of arrays: a Fortran condition that is true where the user's one is, and where gdb might evaluate that wrong: the driver then
/// evaluates it.
pub(super) async fn weaker(gdb: &Gdb, condition: &str) -> Option<String> {
    let tests = strides::stride_tests(condition)?;
    let valued = pending(gdb, condition).await;
    Some(valued.map_or_else(
        || ANY.to_owned(),
        |valued| format!("{tests} .or. ({valued})"),
    ))
}

/// The condition of a pending breakpoint, whose place may be in any language: elsewhere the function changes nothing.
pub(super) async fn pending(gdb: &Gdb, condition: &str) -> Option<String> {
    let found = names(condition).filter(|found| !found.all.is_empty())?;
    let can_follow = has_function(gdb).await;
    can_follow.then(|| held(condition, &found))
}

/// True if an expression may name pointers.
pub(super) fn has_names(expression: &str) -> bool {
    names(expression).is_some_and(|found| !found.all.is_empty())
}

/// Words of gdb's command line before an expression.
const WORDS: [&str; 6] = ["call", "inspect", "output", "p", "print", "printf"];

/// A line for gdb's command line with the values of its pointers.
pub(super) async fn in_line<'a>(gdb: &Gdb, line: &'a str) -> Result<Cow<'a, str>, Failure> {
    let Some(from) = expression_in(line) else {
        return Ok(Cow::Borrowed(line));
    };
    let (command, expression) = line.split_at(from);
    Ok(match valued(gdb, "", expression).await? {
        Cow::Borrowed(_) => Cow::Borrowed(line),
        Cow::Owned(valued) => Cow::Owned(format!("{command}{valued}")),
    })
}

/// True for an assignment to a name, without a word in between as in `set width 80`.
fn is_assigned(expression: &str) -> bool {
    let first = names(expression).and_then(|found| found.all.first().cloned());
    first.is_some_and(|name| {
        let behind = expression[name.range.end..].trim_start().strip_prefix('=');
        name.range.start == 0 && behind.is_some_and(|it| !it.starts_with('='))
    })
}

/// The offset of the expression in a line that evaluates one.
fn expression_in(line: &str) -> Option<usize> {
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
    found.all.len() == 1 && expression[found.all[0].range.clone()] == *expression.trim()
}

async fn replaced(gdb: &Gdb, place: &str, expression: &str, found: &Names) -> String {
    match has_function(gdb).await {
        true => held(expression, found),
        false => dereferenced(gdb, place, expression, found).await,
    }
}

/// True if gdb can call the function in Fortran, which older ones and those without Python cannot.
async fn has_function(gdb: &Gdb) -> bool {
    if let Some(known) = gdb.get().lacks.function {
        return !known;
    }
    let line = console_line("with language fortran -- output $_sdm_held(1)");
    let answer = gdb.send(line).capture().printed().await.0;
    let is_known = !matches!(&answer, Err(failure) if failure.code != FailureCode::Gdb);
    gdb.edit().lacks.function = is_known.then_some(answer.is_err());
    answer.is_ok()
}

/// The expression with `*` in front of its pointers, by their types in this place.
async fn dereferenced(gdb: &Gdb, place: &str, expression: &str, found: &Names) -> String {
    let mut edits = Vec::new();
    for name in &found.all {
        let range = name.range.clone();
        if is_pointer(gdb, place, &expression[range.clone()]).await {
            edits.push((range.start..range.start, "*(".to_owned()));
            edits.push((range.end..range.end, ")".to_owned()));
        }
    }
    edited(expression, 0..expression.len(), edits)
}

/// True for a name of a pointer to data.
async fn is_pointer(gdb: &Gdb, place: &str, name: &str) -> bool {
    let command = sdm_mi::quote(format!("whatis {name}").as_bytes());
    let asked = gdb.send(format!("-interpreter-exec {place}console {command}"));
    let (result, printed) = asked.capture().printed().await;
    result.is_ok() && is_pointer_type(printed.trim_start_matches("type = "))
}

/// True for the type of a pointer to data, as gdb writes it in Fortran.
pub(super) fn is_pointer_type(name: &str) -> bool {
    let target = name.strip_prefix(POINTER);
    target.is_some_and(|target| !target.contains("void") && !target.contains("() )"))
}

/// The expression with a function around each name that gives what it holds.
fn held(expression: &str, found: &Names) -> String {
    // gdb has no empty texts. Blanks at the end of a text do not count.
    part(expression, 0..expression.len(), found).replace("''", "' '")
}

/// A part of [`held`].
fn part(expression: &str, range: Range<usize>, found: &Names) -> String {
    let is_within = |it: &Range<usize>| it.start >= range.start && it.end <= range.end;
    let comparisons = || found.comparisons.iter().filter(|it| is_within(&it.range));
    let mut edits = Vec::new();
    for Comparison {
        range,
        operator,
        is_equality,
    } in comparisons()
    {
        let word = if *is_equality { "(" } else { "(.not. " };
        edits.push((range.start..range.start, format!("{word}$_sdm_same(")));
        edits.push((operator.clone(), ",".to_owned()));
    }
    for name in found.all.iter().filter(|it| is_within(&it.range)) {
        let (start, end) = (name.range.start, name.range.end);
        edits.push((start..start, "$_sdm_held(".to_owned()));
        let structure = name.structure.map_or_else(String::new, |to| {
            format!(", {}", part(expression, start..to, found))
        });
        edits.push((end..end, format!("{structure})")));
    }
    for Comparison { range, .. } in comparisons() {
        edits.push((range.end..range.end, "))".to_owned()));
    }
    edited(expression, range, edits)
}

/// A range of a text with some parts of it replaced. Of several edits at one place the first comes first.
fn edited(text: &str, range: Range<usize>, mut edits: Vec<(Range<usize>, String)>) -> String {
    edits.sort_by_key(|(at, _)| at.start);
    let (mut all, mut done) = (String::new(), range.start);
    for (at, new) in edits {
        all.push_str(&text[done..at.start]);
        all.push_str(&new);
        done = at.end;
    }
    all.push_str(&text[done..range.end]);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fortran_names_are_replaced_by_their_pointer_targets() {
        let check = |expression: &str, expect: &str| {
            assert_eq!(held(expression, &names(expression).unwrap()), expect);
        };
        check("count + 1", "$_sdm_held(count) + 1");
        check("p%n*2", "$_sdm_held(p%n, p)*2");
        check(
            "a(k)%n = i",
            "$_sdm_held(a($_sdm_held(k))%n, a($_sdm_held(k))) = $_sdm_held(i)",
        );
        check(
            "p%label == 'it' .or. 'no' /= name",
            "($_sdm_same($_sdm_held(p%label, p) , 'it')) .or. (.not. $_sdm_same('no' , $_sdm_held(name)))",
        );
        check("name .EQ. 'x'", "($_sdm_same($_sdm_held(name) , 'x'))");
        check("name == ''", "($_sdm_same($_sdm_held(name) , ' '))");
        check("i == n", "$_sdm_held(i) == $_sdm_held(n)");
    }

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
