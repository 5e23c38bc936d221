//! Unexpected messages of Open MPI, which have arrived before a matching receive, and pending receives, which were
//! called before their message.
//!
//! The PML `ob1` keeps a list of both for each rank of a communicator. Its objects begin with their class, which has a
//! name; the lists are found by these names.

use std::collections::BTreeSet;

use super::{COMMUNICATOR_BYTES, OpenMpi, RANKS_MAX, words};
use crate::memory::Memory;
use crate::mpi::{Direction, Members, Message, Piece, WORD};

/// Class names of `ob1`'s structures for a communicator and for a rank in it, and of lists.
const OF_COMMUNICATOR: &str = "mca_pml_ob1_comm_t";
const OF_RANK: &str = "mca_pml_ob1_comm_proc_t";
const LIST: &str = "opal_list_t";
/// Maximum numbers of bytes that are read of the structures for a communicator and for a rank.
const OF_COMMUNICATOR_BYTES: usize = 512;
const OF_RANK_BYTES: usize = 256;
/// Offset of the sentinel in a list, and of the next pointer in an item, in bytes.
const LIST_END: u64 = 16;
const NEXT: usize = 16;
/// Size of a message's header, and offsets of the source rank and the tag, in bytes.
const MESSAGE_BYTES: usize = 80;
const SOURCE: usize = 60;
const TAG: usize = 64;
/// Maximum number of messages of a rank that are examined.
const MESSAGES_MAX: usize = 64;

impl OpenMpi<'_> {
    /// The tags of the program's unexpected messages from a rank: messages that have arrived but are not received.
    pub fn unexpected(&self, communicator: u64, source: usize) -> Vec<i32> {
        let ranks = self.ranks_of(communicator).unwrap_or_default();
        let rank = ranks.get(source);
        // A list of waiting receives precedes the list of messages.
        let list = rank.and_then(|rank| self.lists(*rank)?.pop());
        let tags = list.map(|list| tags(self.memory, list, source));
        let tags = tags.unwrap_or_default().into_iter();
        // Tags of the program are not negative, unlike those of the library's collective operations.
        tags.filter(|tag| *tag >= 0).collect()
    }

    /// The program's unexpected messages in a communicator, from any of its ranks.
    pub fn arrived(&self, communicator: u64) -> Vec<Message> {
        let Some(Members::Of(ranks)) = self.members(communicator) else {
            return Vec::new();
        };
        let of_rank = |(source, peer): (usize, u32)| {
            let tags = self.unexpected(communicator, source).into_iter();
            tags.map(move |tag| Message {
                peer,
                tag,
                direction: Some(Direction::Received),
                within: (communicator, source),
            })
        };
        ranks.into_iter().enumerate().flat_map(of_rank).collect()
    }

    /// The pending receives of a communicator, each with its request. `None` if one of them is from any rank, or if they
    /// cannot be read.
    pub fn posted(&self, communicator: u64) -> Option<Vec<(u64, Message)>> {
        let (address, block, _) = self.of_communicator(communicator)?;
        let lists = self.lists_in(address, block.len());
        let mut from_any = lists.into_iter().flat_map(|list| items(self.memory, list));
        if from_any.next().is_some() {
            return None;
        }
        let ranks = self.ranks_of(communicator)?;
        let lists = ranks
            .iter()
            .filter_map(|rank| match self.lists(*rank)?[..] {
                [receives, .., _] => Some(receives),
                _ => None,
            });
        let requests = lists.flat_map(|list| items(self.memory, list));
        let message = |request| Some((request, self.message(request)?));
        Some(requests.filter_map(message).collect())
    }

    /// The addresses of `ob1`'s objects for the ranks of a communicator; `None` if they are not found. For a rank
    /// without messages the address is not that of an object.
    fn ranks_of(&self, communicator: u64) -> Option<Vec<u64>> {
        let (_, block, count) = self.of_communicator(communicator)?;
        let known: Vec<u64> = block.words().collect();
        known.windows(2).find_map(|pair| {
            let is_list = usize::try_from(pair[1]) == Ok(count);
            let ranks = is_list.then(|| words(self.memory, pair[0], count))??;
            let is_some = ranks.iter().any(|rank| self.size_of_rank(*rank).is_some());
            is_some.then_some(ranks)
        })
    }

    /// The address and the content of `ob1`'s object for a communicator, and the number of its ranks; `None` if it is
    /// not found.
    fn of_communicator(&self, communicator: u64) -> Option<(u64, Piece, usize)> {
        let head = Piece::read(self.memory, communicator, COMMUNICATOR_BYTES)?;
        let count = self.group(head.word(*self.layout.groups.first()?), RANKS_MAX)?;
        head.words().find_map(|word| {
            let found = self.object(word, OF_COMMUNICATOR_BYTES)?;
            let is_it = self.class_of(&found)? == OF_COMMUNICATOR;
            is_it.then_some((word, found, count.len()))
        })
    }

    /// The size of the object of a rank; `None` if there is no such object at the address.
    fn size_of_rank(&self, address: u64) -> Option<usize> {
        let found = self.object(address, OF_RANK_BYTES)?;
        (self.class_of(&found)? == OF_RANK).then_some(found.len())
    }

    /// The addresses of the lists in the object of a rank, in their order; `None` if there is no such object at the
    /// address.
    fn lists(&self, rank: u64) -> Option<Vec<u64>> {
        Some(self.lists_in(rank, self.size_of_rank(rank)?))
    }

    /// The addresses of the lists in an object of this size.
    fn lists_in(&self, address: u64, size: usize) -> Vec<u64> {
        let places = (WORD..size).step_by(WORD);
        let places = places.filter_map(|at| address.checked_add(at as u64));
        let is_list = |at: &u64| {
            let object = Piece::read(self.memory, *at, WORD);
            object.is_some_and(|it| self.class_of(&it).as_deref() == Some(LIST))
        };
        places.filter(is_list).collect()
    }
}

/// The tags of the data of collective operations that has arrived in a communicator and is not received. `None` if
/// it cannot be read, or is too much.
pub fn arrived_of_collectives(known: &OpenMpi<'_>, communicator: u64) -> Option<BTreeSet<i32>> {
    let ranks = known.ranks_of(communicator)?;
    let mut found = BTreeSet::new();
    for (source, rank) in ranks.into_iter().enumerate() {
        // There is no object for a rank without messages.
        let Some(list) = known.lists(rank).and_then(|mut lists| lists.pop()) else {
            continue;
        };
        let tags = tags(known.memory, list, source);
        if tags.len() >= MESSAGES_MAX {
            return None;
        }
        found.extend(
            tags.into_iter()
                .filter(|tag| *tag < sdm_mpi::ANY_TAG_NUMBER),
        );
    }
    Some(found)
}

/// The addresses of the items of a list.
fn items(memory: &dyn Memory, list: u64) -> impl Iterator<Item = u64> {
    let end = list.wrapping_add(LIST_END);
    let next = move |at: u64| {
        let item = Piece::read(memory, at, NEXT + WORD)?;
        Some(item.word(NEXT)).filter(|next| *next != end)
    };
    std::iter::successors(next(end), move |at| next(*at)).take(MESSAGES_MAX)
}

/// The tags of the messages of a list from a rank of the communicator.
fn tags(memory: &dyn Memory, list: u64, source: usize) -> Vec<i32> {
    let items = items(memory, list);
    let message = |at| Piece::read(memory, at, MESSAGE_BYTES);
    let messages = items.filter_map(message);
    let messages = messages.filter(|one| usize::try_from(one.number(SOURCE)) == Ok(source));
    messages.map(|one| one.number(TAG)).collect()
}
