//! Bulk data: who may go on sending, and when nobody may.

use std::time::Instant;

use super::{Member, Output};
use crate::ids::ServerId;
use crate::limits;

impl Member {
    /// Grants bulk bytes anew where what they were for has gone on its way.
    pub(super) fn grant(&mut self, now: Instant) {
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

    /// Gives the parent its window, and each child its share of what all of them may have under way
    /// to this member.
    pub(super) fn share_windows(&mut self) {
        let parent = self.node.parent_link();
        let known = self.peers.iter().filter(|(_, peer)| peer.known);
        let children = known.filter(|(id, _)| Some(**id) != parent).count();
        let children = u32::try_from(children).unwrap_or(u32::MAX);
        let most = u32::try_from(self.bulk_window).unwrap_or(u32::MAX);
        let share = limits::BULK_NODE_BYTES / children.max(1);
        let share = share.max(limits::BULK_WINDOW_BYTES_MIN).min(most);
        for (id, peer) in self.peers.iter_mut().filter(|(_, peer)| peer.known) {
            let window = if Some(*id) == parent { most } else { share };
            if std::mem::replace(&mut peer.window, window) != window {
                peer.link.set_bulk_window(window);
                self.outputs.push_back(Output::Write(*id));
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

    /// At the root: the user takes no more bulk data (true), or takes some again.
    pub fn pause_delivery(&mut self, now: Instant, paused: bool) {
        self.delivery_paused = paused;
        self.grant(now);
        self.drain_node(now);
    }
}
