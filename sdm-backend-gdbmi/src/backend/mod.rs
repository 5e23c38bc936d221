//! The backend: drives the tasks of a server through gdb.

mod programs;
mod seized;
mod shims;
mod slots;
mod start;

use std::collections::{BTreeMap, VecDeque};
use std::os::fd::{OwnedFd, RawFd};
use std::rc::Rc;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use sdm_core::CommandId;
use sdm_debug::command::StartPoint;
use sdm_debug::fold::FoldRules;
use sdm_debug::{
    Backend, BackendOutput, Command, EndPolicy, Failure, FailureCode, InterestChange,
    LauncherDuties, Program, Reply, TaskState,
};
use sdm_idset::{IdSet, TaskId};
use sdm_inferior::Watchdog;

use self::shims::Shims;
use self::slots::KnownSlot;
use self::start::{room, shares_gdb};
use crate::gdb_instance::{Interest, Slot};
use crate::looks::{Looks, process_usage};
use crate::seized_looks::SeizedLooks;
use crate::sources::Sources;
use crate::timers::Timers;
use sdm_child::Channel;
use sdm_child::{Preload, StartConfig, handles};
use sdm_gdb::DriverConfig;

/// Configuration of the tasks of one server.
#[derive(Clone, Debug)]
pub struct GdbConfig {
    /// Settings for the start of programs and of their gdbs.
    pub start: StartConfig,
    /// The rules that recognise frames of runtimes.
    pub fold: FoldRules,
    /// True to stop started programs that are about to abort, or to exit before `MPI_Finalize`.
    pub internal_breakpoints: bool,
    /// Time that gdb has for one command before it is interrupted.
    pub command_wait: Duration,
    /// Time that gdb has to read a program's symbols, to start it, to attach, or to begin a run.
    pub symbols_wait: Duration,
    /// Time that a task has to stop before it is sent SIGSTOP.
    pub interrupt_wait: Duration,
}

impl Default for GdbConfig {
    fn default() -> Self {
        Self {
            start: StartConfig::default(),
            fold: FoldRules::default(),
            internal_breakpoints: true,
            command_wait: Duration::from_secs(60),
            symbols_wait: Duration::from_secs(600),
            interrupt_wait: Duration::from_secs(2),
        }
    }
}

/// The backend that controls the tasks of one server through gdb. The cost of an event depends on the number of tasks
/// concerned, not on the server's total.
///
/// The thread that made the backend must make all calls, and must not end before the backend is down: gdb ends when the
/// thread that started it ends.
pub struct GdbBackend {
    config: GdbConfig,
    driver_config: Rc<DriverConfig>,
    sources: Rc<Sources>,
    /// The slots, by number. One that a restart replaced stays until its gdb and all its descriptors are gone.
    slots: BTreeMap<u64, KnownSlot>,
    next_slot: u64,
    /// The number of the current slot of each task. A slot is a gdb with its tasks, or a task without a gdb.
    current: BTreeMap<TaskId, u64>,
    /// The slot of each watched descriptor.
    by_fd: BTreeMap<RawFd, u64>,
    /// The times at which slots must be called.
    timers: Timers<u64>,
    changes: VecDeque<InterestChange>,
    /// A reused buffer for the interests of a slot; empty between calls.
    wanted: Vec<Interest>,
    /// Descriptors to close once the owner has taken the changes.
    closing: Vec<OwnedFd>,
    outputs: VecDeque<BackendOutput>,
    paused: bool,
    ending: Option<EndPolicy>,
    /// The library that gdbs preload unless they attach; `Some(None)` if there is none, `None` before the first.
    preload: Option<Option<Preload>>,
    /// The library that attaching gdbs preload; `Some(None)` if there is none, `None` before the first such gdb.
    guard: Option<Option<Preload>>,
    /// The warden: a process that ends the gdbs if this process is killed. It is started with the first gdb.
    warden: Option<Rc<Watchdog>>,
    /// The shims: those of a launcher for the tasks, and those of this process for programs without a gdb.
    shims: Shims,
    /// Inspection of tasks without a gdb.
    looks: SeizedLooks,
}

impl GdbBackend {
    /// A backend without tasks.
    #[must_use]
    pub fn new(config: GdbConfig) -> Self {
        let driver_config = DriverConfig {
            command_wait: config.command_wait,
            symbols_wait: config.symbols_wait,
            interrupt_wait: config.interrupt_wait,
            internal_breakpoints: config.internal_breakpoints,
            registers_unknown: config.start.completion.is_needed(),
            handles: handles(&config.start.options),
            fold: config.fold.clone(),
        };
        let looks = Looks::new(
            config.start.starter.clone(),
            config.start.options.system_debug,
            config.fold.clone(),
        );
        Self {
            config,
            driver_config: Rc::new(driver_config),
            sources: Rc::default(),
            slots: BTreeMap::new(),
            next_slot: 0,
            current: BTreeMap::new(),
            by_fd: BTreeMap::new(),
            timers: Timers::default(),
            changes: VecDeque::new(),
            wanted: Vec::new(),
            closing: Vec::new(),
            outputs: VecDeque::new(),
            paused: false,
            ending: None,
            preload: None,
            guard: None,
            warden: None,
            shims: Shims::default(),
            looks: SeizedLooks::new(looks),
        }
    }

    /// A backend whose gdbs are started by the shims at the other ends of these channels, one per task.
    #[must_use]
    pub fn with_shims(config: GdbConfig, shims: Vec<(TaskId, Channel)>) -> Self {
        Self {
            shims: Shims::new(shims),
            ..Self::new(config)
        }
    }

    fn slot_of(&self, task: TaskId) -> Option<&dyn Slot> {
        let known = self.slots.get(self.current.get(&task)?)?;
        Some(&*known.slot)
    }

    /// Tells shims to exit with the exit codes of their programs that were detached and have ended. No more requests
    /// come for such a task.
    fn dismiss_ended(&mut self) {
        for task in self.shims.all_tasks() {
            if let Some(code) = self.slot_of(task).and_then(|slot| slot.left_end()) {
                self.shims.dismiss(task, code);
            }
        }
    }

    fn answer(&mut self, id: CommandId, task: TaskId, result: Result<Reply, Failure>) {
        self.outputs
            .push_back(BackendOutput::Answer { id, task, result });
    }

    /// Begins a command of one task. Returns the slot to settle afterwards; `None` if there is none.
    fn execute_one(
        &mut self,
        now: Instant,
        id: CommandId,
        task: TaskId,
        command: &Rc<Command>,
    ) -> Option<u64> {
        let begun = match &**command {
            _ if self.ending.is_some() => {
                Err(Failure::new(FailureCode::Cancelled, "the session ends"))
            }
            Command::Start(spec) => self.start(now, id, task, spec),
            Command::Attach(spec) => self.attach(now, id, task, spec).map(Some),
            Command::LoadCore(spec) => self.load_core(now, id, task, spec).map(Some),
            Command::Room(spec) => room(&self.config.start, spec).map(|room| {
                self.answer(id, task, Ok(Reply::Room(room)));
                None
            }),
            Command::Status if self.shims.is_coming(task) => {
                self.answer(id, task, Ok(Reply::Status(TaskState::Starting)));
                Ok(None)
            }
            _ if self.shims.is_coming(task) => {
                self.shims.hold(task, id, command);
                Ok(None)
            }
            Command::ProcessUsage { pids } if !self.current.contains_key(&task) => {
                process_usage(task, pids).map(|usage| {
                    self.answer(id, task, Ok(Reply::Usage(usage)));
                    None
                })
            }
            asked => {
                let number = self.current.get(&task).copied();
                match number.and_then(|number| self.slots.get_mut(&number)) {
                    Some(known) => {
                        known.slot.execute(now, task, id, command);
                        Ok(number)
                    }
                    None if *asked == Command::Status => {
                        self.answer(id, task, Ok(Reply::Status(TaskState::Absent)));
                        Ok(None)
                    }
                    None => Err(Failure::new(FailureCode::NotRunning, "not started")),
                }
            }
        };
        begun.unwrap_or_else(|failure| {
            self.answer(id, task, Err(failure));
            None
        })
    }

    /// Adds a slot for these tasks; returns its number.
    fn add(
        &mut self,
        now: Instant,
        tasks: impl IntoIterator<Item = TaskId>,
        mut slot: Box<dyn Slot>,
    ) -> u64 {
        slot.set_paused(now, self.paused);
        let number = self.next_slot;
        self.next_slot += 1;
        let mut known = KnownSlot::new(slot);
        for task in tasks {
            known.task_count += 1;
            if let Some(before) = self.current.insert(task, number)
                && let Some(replaced) = self.slots.get_mut(&before)
            {
                replaced.task_count -= 1;
                self.drop_if_over(before);
            }
        }
        self.slots.insert(number, known);
        number
    }

    /// Drops a slot that was replaced by a restart, once its gdb is gone.
    fn drop_if_over(&mut self, number: u64) {
        let known = self.slots.get(&number);
        if known.is_some_and(|it| it.task_count == 0 && it.watched.is_empty() && it.slot.is_over())
        {
            self.slots.remove(&number);
            self.timers.set(number, None);
        }
    }

    /// Lets a slot handle the consequences of the last calls. Takes its output, the descriptors to watch, and its next
    /// deadline.
    fn settle(&mut self, now: Instant, number: u64) {
        let Some(known) = self.slots.get_mut(&number) else {
            return;
        };
        known.slot.settle(now);
        let (outputs, closing) = known.slot.said();
        self.outputs.extend(outputs.drain(..));
        self.closing.append(closing);
        let exit = known.slot.seized().and_then(|task| task.own_exit());
        self.timers.set(number, known.slot.poll_timeout(now));
        self.watch(number);
        self.attach_apart(now, number);
        self.bring_gdb(now, number);
        self.drop_if_over(number);
        if !self.looks.crashed().is_empty() {
            self.carry_out_orders(now);
        }
        match exit {
            _ if self.ending.is_some() => self.dismiss_ended(),
            // A crash elsewhere is looked at first, which the launcher would not wait for.
            Some((task, exit)) if self.looks.crashed().is_empty() => {
                self.shims.show_exit(task, exit);
            }
            _ => {}
        }
    }

    fn settle_all(&mut self, now: Instant) {
        let all: Vec<u64> = self.slots.keys().copied().collect();
        for number in all {
            self.settle(now, number);
        }
    }

    /// Updates the descriptors that the owner watches for a slot.
    fn watch(&mut self, number: u64) {
        let Some(known) = self.slots.get_mut(&number) else {
            return;
        };
        let mut wanted = std::mem::take(&mut self.wanted);
        known.slot.add_interests(&mut wanted);
        if wanted != known.watched {
            for (fd, ..) in &known.watched {
                if !wanted.iter().any(|(known, ..)| known == fd) {
                    self.by_fd.remove(fd);
                    self.changes.push_back(InterestChange::Forget { fd: *fd });
                }
            }
            for interest in &wanted {
                if !known.watched.contains(interest) {
                    let (fd, readable, writable) = *interest;
                    self.by_fd.insert(fd, number);
                    self.changes.push_back(InterestChange::Watch {
                        fd,
                        readable,
                        writable,
                    });
                }
            }
            std::mem::swap(&mut wanted, &mut known.watched);
        }
        wanted.clear();
        self.wanted = wanted;
    }
}

impl Backend for GdbBackend {
    fn execute(&mut self, now: Instant, id: CommandId, tasks: &IdSet, command: Command) {
        if let Command::Attach(spec) = &command
            && shares_gdb(spec, tasks)
            && self.ending.is_none()
        {
            if let Some(slot) = self.attach_all(now, id, tasks, spec) {
                self.settle(now, slot);
            }
            return;
        }
        let tasks = &seized::inspect(self, now, id, tasks, &command);
        if tasks.is_empty() {
            return self.carry_out_orders(now);
        }
        if command.is_run_control() {
            self.looks.remove_crashed(tasks);
            self.carry_out_orders(now);
        }
        // The tasks of one gdb are given the command before the gdb is settled, so that gdb receives it once for all.
        let command = Rc::new(command);
        let mut begun = None;
        for task in tasks {
            let slot = self.execute_one(now, id, task, &command);
            if slot != begun
                && let Some(before) = std::mem::replace(&mut begun, slot)
            {
                self.settle(now, before);
            }
        }
        if let Some(last) = begun {
            self.settle(now, last);
        }
    }

    fn cancel(&mut self, now: Instant, id: CommandId) {
        self.looks.cancel(now, id);
        self.carry_out_orders(now);
        for task in self.shims.cancel(id) {
            let cancelled = Failure::new(FailureCode::Cancelled, "cancelled");
            self.answer(id, task, Err(cancelled));
        }
        for known in self.slots.values_mut().filter(|it| it.task_count > 0) {
            known.slot.cancel(now, id);
        }
        self.settle_all(now);
    }

    fn poll_output(&mut self) -> Option<BackendOutput> {
        self.outputs
            .pop_front()
            .or_else(|| self.looks.poll_output())
    }

    fn poll_interest(&mut self) -> Option<InterestChange> {
        let change = self.changes.pop_front();
        let change = change.or_else(|| self.shims.poll_interest());
        let change = change.or_else(|| self.looks.poll_interest());
        if change.is_none() {
            // The owner has stopped watching these descriptors, so they can be closed.
            self.closing.clear();
        }
        change
    }

    fn handle_ready(&mut self, now: Instant, fd: RawFd) {
        if let Some(task) = self.shims.task_of(fd) {
            return self.handle_shim(now, task);
        }
        let Some(number) = self.by_fd.get(&fd).copied() else {
            self.looks.handle_ready(now, fd);
            return self.carry_out_orders(now);
        };
        if let Some(known) = self.slots.get_mut(&number) {
            known.slot.handle_ready(now, fd);
        }
        self.settle(now, number);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.timers
            .first()
            .into_iter()
            .chain(self.shims.poll_timeout())
            .chain(self.looks.poll_timeout())
            .min()
    }

    fn handle_timeout(&mut self, now: Instant) {
        for number in self.timers.take_due(now) {
            if let Some(known) = self.slots.get_mut(&number) {
                known.slot.handle_timeout(now);
            }
            self.settle(now, number);
        }
        self.end_leaving(now);
        self.looks.handle_timeout(now);
        self.carry_out_orders(now);
    }

    fn set_output_paused(&mut self, now: Instant, paused: bool) {
        self.paused = paused;
        for known in self.slots.values_mut() {
            known.slot.set_paused(now, paused);
        }
        self.settle_all(now);
    }

    fn shut_down(&mut self, now: Instant, policy: EndPolicy) {
        if self.ending.replace(policy).is_some() {
            return;
        }
        self.looks.end();
        for known in self.slots.values_mut() {
            known.slot.shut_down(now, policy == EndPolicy::KillStarted);
        }
        self.settle_all(now);
    }

    fn points(&self, task: TaskId) -> Vec<StartPoint> {
        self.own_points(task)
    }

    fn is_down(&self) -> bool {
        let is_coming = self.shims.any_coming();
        self.ending.is_some() && !is_coming && self.slots.values().all(KnownSlot::is_down)
    }
}

impl LauncherDuties for GdbBackend {
    fn is_leaving(&self) -> bool {
        let mut slots = self.slots.values();
        slots.any(|known| known.slot.is_left_running())
    }

    fn signal_left(&mut self, signal: i32) {
        if let Ok(signal) = Signal::try_from(signal) {
            for known in self.slots.values() {
                known.slot.signal_left(signal);
            }
        }
    }

    fn signal_programs(&mut self, tasks: &IdSet, signal: i32, standing: bool) {
        self.signal_own(tasks, signal, standing);
    }

    fn programs(&self) -> Vec<Program> {
        self.own_programs()
    }

    fn left_code(&self) -> Option<i32> {
        let slots = self.slots.values();
        slots.filter_map(|known| known.slot.left_end()).max()
    }

    fn is_deserted(&self) -> bool {
        // Ranks that a launcher kills have said why before.
        let mut slots = self.slots.values();
        self.shims.are_deserted() && !slots.any(|known| known.slot.is_lingering())
    }

    fn dismiss(&mut self) {
        for task in self.shims.all_tasks() {
            let code = self.slot_of(task).and_then(|slot| slot.left_end());
            self.shims.dismiss(task, code.unwrap_or(0));
        }
    }
}
