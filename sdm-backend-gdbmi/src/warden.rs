//! A process that outlives this one for as long as its gdbs do.
//!
//! A gdb ends at the end of its input; but while it waits for a function that it calls in the program
//! (`print sleep(1000)`) it reads none. So a copy of this process, which holds nothing but one pipe, is told
//! of every gdb. When this process dies, however that happens, it sees to it that they end: it waits, interrupts
//! what they wait for, stops the program that takes no interrupt, and at last kills gdb and takes out what
//! that has left in the program.

use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, read, write};

use crate::{restore, sys};

/// How long each step towards the end may take. The first is for those that read the end of their input.
const STEP_WAIT: Duration = Duration::from_secs(2);
/// How often what it waits for is interrupted, one second after the other: a gdb of several tasks may have
/// been told to call functions in each.
const INTERRUPTS_MAX: u32 = 30;
/// The pause between two interrupts.
const INTERRUPT_PAUSE: Duration = Duration::from_secs(1);
/// What the process is called in lists of processes, at most 15 bytes.
const NAME: &std::ffi::CStr = c"sdm-warden";

/// The end of the pipe over which it is told; it knows of our death by its closing.
#[derive(Debug)]
pub(crate) struct Warden(OwnedFd);

impl Warden {
    /// Makes the copy.
    ///
    /// # Errors
    /// The system has no room for it.
    pub(crate) fn start() -> io::Result<Self> {
        sys::fork_copy(NAME, |pipe| keep(&pipe)).map(Self)
    }

    /// Tells it of a gdb, which this process has not waited for.
    pub(crate) fn keep(&self, pid: i32) -> io::Result<()> {
        // As short as it is, it goes as a whole.
        write(&self.0, &pid.to_ne_bytes())?;
        Ok(())
    }
}

/// A gdb.
struct Kept {
    pid: i32,
    /// Readable when it has ended.
    end: OwnedFd,
}

impl Kept {
    fn is_alive(&self) -> bool {
        !ends_within(self, Duration::ZERO)
    }
}

/// What the copy does until all is done.
fn keep(pipe: &OwnedFd) {
    let mut kept: Vec<Kept> = Vec::new();
    let mut word = [0; 4];
    while let Ok(4) = read(pipe, &mut word) {
        kept.retain(Kept::is_alive);
        let pid = i32::from_ne_bytes(word);
        if let Ok(end) = sys::pidfd_open(pid) {
            kept.push(Kept { pid, end });
        }
    }
    let deadline = Instant::now() + STEP_WAIT;
    kept.retain(|gdb| !ends_within(gdb, deadline.saturating_duration_since(Instant::now())));
    kept.iter().for_each(end_blocked);
}

fn ends_within(gdb: &Kept, wait: Duration) -> bool {
    let deadline = Instant::now() + wait;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let mut fds = [PollFd::new(gdb.end.as_fd(), PollFlags::POLLIN)];
        let timeout = PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX);
        match poll(&mut fds, timeout) {
            Err(nix::errno::Errno::EINTR) => {}
            found => return found.is_ok_and(|count| count > 0),
        }
    }
}

/// Ends a gdb that does not read its input.
fn end_blocked(gdb: &Kept) {
    let programs = traced_by(gdb.pid);
    // As long as it has not ended, the pid is its own; nobody reaps it before that.
    for _ in 0..INTERRUPTS_MAX {
        let before = asleep(gdb.pid);
        if ends_within(gdb, INTERRUPT_PAUSE) {
            return;
        }
        // One that does something may be letting programs go: that must not be interrupted.
        if before.is_some() && asleep(gdb.pid) == before {
            let _ = kill(Pid::from_raw(gdb.pid), Signal::SIGINT);
        }
    }
    for program in &programs {
        let _ = kill(Pid::from_raw(*program), Signal::SIGSTOP);
    }
    let by_itself = ends_within(gdb, STEP_WAIT);
    if !by_itself {
        let _ = kill(Pid::from_raw(gdb.pid), Signal::SIGKILL);
        ends_within(gdb, STEP_WAIT);
    }
    // What it had started has gone with it.
    for program in programs {
        if !by_itself {
            // It may have ended.
            let _ = restore::remove_breakpoints(program);
        }
        let _ = kill(Pid::from_raw(program), Signal::SIGCONT);
    }
}

/// How much processor time a process has used, where it sleeps.
fn asleep(pid: i32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in brackets may hold anything.
    let fields: Vec<&str> = stat.rsplit_once(") ")?.1.split(' ').collect();
    let ticks = |at: usize| fields.get(at)?.parse::<u64>().ok();
    let is_asleep = fields.first() == Some(&"S");
    Some(ticks(11)? + ticks(12)?).filter(|_| is_asleep)
}

/// The processes that a gdb traces.
fn traced_by(gdb: i32) -> Vec<i32> {
    let line = format!("TracerPid:\t{gdb}\n");
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(|pid: &i32| {
        let status = fs::read_to_string(format!("/proc/{pid}/status"));
        status.is_ok_and(|status| status.contains(&line))
    })
    .collect()
}
