//! One started process: its standard streams, its end, and its last lines of output.

use std::collections::VecDeque;
use std::io::{self, PipeWriter, Write};
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};

use nix::fcntl::{FcntlArg, fcntl};
use nix::libc::PIPE_BUF;
use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;
use sdm_bootstrap::handover::LAUNCH_VARIABLE;
use sdm_system::guard_process::GuardProcess;
use sdm_system::programs;
use sdm_system::stream::{Line, Stream};
use zeroize::Zeroize;

use crate::launch_tag::LaunchTag;
use crate::{LaunchError, LaunchSpec, Streams, sys};

/// Maximum number of last output lines that are kept for a process.
const LAST_WORDS_MAX: usize = 20;

/// Description of a process to start.
#[derive(Clone, Debug)]
pub(crate) struct ProcessSpec {
    /// Display name of the process: `server 3`, `mpirun`, `ssh node7`.
    pub(crate) who: String,
    /// True if the process starts all servers, and ends with them.
    pub(crate) is_launcher: bool,
    /// Number of the server, if this process is one; `None` for `mpirun` and the like.
    pub(crate) server: Option<u32>,
    /// The servers that end with the process.
    pub(crate) servers: Range<u32>,
    /// First bytes of the process's standard input, no more than a pipe can be made to hold. The input then stays open
    /// as long as it is needed. If it is empty, `streams` determines the standard input.
    pub(crate) input: Vec<u8>,
    /// Files whose contents follow on the process's standard input.
    pub(crate) files: Vec<PathBuf>,
    /// Use of the process's standard streams, if `input` is empty.
    pub(crate) streams: Streams,
    /// Signal that the kernel sends to the process when this process dies.
    pub(crate) death_signal: Signal,
}

impl ProcessSpec {
    /// The description of a process that is a server.
    pub(crate) fn server(server: u32) -> Self {
        Self {
            who: format!("server {server}"),
            is_launcher: false,
            server: Some(server),
            servers: server..server + 1,
            input: Vec::new(),
            files: Vec::new(),
            streams: Streams::Private,
            death_signal: Signal::SIGTERM,
        }
    }

    /// The description of a process that forks these servers.
    pub(crate) fn servers(servers: Range<u32>) -> Self {
        let who = match servers.len() {
            1 => format!("server {}", servers.start),
            _ => format!("servers {}-{}", servers.start, servers.end - 1),
        };
        Self {
            who,
            is_launcher: false,
            server: None,
            servers,
            input: Vec::new(),
            files: Vec::new(),
            streams: Streams::Private,
            death_signal: Signal::SIGTERM,
        }
    }

    /// The description of a launcher such as `mpirun`, which starts all servers and passes its standard input on.
    pub(crate) fn launcher(name: &str, spec: &LaunchSpec) -> Self {
        Self {
            who: name.to_owned(),
            is_launcher: true,
            server: None,
            servers: 0..spec.count,
            input: Vec::new(),
            files: Vec::new(),
            streams: spec.streams,
            death_signal: Signal::SIGTERM,
        }
    }
}

/// A started process, with its pipes and helpers.
pub(crate) struct LaunchedProcess {
    /// Description of the process.
    pub(crate) what: ProcessSpec,
    /// The write end of the process's standard input; `None` for a process without input, and after the input was
    /// closed.
    input: Option<PipeWriter>,
    /// The helper that copies `files` to the process's standard input; `None` if there are no files.
    feeder: Option<Child>,
    child: Child,
    pid: Pid,
    /// The helper that ends the process if this process ends first. `None` for a process that is not a launcher, if
    /// the helper cannot be started, and after the end of all that the launcher has started.
    ender: Option<GuardProcess>,
    /// The tag of all processes that the launcher starts on this host; `None` for a process that is not a launcher.
    tag: Option<LaunchTag>,
    /// True if the process was asked to end while it ran; it stays true after the end.
    is_given_up: bool,
    /// Descriptor that becomes readable at the process's end. `None` before [`LaunchedProcess::watch_end`], and after
    /// the end was handled.
    end: Option<OwnedFd>,
    is_over: bool,
    /// The process's stdout and stderr; empty if it shares its pipes with other processes.
    streams: Vec<Stream>,
    last_words: LastWords,
}

/// The last lines of a process's output.
#[derive(Default)]
pub(crate) struct LastWords(VecDeque<String>);

impl LastWords {
    /// Adds a line. If there are too many, the oldest is dropped.
    pub(crate) fn remember(&mut self, text: &str) {
        if self.0.len() == LAST_WORDS_MAX {
            self.0.pop_front();
        }
        self.0.push_back(text.to_owned());
    }

    /// The kept lines, oldest first.
    pub(crate) fn lines(&self) -> Vec<String> {
        self.0.iter().cloned().collect()
    }
}

impl LaunchedProcess {
    /// Starts `command` in a session of its own, with `shared` as its output pipes. Without shared pipes the
    /// process gets its own.
    pub(crate) fn spawn(
        mut command: Command,
        mut what: ProcessSpec,
        shared: Option<&[PipeWriter; 2]>,
    ) -> Result<Self, LaunchError> {
        let program = command.get_program().to_owned();
        let who = what.who.clone();
        let spawn = |source| LaunchError::Spawn {
            who: who.clone(),
            program: program.clone().into(),
            source,
        };
        let mut streams = Vec::new();
        let [stdout, stderr] = match shared {
            Some([stdout, stderr]) => [stdout.try_clone(), stderr.try_clone()],
            None => [false, true].map(|stderr| {
                let (stream, writer) = Stream::open(stderr)?;
                streams.push(stream);
                Ok(writer)
            }),
        };
        let (stdin, input, feeder) = feed(&mut what).map_err(spawn)?;
        command
            .stdin(stdin)
            .stdout(stdout.map_err(spawn)?)
            .stderr(stderr.map_err(spawn)?);
        sys::isolate(&mut command, what.death_signal);
        let tag = what.is_launcher.then(|| LaunchTag::put(&mut command));
        let child = command.spawn().map_err(spawn)?;
        let pid = Pid::from_raw(child.id().cast_signed());
        let ender = tag.as_ref();
        let ender = ender.and_then(|tag| ender_of(pid, tag, what.death_signal));
        Ok(Self {
            ender,
            tag,
            is_given_up: false,
            what,
            input,
            feeder,
            child,
            pid,
            end: None,
            is_over: false,
            streams,
            last_words: LastWords::default(),
        })
    }

    /// Opens the descriptor that signals the process's end. It is not part of [`LaunchedProcess::spawn`]: each started
    /// process briefly gets a copy of all descriptors, which takes long if there are thousands.
    pub(crate) fn watch_end(&mut self) -> Result<(), LaunchError> {
        let end =
            sdm_system::watch_child(self.child.id()).map_err(|source| LaunchError::Watch {
                who: self.what.who.clone(),
                op: "watch",
                source,
            })?;
        self.end = Some(end);
        Ok(())
    }

    /// The open descriptors from which the process's output and its end are read.
    pub(crate) fn fds(&self) -> impl Iterator<Item = RawFd> {
        self.borrowed_fds().map(|fd| fd.as_raw_fd())
    }

    /// Like [`LaunchedProcess::fds`], borrowed, for callers of `poll`.
    pub(crate) fn borrowed_fds(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let pipes = self.streams.iter().filter_map(Stream::fd);
        pipes.chain(self.end.as_ref().map(AsFd::as_fd))
    }

    pub(crate) fn pid(&self) -> i32 {
        self.pid.as_raw()
    }

    /// True if the process's end was handled.
    pub(crate) fn is_over(&self) -> bool {
        self.is_over
    }

    /// True if `fd` is the descriptor that signals the process's end.
    pub(crate) fn is_end(&self, fd: RawFd) -> bool {
        self.end.as_ref().is_some_and(|end| end.as_raw_fd() == fd)
    }

    /// Reads once from the pipe `fd`. Returns true if more data may be available.
    pub(crate) fn read(&mut self, fd: RawFd, line: &mut impl FnMut(Line)) -> bool {
        let stream = self.streams.iter_mut().find(|stream| stream.is(fd));
        stream.is_some_and(|stream| stream.read(line) > 0)
    }

    /// Reads once from each pipe of the process except `fd`.
    pub(crate) fn read_others(&mut self, fd: RawFd, line: &mut impl FnMut(Line)) {
        for stream in self.streams.iter_mut().filter(|stream| !stream.is(fd)) {
            stream.read(line);
        }
    }

    /// Returns the exit status if the process has ended, and `None` while it runs. The pipes are read to their end
    /// and closed first. The inner value is `None` if this process ignores SIGCHLD, as the kernel then discards
    /// the status.
    pub(crate) fn reap(&mut self, line: &mut impl FnMut(Line)) -> Option<Option<ExitStatus>> {
        let status = match self.child.try_wait() {
            Ok(Some(status)) => Some(status),
            Ok(None) => return None,
            Err(_) => None,
        };
        for stream in &mut self.streams {
            stream.read_rest(line);
            stream.close(line);
        }
        self.set_over();
        self.end_input();
        Some(status)
    }

    /// True if the process's standard input comes from [`LaunchedProcess::feed`].
    pub(crate) fn is_fed(&self) -> bool {
        self.what.input.is_empty() && self.what.streams == Streams::Fed
    }

    /// Writes to the process's standard input, and closes it if `eof` is set.
    pub(crate) fn feed(&mut self, bytes: &[u8], eof: bool) -> io::Result<()> {
        let ended = || {
            io::Error::new(
                io::ErrorKind::BrokenPipe,
                "the launcher's standard input is closed",
            )
        };
        let input = self.input.as_mut().ok_or_else(ended)?;
        // As long as a pipe takes all or nothing, nothing is taken in part.
        for piece in bytes.chunks(PIPE_BUF) {
            input.write_all(piece)?;
        }
        if eof {
            self.input = None;
        }
        Ok(())
    }

    /// Passes the process's output to [`LaunchEvent::Bytes`](crate::LaunchEvent::Bytes) from now on, instead of
    /// splitting it into lines.
    pub(crate) fn pass_on(&mut self, line: &mut impl FnMut(Line)) {
        for stream in &mut self.streams {
            stream.pass_on(line);
        }
    }

    /// The last lines of the process's output, without the lines by which servers announce their addresses.
    pub(crate) fn last_words(&mut self) -> &mut LastWords {
        &mut self.last_words
    }

    /// Asks the process to end (SIGTERM), and continues it if it is stopped. If a launcher has ended after such a
    /// request, the processes that it has left behind are asked directly.
    pub(crate) fn terminate(&mut self) {
        self.input = None;
        if !self.is_over() {
            self.is_given_up = true;
            // The process is not reaped yet, so no other one has its pid; ESRCH means that it has ended.
            let _ = kill(self.pid, Signal::SIGTERM);
        } else if self.is_given_up {
            self.signal_started(Signal::SIGTERM);
        }
        // A stopped process gets the signal when it continues.
        self.go_on();
    }

    /// Continues the process if it is stopped. For a launcher, also the processes that it has started.
    pub(crate) fn go_on(&self) {
        if !self.is_over() {
            // As above.
            let _ = kill(self.pid, Signal::SIGCONT);
        }
        self.signal_started(Signal::SIGCONT);
    }

    /// Kills the process and its process group (SIGKILL). For a launcher, also the processes that it has started.
    pub(crate) fn kill(&self) {
        if !self.is_over() {
            // As above: the group exists as long as its leader is not reaped.
            let _ = killpg(self.pid, Signal::SIGKILL);
        }
        self.signal_started(Signal::SIGKILL);
    }

    fn signal_started(&self, signal: Signal) {
        if let Some(tag) = &self.tag {
            tag.signal(signal);
        }
    }

    /// Closes the standard input of a process that does not read any more.
    fn end_input(&mut self) {
        self.input = None;
        if let Some(mut feeder) = self.feeder.take() {
            // It has ended with its input or its reader, or is about to.
            let _ = feeder.kill();
            let _ = feeder.wait();
        }
    }

    /// Waits for the process's end; only after [`Self::kill`].
    pub(crate) fn wait(&mut self) {
        self.end_input();
        // The process was killed, so the wait is short, and an error needs no action.
        let _ = self.child.wait();
        self.set_over();
    }

    fn set_over(&mut self) {
        self.end = None;
        self.is_over = true;
        // The helper stays for what the launcher has left behind.
        if !self.tag.as_ref().is_some_and(LaunchTag::has_processes) {
            self.ender = None;
        }
    }
}

impl Drop for LaunchedProcess {
    fn drop(&mut self) {
        if let Some(ender) = self.ender.take() {
            ender.release();
        }
    }
}

/// Script of the helper that ends a launcher. It waits for the end of its input, which comes with the end of its
/// parent. If the launcher still runs then, the script sends it the signal `$3`: Open MPI's `mpirun` ignores signals
/// while it maps many ranks. A later process with the same pid is recognised by its start time. The processes that the
/// launcher has started are continued, except SDM's own. If `$3` is TERM and the launcher stays for five seconds, it
/// and these processes are killed.
const END: &str = r#"trap '' HUP INT TERM
began() { read -r stat <"/proc/$1/stat" && set -- "$1" ${stat##*") "} && echo "${21}"; } 2>/dev/null
of=$(began "$1")
read -r line
lives() { [ -n "$of" ] && [ "$(began "$1")" = "$of" ]; }
started() {
    for file in $(grep -lzxF "$tag" /proc/[0-9]*/environ 2>/dev/null); do
        pid=${file#/proc/}; pid=${pid%/environ}
        read -r name <"/proc/$pid/comm" || continue
        case $name in sdm-*) ;; *) kill "-$1" "$pid";; esac
    done
} 2>/dev/null
tag=$2
lives "$1" && is_left=1 && kill "-$3" "$1" && kill -CONT "$1"
started CONT
[ "$is_left$3" = 1TERM ] || exit 0
for second in 1 2 3 4 5; do lives "$1" || exit 0; sleep 1; done
lives "$1" && kill -KILL "-$1"
started KILL"#;

/// The helper that ends a launcher; `None` if no further process can be started. A launcher with another death signal
/// than SIGTERM gets that signal, but is never killed.
fn ender_of(launcher: Pid, tag: &LaunchTag, death_signal: Signal) -> Option<GuardProcess> {
    let mut command = programs::shell(END);
    let tag = format!("{LAUNCH_VARIABLE}={}", tag.value());
    let signal = death_signal.as_str();
    let signal = signal.strip_prefix("SIG").unwrap_or(signal);
    command.args(["sdm-launch-end", &launcher.to_string(), &tag, signal]);
    command.stdin(Stdio::piped());
    command.stdout(Stdio::null()).stderr(Stdio::null());
    GuardProcess::start(&mut command).ok()
}

/// Shell script of the feeder: copies the first `$1` bytes of its input, then the files, then the rest of its input.
const FEEDER: &str = r#"head -c "$1"; shift; cat -- "$@"; exec cat"#;
/// Default capacity of a pipe, in bytes.
const PIPE_BYTES: usize = 64 << 10;

/// Returns the standard input for a process, its write end if it stays open, and the helper that copies files to it. A
/// process without input gets `/dev/null`, or inherits standard input.
fn feed(what: &mut ProcessSpec) -> io::Result<(Stdio, Option<PipeWriter>, Option<Child>)> {
    if what.input.is_empty() && what.streams != Streams::Fed {
        let stdin = match what.streams {
            Streams::Inherited => Stdio::inherit(),
            _ => Stdio::null(),
        };
        return Ok((stdin, None, None));
    }
    let (reader, mut writer) = io::pipe()?;
    if what.input.is_empty() {
        sdm_system::set_nonblocking(writer.as_fd())?;
        return Ok((reader.into(), Some(writer), None));
    }
    if what.input.len() > PIPE_BYTES {
        let wanted = i32::try_from(what.input.len()).map_err(io::Error::other)?;
        fcntl(&writer, FcntlArg::F_SETPIPE_SZ(wanted))?;
    }
    writer.write_all(&what.input)?;
    let length = what.input.len();
    // It may be a key.
    what.input.zeroize();
    if what.files.is_empty() {
        return Ok((reader.into(), Some(writer), None));
    }
    let mut feeder = programs::shell(FEEDER);
    feeder.args(["sdm-launch-feed", &length.to_string()]);
    feeder
        .args(&what.files)
        .stdin(reader)
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    sys::isolate(&mut feeder, Signal::SIGTERM);
    let mut feeder = feeder.spawn()?;
    let passed_on = feeder.stdout.take().expect("it was asked to be a pipe");
    Ok((passed_on.into(), Some(writer), Some(feeder)))
}
