//! The backend: a gdb for each task.

use std::collections::{BTreeMap, VecDeque};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{Duration, Instant};

use sdm_core::CommandId;
use sdm_debug::command::{Arrangement, AttachSpec, CoreSpec, StartSpec};
use sdm_debug::fold::FoldRules;
use sdm_debug::reply::Room;
use sdm_debug::{
    Backend, BackendOutput, Command, EndPolicy, Failure, FailureCode, GdbOptions, InterestChange,
    Reply, TaskState,
};
use sdm_idset::{IdSet, TaskId};

use crate::child::{
    Binding, Environment, GdbChild, Launch, Redirects, SignalState, find_directory, find_gdb,
    find_program, program_environment,
};
use crate::driver::{Before, CoreFile, Driver, DriverConfig, Kept};
use crate::host::LocalHost;
use crate::shared::Shared;
use crate::slot::Slot;
use crate::stdio::InheritedStreams;
use crate::task::{Streams, Task};
use crate::warden::Warden;
use nix::sys::signal::Signal;

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
    /// Sees to it that gdbs end where this process is killed; there from the first one on.
    warden: Option<Warden>,
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

    fn start(
        &mut self,
        now: Instant,
        id: CommandId,
        task: TaskId,
        spec: &StartSpec,
    ) -> Result<(), Failure> {
        let before = before_the_start(spec, task, self.breakpoints_of_ended(task)?)?;
        let directory = find_directory(spec.directory.as_deref())?;
        let base: Environment = std::env::vars_os().collect();
        let environment = program_environment(base, spec);
        let search_path = environment.get(std::ffi::OsStr::new("PATH"));
        let program = find_program(
            &spec.program,
            &directory,
            search_path.map(|p| p.as_os_str()),
        )?;
        let gdb = self.find_gdb(spec.gdb.as_deref())?;
        let launch = |redirects: &Redirects<'_>| {
            let signals = &self.config.signals;
            Launch::new(program, spec, &environment, signals, redirects)
        };
        let (streams, launch) = match &self.config.streams {
            Some(inherited) => (
                Streams::elsewhere(),
                launch(&Redirects::Inherited(inherited))?,
            ),
            None => with_streams(reads_stdin(spec, task)?, launch)?,
        };
        let binding = self.config.binding;
        let child = self.spawn_gdb(&gdb, &directory, binding.as_ref())?;
        let mut driver = Driver::new(now, self.driver_config.clone(), Box::<LocalHost>::default());
        driver.start(now, id, launch, spec.stop, before);
        let task_of = Task::new(task, driver, child, streams, false).bound(binding);
        self.add(now, task, task_of);
        Ok(())
    }

    fn spawn_gdb(
        &mut self,
        gdb: &Path,
        directory: &Path,
        binding: Option<&Binding>,
    ) -> Result<GdbChild, Failure> {
        let child = GdbChild::spawn(gdb, directory, &self.config.options, binding)?;
        self.keep(child)
    }

    /// Has a gdb ended where this process is killed.
    fn keep(&mut self, child: GdbChild) -> Result<GdbChild, Failure> {
        let warden = match self.warden.take() {
            Some(warden) => Ok(warden),
            None => Warden::start(),
        };
        let kept = warden.and_then(|warden| {
            let warden = self.warden.insert(warden);
            warden.keep(child.pid())
        });
        kept.map_err(|error| {
            Failure::new(FailureCode::System, format!("watch over gdb: {error}"))
        })?;
        Ok(child)
    }

    /// What a gdb for a program needs of memory, and what there is.
    fn room(&self, spec: &StartSpec) -> Result<Room, Failure> {
        let directory = find_directory(spec.directory.as_deref())?;
        let search_path = std::env::var_os("PATH");
        let program = find_program(&spec.program, &directory, search_path.as_deref())?;
        Ok(crate::room::room(
            &program,
            self.config.options.system_debug,
        ))
    }

    fn attach(
        &mut self,
        now: Instant,
        id: CommandId,
        task: TaskId,
        spec: &AttachSpec,
    ) -> Result<(), Failure> {
        let pid = self.pid_of(task, spec)?;
        let gdb = self.find_gdb(spec.gdb.as_deref())?;
        let directory = find_directory(None)?;
        let child = self.spawn_gdb(&gdb, &directory, None)?;
        let mut driver = Driver::new(now, self.driver_config.clone(), Box::<LocalHost>::default());
        driver.attach(now, id, pid, spec.read_only);
        self.add(
            now,
            task,
            Task::new(task, driver, child, Streams::none(), true),
        );
        Ok(())
    }

    /// Attaches tasks by one gdb for all of them.
    fn attach_all(&mut self, now: Instant, id: CommandId, tasks: &IdSet, spec: &AttachSpec) {
        let mut wanted = Vec::new();
        for task in tasks {
            match self.pid_of(task, spec) {
                Ok(pid) => wanted.push((task, pid)),
                Err(failure) => self.answer(id, task, Err(failure)),
            }
        }
        let spawned = self.find_gdb(spec.gdb.as_deref()).and_then(|gdb| {
            let mut options = self.config.options.clone();
            options.settings.push("set non-stop on".to_owned());
            let child = GdbChild::spawn(&gdb, &find_directory(None)?, &options, None)?;
            self.keep(child)
        });
        let child = match spawned {
            Ok(child) => child,
            Err(failure) => {
                for (task, _) in wanted {
                    self.answer(id, task, Err(failure.clone()));
                }
                return;
            }
        };
        let mut shared = Shared::new(child);
        for (at, (task, pid)) in wanted.into_iter().enumerate() {
            let host = Box::<LocalHost>::default();
            let mut driver = Driver::new(now, self.driver_config.clone(), host);
            driver.attach_among(now, id, (pid, spec.read_only), at == 0);
            shared.add(task, driver);
            self.current.insert(task, self.next_slot);
        }
        shared.settle(now);
        self.slots
            .insert(self.next_slot, Slot::Shared(Box::new(shared)));
        self.next_slot += 1;
    }

    /// The process that a task is to be.
    fn pid_of(&self, task: TaskId, spec: &AttachSpec) -> Result<i32, Failure> {
        self.breakpoints_of_ended(task)?;
        let pid = spec.pids.iter().find(|(known, _)| *known == task.0);
        let found = pid.map(|(_, pid)| *pid).filter(|pid| *pid > 0);
        found.ok_or_else(|| Failure::new(FailureCode::AttachFailed, "no process was named for it"))
    }

    fn load_core(
        &mut self,
        now: Instant,
        id: CommandId,
        task: TaskId,
        spec: &CoreSpec,
    ) -> Result<(), Failure> {
        self.breakpoints_of_ended(task)?;
        let core = spec.cores.iter().find(|(known, _)| *known == task.0);
        let Some((_, core)) = core else {
            let text = "no core file was named for it";
            return Err(Failure::new(FailureCode::BadCommand, text));
        };
        let directory = find_directory(None)?;
        let search_path = std::env::var_os("PATH");
        let program = find_program(&spec.program, &directory, search_path.as_deref())?;
        let core = directory.join(std::ffi::OsStr::from_bytes(core));
        if !core.is_file() {
            let text = format!("{}: no such core file", core.display());
            return Err(Failure::new(FailureCode::Gdb, text));
        }
        let gdb = self.find_gdb(spec.gdb.as_deref())?;
        let child = self.spawn_gdb(&gdb, &directory, None)?;
        let mut driver = Driver::new(now, self.driver_config.clone(), Box::<LocalHost>::default());
        driver.open_core(now, id, CoreFile { core, program });
        let task_of = Task::new(task, driver, child, Streams::none(), true);
        self.add(now, task, task_of);
        Ok(())
    }

    /// The breakpoints of a task that has ended; fails where it has not.
    fn breakpoints_of_ended(&self, task: TaskId) -> Result<Vec<Kept>, Failure> {
        let slot = self.current.get(&task);
        let Some(known) = slot.and_then(|slot| self.slots.get(slot)) else {
            return Ok(Vec::new());
        };
        let Some(driver) = known.driver(task) else {
            return Ok(Vec::new());
        };
        if driver.why_not_live().is_none() {
            return Err(Failure::new(FailureCode::AlreadyRunning, "already running"));
        }
        Ok(driver.kept_breakpoints())
    }

    fn find_gdb(&self, named: Option<&[u8]>) -> Result<PathBuf, Failure> {
        let configured = self
            .config
            .gdb
            .as_ref()
            .map(|path| path.as_os_str().as_bytes());
        find_gdb(named.or(configured))
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

/// True where these tasks are attached to by one gdb.
fn shares_gdb(spec: &AttachSpec, tasks: &IdSet) -> bool {
    match spec.arrangement {
        Arrangement::Auto => tasks.len() > 1,
        Arrangement::PerTask => false,
        Arrangement::Shared => true,
    }
}

/// Opens streams for a program, and plans its start with them.
fn with_streams(
    with_stdin: bool,
    launch: impl FnOnce(&Redirects<'_>) -> Result<Launch, Failure>,
) -> Result<(Streams, Launch), Failure> {
    let (streams, tty) = Streams::open(with_stdin).map_err(|error| {
        let text = format!("streams of the program: {error}");
        Failure::new(FailureCode::System, text)
    })?;
    let ends = streams.theirs.as_ref().expect("just opened");
    let stdin = match &ends.stdin {
        Some(fd) => own_path(fd.as_raw_fd()),
        None => PathBuf::from("/dev/null"),
    };
    let launch = launch(&Redirects::Ours {
        tty: &tty,
        stdin: &stdin,
        stderr: &own_path(ends.stderr.as_raw_fd()),
    })?;
    Ok((streams, launch))
}

/// True where the task's standard input comes from the front-end.
fn reads_stdin(spec: &StartSpec, task: TaskId) -> Result<bool, Failure> {
    Ok(!spec.stdin_tasks.is_empty() && is_among(task, &spec.stdin_tasks, "that read input")?)
}

/// What a task is told before its program runs: what it had before, and what comes with the start.
fn before_the_start(
    spec: &StartSpec,
    task: TaskId,
    breakpoints: Vec<Kept>,
) -> Result<Before, Failure> {
    let mut before = Before {
        settings: Vec::new(),
        breakpoints,
    };
    for (tasks, line) in &spec.settings {
        if is_among(task, tasks, "that have a setting")? {
            before.settings.push(line.clone());
        }
    }
    for point in &spec.points {
        if is_among(task, &point.tasks, "that have a breakpoint")? {
            before.breakpoints.push(Kept {
                spec: point.spec.clone(),
                enabled: point.enabled,
            });
        }
    }
    Ok(before)
}

/// True where a set in its text form holds the task; `which` says what set it is.
fn is_among(task: TaskId, tasks: &str, which: &str) -> Result<bool, Failure> {
    let tasks: IdSet = tasks.parse().map_err(|error| {
        let text = format!("tasks {which}: {error}");
        Failure::new(FailureCode::BadCommand, text)
    })?;
    Ok(tasks.contains(task))
}

/// By which another process opens a descriptor of ours.
fn own_path(fd: RawFd) -> PathBuf {
    PathBuf::from(format!("/proc/{}/fd/{fd}", std::process::id()))
}
