//! Exceptions that end a Python program, parsed from the output of its interpreter.

use std::time::Duration;

use sdm_debug::event::Stream;
use sdm_idset::IdSet;

use crate::render::printable;

/// The line before the frames of an exception.
const HEAD: &[u8] = b"Traceback (most recent call last):";
/// Maximum length of an exception's text, in bytes.
const TEXT_BYTES_MAX: usize = 400;

/// An exception that has ended a program.
#[derive(Clone, Debug)]
pub(super) struct Exception {
    /// Time since the session began.
    pub(super) at: Duration,
    /// All tasks that have printed it.
    pub(super) tasks: IdSet,
    /// The text of the exception, for the user.
    pub(super) what: String,
}

/// The first exception that the tasks' interpreters have printed.
#[derive(Clone, Debug, Default)]
pub(super) struct Exceptions {
    /// Tasks that print the frames of an exception at present.
    printing: IdSet,
    /// The first exception of all tasks; None if there is none.
    pub(super) first: Option<Exception>,
}

impl Exceptions {
    /// Reads a line of output.
    pub(super) fn read(&mut self, at: Duration, tasks: &IdSet, stream: Stream, line: &[u8]) {
        if stream != Stream::Stderr {
            return;
        }
        if line == HEAD {
            self.printing.union_with(tasks);
            return;
        }
        let tasks = self.printing.intersection(tasks);
        if tasks.is_empty() || line.starts_with(b" ") {
            return;
        }
        self.printing.subtract(&tasks);
        let text = printable(&line[..line.len().min(TEXT_BYTES_MAX)]);
        let what = format!("Python error: {text}");
        match &mut self.first {
            Some(first) if first.what == what => first.tasks.union_with(&tasks),
            Some(_) => {}
            None => self.first = Some(Exception { at, tasks, what }),
        }
    }
}
