//! Messages between the servers of tasks that communicate with each other: exchanges and datagrams. The tree carries
//! their bytes and does not read them.

use bytes::Bytes;
use sdm_idset::{IdSet, TaskId};

/// Identity of an exchange.
///
/// All of `tasks` give data, each through its server, and each of their servers receives the data of all. Servers
/// count the exchanges of the same tasks from 0.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ExchangeId {
    /// Tasks that take part.
    pub tasks: IdSet,
    /// Number of earlier exchanges of these tasks.
    pub number: u32,
}

/// A message of an exchange.
#[derive(Clone, PartialEq, Debug)]
pub struct ExchangeMessage {
    /// The exchange.
    pub id: ExchangeId,
    /// The step of the exchange.
    pub step: ExchangeStep,
}

/// The step of an exchange that a message carries.
#[derive(Clone, PartialEq, Debug)]
pub enum ExchangeStep {
    /// Up: data of tasks.
    Given {
        /// Tasks that take part and have no data.
        empty: IdSet,
        /// Parts of the data of those participants that have data.
        pieces: Vec<Piece>,
    },
    /// Up: tasks whose servers have received the data of all.
    Taken(IdSet),
    /// Down: a part of the data of all tasks, which are concatenated in any order.
    All {
        /// Bytes in all.
        total: u64,
        /// Offset of this part in the data of all tasks, in bytes.
        offset: u64,
        /// The part.
        bytes: Bytes,
    },
    /// Down: the exchange has failed.
    Failed {
        /// Lost tasks without which the exchange is impossible; empty if that is not the reason.
        lost: IdSet,
        /// The reason, as text for the user.
        why: String,
    },
}

/// A part of the data of some tasks of one server.
#[derive(Clone, PartialEq, Debug)]
pub struct Piece {
    /// The tasks that gave the data: tasks of one server, never empty.
    pub sources: IdSet,
    /// Size of all the data that these tasks give, in bytes; at least 1.
    pub total: u64,
    /// Offset of this part in that data, in bytes.
    pub offset: u64,
    /// The part.
    pub bytes: Bytes,
}

/// A message from the server of one task to the servers of other tasks, delivered at most once. If it cannot be
/// delivered to some tasks, the sender is notified of at least one of them. The sender sets its own time limit for
/// answers.
#[derive(Clone, PartialEq, Debug)]
pub struct Datagram {
    /// Tasks whose servers are the receivers, never empty.
    pub to: IdSet,
    /// The task whose server sent the datagram. In a datagram that returns, the first task to which it could not be
    /// delivered.
    pub from: TaskId,
    /// Number of the datagram, chosen by the sender.
    pub number: u64,
    /// True on the way to the receivers; false if the datagram returns to its sender as undelivered.
    pub is_brought: bool,
    /// Contents of the datagram; empty if it returns.
    pub bytes: Bytes,
}
