//! Failures of commands on a task: codes, texts, and their encoding.

use std::fmt;

use bytes::Bytes;
use sdm_core::failure::{RawFailure, codes};

/// The reason why a command failed on a task. The codes are a closed list that is only appended to.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Failure {
    /// The kind of failure; see [`FailureCode`].
    pub code: FailureCode,
    /// The message for users, with subject, problem and place: lower case, no full stop.
    pub text: String,
    /// Advice for the user; empty if there is none.
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

    /// The failure with a hint added.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = hint.into();
        self
    }
}

impl Failure {
    /// The payload of a failed answer, as by [`RawFailure::encode`].
    #[must_use]
    pub fn encode(&self) -> Bytes {
        RawFailure::new(self.code.number(), self.text.as_str())
            .with_hint(self.hint.as_str())
            .encode()
    }

    /// Decodes the payload of a failed answer. Bytes that are no failure give a failure with the code
    /// [`FailureCode::Unknown`]. Too long a text is cut.
    #[must_use]
    pub fn decode(payload: &[u8]) -> Self {
        let RawFailure { code, text, hint } = RawFailure::decode(payload);
        let code = FailureCode::from_number(code);
        Self { code, text, hint }
    }
}

/// Feeds arbitrary bytes to the decoder of failures. Checks that it does not panic, and that each decoded failure
/// survives encoding and decoding.
pub fn fuzz_failure(payload: &[u8]) {
    let failure = Failure::decode(payload);
    assert_eq!(
        Failure::decode(&failure.encode()),
        failure,
        "a decoded failure is within the bounds of the coding"
    );
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
    ($($(#[$doc:meta])* $name:ident = $number:expr, $text:literal;)*) => {
        /// The closed list of failures. It is only appended to, and numbers are never reused. Numbers below 16 belong
        /// to the tree ([`sdm_core::failure::codes`]), all others to the debug protocol.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        #[non_exhaustive]
        pub enum FailureCode {
            $($(#[$doc])* $name,)*
        }

        impl FailureCode {
            /// The number in the wire form.
            #[must_use]
            pub fn number(self) -> u16 {
                match self { $(Self::$name => $number,)* }
            }

            /// The code with this number; [`FailureCode::Unknown`] if there is none.
            #[must_use]
            pub fn from_number(number: u16) -> Self {
                $(if number == $number { return Self::$name; })*
                Self::Unknown
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
    Unknown = codes::UNKNOWN, "unknown";
    /// The command was executed, but its answer is not stored any more.
    AnswerLost = codes::ANSWER_LOST, "answer_lost";
    /// The command was cancelled before it was answered.
    Cancelled = codes::CANCELLED, "cancelled";
    /// A server could not be reached at start-up.
    Unreachable = codes::UNREACHABLE, "unreachable";
    /// The task's server could not decode the command, or a part of the command is invalid.
    BadCommand = codes::BAD_COMMAND, "bad_command";
    /// A limit was exceeded; the text names it.
    Limit = codes::LIMIT, "limit";
    /// The task runs already, by an earlier command that has not been answered.
    AlreadyRunning = 16, "already_running";
    /// The task runs, and the command needs a stopped task.
    Running = 17, "running";
    /// The task has ended or was never started.
    NotRunning = 18, "not_running";
    /// gdb refused the command; the text is gdb's own.
    Gdb = 19, "gdb";
    /// The task's gdb is gone.
    GdbDead = 20, "gdb_dead";
    /// gdb could not be started.
    NoGdb = 21, "no_gdb";
    /// The program exists, but could not be started.
    NoProgram = 22, "no_program";
    /// The process could not be attached to.
    AttachFailed = 23, "attach_failed";
    /// The task could not be stopped; the text says what state it is in.
    NotStoppable = 24, "not_stoppable";
    /// This backend cannot do that.
    Unsupported = 25, "unsupported";
    /// The breakpoint, thread, frame or variable object that the command names does not exist.
    NoSuchThing = 26, "no_such_thing";
    /// gdb did not answer in time.
    TimedOut = 27, "timed_out";
    /// The operating system refused; the text says what.
    System = 28, "system";
    /// The program, Valgrind, or the library of the MPI check was not found on the task's host.
    NotFound = 29, "not_found";
    /// The program has no such source location: no function of the name, no such file, no such line. The text is gdb's
    /// own.
    NoSuchPlace = 30, "no_such_place";
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn failure_codes_have_fixed_numbers() {
        let bytes = Failure::new(FailureCode::NotRunning, "no").encode();
        assert_eq!(&bytes[..], b"\x12\0\x02\0\0\0no\0\0\0\0");
        let known = (0..40).map(FailureCode::from_number);
        let known = known.filter(|code| *code != FailureCode::Unknown);
        assert_eq!(known.count(), 5 + 15);
        for number in 0..40 {
            let code = FailureCode::from_number(number);
            assert!(code == FailureCode::Unknown || code.number() == number);
        }
    }

    #[test]
    fn unknown_failure_code_keeps_the_text() {
        let failure = Failure::decode(b"\xff\xff\x02\0\0\0no\0\0\0\0");
        assert_eq!(failure, Failure::new(FailureCode::Unknown, "no"));
    }

    proptest! {
        #[test]
        fn failure_decodes_to_the_encoded_failure(number in 0u16..40, text in ".{0,200}", hint in ".{0,50}") {
            let code = FailureCode::from_number(number);
            let failure = Failure::new(code, text).with_hint(hint);
            prop_assert_eq!(Failure::decode(&failure.encode()), failure);
        }

        #[test]
        fn failure_decoder_never_panics(payload in proptest::collection::vec(any::<u8>(), 0..200)) {
            fuzz_failure(&payload);
        }
    }
}
