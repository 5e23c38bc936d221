//! Output of programs, shown once for all tasks that print the same.

use std::time::{Duration, Instant};

use sdm_debug::event::Stream;
use sdm_idset::{IdSet, set_text};
use sdm_view::coalesce::Merged;

/// Time to wait for equal lines of other tasks.
const WAIT: Duration = Duration::from_millis(50);
/// Maximum number of lines that wait.
const LINES_MAX: usize = 1024;
/// Maximum length of a task set before a line, in bytes.
const SET_BYTES_MAX: usize = 40;

/// A piece of output of one stream: a line with its newline, or an unfinished line.
#[derive(Clone, Debug, PartialEq)]
struct Piece {
    stream: Stream,
    text: String,
}

/// Output that is not shown yet.
#[derive(Debug, Default)]
pub(crate) struct Output {
    pieces: Merged<Piece>,
    due: Option<Instant>,
    /// True if lines name their tasks.
    labelled: bool,
}

impl Output {
    /// Creates an empty buffer. With `labelled`, lines name their tasks.
    pub(crate) fn new(labelled: bool) -> Self {
        Self {
            labelled,
            ..Self::default()
        }
    }

    /// Begins to label lines with their tasks, as there are several.
    pub(crate) fn label(&mut self) {
        self.labelled = true;
    }

    /// Adds output of some tasks.
    pub(crate) fn take(&mut self, now: Instant, tasks: &IdSet, stream: Stream, bytes: &[u8]) {
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            let text = String::from_utf8_lossy(line).into_owned();
            self.pieces.push(tasks.clone(), Piece { stream, text });
        }
        if !self.pieces.is_empty() && self.due.is_none() {
            self.due = Some(now + WAIT);
        }
    }

    /// The time at which output is due; `None` if it is due at once or there is none.
    pub(crate) fn due(&self) -> Option<Instant> {
        match self.pieces.len() > LINES_MAX {
            true => None,
            false => self.due,
        }
    }

    /// Output that is due, with its stream; all of it if `all` is set.
    pub(crate) fn poll(&mut self, now: Instant, all: bool) -> Vec<(Stream, String)> {
        let is_due = self.due.is_some_and(|due| now >= due);
        if !all && !is_due && self.pieces.len() <= LINES_MAX {
            return Vec::new();
        }
        self.due = None;
        let labelled = self.labelled;
        let pieces = self.pieces.take().into_iter();
        pieces
            .map(|(tasks, Piece { stream, text })| match labelled {
                true => {
                    let end = if text.ends_with('\n') { "" } else { "\n" };
                    let set = set_text(&tasks, SET_BYTES_MAX);
                    (stream, format!("[{set}] {text}{end}"))
                }
                false => (stream, text),
            })
            .collect()
    }
}
