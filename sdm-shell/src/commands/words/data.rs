//! Specifications of the commands that show, compare, change and export values, and their parsers.

use sdm_debug::Command;

use super::inspection::pass;
use crate::commands::cursor::Cursor;
use crate::commands::spec::{Completes, PLAIN, Spec};
use crate::commands::{CommandError, JobCommand, UserCommand as C, ValuesCommand, args};

pub(super) const COMMANDS: &[Spec] = &[
    Spec {
        name: "call",
        usage: "call EXPR",
        what: "evaluates an expression that may call functions",
        completes: Completes::Program,
        repeats: true,
        parse: call,
        ..PLAIN
    },
    Spec {
        name: "compare",
        usage: "compare EXPR",
        what: "compares the value on each rank with the most frequent value",
        more: "compare rod.cells: arrays and structures element by element,\n\
               with the first element that differs",
        completes: Completes::Program,
        repeats: true,
        parse: |name, rest| {
            args::expression(name, rest)
                .map(ValuesCommand::Compare)
                .map(C::Values)
        },
        ..PLAIN
    },
    Spec {
        name: "export",
        usage: "export EXPR FILE.npy|.csv",
        what: "writes values to a file; the first axis is the ranks",
        more: "export cell[0:63] cell.npy\nexport residual residual.csv\nThe last word is the file: .npy for `numpy.load`, or .csv. Slices include both ends; cell[0:63:8] has every eighth element.",
        completes: Completes::Program,
        parse: export,
        ..PLAIN
    },
    Spec {
        name: "gcore",
        short: &["dump"],
        usage: "gcore FILE",
        what: "writes a core file of each rank: FILE.RANK",
        more: "gcore /tmp/core\n[3] gcore core: writes core.3 in the working directory of gdb\n`gdb dump memory ...` is gdb's command for raw memory.",
        completes: Completes::Files,
        parse: |name, rest| args::file(name, rest).map(C::Dump),
        ..PLAIN
    },
    Spec {
        name: "handle",
        usage: "handle SIGNAL ACTION...",
        what: "sets the handling of a signal, as gdb's `handle`",
        more: "handle SIGUSR1 stop print nopass",
        parse: handle,
        ..PLAIN
    },
    Spec {
        name: "outliers",
        usage: "outliers EXPR",
        what: "groups ranks by value, rare values first",
        more: "outliers step\n[@stopped] outliers expected_tag",
        completes: Completes::Program,
        repeats: true,
        parse: |name, rest| {
            args::expression(name, rest)
                .map(ValuesCommand::Outliers)
                .map(C::Values)
        },
        ..PLAIN
    },
    Spec {
        name: "plot",
        usage: "plot EXPR",
        what: "plots values in text: over ranks, or over array elements",
        more: "plot residual: over the ranks\nplot cell[0:63]: over the elements, one curve for ranks with equal values; cell[0:63:8]: every eighth",
        completes: Completes::Program,
        repeats: true,
        parse: |name, rest| {
            args::expression(name, rest)
                .map(ValuesCommand::Plot)
                .map(C::Values)
        },
        ..PLAIN
    },
    Spec {
        name: "print",
        short: &["p", "pr", "pri", "prin", "inspect"],
        usage: "print[/FORMAT] [EXPR]",
        what: "prints an expression, equal values once",
        more: "print x\nprint/x mask\nprint, print $: the last value; $$, $$2, $3: earlier values, separate for each rank",
        completes: Completes::Program,
        repeats: true,
        parse: print,
    },
    Spec {
        name: "printf",
        usage: "printf \"FORMAT\", EXPR...",
        what: "prints a formatted text, as gdb's `printf`",
        completes: Completes::Program,
        parse: pass,
        ..PLAIN
    },
    Spec {
        name: "ptype",
        usage: "ptype EXPR",
        what: "prints the definition of a type",
        completes: Completes::Program,
        parse: type_of,
        ..PLAIN
    },
    Spec {
        name: "return",
        usage: "return [EXPR]",
        what: "returns from the selected function at once",
        completes: Completes::Program,
        parse: |_, rest| {
            let value = Some(rest.take_rest().to_owned()).filter(|text| !text.is_empty());
            Ok(C::Ask(Command::Return { value }))
        },
        ..PLAIN
    },
    Spec {
        name: "set",
        usage: "set var NAME = VALUE",
        what: "changes a variable",
        more: "set breakpoint pending on|off|auto: on keeps a breakpoint whose location is not loaded yet, auto asks.\n\
               set args ARGS: the program's arguments, from the next `run` on.\n\
               set pagination on|off: on shows a long text one screen at a time.\n\
               set confirm on|off: on asks before `run` or `quit` ends the job.\n\
               All other settings are gdb's own.",
        completes: Completes::Words(&[
            "var",
            "args",
            "breakpoint pending on",
            "breakpoint pending off",
            "breakpoint pending auto",
            "confirm off",
            "confirm on",
            "pagination off",
            "pagination on",
        ]),
        parse: set,
        ..PLAIN
    },
    Spec {
        name: "show",
        usage: "show SETTING",
        what: "runs gdb's `show` on every rank; `show args`: the arguments",
        completes: Completes::Program,
        parse: show,
        ..PLAIN
    },
    Spec {
        name: "stats",
        usage: "stats EXPR",
        what: "prints minimum, maximum, mean, spread and a histogram",
        more: "stats residual\nstats cell[0:63]: over elements and ranks; stats cells(1:9) in Fortran\nAlso names the ranks with the minimum, with the maximum, and without a number.",
        completes: Completes::Program,
        repeats: true,
        parse: |name, rest| {
            args::expression(name, rest)
                .map(ValuesCommand::Stats)
                .map(C::Values)
        },
        ..PLAIN
    },
    Spec {
        name: "whatis",
        usage: "whatis EXPR",
        what: "prints the type of an expression",
        completes: Completes::Program,
        parse: type_of,
        ..PLAIN
    },
    Spec {
        name: "x",
        usage: "x/FORMAT ADDRESS",
        what: "examines memory, as gdb's `x`",
        completes: Completes::Program,
        parse: pass,
        ..PLAIN
    },
];

/// Parses `export`: the last word is the file, and the text before it is the expression.
fn export(name: &'static str, rest: &mut Cursor<'_>) -> Result<C, CommandError> {
    let here = *rest;
    let text = rest.take_rest();
    let expected = || {
        here.error(format!(
            "{name}: expected an expression and a file name ending in .npy or .csv"
        ))
    };
    let (expression, file) = text.rsplit_once(char::is_whitespace).ok_or_else(expected)?;
    let is_known = [".npy", ".csv"].iter().any(|end| file.ends_with(end));
    if !is_known || expression.trim().is_empty() {
        return Err(expected());
    }
    Ok(C::Values(ValuesCommand::Export {
        expression: expression.trim().to_owned(),
        file: args::file(name, &mut Cursor::new(file))?,
    }))
}

/// gdb's options of `print`.
const PRINT_OPTIONS: [&str; 17] = [
    "address",
    "array",
    "array-indexes",
    "characters",
    "elements",
    "max-depth",
    "memory-tag-violations",
    "nibbles",
    "null-stop",
    "object",
    "pretty",
    "raw-values",
    "repeats",
    "static-members",
    "symbol",
    "union",
    "vtbl",
];

/// True for a text that begins with an option of gdb's `print`, or with the end of options. A single letter is taken
/// for a variable.
fn begins_with_option(text: &str) -> bool {
    let word = text.split_whitespace().next().unwrap_or_default();
    word.strip_prefix('-').is_some_and(|word| {
        word == "-" || word.len() > 1 && PRINT_OPTIONS.iter().any(|option| option.starts_with(word))
    })
}

fn print(name: &'static str, rest: &mut Cursor<'_>) -> Result<C, CommandError> {
    if begins_with_option(rest.rest()) {
        return pass(name, rest);
    }
    let format = args::format(rest).to_owned();
    // As in gdb: the last value again.
    let expression = match rest.is_empty() && name == "print" {
        true => "$".to_owned(),
        false => args::expression(name, rest)?,
    };
    Ok(C::Ask(Command::Print { format, expression }))
}

/// Parses `ptype EXPR` and `whatis EXPR`. With options or without an expression the line goes to gdb unchanged.
fn type_of(name: &'static str, rest: &mut Cursor<'_>) -> Result<C, CommandError> {
    if rest.is_empty() || rest.rest().starts_with('/') {
        return pass(name, rest);
    }
    Ok(C::Ask(Command::TypeOf {
        expression: rest.take_rest().to_owned(),
        full: name == "ptype",
    }))
}

fn call(name: &'static str, rest: &mut Cursor<'_>) -> Result<C, CommandError> {
    if rest.rest().starts_with('/') {
        return print(name, rest);
    }
    let expression = args::expression(name, rest)?;
    Ok(C::Ask(Command::Call { expression }))
}

/// Parses `handle`. A line of signal names and actions that SDM knows is SDM's own; numbers, ranges and
/// `all` go to gdb.
fn handle(name: &'static str, rest: &mut Cursor<'_>) -> Result<C, CommandError> {
    let mut ahead = *rest;
    let (mut names, mut stop, mut print, mut let_through) = (Vec::new(), None, None, None);
    for word in ahead.take_rest().split_whitespace() {
        let (on, action) = match word.strip_prefix("no") {
            Some(action) => (false, action),
            None => (true, word),
        };
        match action {
            "stop" => stop = Some(on),
            "print" => print = Some(on),
            "pass" => let_through = Some(on),
            "ignore" => let_through = Some(!on),
            _ if word.starts_with("SIG") => names.push(word.to_owned()),
            _ => return pass(name, rest),
        }
    }
    if names.is_empty() {
        return pass(name, rest);
    }
    *rest = ahead;
    // As in gdb: `stop` implies `print`, and `noprint` implies `nostop`.
    let print = print.or(stop.filter(|stop| *stop));
    let stop = stop.or(print.filter(|print| !*print));
    Ok(C::Ask(Command::SignalHandle {
        names,
        stop,
        print,
        pass: let_through,
    }))
}

fn set(name: &'static str, rest: &mut Cursor<'_>) -> Result<C, CommandError> {
    if rest.is_empty() {
        return Err(rest.error("set: expected `var EXPRESSION` or one of gdb's settings"));
    }
    let mut ahead = *rest;
    let word = ahead.word();
    if word.starts_with("var") && "variable".starts_with(word) {
        if ahead.is_empty() {
            return Err(ahead.error("set var: expected an assignment: NAME = VALUE"));
        }
        let expression = ahead.take_rest().to_owned();
        *rest = ahead;
        return Ok(C::Ask(Command::SetVariable { expression }));
    }
    if word == "breakpoint" && ahead.take_word("pending") {
        if ahead.take_word("auto") {
            ahead.finish("set breakpoint pending")?;
            *rest = ahead;
            return Ok(C::SetPending(None));
        }
        let on = args::on_off(&mut ahead, "set breakpoint pending")?;
        let expected = || ahead.error("set breakpoint pending: expected on, off or auto");
        let on = on.ok_or_else(expected)?;
        *rest = ahead;
        return Ok(C::SetPending(Some(on)));
    }
    if word == "args" {
        let at = ahead.at();
        let words = args::program_arguments(ahead.take_rest(), at)?;
        *rest = ahead;
        return Ok(C::Job(JobCommand::Arguments(words)));
    }
    if word == "pagination" {
        let on = args::on_off(&mut ahead, "set pagination")?;
        *rest = ahead;
        return Ok(C::Pagination(Some(on.unwrap_or(true))));
    }
    if word == "confirm" {
        let on = args::on_off(&mut ahead, "set confirm")?;
        *rest = ahead;
        return Ok(C::Job(JobCommand::Confirm(on.unwrap_or(true))));
    }
    pass(name, rest)
}

fn show(name: &'static str, rest: &mut Cursor<'_>) -> Result<C, CommandError> {
    let mut ahead = *rest;
    if ahead.take_word("user") {
        let name = Some(ahead.take_rest().to_owned());
        *rest = ahead;
        return Ok(C::ShowDefined(name.filter(|name| !name.is_empty())));
    }
    if rest.rest().trim() == "pagination" {
        rest.take_rest();
        return Ok(C::Pagination(None));
    }
    if ahead.take_word("args") && ahead.is_empty() {
        *rest = ahead;
        return Ok(C::Job(JobCommand::ShowArguments));
    }
    pass(name, rest)
}
