//! System calls without a safe wrapper: signals as bytes of a pipe, signals to a thread, closed standard output, and
//! the size of the terminal.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, IntoRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

use nix::errno::Errno;
use nix::libc;
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};

/// The pipe that the signal handler writes to; -1 before it exists.
static PIPE: AtomicI32 = AtomicI32::new(-1);

/// True if standard output was closed when this process began.
static NO_OUTPUT: AtomicBool = AtomicBool::new(false);

/// Checks standard output before `main`, from the `.init_array` section that the loader runs. Rust's runtime opens
/// /dev/null in place of a closed standard descriptor, which then looks like any other.
// SAFETY: the loader calls what stands here as the C function that it is; it uses nothing that is not there yet.
#[used]
#[unsafe(link_section = ".init_array")]
static LOOK_AT_OUTPUT: extern "C" fn() = look_at_output;

extern "C" fn look_at_output() {
    // SAFETY: only asks whether there is such a descriptor.
    let flags = unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFD) };
    NO_OUTPUT.store(flags == -1, Ordering::Relaxed);
}

/// True if standard output was closed when this process began, so that output is lost.
pub(crate) fn began_without_output() -> bool {
    NO_OUTPUT.load(Ordering::Relaxed)
}

/// Writes each of these signals as one byte, its number, to the returned pipe. Ignored signals stay ignored
/// (`nohup`). Signals that the parent process had blocked are received by a thread of their own, so that
/// child processes inherit the mask.
///
/// # Errors
/// The pipe or a handler cannot be created, or this is the second call.
pub(crate) fn signal_pipe(signals: &[Signal]) -> io::Result<OwnedFd> {
    let flags = nix::fcntl::OFlag::O_CLOEXEC;
    let (from, to) = nix::unistd::pipe2(flags)?;
    nix::fcntl::fcntl(
        &to,
        nix::fcntl::FcntlArg::F_SETFL(nix::fcntl::OFlag::O_NONBLOCK),
    )?;
    let end = to.into_raw_fd();
    if PIPE
        .compare_exchange(-1, end, Ordering::SeqCst, Ordering::SeqCst)
        .is_err()
    {
        return Err(io::Error::other("signal handling is already set up"));
    }
    let action = SigAction::new(
        SigHandler::Handler(on_signal),
        SaFlags::SA_RESTART,
        SigSet::empty(),
    );
    for signal in signals {
        // SAFETY: the handler only writes to a pipe and puts errno back, which is async-signal-safe.
        let before = unsafe { sigaction(*signal, &action) }?;
        if matches!(before.handler(), SigHandler::SigIgn) {
            // SAFETY: this puts back what was there.
            unsafe { sigaction(*signal, &before) }?;
        }
    }
    let blocked = SigSet::thread_get_mask()?;
    if signals.iter().any(|it| blocked.contains(*it)) {
        let heard: SigSet = signals.iter().copied().collect();
        let hear = move || {
            while heard.thread_unblock().is_ok() {
                nix::unistd::pause();
            }
        };
        std::thread::Builder::new().spawn(hear)?;
    }
    Ok(from)
}

/// Makes this process survive a signal. Child processes keep the default action. An ignored signal stays
/// ignored.
///
/// # Errors
/// The handler cannot be set.
pub(crate) fn outlive(signal: Signal) -> io::Result<()> {
    let action = SigAction::new(
        SigHandler::Handler(on_nothing),
        SaFlags::SA_RESTART,
        SigSet::empty(),
    );
    // SAFETY: the handler does nothing.
    let before = unsafe { sigaction(signal, &action) }?;
    if matches!(before.handler(), SigHandler::SigIgn) {
        // SAFETY: this puts back what was there.
        unsafe { sigaction(signal, &before) }?;
    }
    Ok(())
}

extern "C" fn on_nothing(_number: libc::c_int) {}

extern "C" fn on_signal(number: libc::c_int) {
    let errno = Errno::last_raw();
    let byte = [u8::try_from(number).unwrap_or(0)];
    let fd = PIPE.load(Ordering::SeqCst);
    // SAFETY: `byte` lives through the call and holds one byte; `fd` is never closed. A full pipe
    // already holds more signals than anybody needs.
    unsafe {
        libc::write(fd, byte.as_ptr().cast(), 1);
    }
    Errno::set_raw(errno);
}

/// Interrupts blocking system calls of one thread.
#[derive(Clone, Copy)]
pub(crate) struct Interrupt(libc::pthread_t);

// SAFETY: it names a thread and is only handed to `pthread_kill`, from whichever thread; it is a number in one C library and a
// pointer in another.
unsafe impl Send for Interrupt {}
// SAFETY: as above; nothing can be changed through it.
unsafe impl Sync for Interrupt {}

impl Interrupt {
    /// An interrupter for the calling thread, which must outlive it.
    pub(crate) fn of_this_thread() -> io::Result<Self> {
        // Without SA_RESTART. By default this signal does nothing at all.
        let action = SigAction::new(
            SigHandler::Handler(on_nothing),
            SaFlags::empty(),
            SigSet::empty(),
        );
        // SAFETY: the handler does nothing.
        unsafe { sigaction(Signal::SIGURG, &action) }?;
        // SAFETY: only asks who the calling thread is.
        Ok(Self(unsafe { libc::pthread_self() }))
    }

    /// Interrupts the thread's current system call.
    pub(crate) fn send(self) {
        // SAFETY: the thread lives, which whoever made this has promised.
        unsafe { libc::pthread_kill(self.0, libc::SIGURG) };
    }
}

/// Redirects these descriptors to /dev/null, also for an interrupted write.
pub(crate) fn lead_nowhere(fds: &[RawFd]) {
    // Without this file the descriptors stay as they are.
    if let Ok(null) = std::fs::OpenOptions::new().write(true).open("/dev/null") {
        for fd in fds {
            // SAFETY: both are descriptors, and whoever writes to the second finds another file there.
            unsafe { libc::dup2(null.as_raw_fd(), *fd) };
        }
    }
}

/// Size of the terminal behind `fd`: columns, and lines. None if it is not a terminal, or if its width is not known.
pub(crate) fn terminal_size(fd: &impl AsRawFd) -> Option<(usize, usize)> {
    let fd: RawFd = fd.as_raw_fd();
    let mut size = libc::winsize {
        ws_row: 0,
        ws_col: 0,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    // SAFETY: TIOCGWINSZ writes one `winsize`, which `size` is.
    let result = unsafe { libc::ioctl(fd, libc::TIOCGWINSZ, &raw mut size) };
    (result == 0 && size.ws_col > 0).then_some((size.ws_col.into(), size.ws_row.into()))
}
