//! Rows, each a command with a part of its answer: commands that let tasks run, commands meanwhile, and the ends of
//! tasks.

use super::*;
use sdm_debug::Command;
use sdm_debug::command::{LookSpec, SampleSpec};

pub(crate) fn before_the_start() -> Rows {
    let not_started = "not_running: not started";
    vec![
        (Command::Status, "Status(Absent)"),
        (Command::Usage, not_started),
        (
            Command::ProcessUsage { pids: Vec::new() },
            "attach_failed: no process was given for this rank",
        ),
        (Command::Queues, not_started),
        (Command::Hold, not_started),
        (
            Command::Look(LookSpec::default()),
            "attach_failed: no process was given for this rank",
        ),
        (
            Command::Sample(SampleSpec::default()),
            "attach_failed: no process was given for this rank",
        ),
        (Command::Continue, not_started),
        (Command::Interrupt, not_started),
        (Command::Locals, not_started),
        (evaluate("1"), not_started),
        (insert(1, "main"), not_started),
    ]
}

pub(crate) fn runs() -> Rows {
    let until = |location: &str| Command::Until {
        location: Some(location.to_owned()),
    };
    let advance = |location: &str| Command::Advance {
        location: location.to_owned(),
    };
    let leave = |value: &str| Command::Return {
        value: Some(value.to_owned()),
    };
    vec![
        (Command::ContinuePast { count: 2 }, "no_such_thing: "),
        (Command::Continue, "reason: Breakpoint { number: 3 }"),
        (step(StepKind::Into, 1), "function: \"add\""),
        (
            Command::Finish,
            "FunctionFinished { value: Some(Value { text: \"8\"",
        ),
        (step(StepKind::Over, 1), "reason: StepEnd"),
        (step(StepKind::Instruction, 1), "reason: StepEnd"),
        (step(StepKind::InstructionOver, 1), "function: \"twice\""),
        (leave("nosuch"), "gdb: No symbol \"nosuch\""),
        (leave("77"), "function: \"main\""),
        (advance("nosuch"), "gdb: Function \"nosuch\" not defined."),
        (advance("twice"), "reason: LocationReached"),
        (until("nosuch.c:1"), "gdb: No source file named nosuch.c."),
        (Command::Until { location: None }, "function: \"twice\""),
    ]
}

pub(crate) fn odd_runs() -> Rows {
    let jump = |location: &str| Command::Jump {
        location: location.to_owned(),
    };
    let back = |count| Command::ReverseStep {
        kind: StepKind::Over,
        count,
    };
    let signal = |name: &str| Command::ContinueSignal {
        signal: name.to_owned(),
    };
    vec![
        (console("record"), "Text"),
        (step(StepKind::Over, 1), "reason: StepEnd"),
        (back(1), "reason: "),
        (Command::ReverseContinue, "reason: NoHistory"),
        (console("record stop"), "Text"),
        (back(1), "gdb: "),
        (Command::ReverseContinue, "gdb: "),
        (jump("nosuch"), "gdb: Function \"nosuch\" not defined."),
        (
            Command::BreakEnable {
                number: 4,
                enabled: true,
            },
            "Done",
        ),
        (
            Command::BreakIgnore {
                number: 4,
                count: 0,
            },
            "Done",
        ),
        (jump("twice"), "reason: Breakpoint { number: 4 }"),
        (
            Command::ContinuePast { count: 1 },
            "reason: Catch { number: 6, hit: Signal { name: \"SIGUSR1\" } }",
        ),
        (signal("NOSUCH"), "gdb: "),
        (Command::BreakInsert(point(10, "on_signal")), "number: 10"),
        (signal("SIGUSR1"), "reason: Breakpoint { number: 10 }"),
        (delete(10), "Done"),
    ]
}

pub(crate) fn while_it_runs() -> Rows {
    let stdin = |offset, bytes: &[u8], eof| Command::Stdin {
        offset,
        bytes: bytes.to_vec(),
        eof,
    };
    let running = "running: running";
    vec![
        (evaluate("global"), running),
        (Command::Locals, running),
        (Command::Queues, running),
        (Command::Backtrace(BacktraceSpec::default()), running),
        (Command::Continue, "already_running: already running"),
        (Command::Finish, "already_running: already running"),
        (stdin(0, b"one\ntwo\n", false), "Done"),
        (stdin(8, b"three\n", true), "Done"),
        (insert(11, "add"), "number: 11"),
        (Command::Breakpoints, "number: 11"),
        (Command::Status, "Status(Running)"),
        (Command::Hold, "Done"),
        (Command::Usage, "Usage(Usage { resident_bytes: "),
        (
            Command::ProcessUsage { pids: Vec::new() },
            "Usage(Usage { resident_bytes: ",
        ),
        (Command::Interrupt, "Done"),
    ]
}

pub(crate) fn ends() -> Rows {
    let gone = "not_running: not running (ended by SIGKILL)";
    vec![
        (Command::Interrupt, "Done"),
        (Command::Kill, "Done"),
        (Command::Kill, gone),
        (Command::Detach, gone),
        (Command::Continue, gone),
        (evaluate("global"), gone),
        (Command::Stacks { full: false }, gone),
        (Command::Breakpoints, gone),
        (Command::Usage, gone),
        (Command::Status, "Status(Signalled(\"SIGKILL\"))"),
    ]
}

pub(crate) fn again() -> Rows {
    vec![
        (Command::Continue, "reason: Breakpoint { number: 1 }"),
        (set("leave = 1"), "Done"),
        (
            Command::Stdin {
                offset: 0,
                bytes: Vec::new(),
                eof: true,
            },
            "Done",
        ),
        (Command::Detach, "Done"),
    ]
}

pub(crate) fn of_a_core_file() -> Rows {
    let of_core = "not possible with a core file";
    vec![
        (
            evaluate("outer.first.number + outer.ratios[1]"),
            "text: \"17.5\"",
        ),
        (Command::Continue, of_core),
        (Command::Kill, of_core),
        (insert(1, "main"), "unsupported: "),
        (
            Command::MemoryWrite {
                address: "&global".to_owned(),
                bytes: vec![1],
            },
            of_core,
        ),
        (Command::Detach, "Done"),
    ]
}
