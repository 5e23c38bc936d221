//! Unsafe system calls: a child between fork and exec, inherited descriptors, pidfds, signals, file capabilities,
//! counters of a TCP connection, and registers of a traced thread.
#![allow(unsafe_code)]

use std::ffi::CString;
use std::io::{self, Write};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use nix::errno::Errno;
use nix::libc;
use nix::sys::signal::{SigSet, Signal, kill};
use nix::sys::wait::{Id, WaitPidFlag, waitid};
use nix::unistd::Pid;

/// Number of words in `struct user_regs_struct`.
#[cfg(target_arch = "x86_64")]
pub const REGISTER_WORDS: usize = 27;
#[cfg(not(target_arch = "x86_64"))]
pub const REGISTER_WORDS: usize = 34;

/// Confines the command's process, for running another user's code. The process gets a session of its own, without a
/// terminal to inject input into. It has no descriptors but its three streams, and programs cannot give it privileges.
pub fn confine(command: &mut Command) {
    // SAFETY: the closure allocates nothing, takes no lock and only makes async-signal-safe calls.
    unsafe {
        command.pre_exec(give_up);
    }
}

/// Has the kernel kill the command's process when the thread that starts it ends in any way.
pub fn goes_with_its_parent(command: &mut Command) {
    signal_at_parents_end(command, Signal::SIGKILL);
}

/// Makes `command` start its process in a new session, which signals of the terminal do not reach. When the thread that
/// starts the process ends, the kernel sends the process `at_parents_end`, unless the process changes that setting.
pub fn in_own_session(command: &mut Command, at_parents_end: Signal) {
    // The signal is asked for first: the kernel resumes a stopped process that it has left without a parent, but only
    // in the parent's own group.
    signal_at_parents_end(command, at_parents_end);
    // SAFETY: the closure makes one async-signal-safe call.
    unsafe {
        command.pre_exec(|| Ok(nix::unistd::setsid().map(drop)?));
    }
}

/// Has the kernel send the command's process this signal when the thread that starts it ends. The request is made
/// before the program begins, as a process that is stopped at its beginning could not make it.
fn signal_at_parents_end(command: &mut Command, signal: Signal) {
    let parent = Pid::this();
    let bind = move || {
        nix::sys::prctl::set_pdeathsig(signal)?;
        match nix::unistd::getppid() == parent {
            true => Ok(()),
            // The parent ended before this process could be bound to it.
            false => Err(io::Error::from_raw_os_error(libc::ESRCH)),
        }
    };
    // SAFETY: the closure allocates nothing, takes no lock and only makes async-signal-safe calls.
    unsafe {
        command.pre_exec(bind);
    }
}

/// True if SIGPIPE was ignored when this process began.
static WITHOUT_SIGPIPE: AtomicBool = AtomicBool::new(false);

/// Notes the disposition of SIGPIPE before `main`, from the `.init_array` section that the loader runs. Rust's runtime
/// ignores it from then on.
// SAFETY: the loader calls what stands here as the C function that it is; it uses nothing that is not there yet.
#[used]
#[unsafe(link_section = ".init_array")]
static LOOK_AT_SIGPIPE: extern "C" fn() = look_at_sigpipe;

extern "C" fn look_at_sigpipe() {
    // SAFETY: the call only writes the present disposition, to `now`.
    let handler = unsafe {
        let mut now: libc::sigaction = std::mem::zeroed();
        libc::sigaction(libc::SIGPIPE, std::ptr::null(), &raw mut now);
        now.sa_sigaction
    };
    WITHOUT_SIGPIPE.store(handler == libc::SIG_IGN, Ordering::Relaxed);
}

/// True if SIGPIPE was ignored when this process began. Programs that it starts expect the same.
#[must_use]
pub fn began_without_sigpipe() -> bool {
    WITHOUT_SIGPIPE.load(Ordering::Relaxed)
}

/// Has the command's process begin with SIGPIPE ignored if this process did. Rust's library otherwise gives it the
/// default action.
pub(crate) fn hand_on_sigpipe(command: &mut Command) {
    if began_without_sigpipe() {
        // SAFETY: the closure makes one system call and allocates nothing.
        unsafe {
            command.pre_exec(|| match libc::signal(libc::SIGPIPE, libc::SIG_IGN) {
                libc::SIG_ERR => Err(io::Error::last_os_error()),
                _ => Ok(()),
            });
        }
    }
}

/// Lets the command's process inherit this file under its present descriptor number. The file must stay open until the
/// process is started.
pub fn hand_on(command: &mut Command, file: &OwnedFd) {
    let fd = file.as_raw_fd();
    // SAFETY: the closure makes one system call and allocates nothing.
    unsafe {
        command.pre_exec(move || match libc::fcntl(fd, libc::F_SETFD, 0) {
            -1 => Err(io::Error::last_os_error()),
            _ => Ok(()),
        });
    }
}

/// The first descriptor after the three streams.
const FIRST: libc::c_uint = 3;

/// Closes the descriptors from `first` to `last`, or with `CLOSE_RANGE_CLOEXEC` marks them for the next exec. Allocates
/// nothing and takes no lock.
///
/// # Safety
/// No value of this process may use one of the descriptors afterwards.
unsafe fn end_range(first: libc::c_uint, last: libc::c_uint, flags: libc::c_uint) {
    const DESCRIPTORS_MAX: libc::rlim_t = 1 << 20;
    // SAFETY: plain system calls on numbers; one writes an `rlimit`, to `limit`.
    unsafe {
        if first > last || libc::syscall(libc::SYS_close_range, first, last, flags) == 0 {
            return;
        }
        // Before Linux 5.9, and with flags before 5.11: each possible descriptor in turn.
        let mut limit: libc::rlimit = std::mem::zeroed();
        libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit);
        let end = libc::c_uint::try_from(limit.rlim_cur.min(DESCRIPTORS_MAX)).unwrap_or(0);
        for fd in first..end.min(last.saturating_add(1)) {
            let fd = fd.cast_signed();
            match flags {
                0 => libc::close(fd),
                _ => libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC),
            };
        }
    }
}

/// Closes all descriptors from `first` on but `kept`.
///
/// # Safety
/// As after a fork: no value of this process may use one of the closed descriptors afterwards.
pub unsafe fn close_all_but(kept: BorrowedFd<'_>, first: u32) {
    let kept = kept.as_raw_fd().cast_unsigned();
    // SAFETY: the caller's promise.
    unsafe {
        if let Some(below) = kept.checked_sub(1) {
            end_range(first, below, 0);
        }
        end_range(first.max(kept + 1), libc::c_uint::MAX, 0);
    }
}

fn give_up() -> io::Result<()> {
    // SAFETY: these are plain system calls on numbers. The descriptor that reports a failure to the parent is closed
    // at the exec in any case, and so are the others from now on.
    unsafe {
        if libc::setsid() == -1 {
            return Err(io::Error::last_os_error());
        }
        let on: libc::c_ulong = 1;
        let off: libc::c_ulong = 0;
        if libc::prctl(libc::PR_SET_NO_NEW_PRIVS, on, off, off, off) == -1 {
            return Err(io::Error::last_os_error());
        }
        // On a kernel without ambient capabilities there are none.
        let none = libc::PR_CAP_AMBIENT_CLEAR_ALL;
        libc::prctl(libc::PR_CAP_AMBIENT, none, off, off, off);
        end_range(FIRST, libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC);
    }
    Ok(())
}

/// Closes all inherited descriptors except the three standard streams. It must be called before this process opens any
/// descriptor.
pub fn close_inherited() {
    // SAFETY: no value in this process owns a descriptor yet.
    unsafe { end_range(FIRST, libc::c_uint::MAX, 0) };
}

/// True if a file gives capabilities to the program that it holds.
#[must_use]
pub fn has_capabilities(file: &Path) -> bool {
    let Ok(file) = CString::new(file.as_os_str().as_bytes()) else {
        return false;
    };
    let name = c"security.capability";
    // SAFETY: both texts end with a zero byte and live across the call, which writes nothing as the size is 0.
    unsafe { libc::getxattr(file.as_ptr(), name.as_ptr(), std::ptr::null_mut(), 0) > 0 }
}

/// A descriptor that becomes readable when a process ends.
///
/// # Errors
/// The process has ended and was reaped, no descriptor is left, or the kernel is older than 5.3.
pub fn pidfd_open(pid: u32) -> io::Result<OwnedFd> {
    // SAFETY: pidfd_open takes a pid and flags (0) and returns a descriptor or -1.
    let fd = unsafe {
        libc::syscall(
            libc::SYS_pidfd_open,
            libc::c_long::from(pid),
            0 as libc::c_long,
        )
    };
    let fd = RawFd::try_from(fd).map_err(io::Error::other)?;
    if fd == -1 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call has just returned the descriptor, which has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// A descriptor that becomes readable when a child of this process ends. A kernel before Linux 5.3 has no pidfds: a
/// thread waits for the child there, which stays for its owner to reap.
///
/// # Errors
/// The child was reaped, no descriptor is left, or no thread can be started.
pub fn watch_child(pid: u32) -> io::Result<OwnedFd> {
    match pidfd_open(pid) {
        Err(error) if error.raw_os_error() == Some(libc::ENOSYS) => watch_by_thread(pid),
        watched => watched,
    }
}

fn watch_by_thread(pid: u32) -> io::Result<OwnedFd> {
    /// Size of the thread's stack, in bytes. There may be one thread for each of many servers.
    const STACK_BYTES: usize = 64 << 10;
    let (end, mut at_end) = io::pipe()?;
    let child = Pid::from_raw(pid.cast_signed());
    let wait = move || {
        // Signals are for the threads that have handlers.
        let _ = SigSet::all().thread_block();
        let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT;
        while waitid(Id::Pid(child), flags) == Err(Errno::EINTR) {}
        let _ = at_end.write_all(&[0]);
    };
    let thread = std::thread::Builder::new().name("child".to_owned());
    thread.stack_size(STACK_BYTES).spawn(wait)?;
    Ok(end.into())
}

/// A copy of a descriptor of a process that this one may debug. The copy is close-on-exec.
///
/// # Errors
/// The process has ended, may not be debugged, or has no such descriptor. Also if this process has no descriptor left,
/// or the kernel is older than 5.6.
pub fn copy_descriptor(pid: i32, number: RawFd) -> io::Result<OwnedFd> {
    let process = pidfd_open(pid.cast_unsigned())?;
    let (process, number) = (process.as_raw_fd(), libc::c_long::from(number));
    let flags: libc::c_long = 0;
    // SAFETY: the call takes an open descriptor, a number and flags, and returns a descriptor or -1.
    let fd = unsafe {
        libc::syscall(
            libc::SYS_pidfd_getfd,
            libc::c_long::from(process),
            number,
            flags,
        )
    };
    let fd = RawFd::try_from(fd).map_err(io::Error::other)?;
    if fd == -1 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call has just returned the descriptor, which has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Sends a signal to the process with this pid if `is_meant` returns true. Linux before 5.3 has no pidfds: the pid may
/// be reused between that check and the signal.
pub fn signal_process(pid: i32, signal: Signal, is_meant: impl FnOnce() -> bool) {
    let process = pidfd_open(pid.cast_unsigned());
    if !is_meant() {
        return;
    }
    match process {
        Ok(process) => {
            let none = std::ptr::null::<libc::siginfo_t>();
            let number = signal as libc::c_int;
            // SAFETY: the call takes an open descriptor, a number, no details and no flags, and accesses no memory.
            unsafe {
                libc::syscall(
                    libc::SYS_pidfd_send_signal,
                    process.as_raw_fd(),
                    number,
                    none,
                    0,
                );
            }
        }
        Err(error) if error.raw_os_error() == Some(libc::ENOSYS) => {
            let _ = kill(Pid::from_raw(pid), signal);
        }
        // It has ended.
        Err(_) => {}
    }
}

/// Number of bytes of a TCP connection that the peer has acknowledged, and number of bytes received from it, read or
/// not. This call allocates nothing.
///
/// # Errors
/// The socket is no TCP connection, or the kernel is older than 4.1, which does not count.
pub fn tcp_traffic(socket: BorrowedFd<'_>) -> io::Result<[u64; 2]> {
    /// Offset of both counters in the kernel's `tcp_info` (`linux/tcp.h`). The `libc` crate has an older version of it.
    const AT: usize = 120;
    const BYTES: usize = AT + 16;
    let mut info = [0_u8; BYTES];
    let mut length = libc::socklen_t::try_from(BYTES).unwrap_or(0);
    // SAFETY: the call takes an open descriptor, and writes at most `length` bytes to `info`.
    let done = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            info.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    if done == -1 {
        return Err(io::Error::last_os_error());
    }
    if usize::try_from(length).is_ok_and(|length| length < BYTES) {
        return Err(io::ErrorKind::Unsupported.into());
    }
    let count = |at: usize| u64::from_ne_bytes(std::array::from_fn(|byte| info[at + byte]));
    Ok([count(AT), count(AT + 8)])
}

/// Makes a descriptor non-blocking.
///
/// # Errors
/// The descriptor is not open.
pub fn set_nonblocking(fd: BorrowedFd<'_>) -> io::Result<()> {
    let on: libc::c_int = 1;
    // SAFETY: FIONBIO reads one int through the pointer, which lives across the call.
    match unsafe { libc::ioctl(fd.as_raw_fd(), libc::FIONBIO, &raw const on) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// The general registers of a stopped thread, in the kernel's order; `None` if the thread has another architecture
/// than this process.
///
/// # Errors
/// [`io::Error`] if this process does not trace the thread, or the thread is not stopped.
pub fn registers(id: i32) -> io::Result<Option<[u64; REGISTER_WORDS]>> {
    let mut words = [0_u64; REGISTER_WORDS];
    let mut place = libc::iovec {
        iov_base: words.as_mut_ptr().cast(),
        iov_len: size_of_val(&words),
    };
    let which = std::ptr::without_provenance_mut::<libc::c_void>(libc::NT_PRSTATUS as usize);
    // SAFETY: the kernel writes at most `iov_len` bytes, and reports the number.
    let read = unsafe { libc::ptrace(libc::PTRACE_GETREGSET, id, which, &raw mut place) };
    if read == -1 {
        return Err(io::Error::last_os_error());
    }
    Ok((place.iov_len == size_of_val(&words)).then_some(words))
}
