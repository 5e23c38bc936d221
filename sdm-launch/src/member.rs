//! One process that was started: its two pipes, its end, its last words.

use std::collections::VecDeque;
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::process::{Child, Command, ExitStatus, Stdio};

use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;

use crate::lines::Lines;
use crate::{LaunchError, sys};

/// How many of the last lines a process wrote are kept.
const LAST_WORDS_MAX: usize = 20;
/// How much is read in one go, in bytes: the events of one call are bounded by this.
const READ_BYTES_MAX: usize = 16 << 10;
/// How much an ended process may still have in a pipe, in bytes: what a pipe can hold at most where
/// nobody writes any more. Something else that kept the pipe open cannot hold up the end.
const LEFT_BYTES_MAX: usize = 1 << 20;

/// A line of a member.
pub(crate) struct Line {
    pub(crate) stderr: bool,
    pub(crate) text: String,
}

/// One process that was started.
pub(crate) struct Member {
    /// The server that it is; none for `mpirun` and the like.
    pub(crate) server: Option<u32>,
    child: Child,
    pid: Pid,
    /// Readable at the end; none once that was seen.
    end: Option<OwnedFd>,
    streams: [Stream; 2],
    last_words: VecDeque<String>,
}

struct Stream {
    /// None once it was closed by the other side.
    pipe: Option<io::PipeReader>,
    lines: Lines,
}

impl Member {
    /// Starts `command` in a session of its own, stdin from /dev/null.
    pub(crate) fn spawn(
        mut command: Command,
        server: Option<u32>,
        who: &str,
    ) -> Result<Self, LaunchError> {
        let program = command.get_program().to_owned();
        let spawn = |source| LaunchError::Spawn {
            who: who.to_owned(),
            program: program.clone().into(),
            source,
        };
        let (stdout, stdout_writer) = io::pipe().map_err(spawn)?;
        let (stderr, stderr_writer) = io::pipe().map_err(spawn)?;
        for pipe in [&stdout, &stderr] {
            sys::set_nonblocking(pipe.as_fd()).map_err(spawn)?;
        }
        command
            .stdin(Stdio::null())
            .stdout(stdout_writer)
            .stderr(stderr_writer);
        sys::isolate(&mut command);
        let mut child = command.spawn().map_err(spawn)?;
        let end = match sys::pidfd_open(child.id()) {
            Ok(end) => end,
            Err(source) => {
                // Not watched is not kept; both calls can only fail where it has ended already.
                let _ = child.kill();
                let _ = child.wait();
                return Err(LaunchError::Watch {
                    who: who.to_owned(),
                    op: "pidfd_open",
                    source,
                });
            }
        };
        let pid = Pid::from_raw(child.id().cast_signed());
        let stream = |pipe| Stream {
            pipe: Some(pipe),
            lines: Lines::default(),
        };
        Ok(Self {
            server,
            child,
            pid,
            end: Some(end),
            streams: [stream(stdout), stream(stderr)],
            last_words: VecDeque::new(),
        })
    }

    /// The descriptors that are still open.
    pub(crate) fn fds(&self) -> impl Iterator<Item = RawFd> {
        self.borrowed_fds().map(|fd| fd.as_raw_fd())
    }

    /// The same, borrowed.
    pub(crate) fn borrowed_fds(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let pipes = self.streams.iter().filter_map(|it| it.pipe.as_ref());
        pipes
            .map(AsFd::as_fd)
            .chain(self.end.as_ref().map(AsFd::as_fd))
    }

    /// Whether the end was seen.
    pub(crate) fn is_over(&self) -> bool {
        self.end.is_none()
    }

    /// Whether `fd` is the descriptor that tells of the end.
    pub(crate) fn is_end(&self, fd: RawFd) -> bool {
        self.end.as_ref().is_some_and(|end| end.as_raw_fd() == fd)
    }

    /// Reads once from the pipe `fd`; whether there may be more.
    pub(crate) fn read(&mut self, fd: RawFd, line: &mut impl FnMut(Line)) -> bool {
        let is_it = |stream: &Stream| stream.pipe.as_ref().is_some_and(|p| p.as_raw_fd() == fd);
        match self.streams.iter().position(is_it) {
            Some(index) => self.read_stream(index, line) > 0,
            None => false,
        }
    }

    /// Whether it has ended, and its status: what is left in the pipes comes first, then they are
    /// closed. There is no status where this process ignores SIGCHLD, so that the kernel forgets it.
    pub(crate) fn reap(&mut self, line: &mut impl FnMut(Line)) -> Option<Option<ExitStatus>> {
        let status = match self.child.try_wait() {
            Ok(Some(status)) => Some(status),
            Ok(None) => return None,
            Err(_) => None,
        };
        for index in 0..self.streams.len() {
            let mut left = LEFT_BYTES_MAX;
            while left > 0 {
                match self.read_stream(index, line) {
                    0 => break,
                    read => left = left.saturating_sub(read),
                }
            }
            self.close_stream(index, line);
        }
        self.end = None;
        Some(status)
    }

    /// The last lines that it wrote; announcements are none.
    pub(crate) fn take_last_words(&mut self) -> Vec<String> {
        std::mem::take(&mut self.last_words).into()
    }

    /// Keeps a line for [`Self::take_last_words`].
    pub(crate) fn remember(&mut self, text: &str) {
        if self.last_words.len() == LAST_WORDS_MAX {
            self.last_words.pop_front();
        }
        self.last_words.push_back(text.to_owned());
    }

    /// Asks it to end.
    pub(crate) fn terminate(&self) {
        if !self.is_over() {
            // It is not reaped yet, so the pid is still its own; ESRCH means that it has ended.
            let _ = kill(self.pid, Signal::SIGTERM);
        }
    }

    /// Ends it and everything in its process group.
    pub(crate) fn kill(&self) {
        if !self.is_over() {
            // As above: the group exists as long as its leader is not reaped.
            let _ = killpg(self.pid, Signal::SIGKILL);
        }
    }

    /// Waits for the end; only after [`Self::kill`].
    pub(crate) fn wait(&mut self) {
        // It was killed: waiting is short, and there is nothing to do about an error.
        let _ = self.child.wait();
        self.end = None;
    }

    /// Reads once; how many bytes, 0 where there is nothing now or nothing any more.
    fn read_stream(&mut self, index: usize, line: &mut impl FnMut(Line)) -> usize {
        let stderr = index == 1;
        let stream = &mut self.streams[index];
        let Some(pipe) = &mut stream.pipe else {
            return 0;
        };
        let mut buffer = [0; READ_BYTES_MAX];
        loop {
            match pipe.read(&mut buffer) {
                Ok(0) => break,
                Ok(read) => {
                    let give = |text| line(Line { stderr, text });
                    stream.lines.push(&buffer[..read], give);
                    return read;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return 0,
                // A pipe that cannot be read is as good as closed.
                Err(_) => break,
            }
        }
        self.close_stream(index, line);
        0
    }

    fn close_stream(&mut self, index: usize, line: &mut impl FnMut(Line)) {
        let stderr = index == 1;
        let stream = &mut self.streams[index];
        stream.pipe = None;
        stream.lines.finish(|text| line(Line { stderr, text }));
    }
}
