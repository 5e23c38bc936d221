//! Readable children of variable objects: the entries of a map by their keys, and arrays of characters as texts.

use sdm_debug::Failure;
use sdm_debug::reply::VarObject;
use sdm_mi::quote;

use super::object_arrays::object_of;
use crate::gdb::Gdb;
use crate::text::value;

/// Maximum number of members of a key that are shown.
const KEY_MEMBERS_MAX: u32 = 8;
/// Maximum number of characters of a text, as in gdb's own printing.
const CHARACTERS_MAX: u32 = 200;
/// Maximum number of texts in one answer, because gdb is asked for each.
const TEXTS_MAX: usize = 64;

/// The children of an object in an index range, whether there are more, and the hint of its pretty-printer.
pub(super) async fn listed(
    gdb: &Gdb,
    name: &str,
    (from, to): (u32, u32),
) -> Result<(Vec<VarObject>, bool, String), Failure> {
    let line = format!("-var-list-children --all-values {name} {from} {to}");
    let results = gdb.mi(line).await?;
    let children = results.tuples("children").map(object_of).collect();
    let more = results.text("has_more").is_some_and(|more| more != "0");
    let hint = results.text("displayhint").unwrap_or_default();
    Ok((children, more, hint.to_owned()))
}

/// The entries of a map. gdb lists a key and its value as two children.
pub(super) async fn entries(gdb: &Gdb, listed: Vec<VarObject>) -> Vec<VarObject> {
    let mut listed = listed.into_iter();
    let mut entries = Vec::new();
    while let (Some(key), Some(mut entry)) = (listed.next(), listed.next()) {
        entry.expression = format!("[{}]", key_text(gdb, &key).await);
        entries.push(entry);
    }
    show_texts(gdb, &mut entries).await;
    entries
}

async fn key_text(gdb: &Gdb, key: &VarObject) -> String {
    let own = key.value.text.clone();
    if !own.starts_with('{') {
        return own;
    }
    let name = quote(key.name.as_bytes());
    let Ok((members, ..)) = listed(gdb, &name, (0, KEY_MEMBERS_MAX)).await else {
        return own;
    };
    let members: Vec<String> = members
        .iter()
        .map(|it| format!("{} = {}", it.expression, it.value.text))
        .collect();
    format!("{{{}}}", members.join(", "))
}

/// Shows arrays of characters as texts. gdb itself shows only the number of elements: `[32]`.
pub(super) async fn show_texts(gdb: &Gdb, children: &mut [VarObject]) {
    let arrays = children.iter_mut().filter(|it| is_text(&it.type_name));
    for array in arrays.take(TEXTS_MAX) {
        let name = quote(array.name.as_bytes());
        let range = (0, array.children.min(CHARACTERS_MAX));
        let Ok((characters, ..)) = listed(gdb, &name, range).await else {
            continue;
        };
        let codes = characters.iter().map(|it| code(&it.value.text)).collect();
        if let Some(codes) = codes {
            array.value = value(&text(codes, array.children > CHARACTERS_MAX));
        }
    }
}

/// True for the type of an array of characters in C and C++: `char [32]`.
fn is_text(type_name: &str) -> bool {
    let Some((element, bounds)) = type_name.split_once(" [") else {
        return false;
    };
    let element = element.trim_start_matches("const ");
    matches!(element, "char" | "signed char" | "unsigned char") && !bounds.contains('[')
}

/// The code of a character that gdb shows as `98 'b'`; `None` for another value.
fn code(shown: &str) -> Option<u8> {
    let (number, _) = shown.split_once(' ')?;
    let number: i16 = number.parse().ok()?;
    Some(number.to_le_bytes()[0])
}

/// The letters with which gdb shows the characters 7 to 13.
const ESCAPES: &[u8; 7] = b"abtnvfr";

/// A text in quotes, without the zeros at its end. A text that `is_cut` keeps them.
fn text(mut codes: Vec<u8>, is_cut: bool) -> String {
    while !is_cut && codes.last() == Some(&0) {
        codes.pop();
    }
    let mut shown = String::from("\"");
    for chunk in codes.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '"' | '\\' => shown.extend(['\\', c]),
                '\x07'..='\r' => shown.extend(['\\', char::from(ESCAPES[c as usize - 7])]),
                c if c.is_control() => shown.push_str(&format!("\\{:03o}", u32::from(c))),
                c => shown.push(c),
            }
        }
        for byte in chunk.invalid() {
            shown.push_str(&format!("\\{byte:03o}"));
        }
    }
    shown.push_str(if is_cut { "\"..." } else { "\"" });
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_are_shown_as_text() {
        for (codes, is_cut, expect) in [
            (&b"left\0\0"[..], false, r#""left""#),
            (b"a\0b\"\\\n\0", false, r#""a\000b\"\\\n""#),
            (b"\xc3\xa4\xff", false, "\"\u{e4}\\377\""),
            (b"\0\0", false, r#""""#),
            (b"ab\0", true, r#""ab\000"..."#),
        ] {
            assert_eq!(text(codes.to_vec(), is_cut), expect);
        }
        assert_eq!(code("-61 '\\303'"), Some(195));
        assert_eq!(code("<error>"), None);
        assert!(is_text("const unsigned char [4]") && is_text("char [32]"));
        assert!(!is_text("char [2][32]") && !is_text("int [3]") && !is_text("char *"));
    }
}
