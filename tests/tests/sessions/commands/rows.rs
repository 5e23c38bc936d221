//! What is asked, in order, and what stands in the answer. The program is tests/fixtures/tour.c.

use sdm_debug::Command;
use sdm_debug::command::{
    BacktraceSpec, BreakSpec, CatchEvent, CatchSpec, FrameSelect, ProbeSpec, StepKind, ValueFormat,
    WatchKind, WatchSpec,
};

pub(crate) type Rows = Vec<(Command, &'static str)>;

pub(crate) fn set(expression: &str) -> Command {
    Command::SetVariable {
        expression: expression.to_owned(),
    }
}

fn evaluate(expression: &str) -> Command {
    Command::Evaluate {
        expression: expression.to_owned(),
    }
}

fn point(number: u32, location: &str) -> BreakSpec {
    BreakSpec {
        number,
        location: location.to_owned(),
        ..BreakSpec::default()
    }
}

fn insert(number: u32, location: &str) -> Command {
    Command::BreakInsert(point(number, location))
}

fn delete(number: u32) -> Command {
    Command::BreakDelete { number }
}

fn catch(number: u32, event: CatchEvent) -> Command {
    Command::CatchInsert(CatchSpec::new(number, event))
}

fn watch(number: u32, expression: &str, kind: WatchKind) -> Command {
    Command::WatchInsert(WatchSpec::new(number, expression, kind))
}

fn step(kind: StepKind, count: u32) -> Command {
    Command::Step { kind, count }
}

fn console(line: &str) -> Command {
    Command::Console {
        line: line.to_owned(),
    }
}

fn mi(line: &str) -> Command {
    Command::Mi {
        line: line.to_owned(),
    }
}

fn frame(level: u32) -> Command {
    Command::SelectFrame(FrameSelect::Level(level))
}

pub(crate) fn before_the_start() -> Rows {
    let not_started = "not_running: not started";
    vec![
        (Command::Status, "Status(Absent)"),
        (Command::Usage, not_started),
        (Command::Continue, not_started),
        (Command::Interrupt, not_started),
        (Command::Locals, not_started),
        (evaluate("1"), not_started),
        (insert(1, "main"), not_started),
    ]
}

pub(crate) fn breakpoints() -> Rows {
    vec![
        (
            insert(1, "count_up"),
            "number: 1, pending: false, places: [(\"count_up\", \"tour.c\"",
        ),
        (
            insert(1, "main"),
            "bad_command: breakpoint 1 is there already",
        ),
        (insert(9, "nosuch"), "gdb: Function \"nosuch\" not defined."),
        (insert(9, "tour.c:9999"), "gdb: No "),
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

pub(crate) fn stacks() -> Rows {
    let bt = |limit| {
        Command::Backtrace(BacktraceSpec {
            limit,
            args: true,
            full: false,
        })
    };
    vec![
        (bt(0), "name: \"n\", value: Value { text: \"1\""),
        (bt(1), "more: true"),
        (Command::Stacks { full: false }, "function: \"main\""),
        (
            Command::Probe(ProbeSpec {
                compare: false,
                waits: true,
            }),
            "function: \"count_up\"",
        ),
        (Command::Stacks { full: true }, "function: \"count_up\""),
        (
            Command::Arguments,
            "name: \"n\", value: Value { text: \"1\"",
        ),
        (Command::Locals, "name: \"local\""),
        (frame(1), "function: \"main\""),
        (Command::Locals, "name: \"second\""),
        (
            Command::SelectFrame(FrameSelect::Move(-1)),
            "function: \"count_up\"",
        ),
        (
            Command::SelectFrame(FrameSelect::Current),
            "function: \"count_up\"",
        ),
        (frame(9), "no_such_thing: no frame 9"),
        (Command::Threads, "number: 1"),
        (
            Command::SelectThread { number: 1 },
            "function: \"count_up\"",
        ),
        (
            Command::SelectThread { number: 9 },
            "no_such_thing: no thread 9",
        ),
    ]
}

fn print(format: &str, expression: &str) -> Command {
    Command::Print {
        format: format.to_owned(),
        expression: expression.to_owned(),
    }
}

pub(crate) fn values() -> Rows {
    let call = |expression: &str| Command::Call {
        expression: expression.to_owned(),
    };
    let type_of = |expression: &str, full| Command::TypeOf {
        expression: expression.to_owned(),
        full,
    };
    vec![
        (evaluate("n + 41"), "text: \"42\""),
        (
            evaluate("nosuch"),
            "gdb: No symbol \"nosuch\" in current context.",
        ),
        (
            evaluate("*(int *) 0"),
            "gdb: Cannot access memory at address 0x0",
        ),
        (evaluate("1 +"), "gdb: A syntax error"),
        (set("global = 5"), "Done"),
        (evaluate("global"), "text: \"5\""),
        (set("nosuch = 5"), "gdb: No symbol \"nosuch\""),
        (
            set("*(int *) 0 = 5"),
            "gdb: Cannot access memory at address 0x0",
        ),
        (print("", "global"), "Value { text: \"5\""),
        (print("", "&global"), "text: \"(int *) 0x5555"),
        (print("x", "$$ + 10"), "Text(\"0xf\")"),
        (print("", "$$2 + $"), "text: \"20\""),
        (print("", "$9"), "gdb: History has not yet reached $9."),
        (print("", "nosuch"), "gdb: No symbol \"nosuch\""),
        (
            print("", "*(int *) 0"),
            "gdb: Cannot access memory at address 0x0",
        ),
        (call("add (40, 2)"), "text: \"42\""),
        (evaluate("$ - $$"), "text: \"22\""),
        (call("nosuch ()"), "gdb: No symbol \"nosuch\""),
        (type_of("bytes", false), "Text(\"unsigned char [16]\")"),
        (type_of("struct inner", true), "int number;"),
        (type_of("nosuch", true), "gdb: No symbol \"nosuch\""),
    ]
}

pub(crate) fn memory() -> Rows {
    let read = |address: &str, length| Command::MemoryRead {
        address: address.to_owned(),
        length,
    };
    let write = |address: &str, bytes: &[u8]| Command::MemoryWrite {
        address: address.to_owned(),
        bytes: bytes.to_vec(),
    };
    let registers = |name: &str| Command::Registers {
        names: vec![name.to_owned()],
        format: ValueFormat::Hexadecimal,
    };
    let disassemble = |address: &str| Command::Disassemble {
        address: Some(address.to_owned()),
    };
    vec![
        (read("&bytes", 5), "bytes: [1, 2, 3, 4, 255]"),
        (read("0", 8), "gdb: Unable to read memory"),
        (read("nosuch", 8), "gdb: No symbol \"nosuch\""),
        (read("&bytes", 0), "bad_command: no bytes were asked for"),
        (read("&bytes", u32::MAX), "limit: "),
        (write("&bytes", &[9, 8]), "Done"),
        (read("&bytes", 3), "bytes: [9, 8, 3]"),
        (write("0", &[1]), "gdb: "),
        (write("&bytes", &[]), "bad_command: "),
        (
            registers("pc"),
            "name: \"rip\", value: Value { text: \"0x5555",
        ),
        (registers("nosuch"), "no_such_thing: no register nosuch"),
        (disassemble("&add"), "function: \"add\", offset: 0"),
        (disassemble("nosuch"), "gdb: No symbol \"nosuch\""),
    ]
}

pub(crate) fn source() -> Rows {
    let list = |what: &str| Command::List {
        what: what.to_owned(),
    };
    let signals = |name: &str| Command::Signals {
        names: vec![name.to_owned()],
    };
    let handle = |name: &str| Command::SignalHandle {
        names: vec![name.to_owned()],
        stop: None,
        print: Some(true),
        pass: None,
    };
    vec![
        (list("add"), "static int add(int left, int right)"),
        (list("nosuch"), "gdb: Function \"nosuch\" not defined."),
        (list("9999"), "gdb: "),
        (Command::Libraries, "libc.so.6"),
        (signals("SIGUSR1"), "stop: false, print: true, pass: true"),
        (signals("NOSUCH"), "gdb: no signal SIGNOSUCH"),
        (handle("SIGALRM"), "stop: false, print: true, pass: true"),
        (
            handle("SIGTRAP"),
            "unsupported: SIGTRAP is the debugger's own",
        ),
        (console("echo hello\\n"), "Text(\"hello\\n\")"),
        (console("nosuch"), "gdb: Undefined command: \"nosuch\""),
        (mi("-stack-info-depth"), "result: \"^done,depth=\\\"2\\\"\""),
        (mi("-no-such"), "gdb: Undefined MI command: no-such"),
        (mi("print 1"), "bad_command: "),
    ]
}

pub(crate) fn objects() -> Rows {
    let create = |name: &str, expression: &str| Command::VarCreate {
        name: name.to_owned(),
        expression: expression.to_owned(),
        floating: false,
    };
    let children = |name: &str| Command::VarChildren {
        name: name.to_owned(),
        from: 0,
        count: 9,
    };
    let format = |name: &str| Command::VarFormat {
        name: name.to_owned(),
        format: ValueFormat::Hexadecimal,
    };
    let assign = |name: &str, value: &str| Command::VarAssign {
        name: name.to_owned(),
        value: value.to_owned(),
    };
    let update = |name: &str| Command::VarUpdate {
        name: name.to_owned(),
    };
    let remove = |name: &str| Command::VarDelete {
        name: name.to_owned(),
    };
    let no_such = "no_such_thing: no variable object x";
    vec![
        (frame(1), "function: \"main\""),
        (create("o", "outer"), "type_name: \"struct outer\""),
        (create("p", "nosuch"), "gdb: "),
        (create("o", "outer"), "bad_command: "),
        (children("o"), "expression: \"ratios\""),
        (children("o.first"), "name: \"o.first.number\""),
        (children("x"), no_such),
        (assign("o.first.number", "255"), "text: \"255\""),
        (assign("o.first.number", "nosuch"), "gdb: "),
        (format("o.first.number"), "text: \"0xff\""),
        (format("x"), no_such),
        (set("outer.first.number = 3"), "Done"),
        (
            update("o"),
            "name: \"o.first.number\", value: Some(Value { text: \"0x3\"",
        ),
        (update("x"), no_such),
        (remove("o"), "Done"),
        (remove("x"), no_such),
        (frame(0), "function: \"count_up\""),
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
        (Command::Backtrace(BacktraceSpec::default()), running),
        (Command::Continue, "already_running: already running"),
        (Command::Finish, "already_running: already running"),
        (stdin(0, b"one\ntwo\n", false), "Done"),
        (stdin(8, b"three\n", true), "Done"),
        (insert(11, "add"), "number: 11"),
        (Command::Breakpoints, "number: 11"),
        (Command::Status, "Status(Running)"),
        (Command::Usage, "Usage(Usage { resident_bytes: "),
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
    let of_core = "unsupported: a core file: no ";
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
