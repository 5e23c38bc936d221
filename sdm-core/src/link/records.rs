//! Noise records: as few as possible, each as full as allowed, sealed and opened in place.

use super::LinkError;
use crate::secure::{Ciphers, TAG_BYTES};

/// Maximum size of a buffer that is kept while it is empty; a larger one is freed.
pub(super) const IDLE_BYTES_MAX: usize = 4 << 10;

/// The length in front of a record, in bytes.
pub(super) const LENGTH_BYTES: usize = 2;
const RECORD_BYTES_MAX: usize = 65_535;
const CONTENTS_BYTES_MAX: usize = RECORD_BYTES_MAX - TAG_BYTES;

pub(super) struct Records {
    ciphers: Box<Ciphers>,
    /// An incomplete record with its length in front. After [`Records::open`] has decrypted the record here, it stays
    /// until [`Records::rest`].
    partial: Vec<u8>,
}

impl Records {
    pub(super) fn new(ciphers: Box<Ciphers>) -> Self {
        Self {
            ciphers,
            partial: Vec::new(),
        }
    }

    #[cfg(test)]
    pub(super) fn held_bytes(&self) -> usize {
        self.partial.capacity()
    }

    /// Seals the bytes of `plain` after its first [`LENGTH_BYTES`], which are room for a length, and appends the
    /// records to `out`. `plain` is empty afterwards; without such bytes nothing is appended.
    pub(super) fn seal(&mut self, plain: &mut Vec<u8>, out: &mut Vec<u8>) {
        if plain.len() <= LENGTH_BYTES {
            plain.clear();
            return;
        }
        if out.is_empty() && plain.len() <= LENGTH_BYTES + CONTENTS_BYTES_MAX {
            // The usual case: the buffer is sealed in place and handed over without a copy.
            std::mem::swap(plain, out);
            self.finish(out, 0);
            return;
        }
        for chunk in plain[LENGTH_BYTES..].chunks(CONTENTS_BYTES_MAX) {
            let start = out.len();
            out.reserve(LENGTH_BYTES + chunk.len() + TAG_BYTES);
            out.extend_from_slice(&[0; LENGTH_BYTES]);
            out.extend_from_slice(chunk);
            self.finish(out, start);
        }
        plain.clear();
    }

    /// Seals the contents of `out` from `start` on as a record; they begin with room for the length.
    fn finish(&mut self, out: &mut Vec<u8>, start: usize) {
        let (length, contents) = out[start..].split_at_mut(LENGTH_BYTES);
        let len = contents.len() + TAG_BYTES;
        let len = u16::try_from(len).expect("at most RECORD_BYTES_MAX");
        length.copy_from_slice(&len.to_le_bytes());
        let tag = self.ciphers.seal(contents);
        out.extend_from_slice(&tag);
    }

    /// True if `input` is exactly one record, and no partial record is buffered.
    pub(super) fn is_one(&self, input: &[u8]) -> bool {
        self.partial.is_empty() && record_end(input) == Some(input.len())
    }

    /// Decrypts `input` in place. It must be one whole record; see [`Records::is_one`].
    pub(super) fn open_one<'a>(&mut self, input: &'a mut [u8]) -> Result<&'a [u8], LinkError> {
        decrypt(&mut self.ciphers, input)
    }

    /// Consumes bytes from the front of `input` until a record is complete, and decrypts it in place. `None` means
    /// that the input is used up. Call [`Records::rest`] before the next one.
    pub(super) fn open<'a, 'input: 'a>(
        &'a mut self,
        input: &mut &'input mut [u8],
    ) -> Result<Option<&'a [u8]>, LinkError> {
        if self.partial.is_empty()
            && let Some(end) = record_end(input)
            && input.len() >= end
        {
            // The usual case.
            let (record, rest) = std::mem::take(input).split_at_mut(end);
            *input = rest;
            return decrypt(&mut self.ciphers, record).map(Some);
        }
        loop {
            let end = record_end(&self.partial).unwrap_or(LENGTH_BYTES);
            let wanted = end - self.partial.len();
            if wanted == 0 {
                break;
            }
            let here = wanted.min(input.len());
            let (front, rest) = std::mem::take(input).split_at_mut(here);
            self.partial.extend_from_slice(front);
            *input = rest;
            if front.len() < wanted {
                return Ok(None);
            }
        }
        decrypt(&mut self.ciphers, &mut self.partial).map(Some)
    }

    /// Releases the record that [`Records::open`] returned last.
    pub(super) fn rest(&mut self) {
        self.partial.clear();
        if self.partial.capacity() > IDLE_BYTES_MAX {
            self.partial = Vec::new();
        }
    }
}

/// Length of the record at the beginning of `bytes`; `None` until its length field is complete.
fn record_end(bytes: &[u8]) -> Option<usize> {
    let prefix = bytes.first_chunk::<LENGTH_BYTES>()?;
    Some(LENGTH_BYTES + usize::from(u16::from_le_bytes(*prefix)))
}

fn decrypt<'a>(ciphers: &mut Ciphers, record: &'a mut [u8]) -> Result<&'a [u8], LinkError> {
    let contents = ciphers.open(&mut record[LENGTH_BYTES..]);
    contents.map_err(|_| LinkError::BadRecord)
}
