//! Running and stopping.

use sdm_debug::Command;
use sdm_debug::command::StepKind;

use crate::commands::cursor::Cursor;
use crate::commands::spec::{Completes, PLAIN, Spec};
use crate::commands::{CommandError, UserCommand as C, args};

pub(super) const COMMANDS: &[Spec] = &[
    Spec {
        name: "continue",
        short: &["c", "cont", "fg"],
        usage: "continue [&]",
        what: "lets tasks run until they stop or end",
        more: "With & it does not wait; `wait` does so later.",
        repeats: true,
        parse: |name, rest| plain_run(name, rest, Command::Continue),
        ..PLAIN
    },
    Spec {
        name: "detach",
        usage: "detach",
        what: "leaves tasks running without a debugger",
        parse: |_, _| Ok(C::Detach),
        ..PLAIN
    },
    Spec {
        name: "finish",
        short: &["fin"],
        usage: "finish [&]",
        what: "runs until the selected function returns",
        repeats: true,
        parse: |name, rest| plain_run(name, rest, Command::Finish),
        ..PLAIN
    },
    Spec {
        name: "interrupt",
        usage: "interrupt",
        what: "stops running tasks",
        parse: |_, _| Ok(C::Interrupt),
        ..PLAIN
    },
    Spec {
        name: "kill",
        short: &["k"],
        usage: "kill",
        what: "ends tasks",
        parse: |_, _| Ok(C::Kill),
        ..PLAIN
    },
    Spec {
        name: "next",
        short: &["n"],
        usage: "next [COUNT] [&]",
        what: "to the next line, over calls",
        repeats: true,
        parse: |name, rest| step(name, rest, StepKind::Over),
        ..PLAIN
    },
    Spec {
        name: "nexti",
        short: &["ni"],
        usage: "nexti [COUNT] [&]",
        what: "one instruction, over calls",
        repeats: true,
        parse: |name, rest| step(name, rest, StepKind::InstructionOver),
        ..PLAIN
    },
    Spec {
        name: "run",
        short: &["r"],
        usage: "run",
        what: "starts the whole job anew",
        more: "Breakpoints, focus, sets and arguments are kept.",
        parse: |_, _| Ok(C::Rerun),
        ..PLAIN
    },
    Spec {
        name: "start",
        usage: "start",
        what: "the same as `run`: all are brought to main",
        parse: |_, _| Ok(C::Rerun),
        ..PLAIN
    },
    Spec {
        name: "step",
        short: &["s"],
        usage: "step [COUNT] [&]",
        what: "to the next line, into calls",
        repeats: true,
        parse: |name, rest| step(name, rest, StepKind::Into),
        ..PLAIN
    },
    Spec {
        name: "stepi",
        short: &["si"],
        usage: "stepi [COUNT] [&]",
        what: "one instruction",
        repeats: true,
        parse: |name, rest| step(name, rest, StepKind::Instruction),
        ..PLAIN
    },
    Spec {
        name: "wait",
        short: &["w"],
        usage: "wait [SET] [SECONDS]",
        what: "until tasks have stopped or ended",
        more: "wait 10: at most ten seconds.\nwait 0-3 10: these only.",
        completes: Completes::Sets,
        repeats: true,
        parse: |_, rest| args::wait(rest),
    },
];

/// Takes the `&` at the end of a line, where there is one.
fn background<'a>(rest: &mut Cursor<'a>) -> (Vec<&'a str>, bool) {
    let mut words: Vec<&str> = rest.take_rest().split_whitespace().collect();
    let mut background = false;
    if let Some(last) = words.pop() {
        let stripped = last.strip_suffix('&');
        background = stripped.is_some();
        words.extend(Some(stripped.unwrap_or(last)).filter(|word| !word.is_empty()));
    }
    (words, background)
}

fn plain_run(
    name: &'static str,
    rest: &mut Cursor<'_>,
    command: Command,
) -> Result<C, CommandError> {
    let here = *rest;
    let (words, background) = background(rest);
    if !words.is_empty() {
        return Err(here.error(format!("{name}: takes no argument but &")));
    }
    Ok(C::Run {
        command,
        background,
    })
}

fn step(name: &'static str, rest: &mut Cursor<'_>, kind: StepKind) -> Result<C, CommandError> {
    let here = *rest;
    let (words, background) = background(rest);
    let count = match words[..] {
        [] => 1,
        [count] => args::positive(&here, name, count)?,
        _ => return Err(here.error(format!("{name}: expected how often and &, no more"))),
    };
    Ok(C::Run {
        command: Command::Step { kind, count },
        background,
    })
}
