//! Commands that resume and stop tasks.

use sdm_debug::Command;
use sdm_debug::command::StepKind;

use crate::commands::cursor::Cursor;
use crate::commands::set::{SetExpr, Until};
use crate::commands::spec::{Completes, PLAIN, Spec};
use crate::commands::{CommandError, JobCommand, UserCommand as C, args};

pub(super) const COMMANDS: &[Spec] = &[
    Spec {
        name: "advance",
        usage: "advance LOCATION [&]",
        what: "runs to a place, or until the function returns",
        completes: Completes::Program,
        repeats: true,
        parse: |name, rest| to_place(name, rest, |location| Command::Advance { location }),
        ..PLAIN
    },
    Spec {
        name: "continue",
        short: &["c", "cont", "fg"],
        usage: "continue [COUNT] [&]",
        what: "continues ranks until they stop or end",
        more: "With & the prompt returns at once; `wait` waits later.\ncontinue 3: stops at the third hit of the current breakpoint",
        repeats: true,
        parse: |name, rest| {
            counted(name, rest, |count| match count {
                1 => Command::Continue,
                count => Command::ContinuePast { count },
            })
        },
        ..PLAIN
    },
    Spec {
        name: "attach",
        usage: "attach SET",
        what: "attaches to more ranks of the running job",
        more: "Attaches to the ranks that --ranks named, or to all, on hosts where the session has an sdm-server.",
        completes: Completes::Sets,
        parse: |_, rest| Ok(C::Attach(SetExpr::take(rest, Until::End)?)),
        ..PLAIN
    },
    Spec {
        name: "detach",
        usage: "detach [SET]",
        what: "detaches from ranks, which keep running",
        completes: Completes::Sets,
        parse: |_, rest| {
            if rest.is_empty() {
                return Ok(C::Detach(None));
            }
            Ok(C::Detach(Some(SetExpr::take(rest, Until::End)?)))
        },
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
        what: "interrupts running ranks",
        parse: |_, _| Ok(C::Interrupt),
        ..PLAIN
    },
    Spec {
        name: "jump",
        short: &["j"],
        usage: "jump LOCATION [&]",
        what: "continues at another location",
        completes: Completes::Program,
        parse: |name, rest| to_place(name, rest, |location| Command::Jump { location }),
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
        what: "steps to the next line, over calls",
        repeats: true,
        parse: |name, rest| step(name, rest, StepKind::Over),
        ..PLAIN
    },
    Spec {
        name: "nexti",
        short: &["ni"],
        usage: "nexti [COUNT] [&]",
        what: "steps one instruction, over calls",
        repeats: true,
        parse: |name, rest| step(name, rest, StepKind::InstructionOver),
        ..PLAIN
    },
    Spec {
        name: "reverse-continue",
        short: &["rc"],
        usage: "reverse-continue [&]",
        what: "runs backward to the last breakpoint; needs gdb's `record`",
        repeats: true,
        parse: |name, rest| plain_run(name, rest, Command::ReverseContinue),
        ..PLAIN
    },
    Spec {
        name: "reverse-next",
        short: &["rn"],
        usage: "reverse-next [COUNT] [&]",
        what: "steps back to the previous line, over calls (after `record`)",
        repeats: true,
        parse: |name, rest| back(name, rest, StepKind::Over),
        ..PLAIN
    },
    Spec {
        name: "reverse-step",
        short: &["rs"],
        usage: "reverse-step [COUNT] [&]",
        what: "steps back to the previous line, into calls (after `record`)",
        repeats: true,
        parse: |name, rest| back(name, rest, StepKind::Into),
        ..PLAIN
    },
    Spec {
        name: "run",
        short: &["r"],
        usage: "run [ARGS] [&]",
        what: "starts the whole job again",
        more: "Breakpoints, focus, sets, displays, holds and settings stay. ARGS replace the program's\narguments; they are split into words as by a shell, without expansions.\nWhile the ranks still wait at main, `run` continues them.",
        parse: |_, rest| again(rest, false),
        ..PLAIN
    },
    Spec {
        name: "signal",
        usage: "signal NAME|0 [&]",
        what: "continues and delivers this signal (0: none)",
        parse: |name, rest| to_place(name, rest, |signal| Command::ContinueSignal { signal }),
        ..PLAIN
    },
    Spec {
        name: "start",
        usage: "start [ARGS]",
        what: "starts the job again, as `run`, and stops every rank at main",
        parse: |_, rest| again(rest, true),
        ..PLAIN
    },
    Spec {
        name: "step",
        short: &["s"],
        usage: "step [COUNT] [&]",
        what: "steps to the next line, into calls",
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
        name: "until",
        short: &["u"],
        usage: "until [LOCATION] [&]",
        what: "runs past the current line, or to a location",
        completes: Completes::Program,
        repeats: true,
        parse: |_, rest| {
            let (words, background) = background(rest);
            let location = Some(words.join(" ")).filter(|text| !text.is_empty());
            Ok(C::Run {
                command: Command::Until { location },
                background,
            })
        },
        ..PLAIN
    },
    Spec {
        name: "wait",
        short: &["w"],
        usage: "wait [SET] [SECONDS]",
        what: "waits until ranks have stopped or ended",
        more: "wait 10: at most ten seconds.\nwait 0-3 10: for ranks 0-3 only.",
        completes: Completes::Sets,
        repeats: true,
        parse: |_, rest| args::wait(rest),
    },
];

/// The words of a line without the `&` at its end, and true if there was one.
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

fn again(rest: &mut Cursor<'_>, to_main: bool) -> Result<C, CommandError> {
    let at = rest.at();
    let text = rest.take_rest();
    let before = text.strip_suffix('&');
    let before = before.filter(|text| text.is_empty() || text.ends_with(char::is_whitespace));
    let words = before.unwrap_or(text);
    let arguments = match words.trim() {
        "" => None,
        words => Some(args::program_arguments(words, at)?),
    };
    Ok(C::Job(JobCommand::Run {
        arguments,
        to_main,
        background: before.is_some() && !to_main,
    }))
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

fn to_place(
    name: &'static str,
    rest: &mut Cursor<'_>,
    command: fn(String) -> Command,
) -> Result<C, CommandError> {
    let here = *rest;
    let (words, background) = background(rest);
    if words.is_empty() {
        let what = if name == "signal" {
            "a signal"
        } else {
            "a place"
        };
        return Err(here.error(format!("{name}: expected {what}")));
    }
    Ok(C::Run {
        command: command(words.join(" ")),
        background,
    })
}

fn step(name: &'static str, rest: &mut Cursor<'_>, kind: StepKind) -> Result<C, CommandError> {
    counted(name, rest, |count| Command::Step { kind, count })
}

fn back(name: &'static str, rest: &mut Cursor<'_>, kind: StepKind) -> Result<C, CommandError> {
    counted(name, rest, |count| Command::ReverseStep { kind, count })
}

fn counted(
    name: &'static str,
    rest: &mut Cursor<'_>,
    command: impl Fn(u32) -> Command,
) -> Result<C, CommandError> {
    let here = *rest;
    let (words, background) = background(rest);
    let count = match words[..] {
        [] => 1,
        [count] => args::positive(&here, name, count)?,
        _ => return Err(here.error(format!("{name}: expected at most a count and &"))),
    };
    Ok(C::Run {
        command: command(count),
        background,
    })
}
