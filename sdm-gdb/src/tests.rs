//! The driver against a scripted gdb: rare behaviour of real gdbs, and faults that none should have.

mod breakpoints_in_memory;
mod given_up;
mod lost;
mod mpi_errors;
mod probes;
mod shared;
mod stacks;
mod withheld;

use std::collections::BTreeMap;

use proptest::prelude::*;
use sdm_debug::command::{AttachSpec, BacktraceSpec, BreakSpec, FrameSelect, StepKind, StopAt};
use sdm_debug::reply::StopReason;

use std::time::Duration;

use sdm_debug::Event;
use sdm_debug::fold::FoldRules;

use super::fake_host::FakeHost;
use super::*;
use sdm_mi::parse_line;

fn config() -> DriverConfig {
    DriverConfig {
        command_wait: Duration::from_secs(10),
        symbols_wait: Duration::from_secs(20),
        interrupt_wait: Duration::from_secs(2),
        internal_breakpoints: false,
        registers_unknown: false,
        handles: Vec::new(),
        fold: FoldRules::default(),
    }
}

/// A driver, its clock, and its actions so far.
struct Scene {
    driver: Driver,
    now: Instant,
    /// Unanswered MI commands, by token.
    sent: Vec<(u64, String)>,
    actions: Vec<String>,
    answers: BTreeMap<u64, Result<Reply, Failure>>,
    events: Vec<Event>,
}

impl Scene {
    fn new(host: FakeHost) -> Self {
        let now = Instant::now();
        Self {
            driver: Driver::new(now, Rc::new(config()), Box::new(host)),
            now,
            sent: Vec::new(),
            actions: Vec::new(),
            answers: BTreeMap::new(),
            events: Vec::new(),
        }
    }

    /// A program stopped at main; its start was command 0.
    fn at_main(host: FakeHost) -> Self {
        let mut scene = Self::new(host);
        scene.start(0);
        scene.answer_all();
        assert_eq!(scene.sent.last().unwrap().1, "-exec-run --start");
        scene.gdb("=thread-group-started,id=\"i1\",pid=\"77\"");
        scene.reply("^running");
        scene.gdb("*running,thread-id=\"all\"");
        scene.stop("reason=\"breakpoint-hit\",disp=\"del\",bkptno=\"1\"");
        let Some(Ok(Reply::Stopped(stop))) = scene.answers.get(&0) else {
            panic!("{:?}", scene.answers);
        };
        assert_eq!(stop.reason, StopReason::AtMain);
        scene
    }

    fn start(&mut self, id: u64) {
        let launch = Launch {
            program: "/tmp/program".into(),
            wrapper: b"env".to_vec(),
            args: Vec::new(),
            wrapped: None,
            reached_by: None,
        };
        let id = CommandId(id);
        self.driver
            .start(self.now, id, launch, StopAt::Main, StartInput::default());
        self.drain();
    }

    fn command(&mut self, id: u64, command: Command) {
        self.driver.handle_command(self.now, CommandId(id), command);
        self.drain();
    }

    fn gdb(&mut self, line: &str) {
        self.driver
            .handle_record(self.now, parse_line(line.as_bytes()));
        self.drain();
    }

    /// Answers the oldest unanswered MI command.
    fn reply(&mut self, line: &str) {
        let (token, _) = self.sent.remove(0);
        self.gdb(&format!("{token}{line}"));
    }

    /// Answers all commands except those that resume the program.
    fn answer_all(&mut self) {
        while self
            .sent
            .first()
            .is_some_and(|(_, line)| !line.starts_with("-exec"))
        {
            self.reply("^done");
        }
    }

    fn stop(&mut self, reason: &str) {
        self.gdb(&format!(
            "*stopped,{reason},frame={{addr=\"0x1\",func=\"f\",file=\"f.c\",fullname=\"/f.c\",line=\"3\"}}"
        ));
    }

    fn pass(&mut self, time: Duration) {
        let end = self.now + time;
        while let Some(at) = self.driver.poll_timeout().filter(|at| *at <= end) {
            self.now = self.now.max(at);
            self.driver.handle_timeout(self.now);
            self.drain();
        }
        self.now = end;
    }

    fn drain(&mut self) {
        while let Some(action) = self.driver.poll_action() {
            match action {
                Action::Send(line) => {
                    let digits = line.find(|c: char| !c.is_ascii_digit()).unwrap();
                    let (token, line) = line.split_at(digits);
                    self.sent
                        .push((token.parse().unwrap(), line.trim_end().to_owned()));
                }
                Action::Answer { id, result } => {
                    let before = self.answers.insert(id.0, result);
                    assert!(before.is_none(), "{id} was answered twice");
                }
                Action::Event(event) => self.events.push(event),
                other => self.actions.push(format!("{other:?}")),
            }
        }
    }

    fn failure(&self, id: u64) -> &Failure {
        self.answers[&id].as_ref().unwrap_err()
    }

    fn reason(&self, id: u64) -> &StopReason {
        match &self.answers[&id] {
            Ok(Reply::Stopped(stop)) => &stop.reason,
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn unstoppable_program_is_reported_with_its_wait_channel() {
    let mut scene = Scene::at_main(FakeHost::default());
    scene.command(1, Command::Continue);
    scene.reply("^running");
    scene.command(2, Command::Interrupt);
    assert_eq!(scene.sent[0].1, "-exec-interrupt");
    scene.reply("^done");
    scene.pass(Duration::from_secs(1));
    assert!(
        scene
            .actions
            .iter()
            .all(|action| !action.contains("SIGSTOP"))
    );
    scene.pass(Duration::from_secs(2));
    assert!(
        scene
            .actions
            .last()
            .unwrap()
            .contains("pid: 77, signal: SIGSTOP")
    );
    assert!(!scene.answers.contains_key(&2));
    scene.pass(Duration::from_secs(10));
    assert_eq!(scene.failure(2).code, FailureCode::NotStoppable);
    assert_eq!(
        scene.failure(2).text,
        "the process could not be stopped (state S, nfs_wait)"
    );
    // If the program stops after all, no command waits for the stop any more, and the program is resumed.
    scene.stop("reason=\"signal-received\",signal-name=\"SIGSTOP\"");
    assert_eq!(scene.sent.last().unwrap().1, "-exec-continue");
    scene.reply("^running");
    assert!(!scene.answers.contains_key(&1));
}

#[test]
fn late_sigint_of_an_interrupt_does_not_end_the_next_run() {
    let mut scene = Scene::at_main(FakeHost::default());
    let step = Command::Step {
        kind: StepKind::Over,
        count: 2,
    };
    scene.command(1, step.clone());
    scene.reply("^running");
    scene.command(2, Command::Interrupt);
    scene.stop("reason=\"end-stepping-range\"");
    scene.reply("^done");
    assert_eq!(scene.reason(1), &StopReason::StepEnd);
    assert_eq!(scene.answers[&2], Ok(Reply::Done));
    scene.command(3, step);
    scene.reply("^running");
    let late = "reason=\"signal-received\",signal-name=\"SIGINT\",signal-meaning=\"Interrupt\"";
    scene.stop(late);
    assert!(!scene.answers.contains_key(&3));
    assert_eq!(scene.sent[0].1, "-exec-next 2");
    scene.reply("^running");
    // The next SIGINT was not sent by the driver.
    scene.stop(late);
    assert!(matches!(scene.reason(3), StopReason::Signal { name, .. } if name == "SIGINT"));
}

#[test]
fn command_fails_if_gdb_aborts_its_run_while_stopped() {
    let held = FakeHost {
        held: true,
        ..FakeHost::default()
    };
    let mut scene = Scene::at_main(held);
    scene.command(1, Command::Continue);
    let token = scene.sent[0].0;
    scene.reply("^running");
    scene.gdb(&format!("{token}^error,msg=\"Command aborted.\""));
    assert_eq!(scene.failure(1).text, "Command aborted.");
    assert_eq!(scene.driver.task_state(), TaskState::Stopped);
    scene.command(2, Command::Finish);
    scene.reply("^error,msg=\"Invalid data type for function to be called.\"");
    scene.reply("^error,msg=\"\\\"finish\\\" not meaningful in the outermost frame.\"");
    assert_eq!(scene.failure(2).code, FailureCode::Gdb);
    assert_eq!(scene.driver.task_state(), TaskState::Stopped);
}

#[test]
fn run_continues_after_gdb_error_until_program_exit() {
    let mut scene = Scene::at_main(FakeHost::default());
    scene.command(1, Command::Continue);
    let token = scene.sent[0].0;
    scene.reply("^running");
    let stumbled = "msg=\"Couldn't get registers: No such process.\"";
    scene.gdb(&format!("{token}^error,{stumbled}"));
    assert!(!scene.answers.contains_key(&1));
    scene.stop("reason=\"exited-normally\"");
    let exited = &scene.answers[&1];
    assert!(
        matches!(exited, Ok(Reply::Exited { code: 0, .. })),
        "{exited:?}"
    );
}

#[test]
fn last_reason_in_a_stop_record_decides_the_answer() {
    let mut scene = Scene::at_main(FakeHost::default());
    scene.command(1, Command::Continue);
    scene.reply("^running");
    scene.gdb("*stopped,reason=\"signal-received\",signal-name=\"SIGUSR1\",reason=\"exited\",exit-code=\"0377\"");
    let before_finalize = false;
    assert_eq!(
        scene.answers[&1],
        Ok(Reply::Exited {
            code: 255,
            before_finalize
        })
    );
    assert!(scene.actions.iter().any(|action| action == "CloseGdb"));
    scene.driver.handle_gdb_end(scene.now, "gdb exited with 0");
    scene.drain();
    assert!(
        !scene
            .events
            .iter()
            .any(|event| matches!(event, Event::GdbDied { .. }))
    );
}

#[test]
fn slow_query_is_interrupted_and_then_times_out() {
    let mut scene = Scene::at_main(FakeHost::default());
    scene.command(1, Command::Locals);
    scene.command(2, Command::Threads);
    let token = scene.sent[0].0;
    assert_eq!(scene.sent.len(), 1, "one at a time");
    scene.pass(Duration::from_secs(11));
    assert_eq!(*scene.actions.last().unwrap(), format!("BreakOff({token})"));
    scene.pass(Duration::from_secs(6));
    assert_eq!(scene.failure(1).code, FailureCode::TimedOut);
    assert_eq!(scene.sent[1].1, "-thread-info");
    scene.gdb(&format!("{token}^done,variables=[]"));
    assert!(!scene.answers.contains_key(&2), "late answers are nobody's");
}

#[test]
fn interrupt_stops_a_program_that_is_being_started() {
    let mut scene = Scene::new(FakeHost::default());
    scene.start(0);
    scene.command(1, Command::Interrupt);
    scene.answer_all();
    scene.gdb("=thread-group-started,id=\"i1\",pid=\"77\"");
    scene.reply("^running");
    assert_eq!(scene.sent[0].1, "-exec-interrupt");
    scene.stop("reason=\"signal-received\",signal-name=\"SIGINT\"");
    assert_eq!(scene.reason(0), &StopReason::Interrupted);
}

#[test]
fn cancelled_start_closes_gdb() {
    let mut scene = Scene::new(FakeHost::default());
    scene.start(0);
    scene.driver.handle_cancel(scene.now, CommandId(0));
    scene.drain();
    assert_eq!(scene.failure(0).code, FailureCode::Cancelled);
    assert_eq!(scene.driver.task_state(), TaskState::Absent);
    assert!(scene.actions.iter().any(|action| action == "CloseGdb"));
}

/// An input of a driver.
#[derive(Clone, Debug)]
enum Step {
    Command(u8),
    Cancel(u8),
    /// Answers one of the open MI commands with this text.
    Reply(u8, &'static str),
    Gdb(&'static str),
    Pass(u64),
    ShutDown(bool),
}

const REPLIES: [&str; 6] = [
    "^done",
    "^running",
    "^error,msg=\"no\"",
    "^done,bkpt={number=\"5\",addr=\"0x1\",func=\"g\"}",
    "^done,threads=[{id=\"1\",name=\"x\"}],current-thread-id=\"1\"",
    "^done,stack=[frame={level=\"0\",func=\"f\",addr=\"0x3\"},frame={level=\"1\",func=\"??\"}]",
];

const RECORDS: [&str; 14] = [
    "*running,thread-id=\"all\"",
    "*stopped",
    "*stopped,reason=\"breakpoint-hit\",bkptno=\"5\"",
    "*stopped,reason=\"end-stepping-range\",frame={func=\"read\",from=\"/lib/libc.so.6\"}",
    "*stopped,reason=\"signal-received\",signal-name=\"SIGINT\"",
    "*stopped,reason=\"signal-received\",signal-name=\"0\"",
    "*stopped,reason=\"exited-normally\"",
    "*stopped,reason=\"exited-signalled\",signal-name=\"SIGSEGV\"",
    "=thread-group-started,id=\"i1\",pid=\"77\"",
    "=thread-group-exited,id=\"i1\"",
    "=breakpoint-modified,bkpt={number=\"5\",addr=\"<PENDING>\",times=\"1\"}",
    "=breakpoint-deleted,id=\"5\"",
    "~\" received signal SIGUSR1, x\"",
    "nonsense",
];

fn some_command(number: u8) -> Command {
    let text = || "x".to_owned();
    match number % 20 {
        0 => Command::Continue,
        1 => Command::Step {
            kind: StepKind::Into,
            count: 1,
        },
        2 => Command::Finish,
        3 => Command::Interrupt,
        4 => Command::Kill,
        5 => Command::Detach,
        6 => Command::BreakInsert(BreakSpec {
            number: 3,
            location: text(),
            ..BreakSpec::default()
        }),
        7 => Command::BreakDelete { number: 3 },
        8 => Command::BreakEnable {
            number: 3,
            enabled: true,
        },
        9 => Command::Backtrace(BacktraceSpec {
            args: true,
            ..BacktraceSpec::default()
        }),
        10 => Command::Stacks { full: false },
        11 => Command::SelectFrame(FrameSelect::Move(1)),
        12 => Command::Locals,
        13 => Command::Threads,
        14 => Command::SelectThread { number: 1 },
        15 => Command::Evaluate { expression: text() },
        16 => Command::SetVariable { expression: text() },
        17 => Command::Status,
        18 => Command::Console { line: text() },
        _ => Command::Continue,
    }
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => any::<u8>().prop_map(Step::Command),
        1 => any::<u8>().prop_map(Step::Cancel),
        6 => (any::<u8>(), 0..REPLIES.len()).prop_map(|(at, n)| Step::Reply(at, REPLIES[n])),
        4 => (0..RECORDS.len()).prop_map(|n| Step::Gdb(RECORDS[n])),
        1 => (0..30u64).prop_map(Step::Pass),
        1 => any::<bool>().prop_map(Step::ShutDown),
    ];
    proptest::collection::vec(step, 0..60)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Whatever gdb sends, every command is answered exactly once by the time gdb is gone, and the task makes only
    /// permitted transitions.
    #[test]
    fn every_command_is_answered_exactly_once(attach: bool, blocks_int: bool, steps in steps()) {
        let mut scene = Scene::new(FakeHost { blocks_int, ..FakeHost::default() });
        if attach {
            let process = AttachTarget::new(77, &AttachSpec::default());
            scene.driver.attach(scene.now, CommandId(0), process);
            scene.drain();
        } else {
            scene.start(0);
        }
        let mut next = 1;
        for step in steps {
            match step {
                Step::Command(number) => {
                    scene.command(next, some_command(number));
                    next += 1;
                }
                Step::Cancel(at) => {
                    scene.driver.handle_cancel(scene.now, CommandId(u64::from(at) % next));
                    scene.drain();
                }
                Step::Reply(at, line) if !scene.sent.is_empty() => {
                    // gdb answers in order. Sometimes an answer is out of order.
                    let at = if at < 240 { 0 } else { usize::from(at) % scene.sent.len() };
                    let (token, _) = scene.sent.remove(at);
                    scene.gdb(&format!("{token}{line}"));
                }
                Step::Reply(..) => {}
                Step::Gdb(line) => scene.gdb(line),
                Step::Pass(seconds) => scene.pass(Duration::from_secs(seconds)),
                Step::ShutDown(kill) => {
                    scene.driver.shut_down(scene.now, kill);
                    scene.drain();
                }
            }
        }
        // A silent gdb delays only the command of an open run.
        scene.pass(Duration::from_secs(86_400));
        prop_assert!(scene.answers.len() as u64 + 1 >= next, "open: {:?}", scene.driver.gdb.get().open);
        scene.driver.handle_gdb_end(scene.now, "gdb was ended by SIGKILL");
        scene.drain();
        let answered: Vec<u64> = scene.answers.keys().copied().collect();
        prop_assert_eq!(answered, (0..next).collect::<Vec<_>>());
        prop_assert!(!scene.driver.task_state().is_live());
        prop_assert_eq!(scene.driver.poll_timeout(), None);
    }
}
