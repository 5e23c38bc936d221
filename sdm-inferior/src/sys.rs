//! The only unsafe code of this crate. The kernel sends a process SIGSTOP when a pipe's other end closes. A timer sends
//! this process SIGCONT at an interval. A fork makes the warden, a copy of the server that cleans up after its death.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::time::Duration;

use nix::libc;
use nix::sys::signal::{
    SaFlags, SigAction, SigEvent, SigHandler, SigSet, SigevNotify, Signal, sigaction,
};
use nix::sys::timer::{Expiration, Timer, TimerSetTimeFlags};
use nix::time::ClockId;

/// `fcntl` command that selects the signal for a ready file. The `libc` crate defines it for few architectures.
const F_SETSIG: i32 = 10;

/// Has the kernel send the process SIGSTOP when the last copy of this pipe's other end is closed. The pipe is never
/// written to.
pub(crate) fn stop_at_end_of(pipe: &OwnedFd, pid: i32) -> io::Result<()> {
    set(pipe, libc::F_SETOWN, pid)?;
    set(pipe, F_SETSIG, libc::SIGSTOP)?;
    set(pipe, libc::F_SETFL, libc::O_ASYNC | libc::O_NONBLOCK)
}

/// Cancels [`stop_at_end_of`], also for other copies of this descriptor.
pub(crate) fn untie(pipe: &OwnedFd) {
    // The descriptor is open, and accepts any flags.
    let _ = set(pipe, libc::F_SETFL, libc::O_NONBLOCK);
}

/// A kernel timer that sends this process SIGCONT periodically, so that a stop of this process does not last. The timer
/// runs on while the process is stopped.
pub(crate) struct ContinueTimer(Timer);

impl ContinueTimer {
    /// Starts the timer. The first signal comes after `every`, and further signals follow at that interval.
    pub(crate) fn start(every: Duration) -> io::Result<Self> {
        // A timer whose signal is ignored, as SIGCONT is by default, may expire only once.
        let action = SigAction::new(
            SigHandler::Handler(on_nothing),
            SaFlags::SA_RESTART,
            SigSet::empty(),
        );
        // SAFETY: the handler does nothing.
        unsafe { sigaction(Signal::SIGCONT, &action) }?;
        let signal = SigevNotify::SigevSignal {
            signal: Signal::SIGCONT,
            si_value: 0,
        };
        let mut clock = Self(Timer::new(ClockId::CLOCK_MONOTONIC, SigEvent::new(signal))?);
        clock.tick(every)?;
        Ok(clock)
    }

    /// Changes the interval of the timer.
    pub(crate) fn tick(&mut self, every: Duration) -> io::Result<()> {
        let every = Expiration::Interval(every.into());
        Ok(self.0.set(every, TimerSetTimeFlags::empty())?)
    }
}

extern "C" fn on_nothing(_: libc::c_int) {}

/// Sets a property of a descriptor by `fcntl`.
fn set(fd: &OwnedFd, what: i32, value: i32) -> io::Result<()> {
    // SAFETY: the descriptor is open, the properties set here are numbers, and no memory is accessed.
    match unsafe { libc::fcntl(fd.as_raw_fd(), what, value) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// Renames this process, and hides its arguments and environment from process lists. Do not read either afterwards.
fn rename(name: &std::ffi::CStr) {
    let Ok(stat) = sdm_system::proc::own().stat() else {
        return;
    };
    // Start of the arguments, and end of the environment, which follows them.
    let field = |number| stat.field::<usize>(number).unwrap_or(0);
    let (begin, end) = (field(48), field(51));
    let length = end.saturating_sub(begin);
    let text = name.to_bytes_with_nul();
    // SAFETY: the kernel reports that these bytes of the process hold the arguments and the environment, which are
    // not used any more. The name is a null-terminated string.
    unsafe {
        libc::prctl(libc::PR_SET_NAME, name.as_ptr());
        if begin != 0 && length >= text.len() {
            let at = begin as *mut u8;
            std::ptr::write_bytes(at, 0, length);
            std::ptr::copy_nonoverlapping(text.as_ptr(), at, text.len());
        }
    }
}

/// Forks a copy of this process in a session of its own. The copy holds only the read end of a pipe, executes `run` and
/// exits. Returns the write end. A stopped copy is resumed when this thread ends.
pub(crate) fn fork_copy(name: &std::ffi::CStr, run: impl FnOnce(OwnedFd)) -> io::Result<OwnedFd> {
    let (reader, writer) = nix::unistd::pipe2(nix::fcntl::OFlag::O_CLOEXEC)?;
    // SAFETY: the C library makes its allocator usable in a copy with one thread. `run` uses the allocator, files and
    // system calls, and no lock that another thread could hold.
    match unsafe { nix::unistd::fork() }? {
        nix::unistd::ForkResult::Parent { .. } => Ok(writer),
        nix::unistd::ForkResult::Child => {
            // SAFETY: plain system calls. Descriptors that are closed here have owners in this copy that never run
            // again, as the copy ends by `_exit`.
            unsafe {
                libc::setsid();
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGCONT);
                sdm_system::close_all_but(reader.as_fd(), 0);
            }
            rename(name);
            run(reader);
            // SAFETY: the call ends this copy at once.
            unsafe { libc::_exit(0) }
        }
    }
}
