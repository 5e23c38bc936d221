//! Formats MI commands, and parses values and paths in gdb's answers. No state.

use sdm_debug::quotes::referred;
use sdm_debug::reply::{Value, Variable};
use xxhash_rust::xxh3::xxh3_64;

use sdm_mi::{Results, quote};

/// Maximum length of the text of one value, in bytes. A longer text is cut and carries its length and hash.
pub const VALUE_BYTES_MAX: usize = 4 << 10;

/// A value with this text, cut if it is too long.
pub(crate) fn value(text: &str) -> Value {
    if text.len() <= VALUE_BYTES_MAX {
        return Value {
            text: text.to_owned(),
            cut: None,
        };
    }
    let mut end = VALUE_BYTES_MAX;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    Value {
        text: text[..end].to_owned(),
        cut: Some((text.len() as u64, xxh3_64(text.as_bytes()))),
    }
}

/// A `{name=,value=}` of gdb; a missing value is empty.
pub(crate) fn variable(results: &Results) -> Variable {
    let text = |name| results.text(name).unwrap_or_default();
    named(text("name"), text("value"))
}

/// A variable with its printed value. A reference shows its object, as its address differs between tasks.
pub(crate) fn named(name: &str, shown: &str) -> Variable {
    Variable {
        name: name.to_owned(),
        value: value(referred(shown)),
    }
}

/// The last component of a path.
pub(crate) fn base_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// The last value of this name: gdb puts reports of passed signals in front of a stop. `None` if there is none, or if
/// it is no constant.
pub(crate) fn last_text<'a>(results: &'a Results, name: &str) -> Option<&'a str> {
    let last = results.0.iter().rev().find(|(key, _)| key == name)?;
    last.1.as_text()
}

/// The reasons of a stop in gdb's order: a run that has ended comes before a breakpoint at the same place.
pub(crate) fn reasons(results: &Results) -> impl Iterator<Item = &str> {
    let named = results.0.iter().filter(|(key, _)| key == "reason");
    named.filter_map(|(_, value)| value.as_text())
}

/// The MI command that runs a console command.
pub(crate) fn console_line(command: &str) -> String {
    console_bytes(command.as_bytes())
}

/// Like `console_line`, for arbitrary bytes.
pub(crate) fn console_bytes(command: &[u8]) -> String {
    format!("-interpreter-exec console {}", quote(command))
}

/// A command with a path. MI passes such commands on to gdb's command line unchanged, up to the end of the line. A
/// path that no line can hold is sent as an MI string.
pub(crate) fn with_path(command: &str, console: &str, path: &[u8]) -> String {
    match std::str::from_utf8(path) {
        Ok(text) if !text.contains(char::is_control) => {
            let word = escape_path(path);
            format!("{command} {}", String::from_utf8_lossy(&word))
        }
        _ => console_bytes(&[console.as_bytes(), b" ", &escape_path(path)].concat()),
    }
}

/// A path quoted as one word for gdb's command line.
pub(crate) fn escape_path(path: &[u8]) -> Vec<u8> {
    let mut word = Vec::with_capacity(path.len());
    for &byte in path {
        match byte {
            b'/' | b'.' | b'_' | b'-' | b'+' | 0x80.. => word.push(byte),
            _ if byte.is_ascii_alphanumeric() => word.push(byte),
            // gdb drops a line end behind a backslash.
            _ if byte.is_ascii_control() => word.extend([b'\'', byte, b'\'']),
            _ => word.extend([b'\\', byte]),
        }
    }
    word
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn truncated_values_differ_if_their_hidden_text_differs() {
        assert_eq!(value("12").cut, None);
        let one = "\u{fc}".repeat(VALUE_BYTES_MAX);
        let other = format!("{one}!");
        let (one, other) = (value(&one), value(&other));
        assert_eq!(one.text, other.text);
        assert_ne!(one, other);
        assert_eq!(one.cut.unwrap().0, 2 * VALUE_BYTES_MAX as u64);
        let odd = value(&format!("x{}", "\u{fc}".repeat(VALUE_BYTES_MAX)));
        assert_eq!(odd.text.len(), VALUE_BYTES_MAX - 1);
    }

    #[test]
    fn path_with_line_break_does_not_end_its_command() {
        let check = |path: &[u8], expect: &str| assert_eq!(with_path("-x", "file", path), expect);
        check(b"/a b/\xc3\xbc'", "-x /a\\ b/\u{fc}\\'");
        check(
            b"/a\nshell touch /m",
            r#"-interpreter-exec console "file /a'\012'shell\\ touch\\ /m""#,
        );
        check(b"/\xff\"", r#"-interpreter-exec console "file /\377\\\"""#);
    }
}
