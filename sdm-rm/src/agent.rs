//! The process of an agent, a child of its manager's process: its three streams, its end, and its last error output.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout};

use sdm_system::set_nonblocking;

use crate::definition::Definition;
use crate::error::AgentError;
use crate::remote;

/// Maximum size of the agent's last error output that is kept, in bytes.
const SAID_BYTES_MAX: usize = 2000;

/// An agent's process.
pub(crate) struct Agent {
    child: Child,
    input: ChildStdin,
    output: Option<ChildStdout>,
    errors: Option<ChildStderr>,
    unsent: VecDeque<u8>,
    said: Vec<u8>,
}

/// A stream of the agent that can be polled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AgentStream {
    Input,
    Output,
    Errors,
}

impl Agent {
    pub(crate) fn start(definition: &Definition) -> Result<Self, AgentError> {
        let mut command = remote::command(definition)?;
        let program = sdm_text::printable_name(command.get_program());
        let io = |error| AgentError::Io {
            program: program.clone(),
            error,
        };
        let mut child = command.spawn().map_err(io)?;
        let missing = || io(io::ErrorKind::BrokenPipe.into());
        let input = child.stdin.take().ok_or_else(missing)?;
        let output = child.stdout.take().ok_or_else(missing)?;
        let errors = child.stderr.take().ok_or_else(missing)?;
        for fd in [input.as_fd(), output.as_fd(), errors.as_fd()] {
            set_nonblocking(fd).map_err(io)?;
        }
        Ok(Self {
            child,
            input,
            output: Some(output),
            errors: Some(errors),
            unsent: VecDeque::new(),
            said: Vec::new(),
        })
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) {
        self.unsent.extend(bytes);
    }

    /// The streams to poll, with their descriptors.
    pub(crate) fn ends(&self) -> Vec<(AgentStream, BorrowedFd<'_>)> {
        let mut ends = Vec::new();
        if !self.unsent.is_empty() {
            ends.push((AgentStream::Input, self.input.as_fd()));
        }
        ends.extend(
            self.output
                .as_ref()
                .map(|it| (AgentStream::Output, it.as_fd())),
        );
        ends.extend(
            self.errors
                .as_ref()
                .map(|it| (AgentStream::Errors, it.as_fd())),
        );
        ends
    }

    /// Writes pending bytes until the pipe is full.
    pub(crate) fn write(&mut self) {
        while !self.unsent.is_empty() {
            let (piece, _) = self.unsent.as_slices();
            match self.input.write(piece) {
                Ok(count) => drop(self.unsent.drain(..count)),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                // The agent's end is noticed by reading.
                Err(_) => self.unsent.clear(),
            }
        }
    }

    /// Reads one piece of the agent's output. Returns the number of bytes; 0 at the end of the stream, and if nothing
    /// is available.
    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> usize {
        read(&mut self.output, buffer)
    }

    /// Reads one piece of the agent's error output.
    pub(crate) fn read_errors(&mut self, buffer: &mut [u8]) {
        let count = read(&mut self.errors, buffer);
        self.said.extend_from_slice(&buffer[..count]);
        let excess = self.said.len().saturating_sub(SAID_BYTES_MAX);
        self.said.drain(..excess);
    }

    /// The agent's exit status and its last line of error output; `None` while the agent runs.
    pub(crate) fn ended(&mut self) -> Option<String> {
        let status = self.child.try_wait().ok().flatten()?;
        let mut buffer = vec![0; SAID_BYTES_MAX];
        self.read_errors(&mut buffer);
        let said = String::from_utf8_lossy(&self.said);
        let last: Vec<&str> = said.lines().filter(|it| !it.trim().is_empty()).collect();
        let last = last.last().map(|line| format!(": {}", line.trim()));
        Some(format!("{status}{}", last.unwrap_or_default()))
    }

    /// True once the agent has closed its output.
    pub(crate) fn is_silent(&self) -> bool {
        self.output.is_none()
    }

    pub(crate) fn kill(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        self.kill();
        let _ = self.child.wait();
    }
}

/// Reads a piece of a stream, and closes the stream at its end. Returns the number of bytes; 0 at the end, and if
/// nothing is available.
fn read(stream: &mut Option<impl Read>, buffer: &mut [u8]) -> usize {
    let Some(open) = stream else {
        return 0;
    };
    match open.read(buffer) {
        Ok(0) => *stream = None,
        Ok(count) => return count,
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock
            ) => {}
        Err(_) => *stream = None,
    }
    0
}
