//! The messages of the session and the lines that were entered.

use std::cell::Cell;
use std::collections::VecDeque;

use sdm_text::printable;

/// Maximum number of lines that are kept.
const LINES_MAX: usize = 2000;

/// The messages of the session and the lines that were entered.
#[derive(Debug, Default)]
pub(crate) struct Console {
    lines: VecDeque<ConsoleLine>,
    /// Number of lines at the end below the displayed ones.
    below: usize,
    /// Index of the last entered line. None before the first one, after scrolling, and once other text than its answer
    /// has followed.
    given: Option<usize>,
    /// True once the answer to the last entered line is complete. An answer longer than the panel is shown from its
    /// beginning.
    is_answered: bool,
    /// Number of lines that fit into the panel in the last frame.
    room: Cell<usize>,
}

/// A line of the console.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ConsoleLine {
    pub(crate) text: String,
    /// True if the user has entered it, by typing or by a key.
    pub(crate) is_own: bool,
}

impl Console {
    pub(crate) fn say(&mut self, text: &str) {
        if self.is_answered {
            self.given = None;
        }
        for line in text.lines() {
            self.push(ConsoleLine {
                text: printable(line.as_bytes()).replace('\t', "    "),
                is_own: false,
            });
        }
    }

    /// Adds an entered line. Of consecutive selections only the last one is kept.
    pub(crate) fn echo(&mut self, prompt: &str, line: &str) {
        const SELECTS: &str = "(sdm) focus ";
        let end = prompt.rfind("(sdm)").unwrap_or(0);
        let text = printable(format!("{}{line}", &prompt[end..]).as_bytes());
        let selects = |said: &ConsoleLine| said.is_own && said.text.starts_with(SELECTS);
        if text.starts_with(SELECTS) && self.lines.back().is_some_and(selects) {
            self.lines.pop_back();
        }
        self.push(ConsoleLine { text, is_own: true });
        self.given = Some(self.lines.len() - 1);
        self.is_answered = false;
    }

    /// Marks the answer to the last line as complete.
    pub(crate) fn end_answer(&mut self) {
        self.is_answered = true;
    }

    fn push(&mut self, said: ConsoleLine) {
        if self.lines.len() == LINES_MAX {
            self.lines.pop_front();
            self.given = self.given.and_then(|at| at.checked_sub(1));
        }
        self.lines.push_back(said);
        self.below = 0;
    }

    /// Scrolls up by a number of lines, or down if it is negative.
    pub(crate) fn scroll(&mut self, up: isize) {
        let last = self.lines.len().saturating_sub(1);
        self.below = self.hidden_below(self.room.get());
        self.below = self.below.saturating_add_signed(up).min(last);
        self.given = None;
    }

    /// The lines that fit into `room`, in order, and the number of lines below them.
    pub(crate) fn shown(&self, room: usize) -> (impl Iterator<Item = &ConsoleLine>, usize) {
        self.room.set(room);
        let below = self.hidden_below(room);
        // One line announces the lines below.
        let room = room.saturating_sub(usize::from(below > 0));
        let end = self.lines.len() - below;
        (self.lines.range(end.saturating_sub(room)..end), below)
    }

    fn hidden_below(&self, room: usize) -> usize {
        let answer = self.given.filter(|_| self.is_answered);
        let length = answer.map_or(0, |at| self.lines.len() - at);
        match length > room && room > 1 {
            true => length - (room - 1),
            false => self.below.min(self.lines.len()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(console: &Console, room: usize) -> (Vec<&str>, usize) {
        let (lines, below) = console.shown(room);
        (lines.map(|it| it.text.as_str()).collect(), below)
    }

    #[test]
    fn long_answer_is_shown_from_its_beginning() {
        let mut console = Console::default();
        console.say("before");
        console.echo("(sdm) ", "diagnose");
        console.say("1\n2\n3\n4");
        assert_eq!(shown(&console, 3), (vec!["2", "3", "4"], 0), "it goes on");
        console.end_answer();
        assert_eq!(shown(&console, 3), (vec!["(sdm) diagnose", "1"], 3));
        assert_eq!(shown(&console, 9).1, 0, "there is room");
        assert_eq!(shown(&console, 3), (vec!["(sdm) diagnose", "1"], 3));
        console.scroll(-1);
        assert_eq!(shown(&console, 3), (vec!["1", "2"], 2));
        console.scroll(-9);
        assert_eq!(shown(&console, 3), (vec!["2", "3", "4"], 0));
        console.echo("(sdm) ", "help");
        console.say("1\n2\n3\n4");
        console.end_answer();
        console.say("rank 0: exited normally");
        let news = vec!["3", "4", "rank 0: exited normally"];
        assert_eq!(shown(&console, 3), (news, 0), "news are at the end");
    }
}
