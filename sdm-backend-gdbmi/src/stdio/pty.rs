//! The pty that is the program's standard output.
//!
//! Opened with `nix`, so that its descriptors are close-on-exec from birth and our own to keep.

use std::fs::{File, OpenOptions};
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

use nix::fcntl::OFlag;
use nix::pty::{grantpt, posix_openpt, ptsname_r, unlockpt};
use nix::sys::termios::{LocalFlags, OutputFlags, SetArg, tcgetattr, tcsetattr};

use super::set_nonblocking;

/// A pty pair.
pub(crate) struct Pty {
    /// Our end, non-blocking.
    pub(crate) master: OwnedFd,
    /// The program's end, kept open until the program has opened it itself.
    pub(crate) slave: File,
    /// Where the program's end is.
    pub(crate) path: PathBuf,
}

impl Pty {
    /// Opens a pty that changes no byte on its way and makes no signal of any.
    pub(crate) fn open() -> std::io::Result<Self> {
        let flags = OFlag::O_RDWR | OFlag::O_NOCTTY | OFlag::O_CLOEXEC;
        let master = posix_openpt(flags)?;
        grantpt(&master)?;
        unlockpt(&master)?;
        let path = PathBuf::from(ptsname_r(&master)?);
        let slave = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(OFlag::O_NOCTTY.bits())
            .open(&path)?;
        let mut settings = tcgetattr(&slave)?;
        settings.output_flags.remove(OutputFlags::OPOST);
        settings
            .local_flags
            .remove(LocalFlags::ECHO | LocalFlags::ISIG);
        tcsetattr(&slave, SetArg::TCSANOW, &settings)?;
        let master = OwnedFd::from(master);
        set_nonblocking(std::os::fd::AsFd::as_fd(&master))?;
        Ok(Self {
            master,
            slave,
            path,
        })
    }
}
