//! A backend with one task, driven by its descriptors and timers; its answers are formatted as one line of text each.

use std::collections::BTreeMap;
use std::os::fd::RawFd;
use std::sync::Arc;
use std::time::Instant;

use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token};
use nix::sys::signal::Signal;
use sdm_backend_gdbmi::{GdbBackend, GdbConfig};
use sdm_child::StartConfig;
use sdm_core::CommandId;
use sdm_debug::command::StartSpec;
use sdm_debug::{
    BackendOutput, Command, EndPolicy, Event, Failure, InterestChange, LauncherDuties, Reply,
};
use sdm_fake::{FakeBackend, Scenario};
use sdm_idset::{IdSet, TaskId};
use sdm_tests::place::{Compiler, Place};
use sdm_tests::run::BOUND;

const TASK: TaskId = TaskId(0);

/// Behaviour of the program.
#[derive(Clone, Copy)]
pub(super) enum Way {
    /// The program calls `work` twice and exits with 3.
    Exit,
    /// The program calls `work` twice and a signal ends it.
    Segv,
    /// The program calls `work` twice and runs for ever.
    Spin,
}

pub(super) struct Stage {
    backend: Box<dyn LauncherDuties>,
    start: StartSpec,
    poll: Poll,
    watched: BTreeMap<RawFd, Interest>,
    /// Time given to the backend, never behind the clock. It jumps ahead while only the backend's own timers are
    /// waited for.
    now: Instant,
    commands: u64,
    answers: BTreeMap<u64, Result<Reply, Failure>>,
    events: Vec<Event>,
    /// The folder of the program, which lives as long as this.
    _place: Option<Place>,
}

impl Stage {
    /// A stage with gdb and the real program.
    pub(super) fn gdb(way: Way) -> Self {
        let place = Place::new();
        let program = place.compile("ways", Compiler::C);
        let way: &[u8] = match way {
            Way::Exit => b"exit",
            Way::Segv => b"segv",
            Way::Spin => b"spin",
        };
        let start = StartSpec {
            program: program.into_os_string().into_encoded_bytes(),
            args: vec![way.to_vec()],
            ..StartSpec::default()
        };
        let config = GdbConfig {
            start: StartConfig {
                starter: Some(sdm_tests::binaries::folder().join("sdm-server")),
                ..StartConfig::default()
            },
            ..GdbConfig::default()
        };
        let backend = Box::new(GdbBackend::new(config));
        Self::of(backend, start, Some(place))
    }

    /// A stage with the scripted backend, whose scenario behaves like the program.
    pub(super) fn scripted(way: Way) -> Self {
        let ends = match way {
            Way::Exit => "continue = 1ms exit 3",
            Way::Segv => "continue = 1ms stop SIGSEGV\ncontinue = 1ms signal SIGSEGV",
            Way::Spin => "continue = never",
        };
        let text = format!(
            "start = 1ms\nstep = 1ms\ninterrupt = 1ms\nstack = main ways.c:17\nvalue level = 3\n\
             continue = 1ms breakpoint\ncontinue = 1ms breakpoint\n{ends}\n"
        );
        let scenario = Arc::new(Scenario::parse(&text).expect("a scenario"));
        let backend = FakeBackend::new(scenario, &IdSet::single(TASK));
        let start = StartSpec {
            program: b"ways".to_vec(),
            ..StartSpec::default()
        };
        Self::of(Box::new(backend), start, None)
    }

    fn of(backend: Box<dyn LauncherDuties>, start: StartSpec, place: Option<Place>) -> Self {
        Self {
            backend,
            start,
            poll: Poll::new().expect("the system has a descriptor left"),
            watched: BTreeMap::new(),
            now: Instant::now(),
            commands: 0,
            answers: BTreeMap::new(),
            events: Vec::new(),
            _place: place,
        }
    }

    /// The command that starts the program.
    pub(super) fn start_command(&self) -> Command {
        Command::Start(self.start.clone())
    }

    /// Starts the program and sees it held at `main`.
    pub(super) fn start(&mut self) {
        let start = self.start_command();
        self.check(start, "stopped: AtMain");
    }

    /// Sends a command; returns its number.
    pub(super) fn send(&mut self, command: Command) -> u64 {
        self.commands += 1;
        let id = CommandId(self.commands);
        self.backend
            .execute(self.now, id, &IdSet::single(TASK), command);
        self.drain();
        self.commands
    }

    /// Cancels a command.
    pub(super) fn cancel(&mut self, command: u64) {
        self.backend.cancel(self.now, CommandId(command));
        self.drain();
    }

    /// The unchanged answer to a command.
    pub(super) fn answer(&mut self, command: u64) -> Result<Reply, Failure> {
        let what = format!("the answer to command {command}");
        self.wait(&what, |stage| stage.answers.remove(&command))
    }

    /// Sends a command and waits for its answer.
    pub(super) fn ask(&mut self, command: Command) -> Result<Reply, Failure> {
        let command = self.send(command);
        self.answer(command)
    }

    /// Sends a command and checks its answer.
    pub(super) fn check(&mut self, command: Command, expect: &str) {
        let name = command.name();
        let answer = told(&self.ask(command));
        assert_eq!(answer, expect, "{name}");
    }

    /// Sends a command that must fail with a code; the text differs between the backends.
    pub(super) fn check_code(&mut self, command: Command, expect: &str) {
        let name = command.name();
        let answer = told(&self.ask(command));
        let code = answer.split(':').next();
        assert_eq!(code, Some(expect), "{name}: {answer}");
    }

    /// Sees that the answer to a command that was sent is this one.
    pub(super) fn check_answer(&mut self, command: u64, expect: &str) {
        let answer = told(&self.answer(command));
        assert_eq!(answer, expect, "command {command}");
    }

    /// Waits for an event.
    pub(super) fn event(&mut self, expect: &Event) {
        self.wait(&format!("{expect:?}"), |stage| {
            let at = stage.events.iter().position(|event| event == expect)?;
            Some(stage.events.remove(at))
        });
    }

    /// Waits for an event that has more details than are compared.
    pub(super) fn event_where(&mut self, what: &str, is: impl Fn(&Event) -> bool) {
        self.wait(what, |stage| stage.events.iter().any(&is).then_some(()));
    }

    /// The events so far, which are forgotten.
    pub(super) fn take_events(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.events)
    }

    fn wait<T>(&mut self, what: &str, mut found: impl FnMut(&mut Self) -> Option<T>) -> T {
        let deadline = Instant::now() + BOUND;
        loop {
            if let Some(found) = found(self) {
                return found;
            }
            let (answers, events) = (&self.answers, &self.events);
            assert!(
                Instant::now() < deadline,
                "in vain for {what}; answers {answers:?}, events {events:?}"
            );
            self.turn();
        }
    }

    /// Handles the next event or timer.
    fn turn(&mut self) {
        let timer = self.backend.poll_timeout();
        if self.watched.is_empty() {
            // Only a timer can fire, so the time jumps to it.
            self.now = timer.expect("something is to happen").max(self.now);
        } else {
            let now = Instant::now();
            let wait = timer.map_or(BOUND, |at| at.saturating_duration_since(now));
            let mut events = Events::with_capacity(64);
            self.poll
                .poll(&mut events, Some(wait.min(BOUND)))
                .expect("the system waits");
            self.now = self.now.max(Instant::now());
            for event in &events {
                let fd = RawFd::try_from(event.token().0).expect("a descriptor");
                if self.watched.contains_key(&fd) {
                    self.backend.handle_ready(self.now, fd);
                    self.drain();
                }
            }
        }
        if timer.is_some_and(|at| at <= self.now) {
            self.backend.handle_timeout(self.now);
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
                } => self.watch(fd, interest(readable, writable)),
                InterestChange::Forget { fd } => self.watch(fd, None),
            }
        }
        while let Some(output) = self.backend.poll_output() {
            match output {
                BackendOutput::Answer { id, task, result } => {
                    assert_eq!(task, TASK);
                    let before = self.answers.insert(id.0, result);
                    assert_eq!(before, None, "command {id} is answered once");
                }
                BackendOutput::Event { event, .. } => self.events.push(event),
            }
        }
    }

    fn watch(&mut self, fd: RawFd, interest: Option<Interest>) {
        let registry = self.poll.registry();
        let token = Token(usize::try_from(fd).expect("a descriptor"));
        if self.watched.remove(&fd).is_some() {
            registry
                .deregister(&mut SourceFd(&fd))
                .expect("it is watched");
        }
        if let Some(interest) = interest {
            registry
                .register(&mut SourceFd(&fd), token, interest)
                .expect("it is open");
            self.watched.insert(fd, interest);
        }
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.backend.shut_down(self.now, EndPolicy::KillStarted);
            self.drain();
            self.wait("the end", |stage| stage.backend.is_down().then_some(()));
            // A detached process runs on; after a test it must not.
            self.backend.signal_left(Signal::SIGKILL as i32);
            let is_left = |stage: &mut Self| (!stage.backend.is_leaving()).then_some(());
            self.wait("the end of what was detached", is_left);
        }
    }
}

fn interest(readable: bool, writable: bool) -> Option<Interest> {
    match (readable, writable) {
        (true, true) => Some(Interest::READABLE | Interest::WRITABLE),
        (true, false) => Some(Interest::READABLE),
        (false, true) => Some(Interest::WRITABLE),
        (false, false) => None,
    }
}

/// An answer as one line, in which both backends must agree.
fn told(answer: &Result<Reply, Failure>) -> String {
    match answer {
        Ok(Reply::Stopped(stop)) => format!("stopped: {:?}", stop.reason),
        Ok(Reply::Value(value)) => value.text.clone(),
        Ok(Reply::Exited { code, .. }) => format!("exited {code}"),
        Ok(Reply::Frame(view)) => format!("#{} {}", view.frame.level, view.frame.function),
        Ok(reply) => format!("{reply:?}"),
        Err(failure) => format!("{}: {}", failure.code.name(), failure.text.trim_end()),
    }
}
