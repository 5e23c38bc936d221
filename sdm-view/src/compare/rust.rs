//! Values of Rust, which gdb prints with the name of their type in front: `m::P {id: 1}`, `m::Pair (1, 2)`, `&[i32] [1]`.

use sdm_debug::quotes::outside_quotes;

/// A printed value with its name, split at the bracket that its end closes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Headed<'a> {
    /// The name of the type; for a value of an enum that of its variant.
    pub(super) name: &'a str,
    /// The opening bracket.
    pub(super) open: char,
    /// The text within the brackets.
    pub(super) inner: &'a str,
    /// True for a value of an enum, of which other values can have other fields.
    pub(super) is_variant: bool,
}

/// A value of Rust with the name of its type; `None` for all other texts.
pub(super) fn headed(text: &str) -> Option<Headed<'_>> {
    let inner = text.strip_suffix(['}', ')', ']'])?;
    let mut open = Vec::new();
    let mut last = 0;
    for (at, c) in outside_quotes(text) {
        match c {
            '{' | '(' | '[' => open.push(at),
            '}' | ')' | ']' => last = open.pop()?,
            _ => {}
        }
    }
    let (head, bracket) = (&text[..last], text[last..].chars().next()?);
    let name = head.trim_end();
    let is_slice = name.starts_with('&') || name.starts_with("alloc::boxed::Box<[");
    let is_path =
        name.contains("::") && name.starts_with(|c: char| c.is_alphabetic() || "_&".contains(c));
    let is_name = if bracket == '[' { is_slice } else { is_path };
    if !is_name
        || name.contains('"')
        || name.contains(" = ")
        || name.ends_with(" =")
        || !open.is_empty()
    {
        return None;
    }
    Some(Headed {
        name,
        open: bracket,
        inner: &inner[last + 1..],
        is_variant: bracket != '[' && name.len() == head.len(),
    })
}

/// True for a tuple with parts that only Rust prints. Without these a tuple looks as an array of Fortran.
pub(super) fn is_tuple(text: &str) -> bool {
    let mut plain = outside_quotes(text).map(|(at, c)| (&text[at..], c));
    text.starts_with('(')
        && !text.contains(" = ")
        && plain.any(|(rest, c)| c == '[' || rest.starts_with("::"))
}

/// The name in path form and the value of a field: `id: 1`.
pub(super) fn field(part: &str) -> Option<(String, &str)> {
    let (name, value) = part.split_once(": ")?;
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    (!name.is_empty() && name.chars().all(is_part)).then(|| (format!(".{name}"), value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_of_a_rust_value_is_split_off() {
        for (text, name, inner, is_variant) in [
            ("m::P {id: 1, x: 2}", "m::P", "id: 1, x: 2", false),
            ("m::Pair<i32> (1, 2)", "m::Pair<i32>", "1, 2", false),
            ("m::E::Rect{w: 1}", "m::E::Rect", "w: 1", true),
            (
                "core::option::Option<(i32, f64)>::Some((1, 2))",
                "core::option::Option<(i32, f64)>::Some",
                "(1, 2)",
                true,
            ),
            (
                "m::main::{closure_env#0} {rank: 1}",
                "m::main::{closure_env#0}",
                "rank: 1",
                false,
            ),
            (
                "&[[i32; 2]] [[1, 2], [3, 4]]",
                "&[[i32; 2]]",
                "[1, 2], [3, 4]",
                false,
            ),
            (
                "alloc::boxed::Box<[f64], alloc::alloc::Global> [1]",
                "alloc::boxed::Box<[f64], alloc::alloc::Global>",
                "1",
                false,
            ),
        ] {
            let found = headed(text).unwrap_or_else(|| panic!("{text}"));
            assert_eq!(
                (found.name, found.inner, found.is_variant),
                (name, inner, is_variant),
                "{text}"
            );
        }
        for text in [
            "{1, 2}",
            "[1, 2]",
            "(1, 2)",
            "m::E::None",
            "std::vector of length 1, capacity 1 = {1}",
            "std::optional<int> [no contained value]",
            "std::unique_ptr<Cell> = {get() = 0x1}",
            "\"m::P {id: 1}\"",
            "( id = 3 )",
            "}",
        ] {
            assert_eq!(headed(text), None, "{text}");
        }
    }
}
