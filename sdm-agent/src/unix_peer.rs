//! A Unix socket at which an agent waits for its client: in a folder of this user's alone, for processes of this user's only.

use std::fs;
use std::io;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;

use sdm_system::{files, peer};

/// Waits at a path for a client of this user's. The socket is there until one has come; its folder is made where it is missing.
///
/// # Errors
/// The folder is not this user's alone, somebody listens there already, or there is something else than a socket.
pub fn wait_at(path: &Path) -> io::Result<UnixStream> {
    let folder = path.parent().filter(|it| !it.as_os_str().is_empty());
    files::private_folder(folder.unwrap_or(Path::new(".")))?;
    let listener = match UnixListener::bind(path) {
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
            remove_stale(path)?;
            UnixListener::bind(path)?
        }
        bound => bound?,
    };
    let client = first_own(&listener);
    // One client has the whole of an agent: nobody else shall wait for it there.
    fs::remove_file(path)?;
    client
}

/// The first client that is this user's; others are let go.
fn first_own(listener: &UnixListener) -> io::Result<UnixStream> {
    loop {
        let stream = match listener.accept() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            accepted => accepted?.0,
        };
        match peer::check_this_user(&stream) {
            Ok(()) => return Ok(stream),
            Err(why) => eprintln!("sdm-agent: a client is let go: {why}"),
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
