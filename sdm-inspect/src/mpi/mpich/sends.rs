//! The peers of MPICH's sends through UCX.
//!
//! UCX's part of a send has its connection to the receiver. MPICH has a table with the connection to each rank of the job.

use sdm_mpi::MPICH_KIND;

use super::receives::{CONTEXT, OF_ONE_TAG, RANK, RANKS, Receives, UCX_BYTES, is_to_come};
use super::{Piece, WORD, WORLD, only};
use crate::mpi::{Direction, Message};

/// Number of bytes of MPICH's part of a send that are examined. UCX's part precedes it.
const PART_BYTES: usize = 64;
/// Offset from the connection to UCX's number of the message, in bytes.
const NUMBER: usize = 152;
/// Offsets in the table of connections, in bytes: of the number of ranks, and of the first entry. An entry is a
/// connection, and whether its rank is on this host.
const TABLE_COUNT: usize = 8;
const TABLE: usize = 16;
const ENTRY_BYTES: usize = 2 * WORD;
/// Mask of the kind in a handle, and the kind of datatypes.
const KIND_MASK: u32 = 0xf;
const DATATYPE: u32 = 3;

impl Receives<'_> {
    /// The message of the send at this address; `None` unless it is incomplete, and its receiver is found.
    pub(super) fn sent(&self, address: u64, block: &Piece) -> Option<Message> {
        let memory = self.mpich.memory;
        if !is_to_come(address, block) {
            return None;
        }
        let part = block.words().find_map(|word| {
            let own = Piece::read(memory, word, PART_BYTES)?;
            let is_it = own.words().any(|it| it == address);
            let from = word.checked_sub(UCX_BYTES as u64).filter(|_| is_it)?;
            Piece::read(memory, from, UCX_BYTES)
        })?;
        let connections = self.connections.get_or_init(|| self.find_connections());
        let connections = connections.as_ref()?;
        let mut places = (0..part.len()).step_by(WORD);
        let (at, peer) = places.find_map(|at| {
            let peer = connections.iter().position(|one| *one == part.word(at))?;
            Some((at, u32::try_from(peer).ok()?))
        })?;
        let number = part.word(at + NUMBER);
        let context = u16::try_from(number >> CONTEXT).ok()?;
        // The number has the sender's rank.
        let own = usize::try_from(number >> RANK & RANKS).ok()?;
        let to = match context {
            0 => {
                let is_own = self.peer(0, own) == Some(self.mpich.rank);
                usize::try_from(peer).ok().filter(|_| is_own)?
            }
            _ => {
                let ranks = self.ranks_of(context)?;
                let is_own = ranks.get(own) == Some(&self.mpich.rank);
                ranks
                    .iter()
                    .position(|one| *one == peer)
                    .filter(|_| is_own)?
            }
        };
        Some(Message {
            peer,
            tag: i32::try_from(number & OF_ONE_TAG).ok()?,
            direction: Some(Direction::Sent),
            within: (context.into(), to),
        })
    }

    /// The message of the partitioned send at this address; `None` unless it is incomplete, and its receiver is found.
    ///
    /// The count of elements precedes their datatype, and the receiver follows it. The tag is not kept: the receiver has
    /// it.
    pub(super) fn partitioned(&self, address: u64, block: &Piece) -> Option<Message> {
        if !is_to_come(address, block) {
            return None;
        }
        let context = match self.communicator_of(block)? {
            handle if handle == WORLD.cast_unsigned() => 0,
            handle => self.mpich.context_of(&self.mpich.communicator(handle)?)?,
        };
        let words: Vec<u64> = block.words().collect();
        let found = words.windows(2).filter_map(|pair| {
            let (handle, to) = (pair[1] & u64::from(u32::MAX), pair[1] >> 32);
            let handle = u32::try_from(handle).ok()?;
            let is_it =
                handle >> (MPICH_KIND + 4) != 0 && (handle >> MPICH_KIND) & KIND_MASK == DATATYPE;
            let to = usize::try_from(to).ok().filter(|_| is_it && pair[0] != 0)?;
            Some((to, self.peer(context, to)?))
        });
        let (to, peer) = only(found)?;
        Some(Message {
            peer,
            tag: sdm_mpi::ANY_TAG_NUMBER,
            direction: Some(Direction::Sent),
            within: (context.into(), to),
        })
    }

    /// The connections to the ranks of the job; `None` if their table is not found.
    fn find_connections(&self) -> Option<Vec<u64>> {
        let size = self.mpich.size as usize;
        let table = |address| {
            // Most words are no address of a table: its beginning is little to read.
            let head = Piece::read(self.mpich.memory, address, TABLE)?;
            if usize::try_from(head.word(TABLE_COUNT)) != Ok(size) {
                return None;
            }
            let table = Piece::read(self.mpich.memory, address, TABLE + size * ENTRY_BYTES)?;
            let entries = (0..size).map(|rank| TABLE + rank * ENTRY_BYTES);
            let mut marks = entries.clone().map(|at| table.word(at + WORD));
            let is_table = marks.all(|mark| mark <= 1);
            let mut known: Vec<u64> = entries.map(|at| table.word(at)).collect();
            let all = known.clone();
            known.sort_unstable();
            known.dedup();
            (is_table && known.len() == size && known[0] != 0).then_some(all)
        };
        let mut words = self.mpich.variables.iter().flat_map(Piece::words);
        words.find_map(table)
    }
}
