//! Who may connect to the library: this user's processes.
//!
//! The library believes what a client says of its user. So it is not given connections of others at all: the `accept` that it calls is
//! the one in this program, which looks into the kernel's table first.
#![allow(unsafe_code)]

use std::ffi::{c_int, c_void};
use std::net::TcpStream;
use std::os::fd::FromRawFd;

use anyhow::{Result, bail};
use nix::errno::Errno;
use nix::libc;
use sdm_system::tcp_peer;

type Accept = unsafe extern "C" fn(c_int, *mut libc::sockaddr, *mut libc::socklen_t) -> c_int;

/// Takes a connection, unless it is another user's: that one is closed, and it is as if it had not come.
///
/// # Safety
/// As the C library's: an address and its length, or null.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn accept(
    socket: c_int,
    address: *mut libc::sockaddr,
    length: *mut libc::socklen_t,
) -> c_int {
    // SAFETY: the caller says so.
    let taken = unsafe { libc::accept4(socket, address, length, libc::SOCK_CLOEXEC) };
    if taken < 0 {
        return taken;
    }
    // SAFETY: the kernel has just given it to this process.
    let stream = unsafe { TcpStream::from_raw_fd(taken) };
    // A socket without a TCP address is no network's, and is the library's own affair.
    let is_tcp = stream.peer_addr().is_ok();
    match tcp_peer::check(&stream) {
        Err(error) if is_tcp => {
            crate::say::say(&format!("a connection is refused: {error}"));
            drop(stream);
            // The one error after which all versions of the library go on.
            Errno::EAGAIN.set();
            -1
        }
        _ => std::os::fd::IntoRawFd::into_raw_fd(stream),
    }
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
