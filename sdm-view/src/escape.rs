//! What could steer a terminal is escaped.

use sdm_text::printable_lines;

/// The colours and weights of ours and of the command line's help: none of them can hide anything.
const STYLES: [&str; 8] = ["[0m", "[1m", "[2m", "[4m", "[31m", "[32m", "[33m", "[36m"];

/// Text as a terminal may have it: printable characters, tabs, line ends and our styles.
#[must_use]
pub fn shown(text: &str) -> String {
    let mut parts = text.split('\x1b');
    let mut shown = printable_lines(parts.next().unwrap_or_default());
    for part in parts {
        let style = STYLES.iter().find(|style| part.starts_with(**style));
        shown.push_str(if style.is_some() { "\x1b" } else { "\\x1b" });
        shown.push_str(&printable_lines(part));
    }
    shown
}

/// JSON as a terminal may have it: such characters stand only in its strings, and mean the same there.
#[must_use]
pub fn record(json: &str) -> String {
    let mut record = String::with_capacity(json.len());
    for c in json.chars() {
        let kept = matches!(c, '\n') || printable_lines(c.encode_utf8(&mut [0; 4])).starts_with(c);
        match kept {
            true => record.push(c),
            false => record.push_str(&format!("\\u{:04x}", u32::from(c))),
        }
    }
    record
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_styles_pass() {
        for (text, expect) in [
            ("a\tb\nc", "a\tb\nc"),
            ("\x1b[31mbad\x1b[0m", "\x1b[31mbad\x1b[0m"),
            ("\x1b[8mhidden\x1b[2J", "\\x1b[8mhidden\\x1b[2J"),
            ("\x1b]0;title\x07", "\\x1b]0;title\\x07"),
            ("\x1b", "\\x1b"),
            ("over\rwritten \u{9b}2J", "over\\x0dwritten \\x9b2J"),
        ] {
            assert_eq!(shown(text), expect);
            assert_eq!(shown(expect), expect);
        }
    }

    #[test]
    fn a_record_means_the_same() {
        let text = "a\u{9b}b \u{202e}c \u{1f600}";
        let json = serde_json::to_string_pretty(&[text]).unwrap();
        let record = record(&json);
        assert!(record.contains("a\\u009bb \\u202ec \u{1f600}"), "{record}");
        let again: Vec<String> = serde_json::from_str(&record).unwrap();
        assert_eq!(again, [text]);
    }
}
