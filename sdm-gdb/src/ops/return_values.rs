//! Refuses function results that gdb reads from the wrong place, or of which it dies.
//!
//! On x86-64 functions return `__float128`, vectors and `__int128` in registers. gdb 13 to 18 read a `__float128`
//! from the x87 stack and the others from memory, and show wrong numbers. The same holds for structures with such a
//! part. At a `finish` gdb 13 dies of some of these types, and of Fortran structures with allocatable components. After
//! others it reports no stop. So `finish` asks for the type first; the types are judged by gdb's Python
//! (`sdm-child/src/returned.py`).

use sdm_debug::{Failure, FailureCode};

use super::language;
use super::output::unchecked;
use crate::gdb::Gdb;
use crate::text::console_line;

/// Parts of the names of types that gdb reads wrong.
const WRONG: [&str; 5] = [
    "__float128",
    "_Float128",
    "__int128",
    "real(kind=16)",
    "vector_size",
];
/// Sizes in bytes of the values that gdb can read wrong. Larger values are returned in memory.
const SIZES: [u32; 3] = [16, 32, 64];

/// Fails if gdb reads a function's return value wrong.
pub(super) async fn refuse(gdb: &Gdb, place: &str, expression: &str) -> Result<(), Failure> {
    match is_wrong(gdb, place, expression).await {
        true => Err(wrong()),
        false => Ok(()),
    }
}

/// Fails if an expression is a call whose value gdb reads wrong. In Fortran it may be an array element or section.
pub(super) async fn refuse_call(gdb: &Gdb, place: &str, expression: &str) -> Result<(), Failure> {
    let may_be = is_call(expression) && is_wrong(gdb, place, expression).await;
    match may_be && !language::is_fortran(gdb, place).await {
        true => Err(wrong()),
        false => Ok(()),
    }
}

/// The command that runs to the caller of the selected frame without a look at the value that it returns; `None` if gdb
/// can read the value.
pub(super) async fn leaving(gdb: &Gdb) -> Option<String> {
    let entry = unchecked(gdb, "", "$_sdm_unread_entry(0)").await.ok()?;
    let entry = entry.trim().parse::<u64>().ok().filter(|it| *it != 0)?;
    // The function does not return to its entry: `until` stops in the caller. `advance` would stop in a recursive call.
    Some(console_line(&format!("until *{entry:#x} &")))
}

pub(super) fn wrong() -> Failure {
    let text = "gdb cannot read a returned value of this type correctly";
    let hint = "print the variable that the value is assigned to";
    Failure::new(FailureCode::Unsupported, text).with_hint(hint)
}

/// True if gdb would read a returned value of this type wrongly. None of the questions to gdb calls a function.
async fn is_wrong(gdb: &Gdb, place: &str, expression: &str) -> bool {
    if !cfg!(target_arch = "x86_64") {
        return false;
    }
    let size = unchecked(gdb, place, &format!("sizeof({expression})")).await;
    let size = size.ok().and_then(|size| size.trim().parse::<u32>().ok());
    let is_one = size.is_some_and(|size| SIZES.contains(&size));
    let is_returned = expression.starts_with('$');
    let is_rust = (is_one || !is_returned) && *language::current(gdb, place).await == *"rust";
    if !is_one && !is_rust {
        return false;
    }
    let question = if is_returned {
        Some(format!("$_sdm_unread({expression})"))
    } else {
        let kind = described(gdb, "whatis", expression).await;
        kind.map(|kind| match is_rust {
            true => format!("$_sdm_unread_behind(0 as *const {kind})"),
            false => format!("$_sdm_unread_behind(({kind} *) 0)"),
        })
    };
    if let Some(question) = question
        && let Ok(answer) = unchecked(gdb, place, &question).await
    {
        return answer.trim() == "1";
    }
    // Without Python the parts of a structure's parts are unknown.
    let Some(kind) = described(gdb, "ptype/mt", expression).await else {
        return false;
    };
    let mut structures = ["struct ", "class ", "union "].iter();
    let is_unknown = !is_rust && structures.any(|it| kind.starts_with(it));
    is_one && (is_unknown || WRONG.iter().any(|name| kind.contains(name)))
}

/// The type of an expression, by a command that prints it.
async fn described(gdb: &Gdb, command: &str, expression: &str) -> Option<String> {
    let line = console_line(&format!("{command} {expression}"));
    let (result, printed) = gdb.send(line).capture().printed().await;
    result.ok()?;
    let kind = printed.trim().strip_prefix("type = ")?;
    Some(kind.to_owned())
}

/// True for an expression that is a call: `f(1)`, `o.f()` or `(*f)(1)`, but not a cast.
fn is_call(expression: &str) -> bool {
    let Some((before, _)) = expression.trim().strip_suffix(')').and_then(opening) else {
        return false;
    };
    let before = before.trim_end();
    before.ends_with(|c: char| c.is_alphanumeric() || matches!(c, '_' | ')' | '>'))
}

/// Splits at the bracket that a `)` after `text` closes; `None` if there is no such bracket.
fn opening(text: &str) -> Option<(&str, &str)> {
    let mut depth = 0_u32;
    for (at, c) in text.char_indices().rev() {
        match c {
            ')' => depth += 1,
            '(' if depth == 0 => return Some((&text[..at], &text[at + 1..])),
            '(' => depth -= 1,
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_distinguished_from_casts() {
        for call in ["f()", "f (1)", "o.f(g(1))", "(*f)(1)", "std::get<0>(t)"] {
            assert!(is_call(call), "{call}");
        }
        for none in ["f", "(int) x", "(a + b)", "f(1) + 1", ")", "a[1]"] {
            assert!(!is_call(none), "{none}");
        }
    }
}
