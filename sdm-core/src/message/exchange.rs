//! What members send one another so that programs can meet: exchanges and letters. The tree carries their bytes and does not
//! look into them.

use bytes::Bytes;
use sdm_idset::{IdSet, TaskId};

/// Which exchange.
///
/// All of `tasks` give something, each through its server, and each server is told what all have given. Servers count the
/// exchanges of the same tasks from 0.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ExchangeId {
    /// Those that take part.
    pub tasks: IdSet,
    /// How many these tasks have had before.
    pub number: u32,
}

/// A step of an exchange.
#[derive(Clone, PartialEq, Debug)]
pub struct ExchangeMessage {
    /// Which one.
    pub id: ExchangeId,
    /// Which step.
    pub step: ExchangeStep,
}

/// What is said in an exchange.
#[derive(Clone, PartialEq, Debug)]
pub enum ExchangeStep {
    /// Up: what tasks have given.
    Given {
        /// Those that take part and have nothing to say.
        empty: IdSet,
        /// Parts of what the others have.
        pieces: Vec<Piece>,
    },
    /// Up: these have what all have given.
    Taken(IdSet),
    /// Down: a part of what all have given, one after another in any order, each once.
    All {
        /// Bytes in all.
        total: u64,
        /// Where this part begins, in bytes.
        offset: u64,
        /// The part.
        bytes: Bytes,
    },
    /// Down: it cannot be.
    Failed {
        /// Those without whom it cannot be; none where that is not the reason.
        lost: IdSet,
        /// The reason, for a person.
        why: String,
    },
}

/// A part of what some tasks have given together.
#[derive(Clone, PartialEq, Debug)]
pub struct Piece {
    /// Whose it is: tasks of one server, never empty.
    pub sources: IdSet,
    /// How much they have given, in bytes; at least 1.
    pub total: u64,
    /// Where this part begins, in bytes.
    pub offset: u64,
    /// The part.
    pub bytes: Bytes,
}

/// Something for the servers of tasks from the server of one. It comes once or not at all; the sender is told whom it could not be
/// brought to, and waits for answers no longer than it wants to.
#[derive(Clone, PartialEq, Debug)]
pub struct Letter {
    /// For whose servers it is, never empty.
    pub to: IdSet,
    /// Whose server has sent it; where it comes back, the first of those to whom it could not be brought.
    pub from: TaskId,
    /// The sender's number for it.
    pub number: u64,
    /// False where it comes back.
    pub is_brought: bool,
    /// What it says; empty where it comes back.
    pub bytes: Bytes,
}
