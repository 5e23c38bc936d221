//! Tests of waiting: its conditions, and the effect of Ctrl-C and Ctrl-Z.
use std::time::Duration;

use sdm_core::message::Health;
use sdm_debug::command::{StartSpec, StopAt};
use sdm_debug::event::Phase;
use sdm_debug::reply::StopReason;
use sdm_debug::{Command, EndPolicy, Event, Reply};
use sdm_idset::IdSet;
use sdm_session::SessionEvent;

use super::fake::*;
use crate::shell::{Batch, Control, Options, Script, ScriptLine};

pub(super) fn prompt() -> Options {
    Options {
        interactive: true,
        ..Options::default()
    }
}

fn stopped(tasks: &str) -> sdm_session::Class {
    class(
        tasks,
        stop(StopReason::Interrupted, "main", 70, "  work();"),
    )
}

/// A session of four tasks in which rank 3 does not stop until it is interrupted.
pub(super) fn one_runs_on(controls: Vec<(u64, Control)>) -> Responder {
    let mut run = None;
    let mut controls = Some(controls);
    Box::new(move |id, to, command| match command {
        Command::Start(_) => at_main(id, to),
        Command::Continue => {
            run = Some(id);
            let mut said = vec![(10, answer(id, vec![stopped("0-2")]))];
            let controls = controls.take().unwrap_or_default().into_iter();
            said.extend(controls.map(|(at, control)| (at, Said::Control(control))));
            said
        }
        Command::Interrupt => {
            let run = run.unwrap();
            let mut said = all(id, vec![class(&to.to_string(), Reply::Done)]);
            said.push((2, answer(run, vec![stopped(&to.to_string())])));
            said.push((3, complete(run)));
            said
        }
        _ => all(id, vec![class(&to.to_string(), Reply::Done)]),
    })
}

#[test]
fn status_line_shows_progress_and_ctrl_c_stops_running_tasks() {
    let controls = vec![(2500, Control::Interrupt)];
    let run = run(
        (4, 100),
        Options::default(),
        &["continue"],
        one_runs_on(controls),
    );
    assert_eq!(run.sent, ["0-3 start", "0-3 continue", "3 interrupt"]);
    let status =
        "~ continue: 3/4 stopped, running: 3 (1 s); ^C stops them, ^Z returns to the prompt";
    assert!(run.screen.contains(status), "{}", run.screen);
    assert!(
        run.screen
            .contains("\nranks 0-2 (3): interrupted, main () at halo.c:70\n")
    );
    assert!(
        run.screen
            .contains("\nrank 3: interrupted, main () at halo.c:70\n")
    );
    assert_eq!(run.ending.code, 0);
}

/// Of 4 ranks number 3 crashes and number 2 runs on. Number 1 stops a second later than number 0.
fn one_crashes() -> Responder {
    let mut run = None;
    Box::new(move |id, to, command| match command {
        Command::Start(_) => at_main(id, to),
        Command::Continue => {
            run = Some(id);
            let crash = StopReason::Signal {
                name: "SIGSEGV".to_owned(),
                meaning: "Segmentation fault".to_owned(),
            };
            let crashed = class("3", stop(crash, "main", 70, "  work();"));
            vec![
                (10, answer(id, vec![stopped("0"), crashed])),
                (1010, answer(id, vec![stopped("1")])),
            ]
        }
        Command::Interrupt => {
            let run = run.unwrap();
            let mut said = all(id, vec![class(&to.to_string(), Reply::Done)]);
            said.push((2, answer(run, vec![stopped(&to.to_string())])));
            said.push((3, complete(run)));
            said
        }
        _ => all(id, vec![class(&to.to_string(), Reply::Done)]),
    })
}

#[test]
fn crash_returns_the_prompt() {
    let lines = ["continue", "interrupt", "quit", "y"];
    let run = run((4, 100), prompt(), &lines, one_crashes());
    assert_eq!(run.sent, ["0-3 start", "0-3 continue", "2 interrupt"]);
    let said =
        "crashed ranks: 3; running ranks: 2 (`interrupt` stops them, `wait` waits for them)\n";
    let (before, after) = run.screen.split_once(said).expect(&run.screen);
    // The shell waits for a rank that stops soon.
    assert!(before.contains("rank 1: interrupted, "), "{}", run.screen);
    assert!(after.contains("rank 2: interrupted, "), "{}", run.screen);
}

#[test]
fn ctrl_z_returns_the_prompt_and_tasks_keep_running() {
    let controls = vec![(1500, Control::Suspend)];
    let lines = ["continue", "ranks", "interrupt", "quit", "y"];
    let run = run((4, 100), prompt(), &lines, one_runs_on(controls));
    assert_eq!(run.sent, ["0-3 start", "0-3 continue", "3 interrupt"]);
    assert!(
        run.screen.contains("rank 3         running\n"),
        "{}",
        run.screen
    );
    assert_eq!(run.ending.policy, EndPolicy::KillStarted);
}

#[test]
fn second_ctrl_c_gives_up_the_command_and_ends_the_script() {
    let respond: Responder = Box::new(|id, to, command| match command {
        Command::Start(_) => at_main(id, to),
        Command::Continue => vec![
            (100, Said::Control(Control::Interrupt)),
            (200, Said::Control(Control::Interrupt)),
        ],
        _ => Vec::new(),
    });
    let run = run((2, 80), Options::default(), &["continue", "ranks"], respond);
    assert_eq!(run.sent, ["0-1 start", "0-1 continue", "0-1 interrupt"]);
    assert_eq!(run.ending.code, 130);
    assert_eq!(
        run.ending.reason.as_deref(),
        Some("`continue` given up (-c 1)")
    );
}

#[test]
fn ctrl_c_during_a_query_cancels_it_and_stops_no_task() {
    let respond: Responder = Box::new(|id, to, command| match command {
        Command::Start(_) => at_main(id, to),
        _ => vec![
            (5, answer(id, vec![class("0", Reply::Done)])),
            (100, Said::Control(Control::Interrupt)),
        ],
    });
    let run = run((2, 80), prompt(), &["print slow()"], respond);
    assert_eq!(run.sent, ["0-1 start", "0-1 print", "cancel 2"]);
}

#[test]
fn silent_task_is_named_and_its_late_answer_shown() {
    let respond: Responder = Box::new(|id, to, command| match command {
        Command::Start(_) => at_main(id, to),
        Command::Evaluate { .. } | Command::Print { .. } => {
            let missing = SessionEvent::Answer {
                id,
                classes: vec![class("0-1", Reply::Value(value("42")))],
                missing: vec![(set("2"), "server 2 is silent".to_owned())],
                lost: set("3"),
                late: false,
            };
            let late = SessionEvent::Answer {
                id,
                classes: vec![class("2", Reply::Value(value("42")))],
                missing: Vec::new(),
                lost: IdSet::new(),
                late: true,
            };
            vec![
                (5, Said::Event(missing)),
                (5, complete(id)),
                (50, Said::Event(late)),
            ]
        }
        _ => vec![
            (90, answer(id, vec![class(&to.to_string(), Reply::Done)])),
            (90, complete(id)),
        ],
    });
    let run = run((4, 80), prompt(), &["print x", "set var x = 1"], respond);
    let expect = "\
ranks 0-1 (2): 42
rank 2: no answer in time (server 2 is silent)
rank 3: no answer: sdm-server was lost
late, to `print x`:
rank 2: 42
";
    assert!(run.screen.contains(expect), "{}", run.screen);
}

/// A session of three tasks in which these are lost at the start.
fn begun_without(lost: &str, partial: bool) -> Run {
    let lost = set(lost);
    let respond: Responder = Box::new(move |id, to, command| match command {
        Command::Start(_) => {
            let gone = SessionEvent::Answer {
                id,
                classes: Vec::new(),
                missing: Vec::new(),
                lost: lost.clone(),
                late: false,
            };
            let mut said = vec![(1, Said::Event(gone))];
            said.extend(at_main(id, &to.difference(&lost)));
            said
        }
        _ => vec![
            (90, answer(id, vec![class(&to.to_string(), Reply::Done)])),
            (90, complete(id)),
        ],
    });
    let options = Options {
        partial,
        ..Options::default()
    };
    act((3, 80), options, respond, |shell, controls| {
        let all = IdSet::all_below(3);
        if !shell.start(vec![(all, StartSpec::default())]) {
            return shell.failed_start();
        }
        let line = ScriptLine {
            text: "set var x = 1".to_owned(),
            origin: String::new(),
        };
        shell.run_lines(&mut Script::new(vec![line], controls))
    })
}

#[test]
fn partial_start_continues_without_lost_tasks() {
    let run = begun_without("0,2", true);
    assert_eq!(run.ending.code, 0, "{}", run.screen);
    assert_eq!(run.sent, ["0-2 start", "1 set_variable"]);
    let named = "ranks 0,2 (2): no answer: sdm-server was lost\n";
    assert!(run.screen.contains(named), "{}", run.screen);
    for (lost, partial) in [("0,2", false), ("0-2", true)] {
        let run = begun_without(lost, partial);
        assert_eq!(run.ending.code, 124, "{}", run.screen);
        assert_eq!(run.sent, ["0-2 start"]);
    }
}

#[test]
fn launcher_end_is_reported_once() {
    let respond: Responder = Box::new(|id, to, command| match command {
        Command::Start(_) => at_main(id, to),
        Command::Continue => {
            let health = |tasks: &str| {
                Said::Event(SessionEvent::Health {
                    tasks: set(tasks),
                    health: Health::Lost,
                    why: format!("server of {tasks}: connection reset"),
                })
            };
            let lost = SessionEvent::Answer {
                id,
                classes: Vec::new(),
                missing: Vec::new(),
                lost: to.clone(),
                late: false,
            };
            let ended = SessionEvent::LauncherEnded {
                status: "exited with code 1".to_owned(),
                code: Some(1),
                last_words: vec!["ORTE was told to abort".to_owned()],
            };
            vec![
                (10, health("0")),
                (11, health("1-3")),
                (
                    12,
                    Said::Event(SessionEvent::Launcher {
                        line: "a word before".to_owned(),
                    }),
                ),
                (
                    12,
                    Said::Event(SessionEvent::Launcher {
                        line: "ORTE was told to abort".to_owned(),
                    }),
                ),
                (12, Said::Event(lost)),
                (13, Said::Event(ended)),
                (14, complete(id)),
            ]
        }
        _ => Vec::new(),
    });
    let run = run((4, 80), Options::default(), &["continue"], respond);
    assert_eq!(run.ending.code, 123);
    let expect =
        "the launcher ended: exited with code 1; lost with the launcher: ranks 0-3 (4)\n  | ORTE";
    assert!(run.screen.contains(expect), "{}", run.screen);
    assert!(!run.screen.contains("connection reset"), "{}", run.screen);
    assert!(
        run.screen.contains("[launcher] a word before\n"),
        "{}",
        run.screen
    );
    assert_eq!(run.screen.matches("ORTE").count(), 1, "{}", run.screen);
}

/// A launcher may end the servers as soon as the job is over, as `srun` does.
#[test]
fn servers_ending_with_their_job_are_not_reported() {
    let respond: Responder = Box::new(|id, to, command| match command {
        Command::Start(_) => at_main(id, to),
        Command::Continue => {
            let exited = Reply::Exited {
                code: 0,
                before_finalize: false,
            };
            let lost = SessionEvent::Health {
                tasks: set("3"),
                health: Health::Lost,
                why: "server of 3: connection reset".to_owned(),
            };
            let ended = SessionEvent::LauncherEnded {
                status: "exited with code 0".to_owned(),
                code: Some(0),
                last_words: Vec::new(),
            };
            vec![
                (10, answer(id, vec![class("0-3", exited)])),
                (10, complete(id)),
                (11, Said::Event(lost)),
                (12, Said::Event(ended)),
            ]
        }
        _ => Vec::new(),
    });
    let run = run((4, 80), Options::default(), &["continue", "wait"], respond);
    assert_eq!(run.ending.code, 0);
    let end = "the launcher ended: exited with code 0\n";
    assert!(run.screen.contains(end), "{}", run.screen);
}

#[test]
fn run_ends_after_the_output_of_ended_tasks() {
    let respond: Responder = Box::new(|id, to, command| match command {
        Command::Start(_) => at_main(id, to),
        Command::Continue => {
            let exited = Reply::Exited {
                code: 0,
                before_finalize: false,
            };
            let output = |event| Said::Event(SessionEvent::Events(vec![(set("0-1"), event)]));
            let line = |text: &[u8]| {
                output(Event::Output {
                    stream: sdm_debug::event::Stream::Stdout,
                    bytes: text.to_vec(),
                })
            };
            let end = |stream| output(Event::OutputEnd { stream });
            // A busy machine may deliver output slowly: the wait lasts as long as output arrives.
            vec![
                (10, answer(id, vec![class("0-1", exited)])),
                (10, complete(id)),
                (1500, line(b"much\n")),
                (3000, line(b"more\n")),
                (4500, line(b"the last words\n")),
                (4501, end(sdm_debug::event::Stream::Stdout)),
                (4502, end(sdm_debug::event::Stream::Stderr)),
            ]
        }
        _ => Vec::new(),
    });
    let run = run((2, 80), Options::default(), &["continue"], respond);
    let said = run.screen.find("[0-1] the last words\n");
    assert!(said.is_some(), "{}", run.screen);
}

#[test]
fn stop_is_shown_after_its_earlier_output() {
    let respond: Responder = Box::new(|id, to, command| match command {
        Command::Start(_) => at_main(id, to),
        Command::Continue => {
            let output = |event| Said::Event(SessionEvent::Events(vec![(set("0-1"), event)]));
            let line = Event::Output {
                stream: sdm_debug::event::Stream::Stdout,
                bytes: b"before it stopped\n".to_vec(),
            };
            vec![
                (10, answer(id, vec![stopped("0-1")])),
                (10, complete(id)),
                (900, output(line)),
                (901, output(Event::OutputComplete { command: id.0 })),
            ]
        }
        _ => Vec::new(),
    });
    let run = run((2, 80), Options::default(), &["continue"], respond);
    let said = run.screen.find("[0-1] before it stopped\n");
    let stop = run.screen.find("interrupted, main () at halo.c:70");
    assert!(said.is_some() && said < stop, "{}", run.screen);
}

#[test]
fn slow_start_shows_progress_and_the_slowest_task() {
    let respond: Responder = Box::new(|id, to, _| {
        let progress = |tasks: &str, phase| {
            let event = (set(tasks), Event::Progress(phase));
            Said::Event(SessionEvent::Events(vec![event]))
        };
        let mut said = vec![
            (100, progress("0-3", Phase::Gdb)),
            (200, progress("0-2", Phase::Symbols)),
        ];
        let held = at_main(id, to).into_iter();
        said.extend(held.map(|(at, what)| (at + 10_500, what)));
        said
    });
    let run = run((4, 100), Options::default(), &[], respond);
    let first = "~ start: symbols read 3/4, at main 0/4 (1 s)\n";
    assert!(run.screen.starts_with(first), "{}", run.screen);
    let tenth = "~ start: symbols read 3/4, at main 0/4 (10 s), slowest: 0-3\n";
    assert!(run.screen.contains(tenth), "{}", run.screen);
}

/// gdb takes 20 s to attach to the rank that has crashed, where 8 s without a word are a hang.
#[test]
fn crash_is_no_hang_while_gdb_attaches() {
    let respond: Responder = Box::new(move |id, to, command| match command {
        Command::Start(_) => {
            let event = |tasks, event| Said::Event(SessionEvent::Events(vec![(set(tasks), event)]));
            let crash = StopReason::Signal {
                name: "SIGSEGV".to_owned(),
                meaning: "Segmentation fault".to_owned(),
            };
            let crash = stop(crash, "main", 70, "  *p = 1;");
            vec![
                (1, event("0-1", Event::Progress(Phase::Running))),
                (1000, event("1", Event::Progress(Phase::Gdb))),
                (2000, event("1", Event::Progress(Phase::Symbols))),
                (21_000, answer(id, vec![class("1", crash)])),
            ]
        }
        _ => all(id, vec![class(&to.to_string(), Reply::Done)]),
    });
    let batch = Batch {
        hang_timeout: Some(Duration::from_secs(8)),
        ..Batch::default()
    };
    let spec = StartSpec {
        gdb_when_needed: true,
        stop: StopAt::Nowhere,
        ..StartSpec::default()
    };
    let run = act((2, 100), Options::default(), respond, |shell, _| {
        shell.start(vec![(IdSet::all_below(2), spec)]);
        shell.run_batch(&batch)
    });
    assert_eq!(run.ending.code, 139, "{}", run.screen);
}
