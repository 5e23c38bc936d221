//! Consistency checks of a node's state: the invariants that hold between any two calls. Also descriptions of that
//! state for debugging.

use std::fmt::Write;

use sdm_idset::IdSet;

use super::{LinkId, Node, OpenCommand};
use crate::ids::{CommandId, ServerId};
use crate::limits;

/// A violated invariant of a node's state.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{who}{}: {what}", of_command(*command))]
pub struct AuditError {
    /// The member whose state is inconsistent.
    pub who: ServerId,
    /// The command of a violation that is about one; otherwise `None`.
    pub command: Option<CommandId>,
    /// The invariant that is violated.
    pub what: Disagreement,
}

fn of_command(command: Option<CommandId>) -> String {
    command.map_or_else(String::new, |id| format!(", command {id}"))
}

/// A violated invariant of a node's state, with the values that violate it.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Disagreement {
    /// More commands are open than can be.
    #[error(
        "{open} commands are open: the maximum is {max}",
        open = .0,
        max = limits::OPEN_COMMANDS_MAX
    )]
    TooManyOpen(usize),
    /// Open commands are not sorted by id.
    #[error("the open commands are not sorted by id")]
    OutOfOrder,
    /// Tasks are below two children, or below a child and local.
    #[error("tasks {tasks} below {child} are also local or below another child")]
    Twice {
        /// The tasks below the child that are also local or below another child.
        tasks: IdSet,
        /// The child.
        child: ServerId,
    },
    /// Destinations of a command are in two of the sets open, missing, lost and gathered.
    #[error("tasks {tasks} are both {part} and in another set (open, missing, lost or gathered)")]
    CountedTwice {
        /// The tasks that are in both sets.
        tasks: IdSet,
        /// Name of the second of the two sets.
        part: &'static str,
    },
    /// A command's sets contain tasks that are not its destinations.
    #[error("the sets of the command contain tasks {0}, which are not its destinations")]
    Strangers(IdSet),
    /// Tasks are waited for that are not at or below this member.
    #[error("the command waits for answers of tasks {0}, which are not at or below this server")]
    NotBelow(IdSet),
    /// Tasks are to be reported to the parent as lost, but are not lost.
    #[error("tasks that are not lost are to be reported as lost")]
    UntoldLost,
    /// Tasks are to be reported to the parent as missing, but are not missing.
    #[error("tasks that are not missing are to be reported as missing")]
    UntoldMissing,
    /// Tasks are marked as having answered late, but have no gathered answer.
    #[error("tasks that have not answered are counted as late")]
    Late,
    /// Tasks have answered an executed command twice.
    #[error("tasks {tasks} answered command {id} twice")]
    AnsweredTwice {
        /// The tasks that answered.
        tasks: IdSet,
        /// The command that the tasks answered.
        id: CommandId,
    },
    /// The stored answers exceed their limit; the number is their size in bytes.
    #[error(
        "the stored answers have {size} bytes: the maximum is {max}",
        size = .0,
        max = limits::REPLY_CACHE_BYTES_MAX
    )]
    Remembered(usize),
}

impl Node {
    /// The children, each with its link; `None` while this member connects to the child.
    pub fn children(&self) -> impl ExactSizeIterator<Item = (ServerId, Option<LinkId>)> + '_ {
        self.children
            .iter()
            .map(|child| (child.server(), child.link()))
    }

    /// Describes the state of a command at this member, and the member's parent link and children, for debugging.
    #[must_use]
    pub fn describe(&self, id: CommandId) -> String {
        let mut text = format!("{}:", self.me);
        if let Ok(at) = self.open_position(id) {
            let open = &self.open[at];
            let (waits, missing, lost) = (&open.open, &open.missing, &open.lost);
            let (gathered, asked) = (open.gathered.sources(), open.asked_by);
            // Writing to a string cannot fail.
            let _ = write!(
                text,
                " waits for {waits}, missing {missing}, lost {lost}, gathered {gathered}, requested over link {asked:?}"
            );
        }
        let _ = write!(text, " parent {:?}", self.parent_link());
        for child in &self.children {
            let attempt = self
                .open_position(id)
                .map(|at| self.open[at].attempt_of(child.server()));
            let (server, reach, link) = (child.server(), child.reach(), child.link());
            let _ = write!(text, "; {server}: {link:?} {attempt:?} {reach}");
        }
        text
    }

    /// Checks that the member's state is consistent: for tests and the simulator, which call it after every step.
    ///
    /// # Errors
    /// [`AuditError`]: the member, and the inconsistency.
    pub fn audit(&self) -> Result<(), AuditError> {
        let of_all = |what| self.disagree(None, what);
        let reach = self.audit_reach().map_err(of_all)?;
        if self.open.len() > limits::OPEN_COMMANDS_MAX {
            return Err(of_all(Disagreement::TooManyOpen(self.open.len())));
        }
        if !self.open.is_sorted_by(|a, b| a.id() < b.id()) {
            return Err(of_all(Disagreement::OutOfOrder));
        }
        // During the end of the session children disconnect, and are not waited for any more.
        let is_ending = self.is_ending();
        for open in self.open.iter().filter(|_| !is_ending) {
            audit_open(open, &reach).map_err(|what| self.disagree(Some(open.id()), what))?;
        }
        self.audit_executed().map_err(of_all)
    }

    fn disagree(&self, command: Option<CommandId>, what: Disagreement) -> AuditError {
        let who = self.me;
        AuditError { who, command, what }
    }

    /// Checks that no task is behind two children, or both local and behind a child.
    fn audit_reach(&self) -> Result<IdSet, Disagreement> {
        let mut reach = self.local().clone();
        for child in &self.children {
            if !child.reach().is_disjoint(&reach) {
                let (tasks, child) = (child.reach().intersection(&reach), child.server());
                return Err(Disagreement::Twice { tasks, child });
            }
            reach.union_with(child.reach());
        }
        Ok(reach)
    }
}

/// Checks that the command's sets are disjoint and contain only destinations, and that all open destinations are at or
/// below this member. It also checks the sets of unreported and of late tasks.
fn audit_open(open: &OpenCommand, reach: &IdSet) -> Result<(), Disagreement> {
    let parts = [
        ("open", &open.open),
        ("missing", &open.missing),
        ("lost", &open.lost),
        ("gathered", open.gathered.sources()),
    ];
    let mut seen = IdSet::new();
    for (name, part) in parts {
        if part.is_empty() {
            continue;
        }
        if !part.is_disjoint(&seen) {
            return Err(Disagreement::CountedTwice {
                tasks: part.intersection(&seen),
                part: name,
            });
        }
        seen.union_with(part);
    }
    if !seen.is_subset(&open.command.destination) {
        let strange = seen.difference(&open.command.destination);
        return Err(Disagreement::Strangers(strange));
    }
    if !open.open.is_subset(reach) {
        let gone = open.open.difference(reach);
        return Err(Disagreement::NotBelow(gone));
    }
    if !open.untold_lost.is_subset(&open.lost) {
        return Err(Disagreement::UntoldLost);
    }
    if !open.untold_missing.is_within(&open.missing) {
        return Err(Disagreement::UntoldMissing);
    }
    if !open.late.is_subset(open.gathered.sources()) {
        return Err(Disagreement::Late);
    }
    Ok(())
}
