//! Reading single keys from the terminal while no line is edited.

use std::io::{self, ErrorKind};
use std::time::Duration;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::termios::{
    LocalFlags, SetArg, SpecialCharacterIndices, Termios, tcgetattr, tcsetattr,
};
use nix::unistd::{getpgrp, read, tcgetpgrp};
use std::os::fd::AsFd;

/// The terminal at standard input in raw mode: keys are delivered at once and not echoed. Restored on drop.
pub(super) struct Keys {
    before: Termios,
}

impl Keys {
    /// Switches the terminal to raw mode. Ctrl-C and Ctrl-Z are keys unless `signals_stay` is true. None
    /// without a terminal, and while another process group has it.
    pub(super) fn take(signals_stay: bool) -> Option<Self> {
        let stdin = io::stdin();
        if tcgetpgrp(&stdin).ok()? != getpgrp() {
            return None;
        }
        let before = tcgetattr(&stdin).ok()?;
        let mut keys = before.clone();
        keys.local_flags
            .remove(LocalFlags::ICANON | LocalFlags::ECHO);
        // Input that was typed before Ctrl-C is kept.
        keys.local_flags.insert(LocalFlags::NOFLSH);
        if !signals_stay {
            keys.local_flags.remove(LocalFlags::ISIG);
        }
        keys.control_chars[SpecialCharacterIndices::VMIN as usize] = 1;
        keys.control_chars[SpecialCharacterIndices::VTIME as usize] = 0;
        tcsetattr(&stdin, SetArg::TCSANOW, &keys).ok()?;
        Some(Self { before })
    }

    /// The next typed byte. None on time-out, or if a signal has interrupted the wait.
    ///
    /// # Errors
    /// The terminal is gone.
    pub(super) fn next(&self, wait: Duration) -> io::Result<Option<u8>> {
        let stdin = io::stdin();
        let mut fds = [PollFd::new(stdin.as_fd(), PollFlags::POLLIN)];
        let wait = PollTimeout::try_from(wait).unwrap_or(PollTimeout::MAX);
        match poll(&mut fds, wait) {
            Ok(0) | Err(Errno::EINTR) => return Ok(None),
            Ok(_) => {}
            Err(error) => return Err(error.into()),
        }
        // Read without the library's buffer, which would keep input that the prompt is to read.
        let mut byte = [0];
        match read(&stdin, &mut byte) {
            Ok(0) => Err(ErrorKind::UnexpectedEof.into()),
            Ok(_) => Ok(Some(byte[0])),
            Err(Errno::EINTR | Errno::EAGAIN) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        // Nothing can be done if the terminal is gone.
        let _ = tcsetattr(io::stdin(), SetArg::TCSANOW, &self.before);
    }
}
