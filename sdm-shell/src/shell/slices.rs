//! Slices of arrays in an expression: `cell[0:63]`, `grid[0:2][1:3]`, `rods[0:3].rank`, and every eighth element:
//! `cell[0:63:8]`. Both ends are included.
//!
//! gdb supports slices for Fortran (`cells(0:2)`) only. In C and C++ the last slice, if nothing follows it,
//! becomes gdb's `cell[0]@64`, and with a stride an array of its elements: `{*&cell[0], *&cell[8]}`. Both also work
//! for pointers and for types with an `operator[]`. Other slices are evaluated index by index.
mod component;
mod indices;

use sdm_debug::Command;
use sdm_debug::quotes::outside_quotes;
use sdm_debug::reply::{ARRAY_BYTES_MAX, VALUE_BYTES_MAX};

use indices::Indices;
pub(super) use indices::SliceError;

/// Maximum number of questions that one expression is expanded into.
const QUESTIONS_MAX: usize = 256;
/// Maximum number of elements of a slice with a stride: gdb evaluates each element by itself. The second constant
/// limits the elements of one piece.
const STRIDED_MAX: u64 = 1 << 11;
const PIECE_STRIDED_MAX: u64 = 1 << 8;
/// Maximum number of bytes of memory whose numbers gdb prints at once: a byte takes up to eight characters, and gdb's
/// output is cut at 1 MiB.
const PIECE_BYTES_MAX: u64 = 1 << 16;
/// Maximum number of elements of Fortran's that gdb prints at once, of up to 46 characters each.
const PIECE_NUMBERS_MAX: u64 = 1 << 14;

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
    /// The indices of each slice, with the array that it is a slice of.
    pub(super) ranges: Vec<Range>,
    /// The slice at the end of the expression, which gdb evaluates at once. None without such a slice, or if its bounds
    /// are not numbers.
    last: Option<LastSlice>,
}

/// The first and the last index that a slice has of an array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Range {
    pub(super) array: String,
    pub(super) first: i64,
    pub(super) last: i64,
}

/// The slice that gdb evaluates at once: its pieces, one after another, make up the whole.
#[derive(Clone, Debug, PartialEq, Eq)]
struct LastSlice {
    indices: Indices,
    /// Number of bytes that follow the slice in the questions: none in C, further subscripts in Fortran.
    behind: usize,
    /// Number of elements of Fortran's in each element of the slice; `None` in C.
    inner: Option<u64>,
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
            ranges: Vec::new(),
            last: None,
        };
        if found.is_empty() {
            if let Some(bounds) = component::bounds(expression) {
                let max = QUESTIONS_MAX as u64;
                slices.questions = component::questions(expression, bounds, max)?;
                slices.outer = vec![slices.questions.len()];
                return Ok(slices);
            }
            slices.last = last_section(expression);
        }
        let mut done = 0;
        for (begin, end) in found {
            let written = &expression[begin..end];
            if begin < done {
                // One slice is nested in another.
                return Err(SliceError::NoNumber(written.to_owned()));
            }
            let before = &expression[done..begin];
            let indices = Indices::parse(written)?;
            let is_last = end == expression.trim_end().len();
            let max = match (is_last, indices.step) {
                (true, 1) => ARRAY_BYTES_MAX,
                (true, _) => STRIDED_MAX,
                (false, _) => QUESTIONS_MAX as u64 / slices.questions.len() as u64,
            };
            if indices.count > max {
                let slice = written.to_owned();
                return Err(SliceError::TooLong { slice, max });
            }
            slices.add_ranges(before, indices);
            let arrays = slices.questions.iter().map(|it| format!("{it}{before}"));
            if is_last {
                let whole = |array: String| indices.elements(&array, 0, indices.count);
                slices.questions = arrays.map(whole).collect();
                let (behind, inner) = (0, None);
                slices.last = Some(LastSlice {
                    indices,
                    behind,
                    inner,
                });
            } else {
                let each = |array: String| {
                    let places = 0..indices.count;
                    places.map(move |place| format!("{array}[{}]", indices.at(place)))
                };
                slices.questions = arrays.flat_map(each).collect();
                let count = usize::try_from(indices.count);
                slices.outer.push(count.unwrap_or(usize::MAX));
            }
            done = end;
        }
        let rest = expression[done..].trim_end();
        slices.questions.iter_mut().for_each(|it| it.push_str(rest));
        Ok(slices)
    }

    /// Adds the range of a slice of each array that the questions so far lead to.
    fn add_ranges(&mut self, before: &str, indices: Indices) {
        let (first, last) = (indices.first, indices.at(indices.count - 1));
        let arrays = self.questions.iter().map(|it| format!("{it}{before}"));
        let ranges = arrays.map(|array| Range { array, first, last });
        self.ranges.extend(ranges);
    }

    /// An element of the slice in C syntax that gdb evaluates at once. None if there is no such slice.
    pub(super) fn element(&self) -> Option<String> {
        let array = self.array_of(self.questions.first()?)?;
        Some(format!("{array}[{}]", self.last.as_ref()?.indices.first))
    }

    /// The C array that a question takes a slice of; None for another question.
    fn array_of(&self, question: &str) -> Option<&str> {
        self.last.as_ref().filter(|last| last.inner.is_none())?;
        let at = self.questions.iter().position(|it| it == question)?;
        // The ranges of the last slice are last, one for each question.
        let first = self.ranges.len().checked_sub(self.questions.len())?;
        Some(&self.ranges.get(first + at)?.array)
    }

    /// The commands that evaluate the questions, in a format of gdb (`/d`). Each prints all of its numbers as text. A
    /// question whose text would be cut becomes several, of an equal number for each; `bytes` is the size of an
    /// element in C.
    ///
    /// # Errors
    /// [`SliceError::TooLarge`], [`SliceError::TooLong`]: the slice has too many bytes, or elements of Fortran's.
    pub(super) fn commands(
        &self,
        format: &str,
        bytes: Option<u64>,
    ) -> Result<Vec<Command>, SliceError> {
        let command = |question: String| Command::Console {
            line: format!(
                "with max-value-size {VALUE_BYTES_MAX} -- with print elements unlimited -- with print repeats unlimited -- output{format} {question}"
            ),
        };
        let mut commands = Vec::new();
        for question in &self.questions {
            commands.extend(self.pieces(question, bytes)?.into_iter().map(command));
        }
        Ok(commands)
    }

    /// A question in pieces, each of which gdb prints completely.
    ///
    /// # Errors
    /// [`SliceError::TooLarge`], [`SliceError::TooLong`]: the slice has too many bytes, or elements of Fortran's.
    pub(super) fn pieces(
        &self,
        question: &str,
        bytes: Option<u64>,
    ) -> Result<Vec<String>, SliceError> {
        let whole = || Ok(vec![question.to_owned()]);
        let Some(last) = &self.last else {
            return whole();
        };
        let indices = last.indices;
        let one = match (last.inner, bytes) {
            (Some(inner), _) => PIECE_NUMBERS_MAX / inner,
            (None, Some(bytes)) if indices.step == 1 => PIECE_BYTES_MAX / bytes.max(1),
            (None, Some(bytes)) => PIECE_STRIDED_MAX.min(PIECE_BYTES_MAX / bytes.max(1)),
            (None, None) => return whole(),
        };
        let one = one.max(1);
        let all = indices.count.saturating_mul(self.questions.len() as u64);
        let size = all.saturating_mul(last.inner.or(bytes).unwrap_or(1));
        let max = ARRAY_BYTES_MAX;
        match last.inner {
            _ if size <= max => {}
            None => return Err(SliceError::TooLarge { bytes: size, max }),
            Some(_) => {
                let slice = question.to_owned();
                return Err(SliceError::TooLong { slice, max });
            }
        }
        let (slice, behind) = question.split_at(question.len() - last.behind);
        let before = match last.inner {
            Some(_) => slice.rfind(['(', ',']).map(|at| &slice[..=at]),
            None => self.array_of(question),
        };
        let Some(before) = before else {
            return whole();
        };
        let piece = |from: u64| {
            let count = one.min(indices.count - from);
            if last.inner.is_none() {
                return indices.elements(before, from, count);
            }
            let (first, end) = (indices.at(from), indices.at(from + count - 1));
            format!("{before}{first}:{end}{behind}")
        };
        let step = usize::try_from(one).unwrap_or(usize::MAX);
        Ok((0..indices.count).step_by(step).map(piece).collect())
    }
}

/// The last section of a Fortran expression that is nothing but an array with subscripts: the one whose elements are
/// printed one after another. None if it, or one before it, has no bounds in numbers.
fn last_section(expression: &str) -> Option<LastSlice> {
    let expression = expression.trim_end();
    let inside = expression.strip_suffix(')')?;
    let (_, subscripts) = inside.rsplit_once('(')?;
    let mut inner = 1_u64;
    let mut last = None;
    let mut behind = expression.len() - inside.len() + subscripts.len();
    for (at, subscript) in subscripts.split(',').enumerate() {
        behind -= subscript.len() + usize::from(at > 0);
        let Some((first, end)) = subscript.split_once(':') else {
            continue;
        };
        let first: i64 = first.trim().parse().ok()?;
        let end: i64 = end.trim().parse().ok()?;
        let count = u64::try_from(end.checked_sub(first)?)
            .ok()?
            .checked_add(1)?;
        if let Some(LastSlice { indices, .. }) = last {
            inner = inner.checked_mul(indices.count)?;
        }
        let step = 1;
        last = Some(LastSlice {
            indices: Indices { first, step, count },
            behind,
            inner: Some(inner),
        });
    }
    last
}

/// True for output of gdb that was cut: a section without bounds in numbers is not printed in pieces.
pub(super) fn is_cut(text: &str) -> bool {
    text.trim_end()
        .rsplit_once('\n')
        .is_some_and(|(_, mark)| mark.starts_with("... (cut: "))
}

/// Finds the slices of an expression: the byte offsets of the opening bracket and the end.
fn found(expression: &str) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    // Each open bracket with the number of its colons: `::` belongs to a name, and `?` to its own colon.
    let mut open: Vec<(usize, char, u32)> = Vec::new();
    let bytes = expression.as_bytes();
    let is_colon = |at: usize| bytes.get(at) == Some(&b':');
    for (at, c) in outside_quotes(expression) {
        match c {
            '[' | '(' | '{' => open.push((at, c, 0)),
            ']' | ')' | '}' => {
                if let Some((begin, '[', colons)) = open.pop()
                    && (1..=2).contains(&colons)
                    && c == ']'
                    && !expression[begin..at].contains('?')
                {
                    found.push((begin, at + 1));
                }
            }
            ':' if !is_colon(at + 1) && (at == 0 || !is_colon(at - 1)) => {
                if let Some((.., colons)) = open.last_mut() {
                    *colons += 1;
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
            ("x[1:6:2]", &["{*&x[1], *&x[3], *&x[5]}"], &[]),
            ("m[0:4:4][7:8:9]", &["{*&m[0][7]}", "{*&m[4][7]}"], &[2]),
            ("m[0:1][1:3]", &["m[0][1]@3", "m[1][1]@3"], &[2]),
            (
                "r[1:3].rank",
                &["r[1].rank", "r[2].rank", "r[3].rank"],
                &[3],
            ),
            ("cells(-1:2)", &["cells(-1:2)"], &[]),
            ("c(0:1)%r", &["c(0)%r", "c(1)%r"], &[2]),
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
    fn long_slices_are_evaluated_in_pieces() {
        for (expression, size, pieces) in [
            (
                "v[5:40004]",
                Some(8),
                &[
                    "v[5]@8192",
                    "v[8197]@8192",
                    "v[16389]@8192",
                    "v[24581]@8192",
                    "v[32773]@7232",
                ][..],
            ),
            (
                "m[0:1][1:3]",
                Some(65_536),
                &[
                    "m[0][1]@1",
                    "m[0][2]@1",
                    "m[0][3]@1",
                    "m[1][1]@1",
                    "m[1][2]@1",
                    "m[1][3]@1",
                ],
            ),
            ("v[0:9]", None, &["v[0]@10"]),
            (
                "m[0:1][5:9:2]",
                Some(30_000),
                &[
                    "{*&m[0][5], *&m[0][7]}",
                    "{*&m[0][9]}",
                    "{*&m[1][5], *&m[1][7]}",
                    "{*&m[1][9]}",
                ],
            ),
            ("w( -2 : 16384 )", None, &["w(-2:16381)", "w(16382:16384)"]),
            (
                "g(1:8192,3, 0:3 , j)",
                None,
                &["g(1:8192,3,0:1, j)", "g(1:8192,3,2:3, j)"],
            ),
            ("g(:,1:99999)", None, &["g(:,1:99999)"]),
            ("f(1, 2)", None, &["f(1, 2)"]),
        ] {
            let commands = Slices::of(expression)
                .unwrap()
                .commands("/d", size)
                .unwrap();
            let asked = commands.iter().map(|command| match command {
                Command::Console { line } => line.rsplit_once("output/d ").unwrap().1,
                other => panic!("{other:?}"),
            });
            assert_eq!(asked.collect::<Vec<_>>(), pieces, "{expression}");
        }
    }

    #[test]
    fn malformed_or_oversized_slice_is_refused() {
        for (expression, part) in [
            ("a[i:3]", "expected numbers"),
            ("a[0:3:0]", "expected numbers"),
            ("a[0:4096:2]", "more than 2048"),
            ("a[3:1]", "before its first"),
            ("a[b[0:1]:3]", "expected numbers"),
            ("a[0:999999999999]", "more than 16777216"),
            ("a[0:256][0:1]", "more than 256"),
            ("a[0:99][0:99].x", "more than 2 elements"),
            ("a[-9223372036854775808:9223372036854775807]", "before"),
        ] {
            let error = Slices::of(expression).unwrap_err().to_string();
            assert!(error.contains(part), "{expression}: {error}");
        }
        let large = Slices::of("a[0:2047]").unwrap().commands("", Some(1 << 16));
        let text = "the slice has 134217728 bytes on each rank, more than 16777216";
        assert_eq!(large.unwrap_err().to_string(), text);
        let section = Slices::of("g(0:4096,1:4096)").unwrap().commands("", None);
        let text = "slice `g(0:4096,1:4096)`: more than 16777216 elements";
        assert_eq!(section.unwrap_err().to_string(), text);
        for (largest, bytes, pieces) in [
            ("a[0:16777215]", Some(1), 256),
            ("a[1:2097152]", Some(8), 256),
            ("a[0:1][0:1048575]", Some(8), 256),
            ("w(1:16777216)", None, 1024),
        ] {
            let commands = Slices::of(largest).unwrap().commands("", bytes).unwrap();
            assert_eq!(commands.len(), pieces, "{largest}");
        }
    }
}
