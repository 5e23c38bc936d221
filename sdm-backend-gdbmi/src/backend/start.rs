//! The start of a task: start a program, attach to processes, open a core file.

use sdm_inferior::{Held, StopOnGdbDeath, Watchdog};
use sdm_text::printable_name;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::rc::Rc;
use std::time::Instant;

use sdm_core::CommandId;
use sdm_debug::command::{Arrangement, AttachSpec, CoreSpec, StartSpec};
use sdm_debug::reply::Room;
use sdm_debug::{Command, Failure, FailureCode, GdbOptions};
use sdm_idset::{IdSet, TaskId};

use super::GdbBackend;
use super::seized::seizes;
use crate::host::LocalHost;
use crate::looks::process_of;
use crate::shared_gdb::SharedGdb;
use crate::task::Task;
use sdm_check::{LIBRARY_VARIABLE, SUPPRESS_VARIABLE, Suppressions};
use sdm_child::{
    GdbChild, GdbEnvironment, Preload, StartConfig, StartedGdb, Streams, begin, find_directory,
    find_program,
};
use sdm_gdb::{AttachTarget, CoreFile, Driver, SavedBreakpoint, StartInput};

impl GdbBackend {
    pub(super) fn start(
        &mut self,
        now: Instant,
        id: CommandId,
        task: TaskId,
        spec: &StartSpec,
    ) -> Result<Option<u64>, Failure> {
        if let Some(link) = self.shims.link(task).cloned() {
            return self.start_at_shim(id, task, spec, &link).map(|()| None);
        }
        if seizes(&self.config.start, spec) {
            return self.start_at_own(id, task, spec).map(|()| None);
        }
        let before = before_the_start(spec, task, self.breakpoints_of_ended(task)?);
        let is_fed = spec.stdin_tasks.contains(task);
        let reader = self.config.start.reader;
        let reads = reader.is_none_or(|reader| reader == task);
        let config = &self.config.start;
        let given = config.variables.of(task);
        let begun = begin(
            spec,
            is_fed,
            reads,
            config,
            &given,
            &mut self.preload,
            false,
        )?;
        let StartedGdb {
            launch,
            child,
            streams,
        } = begun;
        let child = self.keep(child)?;
        let mut driver = self.driver(now, child.pid());
        driver.start(now, id, launch, spec.stop, before);
        let task_of =
            Task::new(task, driver, child, streams, false).bound(self.config.start.binding);
        Ok(Some(self.add(now, [task], Box::new(task_of))))
    }

    fn spawn_gdb(&mut self, gdb: &Path, directory: &Path) -> Result<GdbChild, Failure> {
        let config = &self.config.start;
        let preload = self
            .preload
            .get_or_insert_with(|| config.completion.preload(false));
        let around = GdbEnvironment {
            preload: preload.as_ref(),
            ..GdbEnvironment::default()
        };
        let child = GdbChild::spawn(gdb, directory, &config.options, &around, &[], false)?;
        self.keep(child)
    }

    /// Starts a gdb for attaching to these processes. It opens only files of this user, of root and of the processes'
    /// owners, as others could block it.
    fn spawn_attaching(
        &mut self,
        gdb: &Path,
        options: &GdbOptions,
        pids: &[i32],
        leashes: &[Option<StopOnGdbDeath>],
    ) -> Result<GdbChild, Failure> {
        let directory = &find_directory(None)?;
        let completion = self.config.start.completion;
        let guard = self.guard.get_or_insert_with(|| completion.preload(true));
        let around = GdbEnvironment {
            preload: guard.as_ref(),
            variables: &[Preload::guarding(sdm_inspect::files::owners(pids))],
            ..GdbEnvironment::default()
        };
        let handed: Vec<_> = leashes.iter().flatten().map(|it| &it.theirs).collect();
        let child = GdbChild::spawn(gdb, directory, options, &around, &handed, false)?;
        self.keep(child)
    }

    pub(super) fn driver(&self, now: Instant, gdb: i32) -> Driver {
        self.sources.forget();
        let host = Box::new(LocalHost::of(gdb, &self.sources));
        Driver::new(now, self.driver_config.clone(), host)
    }

    /// Registers a gdb with the warden, which ends it if this process is killed.
    pub(super) fn keep(&mut self, child: GdbChild) -> Result<GdbChild, Failure> {
        let warden = match self.warden.take() {
            Some(warden) => Ok(warden),
            None => Watchdog::start().map(Rc::new),
        };
        let kept = warden.and_then(|warden| {
            let warden = self.warden.insert(warden);
            warden.keep(child.pid())
        });
        kept.map_err(|error| Failure::new(FailureCode::System, format!("monitor gdb: {error}")))?;
        Ok(child)
    }

    pub(super) fn attach(
        &mut self,
        now: Instant,
        id: CommandId,
        task: TaskId,
        spec: &AttachSpec,
    ) -> Result<u64, Failure> {
        let pid = self.pid_of(task, spec)?;
        let gdb = self.config.start.find_gdb(spec.gdb.as_deref())?;
        let options = self.config.start.options.clone();
        let leash = [StopOnGdbDeath::new()];
        let child = self.spawn_attaching(&gdb, &options, &[pid], &leash)?;
        let [leash] = leash;
        let held = self.hold(pid, spec, &child, leash);
        let mut driver = self.driver(now, child.pid());
        driver.attach(now, id, AttachTarget::new(pid, spec));
        let task_of = Task::new(task, driver, child, Streams::none(), true).holding(held);
        Ok(self.add(now, [task], Box::new(task_of)))
    }

    /// Attaches one gdb to the processes of all these tasks. Returns its slot; `None` if no gdb could be started.
    pub(super) fn attach_all(
        &mut self,
        now: Instant,
        id: CommandId,
        tasks: &IdSet,
        spec: &AttachSpec,
    ) -> Option<u64> {
        let mut wanted = Vec::new();
        for task in tasks {
            match self.pid_of(task, spec) {
                Ok(pid) => wanted.push((task, pid)),
                Err(failure) => self.answer(id, task, Err(failure)),
            }
        }
        let leashes: Vec<_> = wanted.iter().map(|_| StopOnGdbDeath::new()).collect();
        let spawned = self
            .config
            .start
            .find_gdb(spec.gdb.as_deref())
            .and_then(|gdb| {
                let mut options = self.config.start.options.clone();
                options.settings.push("set non-stop on".to_owned());
                let pids: Vec<i32> = wanted.iter().map(|(_, pid)| *pid).collect();
                self.spawn_attaching(&gdb, &options, &pids, &leashes)
            });
        let child = match spawned {
            Ok(child) => child,
            Err(failure) => {
                for (task, _) in wanted {
                    self.answer(id, task, Err(failure.clone()));
                }
                return None;
            }
        };
        let gdb = child.pid();
        // The states of the processes are recorded before gdb is told of any of them.
        let held = wanted.iter().zip(leashes);
        let held = held.map(|((_, pid), leash)| self.hold(*pid, spec, &child, leash));
        let mut held = held.collect::<Vec<_>>().into_iter();
        let mut shared = SharedGdb::new(child, spec.clone());
        for (at, &(task, pid)) in wanted.iter().enumerate() {
            let mut driver = self.driver(now, gdb);
            driver.attach_among(now, id, AttachTarget::new(pid, spec), at == 0);
            shared.add(task, driver, held.next().flatten());
        }
        let tasks = wanted.into_iter().map(|(task, _)| task);
        Some(self.add(now, tasks, Box::new(shared)))
    }

    /// Records the state of a process before a gdb attaches to it; `None` if no warden was started.
    fn hold(
        &self,
        pid: i32,
        spec: &AttachSpec,
        gdb: &GdbChild,
        leash: Option<StopOnGdbDeath>,
    ) -> Option<Held> {
        let warden = self.warden.as_ref()?;
        Held::new(pid, spec.held, (gdb.pid(), leash), warden)
    }

    /// The pid that the request names for a task.
    ///
    /// # Errors
    /// The task has not ended, or the request names no process for it.
    fn pid_of(&self, task: TaskId, spec: &AttachSpec) -> Result<i32, Failure> {
        self.breakpoints_of_ended(task)?;
        process_of(task, &spec.pids)
    }

    pub(super) fn load_core(
        &mut self,
        now: Instant,
        id: CommandId,
        task: TaskId,
        spec: &CoreSpec,
    ) -> Result<u64, Failure> {
        self.breakpoints_of_ended(task)?;
        let core = spec.cores.iter().find(|(known, _)| *known == task.0);
        let Some((_, core)) = core else {
            let text = "no core file was given for this rank";
            return Err(Failure::new(FailureCode::BadCommand, text));
        };
        let directory = find_directory(None)?;
        let search_path = std::env::var_os("PATH");
        let program = find_program(&spec.program, &directory, search_path.as_deref(), false)?;
        let core = directory.join(std::ffi::OsStr::from_bytes(core));
        if !core.is_file() {
            let core = printable_name(&core);
            let text = format!("{core}: no such core file");
            return Err(Failure::new(FailureCode::Gdb, text));
        }
        let gdb = self.config.start.find_gdb(spec.gdb.as_deref())?;
        let child = self.spawn_gdb(&gdb, &directory)?;
        let mut driver = self.driver(now, child.pid());
        driver.open_core(now, id, CoreFile { core, program });
        let task_of = Task::new(task, driver, child, Streams::none(), true);
        Ok(self.add(now, [task], Box::new(task_of)))
    }

    /// The breakpoints of a task that has ended; none for a task that was never started.
    ///
    /// # Errors
    /// The task has not ended.
    pub(super) fn breakpoints_of_ended(
        &self,
        task: TaskId,
    ) -> Result<Vec<SavedBreakpoint>, Failure> {
        let slot = self.current.get(&task);
        let Some(known) = slot.and_then(|slot| self.slots.get(slot)) else {
            return Ok(Vec::new());
        };
        let Some(driver) = known.slot.driver(task) else {
            return Ok(Vec::new());
        };
        if driver.why_not_live().is_none() {
            return Err(Failure::new(FailureCode::AlreadyRunning, "already running"));
        }
        Ok(driver.kept_breakpoints())
    }

    /// Starts a gdb of its own for each task of a slot that cannot share one, and attaches with it.
    pub(super) fn attach_apart(&mut self, now: Instant, number: u64) {
        let Some(known) = self.slots.get_mut(&number) else {
            return;
        };
        let Some(apart) = known.slot.apart().filter(|apart| !apart.wanted.is_empty()) else {
            return;
        };
        let spec = Rc::new(Command::Attach(apart.spec.clone()));
        for (id, task) in std::mem::take(&mut apart.wanted) {
            if let Some(own) = self.execute_one(now, id, task, &spec) {
                self.settle(now, own);
            }
        }
    }

    /// Starts a gdb for a program that has run without one and now needs it.
    pub(super) fn bring_gdb(&mut self, now: Instant, number: u64) {
        let known = self.slots.get_mut(&number);
        let seized = known.and_then(|known| known.slot.seized());
        let Some((pid, named)) = seized.and_then(|task| task.take_need()) else {
            return;
        };
        let options = self.config.start.options.clone();
        let gdb = self.config.start.find_gdb(named.as_deref());
        let child = gdb.and_then(|gdb| self.spawn_attaching(&gdb, &options, &[pid], &[]));
        let known = self.slots.get_mut(&number);
        if let Some(task) = known.and_then(|known| known.slot.seized()) {
            task.take_gdb(now, child);
        }
        self.settle(now, number);
    }
}

/// True if one gdb attaches to all these tasks.
pub(super) fn shares_gdb(spec: &AttachSpec, tasks: &IdSet) -> bool {
    match spec.arrangement {
        Arrangement::Auto => tasks.len() > 1,
        Arrangement::PerTask => false,
        Arrangement::Shared => true,
    }
}

/// Input for a task before its program runs: its earlier breakpoints, and the breakpoints, settings and check of the
/// start request.
pub(super) fn before_the_start(
    spec: &StartSpec,
    task: TaskId,
    breakpoints: Vec<SavedBreakpoint>,
) -> StartInput {
    let mut before = StartInput {
        settings: Vec::new(),
        breakpoints,
        check: check(spec),
    };
    for (tasks, line) in &spec.settings {
        if tasks.contains(task) {
            before.settings.push(line.clone());
        }
    }
    for point in &spec.points {
        if point.tasks.contains(task) {
            before.breakpoints.push(SavedBreakpoint {
                spec: point.spec.clone(),
                enabled: point.enabled,
            });
        }
    }
    before
}

/// Suppressions for the check of the use of MPI; `None` without that check. The front-end has checked them before.
pub(super) fn check(spec: &StartSpec) -> Option<Suppressions> {
    let value = |name: &str| {
        let mut given = spec.environment.iter();
        let (_, value) = given.find(|(known, _)| known == name.as_bytes())?;
        value.as_deref()
    };
    value(LIBRARY_VARIABLE)?;
    let text = value(SUPPRESS_VARIABLE).map(String::from_utf8_lossy);
    Some(Suppressions::read(&text.unwrap_or_default()).unwrap_or_default())
}

/// The memory that a gdb for a program needs, and the free memory.
///
/// # Errors
/// The program or its directory is not found.
pub(super) fn room(config: &StartConfig, spec: &StartSpec) -> Result<Room, Failure> {
    let directory = find_directory(spec.directory.as_deref())?;
    let search_path = std::env::var_os("PATH");
    let program = find_program(
        &spec.program,
        &directory,
        search_path.as_deref(),
        spec.gdb_when_needed,
    )?;
    Ok(crate::memory_estimate::estimate(
        &program,
        config.options.system_debug,
    ))
}
