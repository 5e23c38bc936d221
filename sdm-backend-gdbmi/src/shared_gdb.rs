//! One gdb for many attached tasks: less time and memory than a gdb for each.
//!
//! Each task has a driver of its own, which knows that the gdb has other tasks too. This module replaces the tokens of
//! commands. It routes answers by their token, and notifications by their thread, inferior or breakpoint.

mod sharing_task;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::os::fd::{OwnedFd, RawFd};
use std::rc::Rc;
use std::time::Instant;

use nix::sys::signal::kill;
use nix::unistd::Pid;
use sdm_core::CommandId;
use sdm_debug::command::AttachSpec;
use sdm_debug::{BackendOutput, Command, Event, Failure, FailureCode, TaskState};
use sdm_idset::TaskId;
use sdm_inferior::Held;

use crate::gdb_instance::{Interest, Slot, UnsharedTasks};
use crate::liveness::{self, LivenessTimer};
use crate::task::{Filled, GdbIo, Pipe, lets_go};
use crate::timers::Timers;
use sdm_child::GdbChild;
use sdm_gdb::{AbandonedCommand, Action, Driver, split, withdrawn};
use sdm_mi::{AsyncKind, Record, Results};
use sharing_task::SharingTask;

/// A gdb that is attached to the processes of several tasks.
pub(crate) struct SharedGdb {
    gdb: GdbIo,
    members: Vec<SharingTask>,
    /// Index of each task among the members.
    places: BTreeMap<TaskId, usize>,
    /// Index of each inferior's task, by gdb's name of the inferior.
    groups: HashMap<String, usize>,
    /// Index of the task of each of gdb's breakpoints, as learned from gdb's answers.
    breakpoints: HashMap<u32, usize>,
    /// Indices of tasks whose drivers have received input, and whose actions are not carried out yet.
    touched: VecDeque<usize>,
    timers: Timers<usize>,
    /// Number of tasks whose end gdb may miss.
    missable_count: usize,
    /// Number of tasks with an attach under way.
    starting_count: usize,
    /// Number of tasks that still need the gdb.
    needing_count: usize,
    pulse: LivenessTimer,
    /// For each open MI command, by its token in gdb: the index of its task, and the token that the task's driver uses.
    tokens: BTreeMap<u64, (usize, u64)>,
    next_token: u64,
    /// Index of the task of each gdb thread.
    threads: BTreeMap<u32, usize>,
    /// Index of the task whose inferior ended last; `None` before the first. gdb's record of the exit code names no
    /// inferior.
    last_exited: Option<usize>,
    /// True if gdb inserts breakpoints into its processes: see [`Action::TieProcess`].
    tied: bool,
    /// True if gdb may have inserted breakpoints into a process that runs.
    unswept: bool,
    closing: Vec<OwnedFd>,
    outputs: Vec<BackendOutput>,
    apart: UnsharedTasks,
}

impl SharedGdb {
    pub(crate) fn new(gdb: GdbChild, spec: AttachSpec) -> Self {
        Self {
            gdb: GdbIo::new(gdb),
            members: Vec::new(),
            places: BTreeMap::new(),
            groups: HashMap::new(),
            breakpoints: HashMap::new(),
            touched: VecDeque::new(),
            timers: Timers::default(),
            missable_count: 0,
            starting_count: 0,
            needing_count: 0,
            pulse: LivenessTimer::default(),
            tokens: BTreeMap::new(),
            next_token: 1,
            threads: BTreeMap::new(),
            last_exited: None,
            tied: false,
            unswept: false,
            closing: Vec::new(),
            outputs: Vec::new(),
            apart: UnsharedTasks {
                spec,
                wanted: Vec::new(),
            },
        }
    }

    /// Adds a task. Its driver has the attach command already.
    pub(crate) fn add(&mut self, task: TaskId, driver: Driver, mut held: Option<Held>) {
        held.iter_mut().filter(|_| self.tied).for_each(Held::tie);
        let at = self.members.len();
        self.places.insert(task, at);
        self.touched.push_back(at);
        self.needing_count += 1;
        self.members.push(SharingTask {
            task,
            driver,
            held,
            is_missable: false,
            starts: false,
            done: false,
        });
    }

    fn touch_all(&mut self) {
        self.touched.clear();
        self.touched.extend(0..self.members.len());
    }

    fn settle_member(&mut self, now: Instant, at: usize) {
        while let Some(action) = self.members[at].driver.poll_action() {
            self.act(now, at, action);
        }
        let member = &mut self.members[at];
        let state = member.driver.task_state();
        if !state.is_live() && state != TaskState::GdbDead {
            member.held = None;
        }
        let is_missable = member.driver.may_miss_end();
        let starts = state == TaskState::Starting;
        count(
            &mut self.missable_count,
            &mut member.is_missable,
            is_missable,
        );
        count(&mut self.starting_count, &mut member.starts, starts);
        self.timers.set(at, member.driver.poll_timeout());
    }

    fn act(&mut self, now: Instant, at: usize, action: Action) {
        let task = self.members[at].task;
        match action {
            Action::Send(line) => self.send(at, &line),
            Action::Answer { id, result } => {
                self.outputs
                    .push(BackendOutput::Answer { id, task, result });
            }
            Action::AttachApart { id } => self.apart.wanted.push((id, task)),
            Action::Event(event) => self.outputs.push(BackendOutput::Event { task, event }),
            Action::BreakOff(number) => self.break_off(now, at, number),
            Action::SignalProgram { pid, signal } => {
                let _ = kill(Pid::from_raw(pid), signal);
            }
            Action::CloseGdb => {
                let needs = !std::mem::replace(&mut self.members[at].done, true);
                self.needing_count -= usize::from(needs);
                if self.needing_count == 0 {
                    self.held().for_each(Held::untie);
                    self.gdb.close(now, &mut self.closing);
                }
            }
            Action::TieProcess => {
                // When gdb resumes one process it inserts breakpoints into all that it traces.
                self.tied = true;
                self.held().for_each(Held::tie);
            }
            Action::UntieProcess => {
                if !self.members.iter().any(SharingTask::runs) {
                    self.members[at].held.iter_mut().for_each(Held::untie);
                }
            }
            Action::ClearCode => {
                self.unswept = true;
                self.members[at].clear();
            }
            Action::SignalThread { .. }
            | Action::Seized(_)
            | Action::ProgramOpened
            | Action::ProgramEnded => {}
        }
    }

    fn send(&mut self, at: usize, line: &str) {
        let (number, rest) = split(line);
        let token = self.next_token;
        self.next_token += 1;
        self.tokens.insert(token, (at, number));
        let line = format!("{token}{rest}");
        tracing::trace!(
            task = self.members[at].task.0,
            "to gdb: {}",
            line.trim_end()
        );
        self.gdb.push(&line);
    }

    /// Abandons a command of a task, as its answer is no longer wanted.
    fn break_off(&mut self, now: Instant, at: usize, number: u64) {
        let known = self.tokens.iter().find(|(_, of)| **of == (at, number));
        let Some(token) = known.map(|(token, _)| *token) else {
            return;
        };
        if self.gdb.break_off(token) == AbandonedCommand::Withdrawn {
            self.tokens.remove(&token);
            self.members[at]
                .driver
                .handle_record(now, withdrawn(number));
        }
    }

    /// Index of the task whose command gdb is executing, which is the oldest open command; `None` if no command is
    /// open. gdb executes commands in order.
    fn executing(&self) -> Option<usize> {
        self.tokens.values().next().map(|(at, _)| *at)
    }

    fn read_gdb(&mut self, now: Instant) {
        loop {
            let Some(filled) = self.gdb.fill() else {
                return self.reap(now);
            };
            while let Some(record) = self.gdb.next_record() {
                tracing::trace!("from gdb: {record:?}");
                self.hand_on(now, record);
                while let Some(at) = self.touched.pop_front() {
                    self.settle_member(now, at);
                }
            }
            if filled == Filled::All {
                return;
            }
        }
    }

    /// Passes a record to the task that it concerns.
    fn hand_on(&mut self, now: Instant, mut record: Record) {
        let to = match &mut record {
            Record::Result { token, .. } | Record::TooLong { token, .. } => {
                let known = token.and_then(|number| self.tokens.remove(&number));
                *token = known.map(|(_, number)| number);
                known.map(|(at, _)| at)
            }
            Record::Async {
                kind: AsyncKind::Exec,
                class,
                results,
                ..
            } => {
                // gdb reports a stop on its console first. That text is not output of the command being executed.
                if class == "stopped"
                    && let Some(at) = self.executing()
                {
                    self.members[at].driver.forget_printed();
                }
                self.of_thread(results)
            }
            Record::Async {
                kind: AsyncKind::Notify,
                class,
                results,
                ..
            } => match class.as_str() {
                "breakpoint-modified" | "breakpoint-deleted" => match self.of_breakpoint(results) {
                    None => {
                        // Each driver recognises its own breakpoints.
                        for member in &mut self.members {
                            member.driver.handle_record(now, record.clone());
                        }
                        return self.touch_all();
                    }
                    of => of,
                },
                "breakpoint-created" => self.executing(),
                class => {
                    let class = class.to_owned();
                    let results = results.clone();
                    self.of_group(&class, &results)
                }
            },
            // Output that no command has caused is given to the first task.
            Record::Stream { .. } => self.executing().or(Some(0)),
            _ => None,
        };
        let Some(at) = to.filter(|at| *at < self.members.len()) else {
            return;
        };
        if let Record::Result { results, .. } = &record {
            if let Some(group) = results.text("inferior") {
                self.groups.insert(group.to_owned(), at);
            }
            if let Some(number) = results.tuple("bkpt").and_then(|it| it.number("number")) {
                self.breakpoints.insert(number, at);
            }
        }
        self.members[at].driver.handle_record(now, record);
        self.touched.push_back(at);
    }

    /// Index of the task of the breakpoint in a record; `None` if it is not known.
    fn of_breakpoint(&self, results: &Results) -> Option<usize> {
        let bkpt = results.tuple("bkpt");
        let number = bkpt.map_or_else(|| results.number("id"), |it| it.number("number"));
        self.breakpoints.get(&number?).copied()
    }

    fn of_thread(&self, results: &Results) -> Option<usize> {
        match results.number("thread-id") {
            Some(thread) => self.threads.get(&thread).copied(),
            None => self.last_exited,
        }
    }

    fn of_group(&mut self, class: &str, results: &Results) -> Option<usize> {
        let id = results.text("id").unwrap_or_default();
        let group = results.text("group-id").or(results.text("thread-group"));
        let group = group.unwrap_or(id);
        let at = *self.groups.get(group)?;
        match (class, id.parse()) {
            ("thread-created", Ok(thread)) => drop(self.threads.insert(thread, at)),
            ("thread-exited", Ok(thread)) => drop(self.threads.remove(&thread)),
            ("thread-group-exited", _) => self.last_exited = Some(at),
            _ => {}
        }
        Some(at)
    }

    /// Checks whether gdb is gone, after it has closed its output or was killed.
    fn reap(&mut self, now: Instant) {
        if self.gdb.dies_unasked() {
            // This comes first, as the processes run and may have gdb's breakpoints. All are stopped before any is
            // restored.
            self.held().for_each(Held::catch);
            self.restore();
        }
        let Some(text) = self.gdb.reap(now, &mut self.closing) else {
            return;
        };
        let was_killed = self.gdb.was_killed();
        self.held().for_each(|held| held.wake(was_killed));
        if was_killed {
            self.restore();
        }
        for member in &mut self.members {
            member.held = None;
            member.driver.handle_gdb_end(now, &text);
        }
        self.touch_all();
    }

    /// The processes from which gdb has not detached.
    fn held(&mut self) -> impl Iterator<Item = &mut Held> {
        self.members.iter_mut().filter_map(|it| it.held.as_mut())
    }

    /// Restores the code that gdb has changed in the held processes.
    fn restore(&mut self) {
        for member in &self.members {
            if let Some(text) = member.held.as_ref().and_then(Held::restore) {
                let (task, event) = (member.task, Event::Notice { text });
                self.outputs.push(BackendOutput::Event { task, event });
            }
        }
    }
}

impl Slot for SharedGdb {
    fn driver(&self, task: TaskId) -> Option<&Driver> {
        let at = self.places.get(&task)?;
        Some(&self.members[*at].driver)
    }

    fn execute(&mut self, now: Instant, task: TaskId, id: CommandId, command: &Rc<Command>) {
        let Some(at) = self.places.get(&task).copied() else {
            return;
        };
        if matches!(**command, Command::Stdin { .. }) {
            let text = "this rank does not read standard input from sdm (see --stdin)";
            let result = Err(Failure::new(FailureCode::Unsupported, text));
            self.outputs
                .push(BackendOutput::Answer { id, task, result });
            return;
        }
        if lets_go(command) {
            self.gdb.resume();
        }
        self.members[at]
            .driver
            .handle_command(now, id, Rc::clone(command));
        self.touched.push_back(at);
    }

    fn cancel(&mut self, now: Instant, id: CommandId) {
        self.gdb.resume();
        for member in &mut self.members {
            member.driver.handle_cancel(now, id);
        }
        self.touch_all();
    }

    fn add_interests(&self, to: &mut Vec<Interest>) {
        to.extend(self.gdb.interests());
    }

    fn handle_ready(&mut self, now: Instant, fd: RawFd) {
        match self.gdb.pipe(fd) {
            Some(Pipe::Records) => self.read_gdb(now),
            Some(Pipe::Words) => self.gdb.read_words(&mut self.closing),
            Some(Pipe::Commands) => self.gdb.write(now),
            Some(Pipe::End) => {
                self.read_gdb(now);
                self.reap(now);
            }
            None => {}
        }
    }

    fn poll_timeout(&self, _: Instant) -> Option<Instant> {
        let drivers = self.timers.first().into_iter();
        let own = self.gdb.poll_timeout().into_iter();
        drivers.chain(own).chain(self.pulse.poll_timeout()).min()
    }

    fn handle_timeout(&mut self, now: Instant) {
        for at in self.timers.take_due(now) {
            self.members[at].driver.handle_timeout(now);
            self.touched.push_back(at);
        }
        if self.pulse.take_due(now) {
            for member in &mut self.members {
                liveness::look(now, &mut member.driver);
            }
            self.touch_all();
        }
        if self.gdb.is_press_due(now) {
            self.held().for_each(Held::catch);
        }
        self.gdb.press(now, || {});
        if self.gdb.is_reap_due(now) {
            self.reap(now);
        }
    }

    fn shut_down(&mut self, now: Instant, kill_started: bool) {
        self.gdb.resume();
        for member in &mut self.members {
            member.driver.shut_down(now, kill_started);
        }
        self.touch_all();
    }

    fn is_down(&self) -> bool {
        self.gdb.is_gone()
    }

    fn settle(&mut self, now: Instant) {
        while let Some(at) = self.touched.pop_front() {
            self.settle_member(now, at);
        }
        self.pulse.keep(now, self.missable_count > 0);
        if self.starting_count == 0 {
            self.gdb.all_attached();
        }
        // The code is cleared once for all commands that gdb was given together.
        if self.tokens.is_empty() && std::mem::take(&mut self.unswept) {
            self.members.iter().for_each(SharingTask::clear);
        }
        self.gdb.write(now);
    }

    fn said(&mut self) -> (&mut Vec<BackendOutput>, &mut Vec<OwnedFd>) {
        (&mut self.outputs, &mut self.closing)
    }

    fn apart(&mut self) -> Option<&mut UnsharedTasks> {
        Some(&mut self.apart)
    }
}

/// Sets a flag, and updates the count of set flags.
fn count(sum: &mut usize, is: &mut bool, becomes: bool) {
    match (std::mem::replace(is, becomes), becomes) {
        (false, true) => *sum += 1,
        (true, false) => *sum -= 1,
        _ => {}
    }
}
