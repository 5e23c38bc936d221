//! Output of whole sessions at two widths. `UPDATE_GOLDEN=1` rewrites the expected screens.

mod kept;
mod values;

use std::path::PathBuf;

use sdm_core::CommandId;
use sdm_debug::event::Stream;
use sdm_debug::reply::{
    Backtrace, BreakpointPlace, FrameView, StackFrame, Stop, StopReason, TaskStacks, ThreadView,
};
use sdm_debug::{Command, Event, FailureCode, Reply};
use sdm_idset::IdSet;
use sdm_session::SessionEvent;

use super::fake::*;
use crate::shell::Options;

pub(super) fn check(name: &str, count: u32, lines: &[&str], respond: fn() -> Responder) {
    for width in [80, 200] {
        let run = run((count, width), Options::default(), lines, respond());
        let mut text = run.screen;
        text.push_str(&format!("exit code {}\n", run.ending.code));
        let file = format!("tests/golden/{name}.{width}.txt");
        let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(file);
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            std::fs::write(&path, &text).unwrap();
        }
        let expect = std::fs::read_to_string(&path).unwrap_or_default();
        assert_eq!(text, expect, "{}", path.display());
    }
}

fn interrupted(inside: Option<&str>, function: &str, line: u32) -> Reply {
    Reply::Stopped(Stop {
        reason: StopReason::Interrupted,
        frame: Some(frame(function, line)),
        inside: inside.map(str::to_owned),
        source: Some("    MPI_Recv(in, n, MPI_DOUBLE, left, 0, comm, &status);".to_owned()),
    })
}

fn stacks(places: &[(&str, u32)]) -> Reply {
    let own = |(function, line): &(&str, u32)| StackFrame::own(*function, "halo.c", *line);
    let frames = places.iter().map(own).collect();
    Reply::Stacks(TaskStacks::of_main(frames, 2))
}

/// A halo exchange on 8 ranks in which rank 5 waits for a message that no rank sends.
fn hang() -> Responder {
    Box::new(|id, to, command| match command {
        Command::Start(_) => {
            let output = |set_text: &str, text: &str| {
                let event = Event::Output {
                    stream: Stream::Stdout,
                    bytes: text.as_bytes().to_vec(),
                };
                Said::Event(SessionEvent::Events(vec![(set(set_text), event)]))
            };
            let mut said = at_main(id, to);
            said.push((900, output("0-3", "step 0\n")));
            said.push((910, output("4-7", "step 0\nstep")));
            said.push((920, output("4-7", " 1\n")));
            said
        }
        Command::Continue => vec![
            (
                5000,
                answer(
                    id,
                    vec![class("0-4,6-7", interrupted(None, "exchange", 44))],
                ),
            ),
            (
                5000,
                answer(
                    id,
                    vec![class("5", interrupted(Some("MPI_Recv"), "exchange", 51))],
                ),
            ),
            (5001, complete(id)),
        ],
        Command::Interrupt => all(id, vec![class(&to.to_string(), Reply::Done)]),
        Command::Stacks { .. } => all(
            id,
            vec![
                class("0-4,6-7", stacks(&[("main", 80), ("exchange", 44)])),
                class(
                    "5",
                    stacks(&[("main", 80), ("exchange", 51), ("drain", 12)]),
                ),
            ],
        ),
        Command::Locals => all(
            id,
            (0..8)
                .map(|rank: u32| {
                    let left = (rank + 7) % 8;
                    let step = if rank == 5 { "17" } else { "18" };
                    class(
                        &rank.to_string(),
                        Reply::Variables(vec![
                            variable("n", "1024"),
                            variable("step", step),
                            variable("left", &left.to_string()),
                        ]),
                    )
                })
                .filter(|class| class.tasks.is_subset(to))
                .collect(),
        ),
        _ => Vec::new(),
    })
}

#[test]
fn session_with_a_hang_matches_its_golden_file() {
    check(
        "hang",
        8,
        &[
            "continue &",
            "wait 4",
            "interrupt",
            "stacks",
            "info locals",
            "[5] info locals",
            "ranks",
        ],
        hang,
    );
}

/// Six of eight tasks stop at the breakpoint, and two end.
fn hits_and_exits(id: CommandId) -> Vec<(u64, Said)> {
    let reason = StopReason::Breakpoint { number: 1 };
    let at = |tasks| {
        class(
            tasks,
            stop(reason.clone(), "exchange", 40, "  int left = 0;"),
        )
    };
    let code = |tasks, code| {
        class(
            tasks,
            Reply::Exited {
                code,
                before_finalize: code == 3,
            },
        )
    };
    vec![
        (10, answer(id, vec![at("0-2")])),
        (20, answer(id, vec![at("4,6"), code("5", 3), code("7", 0)])),
        (30, answer(id, vec![at("3")])),
        (31, complete(id)),
    ]
}

fn backtraces(id: CommandId) -> Vec<(u64, Said)> {
    let mut outer = frame("main", 80);
    outer.level = 1;
    outer.args = vec![variable("argc", "1"), variable("argv", "0x7fffffffe0b8")];
    let backtrace = Backtrace {
        frames: vec![frame("exchange", 40), outer],
        more: false,
        folded: 4,
    };
    all(
        id,
        vec![
            class("0-4,6", Reply::Backtrace(backtrace)),
            failed("5", FailureCode::NotRunning, "not running (exited 3)"),
            failed("7", FailureCode::NotRunning, "not running (exited 0)"),
        ],
    )
}

fn looks() -> Responder {
    Box::new(|id, to, command| match command {
        Command::Start(_) => at_main(id, to),
        Command::BreakInsert(spec) => {
            let place = Reply::Breakpoint(BreakpointPlace {
                number: spec.number,
                pending: false,
                places: vec![("exchange".to_owned(), "halo.c".to_owned(), 40)],
            });
            all(id, vec![class(&to.to_string(), place)])
        }
        Command::Continue => hits_and_exits(id),
        Command::Breakpoints => all(
            id,
            vec![class(&to.to_string(), Reply::Breakpoints(Vec::new()))],
        ),
        Command::Backtrace(_) => backtraces(id),
        Command::Evaluate { expression } | Command::Print { expression, .. }
            if expression == "left" =>
        {
            all(
                id,
                vec![
                    class("6", Reply::Value(value("0"))),
                    class("0-3", Reply::Value(value("7"))),
                    failed("4", FailureCode::Running, "running"),
                ],
            )
        }
        Command::Evaluate { .. } | Command::Print { .. } => all(
            id,
            vec![failed(
                &to.to_string(),
                FailureCode::Gdb,
                "No symbol \"nothing\" in current context.",
            )],
        ),
        Command::SelectFrame(_) => {
            let view = FrameView {
                frame: frame("main", 80),
                source: Some("  exchange();".into()),
            };
            all(id, vec![class(&to.to_string(), Reply::Frame(view))])
        }
        Command::Threads => {
            let thread = |number, name: &str, place| ThreadView {
                number,
                name: name.to_owned(),
                frame: place,
                current: number == 1,
            };
            let threads = vec![
                thread(1, "halo", Some(frame("exchange", 40))),
                thread(2, "progress", None),
            ];
            all(id, vec![class(&to.to_string(), Reply::Threads(threads))])
        }
        _ => Vec::new(),
    })
}

#[test]
fn session_with_breakpoints_matches_its_golden_file() {
    check(
        "looks",
        8,
        &[
            "break halo.c:40 if step == 3",
            "continue",
            "# what is there",
            "info breakpoints",
            "bt",
            "[0-4,6] print left",
            "[0-3] frame 1",
            "[0] info threads",
            "ranks",
            "[0-3] print nothing",
            "never reached",
        ],
        looks,
    );
}

#[test]
fn invalid_line_ends_a_script() {
    check("broken", 4, &["[0-3,9] print x"], looks);
}

fn big() -> Responder {
    Box::new(|id, to, command| match command {
        Command::Evaluate { .. } | Command::Print { .. } => {
            let odd = IdSet::from_iter((0..500).map(|n| sdm_idset::TaskId(n * 3)));
            let even = to.difference(&odd);
            let text = "{u = {0, 0, 0, 0}, name = \"a rather long value\", next = 0x0, flags = 17}";
            let mut classes: Vec<_> = odd
                .iter()
                .map(|task| class(&task.to_string(), Reply::Value(value(&task.to_string()))))
                .collect();
            classes.push(class(&even.to_string(), Reply::Value(value(text))));
            all(id, classes)
        }
        _ => at_main(id, to),
    })
}

#[test]
fn ten_thousand_ranks_fit_a_screen() {
    check("big", 10_000, &["print cell"], big);
}
