//! Escaping of terminal control sequences.

use sdm_text::printable_lines;

/// The escape sequences for colours and weights that are allowed. None can hide text.
const STYLES: [&str; 8] = ["[0m", "[1m", "[2m", "[4m", "[31m", "[32m", "[33m", "[36m"];

/// Text that is safe for a terminal: printable characters, tabs, line ends and allowed styles.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_own_style_sequences_are_not_escaped() {
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
}
