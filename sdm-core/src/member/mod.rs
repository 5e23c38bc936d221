//! A member: a node with its links. Bytes in, bytes out, without I/O.
//!
//! The owner moves bytes and knows the clock. It calls one `handle_*`, then drains
//! [`Member::poll_output`] to `None`, then waits until bytes come, a socket has room, or
//! [`Member::poll_timeout`] has passed. The same code runs over sockets and in the simulator.

mod bulk;
mod exchange;
mod handshakes;
mod links;
mod pending_dials;
mod sent_commands;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use sdm_idset::IdSet;

use crate::config::Config;
use crate::dialer::Dialer;
use crate::ids::{CommandId, ServerId};
use crate::limits;
use crate::link::{Link, LinkConfig};
use crate::message::{Datagram, EndPolicy, ExchangeId, Lane, Slice, Status};
use crate::node::{
    Action, ConnectRequest, Delivery, ExchangeFailure, LinkId, Node, ProtocolError, Submission,
};
use crate::transport::ConnectionString;
use handshakes::Refusals;
use sent_commands::Unsent;

/// A request or event of a member for its owner.
#[derive(Debug)]
pub enum Output {
    /// Open a connection; answered by [`Member::handle_connected`] or
    /// [`Member::handle_connect_failed`].
    Dial {
        /// The link that the connection will carry.
        link: LinkId,
        /// The address to connect to.
        address: ConnectionString,
    },
    /// The link has bytes to write: take them with [`Member::poll_transmit`].
    Write(LinkId),
    /// Close the connection of this link, or stop making it.
    Close {
        /// The link whose connection is closed.
        link: LinkId,
        /// Bytes to send before the connection is closed: flushes of the link until they reach 1 MiB.
        last_bytes: Vec<u8>,
    },
    /// Log the reason for which a connection was refused or a message was not sent. The session continues, unless
    /// [`Output::Ended`] follows.
    Refused {
        /// The message, with the peer and the reason.
        why: String,
    },
    /// The session's configuration has come.
    Configure(Arc<Config>),
    /// Execute a command; answered by [`Member::handle_local`] once per task.
    Execute {
        /// The command, for the answers.
        id: CommandId,
        /// The tasks of this member that are to execute the command.
        tasks: IdSet,
        /// The command for the tasks, opaque to the tree.
        payload: Bytes,
    },
    /// A command was passed to the own tasks ([`crate::node::LocalTasks::execute`]), and they have not answered yet.
    /// The rest is as after [`Output::Execute`].
    Begun(CommandId),
    /// Give up a command on the own tasks.
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
    /// Read no program output while true: the tree has no room for it.
    PauseOutput(bool),
    /// Shut the own tasks down; answered by [`Member::handle_local_down`].
    End(EndPolicy),
    /// This member is over: its own tasks and all members below have ended, or their time limit has passed, or the
    /// front-end was not reached. Send the remaining bytes and end.
    Ended,
}

/// Number of bytes from which on no further flush of a link is sent when the link is closed.
const LAST_BYTES_MAX: usize = 1 << 20;

/// One link of a member: its state, its credit and its time-outs.
struct Peer {
    link: Link,
    /// The server or front-end that this member connects to over the link; `None` for an incoming connection.
    dialed: Option<ServerId>,
    /// True once the node knows the link.
    known: bool,
    /// Bulk bytes received for which credit has not been granted again.
    owed: u32,
    /// The window that this end grants to the other end, in bytes.
    window: u32,
    /// Time at which the link has to be polled, as in [`Member::deadlines`]; `None` if no poll is due.
    due: Option<Instant>,
}

/// The connection attempts to one child.
struct Dialing {
    request: ConnectRequest,
    dialer: Dialer,
    /// The link of the attempt under way; `None` between attempts.
    link: Option<LinkId>,
    wake: Option<Instant>,
}

/// A node with its links.
///
/// Large because it connects the node, its links and its dialers. Each of them has a type of its own, and each file
/// of this module has the methods for one concern.
pub struct Member {
    node: Node,
    config: Arc<LinkConfig>,
    peers: BTreeMap<LinkId, Peer>,
    /// Time at which each link has to be polled, so that not all links are polled each time.
    deadlines: BTreeSet<(Instant, LinkId)>,
    /// Links to children with bulk bytes for which credit has not been granted again.
    owing: Vec<LinkId>,
    dialing: Vec<Dialing>,
    /// Addresses of children that were found by a search over several ports.
    found: BTreeMap<ServerId, ConnectionString>,
    next_link: u64,
    bulk_window: usize,
    /// Each child's window, in bytes: its share of [`limits::BULK_NODE_BYTES`], at most `bulk_window`.
    child_window: u32,
    /// True while the user of the root accepts no more bulk data.
    delivery_paused: bool,
    output_paused: bool,
    refusals: Refusals,
    unsent: Vec<Unsent>,
    outputs: VecDeque<Output>,
}

impl Member {
    /// A member that runs `node`, in the session whose key is in `config`.
    #[must_use]
    pub fn new(node: Node, config: Arc<LinkConfig>) -> Self {
        Self {
            node,
            config,
            peers: BTreeMap::new(),
            deadlines: BTreeSet::new(),
            owing: Vec::new(),
            dialing: Vec::new(),
            found: BTreeMap::new(),
            next_link: 1,
            bulk_window: limits::BULK_WINDOW_BYTES as usize,
            child_window: limits::BULK_WINDOW_BYTES,
            delivery_paused: false,
            output_paused: false,
            refusals: Refusals::default(),
            unsent: Vec::new(),
            outputs: VecDeque::new(),
        }
    }

    /// The node inside.
    #[must_use]
    pub fn node(&self) -> &Node {
        &self.node
    }

    /// Bytes of bulk data that wait here, for other members or for this one's user.
    #[must_use]
    pub fn queued_bytes(&self) -> usize {
        let links = self.peers.values().map(|peer| peer.link.bulk_backlog());
        links.sum::<usize>() + self.node.bulk_bytes()
    }

    /// Returns the next output, oldest first; `None` if there is none.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// Time of the next call of [`Member::handle_timeout`]; `None` if no call is due.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let link = self.deadlines.first().map(|(due, _)| *due);
        let dialing = self.dialing.iter().filter_map(|dialing| dialing.wake);
        let others = dialing.chain(self.node.poll_timeout());
        others.chain(link).min()
    }

    /// Carries out what is due at the time of [`Member::poll_timeout`].
    pub fn handle_timeout(&mut self, now: Instant) {
        let due = |at: Option<Instant>| at.is_some_and(|at| at <= now);
        let links = self.deadlines.range(..=(now, LinkId(u64::MAX)));
        let links: Vec<LinkId> = links.map(|(_, id)| *id).collect();
        for id in links {
            let Some(peer) = self.peers.get_mut(&id) else {
                continue;
            };
            match peer.link.handle_timeout(now) {
                Ok(()) => self.after_link(now, id),
                Err(error) => self.drop_link(now, id, &error),
            }
        }
        let wanted: Vec<ServerId> = self
            .dialing
            .iter()
            .filter(|dialing| due(dialing.wake))
            .map(|dialing| dialing.request.server)
            .collect();
        wanted.into_iter().for_each(|server| self.dial(now, server));
        if due(self.node.poll_timeout()) {
            self.node.handle_timeout(now);
        }
        self.drain_node(now);
    }

    fn drain_node(&mut self, now: Instant) {
        self.drain_actions(now);
        self.feed(now);
        self.pause_output();
    }

    fn drain_actions(&mut self, now: Instant) {
        while let Some(action) = self.node.poll_action() {
            match action {
                Action::Send { link, message } => self.send(now, link, &message),
                Action::Connect(request) => {
                    let server = request.server;
                    let dialer = Dialer::new(
                        now,
                        pending_dials::target(now, &request, self.found.get(&server)),
                    );
                    self.stop_dialing(server);
                    self.dialing.push(Dialing {
                        request,
                        dialer,
                        link: None,
                        wake: None,
                    });
                    self.dial(now, server);
                }
                Action::StopConnecting(server) => self.stop_dialing(server),
                Action::Close(link) => self.close(link),
                Action::Configure(config) => {
                    self.apply(&config);
                    self.outputs.push_back(Output::Configure(config));
                }
                Action::Execute { id, tasks, payload } => {
                    self.outputs
                        .push_back(Output::Execute { id, tasks, payload });
                }
                Action::CancelLocal(id) => self.outputs.push_back(Output::CancelLocal(id)),
                Action::Deliver(delivery) => self.outputs.push_back(Output::Deliver(delivery)),
                Action::Exchanged { id, outcome } => {
                    self.outputs.push_back(Output::Exchanged { id, outcome });
                }
                Action::Datagram(letter) => self.outputs.push_back(Output::Datagram(letter)),
                Action::End(policy) => self.outputs.push_back(Output::End(policy)),
                Action::Ended => self.outputs.push_back(Output::Ended),
            }
        }
    }

    /// Sets the limits of links from the session's configuration.
    fn apply(&mut self, config: &Config) {
        self.bulk_window = config.bulk_window_bytes as usize;
        Arc::make_mut(&mut self.config).apply(config);
        self.peers
            .values_mut()
            .for_each(|peer| peer.link.apply(config));
        self.share_windows();
        self.give_windows();
    }

    /// Handles an answer of own tasks; see [`Node::handle_local`].
    pub fn handle_local(
        &mut self,
        now: Instant,
        id: CommandId,
        tasks: &IdSet,
        status: Status,
        payload: Bytes,
    ) {
        self.node.handle_local(now, id, tasks, status, payload);
        self.drain_node(now);
    }

    /// Reports an event of this member's own tasks on the given lane.
    pub fn handle_local_event(&mut self, now: Instant, lane: Lane, tasks: &IdSet, payload: Bytes) {
        self.node.handle_local_event(now, lane, tasks, payload);
        self.drain_node(now);
    }

    /// Records that the own tasks are shut down, as [`Output::End`] has requested.
    pub fn handle_local_down(&mut self, now: Instant) {
        self.node.handle_local_down(now);
        self.drain_node(now);
    }

    /// At the root: begins the session; see [`Node::start`].
    ///
    /// # Errors
    /// The plan is not a tree, or is too large to be sent.
    pub fn start(
        &mut self,
        now: Instant,
        config: Config,
        plan: Slice,
    ) -> Result<(), ProtocolError> {
        self.apply(&config);
        self.node.start(now, config, plan)?;
        self.drain_node(now);
        Ok(())
    }

    /// At the root: sends a command; see [`Node::submit`].
    pub fn submit(&mut self, now: Instant, submission: Submission) -> CommandId {
        let lane = submission.lane;
        let id = self.node.submit(now, submission);
        self.drain_node(now);
        self.unsent.push(Unsent { id, lane });
        self.tell_sent();
        id
    }

    /// At the root: cancels a command.
    pub fn cancel(&mut self, now: Instant, id: CommandId) {
        self.node.cancel(now, id);
        self.drain_node(now);
    }

    /// At the root: ends the session.
    pub fn finish(&mut self, now: Instant, policy: EndPolicy) {
        self.node.finish(now, policy);
        self.drain_node(now);
    }

    /// Ends this member alone; see [`Node::leave`].
    pub fn leave(&mut self, now: Instant, policy: EndPolicy) {
        self.node.leave(now, policy);
        self.drain_node(now);
    }
}

#[cfg(test)]
mod tests;
