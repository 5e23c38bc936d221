//! The messages that members of the tree send one another. [`crate::codec`] encodes them. No field is a `usize`, whose
//! size differs between machines.

mod addresses;
mod exchange;

use std::sync::Arc;

use bytes::Bytes;
use sdm_idset::IdSet;

use crate::config::Config;
pub use crate::config::EndPolicy;
use crate::ids::{Attempt, CommandId, ServerId};
pub use addresses::Addresses;
pub use exchange::{Datagram, ExchangeId, ExchangeMessage, ExchangeStep, Piece};

/// The lane of a link that a message takes. Order holds within a lane.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lane {
    /// Commands, answers, events: never blocked, bounded by the number of open commands.
    Control,
    /// Program output and input: flows against byte credit granted hop by hop.
    Bulk,
}

/// A message between two members of the tree.
#[derive(Clone, PartialEq, Debug)]
pub enum Message {
    /// Down: the child's identity, its subtree, and the session's configuration.
    Init(Box<Init>),
    /// Down: a further part of a plan that did not fit into one message. The plan is complete when it has as many
    /// entries as its first entry gives. It is not applied before.
    Plan(Slice),
    /// Down: a command for a set of tasks.
    Command(CommandMessage),
    /// Down: give up a command.
    Cancel(CommandId),
    /// Down: the session is over. The member ends its tasks by this policy, and then itself.
    End(EndPolicy),
    /// Up: answers to one command, merged.
    Answer(Answer),
    /// Up: unsolicited events, merged.
    Event(EventMessage),
    /// Up: tasks that became reachable, or unreachable.
    Reach(ReachChange),
    /// Up: the sender has accepted another parent, of a higher epoch, and leaves this one.
    Leave,
    /// Up: the tasks of the sender and of all members below it have been ended as asked; its link closes next.
    Ended,
    /// Both ways: a step of an exchange.
    Exchange(Box<ExchangeMessage>),
    /// Both ways: a message for the server of a task.
    Datagram(Box<Datagram>),
}

impl Message {
    /// The lane that the message takes.
    #[must_use]
    pub fn lane(&self) -> Lane {
        match self {
            Self::Command(command) => command.lane,
            Self::Event(event) => event.lane,
            _ => Lane::Control,
        }
    }
}

/// The initialisation of a child ("PTP new SDM, Initialization", steps 3 to 9).
///
/// It is command [`CommandId::INIT`]: every task behind the child answers it.
#[derive(Clone, PartialEq, Debug)]
pub struct Init {
    /// Limits, time-outs and policies, the same for the whole session.
    pub config: Arc<Config>,
    /// The child's subtree, or the first part of it; the first entry is the child itself. Further parts come in
    /// [`Message::Plan`].
    pub slice: Slice,
}

/// A subtree of a plan in preorder, sharing the plan's memory.
#[derive(Clone)]
pub struct Slice {
    plan: Arc<[PlanEntry]>,
    start: u32,
    end: u32,
}

impl Slice {
    /// The whole of a plan.
    #[must_use]
    pub fn new(mut plan: Vec<PlanEntry>) -> Self {
        // Neighbours are mostly of one host, and share its name then.
        for at in 1..plan.len() {
            if plan[at].host == plan[at - 1].host {
                plan[at].host = Arc::clone(&plan[at - 1].host);
            }
        }
        let end = as_index(plan.len());
        let (plan, start) = (plan.into(), 0);
        Self { plan, start, end }
    }

    /// Appends the entries of `next` if they follow this slice in the memory of the same plan. Returns false if they do
    /// not.
    pub(crate) fn append(&mut self, next: &Self) -> bool {
        let follows = Arc::ptr_eq(&self.plan, &next.plan) && self.end == next.start;
        if follows {
            self.end = next.end;
        }
        follows
    }

    /// A run of this slice's entries, by position within it.
    ///
    /// # Panics
    /// A run that is not within the slice: the caller's error.
    #[must_use]
    pub fn run(&self, run: std::ops::Range<usize>) -> Self {
        assert!(
            run.start <= run.end && run.end <= self.len(),
            "a run lies within its slice"
        );
        Self {
            plan: Arc::clone(&self.plan),
            start: self.start + as_index(run.start),
            end: self.start + as_index(run.end),
        }
    }
}

fn as_index(at: usize) -> u32 {
    u32::try_from(at).expect("a plan has at most SERVERS_MAX entries")
}

impl std::ops::Deref for Slice {
    type Target = [PlanEntry];

    fn deref(&self) -> &[PlanEntry] {
        &self.plan[self.start as usize..self.end as usize]
    }
}

impl PartialEq for Slice {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl std::fmt::Debug for Slice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// One member in a plan. A plan is a tree written in preorder.
#[derive(Clone, PartialEq, Debug)]
pub struct PlanEntry {
    /// The member that the entry describes: the master or a server.
    pub server: ServerId,
    /// Number of entries of the member's subtree, itself included: 1 or more.
    pub subtree_count: u32,
    /// The tasks that the member owns; none for the master.
    pub tasks: IdSet,
    /// Name of the member's host, as the host calls itself.
    pub host: Arc<str>,
    /// Addresses of the member, best first: `local://3`, numeric `tcp://address:port`, `ssh://host:port` or
    /// `called://3`. With a range (`port-last`) if the member's port in it was not announced.
    pub addresses: Addresses,
}

impl PlanEntry {
    /// A member at these addresses. Its place in the tree and its host are not known.
    #[must_use]
    pub fn new(server: ServerId, tasks: IdSet, addresses: &[String]) -> Self {
        Self {
            server,
            subtree_count: 0,
            tasks,
            host: "".into(),
            addresses: addresses.iter().collect(),
        }
    }
}

/// A command for a set of tasks.
#[derive(Clone, PartialEq, Debug)]
pub struct CommandMessage {
    /// Id of the command, which rises within a session and is never reused.
    pub id: CommandId,
    /// Number of this request. A repeated request over the same link has a higher number.
    pub attempt: Attempt,
    /// The tasks that are to execute it.
    pub destination: IdSet,
    /// The lane that the command takes.
    pub lane: Lane,
    /// Determines at which time each member sends the answers up.
    pub sync: SyncPolicy,
    /// Number of the merge rule for the answers; 0 merges equal ones.
    pub rule: u16,
    /// The rule's parameters.
    pub rule_params: Bytes,
    /// Commands below this id will not be repeated, but for those of `open`.
    pub settled_below: CommandId,
    /// The commands below `settled_below` that may be repeated.
    pub open: Vec<CommandId>,
    /// The command itself, opaque to the tree.
    pub payload: Bytes,
}

/// Determines at which time the answers to a command are sent up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SyncPolicy {
    /// One answer, sent when all tasks behind a node have answered.
    WaitForAll,
    /// One answer, when all tasks have answered or the time is over. A leaf waits for this time. A member above waits
    /// longer, by one [`crate::Config::grace`] per unit of its height. The missing tasks are named, and later answers
    /// follow.
    TimeOut {
        /// Time limit of a leaf, in milliseconds.
        ms: u32,
    },
    /// Answers are sent as they arrive, gathered for the event window: for run control.
    DontWait,
}

/// Outcome of an answer.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Status {
    /// The payload is the answer.
    Ok,
    /// The payload is an encoded [`crate::failure::RawFailure`].
    Failed,
    /// Too many distinct answers: only the set is kept, the payload is empty.
    Others,
}

/// One distinct answer and all its sources.
#[derive(Clone, PartialEq, Debug)]
pub struct Block {
    /// The kind of payload: an answer, a failure, or none.
    pub status: Status,
    /// The tasks that gave the answer, never empty.
    pub sources: IdSet,
    /// The answer; empty for [`Status::Others`].
    pub payload: Bytes,
}

/// Merged answers to one command; each source is in one block of one answer only.
#[derive(Clone, PartialEq, Debug)]
pub struct Answer {
    /// The command that is answered.
    pub id: CommandId,
    /// The attempt of the request that is answered.
    pub attempt: Attempt,
    /// Age of the oldest answer in the message, from its origin, in microseconds.
    pub age_us: u32,
    /// The answers since the last message.
    pub blocks: Vec<Block>,
    /// Tasks that have not answered in time, each set with the reason that is known.
    pub missing: Vec<(IdSet, String)>,
    /// Tasks whose server is gone.
    pub lost: IdSet,
}

/// Events of many tasks, merged on their way up.
#[derive(Clone, PartialEq, Debug)]
pub struct EventMessage {
    /// Output takes the bulk lane, everything else control.
    pub lane: Lane,
    /// Age of the oldest event in the message, from its origin, in microseconds. The merging window limits the time
    /// that an event waits on its whole way up, not at each member.
    pub age_us: u32,
    /// Distinct events in order. A source may be in several blocks, in the order of its events.
    pub blocks: Vec<EventBlock>,
}

/// One distinct event and all its sources.
#[derive(Clone, PartialEq, Debug)]
pub struct EventBlock {
    /// The tasks to which the event happened, never empty.
    pub sources: IdSet,
    /// The event itself, opaque to the tree.
    pub payload: Bytes,
}

/// Tasks whose reachability changed.
#[derive(Clone, PartialEq, Debug)]
pub struct ReachChange {
    /// The tasks whose reachability has changed.
    pub tasks: IdSet,
    /// The reachability of these tasks from now on.
    pub health: Health,
    /// The reason, as text for the user, which names the server: `server 3 on n1: connection reset`. Empty if the
    /// tasks are reachable again.
    pub why: String,
}

/// Reachability of a task.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Health {
    /// The task's server answers.
    Reachable,
    /// The task's server does not answer at present: it has been silent for a while, or its link has ended and is being
    /// made again.
    Silent,
    /// The task's server is gone.
    Lost,
}
