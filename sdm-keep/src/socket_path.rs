//! The sockets of keepers: one each, in a directory of the user's own.

use sdm_text::printable_name;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::fcntl::{Flock, FlockArg};
use sdm_system::listener::{self, SocketFile};
use sdm_system::peer::Peer;
use sdm_system::proc;

use crate::wire::{self, Frame};

/// Maximum length of a session's name, in bytes.
const NAME_BYTES_MAX: usize = 40;
/// Time that a keeper has to describe itself.
const ASK_WAIT: Duration = Duration::from_secs(5);
/// Maximum number of sessions that are listed.
const SESSIONS_MAX: usize = 1000;

/// The name of a kept session, which is valid as a file name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Name(String);

/// The reason why a session cannot be reached.
#[derive(Debug, thiserror::Error)]
pub enum PlaceError {
    /// A text that is not a valid name.
    #[error(
        "session '{0}': a name has 1 to {NAME_BYTES_MAX} letters, digits, '.', '_' or '-', and does not begin with '.' or '-'"
    )]
    Name(String),
    /// No keeper listens under this name.
    #[error("session '{0}': no such session; `sdm sessions` lists them")]
    Absent(String),
    /// A signal has stopped the session's keeper, which answers nothing until it continues.
    #[error(
        "session '{name}': the process {pid} that keeps it is stopped; `kill -CONT {pid}` continues it"
    )]
    Stopped {
        /// The name of the session.
        name: String,
        /// Pid of the keeper.
        pid: i32,
    },
    /// The folder is not safe to use.
    #[error("the folder of kept sessions cannot be used: {0}")]
    Folder(String),
    /// The system reported an error.
    #[error("session '{name}': {what}: {error}")]
    Io {
        /// The name of the session.
        name: String,
        /// The failed step, in a few words.
        what: &'static str,
        /// The system's reason.
        error: io::Error,
    },
}

/// Locks a folder exclusively, while this process makes or removes sockets there.
fn lock(folder: &Path) -> io::Result<Flock<File>> {
    let locked = Flock::lock(File::open(folder)?, FlockArg::LockExclusive);
    locked.map_err(|(_, error)| error.into())
}

impl Name {
    /// Checks a name given by the user.
    ///
    /// # Errors
    /// The text is not a valid name.
    pub fn new(text: &str) -> Result<Self, PlaceError> {
        let good = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        let fits = (1..=NAME_BYTES_MAX).contains(&text.len());
        if fits && text.chars().all(good) && !text.starts_with(['.', '-']) {
            Ok(Self(text.to_owned()))
        } else {
            let begin: String = text.chars().take(80).collect();
            Err(PlaceError::Name(sdm_text::printable(begin.as_bytes())))
        }
    }

    /// A name made of a program's name and a number.
    #[must_use]
    pub fn of_program(program: &str, number: u32) -> Self {
        let base = program.rsplit('/').next().unwrap_or_default();
        let good = base
            .chars()
            .filter(|c| c.is_ascii_alphanumeric() || *c == '_');
        let base: String = good.take(NAME_BYTES_MAX - 12).collect();
        let base = if base.is_empty() { "sdm" } else { &base };
        Self(format!("{base}-{number}"))
    }

    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    fn error(&self, what: &'static str) -> impl Fn(io::Error) -> PlaceError {
        let name = self.0.clone();
        move |error| PlaceError::Io {
            name: name.clone(),
            what,
            error,
        }
    }

    /// Listens under this name; only this user can connect.
    pub(crate) fn listen(&self) -> Result<(UnixListener, SocketFile), PlaceError> {
        let folder = folder()?;
        let path = folder.join(&self.0);
        let _lock = lock(&folder).map_err(self.error("lock"))?;
        if UnixStream::connect(&path).is_ok() {
            let error = io::Error::from(io::ErrorKind::AddrInUse);
            return Err(self.error("listen")(error));
        }
        listener::listen_anew(&path).map_err(self.error("listen"))
    }

    /// Connects to the keeper with this name. All of the user's folders are searched for its socket.
    pub(crate) fn connect(&self) -> Result<UnixStream, PlaceError> {
        let stream = self.connect_to_any()?;
        // The kernel accepts a connection to a stopped process, too.
        let Peer { pid, .. } = Peer::of(&stream).map_err(self.error("connect"))?;
        match proc::of(pid).state() {
            Some(state) if state.is_stopped() => Err(PlaceError::Stopped {
                name: self.0.clone(),
                pid,
            }),
            _ => Ok(stream),
        }
    }

    fn connect_to_any(&self) -> Result<UnixStream, PlaceError> {
        for folder in folders()? {
            let path = folder.join(&self.0);
            match UnixStream::connect(&path) {
                Ok(stream) => return Ok(stream),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                    // Its keeper was killed, or does not listen yet, which ends with the lock.
                    let _lock = lock(&folder).map_err(self.error("lock"))?;
                    match UnixStream::connect(&path) {
                        Ok(stream) => return Ok(stream),
                        Err(_) => drop(fs::remove_file(&path)),
                    }
                }
                Err(error) => return Err(self.error("connect")(error)),
            }
        }
        Err(PlaceError::Absent(self.0.clone()))
    }
}

/// A kept session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct About {
    /// The session's name, as accepted by `sdm resume`.
    pub name: String,
    /// The session's keeper and program.
    pub keeper: KeeperState,
}

/// The keeper of a session, and the program that it keeps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeeperState {
    /// The keeper has answered.
    Running {
        /// Time since the session's start.
        age: Duration,
        /// True if a terminal is connected to the session.
        attached: bool,
        /// The command line of the kept program.
        command: String,
    },
    /// A signal has stopped the keeper with this pid.
    Stopped(i32),
}

/// The sessions of this user on this machine, sorted by name.
///
/// # Errors
/// A folder cannot be used.
pub fn sessions() -> Result<Vec<About>, PlaceError> {
    let mut names = BTreeSet::new();
    for folder in folders()? {
        let unread =
            |error: io::Error| PlaceError::Folder(format!("{} {error}", printable_name(&folder)));
        let entries = fs::read_dir(&folder).map_err(unread)?.flatten();
        names.extend(entries.filter_map(|entry| Name::new(entry.file_name().to_str()?).ok()));
    }
    let found = names
        .into_iter()
        .filter_map(|name| ask(&name))
        .take(SESSIONS_MAX)
        .collect();
    Ok(found)
}

fn ask(name: &Name) -> Option<About> {
    let keeper = match name.connect() {
        Ok(stream) => running(&stream)?,
        Err(PlaceError::Stopped { pid, .. }) => KeeperState::Stopped(pid),
        Err(_) => return None,
    };
    let name = name.0.clone();
    Some(About { name, keeper })
}

fn running(stream: &UnixStream) -> Option<KeeperState> {
    stream.set_read_timeout(Some(ASK_WAIT)).ok()?;
    wire::send(stream, &Frame::Ask).ok()?;
    match wire::receive(stream) {
        Ok(Some(Frame::About {
            age_s,
            attached,
            command,
        })) => Some(KeeperState::Running {
            age: Duration::from_secs(age_s),
            attached,
            command,
        }),
        _ => None,
    }
}

/// The directory for the sockets. It is made if missing, and is never one that another user could have made.
fn folder() -> Result<PathBuf, PlaceError> {
    sdm_system::files::runtime_folder().map_err(|error| PlaceError::Folder(error.to_string()))
}

/// All directories in which a keeper of this user may listen.
fn folders() -> Result<Vec<PathBuf>, PlaceError> {
    sdm_system::files::runtime_folders().map_err(|error| PlaceError::Folder(error.to_string()))
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;
    use std::sync::mpsc;
    use std::thread;

    use nix::libc;
    use nix::sys::socket::{
        AddressFamily, Backlog, SockFlag, SockType, UnixAddr, bind, listen, socket,
    };

    use super::*;

    #[test]
    fn invalid_session_name_is_refused_and_default_is_valid() {
        for good in ["a", "halo-4711", "x.y_z"] {
            assert_eq!(Name::new(good).unwrap().as_str(), good);
        }
        for bad in ["", ".", "../x", "a/b", "-r", "a b", &"x".repeat(41)] {
            assert!(Name::new(bad).is_err(), "{bad}");
        }
        assert_eq!(Name::of_program("./halo", 7).as_str(), "halo-7");
        assert_eq!(Name::of_program("/", 7).as_str(), "sdm-7");
        let long = Name::of_program(&"x".repeat(99), u32::MAX);
        assert!(Name::new(long.as_str()).is_ok());
    }

    #[test]
    fn socket_of_a_keeper_not_yet_listening_is_not_removed() {
        let name = Name::of_program("bound", std::process::id());
        let folder = folder().unwrap();
        let path = folder.join(&name.0);
        let lock = lock(&folder).unwrap();
        let kind = (
            AddressFamily::Unix,
            SockType::Stream,
            SockFlag::SOCK_CLOEXEC,
        );
        let socket = socket(kind.0, kind.1, kind.2, None).unwrap();
        bind(socket.as_raw_fd(), &UnixAddr::new(&path).unwrap()).unwrap();
        let (tell, told) = mpsc::channel();
        let client = thread::spawn(move || {
            tell.send(nix::unistd::gettid().as_raw()).unwrap();
            name.connect()
        });
        let client_id = told.recv().unwrap();
        let waits = || {
            let call = proc::own().thread(client_id).system_call();
            call.is_some_and(|(number, _)| number == libc::SYS_flock)
        };
        while !waits() {
            assert!(!client.is_finished());
            thread::yield_now();
        }
        listen(&socket, Backlog::new(1).unwrap()).unwrap();
        drop(lock);
        client.join().unwrap().unwrap();
        fs::remove_file(path).unwrap();
    }
}
