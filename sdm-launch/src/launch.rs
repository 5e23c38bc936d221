//! A running launch: the started servers, their descriptors, and their events (announcements, output and ends).

use std::collections::{HashMap, VecDeque};
use std::fs::File;
use std::io::{PipeWriter, Write};
use std::ops::Range;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Command, ExitStatus};
use std::time::Instant;

use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::signal::Signal;
use sdm_bootstrap::announce::{Announcement, Refusal};
use sdm_bootstrap::joined::Joined;
use sdm_bootstrap::log;
use sdm_system::fd_server::FdServer;
use sdm_system::stream::{Line, Piece, Stream};

use crate::LaunchError;
use crate::launched_process::{LastWords, LaunchedProcess, ProcessSpec};
use crate::lingering_launcher::{END_AFTER, LauncherAction, Lingering};
use crate::ssh_advice;

/// An event of the servers, or of the process that started them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LaunchEvent {
    /// A server announces its address.
    Announced(Announcement),
    /// The process of a rank reports the server that controls it.
    Joined(Joined),
    /// A server, or the process that was to start it, reports that the server cannot run.
    Refused {
        /// The server that cannot run, and the reason.
        refusal: Refusal,
        /// Earlier output of the process that was to start the server; empty if the server itself reports.
        last_words: Vec<String>,
        /// Advice for the user; `None` if there is none.
        advice: Option<&'static str>,
    },
    /// Another output line of a server or a launcher: untrusted text of at most 4096 bytes.
    Text {
        /// The server that wrote the output; `None` for output of `mpirun` and the like, and for pipes that several
        /// servers share.
        server: Option<u32>,
        /// True if the line was written to stderr.
        stderr: bool,
        /// The line without its line end.
        line: String,
    },
    /// A line of a server's log.
    Log(String),
    /// Output of the programs, after [`Launch::pass_on`].
    Bytes {
        /// True if the bytes were written to stderr.
        stderr: bool,
        /// The received bytes, which need not end with a line.
        bytes: Vec<u8>,
    },
    /// A notice for the user about an action of this crate, for example a command line.
    Note(String),
    /// A process that was started here has ended.
    Ended {
        /// Display name of the process: `server 3`, `mpirun`, `ssh node7`.
        who: String,
        /// Number of the server that ended; `None` for `mpirun` and the like.
        server: Option<u32>,
        /// The servers that ended with the process: all of them for `mpirun`, those of a host for `ssh`.
        servers: Range<u32>,
        /// Exit status as text: `exited with code 1`, `killed by SIGTERM`.
        status: String,
        /// Exit code; `None` if a signal ended the process, or if its exit status is unknown.
        code: Option<i32>,
        /// The last lines of the process's output, oldest first. They were also reported as [`LaunchEvent::Text`]
        /// before.
        last_words: Vec<String>,
        /// Advice for the user; `None` if there is none.
        advice: Option<&'static str>,
    },
}

/// The started servers, with descriptors to poll and events to read.
///
/// Drop sends SIGTERM to all processes that still run.
pub struct Launch {
    members: Vec<LaunchedProcess>,
    /// The owner of each descriptor.
    owners: HashMap<RawFd, Owner>,
    /// Pipes to which all started processes write, if there are not enough descriptors for one each; otherwise `None`.
    shared: Option<SharedStreams>,
    /// Events not yet read. Their number is bounded by the input of one call of [`Launch::handle_ready`].
    events: VecDeque<LaunchEvent>,
    /// Texts in memory that a launcher reads as files.
    texts: Vec<FdServer>,
    /// Watch over a launcher that is known to outlive all its processes; `None` for other launchers.
    lingering: Option<Lingering>,
}

#[derive(Clone, Copy)]
enum Owner {
    Process(usize),
    Shared(usize),
}

/// The pipes for stdout and stderr that all started processes share.
struct SharedStreams {
    streams: [Stream; 2],
    /// Write ends of the pipes; `None` once all processes have been started.
    writers: Option<[PipeWriter; 2]>,
    last_words: LastWords,
}

impl Launch {
    pub(crate) fn new() -> Self {
        Self {
            members: Vec::new(),
            owners: HashMap::new(),
            shared: None,
            events: VecDeque::new(),
            texts: Vec::new(),
            lingering: None,
        }
    }

    /// A launch whose processes share their stdout and their stderr, so that each needs only one descriptor. The writer
    /// of a line is then unknown, unless the line itself names it.
    pub(crate) fn sharing_streams() -> std::io::Result<Self> {
        let mut launch = Self::new();
        let (stdout, stdout_writer) = Stream::open(false)?;
        let (stderr, stderr_writer) = Stream::open(true)?;
        let streams = [stdout, stderr];
        for (index, fd) in streams.iter().filter_map(Stream::fd).enumerate() {
            launch.owners.insert(fd.as_raw_fd(), Owner::Shared(index));
        }
        launch.shared = Some(SharedStreams {
            streams,
            writers: Some([stdout_writer, stderr_writer]),
            last_words: LastWords::default(),
        });
        Ok(launch)
    }

    pub(crate) fn note(&mut self, text: String) {
        self.events.push_back(LaunchEvent::Note(text));
    }

    /// Holds a text in memory for a launcher to read. Returns a path to it, which is valid as long as this launch
    /// lives.
    pub(crate) fn hold_text(&mut self, text: &str) -> std::io::Result<PathBuf> {
        let file = memfd_create(c"sdm-programs", MFdFlags::MFD_CLOEXEC)?;
        let mut file = File::from(file);
        file.write_all(text.as_bytes())?;
        let lender = FdServer::start(Some(file.into()), None)?;
        let path = lender.first();
        self.texts.push(lender);
        Ok(path)
    }

    /// Announces a server or a master that the user starts, at the address where it will listen.
    pub(crate) fn announce(&mut self, announcement: Announcement) {
        self.events.push_back(LaunchEvent::Announced(announcement));
    }

    pub(crate) fn spawn(&mut self, command: Command, what: ProcessSpec) -> Result<(), LaunchError> {
        let shared = self.shared.as_ref().and_then(|it| it.writers.as_ref());
        let member = LaunchedProcess::spawn(command, what, shared)?;
        self.members.push(member);
        Ok(())
    }

    /// Completes the start: from now on the ends of the processes are reported. On an error all processes are ended.
    pub(crate) fn all_started(mut self) -> Result<Self, LaunchError> {
        if let Some(shared) = &mut self.shared {
            shared.writers = None;
        }
        for index in 0..self.members.len() {
            if let Err(error) = self.members[index].watch_end() {
                self.abandon();
                return Err(error);
            }
            let owner = Owner::Process(index);
            let fds = self.members[index].fds();
            self.owners.extend(fds.map(|fd| (fd, owner)));
        }
        Ok(self)
    }

    /// Kills the processes started so far, because the start of another one has failed.
    pub(crate) fn abandon(mut self) {
        for member in &mut self.members {
            member.kill();
            member.wait();
        }
    }

    /// The descriptors to poll for reading. All exist from the start. [`Self::handle_ready`] closes each one when its
    /// stream ends.
    #[must_use]
    pub fn fds(&self) -> Vec<RawFd> {
        let fds = self.borrowed_fds().into_iter();
        fds.map(|fd| fd.as_raw_fd()).collect()
    }

    /// The same as [`Self::fds`], borrowed, for callers of `poll`.
    #[must_use]
    pub fn borrowed_fds(&self) -> Vec<BorrowedFd<'_>> {
        let shared = self.shared.iter().flat_map(|it| &it.streams);
        let shared = shared.filter_map(Stream::fd);
        shared
            .chain(self.members.iter().flat_map(LaunchedProcess::borrowed_fds))
            .collect()
    }

    /// True if `fd` is one of [`Self::fds`].
    #[must_use]
    pub fn holds(&self, fd: RawFd) -> bool {
        self.owners.contains_key(&fd)
    }

    /// Reads from a ready descriptor. Returns true if more may be available: take the events and call again, until it
    /// returns false. An unknown descriptor is ignored.
    #[must_use]
    pub fn handle_ready(&mut self, fd: RawFd) -> bool {
        match self.owners.get(&fd) {
            Some(Owner::Shared(index)) => self.read_shared(*index, fd),
            Some(Owner::Process(index)) if self.members[*index].is_end(fd) => {
                self.reap(*index);
                false
            }
            Some(Owner::Process(index)) => {
                if let Some(lingering) = &mut self.lingering {
                    lingering.heard();
                }
                let member = &mut self.members[*index];
                let mut lines = Vec::new();
                let more = member.read(fd, &mut |line| lines.push(line));
                let is_refusal = |line: &Line| {
                    line.text()
                        .is_some_and(|text| Refusal::find(text).is_some())
                };
                if lines.iter().any(is_refusal) {
                    // The reason was printed earlier, on the other stream.
                    let mut before = Vec::new();
                    member.read_others(fd, &mut |line| before.push(line));
                    lines.splice(0..0, before);
                }
                if !member.fds().any(|own| own == fd) {
                    self.owners.remove(&fd);
                }
                let server = member.what.server;
                sort_lines(server, member.last_words(), lines, &mut self.events);
                more
            }
            None => false,
        }
    }

    fn read_shared(&mut self, index: usize, fd: RawFd) -> bool {
        let Some(shared) = &mut self.shared else {
            return false;
        };
        let mut lines = Vec::new();
        let stream = &mut shared.streams[index];
        let more = stream.read(&mut |line| lines.push(line)) > 0;
        if !stream.is(fd) {
            self.owners.remove(&fd);
        }
        sort_lines(None, &mut shared.last_words, lines, &mut self.events);
        more
    }

    /// Handles the end of a process, if it has ended.
    fn reap(&mut self, index: usize) {
        let member = &mut self.members[index];
        let (what, fds) = (member.what.clone(), member.fds().collect::<Vec<_>>());
        let server = what.server;
        let mut lines = Vec::new();
        let ended = member.reap(&mut |line| lines.push(line));
        sort_lines(server, member.last_words(), lines, &mut self.events);
        let Some(status) = ended else { return };
        let mut last_words = member.last_words().lines();
        for fd in fds {
            self.owners.remove(&fd);
        }
        if let Some(shared) = &mut self.shared {
            let mut lines = Vec::new();
            for stream in &mut shared.streams {
                stream.read_rest(&mut |line| lines.push(line));
            }
            sort_lines(None, &mut shared.last_words, lines, &mut self.events);
            last_words = shared.last_words.lines();
        }
        self.events.push_back(LaunchEvent::Ended {
            advice: ssh_advice::advice(&what.who, &last_words),
            who: what.who,
            server,
            servers: what.servers,
            status: status.map_or_else(|| "ended".to_owned(), describe),
            code: status.and_then(|status| status.code()),
            last_words,
        });
    }

    /// Call this once all servers are connected. Further output of the servers and the launcher comes from programs. It
    /// is reported as [`LaunchEvent::Bytes`] and not parsed.
    pub fn pass_on(&mut self) {
        let mut lines = Vec::new();
        for member in &mut self.members {
            let server = member.what.server;
            member.pass_on(&mut |line| lines.push(line));
            sort_lines(
                server,
                member.last_words(),
                std::mem::take(&mut lines),
                &mut self.events,
            );
        }
        if let Some(shared) = &mut self.shared {
            for stream in &mut shared.streams {
                stream.pass_on(&mut |line| lines.push(line));
            }
            sort_lines(None, &mut shared.last_words, lines, &mut self.events);
        }
    }

    /// Writes to the launcher's standard input, or to that of the first server if there is no launcher. `eof` closes it
    /// after `bytes`. This call never waits.
    ///
    /// # Errors
    /// No process reads its standard input from SDM, or the reader has ended, or has not read for so long that the
    /// pipe is full.
    pub fn feed(&mut self, bytes: &[u8], eof: bool) -> std::io::Result<()> {
        let none = || {
            std::io::Error::other("no process of this launcher reads its standard input from sdm")
        };
        let mut fed = self.members.iter_mut().filter(|member| member.is_fed());
        fed.next().ok_or_else(none)?.feed(bytes, eof)
    }

    /// Returns the next event; `None` if there is none.
    pub fn poll_event(&mut self) -> Option<LaunchEvent> {
        self.events.pop_front()
    }

    /// Begins to watch the launcher, whose child processes all exist already. [`Self::look`] ends the launcher if it
    /// outlives them.
    pub(crate) fn end_lingering(&mut self) {
        self.lingering = Some(Lingering::new(self.first_pid(), Instant::now()));
    }

    /// Time at which [`Self::look`] is due; `None` if no launcher is watched.
    #[must_use]
    pub fn next_look(&self) -> Option<Instant> {
        let lingering = self.lingering.as_ref().filter(|_| !self.is_over());
        lingering.map(Lingering::next)
    }

    /// Checks, if a check is due, whether the launcher still has processes. If it outlives them, it is ended. Read the
    /// events after this call.
    pub fn look(&mut self, now: Instant) {
        if self.is_over() {
            return;
        }
        match self.lingering.as_mut().map(|it| it.look(now)) {
            Some(LauncherAction::Terminate) => {
                let (who, seconds) = (&self.members[0].what.who, END_AFTER.as_secs());
                let text = format!(
                    "{who} (pid {}) was still running {seconds} s after all its processes had ended: sdm ends it; \
                     the job's exit code is unknown",
                    self.first_pid()
                );
                self.note(text);
                self.terminate();
            }
            Some(LauncherAction::Kill) => self.kill(),
            Some(LauncherAction::Nothing) | None => {}
        }
    }

    /// Asks all started processes to end (SIGTERM).
    pub fn terminate(&mut self) {
        self.members.iter_mut().for_each(LaunchedProcess::terminate);
    }

    /// Continues all started processes that are stopped (SIGCONT).
    pub fn go_on(&self) {
        self.members.iter().for_each(LaunchedProcess::go_on);
    }

    /// Kills all started processes (SIGKILL). A killed `mpirun` cannot end its servers: they end when they notice that
    /// their parent has gone. So call [`Self::terminate`] first.
    pub fn kill(&mut self) {
        self.members.iter().for_each(LaunchedProcess::kill);
    }

    /// The pid of the process that was started first.
    ///
    /// # Panics
    /// If no process was started.
    pub(crate) fn first_pid(&self) -> i32 {
        self.members[0].pid()
    }

    /// True if all started processes have ended. Events may still be waiting.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.members.iter().all(LaunchedProcess::is_over)
    }
}

impl Drop for Launch {
    fn drop(&mut self) {
        self.terminate();
    }
}

/// Turns the lines of a process's output into events: announcements, joined ranks, refusals, log lines, and other
/// lines. Other lines are also kept as the last lines of the process.
fn sort_lines(
    server: Option<u32>,
    last_words: &mut LastWords,
    lines: Vec<Line>,
    events: &mut VecDeque<LaunchEvent>,
) {
    for Line { stderr, piece } in lines {
        let text = match piece {
            Piece::Text(text) => text,
            Piece::Bytes(bytes) => {
                events.push_back(LaunchEvent::Bytes { stderr, bytes });
                continue;
            }
        };
        if let Some(line) = log::find(&text).filter(|_| stderr) {
            events.push_back(LaunchEvent::Log(line.to_owned()));
            continue;
        }
        if let Some(refusal) = Refusal::find(&text).filter(|_| !stderr) {
            let words = match refusal.why.starts_with(ssh_advice::WHO) {
                true => last_words.lines(),
                false => Vec::new(),
            };
            events.push_back(LaunchEvent::Refused {
                advice: ssh_advice::advice(&refusal.why, &words),
                last_words: words,
                refusal,
            });
            continue;
        }
        if let Some((before, joined)) = Joined::find(&text).filter(|_| !stderr) {
            events.push_back(LaunchEvent::Joined(joined));
            if is_tag(before) {
                continue;
            }
        }
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
            last_words.remember(&line);
            events.push_back(LaunchEvent::Text {
                server,
                stderr,
                line,
            });
        }
    }
}

/// True if the text in front of an announcement is empty or a launcher's tag: `[1,3]<stdout>:`.
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
