//! The backend: a gdb for each task.

mod begin;

use std::collections::{BTreeMap, VecDeque};
use std::os::fd::RawFd;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use sdm_core::CommandId;
use sdm_debug::fold::FoldRules;
use sdm_debug::{
    Backend, BackendOutput, Command, EndPolicy, Failure, FailureCode, GdbOptions, InterestChange,
    Reply, TaskState,
};
use sdm_idset::{IdSet, TaskId};

use self::begin::shares_gdb;
use crate::child::{Binding, Completion, Preload, SignalState};
use crate::driver::DriverConfig;
use crate::slot::Slot;
use crate::stdio::InheritedStreams;
use crate::task::Task;
use crate::warden::Warden;

/// How the tasks of one server are driven.
#[derive(Clone, Debug)]
pub struct GdbConfig {
    /// Which gdb, where a command names none; found on `PATH` where absent.
    pub gdb: Option<PathBuf>,
    /// What is not as usual with every gdb.
    pub options: GdbOptions,
    /// The signals that a started program finds blocked and ignored.
    pub signals: SignalState,
    /// The processors that a started program is bound to, where it is.
    pub binding: Option<Binding>,
    /// The standard streams of started programs; streams of ours, whose output is told by events, where
    /// absent.
    pub streams: Option<InheritedStreams>,
    /// Which frames are a runtime's.
    pub fold: FoldRules,
    /// Hold started programs that are about to abort, or to leave before `MPI_Finalize`.
    pub internal_breakpoints: bool,
    /// When gdb gets what completes its writes of registers.
    pub completion: Completion,
    /// How long gdb may take for one command.
    pub command_wait: Duration,
    /// How long gdb may take to read a program's symbols, to start it, or to attach.
    pub symbols_wait: Duration,
    /// How long a task may take to stop before it is sent SIGSTOP.
    pub interrupt_wait: Duration,
}

impl Default for GdbConfig {
    fn default() -> Self {
        Self {
            gdb: None,
            options: GdbOptions::default(),
            signals: SignalState::default(),
            binding: None,
            streams: None,
            fold: FoldRules::default(),
            internal_breakpoints: true,
            completion: Completion::default(),
            command_wait: Duration::from_secs(60),
            symbols_wait: Duration::from_secs(600),
            interrupt_wait: Duration::from_secs(2),
        }
    }
}

/// Drives the tasks of one server through gdb.
///
/// To be used from the thread that made it, which must not end before the backend is down: gdb
/// ends when the thread that started it does.
pub struct GdbBackend {
    config: GdbConfig,
    driver_config: Rc<DriverConfig>,
    /// Every gdb that is not quite gone, by a number of its own.
    slots: BTreeMap<u64, Slot>,
    next_slot: u64,
    /// Which one stands for a task now.
    current: BTreeMap<TaskId, u64>,
    /// What the owner watches: for whom, for reading, for writing.
    watched: BTreeMap<RawFd, (u64, bool, bool)>,
    changes: VecDeque<InterestChange>,
    outputs: VecDeque<BackendOutput>,
    paused: bool,
    /// The latest `now`.
    now: Option<Instant>,
    ending: Option<EndPolicy>,
    /// What every gdb loads, where there is such a thing; found out before the first one.
    preload: Option<Option<Preload>>,
    /// Sees to it that gdbs end where this process is killed; there from the first one on.
    warden: Option<Rc<Warden>>,
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
            registers_unknown: config.completion.is_needed(),
            fold: config.fold.clone(),
        };
        Self {
            config,
            driver_config: Rc::new(driver_config),
            slots: BTreeMap::new(),
            next_slot: 0,
            current: BTreeMap::new(),
            watched: BTreeMap::new(),
            changes: VecDeque::new(),
            outputs: VecDeque::new(),
            paused: false,
            now: None,
            ending: None,
            preload: None,
            warden: None,
        }
    }

    fn answer(&mut self, id: CommandId, task: TaskId, result: Result<Reply, Failure>) {
        self.outputs
            .push_back(BackendOutput::Answer { id, task, result });
    }

    fn execute_one(&mut self, now: Instant, id: CommandId, task: TaskId, command: &Command) {
        let result = match command {
            _ if self.ending.is_some() => {
                Err(Failure::new(FailureCode::Cancelled, "the session ends"))
            }
            Command::Start(spec) => self.start(now, id, task, spec),
            Command::Attach(spec) => self.attach(now, id, task, spec),
            Command::LoadCore(spec) => self.load_core(now, id, task, spec),
            Command::Room(spec) => self.room(spec).map(|room| {
                self.answer(id, task, Ok(Reply::Room(room)));
            }),
            command => {
                let slot = self.current.get(&task).copied();
                if let Some(known) = slot.and_then(|slot| self.slots.get_mut(&slot)) {
                    known.execute(now, task, id, command.clone());
                    return;
                }
                match command {
                    Command::Status => {
                        self.answer(id, task, Ok(Reply::Status(TaskState::Absent)));
                        return;
                    }
                    _ => Err(Failure::new(FailureCode::NotRunning, "not started")),
                }
            }
        };
        if let Err(failure) = result {
            self.answer(id, task, Err(failure));
        }
    }

    fn add(&mut self, now: Instant, id: TaskId, mut task: Task) {
        task.set_paused(now, self.paused);
        // Its first commands are to be written.
        task.handle_timeout(now);
        self.slots.insert(self.next_slot, Slot::Own(Box::new(task)));
        self.current.insert(id, self.next_slot);
        self.next_slot += 1;
    }

    /// Collects what the tasks have to say, and what there is to watch now.
    fn settle(&mut self, now: Instant) {
        self.now = Some(now);
        let mut wanted = BTreeMap::new();
        for (slot, task) in &mut self.slots {
            self.outputs.extend(task.take_outputs());
            for (fd, readable, writable) in task.interests() {
                wanted.insert(fd, (*slot, readable, writable));
            }
        }
        for fd in self.watched.keys() {
            if !wanted.contains_key(fd) {
                self.changes.push_back(InterestChange::Forget { fd: *fd });
            }
        }
        for (fd, interest) in &wanted {
            if self.watched.get(fd) != Some(interest) {
                let (_, readable, writable) = *interest;
                self.changes.push_back(InterestChange::Watch {
                    fd: *fd,
                    readable,
                    writable,
                });
            }
        }
        self.watched = wanted;
        // What a restart replaced is kept only until it is gone.
        let current = &self.current;
        self.slots.retain(|slot, task| {
            let stands = current.values().any(|known| known == slot);
            stands || !task.is_over()
        });
    }
}

impl Backend for GdbBackend {
    fn execute(&mut self, now: Instant, id: CommandId, tasks: &IdSet, command: Command) {
        match &command {
            Command::Attach(spec) if shares_gdb(spec, tasks) && self.ending.is_none() => {
                self.attach_all(now, id, tasks, spec);
            }
            _ => {
                for task in tasks {
                    self.execute_one(now, id, task, &command);
                }
            }
        }
        self.settle(now);
    }

    fn cancel(&mut self, now: Instant, id: CommandId) {
        for slot in self.current.values() {
            if let Some(task) = self.slots.get_mut(slot) {
                task.cancel(now, id);
            }
        }
        self.settle(now);
    }

    fn poll_output(&mut self) -> Option<BackendOutput> {
        self.outputs.pop_front()
    }

    fn poll_interest(&mut self) -> Option<InterestChange> {
        let change = self.changes.pop_front();
        if change.is_none() {
            // The owner has forgotten them: now they can go.
            for task in self.slots.values_mut() {
                task.close_forgotten();
            }
        }
        change
    }

    fn handle_ready(&mut self, now: Instant, fd: RawFd) {
        let slot = self.watched.get(&fd).map(|(slot, ..)| *slot);
        if let Some(task) = slot.and_then(|slot| self.slots.get_mut(&slot)) {
            task.handle_ready(now, fd);
            self.settle(now);
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let now = self.now?;
        self.slots
            .values()
            .filter_map(|task| task.poll_timeout(now))
            .min()
    }

    fn handle_timeout(&mut self, now: Instant) {
        for task in self.slots.values_mut() {
            if task.poll_timeout(now).is_some_and(|at| at <= now) {
                task.handle_timeout(now);
            }
        }
        self.settle(now);
    }

    fn set_output_paused(&mut self, now: Instant, paused: bool) {
        self.paused = paused;
        for task in self.slots.values_mut() {
            task.set_paused(now, paused);
        }
        self.settle(now);
    }

    fn shut_down(&mut self, now: Instant, policy: EndPolicy) {
        if self.ending.replace(policy).is_some() {
            return;
        }
        for task in self.slots.values_mut() {
            task.shut_down(now, policy == EndPolicy::KillStarted);
        }
        self.settle(now);
    }

    fn is_leaving(&self) -> bool {
        self.slots.values().any(Slot::is_left_running)
    }

    fn signal_left(&mut self, signal: i32) {
        if let Ok(signal) = Signal::try_from(signal) {
            for task in self.slots.values() {
                task.signal_left(signal);
            }
        }
    }

    fn left_code(&self) -> Option<i32> {
        self.slots.values().filter_map(Slot::left_end).max()
    }

    fn is_down(&self) -> bool {
        self.ending.is_some() && self.slots.values().all(Slot::is_down)
    }
}
