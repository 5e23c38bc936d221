//! Conditions of breakpoints that gdb would evaluate with elements from wrong addresses.
//!
//! gdb evaluates a condition by itself, at each hit, and nobody sees what it has read. So it gets a condition that is
//! also true if an array in it has a negative stride. The driver then evaluates the user's condition itself, and can
//! refuse it.

use super::arrays::{Array, arrays};

/// gdb's own functions and the names of types in Fortran expressions, which look like arrays.
const NO_ARRAYS: [&str; 19] = [
    "abs",
    "allocated",
    "associated",
    "ceiling",
    "character",
    "cmplx",
    "complex",
    "floor",
    "integer",
    "kind",
    "lbound",
    "loc",
    "logical",
    "mod",
    "modulo",
    "rank",
    "real",
    "shape",
    "size",
];
/// Lower limit of the distance in elements that gdb computes for neighbours with a negative stride.
const FAR: &str = "1099511627776";
/// Most tests in front of one condition.
const TESTS_MAX: usize = 64;

/// A Fortran condition that is true where gdb would read an array element of `condition` wrong. `None` for a condition
/// without array elements.
pub(in crate::ops) fn stride_tests(condition: &str) -> Option<String> {
    let mut tests = Vec::new();
    let all = arrays(condition);
    for Array { name, rank } in &all {
        let own = name.to_ascii_lowercase();
        let is_array = !NO_ARRAYS.contains(&&*own) && !matches!(&*own, "sizeof" | "ubound");
        let is_rest = |of: &Array<'_>| of.name != *name && of.name.ends_with(*name);
        let is_rest = name.starts_with('(') && all.iter().any(is_rest);
        if !is_array || is_rest || name.starts_with('$') {
            continue;
        }
        let subscripts = |further: Option<usize>| {
            let each = (1..=*rank).map(|at| match further {
                Some(further) if further == at => format!("lbound({name},{at})+1"),
                _ => format!("lbound({name},{at})"),
            });
            each.collect::<Vec<_>>().join(",")
        };
        let first = subscripts(None);
        for dimension in 1..=*rank {
            let next = subscripts(Some(dimension));
            tests.push(format!("&({name}({next}))-&({name}({first})) > {FAR}"));
        }
    }
    if tests.is_empty() || tests.len() > TESTS_MAX {
        return None;
    }
    Some(tests.join(" .or. "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn condition_with_array_elements_gets_a_stride_test() {
        let one = "&(a(lbound(a,1)+1))-&(a(lbound(a,1))) > 1099511627776";
        assert_eq!(stride_tests("a(2) == 5").as_deref(), Some(one));
        let two = stride_tests("size(c%w) > 1 .and. c%w(i, 2) == 5").unwrap();
        assert_eq!(two.matches(FAR).count(), 2, "{two}");
        for none in ["i == 5", "abs(i) > 2", "$t(1) == 2", "(i) == (j)"] {
            assert_eq!(stride_tests(none), None, "{none}");
        }
    }
}
