//! What a person at an editor waits for when 10,000 ranks have stopped: the list of threads and the call stack.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command as Process, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use sdm_benches::table::Table;
use sdm_core::CommandId;
use sdm_dap::frame::{Framed, Framer, framed};
use sdm_dap::{Action, Adapter, Opened};
use sdm_debug::reply::{Backtrace, Frame, Stop, StopReason, Value as Text, Variable};
use sdm_debug::{Command, Reply};
use sdm_idset::{IdSet, TaskId};
use sdm_session::{Class, ClassAnswer, SessionEvent};
use serde_json::{Value, json};

/// The frames of each stack.
const DEPTH: u32 = 20;
/// The variables of each frame.
const VARIABLES: u32 = 10;

/// An editor at ten thousand ranks
#[derive(clap::Parser)]
struct Arguments {
    /// How many ranks
    #[arg(long, default_value_t = 10_000)]
    ranks: u32,
    /// In how many places they stop
    #[arg(long, default_values_t = [1, 64, 1000])]
    places: Vec<u32>,
    /// How often each is measured; the median counts
    #[arg(long, default_value_t = 9)]
    times: usize,
}

fn main() -> Result<()> {
    let arguments: Arguments = clap::Parser::parse();
    let ranks = arguments.ranks;
    let head = [
        "places",
        "threads",
        "call stack, ms",
        "bytes: stop",
        "bytes: threads",
        "bytes: call stack and variables",
    ];
    let title = format!(
        "{ranks} ranks: from the tree's answer to the filled call stack, in the adapter alone"
    );
    let mut table = Table::new("editor", title, &head);
    for places in &arguments.places {
        let mut looks = Vec::new();
        for _ in 0..arguments.times.max(1) {
            looks.push(Scene::begin(ranks, *places)?.look()?);
        }
        looks.sort_by_key(|look| look.took);
        let look = &looks[looks.len() / 2];
        table.row(vec![
            places.to_string(),
            look.threads.to_string(),
            format!("{:.1}", look.took.as_secs_f64() * 1e3),
            look.bytes[0].to_string(),
            look.bytes[1].to_string(),
            look.bytes[2].to_string(),
        ]);
    }
    table.finish()?;
    let head = ["places", "all have stopped, ms", "call stack, ms"];
    let title = format!(
        "{ranks} emulated ranks under `sdm dap`: from `configurationDone` to the stop, and from there"
    );
    let mut table = Table::new("editor_emulated", title, &head);
    for places in &arguments.places {
        let (stopped, filled) = Editor::measure(ranks, *places)?;
        table.row(vec![
            places.to_string(),
            format!("{:.0}", stopped.as_secs_f64() * 1e3),
            format!("{:.1}", filled.as_secs_f64() * 1e3),
        ]);
    }
    table.finish()
}

/// What a look at a stop has cost.
struct Look {
    took: Duration,
    threads: usize,
    /// Of the events of the stop, of the threads, of the stack with its variables.
    bytes: [usize; 3],
}

/// An adapter whose tasks run, and places where they will stop.
struct Scene {
    adapter: Adapter,
    now: Instant,
    seq: i64,
    classes: Vec<(IdSet, u32)>,
    /// The commands that were sent and not answered.
    sent: Vec<(CommandId, Command)>,
    messages: Vec<(usize, Value)>,
}

impl Scene {
    fn begin(ranks: u32, places: u32) -> Result<Self> {
        let now = Instant::now();
        // Neighbours are in different places: no set is a single range.
        let class = |place: u32| {
            (place..ranks)
                .step_by(places as usize)
                .map(TaskId)
                .collect()
        };
        let mut scene = Self {
            adapter: Adapter::new(now),
            now,
            seq: 0,
            classes: (0..places).map(|place| (class(place), place + 1)).collect(),
            sent: Vec::new(),
            messages: Vec::new(),
        };
        scene.ask("initialize", &json!({"supportsInvalidatedEvent": true}));
        scene.ask("launch", &json!({"emulate": ranks}));
        let all = IdSet::all_below(ranks);
        scene.adapter.handle_opened(Ok(Opened {
            tasks: all.clone(),
            begin: vec![(all.clone(), Command::Continue)],
            notes: Vec::new(),
        }));
        scene.drain();
        scene.answer(vec![(all, Reply::Stopped(stop(1)))])?;
        scene.ask("configurationDone", &json!({}));
        Ok(scene)
    }

    fn look(mut self) -> Result<Look> {
        let stops = self.classes.iter();
        let stops = stops.map(|(tasks, line)| (tasks.clone(), Reply::Stopped(stop(*line))));
        self.answer(stops.collect())?;
        let asked = self.sent.last().map(|(_, command)| command.name());
        ensure!(asked == Some("backtrace"), "{asked:?}");
        let stacks = self.classes.iter();
        let stacks: Vec<_> = stacks
            .map(|(tasks, line)| (tasks.clone(), Reply::Backtrace(stack(*line))))
            .collect();
        self.messages.clear();
        // The tree has answered.
        let began = Instant::now();
        self.answer(stacks)?;
        let stopped = self.bytes();
        self.ask("threads", &json!({}));
        let threads = self.last("threads")?["threads"]
            .as_array()
            .map_or(0, Vec::len);
        let listed = self.bytes();
        self.ask("stackTrace", &json!({"threadId": 1, "levels": DEPTH}));
        let record = (0..DEPTH).map(|level| format!("frame={{level=\"{level}\",addr=\"0x5555\"}}"));
        let result = format!("^done,stack=[{}]", record.collect::<Vec<_>>().join(","));
        let printed = String::new();
        self.answer(vec![(
            IdSet::single(TaskId(0)),
            Reply::Mi { result, printed },
        )])?;
        let frame = self.last("stackTrace")?["stackFrames"][0]["id"].clone();
        self.ask("scopes", &json!({"frameId": frame}));
        let scope = self.last("scopes")?["scopes"][0]["variablesReference"].clone();
        self.ask("variables", &json!({"variablesReference": scope}));
        // Each rank has another value.
        let tasks = self.classes[0].0.clone();
        let values = tasks.iter().take(1000);
        let values = values.map(|task| (IdSet::single(task), Reply::Variables(variables(task))));
        self.answer(values.collect())?;
        self.last("variables")?;
        Ok(Look {
            took: began.elapsed(),
            threads,
            bytes: [stopped, listed, self.bytes()],
        })
    }

    /// The bytes of what was said since this was last asked.
    fn bytes(&mut self) -> usize {
        let bytes = self.messages.iter().map(|(bytes, _)| *bytes).sum();
        for (bytes, _) in &mut self.messages {
            *bytes = 0;
        }
        bytes
    }

    /// The body of the last response to such a request.
    fn last(&self, command: &str) -> Result<Value> {
        let mut messages = self.messages.iter().rev();
        let found = messages.find(|(_, message)| message["command"] == command);
        let (_, message) = found.with_context(|| format!("no answer to {command}"))?;
        ensure!(message["success"] == true, "{message}");
        Ok(message["body"].clone())
    }

    fn ask(&mut self, command: &str, arguments: &Value) {
        self.seq += 1;
        let request = json!({
            "seq": self.seq, "type": "request", "command": command, "arguments": arguments,
        });
        let bytes = framed(request.to_string().as_bytes());
        self.adapter.handle_bytes(self.now, &bytes);
        self.drain();
    }

    /// Answers the last command; those before it, which select a frame, are done.
    fn answer(&mut self, replies: Vec<(IdSet, Reply)>) -> Result<()> {
        let (id, _) = self.sent.pop().context("a command was sent")?;
        for (id, _) in std::mem::take(&mut self.sent) {
            let complete = SessionEvent::Complete { id };
            self.adapter.handle_event(self.now, complete);
        }
        let classes = replies.into_iter().map(|(tasks, reply)| Class {
            tasks,
            answer: ClassAnswer::Reply(reply),
        });
        let event = SessionEvent::Answer {
            id,
            classes: classes.collect(),
            missing: Vec::new(),
            lost: IdSet::new(),
            late: false,
        };
        self.adapter.handle_event(self.now, event);
        let complete = SessionEvent::Complete { id };
        self.adapter.handle_event(self.now, complete);
        self.drain();
        Ok(())
    }

    fn drain(&mut self) {
        while let Some(action) = self.adapter.poll_action() {
            if let Action::Send {
                ticket, command, ..
            } = action
            {
                let id = CommandId(ticket.0);
                self.adapter.handle_sent(ticket, id);
                self.sent.push((id, *command));
            }
        }
        let mut framer = Framer::default();
        while let Some(bytes) = self.adapter.poll_output() {
            let messages = &mut self.messages;
            framer.handle_bytes(&bytes, &mut |message| {
                if let Framed::Body(body) = message {
                    let message = serde_json::from_slice(&body).unwrap_or_default();
                    messages.push((bytes.len(), message));
                }
            });
        }
    }
}

fn frame(level: u32, line: u32) -> Frame {
    Frame {
        level,
        function: format!("function_{level}"),
        file: "solve.c".to_owned(),
        path: "/home/someone/project/src/solve.c".to_owned(),
        line,
        module: String::new(),
        args: Vec::new(),
    }
}

fn stop(line: u32) -> Stop {
    Stop {
        reason: StopReason::Breakpoint { number: 1 },
        frame: Some(frame(0, line)),
        inside: None,
        source: None,
    }
}

fn stack(line: u32) -> Backtrace {
    Backtrace {
        frames: (0..DEPTH).map(|level| frame(level, line)).collect(),
        more: false,
        folded: 0,
    }
}

fn variables(task: TaskId) -> Vec<Variable> {
    let variable = |number: u32| Variable {
        name: format!("value_{number}"),
        value: Text {
            text: format!("{}", task.0 * number),
            cut: None,
        },
    };
    (0..VARIABLES).map(variable).collect()
}

/// `sdm dap` beside this program, as an editor sees it.
struct Editor {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    seq: i64,
}

impl Editor {
    /// How long it takes until all have stopped at their beginning, and from there to the filled call stack.
    fn measure(ranks: u32, places: u32) -> Result<(Duration, Duration)> {
        let path = std::env::temp_dir().join(format!("sdm-editor-{}", std::process::id()));
        let stacks =
            (0..places).map(|line| format!("stack = main m.c:9 > solve s.c:{}\n", line + 1));
        std::fs::write(&path, format!("[all]\n{}", stacks.collect::<String>()))?;
        let program = std::env::current_exe()?.with_file_name("sdm");
        let mut process = Process::new(program);
        process
            .arg("dap")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut child = process.spawn()?;
        let input = child.stdin.take().context("piped")?;
        let output = BufReader::new(child.stdout.take().context("piped")?);
        let mut editor = Self {
            child,
            input,
            output,
            seq: 0,
        };
        let options = ["--tasks-per-server", "200", "--scenario"].map(str::to_owned);
        let options: Vec<_> = options
            .into_iter()
            .chain([path.display().to_string()])
            .collect();
        editor.ask("initialize", &json!({}))?;
        editor.ask(
            "launch",
            &json!({"emulate": ranks, "stopAtEntry": true, "sdmOptions": options}),
        )?;
        let began = Instant::now();
        editor.ask("configurationDone", &json!({}))?;
        let thread = loop {
            let message = editor.next()?;
            if message["event"] == "stopped" {
                break message["body"]["threadId"].clone();
            }
        };
        let stopped = began.elapsed();
        let threads = editor.ask("threads", &json!({}))?;
        ensure!(
            threads["threads"]
                .as_array()
                .is_some_and(|it| it.len() <= 64),
            "too many threads"
        );
        let stack = editor.ask("stackTrace", &json!({"threadId": thread, "levels": DEPTH}))?;
        let scopes = editor.ask("scopes", &json!({"frameId": stack["stackFrames"][0]["id"]}))?;
        let reference = &scopes["scopes"][1]["variablesReference"];
        editor.ask("variables", &json!({"variablesReference": reference}))?;
        let filled = began.elapsed() - stopped;
        editor.ask("disconnect", &json!({}))?;
        drop(editor.input);
        editor.child.wait()?;
        std::fs::remove_file(path)?;
        Ok((stopped, filled))
    }

    /// Sends a request, and gives the body of its response.
    fn ask(&mut self, command: &str, arguments: &Value) -> Result<Value> {
        self.seq += 1;
        let request = json!({
            "seq": self.seq, "type": "request", "command": command, "arguments": arguments,
        });
        self.input
            .write_all(&framed(request.to_string().as_bytes()))?;
        loop {
            let message = self.next()?;
            if message["type"] == "response" && message["request_seq"] == self.seq {
                ensure!(message["success"] == true, "{message}");
                return Ok(message["body"].clone());
            }
        }
    }

    fn next(&mut self) -> Result<Value> {
        let mut length = 0;
        loop {
            let mut line = String::new();
            ensure!(self.output.read_line(&mut line)? > 0, "sdm dap has ended");
            match line.trim_end().split_once(": ") {
                Some((_, value)) => length = value.parse()?,
                None => break,
            }
        }
        let mut body = vec![0; length];
        self.output.read_exact(&mut body)?;
        Ok(serde_json::from_slice(&body)?)
    }
}
