//! The only unsafe code of this crate: what a child does between fork and exec, and system calls
//! that `nix` does not have.
//!
//! What a child does is async-signal-safe: system calls on values made before the fork.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

use nix::libc;
use nix::sched::{CpuSet, sched_setaffinity};
use nix::unistd::Pid;

/// Signals whose dispositions the C library keeps for itself.
const RESERVED: std::ops::RangeInclusive<i32> = 32..=33;
/// The largest signal number of Linux.
pub(crate) const SIGNAL_MAX: i32 = 64;

/// Makes the child a session of its own, with an empty signal mask and default dispositions.
///
/// It gets no signal when its parent dies: the end of its input ends it, and then it detaches
/// cleanly. At a SIGTERM while tasks run into breakpoints it leaves them stopped or killed by SIGTRAP.
///
/// gdb hangs at `run` where SIGCHLD is blocked, so a mask is never inherited. It is never killed
/// by SIGKILL: a gdb killed so leaves breakpoint bytes in what it had attached to.
pub(crate) fn prepare_gdb(command: &mut Command) {
    // SAFETY: the closure makes only async-signal-safe calls and allocates nothing.
    unsafe {
        command.pre_exec(become_gdb);
    }
}

/// The command's process uses these processors only.
pub(crate) fn bind(command: &mut Command, processors: CpuSet) {
    // SAFETY: the closure makes one system call and allocates nothing.
    unsafe {
        command.pre_exec(move || Ok(sched_setaffinity(Pid::from_raw(0), &processors)?));
    }
}

fn become_gdb() -> io::Result<()> {
    // SAFETY: plain system calls; the structures are valid and live on the stack.
    unsafe {
        if libc::setsid() < 0 {
            return Err(io::Error::last_os_error());
        }
        for signal in (1..=SIGNAL_MAX).filter(|signal| !RESERVED.contains(signal)) {
            // SIGKILL and SIGSTOP are refused, which does no harm.
            libc::signal(signal, libc::SIG_DFL);
        }
        let mut empty: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut empty);
        if libc::sigprocmask(libc::SIG_SETMASK, &raw const empty, std::ptr::null_mut()) < 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

/// A descriptor that becomes readable when the process ends.
pub(crate) fn pidfd_open(pid: i32) -> io::Result<OwnedFd> {
    let flags: libc::c_long = 0;
    // SAFETY: takes a pid and flags and returns a descriptor (close-on-exec) or -1.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, libc::c_long::from(pid), flags) };
    let fd = RawFd::try_from(fd).map_err(io::Error::other)?;
    if fd == -1 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call has just returned it, and nobody else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Makes this process the parent of descendants that lose theirs, from now on.
pub(crate) fn adopt_orphans() {
    let on: libc::c_ulong = 1;
    // SAFETY: sets a flag of this process and touches no memory.
    unsafe {
        libc::prctl(libc::PR_SET_CHILD_SUBREAPER, on);
    }
}
