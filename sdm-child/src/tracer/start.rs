//! The start of a program that its parent seizes.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};

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
    /// Starts and seizes a program. `command` is the exec wrapper, which executes the program after it has received a
    /// byte by `release`. Returns once the program is executed, watched and running.
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
        let pid = child.id().cast_signed();
        let complaint = complaint_of(&mut child);
        if ptrace::seize(Pid::from_raw(pid), options(true)).is_err() {
            if let Ok(Some(status)) = child.try_wait() {
                let text = complaint.unwrap_or_else(|| ended(status.into_raw()));
                return Err(SeizeRefusal::CannotRun(text));
            }
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
            return Err(SeizeRefusal::CannotRun(complaint.unwrap_or(text)));
        }
        Ok(tracer)
    }

    /// Resumes the process until it has executed the program.
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

/// Waits until the wrapper has the program's streams, or has ended. Returns the wrapper's last message; `None` if it
/// wrote none.
///
/// `spawn` returns in the middle of the wrapper's own `exec`. If the process were seized by then, that `exec` would be
/// reported, and would be taken for the program's.
fn complaint_of(wrapper: &mut Child) -> Option<String> {
    let mut said = String::new();
    // The wrapper escapes its messages.
    let _ = wrapper.stderr.take()?.read_to_string(&mut said);
    said.lines().last().map(str::to_owned)
}

/// A description of a process's end.
fn ended(status: i32) -> String {
    let (signal, code) = (libc::WTERMSIG(status), libc::WEXITSTATUS(status));
    match libc::WIFSIGNALED(status) {
        true => format!("the process was ended by signal {signal}"),
        false => format!("the process ended with exit code {code}"),
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

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::os::fd::{AsRawFd, OwnedFd};

    use nix::fcntl::{PosixFadviseAdvice, posix_fadvise};
    use sdm_debug::FoldRules;
    use sdm_system::{hand_on, proc, programs};

    use super::*;

    /// The wrapper is not in the page cache, so that its own `exec` waits for the disk after `spawn` has returned.
    #[test]
    fn exec_of_the_wrapper_is_not_taken_for_that_of_the_program() {
        let shell = std::env::temp_dir().join(format!("sdm-shell-{}", std::process::id()));
        fs::copy("/bin/bash", &shell).unwrap();
        File::open(&shell).unwrap().sync_all().unwrap();
        let program = fs::canonicalize("/bin/true").unwrap();
        let mut wrong = 0;
        for _ in 0..400 {
            let file = File::open(&shell).unwrap();
            posix_fadvise(&file, 0, 0, PosixFadviseAdvice::POSIX_FADV_DONTNEED).unwrap();
            drop(file);
            let (held, release) = io::pipe().unwrap();
            let held = OwnedFd::from(held);
            let script = format!(
                "exec 2>/dev/null; read -r word <&{}; exec {}",
                held.as_raw_fd(),
                program.display()
            );
            let mut command = programs::at(&shell);
            command.args(["-c", &script]);
            hand_on(&mut command, &held);
            let watch = Watch {
                no_holds: true,
                fold: FoldRules::default(),
            };
            let tracer = Tracer::start(command, release, watch).unwrap();
            let executed = fs::read_link(proc::of(tracer.program).path("exe"));
            end(tracer.program);
            wrong += usize::from(executed.unwrap() != program);
        }
        fs::remove_file(&shell).unwrap();
        assert_eq!(wrong, 0, "of 400");
    }
}
