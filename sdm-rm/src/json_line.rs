//! Encoding and decoding of messages as JSON lines of bounded length.

use serde::Serialize;
use serde::de::DeserializeOwned;

/// Maximum length of a request, in bytes.
pub const QUESTION_BYTES_MAX: usize = 1 << 20;
/// Maximum length of an answer, in bytes.
pub const ANSWER_BYTES_MAX: usize = 64 << 20;

/// Fault of bytes that are not a message.
#[derive(Debug, thiserror::Error)]
pub enum LineError {
    /// The line has more bytes than allowed.
    #[error("the message is longer than {0} bytes")]
    TooLong(usize),
    /// The line is not JSON, or not of the expected type.
    #[error("the line is not a valid message: {0}")]
    Json(#[from] serde_json::Error),
    /// The other end has closed in the middle of a line, or without one.
    #[error("the peer closed the connection before a complete message arrived")]
    Closed,
}

/// A message as a line.
///
/// # Errors
/// The message cannot be written as JSON, or is too long.
pub fn encode(message: &impl Serialize, bytes_max: usize) -> Result<Vec<u8>, LineError> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    match line.len() > bytes_max {
        true => Err(LineError::TooLong(bytes_max)),
        false => Ok(line),
    }
}

/// The message that `bytes` begin with; `None` while its line is incomplete.
///
/// # Errors
/// The line is too long, or is not a message of this type.
pub fn decode<T: DeserializeOwned>(bytes: &[u8], bytes_max: usize) -> Result<Option<T>, LineError> {
    let end = bytes.iter().position(|byte| *byte == b'\n');
    match end {
        Some(end) if end < bytes_max => Ok(Some(serde_json::from_slice(&bytes[..end])?)),
        None if bytes.len() < bytes_max => Ok(None),
        _ => Err(LineError::TooLong(bytes_max)),
    }
}

/// Fuzz entry: decoding any bytes as a request or as an answer causes no panic.
#[doc(hidden)]
pub fn fuzz_lines(bytes: &[u8]) {
    let question = decode::<crate::Question>(bytes, QUESTION_BYTES_MAX);
    let answer = decode::<crate::Answer>(bytes, ANSWER_BYTES_MAX);
    if let Ok(Some(question)) = question {
        let again = encode(&question, usize::MAX).expect("what was read can be written");
        let again = decode::<crate::Question>(&again, usize::MAX).expect("it is one");
        assert_eq!(again, Some(question));
    }
    drop(answer);
}
