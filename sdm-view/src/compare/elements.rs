//! The elements of a value as gdb prints it.

use sdm_debug::quotes::bare;

use super::parts::{self, Named, contained, inside, joint, named, parts, repeats};
use super::rust::{self, Headed};
use super::{is_fortran, path, text};

/// Maximum number of elements of one value that are compared.
pub(super) const ELEMENTS_MAX: usize = text::CHARACTERS_MAX;
/// Maximum nesting depth of structures.
const DEPTH_MAX: usize = 64;

/// A part of a value that is no structure and no array.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Element {
    pub(super) path: String,
    pub(super) value: String,
}

/// The elements of a value as gdb prints it, in order. True if gdb, or [`ELEMENTS_MAX`], has left some out.
pub(super) fn elements(text: &str) -> (Vec<Element>, bool) {
    let mut found = Vec::new();
    let text = bare(text.trim());
    let mut cut = text.ends_with("...");
    let place = Position {
        depth: 0,
        is_rust: rust::is_tuple(text),
    };
    flatten(text, String::new(), place, &mut found, &mut cut);
    (found, cut)
}

/// The elements of two values of an enum of Rust that have the same variant; `None` for other values.
pub(super) fn of_variant(a: &Element, b: &Element) -> Option<[Vec<Element>; 2]> {
    let [one, other] = [a, b].map(|it| rust::headed(&it.value).filter(|it| it.is_variant));
    if one?.name != other?.name {
        return None;
    }
    Some([within(a, one?)?, within(b, other?)?])
}

/// The elements within a value of an enum of Rust; `None` if some are left out.
fn within(of: &Element, headed: Headed<'_>) -> Option<Vec<Element>> {
    let (mut found, mut cut) = (Vec::new(), false);
    let place = Position {
        depth: of.path.matches(['.', '[']).count() + 1,
        is_rust: true,
    };
    let form = Form::of_rust(headed);
    parts_of(&form, &of.path, place, &mut found, &mut cut);
    (!cut).then_some(found)
}

/// The elements of a value, at any depth, where it is one of an enum of Rust; else the value itself.
pub(super) fn opened(of: Element) -> Vec<Element> {
    let headed = rust::headed(&of.value).filter(|it| it.is_variant);
    let found = headed.and_then(|headed| within(&of, headed));
    match found {
        Some(found) => found.into_iter().flat_map(opened).collect(),
        _ => vec![of],
    }
}

/// The nesting depth of a part, and its language.
#[derive(Clone, Copy)]
struct Position {
    depth: usize,
    is_rust: bool,
}

/// The syntax of the parts of a value.
struct Form<'a> {
    /// The text within the brackets.
    inner: &'a str,
    named: Named,
    /// The path of the part at an index of a value with a path.
    indexed: fn(&str, usize) -> String,
    is_fortran: bool,
    /// The join with the path of the only part; `None` for a value that can have several.
    joint: Option<&'static str>,
}

impl<'a> Form<'a> {
    /// `None` for a value without parts.
    fn of(text: &'a str, is_rust: bool) -> Option<Self> {
        let is_fortran = is_fortran(text) && !is_rust;
        Some(Self {
            inner: inside(text)?,
            named,
            indexed: match (is_rust && text.starts_with('('), is_fortran) {
                (true, _) => path::field,
                (_, true) => path::subscripted,
                _ => path::indexed,
            },
            is_fortran,
            joint: joint(text),
        })
    }

    fn of_rust(headed: Headed<'a>) -> Self {
        Self {
            inner: headed.inner,
            named: if headed.open == '{' {
                rust::field
            } else {
                named
            },
            indexed: if headed.open == '[' {
                path::indexed
            } else {
                path::field
            },
            is_fortran: false,
            joint: None,
        }
    }
}

fn flatten(text: &str, path: String, place: Position, found: &mut Vec<Element>, cut: &mut bool) {
    if found.len() >= ELEMENTS_MAX {
        *cut = true;
        return;
    }
    let headed = rust::headed(text);
    let is_rust = place.is_rust || headed.is_some() || text.starts_with('[');
    let form = match headed {
        // Another variant has other fields: it is compared as a whole.
        Some(headed) if headed.is_variant => None,
        Some(headed) => Some(Form::of_rust(headed)),
        None => Form::of(text, is_rust),
    };
    let Some(form) = form.filter(|_| place.depth < DEPTH_MAX) else {
        let (path, value) = (path::whole(&path).to_owned(), text.to_owned());
        return found.push(Element { path, value });
    };
    let place = Position {
        depth: place.depth + 1,
        is_rust,
    };
    parts_of(&form, &path, place, found, cut);
}

fn parts_of(
    form: &Form<'_>,
    path: &str,
    place: Position,
    found: &mut Vec<Element>,
    cut: &mut bool,
) {
    let at = |index: usize| (form.indexed)(path, index);
    let mut index = 0;
    // Index in `found` where the last element begins. In Fortran arrays the repetition of an element
    // follows a comma.
    let mut last = found.len();
    let parts = parts::joined(parts(form.inner, place.is_rust), form.named);
    let is_member =
        |part: &String| (form.named)(part).is_some_and(|(name, _)| name.starts_with('.'));
    let is_structure = parts.iter().any(is_member);
    for part in parts {
        let (part, more) = match part.strip_suffix("...") {
            Some(part) => (part.trim_end(), true),
            None => (part.as_str(), false),
        };
        *cut |= more;
        if part.is_empty() {
            continue;
        }
        if let Some(joint) = form.joint {
            let path = path::whole(path).to_owned() + joint;
            flatten(contained(part), path, place, found, cut);
            continue;
        }
        if let Some((name, value)) = (form.named)(part) {
            let name = path::member(path, &name, form.is_fortran);
            flatten(value, name, place, found, cut);
            continue;
        }
        // The members of an anonymous union or structure are those of what it is in.
        if is_structure && part.starts_with('{') {
            flatten(part, path.to_owned(), place, found, cut);
            continue;
        }
        let (part, mut times) = repeats(part);
        if !part.is_empty() {
            last = found.len();
            flatten(part, at(index), place, found, cut);
            index += 1;
        }
        let own = last..found.len();
        let before = at(index - usize::from(index > 0));
        while times > 1 {
            if found.len() >= ELEMENTS_MAX {
                *cut = true;
                return;
            }
            for one in own.clone() {
                let Element { path: of, value } = found[one].clone();
                let rest = of.strip_prefix(&before).unwrap_or_default();
                let path = at(index) + rest;
                found.push(Element { path, value });
            }
            (index, times) = (index + 1, times - 1);
            last = found.len() - own.len();
            if own.is_empty() {
                break;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The names that the printers of C++'s library give to such values are no part of an expression.
    #[test]
    fn value_inside_a_smart_pointer_or_optional_has_a_path() {
        let shared =
            "std::shared_ptr<P> (use count 1, weak count 0) = {get() = {x = 1, y = {2, 3}}}";
        let map = format!("std::map with 1 element = {{[\"a\"] = {shared}}}");
        for (text, paths) in [
            (shared, "->x ->y[0] ->y[1]"),
            (&map, "[\"a\"]->x [\"a\"]->y[0] [\"a\"]->y[1]"),
            ("std::shared_ptr<P> (empty) = {get() = 0x0}", ""),
            ("{u = std::unique_ptr<int> = {get() = 4}, z = 1}", ".u .z"),
            ("std::unique_ptr<P> = {get() = {<B> = {x = 1}}}", "-><B>.x"),
            (
                "{std::optional<int [2]> = {[contained value] = {1, 2}}, std::optional<int [2]> [no contained value]}",
                "[0][0] [0][1] [1]",
            ),
            ("{n = std::atomic<int> = { 4 }}", ".n"),
            (
                "{a = std::any containing P = {[contained value] = {x = 4}}}",
                ".a.x",
            ),
            (
                "{v = std::variant<int, std::string> [index 1] = {\"a = b\"}, z = 1}",
                ".v .z",
            ),
        ] {
            let (found, _) = elements(text);
            let found: Vec<_> = found.into_iter().map(|it| it.path).collect();
            assert_eq!(found.join(" "), paths, "{text}");
        }
    }
}
