//! The gdb that holds a launcher by MPIR.
//!
//! gdb attaches to the launcher before its program begins, so that the launcher is and stays this process's child,
//! with this process's pipes as its streams. Until then the launcher is a shell that waits for a line. gdb's input
//! stays open as long as the launcher is to be held. At its end, also at the death of this process, gdb removes its
//! breakpoint and detaches.

use std::io::{self, PipeWriter, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Stdio};
use std::time::{Duration, Instant};

use sdm_system::fd_server::FdServer;
use sdm_system::stream::Stream;
use sdm_system::{files, programs};

/// Time limit for gdb to detach and end.
const RELEASE_WAIT: Duration = Duration::from_secs(20);
/// Maximum number of lines kept of gdb's error output.
const COMPLAINTS_MAX: usize = 20;

/// Prefixes of lines in gdb's output: of a requested value, and at the end of each step.
const VALUE: &str = "sdm-value ";
const STEP_END: &str = "sdm-step";

/// The steps to `MPIR_Breakpoint`: gdb commands that run the launcher, and an expression that is 1 after success.
const STEPS: [(&str, &str); 3] = [
    // gdb attaches by an option of its start.
    ("handle all nostop noprint pass", "$pc != 0"),
    // The libraries are loaded when `main` is about to be called; orterun has no symbol `main`.
    (
        "tcatch exec\ncontinue\ntbreak __libc_start_main\ncontinue\nset var *(int *)&MPIR_being_debugged = 1\n\
         tbreak MPIR_Breakpoint",
        "*(int *)&MPIR_being_debugged",
    ),
    // 1 is MPIR_DEBUG_SPAWNED.
    ("continue", "*(int *)&MPIR_debug_state == 1"),
];

/// The pipe on which a launcher waits until its gdb is attached.
pub(super) struct AttachPipe {
    reader: FdServer,
    writer: PipeWriter,
}

impl AttachPipe {
    pub(super) fn new() -> io::Result<Self> {
        let (reader, writer) = io::pipe()?;
        let reader = FdServer::start(Some(reader.into()), None)?;
        Ok(Self { reader, writer })
    }

    /// Path by which the launcher opens the pipe; valid as long as this value lives.
    pub(super) fn path(&self) -> PathBuf {
        self.reader.first()
    }
}

/// A gdb attached to a launcher.
pub(super) struct Gdb {
    child: Child,
    input: Option<ChildStdin>,
    out: Stream,
    err: Stream,
    /// The pipe on which the launcher waits until gdb is attached; `None` after the line that lets the launcher begin
    /// was written.
    gate: Option<AttachPipe>,
    /// Index of the present step.
    step: usize,
    /// True once the expression of the present step was 1.
    is_true: bool,
    complaints: Vec<String>,
}

/// The failure of gdb to reach the point at which a launcher holds its processes.
#[derive(Debug, thiserror::Error)]
#[error("{step}{}", quoted(said.as_deref()))]
pub struct HoldFailure {
    step: Step,
    /// gdb's last message about the step; `None` if there is none.
    said: Option<String>,
}

/// The step that gdb did not complete.
#[derive(Debug, thiserror::Error)]
enum Step {
    #[error("the launcher's gdb has ended")]
    Ended,
    #[error("the launcher did not reach MPIR_Breakpoint")]
    Breakpoint,
    #[error("cannot send a command to gdb: {0}")]
    Tell(io::Error),
}

fn quoted(said: Option<&str>) -> String {
    said.map_or_else(String::new, |line| format!(": gdb: {line}"))
}

impl Gdb {
    /// Starts a gdb that attaches to the process `pid`.
    pub(super) fn start(program: &Path, pid: i32, gate: AttachPipe) -> io::Result<Self> {
        let (out, out_writer) = Stream::open(false)?;
        let (err, err_writer) = Stream::open(true)?;
        let mut command = programs::helper(program)?;
        files::shut_python(&mut command);
        command.args(["-nx", "-q", "-iex", "set debuginfod enabled off"]);
        command.args(["-iex", "set auto-load off", "-iex", "set width 0"]);
        command.args(["-iex", "set confirm off", "-iex", "set prompt"]);
        command.args(["-iex", "set breakpoint pending on"]);
        // Without separate debug files gdb is ready sooner; full stacks and types are not needed.
        command.args(["-iex", "set debug-file-directory"]);
        command.args(["-p", &pid.to_string()]).env("LC_ALL", "C");
        // No signal ends it, but the end of its input; a terminal's Ctrl-C is not for it.
        command.process_group(0);
        command.stdin(Stdio::piped());
        let mut child = command.stdout(out_writer).stderr(err_writer).spawn()?;
        let input = child.stdin.take();
        let mut gdb = Self {
            child,
            input,
            out,
            err,
            gate: Some(gate),
            step: 0,
            is_true: false,
            complaints: Vec::new(),
        };
        gdb.begin_step()?;
        Ok(gdb)
    }

    /// The descriptors of gdb's output and error output, to be watched.
    pub(super) fn fds(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        [self.out.fd(), self.err.fd()].into_iter().flatten()
    }

    fn begin_step(&mut self) -> io::Result<()> {
        let Some((commands, value)) = STEPS.get(self.step) else {
            return Ok(());
        };
        self.is_true = false;
        let input = self.input.as_mut().expect("open until the release");
        writeln!(
            input,
            "{commands}\nprintf \"{VALUE}%d\\n\", {value}\necho {STEP_END}\\n"
        )
    }

    /// Handles gdb's output; true once the launcher is held.
    ///
    /// # Errors
    /// [`HoldFailure`]: the step that failed, with gdb's message.
    pub(super) fn advance(&mut self) -> Result<bool, HoldFailure> {
        let mut lines = Vec::new();
        while self.err.read(&mut |line| lines.push(line)) > 0 {}
        self.complaints.extend(
            lines
                .drain(..)
                .filter_map(|it| it.text().map(str::to_owned)),
        );
        let extra = self.complaints.len().saturating_sub(COMPLAINTS_MAX);
        self.complaints.drain(..extra);
        while self.out.read(&mut |line| lines.push(line)) > 0 {}
        for line in lines.iter().filter_map(|line| line.text()) {
            // The line may begin with gdb's prompts.
            let line = line.trim_start_matches(['>', ' ']);
            if let Some(value) = line.strip_prefix(VALUE) {
                self.is_true = value == "1";
            }
            if line == STEP_END && self.step < STEPS.len() {
                self.end_step()?;
            }
        }
        if self.out.fd().is_none() {
            return Err(self.complaint(Step::Ended));
        }
        Ok(self.step == STEPS.len())
    }

    fn end_step(&mut self) -> Result<(), HoldFailure> {
        if !self.is_true {
            return Err(self.complaint(Step::Breakpoint));
        }
        self.step += 1;
        self.complaints.clear();
        let let_in = match self.gate.take() {
            // The launcher is stopped under gdb until gdb continues it.
            Some(mut gate) => gate.writer.write_all(b"\n"),
            None => Ok(()),
        };
        let begun = let_in.and_then(|()| self.begin_step());
        begun.map_err(|error| self.complaint(Step::Tell(error)))
    }

    /// True if the launcher's program has begun.
    pub(super) fn has_begun(&self) -> bool {
        self.step > 0
    }

    /// The error for a step, with gdb's last message about it.
    fn complaint(&self, step: Step) -> HoldFailure {
        let mut said = self.complaints.iter().rev().map(|line| line.trim());
        let said = said.find(|line| !line.is_empty()).map(str::to_owned);
        HoldFailure { step, said }
    }

    /// Makes gdb detach from the launcher, and end.
    ///
    /// # Errors
    /// gdb takes too long, and was killed.
    pub(super) fn release(mut self) -> io::Result<()> {
        self.gate = None;
        self.input = None;
        let ended = sdm_system::watch_child(self.child.id())?;
        let deadline = Instant::now() + RELEASE_WAIT;
        loop {
            while self.out.read(&mut |_| {}) > 0 || self.err.read(&mut |_| {}) > 0 {}
            if self.child.try_wait()?.is_some() {
                return Ok(());
            }
            if Instant::now() >= deadline {
                let _ = self.child.kill();
                self.child.wait()?;
                let text = "gdb did not detach from the launcher in time and was killed";
                return Err(io::Error::new(io::ErrorKind::TimedOut, text));
            }
            let left = deadline.saturating_duration_since(Instant::now());
            super::poll::await_any(self.fds().chain([ended.as_fd()]), left)?;
        }
    }
}
