//! A task: its driver, its gdb, and the descriptors of gdb and the program.

mod detached_program;
mod gdb;
mod seized;
mod streams;

use std::os::fd::{OwnedFd, RawFd};
use std::rc::Rc;
use std::time::Instant;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use sdm_core::CommandId;
use sdm_debug::{BackendOutput, Command, Event, Failure, FailureCode, Reply, TaskState};
use sdm_idset::TaskId;
use sdm_inferior::{Held, Identity, identity};
use sdm_system::signal_name;

use crate::gdb_instance::{Interest, Seized, Slot};
use crate::liveness::{self, LivenessTimer};
use detached_program::{DetachedEnd, DetachedProgram};
pub(crate) use gdb::{Filled, GdbIo, Pipe};
use sdm_child::ToShim;
use sdm_child::{Binding, GdbChild, Streams};
use sdm_child::{InputStream, OutputStream};
use sdm_gdb::{AbandonedCommand, Action, Driver, withdrawn};
pub(crate) use seized::Parent;

/// True for commands that must work even if gdb itself was stopped by a SIGSTOP: interrupt, detach and kill. gdb is
/// resumed for them.
pub(crate) fn lets_go(command: &Command) -> bool {
    matches!(
        command,
        Command::Interrupt | Command::Detach | Command::Kill
    )
}

/// One task, from its start or attach until its gdb has ended, its output is read, and a detached program has ended.
pub(crate) struct Task {
    id: TaskId,
    driver: Driver,
    gdb: GdbIo,
    streams: Streams,
    /// Commands whose input bytes were queued. They are answered when the queue has room for more.
    fed: Vec<CommandId>,
    paused: bool,
    /// True if more output may be readable at once.
    read_more: bool,
    /// Time until which output is awaited after the program's end; `None` before. Output that is unread by then is
    /// lost.
    linger_until: Option<Instant>,
    /// The program that this process started, so that it can be killed as a last resort; `None` for other programs.
    started: Option<Identity>,
    attached: bool,
    /// The process to which gdb attaches; `None` for other tasks, and once the process or gdb has ended or detached.
    held: Option<Held>,
    pulse: LivenessTimer,
    /// The processor binding of the program, shared by gdb until it has started the program; `None` if none.
    binding: Option<Box<Binding>>,
    /// The program after a detach, until it ends; `None` at other times.
    left: Option<DetachedProgram>,
    left_end: Option<DetachedEnd>,
    /// The parent that has seized the program; `None` if the program was started under a gdb.
    seized: Option<Parent>,
    /// Signals that came before the program had started; true if a stopped program gets the signal too.
    due: Vec<(Signal, bool)>,
    /// Descriptors to close once the owner has stopped watching them.
    closing: Vec<OwnedFd>,
    outputs: Vec<BackendOutput>,
}

impl Task {
    pub(crate) fn new(
        id: TaskId,
        driver: Driver,
        gdb: GdbChild,
        streams: Streams,
        attached: bool,
    ) -> Self {
        Self::with(id, driver, GdbIo::new(gdb), streams, attached)
    }

    fn with(id: TaskId, driver: Driver, gdb: GdbIo, streams: Streams, attached: bool) -> Self {
        Self {
            id,
            driver,
            gdb,
            streams,
            fed: Vec::new(),
            paused: false,
            read_more: false,
            linger_until: None,
            started: None,
            attached,
            held: None,
            pulse: LivenessTimer::default(),
            binding: None,
            left: None,
            left_end: None,
            seized: None,
            due: Vec::new(),
            closing: Vec::new(),
            outputs: Vec::new(),
        }
    }

    /// Sets the processor binding with which the program is started.
    pub(crate) fn bound(mut self, binding: Option<Binding>) -> Self {
        self.binding = binding.map(Box::new);
        self
    }

    /// Sets the process to which gdb attaches.
    pub(crate) fn holding(mut self, held: Option<Held>) -> Self {
        self.held = held;
        self
    }

    fn is_detached(&self) -> bool {
        self.driver.task_state() == TaskState::Detached
    }

    fn answer(&mut self, id: CommandId, result: Result<Reply, Failure>) {
        let task = self.id;
        self.outputs
            .push(BackendOutput::Answer { id, task, result });
    }

    fn push_event(&mut self, event: Event) {
        let task = self.id;
        self.outputs.push(BackendOutput::Event { task, event });
    }

    fn carry_out(&mut self, now: Instant) {
        if self.started.is_none()
            && !self.attached
            && let Some(pid) = self.driver.pid()
        {
            self.started = identity(pid);
            if let Some(binding) = self.binding.take() {
                // gdb has started the program, which has inherited the binding.
                binding.free(self.gdb.pid());
            }
            if let Some(shim) = self.gdb.shim() {
                // A shim that has ended has taken its gdb with it.
                let _ = shim.send(&ToShim::Unbind);
            }
        }
        while let Some(action) = self.driver.poll_action() {
            self.act(now, action);
        }
    }

    fn act(&mut self, now: Instant, action: Action) {
        match action {
            Action::Send(line) => {
                tracing::trace!(task = self.id.0, "to gdb: {}", line.trim_end());
                self.gdb.push(&line);
            }
            Action::Answer { id, result } => {
                let has_stopped = matches!(result, Ok(Reply::Stopped(_)));
                self.answer(id, result);
                if has_stopped && !self.attached {
                    self.streams.owed.push(id);
                    self.read_output(now, None);
                }
            }
            Action::Event(event) => self.push_event(event),
            Action::BreakOff(token) => {
                if self.gdb.break_off(token) == AbandonedCommand::Withdrawn {
                    self.driver.handle_record(now, withdrawn(token));
                }
            }
            Action::SignalProgram { pid, signal } => {
                let _ = kill(Pid::from_raw(pid), signal);
            }
            Action::SignalThread {
                pid,
                thread,
                signal,
            } => sdm_child::signal_thread(pid, thread, signal),
            Action::Seized(action) => self.act_on_seized(action),
            Action::TieProcess => self.held.iter_mut().for_each(Held::tie),
            Action::UntieProcess => self.held.iter_mut().for_each(Held::untie),
            Action::ClearCode => self.held.iter().for_each(Held::clear),
            Action::ProgramOpened => self.streams.theirs = None,
            // The task already has a gdb of its own.
            Action::AttachApart { .. } => {}
            Action::ProgramEnded => self.end_streams(now),
            Action::CloseGdb => {
                self.leave_running(now);
                self.held.iter_mut().for_each(Held::untie);
                self.gdb.close(now, &mut self.closing);
            }
        }
    }

    /// After a detach, lets a program that was started here run on, and keeps reading its streams.
    fn leave_running(&mut self, now: Instant) {
        let started = self.started.take_if(|_| !self.attached);
        if !self.is_detached() || self.left.is_some() {
            self.started = started;
        } else if let Some(who) = started {
            let of_seized = self.seized.as_ref().map(Parent::link);
            let shim = self.gdb.shim().or(of_seized).cloned();
            self.left = Some(DetachedProgram::new(now, who, shim));
        }
    }

    /// Restores the attached process after gdb's end.
    fn let_go(&mut self) {
        let Some(mut held) = self.held.take() else {
            return;
        };
        let was_killed = self.gdb.was_killed();
        held.wake(was_killed);
        if was_killed && let Some(text) = held.restore() {
            self.push_event(Event::Notice { text });
        }
    }

    fn look_at_left(&mut self, now: Instant) {
        let gdb_gone = self.gdb.is_gone();
        let end = self.left.as_mut().and_then(|left| left.look(now, gdb_gone));
        let Some(end) = end else { return };
        self.closing
            .extend(self.left.take().and_then(DetachedProgram::into_fd));
        let (state, event) = match end.clone() {
            DetachedEnd::Exited(code) => (TaskState::Exited(code), Event::Exited { code }),
            DetachedEnd::Signalled(number) => {
                let signal = signal_name(number);
                (
                    TaskState::Signalled(signal.clone()),
                    Event::Signalled { signal },
                )
            }
        };
        self.left_end = Some(end);
        self.driver.set_ended(state);
        self.push_event(event);
        self.end_streams(now);
    }

    fn read_gdb(&mut self, now: Instant) {
        loop {
            let Some(filled) = self.gdb.fill() else {
                return self.reap(now);
            };
            while let Some(record) = self.gdb.next_record() {
                tracing::trace!(task = self.id.0, "from gdb: {record:?}");
                self.driver.handle_record(now, record);
                self.carry_out(now);
            }
            if filled == Filled::All {
                return;
            }
        }
    }

    /// Checks whether gdb is gone, after it has closed its output or was killed.
    fn reap(&mut self, now: Instant) {
        if self.gdb.dies_unasked()
            && let Some(held) = &mut self.held
        {
            // This comes first, as the process runs and may have gdb's breakpoints.
            held.catch();
            if let Some(text) = held.restore() {
                self.push_event(Event::Notice { text });
            }
        }
        let Some(text) = self.gdb.reap(now, &mut self.closing) else {
            return;
        };
        self.let_go();
        self.driver.handle_gdb_end(now, &text);
        // A program normally dies with its killed gdb. One that does not is killed here.
        if let Some(program) = self.started.as_ref().filter(|_| !self.is_kept()) {
            program.kill();
        }
    }
}

impl Slot for Task {
    fn driver(&self, _: TaskId) -> Option<&Driver> {
        Some(&self.driver)
    }

    fn execute(&mut self, now: Instant, _: TaskId, id: CommandId, command: &Rc<Command>) {
        if lets_go(command) {
            self.gdb.resume();
        }
        self.prepare_for(now, command);
        match &**command {
            Command::Stdin { offset, bytes, eof } => self.feed(id, *offset, bytes, *eof),
            Command::Kill if self.left.is_some() => {
                self.signal_left(Signal::SIGKILL);
                self.answer(id, Ok(Reply::Done));
            }
            _ => self.driver.handle_command(now, id, Rc::clone(command)),
        }
    }

    fn cancel(&mut self, now: Instant, id: CommandId) {
        if self.fed.contains(&id) {
            // Input that was accepted cannot be taken back.
            self.fed.retain(|fed| *fed != id);
            let cancelled = Failure::new(FailureCode::Cancelled, "cancelled");
            return self.answer(id, Err(cancelled));
        }
        self.gdb.resume();
        self.driver.handle_cancel(now, id);
    }

    fn add_interests(&self, to: &mut Vec<Interest>) {
        to.extend(self.gdb.interests());
        let left = self.left.as_ref().and_then(DetachedProgram::fd);
        to.extend(left.map(|fd| (fd, true, false)));
        let input = self.streams.input.as_ref();
        let input = input.and_then(InputStream::wants_write);
        to.extend(input.map(|fd| (fd, false, true)));
        if !self.paused {
            let outputs = self.streams.outputs.iter();
            to.extend(outputs.map(|output| (output.fd(), true, false)));
        }
    }

    fn handle_ready(&mut self, now: Instant, fd: RawFd) {
        if let Some(pipe) = self.gdb.pipe(fd) {
            match pipe {
                Pipe::Records => self.read_gdb(now),
                Pipe::Words => self.gdb.read_words(&mut self.closing),
                Pipe::Commands => self.gdb.write(now),
                Pipe::End => {
                    self.read_gdb(now);
                    self.reap(now);
                }
            }
        } else if self.left.as_ref().and_then(DetachedProgram::fd) == Some(fd) {
            self.look_at_left(now);
        } else if self.streams.outputs.iter().any(|output| output.fd() == fd) {
            self.read_output(now, Some(fd));
        } else {
            self.write_stdin();
        }
    }

    fn poll_timeout(&self, now: Instant) -> Option<Instant> {
        let reading = (!self.paused).then_some(&self.streams.outputs);
        let flush = reading
            .into_iter()
            .flatten()
            .filter_map(OutputStream::flush_at)
            .min();
        let linger = self
            .linger_until
            .filter(|_| !self.paused && !self.streams.outputs.is_empty());
        let more = (self.read_more && !self.paused).then_some(now);
        [
            self.driver.poll_timeout(),
            self.gdb.poll_timeout(),
            self.pulse.poll_timeout(),
            self.left.as_ref().and_then(DetachedProgram::poll_timeout),
            flush,
            linger,
            more,
        ]
        .into_iter()
        .flatten()
        .min()
    }

    fn handle_timeout(&mut self, now: Instant) {
        if self.driver.poll_timeout().is_some_and(|at| at <= now) {
            self.driver.handle_timeout(now);
        }
        if self.pulse.take_due(now) {
            liveness::look(now, &mut self.driver);
        }
        if !self.paused {
            self.handle_output_timeout(now);
        }
        let program = self.started.clone().filter(|_| !self.is_detached());
        if self.gdb.is_press_due(now)
            && let Some(held) = &mut self.held
        {
            held.catch();
        }
        self.gdb.press(now, || {
            if let Some(program) = program {
                program.kill();
            }
        });
        if self.gdb.is_reap_due(now) {
            self.reap(now);
        }
        let left = self.left.as_ref().and_then(DetachedProgram::poll_timeout);
        if left.is_some_and(|at| at <= now) {
            self.look_at_left(now);
        }
    }

    fn set_paused(&mut self, now: Instant, paused: bool) {
        if std::mem::replace(&mut self.paused, paused) && !paused {
            // Output that is queued in the pty arrives in pieces, so the waiting time begins again.
            self.linger_until = self.linger_until.map(|_| now + streams::LINGER);
            self.read_output(now, None);
        }
    }

    fn shut_down(&mut self, now: Instant, kill_started: bool) {
        self.gdb.resume();
        if kill_started {
            self.kill_seized();
        }
        self.driver.shut_down(now, kill_started);
    }

    fn is_down(&self) -> bool {
        let to_end = self.started.as_ref().filter(|_| !self.is_detached());
        self.gdb.is_gone() && to_end.is_none_or(|who| !who.is_alive())
    }

    fn left_end(&self) -> Option<i32> {
        match &self.left_end {
            Some(DetachedEnd::Exited(code)) => Some(*code),
            Some(DetachedEnd::Signalled(number)) => Some(128 + number),
            None => None,
        }
    }

    fn is_left_running(&self) -> bool {
        self.left.is_some()
    }

    fn signal_left(&self, signal: Signal) {
        if let Some(left) = &self.left {
            left.signal(signal);
        }
    }

    fn signal_program(&mut self, signal: Signal, standing: bool) {
        let is_meant = match self.driver.task_state() {
            TaskState::Starting => {
                // Each signal is kept once, as in the kernel.
                if !self.attached && !self.due.contains(&(signal, standing)) {
                    self.due.push((signal, standing));
                }
                signal == Signal::SIGKILL
            }
            TaskState::Running => true,
            TaskState::Stopped => standing,
            _ => false,
        };
        if signal == Signal::SIGKILL && is_meant {
            self.kill_seized();
        }
        if let Some(pid) = self.driver.pid().filter(|_| is_meant && !self.attached) {
            // gdb traces the process, so the pid has not been reused.
            let _ = kill(Pid::from_raw(pid), signal);
        }
        self.signal_left(signal);
    }

    fn settle(&mut self, now: Instant) {
        self.carry_out(now);
        let state = self.driver.task_state();
        if state != TaskState::Starting {
            self.gdb.all_attached();
            for (signal, standing) in std::mem::take(&mut self.due) {
                self.signal_program(signal, standing);
            }
        }
        if !state.is_live() && state != TaskState::GdbDead {
            self.held = None;
        }
        self.pulse.keep(now, self.driver.may_miss_end());
        self.gdb.write(now);
    }

    fn free_process(&self) -> Option<i32> {
        self.process_without_gdb()
    }

    fn seized(&mut self) -> Option<&mut dyn Seized> {
        self.seized.is_some().then_some(self)
    }

    fn is_lingering(&self) -> bool {
        self.linger_until.is_some() && !self.streams.outputs.is_empty()
    }

    fn is_over(&self) -> bool {
        !self.is_left_running() && self.streams.outputs.is_empty() && self.is_down()
    }

    fn said(&mut self) -> (&mut Vec<BackendOutput>, &mut Vec<OwnedFd>) {
        (&mut self.outputs, &mut self.closing)
    }
}
