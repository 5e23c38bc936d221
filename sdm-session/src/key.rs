//! Handover of the session key to servers that `mpirun`, `mpiexec` or `srun` starts.
//!
//! These launchers pass environments over unencrypted channels of their own, to daemons that keep them. So the servers'
//! command line has only the location of the key, unless the environment has the key itself. That is a socket at which
//! this process gives the key to processes of the same user, or a file that only this user can read.

use sdm_text::printable_name;
use std::ffi::OsString;
use std::fmt;
use std::io::{self, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use nix::sys::statfs::{self, FsType};
use sdm_bootstrap::handover::{self, SOCKET_SCHEME};
use sdm_core::ids::SessionId;
use sdm_core::secure::SessionKey;
use sdm_system::files;
use sdm_system::peer::check_this_user;
use sdm_system::secret::SecretFile;
use zeroize::Zeroizing;

use super::error::SessionError;

/// The way in which servers get the session key, if their launcher passes environments over channels of its own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum KeyHandover {
    /// The way is chosen automatically. With all servers on this machine: a socket, or a file if no socket can be made.
    /// With the home directory on a network file system: a file. Otherwise: the environment.
    #[default]
    Auto,
    /// In the environment, which the launcher passes on.
    Environment,
    /// In a file in this directory, which is shared by all hosts. None: the home directory.
    File(Option<PathBuf>),
    /// Through a socket: all servers are on this machine.
    Socket,
}

impl FromStr for KeyHandover {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "auto" => Ok(Self::Auto),
            "env" => Ok(Self::Environment),
            "file" => Ok(Self::File(None)),
            "socket" => Ok(Self::Socket),
            _ => match text.strip_prefix("file:") {
                Some(folder) if folder.starts_with('/') => Ok(Self::File(Some(folder.into()))),
                Some(_) => Err("the folder after `file:` must begin with /"),
                None => Err("expected auto, socket, file, file:FOLDER or env"),
            },
        }
    }
}

impl fmt::Display for KeyHandover {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Environment => f.write_str("env"),
            Self::File(None) => f.write_str("file"),
            Self::File(Some(folder)) => write!(f, "file:{}", folder.display()),
            Self::Socket => f.write_str("socket"),
        }
    }
}

/// The socket or file from which servers fetch the key. Removed on drop.
pub(super) struct Offer {
    /// The path of the socket or file, in a directory of its own that is removed on drop.
    secret: SecretFile,
    /// Sends the key to each process that connects. None if the key is in a file.
    socket: Option<UnixListener>,
    text: Zeroizing<String>,
}

impl Offer {
    /// Offers the key in the requested way. None if the launcher carries it in the environment.
    pub(super) fn open(
        way: &KeyHandover,
        spans_hosts: bool,
        session: SessionId,
        key: &SessionKey,
    ) -> Result<Option<Self>, SessionError> {
        let text = || handover::to_text(session, key);
        let home = || std::env::home_dir().unwrap_or_else(|| PathBuf::from("/"));
        match way {
            KeyHandover::Environment => Ok(None),
            KeyHandover::Socket => Self::listen(session, text()).map(Some),
            KeyHandover::File(folder) => {
                let below = folder.clone().unwrap_or_else(home);
                Self::write(&below, session, text()).map(Some)
            }
            KeyHandover::Auto if !spans_hosts => match Self::listen(session, text()) {
                // A temporary folder with a name that is too long for a socket.
                Err(_) => Self::write(&files::temporary_folder(), session, text()).map(Some),
                listening => listening.map(Some),
            },
            KeyHandover::Auto if is_shared(&home()) => {
                Self::write(&home(), session, text()).map(Some)
            }
            KeyHandover::Auto => Ok(None),
        }
    }

    fn listen(session: SessionId, text: Zeroizing<String>) -> Result<Self, SessionError> {
        let folder = files::runtime_folder();
        let folder = folder.map_err(|source| SessionError::Io {
            what: "cannot pass on the session key: cannot create the folder of its socket"
                .to_owned(),
            source,
        })?;
        let mut offer = Self::make(&folder, session, text)?;
        let listener = UnixListener::bind(offer.secret.path());
        let listener =
            listener.and_then(|listener| listener.set_nonblocking(true).map(|()| listener));
        match listener {
            Ok(listener) => offer.socket = Some(listener),
            Err(source) => return Err(failed("cannot listen at", offer.secret.path(), source)),
        }
        Ok(offer)
    }

    fn write(
        below: &Path,
        session: SessionId,
        text: Zeroizing<String>,
    ) -> Result<Self, SessionError> {
        let mut offer = Self::make(below, session, text)?;
        match offer.secret.write(offer.text.as_bytes()) {
            Ok(()) => Ok(offer),
            Err(source) => Err(failed("cannot write", offer.secret.path(), source)),
        }
    }

    /// Creates a new directory that only this user can access.
    fn make(
        below: &Path,
        session: SessionId,
        text: Zeroizing<String>,
    ) -> Result<Self, SessionError> {
        let folder = below.join(format!(".sdm-{session}"));
        let secret = SecretFile::in_new_folder(&folder, "key");
        Ok(Self {
            secret: secret.map_err(|source| failed("cannot create", &folder, source))?,
            socket: None,
            text,
        })
    }

    /// The location from which servers fetch the key, which is not secret itself.
    pub(super) fn place(&self) -> OsString {
        let mut place = OsString::new();
        if self.socket.is_some() {
            place.push(SOCKET_SCHEME);
        }
        place.push(self.secret.path());
        place
    }

    /// The listening socket, readable when a process connects. -1 where the key is in a file.
    pub(super) fn fd(&self) -> RawFd {
        self.socket.as_ref().map_or(-1, AsRawFd::as_raw_fd)
    }

    /// Sends the key to all processes of this user that have connected. Never blocks, because the key fits
    /// into every socket buffer.
    pub(super) fn serve(&self) {
        let Some(socket) = &self.socket else { return };
        loop {
            match socket.accept() {
                Ok((stream, _)) => {
                    if let Err(why) = self.tell(stream) {
                        tracing::warn!("the session key was not passed on to the servers: {why}");
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
                Err(_) => return,
            }
        }
    }

    fn tell(&self, mut stream: UnixStream) -> io::Result<()> {
        check_this_user(&stream)?;
        stream.set_nonblocking(true)?;
        stream.write_all(self.text.as_bytes())
    }
}

fn failed(what: &str, path: &Path, source: io::Error) -> SessionError {
    let path = printable_name(path);
    SessionError::Io {
        what: format!("cannot pass on the session key: {what} {path}"),
        source,
    }
}

/// True if the directory is on a network file system.
fn is_shared(folder: &Path) -> bool {
    statfs::statfs(folder).is_ok_and(|found| is_network(found.filesystem_type()))
}

/// True for a network file system, by the kernel's type number. FUSE is excluded, because all its file
/// systems have one number.
fn is_network(kind: FsType) -> bool {
    const NETWORK: [u32; 13] = [
        0x6969,      // NFS
        0x0bd0_0bd0, // Lustre
        0x4750_4653, // GPFS
        0x1983_0326, // BeeGFS
        0xff53_4d42, // CIFS
        0xfe53_4d42, // SMB2
        0x00c3_6400, // Ceph
        0x5346_414f, // AFS
        0xaad7_aaea, // PanFS
        0x2003_0528, // OrangeFS
        0x7461_636f, // OCFS2
        0x0116_1970, // GFS2
        0x6b41_4653, // AFS of the kernel
    ];
    u32::try_from(kind.0 & 0xffff_ffff).is_ok_and(|number| NETWORK.contains(&number))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn key_handover_settings_are_parsed_back() {
        for text in ["auto", "env", "file", "file:/shared/me", "socket"] {
            assert_eq!(text.parse::<KeyHandover>().unwrap().to_string(), text);
        }
        for text in ["", "file:", "file:here", "environment", "socket:/x"] {
            assert!(text.parse::<KeyHandover>().is_err(), "{text}");
        }
    }

    fn drawn() -> (SessionId, SessionKey) {
        let id = sdm_core::secure::draw_session_id().unwrap();
        (id, SessionKey::draw().unwrap())
    }

    #[test]
    fn key_file_is_private_and_removed() {
        let (session, key) = drawn();
        let way = KeyHandover::File(Some(std::env::temp_dir()));
        let offer = Offer::open(&way, true, session, &key).unwrap().unwrap();
        let path = PathBuf::from(offer.place());
        let mode = |path: &Path| fs::symlink_metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&path), 0o600);
        assert_eq!(mode(path.parent().unwrap()), 0o700);
        assert_eq!(handover::take(Some(&path)).unwrap().key, key);
        // An existing file is not taken over, whichever process created it.
        let again = Offer::open(&way, true, session, &key).map(drop);
        assert!(again.unwrap_err().to_string().contains("File exists"));
        drop(offer);
        assert!(!path.parent().unwrap().exists());
    }

    #[test]
    fn key_socket_serves_many_clients_and_is_removed() {
        let (session, key) = drawn();
        let offer = Offer::open(&KeyHandover::Socket, false, session, &key);
        let offer = offer.unwrap().unwrap();
        let place = PathBuf::from(offer.place());
        let asks: Vec<_> = (0..3)
            .map(|_| {
                let place = place.clone();
                std::thread::spawn(move || handover::take(Some(&place)).unwrap().key)
            })
            .collect();
        while !asks.iter().all(std::thread::JoinHandle::is_finished) {
            offer.serve();
            std::thread::yield_now();
        }
        for ask in asks {
            assert!(ask.join().unwrap() == key);
        }
        drop(offer);
        assert!(handover::take(Some(&place)).is_err());
    }

    #[test]
    fn automatic_key_handover_uses_a_socket_on_one_host() {
        let (session, key) = drawn();
        let offer = Offer::open(&KeyHandover::Auto, false, session, &key).unwrap();
        let place = offer.expect("one machine").place();
        assert!(place.to_str().unwrap().starts_with(SOCKET_SCHEME));
        let offer = Offer::open(&KeyHandover::Environment, false, session, &key);
        assert!(offer.unwrap().is_none());
    }

    #[test]
    fn network_file_systems_are_recognized() {
        assert!(is_network(statfs::NFS_SUPER_MAGIC));
        assert!(is_network(statfs::AFS_SUPER_MAGIC));
        for local in [
            statfs::TMPFS_MAGIC,
            statfs::EXT4_SUPER_MAGIC,
            statfs::OVERLAYFS_SUPER_MAGIC,
        ] {
            assert!(!is_network(local));
        }
        assert!(!is_shared(Path::new("/proc")));
    }
}
