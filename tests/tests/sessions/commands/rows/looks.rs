//! Commands to stopped tasks: frames, values, memory, source, variable objects.

use super::*;
use sdm_debug::Command;

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
        (
            type_of("bytes", false),
            "Text(\"type = unsigned char [16]\")",
        ),
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
        (
            read("&bytes", 0),
            "bad_command: expected a length of at least 1 byte",
        ),
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
        (
            Command::Queues,
            "unsupported: the program has no MPI library that provides a debug library",
        ),
        (signals("SIGUSR1"), "stop: false, print: true, pass: true"),
        (signals("NOSUCH"), "gdb: no signal SIGNOSUCH"),
        (handle("SIGALRM"), "stop: false, print: true, pass: true"),
        (
            handle("SIGTRAP"),
            "unsupported: SIGTRAP is reserved for the debugger, so its handling cannot be changed",
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
    };
    let children = |name: &str| Command::VarChildren {
        name: name.to_owned(),
        from: 0,
        count: 9,
    };
    let assign = |name: &str, value: &str| Command::VarAssign {
        name: name.to_owned(),
        value: value.to_owned(),
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
        (assign("x", "1"), no_such),
        (remove("o"), "Done"),
        (remove("x"), no_such),
        (frame(0), "function: \"count_up\""),
    ]
}
