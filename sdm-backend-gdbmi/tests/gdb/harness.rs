//! Drives a backend by polling its descriptors, and waits for its output.

use std::collections::BTreeMap;
use std::os::fd::{BorrowedFd, RawFd};
use std::path::{Path, PathBuf};
use std::process::Command as Process;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use sdm_backend_gdbmi::{GdbBackend, GdbConfig};
use sdm_child::{Completion, StartConfig};
use sdm_core::CommandId;
use sdm_debug::command::{BreakSpec, FrameSelect, StartSpec, StopAt};
use sdm_debug::event::Stream;
use sdm_debug::reply::{Stop, StopReason, Value};
use sdm_debug::{
    Backend, BackendOutput, Command, EndPolicy, Event, Failure, FailureCode, InterestChange, Reply,
    TaskState,
};
use sdm_idset::{IdSet, TaskId};
use sdm_system::proc::{self, State};

/// Time limit of each wait; nothing here takes this long on any machine.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) type Answer = Result<Reply, Failure>;

/// The code of a failed command.
pub(crate) fn code(answer: Answer) -> FailureCode {
    answer.expect_err("it fails").code
}

pub(crate) struct Harness {
    pub(crate) backend: GdbBackend,
    fds: BTreeMap<RawFd, PollFlags>,
    next_id: u64,
    pub(crate) answers: Vec<(CommandId, TaskId, Answer)>,
    pub(crate) events: Vec<(TaskId, Event)>,
    /// Directory of all files of this test; its name is in every command line.
    pub(crate) directory: PathBuf,
}

impl Harness {
    pub(crate) fn new() -> Self {
        Self::with(GdbConfig::default())
    }

    /// A harness that starts programs and gdbs by this configuration.
    pub(crate) fn starting(start: StartConfig) -> Self {
        Self::with(GdbConfig {
            start,
            ..GdbConfig::default()
        })
    }

    /// A harness with this configuration. `SDM_GDB` names another gdb than the one on `PATH`. `SDM_XSTATE` selects when
    /// its writes of registers are completed.
    pub(crate) fn with(mut config: GdbConfig) -> Self {
        let start = &mut config.start;
        let other = || std::env::var_os("SDM_GDB").map(PathBuf::from);
        start.gdb = start.gdb.take().or_else(other);
        start.starter = Some(env!("CARGO_BIN_EXE_sdm-starter").into());
        if let (Completion::Auto, Ok(text)) = (start.completion, std::env::var("SDM_XSTATE")) {
            start.completion = text.parse().unwrap();
        }
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!(
            "sdm-gdbmi-{}-{}",
            std::process::id(),
            COUNT.fetch_add(1, Ordering::Relaxed)
        );
        let directory = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&directory).unwrap();
        Self {
            backend: GdbBackend::new(config),
            fds: BTreeMap::new(),
            next_id: 1,
            answers: Vec::new(),
            events: Vec::new(),
            directory,
        }
    }

    /// Compiles a fixture into the test's own directory.
    pub(crate) fn compile(&self, fixture: &str, options: &[&str]) -> PathBuf {
        let source = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("tests/fixtures")
            .join(fixture)
            .with_extension("c");
        let program = self.directory.join(fixture);
        let status = Process::new("cc")
            .args(["-g", "-O0", "-pthread", "-o"])
            .arg(&program)
            .arg(source)
            .args(options)
            .status()
            .unwrap();
        assert!(status.success(), "cc {fixture}");
        program
    }

    /// Compiles a C++ fixture into the test's own directory.
    pub(crate) fn compile_cxx(&self, fixture: &str) -> PathBuf {
        let source = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("tests/fixtures")
            .join(fixture)
            .with_extension("cc");
        let program = self.directory.join(fixture);
        let status = Process::new("c++")
            .args(["-g", "-O0", "-o"])
            .args([&program, &source])
            .status()
            .unwrap();
        assert!(status.success(), "c++ {fixture}");
        program
    }

    /// Compiles a Fortran fixture into the test's own directory; `None` without a Fortran compiler.
    pub(crate) fn compile_fortran(&self, fixture: &str) -> Option<PathBuf> {
        let source = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("tests/fixtures")
            .join(fixture)
            .with_extension("f90");
        let program = self.directory.join(fixture);
        let status = Process::new("gfortran")
            .args(["-g", "-O0", "-J"])
            .arg(&self.directory)
            .arg("-o")
            .args([&program, &source])
            .status();
        let Ok(status) = status else {
            println!("SKIP: no gfortran");
            return None;
        };
        assert!(status.success(), "gfortran {fixture}");
        Some(program)
    }

    pub(crate) fn send_to(&mut self, tasks: &IdSet, command: Command) -> CommandId {
        let id = CommandId(self.next_id);
        self.next_id += 1;
        self.backend.execute(Instant::now(), id, tasks, command);
        self.drain();
        id
    }

    pub(crate) fn send(&mut self, command: Command) -> CommandId {
        self.send_to(&task(), command)
    }

    pub(crate) fn answer(&mut self, id: CommandId) -> Answer {
        self.wait(&format!("an answer to {id}"), |harness| {
            let at = harness
                .answers
                .iter()
                .position(|(known, ..)| *known == id)?;
            Some(harness.answers.remove(at).2)
        })
    }

    /// Sends a command and waits for its answer.
    pub(crate) fn ask(&mut self, command: Command) -> Answer {
        let id = self.send(command);
        self.answer(id)
    }

    /// Starts a program and expects a stop at `main`.
    pub(crate) fn start(&mut self, program: &Path, args: &[&str]) -> Stop {
        let stop = stopped(self.ask(Command::Start(spec(program, args))));
        assert_eq!(stop.reason, StopReason::AtMain);
        stop
    }

    pub(crate) fn run_on(&mut self) -> Answer {
        self.ask(Command::Continue)
    }

    pub(crate) fn break_at(&mut self, number: u32, location: &str) -> Answer {
        self.ask(Command::BreakInsert(break_spec(number, location)))
    }

    pub(crate) fn evaluate(&mut self, expression: &str) -> Result<Value, Failure> {
        let expression = expression.to_owned();
        match self.ask(Command::Evaluate { expression })? {
            Reply::Value(value) => Ok(value),
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn state(&mut self) -> TaskState {
        match self.ask(Command::Status) {
            Ok(Reply::Status(state)) => state,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn wait_event(&mut self, found: impl Fn(&Event) -> bool) -> Event {
        self.wait("an event", |harness| {
            let at = harness.events.iter().position(|(_, event)| found(event))?;
            Some(harness.events.remove(at).1)
        })
    }

    /// The program's output so far.
    pub(crate) fn output(&self, wanted: Stream) -> Vec<u8> {
        let mut all = Vec::new();
        for (_, event) in &self.events {
            if let Event::Output { stream, bytes } = event
                && *stream == wanted
            {
                all.extend_from_slice(bytes);
            }
        }
        all
    }

    pub(crate) fn wait_output(&mut self, stream: Stream, text: &str) {
        self.wait(&format!("the output {text:?}"), |harness| {
            let output = String::from_utf8_lossy(&harness.output(stream)).into_owned();
            output.contains(text).then_some(())
        });
    }

    /// Waits until both helper threads of `spin threads` wait for a signal, according to the kernel. The program runs
    /// meanwhile.
    pub(crate) fn wait_helpers(&mut self) {
        self.wait_output(Stream::Stdout, "spinning");
        let program = self.directory.join("spin");
        let is_it = |pid: &i32| proc::of(*pid).program().is_ok_and(|it| it == program);
        let pid = proc::pids().unwrap().find(is_it).expect("it runs");
        wait_helpers(pid);
    }

    pub(crate) fn wait_output_end(&mut self) {
        for wanted in [Stream::Stdout, Stream::Stderr] {
            self.wait_event(
                |event| matches!(event, Event::OutputEnd { stream } if *stream == wanted),
            );
        }
    }

    pub(crate) fn wait<T>(
        &mut self,
        what: &str,
        mut found: impl FnMut(&mut Self) -> Option<T>,
    ) -> T {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(found) = found(self) {
                return found;
            }
            assert!(
                Instant::now() < deadline,
                "waited in vain for {what}; answers {:?}, events {:?}, watched {:?}\n{}",
                self.answers,
                self.events,
                self.fds,
                threads_of(&self.directory)
            );
            self.turn();
        }
    }

    /// Waits a short time for an event, and handles it.
    pub(crate) fn turn(&mut self) {
        let now = Instant::now();
        let wait = match self.backend.poll_timeout() {
            Some(at) => at
                .saturating_duration_since(now)
                .min(Duration::from_millis(200)),
            None => Duration::from_millis(200),
        };
        let mut fds: Vec<PollFd<'_>> = self
            .fds
            .iter()
            .map(|(fd, flags)| {
                // SAFETY: the backend keeps a watched descriptor open until it reports `Forget`.
                let fd = unsafe { BorrowedFd::borrow_raw(*fd) };
                PollFd::new(fd, *flags)
            })
            .collect();
        let millis = u16::try_from(wait.as_millis()).unwrap() + u16::from(!wait.is_zero());
        poll(&mut fds, PollTimeout::from(millis)).unwrap();
        let ready: Vec<RawFd> = self
            .fds
            .keys()
            .zip(&fds)
            .filter(|(_, fd)| fd.revents().is_some_and(|events| !events.is_empty()))
            .map(|(fd, _)| *fd)
            .collect();
        for fd in ready {
            if self.fds.contains_key(&fd) {
                self.backend.handle_ready(Instant::now(), fd);
                self.drain();
            }
        }
        let now = Instant::now();
        if self.backend.poll_timeout().is_some_and(|at| at <= now) {
            self.backend.handle_timeout(now);
        }
        self.drain();
    }

    fn drain(&mut self) {
        while let Some(change) = self.backend.poll_interest() {
            match change {
                InterestChange::Watch {
                    fd,
                    readable,
                    writable,
                } => {
                    let mut flags = PollFlags::empty();
                    flags.set(PollFlags::POLLIN, readable);
                    flags.set(PollFlags::POLLOUT, writable);
                    self.fds.insert(fd, flags);
                }
                InterestChange::Forget { fd } => {
                    assert!(self.fds.remove(&fd).is_some(), "{fd} was not watched");
                    assert!(
                        std::fs::read_link(proc::own().path(&format!("fd/{fd}"))).is_ok(),
                        "{fd} was closed before it was forgotten"
                    );
                }
            }
        }
        while let Some(output) = self.backend.poll_output() {
            match output {
                BackendOutput::Answer { id, task, result } => {
                    let twice = self.answers.iter().any(|(i, t, _)| *i == id && *t == task);
                    assert!(!twice, "two answers to {id} of task {task}");
                    self.answers.push((id, task, result));
                }
                BackendOutput::Event { task, event } => self.events.push((task, event)),
            }
        }
    }

    /// Ends the backend, and checks that no process of this test is left.
    pub(crate) fn shut_down(&mut self) {
        self.backend
            .shut_down(Instant::now(), EndPolicy::KillStarted);
        self.drain();
        self.wait("the end", |harness| harness.backend.is_down().then_some(()));
        self.assert_nothing_left();
    }

    pub(crate) fn assert_nothing_left(&mut self) {
        let left = processes_of(&self.directory);
        assert!(left.is_empty(), "left behind: {left:?}");
    }
}

impl Drop for Harness {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.shut_down();
        }
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

/// Waits until two threads of a process sleep in `pause`, or in `ppoll` on architectures without it.
pub(crate) fn wait_helpers(pid: i32) {
    #[cfg(target_arch = "x86_64")]
    const WAIT: i64 = nix::libc::SYS_pause;
    #[cfg(not(target_arch = "x86_64"))]
    const WAIT: i64 = nix::libc::SYS_ppoll;
    let process = proc::of(pid);
    let waits = |id: &i32| {
        let thread = process.thread(*id);
        let call = thread.system_call().map(|call| call.0);
        thread.state() == Some(State('S')) && call == Some(WAIT)
    };
    let deadline = Instant::now() + PATIENCE;
    while process.thread_ids().unwrap().filter(waits).count() < 2 {
        assert!(Instant::now() < deadline, "two that wait");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// The processes whose command line contains the directory, or whose working directory is in it.
pub(crate) fn processes_of(directory: &Path) -> Vec<(i32, String)> {
    let name = directory.to_str().unwrap();
    let mut found = Vec::new();
    for pid in proc::pids().unwrap() {
        let process = proc::of(pid);
        let line = process.words().unwrap_or_default().join(" ");
        let directory = std::fs::read_link(process.path("cwd")).unwrap_or_default();
        if line.contains(name) || directory.starts_with(name) {
            found.push((pid, line));
        }
    }
    found
}

/// One line for each thread of this process, and of the processes of a directory: its state, and its processor time so
/// far.
fn threads_of(directory: &Path) -> String {
    let mut lines = String::new();
    let own = std::iter::once(std::process::id().cast_signed());
    let others = processes_of(directory).into_iter().map(|(pid, _)| pid);
    for process in own.chain(others).map(proc::of) {
        let name = process.name().unwrap_or_default();
        for id in process.thread_ids().into_iter().flatten() {
            let thread = process.thread(id);
            let ticks = thread.stat().ok().and_then(|stat| stat.cpu_ticks());
            let (state, call, place) =
                (thread.state(), thread.system_call(), thread.wait_channel());
            lines += &format!("{name} {id}: {state:?} {call:?} {place} {ticks:?} ticks\n");
        }
    }
    lines
}

pub(crate) fn task() -> IdSet {
    IdSet::single(TaskId(0))
}

/// Options to start a program, stopped at `main`, in the directory of its file.
pub(crate) fn spec(program: &Path, args: &[&str]) -> StartSpec {
    use std::os::unix::ffi::OsStrExt;
    StartSpec {
        program: program.as_os_str().as_bytes().to_vec(),
        args: args.iter().map(|arg| arg.as_bytes().to_vec()).collect(),
        directory: program
            .parent()
            .map(|path| path.as_os_str().as_bytes().to_vec()),
        stop: StopAt::Main,
        ..StartSpec::default()
    }
}

/// Starts a program, runs it up to a function, and selects the frame that has called it.
pub(crate) fn start_in_caller(harness: &mut Harness, program: &Path, function: &str) {
    harness.start(program, &[]);
    harness.break_at(1, function).unwrap();
    stopped(harness.run_on());
    let up = FrameSelect::Move(1);
    harness.ask(Command::SelectFrame(up)).unwrap();
}

/// A Fortran fixture that has stopped at this breakpoint; `None` without a compiler for it.
pub(crate) fn in_fortran(
    mut harness: Harness,
    fixture: &str,
    spec: BreakSpec,
) -> Option<(Harness, Stop)> {
    let program = harness.compile_fortran(fixture)?;
    harness.start(&program, &[]);
    harness.ask(Command::BreakInsert(spec)).unwrap();
    let stop = stopped(harness.run_on());
    Some((harness, stop))
}

pub(crate) fn break_spec(number: u32, location: &str) -> BreakSpec {
    BreakSpec {
        number,
        location: location.to_owned(),
        ..BreakSpec::default()
    }
}

pub(crate) fn stopped(answer: Answer) -> Stop {
    match answer {
        Ok(Reply::Stopped(stop)) => stop,
        other => panic!("not stopped: {other:?}"),
    }
}

/// The function and the line of a stop.
pub(crate) fn place(stop: &Stop) -> (&str, u32) {
    let frame = stop.frame.as_ref().expect("a frame");
    (&frame.function, frame.line)
}
