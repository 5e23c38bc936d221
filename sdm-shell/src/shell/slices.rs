//! Slices of arrays in an expression: `cell[0:63]`, `grid[0:2][1:3]`, `rods[0:3].rank`. Both ends are
//! included.
//!
//! gdb supports slices for Fortran (`cells(0:2)`) only. In C and C++ the last slice, if nothing follows it,
//! becomes gdb's `cell[0]@64`. That also works for pointers and for types with an `operator[]`. Other
//! slices are evaluated index by index.
use sdm_debug::Command;
use sdm_debug::quotes::outside_quotes;

/// Maximum number of questions that one expression is expanded into.
const QUESTIONS_MAX: usize = 256;
/// Maximum number of elements in a slice that gdb evaluates at once.
const LENGTH_MAX: u64 = 1 << 18;

/// The gdb expressions for an expression that may contain slices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Slices {
    /// The expressions for gdb, ordered by their indices; the last index varies fastest.
    pub(super) questions: Vec<String>,
    /// Lengths of the slices that were expanded into separate questions. Their product is the number of
    /// questions.
    pub(super) outer: Vec<usize>,
    /// True if the expression has a slice, in C or Fortran syntax.
    pub(super) any: bool,
}

/// The reason why an expression's slices cannot be expanded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum SliceError {
    /// A bound is not a number.
    #[error("slice `{0}`: expected numbers, as in [0:63]")]
    NoNumber(String),
    /// The last index is before the first.
    #[error("slice `{0}`: its last element is before its first")]
    Backwards(String),
    /// The slice has too many elements.
    #[error("slice `{slice}`: more than {max} elements")]
    TooLong {
        /// The slice, as written.
        slice: String,
        /// The maximum number.
        max: u64,
    },
}

impl Slices {
    /// Finds the slices of an expression.
    ///
    /// # Errors
    /// [`SliceError`]: an invalid slice, or too many elements.
    pub(super) fn of(expression: &str) -> Result<Self, SliceError> {
        let found = found(expression);
        let mut slices = Self {
            questions: vec![String::new()],
            outer: Vec::new(),
            any: !found.is_empty() || is_fortran(expression),
        };
        let mut done = 0;
        for (begin, colon, end) in found {
            let written = &expression[begin..end];
            if begin < done {
                // One slice is nested in another.
                return Err(SliceError::NoNumber(written.to_owned()));
            }
            let before = &expression[done..begin];
            let (first, last) = (
                &expression[begin + 1..colon],
                &expression[colon + 1..end - 1],
            );
            let number = |text: &str| text.trim().parse::<i64>().ok();
            let (Some(first), Some(last)) = (number(first), number(last)) else {
                return Err(SliceError::NoNumber(written.to_owned()));
            };
            let Some(span) = last
                .checked_sub(first)
                .and_then(|it| u64::try_from(it).ok())
            else {
                return Err(SliceError::Backwards(written.to_owned()));
            };
            let is_last = end == expression.trim_end().len();
            let asked = slices.questions.len() as u64;
            let max = match is_last {
                true => LENGTH_MAX,
                false => QUESTIONS_MAX as u64 / asked,
            };
            if span >= max {
                let slice = written.to_owned();
                return Err(SliceError::TooLong { slice, max });
            }
            if is_last {
                let tail = format!("{before}[{first}]@{}", span + 1);
                slices
                    .questions
                    .iter_mut()
                    .for_each(|it| it.push_str(&tail));
            } else {
                let each = |question: &String| {
                    let indices = first..=last;
                    let with = |index| format!("{question}{before}[{index}]");
                    indices.map(with).collect::<Vec<_>>()
                };
                slices.questions = slices.questions.iter().flat_map(each).collect();
                slices
                    .outer
                    .push(usize::try_from(span + 1).unwrap_or(usize::MAX));
            }
            done = end;
        }
        let rest = expression[done..].trim_end();
        slices.questions.iter_mut().for_each(|it| it.push_str(rest));
        Ok(slices)
    }

    /// An element of the slice that gdb evaluates at once. None if there is no such slice.
    pub(super) fn element(&self) -> Option<&str> {
        let (element, _) = self.questions.first()?.rsplit_once('@')?;
        Some(element)
    }

    /// The commands that evaluate the questions, in a format of gdb (`/d`). Each prints all of its numbers
    /// as text.
    pub(super) fn commands(&self, format: &str) -> Vec<Command> {
        let command = |question: &String| Command::Console {
            line: format!(
                "with max-value-size unlimited -- with print elements unlimited -- with print repeats unlimited -- output{format} {question}"
            ),
        };
        self.questions.iter().map(command).collect()
    }
}

/// Finds the slices of an expression: the byte offsets of the opening bracket, the colon and the end.
fn found(expression: &str) -> Vec<(usize, usize, usize)> {
    let mut found = Vec::new();
    // Each open bracket with its colons: `::` belongs to a name, and `?` to its own colon.
    let mut open: Vec<(usize, char, Vec<usize>)> = Vec::new();
    let bytes = expression.as_bytes();
    let is_colon = |at: usize| bytes.get(at) == Some(&b':');
    for (at, c) in outside_quotes(expression) {
        match c {
            '[' | '(' | '{' => open.push((at, c, Vec::new())),
            ']' | ')' | '}' => {
                if let Some((begin, '[', colons)) = open.pop()
                    && let [colon] = colons[..]
                    && c == ']'
                    && !expression[begin..at].contains('?')
                {
                    found.push((begin, colon, at + 1));
                }
            }
            ':' if !is_colon(at + 1) && (at == 0 || !is_colon(at - 1)) => {
                if let Some((.., colons)) = open.last_mut() {
                    colons.push(at);
                }
            }
            _ => {}
        }
    }
    found.retain(|(begin, ..)| !expression[..*begin].trim().is_empty());
    found
}

/// True for a slice in Fortran syntax: `cells(0:2)`.
fn is_fortran(expression: &str) -> bool {
    let mut depth = 0;
    let bytes = expression.as_bytes();
    outside_quotes(expression).any(|(at, c)| {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        let alone = |at: Option<usize>| at.and_then(|at| bytes.get(at)) != Some(&b':');
        depth > 0
            && c == ':'
            && alone(at.checked_sub(1))
            && alone(at.checked_add(1))
            && !expression.contains('?')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_become_gdb_expressions() {
        for (expression, questions, outer) in [
            ("x + 1", &["x + 1"][..], &[][..]),
            ("cell[0:63]", &["cell[0]@64"], &[]),
            ("rod->cells[ 2 : 3 ] ", &["rod->cells[2]@2"], &[]),
            ("m[1][0:2]", &["m[1][0]@3"], &[]),
            ("m[0:1][1:3]", &["m[0][1]@3", "m[1][1]@3"], &[2]),
            (
                "r[1:3].rank",
                &["r[1].rank", "r[2].rank", "r[3].rank"],
                &[3],
            ),
            ("cells(-1:2)", &["cells(-1:2)"], &[]),
            ("ns::x[0] + 'a.c'::y", &["ns::x[0] + 'a.c'::y"], &[]),
            ("x[a ? 1 : 2]", &["x[a ? 1 : 2]"], &[]),
            ("f(\"a[0:1]\")", &["f(\"a[0:1]\")"], &[]),
        ] {
            let slices = Slices::of(expression).unwrap();
            assert_eq!(slices.questions, questions, "{expression}");
            assert_eq!(slices.outer, outer, "{expression}");
        }
        assert!(Slices::of("a(1:2)").unwrap().any && Slices::of("a[1:2]").unwrap().any);
        assert!(!Slices::of("a(1, x)").unwrap().any && !Slices::of("f(N::x)").unwrap().any);
    }

    #[test]
    fn malformed_or_oversized_slice_is_refused() {
        for (expression, part) in [
            ("a[i:3]", "expected numbers"),
            ("a[3:1]", "before its first"),
            ("a[b[0:1]:3]", "expected numbers"),
            ("a[0:999999999999]", "more than 262144"),
            ("a[0:256][0:1]", "more than 256"),
            ("a[0:99][0:99].x", "more than 2 elements"),
            ("a[-9223372036854775808:9223372036854775807]", "before"),
        ] {
            let error = Slices::of(expression).unwrap_err().to_string();
            assert!(error.contains(part), "{expression}: {error}");
        }
    }
}
