//! A hundred thousand nonsensical messages of a client: none of them ends the adapter, and no memory of them remains.

use sdm_tests::editor::Editor;
use sdm_tests::place::Place;
use serde_json::{Value, json};

/// Number of messages. With `--full` all are sent to the real program, for which the test runner allows a minute.
const MESSAGES: usize = 100_000;
/// Number of messages before the first measurement of memory.
const WARM: usize = 30_000;
/// Maximum growth of the memory until the end, in KiB: an allocator keeps some.
const GROWTH_KIB_MAX: u64 = 24 << 10;
/// Number of requests that are open at once.
const AT_ONCE: usize = 50;

/// Requests, each with the names of its arguments.
const REQUESTS: [(&str, &[&str]); 34] = [
    ("initialize", &["adapterID"]),
    ("launch", &["program"]),
    ("attach", &["target", "__sdmSession", "rank"]),
    ("configurationDone", &[]),
    ("threads", &[]),
    ("stackTrace", &["threadId", "startFrame", "levels"]),
    ("scopes", &["frameId"]),
    ("variables", &["variablesReference", "start", "count"]),
    ("evaluate", &["expression", "frameId", "context"]),
    ("setVariable", &["variablesReference", "name", "value"]),
    ("setExpression", &["expression", "frameId", "value"]),
    ("continue", &["threadId", "singleThread"]),
    ("next", &["threadId", "granularity"]),
    ("stepIn", &["threadId", "singleThread"]),
    ("stepOut", &["threadId"]),
    ("pause", &["threadId"]),
    ("setBreakpoints", &["source", "breakpoints", "lines"]),
    ("setFunctionBreakpoints", &["breakpoints"]),
    ("setDataBreakpoints", &["breakpoints"]),
    ("setInstructionBreakpoints", &["breakpoints"]),
    ("setExceptionBreakpoints", &["filters", "filterOptions"]),
    (
        "dataBreakpointInfo",
        &["variablesReference", "name", "frameId"],
    ),
    ("readMemory", &["memoryReference", "offset", "count"]),
    ("writeMemory", &["memoryReference", "data"]),
    (
        "disassemble",
        &["memoryReference", "instructionOffset", "instructionCount"],
    ),
    ("completions", &["text", "column"]),
    ("exceptionInfo", &["threadId"]),
    ("modules", &[]),
    ("loadedSources", &[]),
    ("gotoTargets", &["source", "line"]),
    ("goto", &["threadId", "targetId"]),
    ("cancel", &["requestId"]),
    ("sdm/ranks", &["frameId"]),
    ("frobnicate", &["what"]),
];

/// The same sequence each time.
struct Chance(u64);

impl Chance {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % limit as u64).expect("it is small")
    }

    /// A value that may be of the expected kind, or any other.
    fn value(&mut self) -> Value {
        match self.below(12) {
            0 => Value::Null,
            1 => json!(i64::MIN),
            2 => json!(u64::MAX),
            3 => json!(-1.5e300),
            4 => json!("[0-9] print x"),
            5 => json!("\u{0}\u{202e}{x}"),
            6 => {
                json!([{"line": self.below(20), "name": "main", "condition": "x", "dataId": "1:x"}])
            }
            7 => json!({"path": "/m.c", "name": 7}),
            8 => json!(self.below(2) == 1),
            9 => json!("repl"),
            10 => json!("0x10"),
            _ => json!(self.below(40)),
        }
    }

    fn request(&mut self) -> (&'static str, Value) {
        let (command, names) = REQUESTS[self.below(REQUESTS.len())];
        let mut arguments = json!({});
        for name in names {
            if self.below(8) > 0 {
                arguments[*name] = self.value();
            }
        }
        match self.below(50) {
            0 => (command, self.value()),
            _ => (command, arguments),
        }
    }
}

/// The memory that a process has, in KiB.
fn resident(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    let words = line.and_then(|line| line.split_whitespace().nth(1));
    words.and_then(|word| word.parse().ok()).expect("a number")
}

#[test]
fn a_hundred_thousand_malformed_messages_do_not_grow_memory() {
    let place = Place::new();
    let mut editor = Editor::new(&place);
    editor.launch(&json!({"emulate": 20, "threads": "classes", "stopAtEntry": true}));
    editor.ask("configurationDone", &Value::Null);
    editor.event("stopped");
    let mut chance = Chance(0x5d1);
    let mut warm = 0;
    let mut sent = 0;
    while sent < MESSAGES {
        for _ in 0..AT_ONCE {
            let (command, arguments) = chance.request();
            // Every tenth message is no request at all.
            match chance.below(10) {
                0 => {
                    let mut body = arguments.to_string().into_bytes();
                    let at = chance.below(body.len());
                    body[at] = u8::try_from(chance.below(256)).expect("a byte");
                    editor.write(format!("Content-Length: {}\r\n\r\n", body.len()).as_bytes());
                    editor.write(&body);
                }
                _ => {
                    editor.send_uncounted(command, &arguments);
                }
            }
            sent += 1;
        }
        // The adapter still answers, whatever it has received.
        let threads = editor.try_out("threads", &Value::Null);
        assert_eq!(threads["success"], true, "{threads}");
        if warm == 0 && sent >= WARM {
            warm = resident(editor.pid());
        }
    }
    let now = resident(editor.pid());
    assert!(
        now <= warm + GROWTH_KIB_MAX,
        "{warm} KiB after {WARM} messages, {now} KiB after {MESSAGES}"
    );
    editor.disconnect();
}
