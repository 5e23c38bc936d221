//! Tests that a cancelled command leaves nothing behind in gdb.
//!
//! Every operation is cancelled at each of its steps, against a gdb in memory (`peer`) and behind the gate that
//! decides which commands can be withdrawn or interrupted.

mod peer;

use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use proptest::prelude::*;
use sdm_core::CommandId;
use sdm_debug::command::{
    BacktraceSpec, BreakSpec, CatchEvent, CatchSpec, StepKind, StopAt, WatchKind, WatchSpec,
};
use sdm_debug::fold::FoldRules;
use sdm_debug::{Command, Failure, FailureCode, Reply, TaskState};

use super::fake_host::FakeHost;
use super::state::signals::Sigint;
use super::{Action, Driver, DriverConfig, StartInput};
use crate::interrupt_gate::{AbandonedCommand, InterruptGate};
use peer::Peer;
use sdm_child::Launch;
use sdm_mi::parse_line;

/// A driver, its gate and a simulated gdb.
struct Scene {
    driver: Driver,
    gate: InterruptGate,
    gdb: Peer,
    now: Instant,
    /// True if gdb aborts the interrupted command; otherwise the SIGINT comes too late.
    in_time: bool,
    answers: BTreeMap<u64, Result<Reply, Failure>>,
}

impl Scene {
    /// A program stopped at main, with breakpoint 1, watchpoint 2 and the variable object `known`.
    fn new(in_time: bool) -> Self {
        let minutes = Duration::from_secs(600);
        let config = DriverConfig {
            command_wait: minutes,
            symbols_wait: minutes,
            interrupt_wait: minutes,
            internal_breakpoints: false,
            registers_unknown: false,
            handles: Vec::new(),
            fold: FoldRules::default(),
        };
        let now = Instant::now();
        let mut scene = Self {
            driver: Driver::new(now, Rc::new(config), Box::new(FakeHost::default())),
            gate: InterruptGate::default(),
            gdb: Peer::new(),
            now,
            in_time,
            answers: BTreeMap::new(),
        };
        let launch = Launch {
            program: "/tmp/program".into(),
            wrapper: Vec::new(),
            args: Vec::new(),
            wrapped: None,
            reached_by: None,
        };
        let driver = &mut scene.driver;
        driver.start(
            now,
            CommandId(0),
            launch,
            StopAt::Main,
            StartInput::default(),
        );
        scene.drain();
        scene.say("=thread-group-started,id=\"i1\",pid=\"77\"");
        scene.settle();
        scene
            .gdb
            .stop("reason=\"breakpoint-hit\",disp=\"del\",bkptno=\"99\"");
        scene.settle();
        let set_up = [insert(1, "f"), watch(2, None), create("known")];
        for (id, command) in (1..).zip(set_up) {
            scene.command(id, command);
            scene.settle();
        }
        assert!(
            scene.answers.values().all(Result::is_ok),
            "{:?}",
            scene.answers
        );
        scene
    }

    fn command(&mut self, id: u64, command: Command) {
        self.driver.handle_command(self.now, CommandId(id), command);
        self.drain();
    }

    fn cancel(&mut self, id: u64) {
        self.driver.handle_cancel(self.now, CommandId(id));
        self.drain();
    }

    fn say(&mut self, line: &str) {
        if let Some(record) = self.gate.receive(parse_line(line.as_bytes())) {
            self.driver.handle_record(self.now, record);
        }
        self.drain();
    }

    /// Performs one step of the gdb; false if there is nothing to do.
    fn step(&mut self) -> bool {
        match self.gdb.step() {
            Some(Some(line)) => self.say(&line),
            Some(None) => self.drain(),
            None => return false,
        }
        true
    }

    fn settle(&mut self) {
        let mut steps = 0;
        while self.step() {
            steps += 1;
            assert!(steps < 10_000, "it comes to no end");
        }
    }

    /// Like `settle`, but also lets the driver's time limits expire. Only then does the driver repeat an interrupt that
    /// gdb executed before a console line that resumed the program.
    fn settle_in_time(&mut self) {
        self.settle();
        while let Some(at) = self.driver.poll_timeout() {
            self.now = at;
            self.driver.handle_timeout(at);
            self.drain();
            self.settle();
        }
    }

    fn drain(&mut self) {
        while let Some(action) = self.driver.poll_action() {
            match action {
                Action::Send(line) => self.gate.push(&line),
                Action::Answer { id, result } => {
                    let before = self.answers.insert(id.0, result);
                    assert!(before.is_none(), "{id} was answered twice");
                }
                Action::BreakOff(token) => {
                    let withdrawn = self.gate.break_off(token) == AbandonedCommand::Withdrawn;
                    let answer = withdrawn.then(|| crate::interrupt_gate::withdrawn(token));
                    if let Some(answer) = answer {
                        self.driver.handle_record(self.now, answer);
                    }
                }
                Action::SignalProgram { signal, .. } => {
                    assert_eq!(signal, Signal::SIGSTOP);
                    self.gdb.halted = true;
                }
                _ => {}
            }
        }
        if self.driver.task_state() != TaskState::Starting {
            self.gate.all_attached();
        }
        while let Some(line) = self.gate.poll_line() {
            self.gdb.write(&line);
        }
        if self.gate.poll_interrupt() {
            self.gdb.interrupt(self.in_time);
        }
    }

    /// Checks that the driver's state agrees with the simulated gdb, and that no command, work or operation is
    /// unfinished.
    fn check_books(&self, at: &str) {
        let state = self.driver.gdb.get();
        let mut in_books: Vec<u32> = state
            .breakpoints
            .user
            .iter()
            .flat_map(|point| point.numbers.clone())
            .collect();
        in_books.sort_unstable();
        let in_gdb: Vec<u32> = self.gdb.points.keys().copied().collect();
        assert_eq!(
            in_gdb, in_books,
            "{at}: breakpoints in gdb, and in the books"
        );
        for point in &state.breakpoints.user {
            for number in &point.numbers {
                let disabled = self.gdb.points[number].disabled;
                assert_eq!(disabled, !point.kept.enabled, "{at}: breakpoint {number}");
            }
        }
        let objects: Vec<&String> = self.gdb.objects.keys().collect();
        let known: Vec<&String> = state.objects.keys().collect();
        assert_eq!(objects, known, "{at}: variable objects");
        for (name, [stop, print, pass]) in &self.gdb.signals {
            if name == "SIGINT" {
                let stops = state.handling.sigint == Sigint::Stops;
                assert_eq!(stops, *stop, "{at}: {name}");
            }
            if name == "SIGALRM" {
                let passes = state.handling.passed.contains(name);
                assert_eq!(passes, *print && *pass && !stop, "{at}: {name}");
            }
        }
        assert!(
            state.breakpoints.made.is_none(),
            "{at}: somebody still looks"
        );
        assert_eq!(
            state.interrupts.asked, 0,
            "{at}: commands that wait for a stop"
        );
        let on_its_way = self.gdb.interrupts > 0;
        assert_eq!(state.interrupts.int_sent, on_its_way, "{at}: SIGINT");
        let halted = self.gdb.halted;
        assert_eq!(state.interrupts.stop_sent, halted, "{at}: SIGSTOP");
        assert_eq!(
            state.activity.is_executing(),
            self.gdb.runs,
            "{at}: it runs"
        );
        assert_eq!(state.activity.is_running(), self.gdb.runs, "{at}: it runs");
        assert!(
            state.commands.pending.is_empty(),
            "{at}: commands under way"
        );
        assert!(!self.driver.gdb.works().are_left(), "{at}: works under way");
        assert!(self.driver.ops.is_empty(), "{at}: operations under way");
    }
}

fn insert(number: u32, location: &str) -> Command {
    Command::BreakInsert(BreakSpec {
        number,
        location: location.to_owned(),
        condition: Some("n > 1".to_owned()),
        ..BreakSpec::default()
    })
}

fn watch(number: u32, condition: Option<&str>) -> Command {
    Command::WatchInsert(WatchSpec {
        number,
        expression: "x".to_owned(),
        kind: WatchKind::Write,
        location: condition.is_some(),
        condition: condition.map(ToOwned::to_owned),
        ignore: 2,
    })
}

fn catch(number: u32, condition: Option<&str>) -> Command {
    Command::CatchInsert(CatchSpec {
        number,
        event: CatchEvent::Fork,
        condition: condition.map(ToOwned::to_owned),
        temporary: false,
    })
}

fn create(name: &str) -> Command {
    Command::VarCreate {
        name: name.to_owned(),
        expression: "x".to_owned(),
    }
}

/// Commands that create an object in gdb. After a command that is answered as cancelled the object must not exist.
fn makers() -> Vec<Command> {
    let matching = BreakSpec {
        number: 7,
        location: ".".to_owned(),
        regex: true,
        ..BreakSpec::default()
    };
    let in_thread = BreakSpec {
        number: 7,
        location: "f".to_owned(),
        thread: Some(1),
        ..BreakSpec::default()
    };
    vec![
        insert(7, "g"),
        Command::BreakInsert(matching),
        Command::BreakInsert(in_thread),
        watch(7, None),
        watch(7, Some("x > 1")),
        watch(7, Some("wrong")),
        catch(7, None),
        catch(7, Some("n > 1")),
        catch(7, Some("wrong")),
        create("fresh"),
    ]
}

/// Commands that change a setting in gdb. A cancelled one may have taken effect or not, but the driver's state must
/// agree with gdb.
fn changes() -> Vec<Command> {
    let signals = |names: &[&str], stop| Command::SignalHandle {
        names: names.iter().map(|name| (*name).to_owned()).collect(),
        stop: Some(stop),
        print: Some(true),
        pass: Some(true),
    };
    vec![
        Command::BreakDelete { number: 1 },
        Command::BreakEnable {
            number: 1,
            enabled: false,
        },
        Command::BreakCondition {
            number: 1,
            condition: Some("n > 2".to_owned()),
        },
        Command::BreakIgnore {
            number: 2,
            count: 3,
        },
        Command::VarDelete {
            name: "known".to_owned(),
        },
        signals(&["INT", "ALRM"], false),
    ]
}

/// Commands that leave no object and no setting in gdb: they only read, or resume the program.
fn others() -> Vec<Command> {
    let line = |line: &str| Command::Console {
        line: line.to_owned(),
    };
    let text = "x".to_owned();
    vec![
        Command::Continue,
        Command::Finish,
        Command::Step {
            kind: StepKind::Over,
            count: 2,
        },
        Command::Until { location: None },
        Command::Interrupt,
        Command::Stacks { full: false },
        Command::Backtrace(BacktraceSpec::default()),
        Command::Evaluate {
            expression: text.clone(),
        },
        Command::Call { expression: text },
        Command::Return { value: None },
        Command::Breakpoints,
        line("info line"),
        line("continue"),
        Command::Mi {
            line: "-exec-continue".to_owned(),
        },
    ]
}

/// Cancels a command at each of its steps; `left` checks the state of gdb afterwards.
fn cancel_at_every_step(command: &Command, runs: bool, refuses: bool, left: impl Fn(&Scene, &str)) {
    for in_time in [true, false] {
        for at in 0.. {
            let mut scene = Scene::new(in_time);
            if runs {
                scene.command(10, Command::Continue);
                scene.settle();
            }
            scene.gdb.refuses_to_run = refuses;
            scene.command(20, command.clone());
            let steps = (0..at).take_while(|_| scene.step()).count();
            scene.cancel(20);
            scene.settle();
            let at_step = format!("{command:?}, runs {runs}, cancelled at step {at}");
            assert!(scene.answers.contains_key(&20), "{at_step}");
            scene.check_books(&at_step);
            left(&scene, &at_step);
            // The next command must find a gdb without any other work.
            scene.command(30, Command::Breakpoints);
            scene.settle();
            assert!(scene.answers.contains_key(&30), "{at_step}");
            if steps < at {
                // The operation ended before this step.
                break;
            }
        }
    }
}

#[test]
fn cancelled_break_or_var_create_leaves_nothing_in_gdb() {
    for command in makers() {
        for runs in [false, true] {
            let before = Scene::new(true);
            cancel_at_every_step(&command, runs, false, |scene, at| {
                let cancelled = scene.answers[&20]
                    .as_ref()
                    .is_err_and(|failure| failure.code == FailureCode::Cancelled);
                if cancelled {
                    assert_eq!(scene.gdb.points, before.gdb.points, "{at}");
                    assert_eq!(scene.gdb.objects, before.gdb.objects, "{at}");
                }
            });
        }
    }
}

#[test]
fn cancelled_change_leaves_gdb_and_driver_in_agreement() {
    for command in changes() {
        cancel_at_every_step(&command, false, false, |_, _| {});
        cancel_at_every_step(&command, true, false, |_, _| {});
    }
}

#[test]
fn cancelled_query_or_run_leaves_breakpoints_unchanged() {
    for command in others() {
        for (runs, refuses) in [(false, false), (false, true), (true, false)] {
            cancel_at_every_step(&command, runs, refuses, |scene, at| {
                let before = Scene::new(true);
                assert_eq!(scene.gdb.points, before.gdb.points, "{at}");
            });
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// Runs several commands, including interrupts, any of which is cancelled at any time.
    #[test]
    fn cancelled_commands_leave_gdb_and_driver_in_agreement(
        chosen in proptest::collection::vec((any::<prop::sample::Index>(), 0usize..6, any::<bool>(), 0usize..12), 1..8),
        in_time in any::<bool>(),
    ) {
        let commands = [makers(), changes(), others()].concat();
        let mut scene = Scene::new(in_time);
        for (id, (index, before, cancelled, after)) in (100..).zip(&chosen) {
            scene.command(id, index.get(&commands).clone());
            (0..*before).take_while(|_| scene.step()).count();
            if *cancelled && !scene.answers.contains_key(&id) {
                scene.cancel(id);
            }
            (0..*after).take_while(|_| scene.step()).count();
        }
        scene.settle_in_time();
        let is_open = |id: &u64| !scene.answers.contains_key(id);
        let open: Vec<u64> = (100..).take(chosen.len()).filter(is_open).collect();
        // Only the command of a run may still be open.
        prop_assert!(open.len() <= usize::from(scene.gdb.runs), "{open:?} of {chosen:?}");
        scene.check_books(&format!("{chosen:?}"));
    }
}
