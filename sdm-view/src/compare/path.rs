//! Paths of elements within a value, in the language of the program.

use sdm_debug::quotes::bare;

/// A part of the path of an element in a Fortran value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Text that belongs to the path as it is: `%w`, `(3:3)`.
    Text(String),
    /// The position in an array, counted from 0 in each dimension, the first dimension first.
    Position(Vec<u64>),
}

/// True for a value of a Fortran array or derived type, as gdb prints it.
#[must_use]
pub fn is_fortran(value: &str) -> bool {
    bare(value.trim()).starts_with('(')
}

/// The path of an element of a Fortran array. gdb prints its last dimension outermost. So the path becomes an expression
/// only when [`steps`] has reversed its indices.
pub(super) fn subscripted(path: &str, index: usize) -> String {
    format!("{path}({index})")
}

/// The path of an array's element in the other languages.
pub(super) fn indexed(path: &str, index: usize) -> String {
    format!("{}[{index}]", whole(path))
}

/// The path without the `->` that only a member follows.
pub(super) fn whole(path: &str) -> &str {
    path.strip_suffix("->").unwrap_or(path)
}

/// The expression, in brackets where a path behind it would belong to a part of it only.
#[must_use]
pub fn grouped(expression: &str) -> String {
    let is_name = |c: char| c.is_alphanumeric() || "_.:%[](),$".contains(c);
    let compact = expression.replace("->", ".").replace(", ", ",");
    let is_plain = compact.chars().all(is_name);
    match is_plain && !expression.starts_with(['(', ':']) {
        true => expression.to_owned(),
        false => format!("({expression})"),
    }
}

/// The path of a part of a tuple of Rust.
pub(super) fn field(path: &str, index: usize) -> String {
    format!("{path}.{index}")
}

/// The path of a member, whose name is in the form of C: `.w`.
pub(super) fn member(path: &str, name: &str, is_fortran: bool) -> String {
    match name.strip_prefix('.') {
        Some(name) if is_fortran => format!("{path}%{name}"),
        Some(name) if path.ends_with("->") => format!("{path}{name}"),
        _ => format!("{}{name}", whole(path)),
    }
}

/// The parts of a path in a Fortran value.
#[must_use]
pub fn steps(path: &str) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut rest = path;
    while !rest.is_empty() {
        let end = rest[1..].find(['%', '(']).map_or(rest.len(), |at| at + 1);
        let (step, behind) = rest.split_at(end);
        rest = behind;
        let index = step.strip_prefix('(').and_then(|it| it.strip_suffix(')'));
        match (index.and_then(|it| it.parse().ok()), steps.last_mut()) {
            (Some(index), Some(Step::Position(all))) => all.insert(0, index),
            (Some(index), _) => steps.push(Step::Position(vec![index])),
            (None, _) => steps.push(Step::Text(step.to_owned())),
        }
    }
    steps
}

impl Step {
    /// The text of the step. `bounds` are the array's lower bounds, one for each dimension; empty if they are
    /// unknown.
    #[must_use]
    pub fn text(&self, bounds: &[i64]) -> String {
        let position = match self {
            Self::Text(text) => return text.clone(),
            Self::Position(position) => position,
        };
        let is_known = bounds.len() == position.len();
        let subscript = |(dimension, at): (usize, &u64)| match bounds.get(dimension) {
            Some(lower) if is_known => lower.saturating_add_unsigned(*at).to_string(),
            _ => format!("lbound+{at}"),
        };
        let subscripts = position.iter().enumerate().map(subscript);
        format!("({})", subscripts.collect::<Vec<_>>().join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(path: &str, bounds: &[i64], expect: &str) {
        let steps = steps(path);
        let text: String = steps.iter().map(|step| step.text(bounds)).collect();
        assert_eq!(text, expect, "{path}");
    }

    #[test]
    fn expression_with_an_operator_is_put_in_parentheses() {
        for plain in ["p", "a.b->c[3]", "grid%rows(2)", "v(1:2, 2)", "$1"] {
            assert_eq!(grouped(plain), plain);
        }
        for (expression, expect) in [
            ("*p", "(*p)"),
            ("a + 1", "(a + 1)"),
            ("a-b", "(a-b)"),
            ("*p@3", "(*p@3)"),
        ] {
            assert_eq!(grouped(expression), expect);
        }
    }

    #[test]
    fn subscripts_have_order_and_bounds_of_fortran() {
        check("(1)(2)", &[1, 1], "(3,2)");
        check("(1)(2)", &[-1, 5], "(1,6)");
        check("(4)", &[0], "(4)");
        check("%w(1)(0)(2)", &[1, 1, 1], "%w(3,1,2)");
        check("(1)(201:201)", &[1], "(2)(201:201)");
        check("(1)%w(3)%x", &[1], "(2)%w(4)%x");
        check("(1)(2)", &[], "(lbound+2,lbound+1)");
        check("(1)(2)", &[1], "(lbound+2,lbound+1)");
        check("", &[1], "");
    }
}
