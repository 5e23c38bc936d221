//! Unix sockets in the file system, for members of one machine and one user: connecting, listening, and removal of the
//! file.

use std::fs::Permissions;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use mio::net::{UnixListener, UnixStream};
use socket2::{Domain, SockAddr, Socket, Type};

use super::ConnectionString;
use super::inet::BACKLOG;

/// A listener and its socket file, which is removed with the listener.
pub(super) struct Rendezvous {
    pub(super) listener: UnixListener,
    pub(super) address: ConnectionString,
}

impl Drop for Rendezvous {
    fn drop(&mut self) {
        if let Some(path) = self.address.path() {
            // Another process may have removed the file already.
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Listens at a path. A file that a dead listener left behind is replaced; for any other the address is in use.
pub(super) fn bind(at: &ConnectionString) -> io::Result<Rendezvous> {
    let path = path(at)?;
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    socket.set_nonblocking(true)?;
    let addr = SockAddr::unix(path)?;
    match socket.bind(&addr) {
        Err(error) if error.kind() == io::ErrorKind::AddrInUse && is_left_behind(path) => {
            std::fs::remove_file(path)?;
            socket.bind(&addr)?;
        }
        result => result?,
    }
    // The permissions are set before the socket listens, so that no other user can ever connect.
    std::fs::set_permissions(path, Permissions::from_mode(0o600))?;
    socket.listen(BACKLOG)?;
    let listener = UnixListener::from_std(socket.into());
    let address = at.clone();
    Ok(Rendezvous { listener, address })
}

/// True if the file is a socket without a listener.
fn is_left_behind(path: &Path) -> bool {
    let connected = std::os::unix::net::UnixStream::connect(path);
    let refused = connected.is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused);
    let is_socket = std::fs::symlink_metadata(path)
        .is_ok_and(|found| std::os::unix::fs::FileTypeExt::is_socket(&found.file_type()));
    refused && is_socket
}

pub(super) fn connect(to: &ConnectionString) -> io::Result<UnixStream> {
    // A missing file is what a missing listener is for TCP; a full backlog is temporary. Both are retried as after a
    // refusal.
    let refusals = [io::ErrorKind::WouldBlock, io::ErrorKind::NotFound];
    UnixStream::connect(path(to)?).map_err(|error| match error.kind() {
        kind if refusals.contains(&kind) => io::ErrorKind::ConnectionRefused.into(),
        _ => error,
    })
}

fn path(at: &ConnectionString) -> io::Result<&Path> {
    at.path().ok_or_else(|| io::ErrorKind::InvalidInput.into())
}
