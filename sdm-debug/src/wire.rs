//! The payloads' bytes: postcard, enums only appended to.

use serde::Serialize;
use serde::de::DeserializeOwned;

/// Why a payload could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("payload of {len} bytes is no {what}")]
pub struct PayloadError {
    /// What it should have been.
    pub what: &'static str,
    /// How long it was.
    pub len: usize,
}

/// The bytes of a command, a reply or an event.
#[must_use]
pub fn encode<T: Serialize>(value: &T) -> Vec<u8> {
    postcard::to_allocvec(value).expect("plain data serialises into memory")
}

/// Reads a command, a reply or an event; all the bytes must be used.
///
/// # Errors
/// Bytes that are no `T`, or bytes left over.
pub fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, PayloadError> {
    let what = std::any::type_name::<T>()
        .rsplit("::")
        .next()
        .unwrap_or("value");
    match postcard::take_from_bytes(bytes) {
        Ok((value, [])) => Ok(value),
        _ => Err(PayloadError {
            what,
            len: bytes.len(),
        }),
    }
}
