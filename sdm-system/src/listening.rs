//! Waiting for one client of this user's, at a Unix socket or at the loopback.

use std::fs;
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;

use crate::{files, peer, tcp_peer};

/// Waits at a path for a client of this user's; `refused` hears why others are let go. The socket is there until one has come;
/// its folder is made where it is missing.
///
/// # Errors
/// The folder is not this user's alone, somebody listens there already, or there is something else than a socket.
pub fn wait_at_path(path: &Path, refused: &mut dyn FnMut(io::Error)) -> io::Result<UnixStream> {
    let folder = path.parent().filter(|it| !it.as_os_str().is_empty());
    files::private_folder(folder.unwrap_or(Path::new(".")))?;
    let listener = match UnixListener::bind(path) {
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
            remove_stale(path)?;
            UnixListener::bind(path)?
        }
        bound => bound?,
    };
    let accept = || listener.accept().map(|(stream, _)| stream);
    let client = first_own(accept, peer::check_this_user, refused);
    fs::remove_file(path)?;
    client
}

/// Waits at an address of the loopback for a client of this user's, or root's; `listening` hears where, before anybody is
/// waited for, and `refused` why others are let go.
///
/// # Errors
/// The address is not of the loopback, or nobody can listen there.
pub fn wait_at_loopback(
    address: SocketAddr,
    listening: &mut dyn FnMut(SocketAddr),
    refused: &mut dyn FnMut(io::Error),
) -> io::Result<TcpStream> {
    if !address.ip().is_loopback() {
        let text = format!("{} is not an address of the loopback", address.ip());
        return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
    }
    let listener = TcpListener::bind(address)?;
    listening(listener.local_addr()?);
    let accept = || listener.accept().map(|(stream, _)| stream);
    first_own(accept, tcp_peer::check, refused)
}

/// The first client that is this user's.
fn first_own<S>(
    mut accept: impl FnMut() -> io::Result<S>,
    check: impl Fn(&S) -> io::Result<()>,
    refused: &mut dyn FnMut(io::Error),
) -> io::Result<S> {
    loop {
        let stream = match accept() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            accepted => accepted?,
        };
        match check(&stream) {
            Ok(()) => return Ok(stream),
            Err(why) => refused(why),
        }
    }
}

/// Removes a socket at which nobody listens any more.
fn remove_stale(path: &Path) -> io::Result<()> {
    if !fs::symlink_metadata(path)?.file_type().is_socket() {
        let what = "there is something else than a socket";
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, what));
    }
    match UnixStream::connect(path) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => fs::remove_file(path),
        Err(error) => Err(error),
        Ok(_) => {
            let what = "somebody listens there already";
            Err(io::Error::new(io::ErrorKind::AddrInUse, what))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_loopback_is_listened_at() {
        let address = "0.0.0.0:0".parse().unwrap();
        let error = wait_at_loopback(address, &mut |_| panic!("it listens"), &mut |_| ());
        assert_eq!(error.unwrap_err().kind(), io::ErrorKind::InvalidInput);
    }

    #[test]
    fn a_client_of_this_users_is_taken() {
        let mut client = None;
        let mut connect = |address: SocketAddr| client = Some(TcpStream::connect(address));
        let address = "127.0.0.1:0".parse().unwrap();
        let stream = wait_at_loopback(address, &mut connect, &mut |why| panic!("{why}")).unwrap();
        let client = client.expect("it was told").unwrap();
        assert_eq!(stream.peer_addr().unwrap(), client.local_addr().unwrap());
    }
}
