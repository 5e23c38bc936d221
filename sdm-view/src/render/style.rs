//! Colours and the width of the output.

use sdm_text::{beginning, columns, counted};

/// Colour, width and height of text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// True for output with colours.
    pub colour: bool,
    /// Columns per line. None: unlimited.
    pub width: Option<usize>,
    /// Lines of a screen. Longer output is folded.
    pub rows: usize,
}

impl Style {
    /// A style without colour and width limit, for files and pipes.
    pub const PLAIN: Style = Style {
        colour: false,
        width: None,
        rows: Style::ROWS,
    };

    /// Number of lines of a screen if there is no terminal.
    pub const ROWS: usize = 40;

    /// The subject of a line, highlighted.
    pub(super) fn label(&self, text: &str) -> String {
        self.paint("1", text)
    }

    /// Text of an error.
    pub(super) fn bad(&self, text: &str) -> String {
        self.paint("31", text)
    }

    /// Highlights a text that differs from the usual.
    pub(super) fn odd(&self, text: &str) -> String {
        self.paint("33", text)
    }

    /// Shows a text faint.
    pub(super) fn faint(&self, text: &str) -> String {
        self.paint("2", text)
    }

    /// A keyword of a language.
    pub(super) fn word(&self, text: &str) -> String {
        self.paint("1", text)
    }

    /// The name of a type.
    pub(super) fn type_name(&self, text: &str) -> String {
        self.paint("36", text)
    }

    /// A string, or the name of a file.
    pub(super) fn string(&self, text: &str) -> String {
        self.paint("32", text)
    }

    /// Number of lines for answers; the rest of the screen is for a note about folded ones.
    pub(super) fn room(&self) -> usize {
        self.rows.saturating_sub(4)
    }

    /// Number of screen lines that these lines take; each can contain line feeds.
    pub(super) fn height(lines: &[String]) -> usize {
        let height = |line: &String| line.bytes().filter(|byte| *byte == b'\n').count() + 1;
        lines.iter().map(height).sum()
    }

    /// Cuts lines to the screen's height, with a note about the number of the others.
    pub(super) fn fit(&self, mut lines: Vec<String>) -> Vec<String> {
        let rest = lines.len().saturating_sub(self.rows);
        if rest > 0 {
            lines.truncate(self.rows.saturating_sub(1));
            lines.push(self.faint(&format!("({} more lines)", rest + 1)));
        }
        lines
    }

    /// Shortens a block that is longer than a screen to its beginning and end. Unchanged without a screen.
    pub(super) fn folded(&self, lines: Vec<String>) -> Vec<String> {
        let room = self.room();
        if self.width.is_none() || Self::height(&lines) <= room {
            return lines;
        }
        let text = lines.join("\n");
        let lines: Vec<&str> = text.split('\n').collect();
        let last = room / 3;
        let first = room.saturating_sub(last + 1).max(1);
        let Some(left_out) = lines
            .len()
            .checked_sub(first + last)
            .filter(|count| *count > 0)
        else {
            return vec![text];
        };
        let said = self.faint(&format!("      ({}, not shown)", counted(left_out, "line")));
        let (begin, end) = (&lines[..first], &lines[lines.len() - last..]);
        let kept = begin
            .iter()
            .copied()
            .chain([&*said])
            .chain(end.iter().copied());
        kept.map(str::to_owned).collect()
    }

    /// Maximum length of a set's text, in characters, before it is folded.
    pub(super) fn set_width(&self) -> usize {
        (self.width.unwrap_or(120) * 2 / 5).clamp(16, 80)
    }

    /// Breaks long lines at blanks, and longer words anywhere. Continuations are indented, so that a line
    /// feed in a text cannot begin a line that looks like SDM's own.
    pub(crate) fn wrap(&self, text: &str, indent: usize) -> String {
        let mut lines = text.split('\n');
        let mut wrapped = self.wrap_line(lines.next().unwrap_or_default(), indent);
        for line in lines {
            wrapped.push('\n');
            wrapped.push_str(&self.wrap_line(&format!("{}{line}", " ".repeat(indent)), indent));
        }
        wrapped
    }

    fn wrap_line(&self, line: &str, indent: usize) -> String {
        let Some(width) = self.width.filter(|width| *width > indent + 8) else {
            return line.to_owned();
        };
        let mut lines = Vec::new();
        let mut rest = line;
        let mut room = width;
        while columns(rest) > room {
            let fits = beginning(rest, room);
            let fits = fits.len();
            let lead = rest.len() - rest.trim_start_matches(' ').len();
            let blank = rest.as_bytes()[..=fits]
                .iter()
                .rposition(|byte| *byte == b' ');
            let end = blank.filter(|at| columns(&rest[..*at]) > lead + room / 3);
            let (line, tail) = rest.split_at(end.unwrap_or(fits));
            lines.push(line);
            rest = tail.trim_start_matches(' ');
            room = width - indent;
        }
        lines.push(rest);
        lines.join(&format!("\n{}", " ".repeat(indent)))
    }

    fn paint(&self, code: &str, text: &str) -> String {
        if self.colour && !text.is_empty() {
            format!("\x1b[{code}m{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_wrap_by_terminal_width() {
        let style = Style {
            width: Some(20),
            ..Style::PLAIN
        };
        let wide = "\u{6e29}\u{5ea6}".repeat(6);
        let parts = ["\u{6e29}\u{5ea6}".repeat(5), "\u{6e29}\u{5ea6}".to_owned()];
        assert_eq!(style.wrap(&wide, 2), parts.join("\n  "));
        assert_eq!(
            style.wrap("rank 1: no\nrank 7: fine", 2),
            "rank 1: no\n  rank 7: fine"
        );
    }

    #[test]
    fn long_answer_is_folded_to_its_first_and_last_lines() {
        let style = Style {
            width: Some(80),
            rows: 24,
            ..Style::PLAIN
        };
        let lines: Vec<String> = (0..100).map(|line| line.to_string()).collect();
        let folded = style.folded(lines.clone());
        assert_eq!(folded.len(), style.room());
        assert_eq!((&*folded[0], &*folded[19]), ("0", "99"));
        assert_eq!(folded[13], "      (81 lines, not shown)");
        let whole = Style {
            rows: usize::MAX,
            ..style
        };
        assert_eq!(whole.folded(lines.clone()), lines);
        // Text for a file is not folded.
        assert_eq!(Style::PLAIN.folded(lines.clone()), lines);
    }

    #[test]
    fn long_lines_wrap_at_blanks_without_loss() {
        let style = Style {
            colour: false,
            width: Some(20),
            ..Style::PLAIN
        };
        let line = "ranks 0-3 (4): {a = 1, b = 2, c = 3}";
        assert_eq!(
            style.wrap(line, 4),
            "ranks 0-3 (4): {a =\n    1, b = 2, c = 3}"
        );
        let long = "x".repeat(50);
        let wrapped = style.wrap(&long, 2);
        assert!(wrapped.lines().all(|line| line.len() <= 20), "{wrapped}");
        assert_eq!(wrapped.replace("\n  ", ""), long);
        assert_eq!(Style::PLAIN.wrap(&long, 2), long);
    }
}
