//! The only unsafe code of this crate: a child between fork and exec, and system calls that `nix` does not have.
//!
//! The child's code is async-signal-safe: it makes system calls on values made before the fork.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitStatus};

use nix::libc;
use nix::sched::{CpuSet, sched_setaffinity};
use nix::unistd::Pid;
use portable_pty::MasterPty;

/// Signals whose dispositions are reserved for the C library.
const RESERVED: std::ops::RangeInclusive<i32> = 32..=33;
/// The largest signal number on Linux.
pub(crate) const SIGNAL_MAX: i32 = 64;

/// Makes a gdb child a session of its own, with an empty signal mask and default signal actions.
///
/// gdb gets no signal when its parent dies: the end of its input ends it, with a clean detach. At a SIGTERM it would
/// leave tasks stopped, or killed by SIGTRAP at a breakpoint. A SIGKILL would leave its breakpoints in attached
/// processes. Only with `goes_with_us` gdb gets SIGKILL: then it has attached to nothing, and the kernel kills its
/// program with it. gdb hangs at `run` if SIGCHLD is blocked, so a mask is never inherited.
pub(crate) fn prepare_gdb(command: &mut Command, goes_with_us: bool) {
    // SAFETY: the function makes only async-signal-safe calls and allocates nothing.
    unsafe {
        command.pre_exec(become_gdb);
    }
    if goes_with_us {
        sdm_system::goes_with_its_parent(command);
    }
}

/// Binds the command's process to these processors.
pub(crate) fn bind(command: &mut Command, processors: CpuSet) {
    // SAFETY: the closure makes one system call and allocates nothing.
    unsafe {
        command.pre_exec(move || Ok(sched_setaffinity(Pid::from_raw(0), &processors)?));
    }
}

/// A duplicate of the descriptor of a pseudo-terminal's master, since the pty library lends only its number. The
/// duplicate is close-on-exec.
pub(crate) fn duplicate_master(master: &dyn MasterPty) -> io::Result<OwnedFd> {
    let number = master.as_raw_fd().ok_or(io::ErrorKind::Unsupported)?;
    // SAFETY: the number is that of a descriptor that `master` keeps open while it is borrowed here.
    unsafe { BorrowedFd::borrow_raw(number) }.try_clone_to_owned()
}

/// Lowest number for descriptors that gdb inherits, if available. Programs on the way to gdb, such as a script that
/// calls it, close or use low numbers.
pub(crate) const HANDED_FD_FIRST: RawFd = 200;

/// The same file under a descriptor number of at least [`HANDED_FD_FIRST`]; under its present number if no such number
/// is available.
pub(crate) fn out_of_the_way(file: OwnedFd) -> OwnedFd {
    duplicate_from(&file, HANDED_FD_FIRST).unwrap_or(file)
}

/// The same file under a descriptor number of at least `first`. The new descriptor is close-on-exec.
fn duplicate_from(file: &impl AsFd, first: RawFd) -> io::Result<OwnedFd> {
    let fd = file.as_fd().as_raw_fd();
    // SAFETY: the call takes a descriptor and a number, and returns a descriptor or -1.
    let fd = unsafe { libc::fcntl(fd, libc::F_DUPFD_CLOEXEC, first) };
    if fd == -1 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call has just returned the descriptor, which has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Size of this processor's extended registers in bytes, as the kernel uses them: the size for `PTRACE_SETREGSET`. 0
/// if it has none.
#[cfg(target_arch = "x86_64")]
pub(crate) fn register_bytes() -> u32 {
    use std::arch::x86_64::__cpuid_count;
    /// The `cpuid` leaf that describes the extended registers.
    const STATE_LEAF: u32 = 0xd;
    /// The bit that tells that the kernel uses the extended registers.
    const IN_USE: u32 = 1 << 27;
    // Newer toolchains consider this call safe.
    #[allow(unused_unsafe)]
    // SAFETY: every x86-64 processor has the instruction.
    let leaf = |number| unsafe { __cpuid_count(number, 0) };
    if leaf(0).eax < STATE_LEAF || leaf(1).ecx & IN_USE == 0 {
        return 0;
    }
    leaf(STATE_LEAF).ebx
}

/// The size is 0, as every gdb knows the registers of other architectures.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn register_bytes() -> u32 {
    0
}

fn become_gdb() -> io::Result<()> {
    // SAFETY: plain system calls; the structures are valid and live on the stack.
    unsafe {
        if libc::setsid() < 0 {
            return Err(io::Error::last_os_error());
        }
        for signal in (1..=SIGNAL_MAX).filter(|signal| !RESERVED.contains(signal)) {
            // SIGKILL and SIGSTOP are refused, which has no effect.
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

/// Makes descriptor `to` a copy of `from`, which programs inherit. An open `to` is closed first.
pub(crate) fn duplicate_to(from: RawFd, to: RawFd) -> io::Result<()> {
    // SAFETY: the call takes two numbers. No value in this process owns `to`, which is a standard stream.
    match unsafe { libc::dup2(from, to) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// Makes this process, and the program that it executes, ignore some signals and block others in addition. SIGPIPE,
/// which the Rust runtime ignores, gets its default action.
pub(crate) fn set_signals(ignored: &[i32], blocked: &[i32]) {
    // SAFETY: plain system calls on numbers, and on a set on the stack. There is only one thread, and no handler is
    // installed. A number that is no signal is refused without effect.
    unsafe {
        libc::signal(libc::SIGPIPE, libc::SIG_DFL);
        for signal in ignored {
            libc::signal(*signal, libc::SIG_IGN);
        }
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        for signal in blocked {
            libc::sigaddset(&raw mut set, *signal);
        }
        libc::sigprocmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut());
    }
}

/// Takes ownership of a descriptor received with a message.
pub(crate) fn own_received(fd: RawFd) -> OwnedFd {
    // SAFETY: the kernel has just given the descriptor to this process, and it has no other owner.
    unsafe { OwnedFd::from_raw_fd(fd) }
}

/// Exit status of a child, which it reaps; `None` while the child runs.
///
/// # Errors
/// [`io::Error`] if there is no such child.
pub fn reap(pid: i32) -> io::Result<Option<ExitStatus>> {
    let mut status = 0;
    // SAFETY: waitpid writes one `int`, which lives across the call.
    match unsafe { libc::waitpid(pid, &raw mut status, libc::WNOHANG) } {
        -1 => Err(io::Error::last_os_error()),
        0 => Ok(None),
        _ => Ok(Some(ExitStatus::from_raw(status))),
    }
}

/// Makes this process the subreaper of its descendants: it adopts those whose parents end.
pub fn adopt_orphans() {
    let on: libc::c_ulong = 1;
    // SAFETY: the call sets a flag of this process and accesses no memory.
    unsafe {
        libc::prctl(libc::PR_SET_CHILD_SUBREAPER, on);
    }
}

/// Disables address randomisation for programs of this process, as gdb does.
pub(crate) fn fix_addresses() {
    // SAFETY: the call reads and sets a number of this process. If the kernel refuses, addresses are random, which is
    // harmless.
    unsafe {
        let known = libc::personality(0xffff_ffff);
        if let Ok(known) = u32::try_from(known) {
            libc::personality(libc::c_ulong::from(known | libc::ADDR_NO_RANDOMIZE as u32));
        }
    }
}

/// Permits a process and its descendants to trace this one, which the kernel's Yama would otherwise forbid. Has no
/// effect on a kernel without Yama.
pub(crate) fn allow_tracer(pid: i32) {
    let pid = libc::c_ulong::from(pid.unsigned_abs());
    // SAFETY: the call sets a number of this process and accesses no memory.
    unsafe {
        libc::prctl(libc::PR_SET_PTRACER, pid);
    }
}

/// The next state change of a child or a traced thread: its id, and its status as in `waitpid(2)`. Without `wait`,
/// `None` if there is none at present.
///
/// # Errors
/// [`io::Error`] if there is no child to wait for.
pub(crate) fn next_change(of: i32, wait: bool) -> io::Result<Option<(i32, i32)>> {
    let mut status = 0;
    let flags = libc::__WALL | if wait { 0 } else { libc::WNOHANG };
    loop {
        // SAFETY: the call writes one `int`, to `status`.
        match unsafe { libc::waitpid(of, &raw mut status, flags) } {
            0 => return Ok(None),
            id if id > 0 => return Ok(Some((id, status))),
            _ => match io::Error::last_os_error() {
                error if error.kind() == io::ErrorKind::Interrupted => {}
                error => return Err(error),
            },
        }
    }
}

/// The ways to continue a stopped traced thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Resumption {
    /// Run.
    Run,
    /// Run, and be reported at the begin and the end of the next system call.
    ToCall,
    /// Stay stopped with the process, and be reported when the process resumes.
    StayStopped,
    /// Run without being traced any longer.
    Free,
}

/// Continues a stopped traced thread, with a signal or without one (0).
///
/// # Errors
/// [`io::Error`] if the thread has ended, or is not stopped.
pub(crate) fn send_on(id: i32, how: Resumption, signal: i32) -> io::Result<()> {
    let request = match how {
        Resumption::Run => libc::PTRACE_CONT,
        Resumption::ToCall => libc::PTRACE_SYSCALL,
        Resumption::StayStopped => libc::PTRACE_LISTEN,
        Resumption::Free => libc::PTRACE_DETACH,
    };
    let nothing = std::ptr::null_mut::<libc::c_void>();
    let signal = std::ptr::without_provenance_mut::<libc::c_void>(signal.unsigned_abs() as usize);
    // SAFETY: these requests read no memory. Both pointers are numbers.
    match unsafe { libc::ptrace(request, id, nothing, signal) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// Sends a signal of any number to a thread. Has no effect if the thread has ended.
pub fn signal_thread(pid: i32, thread: i32, signal: i32) {
    // SAFETY: the call takes three numbers.
    unsafe {
        libc::syscall(libc::SYS_tgkill, pid, thread, signal);
    }
}

/// The address in the signal at which a traced thread is stopped; `None` if the thread has ended.
pub(crate) fn fault_address(id: i32) -> Option<u64> {
    let signal = nix::sys::ptrace::getsiginfo(Pid::from_raw(id)).ok()?;
    // SAFETY: every bit pattern is an address, which is not read.
    Some(unsafe { signal.si_addr() }.addr() as u64)
}
