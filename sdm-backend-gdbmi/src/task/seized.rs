//! A program that runs without a gdb until an operation needs one.

use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::rc::Rc;
use std::time::Instant;

use sdm_child::{GdbChild, ProgramNews, ShimLink, Streams, ToShim};
use sdm_debug::{Command, Failure};
use sdm_gdb::{Driver, SeizedAction, report_parent_end, report_stop};
use sdm_idset::TaskId;
use sdm_inspect::stack::StoppedThread;
use sdm_system::proc;
use sdm_text::printable_name;

use super::{GdbIo, Task};
use crate::gdb_instance::{ProgramExit, Seized};
use crate::host::GdbNumber;
use crate::looks::LookedThread;
use crate::seized_looks::Order;

/// The parent of a seized program, and data about the program outside its driver.
pub(crate) struct Parent {
    /// The connection to the parent.
    link: Rc<ShimLink>,
    program: PathBuf,
    /// The gdb that the start request names; `None` for the default gdb.
    gdb: Option<Vec<u8>>,
    /// The pid of the gdb, shared with the task's host.
    number: GdbNumber,
    need: Need,
    /// True while the program is released for an inspection: no gdb can attach yet.
    is_loose: bool,
    /// True if the program is stopped, and it was not read yet where.
    is_unseen: bool,
    /// The exit of a program that had no gdb; `None` otherwise.
    exit: Option<ProgramExit>,
}

/// The program's need of a gdb.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Need {
    Nothing,
    /// The program needs a gdb, and none was requested yet.
    New,
    /// A gdb was requested, or is attached.
    Met,
}

impl Parent {
    pub(crate) fn new(
        link: &Rc<ShimLink>,
        program: PathBuf,
        gdb: Option<Vec<u8>>,
        number: GdbNumber,
    ) -> Self {
        Self {
            link: Rc::clone(link),
            program,
            gdb,
            number,
            need: Need::Nothing,
            is_loose: false,
            is_unseen: false,
            exit: None,
        }
    }

    pub(super) fn link(&self) -> &Rc<ShimLink> {
        &self.link
    }
}

/// True for commands that a running program without a gdb can answer.
fn needs_no_gdb(command: &Command) -> bool {
    matches!(
        command,
        Command::Status
            | Command::Usage
            | Command::ProcessUsage { .. }
            | Command::Stdin { .. }
            | Command::Kill
    )
}

impl Task {
    /// A task whose program was seized by its parent.
    pub(crate) fn seized(id: TaskId, driver: Driver, parent: Parent, streams: Streams) -> Self {
        let mut task = Self::with(id, driver, GdbIo::to_come(), streams, false);
        task.seized = Some(parent);
        task
    }

    /// Prepares a program without a gdb for a command: kills or holds it if that is the command, or requests a gdb if
    /// the command needs one.
    pub(super) fn prepare_for(&mut self, now: Instant, command: &Command) {
        if !self.is_without_gdb() {
            return;
        }
        match command {
            Command::Kill => self.kill_seized(),
            Command::Hold => self.ask_parent(Order::Hold),
            command if needs_no_gdb(command) || sdm_gdb::needs_no_gdb(&self.driver, command) => {}
            _ => self.need_gdb(now),
        }
    }

    /// Kills the program and its wrappers, if there is no gdb that would do so.
    pub(super) fn kill_seized(&mut self) {
        if self.is_without_gdb() {
            self.tell_parent(&ToShim::Kill);
        }
    }

    fn is_without_gdb(&self) -> bool {
        self.gdb.is_to_come() || self.driver.without_gdb().is_some()
    }

    /// True for a program that outlives its gdb.
    pub(super) fn is_kept(&self) -> bool {
        self.is_detached() || self.driver.without_gdb().is_some()
    }

    /// Takes another process of the rank for the program. `others` are further processes that may be the program.
    fn choose_program(&mut self, now: Instant, pid: i32, others: &[i32]) {
        let process = proc::of(pid);
        if let (Some(seized), Ok(program)) = (&mut self.seized, process.program()) {
            seized.program = program;
        }
        let named = |pid: &i32| {
            let name = proc::of(*pid).name().unwrap_or_default();
            format!("{} (pid {pid})", printable_name(name.trim_end()))
        };
        let others: Vec<String> = others.iter().map(named).collect();
        let program = self.seized.as_ref().map(|it| it.program.clone());
        let program = program.unwrap_or_default();
        self.driver.handle_choice(now, pid, &program, &others);
    }

    fn need_gdb(&mut self, now: Instant) {
        let is_live = self.driver.why_not_live().is_none();
        let new = |it: &&mut Parent| is_live && it.need == Need::Nothing;
        if let Some(seized) = self.seized.as_mut().filter(new) {
            seized.need = Need::New;
            let program = seized.program.clone();
            self.driver.take_over(now, program);
        }
    }

    /// Pid of the program, if it runs without a gdb and needs none; otherwise `None`.
    pub(super) fn process_without_gdb(&self) -> Option<i32> {
        let seized = self.seized.as_ref()?;
        let is_free = self.gdb.is_to_come()
            && seized.need == Need::Nothing
            && self.driver.without_gdb().is_none();
        self.driver.pid().filter(|_| is_free)
    }

    pub(super) fn act_on_seized(&mut self, action: SeizedAction) {
        match action {
            SeizedAction::LetGo => self.tell_parent(&ToShim::LetGo),
            SeizedAction::LookAtStop => {
                if let Some(seized) = &mut self.seized {
                    seized.is_unseen = true;
                }
            }
            SeizedAction::GoOnAlone => self.tell_parent(&ToShim::GoOnAlone),
            SeizedAction::Leave => self.tell_parent(&ToShim::Leave),
        }
    }

    fn tell_parent(&self, what: &ToShim) {
        if let Some(seized) = &self.seized {
            // A parent that has ended has taken the program with it.
            let _ = seized.link.send(what);
        }
    }
}

impl Seized for Task {
    fn take_news(&mut self, now: Instant, news: ProgramNews) {
        match news {
            ProgramNews::Stands { thread, cause } => {
                if !self.driver.handle_stand(now, thread, cause) {
                    self.need_gdb(now);
                }
            }
            // The inspection that asked for the release is told of it.
            ProgramNews::Loose => {}
            ProgramNews::AsksRank(symbols) => {
                self.driver.check_world(now, symbols);
                self.tell_parent(&ToShim::GoOn);
            }
            ProgramNews::Is { pid, others } => self.choose_program(now, pid, &others),
            ProgramNews::ChildDied { name, signal } => {
                self.driver.handle_child_end(now, &name, signal);
            }
            ProgramNews::Free(freed) => self.driver.handle_freed(now, freed),
            ProgramNews::Ended {
                status,
                before_finalize,
                initialized,
            } => {
                let status = ExitStatus::from_raw(status);
                if let Some(seized) = self.seized.as_mut().filter(|_| self.gdb.is_to_come()) {
                    let exit = |code| ProgramExit {
                        code,
                        before_finalize,
                    };
                    seized.exit = status.code().map(exit);
                }
                self.driver
                    .handle_end(now, status, before_finalize, initialized);
            }
        }
    }

    fn lose_parent(&mut self, now: Instant) {
        if self.is_without_gdb() && self.driver.why_not_live().is_none() {
            let rank = self.id.0;
            let text = format!(
                "the process of sdm that had started the program (sdm-shim-{rank}) was killed, and the program was killed with it"
            );
            report_parent_end(&mut self.driver, now, &text);
            self.gdb.close(now, &mut self.closing);
        }
    }

    fn own_exit(&self) -> Option<(TaskId, ProgramExit)> {
        let exit = self.seized.as_ref()?.exit?;
        let is_read = self.streams.outputs.is_empty();
        is_read.then_some((self.id, exit))
    }

    fn take_need(&mut self) -> Option<(i32, Option<Vec<u8>>)> {
        let pid = self.driver.pid()?;
        let seized = self
            .seized
            .as_mut()
            .filter(|it| it.need == Need::New && !it.is_loose)?;
        seized.need = Need::Met;
        Some((pid, seized.gdb.clone()))
    }

    fn take_look(&mut self) -> Option<LookedThread> {
        let is_unseen = &mut self.seized.as_mut()?.is_unseen;
        if !std::mem::take(is_unseen) {
            return None;
        }
        let program = self.driver.without_gdb()?;
        Some((self.id, program.pid, program.stopped?))
    }

    fn take_stop(&mut self, now: Instant, seen: Option<StoppedThread>) {
        if !report_stop(&mut self.driver, now, seen) {
            self.need_gdb(now);
        }
    }

    fn take_gdb(&mut self, now: Instant, gdb: Result<GdbChild, Failure>) {
        match gdb {
            Ok(child) => {
                if let Some(seized) = &self.seized {
                    seized.number.set(child.pid());
                }
                self.gdb.begin(child);
            }
            Err(failure) => {
                self.driver.handle_gdb_end(now, &failure.text);
                if self.driver.without_gdb().is_none() {
                    self.kill_seized();
                }
            }
        }
    }

    fn ask_parent(&mut self, order: Order) {
        let stands = self.driver.without_gdb().is_some();
        let Some(seized) = &mut self.seized else {
            return;
        };
        let is_free = seized.need == Need::Nothing && !stands;
        let message = match order {
            Order::LetGo => ToShim::LetLook,
            Order::Seize => ToShim::Seize,
            Order::Hold if is_free => ToShim::Hold,
            Order::Release if is_free => ToShim::Release,
            Order::Hold | Order::Release => return,
        };
        if matches!(order, Order::LetGo | Order::Seize) {
            seized.is_loose = order == Order::LetGo;
        }
        // A parent that has ended has taken the program with it.
        let _ = seized.link.send(&message);
    }
}
