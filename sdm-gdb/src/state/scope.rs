//! One task among several in a gdb: its inferior and its threads.
//!
//! Such a gdb is in non-stop mode, so that tasks run independently. A task still stops and runs as a whole: when one
//! thread stops the others are stopped too, and all of it is one stop. gdb has one selected thread and frame in all,
//! so each task keeps its own and names them in every command.

use std::collections::BTreeMap;

use sdm_mi::Results;

/// Prefixes of commands whose meaning depends on the selection.
const QUALIFIED: [&str; 9] = [
    "-stack-",
    "-data-",
    "-var-",
    "-interpreter-",
    "-break-insert",
    "-break-watch",
    "-break-condition",
    "-symbol-",
    "-file-list-",
];

/// The part of a gdb that belongs to one of its tasks.
#[derive(Debug, Default)]
pub(crate) struct Scope {
    /// gdb's name of the inferior: `i2`; empty until it has one.
    group: String,
    threads: BTreeMap<u32, Thread>,
    /// Number of threads seen so far, including ended ones.
    seen: u32,
    /// gdb's number of the selected thread; `None` if none is selected.
    selected: Option<u32>,
    level: u32,
    /// True while the other threads are being stopped.
    stopping: bool,
    /// The stop of the first thread, because of which the task's other threads are being stopped; `None` if there is
    /// none.
    first: Option<Results>,
    /// True if the next stop must be ignored: it is that of threads that ran for a step which gdb refused.
    dropped: bool,
    /// gdb's numbers of the task's own values. gdb has one value history for all tasks.
    pub(crate) history: Vec<u64>,
}

#[derive(Debug)]
struct Thread {
    /// The thread's number in the task, from 1.
    number: u32,
    running: bool,
}

/// The consequence of one thread's stop.
#[derive(Debug, PartialEq)]
pub(crate) enum Stopped {
    /// All threads are stopped, for this reason.
    Whole(Results),
    /// The other threads must be stopped first.
    StopOthers,
    /// The other threads are being stopped.
    Wait,
}

impl Scope {
    /// Sets the task's inferior, to which gdb is about to attach. gdb stops all of its threads then, unrequested.
    pub(crate) fn set_group(&mut self, group: &str) {
        group.clone_into(&mut self.group);
        self.stopping = true;
    }

    /// gdb's number of the task's inferior: the value of `$_inferior`.
    fn number(&self) -> &str {
        self.group.trim_start_matches('i')
    }

    /// Restricts a breakpoint condition to this task.
    pub(crate) fn restrict(&self, condition: Option<&str>) -> String {
        let number = self.number();
        match condition {
            Some(condition) => format!("$_inferior == {number} && ({condition})"),
            None => format!("$_inferior == {number}"),
        }
    }

    /// True if a breakpoint location is in this task. gdb sets each breakpoint in every inferior.
    pub(crate) fn has_place(&self, place: &Results) -> bool {
        let mut groups = place.items("thread-groups").peekable();
        groups.peek().is_none() || groups.any(|group| group.as_text() == Some(&self.group))
    }

    /// The thread's number in the task; `None` if the thread is not of this task.
    pub(crate) fn number_of(&self, id: u32) -> Option<u32> {
        self.threads.get(&id).map(|thread| thread.number)
    }

    /// gdb's number of a thread of the task; `None` if the task has no thread of this number.
    pub(crate) fn id_of(&self, number: u32) -> Option<u32> {
        let found = self.threads.iter().find(|(_, t)| t.number == number);
        found.map(|(id, _)| *id)
    }

    pub(crate) fn is_selected(&self, id: u32) -> bool {
        self.selected == Some(id)
    }

    pub(crate) fn is_running(&self) -> bool {
        self.threads.values().any(|thread| thread.running)
    }

    pub(crate) fn thread_created(&mut self, id: u32) {
        self.seen += 1;
        let number = self.seen;
        self.threads.entry(id).or_insert(Thread {
            number,
            running: true,
        });
    }

    /// Handles the end of a thread. Returns the stop of the task if this was the last running thread, else `None`.
    pub(crate) fn thread_exited(&mut self, id: u32) -> Option<Results> {
        self.threads.remove(&id);
        if self.selected == Some(id) {
            self.selected = None;
        }
        self.whole()
    }

    pub(crate) fn thread_running(&mut self, id: Option<u32>) {
        for (known, thread) in &mut self.threads {
            thread.running |= id.is_none_or(|id| id == *known);
        }
    }

    /// Records the stop of a thread.
    pub(crate) fn thread_stopped(&mut self, stop: Results) -> Stopped {
        let id: Option<u32> = stop.number("thread-id");
        for (known, thread) in &mut self.threads {
            thread.running &= id.is_some_and(|id| id != *known);
        }
        // A thread's stop by gdb itself counts less than a stop for a reason.
        let asked = stop.text("signal-name") == Some("0");
        let better = self
            .first
            .as_ref()
            .is_none_or(|first| !asked && first.text("signal-name") == Some("0"));
        if better {
            self.selected = id.or(self.selected);
            self.level = 0;
            self.first = Some(stop);
        }
        if let Some(stop) = self.whole() {
            return Stopped::Whole(stop);
        }
        if std::mem::replace(&mut self.stopping, true) {
            Stopped::Wait
        } else {
            Stopped::StopOthers
        }
    }

    fn whole(&mut self) -> Option<Results> {
        if self.is_running() {
            return None;
        }
        self.stopping = false;
        let first = self.first.take();
        if std::mem::take(&mut self.dropped) {
            return None;
        }
        first
    }

    /// Lets the other threads run while the selected thread steps, as it may wait for them. Returns the commands for
    /// that, to be sent before the step.
    pub(crate) fn let_others_run(&mut self) -> Vec<String> {
        let selected = self.selected.or(self.threads.keys().next().copied());
        let mut lines = Vec::new();
        for (id, thread) in &mut self.threads {
            if Some(*id) == selected {
                // The selected thread counts as running, so that the stop of another thread is not taken for the last
                // one.
                thread.running = true;
            } else {
                lines.push(format!("-exec-continue --thread {id}"));
            }
        }
        lines
    }

    /// Handles a step that did not begin; true if the other threads must be stopped again.
    pub(crate) fn did_not_step(&mut self) -> bool {
        let selected = self.selected.or(self.threads.keys().next().copied());
        if let Some(thread) = selected.and_then(|id| self.threads.get_mut(&id)) {
            thread.running = false;
        }
        let alone = self.threads.len() <= 1;
        self.dropped = !alone;
        self.stopping = !alone;
        !alone
    }

    /// True while threads that ran for a refused step are being stopped again.
    pub(crate) fn runs_for_nothing(&self) -> bool {
        self.dropped
    }

    /// The command in the form to send; `None` if it only changes the selection.
    pub(crate) fn line(&mut self, line: &str) -> Option<String> {
        let (name, rest) = line.split_once(' ').unwrap_or((line, ""));
        let group = &self.group;
        let command = match name {
            "-stack-select-frame" => {
                self.level = rest.trim().parse().unwrap_or(0);
                return None;
            }
            "-thread-select" => {
                self.selected = rest.trim().parse().ok();
                self.level = 0;
                return self.line("-stack-info-frame");
            }
            "-target-attach" => format!("{name} --thread-group {group} {rest}"),
            "-target-detach" => format!("{name} {group}"),
            "-thread-info" => format!("-list-thread-groups {group}"),
            _ if rest.starts_with("--thread ") => return Some(line.to_owned()),
            "-exec-interrupt" | "-exec-continue" => {
                format!("{name} --thread-group {group} {rest}")
            }
            _ if name.starts_with("-exec-") => format!("{name} {}{rest}", self.thread(false)),
            _ if QUALIFIED.iter().any(|prefix| name.starts_with(prefix)) => {
                format!("{name} {}{rest}", self.thread(true))
            }
            _ => line.to_owned(),
        };
        Some(command.trim_end().to_owned())
    }

    /// The options that name the selected thread and frame.
    fn thread(&self, with_frame: bool) -> String {
        let first = || self.threads.keys().next().copied();
        let Some(id) = self.selected.or_else(first) else {
            return match self.group.as_str() {
                "" => String::new(),
                group => format!("--thread-group {group} "),
            };
        };
        let stands = self.threads.get(&id).is_some_and(|thread| !thread.running);
        if with_frame && stands {
            format!("--thread {id} --frame {} ", self.level)
        } else {
            format!("--thread {id} ")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sdm_mi::{Record, parse_line};

    fn stop(id: u32, rest: &str) -> Results {
        let line = format!("*stopped,{rest}thread-id=\"{id}\"");
        let Record::Async { results, .. } = parse_line(line.as_bytes()) else {
            panic!("{line}");
        };
        results
    }

    fn scope() -> Scope {
        let mut scope = Scope::default();
        scope.set_group("i2");
        for id in [4, 5] {
            scope.thread_created(id);
        }
        assert_eq!(scope.thread_stopped(stop(4, "")), Stopped::Wait);
        assert_eq!(
            scope.thread_stopped(stop(5, "")),
            Stopped::Whole(stop(4, ""))
        );
        scope.thread_running(None);
        scope.selected = None;
        scope
    }

    #[test]
    fn threads_of_a_task_stop_together() {
        let mut scope = scope();
        let asked = "signal-name=\"0\",";
        let hit = "reason=\"breakpoint-hit\",";
        assert_eq!(scope.thread_stopped(stop(5, hit)), Stopped::StopOthers);
        let whole = Stopped::Whole(stop(5, hit));
        assert_eq!(scope.thread_stopped(stop(4, asked)), whole);
        assert!(scope.is_selected(5) && !scope.is_running());
        scope.thread_running(None);
        // A stop for a reason takes precedence over gdb's own stop of another thread, in either order.
        assert_eq!(scope.thread_stopped(stop(4, asked)), Stopped::StopOthers);
        assert_eq!(scope.thread_stopped(stop(5, hit)), whole);
        scope.thread_running(Some(4));
        assert_eq!(
            scope.thread_stopped(stop(4, hit)),
            Stopped::Whole(stop(4, hit))
        );
        scope.thread_running(None);
        assert_eq!(scope.thread_stopped(stop(4, hit)), Stopped::StopOthers);
        assert_eq!(scope.thread_exited(5), Some(stop(4, hit)));
        assert_eq!(scope.thread_exited(4), None);
    }

    #[test]
    fn commands_name_the_group_thread_and_frame_of_their_task() {
        let mut scope = scope();
        let check = |scope: &mut Scope, line: &str, expect: Option<&str>| {
            assert_eq!(scope.line(line).as_deref(), expect, "{line}");
        };
        check(
            &mut scope,
            "-target-attach 77",
            Some("-target-attach --thread-group i2 77"),
        );
        check(
            &mut scope,
            "-exec-continue",
            Some("-exec-continue --thread-group i2"),
        );
        check(&mut scope, "-thread-info", Some("-list-thread-groups i2"));
        check(
            &mut scope,
            "-stack-info-frame",
            Some("-stack-info-frame --thread 4"),
        );
        scope.thread_stopped(stop(5, ""));
        scope.thread_stopped(stop(4, ""));
        check(&mut scope, "-stack-select-frame 2", None);
        let frame = "-stack-info-frame --thread 5 --frame 2";
        check(&mut scope, "-stack-info-frame", Some(frame));
        let value = "-data-evaluate-expression --thread 5 --frame 2 \"n\"";
        check(&mut scope, "-data-evaluate-expression \"n\"", Some(value));
        check(&mut scope, "-exec-next 2", Some("-exec-next --thread 5 2"));
        let frame = "-stack-info-frame --thread 4 --frame 0";
        check(&mut scope, "-thread-select 4", Some(frame));
        let frames = "-stack-list-frames --thread 5 0 9";
        check(&mut scope, frames, Some(frames));
        check(&mut scope, "-break-list", Some("-break-list"));
        assert_eq!((scope.number_of(5), scope.id_of(2)), (Some(2), Some(5)));
        assert_eq!(
            scope.restrict(Some("a || b")),
            "$_inferior == 2 && (a || b)"
        );
    }
}
