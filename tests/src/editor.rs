//! An editor: a client of the Debug Adapter Protocol over the program's standard streams, or a socket.

mod ending;

use std::collections::{BTreeSet, VecDeque};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use serde_json::{Value, json};

use crate::binaries;
use crate::clusters::Shell;
use crate::place::Place;
use crate::questions::Questions;
use crate::run::{BOUND, connect};
use crate::schema::Schema;
use crate::sdm::command;

/// Address at which an adapter listens.
#[derive(Clone, Debug)]
enum Address {
    Tcp(String),
    Unix(PathBuf),
}

/// An editor and the adapter that it has started.
pub struct Editor<'a> {
    place: &'a Place,
    /// The adapter; absent where another editor has started it.
    child: Option<Child>,
    /// Address at which the adapter listens; `None` over its standard streams.
    address: Option<Address>,
    input: Option<Box<dyn Write>>,
    messages: Receiver<Value>,
    /// Received messages that the test has not waited for yet, in order.
    waiting: VecDeque<Value>,
    /// Everything that has come, in order.
    pub transcript: Vec<Value>,
    seq: i64,
    schema: Schema,
    questions: Questions,
}

impl<'a> Editor<'a> {
    /// Starts `sdm dap`, and talks with it over its standard input and output.
    ///
    /// # Panics
    /// If it cannot be started.
    #[must_use]
    pub fn new(place: &'a Place) -> Self {
        Self::with(place, &[])
    }

    /// As [`Editor::new`], with these environment variables for the adapter.
    ///
    /// # Panics
    /// If it cannot be started.
    #[must_use]
    pub fn with(place: &'a Place, variables: &[(&str, &str)]) -> Self {
        let mut command = adapter_command(place, &[]);
        command.envs(variables.iter().copied());
        let mut child = command.spawn().expect("sdm starts");
        let output = child.stdout.take().expect("it is a pipe");
        let input = child.stdin.take().expect("it is a pipe");
        Self::over(place, Some(child), None, (input, output))
    }

    /// As [`Editor::new`], for the user of a shell that has clusters of its own.
    ///
    /// # Panics
    /// If it cannot be started.
    #[must_use]
    pub fn of_shell(shell: &'a Shell) -> Self {
        let mut command = shell.command(&["dap"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("sdm starts");
        let output = child.stdout.take().expect("it is a pipe");
        let input = child.stdin.take().expect("it is a pipe");
        Self::over(&shell.place, Some(child), None, (input, output))
    }

    /// Starts `sdm dap --listen 127.0.0.1:0`, and talks with it over the connection.
    ///
    /// # Panics
    /// If it cannot be started or connected to.
    #[must_use]
    pub fn over_tcp(place: &'a Place) -> Self {
        let mut child = adapter(place, &["--listen", "127.0.0.1:0"]);
        let output = child.stdout.take().expect("it is a pipe");
        let mut line = String::new();
        let read = BufReader::new(output).read_line(&mut line);
        read.expect("it says where it listens");
        let address = line.trim_end().strip_prefix("listening at ");
        let address = address.expect("it says where").to_owned();
        Self::connected(place, Some(child), Address::Tcp(address))
    }

    /// Starts `sdm dap --listen unix:PATH`, and talks with it over the socket.
    ///
    /// # Panics
    /// If it cannot be started or connected to.
    #[must_use]
    pub fn over_unix(place: &'a Place) -> Self {
        let path = place.path().join("sockets/editor");
        let text = format!("unix:{}", path.to_str().expect("text"));
        let child = adapter(place, &["--listen", &text]);
        Self::connected(place, Some(child), Address::Unix(path))
    }

    /// Another connection to the adapter that this editor has started.
    ///
    /// # Panics
    /// If the adapter does not listen.
    #[must_use]
    pub fn beside(&self) -> Self {
        let address = self.address.clone().expect("it listens");
        Self::connected(self.place, None, address)
    }

    fn connected(place: &'a Place, child: Option<Child>, address: Address) -> Self {
        let known = Some(address.clone());
        match address {
            Address::Tcp(address) => {
                let stream = TcpStream::connect(address).expect("it listens");
                let input = stream.try_clone().expect("a descriptor");
                Self::over(place, child, known, (input, stream))
            }
            Address::Unix(path) => {
                let stream = connect(&path);
                let input = stream.try_clone().expect("a descriptor");
                Self::over(place, child, known, (input, stream))
            }
        }
    }

    fn over(
        place: &'a Place,
        child: Option<Child>,
        address: Option<Address>,
        (input, output): (impl Write + 'static, impl Read + Send + 'static),
    ) -> Self {
        let (sender, messages) = channel();
        thread::spawn(move || {
            let mut output = BufReader::new(output);
            while let Some(message) = read(&mut output) {
                if sender.send(message).is_err() {
                    return;
                }
            }
        });
        Self {
            place,
            input: Some(Box::new(input)),
            child,
            address,
            messages,
            waiting: VecDeque::new(),
            transcript: Vec::new(),
            seq: 0,
            schema: Schema::read(),
            questions: Questions::default(),
        }
    }

    /// Writes bytes as they are.
    ///
    /// # Panics
    /// If the adapter does not read.
    pub fn write(&mut self, bytes: &[u8]) {
        let input = self.input.as_mut().expect("it was not closed");
        input.write_all(bytes).expect("the adapter reads");
        input.flush().expect("the adapter reads");
    }

    /// Sends a request; gives its number.
    ///
    /// # Panics
    /// If the adapter does not read, or the request asks again what was asked before.
    pub fn send(&mut self, command: &str, arguments: &Value) -> i64 {
        self.questions.enter_request(command, arguments);
        self.send_uncounted(command, arguments)
    }

    /// As [`Editor::send`], also what was sent before: no answer is waited for.
    ///
    /// # Panics
    /// If the adapter does not read.
    pub fn send_uncounted(&mut self, command: &str, arguments: &Value) -> i64 {
        self.seq += 1;
        let request = json!({
            "seq": self.seq, "type": "request", "command": command, "arguments": arguments,
        });
        let body = request.to_string();
        let text = format!("Content-Length: {}\r\n\r\n{body}", body.len());
        self.write(text.as_bytes());
        self.seq
    }

    /// Returns the response to a request, successful or not; events that arrive before it are kept.
    ///
    /// # Panics
    /// If no response arrives.
    pub fn response(&mut self, seq: i64) -> Value {
        let is_it =
            |message: &Value| message["type"] == "response" && message["request_seq"] == seq;
        if let Some(at) = self.waiting.iter().position(is_it) {
            return self.waiting.remove(at).expect("it was found");
        }
        loop {
            let message = self.next();
            if is_it(&message) {
                return message;
            }
            self.waiting.push_back(message);
        }
    }

    /// Sends a request and gives the body of its response.
    ///
    /// # Panics
    /// If the request is refused.
    pub fn ask(&mut self, command: &str, arguments: &Value) -> Value {
        let seq = self.send(command, arguments);
        let response = self.response(seq);
        assert_eq!(response["success"], true, "{response}");
        response["body"].clone()
    }

    /// Sends a request that is refused; gives the message.
    ///
    /// # Panics
    /// If the request is not refused.
    pub fn refused(&mut self, command: &str, arguments: &Value) -> String {
        let seq = self.send(command, arguments);
        let response = self.response(seq);
        assert_eq!(response["success"], false, "{response}");
        assert!(response["body"]["error"]["id"].is_i64(), "{response}");
        response["message"].as_str().expect("a text").to_owned()
    }

    /// Waits for the next event of this name; returns its body. Other messages are kept.
    ///
    /// # Panics
    /// If none comes.
    pub fn event(&mut self, name: &str) -> Value {
        let is_it = |message: &Value| message["type"] == "event" && message["event"] == name;
        if let Some(at) = self.waiting.iter().position(is_it) {
            let event = self.waiting.remove(at).expect("it was found");
            return event["body"].clone();
        }
        loop {
            let message = self.next();
            if is_it(&message) {
                return message["body"].clone();
            }
            self.waiting.push_back(message);
        }
    }

    /// The event that all threads have stopped, once so many more were named as started. Other `stopped` events are
    /// dropped.
    ///
    /// # Panics
    /// If the event does not come.
    pub fn stopped_with(&mut self, more: usize) -> Value {
        let mut there = BTreeSet::new();
        let mut at = 0;
        loop {
            while at == self.transcript.len() {
                let message = self.next();
                self.waiting.push_back(message);
            }
            let (event, body) = {
                let message = &self.transcript[at];
                (&message["event"], &message["body"])
            };
            at += 1;
            if event == "thread" {
                let id = body["threadId"].as_i64();
                match body["reason"] == "started" {
                    true => there.insert(id),
                    false => there.remove(&id),
                };
            }
            let is_all = event == "stopped" && body["allThreadsStopped"] == true;
            if is_all && there.len() == more {
                let body = body.clone();
                self.forget("stopped");
                return body;
            }
        }
    }

    /// The pid of the adapter.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.as_ref().expect("it has started one").id()
    }

    /// Sends any request, also one that was sent before, and returns its response; messages received meanwhile are
    /// dropped.
    ///
    /// # Panics
    /// If there is no response.
    pub fn try_out(&mut self, command: &str, arguments: &Value) -> Value {
        let seq = self.send_uncounted(command, arguments);
        let response = loop {
            let message = self.next();
            if message["type"] == "response" && message["request_seq"] == seq {
                break message;
            }
        };
        self.transcript.clear();
        self.waiting.clear();
        response
    }

    /// Waits for the adapter's next request of this name, and answers it with success. Returns the arguments.
    ///
    /// # Panics
    /// If none comes.
    pub fn request(&mut self, name: &str) -> Value {
        let is_it = |message: &Value| message["type"] == "request" && message["command"] == name;
        let request = match self.waiting.iter().position(is_it) {
            Some(at) => self.waiting.remove(at).expect("it was found"),
            None => loop {
                let message = self.next();
                if is_it(&message) {
                    break message;
                }
                self.waiting.push_back(message);
            },
        };
        self.seq += 1;
        let granted = json!({
            "seq": self.seq, "type": "response", "command": name, "success": true,
            "request_seq": request["seq"],
        });
        let body = granted.to_string();
        self.write(format!("Content-Length: {}\r\n\r\n{body}", body.len()).as_bytes());
        request["arguments"].clone()
    }

    /// Number of received events of this name that were not waited for.
    #[must_use]
    pub fn unread(&self, name: &str) -> usize {
        self.waiting
            .iter()
            .filter(|message| message["event"] == name)
            .count()
    }

    /// Drops the received events of this name.
    pub fn forget(&mut self, name: &str) {
        self.waiting.retain(|message| message["event"] != name);
    }

    /// The text of all `output` events of a category until now.
    #[must_use]
    pub fn output(&self, category: &str) -> String {
        let events = self.transcript.iter();
        let events = events.filter(|message| message["event"] == "output");
        let bodies = events.map(|message| &message["body"]);
        let bodies = bodies.filter(|body| body["category"] == category);
        bodies.filter_map(|body| body["output"].as_str()).collect()
    }

    fn next(&mut self) -> Value {
        match self.messages.recv_timeout(BOUND) {
            Ok(message) => {
                self.schema.check(&message);
                self.transcript.push(message.clone());
                // What is printed does not tell that the tasks are elsewhere.
                if message["type"] == "event" && message["event"] != "output" {
                    self.questions.changed();
                }
                message
            }
            Err(error) => panic!("{error}; what came:\n{}", self.told()),
        }
    }

    /// The messages received so far, one line each.
    fn told(&self) -> String {
        let lines = self.transcript.iter().map(Value::to_string);
        lines.collect::<Vec<_>>().join("\n")
    }

    /// `initialize`, `launch`, and the wait for `initialized`.
    ///
    /// # Panics
    /// If a request fails.
    pub fn launch(&mut self, configuration: &Value) {
        self.ask(
            "initialize",
            &json!({"adapterID": "sdm", "supportsInvalidatedEvent": true,
                "supportsProgressReporting": true, "supportsStartDebuggingRequest": true}),
        );
        self.ask("launch", configuration);
        self.event("initialized");
    }

    /// The frames of a thread.
    ///
    /// # Panics
    /// If they are refused.
    pub fn frames(&mut self, thread: &Value) -> Vec<Value> {
        let body = self.ask("stackTrace", &json!({"threadId": thread}));
        body["stackFrames"].as_array().expect("a list").clone()
    }

    /// The variables of a scope of a frame: name and value.
    ///
    /// # Panics
    /// If there is no such scope.
    pub fn scope(&mut self, frame: &Value, name: &str) -> Vec<Value> {
        let body = self.ask("scopes", &json!({"frameId": frame["id"]}));
        let scopes = body["scopes"].as_array().expect("a list").clone();
        let scope = scopes.iter().find(|scope| scope["name"] == name);
        let scope = scope.unwrap_or_else(|| panic!("no {name} in {scopes:?}"));
        self.below(scope)
    }

    /// The children of a scope or variable.
    ///
    /// # Panics
    /// If the request is refused.
    pub fn below(&mut self, variable: &Value) -> Vec<Value> {
        let reference = &variable["variablesReference"];
        let body = self.ask("variables", &json!({"variablesReference": reference}));
        body["variables"].as_array().expect("a list").clone()
    }

    /// The ids and names of the threads, in order.
    ///
    /// # Panics
    /// If they are refused.
    pub fn threads(&mut self) -> Vec<(i64, String)> {
        let body = self.ask("threads", &Value::Null);
        let threads = body["threads"].as_array().expect("a list").iter();
        let thread = |thread: &Value| {
            let name = thread["name"].as_str().expect("a text").to_owned();
            (thread["id"].as_i64().expect("a number"), name)
        };
        threads.map(thread).collect()
    }
}

/// `sdm dap` with these arguments.
fn adapter(place: &Place, args: &[&str]) -> Child {
    adapter_command(place, args).spawn().expect("sdm starts")
}

fn adapter_command(place: &Place, args: &[&str]) -> Command {
    let mut command = command(place, binaries::folder().join("sdm"));
    command.arg("dap").args(args);
    command.stdin(Stdio::piped()).stderr(Stdio::inherit());
    command
}

/// All messages of an adapter whose output was stored, each validated against the schema.
///
/// # Panics
/// If a message violates the schema.
#[must_use]
pub fn kept_messages(bytes: &[u8]) -> Vec<Value> {
    let mut schema = Schema::read();
    let mut rest = bytes;
    let messages: Vec<Value> = std::iter::from_fn(|| read(&mut rest)).collect();
    for message in &messages {
        schema.check(message);
    }
    messages
}

/// The next message; nothing at the end.
///
/// # Panics
/// If what comes is no message.
pub fn read(output: &mut impl BufRead) -> Option<Value> {
    let mut length = None;
    loop {
        let mut line = String::new();
        if output.read_line(&mut line).ok()? == 0 {
            return None;
        }
        match line.trim_end().split_once(": ") {
            Some(("Content-Length", value)) => length = value.parse().ok(),
            _ if line == "\r\n" => break,
            _ => panic!("{line:?} stands in no header"),
        }
    }
    let mut body = vec![0; length.expect("a header has a length")];
    output.read_exact(&mut body).ok()?;
    Some(serde_json::from_slice(&body).expect("a message is JSON"))
}
