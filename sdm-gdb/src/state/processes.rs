//! The processes that a gdb holds for one task.
//!
//! They are the task's own process, and others that it forks if the user has told gdb to hold these too (`set
//! detach-on-fork off`, `set follow-fork-mode child`).

use std::collections::BTreeSet;

/// The processes that a gdb holds for one task.
#[derive(Default)]
pub(crate) struct Processes {
    /// gdb's name of the thread group with the task's process.
    own_group: String,
    /// The pid of the task's process; `None` if there is none.
    own: Option<i32>,
    /// The other processes: gdb's thread group and the pid of each.
    others: Vec<(String, i32)>,
    /// True if one of the other processes has ended, and the stop that reports it has not come yet.
    other_ended: bool,
    /// The last signal that was passed to the task's own process; `None` if there was none.
    last_signal: Option<String>,
    sight: EventState,
    /// Notices that the front-end receives only once, such as those of forks and new programs.
    said: BTreeSet<String>,
}

/// Whether gdb still sees the events of the task's process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum EventState {
    #[default]
    Seen,
    /// gdb has missed the process's last event, and may never report its end.
    Lost,
    /// Like `Lost`, and the process was found dead once.
    FoundDead,
}

/// Maximum number of distinct notices about one task.
const SAID_MAX: usize = 64;

impl Processes {
    /// The pid of the task's process; `None` if there is none.
    pub(crate) fn pid(&self) -> Option<i32> {
        self.own
    }

    /// Records that gdb no longer holds the task's process.
    pub(crate) fn forget_own(&mut self) {
        self.own = None;
        self.sight = EventState::Seen;
    }

    /// Records a signal that was passed to the task's process.
    pub(crate) fn signal_passed(&mut self, name: &str) {
        self.last_signal = Some(name.to_owned());
    }

    /// The last signal that was passed to the task's process; `None` if there was none.
    pub(crate) fn last_signal(&self) -> Option<&str> {
        self.last_signal.as_deref()
    }

    /// Records that gdb has missed an event of the task's process.
    pub(crate) fn mark_event_missed(&mut self) {
        self.sight = EventState::Lost;
    }

    /// Records a new report of gdb about the task's process.
    pub(crate) fn mark_event_seen(&mut self) {
        self.sight = EventState::Seen;
    }

    /// True if gdb may never report the end of the task's process.
    pub(crate) fn has_missed_event(&self) -> bool {
        self.sight != EventState::Seen
    }

    /// Records that the task's process was found dead. True at the second time: at the first one gdb may be about to
    /// report it.
    pub(crate) fn is_found_dead_again(&mut self) -> bool {
        std::mem::replace(&mut self.sight, EventState::FoundDead) == EventState::FoundDead
    }

    /// Handles gdb's report of a new process.
    pub(crate) fn started(&mut self, group: &str, pid: Option<i32>) {
        match (self.own, pid) {
            (Some(own), Some(pid)) if group != self.own_group && own != pid => {
                self.others.push((group.to_owned(), pid));
            }
            _ => {
                group.clone_into(&mut self.own_group);
                self.own = pid;
            }
        }
    }

    /// Handles gdb's report of an ended process. If the ended process was the task's own and there is another one, gdb
    /// has switched to the other one.
    pub(crate) fn ended(&mut self, group: &str) {
        if self.own.is_some() && group != self.own_group {
            self.others.retain(|(known, _)| known != group);
            self.other_ended = true;
            return;
        }
        self.own = None;
        if let Some((next, pid)) = self.others.pop() {
            self.own_group = next;
            self.own = Some(pid);
        }
    }

    /// True if the reported end is that of another process than the task's own. A second call gives false.
    pub(crate) fn take_other_end(&mut self) -> bool {
        std::mem::take(&mut self.other_ended)
    }

    /// True for the first such notice, unless there were too many notices.
    pub(crate) fn is_new(&mut self, remark: &str) -> bool {
        self.said.len() < SAID_MAX && self.said.insert(remark.to_owned())
    }

    /// The number of the task's own inferior on gdb's command line; `None` if it has none.
    pub(crate) fn number(&self) -> Option<u32> {
        self.own_group.strip_prefix('i')?.parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn task_keeps_its_pid_while_other_inferiors_come_and_go() {
        let mut processes = Processes::default();
        processes.started("i1", Some(10));
        assert_eq!(processes.pid(), Some(10));
        processes.started("i2", Some(11));
        assert_eq!(processes.pid(), Some(10));
        processes.ended("i2");
        assert_eq!(processes.pid(), Some(10));
        assert!(processes.take_other_end() && !processes.take_other_end());
        // gdb follows the child.
        processes.started("i3", Some(12));
        processes.ended("i1");
        assert_eq!((processes.pid(), processes.number()), (Some(12), Some(3)));
        processes.ended("i3");
        assert_eq!(processes.pid(), None);
        assert!(!processes.take_other_end());
    }
}
