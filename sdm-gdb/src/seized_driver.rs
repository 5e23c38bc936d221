//! The driver of a program that runs without a gdb until something needs one.

use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::rc::Rc;
use std::time::Instant;

use sdm_check::Suppressions;
use sdm_child::{Cause, Freed, MpiSymbols};
use sdm_core::CommandId;
use sdm_debug::event::Phase;
use sdm_debug::{Command, Event, TaskState};
use sdm_inspect::stack::StoppedThread;
use sdm_system::signal_name;

use super::ops::end::{self, End};
use super::ops::{alone, take_over, world_rank};
use super::state::activity::{OpenRun, RunKind};
use super::state::origin::{Origin, SeizedGdb};
use super::text::base_name;
use super::{Action, Concurrency, Driver, DriverConfig, Host};

/// A program that its parent traces, and that has no gdb: none can attach, or nothing has needed one for its stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WithoutGdb {
    /// The pid of the program.
    pub pid: i32,
    /// The thread for which the program is stopped; `None` while the program runs.
    pub stopped: Option<i32>,
}

/// Reports the stop of a program without a gdb, with what was read of its thread. False if that is not enough, and gdb
/// is needed for the report.
pub fn report_stop(driver: &mut Driver, now: Instant, seen: Option<StoppedThread>) -> bool {
    driver.gdb.edit().now = now;
    let is_reported = alone::report(&driver.gdb, seen);
    driver.run();
    is_reported
}

/// True for a command that needs no gdb, because the program's parent keeps it stopped.
#[must_use]
pub fn needs_no_gdb(driver: &Driver, command: &Command) -> bool {
    alone::needs_none(&driver.gdb, command)
}

/// Reports that the parent of a seized program has ended, and the program with it.
pub fn report_parent_end(driver: &mut Driver, now: Instant, text: &str) {
    driver.gdb.edit().origin.forget_stop();
    driver.handle_gdb_end(now, text);
}

impl Driver {
    /// A driver for a program that its parent has seized by ptrace; for the front-end it runs under a gdb. Its first
    /// stop or its end answers `id`. `check` has the suppressions for the check of the use of MPI; `None` without that
    /// check.
    pub fn seized(
        now: Instant,
        config: Rc<DriverConfig>,
        host: Box<dyn Host>,
        id: CommandId,
        (pid, program): (i32, &Path),
        check: Option<Suppressions>,
    ) -> Self {
        let driver = Self::new(now, config, host);
        let name = program.to_string_lossy();
        let mut state = driver.gdb.edit();
        state.open.insert(id);
        state.breakpoints.check = check;
        state.origin = Origin::Seized {
            freed: None,
            gdb: SeizedGdb::Unneeded,
            stands: None,
            seen: None,
            why_alone: None,
        };
        state.processes.started("", Some(pid));
        base_name(&name).clone_into(&mut state.program_name);
        state.set_task(TaskState::Starting);
        state.activity.open_run(OpenRun {
            id: Some(id),
            kind: RunKind::StartFreely,
            token: 0,
            again: Rc::from(RunKind::StartFreely.line()),
        });
        state.set_task(TaskState::Running);
        state.activity.begin_executing();
        let begun = Action::Event(Event::Progress(Phase::Running));
        state.actions.extend([Action::ProgramOpened, begun]);
        drop(state);
        driver
    }

    /// Lets a newly started gdb take over a seized program.
    pub fn take_over(&mut self, now: Instant, program: PathBuf) {
        let mut state = self.gdb.edit();
        state.now = now;
        state.origin.note_gdb_need();
        if state.activity.is_stopped() {
            // For the front-end it stays stopped. Commands wait until it has stopped under gdb.
            state.set_task(TaskState::Running);
        }
        drop(state);
        let take_over = take_over::take_over(self.gdb.clone(), program);
        self.push(None, Concurrency::Alone, take_over);
        self.run();
    }

    /// Reports that a seized program's threads were released.
    pub fn handle_freed(&mut self, now: Instant, freed: Freed) {
        let mut state = self.gdb.edit();
        state.now = now;
        state.origin.set_freed(freed);
        drop(state);
        self.run();
    }

    /// Reports that the parent of a seized program has stopped this thread. False if gdb is needed for the report.
    pub fn handle_stand(&mut self, now: Instant, thread: i32, cause: Cause) -> bool {
        let mut state = self.gdb.edit();
        state.now = now;
        state.origin.set_stood(thread, cause);
        drop(state);
        alone::stand(&self.gdb)
    }

    /// The program without a gdb; `None` for others, and after its end.
    pub fn without_gdb(&self) -> Option<WithoutGdb> {
        let state = self.gdb.get();
        let is_alone = state.origin.is_alone() && state.activity.is_live();
        let pid = state.pid().filter(|_| is_alone)?;
        let stopped = state.origin.stood().map(|(thread, _)| thread);
        Some(WithoutGdb { pid, stopped })
    }

    /// Takes another process of the rank for the program: a wrapper has started it. `others` are further processes that
    /// may be the program.
    pub fn handle_choice(&mut self, now: Instant, pid: i32, program: &Path, others: &[String]) {
        let mut state = self.gdb.edit();
        state.now = now;
        if state.origin.is_taken_over() {
            return;
        }
        state.processes.started("", Some(pid));
        let name = program.to_string_lossy();
        base_name(&name).clone_into(&mut state.program_name);
        drop(state);
        if !others.is_empty() {
            let text = format!(
                "several processes of this rank use MPI: sdm watches {name} (pid {pid}), not {}",
                others.join(", ")
            );
            self.tell_once(text);
        }
    }

    /// Tells that a descendant of the program was ended by a signal, which is not the program's own end.
    pub fn handle_child_end(&mut self, now: Instant, name: &str, signal: i32) {
        self.gdb.edit().now = now;
        self.tell_once(format!(
            "{name}, a process that the program has started, was ended by {}",
            signal_name(signal)
        ));
    }

    fn tell_once(&mut self, text: String) {
        let mut state = self.gdb.edit();
        if state.processes.is_new(&text) {
            state
                .actions
                .push_back(Action::Event(Event::Notice { text }));
        }
    }

    /// Compares the rank that a seized program's MPI library reports with the launcher's, when the program asks for
    /// its rank.
    pub fn check_world(&mut self, now: Instant, symbols: MpiSymbols) {
        self.gdb.edit().now = now;
        world_rank::check_at(&self.gdb, symbols);
        self.run();
    }

    /// Reports the end of a seized program. `initialized` is true if it may have called `MPI_Init`. `before_finalize`
    /// is true if it has called that and is known not to have called `MPI_Finalize`.
    pub fn handle_end(
        &mut self,
        now: Instant,
        status: ExitStatus,
        before_finalize: bool,
        initialized: bool,
    ) {
        let mut state = self.gdb.edit();
        state.now = now;
        if state.origin.is_taken_over() {
            return;
        }
        let mpi = &mut state.breakpoints.mpi;
        mpi.initialized |= initialized;
        mpi.watched |= before_finalize;
        mpi.finalized |= !before_finalize;
        drop(state);
        let end = match (status.code(), status.signal()) {
            (Some(code), _) => End::Exited(code),
            (None, signal) => End::Signalled(signal_name(signal.unwrap_or_default())),
        };
        end::program_ended(&self.gdb, end);
        self.run();
    }
}
