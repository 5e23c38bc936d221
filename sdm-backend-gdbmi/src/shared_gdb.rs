//! One gdb for many attached tasks: a fraction of the time and memory of a gdb for each.
//!
//! Each task has a driver of its own, which is told that it is not alone. This module shares the gdb
//! among them: numbers of commands on their way down, answers by their number and notifications by
//! their thread or inferior on their way up.

use std::collections::BTreeMap;
use std::os::fd::{OwnedFd, RawFd};
use std::time::Instant;

use nix::sys::signal::kill;
use nix::unistd::Pid;
use sdm_core::CommandId;
use sdm_debug::{BackendOutput, Command, Event, Failure, FailureCode, TaskState};
use sdm_idset::TaskId;

use crate::child::GdbChild;
use crate::driver::{Action, Driver};
use crate::held::Held;
use crate::liveness::{self, Pulse};
use crate::mi::{AsyncKind, Record, Results};
use crate::task::{BrokenOff, GdbIo, Pipe, lets_go, split, withdrawn};

/// A gdb and the tasks that it holds.
pub(crate) struct SharedGdb {
    gdb: GdbIo,
    members: Vec<SharingTask>,
    pulse: Pulse,
    /// Whose command a number is, and its number there.
    tokens: BTreeMap<u64, (usize, u64)>,
    next_token: u64,
    /// Whose thread one of gdb's is.
    threads: BTreeMap<u32, usize>,
    /// Whose inferior has ended last: the record that says how names none.
    last_exited: Option<usize>,
    /// gdb puts breakpoints into what it holds: see [`Action::TieProcess`].
    tied: bool,
    /// gdb can have inserted something into any process that runs.
    unswept: bool,
    pub(crate) closing: Vec<OwnedFd>,
    pub(crate) outputs: Vec<BackendOutput>,
}

struct SharingTask {
    task: TaskId,
    driver: Driver,
    /// Its process, until gdb has left it.
    held: Option<Held>,
    /// gdb's name of its inferior, once it has one.
    group: String,
    /// It needs its gdb no longer.
    done: bool,
}

impl SharingTask {
    /// Takes out what gdb has inserted, where it runs: into who stands gdb inserts it when he goes on.
    fn clear(&self) {
        if self.driver.task_state() == TaskState::Running {
            self.held.iter().for_each(Held::clear);
        }
    }
}

impl SharedGdb {
    pub(crate) fn new(gdb: GdbChild) -> Self {
        Self {
            gdb: GdbIo::new(gdb),
            members: Vec::new(),
            pulse: Pulse::default(),
            tokens: BTreeMap::new(),
            next_token: 1,
            threads: BTreeMap::new(),
            last_exited: None,
            tied: false,
            unswept: false,
            closing: Vec::new(),
            outputs: Vec::new(),
        }
    }

    /// Adds a task; its driver has been told what to do.
    pub(crate) fn add(&mut self, task: TaskId, driver: Driver, mut held: Option<Held>) {
        held.iter_mut().filter(|_| self.tied).for_each(Held::tie);
        self.members.push(SharingTask {
            task,
            driver,
            held,
            group: String::new(),
            done: false,
        });
    }

    /// The driver of a task that is here.
    pub(crate) fn driver(&self, task: TaskId) -> Option<&Driver> {
        let found = self.members.iter().find(|member| member.task == task);
        found.map(|member| &member.driver)
    }

    pub(crate) fn execute(&mut self, now: Instant, task: TaskId, id: CommandId, command: Command) {
        let Some(at) = self.members.iter().position(|m| m.task == task) else {
            return;
        };
        if matches!(command, Command::Stdin { .. }) {
            let text = "the task reads no input from the front-end";
            let result = Err(Failure::new(FailureCode::Unsupported, text));
            self.outputs
                .push(BackendOutput::Answer { id, task, result });
            return;
        }
        if lets_go(&command) {
            self.gdb.go_on();
        }
        self.members[at].driver.handle_command(now, id, command);
        self.settle(now);
    }

    pub(crate) fn cancel(&mut self, now: Instant, id: CommandId) {
        self.gdb.go_on();
        for member in &mut self.members {
            member.driver.handle_cancel(now, id);
        }
        self.settle(now);
    }

    pub(crate) fn interests(&self) -> Vec<(RawFd, bool, bool)> {
        self.gdb.interests().collect()
    }

    pub(crate) fn handle_ready(&mut self, now: Instant, fd: RawFd) {
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
        self.settle(now);
    }

    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        let drivers = self.members.iter().filter_map(|m| m.driver.poll_timeout());
        let own = self.gdb.poll_timeout().into_iter();
        drivers.chain(own).chain(self.pulse.poll_timeout()).min()
    }

    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        for member in &mut self.members {
            if member.driver.poll_timeout().is_some_and(|at| at <= now) {
                member.driver.handle_timeout(now);
            }
        }
        if self.pulse.take_due(now) {
            for member in &mut self.members {
                liveness::look(now, &mut member.driver);
            }
        }
        if self.gdb.is_press_due(now) {
            self.held().for_each(Held::freeze);
        }
        self.gdb.press(now, || {});
        if self.gdb.is_reap_due(now) {
            self.reap(now);
        }
        self.settle(now);
    }

    pub(crate) fn shut_down(&mut self, now: Instant, kill_started: bool) {
        self.gdb.go_on();
        for member in &mut self.members {
            member.driver.shut_down(now, kill_started);
        }
        self.settle(now);
    }

    pub(crate) fn is_down(&self) -> bool {
        self.gdb.is_gone()
    }

    /// Does what the drivers want, until they want nothing more.
    pub(crate) fn settle(&mut self, now: Instant) {
        for at in 0..self.members.len() {
            while let Some(action) = self.members[at].driver.poll_action() {
                self.act(now, at, action);
            }
        }
        for member in &mut self.members {
            let state = member.driver.task_state();
            if !state.is_live() && state != TaskState::GdbDead {
                member.held = None;
            }
        }
        let drivers = self.members.iter().map(|member| &member.driver);
        self.pulse.keep(now, drivers);
        let starting = |member: &SharingTask| member.driver.task_state() == TaskState::Starting;
        if !self.members.iter().any(starting) {
            self.gdb.all_attached();
        }
        // Once for all that gdb was told together.
        if self.tokens.is_empty() && std::mem::take(&mut self.unswept) {
            self.members.iter().for_each(SharingTask::clear);
        }
        self.gdb.write(now);
    }

    fn act(&mut self, now: Instant, at: usize, action: Action) {
        let task = self.members[at].task;
        match action {
            Action::Send(line) => self.send(at, &line),
            Action::Answer { id, result } => {
                self.outputs
                    .push(BackendOutput::Answer { id, task, result });
            }
            Action::Event(event) => self.outputs.push(BackendOutput::Event { task, event }),
            Action::BreakOff(number) => self.break_off(now, at, number),
            Action::SignalProgram { pid, signal } => {
                // gdb holds it, so the pid is still its own; it may be a zombie.
                let _ = kill(Pid::from_raw(pid), signal);
            }
            Action::CloseGdb => {
                self.members[at].done = true;
                if self.members.iter().all(|member| member.done) {
                    self.held().for_each(Held::untie);
                    self.gdb.close(now, &mut self.closing);
                }
            }
            Action::TieProcess => {
                // gdb puts them into all that it holds when it lets one of them run.
                self.tied = true;
                self.held().for_each(Held::tie);
            }
            Action::ClearCode => {
                self.unswept = true;
                self.members[at].clear();
            }
            Action::ProgramOpened | Action::ProgramEnded => {}
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

    /// Nobody wants the answer to one of a task's commands any more.
    fn break_off(&mut self, now: Instant, at: usize, number: u64) {
        let known = self.tokens.iter().find(|(_, of)| **of == (at, number));
        let Some(token) = known.map(|(token, _)| *token) else {
            return;
        };
        if self.gdb.break_off(token) == BrokenOff::Withdrawn {
            self.tokens.remove(&token);
            self.members[at]
                .driver
                .handle_record(now, withdrawn(number));
        }
    }

    /// Whose command gdb is at: it takes them in order.
    fn executing(&self) -> Option<usize> {
        self.tokens.values().next().map(|(at, _)| *at)
    }

    fn read_gdb(&mut self, now: Instant) {
        loop {
            match self.gdb.fill() {
                Some(true) => {}
                Some(false) => return,
                None => return self.reap(now),
            }
            while let Some(record) = self.gdb.next_record() {
                tracing::trace!("from gdb: {record:?}");
                self.hand_on(now, record);
                self.settle(now);
            }
        }
    }

    /// Gives a record to the task that it is about.
    fn hand_on(&mut self, now: Instant, mut record: Record) {
        let to = match &mut record {
            Record::Result { token, .. } | Record::TooLong { token, .. } => {
                let known = token.and_then(|number| self.tokens.remove(&number));
                *token = known.map(|(_, number)| number);
                known.map(|(at, _)| at)
            }
            Record::Async {
                kind: AsyncKind::Exec,
                results,
                ..
            } => self.of_thread(results),
            Record::Async {
                kind: AsyncKind::Notify,
                class,
                results,
                ..
            } => match class.as_str() {
                "breakpoint-modified" | "breakpoint-deleted" => {
                    // Each knows its own.
                    for member in &mut self.members {
                        member.driver.handle_record(now, record.clone());
                    }
                    return;
                }
                "breakpoint-created" => self.executing(),
                class => {
                    let class = class.to_owned();
                    let results = results.clone();
                    self.of_group(&class, &results)
                }
            },
            // What gdb says unasked is one's as well as another's.
            Record::Stream { .. } => self.executing().or(Some(0)),
            _ => None,
        };
        if let Record::Result { results, .. } = &record
            && let (Some(at), Some(group)) = (to, results.text("inferior"))
        {
            group.clone_into(&mut self.members[at].group);
        }
        if let Some(member) = to.and_then(|at| self.members.get_mut(at)) {
            member.driver.handle_record(now, record);
        }
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
        let at = self.members.iter().position(|m| m.group == group)?;
        match (class, id.parse()) {
            ("thread-created", Ok(thread)) => drop(self.threads.insert(thread, at)),
            ("thread-exited", Ok(thread)) => drop(self.threads.remove(&thread)),
            ("thread-group-exited", _) => self.last_exited = Some(at),
            _ => {}
        }
        Some(at)
    }

    /// gdb has closed its output or was killed: looks whether it is gone.
    fn reap(&mut self, now: Instant) {
        if self.gdb.dies_unasked() {
            // Before anything else: they run, and gdb's breakpoints may be in them. First all are stopped.
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
    }

    /// The processes that gdb has not left.
    fn held(&mut self) -> impl Iterator<Item = &mut Held> {
        self.members.iter_mut().filter_map(|it| it.held.as_mut())
    }

    /// Puts back what gdb has changed in the code of those that it holds.
    fn restore(&mut self) {
        for member in &self.members {
            if let Some(text) = member.held.as_ref().and_then(Held::restore) {
                let (task, event) = (member.task, Event::Notice { text });
                self.outputs.push(BackendOutput::Event { task, event });
            }
        }
    }
}
