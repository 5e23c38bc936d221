//! Encoding of merged payloads: numbers and strings as on the links, sets in their wire form.

use sdm_core::aggregate::Rejected;
use sdm_core::codec::{self, DecodeError};
use sdm_idset::{IdSet, write_number};

/// First byte of a merged payload. As the first byte of a reply it would be a variant number beyond all kinds of
/// reply.
pub(super) const MERGED: u8 = 0xfe;

/// Tags of a set in a payload: the empty set, an encoded set, or all sources of the payload.
const SET_NONE: u8 = 0;
const SET_GIVEN: u8 = 1;
const SET_ALL: u8 = 2;

/// True if the payload is a merged one.
pub(super) fn is_merged(payload: &[u8]) -> bool {
    payload.first() == Some(&MERGED)
}

/// The number of the rule that produced a merged payload.
pub(super) fn rule_of(payload: &[u8]) -> Result<u16, Rejected> {
    let mut reader = codec::Reader::over(payload);
    let is_merged = reader.u8(WHAT).map_err(broken)? == MERGED;
    let number = reader.u16(WHAT).map_err(broken)?;
    is_merged
        .then_some(number)
        .ok_or(Rejected("the bytes are not a merged answer"))
}

pub(super) struct Writer {
    pub(super) out: Vec<u8>,
}

impl Writer {
    /// Begins the merged payload of a rule.
    pub(super) fn new(rule: u16) -> Self {
        let mut writer = Self { out: vec![MERGED] };
        writer.number(rule.into());
        writer
    }

    pub(super) fn number(&mut self, number: u64) {
        write_number(number, |byte| self.out.push(byte));
    }

    pub(super) fn size(&mut self, size: usize) {
        self.number(size as u64);
    }

    pub(super) fn text(&mut self, text: &str) {
        self.size(text.len());
        self.out.extend_from_slice(text.as_bytes());
    }

    pub(super) fn fixed(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
    }

    pub(super) fn set(&mut self, set: &IdSet) {
        if set.is_empty() {
            return self.out.push(SET_NONE);
        }
        self.out.push(SET_GIVEN);
        set.encode(0, &mut self.out);
    }

    /// Writes the mark for all sources of the payload, in place of a set for which there is no room.
    pub(super) fn all_sources(&mut self) {
        self.out.push(SET_ALL);
    }
}

/// A reader of merged payloads. Its errors say in which way the bytes are not a merged payload. The memory of the sets
/// has the same limit as in a message.
pub(super) struct Reader<'a> {
    inner: codec::Reader<'a>,
    sources: &'a IdSet,
}

/// Name of the decoded object in errors.
const WHAT: &str = "a merged payload";

fn broken(error: DecodeError) -> Rejected {
    Rejected(match error {
        DecodeError::MissingData { .. } => "the merged answer ends early",
        DecodeError::TrailingData { .. } => "bytes follow the end of the merged answer",
        DecodeError::TooLarge { .. } => "the merged answer exceeds its size limit",
        DecodeError::Unexpected { .. } => "the merged answer has an invalid value",
    })
}

impl<'a> Reader<'a> {
    /// Begins the reading of a merged payload of a rule.
    pub(super) fn new(rule: u16, payload: &'a [u8], sources: &'a IdSet) -> Result<Self, Rejected> {
        let inner = codec::Reader::over(payload);
        let mut reader = Self { inner, sources };
        if reader.byte()? != MERGED || reader.number()? != u64::from(rule) {
            return Err(Rejected(
                "the answer was merged by another rule than that of the command",
            ));
        }
        Ok(reader)
    }

    pub(super) fn byte(&mut self) -> Result<u8, Rejected> {
        self.inner.u8(WHAT).map_err(broken)
    }

    pub(super) fn number(&mut self) -> Result<u64, Rejected> {
        self.inner.u64(WHAT).map_err(broken)
    }

    /// Reads a count of items that take at least one byte each. The count cannot exceed the remaining bytes.
    pub(super) fn count(&mut self) -> Result<usize, Rejected> {
        self.inner.count(WHAT, usize::MAX).map_err(broken)
    }

    /// Reads bytes, preceded by their length.
    pub(super) fn bytes(&mut self) -> Result<&'a [u8], Rejected> {
        self.inner.slice(WHAT, usize::MAX).map_err(broken)
    }

    pub(super) fn text(&mut self) -> Result<&'a str, Rejected> {
        self.inner.text(WHAT, usize::MAX).map_err(broken)
    }

    pub(super) fn fixed<const N: usize>(&mut self) -> Result<[u8; N], Rejected> {
        let mut bytes = [0; N];
        for byte in &mut bytes {
            *byte = self.byte()?;
        }
        Ok(bytes)
    }

    /// Reads a set, which must be a subset of the payload's sources.
    pub(super) fn set(&mut self) -> Result<IdSet, Rejected> {
        match self.byte()? {
            SET_NONE => Ok(IdSet::new()),
            SET_ALL => self.inner.copied_set(self.sources, WHAT).map_err(broken),
            SET_GIVEN => {
                let set = self.inner.set_from(0, WHAT).map_err(broken)?;
                let is_within = set.is_subset(self.sources);
                is_within.then_some(set).ok_or(Rejected(
                    "a set has tasks to which the command was not sent",
                ))
            }
            _ => Err(Rejected("a set of tasks has an unknown encoding")),
        }
    }

    /// Checks that everything was read.
    pub(super) fn end(self) -> Result<(), Rejected> {
        self.inner.finish(WHAT).map_err(broken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sdm_core::limits::SETS_BYTES_MAX;

    #[test]
    fn repeated_full_set_counts_against_the_memory_bound() {
        // Every other id: as large in memory as a set can be for its ids.
        let sources: IdSet = "0-999998/2".parse().expect("a set");
        let fitting = usize::try_from(SETS_BYTES_MAX / sources.memory_bytes()).expect("a count");
        let mut writer = Writer::new(1);
        for _ in 0..=fitting {
            writer.all_sources();
        }
        assert!(writer.out.len() < 4096, "{} bytes", writer.out.len());
        let mut reader = Reader::new(1, &writer.out, &sources).expect("a merged payload");
        for _ in 0..fitting {
            assert!(reader.set().is_ok_and(|set| set == sources));
        }
        assert!(reader.set().is_err());
    }
}
