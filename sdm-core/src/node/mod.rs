//! The state machine of one member of the tree, without I/O: its inputs are messages, links, answers and time.
//!
//! The owner calls one `handle_*` (or [`Node::submit`]), then drains [`Node::poll_action`] to
//! `None`, then waits until something arrives or [`Node::poll_timeout`] has passed. Time must not
//! go backward. The same code is the front-end's root, the master and every server: the root has
//! no parent, the master no tasks.

mod adoption;
mod answers;
mod audit;
mod commands;
mod datagram;
mod events;
mod exchange;
mod execution;
mod fast_path;
mod fuzz;
mod health;
mod links;
mod missing;
mod open_commands;
mod plan;
mod root;
mod route;
mod shutdown;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use sdm_idset::IdSet;

use crate::aggregate::{Merge, Rules};
use crate::config::Config;
use crate::ids::{Attempt, CommandId, Epoch, ServerId};
use crate::message::{Block, Datagram, EndPolicy, EventBlock, ExchangeId, Message, ReachChange};

pub use audit::{AuditError, Disagreement};
use events::Window;
pub use exchange::ExchangeFailure;
use exchange::Exchanges;
use execution::Executed;
pub use fast_path::LocalTasks;
pub use fuzz::{fuzz_front_end, fuzz_member, fuzz_slice};
use links::{Child, Parent};
use open_commands::{OpenCommand, SettledCommands};
use root::Root;
pub use root::Submission;
use shutdown::{Orphan, Shutdown};

/// The number of a link. The node's owner chooses it, and does not reuse it while the node lives.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct LinkId(pub u64);

/// Capacity of the list of actions that is kept when the list is empty.
const ACTIONS_KEPT: usize = 16;

/// A request or event of a node for its owner.
#[derive(Debug)]
pub enum Action {
    /// Send a message.
    Send {
        /// The link that carries the message.
        link: LinkId,
        /// The message, to be encoded by the link.
        message: Message,
    },
    /// Reach a member and become its parent; answered by [`Node::handle_child_up`], [`Node::handle_unreachable`] or
    /// [`Node::handle_unanswered`].
    Connect(ConnectRequest),
    /// Give up a [`Action::Connect`].
    StopConnecting(ServerId),
    /// Close a link after sending its queued messages; the node has forgotten the link.
    Close(LinkId),
    /// The session's configuration has come. It comes only once, before any command and any connection to a child, and
    /// never at the root.
    Configure(Arc<Config>),
    /// Execute a command; answered by [`Node::handle_local`], once per task.
    Execute {
        /// The command, for the answers.
        id: CommandId,
        /// The tasks of this member that are to execute the command.
        tasks: IdSet,
        /// The command for the tasks, opaque to the tree.
        payload: Bytes,
    },
    /// Cancel a command on the own tasks; tasks that have not answered still have to.
    CancelLocal(CommandId),
    /// An exchange is over: the data of all tasks in parts, or the failure.
    Exchanged {
        /// The exchange.
        id: ExchangeId,
        /// The data of all tasks in parts, or the failure.
        outcome: Result<Vec<Bytes>, ExchangeFailure>,
    },
    /// A datagram for the server of own tasks, or one that this server sent and that could not be delivered.
    Datagram(Datagram),
    /// A delivery for the user of the tree; at the root only.
    Deliver(Delivery),
    /// Shut the own tasks down; answered by [`Node::handle_local_down`].
    End(EndPolicy),
    /// The own tasks and all members below have ended, or their time limit has passed: flush the links and end.
    Ended,
}

/// A member to reach.
#[derive(Clone, PartialEq, Debug)]
pub struct ConnectRequest {
    /// The member that must answer in the handshake.
    pub server: ServerId,
    /// The epoch that the handshake announces.
    pub epoch: Epoch,
    /// Name of the member's host, for messages to the user.
    pub host: String,
    /// Addresses at which the member may listen, best first.
    pub addresses: Vec<String>,
    /// Time limit from now, after which the member is given up.
    pub wait: Duration,
    /// True if the member was in the tree before: if it accepts connections and does not answer, its process is
    /// stopped.
    pub again: bool,
    /// The pause before the first try; zero for none.
    pub pause: Duration,
}

/// An event of the root for its user.
#[derive(Clone, PartialEq, Debug)]
pub enum Delivery {
    /// Answers to a command. Each source is in one answer only, over all answers to the command.
    Answer {
        /// The command that is answered.
        id: CommandId,
        /// One block for each distinct answer, with its sources.
        blocks: Vec<Block>,
        /// Tasks that are missing now, each set with its reason.
        missing: Vec<(IdSet, String)>,
        /// Tasks whose server is gone.
        lost: IdSet,
        /// Sources that had been reported missing or lost before.
        late: IdSet,
    },
    /// The command has left: the owner has taken all its bytes for its connections (`sdm_send_callback`). Sent by a
    /// [`crate::member::Member`]; never for a command that ended before it could leave.
    Sent(CommandId),
    /// No destination of the command is open any more.
    Complete(CommandId),
    /// Unsolicited events, in order.
    Events(Vec<EventBlock>),
    /// Tasks whose reachability changed.
    Reach(ReachChange),
}

/// A message that this member cannot follow: the peer is at fault, its link is to be closed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub struct ProtocolError(pub String);

/// One member of the tree.
///
/// Large because every message, timer and end of a link changes several of its tables at once, and the accounting
/// law holds over all of them. The tables have types of their own, and each file of this module has the methods for
/// one concern.
pub struct Node {
    me: ServerId,
    rules: Rules,
    config: Option<Arc<Config>>,
    /// The tasks that this member owns.
    local: IdSet,
    /// Height of this member's subtree, in links; 0 for a member without children.
    height: u32,
    parent: Option<Parent>,
    /// The highest epoch of all parents so far.
    epoch: Epoch,
    /// The tasks that the parent believes to be behind this member.
    known_above: IdSet,
    /// The members below: first those of the first plan, the largest subtree first, then adopted ones.
    children: Vec<Child>,
    /// Index in `children` by link, sorted by link; may be out of date. Empty while there are few children.
    by_link: Vec<(LinkId, u32)>,
    /// Open commands, by id.
    open: Vec<OpenCommand>,
    /// The number of the last request to children.
    attempt: Attempt,
    settled: SettledCommands,
    executed: Vec<Executed>,
    exchanges: Exchanges,
    control: Window,
    bulk: Window,
    /// True while the parent has no room for bulk data.
    bulk_paused: bool,
    /// The wait for a parent, while there is none.
    orphan: Option<Orphan>,
    ending: Option<Box<Shutdown>>,
    root: Option<Box<Root>>,
    actions: VecDeque<Action>,
}

impl Node {
    /// A master or a server, which waits for its parent and its initialisation until `deadline`. It ends if they do not
    /// come.
    #[must_use]
    pub fn new(
        me: ServerId,
        rules: impl Fn(u16, &[u8]) -> Option<Box<dyn Merge>> + Send + Sync + 'static,
        deadline: Instant,
    ) -> Self {
        Self {
            me,
            rules: Box::new(rules),
            config: None,
            local: IdSet::new(),
            height: 0,
            parent: None,
            epoch: Epoch::default(),
            known_above: IdSet::new(),
            children: Vec::new(),
            by_link: Vec::new(),
            open: Vec::new(),
            attempt: Attempt(0),
            settled: SettledCommands::default(),
            executed: Vec::new(),
            exchanges: Exchanges::default(),
            control: Window::default(),
            bulk: Window::default(),
            bulk_paused: false,
            orphan: Some(Orphan::new(deadline)),
            ending: None,
            root: None,
            actions: VecDeque::new(),
        }
    }

    /// The id of this member.
    #[must_use]
    pub fn id(&self) -> ServerId {
        self.me
    }

    /// The highest epoch that a parent of this member had; a new parent must have a higher one.
    #[must_use]
    pub fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// The link to the parent; `None` while there is no parent.
    #[must_use]
    pub fn parent_link(&self) -> Option<LinkId> {
        self.parent.as_ref().map(|parent| parent.link)
    }

    /// The tasks that this member owns.
    #[must_use]
    pub fn local(&self) -> &IdSet {
        &self.local
    }

    /// The tasks behind this member that can be reached now, its own included.
    #[must_use]
    pub fn reach(&self) -> IdSet {
        let below = self.children.iter().map(|child| child.reach());
        IdSet::union_all(below.chain([&self.local]))
    }

    /// Returns the next action, oldest first; `None` if there is none.
    pub fn poll_action(&mut self) -> Option<Action> {
        let action = self.actions.pop_front();
        if action.is_none() && self.actions.capacity() > ACTIONS_KEPT {
            self.actions = VecDeque::new();
        }
        action
    }

    /// Releases memory that is kept for reuse; for owners of a million nodes, most of them idle.
    pub fn shrink(&mut self) {
        self.actions.shrink_to_fit();
    }

    /// Exchanges the list of actions for `other`, an empty list, after [`Node::poll_action`] has returned `None`. So
    /// all nodes of one owner can share one list.
    pub fn swap_actions(&mut self, other: &mut VecDeque<Action>) {
        std::mem::swap(&mut self.actions, other);
    }

    /// Time of the next call of [`Node::handle_timeout`]; `None` if no call is due.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let commands = self.open.iter().filter_map(OpenCommand::timeout);
        let events = [
            self.control.deadline(),
            self.bulk_deadline(),
            self.orphan.as_ref().map(Orphan::deadline),
        ];
        let ending = self.ending.as_deref().and_then(Shutdown::deadline);
        commands
            .chain(events.into_iter().flatten())
            .chain(ending)
            .min()
    }

    /// Carries out what is due at the time of [`Node::poll_timeout`].
    pub fn handle_timeout(&mut self, now: Instant) {
        self.commands_timeout(now);
        self.events_timeout(now);
        self.orphan_timeout(now);
        self.ending_timeout(now);
    }

    /// Handles a message that arrived over a link.
    ///
    /// # Errors
    /// A message that violates the protocol: the link should be closed.
    pub fn handle_message(
        &mut self,
        now: Instant,
        link: LinkId,
        message: Message,
    ) -> Result<(), ProtocolError> {
        let from_parent = self.parent_link() == Some(link);
        let child = self.child_of(link);
        match (message, child) {
            (Message::Init(init), _) if from_parent => self.handle_init(now, *init),
            (Message::Plan(part), _) if from_parent => self.handle_plan_part(now, &part),
            (Message::Command(command), _) if from_parent => self.handle_command(now, command),
            (Message::Cancel(id), _) if from_parent => self.handle_cancel(now, id),
            (Message::End(policy), _) if from_parent => self.end(now, policy),
            (Message::Answer(answer), Some(child)) => self.handle_answer(now, child, answer),
            (Message::Event(event), Some(child)) => self.handle_event(now, child, event),
            (Message::Reach(change), Some(child)) => self.handle_reach(now, child, change),
            (Message::Leave, Some(child)) => self.handle_leave(now, child),
            (Message::Ended, Some(child)) => {
                self.children[child].has_ended = true;
                Ok(())
            }
            (Message::Exchange(message), child) if from_parent || child.is_some() => {
                self.handle_exchange(link, from_parent, *message)
            }
            (Message::Datagram(letter), child) if from_parent || child.is_some() => {
                self.handle_letter(link, *letter)
            }
            // A link that either side has given up can still deliver messages that were on their way.
            (_, None) if !from_parent => return Ok(()),
            (message, _) => {
                let (kind, me) = (kind(&message), self.me);
                return Err(ProtocolError(format!(
                    "{me}: received a {kind} message from the wrong direction of the server tree"
                )));
            }
        }?;
        Ok(())
    }

    fn config(&self) -> &Config {
        self.config
            .as_deref()
            .expect("there are no children and no commands before the configuration")
    }

    fn send_up(&mut self, message: Message) {
        if let Some(link) = self.parent_link() {
            self.actions.push_back(Action::Send { link, message });
        }
    }
}

/// Reserves room for one element in an empty list: most lists of a node never hold a second element.
fn reserve_first<T>(list: &mut Vec<T>) {
    if list.capacity() == 0 {
        list.reserve_exact(1);
    }
}

fn kind(message: &Message) -> &'static str {
    match message {
        Message::Init(_) => "init",
        Message::Plan(_) => "plan",
        Message::Command(_) => "command",
        Message::Cancel(_) => "cancel",
        Message::End(_) => "end",
        Message::Answer(_) => "answer",
        Message::Event(_) => "event",
        Message::Reach(_) => "reach",
        Message::Leave => "leave",
        Message::Ended => "ended",
        Message::Exchange(_) => "exchange",
        Message::Datagram(_) => "letter",
    }
}
