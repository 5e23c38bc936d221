//! The start of a program that its parent seizes.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::process::{Command, Stdio};

use nix::libc;
use nix::sys::ptrace;
use nix::sys::signal::{SigSet, Signal, kill};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::unistd::Pid;

use super::process::{Process, options};
use super::processes::{Processes, Scope};
use super::traps::Traps;
use super::{SeizeRefusal, Tracer, Watch, signal_of};
use crate::sys::{self, Resumption};

impl Tracer {
    /// Starts and seizes a program. `command` is the exec wrapper, which executes the program once a byte comes
    /// through `release`. Returns before the program's first instruction.
    pub(crate) fn start(
        mut command: Command,
        mut release: io::PipeWriter,
        watch: Watch,
    ) -> Result<Self, SeizeRefusal> {
        let failed = |error: io::Error| SeizeRefusal::CannotRun(error.to_string());
        let mut set = SigSet::empty();
        set.add(Signal::SIGCHLD);
        set.thread_block().map_err(|errno| failed(errno.into()))?;
        let flags = SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK;
        let changes = SignalFd::with_flags(&set, flags).map_err(|errno| failed(errno.into()))?;
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let mut child = command.spawn().map_err(failed)?;
        let complaints = child.stderr.take();
        let pid = child.id().cast_signed();
        if ptrace::seize(Pid::from_raw(pid), options(true)).is_err() {
            end(pid);
            return Err(SeizeRefusal::NeedsGdb);
        }
        release.write_all(&[0]).map_err(failed)?;
        drop(release);
        let traps = Traps::none(watch.no_holds);
        let mut tracer = Self {
            processes: Processes {
                top: pid,
                all: BTreeMap::from([(pid, Process::new(pid, traps))]),
            },
            program: pid,
            changes,
            watch,
            asks_rank: None,
            stands: None,
            is_held: false,
            releases: Scope::Nothing,
            is_loose: false,
            again: Vec::new(),
            status: None,
            before_finalize: false,
            initialized: false,
            has_ended: false,
            news: Vec::new(),
        };
        if let Err(why) = tracer.come_to_program() {
            end(pid);
            let SeizeRefusal::CannotRun(text) = why else {
                return Err(why);
            };
            let mut said = String::new();
            if let Some(mut complaints) = complaints {
                let _ = complaints.read_to_string(&mut said);
            }
            let last = said.lines().last().map(str::to_owned);
            return Err(SeizeRefusal::CannotRun(last.unwrap_or(text)));
        }
        Ok(tracer)
    }

    /// Continues to the moment at which the process has executed the program.
    fn come_to_program(&mut self) -> Result<(), SeizeRefusal> {
        loop {
            let changed = sys::next_change(self.processes.top, true);
            let Ok(Some((id, status))) = changed else {
                return Err(SeizeRefusal::CannotRun("the process has ended".to_owned()));
            };
            if !libc::WIFSTOPPED(status) {
                return Err(SeizeRefusal::CannotRun(ended(status)));
            }
            if status >> 16 == libc::PTRACE_EVENT_EXEC {
                let traps = Traps::of_new(id).map_err(|_| SeizeRefusal::NeedsGdb)?;
                let process = self.processes.all.entry(id);
                let process = process.or_insert_with(|| Process::new(id, Traps::default()));
                process.executed(id, traps);
                process.prepare(id).map_err(|_| SeizeRefusal::NeedsGdb)?;
                self.processes.stand(id, 0);
                self.resume_thread(id);
                return Ok(());
            }
            // Passes on signals that arrive meanwhile, as no handler exists yet.
            let _ = sys::send_on(id, Resumption::Run, signal_of(status));
        }
    }
}

/// A description of a process's end.
fn ended(status: i32) -> String {
    match libc::WIFSIGNALED(status) {
        true => format!("the process was ended by signal {}", libc::WTERMSIG(status)),
        false => format!("the process ended with {}", libc::WEXITSTATUS(status)),
    }
}

/// Kills and reaps a process that must not run.
fn end(pid: i32) {
    let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
    while let Ok(Some((_, status))) = sys::next_change(pid, true) {
        if !libc::WIFSTOPPED(status) {
            break;
        }
    }
}
