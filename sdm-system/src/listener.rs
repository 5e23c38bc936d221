//! Waits for clients of this user, at a Unix socket or on the loopback.

use std::fs::{self, Permissions};
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use sdm_text::printable_name;

use crate::{files, peer, tcp_peer};
pub use refusals::Refusals;

mod refusals;

/// Waits at a path for a client of this user. `refused` gets the reason for each other client. The socket exists until
/// a client has connected. Its directory is made if it does not exist.
///
/// # Errors
/// The directory is not private, another process listens there already, or there is something other than a socket.
pub fn wait_at_path(path: &Path, refused: &mut dyn FnMut(io::Error)) -> io::Result<UnixStream> {
    // Dropping `_file` removes the socket's file.
    let (listener, _file) = listen_at_path(path)?;
    next_at_path(&listener, refused)
}

/// The path of a socket's file. Drop removes the file.
#[derive(Debug)]
pub struct SocketFile(PathBuf);

impl SocketFile {
    /// Path of the socket.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        // The file or its folder may already have been removed.
        let _ = fs::remove_file(&self.0);
    }
}

/// Listens at a path, whose directory is made if it does not exist.
///
/// # Errors
/// The directory is not private, another process listens there already, or there is something other than a socket.
pub fn listen_at_path(path: &Path) -> io::Result<(UnixListener, SocketFile)> {
    let folder = path.parent().filter(|it| !it.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    files::private_folder(folder).map_err(|error| {
        let text = format!("{} {error}", printable_name(folder));
        io::Error::new(error.kind(), text)
    })?;
    let listener = match UnixListener::bind(path) {
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
            remove_stale(path)?;
            UnixListener::bind(path)?
        }
        bound => bound?,
    };
    Ok((listener, SocketFile(path.to_owned())))
}

/// Listens at a path in a directory of this user, to which no other user can connect. It replaces a socket that a
/// killed process has left.
///
/// # Errors
/// The socket cannot be made.
pub fn listen_anew(path: &Path) -> io::Result<(UnixListener, SocketFile)> {
    let _ = fs::remove_file(path);
    let listener = UnixListener::bind(path)?;
    let file = SocketFile(path.to_owned());
    fs::set_permissions(path, Permissions::from_mode(0o600))?;
    Ok((listener, file))
}

/// Accepts the next client of this user at a path. `refused` gets the reason for each other client.
///
/// # Errors
/// No more connections can be accepted.
pub fn next_at_path(
    listener: &UnixListener,
    refused: &mut dyn FnMut(io::Error),
) -> io::Result<UnixStream> {
    let accept = || listener.accept().map(|(stream, _)| stream);
    first_own(accept, peer::check_this_user, refused)
}

/// Listens at an address of the loopback.
///
/// # Errors
/// The address is not of the loopback, or is not available.
pub fn listen_at_loopback(address: SocketAddr) -> io::Result<TcpListener> {
    if !address.ip().is_loopback() {
        let ip = address.ip();
        let text = format!("{ip} is not a loopback address");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
    }
    TcpListener::bind(address)
}

/// Accepts the next client of this user, or of root, at the loopback. `refused` gets the reason for each other client.
///
/// # Errors
/// No more connections can be accepted.
pub fn next_at_loopback(
    listener: &TcpListener,
    refused: &mut dyn FnMut(io::Error),
) -> io::Result<TcpStream> {
    let accept = || listener.accept().map(|(stream, _)| stream);
    first_own(accept, tcp_peer::check, refused)
}

/// Accepts clients until `check` allows one; `refused` gets the reason for each other client.
fn first_own<S>(
    mut accept: impl FnMut() -> io::Result<S>,
    check: impl Fn(&S) -> io::Result<()>,
    refused: &mut dyn FnMut(io::Error),
) -> io::Result<S> {
    loop {
        let stream = match accept() {
            // A client that has gone before it was accepted must not end the listening.
            Err(error) if is_passing(&error) => continue,
            accepted => accepted?,
        };
        match check(&stream) {
            Ok(()) => return Ok(stream),
            Err(why) => refused(why),
        }
    }
}

fn is_passing(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, Interrupted};
    matches!(error.kind(), ConnectionAborted | Interrupted)
}

/// Removes a socket without a listener.
fn remove_stale(path: &Path) -> io::Result<()> {
    if !fs::symlink_metadata(path)?.file_type().is_socket() {
        let what = "the path exists and is not a socket";
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, what));
    }
    match UnixStream::connect(path) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => fs::remove_file(path),
        Err(error) => Err(error),
        Ok(_) => {
            let what = "another process listens there already";
            Err(io::Error::new(io::ErrorKind::AddrInUse, what))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_loopback_address_is_listened_on() {
        for address in ["0.0.0.0:0", "[::]:0", "192.0.2.1:0", "128.0.0.1:0"] {
            let error = listen_at_loopback(address.parse().unwrap());
            assert_eq!(error.unwrap_err().kind(), io::ErrorKind::InvalidInput);
        }
    }

    #[test]
    fn clients_of_this_user_are_accepted() {
        let listener = listen_at_loopback("127.0.0.1:0".parse().unwrap()).unwrap();
        for _ in 0..2 {
            let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let stream = next_at_loopback(&listener, &mut |why| panic!("{why}")).unwrap();
            assert_eq!(stream.peer_addr().unwrap(), client.local_addr().unwrap());
        }
    }
}
