//! Refuses sections of Fortran arrays that gdb reads from wrong addresses.
//!
//! gdb 13 to 18 show a pointer to `v(5:1:-2)` correctly as a whole. For an element or a section of it they take the
//! stride as unsigned, count from the wrong end, and show other elements or none.

mod arrays;

use sdm_debug::{Command, Failure, FailureCode};

use super::language::is_fortran;
use super::{output, pointers};
use crate::gdb::Gdb;
use crate::state::console_capture::CapturedOutput;
use arrays::arrays;

/// Upper limit for the distance of neighbouring elements, in bytes: a negative stride appears as a larger number.
const DISTANCE_MAX: i128 = 1 << 48;

/// Fails if a command would have gdb read or write a part of an array at a wrong address.
///
/// Not checked here are expressions that are only evaluated, and conditions of breakpoints. The former are checked when
/// they are evaluated, the latter when the program hits the breakpoint.
pub(super) async fn refuse_in(gdb: &Gdb, command: &Command) -> Result<(), Failure> {
    let conditional = |condition: &Option<String>| condition.clone().unwrap_or_default();
    let text = match command {
        Command::Print { expression, .. }
        | Command::Call { expression }
        | Command::SetVariable { expression }
        | Command::VarCreate { expression, .. } => expression.clone(),
        Command::VarAssign { value, .. } => value.clone(),
        Command::Return { value } => value.clone().unwrap_or_default(),
        Command::MemoryRead { address, .. } | Command::MemoryWrite { address, .. } => {
            address.clone()
        }
        Command::WatchInsert(spec) => {
            format!("{}, {}", spec.expression, conditional(&spec.condition))
        }
        Command::CatchInsert(spec) => conditional(&spec.condition),
        Command::Console { line } => line.clone(),
        // The expression of an MI command may be in quotes.
        Command::Mi { line } => line.replace('"', " "),
        _ => return Ok(()),
    };
    // gdb evaluates nothing while the program runs.
    if gdb.get().why_not_stopped().is_some() {
        return Ok(());
    }
    let is_valued = match command {
        Command::Print { .. }
        | Command::Call { .. }
        | Command::SetVariable { .. }
        | Command::VarCreate { .. }
        | Command::VarAssign { .. } => pointers::has_names(&text),
        Command::Console { line } => pointers::is_valued_in(line),
        _ => false,
    };
    refuse_parts(gdb, "", &text, is_valued).await
}

/// Fails if an expression, which gdb gets with the values of its names, has an element or a section of an array that
/// gdb reads wrong.
pub(super) async fn refuse(gdb: &Gdb, place: &str, expression: &str) -> Result<(), Failure> {
    refuse_parts(gdb, place, expression, pointers::has_names(expression)).await
}

async fn refuse_parts(
    gdb: &Gdb,
    place: &str,
    expression: &str,
    is_valued: bool,
) -> Result<(), Failure> {
    let arrays = arrays(expression);
    if arrays.is_empty() || !is_fortran(gdb, place).await {
        return Ok(());
    }
    // The functions around names read elements and sections right.
    let is_right = is_valued && pointers::has_functions(gdb).await;
    for array in arrays {
        if is_right && !array.starts_with('$') {
            continue;
        }
        if is_backwards(gdb, place, array).await {
            return Err(refusal(array));
        }
        if is_copy(gdb, place, array).await {
            return Err(copy_refusal(array));
        }
    }
    Ok(())
}

/// The failure for a part of an array with a negative stride.
pub(super) fn refusal(array: &str) -> Failure {
    let text =
        format!("gdb reads parts of `{array}` wrong, because the array has a negative stride");
    let hint = format!("print `{array}` without a subscript: gdb reads it correctly");
    Failure::new(FailureCode::Unsupported, text).with_hint(hint)
}

/// The value of an expression that has no side effects, with the plain names of Fortran.
async fn unchecked(gdb: &Gdb, place: &str, expression: &str) -> Result<CapturedOutput, Failure> {
    let valued = pointers::valued(gdb, place, expression).await?;
    output::unchecked(gdb, place, &valued).await
}

/// True for a convenience variable of gdb that holds a copy of an array (`set $t = v`). gdb finds its elements by the
/// array's stride, which can be negative. The addresses of a copy do not show the stride.
async fn is_copy(gdb: &Gdb, place: &str, array: &str) -> bool {
    if !array.starts_with('$') {
        return false;
    }
    let Some(lows) = bounds(gdb, place, "lbound", array).await else {
        return false;
    };
    let first: Vec<String> = lows.iter().map(ToString::to_string).collect();
    let address = format!("&({array}({}))", first.join(","));
    unchecked(gdb, place, &address).await.is_err()
}

fn copy_refusal(array: &str) -> Failure {
    let text =
        format!("gdb may read parts of `{array}` wrong, because it is a copy of unknown stride");
    let hint = format!("print `{array}` without a subscript: gdb reads it correctly");
    Failure::new(FailureCode::Unsupported, text).with_hint(hint)
}

/// True if an expression can be evaluated once more without side effects: each apparent call is an array element or
/// section.
pub(super) async fn is_harmless(gdb: &Gdb, expression: &str) -> bool {
    if sdm_debug::calls::is_harmless(expression) {
        return true;
    }
    if !is_fortran(gdb, "").await {
        return false;
    }
    for array in arrays(expression) {
        if unchecked(gdb, "", &format!("lbound({})", array))
            .await
            .is_err()
        {
            return false;
        }
    }
    let subscripted = expression.replace('(', "[").replace(')', "]");
    sdm_debug::calls::is_harmless(&subscripted)
}

/// True for a Fortran array with a negative stride in some dimension.
async fn is_backwards(gdb: &Gdb, place: &str, array: &str) -> bool {
    let Some(lows) = bounds(gdb, place, "lbound", array).await else {
        return false;
    };
    let subscripts = |further: Option<usize>| {
        let each = lows.iter().enumerate();
        let each = each.map(|(at, low)| low.saturating_add((further == Some(at)).into()));
        each.map(|it| it.to_string()).collect::<Vec<_>>().join(",")
    };
    // Without the inner brackets gdb would take the address of the first name in the designator.
    let first = format!("&({array}({}))", subscripts(None));
    // Of an array that is not in memory, as `$1`, gdb 13 itself dies if it counts from the wrong end.
    if unchecked(gdb, place, &first).await.is_err() {
        return false;
    }
    for dimension in 0..lows.len() {
        let distance = format!("&({array}({})) - {first}", subscripts(Some(dimension)));
        let is_far = match unchecked(gdb, place, &distance).await {
            Ok(distance) => {
                let distance = distance.trim().parse::<i128>();
                distance.is_ok_and(|it| !(0..DISTANCE_MAX).contains(&it))
            }
            // gdb reads a structure with allocatable components even if only its address is wanted.
            Err(failure) => is_beyond(&failure.text),
        };
        if is_far {
            return true;
        }
    }
    false
}

/// An array whose elements are not contiguous in memory.
pub(super) struct Strided {
    pub(super) lows: Vec<i64>,
    pub(super) highs: Vec<i64>,
    /// True if a stride is negative.
    pub(super) is_backwards: bool,
}

/// Number of elements of an array with these bounds; `None` if it has none, or if its bounds are not set yet.
pub(super) fn count(lows: &[i64], highs: &[i64]) -> Option<i64> {
    let mut count = 1_i64;
    for (low, high) in lows.iter().zip(highs) {
        let size = high.checked_sub(*low)?.checked_add(1)?;
        count = count.checked_mul(size).filter(|_| size > 0)?;
    }
    Some(count)
}

/// The bounds of a Fortran array whose elements are not contiguous in memory; `None` for everything else.
pub(super) async fn strided(gdb: &Gdb, place: &str, array: &str) -> Option<Strided> {
    let (lows, highs) = ends(gdb, place, array).await?;
    let count = count(&lows, &highs)?;
    let first: Vec<String> = lows.iter().map(ToString::to_string).collect();
    let first = first.join(",");
    let mut sizes = [0_i64; 2];
    for (size, of) in sizes.iter_mut().zip([array, &format!("{array}({first})")]) {
        let printed = unchecked(gdb, place, &format!("sizeof({of})")).await.ok()?;
        *size = printed.trim().parse().ok()?;
    }
    let [whole, one] = sizes;
    let is_backwards = is_backwards(gdb, place, array).await;
    let is_plain = whole == count.checked_mul(one)? && !is_backwards;
    (!is_plain).then_some(Strided {
        lows,
        highs,
        is_backwards,
    })
}

/// True if gdb failed to read an address outside user space, as it computes for an element with a negative stride.
fn is_beyond(text: &str) -> bool {
    let address = text.split("Cannot access memory at address 0x").nth(1);
    let digits = address.and_then(|text| text.split(|c: char| !c.is_ascii_hexdigit()).next());
    let address = digits.and_then(|digits| u64::from_str_radix(digits, 16).ok());
    address.is_some_and(|address| i128::from(address) >= DISTANCE_MAX << 8)
}

/// The lower and the upper bounds of an array; `None` for anything else.
pub(super) async fn ends(gdb: &Gdb, place: &str, array: &str) -> Option<(Vec<i64>, Vec<i64>)> {
    let lows = bounds(gdb, place, "lbound", array).await?;
    Some((lows, bounds(gdb, place, "ubound", array).await?))
}

/// The lower or upper bounds of an array, one for each dimension; `None` for everything else, as a function.
async fn bounds(gdb: &Gdb, place: &str, which: &str, array: &str) -> Option<Vec<i64>> {
    let bounds = unchecked(gdb, place, &format!("{which}({array})"))
        .await
        .ok()?;
    let bounds = bounds.trim().trim_matches(['(', ')']);
    let bounds = bounds.split(',').map(|one| one.trim().parse().ok());
    bounds.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address_outside_user_space_is_recognized_in_an_error() {
        let text = "Cannot access memory at address 0x20007fffffffe420";
        assert!(is_beyond(text));
        for within in [
            "Cannot access memory at address 0x10",
            "no such vector element",
        ] {
            assert!(!is_beyond(within), "{within}");
        }
    }
}
