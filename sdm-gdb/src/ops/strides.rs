//! Refuses sections of Fortran arrays that gdb reads from wrong addresses.
//!
//! gdb 13 to 18 show a pointer to `v(5:1:-2)` correctly as a whole. For an element or a section of it they take the
//! stride as unsigned, count from the wrong end, and show other elements or none.

use sdm_debug::quoted::outside_quotes;
use sdm_debug::{Failure, FailureCode};

use super::output::unchecked;
use crate::gdb::Gdb;

/// Most arrays of one expression that are examined.
const ARRAYS_MAX: usize = 8;
/// Upper limit for the distance of neighbouring elements: a negative stride appears as a larger number.
const DISTANCE_MAX: i128 = 1 << 48;

/// Fails if an expression has a section of an array that gdb reads wrong.
pub(super) async fn refuse(gdb: &Gdb, place: &str, expression: &str) -> Result<(), Failure> {
    let arrays = arrays(expression);
    if arrays.is_empty() || !is_fortran(gdb, place).await {
        return Ok(());
    }
    for array in arrays {
        if is_backwards(gdb, place, array).await {
            let text = format!("gdb reads parts of `{array}` wrong, as it has a negative stride");
            let hint = format!("`{array}` without a subscript is read as it is");
            return Err(Failure::new(FailureCode::Unsupported, text).with_hint(hint));
        }
    }
    Ok(())
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
        if unchecked(gdb, "", &format!("lbound({array})"))
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
    // gdb fails if `array` is a function.
    let Ok(bounds) = unchecked(gdb, place, &format!("lbound({array})")).await else {
        return false;
    };
    let bounds = bounds.trim().trim_matches(['(', ')']);
    let bounds = bounds.split(',').map(|one| one.trim().parse::<i64>());
    let Ok(bounds) = bounds.collect::<Result<Vec<_>, _>>() else {
        return false;
    };
    for dimension in 0..bounds.len() {
        let subscripts = |more: i64| {
            let each = bounds.iter().enumerate();
            let each = each.map(|(at, low)| low + more * i64::from(at == dimension));
            each.map(|it| it.to_string()).collect::<Vec<_>>().join(",")
        };
        let (next, first) = (subscripts(1), subscripts(0));
        let distance = format!("&{array}({next}) - &{array}({first})");
        let Ok(distance) = unchecked(gdb, place, &distance).await else {
            continue;
        };
        let distance = distance.trim().parse::<i128>();
        if distance.is_ok_and(|it| !(0..DISTANCE_MAX).contains(&it)) {
            return true;
        }
    }
    false
}

/// True if gdb's current language is Fortran: in another one `lbound` may be a function of the program.
pub(super) async fn is_fortran(gdb: &Gdb, place: &str) -> bool {
    let line = format!("-interpreter-exec {place}console \"show language\"");
    let (result, printed) = gdb.send(line).capture().printed().await;
    result.is_ok() && printed.contains("fortran\"")
}

/// The names in front of each `(` in an expression: `c%w` in `2 * c%w(1:3)`. A function call looks the same.
fn arrays(expression: &str) -> Vec<&str> {
    let is_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '%');
    let mut found: Vec<&str> = Vec::new();
    for (at, _) in outside_quotes(expression).filter(|(_, c)| *c == '(') {
        let before = expression[..at].trim_end();
        let begin = before.rfind(|c| !is_name(c)).map_or(0, |last| {
            last + before[last..].chars().next().map_or(1, char::len_utf8)
        });
        let name = &before[begin..];
        let is_array = name.starts_with(|c: char| c.is_alphabetic() || c == '_');
        if is_array && !found.contains(&name) && found.len() < ARRAYS_MAX {
            found.push(name);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn array_names_are_found_before_brackets() {
        let check = |expression: &str, expect: &[&str]| {
            assert_eq!(arrays(expression), expect, "{expression}");
        };
        check("back(1:3)", &["back"]);
        check("2 * c%w (2) + back(i(1), 2)", &["c%w", "back", "i"]);
        check("(a + b) * c", &[]);
        check("x", &[]);
        check("\"f(1)\"", &[]);
        check("\u{e4}\u{b7}b(1)", &["b"]);
    }
}
