//! A gdb behind its pipes: lines in, records out, and how it is ended.

use std::collections::VecDeque;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::signal::Signal;
use nix::unistd::{read, write};

use crate::child::{GdbChild, LastWords};
use crate::mi::{LineReader, Record};

/// gdb may take this long for each step of its end: to leave by itself, by SIGTERM, and then
/// nothing is alive under it and it is killed.
const END_STEP: Duration = Duration::from_secs(4);
/// How soon to look again whether a process is gone.
pub(super) const LOOK_AGAIN: Duration = Duration::from_millis(5);

/// A gdb, from its start until it was reaped.
pub(crate) struct GdbIo {
    child: GdbChild,
    end: GdbEnd,
    /// Look whether it can be reaped at this time.
    reap_at: Option<Instant>,
    to_gdb: VecDeque<u8>,
    reader: LineReader,
    words: LastWords,
}

/// How far gdb's end is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum GdbEnd {
    /// It is wanted.
    Alive,
    /// Its input was closed; SIGTERM comes at this time.
    Closed(Instant),
    /// It got SIGTERM; SIGKILL comes at this time.
    Terminated(Instant),
    /// It got SIGKILL.
    Killed,
    /// It was reaped.
    Gone,
}

/// Which of gdb's descriptors one is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pipe {
    Commands,
    Records,
    Words,
}

impl GdbIo {
    /// Its Unix process id.
    pub(crate) fn pid(&self) -> i32 {
        self.child.pid()
    }

    pub(crate) fn new(child: GdbChild) -> Self {
        Self {
            child,
            end: GdbEnd::Alive,
            reap_at: None,
            to_gdb: VecDeque::new(),
            reader: LineReader::default(),
            words: LastWords::default(),
        }
    }

    /// The descriptors to watch now, each for reading and for writing.
    pub(crate) fn interests(&self) -> impl Iterator<Item = (RawFd, bool, bool)> {
        let read = [&self.child.stdout, &self.child.stderr];
        let read = read
            .into_iter()
            .flatten()
            .map(|fd| (fd.as_raw_fd(), true, false));
        let write = self
            .child
            .stdin
            .as_ref()
            .filter(|_| !self.to_gdb.is_empty());
        read.chain(write.map(|fd| (fd.as_raw_fd(), false, true)))
    }

    /// Which of its descriptors this is, if any.
    pub(crate) fn pipe(&self, fd: RawFd) -> Option<Pipe> {
        let is = |known: &Option<OwnedFd>| known.as_ref().is_some_and(|k| k.as_raw_fd() == fd);
        if is(&self.child.stdout) {
            Some(Pipe::Records)
        } else if is(&self.child.stderr) {
            Some(Pipe::Words)
        } else {
            is(&self.child.stdin).then_some(Pipe::Commands)
        }
    }

    /// When [`GdbIo::press`] and [`GdbIo::reap`] are to be called.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        let end = match self.end {
            GdbEnd::Closed(at) | GdbEnd::Terminated(at) => Some(at),
            GdbEnd::Alive | GdbEnd::Killed | GdbEnd::Gone => None,
        };
        end.into_iter().chain(self.reap_at).min()
    }

    /// True where the time of [`GdbIo::reap`] has come.
    pub(crate) fn is_reap_due(&self, now: Instant) -> bool {
        self.reap_at.is_some_and(|at| at <= now)
    }

    pub(crate) fn is_gone(&self) -> bool {
        self.end == GdbEnd::Gone
    }

    /// Sends gdb SIGINT: what it is at ends with an error.
    pub(crate) fn interrupt(&mut self) {
        self.child.signal(Signal::SIGINT);
    }

    /// A line for gdb; see [`GdbIo::write`].
    pub(crate) fn push(&mut self, line: &str) {
        self.to_gdb.extend(line.as_bytes());
    }

    /// Writes what fits.
    pub(crate) fn write(&mut self) {
        let Some(fd) = &self.child.stdin else {
            self.to_gdb.clear();
            return;
        };
        while !self.to_gdb.is_empty() {
            match write(fd, self.to_gdb.as_slices().0) {
                Ok(count) => drop(self.to_gdb.drain(..count)),
                Err(Errno::EINTR) => {}
                Err(Errno::EAGAIN) => return,
                // Its end is seen where its output ends.
                Err(_) => self.to_gdb.clear(),
            }
        }
    }

    /// Reads a piece of what gdb says. Gives true where there may be more, false where there is
    /// none now; nothing where it has closed its output.
    pub(crate) fn fill(&mut self) -> Option<bool> {
        let mut buffer = vec![0; 64 << 10];
        loop {
            let Some(fd) = &self.child.stdout else {
                return Some(false);
            };
            match read(fd, &mut buffer) {
                Ok(0) => return None,
                Ok(count) => {
                    self.reader.push(&buffer[..count]);
                    return Some(true);
                }
                Err(Errno::EINTR) => {}
                Err(Errno::EAGAIN) => return Some(false),
                Err(_) => return None,
            }
        }
    }

    /// The next whole record of what was read.
    pub(crate) fn next_record(&mut self) -> Option<Record> {
        self.reader.next_record()
    }

    /// Keeps what gdb says outside of MI, for the moment it dies.
    pub(crate) fn read_words(&mut self, closing: &mut Vec<OwnedFd>) {
        let mut buffer = [0; 4096];
        while let Some(fd) = &self.child.stderr {
            match read(fd, &mut buffer) {
                Ok(count) if count > 0 => self.words.push(&buffer[..count]),
                Err(Errno::EINTR) => {}
                Err(Errno::EAGAIN) => return,
                _ => closing.extend(self.child.stderr.take()),
            }
        }
    }

    /// It is no longer needed: its input ends.
    pub(crate) fn close(&mut self, now: Instant, closing: &mut Vec<OwnedFd>) {
        self.write();
        closing.extend(self.child.stdin.take());
        if self.end == GdbEnd::Alive {
            self.end = GdbEnd::Closed(now + END_STEP);
        }
    }

    /// Ends one that does not end by itself; `before_kill` comes before the last resort.
    pub(crate) fn press(&mut self, now: Instant, before_kill: impl FnOnce()) {
        match self.end {
            GdbEnd::Closed(at) if at <= now => {
                self.child.signal(Signal::SIGTERM);
                self.end = GdbEnd::Terminated(now + END_STEP);
            }
            GdbEnd::Terminated(at) if at <= now => {
                before_kill();
                self.child.signal(Signal::SIGKILL);
                self.end = GdbEnd::Killed;
                self.reap_at = Some(now + LOOK_AGAIN);
            }
            _ => {}
        }
    }

    /// It has closed its output or was killed: looks whether it is gone. Gives how it ended, once.
    pub(crate) fn reap(&mut self, now: Instant, closing: &mut Vec<OwnedFd>) -> Option<String> {
        self.reap_at = None;
        if self.end == GdbEnd::Gone {
            return None;
        }
        closing.extend(self.child.stdout.take());
        if self.child.try_wait().is_none() {
            self.reap_at = Some(now + LOOK_AGAIN);
            if self.end == GdbEnd::Alive {
                self.end = GdbEnd::Closed(now + END_STEP);
            }
            return None;
        }
        self.read_words(closing);
        self.end = GdbEnd::Gone;
        closing.extend(self.child.stdin.take());
        closing.extend(self.child.stderr.take());
        Some(self.words.describe(self.child.try_wait()))
    }
}
