//! The server's connection to a looker, the helper process that inspects processes without a gdb.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, poll};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use sdm_system::programs;

use super::message::{Frames, LookAnswer, LookRequest, Question, View, frame};
use super::{MODE, OF_SYSTEM, READ_BYTES};
use crate::snapshot::Refusal;

/// Time that a looker has for its next answer. It is long, because files may come from a slow file system.
const ANSWER_WAIT: Duration = Duration::from_secs(60);
/// Time that a looker has to end, in milliseconds. Then it is killed.
const END_WAIT: u16 = 1000;

/// A looker's answer about one process.
#[derive(Debug, PartialEq, Eq)]
pub struct Answer {
    /// The number of the request that this answers.
    pub number: u64,
    /// Pid of the inspected process.
    pub pid: i32,
    /// The result, or the reason why there is none.
    pub seen: Result<View, Refusal>,
    /// True for the last answer about this process.
    pub is_last: bool,
    /// Processor time that the looker has used since its start.
    pub processor: Duration,
}

/// A looker process. Drop ends it.
pub struct Looker {
    child: Child,
    socket: UnixStream,
    frames: Frames,
    unsent: Vec<u8>,
    /// Processes still to be answered, by the number of the request.
    open: BTreeMap<u64, Vec<i32>>,
    until: Option<Instant>,
}

impl Looker {
    /// Starts a looker: `program` is an executable that calls [`super::run`]. With `of_system` it also uses the
    /// system's debug information.
    ///
    /// # Errors
    /// [`io::Error`] of the system.
    pub fn start(program: &Path, of_system: bool) -> io::Result<Self> {
        let (socket, theirs) = UnixStream::pair()?;
        let out = OwnedFd::from(theirs.try_clone()?);
        let mut command = programs::at(program);
        command
            .arg(MODE)
            .args(of_system.then_some(OF_SYSTEM))
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::from(out))
            .stderr(Stdio::null());
        sdm_system::confine(&mut command);
        sdm_system::goes_with_its_parent(&mut command);
        let child = command.spawn()?;
        sdm_system::set_nonblocking(socket.as_fd())?;
        Ok(Self {
            child,
            socket,
            frames: Frames::default(),
            unsent: Vec::new(),
            open: BTreeMap::new(),
            until: None,
        })
    }

    /// Requests an inspection of these processes. Each process is answered once, or with samples once for each sample.
    pub fn ask(&mut self, now: Instant, number: u64, pids: Vec<i32>, question: Question) {
        let period = match question {
            Question::Samples { period, .. } => period,
            _ => Duration::ZERO,
        };
        let ask = LookRequest {
            number,
            pids,
            question,
        };
        // The question has only pids, and rules that came in a message. It is never too long.
        self.unsent.extend(frame(&ask).unwrap_or_default());
        self.open.insert(ask.number, ask.pids);
        self.until = Some(now + period + ANSWER_WAIT);
        self.send();
    }

    /// Pid of the looker process.
    #[must_use]
    pub fn pid(&self) -> i32 {
        self.child.id().cast_signed()
    }

    /// The descriptor that becomes readable when there is an answer, or when the looker is gone.
    #[must_use]
    pub fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// The descriptor to poll for reading, and whether to poll it for writing too.
    #[must_use]
    pub fn interest(&self) -> (RawFd, bool) {
        (self.socket.as_raw_fd(), !self.unsent.is_empty())
    }

    /// The time at which [`Looker::give_up`] must be called; `None` if no answer is due.
    #[must_use]
    pub fn until(&self) -> Option<Instant> {
        self.until
    }

    /// Receives answers; true if the looker is gone or has sent an invalid answer: nothing more will come.
    pub fn take(&mut self, now: Instant, answers: &mut Vec<Answer>) -> bool {
        self.send();
        let mut bytes = [0; READ_BYTES];
        loop {
            match self.socket.read(&mut bytes) {
                Ok(0) => break,
                Ok(count) => self.frames.push(&bytes[..count]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    let is_sound = self.read(now, answers).is_ok();
                    if !is_sound {
                        self.give_up(answers);
                    }
                    return !is_sound;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
        let _ = self.read(now, answers);
        self.give_up(answers);
        true
    }

    fn read(&mut self, now: Instant, answers: &mut Vec<Answer>) -> io::Result<()> {
        while let Some(told) = self.frames.take()? {
            let LookAnswer {
                number,
                pid,
                seen,
                is_last,
                processor,
            } = told;
            let Some(pids) = self.open.get_mut(&number) else {
                continue;
            };
            let Some(at) = pids.iter().position(|open| *open == pid) else {
                continue;
            };
            if is_last {
                pids.remove(at);
            }
            if pids.is_empty() {
                self.open.remove(&number);
            }
            answers.push(Answer {
                number,
                pid,
                seen,
                is_last,
                processor,
            });
            self.until = (!self.open.is_empty()).then(|| now + ANSWER_WAIT);
        }
        Ok(())
    }

    /// Ends the looker. When this returns, the looker and its child trace no process any more: a looker that is asked to
    /// end ends its child first. A looker that does not end is killed; then the kernel detaches its child a moment later.
    fn end(&mut self) -> io::Result<ExitStatus> {
        if self.child.try_wait()?.is_none() {
            let _ = kill(Pid::from_raw(self.pid()), Signal::SIGTERM);
            // No event is asked for: only the end of the other side ends the wait.
            let mut fds = [PollFd::new(self.socket.as_fd(), PollFlags::empty())];
            while let Err(Errno::EINTR) = poll(&mut fds, END_WAIT) {}
            let _ = self.child.kill();
        }
        self.child.wait()
    }

    /// Ends the looker, and answers the open questions with the reason.
    pub fn give_up(&mut self, answers: &mut Vec<Answer>) {
        let how = match self.end() {
            Ok(status) => status.to_string(),
            Err(error) => error.to_string(),
        };
        let text = format!("the sampling process has ended: {how}");
        for (number, pids) in std::mem::take(&mut self.open) {
            answers.extend(pids.into_iter().map(|pid| Answer {
                number,
                pid,
                seen: Err(Refusal::System { text: text.clone() }),
                is_last: true,
                processor: Duration::ZERO,
            }));
        }
        self.until = None;
    }

    fn send(&mut self) {
        while !self.unsent.is_empty() {
            match self.socket.write(&self.unsent) {
                Ok(0) => return,
                Ok(count) => {
                    self.unsent.drain(..count);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // If the looker has ended, the next read reports that.
                Err(_) => return,
            }
        }
    }
}

impl Drop for Looker {
    fn drop(&mut self) {
        let _ = self.end();
    }
}
