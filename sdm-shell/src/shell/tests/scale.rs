//! Tests with ten thousand ranks in few and in many places: no answer is longer than a screen.
use sdm_debug::reply::{Backtrace, FrameView, StackFrame, StopReason, TaskStacks, ThreadView};
use sdm_debug::{Command, FailureCode, Reply};
use sdm_idset::{IdSet, TaskId};
use sdm_session::Class;

use super::fake::*;
use crate::shell::Options;

const RANKS: u32 = 10_000;
/// Lines of a screen, plus one that says how many were folded.
const LINES_MAX: usize = 41;

/// Puts every rank into one of `count` classes. Each class in the later half has one rank.
fn classes(to: &IdSet, count: u32, reply: impl Fn(u32) -> Reply) -> Vec<Class> {
    let single = count / 2;
    let big = count - single;
    let of = |class: u32| -> IdSet {
        if class >= big {
            return IdSet::single(TaskId(class));
        }
        let ranks = (class..RANKS).step_by(big as usize);
        let ranks = ranks.filter(|rank| !(big..count).contains(rank));
        ranks.map(TaskId).collect()
    };
    let of = |class: u32| of(class).intersection(to);
    let classes = (0..count).map(|number| (of(number), reply(number)));
    let classes = classes.filter(|(tasks, _)| !tasks.is_empty());
    classes
        .map(|(tasks, reply)| class(&tasks.to_string(), reply))
        .collect()
}

fn stacks(number: u32) -> Reply {
    let place = |function: String, line| StackFrame::own(function, "solver.c", line);
    let frames = vec![
        place("main".to_owned(), 80),
        place(format!("phase_{}", number % 7), 100 + number % 7),
        place(format!("work_{number}"), 200 + number),
        place("MPI_Allreduce".to_owned(), 200 + number),
    ];
    Reply::Stacks(TaskStacks::of_main(frames, 1))
}

fn in_classes(count: u32) -> Responder {
    let name = |number: u32| format!("work_{number}");
    Box::new(move |id, to, command| {
        let reply = move |number: u32| match command {
            Command::Continue => stop(
                StopReason::Breakpoint { number: 1 },
                &name(number),
                200,
                "  step();",
            ),
            Command::Backtrace(_) => Reply::Backtrace(Backtrace {
                frames: (0..5)
                    .map(|level| frame(&name(number), 200 + level))
                    .collect(),
                more: false,
                folded: 3,
            }),
            Command::Stacks { .. } => stacks(number),
            Command::Locals => Reply::Variables(
                (0..4)
                    .map(|index| variable(&format!("v{number}_{index}"), "1"))
                    .collect(),
            ),
            Command::Threads => Reply::Threads(vec![ThreadView {
                number: 1,
                name: name(number),
                frame: Some(frame(&name(number), 200)),
                current: true,
            }]),
            Command::SelectFrame(_) => Reply::Frame(FrameView {
                frame: frame(&name(number), 200),
                source: Some("step();".to_owned()),
            }),
            Command::Console { .. } => Reply::Text(format!("one {number}\ntwo\nthree\n")),
            _ => Reply::Value(value(&number.to_string())),
        };
        match command {
            Command::Start(_) => at_main(id, to),
            Command::Finish => {
                let fail = |class: Class| {
                    let text = format!("cannot finish {}", class.tasks.first().unwrap());
                    failed(&class.tasks.to_string(), FailureCode::Gdb, &text)
                };
                all(
                    id,
                    classes(to, count, reply).into_iter().map(fail).collect(),
                )
            }
            _ => all(id, classes(to, count, reply)),
        }
    })
}

const COMMANDS: [&str; 13] = [
    "continue",
    "ranks",
    "bt",
    "stacks",
    "info locals",
    "info threads",
    "frame",
    "print step",
    "outliers step",
    "stats step",
    "compare step",
    "gdb info sharedlibrary",
    "info sets",
];

#[test]
fn every_answer_fits_one_screen() {
    for count in [1, 3, 500] {
        for width in [80, 200] {
            let run = run(
                (RANKS, width),
                Options::default(),
                &COMMANDS,
                in_classes(count),
            );
            for line in COMMANDS {
                let said = run.screen.split_once(&format!("(sdm) {line}\n"));
                let said = said
                    .unwrap_or_else(|| panic!("no {line}: {}", run.screen))
                    .1;
                let said = said.split("(sdm) ").next().unwrap();
                let lines = said.lines().count();
                assert!(
                    lines <= LINES_MAX,
                    "{count} classes, {width} wide, {line}: {lines} lines\n{said}"
                );
                assert!(!said.is_empty(), "{count} classes: {line}");
            }
        }
    }
}

#[test]
fn many_distinct_failures_fit_a_screen() {
    let run = run(
        (RANKS, 80),
        Options::default(),
        &["finish"],
        in_classes(500),
    );
    let lines = run.screen.lines().count();
    assert!(lines <= LINES_MAX, "{lines} lines: {}", run.screen);
}

#[test]
fn more_shows_the_whole_answer() {
    let lines = ["stacks", "more", "ranks", "more"];
    let run = run((RANKS, 200), Options::default(), &lines, in_classes(500));
    let said: Vec<_> = run.screen.split("(sdm) ").collect();
    assert!(said[1].contains("more branches, not shown"), "{}", said[1]);
    assert!(
        said[1].ends_with("(folded; `more` at the prompt or the option --json shows all of it)\n"),
        "{}",
        said[1]
    );
    for number in 0..500 {
        assert!(
            said[2].contains(&format!("work_{number} ()")),
            "{number}: {}",
            said[2]
        );
    }
    assert!(!said[2].contains("folded"), "{}", said[2]);
    assert_eq!(said[3].lines().count(), 2, "all are at main: {}", said[3]);
}

/// The stack tree of five hundred places on a screen.
#[test]
fn stack_tree_of_500_locations_matches_golden_file() {
    super::golden::check(
        "scale",
        RANKS,
        &["stacks", "continue", "ranks", "bt"],
        || in_classes(500),
    );
}
