//! `help`: every command in one line, and a little more about each.

use super::table::{self, COMMANDS};
use super::{CommandError, CommandError as Error};

/// What a command does, and what is worth knowing beside it.
struct Entry {
    usage: &'static str,
    what: &'static str,
    more: &'static str,
}

const fn entry(usage: &'static str, what: &'static str, more: &'static str) -> Entry {
    Entry { usage, what, more }
}

/// The text of `help`, or of `help COMMAND`.
///
/// # Errors
/// A word that names no command.
pub fn help(command: Option<&str>) -> Result<String, CommandError> {
    let Some(word) = command else {
        return Ok(overview());
    };
    let (name, _) = table::find(word.trim(), 0).map_err(|error| Error::new(error.message))?;
    let entry = describe(name);
    let mut text = format!("{}\n  {}.", entry.usage, entry.what);
    for line in entry.more.lines() {
        text.push_str("\n  ");
        text.push_str(line);
    }
    Ok(text)
}

fn overview() -> String {
    let mut text = String::from(
        "A command goes to the tasks in focus, or to others for once: [0-3,7] print x\n\n",
    );
    for (name, _) in COMMANDS {
        let entry = describe(name);
        text.push_str(&format!("  {:<31} {}\n", entry.usage, entry.what));
    }
    text.push_str(
        "\nUnique prefixes and gdb's abbreviations work. An empty line repeats the last command.\n\
         Ctrl-C stops the tasks of the command being waited for; Ctrl-Z gives the prompt back.",
    );
    text
}

#[rustfmt::skip]
fn describe(name: &str) -> Entry {
    match name {
        "backtrace" | "where" => entry("bt [N] [--full]", "the frames of each task, equal ones once",
            "`bt 5` shows five frames; `--full` also those inside MPI and other runtimes.\n`bt full` is gdb's own: with the locals of every frame."),
        "break" => entry("break LOCATION [if COND]", "a breakpoint on the tasks in focus",
            "break halo.c:40\nbreak exchange if rank == 3"),
        "call" => entry("call EXPR", "evaluates an expression, calls in it included", ""),
        "continue" => entry("continue [&]", "lets tasks run until they stop or end",
            "With & it does not wait; `wait` does so later."),
        "delete" => entry("delete [N...]", "removes breakpoints, or all",
            "[0-3] delete 1 removes it from these tasks only."),
        "detach" => entry("detach", "leaves tasks running without a debugger", ""),
        "disable" => entry("disable [N...]", "switches breakpoints off", ""),
        "disassemble" => entry("disassemble [ARGS]", "gdb's own, on every task", ""),
        "down" => entry("down [N]", "selects a frame further in", ""),
        "enable" => entry("enable [N...]", "switches breakpoints on", ""),
        "finish" => entry("finish [&]", "runs until the selected function returns", ""),
        "focus" => entry("focus [SET]", "to whom commands go from now on",
            "focus 0-3,7\nfocus all\nWithout a set: shows it."),
        "frame" => entry("frame [N]", "selects a frame, or shows the selected one", ""),
        "gdb" => entry("gdb COMMAND", "a command for each gdb's own command line",
            "SDM does not look at it: what changes the program's state behind its back is yours."),
        "hbreak" => entry("hbreak LOCATION [if COND]", "a breakpoint with the processor's help", ""),
        "help" => entry("help [COMMAND]", "this", ""),
        "info" => entry("info locals|args|threads|...", "what gdb's info says",
            "info locals, info args, info threads, info breakpoints are merged;\nall others are gdb's own text."),
        "interrupt" => entry("interrupt", "stops running tasks", ""),
        "kill" => entry("kill", "ends tasks", ""),
        "list" => entry("list [ARGS]", "gdb's own, on every task", ""),
        "next" => entry("next [COUNT] [&]", "to the next line, over calls", ""),
        "nexti" => entry("nexti [COUNT] [&]", "one instruction, over calls", ""),
        "output" => entry("output on|off", "shows what the program prints, or not", ""),
        "print" => entry("print[/FORMAT] EXPR", "the value of an expression, equal ones once",
            "print x\nprint/x mask"),
        "ptype" => entry("ptype EXPR", "gdb's own, on every task", ""),
        "quit" => entry("quit", "ends the session", "What was started is killed, what was attached is left running."),
        "ranks" => entry("ranks", "who is in which state, and where", ""),
        "run" | "start" => entry(if name == "run" { "run" } else { "start" }, "not here: `sdm run` starts the program", ""),
        "send" => entry("send SET TEXT|--eof", "a line for the program's standard input",
            "send 0 yes\nsend 0 --eof ends the input."),
        "set" => entry("set var NAME = VALUE", "changes a variable",
            "set breakpoint pending on|off: keeps breakpoints whose place is not loaded yet.\nAll other settings are gdb's own."),
        "show" => entry("show SETTING", "gdb's own, on every task", ""),
        "source" => entry("source FILE", "commands from a file; the first that fails ends it", ""),
        "stacks" => entry("stacks [--full]", "the stacks of all threads of all tasks as one tree",
            "`--full` unfolds MPI and other runtimes and shows every thread."),
        "step" => entry("step [COUNT] [&]", "to the next line, into calls", ""),
        "stepi" => entry("stepi [COUNT] [&]", "one instruction", ""),
        "tbreak" => entry("tbreak LOCATION [if COND]", "a breakpoint for one stop", ""),
        "thread" => entry("thread N", "selects a thread by its number", ""),
        "up" => entry("up [N]", "selects a frame further out", ""),
        "wait" => entry("wait [SET] [SECONDS]", "until tasks have stopped or ended",
            "wait 10: at most ten seconds.\nwait 0-3 10: these only."),
        "whatis" => entry("whatis EXPR", "gdb's own, on every task", ""),
        _ => entry("x/FORMAT ADDRESS", "gdb's own, on every task", ""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_has_a_line_of_its_own() {
        let text = help(None).unwrap();
        for (name, _) in COMMANDS {
            assert!(describe(name).usage.len() <= 31, "{name}");
            let known = text.lines().any(|line| line.trim_start().starts_with(name));
            assert!(known || ["backtrace", "where"].contains(name), "{name}");
        }
        assert!(text.lines().all(|line| line.len() <= 100));
    }

    #[test]
    fn help_of_one_command_shows_how() {
        let text = help(Some("foc")).unwrap();
        assert!(text.starts_with("focus [SET]\n"), "{text}");
        assert!(help(Some("nonsense")).is_err());
    }
}
