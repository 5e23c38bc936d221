//! Abstract sockets (kernel sockets with a name and no file) for members of one host: nothing of them stays in any
//! file system, however a member ends.
//!
//! They exist per network namespace. A member elsewhere (another host, a container) therefore finds no listener, at
//! the cost of one system call. A member's name is derived from the session's key, so that no process without the
//! key can take the name before, or find the member by it. Names in use are not secret (`/proc/net/unix`). So both
//! ends also ask the kernel for the other's user; and then the handshake decides, as on every link.

use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::SocketAddr;

use mio::net::{UnixListener, UnixStream};
use nix::sys::socket::{getsockopt, sockopt::PeerCredentials};
use nix::unistd::geteuid;
use socket2::{Domain, SockAddr, Socket, Type};

use super::abstract_name::shared_name;
use super::inet::BACKLOG;
use crate::ids::ServerId;
use crate::link::LinkConfig;

/// The names of a session's sockets.
pub(super) struct LocalNames(LinkConfig);

impl LocalNames {
    pub(super) fn of(config: &LinkConfig) -> Self {
        Self(config.clone())
    }

    fn name(&self, member: ServerId) -> String {
        shared_name(&self.0, &[b"member ", &member.0.to_le_bytes()[..]].concat())
    }

    /// Listens as `member` for other members of this host.
    pub(super) fn bind(&self, member: ServerId) -> io::Result<UnixListener> {
        let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
        socket.set_nonblocking(true)?;
        socket.bind(&SockAddr::unix(format!("\0{}", self.name(member)))?)?;
        socket.listen(BACKLOG)?;
        Ok(UnixListener::from_std(socket.into()))
    }

    /// Connects to `member`. Any failure is reported as a refused connection.
    pub(super) fn connect(&self, member: ServerId) -> io::Result<UnixStream> {
        let address = SocketAddr::from_abstract_name(self.name(member))?;
        let refused = |_| io::Error::from(io::ErrorKind::ConnectionRefused);
        let stream = UnixStream::connect_addr(&address).map_err(refused)?;
        check_user(&stream).map_err(refused)?;
        Ok(stream)
    }
}

/// Checks that the process at the other end is the same user's.
pub(super) fn check_user(stream: &UnixStream) -> io::Result<()> {
    let peer = getsockopt(stream, PeerCredentials)?;
    match peer.uid() == geteuid().as_raw() {
        true => Ok(()),
        false => Err(io::ErrorKind::ConnectionAborted.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::SessionId;
    use crate::secure::SessionKey;

    #[test]
    fn local_socket_name_depends_on_key_session_and_member() {
        let name = |key, session, member| {
            let key = SessionKey::from_bytes([key; 32]);
            let config = LinkConfig::new(key, SessionId([session; 8]));
            LocalNames::of(&config).name(ServerId(member))
        };
        assert_eq!(name(1, 1, 1), name(1, 1, 1));
        for other in [name(2, 1, 1), name(1, 2, 1), name(1, 1, 2)] {
            assert_ne!(name(1, 1, 1), other);
        }
    }
}
