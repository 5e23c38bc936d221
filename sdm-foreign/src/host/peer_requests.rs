//! Requests of this node to other nodes, and their pending answers.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use sdm_foreign::peer_messages::{Entry, Note, Question, Reply};

use crate::host::request::{Done, LookupCallback, ModexCallback, OpCallback};
use crate::host::{OUT_OF_RESOURCE, SUCCESS, UNREACHABLE};

/// Time after which an unanswered request is repeated: it, or its answer, was lost with a connection.
const ASK_AGAIN: Duration = Duration::from_secs(20);
/// Pause before a request that could not be delivered is repeated.
const TRY_AGAIN: Duration = Duration::from_millis(500);
/// Maximum number of times that a request that could not be delivered is repeated.
const TRIES_MAX: u32 = 40;
/// Maximum size of the data that a rank has put, in bytes.
const MODEX_BYTES_MAX: usize = 256 << 20;
/// Size of one part in which a rank's data is sent, in bytes.
const PART_BYTES: usize = 56 << 10;
/// Maximum number of kept blobs of which another node has read only the beginning.
const BLOBS_MAX: usize = 256;

/// The origin of a request, which gets the answer.
pub(crate) enum Requester {
    Modex(Done<ModexCallback>),
    Op(Done<OpCallback>),
    LookUp(Done<LookupCallback>),
    /// A table of processes that is being gathered.
    Table(u64),
    /// A job that is being started, by its number here, and the node that is asked.
    Spawn(u64, u32),
}

impl Requester {
    fn fail(self, status: i32) {
        match self {
            Self::Modex(done) => done.answer(status, Vec::new()),
            Self::Op(done) => done.answer(status),
            Self::LookUp(done) => done.answer(status, &[]),
            Self::Table(_) | Self::Spawn(..) => {}
        }
    }
}

/// A request without an answer yet.
struct PendingQuestion {
    to: u32,
    question: Question,
    asker: Requester,
    tries: u32,
    due: Instant,
    /// Received bytes of an answer that comes in parts.
    have: Vec<u8>,
}

/// Requests of this node to other nodes that have no answer yet, and answers of this node that another node has not
/// read to the end.
#[derive(Default)]
pub(crate) struct Post {
    next: u64,
    waiting: BTreeMap<u64, PendingQuestion>,
    /// Stored data by the rank that requested it and the number of its message.
    blobs: BTreeMap<(u32, u64), Vec<u8>>,
}

/// A peer message without its sender, which [`Host`](super::Host) adds: the receiving rank, the number, and the
/// contents.
pub(crate) type Unsigned = (u32, u64, Note);

impl Post {
    /// Registers a request to the node of a rank, and returns the message to send. `None` if it is too long for a
    /// message: the requester has then received the error.
    pub(crate) fn ask(
        &mut self,
        to: u32,
        question: Question,
        asker: Requester,
    ) -> Option<Unsigned> {
        let note = Note::Question(question.clone());
        if note.bytes().is_none() {
            asker.fail(OUT_OF_RESOURCE);
            return None;
        }
        let number = self.next;
        self.next += 1;
        let waiting = PendingQuestion {
            to,
            question,
            asker,
            tries: 0,
            due: Instant::now() + ASK_AGAIN,
            have: Vec::new(),
        };
        self.waiting.insert(number, waiting);
        Some((to, number, note))
    }

    /// Time at which the next request is to be sent again; `None` if no request is pending.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.waiting.values().map(|it| it.due).min()
    }

    /// The requests that are due to be sent again.
    pub(crate) fn due(&mut self, now: Instant) -> Vec<Unsigned> {
        let due = self.waiting.iter_mut().filter(|(_, it)| it.due <= now);
        due.map(|(number, it)| {
            it.due = now + ASK_AGAIN;
            (it.to, *number, Note::Question(it.question.clone()))
        })
        .collect()
    }

    /// Handles a message that could not be delivered: it is sent again later, or its request fails. Returns the
    /// spawned job and the node where the failed request belonged to a spawn.
    pub(crate) fn is_back(&mut self, number: u64) -> Option<(u64, u32)> {
        let waiting = self.waiting.get_mut(&number)?;
        waiting.tries += 1;
        waiting.due = Instant::now() + TRY_AGAIN;
        if waiting.tries <= TRIES_MAX {
            return None;
        }
        match self.waiting.remove(&number)?.asker {
            Requester::Spawn(spawn, node) => return Some((spawn, node)),
            asker => asker.fail(UNREACHABLE),
        }
        None
    }

    /// Removes the request of this number if it belongs to a spawn. Returns the spawn and the node that was asked;
    /// `None` otherwise.
    pub(crate) fn take_spawn(&mut self, number: u64) -> Option<(u64, u32)> {
        let waiting = self.waiting.get(&number)?;
        let Requester::Spawn(spawn, node) = waiting.asker else {
            return None;
        };
        self.waiting.remove(&number);
        Some((spawn, node))
    }

    /// The number of the table of processes that the request of this number belongs to; `None` for another request. The
    /// last part of the answer removes the request.
    pub(crate) fn take_table(&mut self, number: u64, is_last: bool) -> Option<u64> {
        let waiting = self.waiting.get(&number)?;
        let Requester::Table(id) = waiting.asker else {
            return None;
        };
        if is_last {
            self.waiting.remove(&number);
        }
        Some(id)
    }

    /// Handles an answer. Returns the next message to send where the answer was only a part of the data.
    pub(crate) fn answered(
        &mut self,
        number: u64,
        reply: Reply,
        tell: impl FnOnce(Done<LookupCallback>, i32, &[Entry]),
    ) -> Option<Unsigned> {
        let waiting = self.waiting.remove(&number)?;
        let PendingQuestion {
            to, asker, have, ..
        } = waiting;
        match (asker, reply) {
            (Requester::Op(done), Reply::Done { status }) => done.answer(status),
            (Requester::LookUp(done), Reply::Found { status, entries }) => {
                tell(done, status, &entries);
            }
            (
                Requester::Modex(done),
                Reply::Modex {
                    status,
                    total,
                    offset,
                    bytes,
                },
            ) => {
                let mut have = have;
                // A request that was sent again may be answered twice.
                if offset == have.len() as u64 {
                    have.extend_from_slice(&bytes);
                }
                let total = usize::try_from(total).unwrap_or(usize::MAX);
                let is_too_much = total > MODEX_BYTES_MAX;
                if status != SUCCESS || is_too_much {
                    done.answer(
                        if is_too_much { OUT_OF_RESOURCE } else { status },
                        Vec::new(),
                    );
                } else if have.len() >= total {
                    done.answer(SUCCESS, have);
                } else {
                    let Question::Modex { rank, .. } = waiting.question else {
                        return None;
                    };
                    let offset = have.len() as u64;
                    let question = Question::Modex { rank, offset };
                    let note = Note::Question(question.clone());
                    let waiting = PendingQuestion {
                        to,
                        question,
                        asker: Requester::Modex(done),
                        tries: 0,
                        due: Instant::now() + ASK_AGAIN,
                        have,
                    };
                    self.waiting.insert(number, waiting);
                    return Some((to, number, note));
                }
            }
            (asker, _) => asker.fail(UNREACHABLE),
        }
        None
    }

    /// Stores the data of a rank of this node that another node has asked for.
    pub(crate) fn keep(&mut self, to: u32, number: u64, bytes: Vec<u8>) {
        while self.blobs.len() >= BLOBS_MAX {
            self.blobs.pop_first();
        }
        self.blobs.insert((to, number), bytes);
    }

    /// Returns the part of stored data that begins at `offset`; `None` if the data is not stored here. The data
    /// is removed after its last part.
    pub(crate) fn part(&mut self, to: u32, number: u64, offset: u64) -> Option<Reply> {
        let blob = self.blobs.get(&(to, number))?;
        let start = usize::try_from(offset).ok()?;
        let rest = blob.get(start..)?;
        let bytes = rest[..rest.len().min(PART_BYTES)].to_vec();
        let total = blob.len() as u64;
        if start + bytes.len() == blob.len() {
            self.blobs.remove(&(to, number));
        }
        Some(Reply::Modex {
            status: SUCCESS,
            total,
            offset,
            bytes,
        })
    }
}
