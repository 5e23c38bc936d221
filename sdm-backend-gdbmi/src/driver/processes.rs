//! The processes that a gdb holds for one task: its own, and others that it forks where a person has
//! told gdb to hold them too (`set detach-on-fork off`, `set follow-fork-mode child`).

use std::collections::BTreeSet;

use super::core::Gdb;
use super::values::console_line;
use crate::mi::Results;

/// Who is there beside the task's own process.
#[derive(Default)]
pub(super) struct Processes {
    /// gdb's name of the group whose process is the task's.
    own: String,
    /// The others: gdb's name, and pid.
    others: Vec<(String, i32)>,
    /// One of the others has ended, and the stop that says so has not come yet.
    other_ended: bool,
    /// What was said of its forks and programs; nothing twice.
    said: BTreeSet<String>,
}

/// The most remarks on one task.
const SAID_MAX: usize = 64;

impl Processes {
    /// A process has come. Gives the task's.
    pub(super) fn started(
        &mut self,
        own: Option<i32>,
        group: &str,
        pid: Option<i32>,
    ) -> Option<i32> {
        match (own, pid) {
            (Some(_), Some(pid)) if group != self.own => {
                self.others.push((group.to_owned(), pid));
                own
            }
            _ => {
                group.clone_into(&mut self.own);
                pid
            }
        }
    }

    /// A process has gone. Gives the task's: where that was it and another one is there, gdb has
    /// gone over to it.
    pub(super) fn ended(&mut self, own: Option<i32>, group: &str) -> Option<i32> {
        if own.is_some() && group != self.own {
            self.others.retain(|(known, _)| known != group);
            self.other_ended = true;
            return own;
        }
        let (next, pid) = self.others.pop()?;
        self.own = next;
        Some(pid)
    }

    /// True where the end that gdb speaks of was not the task's own process's.
    pub(super) fn take_other_end(&mut self) -> bool {
        std::mem::take(&mut self.other_ended)
    }

    /// True where this is said for the first time.
    pub(super) fn is_new(&mut self, remark: &str) -> bool {
        self.said.len() < SAID_MAX && self.said.insert(remark.to_owned())
    }

    /// What gdb's command line calls the task's own one.
    fn number(&self) -> Option<u32> {
        self.own.strip_prefix('i')?.parse().ok()
    }
}

/// Goes back to the task's own process, where gdb has turned to another one; gives its frame.
pub(super) async fn select_own(gdb: &Gdb) -> Results {
    let number = gdb.get().processes.number();
    if let Some(number) = number {
        // Where that fails the commands that follow say so.
        let _ = gdb.mi(console_line(&format!("inferior {number}"))).await;
    }
    gdb.mi("-stack-info-frame").await.unwrap_or_default()
}

/// What gdb says of forks and of programs that replace one another, for a person. It is text (gdb 13
/// to 18 in the C locale) and decides nothing.
pub(super) fn remark(text: &str) -> Option<String> {
    if text.starts_with("[Detaching after fork from child process")
        || text.starts_with("[Detaching after vfork from child process")
    {
        return Some("has forked a process that runs without the debugger".to_owned());
    }
    if text.starts_with("[Attaching after ") && text.contains("fork to child process") {
        return Some("is the process that it has forked now".to_owned());
    }
    let (process, program) = text.trim_end().split_once(" is executing new program: ")?;
    let name = super::frames::base_name(program);
    process
        .starts_with("process ")
        .then(|| format!("executes {name} now"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn others_come_and_go_beside_the_own_one() {
        let mut processes = Processes::default();
        let own = processes.started(None, "i1", Some(10));
        assert_eq!(own, Some(10));
        let own = processes.started(own, "i2", Some(11));
        assert_eq!(own, Some(10));
        assert_eq!(processes.ended(own, "i2"), Some(10));
        assert!(processes.take_other_end() && !processes.take_other_end());
        // gdb goes over to the child.
        let own = processes.started(own, "i3", Some(12));
        let own = processes.ended(own, "i1");
        assert_eq!((own, processes.number()), (Some(12), Some(3)));
        assert_eq!(processes.ended(own, "i3"), None);
        assert!(!processes.take_other_end());
    }

    #[test]
    fn what_gdb_says_of_forks_and_execs() {
        let check = |text: &str, expect: Option<&str>| {
            assert_eq!(remark(text).as_deref(), expect, "{text}");
        };
        let forked = Some("has forked a process that runs without the debugger");
        check("[Detaching after fork from child process 7]\n", forked);
        check("[Detaching after vfork from child process 7]\n", forked);
        check("[Detaching after fork from parent process 7]\n", None);
        check(
            "[Attaching after Thread 0x7ffff7dd1740 (LWP 7) fork to child process 8]\n",
            Some("is the process that it has forked now"),
        );
        check(
            "process 7 is executing new program: /usr/bin/true\n",
            Some("executes true now"),
        );
        check("it is executing new program: x\n", None);
    }
}
