//! Reachability of tasks through each child, and the reports of it to the parent.

use std::time::Instant;

use sdm_idset::IdSet;

use super::links::{ChildState, name};
use super::{Node, ProtocolError};
use crate::message::{Health, Message, ReachChange};

impl Node {
    /// Handles a child's report of tasks that became reachable, silent or lost.
    pub(super) fn handle_reach(
        &mut self,
        now: Instant,
        at: usize,
        change: ReachChange,
    ) -> Result<(), ProtocolError> {
        // A child's report counts only for tasks that it reaches now.
        let child = &mut self.children[at];
        let tasks = change.tasks.intersection(match change.health {
            Health::Reachable => &child.planned,
            Health::Silent | Health::Lost => &child.reach,
        });
        if tasks.is_empty() {
            return Ok(());
        }
        match change.health {
            Health::Reachable => {
                child.silent.subtract(&tasks);
                for (other, child) in self.children.iter_mut().enumerate() {
                    if other != at {
                        child.reach.subtract(&tasks);
                    }
                }
                let fresh = tasks.difference(&self.children[at].reach);
                self.children[at].reach.union_with(&tasks);
                self.tell_reachable(now, &fresh);
                self.tell_up(now, ReachChange { tasks, ..change });
                if !fresh.is_empty() {
                    self.ask_child_again(at, false);
                }
            }
            Health::Silent => {
                child.alone.union_with(&tasks);
                child.silent.union_with(&tasks);
                self.tell_up(now, ReachChange { tasks, ..change });
            }
            Health::Lost => {
                child.reach.subtract(&tasks);
                self.lose(now, &tasks, &change.why);
            }
        }
        Ok(())
    }

    /// Handles tasks that have become unreachable below.
    pub(super) fn lose(&mut self, now: Instant, tasks: &IdSet, why: &str) {
        let reach = self.reach();
        let gone = tasks.difference(&reach);
        if gone.is_empty() {
            return;
        }
        tracing::warn!(me = %self.me, tasks = %gone, "lost: {why}");
        self.lose_in_commands(now, &gone);
        self.look_at_exchanges();
        let told = gone.intersection(&self.known_above);
        self.known_above.subtract(&told);
        if !told.is_empty() {
            self.tell_up(
                now,
                ReachChange {
                    tasks: told,
                    health: Health::Lost,
                    why: why.to_owned(),
                },
            );
        }
    }

    /// Reports to the parent those of `tasks` that the parent does not know to be reachable through this member.
    pub(super) fn tell_reachable(&mut self, now: Instant, tasks: &IdSet) {
        let fresh = tasks.difference(&self.known_above);
        if !fresh.is_empty() {
            self.known_above.union_with(&fresh);
            let change = ReachChange {
                tasks: fresh,
                health: Health::Reachable,
                why: String::new(),
            };
            self.tell_up(now, change);
        }
    }

    pub(super) fn tell_silent(&mut self, now: Instant, at: usize, why: &str) {
        if !std::mem::replace(&mut self.children[at].told_silent, true) {
            let tasks = self.children[at].reach.clone();
            self.tell_health(now, tasks, Health::Silent, why);
        }
    }

    pub(super) fn tell_back(&mut self, now: Instant, at: usize) {
        let child = &mut self.children[at];
        if std::mem::take(&mut child.told_silent) {
            // The child itself reports the tasks below it.
            let tasks = if self.root.is_some() {
                child.reach.difference(&child.silent)
            } else {
                child.reach.intersection(&child.slice[0].tasks)
            };
            self.tell_health(now, tasks, Health::Reachable, "");
        }
    }

    /// Reports reachable and silent tasks again after a new plan: earlier reports may have been lost with a
    /// link above, or come from another member.
    pub(super) fn restate_health(&mut self, now: Instant) {
        let mut there = self.local.clone();
        let mut silent = Vec::new();
        for child in &self.children {
            if child.told_silent {
                silent.push((child.reach.clone(), child.why_no_answer()));
            } else if let ChildState::Up(_) = child.state {
                there.union_with(&child.reach.difference(&child.silent));
                let why = format!("silent below {}", name(&child.slice[0]));
                silent.push((child.silent.intersection(&child.reach), why));
            }
        }
        self.tell_health(now, there, Health::Reachable, "");
        for (tasks, why) in silent {
            self.tell_health(now, tasks, Health::Silent, &why);
        }
    }

    fn tell_health(&mut self, now: Instant, tasks: IdSet, health: Health, why: &str) {
        if !tasks.is_empty() {
            self.tell_up(
                now,
                ReachChange {
                    tasks,
                    health,
                    why: why.to_owned(),
                },
            );
        }
    }

    fn tell_up(&mut self, now: Instant, change: ReachChange) {
        if self.root.is_some() {
            self.deliver_reach(change);
            return;
        }
        self.flush_for(now, &change.tasks);
        self.send_up(Message::Reach(change));
    }
}
