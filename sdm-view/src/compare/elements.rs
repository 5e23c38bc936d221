//! The elements of a value as gdb prints it.

use sdm_debug::quotes::bare;

use super::parts::{self, inside, named, parts, repeats};
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
    flatten(text, String::new(), 0, &mut found, &mut cut);
    (found, cut)
}

fn flatten(text: &str, path: String, depth: usize, found: &mut Vec<Element>, cut: &mut bool) {
    if found.len() >= ELEMENTS_MAX {
        *cut = true;
        return;
    }
    let Some(inner) = inside(text).filter(|_| depth < DEPTH_MAX) else {
        let value = text.to_owned();
        return found.push(Element { path, value });
    };
    let is_fortran = is_fortran(text);
    let at = |index: usize| path::indexed(&path, index, is_fortran);
    let mut index = 0;
    // Index in `found` where the last element begins. In Fortran arrays the repetition of an element
    // follows a comma.
    let mut last = found.len();
    let parts = parts::joined(parts(inner));
    let is_member = |part: &String| named(part).is_some_and(|(name, _)| name.starts_with('.'));
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
        if let Some((name, value)) = named(part) {
            let name = path::member(&path, &name, is_fortran);
            flatten(value, name, depth + 1, found, cut);
            continue;
        }
        // The members of an anonymous union or structure are those of what it is in.
        if is_structure && part.starts_with('{') {
            flatten(part, path.clone(), depth + 1, found, cut);
            continue;
        }
        let (part, mut times) = repeats(part);
        if !part.is_empty() {
            last = found.len();
            flatten(part, at(index), depth + 1, found, cut);
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
