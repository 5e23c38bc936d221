//! State of one exchange at a member.

use std::collections::BTreeMap;

use bytes::{Bytes, BytesMut};
use sdm_idset::{IdSet, TaskId};

use crate::limits::{BLOCKS_MAX, EXCHANGE_CHUNK_BYTES};
use crate::message::{ExchangeId, ExchangeStep, Piece};
use crate::node::LinkId;

/// An exchange under way.
pub(super) struct Exchange {
    pub(super) id: ExchangeId,
    /// Tasks whose data has arrived completely.
    pub(super) given: IdSet,
    /// Tasks among `given` that gave no data.
    pub(super) empty: IdSet,
    pub(super) parts: Vec<Part>,
    /// Index in `parts` by the first source of each part.
    pub(super) part_of: BTreeMap<TaskId, usize>,
    /// Size of the data in `parts`, in bytes.
    pub(super) held: u64,
    /// This member's own tasks that take part and have not received the data; empty if none do.
    pub(super) own: IdSet,
    /// True once the data here may be sent to the parent.
    pub(super) is_ready: bool,
    /// Progress of sending to the parent.
    pub(super) told: SendProgress,
    /// Children that are to receive the data of all tasks.
    pub(super) takers: Vec<ReceivingChild>,
    /// The data of all tasks, as far as it has arrived here; `None` before its first part.
    pub(super) all: Option<All>,
    /// Tasks whose servers have received the data of all.
    pub(super) taken: IdSet,
}

/// Data given by tasks of one server, as far as it has arrived here.
pub(super) struct Part {
    pub(super) sources: IdSet,
    pub(super) total: u64,
    pub(super) have: u64,
    pub(super) chunks: Vec<Bytes>,
}

/// Progress of sending to the parent: the link, the reported tasks without data, and the next part, chunk and offset.
#[derive(Default)]
pub(super) struct SendProgress {
    pub(super) link: Option<LinkId>,
    pub(super) empty: IdSet,
    pub(super) part: usize,
    pub(super) chunk: usize,
    pub(super) offset: u64,
}

/// A child that is to receive the data of all tasks.
pub(super) struct ReceivingChild {
    pub(super) link: LinkId,
    /// Index of the child's next chunk; `None` before the first is sent.
    pub(super) next: Option<usize>,
    pub(super) offset: u64,
}

pub(super) struct All {
    pub(super) total: u64,
    pub(super) have: u64,
    pub(super) chunks: Vec<Bytes>,
}

impl All {
    pub(super) fn is_whole(&self) -> bool {
        self.have == self.total
    }
}

/// Appends a part to the received data; false if there is a gap before it, or it exceeds the total.
pub(super) fn append(
    chunks: &mut Vec<Bytes>,
    have: &mut u64,
    total: u64,
    offset: u64,
    bytes: &Bytes,
) -> bool {
    let length = bytes.len() as u64;
    let fits = offset.checked_add(length).is_some_and(|end| end <= total);
    if offset > *have || !fits {
        return false;
    }
    let known = usize::try_from(*have - offset).unwrap_or(usize::MAX);
    if known < bytes.len() {
        let fresh = bytes.slice(known..);
        *have += fresh.len() as u64;
        chunks.push(fresh);
    }
    true
}

impl Exchange {
    pub(super) fn new(id: ExchangeId) -> Self {
        Self {
            id,
            given: IdSet::new(),
            empty: IdSet::new(),
            parts: Vec::new(),
            part_of: BTreeMap::new(),
            held: 0,
            own: IdSet::new(),
            is_ready: false,
            told: SendProgress::default(),
            takers: Vec::new(),
            all: None,
            taken: IdSet::new(),
        }
    }

    /// Adds a piece; false if it contradicts the earlier ones.
    pub(super) fn add(&mut self, piece: &Piece) -> bool {
        let Some(first) = piece.sources.first() else {
            return false;
        };
        let count = self.parts.len();
        let at = *self.part_of.entry(first).or_insert(count);
        if at == count {
            self.parts.push(Part {
                sources: piece.sources.clone(),
                total: piece.total,
                have: 0,
                chunks: Vec::new(),
            });
        }
        let part = &mut self.parts[at];
        let before = part.have;
        let (offset, bytes) = (piece.offset, &piece.bytes);
        if part.total != piece.total
            || part.sources != piece.sources
            || !append(&mut part.chunks, &mut part.have, part.total, offset, bytes)
        {
            return false;
        }
        self.held += part.have - before;
        if part.have == part.total {
            self.given.union_with(&piece.sources);
        }
        true
    }

    /// The next message for the parent at `link`; `None` if nothing is left to send. A new link restarts from the first
    /// part.
    pub(super) fn next_up(&mut self, link: LinkId) -> Option<ExchangeStep> {
        if !self.is_ready || self.all.as_ref().is_some_and(All::is_whole) {
            return None;
        }
        if self.told.link != Some(link) {
            self.told = SendProgress {
                link: Some(link),
                ..SendProgress::default()
            };
        }
        let empty = self.empty.difference(&self.told.empty);
        self.told.empty.union_with(&empty);
        let (mut pieces, mut bytes) = (Vec::new(), 0);
        while let Some(part) = self.parts.get(self.told.part) {
            let Some(chunk) = part.chunks.get(self.told.chunk) else {
                if part.have < part.total {
                    break;
                }
                self.told.part += 1;
                (self.told.chunk, self.told.offset) = (0, 0);
                continue;
            };
            if bytes + chunk.len() > EXCHANGE_CHUNK_BYTES || pieces.len() >= BLOCKS_MAX {
                break;
            }
            bytes += chunk.len();
            pieces.push(Piece {
                sources: part.sources.clone(),
                total: part.total,
                offset: self.told.offset,
                bytes: chunk.clone(),
            });
            self.told.chunk += 1;
            self.told.offset += chunk.len() as u64;
        }
        let some = !empty.is_empty() || !pieces.is_empty();
        some.then_some(ExchangeStep::Given { empty, pieces })
    }

    /// The next part of the data of all tasks for the child at `link`; `None` if it was sent all data that has arrived
    /// here.
    pub(super) fn next_down(&mut self, link: LinkId) -> Option<ExchangeStep> {
        let all = self.all.as_ref()?;
        let taker = self.takers.iter_mut().find(|it| it.link == link)?;
        let bytes = match (taker.next, all.chunks.get(taker.next.unwrap_or(0))) {
            (_, Some(chunk)) => chunk.clone(),
            (None, None) if all.total == 0 => Bytes::new(),
            _ => return None,
        };
        let step = ExchangeStep::All {
            total: all.total,
            offset: taker.offset,
            bytes: bytes.clone(),
        };
        taker.offset += bytes.len() as u64;
        taker.next = Some(taker.next.unwrap_or(0) + 1);
        Some(step)
    }

    /// The data of all tasks, in chunks of a suitable size, once all have given theirs.
    pub(super) fn gather(&mut self) -> All {
        let mut chunks = Vec::new();
        let mut small = BytesMut::new();
        for chunk in self.parts.drain(..).flat_map(|part| part.chunks) {
            if small.len() + chunk.len() > EXCHANGE_CHUNK_BYTES && !small.is_empty() {
                chunks.push(small.split().freeze());
            }
            match chunk.len() == EXCHANGE_CHUNK_BYTES {
                true => chunks.push(chunk),
                false => small.extend_from_slice(&chunk),
            }
        }
        if !small.is_empty() {
            chunks.push(small.freeze());
        }
        All {
            total: self.held,
            have: self.held,
            chunks,
        }
    }
}
