//! An adapter under a test clock: the times at which the client is told of stops.

use std::time::{Duration, Instant};

use sdm_core::CommandId;
use sdm_debug::reply::{Backtrace, Frame, Stop, StopReason};
use sdm_debug::{Command, Reply};
use sdm_idset::IdSet;
use sdm_session::{Class, ClassAnswer, SessionEvent};
use serde_json::{Value, json};

use super::Adapter;
use crate::action::{Action, Opened};
use crate::frame::{Framed, Framer, framed};

/// An adapter with a session of four ranks.
struct Scene {
    adapter: Adapter,
    now: Instant,
    /// Commands that were sent, each with its tasks.
    sent: Vec<(CommandId, IdSet, Command)>,
    seq: i64,
}

fn stop(line: u32, reason: StopReason) -> Reply {
    let frame = Frame {
        level: 0,
        function: "solve".to_owned(),
        file: "m.c".to_owned(),
        path: "/m.c".to_owned(),
        line,
        module: String::new(),
        args: Vec::new(),
    };
    Reply::Stopped(Stop {
        reason,
        frame: Some(frame),
        inside: None,
        source: None,
    })
}

impl Scene {
    fn new(configuration: &Value) -> Self {
        let now = Instant::now();
        let mut scene = Self {
            adapter: Adapter::new(now),
            now,
            sent: Vec::new(),
            seq: 0,
        };
        scene.ask("initialize", &json!({}));
        scene.ask("launch", configuration);
        scene.come_to_main();
        scene.ask("configurationDone", &json!({}));
        scene
    }

    /// A scene of this client, whose ranks are on their way to `main`; returns the messages after the launch.
    fn starting(client: &str, configuration: &Value) -> (Self, Vec<Value>) {
        let now = Instant::now();
        let mut scene = Self {
            adapter: Adapter::new(now),
            now,
            sent: Vec::new(),
            seq: 0,
        };
        scene.ask("initialize", &json!({"clientID": client}));
        let said = scene.ask("launch", configuration);
        (scene, said)
    }

    fn come_to_main(&mut self) -> Vec<Value> {
        let id = self.of("start");
        let mut said = self.answer(id, "0-3", stop(1, StopReason::AtMain));
        said.extend(self.complete(id));
        said
    }

    fn ask(&mut self, command: &str, arguments: &Value) -> Vec<Value> {
        self.seq += 1;
        let request = json!({
            "seq": self.seq, "type": "request", "command": command, "arguments": arguments,
        });
        let bytes = framed(request.to_string().as_bytes());
        self.adapter.handle_bytes(self.now, &bytes);
        self.drain()
    }

    fn answer(&mut self, id: CommandId, tasks: &str, reply: Reply) -> Vec<Value> {
        let classes = vec![Class {
            tasks: tasks.parse().expect("a set"),
            answer: ClassAnswer::Reply(reply),
        }];
        let event = SessionEvent::Answer {
            id,
            classes,
            missing: Vec::new(),
            lost: IdSet::new(),
            late: false,
        };
        self.adapter.handle_event(self.now, event);
        self.drain()
    }

    fn complete(&mut self, id: CommandId) -> Vec<Value> {
        self.adapter
            .handle_event(self.now, SessionEvent::Complete { id });
        self.drain()
    }

    fn pass(&mut self, ms: u64) -> Vec<Value> {
        self.now += Duration::from_millis(ms);
        self.adapter.handle_timeout(self.now);
        self.drain()
    }

    /// The id of the last command with this name.
    fn of(&self, name: &str) -> CommandId {
        let mut sent = self.sent.iter().rev();
        let found = sent.find(|(_, _, command)| command.name() == name);
        found
            .unwrap_or_else(|| panic!("no {name} in {:?}", self.sent))
            .0
    }

    /// Answers the adapter's last request for stacks.
    fn stand(&mut self, tasks: &str) -> Vec<Value> {
        let id = self.of("backtrace");
        let stack = Backtrace {
            frames: Vec::new(),
            more: false,
            folded: 0,
        };
        self.answer(id, tasks, Reply::Backtrace(stack));
        self.complete(id)
    }

    fn drain(&mut self) -> Vec<Value> {
        while let Some(action) = self.adapter.poll_action() {
            match action {
                Action::Open(_) => {
                    let tasks = IdSet::all_below(4);
                    let start = Command::Start(sdm_debug::command::StartSpec::default());
                    self.adapter.handle_opened(Ok(Opened {
                        tasks: tasks.clone(),
                        begin: vec![(tasks, start)],
                        notes: Vec::new(),
                    }));
                }
                Action::Send {
                    ticket,
                    to,
                    command,
                    ..
                } => {
                    let id = CommandId(ticket.0 + 100);
                    self.adapter.handle_sent(ticket, id);
                    self.sent.push((id, to, *command));
                }
                _ => {}
            }
        }
        let mut messages = Vec::new();
        let mut framer = Framer::default();
        while let Some(bytes) = self.adapter.poll_output() {
            framer.handle_bytes(&bytes, &mut |framed| {
                let Framed::Body(body) = framed else {
                    panic!("a message of ours is framed");
                };
                messages.push(serde_json::from_slice(&body).expect("JSON"));
            });
        }
        messages
    }
}

/// The threads of the `stopped` events among messages, and whether each stops all.
fn stops(messages: &[Value]) -> Vec<(i64, bool)> {
    let stops = messages
        .iter()
        .filter(|message| message["event"] == "stopped");
    let body = |message: &Value| {
        let body = &message["body"];
        (
            body["threadId"].as_i64().expect("a number"),
            body["allThreadsStopped"] == true,
        )
    };
    stops.map(body).collect()
}

#[test]
fn stop_event_waits_briefly_for_other_ranks() {
    let mut scene = Scene::new(&json!({"program": "a", "ranks": 4, "threads": "classes"}));
    let run = scene.of("continue");
    let at_breakpoint = |line| stop(line, StopReason::Breakpoint { number: 1 });
    assert_eq!(stops(&scene.answer(run, "0", at_breakpoint(7))), []);
    assert_eq!(stops(&scene.pass(100)), []);
    assert_eq!(stops(&scene.answer(run, "1", at_breakpoint(7))), []);
    // No other task arrives for a while. The client is told of both at once, and that others run.
    scene.pass(149);
    assert!(
        scene
            .sent
            .iter()
            .all(|(_, _, command)| command.name() != "backtrace")
    );
    scene.pass(1);
    assert_eq!(stops(&scene.stand("0-1")), [(1, false)]);
    // When the last task arrives, the stop is reported without delay.
    scene.answer(run, "2-3", at_breakpoint(9));
    scene.complete(run);
    assert_eq!(stops(&scene.stand("2-3")), [(2, true)]);
}

/// While a task's stack is unknown the client would take all for stopped, and show that task elsewhere.
#[test]
fn all_threads_stopped_is_sent_after_the_last_stop() {
    let mut scene = Scene::new(&json!({"program": "a", "ranks": 4, "threads": "classes"}));
    let run = scene.of("continue");
    let at_breakpoint = |line| stop(line, StopReason::Breakpoint { number: 1 });
    scene.answer(run, "0-2", at_breakpoint(7));
    scene.pass(150);
    // A task arrives while the others are asked for their stacks.
    scene.answer(run, "3", at_breakpoint(7));
    scene.complete(run);
    assert_eq!(stops(&scene.stand("0-2")), [(1, false)]);
    assert_eq!(stops(&scene.stand("3")), [(1, true)]);
}

/// Ranks 0 to 2 of four hit a breakpoint, each a thread: the threads of the stops reported then, and once rank 3
/// stops.
fn stops_of_ranks(client: &str) -> [Vec<(i64, bool)>; 2] {
    let (mut scene, _) = Scene::starting(client, &json!({"program": "a", "threads": "ranks"}));
    scene.come_to_main();
    scene.ask("configurationDone", &json!({}));
    let run = scene.of("continue");
    let at_breakpoint = |line| stop(line, StopReason::Breakpoint { number: 1 });
    scene.answer(run, "0-2", at_breakpoint(7));
    scene.pass(150);
    let first = stops(&scene.stand("0-2"));
    scene.answer(run, "3", at_breakpoint(7));
    scene.complete(run);
    [first, stops(&scene.stand("3"))]
}

#[test]
fn ranks_that_stop_together_send_one_stop_event() {
    // nvim-dap resumes a thread that stops while another one is stopped.
    for client in ["neovim", "vimspector", ""] {
        let told = stops_of_ranks(client);
        assert_eq!(told, [vec![(1, false)], vec![(4, true)]], "{client}");
    }
    // VS Code only knows threads that were named, as long as some run.
    let each = vec![(1, false), (2, false), (3, false)];
    assert_eq!(stops_of_ranks("vscode"), [each, vec![(4, true)]]);
}

fn breakpoint_at(line: u32) -> Value {
    json!({"source": {"path": "/m.c"}, "breakpoints": [{"line": line}]})
}

/// The answer to the request with this number, among messages.
fn answer_to(messages: &[Value], seq: i64) -> Option<&Value> {
    let mut all = messages.iter();
    all.find(|message| message["request_seq"] == seq)
}

#[test]
fn initialized_event_precedes_the_stop_at_main() {
    let (mut scene, said) = Scene::starting("", &json!({"program": "a"}));
    assert!(
        said.iter().any(|it| it["event"] == "initialized"),
        "{said:?}"
    );
    // Requests wait for the programs meanwhile, but not for long.
    assert_eq!(
        scene.ask("setBreakpoints", &breakpoint_at(7)),
        Vec::<Value>::new()
    );
    let asked = scene.seq;
    scene.ask("configurationDone", &json!({}));
    assert_eq!(scene.pass(1999), Vec::<Value>::new());
    let said = scene.pass(1);
    let answer = answer_to(&said, asked).expect("it is answered");
    let point = &answer["body"]["breakpoints"][0];
    let expect = json!({"id": 1, "verified": false, "message": "pending until the ranks start"});
    assert_eq!(*point, expect);
    assert_eq!(answer_to(&said, asked + 1).expect("too")["success"], true);
    let said = scene.come_to_main();
    assert!(
        said.iter().all(|it| it["event"] != "initialized"),
        "{said:?}"
    );
    // The programs run once their breakpoint is set.
    let names = |scene: &Scene| -> Vec<&str> {
        scene
            .sent
            .iter()
            .map(|(_, _, command)| command.name())
            .collect()
    };
    assert_eq!(names(&scene), ["start", "break_insert"]);
    let id = scene.of("break_insert");
    scene.answer(id, "0-3", Reply::Done);
    scene.complete(id);
    assert_eq!(names(&scene), ["start", "break_insert", "mi", "continue"]);
    // The client hears where the program has a source of this name.
    let id = scene.of("mi");
    let result = r#"files=[{filename="m.c",fullname="/built/m.c"}]"#.to_owned();
    scene.answer(
        id,
        "0",
        Reply::Mi {
            result,
            printed: String::new(),
        },
    );
    let said = scene.complete(id);
    let changed = said.iter().find(|it| it["event"] == "breakpoint");
    let message =
        "the program was compiled with m.c at /built/m.c: map that folder with `sourceFileMap`";
    let expect = json!({"id": 1, "verified": false, "message": message});
    assert_eq!(changed.expect("an event")["body"]["breakpoint"], expect);
}

#[test]
fn breakpoint_request_before_main_is_answered_at_main() {
    let (mut scene, _) = Scene::starting("", &json!({"program": "a"}));
    scene.ask("setBreakpoints", &breakpoint_at(7));
    let asked = scene.seq;
    scene.come_to_main();
    let id = scene.of("break_insert");
    scene.answer(id, "0-3", Reply::Done);
    scene.complete(id);
    // The breakpoint has no location, so one rank searches for the file.
    let said = scene.complete(scene.of("mi"));
    assert!(answer_to(&said, asked).is_some(), "{said:?}");
}

#[test]
fn step_names_missing_ranks_after_one_second() {
    let launch = json!({"program": "a", "threads": "classes", "stopAtEntry": true});
    let mut scene = Scene::new(&launch);
    assert_eq!(stops(&scene.stand("0-3")), [(1, true)]);
    scene.ask("next", &json!({"threadId": 1}));
    let run = scene.of("step");
    scene.answer(run, "0-2", stop(8, StopReason::StepEnd));
    assert_eq!(scene.pass(999), Vec::<Value>::new());
    let messages = scene.pass(1);
    let text = &messages[0]["body"]["output"];
    assert_eq!(text, "next: [0-2] have arrived, [3] still run\n");
    assert_eq!(stops(&scene.stand("0-2")), [(1, false)]);
}

#[test]
fn step_of_one_class_names_the_ranks_not_moved() {
    let launch = json!({"program": "a", "threads": "classes", "stopAtEntry": true});
    let mut scene = Scene::new(&launch);
    scene.stand("0-3");
    scene.ask("continue", &json!({"threadId": 1}));
    let run = scene.of("continue");
    let at_breakpoint = |line| stop(line, StopReason::Breakpoint { number: 1 });
    scene.answer(run, "0-1", at_breakpoint(7));
    scene.answer(run, "2-3", at_breakpoint(9));
    scene.complete(run);
    // The places differ only in their stops.
    assert_eq!(stops(&scene.stand("0-3")), [(1, true)]);
    scene.ask("next", &json!({"threadId": 2, "singleThread": true}));
    let messages = scene.pass(1000);
    let text = &messages[0]["body"]["output"];
    assert_eq!(
        text,
        "next: [2-3] still run, [0-1] are stopped and were not stepped\n"
    );
}

#[test]
fn pause_that_overtook_a_continue_is_repeated() {
    let mut scene = Scene::new(&json!({"program": "a", "threads": "classes"}));
    let run = scene.of("continue");
    scene.ask("pause", &json!({"threadId": 1}));
    let first = scene.of("interrupt");
    scene.answer(first, "0-3", Reply::Done);
    scene.complete(first);
    // All tasks have answered, and are still considered running.
    let second = scene.of("interrupt");
    assert_ne!(first, second);
    scene.answer(run, "0-3", stop(5, StopReason::Interrupted));
    scene.complete(run);
    scene.answer(second, "0-3", Reply::Done);
    scene.complete(second);
    assert_eq!(scene.of("interrupt"), second);
    assert_eq!(stops(&scene.stand("0-3")), [(1, true)]);
}

#[test]
fn cancelled_stack_trace_request_is_still_answered() {
    let launch = json!({"program": "a", "threads": "classes", "stopAtEntry": true});
    let mut scene = Scene::new(&launch);
    scene.stand("0-3");
    assert!(scene.ask("stackTrace", &json!({"threadId": 1})).is_empty());
    let asked = scene.seq;
    let (id, _, _) = scene.sent.last().expect("it was asked").clone();
    let said = scene.ask("cancel", &json!({"requestId": asked}));
    assert_eq!((said.len(), &said[0]["success"]), (1, &json!(true)));
    let result = "^done,stack=[]".to_owned();
    let printed = String::new();
    scene.answer(id, "0", Reply::Mi { result, printed });
    let said = scene.complete(id);
    assert_eq!(
        (&said[0]["request_seq"], &said[0]["success"]),
        (&json!(asked), &json!(true))
    );
}

#[test]
fn console_run_before_the_configuration_is_refused() {
    let (mut scene, _) = Scene::starting("vscode", &json!({"program": "a", "ranks": 4}));
    scene.come_to_main();
    let said = scene.ask("evaluate", &json!({"expression": "run", "context": "repl"}));
    let text = json!(said).to_string();
    assert!(
        text.contains("evaluate: `configurationDone` must come first"),
        "{text}"
    );
}
