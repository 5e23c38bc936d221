//! The peers of MPICH's receives through UCX, and its unexpected messages.
//!
//! MPICH's request and UCX's refer to each other. UCX holds context id, rank and tag as one number, with a mask of the
//! bits that must match.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};

use super::objects::{Objects, REQUESTS};
use super::{HEAD_BYTES, Members, Mpich, Piece, WORD, WORLD, only};
use crate::mpi::{Direction, Message};

/// Offset of a request's kind, in bytes, and the kinds of requests. Each start of a persistent one uses another
/// request.
const KIND: usize = 8;
const SEND: i32 = 1;
const RECEIVE: i32 = 2;
const PERSISTENT_SEND: i32 = 3;
const PERSISTENT_RECEIVE: i32 = 4;
const PERSISTENT_COLLECTIVE: i32 = 5;
const PARTITIONED_SEND: i32 = 6;
const COLLECTIVE: i32 = 10;
/// Number of bytes at the start of a request that contain its completion counter.
const COUNTER_BYTES: usize = 64;
/// Number of bytes of UCX's part of a receive that are read. They precede MPICH's part.
pub(super) const UCX_BYTES: usize = 0x140;
/// Positions of context id and rank in UCX's number of a message, in bits. The tag is in the lowest bits.
pub(super) const CONTEXT: u32 = 48;
pub(super) const RANK: u32 = 32;
/// The bit of a context id that stands for the messages of collective operations.
const OF_COLLECTIVES: u16 = 1;
/// The bits of a context id that stand for the communicators of one host's ranks, and of one rank for each host. MPICH
/// performs collective operations of a communicator in these.
const OF_PARTS: u16 = 6;
/// Mask of the rank in UCX's number of a message. Higher bits of a rank are cut off.
pub(super) const RANKS: u64 = 0xffff;
/// Mask bits of a receive from one rank, further bits for one tag, and bits that are never set.
const OF_ONE_RANK: u64 = 0xffff_ffff_9000_0000;
pub(super) const OF_ONE_TAG: u64 = 0x0fff_ffff;
const NEVER: u64 = 0x6000_0000;
/// Maximum number of communicators, and of requests, that are examined: of the array, and of the first block.
const COMMUNICATORS_MAX: u32 = 256;
const REQUESTS_MAX: u32 = 256;
/// Maximum number of UCX receives that are examined. Each of them has a reference to the same worker, which can be any
/// of its words.
const RECEIVES_MAX: usize = 4;
/// Number of bytes of UCX's worker that are examined. The list of received messages begins in them.
const WORKER_BYTES: usize = 4096;
/// Number of bytes at the start of a worker with the address of its context, and largest length of its own address.
const WORKER_HEAD_BYTES: usize = 256;
const ADDRESS_BYTES_MAX: u64 = 4096;
/// Offsets after a message's list node, in bytes: of the message's length, of the length of its header, and of its
/// number.
const MESSAGE_BYTES: usize = 40;
const LENGTH: usize = 16;
const HEAD_LENGTH: usize = 20;
const NUMBER: usize = 32;
/// Length of the header of an MPI message, in bytes: the header is only the number.
const MESSAGE_HEAD: i32 = 8;
/// Maximum number of messages that are examined.
const MESSAGES_MAX: usize = 64;

/// The pending receives of a process, and its unexpected messages.
pub struct Receives<'a> {
    pub(super) mpich: &'a Mpich<'a>,
    requests: Objects,
    /// The communicators, by context id.
    communicators: BTreeMap<u16, Vec<Piece>>,
    /// UCX's connections to the ranks of the job, once they were searched.
    pub(super) connections: OnceCell<Option<Vec<u64>>>,
    /// The UCX worker in MPICH's variables, once it was searched.
    worker: OnceCell<Option<u64>>,
}

impl Mpich<'_> {
    /// The pending receives. `None` if UCX's numbers do not have the communicators' context ids, or if requests are not
    /// found.
    pub fn receives(&self) -> Option<Receives<'_>> {
        if !self.tells_contexts {
            return None;
        }
        let mut communicators: BTreeMap<u16, Vec<Piece>> = BTreeMap::new();
        let all = self.communicators.iter();
        for one in all.flat_map(|all| all.all(self.memory, COMMUNICATORS_MAX)) {
            if let Some(context) = self.context_of(&one) {
                communicators.entry(context).or_default().push(one);
            }
        }
        Some(Receives {
            mpich: self,
            requests: Objects::find(self.memory, &self.variables, (REQUESTS, None))?,
            communicators,
            connections: OnceCell::new(),
            worker: OnceCell::new(),
        })
    }
}

impl Receives<'_> {
    /// The message that a request waits for. `None` unless it is incomplete, and its peer is a known rank.
    pub fn message(&self, request: u32) -> Option<Message> {
        let (address, block) = self.requests.object(self.mpich.memory, request)?;
        let (address, block) = match block.number(KIND) {
            PERSISTENT_SEND | PERSISTENT_RECEIVE => {
                only(block.words().filter_map(|word| self.request_at(word)))?
            }
            _ => (address, block),
        };
        match block.number(KIND) {
            SEND => self.sent(address, &block),
            RECEIVE => self.received(address, &block),
            PARTITIONED_SEND => self.partitioned(address, &block),
            _ => None,
        }
    }

    /// The communicator of a request of an incomplete nonblocking collective operation; `None` for other requests.
    pub fn collective(&self, request: u32) -> Option<u32> {
        let memory = self.mpich.memory;
        let (address, block) = self.requests.object(memory, request)?;
        let (address, block) = match block.number(KIND) {
            PERSISTENT_COLLECTIVE => only(block.words().filter_map(|word| self.request_at(word)))?,
            _ => (address, block),
        };
        if block.number(KIND) != COLLECTIVE || !is_to_come(address, &block) {
            return None;
        }
        self.communicator_of(&block)
    }

    /// The communicator to which a request points; `None` if there is none.
    pub(super) fn communicator_of(&self, block: &Piece) -> Option<u32> {
        let mut heads = block.words().filter_map(|word| {
            let head = Piece::read(self.mpich.memory, word, HEAD_BYTES)?;
            Some(head.number(0).cast_unsigned()).filter(|_| head.number(4) > 0)
        });
        heads.find(|handle| {
            *handle == WORLD.cast_unsigned() || Mpich::is_later_communicator(*handle)
        })
    }

    /// The pending receives in the communicator with this context id; `None` if a receive of the process names no rank.
    pub fn posted(&self, context: i64) -> Option<Vec<Message>> {
        let mut messages = self.pending()?;
        messages.retain(|message| i64::try_from(message.within.0) == Ok(context));
        Some(messages)
    }

    /// As [`Self::posted`], of the collective operations in that communicator.
    pub fn posted_of_collectives(&self, context: i64) -> Option<Vec<Message>> {
        let mut messages = self.pending()?;
        messages.retain(|message| {
            let whole = message.within.0 & !u64::from(OF_PARTS);
            i64::try_from(whole) == Ok(context | i64::from(OF_COLLECTIVES))
        });
        Some(messages)
    }

    fn pending(&self) -> Option<Vec<Message>> {
        let requests = self.requests.every(self.mpich.memory, REQUESTS_MAX);
        let receives =
            requests.filter(|(at, block)| block.number(KIND) == RECEIVE && is_to_come(*at, block));
        let messages = receives.map(|(address, block)| self.received(address, &block));
        messages.collect()
    }

    /// The tags of the unexpected messages from a rank: messages that have arrived but are not received. `context` is
    /// the communicator's context id, `source` the rank in the communicator.
    pub fn unexpected(&self, context: i64, source: usize) -> Vec<i32> {
        let numbers = u64::try_from(context).ok().zip(u64::try_from(source).ok());
        let is_kept = |(context, source): &(u64, u64)| *context <= RANKS && *source <= RANKS;
        let Some((context, source)) = numbers.filter(is_kept) else {
            return Vec::new();
        };
        let wanted = context << CONTEXT | source << RANK;
        let numbers = self.come(|number| number & OF_ONE_RANK == wanted);
        let tags = numbers.into_iter().map(|number| number & OF_ONE_TAG);
        tags.filter_map(|tag| i32::try_from(tag).ok()).collect()
    }

    /// The program's unexpected messages, of all communicators whose ranks are known.
    pub fn arrived(&self) -> Vec<Message> {
        let numbers = self.come(|number| self.arrived_with(number).is_some());
        let messages = numbers.into_iter();
        messages.filter_map(|it| self.arrived_with(it)).collect()
    }

    /// UCX's numbers of the messages that have arrived, as far as `is_it` accepts them.
    fn come(&self, is_it: impl Fn(u64) -> bool) -> Vec<u64> {
        let requests = self.requests.every(self.mpich.memory, REQUESTS_MAX);
        let of_ucx = requests.filter_map(|(address, block)| {
            let mut words = block.words();
            words.find_map(|word| self.of_ucx(word, address))
        });
        let of_ucx = of_ucx
            .take(RECEIVES_MAX)
            .flatten()
            .filter(|word| *word != 0);
        let worker = *self.worker.get_or_init(|| self.find_worker());
        let workers: BTreeSet<u64> = of_ucx.chain(worker).collect();
        let mut come = workers.into_iter().map(|worker| self.of(worker, &is_it));
        come.find(|numbers| !numbers.is_empty()).unwrap_or_default()
    }

    /// The UCX worker in MPICH's variables: UCX's context precedes it, and its address and the length of that follow.
    fn find_worker(&self) -> Option<u64> {
        let is_worker = |words: &&[u64]| {
            let is_length = (1..=ADDRESS_BYTES_MAX).contains(&words[3]);
            if !is_length || words[0] == 0 || words[2] == 0 {
                return false;
            }
            let worker = Piece::read(self.mpich.memory, words[1], WORKER_HEAD_BYTES);
            worker.is_some_and(|worker| worker.words().any(|word| word == words[0]))
        };
        self.mpich.variables.iter().find_map(|block| {
            let words: Vec<u64> = block.words().collect();
            let found = words.windows(4).find(is_worker)?;
            Some(found[1])
        })
    }

    /// The numbers of the messages that the UCX worker at the address has received; empty if there is no worker.
    fn of(&self, worker: u64, is_it: &impl Fn(u64) -> bool) -> Vec<u64> {
        let memory = self.mpich.memory;
        let Some(piece) = Piece::read_some(memory, worker, WORKER_BYTES) else {
            return Vec::new();
        };
        let mut lists = (0..piece.0.len()).step_by(WORD).filter_map(|at| {
            let (head, first) = (worker.checked_add(at as u64)?, piece.word(at));
            let link = Piece::read(memory, first, 2 * WORD).filter(|_| first != head)?;
            (link.word(WORD) == head).then_some((head, first))
        });
        let numbers = |(head, first)| {
            let next = |at: u64| {
                let next = Piece::read(memory, at, WORD)?.word(0);
                Some(next).filter(|next| *next != head)
            };
            let links = std::iter::successors(Some(first), |at| next(*at)).take(MESSAGES_MAX);
            let numbers = links.filter_map(|link| {
                let message = Piece::read(memory, link, MESSAGE_BYTES)?;
                let number = message.word(NUMBER);
                let is_it = message.number(HEAD_LENGTH) == MESSAGE_HEAD
                    && message.number(LENGTH) >= MESSAGE_HEAD
                    && is_it(number);
                is_it.then_some(number)
            });
            Some(numbers.collect()).filter(|numbers: &Vec<u64>| !numbers.is_empty())
        };
        lists.find_map(numbers).unwrap_or_default()
    }

    /// The message of the program with this number of UCX; `None` if it is of a collective operation, or of no
    /// communicator of this process.
    fn arrived_with(&self, number: u64) -> Option<Message> {
        let context = u16::try_from(number >> CONTEXT).ok()?;
        let source = usize::try_from(number >> RANK & RANKS).ok()?;
        let is_of_program = number & OF_ONE_RANK & u64::from(u32::MAX) == 0;
        let is_of_program = is_of_program && context & OF_COLLECTIVES == 0;
        Some(Message {
            peer: self.peer(context, source).filter(|_| is_of_program)?,
            tag: i32::try_from(number & OF_ONE_TAG).ok()?,
            direction: Some(Direction::Received),
            within: (context.into(), source),
        })
    }

    /// The rank in the job of a rank in the communicator with this context id; `None` if it is not found.
    pub(super) fn peer(&self, context: u16, rank: usize) -> Option<u32> {
        match context {
            0 if u64::from(self.mpich.size) <= RANKS + 1 => u32::try_from(rank)
                .ok()
                .filter(|rank| *rank < self.mpich.size),
            0 => None,
            context => self.ranks_of(context)?.get(rank).copied(),
        }
    }

    /// The request at an address; `None` if there is none.
    fn request_at(&self, address: u64) -> Option<(u64, Piece)> {
        let memory = self.mpich.memory;
        let handle = Piece::read(memory, address, 4)?.number(0);
        let found = self.requests.object(memory, handle.cast_unsigned());
        found.filter(|(at, _)| *at == address)
    }

    /// The message of the receive at this address; `None` unless it is incomplete and names a rank.
    fn received(&self, address: u64, block: &Piece) -> Option<Message> {
        if !is_to_come(address, block) {
            return None;
        }
        let mut wanted = block.words().filter_map(|it| self.by_ucx(it, address));
        let (wanted, mask) = wanted.next()?;
        let context = u16::try_from(wanted >> CONTEXT).ok()?;
        let rank = usize::try_from(wanted >> RANK & RANKS).ok()?;
        let peer = self.peer(context & !OF_COLLECTIVES, rank)?;
        let tag = match mask & OF_ONE_TAG {
            0 => sdm_mpi::ANY_TAG_NUMBER,
            _ => i32::try_from(wanted & OF_ONE_TAG).ok()?,
        };
        let direction = Some(Direction::Received);
        Some(Message {
            peer,
            tag,
            direction,
            within: (context.into(), rank),
        })
    }

    /// UCX's number and mask of the receive with this request; `None` if there is no such receive at the address.
    fn by_ucx(&self, address: u64, request: u64) -> Option<(u64, u64)> {
        let words = self.of_ucx(address, request)?;
        let pairs = words.windows(2).map(|pair| (pair[0], pair[1]));
        // A pattern that is found twice may be a coincidence once.
        only(pairs.filter(|(_, mask)| {
            let tag = mask & OF_ONE_TAG;
            mask & (OF_ONE_RANK | NEVER) == OF_ONE_RANK && (tag == 0 || tag == OF_ONE_TAG)
        }))
    }

    /// The 64-bit words of UCX's part of the receive with this request; `None` if no such receive is at the address.
    fn of_ucx(&self, address: u64, request: u64) -> Option<Vec<u64>> {
        let from = address.checked_sub(UCX_BYTES as u64)?;
        let block = Piece::read(self.mpich.memory, from, UCX_BYTES)?;
        let words: Vec<u64> = block.words().collect();
        words.contains(&request).then_some(words)
    }

    /// The ranks of the only communicator with this context id. `None` if there are several, or if it has more ranks
    /// than UCX's number can hold.
    pub(super) fn ranks_of(&self, context: u16) -> Option<Vec<u32>> {
        let [one] = &self.communicators.get(&context)?[..] else {
            return None;
        };
        match self.mpich.members_of(one)? {
            Members::Of(ranks) => Some(ranks).filter(|ranks| ranks.len() as u64 <= RANKS + 1),
            Members::Between(..) | Members::WithOtherJobs => None,
        }
    }
}

/// True if a request's completion counter shows that the request is pending. The request has a pointer to the counter.
pub(super) fn is_to_come(address: u64, block: &Piece) -> bool {
    let mut words = block.words().take(COUNTER_BYTES / WORD);
    let counter = words.find_map(|word| {
        let at = usize::try_from(word.checked_sub(address)?).ok()?;
        (at < COUNTER_BYTES).then_some(at)
    });
    counter.is_some_and(|at| block.number(at) > 0)
}
