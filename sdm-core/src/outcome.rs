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

/// The longest text or hint of a failure, in bytes: a longer one is cut.
pub const FAILURE_TEXT_BYTES_MAX: usize = 4 << 10;

impl Failure {
    /// The payload of a failed answer: `u16` code, `u32` length and text, `u32` length and hint,
    /// all little-endian. Text and hint are cut at [`FAILURE_TEXT_BYTES_MAX`].
    #[must_use]
    pub fn encode(&self) -> Bytes {
        let (text, hint) = (cut(&self.text), cut(&self.hint));
        let mut out = Vec::with_capacity(10 + text.len() + hint.len());
        out.extend_from_slice(&self.code.number().to_le_bytes());
        for part in [text, hint] {
            let len = u32::try_from(part.len()).expect("cut to a few KiB");
            out.extend_from_slice(&len.to_le_bytes());
            out.extend_from_slice(part.as_bytes());
        }
        Bytes::from(out)
    }

    /// Reads the payload of a failed answer. Bytes that are no failure give one that says so, with
    /// the code [`FailureCode::Unknown`]; a text that is too long is cut.
    #[must_use]
    pub fn decode(payload: &[u8]) -> Self {
        Self::read(payload).unwrap_or_else(|| {
            Self::new(
                FailureCode::Unknown,
                format!("failed, with {} bytes that say nothing", payload.len()),
            )
        })
    }

    fn read(payload: &[u8]) -> Option<Self> {
        let (code, rest) = payload.split_first_chunk()?;
        let (text, rest) = read_text(rest)?;
        let (hint, rest) = read_text(rest)?;
        rest.is_empty().then(|| Self {
            code: FailureCode::from_number(u16::from_le_bytes(*code)),
            text: text.to_owned(),
            hint: hint.to_owned(),
        })
    }
}

fn read_text(input: &[u8]) -> Option<(&str, &[u8])> {
    let (len, rest) = input.split_first_chunk()?;
    let len = usize::try_from(u32::from_le_bytes(*len)).ok()?;
    let (text, rest) = rest.split_at_checked(len)?;
    Some((cut(std::str::from_utf8(text).ok()?), rest))
}

fn cut(text: &str) -> &str {
    let mut end = text.len().min(FAILURE_TEXT_BYTES_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// Feeds arbitrary bytes to the decoder of failures: it never panics, and what it gives survives
/// its own coding.
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

impl Outcome {
    /// Everyone who answered without failing, in classes or beyond them.
    #[must_use]
    pub fn answered(&self) -> IdSet {
        let mut set = IdSet::union_all(self.ok.iter().map(|(tasks, _)| tasks));
        set.union_with(&self.others);
        set
    }

    /// Everyone who answered with a failure.
    #[must_use]
    pub fn failed_set(&self) -> IdSet {
        IdSet::union_all(self.failed.iter().map(|(tasks, _)| tasks))
    }

    /// Everyone who did not answer in time.
    #[must_use]
    pub fn missing_set(&self) -> IdSet {
        IdSet::union_all(self.missing.iter().map(|(tasks, _)| tasks))
    }

    /// Everyone whom this outcome speaks of.
    #[must_use]
    pub fn everyone(&self) -> IdSet {
        let mut set = self.answered();
        set.union_with(&self.failed_set());
        set.union_with(&self.missing_set());
        set.union_with(&self.lost);
        set
    }

    /// True where every task answered, none of them with a failure, and every answer is here.
    #[must_use]
    pub fn is_complete_success(&self) -> bool {
        self.failed.is_empty()
            && self.missing.is_empty()
            && self.others.is_empty()
            && self.lost.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_bytes_of_a_failure() {
        let failure = Failure::new(FailureCode::NotRunning, "no").with_hint("run");
        let bytes = failure.encode();
        assert_eq!(&bytes[..], b"\x12\0\x02\0\0\0no\x03\0\0\0run");
        assert_eq!(Failure::decode(&bytes), failure);
    }

    #[test]
    fn a_long_text_is_cut_between_characters() {
        let failure = Failure::new(FailureCode::Gdb, "x".to_owned() + &"é".repeat(4096));
        let back = Failure::decode(&failure.encode());
        assert_eq!(back.text.len(), FAILURE_TEXT_BYTES_MAX - 1);
        assert!(failure.text.starts_with(&back.text));
    }

    #[test]
    fn every_cut_of_a_failure_is_a_failure_that_says_so() {
        let bytes = Failure::new(FailureCode::Gdb, "no symbol").encode();
        for end in 0..bytes.len() {
            let failure = Failure::decode(&bytes[..end]);
            assert_eq!(failure.code, FailureCode::Unknown);
            assert_eq!(
                failure.text,
                format!("failed, with {end} bytes that say nothing")
            );
        }
    }

    #[test]
    fn a_newer_code_keeps_its_text() {
        let failure = Failure::decode(b"\xff\xff\x02\0\0\0no\0\0\0\0");
        assert_eq!(failure, Failure::new(FailureCode::Unknown, "no"));
    }

    #[test]
    fn everyone_is_in_one_of_the_parts() {
        let set = |text: &str| text.parse::<IdSet>().unwrap();
        let mut outcome = Outcome {
            ok: vec![(set("0-3"), Bytes::new()), (set("5"), Bytes::new())],
            ..Outcome::default()
        };
        assert!(outcome.is_complete_success());
        outcome.others = set("6");
        assert!(!outcome.is_complete_success());
        outcome.failed = vec![(set("7"), Failure::new(FailureCode::Gdb, "no"))];
        outcome.missing = vec![(set("8"), "silent".to_owned())];
        outcome.lost = set("9");
        assert_eq!(outcome.answered(), set("0-3,5-6"));
        assert_eq!(outcome.failed_set(), set("7"));
        assert_eq!(outcome.missing_set(), set("8"));
        assert_eq!(outcome.everyone(), set("0-3,5-9"));
    }

    proptest! {
        #[test]
        fn a_failure_comes_back(number in 0u16..40, text in ".{0,200}", hint in ".{0,50}") {
            let code = FailureCode::from_number(number);
            let failure = Failure::new(code, text).with_hint(hint);
            prop_assert_eq!(Failure::decode(&failure.encode()), failure);
        }

        #[test]
        fn any_bytes_are_taken(payload in proptest::collection::vec(any::<u8>(), 0..200)) {
            fuzz_failure(&payload);
        }
    }
}
