//! Specifications of the commands for breakpoints, watchpoints and catchpoints, and their parsers.

use sdm_debug::command::{BreakSpec, CatchEvent, CatchSpec, PointSpec, WatchKind, WatchSpec};
use sdm_debug::quotes::split_at_commas;

use crate::commands::cursor::Cursor;
use crate::commands::spec::{Completes, PLAIN, Spec};
use crate::commands::{CommandError, UserCommand as C, args};

/// The events that `catch` accepts.
const EVENTS: &[&str] = &[
    "catch", "exec", "fork", "load", "rethrow", "signal", "syscall", "throw", "unload", "vfork",
];

pub(super) const COMMANDS: &[Spec] = &[
    Spec {
        name: "awatch",
        usage: "awatch [-l] EXPR [if COND]",
        what: "sets a watchpoint: stops at each read or write",
        completes: Completes::Program,
        parse: |name, rest| watch(name, rest, WatchKind::Access),
        ..PLAIN
    },
    Spec {
        name: "break",
        short: &["b", "br", "brk"],
        usage: "break [LOCATION] [if COND]",
        what: "sets a breakpoint in the ranks in focus",
        more: "Without a location: at the current line of each rank.\nbreak halo.c:40\nbreak exchange if rank == 3\n[0-3] break solve",
        completes: Completes::Program,
        parse: |name, rest| args::breakpoint(rest, name, (false, false)),
        ..PLAIN
    },
    Spec {
        name: "catch",
        usage: "catch EVENT",
        what: "sets a catchpoint: stops at an event",
        more: "fork, vfork, exec, syscall [NAME...], signal [NAME...], throw, rethrow, catch, load, unload\n\
               catch syscall write\ncatch throw",
        completes: Completes::Words(EVENTS),
        parse: |name, rest| catch(name, rest, false),
        ..PLAIN
    },
    Spec {
        name: "clear",
        usage: "clear LOCATION",
        what: "deletes the breakpoints at a location",
        more: "A location as `break` was given it, or FILE:LINE.\nclear exchange\nclear halo.c:40",
        completes: Completes::Program,
        parse: |name, rest| match rest.take_rest() {
            "" => Err(rest.error(format!("{name}: expected a location"))),
            place => Ok(C::Clear(place.to_owned())),
        },
        ..PLAIN
    },
    Spec {
        name: "commands",
        usage: "commands [N...]",
        what: "gives gdb commands to run at a breakpoint",
        more: "The commands are the lines that follow, up to `end`. Without a number they belong to\nthe last breakpoint. `continue` lets the rank continue; `if`, `else`, `while` are as\nin gdb.",
        parse: |name, rest| args::numbers(rest, name).map(C::Commands),
        ..PLAIN
    },
    Spec {
        name: "condition",
        short: &["cond"],
        usage: "condition N [COND]",
        what: "sets the condition of a breakpoint",
        more: "condition 1 step > 3\ncondition 1: removes the condition",
        parse: |name, rest| {
            let number = args::number(rest, name)?;
            let condition = Some(rest.take_rest().to_owned()).filter(|text| !text.is_empty());
            Ok(C::Condition { number, condition })
        },
        ..PLAIN
    },
    Spec {
        name: "delete",
        short: &["d"],
        usage: "delete [display] [N...]",
        what: "deletes breakpoints; without a number, all",
        more: "[0-3] delete 1: removes breakpoint 1 from ranks 0-3 only.",
        parse: |name, rest| {
            if rest.take_word("display") {
                return numbers(name, rest).map(C::Undisplay);
            }
            numbers(name, rest).map(C::Delete)
        },
        ..PLAIN
    },
    Spec {
        name: "disable",
        short: &["dis", "disa"],
        usage: "disable [N...]",
        what: "disables breakpoints",
        parse: |name, rest| {
            switched(name, rest).map(|numbers| C::Enable {
                numbers,
                enabled: false,
            })
        },
        ..PLAIN
    },
    Spec {
        name: "enable",
        usage: "enable [N...]",
        what: "enables breakpoints",
        parse: |name, rest| {
            switched(name, rest).map(|numbers| C::Enable {
                numbers,
                enabled: true,
            })
        },
        ..PLAIN
    },
    Spec {
        name: "hbreak",
        usage: "hbreak LOCATION [if COND]",
        what: "sets a hardware breakpoint",
        completes: Completes::Program,
        parse: |name, rest| args::breakpoint(rest, name, (false, true)),
        ..PLAIN
    },
    Spec {
        name: "ignore",
        usage: "ignore N COUNT",
        what: "ignores the next N hits of a breakpoint",
        parse: |name, rest| {
            let number = args::number(rest, name)?;
            if rest.is_empty() {
                return Err(rest.error("ignore: expected the number of hits to ignore"));
            }
            let count = args::count(rest, name, 0)?;
            Ok(C::Ignore { number, count })
        },
        ..PLAIN
    },
    Spec {
        name: "load",
        usage: "load FILE",
        what: "loads the breakpoints and sets that `save` has written",
        completes: Completes::Files,
        parse: |name, rest| args::file(name, rest).map(C::Load),
        ..PLAIN
    },
    Spec {
        name: "rbreak",
        usage: "rbreak REGEX",
        what: "sets a breakpoint in every function whose name matches",
        more: "rbreak ^exchange_\nrbreak halo.c:^swap",
        parse: |name, rest| {
            let location = args::expression(name, rest)?;
            Ok(C::Point(PointSpec::Break(BreakSpec {
                location,
                regex: true,
                ..BreakSpec::default()
            })))
        },
        ..PLAIN
    },
    Spec {
        name: "rwatch",
        usage: "rwatch [-l] EXPR [if COND]",
        what: "sets a watchpoint: stops at each read of an expression",
        completes: Completes::Program,
        parse: |name, rest| watch(name, rest, WatchKind::Read),
        ..PLAIN
    },
    Spec {
        name: "save",
        usage: "save FILE",
        what: "saves breakpoints and sets to a file, for `load`",
        completes: Completes::Files,
        parse: |name, rest| {
            // The form in gdb is `save breakpoints FILE`.
            rest.take_word("breakpoints");
            args::file(name, rest).map(C::Save)
        },
        ..PLAIN
    },
    Spec {
        name: "tbreak",
        short: &["tb", "tbr"],
        usage: "tbreak LOCATION [if COND]",
        what: "sets a breakpoint that is removed at its first stop",
        completes: Completes::Program,
        parse: |name, rest| args::breakpoint(rest, name, (true, false)),
        ..PLAIN
    },
    Spec {
        name: "tcatch",
        usage: "tcatch EVENT",
        what: "sets a catchpoint that is removed at its first stop",
        completes: Completes::Words(EVENTS),
        parse: |name, rest| catch(name, rest, true),
        ..PLAIN
    },
    Spec {
        name: "thbreak",
        short: &["thb"],
        usage: "thbreak LOCATION [if COND]",
        what: "sets a hardware breakpoint that is removed at its first stop",
        completes: Completes::Program,
        parse: |name, rest| args::breakpoint(rest, name, (true, true)),
        ..PLAIN
    },
    Spec {
        name: "trace",
        usage: "trace LOCATION EXPR,...",
        what: "prints expressions at every hit and continues",
        more: "trace halo.c:60 step, left_neighbour",
        completes: Completes::Program,
        parse: trace,
        ..PLAIN
    },
    Spec {
        name: "watch",
        usage: "watch [-l] EXPR [if COND]",
        what: "sets a watchpoint: stops when an expression changes",
        more: "watch rod.rank\nwatch -l *cell: watches the memory that the expression refers to now, in all frames",
        completes: Completes::Program,
        parse: |name, rest| watch(name, rest, WatchKind::Write),
        ..PLAIN
    },
];

fn watch(name: &'static str, rest: &mut Cursor<'_>, kind: WatchKind) -> Result<C, CommandError> {
    let location = rest.take_word("-l") || rest.take_word("-location");
    if rest.is_empty() {
        return Err(rest.error(format!("{name}: expected an expression")));
    }
    let (expression, condition) = args::place_and_condition(rest, name)?;
    Ok(C::Point(PointSpec::Watch(WatchSpec {
        expression: expression.to_owned(),
        kind,
        location,
        condition,
        ..WatchSpec::default()
    })))
}

fn catch(name: &'static str, rest: &mut Cursor<'_>, temporary: bool) -> Result<C, CommandError> {
    let here = *rest;
    let word = rest.word();
    let (words, condition) = if rest.is_empty() {
        ("", None)
    } else if rest.rest().starts_with("if ") {
        let condition = rest.take_rest()[3..].trim().to_owned();
        ("", Some(condition))
    } else {
        args::place_and_condition(rest, name)?
    };
    let names = || words.split_whitespace().map(str::to_owned).collect();
    let event = match word {
        "fork" => CatchEvent::Fork,
        "vfork" => CatchEvent::Vfork,
        "exec" => CatchEvent::Exec,
        "syscall" => CatchEvent::Syscall(names()),
        "signal" => CatchEvent::Signal(names()),
        "throw" => CatchEvent::Throw,
        "rethrow" => CatchEvent::Rethrow,
        "catch" => CatchEvent::Catch,
        "load" => CatchEvent::Load(words.to_owned()),
        "unload" => CatchEvent::Unload(words.to_owned()),
        _ => {
            let events = EVENTS.join(", ");
            return Err(here.error(format!("{name}: expected an event: {events}")));
        }
    };
    Ok(C::Point(PointSpec::Catch(CatchSpec {
        number: 0,
        event,
        condition,
        temporary,
    })))
}

/// Parses `trace`: the first word is the location, and expressions separated by commas follow.
fn trace(name: &'static str, rest: &mut Cursor<'_>) -> Result<C, CommandError> {
    let location = rest.word();
    if location.is_empty() {
        return Err(rest.error(format!("{name}: expected a location and expressions")));
    }
    let mut commands = vec!["silent".to_owned()];
    let expressions = rest.take_rest();
    let parts = split_at_commas(expressions).into_iter();
    for (index, expression) in parts.filter(|part| !part.is_empty()).enumerate() {
        let comma = if index == 0 { "" } else { ", " };
        let shown = expression.replace('\\', "\\\\");
        commands.push(format!("echo {comma}{shown} = \\"));
        commands.push(format!("output {expression}"));
    }
    if expressions.is_empty() {
        commands.push("echo hit".to_owned());
    }
    commands.push("echo \\n".to_owned());
    commands.push("continue".to_owned());
    Ok(C::Point(PointSpec::Break(BreakSpec {
        location: location.to_owned(),
        commands,
        ..BreakSpec::default()
    })))
}

fn numbers(name: &'static str, rest: &mut Cursor<'_>) -> Result<Vec<u32>, CommandError> {
    rest.take_word("breakpoints");
    args::numbers(rest, name)
}

/// Numbers of breakpoints to enable or disable. The words of gdb for which SDM has other commands are refused.
fn switched(name: &'static str, rest: &mut Cursor<'_>) -> Result<Vec<u32>, CommandError> {
    let mut ahead = *rest;
    let word = ahead.word();
    let other = match word {
        "once" | "delete" | "count" => "`tbreak` sets a breakpoint that stops once",
        "display" => "`undisplay` ends a display",
        _ => return numbers(name, rest),
    };
    let text = format!("{name} {word}: not supported; {other}");
    Err(rest.error(text))
}
