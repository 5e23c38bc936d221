//! Unexpected messages of Open MPI: those that arrived before a matching receive.
//!
//! The PML `ob1` keeps a list of them for each rank of a communicator. Its objects begin with their class, which has
//! a name; they are found by it.

use super::{COMMUNICATOR_BYTES, OpenMpi, RANKS_MAX, words};
use crate::mpi::{Piece, WORD};

/// Class names of `ob1`'s structures for a communicator and for a rank in it, and of lists.
const OF_COMMUNICATOR: &str = "mca_pml_ob1_comm_t";
const OF_RANK: &str = "mca_pml_ob1_comm_proc_t";
const LIST: &str = "opal_list_t";
/// Most bytes that are read of each.
const OF_COMMUNICATOR_BYTES: usize = 512;
const OF_RANK_BYTES: usize = 256;
/// Offset of the sentinel in a list, and of the next pointer in an item, in bytes.
const LIST_END: u64 = 16;
const NEXT: usize = 16;
/// Size of a message's header, and offsets of the source rank and the tag, in bytes.
const MESSAGE_BYTES: usize = 80;
const SOURCE: usize = 60;
const TAG: usize = 64;
/// Most messages of a rank that are examined.
const MESSAGES_MAX: usize = 64;

impl OpenMpi<'_> {
    /// The tags of the program's unexpected messages from a rank: those that have arrived but are not received.
    pub fn unexpected(&self, communicator: u64, source: usize) -> Vec<i32> {
        self.list_of(communicator, source)
            .map(|list| self.tags(list, source))
            .unwrap_or_default()
    }

    /// Address of the list of a rank's messages.
    fn list_of(&self, communicator: u64, source: usize) -> Option<u64> {
        let head = Piece::read(self.memory, communicator, COMMUNICATOR_BYTES)?;
        let count = self.group(head.word(*self.layout.groups.first()?), RANKS_MAX)?;
        let count = Some(count.len()).filter(|count| source < *count)?;
        let of_communicator = head.words().find_map(|word| {
            let found = self.object(word, OF_COMMUNICATOR_BYTES)?;
            (self.class_of(&found)? == OF_COMMUNICATOR).then_some(found)
        })?;
        let known: Vec<u64> = of_communicator.words().collect();
        let (of_rank, size) = known.windows(2).find_map(|pair| {
            let is_list = usize::try_from(pair[1]) == Ok(count);
            let ranks = is_list.then(|| words(self.memory, pair[0], count))??;
            let found = self.object(ranks[source], OF_RANK_BYTES)?;
            (self.class_of(&found)? == OF_RANK).then_some((ranks[source], found.len()))
        })?;
        // A list of waiting receives precedes the list of messages.
        let places = (WORD..size).step_by(WORD).rev();
        let mut places = places.filter_map(|at| of_rank.checked_add(at as u64));
        places.find(|at| {
            let object = Piece::read(self.memory, *at, WORD);
            object.is_some_and(|it| self.class_of(&it).as_deref() == Some(LIST))
        })
    }

    fn tags(&self, list: u64, source: usize) -> Vec<i32> {
        let end = list.wrapping_add(LIST_END);
        let next = |at: u64| {
            let item = Piece::read(self.memory, at, NEXT + WORD)?;
            Some(item.word(NEXT)).filter(|next| *next != end)
        };
        let items = std::iter::successors(next(end), |at| next(*at)).take(MESSAGES_MAX);
        let message = |at| Piece::read(self.memory, at, MESSAGE_BYTES);
        let messages = items.filter_map(message);
        let messages = messages.filter(|one| usize::try_from(one.number(SOURCE)) == Ok(source));
        // Tags of the program are not negative, unlike those of the library's collective operations.
        let tags = messages.map(|one| one.number(TAG));
        tags.filter(|tag| *tag >= 0).collect()
    }
}
