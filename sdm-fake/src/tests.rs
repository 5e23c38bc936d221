//! Tests of the scripted backend with a simulated clock: commands, runs, output and the end.

mod data;
mod merged;
mod trouble;

use std::collections::BTreeMap;

use sdm_debug::command::{AttachSpec, BacktraceSpec, BreakSpec, FrameSelect, StartSpec, StepKind};
use sdm_debug::event::Phase;
use sdm_debug::reply::Stop;

use super::*;

/// A backend with a test clock; commands are numbered in order.
struct Bench {
    backend: FakeBackend,
    start: Instant,
    now: Instant,
    next: u64,
    events: Vec<(u32, Event)>,
    answers: BTreeMap<(u64, u32), Result<Reply, Failure>>,
}

impl Bench {
    fn new(scenario: &str, tasks: &str) -> Self {
        let scenario = Arc::new(Scenario::parse(scenario).unwrap());
        let now = Instant::now();
        Self {
            backend: FakeBackend::new(scenario, &tasks.parse().unwrap()),
            start: now,
            now,
            next: 0,
            events: vec![],
            answers: BTreeMap::new(),
        }
    }

    /// A bench whose tasks are stopped at main.
    fn started(scenario: &str, tasks: &str) -> Self {
        let mut bench = Self::new(scenario, tasks);
        bench.ask(tasks, Command::Start(StartSpec::default()));
        bench.run(60_000);
        bench.events.clear();
        bench
    }

    fn ask(&mut self, tasks: &str, command: Command) -> u64 {
        self.next += 1;
        let tasks: IdSet = tasks.parse().unwrap();
        let id = CommandId(self.next);
        self.backend.execute(self.now, id, &tasks, command);
        self.drain();
        self.next
    }

    fn drain(&mut self) {
        while let Some(output) = self.backend.poll_output() {
            match output {
                BackendOutput::Answer { id, task, result } => {
                    let before = self.answers.insert((id.0, task.0), result);
                    assert_eq!(before, None, "command {id}, task {task} answered twice");
                }
                BackendOutput::Event { task, event } => self.events.push((task.0, event)),
            }
        }
    }

    /// Advances the clock, timer by timer.
    fn run(&mut self, ms: u64) {
        let end = self.now + Duration::from_millis(ms);
        while let Some(at) = self.backend.poll_timeout().filter(|at| *at <= end) {
            self.now = self.now.max(at);
            self.backend.handle_timeout(self.now);
            self.drain();
        }
        self.now = end;
    }

    /// A task's answer to a command in short form; `nothing` without an answer.
    fn said(&self, command: u64, task: u32) -> String {
        match self.answers.get(&(command, task)) {
            None => "nothing".to_owned(),
            Some(Err(failure)) => format!("{}: {}", failure.code.name(), failure.text),
            Some(Ok(Reply::Value(value))) => value.text.clone(),
            Some(Ok(Reply::Stopped(stop))) => format!("stopped {}", place(stop)),
            Some(Ok(reply)) => format!("{reply:?}"),
        }
    }

    fn value(&mut self, task: u32, expression: &str) -> String {
        let expression = expression.to_owned();
        let id = self.ask(&task.to_string(), Command::Evaluate { expression });
        self.said(id, task)
    }
}

fn place(stop: &Stop) -> String {
    let frame = stop.frame.as_ref().unwrap();
    format!("{:?} {} {}", stop.reason, frame.file, frame.line)
}

const ONE_OUTLIER: &str = "
seed = 3
start = 1ms..9ms
stack = main m.c:9 > solve s.c:3
value n = {rank%4}
local i = 3
helpers = 2
[tasks 5]
stack = main m.c:9 > halo h.c:44
value n = nan
";

#[test]
fn scenario_yields_classes_and_an_outlier() {
    let mut bench = Bench::started(ONE_OUTLIER, "0-7");
    assert_eq!(bench.said(1, 6), "stopped AtMain s.c 3");
    assert_eq!(bench.said(1, 5), "stopped AtMain h.c 44");
    assert_eq!(bench.value(6, "n"), "2");
    assert_eq!(bench.value(5, "n"), "nan");
    assert_eq!(bench.value(6, "rank * 10 + i"), "63");
    assert_eq!(
        bench.value(6, "m"),
        "gdb: No symbol \"m\" in current context."
    );
    let id = bench.ask("5-6", Command::Stacks { full: false });
    let Some(Ok(Reply::Stacks(stacks))) = bench.answers.get(&(id, 5)) else {
        panic!("{}", bench.said(id, 5));
    };
    assert_eq!((stacks.threads.len(), stacks.helpers), (1, 2));
    assert_eq!(stacks.threads[0].frames[1].function, "halo");
}

#[test]
fn start_lasts_the_scripted_time_and_reports_progress() {
    let mut bench = Bench::new("start = 5ms", "0");
    let id = bench.ask("0", Command::Start(StartSpec::default()));
    bench.run(4);
    assert_eq!(bench.said(id, 0), "nothing");
    assert_eq!(bench.backend.state(TaskId(0)), Some(&TaskState::Starting));
    bench.run(1);
    assert_eq!(bench.said(id, 0), "stopped AtMain main.c 10");
    let phases = [Phase::Gdb, Phase::Symbols, Phase::Running];
    let mut told = phases.map(|phase| (0, Event::Progress(phase))).to_vec();
    told.push((0, Event::OutputComplete { command: 1 }));
    assert_eq!(bench.events, told);
}

#[test]
fn run_is_answered_by_its_stop_or_exit() {
    let script = "
        continue = 2ms breakpoint
        continue = 2ms stop SIGSEGV
        continue = 2ms exit 3
        step = 1ms";
    let mut bench = Bench::started(script, "0");
    let location = "solve".to_owned();
    bench.ask(
        "0",
        Command::BreakInsert(BreakSpec {
            number: 4,
            location,
            ..Default::default()
        }),
    );
    let first = bench.ask("0", Command::Continue);
    let refused = bench.ask("0", Command::Continue);
    let query = bench.ask("0", Command::Locals);
    bench.run(2);
    assert_eq!(bench.said(refused, 0), "already_running: it runs already");
    assert_eq!(bench.said(query, 0), "running: running");
    assert_eq!(
        bench.said(first, 0),
        "stopped Breakpoint { number: 4 } main.c 10"
    );
    let (kind, count) = (StepKind::Over, 2);
    let step = bench.ask("0", Command::Step { kind, count });
    bench.run(1);
    assert_eq!(bench.said(step, 0), "stopped StepEnd main.c 12");
    let second = bench.ask("0", Command::Continue);
    bench.run(2);
    assert!(
        bench
            .said(second, 0)
            .starts_with("stopped Signal { name: \"SIGSEGV\"")
    );
    let third = bench.ask("0", Command::Continue);
    bench.run(2);
    assert_eq!(
        bench.said(third, 0),
        "Exited { code: 3, before_finalize: false }"
    );
    let after = bench.ask("0", Command::Locals);
    assert_eq!(bench.said(after, 0), "not_running: not running (exited 3)");
}

#[test]
fn scripted_breakpoint_stop_is_skipped_without_breakpoints() {
    let script = "
        continue = 1ms breakpoint
        continue = 0 breakpoint
        continue = 1ms exit 2";
    let mut bench = Bench::started(script, "0");
    let id = bench.ask("0", Command::Continue);
    bench.run(10);
    assert_eq!(
        bench.said(id, 0),
        "Exited { code: 2, before_finalize: false }"
    );
    let many = "continue = 0 breakpoint\n".repeat(20_000);
    let mut bench = Bench::started(&many, "0");
    let id = bench.ask("0", Command::Continue);
    bench.run(0);
    assert_eq!(
        bench.said(id, 0),
        "Exited { code: 0, before_finalize: false }"
    );
}

#[test]
fn interrupt_also_answers_the_open_run() {
    let mut bench = Bench::started(
        "continue = never\ninterrupt = 3ms\n[tasks 1]\ninterrupt = never",
        "0-1",
    );
    let run = bench.ask("0-1", Command::Continue);
    let interrupt = bench.ask("0-1", Command::Interrupt);
    bench.run(3);
    assert_eq!(bench.said(run, 0), "stopped Interrupted main.c 10");
    assert_eq!(bench.said(interrupt, 0), "Done");
    assert_eq!(bench.said(run, 1), "nothing");
    assert_eq!(
        bench.said(interrupt, 1),
        "not_stoppable: the process could not be stopped (state D)"
    );
    let again = bench.ask("0", Command::Interrupt);
    assert_eq!(bench.said(again, 0), "Done");
    let kill = bench.ask("1", Command::Kill);
    assert_eq!(bench.said(run, 1), "Signalled { signal: \"SIGKILL\" }");
    assert_eq!(bench.said(kill, 1), "Done");
}

#[test]
fn command_to_silent_task_is_cancelled() {
    let mut bench = Bench::started("[tasks 1]\nmute = evaluate,locals", "0-1");
    let expression = "rank".to_owned();
    let id = bench.ask("0-1", Command::Evaluate { expression });
    bench.run(60_000);
    assert_eq!(
        (bench.said(id, 0).as_str(), bench.said(id, 1).as_str()),
        ("0", "nothing")
    );
    bench.backend.cancel(bench.now, CommandId(id));
    bench.drain();
    assert_eq!(bench.said(id, 1), "cancelled: cancelled");
}

#[test]
fn stop_after_a_cancelled_run_is_an_event() {
    let mut bench = Bench::started("continue = 5ms stop SIGFPE", "0");
    let id = bench.ask("0", Command::Continue);
    bench.backend.cancel(bench.now, CommandId(id));
    bench.run(5);
    assert_eq!(bench.said(id, 0), "cancelled: cancelled");
    assert!(
        matches!(bench.events[..], [(0, Event::Stopped(_))]),
        "{:?}",
        bench.events
    );
}

#[test]
fn stop_after_a_cancelled_start_is_an_event() {
    let mut bench = Bench::new("start = 5ms", "0");
    let id = bench.ask("0", Command::Start(StartSpec::default()));
    bench.backend.cancel(bench.now, CommandId(id));
    bench.run(5);
    assert_eq!(bench.said(id, 0), "cancelled: cancelled");
    assert!(matches!(bench.events.last(), Some((0, Event::Stopped(_)))));
}

#[test]
fn dying_gdb_fails_open_commands() {
    let mut bench = Bench::new("gdb_dies = 50ms\ncontinue = never\nanswer = 20ms", "0");
    bench.ask("0", Command::Start(StartSpec::default()));
    let slow = bench.ask("0", Command::Locals);
    bench.run(20);
    assert_eq!(bench.said(slow, 0), "Variables([])");
    let run = bench.ask("0", Command::Continue);
    bench.run(30);
    assert_eq!(
        bench.said(run, 0),
        "gdb_dead: the gdb of this rank has ended"
    );
    let text = "ended by SIGKILL".to_owned();
    assert_eq!(bench.events.last(), Some(&(0, Event::GdbDied { text })));
}

#[test]
fn commands_of_a_task_keep_order_and_delay_no_other_task() {
    let mut bench = Bench::started("[tasks 1]\nanswer = 5ms\nanswer threads = 1ms", "0-1");
    let slow = bench.ask("0-1", Command::Locals);
    let quick = bench.ask("0-1", Command::Threads);
    assert_ne!(bench.said(quick, 0), "nothing");
    bench.run(5);
    assert_ne!(bench.said(slow, 1), "nothing");
    assert_eq!(bench.said(quick, 1), "nothing");
    bench.run(1);
    assert_ne!(bench.said(quick, 1), "nothing");
}

#[test]
fn output_waits_while_it_is_paused() {
    let mut bench = Bench::started(
        "continue = never\noutput = 10ms it {n} of {rank}\noutput_lines = 2",
        "3",
    );
    bench.ask("3", Command::Continue);
    bench.run(10);
    let (stream, bytes) = (Stream::Stdout, b"it 0 of 3\nit 1 of 3\n".to_vec());
    assert_eq!(bench.events, [(3, Event::Output { stream, bytes })]);
    bench.events.clear();
    bench.backend.set_output_paused(bench.now, true);
    let input = bench.ask(
        "3",
        Command::Stdin {
            offset: 0,
            bytes: b"x\n".to_vec(),
            eof: false,
        },
    );
    bench.run(100);
    bench.ask("3", Command::Kill);
    assert_eq!(
        (bench.said(input, 3).as_str(), bench.events.len()),
        ("nothing", 0)
    );
    bench.backend.set_output_paused(bench.now, false);
    bench.drain();
    let end = |stream| (3, Event::OutputEnd { stream });
    assert_eq!(bench.events, [end(Stream::Stdout), end(Stream::Stderr)]);
    assert_eq!(
        bench.said(input, 3),
        "not_running: not running (ended by SIGKILL)"
    );
}

#[test]
fn input_is_never_delivered_twice() {
    let mut bench = Bench::started("", "0");
    let send = |bench: &mut Bench, offset, text: &str| {
        let bytes = text.as_bytes().to_vec();
        let id = bench.ask(
            "0",
            Command::Stdin {
                offset,
                bytes,
                eof: false,
            },
        );
        bench.said(id, 0)
    };
    assert_eq!(send(&mut bench, 0, "ab"), "Done");
    assert_eq!(send(&mut bench, 0, "abc"), "Done");
    assert_eq!(send(&mut bench, 1, "b"), "Done");
    assert_eq!(
        send(&mut bench, 4, "e"),
        "bad_command: input at byte 4, but only 3 bytes were received before it"
    );
    let echoed = bench.events.iter().map(|(_, event)| match event {
        Event::Output { bytes, .. } => String::from_utf8_lossy(bytes).into_owned(),
        other => format!("{other:?}"),
    });
    assert_eq!(echoed.collect::<String>(), "abc");
}

#[test]
fn frames_variables_and_breakpoints_are_emulated() {
    let script = "stack = main m.c:9 > solve s.c:3\narg level = 2\nlocal i = {rank}\nthread = io w.c:7\nhelpers = 1";
    let mut bench = Bench::started(script, "2");
    let mut ask = |command| {
        let id = bench.ask("2", command);
        bench.said(id, 2)
    };
    assert!(ask(Command::SelectFrame(FrameSelect::Move(1))).contains("function: \"main\""));
    assert!(ask(Command::SelectFrame(FrameSelect::Move(1))).starts_with("no_such_thing: Initial"));
    assert!(
        ask(Command::SelectFrame(FrameSelect::Level(2))).starts_with("no_such_thing: No frame")
    );
    assert!(ask(Command::SelectThread { number: 2 }).contains("function: \"io\""));
    assert!(ask(Command::SelectThread { number: 3 }).contains("function: \"epoll_wait\""));
    assert!(ask(Command::SelectThread { number: 4 }).starts_with("no_such_thing"));
    let limit = 1;
    let bt = ask(Command::Backtrace(BacktraceSpec {
        limit,
        ..Default::default()
    }));
    assert!(bt.contains("more: false"), "{bt}");
    let expression = "i = rank + 40".to_owned();
    assert_eq!(ask(Command::SetVariable { expression }), "Done");
    assert!(ask(Command::Locals).contains("text: \"42\""));
    let expression = "nope = 1".to_owned();
    assert!(ask(Command::SetVariable { expression }).starts_with("gdb: No symbol"));
    assert!(ask(Command::Arguments).contains("name: \"level\""));
    assert_eq!(
        ask(Command::BreakDelete { number: 9 }),
        "no_such_thing: No breakpoint number 9."
    );
    let line = "with print elements 9 -- with x 1 -- output/d level + 1".to_owned();
    let plotted = ask(Command::Console { line });
    assert!(plotted.starts_with("Text(\""), "{plotted}");
    let line = "frobnicate".to_owned();
    assert!(ask(Command::Console { line }).starts_with("gdb: Undefined command"));
    assert_eq!(ask(Command::Status), "Status(Stopped)");
    assert!(ask(Command::Finish).starts_with("gdb: \"finish\" not meaningful"));
    ask(Command::SelectThread { number: 1 });
    let id = bench.ask("2", Command::Finish);
    bench.run(0);
    let said = bench.said(id, 2);
    assert!(
        said.starts_with("stopped FunctionFinished") && said.ends_with("m.c 9"),
        "{said}"
    );
}

#[test]
fn shutdown_kills_started_and_leaves_attached_tasks() {
    let mut bench = Bench::new("shut_down = 5ms\ncontinue = never", "0-2");
    bench.ask("0", Command::Start(StartSpec::default()));
    let pids = vec![(1, 100)];
    let attach = Command::Attach(AttachSpec {
        pids,
        ..Default::default()
    });
    let attach = bench.ask("1-2", attach);
    assert_eq!(
        bench.said(attach, 2),
        "attach_failed: no pid was given for it"
    );
    let run = bench.ask("0-1", Command::Continue);
    bench.backend.shut_down(bench.now, EndPolicy::KillStarted);
    assert!(!bench.backend.is_down());
    bench.run(5);
    assert!(bench.backend.is_down());
    assert_eq!(bench.said(run, 0), "Signalled { signal: \"SIGKILL\" }");
    assert_eq!(bench.said(run, 1), "Detached");
    let late = bench.ask("0", Command::Status);
    assert_eq!(bench.said(late, 0), "cancelled: the session ends");
}
