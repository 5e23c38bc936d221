//! Attaching to a running process, and leaving it as it was.

use std::process::{Child, Command as Process, Stdio};
use std::time::Instant;

use sdm_debug::command::{AttachSpec, BreakSpec};
use sdm_debug::reply::StopReason;
use sdm_debug::{Backend, Command, EndPolicy, Event, FailureCode, Reply, TaskState};
use sdm_system::proc::{self, State};

use crate::harness::{Harness, place, stopped, wait_helpers};

pub(crate) struct Running(Child);

impl Running {
    pub(crate) fn new(harness: &Harness, args: &[&str]) -> Self {
        use std::io::BufRead;
        let mut program = harness.directory.join("spin");
        if !program.exists() {
            // Compiled only once, as a process whose program file was replaced has no symbols.
            program = harness.compile("spin", &[]);
        }
        let mut child = Process::new(program)
            .args(args)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        std::io::BufReader::new(child.stdout.as_mut().unwrap())
            .read_line(&mut line)
            .unwrap();
        assert_eq!(line, "spinning\n");
        if args == ["threads"] {
            wait_helpers(child.id().cast_signed());
        }
        Self(child)
    }

    pub(crate) fn pid(&self) -> i32 {
        self.0.id().cast_signed()
    }

    /// The pid of the process's tracer, a gdb; 0 if there is none.
    pub(crate) fn tracer(&self) -> i32 {
        let status = proc::of(self.pid()).status().unwrap();
        status.tracer().unwrap_or(0)
    }

    /// Kills the gdb that traces the process.
    pub(crate) fn kill_tracer(&self) {
        let gdb = nix::unistd::Pid::from_raw(self.tracer());
        nix::sys::signal::kill(gdb, nix::sys::signal::Signal::SIGKILL).unwrap();
    }

    /// True if the process runs or sleeps, so that no tracer or signal has stopped it.
    pub(crate) fn runs(&self) -> bool {
        matches!(self.state(), State('R' | 'S'))
    }

    fn is_running(&mut self) -> bool {
        self.0.try_wait().unwrap().is_none()
    }

    /// The process's state: `R` or `S` if it runs, `t` if a tracer has stopped it.
    fn state(&self) -> State {
        proc::of(self.pid()).state().unwrap()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn attach(running: &Running, read_only: bool) -> Command {
    Command::Attach(AttachSpec {
        pids: vec![(0, running.0.id().cast_signed())],
        read_only,
        ..AttachSpec::default()
    })
}

#[test]
fn process_is_attached_inspected_and_detached() {
    let mut harness = Harness::new();
    let mut running = Running::new(&harness, &["threads"]);
    let stop = stopped(harness.ask(attach(&running, true)));
    assert_eq!(stop.reason, StopReason::Attached);
    assert!(["main", "work"].contains(&place(&stop).0), "{stop:?}");
    assert_eq!(harness.evaluate("leave").unwrap().text, "0");
    let Ok(Reply::Stacks(stacks)) = harness.ask(Command::Stacks { full: false }) else {
        panic!("no stacks");
    };
    assert_eq!(stacks.threads.len(), 2, "{stacks:?}");
    let spec = BreakSpec {
        number: 1,
        location: "work".to_owned(),
        ..BreakSpec::default()
    };
    let refused = harness.ask(Command::BreakInsert(spec)).unwrap_err();
    assert_eq!(refused.code, FailureCode::Unsupported);
    let expression = "leave = 1".to_owned();
    let refused = harness
        .ask(Command::SetVariable { expression })
        .unwrap_err();
    assert_eq!(refused.code, FailureCode::Unsupported);
    assert_eq!(harness.ask(Command::Detach), Ok(Reply::Done));
    assert_eq!(harness.state(), TaskState::Detached);
    harness.wait("it to run", |_| running.runs().then_some(()));
    // Attaches once more, and detaches while the program runs.
    stopped(harness.ask(attach(&running, false)));
    let run = harness.send(Command::Continue);
    assert_eq!(harness.ask(Command::Detach), Ok(Reply::Done));
    assert_eq!(harness.answer(run), Ok(Reply::Detached));
    stopped(harness.ask(attach(&running, false)));
    harness
        .backend
        .shut_down(Instant::now(), EndPolicy::KillStarted);
    harness.wait("the end", |harness| harness.backend.is_down().then_some(()));
    harness.wait("it to run", |_| running.runs().then_some(()));
    assert!(running.is_running(), "what was attached is left running");
    drop(running);
}

#[test]
fn failed_attach_names_its_reason() {
    let mut harness = Harness::new();
    let none = AttachSpec {
        pids: vec![(1, 1)],
        ..AttachSpec::default()
    };
    let failure = harness.ask(Command::Attach(none)).unwrap_err();
    assert_eq!(failure.code, FailureCode::AttachFailed);
    let mut child = Process::new("true").spawn().unwrap();
    child.wait().unwrap();
    let gone = AttachSpec {
        pids: vec![(0, child.id().cast_signed())],
        ..AttachSpec::default()
    };
    let failure = harness.ask(Command::Attach(gone)).unwrap_err();
    assert_eq!(failure.code, FailureCode::AttachFailed);
    assert!(
        failure.text.contains("the process no longer exists"),
        "{failure}"
    );
    assert_eq!(harness.state(), TaskState::Absent);
    let running = Running::new(&harness, &[]);
    stopped(harness.ask(attach(&running, false)));
    assert_eq!(harness.ask(Command::Kill), Ok(Reply::Done));
    drop(running);
}

#[test]
fn detach_leaves_no_pending_signal() {
    let mut harness = Harness::new();
    let mut running = Running::new(&harness, &[]);
    stopped(harness.ask(attach(&running, false)));
    let spec = BreakSpec {
        number: 1,
        location: "work".to_owned(),
        ..BreakSpec::default()
    };
    harness.ask(Command::BreakInsert(spec)).unwrap();
    for _ in 0..10 {
        let run = harness.send(Command::Continue);
        let interrupt = harness.send(Command::Interrupt);
        harness.answer(interrupt).unwrap();
        stopped(harness.answer(run));
    }
    assert_eq!(harness.ask(Command::Detach), Ok(Reply::Done));
    harness.wait("it to run", |_| running.runs().then_some(()));
    assert!(running.is_running(), "killed by a SIGINT of ours");
    drop(running);
}

#[test]
fn killed_gdb_leaves_no_breakpoint_in_the_process() {
    let mut harness = Harness::new();
    let mut running = Running::new(&harness, &["threads"]);
    // gdb is killed while the process is stopped at a breakpoint. The process continues.
    stopped(harness.ask(attach(&running, false)));
    harness.break_at(1, "work").unwrap();
    stopped(harness.run_on());
    running.kill_tracer();
    harness.wait_event(|event| matches!(event, Event::GdbDied { .. }));
    harness.wait("it to run", |_| running.runs().then_some(()));
    // gdb is killed while the process runs towards a breakpoint, which it would reach when it leaves its loop.
    stopped(harness.ask(attach(&running, false)));
    harness.break_at(2, "spin.c:41").unwrap();
    let run = harness.send(Command::Continue);
    // This is answered once gdb has resumed the process.
    harness
        .ask(Command::BreakEnable {
            number: 2,
            enabled: true,
        })
        .unwrap();
    running.kill_tracer();
    assert_eq!(harness.answer(run).unwrap_err().code, FailureCode::GdbDead);
    let took = |event: &Event| matches!(event, Event::Notice { text } if text.contains("removed"));
    harness.wait_event(took);
    stopped(harness.ask(attach(&running, false)));
    let expression = "leave = 1".to_owned();
    harness.ask(Command::SetVariable { expression }).unwrap();
    assert_eq!(harness.ask(Command::Detach), Ok(Reply::Done));
    assert_eq!(running.0.wait().unwrap().code(), Some(3), "it met no trap");
}
