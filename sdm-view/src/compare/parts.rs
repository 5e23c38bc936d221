//! Splits a value, as gdb prints it, into its members or elements of one level.

use sdm_debug::quotes::outside_quotes;

/// The text inside the brackets of a structure, an array or a container: `{1, 2}`, `std::vector of length 2, capacity 4
/// = {1, 2}`, in Rust `[1, 2]`, and in Fortran `(1, 2)`. None for other values.
pub(super) fn inside(text: &str) -> Option<&str> {
    if let Some(inner) = text.strip_prefix('(') {
        let inner = inner.strip_suffix(')')?;
        // `(1,-2)` is one complex number.
        let is_complex = inner.contains(',') && !inner.contains([' ', '(']);
        // `(A | C)` is one value of an enumeration of flags.
        let is_flags = inner.contains(" | ") && !inner.contains(['(', ',']);
        return (!is_complex && !is_flags).then_some(inner);
    }
    if let Some(inner) = text.strip_prefix('[') {
        return inner.strip_suffix(']');
    }
    let text = text.strip_suffix('}')?;
    if let Some(inner) = text.strip_prefix('{') {
        return Some(inner);
    }
    let (what, inner) = text.split_once(" = {")?;
    (!what.contains(['{', '"', '\''])).then_some(inner)
}

/// The join of the path of a value of C++'s library with that of the only value in it: `->` for what a pointer points to.
/// None for a value with other parts.
pub(super) fn joint(text: &str) -> Option<&'static str> {
    let (what, inner) = text.strip_prefix("std::")?.split_once(" = {")?;
    let is_pointer = what.contains("_ptr<") || what.starts_with("optional<");
    let is_one = inner.starts_with("get() = ")
        || inner.starts_with(CONTAINED)
        || what.starts_with("atomic<")
        || what.starts_with("variant<");
    let is_plain = !what.contains(['{', '"', '\'']);
    (is_one && is_plain).then_some(if is_pointer { "->" } else { "" })
}

/// gdb's name for the value in a `std::optional` or `std::any`.
const CONTAINED: &str = "[contained value] = ";

/// The only value in a value that has a [`joint`], from its text within the brackets.
pub(super) fn contained(inner: &str) -> &str {
    let names = ["get() = ", CONTAINED];
    let found = names.iter().find_map(|name| inner.strip_prefix(name));
    found.unwrap_or(inner).trim()
}

/// Splits the elements of one level at commas, and without `is_rust` the rows of Fortran's arrays, which have none. A
/// container has a prefix with commas of its own: `std::vector of length 2, capacity 4 = {1, 2}`.
pub(super) fn parts(text: &str, is_rust: bool) -> Vec<String> {
    let (mut depth, mut from) = (0_i32, 0);
    let mut cuts = Vec::new();
    for (at, c) in outside_quotes(text) {
        match c {
            '{' | '(' | '[' | '<' => depth += 1,
            // The type of a function: `Box<dyn Fn(i32) -> i32, Global>`.
            '>' if is_rust && text[..at].ends_with('-') => {}
            '}' | ')' | ']' | '>' => {
                depth = (depth - 1).max(0);
                // Behind a type in `<>` a container can say more: `std::shared_ptr<int> (use count 1, weak count 0)`.
                let is_end = c == ')' || c == '>' && text[..at].ends_with(" times");
                let is_row = is_end && text[at + 1..].starts_with(" (");
                if is_row && depth == 0 && !is_rust {
                    cuts.push(from..at + 1);
                    from = at + 1;
                }
            }
            ',' if depth == 0 => {
                cuts.push(from..at);
                from = at + 1;
            }
            _ => {}
        }
    }
    cuts.push(from..text.len());
    let mut parts: Vec<String> = Vec::new();
    for part in cuts.into_iter().map(|cut| text[cut].trim()) {
        match parts.last_mut() {
            Some(before) if part.starts_with("capacity ") && before.contains(" of length ") => {
                before.push_str(", ");
                before.push_str(part);
            }
            _ => parts.push(part.to_owned()),
        }
    }
    parts
}

/// The value and its count: `0 <repeats 12 times>` is 12 zeros.
pub(super) fn repeats(part: &str) -> (&str, usize) {
    let Some(text) = part.strip_suffix(" times>") else {
        return (part, 1);
    };
    let Some((value, count)) = text.rsplit_once("<repeats ") else {
        return (part, 1);
    };
    match count.parse() {
        Ok(count) => (value.trim_end(), count),
        Err(_) => (part, 1),
    }
}

/// Splits a name in path form off a part.
pub(super) type Named = fn(&str) -> Option<(String, &str)>;

/// Splits `name = value`. The name is in path form: `.name`, `.<base>`, or `["key"]` of a map. None if there is no
/// name; the description in front of a container is none.
pub(super) fn named(part: &str) -> Option<(String, &str)> {
    let (at, _) = outside_quotes(part).find(|(at, _)| part[*at..].starts_with(" = "))?;
    let (name, value) = (&part[..at], &part[at + 3..]);
    if name.starts_with('[') && name.ends_with(']') {
        return Some((name.to_owned(), value));
    }
    let is_field = |name: &str| name.starts_with(['<', '_']) || name.starts_with("static ");
    let says_what = value.starts_with('{') && (name.contains(' ') || name.ends_with('>'));
    // A Fortran structure is one element without a name: `( id = 3, w = (1, 2) )`.
    if name.is_empty() || name.starts_with('(') || says_what && !is_field(name) {
        return None;
    }
    let plain = |c: char| c.is_alphanumeric() || "_<>:,$ ()*&".contains(c);
    name.chars().all(plain).then(|| (format!(".{name}"), value))
}

/// The parts of a structure. gdb prints some texts in several pieces with commas in between, as in `"ab", 'x' <repeats
/// 30 times>`. Such pieces are joined to one part. `named` splits a name off.
pub(super) fn joined(parts: Vec<String>, named: Named) -> Vec<String> {
    let is_piece = |text: &str| text.starts_with(['"', '\'']);
    let mut joined: Vec<String> = Vec::with_capacity(parts.len());
    for part in parts {
        match joined.last_mut() {
            Some(before)
                if is_piece(&part) && named(before).is_some_and(|(_, value)| is_piece(value)) =>
            {
                before.push_str(", ");
                before.push_str(&part);
            }
            _ => joined.push(part),
        }
    }
    joined
}
