//! A connection to the helper process `sdm-pmix tool`.

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use sdm_foreign::tool_protocol::{FromTool, Line, TOOL_VERSION, ToTool, ToolRequest};
use sdm_foreign::wire::{Frames, frame};
use sdm_hosts::pmix::{PmixError, Rendezvous, tool};
use sdm_system::proc::{self, State};
use sdm_text::printable;

use super::error::ToolError;
use crate::tail_buffer::keep_end;

/// Time limit for an answer.
const ANSWER_WAIT: Duration = Duration::from_secs(30);
/// Interval at which a silent server's process is checked.
const LOOK_EVERY: Duration = Duration::from_secs(2);
/// Time limit for the helper to disconnect and end.
const END_WAIT: Duration = Duration::from_secs(5);
/// Maximum number of bytes kept of the helper's error output.
const SAID_BYTES_MAX: usize = 4096;

/// An input of a connection.
pub(super) enum PmixInput {
    /// A message from the tool.
    Tool(FromTool),
    /// Bytes from standard input; empty at end of file.
    Input(Vec<u8>),
    /// The tool has ended.
    Ended,
}

/// A connected tool.
pub(super) struct Session {
    child: Child,
    /// The pid of the server.
    server: i32,
    input: Option<ChildStdin>,
    heard: Receiver<PmixInput>,
    pub(super) sender: Sender<PmixInput>,
    said: Arc<Mutex<Vec<u8>>>,
    number: u32,
    /// Inputs that arrived during a wait for an answer.
    waiting: VecDeque<PmixInput>,
    /// True if the server would end with the tool, so that the tool has to stay for now.
    is_starting: bool,
}

impl Session {
    /// Starts a tool for a server, and waits until it is connected.
    pub(super) fn open(server: &Rendezvous) -> Result<Self, ToolError> {
        let mut command = tool(server)?;
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().map_err(ToolError::Start)?;
        let (sender, heard) = channel();
        let said = Arc::new(Mutex::new(Vec::new()));
        if let Some(complaints) = child.stderr.take() {
            let said = Arc::clone(&said);
            std::thread::spawn(move || keep_end(complaints, &said, SAID_BYTES_MAX));
        }
        if let Some(output) = child.stdout.take() {
            let sender = sender.clone();
            std::thread::spawn(move || read(output, &sender));
        }
        let mut session = Self {
            input: child.stdin.take(),
            child,
            server: server.pid,
            heard,
            sender,
            said,
            number: 0,
            waiting: VecDeque::new(),
            is_starting: false,
        };
        let version = TOOL_VERSION;
        session.send(&ToTool::Hello { version });
        let mut heard = session.next(Some(ANSWER_WAIT))?;
        if let Some(PmixInput::Tool(FromTool::Starting)) = heard {
            session.is_starting = true;
            heard = session.next(Some(ANSWER_WAIT))?;
        }
        match heard {
            None if session.is_starting => Err(ToolError::Helper(PmixError::Starting)),
            None => Err(session.no_answer()),
            Some(PmixInput::Tool(FromTool::Hello { version, .. })) if version == TOOL_VERSION => {
                session.is_starting = false;
                Ok(session)
            }
            Some(PmixInput::Tool(FromTool::Failed { text })) => {
                Err(ToolError::Failed(printable(text.as_bytes())))
            }
            _ => Err(ToolError::Ended(session.last_words())),
        }
    }

    fn send(&mut self, message: &ToTool) {
        if let (Some(input), Ok(bytes)) = (&mut self.input, frame(message)) {
            // The end of the process arrives as an event, so a failed write is ignored.
            let _ = input.write_all(&bytes);
        }
    }

    /// Sends a request without waiting for the answer. Returns its number.
    pub(super) fn tell(&mut self, ask: ToolRequest) -> u32 {
        self.number += 1;
        let number = self.number;
        self.send(&ToTool::ToolRequest { number, ask });
        number
    }

    /// Sends a request and waits for its answer. Returns the status and the lines. Other inputs are kept
    /// for [`Session::next`].
    pub(super) fn ask(&mut self, ask: ToolRequest) -> Result<(i32, Vec<Line>), ToolError> {
        let asked = self.tell(ask);
        let mut found = Vec::new();
        let deadline = Instant::now() + ANSWER_WAIT;
        loop {
            match self
                .heard
                .recv_timeout(deadline - Instant::now().min(deadline))
            {
                Ok(PmixInput::Tool(FromTool::Part { number, lines })) if number == asked => {
                    found.extend(lines);
                }
                Ok(PmixInput::Tool(FromTool::Done { number, status })) if number == asked => {
                    return Ok((status, found));
                }
                Ok(PmixInput::Ended) | Err(RecvTimeoutError::Disconnected) => {
                    return Err(ToolError::Ended(self.last_words()));
                }
                Ok(other) => self.waiting.push_back(other),
                Err(RecvTimeoutError::Timeout) => return Err(self.no_answer()),
            }
        }
    }

    /// Sends a request and waits for its lines. A status of failure in the answer is an error.
    pub(super) fn must(&mut self, what: &str, ask: ToolRequest) -> Result<Vec<Line>, ToolError> {
        match self.ask(ask)? {
            (0, lines) => Ok(lines),
            (status, _) => Err(ToolError::Status {
                what: what.to_owned(),
                status,
            }),
        }
    }

    /// The next input. None on time-out; without a time limit, None once the server's process has ended.
    pub(super) fn next(&mut self, wait: Option<Duration>) -> Result<Option<PmixInput>, ToolError> {
        if let Some(heard) = self.waiting.pop_front() {
            return Ok(Some(heard));
        }
        match wait {
            None => Ok(self.next_of_a_living_server()),
            Some(wait) => match self.heard.recv_timeout(wait) {
                Ok(heard) => Ok(Some(heard)),
                Err(_) => Ok(None),
            },
        }
    }

    /// The next input. None once the server's process has ended, which a PMIx library does not always
    /// report.
    fn next_of_a_living_server(&self) -> Option<PmixInput> {
        loop {
            match self.heard.recv_timeout(LOOK_EVERY) {
                Ok(heard) => return Some(heard),
                Err(RecvTimeoutError::Disconnected) => return None,
                Err(RecvTimeoutError::Timeout) => {
                    if self.server > 0 && proc::of(self.server).state().is_none_or(State::has_ended)
                    {
                        return None;
                    }
                }
            }
        }
    }

    /// Takes the inputs that arrived before an answer.
    pub(super) fn take_waiting(&mut self) -> VecDeque<PmixInput> {
        std::mem::take(&mut self.waiting)
    }

    fn no_answer(&mut self) -> ToolError {
        let said = self.last_words();
        ToolError::NoAnswer {
            wait: ANSWER_WAIT,
            said,
        }
    }

    /// Returns the last line of the helper's error output and the helper's exit status, with a semicolon in front.
    pub(super) fn last_words(&mut self) -> String {
        let mut words = String::new();
        if let Ok(Some(status)) = self.child.try_wait() {
            words = format!("; {status}");
        }
        let said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        let text = String::from_utf8_lossy(&said);
        match text.lines().rfind(|line| !line.trim().is_empty()) {
            Some(line) => format!("{words}; its last output: {}", printable(line.as_bytes())),
            None => words,
        }
    }
}

impl Drop for Session {
    /// Closes the connection, after which the tool disconnects and ends. A tool that hangs is killed. A tool that the
    /// server would end with is left running.
    fn drop(&mut self) {
        self.input = None;
        if self.is_starting {
            return;
        }
        let deadline = Instant::now() + END_WAIT;
        while Instant::now() < deadline {
            match self
                .heard
                .recv_timeout(deadline - Instant::now().min(deadline))
            {
                Ok(PmixInput::Ended) | Err(_) => break,
                Ok(_) => {}
            }
        }
        // The process may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn read(mut output: impl Read, sender: &Sender<PmixInput>) {
    let mut frames = Frames::default();
    let mut bytes = vec![0; 64 << 10];
    'all: while let Ok(count @ 1..) = output.read(&mut bytes) {
        frames.push(&bytes[..count]);
        loop {
            match frames.take::<FromTool>() {
                Ok(Some(message)) => {
                    if sender.send(PmixInput::Tool(message)).is_err() {
                        return;
                    }
                }
                Ok(None) => break,
                Err(_) => break 'all,
            }
        }
    }
    let _ = sender.send(PmixInput::Ended);
}
