//! One task: its driver, its gdb, and the descriptors between them and the program.

use std::collections::VecDeque;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, read, write};
use sdm_core::CommandId;
use sdm_debug::event::Stream;
use sdm_debug::{BackendOutput, Command, Event, Failure, FailureCode, Reply, TaskState};
use sdm_idset::TaskId;

use crate::child::{GdbChild, LastWords};
use crate::driver::{Action, Driver};
use crate::mi::LineReader;
use crate::process::{Identity, identity};
use crate::stdio::{InputStream, OutputStream, Pty, ReadMore, StdinError};

/// Output of what the program left behind is waited for this long after its end.
const LINGER: Duration = Duration::from_millis(300);
/// gdb may take this long for each step of its end: to leave by itself, by SIGTERM, and then
/// nothing is alive under it and it is killed.
const END_STEP: Duration = Duration::from_secs(4);
/// How soon to look again whether a process is gone.
const LOOK_AGAIN: Duration = Duration::from_millis(5);

/// The program's ends of its streams, held until it has opened them itself.
pub(crate) struct ProgramEnds {
    _tty: std::fs::File,
    pub(crate) stdin: Option<OwnedFd>,
    pub(crate) stderr: OwnedFd,
}

/// The streams of one program.
pub(crate) struct Streams {
    outputs: Vec<OutputStream>,
    input: Option<InputStream>,
    pub(crate) theirs: Option<ProgramEnds>,
}

impl Streams {
    /// Opens them; gives the path of the pty too.
    pub(crate) fn open(with_stdin: bool) -> std::io::Result<(Self, std::path::PathBuf)> {
        use nix::fcntl::OFlag;
        use nix::unistd::pipe2;
        let pty = Pty::open()?;
        let (stderr, their_stderr) = pipe2(OFlag::O_CLOEXEC)?;
        crate::stdio::set_nonblocking(std::os::fd::AsFd::as_fd(&stderr))?;
        let mut input = None;
        let mut their_stdin = None;
        if with_stdin {
            let (theirs, ours) = pipe2(OFlag::O_CLOEXEC)?;
            crate::stdio::set_nonblocking(std::os::fd::AsFd::as_fd(&ours))?;
            input = Some(InputStream::new(ours));
            their_stdin = Some(theirs);
        }
        let theirs = ProgramEnds {
            _tty: pty.slave,
            stdin: their_stdin,
            stderr: their_stderr,
        };
        let outputs = vec![
            OutputStream::new(Stream::Stdout, pty.master),
            OutputStream::new(Stream::Stderr, stderr),
        ];
        let streams = Self {
            outputs,
            input,
            theirs: Some(theirs),
        };
        Ok((streams, pty.path))
    }

    /// The streams of a program that has its own.
    pub(crate) fn none() -> Self {
        Self {
            outputs: Vec::new(),
            input: None,
            theirs: None,
        }
    }
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

/// One task, from its start or attach to the end of its gdb.
pub(crate) struct Task {
    id: TaskId,
    pub(crate) driver: Driver,
    gdb: GdbChild,
    gdb_end: GdbEnd,
    /// Look whether gdb can be reaped at this time.
    reap_at: Option<Instant>,
    to_gdb: VecDeque<u8>,
    reader: LineReader,
    words: LastWords,
    streams: Streams,
    paused: bool,
    /// There may be more output to read at once.
    read_more: bool,
    /// The program has ended; what is not read by then is not waited for.
    linger_until: Option<Instant>,
    /// The program that we started, to kill it where all else fails.
    started: Option<Identity>,
    attached: bool,
    /// Descriptors to be closed once their owner has been told.
    pub(crate) closing: Vec<OwnedFd>,
    pub(crate) outputs: Vec<BackendOutput>,
}

impl Task {
    pub(crate) fn new(
        id: TaskId,
        driver: Driver,
        gdb: GdbChild,
        streams: Streams,
        attached: bool,
    ) -> Self {
        Self {
            id,
            driver,
            gdb,
            gdb_end: GdbEnd::Alive,
            reap_at: None,
            to_gdb: VecDeque::new(),
            reader: LineReader::default(),
            words: LastWords::default(),
            streams,
            paused: false,
            read_more: false,
            linger_until: None,
            started: None,
            attached,
            closing: Vec::new(),
            outputs: Vec::new(),
        }
    }

    /// Begins a command of a task that is there.
    pub(crate) fn execute(&mut self, now: Instant, id: CommandId, command: Command) {
        match command {
            Command::Stdin { offset, bytes, eof } => {
                let result = self.take_stdin(offset, &bytes, eof);
                self.answer(id, result);
            }
            command => self.driver.handle_command(now, id, command),
        }
        self.settle(now);
    }

    /// Gives a command up.
    pub(crate) fn cancel(&mut self, now: Instant, id: CommandId) {
        self.driver.handle_cancel(now, id);
        self.settle(now);
    }

    /// The descriptors to watch now, each for reading and for writing.
    pub(crate) fn interests(&self) -> Vec<(RawFd, bool, bool)> {
        let mut interests = Vec::new();
        for fd in [&self.gdb.stdout, &self.gdb.stderr].into_iter().flatten() {
            interests.push((fd.as_raw_fd(), true, false));
        }
        if let Some(fd) = &self.gdb.stdin
            && !self.to_gdb.is_empty()
        {
            interests.push((fd.as_raw_fd(), false, true));
        }
        if let Some(fd) = self
            .streams
            .input
            .as_ref()
            .and_then(InputStream::wants_write)
        {
            interests.push((fd, false, true));
        }
        if !self.paused {
            let outputs = self.streams.outputs.iter();
            interests.extend(outputs.map(|output| (output.fd(), true, false)));
        }
        interests
    }

    /// A descriptor of this task is ready.
    pub(crate) fn handle_ready(&mut self, now: Instant, fd: RawFd) {
        let is = |known: &Option<OwnedFd>| known.as_ref().is_some_and(|k| k.as_raw_fd() == fd);
        if is(&self.gdb.stdout) {
            self.read_gdb(now);
        } else if is(&self.gdb.stderr) {
            self.read_words();
        } else if is(&self.gdb.stdin) {
            self.write_gdb();
        } else if self.streams.outputs.iter().any(|output| output.fd() == fd) {
            self.read_output(now, Some(fd));
        } else {
            self.write_stdin();
        }
        self.settle(now);
    }

    /// When [`Task::handle_timeout`] is to be called.
    pub(crate) fn poll_timeout(&self, now: Instant) -> Option<Instant> {
        let end = match self.gdb_end {
            GdbEnd::Closed(at) | GdbEnd::Terminated(at) => Some(at),
            GdbEnd::Alive | GdbEnd::Killed | GdbEnd::Gone => None,
        };
        let reading = (!self.paused).then_some(&self.streams.outputs);
        let flush = reading
            .into_iter()
            .flatten()
            .filter_map(OutputStream::flush_at)
            .min();
        let linger = self
            .linger_until
            .filter(|_| !self.paused && !self.streams.outputs.is_empty());
        let more = (self.read_more && !self.paused).then_some(now);
        [
            self.driver.poll_timeout(),
            end,
            self.reap_at,
            flush,
            linger,
            more,
        ]
        .into_iter()
        .flatten()
        .min()
    }

    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        if self.driver.poll_timeout().is_some_and(|at| at <= now) {
            self.driver.handle_timeout(now);
        }
        if !self.paused {
            self.handle_output_timeout(now);
        }
        self.press_gdb(now);
        if self.reap_at.is_some_and(|at| at <= now) {
            self.reap(now);
        }
        self.settle(now);
    }

    pub(crate) fn set_paused(&mut self, now: Instant, paused: bool) {
        if std::mem::replace(&mut self.paused, paused) && !paused {
            self.read_output(now, None);
            self.settle(now);
        }
    }

    /// Begins the end.
    pub(crate) fn shut_down(&mut self, now: Instant, kill_started: bool) {
        self.driver.shut_down(now, kill_started);
        if !kill_started && !self.attached {
            // It is to live on without us.
            self.started = None;
        }
        self.settle(now);
    }

    /// True once neither gdb nor a program that is to end is left.
    pub(crate) fn is_down(&self) -> bool {
        let detached = self.driver.task_state() == TaskState::Detached;
        let program_gone = detached || self.started.as_ref().is_none_or(|who| !who.is_alive());
        self.gdb_end == GdbEnd::Gone && program_gone
    }

    /// True once no more output will come.
    pub(crate) fn is_silent(&self) -> bool {
        self.streams.outputs.is_empty()
    }

    fn answer(&mut self, id: CommandId, result: Result<Reply, Failure>) {
        let task = self.id;
        self.outputs
            .push(BackendOutput::Answer { id, task, result });
    }

    fn tell(&mut self, event: Event) {
        let task = self.id;
        self.outputs.push(BackendOutput::Event { task, event });
    }

    /// Does what the driver wants, until it wants nothing more.
    fn settle(&mut self, now: Instant) {
        if self.started.is_none()
            && !self.attached
            && let Some(pid) = self.driver.pid()
        {
            self.started = identity(pid);
        }
        while let Some(action) = self.driver.poll_action() {
            self.act(now, action);
        }
        self.write_gdb();
    }

    fn act(&mut self, now: Instant, action: Action) {
        match action {
            Action::Send(line) => {
                tracing::trace!(task = self.id.0, "to gdb: {}", line.trim_end());
                self.to_gdb.extend(line.as_bytes());
            }
            Action::Answer { id, result } => self.answer(id, result),
            Action::Event(event) => self.tell(event),
            Action::InterruptGdb => self.gdb.signal(Signal::SIGINT),
            Action::SignalProgram { pid, signal } => {
                // gdb holds it, so the pid is still its own; it may be a zombie.
                let _ = kill(Pid::from_raw(pid), signal);
            }
            Action::ProgramOpened => self.streams.theirs = None,
            Action::ProgramEnded => {
                self.streams.theirs = None;
                self.close_stdin();
                self.linger_until.get_or_insert(now + LINGER);
                self.read_output(now, None);
            }
            Action::CloseGdb => self.close_gdb(now),
        }
    }

    fn close_gdb(&mut self, now: Instant) {
        self.write_gdb();
        self.closing.extend(self.gdb.stdin.take());
        if self.gdb_end == GdbEnd::Alive {
            self.gdb_end = GdbEnd::Closed(now + END_STEP);
        }
    }

    /// Ends a gdb that does not end by itself.
    fn press_gdb(&mut self, now: Instant) {
        match self.gdb_end {
            GdbEnd::Closed(at) if at <= now => {
                self.gdb.signal(Signal::SIGTERM);
                self.gdb_end = GdbEnd::Terminated(now + END_STEP);
            }
            GdbEnd::Terminated(at) if at <= now => {
                self.kill_program();
                self.gdb.signal(Signal::SIGKILL);
                self.gdb_end = GdbEnd::Killed;
                self.reap_at = Some(now + LOOK_AGAIN);
            }
            _ => {}
        }
    }

    /// The last resort.
    fn kill_program(&mut self) {
        if self.driver.task_state() != TaskState::Detached
            && let Some(program) = &self.started
        {
            program.kill();
        }
    }

    fn write_gdb(&mut self) {
        let Some(fd) = &self.gdb.stdin else {
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

    fn read_gdb(&mut self, now: Instant) {
        let mut buffer = vec![0; 64 << 10];
        loop {
            let Some(fd) = &self.gdb.stdout else { return };
            match read(fd, &mut buffer) {
                Ok(0) => break,
                Ok(count) => self.reader.push(&buffer[..count]),
                Err(Errno::EINTR) => continue,
                Err(Errno::EAGAIN) => return,
                Err(_) => break,
            }
            while let Some(record) = self.reader.next_record() {
                tracing::trace!(task = self.id.0, "from gdb: {record:?}");
                self.driver.handle_record(now, record);
                self.settle(now);
            }
        }
        self.closing.extend(self.gdb.stdout.take());
        self.reap(now);
    }

    fn read_words(&mut self) {
        let mut buffer = [0; 4096];
        while let Some(fd) = &self.gdb.stderr {
            match read(fd, &mut buffer) {
                Ok(count) if count > 0 => self.words.push(&buffer[..count]),
                Err(Errno::EINTR) => {}
                Err(Errno::EAGAIN) => return,
                _ => self.closing.extend(self.gdb.stderr.take()),
            }
        }
    }

    /// gdb has closed its output or was killed: looks whether it is gone.
    fn reap(&mut self, now: Instant) {
        if self.gdb_end == GdbEnd::Gone {
            self.reap_at = None;
            return;
        }
        if self.gdb.try_wait().is_none() {
            self.reap_at = Some(now + LOOK_AGAIN);
            if self.gdb_end == GdbEnd::Alive {
                self.gdb_end = GdbEnd::Closed(now + END_STEP);
            }
            return;
        }
        self.reap_at = None;
        self.read_words();
        let text = self.words.describe(self.gdb.try_wait());
        self.gdb_end = GdbEnd::Gone;
        self.closing.extend(self.gdb.stdin.take());
        self.closing.extend(self.gdb.stdout.take());
        self.closing.extend(self.gdb.stderr.take());
        self.driver.handle_gdb_end(now, &text);
        // A program under a gdb that was killed dies with it; one that does not is not left.
        self.kill_program();
    }

    fn take_stdin(&mut self, offset: u64, bytes: &[u8], eof: bool) -> Result<Reply, Failure> {
        if let Some(failure) = self.driver.why_not_live() {
            return Err(failure);
        }
        let Some(input) = &mut self.streams.input else {
            let text = "the task reads no input from the front-end";
            return Err(Failure::new(FailureCode::Unsupported, text));
        };
        input
            .take(offset, bytes, eof)
            .map_err(|error| match error {
                StdinError::Gap { at } => {
                    let text = format!("input from {offset}, but only {at} bytes came before it");
                    Failure::new(FailureCode::BadCommand, text)
                }
                StdinError::Full => {
                    let max = crate::STDIN_BUFFER_BYTES_MAX;
                    let text = format!("the program has not read the last {max} bytes of input");
                    Failure::new(FailureCode::Limit, text)
                }
                StdinError::Closed => {
                    Failure::new(FailureCode::NotRunning, "the program's input is closed")
                }
            })?;
        self.write_stdin();
        Ok(Reply::Done)
    }

    fn write_stdin(&mut self) {
        if let Some(input) = &mut self.streams.input {
            self.closing.extend(input.write());
        }
    }

    fn close_stdin(&mut self) {
        if let Some(mut input) = self.streams.input.take() {
            self.closing.extend(input.close());
        }
    }

    /// Reads one output stream, or all of them.
    fn read_output(&mut self, now: Instant, only: Option<RawFd>) {
        if self.paused {
            return;
        }
        let task = self.id;
        let mut at = 0;
        while let Some(output) = self.streams.outputs.get_mut(at) {
            if only.is_some_and(|fd| fd != output.fd()) {
                at += 1;
                continue;
            }
            let stream = output.stream;
            let outputs = &mut self.outputs;
            let more = output.read(now, |bytes| {
                let event = Event::Output { stream, bytes };
                outputs.push(BackendOutput::Event { task, event });
            });
            self.read_more |= more == ReadMore::Now;
            if more == ReadMore::Ended {
                self.end_output(at);
            } else {
                at += 1;
            }
        }
    }

    fn end_output(&mut self, at: usize) {
        let output = self.streams.outputs.remove(at);
        let stream = output.stream;
        self.closing.push(output.into_fd());
        self.tell(Event::OutputEnd { stream });
    }

    fn handle_output_timeout(&mut self, now: Instant) {
        let task = self.id;
        for output in &mut self.streams.outputs {
            if output.flush_at().is_some_and(|at| at <= now) {
                let stream = output.stream;
                let outputs = &mut self.outputs;
                output.flush(|bytes| {
                    let event = Event::Output { stream, bytes };
                    outputs.push(BackendOutput::Event { task, event });
                });
            }
        }
        if std::mem::take(&mut self.read_more) {
            self.read_output(now, None);
        }
        if self.linger_until.is_some_and(|at| at <= now) && !self.read_more {
            // Somebody the program left behind holds them open.
            self.read_output(now, None);
            while !self.read_more && !self.streams.outputs.is_empty() {
                let stream = self.streams.outputs[0].stream;
                let outputs = &mut self.outputs;
                self.streams.outputs[0].flush(|bytes| {
                    let event = Event::Output { stream, bytes };
                    outputs.push(BackendOutput::Event { task, event });
                });
                self.end_output(0);
            }
        }
    }
}
