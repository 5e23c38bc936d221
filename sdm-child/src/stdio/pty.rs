//! The pseudo-terminal that is a program's standard output.
//!
//! `portable-pty` opens it, like every pseudo-terminal of the project. That library's reader blocks, and its `spawn`
//! closes descriptors that MPI programs inherit (`PMI_FD`), so that neither is used. Only a non-blocking descriptor of
//! the master is kept, for the event loop, and the program's exec wrapper opens the slave by its path.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;

use nix::sys::termios::{LocalFlags, OutputFlags, SetArg, tcgetattr, tcsetattr};
use portable_pty::{PtyPair, PtySize, SlavePty, native_pty_system};

use super::set_nonblocking;
use crate::sys::duplicate_master;

/// Both ends of a pseudo-terminal.
pub(crate) struct Pty {
    /// This process's end; non-blocking and close-on-exec.
    pub master: OwnedFd,
    /// The program's end, kept open until the program has opened it. If no process has it open, reads of the master
    /// report the end of the stream.
    pub slave: Box<dyn SlavePty + Send>,
    /// Path of the program's end, in `/dev/pts`.
    pub path: PathBuf,
}

impl Pty {
    /// Opens a pseudo-terminal that changes no byte, and turns no byte into a signal.
    ///
    /// # Errors
    /// [`io::Error`] if the system has no pseudo-terminal or no descriptor left.
    pub(crate) fn open() -> io::Result<Self> {
        let opened = native_pty_system().openpty(PtySize::default());
        let PtyPair { master, slave } =
            opened.map_err(|error| io::Error::other(format!("{error:#}")))?;
        let path = master
            .tty_name()
            .ok_or_else(|| io::Error::other("the pseudo-terminal has no name in /dev/pts"))?;
        let master = duplicate_master(master.as_ref())?;
        // On Linux both ends share one set of modes.
        let mut settings = tcgetattr(&master)?;
        settings.output_flags.remove(OutputFlags::OPOST);
        settings
            .local_flags
            .remove(LocalFlags::ECHO | LocalFlags::ISIG);
        tcsetattr(&master, SetArg::TCSANOW, &settings)?;
        set_nonblocking(master.as_fd())?;
        Ok(Self {
            master,
            slave,
            path,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Write;

    use nix::errno::Errno;
    use nix::fcntl::{FcntlArg, FdFlag, fcntl};
    use nix::unistd::read;

    use super::*;

    #[test]
    fn pty_passes_bytes_unchanged_and_is_not_inherited() {
        let pty = Pty::open().unwrap();
        assert_eq!(read(&pty.master, &mut [0; 8]), Err(Errno::EAGAIN));
        let flags = fcntl(&pty.master, FcntlArg::F_GETFD).unwrap();
        assert!(FdFlag::from_bits_retain(flags).contains(FdFlag::FD_CLOEXEC));
        let mut program = File::options().write(true).open(&pty.path).unwrap();
        drop(pty.slave);
        program.write_all(b"a\nb\x03").unwrap();
        let mut buffer = [0; 8];
        // A read of a master includes bytes in transit before it reports that there are none.
        let count = read(&pty.master, &mut buffer).unwrap();
        assert_eq!(&buffer[..count], b"a\nb\x03");
        drop(program);
        assert_eq!(read(&pty.master, &mut buffer), Err(Errno::EIO));
    }
}
