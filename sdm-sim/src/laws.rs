//! Invariants that hold at every member after every step of the world.

use sdm_core::ServerId;

use crate::ledger::violated;
use crate::net::Who;
use crate::world::World;

impl World {
    /// Checks the laws that must hold at every member after every step.
    pub(crate) fn inspect(&mut self, id: ServerId) {
        let now = self.now;
        let Some(proc) = self.procs.get_mut(&id) else {
            return;
        };
        let node = proc.member.node();
        let mut result = Ok(());
        if let Err(error) = node.audit() {
            result = violated("books of a node", error.to_string());
        }
        if node.epoch() < proc.epoch {
            let text = format!("{id}: epoch {:?} after {:?}", node.epoch(), proc.epoch);
            result = violated("epochs", text);
        }
        let parent = node.parent_link();
        if let Some(link) = parent
            && proc.parent.is_some_and(|before| before != link)
            && node.epoch() == proc.epoch
        {
            let text = format!("{id}: a new parent in the old epoch {:?}", proc.epoch);
            result = violated("epochs", text);
        }
        if parent != proc.parent {
            self.log.note(
                now,
                format_args!("{id}: parent {parent:?}, {:?}", node.epoch()),
            );
        }
        match parent {
            Some(_) => proc.orphan_since = None,
            None if proc.parent.is_some() => proc.orphan_since = Some(now),
            None => {}
        }
        (proc.parent, proc.epoch) = (parent, node.epoch());
        if id == ServerId::FRONT_END && result.is_ok() && !proc.was_told_to_end {
            result = self.ledger.check_open(|command| node.waited_for(command));
        }
        let queued = proc.member.queued_bytes();
        self.peak_queue_bytes = self.peak_queue_bytes.max(queued);
        self.check(result);
    }

    /// Checks a member that ends without having been told to. It may end only if it had no parent for long, and if a
    /// fault can have delayed its adoption.
    pub(crate) fn check_end(&mut self, id: ServerId) {
        let Some(proc) = self.procs.get(&id) else {
            return;
        };
        let told = proc.was_told_to_end || self.is_over();
        if told || id == ServerId::FRONT_END {
            return;
        }
        let Some(since) = proc.orphan_since else {
            let parent = proc.parent.and_then(|link| self.peer_of(id, link));
            let parent = match parent {
                Some((_, Who::Server(parent))) => self.procs.get(&parent),
                _ => None,
            };
            // A member that ends must tell its children.
            if parent.is_some_and(|parent| !parent.member.node().is_ending()) {
                let text = format!("{id} ends although it has a parent");
                self.check(violated("abandoned", text));
            }
            return;
        };
        let from = since.saturating_sub(30_000_000);
        let hindered = self
            .hindered
            .iter()
            .any(|(begin, end)| *begin <= self.now && *end >= from);
        if !hindered && !self.top_is_struck {
            let text = format!("{id} ends: nobody took it over since {since} us");
            self.check(violated("abandoned", text));
        }
    }
}
