//! Encoding of commands, replies and events with postcard. Variants are only appended to their enums.

use sdm_core::limits::{PAYLOAD_BYTES_MAX, SETS_BYTES_MAX};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::{Command, Event, Reply};

/// The error for a payload that could not be decoded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a message of {len} bytes is not a valid {what}")]
pub struct PayloadError {
    /// The name of the expected type, such as `Reply`.
    pub what: &'static str,
    /// Length of the payload, in bytes.
    pub len: usize,
}

/// Initial buffer size that fits most payloads, so that the buffer does not grow step by step.
const USUAL_BYTES: usize = 256;

/// Encodes a command, a reply or an event.
#[must_use]
pub fn encode<T: Serialize>(value: &T) -> Vec<u8> {
    postcard::to_extend(value, Vec::with_capacity(USUAL_BYTES))
        .expect("plain data serialises into memory")
}

/// Decodes a command, a reply or an event. All the bytes must be used.
///
/// # Errors
/// [`PayloadError`]: the bytes do not form a `T`, bytes are left over, the payload is too long, or its sets need more
/// than [`SETS_BYTES_MAX`] in total.
pub fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, PayloadError> {
    let read = || postcard::take_from_bytes(bytes);
    if bytes.len() <= PAYLOAD_BYTES_MAX
        && let Ok((value, [])) = sdm_idset::bounded(SETS_BYTES_MAX, read)
    {
        return Ok(value);
    }
    let name = std::any::type_name::<T>();
    Err(PayloadError {
        what: name.rsplit("::").next().unwrap_or("value"),
        len: bytes.len(),
    })
}

/// Feeds arbitrary bytes to the decoders of commands, replies and events. Checks that none panics, and that each
/// decoded value survives encoding and decoding.
pub fn fuzz_payload(bytes: &[u8]) {
    fuzz_as::<Command>(bytes);
    fuzz_as::<Reply>(bytes);
    fuzz_as::<Event>(bytes);
}

fn fuzz_as<T: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug>(bytes: &[u8]) {
    if let Ok(value) = decode::<T>(bytes) {
        let again = decode::<T>(&encode(&value));
        assert_eq!(again.as_ref(), Ok(&value), "written and read again alike");
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::reply::Value;

    #[test]
    fn payload_is_decoded_completely_or_refused() {
        let value = Value {
            text: "42".to_owned(),
            cut: Some((9, 7)),
        };
        let reply = Reply::Value(value);
        let mut bytes = encode(&reply);
        assert_eq!(bytes, [10, 2, b'4', b'2', 1, 9, 7]);
        assert_eq!(decode(&bytes), Ok(reply));
        for end in 0..bytes.len() {
            let error = decode::<Reply>(&bytes[..end]).unwrap_err();
            assert_eq!(
                error.to_string(),
                format!("a message of {end} bytes is not a valid Reply")
            );
        }
        bytes.push(0);
        assert!(decode::<Reply>(&bytes).is_err());
    }

    #[test]
    fn payload_beyond_its_bound_is_refused() {
        let text = "x".repeat(PAYLOAD_BYTES_MAX);
        assert!(decode::<Reply>(&encode(&Reply::Text(text))).is_err());
    }

    proptest! {
        #[test]
        fn payload_decoder_never_panics(
            kind in 0u8..64,
            rest in proptest::collection::vec(prop_oneof![0u8..4, any::<u8>()], 0..60),
        ) {
            let mut bytes = vec![kind];
            bytes.extend(rest);
            fuzz_payload(&bytes);
        }
    }
}
