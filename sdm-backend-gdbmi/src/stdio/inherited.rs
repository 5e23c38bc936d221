//! This process's own standard streams, for programs to have as theirs.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, RawFd};

use nix::fcntl::{FcntlArg, fcntl};
use nix::sys::stat::{SFlag, fstat};

/// The descriptors that every shell can name.
const NAMEABLE_MAX: RawFd = 9;

/// This process's standard streams, as a program that gdb starts can have them.
///
/// What has a place in the file system, pipes included, is opened anew through this process's `/proc`,
/// so that nobody on the way holds a descriptor of it. A socket cannot be: it is handed down under
/// another number.
#[derive(Clone, Debug)]
pub struct InheritedStreams {
    redirects: String,
}

impl InheritedStreams {
    /// Those that this process has now. To be called early: sockets need a number that a shell can
    /// name, below 10.
    ///
    /// # Errors
    /// A stream is closed, or a socket for which no such number is free.
    pub fn take() -> io::Result<Self> {
        let stdin = io::stdin();
        let stdout = io::stdout();
        let stderr = io::stderr();
        let mut redirects = String::new();
        for (number, arrow, fd) in [
            (0, "<", stdin.as_fd()),
            (1, ">", stdout.as_fd()),
            (2, "2>", stderr.as_fd()),
        ] {
            redirects.push_str(&redirect(number, arrow, fd)?);
        }
        Ok(Self { redirects })
    }

    /// For a shell.
    pub(crate) fn redirects(&self) -> &str {
        &self.redirects
    }
}

/// One of them; files are added to, as others write there too.
fn redirect(number: RawFd, arrow: &str, fd: BorrowedFd<'_>) -> io::Result<String> {
    let named = |error: io::Error| {
        io::Error::new(error.kind(), format!("standard stream {number}: {error}"))
    };
    let mode = fstat(fd).map_err(|errno| named(errno.into()))?.st_mode;
    let is_socket = SFlag::from_bits_truncate(mode) & SFlag::S_IFMT == SFlag::S_IFSOCK;
    if !is_socket {
        let own = std::process::id();
        let twice = if number == 0 { "" } else { ">" };
        return Ok(format!(" {arrow}{twice}/proc/{own}/fd/{number}"));
    }
    let copy = fcntl(fd, FcntlArg::F_DUPFD(3)).map_err(|errno| named(errno.into()))?;
    if copy > NAMEABLE_MAX {
        let _ = nix::unistd::close(copy);
        let why = "is a socket, and no descriptor from 3 to 9 is free for it";
        return Err(named(io::Error::other(why)));
    }
    Ok(format!(" {arrow}&{copy} {copy}>&-"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_opened_anew_and_sockets_handed_down() {
        let (pipe, _writer) = io::pipe().unwrap();
        let own = std::process::id();
        let check = |number, arrow, expect: &str| {
            let words = redirect(number, arrow, pipe.as_fd()).unwrap();
            assert_eq!(words, expect.replace("OWN", &own.to_string()));
        };
        check(0, "<", " </proc/OWN/fd/0");
        check(1, ">", " >>/proc/OWN/fd/1");
        check(2, "2>", " 2>>/proc/OWN/fd/2");
        let (socket, _other) = std::os::unix::net::UnixStream::pair().unwrap();
        // Which numbers are free is not for this test to say.
        if let Ok(words) = redirect(1, ">", socket.as_fd()) {
            let number: RawFd = words[3..4].parse().unwrap();
            assert_eq!(words, format!(" >&{number} {number}>&-"));
            let _ = nix::unistd::close(number);
        }
    }
}
