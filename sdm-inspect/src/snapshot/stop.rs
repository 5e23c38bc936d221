//! Stops the threads of a process and resumes them.
//!
//! No signal is sent: each thread is seized and interrupted by ptrace. Threads that are created meanwhile are traced
//! from their start. If this process ends in any way, the kernel detaches it from all threads.

use std::io;

use nix::dir::Dir;
use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag};
use nix::libc;
use nix::sys::ptrace::{self, Options};
use nix::sys::stat::{Mode, fstatat};
use nix::unistd::Pid;
use sdm_system::proc;

use super::Refusal;
use crate::sys;

/// Maximum number of threads of a process.
const THREADS_MAX: usize = 4096;
/// Maximum number of listings of a process's threads in search of new ones.
const LISTINGS_MAX: usize = 16;

/// Entries of `/proc/PID/task` that are no threads: `.` and `..`.
const OTHER_ENTRIES: usize = 2;

/// The threads of a process that this process traces. Drop detaches from the stopped threads.
pub(super) struct TracedThreads {
    pid: i32,
    /// `/proc/PID/task`, opened before any thread is stopped.
    folder: Dir,
    threads: Vec<TracedThread>,
}

/// A thread, with the signal that it was about to receive; `None` while it is not stopped.
struct TracedThread {
    id: i32,
    stopped: Option<i32>,
    /// True if the thread belongs to the process. A newly cloned one may be another process.
    is_listed: bool,
}

/// The event that a thread's wait status reports.
#[derive(Debug, PartialEq, Eq)]
enum Change {
    Ended,
    Executed,
    /// The thread is stopped, and has just created a thread or a process.
    Cloned,
    /// The thread is stopped, with the signal to deliver when it resumes, or 0.
    Stopped(i32),
}

impl Change {
    fn of(status: i32) -> Self {
        if !libc::WIFSTOPPED(status) {
            return Self::Ended;
        }
        match status >> 16 {
            0 => Self::Stopped(libc::WSTOPSIG(status)),
            libc::PTRACE_EVENT_EXEC => Self::Executed,
            libc::PTRACE_EVENT_CLONE => Self::Cloned,
            _ => Self::Stopped(0),
        }
    }
}

impl TracedThreads {
    /// A process without traced threads yet.
    pub(super) fn new(pid: i32) -> Result<Self, Refusal> {
        let path = proc::of(pid).path("task");
        let flags = OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        let folder = Dir::open(&path, flags, Mode::empty());
        let folder = folder.map_err(|error| Refusal::of(pid, error))?;
        Ok(Self {
            pid,
            folder,
            threads: Vec::new(),
        })
    }

    /// Approximate number of the process's threads.
    pub(super) fn count(&mut self) -> usize {
        self.folder.iter().count()
    }

    /// The stopped threads of the process.
    pub(super) fn ids(&self) -> impl Iterator<Item = i32> {
        let is_here = |id: i32| {
            let name = id.to_string();
            fstatat(&self.folder, name.as_str(), AtFlags::empty()).is_ok()
        };
        let is_of_it = move |thread: &&TracedThread| thread.is_listed || is_here(thread.id);
        self.threads.iter().filter(is_of_it).map(|thread| thread.id)
    }

    fn has(&self, id: i32) -> bool {
        self.threads.iter().any(|thread| thread.id == id)
    }

    /// Stops all threads of the process. This does not return if a thread does not stop: the waiting parent then kills
    /// this process.
    pub(super) fn stop(&mut self) -> Result<(), Refusal> {
        // Refused before any thread is touched.
        let count = self.count().saturating_sub(OTHER_ENTRIES);
        if count > THREADS_MAX {
            return Err(Refusal::TooManyThreads { count });
        }
        // Seizes all threads before it stops the first one, as threads that wait for a stopped one stand still too.
        for _ in 0..LISTINGS_MAX {
            if !self.seize_new()? {
                self.interrupt()?;
                self.wait()?;
                // A thread may just have created another one.
                if !self.seize_new()? {
                    return match self.threads.is_empty() {
                        true => Err(Refusal::Ended),
                        false => Ok(()),
                    };
                }
            }
        }
        // They come and go faster than they are listed.
        Err(Refusal::Stuck)
    }

    /// Seizes the threads that are not traced yet; false if there were none.
    fn seize_new(&mut self) -> Result<bool, Refusal> {
        let mut found = false;
        let Self {
            folder, threads, ..
        } = self;
        for entry in folder.iter().flatten() {
            let id = entry.file_name().to_str().ok();
            let Some(id) = id.and_then(|name| name.parse::<i32>().ok()) else {
                continue;
            };
            if threads.iter().any(|thread| thread.id == id) {
                continue;
            }
            if threads.len() >= THREADS_MAX {
                let count = threads.len() + 1;
                return Err(Refusal::TooManyThreads { count });
            }
            // Without `PTRACE_O_TRACECLONE`, a list of threads that come and go would never be complete.
            let options = Options::PTRACE_O_TRACEEXEC | Options::PTRACE_O_TRACECLONE;
            match ptrace::seize(Pid::from_raw(id), options) {
                Ok(()) => {}
                // A main thread that has ended is listed as long as others run.
                Err(Errno::ESRCH) => continue,
                Err(Errno::EPERM) if has_ended(self.pid, id) => continue,
                // A seized thread has created this one, which is traced automatically.
                Err(Errno::EPERM) if is_traced_here(self.pid, id) => {}
                Err(error) => return Err(Refusal::of(self.pid, error)),
            }
            threads.push(TracedThread {
                id,
                stopped: None,
                is_listed: true,
            });
            found = true;
        }
        Ok(found)
    }

    fn interrupt(&mut self) -> Result<(), Refusal> {
        for thread in self.threads.iter().filter(|it| it.stopped.is_none()) {
            match ptrace::interrupt(Pid::from_raw(thread.id)) {
                // The wait reports the end of a thread.
                Ok(()) | Err(Errno::ESRCH) => {}
                Err(error) => return Err(Refusal::of(self.pid, error)),
            }
        }
        Ok(())
    }

    fn wait(&mut self) -> Result<(), Refusal> {
        while self.threads.iter().any(|thread| thread.stopped.is_none()) {
            // Waits for any thread, as an exec waits until its dead siblings are reaped.
            let Some((id, status)) = sys::wait_any()? else {
                return Err(Refusal::Ended);
            };
            self.note(id, Change::of(status))?;
        }
        Ok(())
    }

    fn note(&mut self, id: i32, change: Change) -> Result<(), Refusal> {
        let at = self.threads.iter().position(|thread| thread.id == id);
        match (change, at) {
            (Change::Stopped(signal), Some(at)) => self.threads[at].stopped = Some(signal),
            (Change::Stopped(signal), None) => self.add_begun(id, Some(signal)),
            (Change::Cloned, Some(at)) => {
                self.threads[at].stopped = Some(0);
                let begun = ptrace::getevent(Pid::from_raw(id)).ok();
                let begun = begun.and_then(|begun| i32::try_from(begun).ok());
                if let Some(begun) = begun.filter(|begun| !self.has(*begun)) {
                    self.add_begun(begun, None);
                }
            }
            (Change::Ended, Some(at)) => {
                self.threads.remove(at);
            }
            (Change::Executed, _) => {
                // The other threads have ended, and this one has taken the pid as its id.
                self.threads.clear();
                self.add_begun(id, Some(0));
                return Err(Refusal::Executed);
            }
            (_, None) => {}
        }
        Ok(())
    }

    /// Adds a thread that is traced from its first instruction: it stops by itself, before or after its creator
    /// reports it.
    fn add_begun(&mut self, id: i32, stopped: Option<i32>) {
        self.threads.push(TracedThread {
            id,
            stopped,
            is_listed: false,
        });
    }

    /// Detaches from all threads. Fails if a thread could not be detached: that thread resumes when this process ends.
    pub(super) fn release(&mut self) -> io::Result<()> {
        let mut result = Ok(());
        for thread in self.threads.drain(..) {
            let Some(signal) = thread.stopped else {
                result = Err(io::ErrorKind::WouldBlock.into());
                continue;
            };
            match sys::detach(thread.id, signal) {
                Err(error) if error.raw_os_error() != Some(libc::ESRCH) => result = Err(error),
                _ => {}
            }
        }
        result
    }
}

fn has_ended(pid: i32, thread: i32) -> bool {
    let state = proc::of(pid).thread(thread).state();
    state.is_none_or(proc::State::has_ended)
}

fn is_traced_here(pid: i32, thread: i32) -> bool {
    let status = proc::of(pid).thread(thread).status();
    let tracer = status.ok().and_then(|status| status.tracer());
    tracer == Some(std::process::id().cast_signed())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wait_status_is_decoded() {
        let check = |status, expect| assert_eq!(Change::of(status), expect, "{status:#x}");
        check(0, Change::Ended);
        check(9, Change::Ended);
        check(0x7f | 10 << 8, Change::Stopped(10));
        check(0x7f | 35 << 8, Change::Stopped(35));
        check(0x7f | 5 << 8 | 128 << 16, Change::Stopped(0));
        check(0x7f | 19 << 8 | 128 << 16, Change::Stopped(0));
        check(0x7f | 5 << 8 | 4 << 16, Change::Executed);
        check(0x7f | 5 << 8 | 3 << 16, Change::Cloned);
    }
}
