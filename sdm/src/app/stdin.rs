//! Standard input for the programs, where no commands are read from it.

use std::io::{self, IsTerminal};
use std::os::fd::AsFd;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, Signal};
use nix::unistd::{getpgrp, read, tcgetpgrp};
use sdm_core::limits::BULK_CHUNK_BYTES_MAX;
use sdm_shell::{Control, InputSource};

use super::wake::Wake;

/// Interval at which a background job checks whether the terminal is its own again.
const BACKGROUND_TURN: Duration = Duration::from_millis(500);

/// This process's standard input. A thread reads it, and ends with the process.
pub(super) struct Stdin {
    asked: Sender<()>,
}

impl Stdin {
    /// Starts the thread that reads standard input. It reads nothing before a request.
    pub(super) fn start(controls: Sender<Control>, wake: Wake) -> io::Result<Self> {
        let (asked, requests) = channel();
        thread::Builder::new()
            .name("stdin".to_owned())
            .spawn(move || read_pieces(&requests, &controls, &wake))?;
        Ok(Self { asked })
    }
}

impl InputSource for Stdin {
    fn request(&mut self) {
        // The thread ends only with the process.
        let _ = self.asked.send(());
    }
}

fn read_pieces(requests: &Receiver<()>, controls: &Sender<Control>, wake: &Wake) {
    let mut signals = SigSet::empty();
    signals.add(Signal::SIGTTIN);
    // With SIGTTIN blocked, a read in the background fails with an error and does not stop the process.
    let _ = signals.thread_block();
    let mut buffer = vec![0; BULK_CHUNK_BYTES_MAX];
    while let Ok(()) = requests.recv() {
        let length = read_piece(&mut buffer).unwrap_or_else(|error| {
            crate::sink::complain(format_args!("sdm: cannot read standard input: {error}"));
            0
        });
        let piece = Control::Input(buffer[..length].to_vec());
        if controls.send(piece).is_err() {
            return;
        }
        wake();
    }
}

/// Waits for input and reads it. No bytes mean end of file.
fn read_piece(buffer: &mut [u8]) -> io::Result<usize> {
    let stdin = io::stdin();
    let is_terminal = stdin.is_terminal();
    loop {
        if is_terminal && !in_foreground()? {
            // In the background, typed input belongs to other processes.
            thread::sleep(BACKGROUND_TURN);
            continue;
        }
        match read(stdin.as_fd(), buffer) {
            Ok(length) => return Ok(length),
            Err(Errno::EINTR) => {}
            Err(Errno::EAGAIN) => {
                let mut fds = [PollFd::new(stdin.as_fd(), PollFlags::POLLIN)];
                // The result of `poll` is found by the next read.
                let _ = poll(&mut fds, PollTimeout::NONE);
            }
            // Sent to the background just now.
            Err(Errno::EIO) if is_terminal && !in_foreground()? => {}
            // The terminal is gone.
            Err(Errno::EIO) if is_terminal => return Ok(0),
            Err(error) => return Err(error.into()),
        }
    }
}

/// True if this process is in the terminal's foreground.
fn in_foreground() -> io::Result<bool> {
    match tcgetpgrp(io::stdin().as_fd()) {
        Ok(group) => Ok(group == getpgrp()),
        // The terminal belongs to another session, and its foreground group cannot be queried.
        Err(Errno::ENOTTY) => Ok(false),
        Err(error) => Err(error.into()),
    }
}
