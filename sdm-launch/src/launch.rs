//! What is heard of servers that were started.

use std::collections::VecDeque;
use std::os::fd::{BorrowedFd, RawFd};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus};

use nix::sys::signal::Signal;
use sdm_core::announce::Announcement;

use crate::LaunchError;
use crate::member::{Line, Member};

/// Something heard of the servers or of what started them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LaunchEvent {
    /// A server says where it is.
    Announced(Announcement),
    /// A line that a server or a launcher wrote otherwise: hostile text, at most 4096 bytes long.
    Text {
        /// The server that wrote it; none where it came through `mpirun` or the like.
        server: Option<u32>,
        /// Whether it was written to stderr.
        stderr: bool,
        /// The line without its end.
        line: String,
    },
    /// What this crate did that a person may want to know.
    Note(String),
    /// A process that was started here has ended.
    Ended {
        /// The server that it was; none for `mpirun` and the like, with which all servers end.
        server: Option<u32>,
        /// How, in words: `exited with code 1`, `killed by SIGTERM`.
        status: String,
        /// Its exit code; none where a signal ended it.
        code: Option<i32>,
        /// The last lines that it wrote, oldest first; they came as [`LaunchEvent::Text`] before.
        last_words: Vec<String>,
    },
}

/// Servers that were started: descriptors to watch, events to take.
///
/// Dropping it sends SIGTERM to what still runs.
pub struct Launch {
    members: Vec<Member>,
    /// Bounded by what one call of [`Launch::handle_ready`] can read.
    events: VecDeque<LaunchEvent>,
}

impl Launch {
    pub(crate) fn new() -> Self {
        Self {
            members: Vec::new(),
            events: VecDeque::new(),
        }
    }

    pub(crate) fn note(&mut self, text: String) {
        self.events.push_back(LaunchEvent::Note(text));
    }

    pub(crate) fn spawn(
        &mut self,
        command: Command,
        server: Option<u32>,
        who: &str,
    ) -> Result<(), LaunchError> {
        let member = Member::spawn(command, server, who)?;
        self.members.push(member);
        Ok(())
    }

    /// Ends what was started so far, where the rest could not be.
    pub(crate) fn abandon(mut self) {
        for member in &mut self.members {
            member.kill();
            member.wait();
        }
    }

    /// The descriptors to watch for reading: all are there from the start, and each is closed in
    /// [`Self::handle_ready`] when nothing more can come of it.
    #[must_use]
    pub fn fds(&self) -> Vec<RawFd> {
        self.members.iter().flat_map(Member::fds).collect()
    }

    /// The same as [`Self::fds`], borrowed, for callers of `poll`.
    #[must_use]
    pub fn borrowed_fds(&self) -> Vec<BorrowedFd<'_>> {
        self.members.iter().flat_map(Member::borrowed_fds).collect()
    }

    /// Takes what a ready descriptor holds. Where it returns true there may be more: take the events
    /// and call it again, until it returns false. A descriptor that is none of these is ignored.
    #[must_use]
    pub fn handle_ready(&mut self, fd: RawFd) -> bool {
        let Self { members, events } = self;
        for member in members {
            let mut lines = Vec::new();
            if member.is_end(fd) {
                let status = member.reap(&mut |line| lines.push(line));
                sort_lines(member, lines, events);
                if let Some(status) = status {
                    events.push_back(LaunchEvent::Ended {
                        server: member.server,
                        status: status.map_or_else(|| "ended".to_owned(), describe),
                        code: status.and_then(|status| status.code()),
                        last_words: member.take_last_words(),
                    });
                }
                return false;
            }
            if member.fds().any(|own| own == fd) {
                let more = member.read(fd, &mut |line| lines.push(line));
                sort_lines(member, lines, events);
                return more;
            }
        }
        false
    }

    /// The next event.
    pub fn poll_event(&mut self) -> Option<LaunchEvent> {
        self.events.pop_front()
    }

    /// Asks everything that was started to end (SIGTERM).
    pub fn terminate(&mut self) {
        self.members.iter().for_each(Member::terminate);
    }

    /// Ends everything that was started (SIGKILL). A killed `mpirun` cannot end its servers any more:
    /// they notice by themselves that their parent is gone, so try [`Self::terminate`] first.
    pub fn kill(&mut self) {
        self.members.iter().for_each(Member::kill);
    }

    /// Whether everything that was started has ended. Events may still be waiting.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.members.iter().all(Member::is_over)
    }
}

impl Drop for Launch {
    fn drop(&mut self) {
        self.terminate();
    }
}

/// Announcements are told from other text, which is remembered as last words.
fn sort_lines(member: &mut Member, lines: Vec<Line>, events: &mut VecDeque<LaunchEvent>) {
    for Line { stderr, text } in lines {
        let server = member.server;
        let found = if stderr {
            Ok(None)
        } else {
            Announcement::find(&text)
        };
        let line = match found {
            Ok(Some((before, announcement))) => {
                let glued = (!is_tag(before)).then(|| before.to_owned());
                events.push_back(LaunchEvent::Announced(announcement));
                glued
            }
            Ok(None) => Some(text),
            Err(error) => Some(format!("{error} in: {text}")),
        };
        if let Some(line) = line {
            member.remember(&line);
            events.push_back(LaunchEvent::Text {
                server,
                stderr,
                line,
            });
        }
    }
}

/// Whether the text in front of an announcement is nothing or a launcher's tag: `[1,3]<stdout>:`.
fn is_tag(before: &str) -> bool {
    let before = before.trim();
    before.is_empty() || before.ends_with([':', ']', '>'])
}

fn describe(status: ExitStatus) -> String {
    if let Some(code) = status.code() {
        return format!("exited with code {code}");
    }
    let number = status.signal().unwrap_or_default();
    match Signal::try_from(number) {
        Ok(signal) => format!("killed by {signal}"),
        Err(_) => format!("killed by signal {number}"),
    }
}
