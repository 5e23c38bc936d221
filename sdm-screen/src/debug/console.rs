//! What the session has said, and the lines that it was given.

use std::collections::VecDeque;

use sdm_text::printable;

/// So many lines are kept.
const LINES_MAX: usize = 2000;

/// What the session has said, and the lines that it was given.
#[derive(Debug, Default)]
pub(crate) struct Console {
    lines: VecDeque<Said>,
    /// How many lines at the end are below what is shown.
    pub(crate) below: usize,
}

/// A line of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Said {
    pub(crate) text: String,
    /// A person has said it, by typing or by a key.
    pub(crate) is_own: bool,
}

impl Console {
    pub(crate) fn say(&mut self, text: &str) {
        for line in text.lines() {
            self.push(Said {
                text: printable(line.as_bytes()).replace('\t', "    "),
                is_own: false,
            });
        }
    }

    /// A line that the session is given. Of several selections, one after the other, the last one is kept.
    pub(crate) fn echo(&mut self, prompt: &str, line: &str) {
        const SELECTS: &str = "(sdm) focus ";
        let end = prompt.rfind("(sdm)").unwrap_or(0);
        let text = printable(format!("{}{line}", &prompt[end..]).as_bytes());
        let selects = |said: &Said| said.is_own && said.text.starts_with(SELECTS);
        if text.starts_with(SELECTS) && self.lines.back().is_some_and(selects) {
            self.lines.pop_back();
        }
        self.push(Said { text, is_own: true });
    }

    fn push(&mut self, said: Said) {
        if self.lines.len() == LINES_MAX {
            self.lines.pop_front();
        }
        self.lines.push_back(said);
        self.below = 0;
    }

    /// Shows what is above or below, by so many lines.
    pub(crate) fn scroll(&mut self, up: isize) {
        let last = self.lines.len().saturating_sub(1);
        self.below = self.below.saturating_add_signed(up).min(last);
    }

    /// The lines that are shown where there is room for so many, the last one last.
    pub(crate) fn shown(&self, room: usize) -> impl Iterator<Item = &Said> {
        let end = self.lines.len() - self.below.min(self.lines.len());
        self.lines.range(end.saturating_sub(room)..end)
    }
}
