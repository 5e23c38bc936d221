//! The process at the other end of a local socket.

use std::fmt;
use std::io;
use std::os::fd::AsFd;

use nix::sys::socket::{getsockopt, sockopt::PeerCredentials};
use nix::unistd::geteuid;

/// The process at the other end of a Unix socket, from `SO_PEERCRED`: the process that connected, or that listened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// The pid of the process.
    pub pid: i32,
    /// The effective user id of the process.
    pub uid: u32,
}

impl Peer {
    /// The process at the other end of a connected Unix socket.
    ///
    /// # Errors
    /// [`io::Error`] if `socket` is not a Unix socket.
    pub fn of(socket: &impl AsFd) -> io::Result<Self> {
        let found = getsockopt(socket, PeerCredentials)?;
        Ok(Self {
            pid: found.pid(),
            uid: found.uid(),
        })
    }

    /// True if the process runs as this process's user.
    #[must_use]
    pub fn is_this_user(self) -> bool {
        self.uid == geteuid().as_raw()
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "process {} of user {}", self.pid, self.uid)
    }
}

/// Checks that the process at the other end of a Unix socket runs as this process's user.
///
/// # Errors
/// [`io::ErrorKind::PermissionDenied`] if that process runs as another user; the error names the user.
pub fn check_this_user(socket: &impl AsFd) -> io::Result<()> {
    let peer = Peer::of(socket)?;
    if peer.is_this_user() {
        return Ok(());
    }
    let own = geteuid();
    let text = format!("the connection comes from {peer}, but this process runs as user {own}");
    Err(io::Error::new(io::ErrorKind::PermissionDenied, text))
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn peer_of_a_socket_pair_is_the_own_process() {
        let (ours, _theirs) = UnixStream::pair().unwrap();
        let peer = Peer::of(&ours).unwrap();
        assert_eq!(peer.pid, i32::try_from(std::process::id()).unwrap());
        assert!(check_this_user(&ours).is_ok());
        let file = std::fs::File::open("/dev/null").unwrap();
        assert!(Peer::of(&file).is_err());
    }
}
