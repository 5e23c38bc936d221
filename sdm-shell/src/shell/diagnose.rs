//! `diagnose`: a few samples of the stacks, the tasks running in between.

use std::time::Duration;

use sdm_debug::command::{AttachSpec, FrameSelect};
use sdm_debug::reply::StopReason;
use sdm_debug::rules::RULE_HASH;
use sdm_debug::{Command, Reply, TaskState};
use sdm_idset::{IdSet, TaskId};
use sdm_session::Debug;
use sdm_view::diagnose::{Diagnosis, Observed, Sample, judge};
use sdm_view::item::{Happening, Item};

use super::gather::join;
use super::run::Said;
use super::wait::{Goal, Waited};
use super::{Control, Shell, Verdict};

/// How long tasks run between two samples.
const BETWEEN: Duration = Duration::from_millis(500);
/// How long interrupted tasks are given to stop.
const STOP_WAIT: Duration = Duration::from_secs(10);
/// The most tasks whose processor time is asked for, each by itself.
const TICKS_MAX: u64 = 256;

/// What `sdm diagnose` came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Diagnosed {
    /// It was said what is stuck.
    Judged {
        /// Somebody is.
        stuck: bool,
    },
    /// Nobody could be attached to, or the session is over.
    Unseen,
    /// A person has given it up.
    Interrupted,
}

impl<D: Debug> Shell<D> {
    /// `diagnose [SAMPLES]`.
    pub(super) fn diagnose(&mut self, said: &Said<'_>, samples: u32) -> Verdict {
        let found = self.diagnosis(said, samples, Observed::default());
        let Some(found) = found else {
            return Verdict::GivenUp;
        };
        self.show(&Item::Diagnosis(found));
        Verdict::Done
    }

    /// Attaches to processes without changing them, says what is stuck, and leaves them; `states`
    /// is what was seen of them before.
    pub fn diagnose_target(
        &mut self,
        spec: AttachSpec,
        samples: u32,
        states: Vec<(IdSet, String)>,
    ) -> Diagnosed {
        let all = self.debug.tasks().clone();
        self.interrupted = false;
        let attached = self.attach_quietly(spec, &all).1;
        if attached.is_empty() || self.over.is_some() {
            return self.undiagnosed();
        }
        let said = Said {
            line: "diagnose",
            to: attached.clone(),
            named: true,
        };
        let observed = Observed {
            states,
            ..Observed::default()
        };
        let mut found = None;
        if !self.interrupted {
            found = self.diagnosis(&said, samples, observed);
        }
        let stuck = found.as_ref().map(|found| found.stuck);
        if let Some(found) = found {
            self.show(&Item::Diagnosis(found));
        }
        let standing = self.standing().intersection(&attached);
        self.ask_quietly("detach", &standing, &Command::Detach);
        match stuck.filter(|_| self.over.is_none()) {
            Some(stuck) => Diagnosed::Judged { stuck },
            None => self.undiagnosed(),
        }
    }

    fn undiagnosed(&self) -> Diagnosed {
        if self.interrupted && self.over.is_none() {
            Diagnosed::Interrupted
        } else {
            Diagnosed::Unseen
        }
    }

    /// Samples the tasks and judges what was seen; `observed` holds what is known beforehand. Gives nothing
    /// where a person did not wait for it: what was not seen then says nothing about the tasks.
    pub(super) fn diagnosis(
        &mut self,
        said: &Said<'_>,
        samples: u32,
        mut observed: Observed,
    ) -> Option<Diagnosis> {
        self.interrupted = false;
        self.quiet_runs = true;
        self.open.hush_runs(true);
        let ran = self.tasks.running().intersection(&said.to);
        self.stop_quietly(said.line, &ran);
        self.note_absent(&said.to, &mut observed);
        let looked = self.let_run_between(&said.to, &mut observed);
        let began = self.now();
        for number in 0..samples {
            if number > 0 {
                observed.ran += self.run_for_a_moment(said.line, &looked);
            }
            if self.over.is_some() || self.interrupted {
                break;
            }
            let last = number + 1 == samples;
            let sample = self.sample(said.line, &looked, last);
            observed.samples.push(sample);
        }
        observed.span = self.now() - began;
        if !self.interrupted {
            self.look_closer(said.line, &looked, &mut observed);
        }
        self.quiet_runs = false;
        self.open.hush_runs(false);
        let going_on = ran.intersection(&self.standing());
        if !going_on.is_empty() && self.over.is_none() {
            self.continue_quietly(said.line, &going_on);
        }
        (!self.interrupted).then(|| judge(&observed))
    }

    pub(super) fn standing(&self) -> IdSet {
        let standing = self.tasks.in_state(|state| *state == TaskState::Stopped);
        standing.difference(self.tasks.lost())
    }

    /// Who is gone, and who cannot be reached.
    fn note_absent(&self, to: &IdSet, observed: &mut Observed) {
        for row in self.tasks.rows_of(to) {
            let reachable = row.tasks.difference(self.tasks.lost());
            let what = match &row.state {
                TaskState::Exited(0) => Some("ended by themselves".to_owned()),
                TaskState::Exited(code) => Some(format!("ended with exit code {code}")),
                TaskState::Signalled(signal) => Some(format!("ended by {signal}")),
                TaskState::GdbDead => Some("without a gdb".to_owned()),
                TaskState::Detached => Some("detached".to_owned()),
                _ => None,
            };
            if let Some(what) = what.filter(|_| !reachable.is_empty()) {
                join(&mut observed.gone, &reachable, what);
            }
        }
        let lost = self.tasks.lost().intersection(to);
        if !lost.is_empty() {
            join(
                &mut observed.gone,
                &lost,
                "lost: their server is gone".to_owned(),
            );
        }
        let crashed = self
            .tasks
            .where_last(|last| matches!(last, Happening::Stopped(stop) if stop.reason.is_crash()));
        let crashed = crashed.intersection(to).difference(self.tasks.lost());
        for row in self.tasks.rows_of(&crashed) {
            if let Some(Happening::Stopped(stop)) = &row.last {
                let what = format!("at their end: {}", sdm_view::render::stopped(stop));
                join(&mut observed.gone, &row.tasks, what);
            }
        }
    }

    /// Those that may run between samples. Who stands at a breakpoint or behind a step is where
    /// somebody wants it.
    fn let_run_between(&self, to: &IdSet, observed: &mut Observed) -> IdSet {
        let free = self.tasks.where_last(|last| match last {
            Happening::Stopped(stop) => {
                matches!(stop.reason, StopReason::Interrupted | StopReason::Attached)
            }
            _ => false,
        });
        let standing = self.standing().intersection(to);
        let gone = IdSet::union_all(observed.gone.iter().map(|(tasks, _)| tasks));
        let stood = standing.difference(&free).difference(&gone);
        if !stood.is_empty() {
            let what = "left where they were stopped, not let run".to_owned();
            join(&mut observed.stood, &stood, what);
        }
        let still_running = self.tasks.running().intersection(to);
        if !still_running.is_empty() {
            let what = "could not be stopped".to_owned();
            join(&mut observed.unseen, &still_running, what);
        }
        standing.intersection(&free)
    }

    /// Gives how long they ran.
    fn run_for_a_moment(&mut self, line: &str, tasks: &IdSet) -> Duration {
        let began = self.now();
        let tasks = tasks.intersection(&self.standing());
        if tasks.is_empty() {
            return Duration::ZERO;
        }
        self.continue_quietly(line, &tasks);
        let until = self.now() + BETWEEN;
        while self.now() < until && self.over.is_none() && !self.interrupted {
            self.pump(Some(until));
            let control = self.take_control();
            self.interrupted |= matches!(control, Some(Control::Interrupt | Control::Suspend));
        }
        let running = self.tasks.running().intersection(&tasks);
        self.stop_quietly(line, &running);
        self.now() - began
    }

    pub(super) fn continue_quietly(&mut self, line: &str, tasks: &IdSet) {
        let id = self.send(line, tasks, &Command::Continue);
        if let Some(open) = self.open.find(id) {
            open.unattended = true;
        }
    }

    /// Stops tasks; false where a person gave up waiting for it.
    pub(super) fn stop_quietly(&mut self, line: &str, tasks: &IdSet) -> bool {
        if tasks.is_empty() {
            return true;
        }
        let before = self.interrupted;
        let (verdict, _) = self.ask_quietly(line, tasks, &Command::Interrupt);
        if self.interrupted && !before {
            // Some were not told to stop: nobody waits for them.
            return false;
        }
        let until = Some(self.now() + STOP_WAIT);
        let waited = self.wait_for(&Goal::Still(tasks.clone()), line, until);
        verdict != Verdict::GivenUp && waited != Waited::GivenUp
    }

    fn sample(&mut self, line: &str, tasks: &IdSet, last: bool) -> Sample {
        let mut sample = Sample::default();
        let tasks = tasks.intersection(&self.standing());
        if tasks.is_empty() {
            return sample;
        }
        for (tasks, reply) in self.answers(line, &tasks, &Command::Stacks { full: false }) {
            if let Reply::Stacks(stacks) = reply {
                sample.stacks.push((tasks, stacks));
            }
        }
        sample.inner = self.variables(line, &tasks);
        let moved = self.move_frame(line, &tasks, 1);
        let mut outer = self.variables(line, &moved);
        let again = self.move_frame(line, &moved, 1);
        for (tasks, text) in self.variables(line, &again) {
            // What differs in either frame differs.
            outer = split(outer, &tasks, &text);
        }
        sample.outer = outer;
        if last {
            self.move_frame(line, &again, -1);
            self.move_frame(line, &moved, -1);
        }
        sample.ticks = self.ticks(line, &tasks);
        sample
    }

    fn move_frame(&mut self, line: &str, tasks: &IdSet, by: i32) -> IdSet {
        if tasks.is_empty() {
            return IdSet::new();
        }
        let command = Command::SelectFrame(FrameSelect::Move(by));
        let answers = self.answers(line, tasks, &command);
        IdSet::union_all(answers.iter().map(|(tasks, _)| tasks))
    }

    fn variables(&mut self, line: &str, tasks: &IdSet) -> Vec<(IdSet, String)> {
        let mut found = Vec::new();
        if tasks.is_empty() {
            return found;
        }
        for command in [Command::Locals, Command::Arguments] {
            let mut texts = Vec::new();
            for (tasks, reply) in self.answers(line, tasks, &command) {
                if let Reply::Variables(variables) = reply {
                    texts.push((tasks, format!("{variables:?}")));
                }
            }
            if found.is_empty() {
                found = texts;
                continue;
            }
            for (tasks, text) in texts {
                found = split(found, &tasks, &text);
            }
        }
        found
    }

    /// The good answers to a question, merged by equality: what each task answered is compared.
    pub(super) fn answers(
        &mut self,
        line: &str,
        tasks: &IdSet,
        command: &Command,
    ) -> Vec<(IdSet, Reply)> {
        if tasks.is_empty() {
            return Vec::new();
        }
        let (_, open) = self.ask_merged(line, tasks, command, (RULE_HASH, Vec::new()));
        open.map(|open| open.gathered.ok).unwrap_or_default()
    }

    /// Time on a processor so far, of each task.
    fn ticks(&mut self, line: &str, tasks: &IdSet) -> Vec<(TaskId, u64)> {
        if tasks.len() > TICKS_MAX {
            return Vec::new();
        }
        let command = Command::Console {
            line: "info proc stat".to_owned(),
        };
        let mut found = Vec::new();
        for (tasks, reply) in self.answers(line, tasks, &command) {
            if let Reply::Text(text) = reply
                && let Some(ticks) = ticks_in(&text)
            {
                found.extend(tasks.iter().map(|task| (task, ticks)));
            }
        }
        found
    }
}

/// Adds to the texts of some tasks; classes that it divides are divided.
fn split(classes: Vec<(IdSet, String)>, tasks: &IdSet, text: &str) -> Vec<(IdSet, String)> {
    let mut divided = Vec::new();
    for (class, before) in classes {
        let both = class.intersection(tasks);
        let rest = class.difference(tasks);
        if !rest.is_empty() {
            divided.push((rest, before.clone()));
        }
        if !both.is_empty() {
            divided.push((both, format!("{before};{text}")));
        }
    }
    divided
}

/// `utime` and `stime` in what gdb's `info proc stat` says.
fn ticks_in(text: &str) -> Option<u64> {
    let value = |name: &str| {
        let mut lines = text.lines();
        let found = lines.find_map(|line| line.strip_prefix(name));
        found.and_then(|value| value.trim().parse::<u64>().ok())
    };
    value("utime:")?.checked_add(value("stime:")?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processor_time_is_read() {
        let text = "process 7\nState: t\nutime: 12\nstime: 3\nutime, children: 9\n";
        assert_eq!(ticks_in(text), Some(15));
        assert_eq!(ticks_in("process 7"), None);
    }

    #[test]
    fn classes_are_divided_by_what_differs() {
        let set = |text: &str| text.parse::<IdSet>().unwrap();
        let classes = vec![(set("0-3"), "a".to_owned())];
        let divided = split(classes, &set("1-2"), "b");
        assert_eq!(
            divided,
            [(set("0,3"), "a".to_owned()), (set("1-2"), "a;b".to_owned())]
        );
    }
}
