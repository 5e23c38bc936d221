//! Every query has an answer, and equal tasks give equal answers.

use sdm_debug::command::{CatchEvent, CatchSpec, ProbeSpec, ValueFormat, WatchKind, WatchSpec};

use sdm_debug::probe::ArgumentRole;

use super::*;

const SCENARIO: &str = "\
[all]
stack = main halo.c:142 > solve halo.c:114
value step = 7
continue = 1ms stop SIGUSR2
";

/// Sends a command to both tasks, which are stopped at main, and returns their common answer.
fn both(bench: &mut Bench, command: Command) -> String {
    let id = bench.ask("0-1", command.clone());
    bench.run(1_000);
    let [one, other] = [0, 1].map(|task| bench.answers[&(id, task)].clone());
    assert_eq!(one, other, "{command:?}");
    match one {
        Ok(reply) => format!("{reply:?}"),
        Err(failure) => format!("{}: {}", failure.code.name(), failure.text),
    }
}

fn text(text: &str) -> String {
    text.to_owned()
}

/// Commands that set, change and list breakpoints, with the expected answers.
fn points() -> Vec<(Command, &'static str)> {
    let number = 2;
    vec![
        (
            Command::WatchInsert(WatchSpec::new(1, "step", WatchKind::Write)),
            "number: 1",
        ),
        (
            Command::CatchInsert(CatchSpec::new(3, CatchEvent::Syscall(vec![text("write")]))),
            "number: 3",
        ),
        (
            Command::BreakInsert(BreakSpec {
                number,
                location: text("solve"),
                ..BreakSpec::default()
            }),
            "number: 2",
        ),
        (
            Command::BreakCondition {
                number,
                condition: Some(text("step > 3")),
            },
            "Done",
        ),
        (Command::BreakIgnore { number, count: 4 }, "Done"),
        (
            Command::BreakCommands {
                number,
                lines: vec![text("bt")],
            },
            "Done",
        ),
        (
            Command::BreakIgnore {
                number: 9,
                count: 4,
            },
            "no_such_thing: ",
        ),
        (Command::Breakpoints, "what: \"syscall\""),
        (Command::Breakpoints, "condition: Some(\"step > 3\")"),
        (Command::BreakDelete { number: 1 }, "Done"),
        (Command::BreakDelete { number: 1 }, "no_such_thing: "),
    ]
}

/// Commands for values, memory, registers, instructions, source lines, libraries and signals, with the expected
/// answers.
fn looks() -> Vec<(Command, &'static str)> {
    let read = |address: &str, length| Command::MemoryRead {
        address: text(address),
        length,
    };
    let list = |what: &str| Command::List { what: text(what) };
    let signals = |name: &str| Command::Signals {
        names: vec![text(name)],
    };
    let registers = |names: &[&str]| Command::Registers {
        names: names.iter().map(|name| text(name)).collect(),
        format: ValueFormat::Natural,
    };
    let expression = || text("step + 1");
    vec![
        (
            Command::Call {
                expression: expression(),
            },
            "text: \"8\"",
        ),
        (
            Command::TypeOf {
                expression: expression(),
                full: false,
            },
            "type = int",
        ),
        (read("&step", 3), "bytes: [0, 1, 2]"),
        (read("0", 3), "gdb: Unable to read memory"),
        (read("&step", 0), "bad_command: "),
        (read("&step", u32::MAX), "limit: "),
        (read("&nosuch", 3), "gdb: No symbol"),
        (
            Command::MemoryWrite {
                address: text("&step"),
                bytes: vec![1],
            },
            "Done",
        ),
        (registers(&[]), "name: \"sp\""),
        (registers(&["$pc"]), "0x401000"),
        (registers(&["xmm0"]), "no_such_thing: "),
        (
            Command::Disassemble { address: None },
            "function: \"solve\", offset: 8",
        ),
        (list(""), "first: 109"),
        (list(""), "first: 119"),
        (list("halo.c:40"), "first: 35"),
        (list("-"), "first: 25"),
        (list("nosuch"), "gdb: "),
        (Command::Libraries, "libc.so.6"),
        (signals("SIGUSR1"), "stop: false"),
        (signals("NOSUCH"), "gdb: no signal NOSUCH"),
        (
            Command::Mi {
                line: text("-thread-info"),
            },
            "^done",
        ),
    ]
}

/// Commands that assign, or move a task on or back, and those for variable objects, with the expected answers.
fn moves() -> Vec<(Command, &'static str)> {
    let name = || text("o");
    let location = || text("solve");
    let expression = text("step = 9");
    vec![
        (
            Command::VarCreate {
                name: name(),
                expression: text("step"),
            },
            "text: \"7\"",
        ),
        (
            Command::VarChildren {
                name: name(),
                from: 0,
                count: 9,
            },
            "children: []",
        ),
        (Command::SetVariable { expression }, "Done"),
        (
            Command::VarAssign {
                name: name(),
                value: text("3"),
            },
            "text: \"3\"",
        ),
        (Command::VarDelete { name: name() }, "Done"),
        (Command::VarDelete { name: name() }, "no_such_thing: "),
        (Command::Return { value: None }, "function: \"main\""),
        (Command::Return { value: None }, "gdb: "),
        (Command::Until { location: None }, "Stopped"),
        (
            Command::Advance {
                location: location(),
            },
            "Stopped",
        ),
        (
            Command::Jump {
                location: location(),
            },
            "Stopped",
        ),
        (Command::ContinuePast { count: 2 }, "Stopped"),
        (Command::ContinueSignal { signal: text("0") }, "Stopped"),
        (Command::ReverseContinue, "Stopped"),
        (
            Command::ReverseStep {
                kind: StepKind::Over,
                count: 1,
            },
            "Stopped",
        ),
    ]
}

#[test]
fn probe_reports_changes_since_the_last_probe() {
    let scenario = "stack = main m.c:9 > halo h.c:60 > MPI_Recv h.c:60\nlocal i = 3\nvalue source = {rank}\n\
                    continue = never\n";
    let mut bench = Bench::started(scenario, "0-1");
    let probe = |bench: &mut Bench, compare, waits| {
        let id = bench.ask("1", Command::Probe(ProbeSpec { compare, waits }));
        let Ok(Reply::Probe(probe)) = bench.answers[&(id, 1)].clone() else {
            panic!("{:?}", bench.answers[&(id, 1)]);
        };
        *probe
    };
    let first = probe(&mut bench, false, true);
    assert_eq!((first.inner_changed, first.outer_changed), (None, None));
    let call = first.waits.unwrap().call.unwrap();
    assert_eq!(
        (&*call.function, &*call.place.function),
        ("MPI_Recv", "halo")
    );
    let [source] = &call.arguments[..] else {
        panic!("{call:?}");
    };
    assert_eq!(
        (source.role, source.number),
        (ArgumentRole::Source, Some(1))
    );
    assert_eq!(probe(&mut bench, true, false).inner_changed, Some(false));
    let expression = text("i = 4");
    bench.ask("1", Command::SetVariable { expression });
    let changed = probe(&mut bench, true, false);
    assert_eq!((changed.inner_changed, changed.waits), (Some(true), None));
    bench.ask("1", Command::Continue);
    let running = probe(&mut bench, true, true);
    assert_eq!((running.stacks, running.inner_changed), (None, None));
    assert_eq!(running.process.unwrap().letter, 'S');
}

#[test]
fn every_breakpoint_query_and_step_of_the_fake_gdb_is_answered() {
    let mut bench = Bench::started(SCENARIO, "0-1");
    for (command, part) in points().into_iter().chain(looks()).chain(moves()) {
        let answer = both(&mut bench, command.clone());
        assert!(answer.contains(part), "{command:?}: {part:?} in {answer}");
    }
}
