//! Advice how to ask for the numbers of a value that has none itself: a pointer, a structure, a container of these.

use sdm_debug::Reply;
use sdm_debug::quotes::bare;
use sdm_debug::rules::{NumberArray, is_address, parse_number};
use sdm_idset::IdSet;
use sdm_view::compare::{self, NumericPart, grouped};

use super::fortran;
use crate::shell::SessionHandle;
use crate::shell::ask::printed;
use crate::shell::invocation::Invocation;

/// Maximum number of parts that are tried.
const TRIES_MAX: usize = 8;
/// The elements of a pointer that are named, as its length is unknown.
const FIRST_TEN: &str = "[0:9]";
/// Advice for an integer that is not counted, as a sum of such may be beyond any type.
const WIDE: &str =
    "integers of more than 64 bits are not counted; `compare` and `outliers` show them exactly";

/// A hint with an expression that has the numbers of this answer to another one. Empty if no such expression is known.
pub(in crate::shell) async fn advice(
    session: &SessionHandle,
    said: &Invocation<'_>,
    expression: &str,
    answer: Option<&(IdSet, Reply)>,
) -> String {
    let (tasks, text) = match answer {
        Some((tasks, Reply::Value(value))) => (tasks, &value.text),
        Some((tasks, Reply::Text(text))) => (tasks, text),
        _ => return String::new(),
    };
    let digits = bare(text.trim()).trim_start_matches('-');
    if digits.len() > 1 && digits.bytes().all(|digit| digit.is_ascii_digit()) {
        return WIDE.to_owned();
    }
    if let Some(part) = real_part(expression, bare(text.trim())) {
        return format!("ask for its parts: `{part}`, and `$_cimag` likewise");
    }
    let part = numbers_in(session, said, (tasks, expression), text).await;
    part.map_or_else(String::new, |part| {
        format!("ask for a part with numbers, as `{part}`")
    })
}

/// The expression for the real part of a complex number of C or C++; `None` for another value.
fn real_part(expression: &str, text: &str) -> Option<String> {
    let (number, member) = match text.strip_prefix("{_M_value = ") {
        Some(rest) => (rest.strip_suffix('}')?, "._M_value"),
        None => (text, ""),
    };
    let (real, imaginary) = number.split_once(" + ")?;
    parse_number(real)?;
    parse_number(imaginary.strip_suffix('i')?)?;
    Some(format!("$_creal({}{member})", grouped(expression)))
}

/// Note that the target of a value that is equal on these ranks was not compared; `None` without an address.
pub(super) async fn not_compared(
    session: &SessionHandle,
    said: &Invocation<'_>,
    expression: &str,
    (tasks, text): (&IdSet, &str),
) -> Option<String> {
    let parts = compare::numeric_parts(text);
    let may_be_code = |part: &NumericPart| !matches!(part, NumericPart::Pointer(_));
    let is_unsure = parts.iter().all(may_be_code);
    let part = tried(
        session,
        said,
        (tasks, expression),
        parts,
        ValueParts::Target,
    )
    .await;
    if is_unsure && part.is_none() {
        return None;
    }
    let how = part.map_or_else(String::new, |part| {
        format!(": `compare {part}` compares it")
    });
    Some(format!(
        "`{expression}` has equal addresses; the memory at the address was not compared{how}"
    ))
}

/// An expression for numbers in a value, which gdb can evaluate.
async fn numbers_in(
    session: &SessionHandle,
    said: &Invocation<'_>,
    (tasks, expression): (&IdSet, &str),
    text: &str,
) -> Option<String> {
    if is_owned_array(text) {
        return Some(format!("{}{FIRST_TEN}", grouped(expression)));
    }
    let parts = compare::numeric_parts(text);
    tried(
        session,
        said,
        (tasks, expression),
        parts,
        ValueParts::Numbers,
    )
    .await
}

/// True for a `std::unique_ptr` of an array, whose length C++ does not keep.
pub(super) fn is_owned_array(text: &str) -> bool {
    text.contains("[]> = {get() = <not followed>}")
}

/// The parts of a value that are looked for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ValueParts {
    /// Parts with numbers.
    Numbers,
    /// The targets of pointers: numbers, or else a structure.
    Target,
}

/// An expression for the first of the wanted parts that gdb finds.
async fn tried(
    session: &SessionHandle,
    said: &Invocation<'_>,
    (tasks, expression): (&IdSet, &str),
    parts: Vec<NumericPart>,
    wanted: ValueParts,
) -> Option<String> {
    let one = tasks.first().map(IdSet::single)?;
    let is_wanted = |part: &NumericPart| match part {
        NumericPart::Numbers(path) => wanted == ValueParts::Numbers && !path.is_empty(),
        NumericPart::Pointer(_) | NumericPart::Named(_) => true,
    };
    let mut structure = None;
    for part in parts.into_iter().filter(is_wanted).take(TRIES_MAX) {
        let (path, first, all) = match &part {
            NumericPart::Pointer(path) | NumericPart::Named(path) => (path, "[0]", FIRST_TEN),
            NumericPart::Numbers(path) => (path, "", ""),
        };
        let path = fortran::path_in(session, said, expression, (&one, path)).await;
        let named = format!("{}{path}", grouped(expression));
        let line = format!("output {named}{first}");
        let text = printed(session, said.line, &one, line).await;
        let text = text.unwrap_or_default();
        let is_number = NumberArray::parse(&text).is_some() && !is_address(bare(text.trim()));
        if is_number || NumberArray::is_begun(&text) {
            return Some(format!("{named}{all}"));
        }
        if wanted == ValueParts::Target && structure.is_none() {
            let text = printed(session, said.line, &one, format!("output *{named}")).await;
            // gdb prints the type of a function in braces, and its address behind them.
            let is_structure = text.is_some_and(|text| text.trim_end().ends_with('}'));
            structure = is_structure.then(|| format!("*{named}"));
        }
    }
    structure
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn real_part_of_complex_number_is_named() {
        let check = |expression, text, expect: Option<&str>| {
            assert_eq!(real_part(expression, text).as_deref(), expect, "{text}");
        };
        check("z", "1 + -2.5i", Some("$_creal(z)"));
        check("*z", "1 + nan(0x8)i", Some("$_creal((*z))"));
        let member = Some("$_creal(cell.z._M_value)");
        check("cell.z", "{_M_value = 1.5 + 0i}", member);
        check("cell.z", "{_M_value = 1.5}", None);
        check("z", "1 + 2", None);
        check("z", "{1 + 2i, 3 + 4i}", None);
        check("z", "\"1 + 2i\"", None);
    }
}
