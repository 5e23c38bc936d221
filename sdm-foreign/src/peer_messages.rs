//! Peer messages: messages between the PMIx servers of several nodes, as contents of
//! [`crate::wire::PeerMessage`]s. The answer to a question has the number of the question's message.

use std::ffi::CString;

use sdm_idset::IdSet;
use serde::{Deserialize, Serialize};

use crate::spawned_jobs::SpawnedJob;
use crate::table::HostTable;
use crate::wire::{HostProgram, LETTER_BYTES_MAX};

/// The types of libpmix whose values hold no pointers: `bool` to `status` except strings, scopes to process states, and
/// ranks.
const PLAIN_KINDS: [std::ops::RangeInclusive<u16>; 4] = [1..=2, 4..=20, 32..=37, 40..=40];

/// A published value, which owns its data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum PublishedValue {
    /// A string.
    Text(CString),
    /// Bytes of any kind.
    Bytes(#[serde(with = "serde_bytes")] Vec<u8>),
    /// A value of a library type without pointers: the type's number and the raw words.
    Plain(u16, [u64; 3]),
}

impl PublishedValue {
    /// True for a type whose values hold no pointers.
    #[must_use]
    pub fn is_plain(kind: u16) -> bool {
        PLAIN_KINDS.iter().any(|it| it.contains(&kind))
    }
}

/// A published value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// The rank that has published it.
    pub owner: u32,
    /// Key under which the value is published.
    pub key: String,
    /// The published value.
    pub value: PublishedValue,
}

/// A request of one node to another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Question {
    /// Reads the data that a rank has put (`PMIx_Put`), from this offset on.
    Modex {
        /// The rank whose data is read.
        rank: u32,
        /// Offset in the data of the rank at which the answer begins, in bytes.
        offset: u64,
    },
    /// Publishes these values.
    Publish(Vec<Entry>),
    /// Looks up published values.
    LookUp {
        /// Keys of the values.
        keys: Vec<String>,
        /// True if the answer may wait until all keys are published.
        waits: bool,
    },
    /// Removes values that a rank has published: those with these keys, or all where no key is given.
    Unpublish {
        /// The rank that has published the values.
        owner: u32,
        /// Keys of the values; empty for all.
        keys: Vec<String>,
    },
    /// The table of the node's processes.
    Processes,
    /// Announces a job that is about to be started.
    Know(SpawnedJob),
    /// Reserves task numbers for processes that the receiving node is to start.
    Reserve {
        /// Number of processes.
        count: u32,
    },
    /// Starts the receiving node's processes of an announced job.
    Start {
        /// Namespace of the job.
        namespace: String,
        /// Task that requested the start; `None` for a tool.
        by: Option<u32>,
        /// The programs of the processes, in the order of their ranks.
        programs: Vec<HostProgram>,
    },
    /// Asks for the output of processes, for the node of this rank. This request and those below have no answer.
    WantOutput(u32),
    /// A task has printed output.
    Printed {
        /// The task that has printed the output.
        task: u32,
        /// True for standard error.
        is_error: bool,
        /// The output, as bytes.
        #[serde(with = "serde_bytes")]
        bytes: Vec<u8>,
    },
    /// Standard input for tasks; empty at the end of the input.
    Input {
        /// The tasks, of any node.
        tasks: IdSet,
        /// The input.
        #[serde(with = "serde_bytes")]
        bytes: Vec<u8>,
    },
    /// A signal for tasks.
    Signal {
        /// The tasks, of any node.
        tasks: IdSet,
        /// Number of the signal.
        signal: i32,
    },
    /// An event for the receiving node's processes.
    PeerEvent(PeerEvent),
    /// Reports to the node of a job's first task that the job has ended on the node `node`.
    NodeEnded {
        /// Namespace of the job.
        namespace: String,
        /// The node, by its index among those of the first job.
        node: u32,
        /// The first exit status on that node that is not 0; 0 if there is none.
        status: i32,
    },
    /// A job has ended.
    JobEnded {
        /// Namespace of the job.
        namespace: String,
        /// The first exit status of the job that is not 0; 0 if there is none.
        status: i32,
    },
}

/// An event that a process or a tool reports.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PeerEvent {
    /// Code of the event, as libpmix numbers it.
    pub code: i32,
    /// Namespace of the process or tool that reports it.
    pub namespace: String,
    /// Rank of the process that reports the event.
    pub rank: u32,
    /// The receivers of the event, as a range of PMIx.
    pub range: u8,
    /// Attributes of the event, by key.
    pub infos: Vec<(String, PublishedValue)>,
}

/// The answer to a [`Question`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Reply {
    /// A part of the data that a rank has put.
    Modex {
        /// The PMIx status: 0 if all is well.
        status: i32,
        /// Length of the whole data, in bytes.
        total: u64,
        /// Offset of the part in the data, in bytes.
        offset: u64,
        /// The bytes of the part.
        #[serde(with = "serde_bytes")]
        bytes: Vec<u8>,
    },
    /// The outcome of a request without a result.
    Done {
        /// The PMIx status.
        status: i32,
    },
    /// The values found by [`Question::LookUp`].
    Found {
        /// The PMIx status.
        status: i32,
        /// The values found.
        entries: Vec<Entry>,
    },
    /// A part of the table of the node's processes; in order.
    Processes {
        /// The part.
        table: HostTable,
        /// True for the last part.
        is_last: bool,
    },
    /// The answer to [`Question::Reserve`].
    Reserved {
        /// The first of the consecutive task numbers; `None` if too few are free.
        first: Option<u32>,
    },
}

/// A message between the PMIx servers of two nodes: a question, or the answer to one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Note {
    /// Asks.
    Question(Question),
    /// Answers.
    Reply(Reply),
}

impl Reply {
    /// The answers to [`Question::Processes`], each short enough for a message.
    #[must_use]
    pub fn of_table(table: HostTable) -> Vec<Self> {
        let fits = |table: &HostTable| {
            let table = table.clone();
            let whole = Self::Processes {
                table,
                is_last: true,
            };
            Note::Reply(whole).bytes().is_some()
        };
        let (mut parts, mut todo) = (Vec::new(), vec![table]);
        while let Some(table) = todo.pop() {
            let count = table.processes.len();
            if count < 2 || fits(&table) {
                parts.push(table);
            } else {
                let halves = [&table.processes[..count / 2], &table.processes[count / 2..]];
                todo.extend(halves.map(|half| table.part(half)).into_iter().rev());
            }
        }
        let last = parts.len() - 1;
        let parts = parts.into_iter().enumerate();
        let part = |(at, table)| Self::Processes {
            table,
            is_last: at == last,
        };
        parts.map(part).collect()
    }
}

impl Note {
    /// The encoded message; `None` if it is too long.
    #[must_use]
    pub fn bytes(&self) -> Option<Vec<u8>> {
        let bytes = postcard::to_allocvec(self).expect("plain data serialises into memory");
        (bytes.len() <= LETTER_BYTES_MAX).then_some(bytes)
    }

    /// Decodes a message; `None` if the bytes are malformed, or a value contradicts its type.
    #[must_use]
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let read = || postcard::take_from_bytes::<Self>(bytes);
        let (note, rest) = sdm_idset::bounded(sdm_idset::SETS_BYTES_MAX, read).ok()?;
        let entries = match &note {
            Self::Question(Question::Publish(entries))
            | Self::Reply(Reply::Found { entries, .. }) => entries.as_slice(),
            _ => &[],
        };
        let infos = match &note {
            Self::Question(Question::PeerEvent(told)) => told.infos.as_slice(),
            _ => &[],
        };
        let is_known = |value: &PublishedValue| match value {
            PublishedValue::Plain(kind, _) => PublishedValue::is_plain(*kind),
            _ => true,
        };
        let entries = entries.iter().map(|it| &it.value);
        let mut values = entries.chain(infos.iter().map(|(_, value)| value));
        (rest.is_empty() && values.all(is_known)).then_some(note)
    }
}

/// Decodes arbitrary bytes as a peer message. Checks that nothing panics, and that a decoded message survives encoding
/// and decoding.
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
    use crate::table::{HostCommand, HostProcess, HostState};

    #[test]
    fn large_table_is_answered_in_parts() {
        let mut table = HostTable::default();
        for rank in 0..20_000 {
            let process = HostProcess {
                rank,
                pid: 4_000_000,
                state: HostState::Running,
                program: None,
                resident_bytes: 1 << 30,
            };
            let command = HostCommand {
                program: format!("/home/ann/run/{}/app", rank / 100),
                line: "app".to_owned(),
            };
            table.add(process, Some(command));
        }
        let notes = Reply::of_table(table.clone()).into_iter().map(Note::Reply);
        let notes: Vec<Vec<u8>> = notes.map(|it| it.bytes().expect("it is short")).collect();
        assert!(notes.len() > 3, "{} parts", notes.len());
        let (mut joined, mut last) = (HostTable::default(), Vec::new());
        for bytes in &notes {
            let Some(Note::Reply(Reply::Processes { table, is_last })) = Note::read(bytes) else {
                panic!("no table");
            };
            joined.join(&table);
            last.push(is_last);
        }
        assert_eq!(joined, table);
        assert_eq!(last.iter().position(|it| *it), Some(notes.len() - 1));
        let empty = Reply::of_table(HostTable::default());
        assert!(matches!(
            &empty[..],
            [Reply::Processes { is_last: true, .. }]
        ));
    }

    #[test]
    fn peer_message_survives_encoding_and_refuses_pointers() {
        let entry = |value| Entry {
            owner: 3,
            key: "port".to_owned(),
            value,
        };
        let publish = |value| Note::Question(Question::Publish(vec![entry(value)]));
        let text = publish(PublishedValue::Text(c"tcp://1".to_owned()));
        let bytes = text.bytes().expect("it is short");
        fuzz_notes(&bytes);
        assert_eq!(Note::read(&bytes), Some(text));
        // 3 is a string: its first word would be an address.
        let pointer = publish(PublishedValue::Plain(3, [0x41; 3]))
            .bytes()
            .expect("it is short");
        assert_eq!(Note::read(&pointer), None);
        assert_eq!(
            publish(PublishedValue::Bytes(vec![0; LETTER_BYTES_MAX])).bytes(),
            None
        );
    }
}
