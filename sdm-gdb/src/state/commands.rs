//! The MI commands sent to gdb, and the lifetime of gdb itself.

use std::collections::BTreeMap;
use std::time::Instant;

use sdm_debug::Failure;

use super::console_capture::CapturedOutput;
use sdm_mi::Results;

/// The MI commands sent to one gdb.
#[derive(Default)]
pub(crate) struct Commands {
    /// Commands sent, until their answers are taken, by token.
    pub(crate) pending: BTreeMap<u64, Pending>,
    /// Token of the last command; 0 before the first.
    last_token: u64,
    /// gdb's error output since its last answer, at most `COMPLAINT_BYTES_MAX` bytes.
    pub(crate) complaint: String,
    /// gdb's language at the selected frame; `None` if it may have changed.
    pub(crate) language: Option<String>,
    /// The file of gdb's log, once it was on.
    pub(crate) log: Option<OpenedFile>,
}

/// A file of the user's that gdb writes.
#[derive(Clone)]
pub(crate) struct OpenedFile {
    /// The path at which gdb has opened it.
    pub(crate) place: String,
    /// Its name, as the user knows it.
    pub(crate) shown: String,
}

/// Beginnings of command lines that leave gdb's language unchanged.
const WITHOUT_SELECTION: [&str; 7] = [
    "-break-",
    "-data-read-memory-bytes ",
    "-interpreter-exec console \"output",
    "-interpreter-exec console \"print ",
    "-interpreter-exec console \"show ",
    "-interpreter-exec console \"whatis ",
    "-interpreter-exec console \"with print sdm-references on -- output",
];

/// An MI command that was sent.
pub(crate) struct Pending {
    /// Time at which gdb is interrupted because of the command. After that interrupt, the time at which the command
    /// fails.
    pub(crate) deadline: Instant,
    /// Number of the background task that has sent the command; `None` for an operation.
    pub(crate) work: Option<u64>,
    /// Whether gdb was already interrupted at the command.
    pub(crate) patience: InterruptState,
    /// State of the command's answer.
    pub(crate) answer: AnswerState,
    /// gdb's output since the command; `None` if no operation captures it.
    pub(crate) printed: Option<CapturedOutput>,
}

/// Whether gdb has already been interrupted at a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InterruptState {
    /// gdb has time until the deadline, and is interrupted then.
    Waiting,
    /// gdb was interrupted at the first deadline; the command fails at the next one.
    Interrupted,
}

/// State of the answer to a command.
#[derive(Debug)]
pub(crate) enum AnswerState {
    /// An operation waits for the answer.
    Awaited,
    /// The answer is no longer wanted.
    Abandoned,
    /// The answer has come, and was not taken yet.
    Here(Result<Results, Failure>),
}

/// Whether gdb is still needed.
#[derive(Debug, Default)]
pub(crate) enum GdbLife {
    /// gdb's end would be unexpected.
    #[default]
    Wanted,
    /// gdb is to end: its exit is expected.
    Closing,
    /// gdb has ended for this reason: nothing more is sent to it.
    Gone(Failure),
}

impl Commands {
    /// The token for the next command, from 1.
    pub(crate) fn next_token(&mut self) -> u64 {
        self.last_token += 1;
        self.last_token
    }

    /// Discards the known language if a sent line may change it.
    pub(crate) fn sent(&mut self, line: &str) {
        if !WITHOUT_SELECTION.iter().any(|it| line.starts_with(it)) {
            self.language = None;
        }
    }

    /// True while gdb executes a command that no operation waits for.
    pub(crate) fn is_clearing(&self) -> bool {
        let mut pending = self.pending.values();
        pending.any(|it| matches!(it.answer, AnswerState::Abandoned))
    }

    /// Earliest deadline of the open commands; `None` if none is open.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        let open = self.pending.values().filter(|it| it.is_open());
        open.map(|it| it.deadline).min()
    }
}

impl Pending {
    /// True while gdb has not answered the command.
    pub(crate) fn is_open(&self) -> bool {
        !matches!(self.answer, AnswerState::Here(_))
    }
}

impl GdbLife {
    /// Records that gdb is to end.
    pub(crate) fn close(&mut self) {
        if matches!(self, Self::Wanted) {
            *self = Self::Closing;
        }
    }

    /// True if gdb's end is expected, or has happened.
    pub(crate) fn is_closing(&self) -> bool {
        !matches!(self, Self::Wanted)
    }
}
