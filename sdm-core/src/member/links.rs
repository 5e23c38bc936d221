//! A member's links: their beginning, their messages, their errors and their end.

use std::time::Instant;

use super::{LAST_BYTES_MAX, Member, Output, Peer};
use crate::codec;
use crate::dialer::DialFailure;
use crate::ids::{Epoch, ServerId};
use crate::limits;
use crate::link::{Link, LinkError, LinkEvent};
use crate::message::Message;
use crate::node::{LinkId, LocalTasks, ProtocolError};
use crate::secure::{Hello, Role};

impl Member {
    /// Handles an incoming connection, and returns its link. Older connections without a complete handshake are closed
    /// if there are too many. `None` would refuse the connection, and the owner would close it; no connection is
    /// refused here.
    pub fn accept(&mut self, now: Instant) -> Option<LinkId> {
        self.make_room_for_stranger(now);
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

    /// Opens the link to the front-end; the owner has just begun to connect to it.
    pub fn connect_front_end(&mut self, now: Instant) -> LinkId {
        let hello = self.hello(Role::Child, Some(ServerId::FRONT_END), Epoch(1));
        let link = Link::initiate(now, &self.config, hello);
        let id = self.add_peer(link, Some(ServerId::FRONT_END));
        self.after_link(now, id);
        id
    }

    pub(super) fn hello(&self, role: Role, expect: Option<ServerId>, epoch: Epoch) -> Hello {
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

    pub(super) fn add_peer(&mut self, link: Link, dialed: Option<ServerId>) -> LinkId {
        let id = LinkId(self.next_link);
        self.next_link += 1;
        let peer = Peer {
            link,
            dialed,
            known: false,
            owed: 0,
            window: limits::BULK_START_BYTES,
            due: None,
        };
        self.peers.insert(id, peer);
        id
    }

    /// Handles bytes that arrived over a link. They are decrypted in place, so `bytes` are useless afterwards.
    ///
    /// A single command for own tasks is passed to `tasks` at once. Without `tasks`, or where earlier outputs are
    /// pending, it becomes an [`Output::Execute`].
    pub fn handle_bytes(
        &mut self,
        now: Instant,
        id: LinkId,
        bytes: &mut [u8],
        tasks: Option<&mut dyn LocalTasks>,
    ) {
        let Some(peer) = self.peers.get_mut(&id) else {
            return;
        };
        let result = match peer.link.handle_received(now, bytes) {
            Ok(Some(message)) => {
                if let Some(tasks) = tasks
                    && self.execute_at_once(now, id, message, tasks)
                {
                    return;
                }
                let peer = self.peers.get_mut(&id).expect("it was there above");
                peer.link.take_message_bytes(message)
            }
            result => result.map(|_| ()),
        };
        match result {
            Ok(()) => self.after_link(now, id),
            Err(error) => {
                self.link_events(now, id);
                self.drop_link(now, id, &error);
            }
        }
        self.drain_node(now);
    }

    /// Executes a command by own tasks at once; false if that is impossible, and nothing was done.
    fn execute_at_once(
        &mut self,
        now: Instant,
        id: LinkId,
        message: &[u8],
        tasks: &mut dyn LocalTasks,
    ) -> bool {
        if !self.outputs.is_empty() || !self.node.is_leaf_of(id) {
            return false;
        }
        let Some(command) = codec::peek_command(message) else {
            return false;
        };
        if !self.node.is_quick(&command) {
            return false;
        }
        let (number, attempt) = (command.id, command.attempt);
        if let Some(block) = self.node.execute_at_once(now, command, tasks) {
            let peer = self.peers.get_mut(&id).expect("the command came over it");
            let sent = peer.link.send_answer(number, attempt, &block);
            self.after_send(now, id, sent);
        } else {
            self.outputs.push_back(Output::Begun(number));
            self.drain_node(now);
        }
        self.note_due(id);
        true
    }

    /// Handles the end of a link's connection; `why` is the reason.
    pub fn handle_closed(&mut self, now: Instant, id: LinkId, why: &str) {
        self.forget_link(now, id, why, DialFailure::Closed);
        // Work that waited for this link can go on.
        self.grant(now);
        self.drain_node(now);
    }

    /// The links whose other ends are silent.
    pub fn silent_links(&self) -> impl Iterator<Item = LinkId> {
        let silent = self.peers.iter().filter(|(_, peer)| peer.link.is_silent());
        silent.map(|(id, _)| *id)
    }

    /// Appends to `out` the bytes that are to be written to a link now. Returns false if there are none. Call it only
    /// when the bytes returned before have been written: control messages can overtake data that is not taken yet.
    pub fn poll_transmit(&mut self, now: Instant, id: LinkId, out: &mut Vec<u8>) -> bool {
        let Some(peer) = self.peers.get_mut(&id) else {
            return false;
        };
        let waited = peer.link.bulk_backlog();
        let some = peer.link.poll_transmit(out);
        let has_more_room = peer.link.bulk_backlog() < waited;
        if some {
            self.tell_sent();
            if has_more_room {
                self.grant(now);
            }
            self.drain_node(now);
        }
        some
    }

    pub(super) fn link_events(&mut self, now: Instant, id: LinkId) {
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
                    self.owe(id, bulk_bytes);
                    if let Err(ProtocolError(why)) = self.node.handle_message(now, id, message) {
                        self.refuse(now, id, &why);
                    }
                }
                LinkEvent::Silent => {
                    tracing::warn!(link = id.0, "no data arrives over the connection");
                    self.node.handle_link_silent(now, id);
                }
                LinkEvent::Alive => {
                    tracing::info!(link = id.0, "data arrives over the connection again");
                    self.node.handle_link_alive(now, id);
                }
            }
            self.drain_node(now);
        }
        self.grant(now);
    }

    pub(super) fn link_up(&mut self, now: Instant, id: LinkId, hello: &Hello) {
        let Some(peer) = self.peers.get_mut(&id) else {
            return;
        };
        peer.known = true;
        let _link = span(id, hello.id).entered();
        tracing::info!(role = %hello.role, epoch = hello.epoch.0, "link up");
        match (peer.dialed, hello.role) {
            (Some(ServerId::FRONT_END), Role::Parent) => {
                self.node.handle_front_end_up(id, hello.epoch);
            }
            (Some(server), Role::Child) => {
                self.note_found(id);
                self.dialing.retain(|dialing| dialing.link != Some(id));
                self.node.handle_child_up(now, id, server, hello.epoch);
            }
            (None, Role::Parent) => self.node.handle_parent_up(id, hello.id, hello.epoch),
            (None, Role::Child) if self.node.id() == ServerId::FRONT_END => {
                self.node.handle_child_up(now, id, hello.id, hello.epoch);
            }
            _ => {
                let peer = hello.id;
                let why = format!("{peer} connected in a role that this process does not have");
                self.refuse(now, id, &why);
            }
        }
        self.share_windows();
        self.give_window(id);
    }

    pub(super) fn drop_link(&mut self, now: Instant, id: LinkId, error: &LinkError) {
        let Some(peer) = self.peers.get(&id) else {
            return;
        };
        if !peer.known && peer.dialed.is_none() {
            self.say_refused(now, error.to_string());
        }
        self.push_close(id);
        let failure = DialFailure::Link(error.clone());
        self.forget_link(now, id, &error.to_string(), failure);
    }

    /// Ends a link whose other end is at fault.
    pub(super) fn refuse(&mut self, now: Instant, id: LinkId, why: &str) {
        self.say_refused(now, why.to_owned());
        self.push_close(id);
        self.forget_link(now, id, why, DialFailure::Closed);
    }

    /// Closes a link that the node has forgotten.
    pub(super) fn close(&mut self, id: LinkId) {
        self.push_close(id);
        self.remove_peer(id);
    }

    fn remove_peer(&mut self, id: LinkId) -> Option<Peer> {
        let peer = self.peers.remove(&id)?;
        if let Some(due) = peer.due {
            self.deadlines.remove(&(due, id));
        }
        Some(peer)
    }

    /// Updates the time at which a link has to be polled; called after everything that changes it.
    fn note_due(&mut self, id: LinkId) {
        let Some(peer) = self.peers.get_mut(&id) else {
            return;
        };
        let due = peer.link.poll_timeout();
        let before = std::mem::replace(&mut peer.due, due);
        if before != due {
            before.map(|before| self.deadlines.remove(&(before, id)));
            self.deadlines.extend(due.map(|due| (due, id)));
        }
    }

    /// Requests the close of a connection once the link's last bytes are sent.
    pub(super) fn push_close(&mut self, link: LinkId) {
        let mut last_bytes = Vec::new();
        if let Some(peer) = self.peers.get_mut(&link) {
            while last_bytes.len() < LAST_BYTES_MAX && peer.link.poll_transmit(&mut last_bytes) {}
        }
        self.outputs.push_back(Output::Close { link, last_bytes });
    }

    pub(super) fn forget_link(
        &mut self,
        now: Instant,
        id: LinkId,
        why: &str,
        failure: DialFailure,
    ) {
        let Some(peer) = self.remove_peer(id) else {
            return;
        };
        let found = self
            .dialing
            .iter()
            .position(|dialing| dialing.link == Some(id));
        if let Some(at) = found {
            // The connection was established, but the handshake failed: another process may have the address.
            self.dialing[at].link = None;
            self.dialing[at].dialer.handle_failure(now, failure);
            let server = self.dialing[at].request.server;
            self.dial(now, server);
        }
        if peer.known {
            let _link = peer.link.peer().map(|peer| span(id, peer.id).entered());
            tracing::info!("link down: {why}");
            self.node.handle_link_down(now, id, why);
            self.share_windows();
        } else if peer.dialed == Some(ServerId::FRONT_END) {
            self.outputs.push_back(Output::Refused {
                why: format!("front-end: {why}"),
            });
            self.outputs.push_back(Output::Ended);
        }
    }

    pub(super) fn after_link(&mut self, now: Instant, id: LinkId) {
        self.note_due(id);
        self.link_events(now, id);
        if self.peers.contains_key(&id) {
            self.outputs.push_back(Output::Write(id));
        }
    }

    pub(super) fn send(&mut self, now: Instant, id: LinkId, message: &Message) {
        if let Some(peer) = self.peers.get_mut(&id) {
            let sent = peer.link.send(message);
            self.after_send(now, id, sent);
        }
    }

    fn after_send(&mut self, now: Instant, id: LinkId, sent: Result<(), LinkError>) {
        match sent {
            Ok(()) => self.outputs.push_back(Output::Write(id)),
            // The message cannot be encoded; the link is unchanged.
            Err(error @ LinkError::Encode(_)) => {
                self.outputs.push_back(Output::Refused {
                    why: error.to_string(),
                });
            }
            Err(error) => self.drop_link(now, id, &error),
        }
    }
}

/// The tracing span of log entries about one link.
fn span(link: LinkId, peer: ServerId) -> tracing::Span {
    tracing::info_span!("link", id = link.0, %peer)
}
