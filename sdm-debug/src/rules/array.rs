//! Parses arrays of numbers as gdb prints them: `{1, 2}` in C and C++, `(1, 2)` in Fortran, with several dimensions.

use super::number::{Number, Parsed, parse};
use crate::quotes::{bare, outside_quotes};

/// Maximum number of elements that are read of one text, which gdb's output of 1 MiB cannot have: the shortest element
/// is a digit, a comma and a blank.
pub const ELEMENTS_MAX: usize = 1 << 19;
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
    /// Parses a printed value. `None` if an element is not a number, if rows differ in length, or if the array has too
    /// many elements or dimensions.
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

    /// True for the text of an array or a container whose first element is a number, also if its end is cut off.
    #[must_use]
    pub fn is_begun(text: &str) -> bool {
        let mut text = value_of(bare(text.trim()));
        let mut is_array = false;
        while let Some((inner, _)) = opened(text) {
            text = value_of(inner.trim_start());
            is_array = true;
        }
        let first = text.split([',', '}', ')', ']']).next().unwrap_or_default();
        let first = first.split(" <repeats ").next().unwrap_or_default();
        is_array && (first.trim_start_matches('-').starts_with("nan(") || element(first).is_some())
    }

    /// Appends the elements of `text`, a part of the array at `depth`. Returns the shape of the part; `None` if it is
    /// not an array of numbers.
    fn take(&mut self, text: &str, depth: usize) -> Option<Vec<usize>> {
        let text = value_of(text);
        let inner = opened(text).and_then(|(inner, close)| inner.strip_suffix(close));
        let Some(inner) = inner else {
            if self.elements.len() == ELEMENTS_MAX {
                return None;
            }
            self.elements.push(element(text)?);
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

/// A number, or 0 and 1 for the truth values of C and Fortran; `None` for any other text.
pub(super) fn element(text: &str) -> Option<Parsed> {
    let int = |value| Some(Parsed::Finite(Number::Int(value)));
    match text.trim() {
        "false" | ".FALSE." => int(0),
        "true" | ".TRUE." => int(1),
        text => parse(text),
    }
}

/// The text after the bracket that opens an array or a container, and the bracket that closes it; `None` for any other
/// text. A pretty-printer puts the container's type and length in front: `std::vector of length 2, capacity 2 = {1,
/// 2}`.
fn opened(text: &str) -> Option<(&str, &'static str)> {
    let within = |open, close| text.strip_prefix(open).map(|inner| (inner, close));
    let array = within("{_M_elems = {", "}}").or_else(|| within("{__elems_ = {", "}}"));
    let plain = || {
        within("{", "}")
            .or_else(|| within("(", ")"))
            .or_else(|| within("[", "]"))
    };
    array
        .or_else(plain)
        .or_else(|| slice_of_rust(text))
        .or_else(|| {
            let (name, inner) = text.split_once(" = {")?;
            let is_container = name.starts_with(char::is_alphabetic)
                && name.contains("::")
                && !name.contains(['{', '"', '\''])
                && !name.contains(" = ");
            is_container.then_some((inner, "}"))
        })
}

/// The text after the bracket that opens a slice of Rust, or a box of one: `&[f64] [1, 2]`.
fn slice_of_rust(text: &str) -> Option<(&str, &'static str)> {
    let (name, inner) = match text.strip_prefix("alloc::boxed::Box<[") {
        Some(text) => text.split_once("> [")?,
        None => text.strip_prefix('&')?.split_once("] [")?,
    };
    (!name.contains(['"', '{'])).then_some((inner, "]"))
}

/// The value of an element that gdb shows with its index or its key: `[3] = 1.5`, `["a"] = 2`. Any other text as it is.
fn value_of(text: &str) -> &str {
    let mut depth = 0;
    for (at, c) in outside_quotes(text) {
        match c {
            '[' | '{' | '(' => depth += 1,
            ']' | '}' | ')' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            let rest = if c == ']' { &text[at + 1..] } else { "" };
            return rest.strip_prefix(" = ").unwrap_or(text);
        }
    }
    text
}

/// The element and the count in gdb's `0 <repeats 12 times>`; any other text is an element with the count 1. `None` if
/// the count is not valid.
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

/// Iterator over the elements of one nesting level. Commas separate them; between the rows of a Fortran array there is
/// nothing.
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
                (None, '{' | '(' | '[') => depth += 1,
                (None, '}' | ')' | ']') => {
                    depth = depth.saturating_sub(1);
                    let rest = self.0[at + 1..].trim_start_matches(' ');
                    if depth == 0 && rest.starts_with(['(', '{']) {
                        end = at + 1;
                        break;
                    }
                }
                // A vector's name has a comma of its own.
                (None, ',') if depth == 0 && !self.0[at..].starts_with(", capacity ") => {
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

    fn check(text: &str, shape: &[usize], expect: &[i128]) {
        let array = NumberArray::parse(text).unwrap_or_else(|| panic!("{text}"));
        let numbers = expect.iter().map(|it| Parsed::Finite(Number::Int(*it)));
        assert_eq!(array.shape, shape, "{text}");
        assert_eq!(array.elements, numbers.collect::<Vec<_>>(), "{text}");
    }

    #[test]
    fn printed_arrays_of_every_language_are_parsed() {
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
        check("[1, 2, 3]", &[3], &[1, 2, 3]);
        check("&[[i32; 2]] [[1, 2], [3, 4]]", &[2, 2], &[1, 2, 3, 4]);
        check(
            "alloc::boxed::Box<[i8], alloc::alloc::Global> [1, 2]",
            &[2],
            &[1, 2],
        );
        check("{[0] = 5, [1] = 6}", &[2], &[5, 6]);
        check("{true, false <repeats 2 times>}", &[3], &[1, 0, 0]);
        check("(.TRUE., .FALSE.)", &[2], &[1, 0]);
    }

    #[test]
    fn containers_are_parsed_as_their_printers_show_them() {
        let check = |text: &str, shape: &[usize], expect: &[i128]| {
            check(text, shape, expect);
            assert!(NumberArray::is_begun(text), "{text}");
            assert!(NumberArray::is_begun(&text[..text.len() - 2]), "{text}");
        };
        let vector = "std::vector of length 2, capacity 4 = {1, 2}";
        check(vector, &[2], &[1, 2]);
        let vectors = format!("std::vector of length 2, capacity 2 = {{{vector}, {vector}}}");
        check(&vectors, &[2, 2], &[1, 2, 1, 2]);
        check("std::deque with 2 elements = {1, 2}", &[2], &[1, 2]);
        check("std::valarray of length 2 = {1, 2}", &[2], &[1, 2]);
        check("std::__cxx11::list = {[0] = 1, [1] = 4}", &[2], &[1, 4]);
        check("{_M_elems = {1, 2, 3}}", &[3], &[1, 2, 3]);
        let map = "std::map with 2 elements = {[\"a] = {,\"] = 1, [{x = 3, y = 4}] = 2}";
        check(map, &[2], &[1, 2]);
        check(
            "std::vector<bool> of length 2, capacity 64 = {true, false}",
            &[2],
            &[1, 0],
        );
    }

    #[test]
    fn array_that_begins_with_nan_is_an_array() {
        for text in ["{-nan(0x400000), inf, 0}", "(nan(0x8000000000000), 1)"] {
            assert!(NumberArray::is_begun(text), "{text}");
            assert!(NumberArray::parse(text).is_some(), "{text}");
        }
    }

    #[test]
    fn structure_is_not_taken_for_an_array() {
        for text in [
            "{x = 1, y = 2}",
            "{a = {1, 2}, b = {3, 4}}",
            "std::vector of length 1, capacity 1 = {{x = 1, id = 2}}",
            "std::vector of length 0, capacity 0",
            "std::unique_ptr<int> = {get() = 5}",
            "{<Base> = {1, 2}}",
            "{v = std::vector of length 2, capacity 2 = {1, 2}}",
            "7",
            "(int *) 0x7ffe",
        ] {
            assert!(!NumberArray::is_begun(text), "{text}");
        }
        let ragged = "std::vector of length 2, capacity 2 = {{1, 2}, {3}}";
        assert_eq!(NumberArray::parse(ragged), None);
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
            "{{0 <repeats 524288 times>}, {0 <repeats 524288 times>}}",
            "(int *) 0x7ffe",
            deep.as_str(),
        ] {
            assert_eq!(NumberArray::parse(text), None, "{text:.40}");
        }
    }
}
