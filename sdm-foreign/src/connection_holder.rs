//! The keeper: a second process that holds the connection to a PMIx server open if this process dies while it connects.
//!
//! OpenPMIx (4 and 5, as of Open MPI 5.0.11) crashes if a tool hangs up between its connection message and the server's
//! last reply to it. The server then removes a namespace from a list that does not contain it; `prterun` dies, and the
//! user's job with it. So a kill of this process at that moment (a time-out, the death of its parent, a person) would
//! kill the job. The *keeper* shares this process's descriptor table from before libpmix is loaded. It does nothing
//! while this process lives. Afterwards the keeper closes everything but connected sockets. It holds those until the
//! server has hung up or ended, or has sent all its replies, which come in one go. It holds no longer than it must, as
//! `prterun` does not end as long as a tool is connected.
//!
//! After a regular goodbye the keeper waits until the server has hung up too and has forgotten the tool. A second later
//! the server takes the tool's name off its lists, also where a new tool has that name by then. Until then the server
//! refuses a tool of the same name, except for root: it compares the user with user 0. A tool that connects at that
//! moment may lose the name, and so may all later ones. Only then may the next tool connect.
//!
//! A stopped server sends no replies. The keeper does not ask a stopped server, and does not count that time.

use std::collections::BTreeMap;
use std::os::fd::RawFd;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use nix::libc;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::waitpid;
use nix::unistd::Pid;

use sdm_system::proc;

use crate::sys::{self, Connection};

/// The name of the keeper's process: at most 15 bytes.
const NAME: &std::ffi::CStr = c"sdm-pmix-hold";
/// Time limit for the first reply of a running server.
const REPLIES_TAKE: Duration = Duration::from_secs(10);
/// Maximum pause between two replies of a running server, which are some hundred bytes in all.
const PAUSE_MAX: Duration = Duration::from_secs(2);
/// First interval between checks of the server, which mostly closes its connection at once.
const LOOK_FIRST: Duration = Duration::from_millis(1);
/// Longest interval between checks of the server. Each interval is twice the one before.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Time limit for a server to hang up after a goodbye and to become idle; a server without processor time needs
/// that long.
const END_TAKES: Duration = Duration::from_secs(30);
/// Time for which a `prterun` (Open MPI 5.0.11) keeps the name of a tool that has left, and a quarter more.
const NAME_STAYS: Duration = Duration::from_millis(1250);
/// Processor time after which a thread of the server that never sleeps counts as done with its earlier work. Such a
/// thread may pass on much output.
const BUSY: Duration = Duration::from_millis(20);
/// Descriptor numbers below this one are examined. This process has few descriptors: one for the answer, and a few of
/// libpmix.
const DESCRIPTORS_MAX: RawFd = 1024;

/// Refuses a server that is stopped.
pub(crate) fn check_runs(server: i32) -> Result<()> {
    let process = proc::of(server);
    let Some(state) = process.state().filter(|it| it.is_stopped() || it.is_held()) else {
        return Ok(());
    };
    let program = process.program().unwrap_or_default();
    let program = program.file_name().unwrap_or_default().to_string_lossy();
    let how = match state.is_held() {
        true => "stopped by a debugger",
        false => "stopped",
    };
    bail!(
        "{program} (pid {server}) is {how} and cannot answer: continue it (kill -CONT {server}) and try again"
    );
}

/// The keeper of this process.
pub(crate) struct Keeper {
    pid: Pid,
    server: Watched,
}

impl Keeper {
    /// Kills the keeper, which must have no connection to keep open, and waits until the server has removed the tool.
    pub(crate) fn dismiss(self) {
        // The child has not been waited for, so no other process can have its pid.
        let _ = kill(self.pid, Signal::SIGKILL);
        let _ = waitpid(self.pid, None);
        self.server.wait_until_forgotten();
    }
}

/// Starts the keeper of this process's connections to a server. This process must have one thread.
///
/// `held` is the descriptor of the tool lock, which stays open as long as the keeper lives: other tools wait for that
/// lock. `same_name` is true for a server that knows all of SDM's tools by one name.
pub(crate) fn start(server: i32, held: RawFd, same_name: bool) -> Result<Keeper> {
    let own = std::process::id().cast_signed();
    // Both descriptors are opened here, before either pid can be reused.
    let own = sys::pidfd_open(own).context("cannot open a pidfd of this process")?;
    let watched = Watched {
        end: sys::pidfd_open(server).with_context(|| format!("process {server}"))?,
        process: proc::of(server),
        same_name,
    };
    let forked = sys::fork_sharing_descriptors();
    match forked.context("cannot start the process that holds the connection to the PMIx server")? {
        sys::Forked::Child => keep(own, &watched, held),
        sys::Forked::Parent(keeper) => Ok(Keeper {
            pid: Pid::from_raw(keeper),
            server: watched,
        }),
    }
}

/// Second descriptors of this process's connections, by which the keeper sees when the server hangs up.
pub(crate) fn watch_connections() -> Vec<RawFd> {
    let all = (0..DESCRIPTORS_MAX).filter(|fd| sys::is_connected(*fd));
    let all: Vec<RawFd> = all.collect();
    all.into_iter().filter_map(sys::duplicate).collect()
}

/// State of each thread by its id: whether it sleeps, and its processor time in nanoseconds.
type Threads = BTreeMap<i32, (bool, u64)>;

/// The server as its keeper sees it.
struct Watched {
    /// A descriptor that becomes readable when the server has ended.
    end: RawFd,
    process: proc::Process,
    /// True if the server knows all of SDM's tools by one name.
    same_name: bool,
}

impl Watched {
    /// Waits for `wait` at most; true if the server has ended by then.
    fn ends_within(&self, wait: Duration) -> bool {
        sys::wait_readable(&mut [poll_of(self.end)], Some(wait))
    }

    fn is_stopped(&self) -> bool {
        let state = self.process.state();
        state.is_some_and(|it| it.is_stopped() || it.is_held())
    }

    /// Waits until the server has removed a tool that has disconnected. The server is taken to be done when its
    /// threads sleep, also after a delay of [`NAME_STAYS`].
    fn wait_until_forgotten(&self) {
        self.wait_for_rest();
        if !self.ends_within(NAME_STAYS) {
            self.wait_for_rest();
        }
    }

    /// Waits until the server is idle: each of its threads has slept from one check to the next, or has run for
    /// [`BUSY`] since the first check. Waits for [`END_TAKES`] at most, and not after the end of the server.
    fn wait_for_rest(&self) {
        let deadline = Instant::now() + END_TAKES;
        let first = self.threads();
        let mut before = first.clone();
        while Instant::now() < deadline && !self.ends_within(LOOK_FIRST) {
            let now = self.threads();
            let is_done = |(id, (sleeps, ran)): (&i32, &(bool, u64))| {
                let ran_since = |all: &Threads| all.get(id).map(|it| ran.saturating_sub(it.1));
                (*sleeps && ran_since(&before) == Some(0))
                    || ran_since(&first).is_some_and(|it| Duration::from_nanos(it) >= BUSY)
            };
            if now.iter().all(is_done) {
                return;
            }
            before = now;
        }
    }

    fn threads(&self) -> Threads {
        let ids = self.process.thread_ids();
        let look = |id| {
            let thread = self.process.thread(id);
            let sleeps = thread.state() == Some(proc::State('S'));
            (id, (sleeps, thread.ran_ns().unwrap_or(0)))
        };
        ids.map(|ids| ids.map(look).collect()).unwrap_or_default()
    }
}

/// Main function of the keeper process, which never returns.
fn keep(parent: RawFd, server: &Watched, held: RawFd) -> ! {
    sys::detach(NAME);
    sys::wait_readable(&mut [poll_of(parent)], None);
    // The parent has ended, so the descriptor table now belongs to this process alone. The descriptors that the
    // keeper does not need are closed.
    let mut sockets = Vec::new();
    for fd in 0..DESCRIPTORS_MAX {
        match fd {
            fd if fd == server.end || fd == held => {}
            fd if sys::is_connected(fd) => sockets.push(fd),
            fd => sys::close(fd),
        }
    }
    let (mut ran, mut received, mut pause) = (Duration::ZERO, 0, LOOK_FIRST);
    loop {
        sockets.retain(|fd| {
            let is_over = sys::connection(*fd) == Connection::Over;
            if is_over {
                sys::close(*fd);
            }
            !is_over
        });
        let is_left = |fd: &RawFd| sys::connection(*fd) == Connection::Left;
        let limit = match sockets.iter().all(is_left) {
            true => END_TAKES,
            false if received > 0 => PAUSE_MAX,
            false => REPLIES_TAKE,
        };
        if sockets.is_empty() || ran >= limit {
            break;
        }
        let begun = Instant::now();
        if server.ends_within(pause) {
            sys::exit(0);
        }
        let before = received;
        received = sockets.iter().map(|fd| sys::received(*fd)).sum();
        // A server that stopped in between may not have run at all.
        ran = match received != before || server.is_stopped() {
            true => Duration::ZERO,
            false => ran + begun.elapsed().min(2 * pause),
        };
        pause = (2 * pause).min(LOOK_EVERY);
    }
    // This ends the connections that are still open.
    sockets.into_iter().for_each(sys::close);
    if server.same_name {
        server.wait_until_forgotten();
    }
    sys::exit(0)
}

fn poll_of(fd: RawFd) -> libc::pollfd {
    libc::pollfd {
        fd,
        events: libc::POLLIN,
        revents: 0,
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;

    use super::*;

    #[test]
    fn dismissed_keeper_process_ends() {
        let held = std::io::stdin();
        let keeper = start(std::process::id().cast_signed(), held.as_raw_fd(), true).unwrap();
        let pid = keeper.pid.as_raw();
        assert!(proc::of(pid).state().is_some());
        keeper.dismiss();
        assert_eq!(proc::of(pid).state(), None);
    }
}
