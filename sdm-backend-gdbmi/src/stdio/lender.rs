//! A process that lends a program's ends of its pipes until the program has opened them.
//!
//! A shell that gdb starts opens them by path, so that neither gdb nor the program holds a descriptor of ours. This
//! process is kept out of core files, and so nobody but root may open what it has: not even its own user's
//! processes. Another process, which has nothing to hide, may be looked into. FIFOs would have to be made in some
//! folder, and taken out of it whoever is killed.

use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Says that it is there, and waits for the end of its input: it goes with this process, however that ends. What says so
/// is a process of its own, as a shell puts its own output elsewhere meanwhile.
const WAIT: [&str; 2] = ["-c", "(echo >&0); read -r line"];
/// How long it may take to be there.
const START_WAIT: Duration = Duration::from_secs(30);

/// A shell whose standard output is what a program is to read, and whose standard error is where it is to write.
#[derive(Debug)]
pub(crate) struct Lender {
    child: Child,
    has_stdin: bool,
    /// Open as long as it is to be there.
    input: UnixStream,
}

impl Lender {
    /// Hands both over to it; this process keeps neither. When it comes back they can be opened: a moment before, a
    /// process that has just been started may not be looked into either.
    pub(crate) fn start(stdin: Option<OwnedFd>, stderr: OwnedFd) -> io::Result<Self> {
        let has_stdin = stdin.is_some();
        let (input, theirs) = UnixStream::pair()?;
        let mut command = Command::new("/bin/sh");
        command
            .args(WAIT)
            .stdin(OwnedFd::from(theirs))
            .stderr(stderr);
        command.stdout(stdin.map_or_else(Stdio::null, Stdio::from));
        // What a terminal sends is not for it.
        let child = command.process_group(0).spawn()?;
        // From now on only it has their end.
        drop(command);
        input.set_read_timeout(Some(START_WAIT))?;
        let mut lender = Self {
            child,
            has_stdin,
            input,
        };
        lender.input.read_exact(&mut [0])?;
        Ok(lender)
    }

    /// Where the program's standard input is to be opened.
    pub(crate) fn stdin(&self) -> PathBuf {
        match self.has_stdin {
            true => self.path(1),
            false => "/dev/null".into(),
        }
    }

    /// The same for standard error.
    pub(crate) fn stderr(&self) -> PathBuf {
        self.path(2)
    }

    fn path(&self, fd: u32) -> PathBuf {
        format!("/proc/{}/fd/{fd}", self.child.id()).into()
    }
}

impl Drop for Lender {
    fn drop(&mut self) {
        // It has nothing to lose, and is about to end anyway.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::io::Write;

    #[test]
    fn what_is_lent_is_opened_by_path_and_not_kept() {
        let (theirs, mut ours) = io::pipe().unwrap();
        let (mut errors, their_errors) = io::pipe().unwrap();
        let lender = Lender::start(Some(theirs.into()), their_errors.into()).unwrap();
        let mut stdin = File::open(lender.stdin()).unwrap();
        let mut stderr = File::options().write(true).open(lender.stderr()).unwrap();
        drop(lender);
        ours.write_all(b"to it").unwrap();
        stderr.write_all(b"from it").unwrap();
        drop(ours);
        drop(stderr);
        let (mut read, mut said) = (String::new(), String::new());
        stdin.read_to_string(&mut read).unwrap();
        errors.read_to_string(&mut said).unwrap();
        assert_eq!((&*read, &*said), ("to it", "from it"));
    }
}
