//! The message queues of an MPI library: pending sends, pending receives and unexpected messages.

use serde::{Deserialize, Serialize};

/// Maximum number of messages in one task's answer.
pub const TASK_MESSAGES_MAX: usize = 4096;

/// The message queues of a task: the answer to [`crate::Command::Queues`].
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TaskQueues {
    /// Messages, at most [`TASK_MESSAGES_MAX`]; those of one kind are in the order of their peers.
    pub messages: Vec<QueueMessage>,
    /// Number of further messages that are not listed.
    pub more: u64,
    /// False if the MPI library does not show unexpected messages to debuggers.
    pub knows_unexpected: bool,
}

/// A message in a queue of a task.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct QueueMessage {
    /// The part that is equal for many messages.
    pub kind: MessageKind,
    /// The peer's rank in `MPI_COMM_WORLD`; `None` for any source, or if unknown.
    pub world_peer: Option<i64>,
    /// The peer's rank in the communicator, or in its remote group; `None` for any source.
    pub peer: Option<i64>,
    /// The address of the buffer.
    pub buffer: u64,
}

/// The common part of messages that differ in their peers and buffers.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct MessageKind {
    /// The queue.
    pub queue: QueueName,
    /// True if the peer is matched and the transfer has begun.
    pub is_matched: bool,
    /// The name of the communicator.
    pub communicator: String,
    /// True if the communicator is an intercommunicator: the peers are ranks of the remote group.
    pub is_remote: bool,
    /// True for a receive from any source.
    pub any_peer: bool,
    /// The tag; `None` for any tag.
    pub tag: Option<i64>,
    /// Length of the buffer, or of the sent data, in bytes.
    pub length_bytes: u64,
}

/// The queue that contains a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum QueueName {
    /// Incomplete sends.
    Sends,
    /// Incomplete receives.
    Receives,
    /// Messages that have arrived and were not received.
    Unexpected,
}
