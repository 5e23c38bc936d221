//! Finds the arrays in an expression of which gdb is to read an element or a section.

use std::collections::BTreeMap;

use sdm_debug::quotes::outside_quotes;

/// Maximum number of arrays of one expression that are examined.
const ARRAYS_MAX: usize = 32;

/// The arrays with subscripts in an expression, by the designator in front of the subscripts: `c%w` in `c%w(1:3)`,
/// `boxes(2)%v` in `boxes(2)%v(1)`. A function call looks the same.
pub(super) fn arrays(expression: &str) -> Vec<&str> {
    let brackets = Brackets::of(expression);
    let mut found: Vec<&str> = Vec::new();
    let mut opening: Vec<usize> = brackets.closed.values().copied().collect();
    opening.sort_unstable();
    for before in opening.into_iter().map(|open| &expression[..open]) {
        // `output (*p)%v(1)` is a command and a designator.
        for name in [false, true].map(|apart| brackets.designator(before, apart)) {
            let is_name =
                name.starts_with(|c: char| c.is_alphabetic() || matches!(c, '_' | '$' | '('));
            if is_name && !found.contains(&name) && found.len() < ARRAYS_MAX {
                found.push(name);
            }
        }
    }
    found
}

fn is_part(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '%' | '$')
}

/// The round brackets of an expression.
#[derive(Default)]
struct Brackets {
    /// The offset of the opening bracket for that of each closing one.
    closed: BTreeMap<usize, usize>,
}

impl Brackets {
    fn of(expression: &str) -> Self {
        let (mut all, mut open) = (Self::default(), Vec::new());
        for (at, c) in outside_quotes(expression) {
            match c {
                '(' => open.push(at),
                ')' => {
                    if let Some(from) = open.pop() {
                        all.closed.insert(at, from);
                    }
                }
                _ => {}
            }
        }
        all
    }

    /// The designator that ends where `before` ends: `a%b(i)%c` of `2 * a%b(i)%c`. Empty if there is none. With `apart`
    /// a blank between a name and a bracket ends the designator.
    fn designator<'a>(&self, before: &'a str, apart: bool) -> &'a str {
        let before = before.trim_end();
        let mut begin = before.len();
        loop {
            let mut rest = before[..begin].trim_end();
            if rest.ends_with(')') {
                let Some(open) = self.closed.get(&(rest.len() - 1)) else {
                    return "";
                };
                begin = *open;
                rest = &before[..begin];
                if !apart {
                    rest = rest.trim_end();
                }
                if !rest.ends_with(is_part) {
                    // An expression in brackets: `(*p)%v`.
                    return &before[begin..];
                }
            }
            let name = rest.trim_end_matches(|c| is_part(c) && c != '%');
            if name.len() == rest.len() {
                return "";
            }
            begin = name.len();
            let left = name.trim_end();
            begin = match left {
                _ if left.ends_with('%') => left.len() - 1,
                _ if left.ends_with("::") => left.len() - 2,
                _ => return &before[begin..],
            };
        }
    }
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
        check(
            "boxes(k(2), 3) % v(1)",
            &["boxes", "k", "boxes(k(2), 3) % v"],
        );
        check("(*p)%v(1)", &["(*p)%v"]);
        check("output (*p)%v(1)", &["output", "output (*p)%v", "(*p)%v"]);
        check("m::back(1)+m::c%v(2)", &["m::back", "m::c%v"]);
        check("x/2fg &neg(1)", &["neg"]);
        check("set $t = $1(2)", &["$1"]);
        check("a)(1)", &[]);
        check("%(1", &[]);
        check("word(2)(1:3)", &["word", "word(2)"]);
        check("v(1) + v(1:2)", &["v"]);
    }
}
