//! Serde for sets: the text form in human-readable formats, the wire form as one byte string in binary
//! ones.

use std::cell::Cell;
use std::fmt;

use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::{IdSet, TEXT_BYTES_MAX, TaskId};

/// Maximum memory of all decoded sets of one message together, in bytes. A dozen encoded bytes can stand for
/// 2 MiB. A message full of disjoint sets that cover all ids stays below 80 MiB.
pub const SETS_BYTES_MAX: u64 = 128 << 20;

thread_local! {
    /// Number of bytes of memory that the sets still to be read within [`bounded`] may own.
    static BYTES_LEFT: Cell<u64> = const { Cell::new(u64::MAX) };
}

/// Runs `read` with a limit on the memory of all sets that serde reads on this thread: `bytes_max` bytes
/// together. A set beyond the limit is an error of the reader.
///
/// A dozen bytes can encode a set of 2 MiB, and serde passes no state from a list to its elements. So a
/// caller that reads a value with many sets from a peer limits them here.
pub fn bounded<T>(bytes_max: u64, read: impl FnOnce() -> T) -> T {
    /// Restores the outer limit on drop, also if `read` panics.
    struct Restored(u64);
    impl Drop for Restored {
        fn drop(&mut self) {
            BYTES_LEFT.set(self.0);
        }
    }
    let around = BYTES_LEFT.get();
    let _restored = Restored(around);
    BYTES_LEFT.set(bytes_max.min(around));
    read()
}

impl Serialize for TaskId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for TaskId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        u32::deserialize(deserializer).map(Self)
    }
}

impl Serialize for IdSet {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() {
            return serializer.collect_str(self);
        }
        let mut bytes = Vec::new();
        self.encode(0, &mut bytes);
        serializer.serialize_bytes(&bytes)
    }
}

impl<'de> Deserialize<'de> for IdSet {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let set = if deserializer.is_human_readable() {
            deserializer.deserialize_str(Text)?
        } else {
            deserializer.deserialize_bytes(Wire)?
        };
        let left = BYTES_LEFT.get().checked_sub(set.memory_bytes());
        BYTES_LEFT.set(left.ok_or_else(|| {
            D::Error::custom("the sets of ids exceed the memory limit of a message")
        })?);
        Ok(set)
    }
}

struct Text;

impl Visitor<'_> for Text {
    type Value = IdSet;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a set of ids as text of at most {TEXT_BYTES_MAX} bytes")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<IdSet, E> {
        text.parse().map_err(E::custom)
    }
}

struct Wire;

impl Visitor<'_> for Wire {
    type Value = IdSet;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a set of ids in its wire form")
    }

    fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<IdSet, E> {
        let (set, used) = IdSet::decode(0, bytes).map_err(E::custom)?;
        if used < bytes.len() {
            return Err(E::custom("bytes follow the end of a set"));
        }
        Ok(set)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(text: &str) -> IdSet {
        text.parse().unwrap()
    }

    #[test]
    fn json_encodes_text_and_postcard_encodes_bytes() {
        let sets = ["", "7", "0-62,64-999999", "1-999999/2", "3,9-12,77"].map(set);
        for set in sets {
            let text = serde_json::to_string(&set).unwrap();
            assert_eq!(text, format!("\"{set}\""));
            assert_eq!(serde_json::from_str::<IdSet>(&text).unwrap(), set);
            let mut wire = Vec::new();
            set.encode(0, &mut wire);
            let bytes = postcard::to_stdvec(&set).unwrap();
            assert_eq!(bytes[1..], wire, "a length, then the wire form");
            assert_eq!(postcard::from_bytes::<IdSet>(&bytes).unwrap(), set);
        }
        assert_eq!(serde_json::to_string(&TaskId(7)).unwrap(), "7");
        assert_eq!(postcard::from_bytes::<TaskId>(&[7]).unwrap(), TaskId(7));
    }

    #[test]
    fn malformed_set_is_refused() {
        for text in ["\"3-1\"", "\"1 2\"", "7", "null"] {
            assert!(serde_json::from_str::<IdSet>(text).is_err(), "{text}");
        }
        // No tag, an unknown tag, a byte behind the empty set, a set that is cut off.
        for bytes in [&[0][..], &[1, 9], &[2, 0, 0], &[1, 1]] {
            assert!(postcard::from_bytes::<IdSet>(bytes).is_err(), "{bytes:?}");
        }
    }

    #[test]
    fn memory_of_all_sets_in_a_value_is_bounded() {
        let wide = vec![set("0-99998/2"); 4];
        let bytes = postcard::to_stdvec(&wide).unwrap();
        assert!(bytes.len() < 60, "{} bytes", bytes.len());
        let read = || postcard::from_bytes::<Vec<IdSet>>(&bytes);
        let enough = 4 * wide[0].memory_bytes();
        assert_eq!(bounded(enough, read).unwrap(), wide);
        assert!(bounded(enough - 1, read).is_err());
        // A bound within a bound is no way around it, and each ends with its reader.
        assert!(bounded(enough - 1, || bounded(enough, read)).is_err());
        assert_eq!(read().unwrap(), wide);
    }
}
