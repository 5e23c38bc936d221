//! Exchanges and datagrams at a member, and the amount of an exchange's data that a link takes at once.

use std::time::Instant;

use bytes::Bytes;

use super::Member;
use crate::limits::EXCHANGE_BACKLOG_BYTES;
use crate::message::{Datagram, ExchangeId};
use crate::node::LinkId;

impl Member {
    /// Gives `bytes` to an exchange as the data of the own tasks that take part in it; see
    /// [`crate::node::Node::exchange`].
    pub fn exchange(&mut self, now: Instant, id: &ExchangeId, bytes: &[Bytes]) {
        self.node.exchange(id, bytes);
        self.drain_node(now);
    }

    /// Sends a datagram; see [`crate::node::Node::post`].
    pub fn post(&mut self, now: Instant, letter: Datagram) {
        self.node.post(letter);
        self.drain_node(now);
    }

    /// Gives each link as much data of the exchanges under way as it has room for. The rest follows when the
    /// owner has taken bytes of the link.
    pub(super) fn feed(&mut self, now: Instant) {
        if !self.node.has_exchanges() {
            return;
        }
        let links: Vec<LinkId> = self.peers.keys().copied().collect();
        for link in links {
            let has_room = |member: &Self| {
                let peer = member.peers.get(&link);
                peer.is_some_and(|it| it.link.control_backlog() < EXCHANGE_BACKLOG_BYTES)
            };
            while has_room(self) && self.node.feed(link) {
                self.drain_actions(now);
            }
        }
    }
}
