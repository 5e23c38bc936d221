//! Barriers among ranks of several nodes, in which each node sends data to all others. Barriers of the same ranks
//! differ by their count, which is the same on all nodes.

use std::collections::BTreeMap;

use sdm_idset::IdSet;

use crate::ffi::{Info, Proc};
use crate::host::request::{Done, InfoCallback, Known, ModexCallback, OpCallback};
use crate::host::tool_requests::Part;
use crate::host::{SUCCESS, UNREACHABLE};

/// Purpose of a barrier. Each purpose has a count of its own, marked by the highest bits.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    Fence,
    Connect,
    Disconnect,
    Group,
}

impl Purpose {
    fn bits(self) -> u32 {
        match self {
            Self::Fence => 0,
            Self::Connect => 1 << 30,
            Self::Disconnect => 2 << 30,
            Self::Group => 3 << 30,
        }
    }
}

/// The callback that waits for a barrier.
pub(crate) enum BarrierWaiter {
    Fence(Done<ModexCallback>),
    Connect(Done<OpCallback>),
    /// The members of the new group; `assigns` is true if the group needs a context id.
    Group {
        members: Vec<Proc>,
        assigns: bool,
        done: Done<InfoCallback>,
    },
}

impl BarrierWaiter {
    pub(crate) fn answer(self, status: i32, bytes: Vec<u8>) {
        match self {
            Self::Fence(done) => done.answer(status, bytes),
            Self::Connect(done) => done.answer(status),
            Self::Group {
                members,
                assigns,
                done,
            } => done.answer(status, about_group(members, assigns, &bytes)),
        }
    }
}

/// The result of a group's creation for its members: the members, its context id, and their endpoints.
fn about_group(members: Vec<Proc>, assigns: bool, bytes: &[u8]) -> Known {
    let (number, endpoints) = Part::read_all(bytes);
    let mut known = Known::default();
    known.add_members(members);
    if assigns {
        known.infos.push(Info::size(c"pmix.grp.ctxid", number));
    }
    if !endpoints.is_empty() {
        known.give_bytes(c"pmix.grp.endpt", &endpoints);
    }
    known
}

/// A barrier that all participating processes of this node have entered.
struct Barrier {
    comer: BarrierWaiter,
    /// The session's server that exchanges the barrier's data for this node.
    speaker: u64,
    /// Data of all nodes, as far as it has arrived.
    bytes: Vec<u8>,
}

/// The barriers of a job.
#[derive(Default)]
pub(crate) struct Barriers {
    next: u64,
    counts: Vec<(IdSet, Purpose, u32)>,
    open: BTreeMap<u64, Barrier>,
}

impl Barriers {
    /// Records that this node has entered a barrier; `speaker` is the server that answers for the node. Returns the
    /// barrier's number on this node, and the number of earlier barriers of the same ranks (with the purpose's
    /// bits).
    pub(crate) fn begin(
        &mut self,
        (ranks, purpose): (IdSet, Purpose),
        comer: BarrierWaiter,
        speaker: u64,
    ) -> (u64, u32) {
        let known = self.counts.iter_mut();
        let mut known = known.filter(|it| (&it.0, it.1) == (&ranks, purpose));
        let count = match known.next() {
            Some((_, _, count)) => {
                *count += 1;
                *count
            }
            None => {
                self.counts.push((ranks, purpose, 0));
                0
            }
        };
        let number = self.next;
        self.next += 1;
        let barrier = Barrier {
            comer,
            speaker,
            bytes: Vec::new(),
        };
        self.open.insert(number, barrier);
        (number, count | purpose.bits())
    }

    /// Adds a part of the data of all nodes.
    pub(crate) fn add(&mut self, number: u64, bytes: &[u8]) {
        if let Some(barrier) = self.open.get_mut(&number) {
            barrier.bytes.extend_from_slice(bytes);
        }
    }

    /// Ends a barrier: all nodes have entered it (`is_met`), or one never will.
    pub(crate) fn end(&mut self, number: u64, is_met: bool) {
        if let Some(barrier) = self.open.remove(&number) {
            match is_met {
                true => barrier.comer.answer(SUCCESS, barrier.bytes),
                false => barrier.comer.answer(UNREACHABLE, Vec::new()),
            }
        }
    }

    /// Fails the barriers for which a disconnected server was the speaker.
    pub(crate) fn forget(&mut self, speaker: u64) {
        let open = self.open.iter();
        let its = open.filter(|(_, it)| it.speaker == speaker);
        let its: Vec<u64> = its.map(|(number, _)| *number).collect();
        for number in its {
            self.end(number, false);
        }
    }
}
