//! What the PMIx servers of several nodes say to one another, in [`crate::wire::HostLetter`]s: a question has an answer with the
//! letter's number.

use std::ffi::CString;

use sdm_idset::IdSet;
use serde::{Deserialize, Serialize};

use crate::wire::{HostTable, LETTER_BYTES_MAX};

/// The types of the library whose values hold no pointers: `bool` to `status` but for strings, ranks and states.
const PLAIN_KINDS: [std::ops::RangeInclusive<u16>; 4] = [1..=2, 4..=20, 32..=37, 40..=40];

/// A value that a process has published, which owns all that it has.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Kept {
    /// A string.
    Text(CString),
    /// Bytes of any kind.
    Bytes(#[serde(with = "serde_bytes")] Vec<u8>),
    /// A type of the library without pointers, and what is in it.
    Plain(u16, [u64; 3]),
}

impl Kept {
    /// True for a type whose values hold no pointers.
    #[must_use]
    pub fn is_plain(kind: u16) -> bool {
        PLAIN_KINDS.iter().any(|it| it.contains(&kind))
    }
}

/// Something that is published.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// The rank that has published it.
    pub owner: u32,
    /// Its name.
    pub key: String,
    /// What it is.
    pub value: Kept,
}

/// What one node asks another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Question {
    /// What a rank has put, from this byte on.
    Modex {
        /// The rank.
        rank: u32,
        /// Where the answer is to begin, in bytes.
        offset: u64,
    },
    /// To keep these for all.
    Publish(Vec<Entry>),
    /// What is published by these names.
    LookUp {
        /// The names.
        keys: Vec<String>,
        /// True where the answer may wait until all are there.
        waits: bool,
    },
    /// To keep what a rank has published no longer: what has these names, or all where there are none.
    Unpublish {
        /// The rank.
        owner: u32,
        /// The names.
        keys: Vec<String>,
    },
    /// The node's processes.
    Processes,
    /// To know of a job that is about to be started at the asking node.
    Know(Offspring),
}

/// A job that a process has started (`MPI_Comm_spawn`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Offspring {
    /// Its name among the jobs of all PMIx servers.
    pub namespace: String,
    /// The session's task that its rank 0 is; those behind it follow.
    pub first: u32,
    /// How many processes it has.
    pub count: u32,
    /// The node that they run on, by its place among the nodes of the first job.
    pub node: u32,
    /// The task that has started it.
    pub parent: u32,
}

impl Offspring {
    /// Its tasks.
    #[must_use]
    pub fn tasks(&self) -> IdSet {
        match self.first.checked_add(self.count) {
            Some(end) if end > self.first => IdSet::from_range(self.first..=end - 1),
            _ => IdSet::new(),
        }
    }

    /// Whether a task is one of its.
    #[must_use]
    pub fn has(&self, task: u32) -> bool {
        task.checked_sub(self.first)
            .is_some_and(|rank| rank < self.count)
    }
}

/// What it is told.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Reply {
    /// A part of what a rank has put.
    Modex {
        /// The library's status: 0 where all is well.
        status: i32,
        /// Bytes in all.
        total: u64,
        /// Where the part begins, in bytes.
        offset: u64,
        /// The part.
        #[serde(with = "serde_bytes")]
        bytes: Vec<u8>,
    },
    /// It is done, or not.
    Done {
        /// The library's status.
        status: i32,
    },
    /// What is published.
    Found {
        /// The library's status.
        status: i32,
        /// What there is.
        entries: Vec<Entry>,
    },
    /// The node's processes.
    Processes(HostTable),
}

/// A letter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Note {
    /// Asks.
    Question(Question),
    /// Answers.
    Reply(Reply),
}

impl Note {
    /// Its bytes; none where it is too long for a letter.
    #[must_use]
    pub fn bytes(&self) -> Option<Vec<u8>> {
        let bytes = postcard::to_allocvec(self).expect("plain data serialises into memory");
        (bytes.len() <= LETTER_BYTES_MAX).then_some(bytes)
    }

    /// The letter that these bytes are; none where they are no letter, or have a value that is not what it says.
    #[must_use]
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let (note, rest) = postcard::take_from_bytes::<Self>(bytes).ok()?;
        let entries = match &note {
            Self::Question(Question::Publish(entries))
            | Self::Reply(Reply::Found { entries, .. }) => entries.as_slice(),
            _ => &[],
        };
        let is_known = |entry: &Entry| match entry.value {
            Kept::Plain(kind, _) => Kept::is_plain(kind),
            _ => true,
        };
        (rest.is_empty() && entries.iter().all(is_known)).then_some(note)
    }
}

/// Feeds arbitrary bytes to the reader of letters: no panic, and what was read is written and read again alike.
pub fn fuzz_notes(bytes: &[u8]) {
    if let Some(note) = Note::read(bytes)
        && let Some(again) = note.bytes()
    {
        assert_eq!(Note::read(&again), Some(note));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_letter_is_what_was_written_and_pointers_are_refused() {
        let entry = |value| Entry {
            owner: 3,
            key: "port".to_owned(),
            value,
        };
        let publish = |value| Note::Question(Question::Publish(vec![entry(value)]));
        let text = publish(Kept::Text(c"tcp://1".to_owned()));
        let bytes = text.bytes().expect("it is short");
        fuzz_notes(&bytes);
        assert_eq!(Note::read(&bytes), Some(text));
        // 3 is a string: its first word would be an address.
        let pointer = publish(Kept::Plain(3, [0x41; 3]))
            .bytes()
            .expect("it is short");
        assert_eq!(Note::read(&pointer), None);
        assert_eq!(
            publish(Kept::Bytes(vec![0; LETTER_BYTES_MAX])).bytes(),
            None
        );
    }
}
