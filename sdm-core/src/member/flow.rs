//! Bulk data: who may go on sending, and when nobody may.

use std::time::Instant;

use super::{Member, Output};
use crate::ids::ServerId;

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
