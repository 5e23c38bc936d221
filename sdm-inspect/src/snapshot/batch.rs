//! Takes snapshots in a child process, so that a process that does not stop can be given up: when the child exits, the
//! kernel detaches it from all processes.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::Signal;
use nix::unistd::{ForkResult, Pid, getppid, pipe};

use super::capture::{take, take_stopped};
use super::kernel_wait::{self, KernelWait};
use super::loose_program::TracedPrograms;
use super::{CaptureRequest, Refusal, Snapshot};
use crate::sys;

/// Maximum size of an encoded snapshot, in bytes. No more is allocated for one.
const BYTES_MAX: usize = 512 << 20;

/// Time after which a process that has not stopped is examined: a thread may be in state D, while its other threads are
/// stopped.
const PROMPT: Duration = Duration::from_millis(100);

type Taken = Result<Snapshot, Refusal>;

/// Takes a snapshot of each of these processes in turn. All threads of a process are stopped together. Each process has
/// the time `patience` to stop. While a thread in state D is waited for, no thread of its process is stopped.
#[must_use]
pub fn take_all(wanted: &[CaptureRequest], patience: Duration) -> Vec<Taken> {
    let traced = TracedPrograms::among(wanted.iter().map(|it| it.pid));
    let mut all = Vec::with_capacity(wanted.len());
    // Whether the next process was in state D.
    let mut has_waited = false;
    while let Some(rest) = wanted.get(all.len()..).filter(|rest| !rest.is_empty()) {
        let taken = all.len();
        match take_some(rest, &traced, (patience, has_waited), &mut all) {
            Ok(None) => {}
            Ok(Some(wait)) => all.extend(wait.outlasts().map(Err)),
            Err(error) => all.push(Err(error.into())),
        }
        has_waited = all.len() == taken;
    }
    all
}

/// Takes snapshots until one fails, or until a process does not stop because a thread is in state D. Returns that
/// thread; `None` if there was none. With `has_waited` the first process has all its time, because its thread in state
/// D was waited for before.
fn take_some(
    wanted: &[CaptureRequest],
    traced: &TracedPrograms,
    (patience, has_waited): (Duration, bool),
    all: &mut Vec<Taken>,
) -> io::Result<Option<KernelWait>> {
    let (from, to) = pipe()?;
    let parent = nix::unistd::getpid();
    let child = match sys::fork_off()? {
        ForkResult::Child => {
            drop(from);
            take_and_tell(wanted, traced, File::from(to), parent);
            sys::leave()
        }
        ForkResult::Parent { child } => child,
    };
    drop(to);
    let mut from = File::from(from);
    let mut failed = None;
    let mut waits = None;
    for (at, wanted) in wanted.iter().enumerate() {
        let may_wait = at > 0 || !has_waited;
        if may_wait && matches!(wait(&from, Instant::now() + PROMPT), Ok(false)) {
            waits = kernel_wait::of(wanted.pid);
            if waits.is_some() {
                break;
            }
        }
        let until = Instant::now() + patience;
        match receive(&mut from, until) {
            Ok(taken) => {
                let is_last = taken.is_err();
                all.push(taken);
                if is_last {
                    break;
                }
            }
            Err(error) => {
                failed = Some(match error.kind() {
                    io::ErrorKind::TimedOut => Refusal::Stuck,
                    _ => error.into(),
                });
                break;
            }
        }
    }
    // The child may be waiting for a thread that does not stop.
    sys::end_child(child)?;
    all.extend(failed.map(Err));
    Ok(waits)
}

/// Runs in the child. After the first failure it exits, because a thread may remain that is not stopped yet and cannot
/// be detached.
fn take_and_tell(wanted: &[CaptureRequest], traced: &TracedPrograms, mut to: File, parent: Pid) {
    let bound = nix::sys::prctl::set_pdeathsig(Signal::SIGKILL);
    if bound.is_err() || getppid() != parent {
        return;
    }
    for wanted in wanted {
        let taken = match traced.stopped(wanted.pid) {
            Some(threads) => take_stopped(wanted, threads),
            None => take(wanted),
        };
        let told = send(&mut to, &taken);
        if taken.is_err() || told.is_err() {
            break;
        }
    }
}

fn send(to: &mut File, taken: &Taken) -> io::Result<()> {
    let bytes = postcard::to_stdvec(taken).map_err(io::Error::other)?;
    let length = u32::try_from(bytes.len()).map_err(io::Error::other)?;
    to.write_all(&length.to_le_bytes())?;
    to.write_all(&bytes)
}

fn receive(from: &mut File, until: Instant) -> io::Result<Taken> {
    let mut length = [0; 4];
    fill(from, &mut length, until)?;
    let length = usize::try_from(u32::from_le_bytes(length)).map_err(io::Error::other)?;
    if length > BYTES_MAX {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut bytes = vec![0; length];
    fill(from, &mut bytes, until)?;
    postcard::from_bytes(&bytes).map_err(io::Error::other)
}

fn fill(from: &mut File, to: &mut [u8], until: Instant) -> io::Result<()> {
    let mut filled = 0;
    while filled < to.len() {
        if !wait(from, until)? {
            return Err(io::ErrorKind::TimedOut.into());
        }
        match from.read(&mut to[filled..])? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            count => filled += count,
        }
    }
    Ok(())
}

/// Waits until the file has bytes to read or has ended. False if neither happens before `until`.
fn wait(from: &File, until: Instant) -> io::Result<bool> {
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let timeout = PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX);
        let mut fds = [PollFd::new(from.as_fd(), PollFlags::POLLIN)];
        match poll(&mut fds, timeout) {
            Ok(count) => return Ok(count > 0),
            Err(Errno::EINTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}
