//! The payload of a failed answer: a code, a text and a hint. The tree has a few codes of its own; the carried protocol
//! defines the others.

use bytes::Bytes;

/// The numbers of the tree's own failures. The list is only appended to; 16 and above belong to the protocol carried.
pub mod codes {
    /// A code of a newer member that this one does not know.
    pub const UNKNOWN: u16 = 0;
    /// The command was executed, but its answer is not stored any more.
    pub const ANSWER_LOST: u16 = 1;
    /// The command was cancelled before it was answered.
    pub const CANCELLED: u16 = 2;
    /// A server could not be reached at start-up.
    pub const UNREACHABLE: u16 = 3;
    /// The payload could not be understood by the task's server.
    pub const BAD_COMMAND: u16 = 4;
    /// A bound was reached; the text names it.
    pub const LIMIT: u16 = 5;
}

/// The longest text or hint of a failure, in bytes: a longer one is cut.
pub const FAILURE_TEXT_BYTES_MAX: usize = 4 << 10;

/// A failed answer in the form in which the tree carries it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct RawFailure {
    /// Code of the failure: one of [`codes`], or a code of the carried protocol.
    pub code: u16,
    /// Message for the user, with the subject, the error and the place: lower case, no full stop.
    pub text: String,
    /// Advice for the user; empty if there is none.
    pub hint: String,
}

impl RawFailure {
    /// A failure without a hint.
    pub fn new(code: u16, text: impl Into<String>) -> Self {
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

    /// Encodes the failure: `u16` code, `u32` length and text, `u32` length and hint, all little-endian. Text and hint
    /// are cut at [`FAILURE_TEXT_BYTES_MAX`].
    #[must_use]
    pub fn encode(&self) -> Bytes {
        let (text, hint) = (cut(&self.text), cut(&self.hint));
        let mut out = Vec::with_capacity(10 + text.len() + hint.len());
        out.extend_from_slice(&self.code.to_le_bytes());
        for part in [text, hint] {
            let len = u32::try_from(part.len()).expect("cut to a few KiB");
            out.extend_from_slice(&len.to_le_bytes());
            out.extend_from_slice(part.as_bytes());
        }
        Bytes::from(out)
    }

    /// Decodes the payload of a failed answer. Malformed bytes give a failure with the code [`codes::UNKNOWN`] and a
    /// text about the malformed payload. A text that is too long is cut.
    #[must_use]
    pub fn decode(payload: &[u8]) -> Self {
        Self::read(payload).unwrap_or_else(|| {
            Self::new(
                codes::UNKNOWN,
                format!(
                    "the command failed, and the reason ({} bytes) cannot be decoded",
                    payload.len()
                ),
            )
        })
    }

    fn read(payload: &[u8]) -> Option<Self> {
        let (code, rest) = payload.split_first_chunk()?;
        let (text, rest) = read_text(rest)?;
        let (hint, rest) = read_text(rest)?;
        rest.is_empty().then(|| Self {
            code: u16::from_le_bytes(*code),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failure_has_its_wire_bytes() {
        let failure = RawFailure::new(18, "no").with_hint("run");
        let bytes = failure.encode();
        assert_eq!(&bytes[..], b"\x12\0\x02\0\0\0no\x03\0\0\0run");
        assert_eq!(RawFailure::decode(&bytes), failure);
    }

    #[test]
    fn a_long_text_is_cut_between_characters() {
        let failure = RawFailure::new(19, "x".to_owned() + &"é".repeat(4096));
        let back = RawFailure::decode(&failure.encode());
        assert_eq!(back.text.len(), FAILURE_TEXT_BYTES_MAX - 1);
        assert!(failure.text.starts_with(&back.text));
    }

    #[test]
    fn truncated_failure_decodes_as_unknown_failure() {
        let bytes = RawFailure::new(19, "no symbol").encode();
        for end in 0..bytes.len() {
            let failure = RawFailure::decode(&bytes[..end]);
            assert_eq!(failure.code, codes::UNKNOWN);
            assert_eq!(
                failure.text,
                format!("the command failed, and the reason ({end} bytes) cannot be decoded")
            );
        }
    }
}
