//! State of a command at a member until all have answered, and the set of commands that are finished for good.
//!
//! At every member each destination of an open command is in exactly one of these states: counted (its answer is
//! gathered or has been sent up), open, missing, lost. The member waits only for open ones.

use std::time::Instant;

use sdm_idset::IdSet;

use super::LinkId;
use super::missing::Missing;
use crate::aggregate::{Aggregate, Merge};
use crate::ids::{Attempt, CommandId, ServerId};
use crate::message::CommandMessage;

/// A command that is not complete, or whose late answers are still accepted.
pub(super) struct OpenCommand {
    /// The command as received, for forwarding; its destination is the part requested from this member.
    pub(super) command: CommandMessage,
    /// The parent's link over which the command came; `None` at the root.
    pub(super) asked_by: Option<LinkId>,
    pub(super) rule: Option<Box<dyn Merge>>,
    /// Destinations that are waited for.
    pub(super) open: IdSet,
    /// Destinations named missing; an answer can still come.
    pub(super) missing: IdSet,
    /// Destinations whose server is gone; they can still answer if it comes back.
    pub(super) lost: IdSet,
    /// Answers that have not been sent to the parent yet.
    pub(super) gathered: Aggregate,
    /// Sources among `gathered` that were reported missing or lost before.
    pub(super) late: IdSet,
    pub(super) untold_missing: Missing,
    pub(super) untold_lost: IdSet,
    /// Origin time of the oldest result that has not been sent, at whichever member below; `None` if all were sent.
    pub(super) oldest: Option<Instant>,
    /// Time at which open destinations become missing; `None` for no time limit.
    pub(super) deadline: Option<Instant>,
    /// Time at which the gathered results are sent; `None` if no time is set.
    pub(super) flush_at: Option<Instant>,
    /// The attempt that all children were sent at first.
    pub(super) attempt: Attempt,
    /// The last attempt sent to each child for which it is not `attempt`.
    pub(super) attempts: Vec<(ServerId, Attempt)>,
    /// At the root: true once it was reported complete.
    pub(super) completed: bool,
}

impl OpenCommand {
    pub(super) fn id(&self) -> CommandId {
        self.command.id
    }

    /// Destinations that have not been counted here.
    pub(super) fn uncounted(&self) -> IdSet {
        IdSet::union_all([&self.open, &self.missing, &self.lost])
    }

    pub(super) fn timeout(&self) -> Option<Instant> {
        [self.deadline, self.flush_at].into_iter().flatten().min()
    }

    pub(super) fn attempt_of(&self, child: ServerId) -> Attempt {
        let sent = self.attempts.iter().find(|(server, _)| *server == child);
        sent.map_or(self.attempt, |(_, attempt)| *attempt)
    }

    pub(super) fn set_attempt(&mut self, child: ServerId, attempt: Attempt) {
        self.attempts.retain(|(server, _)| *server != child);
        if attempt != self.attempt {
            self.attempts.push((child, attempt));
        }
    }

    /// Marks open tasks as missing: they have not answered in time.
    pub(super) fn miss(&mut self, tasks: &IdSet, why: String, born: Instant) {
        let missing = tasks.intersection(&self.open);
        if !missing.is_empty() {
            self.open.subtract(&missing);
            self.missing.union_with(&missing);
            self.untold_missing.add(missing, why);
            self.oldest.get_or_insert(born);
        }
    }

    /// Marks open and missing tasks as lost; returns true if there were some.
    pub(super) fn lose(&mut self, tasks: &IdSet, born: Instant) -> bool {
        let lost = self.open.union(&self.missing).intersection(tasks);
        if lost.is_empty() {
            return false;
        }
        self.open.subtract(&lost);
        self.missing.subtract(&lost);
        self.untold_missing.forget(&lost);
        self.lost.union_with(&lost);
        self.untold_lost.union_with(&lost);
        self.oldest.get_or_insert(born);
        true
    }

    /// Counts tasks that have answered; they are not open, missing or lost any more.
    pub(super) fn hear(&mut self, sources: &IdSet, born: Instant) {
        let told = self.missing.union(&self.lost).intersection(sources);
        self.late.union_with(&told);
        for set in [
            &mut self.open,
            &mut self.missing,
            &mut self.lost,
            &mut self.untold_lost,
        ] {
            set.subtract(sources);
        }
        self.untold_missing.forget(sources);
        self.oldest.get_or_insert(born);
    }

    pub(super) fn has_something_to_tell(&self) -> bool {
        !self.gathered.is_empty() || !self.untold_missing.is_empty() || !self.untold_lost.is_empty()
    }
}

/// Commands that are settled: the root does not wait for them any more, and does not repeat them.
///
/// A member keeps this state until it ends. A parent that lacks it may repeat a settled command, and the member must
/// not execute the command again.
#[derive(Default)]
pub(super) struct SettledCommands {
    /// Every command with a lower id is settled, except those in `but`.
    pub(super) below: CommandId,
    /// Commands with an id lower than `below` that are not settled.
    pub(super) but: Vec<CommandId>,
}

impl SettledCommands {
    pub(super) fn has(&self, id: CommandId) -> bool {
        id != CommandId::INIT && id < self.below && !self.but.contains(&id)
    }
}
