//! The socket of a background process, in a folder that belongs to the user alone.

use std::fs::File;
use std::io;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;

use nix::fcntl::{Flock, FlockArg};
use sdm_system::files;
use sdm_system::listener::{self, SocketFile};

/// The folder of all sockets, which is created if it does not exist. A folder that another user could have made is an
/// error.
fn folder() -> io::Result<PathBuf> {
    let folder = files::runtime_folder()?.join("rm");
    files::private_folder(&folder).map_err(|error| {
        let text = format!("{} {error}", sdm_text::printable_name(&folder));
        io::Error::new(error.kind(), text)
    })?;
    Ok(folder)
}

/// Path of the socket of this cluster's process.
pub(crate) fn socket(name: &str) -> io::Result<PathBuf> {
    Ok(folder()?.join(name))
}

/// A socket whose file is removed with its listener, and the lock that makes this listener the only one.
pub(crate) struct Place {
    pub(crate) listener: UnixListener,
    file: SocketFile,
    _lock: Flock<File>,
}

impl Place {
    /// Listens for a cluster; `None` if another process does.
    pub(crate) fn take(name: &str) -> io::Result<Option<Self>> {
        let path = socket(name)?;
        // Locks are hidden: no name of a cluster begins so.
        let lock = path.with_file_name(format!(".{name}.lock"));
        let file = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(lock)?;
        let Ok(lock) = Flock::lock(file, FlockArg::LockExclusiveNonblock) else {
            return Ok(None);
        };
        let (listener, file) = listener::listen_anew(&path)?;
        listener.set_nonblocking(true)?;
        Ok(Some(Self {
            listener,
            file,
            _lock: lock,
        }))
    }

    /// True while the socket's file exists: its removal asks this process to end.
    pub(crate) fn is_there(&self) -> bool {
        self.file.path().exists()
    }
}

/// Connects to the process of a cluster, which must be this user's; `None` if no process listens.
pub(crate) fn connect(name: &str) -> io::Result<Option<UnixStream>> {
    match UnixStream::connect(socket(name)?) {
        Ok(stream) => {
            sdm_system::peer::check_this_user(&stream)?;
            Ok(Some(stream))
        }
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused
            ) =>
        {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}
