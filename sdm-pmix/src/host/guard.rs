//! Who may connect to the library: this user's processes.
//!
//! The library believes what a client says of its user. So it is not given connections of others at all: the `accept` that it calls is
//! the one in this program, which looks into the kernel's table first.
#![allow(unsafe_code)]

use std::ffi::{c_int, c_void};
use std::net::TcpStream;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, IntoRawFd};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use nix::errno::Errno;
use nix::libc;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use sdm_system::tcp_peer;

use super::relay;

type Accept = unsafe extern "C" fn(c_int, *mut libc::sockaddr, *mut libc::socklen_t) -> c_int;

/// How long a connection may say nothing.
const QUIET_WAIT: Duration = Duration::from_secs(10);
/// The most connections that say nothing; the oldest goes first.
const QUIET_MAX: usize = 1024;

/// How much of what one says first is looked at.
const FIRST_BYTES_MAX: usize = 4096;

/// Connections of this user's that have said nothing yet. The library would wait for the first words of each, one after the other, and
/// serve nobody meanwhile.
static QUIET: Mutex<Vec<(TcpStream, Instant)>> = Mutex::new(Vec::new());

/// Takes a connection that has something to say. One of another user's is closed, and it is as if it had not come.
///
/// # Safety
/// As the C library's: an address and its length, or null.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn accept(
    socket: c_int,
    address: *mut libc::sockaddr,
    length: *mut libc::socklen_t,
) -> c_int {
    let mut quiet = QUIET.lock().unwrap_or_else(PoisonError::into_inner);
    loop {
        let now = Instant::now();
        quiet.retain(|(_, since)| now.duration_since(*since) < QUIET_WAIT);
        let first = quiet.first().map(|(_, since)| *since + QUIET_WAIT);
        let wait = first.map_or(Duration::ZERO, |at| at.saturating_duration_since(now));
        let (is_new, spoken) = look(socket, &quiet, wait);
        if let Some(at) = spoken {
            let (stream, _) = quiet.remove(at);
            // SAFETY: the caller says so; a connection that has gone has no address, and is heard to have gone.
            let _ = unsafe { libc::getpeername(stream.as_raw_fd(), address, length) };
            if is_of_a_job(&stream) {
                return stream.into_raw_fd();
            }
            match relay::begin(stream) {
                Some(end) => return end.into_raw_fd(),
                None => {
                    crate::say::say("a tool is refused: there are too many");
                    continue;
                }
            }
        }
        if is_new {
            // SAFETY: the caller says so.
            let taken = unsafe { libc::accept4(socket, address, length, libc::SOCK_CLOEXEC) };
            if taken < 0 {
                return taken;
            }
            // SAFETY: the kernel has just given it to this process.
            let stream = unsafe { TcpStream::from_raw_fd(taken) };
            // A socket without a TCP address is no network's, and is the library's own affair.
            if stream.peer_addr().is_err() {
                return stream.into_raw_fd();
            }
            match tcp_peer::check(&stream) {
                Ok(()) => {
                    if quiet.len() >= QUIET_MAX {
                        quiet.remove(0);
                    }
                    quiet.push((stream, now));
                }
                Err(error) => crate::say::say(&format!("a connection is refused: {error}")),
            }
        }
        if quiet.is_empty() {
            // The one error after which all versions of the library go on.
            Errno::EAGAIN.set();
            return -1;
        }
    }
}

/// Whether it is a process of a job that has spoken, and all at once, as they do.
fn is_of_a_job(stream: &TcpStream) -> bool {
    let mut first = [0; FIRST_BYTES_MAX];
    let looked = stream
        .set_nonblocking(true)
        .and_then(|()| stream.peek(&mut first));
    let is_it = looked.is_ok_and(|count| relay::is_of_a_job(&first[..count]));
    // As the library knows it from the kernel.
    let _ = stream.set_nonblocking(false);
    is_it
}

/// Waits, and says whether somebody new has come, and which of the quiet ones has spoken or gone.
fn look(socket: c_int, quiet: &[(TcpStream, Instant)], wait: Duration) -> (bool, Option<usize>) {
    // SAFETY: it stays the library's, which does not close it while it calls.
    let socket = unsafe { BorrowedFd::borrow_raw(socket) };
    let all = quiet.iter().map(|(stream, _)| stream.as_fd());
    let all = std::iter::once(socket).chain(all);
    let mut fds: Vec<_> = all.map(|fd| PollFd::new(fd, PollFlags::POLLIN)).collect();
    let wait = PollTimeout::try_from(wait).unwrap_or(PollTimeout::ZERO);
    if poll(&mut fds, wait).is_err() {
        return (false, None);
    }
    let mut ready = fds.iter().map(|fd| fd.any().unwrap_or(false));
    let is_new = ready.next().unwrap_or(false);
    (is_new, ready.position(|it| it))
}

/// Checks that it is this function that the library finds.
pub(crate) fn check_is_found() -> Result<()> {
    let own: Accept = accept;
    // SAFETY: it looks a name up in what is loaded.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"accept".as_ptr()) };
    if found.cast_const() != own as *const c_void {
        bail!("this build of sdm-pmix cannot keep other users out: no library is loaded");
    }
    Ok(())
}
