//! Exchanges: all of some tasks give data, and each of their servers receives the data of all.
//!
//! The data goes up to the master, and from there to all participants. So no participant waits for a front-end that
//! is suspended or disconnected. Each member keeps the data that it received until all members below it have the
//! whole. A broken link therefore costs a repetition and nothing else. The receivers must hold all the data in
//! memory anyway.

mod state;

use std::collections::VecDeque;

use bytes::Bytes;
use sdm_idset::IdSet;

use state::{All, Exchange, ReceivingChild, append};

use super::{Action, LinkId, Node, ProtocolError};
use crate::ids::ServerId;
use crate::limits::{
    EXCHANGE_BYTES_MAX, EXCHANGE_CHUNK_BYTES, EXCHANGES_FAILED_MAX, EXCHANGES_MAX,
};
use crate::message::{ExchangeId, ExchangeMessage, ExchangeStep, Message, Piece};

const TOO_MUCH: &str = "the ranks put more than 2 GiB into one exchange";

/// Reason for which an exchange fails.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{why}")]
pub struct ExchangeFailure {
    /// Lost tasks without which the exchange is impossible; empty if that is not the reason.
    pub lost: IdSet,
    /// The reason, as text for the user.
    pub why: String,
}

/// Exchanges at a member: those under way, and the last failed ones.
#[derive(Default)]
pub(super) struct Exchanges {
    open: Vec<Exchange>,
    /// The last failed exchanges, for tasks that join one late.
    failed: VecDeque<(ExchangeId, ExchangeFailure)>,
}

impl Node {
    /// Adds `bytes` to an exchange as the data of this member's tasks among its participants, together.
    /// [`Action::Exchanged`] follows, once.
    ///
    /// For servers: without a participating task here the call does nothing. A repeated call does nothing either.
    pub fn exchange(&mut self, id: &ExchangeId, bytes: &[Bytes]) {
        let own = id.tasks.intersection(&self.local);
        let Some(first) = own.first() else { return };
        let total: u64 = bytes.iter().map(|it| it.len() as u64).sum();
        if let Some(ExchangeFailure { lost, why }) = self.failure_of(id) {
            return self.tell_failed(id, lost, why);
        }
        let Some(at) = self.exchange_of(id) else {
            let why = format!("more than {EXCHANGES_MAX} exchanges are open");
            return self.tell_failed(id, IdSet::new(), why);
        };
        if total > EXCHANGE_BYTES_MAX {
            self.exchanges.open.swap_remove(at);
            return self.tell_failed(id, IdSet::new(), TOO_MUCH.to_owned());
        }
        let exchange = &mut self.exchanges.open[at];
        if exchange.part_of.contains_key(&first) || exchange.empty.contains(first) {
            return;
        }
        exchange.own.clone_from(&own);
        if total == 0 {
            exchange.empty.union_with(&own);
            exchange.given.union_with(&own);
        }
        let mut offset = 0;
        for whole in bytes {
            for chunk in whole.chunks(EXCHANGE_CHUNK_BYTES) {
                let bytes = whole.slice_ref(chunk);
                let piece = Piece {
                    sources: own.clone(),
                    total,
                    offset,
                    bytes,
                };
                offset += chunk.len() as u64;
                exchange.add(&piece);
            }
        }
        self.settle_exchange(at);
    }

    /// True if an exchange is under way: [`Node::feed`] may have data to send.
    #[must_use]
    pub fn has_exchanges(&self) -> bool {
        !self.exchanges.open.is_empty()
    }

    /// Sends the next part of an exchange over a link that has room for it. Returns false if there is nothing to send.
    pub fn feed(&mut self, link: LinkId) -> bool {
        let is_up = self.parent_link() == Some(link);
        if is_up && self.me == ServerId::MASTER {
            return false;
        }
        for exchange in &mut self.exchanges.open {
            let step = match is_up {
                true => exchange.next_up(link),
                false => exchange.next_down(link),
            };
            if let Some(step) = step {
                let id = exchange.id.clone();
                self.send_step(link, id, step);
                return true;
            }
        }
        false
    }

    pub(super) fn handle_exchange(
        &mut self,
        link: LinkId,
        is_from_parent: bool,
        message: ExchangeMessage,
    ) -> Result<(), ProtocolError> {
        let ExchangeMessage { id, step } = message;
        let me = self.me;
        let wrong = |what: &str| {
            ProtocolError(format!(
                "{me}: invalid message of a data exchange between servers: {what}"
            ))
        };
        if self.root.is_some() {
            return Err(wrong("only servers take part"));
        }
        let is_part = |tasks: &IdSet| tasks.is_subset(&id.tasks);
        match (step, is_from_parent) {
            (ExchangeStep::Given { empty, pieces }, false) => {
                let is_known = |it: &Piece| is_part(&it.sources) && it.total > 0;
                if id.tasks.is_empty() || !is_part(&empty) || !pieces.iter().all(is_known) {
                    return Err(wrong("it has data of ranks that are not participants"));
                }
                self.take_given(link, &id, &empty, &pieces)
            }
            (ExchangeStep::Taken(tasks), false) => {
                if let Some(at) = self.position_of(&id) {
                    let exchange = &mut self.exchanges.open[at];
                    exchange.taken.union_with(&tasks.intersection(&id.tasks));
                    self.settle_exchange(at);
                }
                Ok(())
            }
            (
                ExchangeStep::All {
                    total,
                    offset,
                    bytes,
                },
                true,
            ) => {
                let Some(at) = self.position_of(&id) else {
                    return Ok(());
                };
                if total > EXCHANGE_BYTES_MAX {
                    return Err(wrong("it announces more than 2 GiB"));
                }
                let all = self.exchanges.open[at].all.get_or_insert(All {
                    total,
                    have: 0,
                    chunks: Vec::new(),
                });
                if all.total != total
                    || !append(&mut all.chunks, &mut all.have, total, offset, &bytes)
                {
                    return Err(wrong(
                        "a piece of the data does not begin where the piece before it ended",
                    ));
                }
                self.settle_exchange(at);
                Ok(())
            }
            (ExchangeStep::Failed { lost, why }, true) => {
                self.fail_exchange(&id, &ExchangeFailure { lost, why });
                Ok(())
            }
            _ => Err(wrong("it came from the wrong direction of the server tree")),
        }
    }

    fn take_given(
        &mut self,
        link: LinkId,
        id: &ExchangeId,
        empty: &IdSet,
        pieces: &[Piece],
    ) -> Result<(), ProtocolError> {
        if let Some(ExchangeFailure { lost, why }) = self.failure_of(id) {
            self.send_step(link, id.clone(), ExchangeStep::Failed { lost, why });
            return Ok(());
        }
        let me = self.me;
        let Some(at) = self.exchange_of(id) else {
            let why = format!("{me}: more than {EXCHANGES_MAX} exchanges at once");
            return Err(ProtocolError(why));
        };
        let exchange = &mut self.exchanges.open[at];
        if exchange.takers.iter().all(|it| it.link != link) {
            exchange.takers.push(ReceivingChild {
                link,
                next: None,
                offset: 0,
            });
        }
        if exchange.all.is_some() {
            return Ok(());
        }
        exchange.empty.union_with(empty);
        exchange.given.union_with(empty);
        for piece in pieces {
            if exchange.held.saturating_add(piece.total) > EXCHANGE_BYTES_MAX {
                self.pass_on_too_much(at, piece);
                return Ok(());
            }
            if !exchange.add(piece) {
                return Err(ProtocolError(format!(
                    "{me}: received a piece of an exchange that does not fit its state"
                )));
            }
        }
        self.settle_exchange(at);
        Ok(())
    }

    /// Handles data beyond [`EXCHANGE_BYTES_MAX`]: the master fails the exchange. Another member drops its parts
    /// and sends its parent a piece of impossible size, so that the master does.
    fn pass_on_too_much(&mut self, at: usize, piece: &Piece) {
        if self.me == ServerId::MASTER {
            let (lost, why) = (IdSet::new(), TOO_MUCH.to_owned());
            let id = self.exchanges.open[at].id.clone();
            return self.fail_exchange(&id, &ExchangeFailure { lost, why });
        }
        let exchange = &mut self.exchanges.open[at];
        exchange.parts.clear();
        exchange.part_of.clear();
        exchange.held = 0;
        exchange.is_ready = false;
        let id = exchange.id.clone();
        if let Some(link) = self.parent_link() {
            let pieces = vec![Piece {
                sources: piece.sources.clone(),
                total: u64::MAX,
                offset: 0,
                bytes: Bytes::new(),
            }];
            let empty = IdSet::new();
            self.send_step(link, id, ExchangeStep::Given { empty, pieces });
        }
    }

    /// Advances an exchange as far as possible.
    fn settle_exchange(&mut self, at: usize) {
        let is_apex = self.me == ServerId::MASTER;
        let exchange = &self.exchanges.open[at];
        if exchange.all.is_none() {
            let missing = exchange.id.tasks.difference(&exchange.given);
            if is_apex && missing.is_empty() {
                let exchange = &mut self.exchanges.open[at];
                exchange.all = Some(exchange.gather());
            } else if is_apex {
                let lost = missing.difference(&self.reach());
                if !lost.is_empty() {
                    let tasks = tasks_of(&lost);
                    let why = format!("{tasks} cannot be reached");
                    let id = self.exchanges.open[at].id.clone();
                    return self.fail_exchange(&id, &ExchangeFailure { lost, why });
                }
            } else {
                let is_ready = exchange.held >= EXCHANGE_CHUNK_BYTES as u64
                    || missing.is_disjoint(&self.reach());
                self.exchanges.open[at].is_ready |= is_ready;
            }
        }
        let exchange = &mut self.exchanges.open[at];
        let Some(all) = exchange.all.as_ref().filter(|all| all.is_whole()) else {
            return;
        };
        // The parts that were given are included in the result of all.
        exchange.parts = Vec::new();
        let own = std::mem::take(&mut exchange.own);
        if !own.is_empty() {
            exchange.taken.union_with(&own);
            let (id, outcome) = (exchange.id.clone(), Ok(all.chunks.clone()));
            self.actions.push_back(Action::Exchanged { id, outcome });
        }
        let untaken = exchange.given.difference(&exchange.taken);
        let is_over = untaken.is_empty() || (is_apex && untaken.is_disjoint(&self.reach()));
        if is_over {
            let exchange = self.exchanges.open.swap_remove(at);
            if let Some(link) = self.parent_link()
                && !is_apex
            {
                self.send_step(link, exchange.id, ExchangeStep::Taken(exchange.taken));
            }
        }
    }

    /// Fails an exchange and informs all participants below, even if this member has received nothing of the exchange
    /// yet.
    fn fail_exchange(&mut self, id: &ExchangeId, failure: &ExchangeFailure) {
        let below = self.children.iter();
        let below = below.filter(|it| !it.reach().is_disjoint(&id.tasks));
        let links: Vec<LinkId> = below.filter_map(super::Child::link).collect();
        for link in links {
            let ExchangeFailure { lost, why } = failure.clone();
            self.send_step(link, id.clone(), ExchangeStep::Failed { lost, why });
        }
        if let Some(at) = self.position_of(id) {
            let exchange = self.exchanges.open.swap_remove(at);
            if !exchange.own.is_empty() {
                self.tell_failed(id, failure.lost.clone(), failure.why.clone());
            }
        }
        let failed = &mut self.exchanges.failed;
        failed.truncate(EXCHANGES_FAILED_MAX - 1);
        failed.push_front((id.clone(), failure.clone()));
    }

    fn tell_failed(&mut self, id: &ExchangeId, lost: IdSet, why: String) {
        self.actions.push_back(Action::Exchanged {
            id: id.clone(),
            outcome: Err(ExchangeFailure { lost, why }),
        });
    }

    /// Updates all open exchanges after tasks were lost: some can continue, others fail.
    pub(super) fn look_at_exchanges(&mut self) {
        for at in (0..self.exchanges.open.len()).rev() {
            self.settle_exchange(at);
        }
    }

    /// Forgets the progress of a link that has ended; its peer will connect again.
    pub(super) fn forget_taker(&mut self, link: LinkId) {
        for exchange in &mut self.exchanges.open {
            exchange.takers.retain(|it| it.link != link);
        }
    }

    fn failure_of(&self, id: &ExchangeId) -> Option<ExchangeFailure> {
        let failed = self.exchanges.failed.iter().find(|(it, _)| it == id);
        failed.map(|(_, failure)| failure.clone())
    }

    fn position_of(&self, id: &ExchangeId) -> Option<usize> {
        self.exchanges.open.iter().position(|it| it.id == *id)
    }

    /// Index of an exchange, which is created if it is new. A new exchange drops those of the same tasks whose numbers
    /// are smaller by two or more. `None` if it is new and [`EXCHANGES_MAX`] are under way.
    fn exchange_of(&mut self, id: &ExchangeId) -> Option<usize> {
        if let Some(at) = self.position_of(id) {
            return Some(at);
        }
        // A member that contributes to the next exchange has the result of the previous one; its confirmation was
        // lost with a link.
        let is_older = |it: &Exchange| it.id.tasks == id.tasks && it.id.number + 1 < id.number;
        self.exchanges.open.retain(|it| !is_older(it));
        if self.exchanges.open.len() >= EXCHANGES_MAX {
            return None;
        }
        self.exchanges.open.push(Exchange::new(id.clone()));
        Some(self.exchanges.open.len() - 1)
    }

    fn send_step(&mut self, link: LinkId, id: ExchangeId, step: ExchangeStep) {
        let message = Message::Exchange(Box::new(ExchangeMessage { id, step }));
        self.actions.push_back(Action::Send { link, message });
    }
}

fn tasks_of(tasks: &IdSet) -> String {
    match tasks.len() {
        1 => format!("task {tasks}"),
        _ => format!("tasks {tasks}"),
    }
}
