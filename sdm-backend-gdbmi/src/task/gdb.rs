//! A gdb process and its pipes: commands are written, records are read, and its end is handled.

use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::rc::Rc;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::signal::Signal;
use nix::unistd::{read, write};

use crate::gdb_instance::Interest;
use sdm_child::ShimLink;
use sdm_child::{GdbChild, LastWords};
use sdm_mi::{LineReader, Record};

use sdm_gdb::{AbandonedCommand, InterruptGate};

/// Time that gdb has for each step of its end: to exit by itself, then to exit on SIGTERM. Then it is killed by
/// SIGKILL.
const END_STEP: Duration = Duration::from_secs(4);
/// Time after which gdb is interrupted again if it has not answered: a gdb that has not begun with the question ignores
/// a SIGINT.
const INTERRUPT_AGAIN: Duration = Duration::from_secs(1);
/// Interval of checks whether a process has ended.
pub(super) const LOOK_AGAIN: Duration = Duration::from_millis(5);

/// Memory kept for the command buffer, in bytes.
const KEPT_BYTES: usize = 4 << 10;

/// A gdb process, from its start until it is reaped.
pub(crate) struct GdbIo {
    /// The process; `None` until it is started.
    child: Option<GdbChild>,
    /// Becomes readable when gdb ends; `None` without a gdb, or if the kernel has no pidfds. The end of gdb's output
    /// does not show this, as child processes of gdb can keep the output open.
    pidfd: Option<OwnedFd>,
    end: GdbEnd,
    /// Time of the next attempt to reap gdb; `None` if none is due.
    reap_at: Option<Instant>,
    gate: InterruptGate,
    /// Time of the next interrupt of gdb; `None` if none is due.
    interrupt_at: Option<Instant>,
    to_gdb: Vec<u8>,
    /// Number of bytes of `to_gdb` that were written.
    written: usize,
    reader: LineReader,
    words: LastWords,
}

/// Progress of gdb's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum GdbEnd {
    /// gdb is needed.
    Alive,
    /// gdb's input was closed; SIGTERM follows at this time.
    Closed(Instant),
    /// SIGTERM was sent; SIGKILL follows at this time.
    Terminated(Instant),
    /// SIGKILL was sent.
    Killed,
    /// The process was reaped.
    Gone,
}

/// The role of one of gdb's descriptors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pipe {
    Commands,
    Records,
    Words,
    /// The descriptor that reports gdb's end.
    End,
}

/// Whether all available output of gdb was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Filled {
    /// More output may be available.
    Part,
    /// All available output was read.
    All,
}

impl GdbIo {
    /// The pid of gdb; 0 while there is none.
    pub(crate) fn pid(&self) -> i32 {
        self.child.as_ref().map_or(0, GdbChild::pid)
    }

    /// True while gdb has not been started but still can be.
    pub(crate) fn is_to_come(&self) -> bool {
        self.child.is_none() && self.end == GdbEnd::Alive
    }

    /// The shim that is gdb's parent; `None` if gdb is a child of this process.
    pub(crate) fn shim(&self) -> Option<&Rc<ShimLink>> {
        self.child.as_ref()?.shim()
    }

    pub(crate) fn new(child: GdbChild) -> Self {
        let mut io = Self::to_come();
        io.begin(child);
        io
    }

    /// A gdb that is started later; commands wait for it.
    pub(crate) fn to_come() -> Self {
        Self {
            pidfd: None,
            child: None,
            end: GdbEnd::Alive,
            reap_at: None,
            gate: InterruptGate::default(),
            interrupt_at: None,
            to_gdb: Vec::new(),
            written: 0,
            reader: LineReader::default(),
            words: LastWords::default(),
        }
    }

    /// Provides the started process.
    pub(crate) fn begin(&mut self, child: GdbChild) {
        self.pidfd = sdm_system::pidfd_open(child.pid().cast_unsigned()).ok();
        self.child = Some(child);
    }

    /// The descriptors to watch now, each with the directions to watch.
    pub(crate) fn interests(&self) -> impl Iterator<Item = Interest> {
        let child = self.child.iter();
        let read = child.flat_map(|it| [&it.stdout, &it.stderr]);
        let read = read.flatten().map(|fd| (fd.as_raw_fd(), true, false));
        let write = self.child.as_ref().and_then(|it| it.stdin.as_ref());
        let write = write.filter(|_| !self.to_gdb.is_empty());
        let end = self.pidfd.iter().map(|fd| (fd.as_raw_fd(), true, false));
        read.chain(write.map(|fd| (fd.as_raw_fd(), false, true)))
            .chain(end)
    }

    /// The role of a descriptor; `None` if it is not one of gdb's.
    pub(crate) fn pipe(&self, fd: RawFd) -> Option<Pipe> {
        let is = |known: &Option<OwnedFd>| known.as_ref().is_some_and(|k| k.as_raw_fd() == fd);
        let child = self.child.as_ref()?;
        if is(&child.stdout) {
            Some(Pipe::Records)
        } else if is(&child.stderr) {
            Some(Pipe::Words)
        } else if is(&self.pidfd) {
            Some(Pipe::End)
        } else {
            is(&child.stdin).then_some(Pipe::Commands)
        }
    }

    /// The time at which [`GdbIo::press`], [`GdbIo::reap`] or an interrupt is due; `None` if none is.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        let end = match self.end {
            GdbEnd::Closed(at) | GdbEnd::Terminated(at) => Some(at),
            GdbEnd::Alive | GdbEnd::Killed | GdbEnd::Gone => None,
        };
        let others = self.reap_at.into_iter().chain(self.interrupt_at);
        end.into_iter().chain(others).min()
    }

    /// True if a call of [`GdbIo::reap`] is due.
    pub(crate) fn is_reap_due(&self, now: Instant) -> bool {
        self.reap_at.is_some_and(|at| at <= now)
    }

    pub(crate) fn is_gone(&self) -> bool {
        self.end == GdbEnd::Gone
    }

    /// Abandons a command: gdb is interrupted in it if that harms no program.
    pub(crate) fn break_off(&mut self, token: u64) -> AbandonedCommand {
        self.gate.break_off(token)
    }

    /// Resumes gdb, if it was stopped by a signal: it is to end, or to carry out an urgent command.
    pub(crate) fn resume(&self) {
        if let Some(child) = self.child.as_ref().filter(|_| self.end != GdbEnd::Gone) {
            sdm_inferior::go_on(child.pid());
        }
    }

    /// Reports that the drivers know of no attach under way.
    pub(crate) fn all_attached(&mut self) {
        self.gate.all_attached();
    }

    /// Queues a line for gdb, which begins with its token; see [`GdbIo::write`].
    pub(crate) fn push(&mut self, line: &str) {
        self.gate.push(line);
    }

    /// Writes the lines that gdb may receive now, and interrupts an unwanted question.
    pub(crate) fn write(&mut self, now: Instant) {
        while let Some(line) = self.gate.poll_line() {
            self.to_gdb.extend_from_slice(line.as_bytes());
        }
        self.write_through();
        // A gdb that is about to end reads the end of its input after the question, and then detaches from its
        // programs. A SIGINT would kill these at that moment.
        if !self.gate.is_interrupted() || self.end != GdbEnd::Alive {
            self.interrupt_at = None;
        }
        if self.gate.poll_interrupt() || self.interrupt_at.is_some_and(|at| at <= now) {
            self.signal(Signal::SIGINT);
            self.interrupt_at = (self.end == GdbEnd::Alive).then_some(now + INTERRUPT_AGAIN);
        }
    }

    fn signal(&mut self, signal: Signal) {
        if let Some(child) = &mut self.child {
            child.signal(signal);
        }
    }

    fn write_through(&mut self) {
        let Some(child) = &self.child else { return };
        let Some(fd) = &child.stdin else {
            self.to_gdb.clear();
            self.written = 0;
            return;
        };
        while self.written < self.to_gdb.len() {
            match write(fd, &self.to_gdb[self.written..]) {
                Ok(count) => self.written += count,
                Err(Errno::EINTR) => {}
                Err(Errno::EAGAIN) => return,
                // gdb's end is noticed at the end of its output.
                Err(_) => break,
            }
        }
        self.to_gdb.clear();
        self.to_gdb.shrink_to(KEPT_BYTES);
        self.written = 0;
    }

    /// Reads a piece of gdb's output; `None` if it has closed its output.
    pub(crate) fn fill(&mut self) -> Option<Filled> {
        loop {
            let Some(fd) = self.child.as_ref().and_then(|it| it.stdout.as_ref()) else {
                return Some(Filled::All);
            };
            let room = self.reader.room();
            let room_bytes = room.len();
            match read(fd, room) {
                Ok(0) => return None,
                Ok(count) => {
                    self.reader.take(count);
                    // Later output makes the descriptor readable again, and so does gdb's end.
                    let is_all = count < room_bytes && self.pidfd.is_some();
                    return Some(if is_all { Filled::All } else { Filled::Part });
                }
                Err(Errno::EINTR) => {}
                Err(Errno::EAGAIN) => return Some(Filled::All),
                Err(_) => return None,
            }
        }
    }

    /// The next complete record that was read; `None` if there is none.
    pub(crate) fn next_record(&mut self) -> Option<Record> {
        loop {
            let record = self.reader.next_record()?;
            if let Some(record) = self.gate.receive(record) {
                return Some(record);
            }
        }
    }

    /// Reads gdb's standard error, and keeps its last lines to describe gdb's end.
    pub(crate) fn read_words(&mut self, closing: &mut Vec<OwnedFd>) {
        let mut buffer = [0; 4096];
        let Some(child) = &mut self.child else { return };
        while let Some(fd) = &child.stderr {
            match read(fd, &mut buffer) {
                Ok(count) if count > 0 => self.words.push(&buffer[..count]),
                Err(Errno::EINTR) => {}
                Err(Errno::EAGAIN) => return,
                _ => closing.extend(child.stderr.take()),
            }
        }
    }

    /// Closes gdb's input, because gdb is no longer needed.
    pub(crate) fn close(&mut self, now: Instant, closing: &mut Vec<OwnedFd>) {
        self.write(now);
        let Some(child) = &mut self.child else {
            self.end = GdbEnd::Gone;
            return;
        };
        closing.extend(child.stdin.take());
        self.resume();
        if self.end == GdbEnd::Alive {
            self.end = GdbEnd::Closed(now + END_STEP);
            self.interrupt_at = None;
        }
    }

    /// True if a call of [`GdbIo::press`] is due.
    pub(crate) fn is_press_due(&self, now: Instant) -> bool {
        matches!(self.end, GdbEnd::Closed(at) | GdbEnd::Terminated(at) if at <= now)
    }

    /// True if gdb is still needed. Called when it has closed its output: then its end is unexpected.
    pub(crate) fn dies_unasked(&self) -> bool {
        self.end == GdbEnd::Alive
    }

    /// True if a signal has ended gdb, so that it has not detached from its processes.
    pub(crate) fn was_killed(&mut self) -> bool {
        self.child.as_mut().is_some_and(GdbChild::was_killed)
    }

    /// Ends a gdb that does not end by itself. `before_kill` is called before SIGKILL.
    pub(crate) fn press(&mut self, now: Instant, before_kill: impl FnOnce()) {
        match self.end {
            GdbEnd::Closed(at) if at <= now => {
                tracing::warn!(
                    pid = self.pid(),
                    "gdb did not exit by itself; sdm sends SIGTERM"
                );
                self.signal(Signal::SIGTERM);
                self.resume();
                self.end = GdbEnd::Terminated(now + END_STEP);
            }
            GdbEnd::Terminated(at) if at <= now => {
                tracing::warn!(
                    pid = self.pid(),
                    "gdb did not exit after SIGTERM; sdm sends SIGKILL"
                );
                before_kill();
                self.signal(Signal::SIGKILL);
                self.end = GdbEnd::Killed;
                self.reap_at = Some(now + LOOK_AGAIN);
            }
            _ => {}
        }
    }

    /// Checks whether gdb is gone, after it has closed its output or was killed. Returns a description of its end,
    /// once; otherwise `None`.
    pub(crate) fn reap(&mut self, now: Instant, closing: &mut Vec<OwnedFd>) -> Option<String> {
        self.reap_at = None;
        if self.end == GdbEnd::Gone {
            return None;
        }
        let child = self.child.as_mut()?;
        closing.extend(child.stdout.take());
        let status = child.try_wait();
        if status.is_none() {
            // gdb has closed its output, so it is about to end.
            self.reap_at = Some(now + LOOK_AGAIN);
            if self.end == GdbEnd::Alive {
                self.end = GdbEnd::Closed(now + END_STEP);
            }
            return None;
        }
        self.read_words(closing);
        if self.was_killed() {
            sdm_inferior::end_trials_of(self.pid());
        }
        self.end = GdbEnd::Gone;
        self.interrupt_at = None;
        closing.extend(self.pidfd.take());
        if let Some(child) = &mut self.child {
            closing.extend(child.stdin.take());
            closing.extend(child.stderr.take());
        }
        let how = self.words.describe(status);
        tracing::info!(pid = self.pid(), "gdb ended: {how}");
        Some(how)
    }
}
