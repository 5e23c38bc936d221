//! Noise records: as few as possible, each as full as it may be.

use snow::TransportState;

use super::LinkError;

/// A buffer above this size is given back when it has nothing to hold.
pub(super) const IDLE_BYTES_MAX: usize = 4 << 10;

/// The length in front of a record, in bytes.
const LENGTH_BYTES: usize = 2;
const TAG_BYTES: usize = 16;
const RECORD_BYTES_MAX: usize = 65_535;
const CONTENTS_BYTES_MAX: usize = RECORD_BYTES_MAX - TAG_BYTES;

pub(super) struct Records {
    noise: Box<TransportState>,
    /// A record that is not whole yet, its length in front.
    partial: Vec<u8>,
    /// The contents of the record opened last, and room for its tag.
    contents: Vec<u8>,
}

impl Records {
    pub(super) fn new(noise: Box<TransportState>) -> Self {
        Self {
            noise,
            partial: Vec::new(),
            contents: Vec::new(),
        }
    }

    #[cfg(test)]
    pub(super) fn held_bytes(&self) -> usize {
        self.partial.capacity() + self.contents.capacity()
    }

    /// Keeps no large buffer when there is nothing more to open.
    pub(super) fn rest(&mut self) {
        if self.contents.capacity() > IDLE_BYTES_MAX {
            self.contents = Vec::new();
        }
    }

    /// Appends `contents` in records; nothing where it is empty.
    pub(super) fn seal(&mut self, contents: &[u8], out: &mut Vec<u8>) {
        for chunk in contents.chunks(CONTENTS_BYTES_MAX) {
            let len = chunk.len() + TAG_BYTES;
            let prefix = u16::try_from(len).expect("at most RECORD_BYTES_MAX");
            out.extend_from_slice(&prefix.to_le_bytes());
            let start = out.len();
            out.resize(start + len, 0);
            self.noise
                .write_message(chunk, &mut out[start..])
                .expect("the record has room, and 2^64 records are never sent");
        }
    }

    /// Takes bytes off the front of `input` until a record is whole, and opens it. `None`: the
    /// input is used up.
    pub(super) fn open(&mut self, input: &mut &[u8]) -> Result<Option<&[u8]>, LinkError> {
        if self.partial.is_empty()
            && let Some(end) = record_end(input)
            && input.len() >= end
        {
            // The usual case: opened where it lies.
            let (record, rest) = input.split_at(end);
            *input = rest;
            return decrypt(&mut self.noise, record, &mut self.contents).map(Some);
        }
        loop {
            let end = record_end(&self.partial).unwrap_or(LENGTH_BYTES);
            let wanted = end - self.partial.len();
            if wanted == 0 {
                break;
            }
            let (front, rest) = input.split_at(wanted.min(input.len()));
            self.partial.extend_from_slice(front);
            *input = rest;
            if front.len() < wanted {
                return Ok(None);
            }
        }
        let contents = decrypt(&mut self.noise, &self.partial, &mut self.contents);
        self.partial.clear();
        if self.partial.capacity() > IDLE_BYTES_MAX {
            self.partial = Vec::new();
        }
        contents.map(Some)
    }
}

/// Where the record ends that `bytes` begins with, as soon as its length is there.
fn record_end(bytes: &[u8]) -> Option<usize> {
    let prefix = bytes.first_chunk::<LENGTH_BYTES>()?;
    Some(LENGTH_BYTES + usize::from(u16::from_le_bytes(*prefix)))
}

fn decrypt<'a>(
    noise: &mut TransportState,
    record: &[u8],
    contents: &'a mut Vec<u8>,
) -> Result<&'a [u8], LinkError> {
    let record = &record[LENGTH_BYTES..];
    // Room for the tag too: the cipher works in place and would allocate otherwise.
    contents.resize(record.len(), 0);
    let len = noise
        .read_message(record, contents)
        .map_err(|_| LinkError::BadRecord)?;
    Ok(&contents[..len])
}
