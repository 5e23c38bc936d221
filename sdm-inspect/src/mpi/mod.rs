//! Communicators, requests and RMA epochs of MPI libraries, read from a process's memory.

mod mpich;
mod openmpi;

use crate::memory::Memory;

use sdm_mpi::ArgumentRole;

pub use mpich::{HANDLER_BYTES_MAX, Mpich, Receives, pointers};
pub use openmpi::{OpenMpi, PredefinedObjects, arrived_of_collectives, communicator_of_file};

/// Name of the communicator of all ranks.
const WORLD_NAME: &[u8; 15] = b"MPI_COMM_WORLD\0";
const WORD: usize = 8;

/// The members of a communicator, as ranks of the job in the order of their ranks in the communicator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Members {
    /// An intracommunicator.
    Of(Vec<u32>),
    /// An intercommunicator: the caller's group, and the remote group. Calls name ranks of the remote group.
    Between(Vec<u32>, Vec<u32>),
    /// An intercommunicator with processes outside this job.
    WithOtherJobs,
}

/// The message that a request sends or receives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// The peer's rank in the job.
    pub peer: u32,
    /// The tag of the message.
    pub tag: i32,
    /// The direction of the message; `None` if unknown.
    pub direction: Option<Direction>,
    /// The communicator, by its address (Open MPI) or its context id (MPICH), and the peer's rank in it.
    pub within: (u64, usize),
}

/// An open RMA epoch of a process on a window, between groups of ranks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupEpoch {
    /// `Access` for the epoch of an origin (`MPI_Win_start`), `Exposure` for that of a target (`MPI_Win_post`).
    pub role: ArgumentRole,
    /// The context id of the window, equal at all ranks of the window.
    pub window: i64,
    /// The ranks in the job of the group's members.
    pub partners: Vec<u32>,
}

/// The direction of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// To the peer.
    Sent,
    /// From the peer.
    Received,
}

/// Maximum number of windows of a process that are examined; in MPICH of the array, and of the first block.
const WINDOWS_MAX: u32 = 64;

/// A communicator, by the handle in a program's calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Communicator {
    /// An address, for Open MPI.
    At(u64),
    /// A handle, for MPICH.
    Handle(u32),
}

/// The contents of a piece of memory.
pub struct Piece(Vec<u8>);

impl Piece {
    /// Reads bytes at an address. `None` if not all of them can be read, or if the address is 0 or not a multiple of 4.
    pub fn read(memory: &dyn Memory, address: u64, bytes: usize) -> Option<Self> {
        if address == 0 || !address.is_multiple_of(4) {
            return None;
        }
        let mut block = vec![0; bytes];
        memory.read(address, &mut block)?;
        Some(Self(block))
    }

    /// Reads at most `bytes` bytes, and fewer if the memory ends before, at a page boundary. `None` if none can be
    /// read.
    pub fn read_some(memory: &dyn Memory, address: u64, bytes: usize) -> Option<Self> {
        const PAGE: usize = 4096;
        let whole = Self::read(memory, address, bytes);
        whole.or_else(|| {
            let of_page = usize::try_from(address).ok()? % PAGE;
            let ends = (1..).map(|page| page * PAGE - of_page);
            let ends: Vec<usize> = ends.take_while(|end| *end < bytes).collect();
            let mut shorter = ends.into_iter().rev();
            shorter.find_map(|end| Self::read(memory, address, end))
        })
    }

    /// Number of bytes.
    fn len(&self) -> usize {
        self.0.len()
    }

    /// The word at an offset; 0 if the offset is outside.
    pub fn word(&self, at: usize) -> u64 {
        let bytes = self.0.get(at..at + WORD).and_then(|it| it.try_into().ok());
        bytes.map_or(0, u64::from_ne_bytes)
    }

    /// All complete words.
    fn words(&self) -> impl Iterator<Item = u64> {
        (0..self.0.len() / WORD).map(|at| self.word(at * WORD))
    }

    /// The number at this offset; -1 beyond the end.
    pub fn number(&self, at: usize) -> i32 {
        let bytes = self.0.get(at..at + 4).and_then(|it| it.try_into().ok());
        bytes.map_or(-1, i32::from_ne_bytes)
    }
}

/// The single item of an iterator; `None` if there are none or several.
fn only<T>(mut all: impl Iterator<Item = T>) -> Option<T> {
    all.next().filter(|_| all.next().is_none())
}

#[cfg(test)]
mod pieces {
    use std::collections::BTreeMap;

    use proptest::collection::vec;
    use proptest::prelude::*;
    use proptest::sample::Index;

    use super::*;

    /// Memory made of pieces, by address.
    #[derive(Default)]
    pub(super) struct MemoryPieces(pub(super) BTreeMap<u64, Vec<u8>>);

    impl Memory for MemoryPieces {
        fn read(&self, address: u64, to: &mut [u8]) -> Option<()> {
            let (start, bytes) = self.0.range(..=address).next_back()?;
            let from = usize::try_from(address - start).ok()?;
            to.copy_from_slice(bytes.get(from..from + to.len())?);
            Some(())
        }
    }

    impl MemoryPieces {
        pub(super) fn set(&mut self, address: u64, at: usize, bytes: &[u8]) {
            let piece = self.0.entry(address).or_insert_with(|| vec![0; 2048]);
            piece[at..at + bytes.len()].copy_from_slice(bytes);
        }
    }

    /// A word that structures may have: an address in the memory, a small number, or any.
    #[derive(Clone, Debug)]
    enum Word {
        Address(Index),
        Any(u64),
    }

    fn word() -> impl Strategy<Value = Word> {
        prop_oneof![
            any::<Index>().prop_map(Word::Address),
            (0_u64..40).prop_map(Word::Any),
            Just(Word::Any(u64::MAX)),
            any::<u64>().prop_map(Word::Any),
        ]
    }

    /// Calls the readers with memory of which some words are changed, and with the addresses of its pieces. None may
    /// panic.
    pub(super) fn walk_mutated(memory: &MemoryPieces, walk: impl Fn(&MemoryPieces, Vec<u64>)) {
        let addresses: Vec<u64> = memory.0.keys().copied().collect();
        let changes = vec((any::<Index>(), any::<Index>(), word()), 0..6);
        proptest!(|(changes in changes)| {
            let mut changed = MemoryPieces(memory.0.clone());
            for (piece, at, word) in changes {
                let piece = *piece.get(&addresses);
                let at = at.index(changed.0[&piece].len() / WORD) * WORD;
                let word = match word {
                    Word::Address(index) => *index.get(&addresses),
                    Word::Any(word) => word,
                };
                changed.set(piece, at, &word.to_ne_bytes());
            }
            walk(&changed, addresses.clone());
        });
    }
}
