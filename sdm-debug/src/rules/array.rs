//! Arrays of numbers as gdb prints them: `{1, 2}` in C and C++, `(1, 2)` in Fortran, with up to a few dimensions.

use super::number::{Parsed, parse};
use crate::quotes::bare;

/// Maximum number of elements that are read of one array.
pub const ELEMENTS_MAX: usize = 1 << 18;
/// Maximum number of dimensions of an array.
const DIMENSIONS_MAX: usize = 8;

/// An array of numbers, or a single number, which has no dimensions.
#[derive(Clone, Debug, PartialEq)]
pub struct NumberArray {
    /// Number of elements in each dimension, in gdb's nesting order: outermost first.
    pub shape: Vec<usize>,
    /// All elements; those of the innermost dimension are adjacent.
    pub elements: Vec<Parsed>,
}

impl NumberArray {
    /// Parses a value; `None` if an element is no number, if rows differ in length, or if it is too large.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut array = Self {
            shape: Vec::new(),
            elements: Vec::new(),
        };
        let text = text.trim();
        // The target of a reference is a number. The target of a pointer is not.
        let value = Some(bare(text)).filter(|value| !value.starts_with("0x"));
        array.shape = array.take(value.unwrap_or(text), 0)?;
        Some(array)
    }

    /// Appends the elements of a part of the array; returns the shape of the part.
    fn take(&mut self, text: &str, depth: usize) -> Option<Vec<usize>> {
        let inner = |open, close| text.strip_prefix(open)?.strip_suffix(close);
        let Some(inner) = inner('{', '}').or_else(|| inner('(', ')')) else {
            if self.elements.len() == ELEMENTS_MAX {
                return None;
            }
            self.elements.push(parse(text)?);
            return Some(Vec::new());
        };
        if depth == DIMENSIONS_MAX {
            return None;
        }
        let mut count = 0;
        let mut shape: Option<Vec<usize>> = None;
        let mut size = 0;
        for part in Elements(inner) {
            let (part, times) = repeated(part)?;
            // Fortran has a comma before the repetition: `1.5, <repeats 24 times>` means 24 elements in all.
            let more = if part.is_empty() && count > 0 {
                times - 1
            } else {
                let before = self.elements.len();
                let own = self.take(part, depth + 1)?;
                if shape.get_or_insert_with(|| own.clone()) != &own {
                    return None;
                }
                size = self.elements.len() - before;
                count += 1;
                times - 1
            };
            let room = ELEMENTS_MAX - self.elements.len();
            if size.checked_mul(more)? > room {
                return None;
            }
            let last = self.elements.len() - size;
            for _ in 0..more {
                self.elements.extend_from_within(last..last + size);
            }
            count += more;
        }
        let mut whole = vec![count];
        whole.extend(shape?);
        Some(whole)
    }
}

/// Feeds arbitrary bytes to [`NumberArray::parse`]: it must not panic, and an array must have as many elements as its
/// shape says.
pub fn fuzz_array(bytes: &[u8]) {
    if let Some(array) = NumberArray::parse(&String::from_utf8_lossy(bytes)) {
        let count: usize = array.shape.iter().product();
        assert_eq!(array.elements.len(), count, "{:?}", array.shape);
        assert!(count <= ELEMENTS_MAX, "an array is bounded");
    }
}

/// The element and the count in gdb's `0 <repeats 12 times>`.
fn repeated(part: &str) -> Option<(&str, usize)> {
    let Some(text) = part.strip_suffix(" times>") else {
        return Some((part, 1));
    };
    let (value, count) = text.rsplit_once("<repeats ")?;
    let count = count.parse().ok()?;
    (1..=ELEMENTS_MAX)
        .contains(&count)
        .then_some((value.trim(), count))
}

/// Iterator over the elements of one nesting level: separated by commas, or for rows of Fortran's arrays by nothing.
struct Elements<'a>(&'a str);

impl<'a> Iterator for Elements<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        self.0 = self.0.trim_start_matches([' ', ',']);
        let mut depth = 0_usize;
        let mut quote = None;
        let mut is_escaped = false;
        let mut end = self.0.len();
        for (at, c) in self.0.char_indices() {
            match (quote, c) {
                (Some(_), _) if is_escaped => is_escaped = false,
                (Some(_), '\\') => is_escaped = true,
                (Some(open), c) if c == open => quote = None,
                (Some(_), _) => {}
                (None, '\'' | '"') => quote = Some(c),
                (None, '>') if depth == 0 && self.0[at + 1..].starts_with(" (") => {
                    end = at + 1;
                    break;
                }
                (None, '{' | '(') => depth += 1,
                (None, '}' | ')') => {
                    depth = depth.saturating_sub(1);
                    let rest = self.0[at + 1..].trim_start_matches(' ');
                    if depth == 0 && rest.starts_with(['(', '{']) {
                        end = at + 1;
                        break;
                    }
                }
                (None, ',') if depth == 0 => {
                    end = at;
                    break;
                }
                (None, _) => {}
            }
        }
        let (part, rest) = self.0.split_at(end);
        self.0 = rest;
        Some(part.trim()).filter(|part| !part.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::Number;

    #[test]
    fn printed_arrays_of_every_language_are_parsed() {
        let check = |text: &str, shape: &[usize], expect: &[i128]| {
            let array = NumberArray::parse(text).unwrap_or_else(|| panic!("{text}"));
            let numbers = expect.iter().map(|it| Parsed::Finite(Number::Int(*it)));
            assert_eq!(array.shape, shape, "{text}");
            assert_eq!(array.elements, numbers.collect::<Vec<_>>(), "{text}");
        };
        check("7", &[], &[7]);
        check("{1, 2, 3}", &[3], &[1, 2, 3]);
        check("(1, 2)", &[2], &[1, 2]);
        check("{{1, 2}, {3, 4}, {5, 6}}", &[3, 2], &[1, 2, 3, 4, 5, 6]);
        check("((1, 2) (3, 4))", &[2, 2], &[1, 2, 3, 4]);
        check("{0 <repeats 3 times>, 4}", &[4], &[0, 0, 0, 4]);
        check(
            "{{1, 2} <repeats 2 times>, {3, 4}}",
            &[3, 2],
            &[1, 2, 1, 2, 3, 4],
        );
        check("(const int &) @0x7ffe: 5", &[], &[5]);
        check("(int (&)[2]) @0x7ffe: {1, 2}", &[2], &[1, 2]);
        check("(1, <repeats 3 times>)", &[3], &[1, 1, 1]);
        check("(0, 1, <repeats 3 times>, 2)", &[5], &[0, 1, 1, 1, 2]);
        check(
            "((1, 2) <repeats 2 times> (3, 4))",
            &[3, 2],
            &[1, 2, 1, 2, 3, 4],
        );
        check("{44 ',', 123 '{', 39 '\\''}", &[3], &[44, 123, 39]);
    }

    #[test]
    fn text_that_is_no_number_array_is_refused() {
        let deep = "{".repeat(10_000) + "1" + &"}".repeat(10_000);
        for text in [
            "",
            "{}",
            "x",
            "{1, x}",
            "{{1, 2}, {3}}",
            "{1, {2}}",
            "{a = 1}",
            "\"text\"",
            "{1",
            "{0 <repeats 99999999999 times>}",
            "(<repeats 3 times>)",
            "{{0 <repeats 262144 times>}, {0 <repeats 262144 times>}}",
            "(int *) 0x7ffe",
            deep.as_str(),
        ] {
            assert_eq!(NumberArray::parse(text), None, "{text:.40}");
        }
    }
}
