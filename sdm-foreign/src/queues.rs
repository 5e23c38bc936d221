//! Messages between a server and the helper that loads an MPI library's own debug library (`sdm-pmix queues`).
//!
//! The server asks once ([`QueuesAsk`]) and the helper answers once ([`QueuesAnswer`]), each in a frame of
//! [`wire`](crate::wire). The helper has the memory of the process as its standard output, for reading only, and the
//! socket to the server as its standard input.

use serde::{Deserialize, Serialize};

use crate::wire::fuzz;

/// The version of these messages: both sides must have the same.
pub const QUEUES_VERSION: u16 = 1;
/// Maximum number of communicators that are read.
pub const COMMUNICATORS_MAX: usize = 4096;
/// Maximum number of messages that are named; further ones are counted.
pub const MESSAGES_MAX: usize = 4096;
/// Maximum number of messages that the debug library is asked for.
pub const LOOKED_AT_MAX: u64 = 1 << 20;
/// Maximum memory of the debug library at a time, in bytes.
pub const LIBRARY_BYTES_MAX: usize = 256 << 20;

/// The request of a server: the debug library, and the symbols and types of the process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueuesAsk {
    /// The version of the messages: [`QUEUES_VERSION`].
    pub version: u16,
    /// The path of the debug library.
    #[serde(with = "serde_bytes")]
    pub library: Vec<u8>,
    /// The process's symbols that the debug library may ask for, with their addresses.
    pub symbols: Vec<(String, u64)>,
    /// The types that the debug library may ask for.
    pub types: Vec<TypeLayout>,
}

/// Memory layout of a type of the MPI library.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TypeLayout {
    /// Name of the type.
    pub name: String,
    /// Size of the type, in bytes.
    pub size_bytes: u32,
    /// Fields of the type, each with its offset in bytes.
    pub fields: Vec<(String, u32)>,
}

/// The answer of the helper.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum QueuesAnswer {
    /// The message queues that the debug library reports.
    Known(ProcessQueues),
    /// The request failed, with the reason on one line.
    Failed {
        /// The reason.
        text: String,
    },
}

/// The queues of a process.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ProcessQueues {
    /// The communicators that have messages.
    pub communicators: Vec<CommunicatorQueues>,
    /// Number of messages beyond [`MESSAGES_MAX`], which are left out.
    pub more: u64,
    /// False if the debug library has no information of unexpected messages.
    pub knows_unexpected: bool,
}

/// The messages of a communicator.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct CommunicatorQueues {
    /// Name of the communicator.
    pub name: String,
    /// The communicator's messages.
    pub messages: Vec<QueuedMessage>,
}

/// The queue that holds a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum QueueKind {
    /// Sends that have not completed.
    Send,
    /// Receives that have not completed.
    Receive,
    /// Messages that have arrived and have not been received.
    Unexpected,
}

/// A message in a queue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueuedMessage {
    /// The queue that holds the message.
    pub kind: QueueKind,
    /// True if the message is matched: its send and its receive have found each other, and its data is under way.
    pub is_matched: bool,
    /// The peer's rank in the communicator; `None` for any rank, or if it is not known.
    pub peer: Option<i64>,
    /// The peer's rank in `MPI_COMM_WORLD`; `None` if it is not known.
    pub world_peer: Option<i64>,
    /// True for an intercommunicator, where the peer's rank is one of the remote group.
    pub is_remote: bool,
    /// The tag; `None` for any tag.
    pub tag: Option<i64>,
    /// The length of the buffer, or of the data that is sent, in bytes.
    pub length_bytes: u64,
    /// The address of the buffer.
    pub buffer: u64,
}

/// Feeds arbitrary bytes to the readers of both sides.
pub fn fuzz_queues(bytes: &[u8]) {
    fuzz::<QueuesAsk>(bytes);
    fuzz::<QueuesAnswer>(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{Frames, frame};

    fn answer() -> QueuesAnswer {
        QueuesAnswer::Known(ProcessQueues {
            communicators: vec![CommunicatorQueues {
                name: "MPI_COMM_WORLD".to_owned(),
                messages: vec![QueuedMessage {
                    kind: QueueKind::Receive,
                    is_matched: false,
                    peer: None,
                    world_peer: None,
                    is_remote: false,
                    tag: Some(99),
                    length_bytes: 40,
                    buffer: 0x7fff_0000,
                }],
            }],
            more: 0,
            knows_unexpected: false,
        })
    }

    #[test]
    fn queues_answer_decodes_only_when_all_bytes_have_come() {
        let bytes = frame(&answer()).unwrap();
        for end in 0..bytes.len() {
            let mut frames = Frames::default();
            frames.push(&bytes[..end]);
            assert_eq!(frames.take::<QueuesAnswer>(), Ok(None), "{end}");
        }
        let mut frames = Frames::default();
        frames.push(&bytes);
        assert_eq!(frames.take(), Ok(Some(answer())));
        for at in 0..bytes.len() {
            for change in [0x01, 0x80, 0xff] {
                let mut wrong = bytes.clone();
                wrong[at] ^= change;
                fuzz_queues(&wrong);
            }
        }
    }
}
