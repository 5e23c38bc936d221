//! Stops the threads of a process and lets them go.
//!
//! No signal is sent: each thread is seized and interrupted. Where this process ends, however that is, the kernel lets all go.

use std::io;

use nix::dir::Dir;
use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::libc;
use nix::sys::ptrace::{self, Options};
use nix::sys::stat::Mode;
use nix::unistd::Pid;
use sdm_system::proc;

use super::Refusal;
use crate::sys;

/// The most threads of a process that are looked at.
const THREADS_MAX: usize = 4096;
/// How often a process is asked whether it has more threads by now.
const LISTINGS_MAX: usize = 16;

/// The threads of a process that are traced by this one. Dropped, it lets go those that stand.
pub(super) struct Held {
    pid: i32,
    /// `/proc/PID/task`, open before anything stands.
    folder: Dir,
    threads: Vec<HeldThread>,
}

/// A thread, and the signal that it was about to have; `None` where it does not stand yet.
struct HeldThread {
    id: i32,
    stopped: Option<i32>,
}

/// What has become of a thread, by its status.
#[derive(Debug, PartialEq, Eq)]
enum Change {
    Ended,
    Executed,
    /// It stands; with the signal that it is to have when it goes on, or 0.
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
            _ => Self::Stopped(0),
        }
    }
}

impl Held {
    /// Of a process of which nothing is traced yet.
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

    /// How many threads it has, about.
    pub(super) fn count(&mut self) -> usize {
        self.folder.iter().count()
    }

    /// The threads that stand.
    pub(super) fn ids(&self) -> impl Iterator<Item = i32> {
        self.threads.iter().map(|thread| thread.id)
    }

    /// Stops all its threads. Where one does not stop this does not return: who waits for it ends this process.
    pub(super) fn stop(&mut self) -> Result<(), Refusal> {
        // All are seized before the first one stands: while it stands, so do those that wait for it.
        for _ in 0..LISTINGS_MAX {
            if !self.seize_new()? {
                self.interrupt()?;
                self.wait()?;
                // One that was just about to begin another one.
                if !self.seize_new()? {
                    return match self.threads.is_empty() {
                        true => Err(Refusal::Ended),
                        false => Ok(()),
                    };
                }
            }
        }
        Err(Refusal::TooManyThreads)
    }

    /// Seizes threads that are not traced yet; false where there were none.
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
                return Err(Refusal::TooManyThreads);
            }
            match ptrace::seize(Pid::from_raw(id), Options::PTRACE_O_TRACEEXEC) {
                Ok(()) => threads.push(HeldThread { id, stopped: None }),
                // A leader that has ended is listed as long as others run.
                Err(Errno::ESRCH) => continue,
                Err(Errno::EPERM) if has_ended(self.pid, id) => continue,
                Err(error) => return Err(Refusal::of(self.pid, error)),
            }
            found = true;
        }
        Ok(found)
    }

    fn interrupt(&mut self) -> Result<(), Refusal> {
        for thread in self.threads.iter().filter(|it| it.stopped.is_none()) {
            match ptrace::interrupt(Pid::from_raw(thread.id)) {
                // Its end is told by the wait.
                Ok(()) | Err(Errno::ESRCH) => {}
                Err(error) => return Err(Refusal::of(self.pid, error)),
            }
        }
        Ok(())
    }

    fn wait(&mut self) -> Result<(), Refusal> {
        while self.threads.iter().any(|thread| thread.stopped.is_none()) {
            // Any of them: an exec waits until its dead siblings are taken.
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
            (Change::Ended, Some(at)) => {
                self.threads.remove(at);
            }
            (Change::Executed, _) => {
                // Its threads are gone, and it has the number of the process.
                self.threads.clear();
                let stopped = Some(0);
                self.threads.push(HeldThread { id, stopped });
                return Err(Refusal::Executed);
            }
            (_, None) => {}
        }
        Ok(())
    }

    /// Lets all go; fails where one could not be, which stands no more then only because this process ends.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_says_what_has_become_of_a_thread() {
        let check = |status, expect| assert_eq!(Change::of(status), expect, "{status:#x}");
        check(0, Change::Ended);
        check(9, Change::Ended);
        check(0x7f | 10 << 8, Change::Stopped(10));
        check(0x7f | 35 << 8, Change::Stopped(35));
        check(0x7f | 5 << 8 | 128 << 16, Change::Stopped(0));
        check(0x7f | 19 << 8 | 128 << 16, Change::Stopped(0));
        check(0x7f | 5 << 8 | 4 << 16, Change::Executed);
    }
}
