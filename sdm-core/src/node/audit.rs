//! The books of a node, held against each other: what must be so between any two calls.

use std::fmt::Write;

use sdm_idset::IdSet;

use super::{LinkId, Node, OpenCommand};
use crate::ids::{CommandId, ServerId};
use crate::limits;

impl Node {
    /// The members below, each with its link; absent while it is being reached.
    pub fn children(&self) -> impl Iterator<Item = (ServerId, Option<LinkId>)> + '_ {
        self.children
            .iter()
            .map(|child| (child.server(), child.link()))
    }

    /// How a command stands here and who is below, for a person who looks for an error.
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
                " waits for {waits}, missing {missing}, lost {lost}, gathered {gathered}, asked {asked:?}"
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

    /// Checks that the books agree: for tests and the simulator, which call it after every step.
    ///
    /// # Errors
    /// What does not agree, for a person.
    pub fn audit(&self) -> Result<(), String> {
        let reach = self.audit_reach()?;
        if self.open.len() > limits::OPEN_COMMANDS_MAX {
            return Err(format!("{}: {} open commands", self.me, self.open.len()));
        }
        if !self.open.is_sorted_by(|a, b| a.id() < b.id()) {
            return Err(format!("{}: open commands out of order", self.me));
        }
        // At the end those below go, and are not waited for any more.
        let is_ending = self.is_ending();
        for open in self.open.iter().filter(|_| !is_ending) {
            audit_open(open, &reach)
                .map_err(|what| format!("{}, command {}: {what}", self.me, open.id()))?;
        }
        self.audit_executed()
    }

    /// No task is behind two children.
    fn audit_reach(&self) -> Result<IdSet, String> {
        let mut reach = self.local().clone();
        for child in &self.children {
            if !child.reach().is_disjoint(&reach) {
                let twice = child.reach().intersection(&reach);
                return Err(format!(
                    "{}: tasks {twice} behind {} are elsewhere too",
                    self.me,
                    child.server()
                ));
            }
            reach.union_with(child.reach());
        }
        Ok(reach)
    }
}

/// Every destination is in one part at most, and only those are waited for who can answer.
fn audit_open(open: &OpenCommand, reach: &IdSet) -> Result<(), String> {
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
            return Err(format!(
                "tasks {} are {name} and more",
                part.intersection(&seen)
            ));
        }
        seen.union_with(part);
    }
    if !seen.is_subset(&open.command.destination) {
        let strange = seen.difference(&open.command.destination);
        return Err(format!("tasks {strange} are no destination"));
    }
    if !open.open.is_subset(reach) {
        let gone = open.open.difference(reach);
        return Err(format!("waits for {gone}, who are not below"));
    }
    if !open.untold_lost.is_subset(&open.lost) {
        return Err("tells of a loss that is none".to_owned());
    }
    if !open.untold_missing.is_within(&open.missing) {
        return Err("tells of missing tasks that are not missing".to_owned());
    }
    if !open.late.is_subset(open.gathered.sources()) {
        return Err("late are some that did not answer".to_owned());
    }
    Ok(())
}
