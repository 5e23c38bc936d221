//! Commands that show the position of tasks: stacks, frames, source, `diagnose`.

use sdm_debug::Command;
use sdm_debug::command::{BacktraceSpec, FrameSelect};

use super::sets::set_or_focus;
use crate::commands::cursor::Cursor;
use crate::commands::spec::{Completes, PLAIN, Spec};
use crate::commands::{CommandError, Displayed, UserCommand as C, args, parse};

pub(super) const COMMANDS: &[Spec] = &[
    Spec {
        name: "backtrace",
        short: &["bt", "where"],
        usage: "bt [N] [--full]",
        what: "prints the stack of each rank, equal stacks once",
        more: "`bt 5` shows five frames; `--full` also shows those inside MPI and other runtimes.\n`bt full` is gdb's: with the local variables of every frame.",
        repeats: true,
        parse: backtrace,
        ..PLAIN
    },
    Spec {
        name: "diagnose",
        usage: "diagnose [SAMPLES] [for SECONDS]",
        what: "diagnoses a hang from a few samples of the stacks",
        more: "Running and interrupted ranks are sampled three times and run between the samples;\nranks at a breakpoint stay stopped. `diagnose 5`: five samples; `diagnose for 30`: over 30 s.",
        parse: diagnose,
        ..PLAIN
    },
    Spec {
        name: "disassemble",
        short: &["disas"],
        usage: "disassemble [ARGS]",
        what: "runs gdb's `disassemble` on every rank",
        completes: Completes::Program,
        parse: pass,
        ..PLAIN
    },
    Spec {
        name: "display",
        usage: "display[/FORMAT] [EXPR]",
        what: "prints an expression after each stop",
        more: "display step\ndisplay/i $pc\nWithout an expression: prints all now. `info display` lists them, `undisplay N` removes one.",
        completes: Completes::Program,
        parse: |_, rest| {
            let format = args::format(rest).to_owned();
            let expression = rest.take_rest().to_owned();
            let displayed = Displayed { format, expression };
            Ok(C::Display(
                Some(displayed).filter(|it| !it.expression.is_empty()),
            ))
        },
        ..PLAIN
    },
    Spec {
        name: "down",
        usage: "down [N]",
        what: "selects the next inner frame (the called function)",
        repeats: true,
        parse: |name, rest| select(FrameSelect::Move(-steps(rest, name)?)),
        ..PLAIN
    },
    Spec {
        name: "frame",
        short: &["f"],
        usage: "frame [N|function NAME]",
        what: "selects a frame, or shows the selected one",
        completes: Completes::Program,
        repeats: true,
        parse: frame,
        ..PLAIN
    },
    Spec {
        name: "info",
        short: &["i", "inf"],
        usage: "info locals|args|threads|...",
        what: "runs gdb's `info` on every rank",
        more: "info locals, args, threads, breakpoints are merged over ranks;\ninfo memory adds up the memory of the ranks, and names the largest;\ninfo nodes, tree, links, sets describe this session;\nall others are gdb's text.",
        completes: Completes::Info,
        repeats: true,
        parse: |_, rest| super::info::parse(rest),
    },
    Spec {
        name: "list",
        short: &["l"],
        usage: "list [ARGS]",
        what: "prints source lines, with the number of ranks at each",
        more: "list: the lines around the stop, then the following lines\nlist 40 / list 40,60 / list solve / list halo.c:40",
        completes: Completes::Program,
        repeats: true,
        parse: |_, rest| Ok(C::List(rest.take_rest().to_owned())),
    },
    Spec {
        name: "profile",
        usage: "profile [SECONDS]",
        what: "samples the stacks of ranks that gdb is not attached to",
        more: "Takes ten samples a second for ten seconds, as `sdm profile` does; Ctrl-C ends it earlier.",
        parse: profile,
        ..PLAIN
    },
    Spec {
        name: "queues",
        usage: "queues",
        what: "lists MPI sends and receives that have not completed",
        more: "The MPI library's debug library (Open MPI 4) gives peer, tag, communicator and length.\nEqual messages are shown once. The ranks must be stopped.",
        parse: |_, _| Ok(C::Queues),
        ..PLAIN
    },
    Spec {
        name: "ranks",
        usage: "ranks [SET]",
        what: "shows the state and location of every rank",
        completes: Completes::Sets,
        repeats: true,
        parse: |_, rest| set_or_focus(rest).map(C::Ranks),
        ..PLAIN
    },
    Spec {
        name: "stacks",
        usage: "stacks [--full]",
        what: "prints the stacks of all threads of all ranks as one tree",
        more: "`--full` also shows the frames inside MPI and other runtimes, and every thread.",
        completes: Completes::Words(&["--full"]),
        repeats: true,
        parse: |_, rest| {
            Ok(C::Stacks {
                full: rest.take_word("--full"),
            })
        },
        ..PLAIN
    },
    Spec {
        name: "thread",
        short: &["t"],
        usage: "thread [N | apply N...|all CMD]",
        what: "selects a thread, shows the selected one, or runs a command",
        more: "thread: shows the selected thread\nthread 2\nthread apply all bt\nthread apply 1 3 print x\n[3.2] bt: thread 2 of rank 3, for one command. `stacks --full` merges all threads.",
        parse: |name, rest| {
            if rest.take_word("apply") {
                return thread_apply(rest);
            }
            let here = *rest;
            if matches!({ here }.word(), "name" | "find") {
                return pass(name, rest);
            }
            if rest.is_empty() {
                return Ok(C::SelectedThread);
            }
            match args::count(rest, name, 0)? {
                0 => Err(here.error("thread: expected a thread number from 1")),
                number => Ok(C::Ask(Command::SelectThread { number })),
            }
        },
        ..PLAIN
    },
    Spec {
        name: "undisplay",
        usage: "undisplay [N...]",
        what: "removes expressions of `display`; without a number, all",
        parse: |name, rest| args::numbers(rest, name).map(C::Undisplay),
        ..PLAIN
    },
    Spec {
        name: "up",
        usage: "up [N]",
        what: "selects the next outer frame (the caller)",
        repeats: true,
        parse: |name, rest| select(FrameSelect::Move(steps(rest, name)?)),
        ..PLAIN
    },
];

/// Makes the command that passes the line unchanged to gdb in each task of its set.
pub(super) fn pass(name: &'static str, rest: &mut Cursor<'_>) -> Result<C, CommandError> {
    let line = match rest.take_rest() {
        "" => name.to_owned(),
        // `x/4x p` has no blank before the slash.
        text if text.starts_with('/') && name == "x" => format!("{name}{text}"),
        text => format!("{name} {text}"),
    };
    Ok(C::Ask(Command::Console { line }))
}

fn select(select: FrameSelect) -> Result<C, CommandError> {
    Ok(C::Ask(Command::SelectFrame(select)))
}

fn backtrace(name: &'static str, rest: &mut Cursor<'_>) -> Result<C, CommandError> {
    // gdb's own `bt full` prints the locals of every frame; `--full` unfolds runtimes.
    if rest.rest().starts_with("full") || rest.rest().starts_with("-full") {
        return pass(name, rest);
    }
    let full = rest.take_word("--full");
    let here = *rest;
    if here.rest().starts_with('-') {
        return pass(name, rest);
    }
    let limit = args::count(rest, "bt", 0)?;
    if limit == 0 && !here.is_empty() {
        return Err(here.error("bt: expected a number of frames, 1 or more"));
    }
    Ok(C::Ask(Command::Backtrace(BacktraceSpec {
        limit,
        args: true,
        full,
    })))
}

fn frame(name: &'static str, rest: &mut Cursor<'_>) -> Result<C, CommandError> {
    if rest.is_empty() {
        return select(FrameSelect::Current);
    }
    let mut ahead = *rest;
    if matches!(ahead.word(), "function" | "apply" | "address" | "view") && !ahead.is_empty() {
        return pass(name, rest);
    }
    rest.take_word("level");
    select(FrameSelect::Level(args::count(rest, name, 0)?))
}

fn steps(rest: &mut Cursor<'_>, name: &str) -> Result<i32, CommandError> {
    let here = *rest;
    let count = args::count(rest, name, 1)?;
    i32::try_from(count)
        .ok()
        .filter(|count| *count > 0)
        .ok_or_else(|| here.error(format!("{name}: expected a number of frames, 1 or more")))
}

fn thread_apply(rest: &mut Cursor<'_>) -> Result<C, CommandError> {
    let mut threads = Vec::new();
    if !rest.take_word("all") {
        while rest.rest().starts_with(|c: char| c.is_ascii_digit()) {
            let mut word = Cursor::new(rest.word());
            threads.extend(args::numbers(&mut word, "thread apply")?);
        }
        if threads.is_empty() {
            return Err(rest.error("thread apply: expected thread numbers, or `all`"));
        }
    }
    if rest.is_empty() {
        return Err(rest.error("thread apply: expected a command after the threads"));
    }
    let command = Box::new(parse::command(rest)?.1);
    Ok(C::ThreadApply { threads, command })
}

/// Parses `profile` and `profile 30`.
fn profile(name: &str, rest: &mut Cursor<'_>) -> Result<C, CommandError> {
    let here = *rest;
    match rest.take_rest() {
        "" => Ok(C::Profile(10)),
        text => match text.parse() {
            Ok(seconds @ 1..=3600) => Ok(C::Profile(seconds)),
            _ => Err(here.error(format!("{name}: expected 1 to 3600 seconds"))),
        },
    }
}

/// Parses `diagnose`, `diagnose 5`, `diagnose for 30` and `diagnose 5 for 30`.
fn diagnose(name: &str, rest: &mut Cursor<'_>) -> Result<C, CommandError> {
    let here = *rest;
    let text = rest.take_rest();
    let words: Vec<&str> = text.split_whitespace().collect();
    let (samples, seconds) = match words[..] {
        [] => (Some(3), None),
        ["for", seconds] => (Some(3), Some(seconds)),
        [samples] => (samples.parse().ok(), None),
        [samples, "for", seconds] => (samples.parse().ok(), Some(seconds)),
        _ => (None, None),
    };
    let over = seconds.map(str::parse);
    match (samples, over) {
        (Some(samples @ 2..=100), None) => Ok(C::Diagnose(samples, None)),
        (Some(samples @ 2..=100), Some(Ok(seconds @ 1..=3600))) => {
            Ok(C::Diagnose(samples, Some(seconds)))
        }
        _ => Err(here.error(format!(
            "{name}: expected 2 to 100 samples, and `for` with 1 to 3600 seconds"
        ))),
    }
}
