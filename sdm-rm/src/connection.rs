//! Connections of callers (processes with a request) to a manager's background process.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use nix::poll::PollFlags;

use crate::answer::{Answer, Look, Question};
use crate::controller::Ticket;
use crate::json_line::{self, ANSWER_BYTES_MAX, LineError, QUESTION_BYTES_MAX};

/// Time limit for a caller to send its request, and to read the answer.
const PATIENCE: Duration = Duration::from_secs(30);

/// The event for which a caller waits. A caller is a process with a request.
#[derive(Debug)]
pub(crate) enum CallerGoal {
    /// The rest of the caller's request.
    ToAsk,
    /// The outcome of the caller's command.
    Outcome(Ticket),
    /// The end of the manager's query, at most until this time. The answer then has these elements.
    Look(Vec<Look>, Instant),
    /// A change of the elements or the state after this version, at most until this time.
    Change(u64, Instant),
    /// The end of the manager's agent.
    TheEnd,
    /// Room in the socket for the rest of the answer.
    ToRead,
    /// Nothing: the connection is finished.
    Nothing,
}

/// A connection with one request and its answer.
pub(crate) struct Caller {
    stream: UnixStream,
    read: Vec<u8>,
    unsent: Vec<u8>,
    sent: usize,
    until: Instant,
    pub(crate) wants: CallerGoal,
}

impl Caller {
    /// A new connection; the process at the other end must be this user's.
    pub(crate) fn new(now: Instant, stream: UnixStream) -> io::Result<Self> {
        sdm_system::peer::check_this_user(&stream)?;
        stream.set_nonblocking(true)?;
        Ok(Self {
            stream,
            read: Vec::new(),
            unsent: Vec::new(),
            sent: 0,
            until: now + PATIENCE,
            wants: CallerGoal::ToAsk,
        })
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }

    /// The poll events of interest. A caller that waits for an answer is polled for input, which shows its hang-up too.
    pub(crate) fn interest(&self) -> PollFlags {
        match self.wants {
            CallerGoal::ToRead => PollFlags::POLLOUT,
            _ => PollFlags::POLLIN,
        }
    }

    pub(crate) fn timeout(&self) -> Option<Instant> {
        match self.wants {
            CallerGoal::ToAsk | CallerGoal::ToRead => Some(self.until),
            CallerGoal::Change(_, until) | CallerGoal::Look(_, until) => Some(until),
            CallerGoal::Outcome(_) | CallerGoal::TheEnd | CallerGoal::Nothing => None,
        }
    }

    /// Drops a caller that takes too long.
    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        if matches!(self.wants, CallerGoal::ToAsk | CallerGoal::ToRead) && self.until <= now {
            self.wants = CallerGoal::Nothing;
        }
    }

    /// Reads from the connection. Returns the request once it is complete, or the error that makes it invalid; `None`
    /// before.
    pub(crate) fn read(&mut self) -> Option<Result<Question, LineError>> {
        let mut piece = [0; 8192];
        loop {
            match self.stream.read(&mut piece) {
                Ok(0) => {
                    self.wants = CallerGoal::Nothing;
                    return None;
                }
                Ok(count) if matches!(self.wants, CallerGoal::ToAsk) => {
                    self.read.extend_from_slice(&piece[..count]);
                }
                // Bytes after the one question of a connection are ignored.
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return None,
                Err(_) => {
                    self.wants = CallerGoal::Nothing;
                    return None;
                }
            }
            if !matches!(self.wants, CallerGoal::ToAsk) {
                continue;
            }
            match json_line::decode(&self.read, QUESTION_BYTES_MAX) {
                Ok(None) => {}
                Ok(Some(question)) => return Some(Ok(question)),
                Err(error) => return Some(Err(error)),
            }
        }
    }

    /// Queues the answer, after which the caller waits for nothing else.
    pub(crate) fn answer(&mut self, now: Instant, answer: &Answer) {
        let line = json_line::encode(answer, ANSWER_BYTES_MAX).or_else(|error| {
            let without = Answer {
                groups: Vec::new(),
                error: Some(format!("the answer cannot be sent: {error}")),
                ..answer.clone()
            };
            json_line::encode(&without, ANSWER_BYTES_MAX)
        });
        self.unsent = line.unwrap_or_default();
        self.until = now + PATIENCE;
        self.wants = CallerGoal::ToRead;
        self.write(now);
    }

    /// Writes pending bytes until the socket is full. Each progress extends the time limit.
    pub(crate) fn write(&mut self, now: Instant) {
        while self.sent < self.unsent.len() {
            match self.stream.write(&self.unsent[self.sent..]) {
                Ok(count) => {
                    self.sent += count;
                    self.until = now + PATIENCE;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(_) => break,
            }
        }
        self.wants = CallerGoal::Nothing;
    }
}
