//! The source of the session's name and key: a file, a socket or standard input.

use sdm_text::printable_name;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use nix::unistd::geteuid;
use sdm_system::peer::Peer;
use sdm_system::secret;
use zeroize::Zeroizing;

/// Maximum length of the handed-over text, in bytes.
const TEXT_BYTES_MAX: usize = 4096;
/// Time limit for `sdm` to send the name and key through the socket at which it listens. `sdm` may have to start other
/// processes first.
const SOCKET_WAIT: Duration = Duration::from_secs(60);

/// Prefix of a source that is a socket: `unix:///run/user/1000/sdm-.../key`.
pub const SOCKET_SCHEME: &str = "unix://";

/// A failure to receive the session's name and key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HandoverError {
    /// The variable is missing.
    #[error("{0} is not set: sdm sets it; if you start this program by hand, give --handover")]
    Missing(&'static str),
    /// The variable is malformed. The value is not repeated, as it may be a key.
    #[error("{0} is set, but not by sdm: unset it")]
    Bad(&'static str),
    /// The file, the socket or standard input with the text has failed.
    #[error("handover from {name}: {what}")]
    Source {
        /// Printable path of the file or socket; `-` for standard input.
        name: String,
        /// The error of the file or socket.
        what: String,
    },
}

/// Reads the text from a source.
pub(super) fn read(source: &Path) -> Result<Zeroizing<String>, HandoverError> {
    let name = printable_name(source);
    let failed = |what: String| HandoverError::Source {
        name: name.clone(),
        what,
    };
    let name_bytes = source.as_os_str().as_bytes();
    let input: Result<Box<dyn Read>, Refused> = if source == Path::new("-") {
        // Standard input is not read through the standard library's buffer, which would keep the key.
        let stdin = io::stdin().as_fd().try_clone_to_owned();
        stdin
            .map(|it| Box::new(File::from(it)) as Box<dyn Read>)
            .map_err(Refused::from)
    } else if let Some(path) = name_bytes.strip_prefix(SOCKET_SCHEME.as_bytes()) {
        socket(Path::new(std::ffi::OsStr::from_bytes(path)))
    } else {
        let file = secret::open(source);
        file.map(|it| Box::new(it) as _).map_err(Refused::from)
    };
    let input = input.map_err(|error| failed(error.to_string()))?;
    first_lines(input).map_err(|error| failed(error.to_string()))
}

/// The reason for which a socket was not read.
#[derive(Debug, thiserror::Error)]
enum Refused {
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("the socket belongs to user {0}, but this process runs as user {1}")]
    Listener(u32, u32),
}

/// Connects to a socket of this user for reading. A socket of another user is refused.
fn socket(path: &Path) -> Result<Box<dyn Read>, Refused> {
    let stream = UnixStream::connect(path)?;
    stream.set_read_timeout(Some(SOCKET_WAIT))?;
    let peer = Peer::of(&stream)?;
    if !peer.is_this_user() {
        return Err(Refused::Listener(peer.uid, geteuid().as_raw()));
    }
    Ok(Box::new(stream))
}

/// Reads the lines up to the first empty one. Bytes after that line may be read too, and are discarded.
fn first_lines(mut input: Box<dyn Read>) -> io::Result<Zeroizing<String>> {
    // Only one buffer is used, and it is wiped, so that no copy of a key remains in memory.
    let mut bytes = Zeroizing::new([0; TEXT_BYTES_MAX]);
    let mut count = 0;
    while count < bytes.len() {
        let more = match input.read(&mut bytes[count..]) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            more => more?,
        };
        count += more;
        if more == 0 || lines(&bytes[..count]).any(|line| line == b"\n" || line == b"\r\n") {
            break;
        }
    }
    let wanted = lines(&bytes[..count]).take_while(|line| !line.trim_ascii().is_empty());
    let end: usize = wanted.map(<[u8]>::len).sum();
    let text = std::str::from_utf8(&bytes[..end]);
    let text = text.map_err(|_| io::Error::other("the session key is not UTF-8"))?;
    Ok(Zeroizing::new(text.to_owned()))
}

/// The lines of a text, each with its line end.
fn lines(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    bytes.split_inclusive(|byte| *byte == b'\n')
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::io::Write;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::os::unix::net::UnixListener;
    use std::path::PathBuf;

    use super::super::{SESSION_VARIABLE, take, to_text};
    use super::*;
    use sdm_core::ids::SessionId;
    use sdm_core::secure::{SessionKey, draw_session_id};

    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let name = format!("sdm-handover-{name}-{}", std::process::id());
            let path = std::env::temp_dir().join(name);
            fs::create_dir(&path).unwrap();
            Self(path)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn handed() -> (SessionId, Zeroizing<String>) {
        let id = draw_session_id().unwrap();
        (id, to_text(id, &SessionKey::draw().unwrap()))
    }

    fn refused(path: &Path) -> String {
        take(Some(path)).map(drop).unwrap_err().to_string()
    }

    #[test]
    fn key_file_accessible_to_others_is_refused() {
        let folder = Folder::new("file");
        let path = folder.0.join("key");
        fs::write(&path, handed().1.as_bytes()).unwrap();
        let allow = |mode| fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        allow(0o640);
        assert!(refused(&path).ends_with("run chmod 600 on it"));
        allow(0o600);
        assert!(take(Some(&path)).is_ok());
        let link = folder.0.join("link");
        symlink(&path, &link).unwrap();
        assert!(
            refused(&link).contains("symbolic links"),
            "{}",
            refused(&link)
        );
        let pipe = folder.0.join("pipe");
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::from_bits_truncate(0o600)).unwrap();
        assert!(refused(&pipe).ends_with("the path is not a file"));
        if geteuid().is_root() {
            std::os::unix::fs::chown(&path, Some(65534), None).unwrap();
            assert!(
                refused(&path)
                    .ends_with("the file belongs to user 65534, but this process runs as user 0")
            );
        }
    }

    #[test]
    fn malformed_handover_is_refused() {
        let folder = Folder::new("text");
        let path = folder.0.join("key");
        fs::write(&path, "SDM_SESSION=x\n\nSDM_KEY=behind the end").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
        let error = take(Some(&path)).map(drop).unwrap_err();
        assert_eq!(error, HandoverError::Bad(SESSION_VARIABLE));
        fs::remove_file(&path).unwrap();
        let error = take(Some(&path)).map(drop).unwrap_err();
        assert!(matches!(error, HandoverError::Source { .. }), "{error}");
    }

    #[test]
    fn key_is_read_from_a_socket() {
        let folder = Folder::new("socket");
        let path = folder.0.join("key");
        let source = PathBuf::from(format!("{SOCKET_SCHEME}{}", path.display()));
        assert!(refused(&source).contains("No such file"));
        let listener = UnixListener::bind(&path).unwrap();
        let (id, text) = handed();
        let says = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            stream.write_all(text.as_bytes()).unwrap();
        });
        assert_eq!(take(Some(&source)).unwrap().session, id);
        says.join().unwrap();
        // The socket's file still exists, but no process listens.
        assert!(refused(&source).contains("refused"));
    }
}
