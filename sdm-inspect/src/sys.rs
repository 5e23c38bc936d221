//! The unsafe calls: those of `ptrace` and `waitpid` that `nix` does not cover, fork, file mapping, and a thread's
//! arrival at an address.
#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::num::NonZeroUsize;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use std::sync::atomic::{AtomicI32, Ordering};

use nix::errno::Errno;
use nix::libc;
use nix::sys::mman::{MapFlags, ProtFlags, mmap};
use nix::sys::signal::{
    SaFlags, SigAction, SigHandler, SigSet, SigmaskHow, Signal, kill, sigaction,
};
use nix::sys::wait::waitpid;
use nix::unistd::{ForkResult, Pid, fork};

/// Pid of the child from [`fork_off`]; 0 if there is none.
static CHILD: AtomicI32 = AtomicI32::new(0);

/// Makes SIGTERM end the child from [`fork_off`] and then this process. So no process is traced any more when this
/// process has ended. SIGTERM is unblocked: a process inherits the signal mask of its parent, and a server blocks it.
///
/// # Errors
/// [`io::Error`] of `sigaction(2)` or `pthread_sigmask(3)`.
pub(crate) fn end_after_child() -> io::Result<()> {
    extern "C" fn end(_: libc::c_int) {
        let child = CHILD.load(Ordering::SeqCst);
        // SAFETY: these calls are async-signal-safe. No other signal interrupts the wait.
        unsafe {
            if child > 0 {
                libc::kill(child, libc::SIGKILL);
                libc::waitpid(child, std::ptr::null_mut(), 0);
            }
            libc::_exit(0)
        }
    }
    let action = SigAction::new(SigHandler::Handler(end), SaFlags::empty(), SigSet::all());
    // SAFETY: the handler makes async-signal-safe calls only.
    unsafe { sigaction(Signal::SIGTERM, &action) }?;
    SigSet::from_iter([Signal::SIGTERM]).thread_unblock()?;
    Ok(())
}

/// Forks this process. It has at most one such child at a time.
///
/// # Errors
/// [`io::Error`] if the system has no resources for another process.
pub(crate) fn fork_off() -> io::Result<ForkResult> {
    without_sigterm(|| {
        // SAFETY: the C library handles its own locks in a fork. The child takes no other locks: it makes system
        // calls and allocates.
        let forked = unsafe { fork() }?;
        if let ForkResult::Parent { child } = forked {
            CHILD.store(child.as_raw(), Ordering::SeqCst);
        }
        Ok(forked)
    })
}

/// Kills the child from [`fork_off`], and waits until it has ended.
///
/// # Errors
/// [`io::Error`] if the signal mask cannot be changed.
pub(crate) fn end_child(child: Pid) -> io::Result<()> {
    without_sigterm(|| {
        let _ = kill(child, Signal::SIGKILL);
        while let Err(Errno::EINTR) = waitpid(child, None) {}
        CHILD.store(0, Ordering::SeqCst);
        Ok(())
    })
}

/// Carries out `change` while SIGTERM is blocked, so that its handler sees [`CHILD`] as it is.
fn without_sigterm<T>(change: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    let sigterm = SigSet::from_iter([Signal::SIGTERM]);
    let before = sigterm.thread_swap_mask(SigmaskHow::SIG_BLOCK)?;
    let changed = change();
    before.thread_set_mask()?;
    changed
}

/// Waits until a child or a traced thread changes state. Returns its id and its wait status; `None` if there is none
/// to wait for.
///
/// # Errors
/// [`io::Error`] from `waitpid(2)`.
pub(crate) fn wait_any() -> io::Result<Option<(i32, i32)>> {
    let mut status = 0;
    loop {
        // SAFETY: the call writes one `int`, to `status`.
        let id = unsafe { libc::waitpid(-1, &raw mut status, libc::__WALL) };
        if id > 0 {
            return Ok(Some((id, status)));
        }
        match io::Error::last_os_error() {
            error if error.raw_os_error() == Some(libc::ECHILD) => return Ok(None),
            error if error.kind() == io::ErrorKind::Interrupted => {}
            error => return Err(error),
        }
    }
}

/// Detaches from a stopped thread, which resumes with a signal of this number or without one (0).
pub(crate) fn detach(id: i32, signal: i32) -> io::Result<()> {
    let nothing = std::ptr::null_mut::<libc::c_void>();
    let signal = std::ptr::without_provenance_mut::<libc::c_void>(signal.unsigned_abs() as usize);
    // SAFETY: this request reads no memory. Both pointers are numbers.
    match unsafe { libc::ptrace(libc::PTRACE_DETACH, id, nothing, signal) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// Maps a file for the life of this process, so that references to it never expire.
///
/// If the file is truncated later a read kills this process by SIGBUS. The process traces no other process then.
///
/// # Errors
/// [`io::Error`] if the file is empty or cannot be mapped.
pub(crate) fn map_for_good(file: &File) -> io::Result<&'static [u8]> {
    let length = usize::try_from(file.metadata()?.len()).map_err(io::Error::other)?;
    let length = NonZeroUsize::new(length).ok_or(io::ErrorKind::UnexpectedEof)?;
    // SAFETY: the kernel chooses an unused address, and the mapping is never removed. It is private and only read. A
    // write to the file by another process can change the bytes, so each number is checked where it is used.
    let bytes = unsafe {
        let start = mmap(
            None,
            length,
            ProtFlags::PROT_READ,
            MapFlags::MAP_PRIVATE,
            file,
            0,
        )?;
        std::slice::from_raw_parts(start.cast::<u8>().as_ptr(), length.get())
    };
    Ok(bytes)
}

/// Ends this forked process without running the exit handlers of its parent.
pub(crate) fn leave() -> ! {
    // SAFETY: the call does not return.
    unsafe { libc::_exit(0) }
}

/// The start of `struct perf_event_attr` (`PERF_ATTR_SIZE_VER1`) of `perf_event_open(2)`.
#[repr(C)]
#[derive(Default)]
struct PerfEvent {
    kind: u32,
    bytes: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_events: u32,
    breakpoint_kind: u32,
    address: u64,
    address_bytes: u64,
}

/// Has the kernel count, once, that a thread reaches an address. Reading the returned descriptor gives the count.
pub(crate) fn note_arrival(thread: i32, address: u64) -> io::Result<OwnedFd> {
    const PERF_TYPE_BREAKPOINT: u32 = 5;
    const HW_BREAKPOINT_X: u32 = 4;
    /// Flags: initially disabled; the kernel and the hypervisor are excluded.
    const FLAGS: u64 = 1 | 1 << 5 | 1 << 6;
    const PERF_FLAG_FD_CLOEXEC: libc::c_long = 8;
    /// The request that enables the event for as many overflows as its argument says.
    const PERF_EVENT_IOC_REFRESH: libc::Ioctl = 0x2402;
    let event = PerfEvent {
        kind: PERF_TYPE_BREAKPOINT,
        bytes: u32::try_from(size_of::<PerfEvent>()).map_err(io::Error::other)?,
        sample_period: 1,
        flags: FLAGS,
        breakpoint_kind: HW_BREAKPOINT_X,
        address,
        address_bytes: size_of::<libc::c_long>() as u64,
        ..PerfEvent::default()
    };
    let (thread, any) = (libc::c_long::from(thread), libc::c_long::from(-1));
    // SAFETY: the call reads the structure, which contains its own size, and returns a descriptor or -1.
    let fd = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            &raw const event,
            thread,
            any,
            any,
            PERF_FLAG_FD_CLOEXEC,
        )
    };
    let fd = RawFd::try_from(fd).map_err(io::Error::other)?;
    if fd == -1 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call has just returned the descriptor, which has no other owner.
    let fd = unsafe { OwnedFd::from_raw_fd(fd) };
    let times: libc::c_int = 1;
    // SAFETY: takes an open descriptor and a number.
    match unsafe { libc::ioctl(fd.as_raw_fd(), PERF_EVENT_IOC_REFRESH, times) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(fd),
    }
}
