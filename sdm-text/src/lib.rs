//! Text for terminals: foreign text is escaped, also in errors and panics, as it must not change the terminal's cursor
//! and state; counts and times have their words, and lines fit their columns.

mod complaints;
mod shell;
mod spans;

use std::borrow::Cow;
use std::ffi::OsStr;
use std::fmt::Display;

pub use complaints::{Complaints, escape_panics};
pub use shell::{shell_word, shell_word_of_bytes};
pub use spans::span;
use unicode_general_category::{GeneralCategory, get_general_category};
use unicode_width::UnicodeWidthChar;

/// The text of one line. All characters except printable ones and tabs are escaped, for example as `\x1b`.
#[must_use]
pub fn printable(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            push(&mut text, c);
        }
        for byte in chunk.invalid() {
            text.push_str(&format!("\\x{byte:02x}"));
        }
    }
    text
}

/// Escapes a foreign name (a path, a word of a command line) for use within a line. A line feed in it must
/// not begin a new line, which would look like SDM's own output.
#[must_use]
pub fn printable_name(name: impl AsRef<OsStr>) -> String {
    printable(name.as_ref().as_encoded_bytes())
}

/// A message without the numbers that the standard library appends to the system's words: ` (os error 2)`.
#[must_use]
pub fn without_numbers(message: &str) -> Cow<'_, str> {
    const BEGIN: &str = " (os error ";
    let mut rest = message;
    let mut out = String::new();
    while let Some((before, behind)) = rest.split_once(BEGIN) {
        let digits = behind.bytes().take_while(u8::is_ascii_digit).count();
        match behind[digits..].strip_prefix(')') {
            Some(after) if digits > 0 => {
                out.push_str(before);
                rest = after;
            }
            _ => {
                out.push_str(before);
                out.push_str(BEGIN);
                rest = behind;
            }
        }
    }
    if rest.len() == message.len() {
        return Cow::Borrowed(message);
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// Like [`printable`], for text of several lines: line feeds are kept.
#[must_use]
pub fn printable_lines(text: &str) -> String {
    let lines: Vec<_> = text
        .split('\n')
        .map(|line| printable(line.as_bytes()))
        .collect();
    lines.join("\n")
}

/// `one` for a count of 1, otherwise `many`: `agree(2, "is", "are")`.
#[must_use]
pub fn agree<'a>(count: impl TryInto<u64>, one: &'a str, many: &'a str) -> &'a str {
    match count.try_into() {
        Ok(1) => one,
        _ => many,
    }
}

/// A count with its regular noun: `1 rank`, `3 ranks`, `3 processes`.
#[must_use]
pub fn counted(count: impl TryInto<u64> + Display + Copy, noun: &str) -> String {
    let ending = match noun.ends_with(['s', 'h']) {
        true => "es",
        false => "s",
    };
    format!("{count} {noun}{}", agree(count, "", ending))
}

/// Number of terminal columns of a printable line. A Chinese character takes two, a combining accent none.
#[must_use]
pub fn columns(text: &str) -> usize {
    match text.is_ascii() {
        // One column for each byte, including bytes that are replaced when shown.
        true => text.len(),
        false => text.chars().map(columns_of).sum(),
    }
}

/// The longest prefix of a line that takes at most this number of columns.
#[must_use]
pub fn beginning(text: &str, columns_max: usize) -> &str {
    let mut taken = 0;
    let too_far = text.char_indices().find(|(_, c)| {
        taken += columns_of(*c);
        taken > columns_max
    });
    too_far.map_or(text, |(at, _)| &text[..at])
}

fn columns_of(c: char) -> usize {
    c.width().unwrap_or(1)
}

/// True for characters that control a terminal, change the direction of writing, or are invisible, by their
/// Unicode category. Tabs are excluded.
#[must_use]
pub fn is_hidden(c: char) -> bool {
    if c.is_ascii() {
        return c != '\t' && c.is_ascii_control();
    }
    let is_of_category = matches!(
        get_general_category(c),
        GeneralCategory::Control
            | GeneralCategory::Format
            | GeneralCategory::LineSeparator
            | GeneralCategory::ParagraphSeparator
    );
    is_of_category || is_blank(c)
}

/// True for letters and marks that are displayed as nothing, or as a space: fillers, and selectors of variants. Those
/// of emoji (U+FE00 to U+FE0F) change how the character in front of them looks.
fn is_blank(c: char) -> bool {
    matches!(
        c,
        '\u{34f}'
            | '\u{115f}'..='\u{1160}'
            | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            | '\u{2800}'
            | '\u{3164}'
            | '\u{ffa0}'
            | '\u{e0100}'..='\u{e01ef}'
    )
}

fn push(text: &mut String, c: char) {
    match (is_hidden(c), u32::from(c)) {
        (false, _) => text.push(c),
        (true, number @ ..0x100) => text.push_str(&format!("\\x{number:02x}")),
        (true, number) => text.push_str(&format!("\\u{{{number:x}}}")),
    }
}

/// Escapes the characters of [`is_hidden`] in JSON text, except line feeds. They occur only in strings, where the
/// escape has the same meaning.
#[must_use]
pub fn record(json: &str) -> String {
    let mut record = String::with_capacity(json.len());
    for c in json.chars() {
        if c == '\n' || !is_hidden(c) {
            record.push(c);
            continue;
        }
        // JSON has only escapes of 16 bits.
        for unit in c.encode_utf16(&mut [0; 2]) {
            record.push_str(&format!("\\u{unit:04x}"));
        }
    }
    record
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nouns_and_verbs_agree_with_their_count() {
        let found: Vec<String> = [0_u64, 1, 2].map(|it| counted(it, "more rank")).into();
        assert_eq!(found, ["0 more ranks", "1 more rank", "2 more ranks"]);
        assert_eq!(counted(1_usize, "process"), "1 process");
        assert_eq!(counted(2_usize, "process"), "2 processes");
        assert_eq!(counted(2_u32, "branch"), "2 branches");
        assert_eq!(
            (agree(1, "is", "are"), agree(3, "is", "are")),
            ("is", "are")
        );
    }

    #[test]
    fn system_error_numbers_are_removed_from_messages() {
        for (message, expect) in [
            (
                "x: No such file or directory (os error 2)",
                "x: No such file or directory",
            ),
            ("a (os error 2): b (os error 13), c", "a: b, c"),
            ("(os error 2)", "(os error 2)"),
            (
                "a (os error ) b (os error x)",
                "a (os error ) b (os error x)",
            ),
            ("", ""),
        ] {
            assert_eq!(without_numbers(message), expect);
        }
    }

    #[test]
    fn control_characters_are_escaped() {
        for (bytes, expect) in [
            (&b"plain\ttext"[..], "plain\ttext"),
            (b"\x1b[2Jgone", "\\x1b[2Jgone"),
            (b"50%\r100%", "50%\\x0d100%"),
            (b"bell\x07 del\x7f", "bell\\x07 del\\x7f"),
            (b"\xff\xfe raw", "\\xff\\xfe raw"),
            ("c1 \u{9b}31m".as_bytes(), "c1 \\x9b31m"),
            ("gr\u{fc}n \u{202e}abc".as_bytes(), "gr\u{fc}n \\u{202e}abc"),
            ("a\u{61c}b\u{200b}c".as_bytes(), "a\\u{61c}b\\u{200b}c"),
            (
                "a\u{200d}\u{2060}\u{2064}".as_bytes(),
                "a\\u{200d}\\u{2060}\\u{2064}",
            ),
            ("so\u{ad}ft \u{feff}".as_bytes(), "so\\xadft \\u{feff}"),
            (
                "tag \u{e0041}\u{e007f}".as_bytes(),
                "tag \\u{e0041}\\u{e007f}",
            ),
            ("line\u{2028}\u{2029}".as_bytes(), "line\\u{2028}\\u{2029}"),
            (
                "\u{3164}a\u{34f}\u{2800}\u{e0100}".as_bytes(),
                "\\u{3164}a\\u{34f}\\u{2800}\\u{e0100}",
            ),
            ("\u{2764}\u{fe0f}".as_bytes(), "\u{2764}\u{fe0f}"),
            (
                "\u{6e29} e\u{301} \u{1f600}".as_bytes(),
                "\u{6e29} e\u{301} \u{1f600}",
            ),
        ] {
            assert_eq!(printable(bytes), expect);
        }
        assert_eq!(printable_lines("a\nb\x1b"), "a\nb\\x1b");
        assert_eq!(printable_name("a\nb\x1b"), "a\\x0ab\\x1b");
    }

    #[test]
    fn text_width_is_that_of_a_terminal() {
        for (text, expect) in [
            ("", 0),
            ("rank", 4),
            ("\u{6e29}\u{5ea6}", 4),
            ("e\u{301}", 1),
        ] {
            assert_eq!(columns(text), expect, "{text}");
        }
        let text = "a\u{6e29}\u{5ea6}b";
        let heads: Vec<_> = (0..8).map(|room| beginning(text, room)).collect();
        assert_eq!(heads[..4], ["", "a", "a", "a\u{6e29}"]);
        assert_eq!(heads[5..], ["a\u{6e29}\u{5ea6}", text, text]);
    }

    #[test]
    fn escaped_json_record_parses_to_the_same_text() {
        let text = "a\u{9b}b \u{202e}c \u{1f600} \u{e0041}";
        let json = serde_json::to_string_pretty(&[text]).unwrap();
        let record = record(&json);
        let shown = "a\\u009bb \\u202ec \u{1f600} \\udb40\\udc41";
        assert!(record.contains(shown), "{record}");
        let again: Vec<String> = serde_json::from_str(&record).unwrap();
        assert_eq!(again, [text]);
    }
}
