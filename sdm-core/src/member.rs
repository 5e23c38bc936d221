//! A node with its links: bytes in, bytes out, still without I/O.
//!
//! The owner moves bytes and knows the clock. It calls one `handle_*`, then drains
//! [`Member::poll_output`] to `None`, then waits until bytes come, a socket has room, or
//! [`Member::poll_timeout`] has passed. The same code runs over sockets and in the simulator.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use sdm_idset::IdSet;

use crate::config::Config;
use crate::dialer::{DialFailure, DialStep, Dialer, Target};
use crate::ids::{CommandId, Epoch, ServerId};
use crate::limits;
use crate::link::{Link, LinkConfig, LinkError, LinkEvent};
use crate::message::{EndPolicy, Lane, Message, Slice, Status};
use crate::node::{Action, ConnectRequest, Delivery, LinkId, Node, ProtocolError, Submission};
use crate::secure::{Hello, Role};
use crate::transport::ConnectionString;

/// What the owner is to do.
#[derive(Debug)]
pub enum Output {
    /// Open a connection; answered by [`Member::handle_connected`] or
    /// [`Member::handle_connect_failed`].
    Dial {
        /// The link that the connection will carry.
        link: LinkId,
        /// Where to.
        address: ConnectionString,
    },
    /// There are bytes for this link: take them by [`Member::poll_transmit`].
    Write(LinkId),
    /// Close the connection of this link, or stop making it.
    Close {
        /// Which.
        link: LinkId,
        /// What is to be sent before.
        last_bytes: Vec<u8>,
    },
    /// Say in the log why a connection was not wanted; the session goes on.
    Refused {
        /// Who, what and why.
        why: String,
    },
    /// The session's configuration has come.
    Configure(Config),
    /// Execute a command; answered by [`Member::handle_local`] once per task.
    Execute {
        /// Which.
        id: CommandId,
        /// For which of the own tasks.
        tasks: IdSet,
        /// What.
        payload: Bytes,
    },
    /// Give up a command on the own tasks.
    CancelLocal(CommandId),
    /// Something for the user of the tree; at the root only.
    Deliver(Delivery),
    /// Read no program output while true: the tree has no room for it.
    PauseOutput(bool),
    /// Shut the own tasks down; answered by [`Member::handle_local_down`].
    End(EndPolicy),
    /// Everything below is gone: send what is left and leave.
    Ended,
}

/// What a link may still send when it is closed.
const LAST_BYTES_MAX: usize = 1 << 20;

/// One link and what the member thinks of it.
struct Peer {
    link: Link,
    /// Whom this member is reaching over it; absent for a connection that came in.
    dialed: Option<ServerId>,
    /// True once the node was told of it.
    known: bool,
    /// Bulk bytes received and not yet granted anew.
    owed: u32,
}

/// Reaching one child.
struct Dialing {
    request: ConnectRequest,
    dialer: Dialer,
    /// The attempt under way.
    link: Option<LinkId>,
    wake: Option<Instant>,
}

/// A node with its links.
pub struct Member {
    node: Node,
    config: Arc<LinkConfig>,
    peers: BTreeMap<LinkId, Peer>,
    dialing: Vec<Dialing>,
    next_link: u64,
    bulk_window: usize,
    /// The owner's user takes no more (at the root).
    delivery_paused: bool,
    output_paused: bool,
    outputs: VecDeque<Output>,
}

impl Member {
    /// A member of the session that `config` has the key of.
    #[must_use]
    pub fn new(node: Node, config: Arc<LinkConfig>) -> Self {
        Self {
            node,
            config,
            peers: BTreeMap::new(),
            dialing: Vec::new(),
            next_link: 1,
            bulk_window: limits::BULK_WINDOW_BYTES as usize,
            delivery_paused: false,
            output_paused: false,
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

    /// What is to be done next.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// When [`Member::handle_timeout`] wants to be called.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let links = self
            .peers
            .values()
            .filter_map(|peer| peer.link.poll_timeout());
        let dialing = self.dialing.iter().filter_map(|dialing| dialing.wake);
        links.chain(dialing).chain(self.node.poll_timeout()).min()
    }

    /// The time of [`Member::poll_timeout`] has come.
    pub fn handle_timeout(&mut self, now: Instant) {
        let due = |at: Option<Instant>| at.is_some_and(|at| at <= now);
        let links: Vec<LinkId> = self
            .peers
            .iter()
            .filter(|(_, peer)| due(peer.link.poll_timeout()))
            .map(|(id, _)| *id)
            .collect();
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

    /// A connection has come in; absent where too many strangers are waiting already: close it.
    pub fn accept(&mut self, now: Instant) -> Option<LinkId> {
        let strangers = self
            .peers
            .values()
            .filter(|peer| !peer.known && peer.dialed.is_none());
        if strangers.count() >= limits::STRANGERS_MAX {
            return None;
        }
        let hello = self.hello(Role::Child, None, self.node.epoch());
        let hello = if self.node.id() == ServerId::FRONT_END {
            Hello {
                role: Role::Parent,
                ..hello
            }
        } else {
            hello
        };
        let link = Link::respond(now, &self.config, hello);
        let id = self.add_peer(link, None);
        self.after_link(now, id);
        self.drain_node(now);
        Some(id)
    }

    /// Opens the link to the front-end; the owner has just connected to it.
    pub fn connect_front_end(&mut self, now: Instant) -> LinkId {
        let hello = self.hello(Role::Child, Some(ServerId::FRONT_END), Epoch(1));
        let link = Link::initiate(now, &self.config, hello);
        let id = self.add_peer(link, Some(ServerId::FRONT_END));
        self.after_link(now, id);
        id
    }

    fn hello(&self, role: Role, expect: Option<ServerId>, epoch: Epoch) -> Hello {
        Hello {
            role,
            id: self.node.id(),
            expect,
            epoch,
            incarnation: 0,
            build: env!("CARGO_PKG_VERSION").to_owned(),
            features: 0,
        }
    }

    fn add_peer(&mut self, link: Link, dialed: Option<ServerId>) -> LinkId {
        let id = LinkId(self.next_link);
        self.next_link += 1;
        let peer = Peer {
            link,
            dialed,
            known: false,
            owed: 0,
        };
        self.peers.insert(id, peer);
        id
    }

    /// A connection that [`Output::Dial`] asked for stands.
    pub fn handle_connected(&mut self, now: Instant, link: LinkId) {
        let Some(dialing) = self
            .dialing
            .iter_mut()
            .find(|dialing| dialing.link == Some(link))
        else {
            if !self.peers.contains_key(&link) {
                self.close(link);
            }
            return;
        };
        dialing.dialer.handle_connected();
        let (server, epoch) = (dialing.request.server, dialing.request.epoch);
        let hello = self.hello(Role::Parent, Some(server), epoch);
        let peer = Peer {
            link: Link::initiate(now, &self.config, hello),
            dialed: Some(server),
            known: false,
            owed: 0,
        };
        self.peers.insert(link, peer);
        self.after_link(now, link);
        self.drain_node(now);
    }

    /// A connection that [`Output::Dial`] asked for did not come to stand.
    pub fn handle_connect_failed(&mut self, now: Instant, link: LinkId, error: &std::io::Error) {
        let found = self
            .dialing
            .iter()
            .position(|dialing| dialing.link == Some(link));
        let Some(at) = found else { return };
        let dialing = &mut self.dialing[at];
        dialing.link = None;
        let server = dialing.request.server;
        let refused = error.kind() == std::io::ErrorKind::ConnectionRefused;
        if refused && dialing.request.refusal_is_final {
            let request = self.dialing.remove(at).request;
            let why = format!("{server} on {} is gone: {error}", request.host);
            self.node.handle_unreachable(now, server, &why);
        } else {
            dialing
                .dialer
                .handle_failure(now, DialFailure::Refused(error.to_string()));
            self.dial(now, server);
        }
        self.drain_node(now);
    }

    /// Bytes have come over a link.
    pub fn handle_bytes(&mut self, now: Instant, id: LinkId, bytes: &[u8]) {
        let Some(peer) = self.peers.get_mut(&id) else {
            return;
        };
        let result = peer.link.handle_bytes(now, bytes);
        self.link_events(now, id);
        if let Err(error) = result {
            self.drop_link(now, id, &error);
        }
        self.after_link(now, id);
        self.drain_node(now);
    }

    /// The connection of a link is gone; `why` says how.
    pub fn handle_closed(&mut self, now: Instant, id: LinkId, why: &str) {
        self.forget_link(now, id, why, DialFailure::Closed);
        self.drain_node(now);
    }

    /// Takes the bytes that are to be written to a link now. Call it only when what it gave
    /// before has been written: what is not taken can still be overtaken by control messages.
    pub fn poll_transmit(&mut self, now: Instant, id: LinkId, out: &mut Vec<u8>) -> bool {
        let Some(peer) = self.peers.get_mut(&id) else {
            return false;
        };
        let some = peer.link.poll_transmit(out);
        if some {
            self.grant(now);
            self.drain_node(now);
        }
        some
    }

    fn link_events(&mut self, now: Instant, id: LinkId) {
        while let Some(event) = self
            .peers
            .get_mut(&id)
            .and_then(|peer| peer.link.poll_event())
        {
            match event {
                LinkEvent::Up(hello) => self.link_up(now, id, &hello),
                LinkEvent::Message {
                    message,
                    bulk_bytes,
                } => {
                    if let Some(peer) = self.peers.get_mut(&id) {
                        peer.owed = peer.owed.saturating_add(bulk_bytes);
                    }
                    if let Err(ProtocolError(why)) = self.node.handle_message(now, id, message) {
                        self.refuse(now, id, &why);
                    }
                }
                LinkEvent::Silent => self.node.handle_link_silent(now, id),
                LinkEvent::Alive => self.node.handle_link_alive(now, id),
            }
            self.drain_node(now);
        }
        self.grant(now);
    }

    fn link_up(&mut self, now: Instant, id: LinkId, hello: &Hello) {
        let Some(peer) = self.peers.get_mut(&id) else {
            return;
        };
        peer.known = true;
        match (peer.dialed, hello.role) {
            (Some(ServerId::FRONT_END), Role::Parent) => {
                self.node.handle_front_end_up(id, hello.epoch);
            }
            (Some(server), Role::Child) => {
                self.dialing.retain(|dialing| dialing.link != Some(id));
                self.node.handle_child_up(now, id, server, hello.epoch);
            }
            (None, Role::Parent) => self.node.handle_parent_up(id, hello.epoch),
            (None, Role::Child) if self.node.id() == ServerId::FRONT_END => {
                self.node.handle_child_up(now, id, hello.id, hello.epoch);
            }
            _ => {
                let why = format!("{} came in a role that fits nobody here", hello.id);
                self.refuse(now, id, &why);
            }
        }
    }

    fn drop_link(&mut self, now: Instant, id: LinkId, error: &LinkError) {
        let Some(peer) = self.peers.get(&id) else {
            return;
        };
        if !peer.known && peer.dialed.is_none() {
            let why = error.to_string();
            self.outputs.push_back(Output::Refused { why });
        }
        self.push_close(id);
        let failure = DialFailure::Link(error.clone());
        self.forget_link(now, id, &error.to_string(), failure);
    }

    /// Ends a link whose other end is at fault.
    fn refuse(&mut self, now: Instant, id: LinkId, why: &str) {
        self.outputs.push_back(Output::Refused {
            why: why.to_owned(),
        });
        self.push_close(id);
        self.forget_link(now, id, why, DialFailure::Closed);
    }

    /// Closes a link that the node has forgotten.
    fn close(&mut self, id: LinkId) {
        self.push_close(id);
        self.peers.remove(&id);
    }

    /// Has a connection closed after what its link still has to say.
    fn push_close(&mut self, link: LinkId) {
        let mut last_bytes = Vec::new();
        if let Some(peer) = self.peers.get_mut(&link) {
            while last_bytes.len() < LAST_BYTES_MAX && peer.link.poll_transmit(&mut last_bytes) {}
        }
        self.outputs.push_back(Output::Close { link, last_bytes });
    }

    fn forget_link(&mut self, now: Instant, id: LinkId, why: &str, failure: DialFailure) {
        let Some(peer) = self.peers.remove(&id) else {
            return;
        };
        let found = self
            .dialing
            .iter()
            .position(|dialing| dialing.link == Some(id));
        if let Some(at) = found {
            // It stood, but the handshake failed: maybe somebody else lives there.
            self.dialing[at].link = None;
            self.dialing[at].dialer.handle_failure(now, failure);
            let server = self.dialing[at].request.server;
            self.dial(now, server);
        }
        if peer.known {
            self.node.handle_link_down(now, id, why);
        } else if peer.dialed == Some(ServerId::FRONT_END) {
            self.outputs.push_back(Output::Refused {
                why: format!("front-end: {why}"),
            });
            self.outputs.push_back(Output::Ended);
        }
    }

    fn after_link(&mut self, now: Instant, id: LinkId) {
        self.link_events(now, id);
        if self.peers.contains_key(&id) {
            self.outputs.push_back(Output::Write(id));
        }
    }

    fn dial(&mut self, now: Instant, server: ServerId) {
        let found = self
            .dialing
            .iter()
            .position(|dialing| dialing.request.server == server);
        let Some(at) = found else { return };
        self.dialing[at].wake = None;
        loop {
            match self.dialing[at].dialer.poll(now) {
                DialStep::Connect(address) => {
                    let link = LinkId(self.next_link);
                    self.next_link += 1;
                    let old = self.dialing[at].link.replace(link);
                    self.drop_attempt(old);
                    self.outputs.push_back(Output::Dial { link, address });
                }
                DialStep::WaitUntil(wake) => {
                    self.dialing[at].wake = Some(wake);
                    return;
                }
                DialStep::GiveUp(why) => {
                    let dialing = self.dialing.remove(at);
                    self.drop_attempt(dialing.link);
                    if dialing.request.refusal_is_final && dialing.dialer.is_unanswered() {
                        self.node.handle_unanswered(now, server);
                    } else {
                        self.node.handle_unreachable(now, server, &why);
                    }
                    return;
                }
            }
        }
    }

    fn stop_dialing(&mut self, server: ServerId) {
        let found = self
            .dialing
            .iter()
            .position(|dialing| dialing.request.server == server);
        if let Some(at) = found {
            let dialing = self.dialing.remove(at);
            self.drop_attempt(dialing.link);
        }
    }

    /// Closes a connection that was being made for nothing.
    fn drop_attempt(&mut self, link: Option<LinkId>) {
        if let Some(link) = link {
            self.close(link);
        }
    }

    fn drain_node(&mut self, now: Instant) {
        while let Some(action) = self.node.poll_action() {
            match action {
                Action::Send { link, message } => self.send(now, link, &message),
                Action::Connect(request) => {
                    let server = request.server;
                    let dialer = Dialer::new(now, target(now, &request));
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
                Action::End(policy) => self.outputs.push_back(Output::End(policy)),
                Action::Ended => self.outputs.push_back(Output::Ended),
            }
        }
        self.pause_output();
    }

    fn send(&mut self, now: Instant, id: LinkId, message: &Message) {
        let Some(peer) = self.peers.get_mut(&id) else {
            return;
        };
        match peer.link.send(message) {
            Ok(()) => self.outputs.push_back(Output::Write(id)),
            // The message is not one that can go; the link is as it was.
            Err(error @ LinkError::Encode(_)) => {
                self.outputs.push_back(Output::Refused {
                    why: error.to_string(),
                });
            }
            Err(error) => self.drop_link(now, id, &error),
        }
    }

    /// Takes over what the session's configuration says of links.
    fn apply(&mut self, config: &Config) {
        self.bulk_window = config.bulk_window_bytes as usize;
        Arc::make_mut(&mut self.config).apply(config);
        self.peers
            .values_mut()
            .for_each(|peer| peer.link.apply(config));
    }

    /// Grants bulk bytes anew where what they were for has gone on its way.
    fn grant(&mut self, now: Instant) {
        let parent = self.node.parent_link();
        let up_has_room = self.has_room_up();
        self.node.set_bulk_paused(now, !up_has_room);
        let window = self.bulk_window;
        let down_has_room = self
            .peers
            .iter()
            .all(|(id, peer)| Some(*id) == parent || peer.link.bulk_backlog() < window);
        let mut granted = Vec::new();
        for (id, peer) in &mut self.peers {
            let room = if Some(*id) == parent {
                down_has_room
            } else {
                up_has_room
            };
            if room && peer.owed > 0 {
                peer.link.release(std::mem::take(&mut peer.owed));
                granted.push(*id);
            }
        }
        self.outputs.extend(granted.into_iter().map(Output::Write));
    }

    fn has_room_up(&self) -> bool {
        if self.node.id() == ServerId::FRONT_END {
            return !self.delivery_paused;
        }
        let parent = self
            .node
            .parent_link()
            .and_then(|link| self.peers.get(&link));
        parent.is_some_and(|peer| peer.link.bulk_backlog() < self.bulk_window)
    }

    fn pause_output(&mut self) {
        let paused = !self.has_room_up();
        if paused != self.output_paused {
            self.output_paused = paused;
            self.outputs.push_back(Output::PauseOutput(paused));
        }
    }

    /// At the root: the user takes no more bulk data (true), or takes some again.
    pub fn pause_delivery(&mut self, now: Instant, paused: bool) {
        self.delivery_paused = paused;
        self.grant(now);
        self.drain_node(now);
    }

    /// An answer of own tasks; see [`Node::handle_local`].
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

    /// Something that own tasks say unasked.
    pub fn handle_local_event(&mut self, now: Instant, lane: Lane, tasks: &IdSet, payload: Bytes) {
        self.node.handle_local_event(now, lane, tasks, payload);
        self.drain_node(now);
    }

    /// The own tasks are shut down.
    pub fn handle_local_down(&mut self, now: Instant) {
        self.node.handle_local_down();
        self.drain_node(now);
    }

    /// At the root: begins the session; see [`Node::start`].
    ///
    /// # Errors
    /// A plan that is no tree.
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
        let id = self.node.submit(now, submission);
        self.drain_node(now);
        id
    }

    /// At the root: gives up a command.
    pub fn cancel(&mut self, now: Instant, id: CommandId) {
        self.node.cancel(now, id);
        self.drain_node(now);
    }

    /// At the root: ends the session.
    pub fn finish(&mut self, now: Instant, policy: EndPolicy) {
        self.node.finish(now, policy);
        self.drain_node(now);
    }

    /// This member alone goes; see [`Node::leave`].
    pub fn leave(&mut self, now: Instant, policy: EndPolicy) {
        self.node.leave(now, policy);
        self.drain_node(now);
    }
}

/// Whom to reach, in the dialer's words; addresses that are none are passed by.
fn target(now: Instant, request: &ConnectRequest) -> Target {
    let addresses = request
        .addresses
        .iter()
        .filter_map(|address| address.parse().ok())
        .collect();
    Target {
        server: request.server,
        host: request.host.clone(),
        addresses,
        announced: true,
        deadline: now + request.wait,
    }
}
