//! Datagrams: messages from the server of one task to the servers of others, routed through the tree.

use bytes::Bytes;
use sdm_idset::IdSet;

use super::{Action, LinkId, Node, ProtocolError};
use crate::ids::ServerId;
use crate::message::{Datagram, Message};

impl Node {
    /// Sends a datagram. If it cannot be delivered to a task, it returns to its sender without its contents.
    pub fn post(&mut self, letter: Datagram) {
        self.pass_on(letter, false);
    }

    pub(super) fn handle_letter(
        &mut self,
        link: LinkId,
        letter: Datagram,
    ) -> Result<(), ProtocolError> {
        if self.root.is_some() {
            let me = self.me;
            return Err(ProtocolError(format!(
                "{me}: received a datagram that only servers may receive"
            )));
        }
        self.pass_on(letter, self.parent_link() == Some(link));
        Ok(())
    }

    /// Forwards a datagram: to the own tasks, to children, and to the parent unless it came from there.
    fn pass_on(&mut self, letter: Datagram, is_from_above: bool) {
        let own = letter.to.intersection(&self.local);
        let mut rest = letter.to.difference(&own);
        let mut ways = Vec::new();
        let mut missing = IdSet::new();
        for child in &self.children {
            let part = child.reach().intersection(&rest);
            if part.is_empty() {
                continue;
            }
            rest.subtract(&part);
            match child.link_up() {
                Some(link) => ways.push((link, part)),
                None => missing.union_with(&part),
            }
        }
        let is_apex = is_from_above || self.me == ServerId::MASTER;
        match self.parent_link() {
            Some(link) if !is_apex && !rest.is_empty() => ways.push((link, rest)),
            _ => missing.union_with(&rest),
        }
        if let Some(first) = missing.first()
            && letter.is_brought
        {
            let back = Datagram {
                to: IdSet::single(letter.from),
                from: first,
                number: letter.number,
                is_brought: false,
                bytes: Bytes::new(),
            };
            self.pass_on(back, false);
        }
        for (link, to) in ways {
            let letter = Datagram {
                to,
                ..letter.clone()
            };
            let message = Message::Datagram(Box::new(letter));
            self.actions.push_back(Action::Send { link, message });
        }
        if !own.is_empty() {
            let letter = Datagram { to: own, ..letter };
            self.actions.push_back(Action::Datagram(letter));
        }
    }
}
