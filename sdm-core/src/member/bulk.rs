//! Flow control of bulk data at a member: credit and windows of its links, and pauses of output and delivery.

use std::time::Instant;

use super::{Member, Output};
use crate::ids::ServerId;
use crate::limits;
use crate::node::LinkId;

impl Member {
    /// Counts bulk bytes that arrived over a link. They are owed to the link as credit until [`Member::grant`].
    pub(super) fn owe(&mut self, id: LinkId, bytes: u32) {
        let is_parent = self.node.parent_link() == Some(id);
        if let Some(peer) = self.peers.get_mut(&id)
            && bytes > 0
        {
            if peer.owed == 0 && !is_parent {
                self.owing.push(id);
            }
            peer.owed = peer.owed.saturating_add(bytes);
        }
    }

    /// Grants credit again for received bulk bytes that have been passed on.
    pub(super) fn grant(&mut self, now: Instant) {
        let up_has_room = self.has_room_up();
        self.node.set_bulk_paused(now, !up_has_room);
        if up_has_room {
            while let Some(child) = self.owing.pop() {
                self.release(child);
            }
        }
        let parent = self.node.parent_link();
        if let Some(parent) = parent
            && self.peers.get(&parent).is_some_and(|peer| peer.owed > 0)
        {
            let window = self.bulk_window;
            let mut below = self.peers.iter().filter(|(id, _)| **id != parent);
            if below.all(|(_, peer)| peer.link.bulk_backlog() < window) {
                self.release(parent);
            }
        }
    }

    fn release(&mut self, id: LinkId) {
        if let Some(peer) = self.peers.get_mut(&id) {
            peer.link.release(std::mem::take(&mut peer.owed));
            self.outputs.push_back(Output::Write(id));
        }
    }

    /// Gives each child its share of the bytes that all of them may have in flight to this member. All children of the
    /// plan count, connected or not, so that the share does not change with each connection.
    pub(super) fn share_windows(&mut self) {
        let children = self.node.children().len();
        let children = u32::try_from(children).unwrap_or(u32::MAX);
        let most = u32::try_from(self.bulk_window).unwrap_or(u32::MAX);
        let share = limits::BULK_NODE_BYTES / children.max(1);
        let share = share.max(limits::BULK_WINDOW_BYTES_MIN).min(most);
        if std::mem::replace(&mut self.child_window, share) != share {
            self.give_windows();
        }
    }

    /// Gives every link its window.
    pub(super) fn give_windows(&mut self) {
        let links: Vec<LinkId> = self.peers.keys().copied().collect();
        links.into_iter().for_each(|link| self.give_window(link));
    }

    /// Sets the window of an established link: a child gets its share, the parent the whole window.
    pub(super) fn give_window(&mut self, id: LinkId) {
        let is_parent = self.node.parent_link() == Some(id);
        if let Some(peer) = self.peers.get_mut(&id)
            && peer.known
        {
            let window = match is_parent {
                true => u32::try_from(self.bulk_window).unwrap_or(u32::MAX),
                false => self.child_window,
            };
            if std::mem::replace(&mut peer.window, window) != window {
                peer.link.set_bulk_window(window);
                self.outputs.push_back(Output::Write(id));
            }
        }
    }

    pub(super) fn has_room_up(&self) -> bool {
        if self.node.id() == ServerId::FRONT_END {
            return !self.delivery_paused;
        }
        let parent = self
            .node
            .parent_link()
            .and_then(|link| self.peers.get(&link));
        parent.is_some_and(|peer| peer.link.bulk_backlog() < self.bulk_window)
    }

    pub(super) fn pause_output(&mut self) {
        let paused = !self.has_room_up();
        if paused != self.output_paused {
            self.output_paused = paused;
            self.outputs.push_back(Output::PauseOutput(paused));
        }
    }

    /// At the root: stops (true) or resumes the delivery of bulk data to the user of the tree.
    pub fn pause_delivery(&mut self, now: Instant, paused: bool) {
        self.delivery_paused = paused;
        self.grant(now);
        self.drain_node(now);
    }
}
