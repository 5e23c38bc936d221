//! The parts of a structure or a container that have numbers, or point to some.

use sdm_debug::quotes::bare;
use sdm_debug::rules::{NumberArray, is_address};

use super::elements::opened;
use super::{Element, elements};

/// A part of a value, by its path; the path is empty for the value itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NumericPart {
    /// A number, or an array of numbers.
    Numbers(String),
    /// A pointer. Its target is unknown.
    Pointer(String),
    /// A pointer to something with a name, such as a function or an array.
    Named(String),
}

/// The parts of a printed value that may lead to numbers: arrays and pointers before single numbers.
#[must_use]
pub fn numeric_parts(text: &str) -> Vec<NumericPart> {
    let found = elements(text).0.into_iter().flat_map(opened);
    let (mut first, mut single) = (Vec::new(), Vec::new());
    for Element { path, value } in found {
        // Base classes, keys of maps and words of printers are no part of an expression.
        if path.contains(['<', '"', ' ']) {
            continue;
        }
        let value = bare(&value);
        if is_address(value) {
            match value.split_once(' ') {
                None if value == "0x0" => {}
                None => first.push(NumericPart::Pointer(path)),
                Some((_, what)) if what.starts_with('<') => first.push(NumericPart::Named(path)),
                Some(_) => {}
            }
        } else if NumberArray::parse(value).is_some() {
            let array = whole(&path);
            match array.len() < path.len() && !array.is_empty() {
                true => first.push(NumericPart::Numbers(array.to_owned())),
                false => single.push(NumericPart::Numbers(path)),
            }
        }
    }
    first.extend(single);
    first.dedup();
    first
}

/// The path without the indices at its end, and without the member `_M_elems` of a `std::array` before them.
fn whole(path: &str) -> &str {
    let mut path = path;
    while let Some((before, _)) = path
        .strip_suffix([']', ')'])
        .and_then(|it| it.rsplit_once(['[', '(']))
    {
        path = before;
    }
    path.trim_end_matches("._M_elems")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numeric_members_and_pointers_of_a_value_are_found() {
        let check = |text: &str, expect: &[(bool, &str)]| {
            let part = |(is_pointer, path): &(bool, &str)| match is_pointer {
                true if text.contains('<') => NumericPart::Named((*path).to_owned()),
                true => NumericPart::Pointer((*path).to_owned()),
                false => NumericPart::Numbers((*path).to_owned()),
            };
            let expect: Vec<_> = expect.iter().map(part).collect();
            assert_eq!(numeric_parts(text), expect, "{text}");
        };
        check("(int *) 0x7ff0", &[(true, "")]);
        check("0x7ff0", &[(true, "")]);
        check("0x0", &[]);
        check("0x7ff0 \"text\"", &[]);
        check("0x7ff0 <grid>", &[(true, "")]);
        check(
            "l::List {head: o::Option::Some(m::N {at: 0x10}), len: 2}",
            &[(true, ".head.0.at"), (false, ".len")],
        );
        check("{rows = 2, d = 0x7ff0}", &[(true, ".d"), (false, ".rows")]);
        check("{m = {array = {1, 2}}}", &[(false, ".m.array")]);
        check("{a = {_M_elems = {1, 2}}}", &[(false, ".a")]);
        check("{<Base> = {b = 1}, d = 2}", &[(false, ".d")]);
        check(
            "std::vector of length 1, capacity 1 = {{x = 1.5, s = \"a\"}}",
            &[(false, "[0].x")],
        );
        check("( id = 3, w = (1, 2) )", &[(false, "%w"), (false, "%id")]);
    }
}
