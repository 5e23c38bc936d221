//! An editor that queries a stop, through the adapter of `sdm dap` without its session. The caller plays the
//! answers of thousands of ranks. Only the adapter's own work counts for [`crate::meter`].

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use sdm_core::CommandId;
use sdm_dap::frame::{Framed, Framer, framed};
use sdm_dap::{Action, Adapter, Opened};
use sdm_debug::reply::{Backtrace, Frame, Stop, StopReason, Value as Text, Variable};
use sdm_debug::{Command, Reply};
use sdm_idset::{IdSet, TaskId};
use sdm_session::{Class, ClassAnswer, SessionEvent};
use serde_json::{Value, json};

use crate::meter::{Part, metered};

/// Number of frames in each stack.
pub const DEPTH: u32 = 20;
/// Number of variables in each frame.
const VARIABLES: u32 = 10;
/// Two parts: a stop with a location for each rank, and one at a single location with a variable's value for each rank.
/// An adapter that compares each rank with all others does many times the work.
#[must_use]
pub fn stops() -> Vec<Part> {
    vec![
        Part::new("an editor sees 100 classes", || {
            Ok(Box::new(|| look(100, 100)))
        }),
        Part::new("an editor sees 100 values", || {
            Ok(Box::new(|| look(100, 1)))
        }),
    ]
}

fn look(ranks: u32, places: u32) -> Result<()> {
    Scene::begin(ranks, places)?.look()?;
    Ok(())
}

/// Cost of an editor's queries at a stop.
pub struct Look {
    /// Duration of the queries.
    pub took: Duration,
    /// Number of threads reported to the editor.
    pub threads: usize,
    /// Bytes of the stop's events, of the threads, and of the stack with its variables.
    pub bytes: [usize; 3],
}

/// An adapter whose tasks run, and places where they will stop.
pub struct Scene {
    adapter: Adapter,
    now: Instant,
    seq: i64,
    classes: Vec<(IdSet, u32)>,
    /// The commands that were sent and not answered.
    sent: Vec<(CommandId, Command)>,
    messages: Vec<(usize, Value)>,
}

impl Scene {
    /// Starts an adapter with `ranks` running ranks, which will stop in `places` places.
    ///
    /// # Errors
    /// The adapter does not do what an editor needs.
    pub fn begin(ranks: u32, places: u32) -> Result<Self> {
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

    /// Stops the tasks and makes the editor's queries.
    ///
    /// # Errors
    /// The adapter does not do what an editor needs.
    pub fn look(mut self) -> Result<Look> {
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

    /// Number of bytes that the adapter has sent since the last call.
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
        metered(|| self.adapter.handle_bytes(self.now, &bytes));
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
        let complete = SessionEvent::Complete { id };
        metered(|| {
            self.adapter.handle_event(self.now, event);
            self.adapter.handle_event(self.now, complete);
        });
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
