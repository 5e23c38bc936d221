//! Prints Fortran arrays of structures element by element.
//!
//! For an array of structures with allocatable components gdb 13 shows the first element's components in every
//! element. A single element is shown correctly, also by gdb 18. An array that cannot be printed so is refused.

use sdm_debug::reply::Variable;
use sdm_debug::{Failure, FailureCode};

use super::output::unchecked;
use crate::gdb::Gdb;
use crate::state::console_capture::CapturedOutput;
use crate::text::value;

/// Maximum number of elements that are printed one by one.
const ELEMENTS_MAX: i64 = 64;

/// The correct form of a printed value that may be wrong: each element is printed by itself.
pub(super) async fn right(
    gdb: &Gdb,
    (place, format): (&str, &str),
    expression: &str,
    printed: CapturedOutput,
) -> Result<CapturedOutput, Failure> {
    if !is_doubtful(&printed) {
        return Ok(printed);
    }
    match one_by_one(gdb, (place, format), expression).await {
        Some(right) => Ok(right),
        None => {
            let text = format!(
                "gdb may show wrong components of `{expression}`: it is an array of structures"
            );
            let hint = "print a single element, or a component of it: gdb reads these correctly";
            Err(Failure::new(FailureCode::Unsupported, text).with_hint(hint))
        }
    }
}

/// Corrects the printed value of a variable of the selected frame, if it may be wrong: each element is printed by
/// itself.
pub(super) async fn put_right(gdb: &Gdb, variable: &mut Variable) -> Result<(), Failure> {
    let mut printed = CapturedOutput::default();
    printed.push(&variable.value.text);
    if is_doubtful(&printed) {
        let right = right(gdb, ("", ""), &variable.name, printed).await?;
        variable.value = value(&right);
    }
    Ok(())
}

async fn one_by_one(
    gdb: &Gdb,
    (place, format): (&str, &str),
    expression: &str,
) -> Option<CapturedOutput> {
    let is_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '%');
    if !expression.chars().all(is_name) {
        return None;
    }
    let mut ends = [0_i64; 2];
    for (end, function) in ends.iter_mut().zip(["lbound", "ubound"]) {
        // For an array of several dimensions the bounds are lists, which do not parse.
        let bound = format!("{function}({expression})");
        let bound = unchecked(gdb, place, &bound).await.ok()?;
        *end = bound.trim().trim_matches(['(', ')']).parse().ok()?;
    }
    let [first, last] = ends;
    if last.checked_sub(first)? >= ELEMENTS_MAX {
        return None;
    }
    let mut all = CapturedOutput::default();
    for at in first..=last {
        let element = unchecked(gdb, place, &format!("{format} {expression}({at})"))
            .await
            .ok()?;
        if element.is_cut() || is_doubtful(&element) {
            return None;
        }
        all.push(if at == first { "(" } else { ", " });
        all.push(&element);
    }
    all.push(")");
    Some(all)
}

/// True for a value with an array of structures that contain arrays.
fn is_doubtful(printed: &str) -> bool {
    let array = printed.find("(( ");
    array.is_some_and(|at| printed[at + 3..].contains(" = ("))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fortran_structure_arrays_that_gdb_misreads_are_recognized() {
        for doubtful in [
            "(( id = 3, w = (2, 3) ), ( id = 9, w = (2, 4) ))",
            "((( id = 3, w = (2) )) (( id = 9, w = (2) )))",
            "( all = (( id = 3, w = (2, 3) ), ( id = 9, w = (2, 4) )) )",
        ] {
            assert!(is_doubtful(doubtful), "{doubtful}");
        }
        for right in [
            "(( id = 3 ), ( id = 9 ))",
            "( id = 3, w = (2, 3) )",
            "((1, 2) (3, 4))",
            "((1,2), (3,4))",
        ] {
            assert!(!is_doubtful(right), "{right}");
        }
    }
}
