//! Commands for breakpoints, watchpoints and catchpoints, each with parts of its expected answer.

use super::*;
use sdm_debug::Command;

pub(crate) fn breakpoints() -> Rows {
    vec![
        (
            insert(1, "count_up"),
            "number: 1, pending: false, places: [(\"count_up\", \"tour.c\"",
        ),
        (
            insert(1, "main"),
            "bad_command: breakpoint 1 exists already",
        ),
        (
            insert(9, "nosuch"),
            "no_such_place: Function \"nosuch\" not defined.",
        ),
        (insert(9, "tour.c:9999"), "no_such_place: No "),
        (
            Command::BreakInsert(BreakSpec {
                pending: true,
                ..point(2, "later.c:7")
            }),
            "number: 2, pending: true",
        ),
        (
            Command::BreakInsert(BreakSpec {
                temporary: true,
                hardware: true,
                ..point(3, "twice")
            }),
            "\"twice\"",
        ),
        (
            Command::BreakInsert(BreakSpec {
                regex: true,
                ..point(4, "tour.c:^over")
            }),
            "\"overwrite\"",
        ),
        (
            Command::BreakInsert(BreakSpec {
                thread: Some(9),
                ..point(5, "main")
            }),
            "no_such_thing: no thread 9",
        ),
    ]
}

pub(crate) fn changed_breakpoints() -> Rows {
    let condition = |number, condition: &str| Command::BreakCondition {
        number,
        condition: Some(condition.to_owned()),
    };
    let no_such = "no_such_thing: no breakpoint 9";
    vec![
        (condition(1, "n == 1"), "Done"),
        (condition(1, "nosuch"), "gdb: No symbol \"nosuch\""),
        (condition(9, "1"), no_such),
        (
            Command::BreakIgnore {
                number: 4,
                count: 1,
            },
            "Done",
        ),
        (
            Command::BreakIgnore {
                number: 9,
                count: 1,
            },
            no_such,
        ),
        (
            Command::BreakEnable {
                number: 4,
                enabled: false,
            },
            "Done",
        ),
        (
            Command::BreakEnable {
                number: 9,
                enabled: false,
            },
            no_such,
        ),
        (
            Command::BreakCommands {
                number: 1,
                lines: vec!["print n".to_owned()],
            },
            "Done",
        ),
        (
            Command::BreakCommands {
                number: 9,
                lines: Vec::new(),
            },
            no_such,
        ),
        (delete(9), no_such),
        (
            catch(6, CatchEvent::Signal(vec!["SIGUSR1".to_owned()])),
            "number: 6",
        ),
        (
            catch(9, CatchEvent::Syscall(vec!["nosuch".to_owned()])),
            "gdb: Unknown syscall",
        ),
        (
            Command::Continue,
            "reason: Breakpoint { number: 1 }, frame: Some(Frame { level: 0, function: \"count_up\"",
        ),
        (Command::Breakpoints, "kind: \"hw breakpoint\""),
    ]
}

pub(crate) fn watched() -> Rows {
    let hit = "reason: Watchpoint(WatchHit { number: 7, expression: \"local\"";
    vec![
        (
            watch(7, "nosuch", WatchKind::Write),
            "gdb: No symbol \"nosuch\"",
        ),
        (set("local = 0"), "Done"),
        (watch(7, "local", WatchKind::Write), "number: 7"),
        (Command::Continue, hit),
        (Command::Continue, hit),
        (Command::Continue, hit),
        (
            Command::Continue,
            "WatchpointScope { number: 7, expression: \"local\" }",
        ),
        (delete(7), "no_such_thing: no breakpoint 7"),
        (watch(8, "global", WatchKind::Access), "number: 8"),
        (
            Command::Continue,
            "number: 8, expression: \"global\", old: Some(Value { text: \"5\"",
        ),
        (delete(8), "Done"),
    ]
}
