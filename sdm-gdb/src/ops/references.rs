//! Has gdb print referenced values in place of addresses, and Fortran's structures and pointers by what they hold.
//!
//! gdb prints the address for a reference that is a structure member, a container element or a lambda capture. It does
//! the same for the object of a `std::unique_ptr` or a `std::shared_ptr`, for Rust's boxes and containers, and for
//! Fortran's pointers, allocatable scalars and polymorphic objects. The address says nothing of the value, and equal
//! addresses in all tasks look like equal values. In an array of structures gdb 13 shows the allocatable components of
//! the first element in all. A pretty-printer in gdb's Python (`sdm-child/src/printers.py`) prints the values while its
//! setting is on. In a gdb without Python the addresses remain.

use sdm_debug::quotes::{outside_quotes, referred};
use sdm_debug::{Failure, FailureCode};

use super::history;
use crate::gdb::Gdb;
use crate::state::console_capture::CapturedOutput;
use crate::text::console_line;
use sdm_mi::quote;

/// Command prefix with which values show the objects of references.
pub(super) const FOLLOWING: &str = "with print sdm-references on -- ";

/// True if gdb may have printed a value or a part of it as an address, hidden it or shown it wrong. These are
/// references, owning pointers, pointers of Fortran and Rust, polymorphic objects of Fortran (`(...)`), containers of
/// Rust, and arrays of Fortran structures with arrays.
pub(super) fn are_within(printed: &str) -> bool {
    let printed = referred(history::shown(printed));
    let is_structure = printed.trim_start_matches('(').starts_with(' ');
    let is_fortran = printed.starts_with('(') && is_structure || printed.starts_with("(PTR TO ");
    let is_rust = !is_fortran && !printed.starts_with('{') && {
        let mut plain = outside_quotes(printed);
        !plain.any(|(at, c)| c == '=' && printed[..at].ends_with(' '))
    };
    let mut plain =
        outside_quotes(printed).filter(|(_, c)| matches!(c, '@' | 'g' | '_' | '0' | '('));
    plain.any(|(at, c)| match c {
        '@' => printed[at..].starts_with("@0x"),
        'g' => printed[at..].starts_with("get() = 0x"),
        '_' => printed[at..].starts_with("_M_data = 0x"),
        '0' if is_rust && printed[at..].starts_with("0x") => {
            let before = &printed[..at];
            let is_type = before.ends_with(") ") && !before.starts_with("(*mut ");
            before.ends_with([' ', '(', '[']) && !is_type && !before.ends_with("-> ")
        }
        '0' => is_fortran && printed[at..].starts_with("0x"),
        _ => is_fortran && printed[at..].starts_with("(...)"),
    }) || is_doubtful(printed)
        || is_rust && CONTAINERS.iter().any(|it| printed.contains(it))
}

/// Rust's containers, of which an empty one shows no address.
const CONTAINERS: [&str; 2] = ["alloc::collections::", "std::collections::hash::"];

/// True for a value with an array of Fortran structures that contain arrays.
pub(super) fn is_doubtful(printed: &str) -> bool {
    let array = printed.find("(( ");
    array.is_some_and(|at| printed[at + 3..].contains(" = ("))
}

/// The failure for an array of Fortran structures that gdb may have printed wrong, and cannot print otherwise.
pub(super) fn refusal(expression: &str) -> Failure {
    let text =
        format!("gdb may show wrong components of `{expression}`: it is an array of structures");
    let hint = "print a single element, or a component of it: gdb reads these correctly";
    Failure::new(FailureCode::Unsupported, text).with_hint(hint)
}

/// True for an expression that is the address of a Fortran variable. It is shown as an address.
fn is_address(expression: &str) -> bool {
    expression.trim_start().starts_with('&')
}

/// True if gdb has the setting `print sdm-references`, which needs Python.
pub(super) async fn can_follow(gdb: &Gdb) -> bool {
    let line = console_line("show print sdm-references");
    gdb.send(line).capture().printed().await.0.is_ok()
}

/// A printed value with the objects of its references. `again` prints the value of the expression once more, without
/// side effects.
///
/// # Errors
/// gdb may have printed the value wrong, and cannot print it otherwise.
pub(super) async fn followed(
    gdb: &Gdb,
    place: &str,
    (expression, again): (&str, &str),
    printed: CapturedOutput,
) -> Result<CapturedOutput, Failure> {
    if !are_within(&printed) || is_address(expression) {
        return Ok(printed);
    }
    let command = quote(format!("{FOLLOWING}{again}").as_bytes());
    let line = format!("-interpreter-exec {place}console {command}");
    match gdb.send(line).capture().printed().await {
        (Ok(_), followed) => Ok(followed),
        (Err(_), _) if is_doubtful(&printed) => Err(refusal(expression)),
        (Err(_), _) => Ok(printed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_within_values_are_found() {
        for within in [
            "{cell = @0x7ffe, tag = 7}",
            "(Holder &) @0x7ffe: {cell = @0x7ff0}",
            "$3 = (Holder &) @0x7ffe: {cell = @0x7ff0}",
            "std::tuple containing = {[1] = @0x7ff0: 5}",
            "{n = 1, next = std::unique_ptr<Node> = {get() = 0x7ff0}}",
            "$1 = ( id = 3, next = 0x0 )",
            "(PTR TO -> ( real(kind=8) )) 0x7ff0",
            "( _data = (...), _vptr = 1 )",
            "(( id = 3, w = (2, 3) ), ( id = 9, w = (2, 4) ))",
            "((( id = 3, w = (2) )) (( id = 9, w = (2) )))",
            "( all = (( id = 3, w = (2, 3) ), ( id = 9, w = (2, 4) )) )",
            "{_M_data = 0x7ff0}",
            "core::option::Option<alloc::boxed::Box<i32>>::Some(0x7ff0)",
            "r::Node {id: 1, next: 0x7ff0}",
            "(1, 0x7ff0)",
            "(*mut r::Shape) 0x7ff0",
            "[0x7ff0, 0x7ff8]",
            "alloc::collections::btree::map::BTreeMap<i32, i32> {root: None, length: 0}",
        ] {
            assert!(are_within(within), "{within}");
        }
        for without in [
            "@0x7ffe: 5",
            "$3 = (Cell &) @0x7ffe: {id = 1}",
            "\"@0x7\"",
            "64 '@'",
            "(Cell *) 0x7ff0",
            "0x7ff0",
            "( name = '0x7ff0' )",
            "{next = 0x7ff0}",
            "(( id = 3 ), ( id = 9 ))",
            "( id = 3, w = (2, 3) )",
            "((1, 2) (3, 4))",
            "((1,2), (3,4))",
            "{0x7ff0, 0x7ff8}",
            "(void (*)(int)) 0x7ff0 <f>",
            "0x7ff0 \"a\"",
        ] {
            assert!(!are_within(without), "{without}");
        }
    }
}
