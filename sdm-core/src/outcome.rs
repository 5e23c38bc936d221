//! What came of a command over a set of tasks. Partial is normal: there is no `Result` over a set.

use std::fmt;

use bytes::Bytes;
use sdm_idset::IdSet;

/// Why a task could not do a command. The codes are a closed list that is only appended to.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Failure {
    /// Which kind of failure; see [`FailureCode`].
    pub code: FailureCode,
    /// Who, what and where, for a person: lower case, no full stop.
    pub text: String,
    /// What the person can do about it; empty where there is nothing to say.
    pub hint: String,
}

impl Failure {
    /// A failure without a hint.
    pub fn new(code: FailureCode, text: impl Into<String>) -> Self {
        Self {
            code,
            text: text.into(),
            hint: String::new(),
        }
    }

    /// The same failure with a hint.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = hint.into();
        self
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)?;
        if !self.hint.is_empty() {
            write!(f, " ({})", self.hint)?;
        }
        Ok(())
    }
}

macro_rules! failure_codes {
    ($($(#[$doc:meta])* $name:ident = $number:literal, $text:literal;)*) => {
        /// The closed list of failures; only appended to, numbers are never reused.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        #[non_exhaustive]
        pub enum FailureCode {
            $($(#[$doc])* $name,)*
        }

        impl FailureCode {
            /// The number on the wire.
            #[must_use]
            pub fn number(self) -> u16 {
                match self { $(Self::$name => $number,)* }
            }

            /// The code of a number; an unknown one is [`FailureCode::Unknown`].
            #[must_use]
            pub fn from_number(number: u16) -> Self {
                match number { $($number => Self::$name,)* _ => Self::Unknown }
            }

            /// The name used in `--json` and in logs.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }
        }
    };
}

failure_codes! {
    /// A code of a newer member that this one does not know.
    Unknown = 0, "unknown";
    /// The command was done, but its answer is no longer there.
    AnswerLost = 1, "answer_lost";
    /// The command was cancelled before it was answered.
    Cancelled = 2, "cancelled";
    /// A server could not be reached at start-up.
    Unreachable = 3, "unreachable";
    /// The payload could not be understood by the task's server.
    BadCommand = 4, "bad_command";
    /// A bound was reached; the text names it.
    Limit = 5, "limit";
    /// The task already has an open run.
    AlreadyRunning = 16, "already_running";
    /// The task runs, and the command needs it stopped.
    Running = 17, "running";
    /// The task has ended or was never started.
    NotRunning = 18, "not_running";
    /// gdb refused the command; the text is gdb's own.
    Gdb = 19, "gdb";
    /// The task's gdb is gone.
    GdbDead = 20, "gdb_dead";
    /// gdb could not be started.
    NoGdb = 21, "no_gdb";
    /// The program could not be started.
    NoProgram = 22, "no_program";
    /// The process could not be attached to.
    AttachFailed = 23, "attach_failed";
    /// The task could not be stopped; the text says what state it is in.
    NotStoppable = 24, "not_stoppable";
    /// This backend cannot do that.
    Unsupported = 25, "unsupported";
    /// A named thing (breakpoint, thread, frame) does not exist.
    NoSuchThing = 26, "no_such_thing";
    /// gdb did not answer in time.
    TimedOut = 27, "timed_out";
    /// The operating system refused; the text says what.
    System = 28, "system";
}

/// What came of a command over a set of tasks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// Who answered what: one entry per distinct answer.
    pub ok: Vec<(IdSet, Bytes)>,
    /// Who failed, and how: one entry per distinct failure.
    pub failed: Vec<(IdSet, Failure)>,
    /// Tasks whose answers were too many to keep apart.
    pub others: IdSet,
    /// Who did not answer in time, and what is known of why.
    pub missing: Vec<(IdSet, String)>,
    /// Tasks whose server is gone.
    pub lost: IdSet,
}
