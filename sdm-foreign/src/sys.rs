//! System calls of the keeper for which no crate has a wrapper.
#![allow(unsafe_code)]

use std::ffi::CStr;
use std::io;
use std::os::fd::{BorrowedFd, IntoRawFd, RawFd};
use std::time::Duration;

use nix::libc;

/// The side of a fork on which a process is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Forked {
    /// The pid of the child.
    Parent(i32),
    Child,
}

/// State of a TCP connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Connection {
    /// Both sides are open.
    Open,
    /// This side has closed the connection, and the other has not.
    Left,
    /// The other side has closed the connection, or the descriptor is no connection.
    Over,
}

/// Forks a process that shares this one's descriptor table: a descriptor that one of them opens or closes is open
/// or closed in both. This process must have one thread, so that the child's copy of its memory is consistent.
pub(crate) fn fork_sharing_descriptors() -> io::Result<Forked> {
    let flags = libc::c_long::from(libc::CLONE_FILES | libc::SIGCHLD);
    let none: libc::c_long = 0;
    // SAFETY: without a stack of its own the child goes on with a copy of this one's memory, as after fork. The
    // arguments that differ between architectures are all zero.
    match unsafe { libc::syscall(libc::SYS_clone, flags, none, none, none, none) } {
        -1 => Err(io::Error::last_os_error()),
        0 => Ok(Forked::Child),
        pid => i32::try_from(pid)
            .map(Forked::Parent)
            .map_err(io::Error::other),
    }
}

/// A descriptor that becomes readable when the process ends. It stays open as long as the calling process lives.
pub(crate) fn pidfd_open(pid: i32) -> io::Result<RawFd> {
    sdm_system::pidfd_open(pid.cast_unsigned()).map(IntoRawFd::into_raw_fd)
}

/// Detaches this process from its parent: no session, terminal or signal of the parent's ends it. The parent's
/// death sends none, as a fork does not inherit that setting.
pub(crate) fn detach(name: &CStr) {
    // SAFETY: plain system calls; the name is a string that ends.
    unsafe {
        libc::setsid();
        libc::prctl(libc::PR_SET_NAME, name.as_ptr());
        for signal in [libc::SIGTERM, libc::SIGINT, libc::SIGHUP, libc::SIGPIPE] {
            libc::signal(signal, libc::SIG_IGN);
        }
    }
}

/// Waits until a descriptor is ready or the time is over; true if a descriptor is ready.
pub(crate) fn wait_readable(fds: &mut [libc::pollfd], wait: Option<Duration>) -> bool {
    let millis = wait.map_or(-1, |it| {
        it.as_millis().try_into().unwrap_or(libc::c_int::MAX)
    });
    loop {
        let count = libc::nfds_t::try_from(fds.len()).unwrap_or(0);
        // SAFETY: that many structures, which live across the call.
        let ready = unsafe { libc::poll(fds.as_mut_ptr(), count, millis) };
        if ready >= 0 || io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
            return ready > 0;
        }
    }
}

/// True if a descriptor is a TCP connection. A socket pair that libpmix uses itself is none.
pub(crate) fn is_connected(fd: RawFd) -> bool {
    // SAFETY: all zeros are a valid address.
    let mut address: libc::sockaddr = unsafe { std::mem::zeroed() };
    let mut bytes = libc::socklen_t::try_from(size_of::<libc::sockaddr>()).unwrap_or(0);
    // SAFETY: the address and its size live across the call; a longer address is cut off.
    let status = unsafe { libc::getpeername(fd, &raw mut address, &raw mut bytes) };
    let families = [libc::AF_INET, libc::AF_INET6];
    status == 0 && families.contains(&i32::from(address.sa_family))
}

/// Number of bytes ever received over a TCP connection, read or not; 0 if the kernel does not report it.
pub(crate) fn received(fd: RawFd) -> u64 {
    // SAFETY: a number that lives across the call; of one that is no open socket nothing is said.
    let socket = unsafe { BorrowedFd::borrow_raw(fd) };
    sdm_system::tcp_traffic(socket).map_or(0, |[_, received]| received)
}

/// State of the TCP connection of a descriptor.
pub(crate) fn connection(fd: RawFd) -> Connection {
    /// The states of `linux/tcp.h` in which the other side has not closed the connection; in FIN_WAIT this side has.
    const ESTABLISHED: u8 = 1;
    const FIN_WAIT: [u8; 2] = [4, 5];
    // The first member of the kernel's `tcp_info`. The kernel returns only as many bytes as there is room for.
    let mut state = 0_u8;
    let mut bytes: libc::socklen_t = 1;
    let info = (&raw mut state).cast();
    // SAFETY: it writes at most as many bytes as it is told to where these are.
    match unsafe { libc::getsockopt(fd, libc::IPPROTO_TCP, libc::TCP_INFO, info, &raw mut bytes) } {
        0 if state == ESTABLISHED => Connection::Open,
        0 if FIN_WAIT.contains(&state) => Connection::Left,
        _ => Connection::Over,
    }
}

/// Duplicates a descriptor, with close-on-exec set. `None` if that fails.
pub(crate) fn duplicate(fd: RawFd) -> Option<RawFd> {
    // SAFETY: it takes two numbers, and gives a descriptor or -1.
    let fd = unsafe { libc::fcntl(fd, libc::F_DUPFD_CLOEXEC, 0) };
    (fd != -1).then_some(fd)
}

/// Closes this side of a connection for writing, even where other processes share the descriptor.
pub(crate) fn leave(fd: RawFd) {
    // SAFETY: it takes two numbers. Where it fails the other side has ended it.
    unsafe { libc::shutdown(fd, libc::SHUT_WR) };
}

pub(crate) fn close(fd: RawFd) {
    // SAFETY: a number; nobody owns what is behind it any more.
    unsafe { libc::close(fd) };
}

/// Ends this process, and does nothing else.
pub(crate) fn exit(code: i32) -> ! {
    // SAFETY: it only ends the process.
    unsafe { libc::_exit(code) }
}
