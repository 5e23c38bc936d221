//! The client's end of a session. It sends INIT, MODEL_DEF and START_EVENTS by itself. Timeouts are left to the owner.

use std::collections::BTreeMap;

use super::command::{Command, VERSION};
use super::event::{Event, Failure};
use super::frame::{Decoder, FrameError, FrameFault};
use super::{Dialect, MessageError};

/// A report of the session to the client's owner.
#[derive(Clone, Debug, PartialEq)]
pub enum Report {
    /// An event of an open transaction.
    Event(u32, Event),
    /// A command is done.
    Done(u32, Command, Result<(), Failure>),
    /// The agent ends.
    Shutdown,
}

/// Cause of a session's end.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClientError {
    /// The bytes do not form messages.
    #[error(transparent)]
    Frame(#[from] FrameError),
    /// An event or a command is broken.
    #[error(transparent)]
    Message(#[from] MessageError),
    /// A command is too long.
    #[error(transparent)]
    TooLong(#[from] FrameFault),
}

/// The client's end of a session.
#[derive(Debug)]
pub struct Client {
    decoder: Decoder,
    output: Vec<u8>,
    dialect: Dialect,
    next_tid: u32,
    open: BTreeMap<u32, Command>,
}

impl Client {
    /// A client whose INIT is in the output.
    ///
    /// # Errors
    /// The base id is too long for a message.
    pub fn new(dialect: Dialect, base_id: &str) -> Result<Self, ClientError> {
        let (decoder, output, open) = (Decoder::default(), Vec::new(), BTreeMap::new());
        let mut client = Self {
            decoder,
            output,
            dialect,
            next_tid: 1,
            open,
        };
        let (version, base_id) = (VERSION.to_owned(), base_id.to_owned());
        client.send(Command::Init { version, base_id })?;
        Ok(client)
    }

    /// Sends a command and returns its transaction number. In PTP's dialect it is the lowest free number. In the
    /// document's it follows the number before, and skips numbers in use.
    ///
    /// # Errors
    /// The dialect has no such command, or the command is too long.
    pub fn send(&mut self, command: Command) -> Result<u32, ClientError> {
        let mut tid = if self.dialect == Dialect::Ptp {
            0
        } else {
            self.next_tid
        };
        while self.open.contains_key(&tid) {
            tid = tid.wrapping_add(1);
        }
        command
            .encode(self.dialect, tid)?
            .encode(&mut self.output)?;
        self.next_tid = tid.wrapping_add(1);
        self.open.insert(tid, command);
        Ok(tid)
    }

    /// True if the open command `tid` submits or ends a job: its refusal is an event of its own, in place of ERROR.
    fn asks_of_job(&self, tid: u32) -> bool {
        let command = self.open.get(&tid);
        matches!(
            command,
            Some(Command::SubmitJob(_) | Command::TerminateJob(_))
        )
    }

    /// Takes the bytes to be written to the agent.
    pub fn take_output(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.output)
    }

    /// Handles bytes of the agent.
    pub fn receive(&mut self, bytes: &[u8]) {
        self.decoder.push(bytes);
    }

    /// The commands that are not done.
    pub fn open(&self) -> impl Iterator<Item = (u32, &Command)> {
        self.open.iter().map(|(tid, command)| (*tid, command))
    }

    /// Returns the next report; `None` if no whole message is left. Events of unknown transactions are discarded,
    /// except for MESSAGE in PTP's dialect.
    ///
    /// # Errors
    /// The agent's bytes are malformed; the session is to be closed.
    pub fn poll(&mut self) -> Result<Option<Report>, ClientError> {
        while let Some(message) = self.decoder.poll()? {
            let tid = message.tid;
            let is_message = message.id == 1 && self.dialect == Dialect::Ptp;
            if !is_message && !self.open.contains_key(&tid) {
                continue;
            }
            let result = match Event::decode(self.dialect, message)? {
                Event::Ok => Ok(()),
                Event::Error(failure) => Err(failure),
                Event::SubmitJobError(_, failure) | Event::TerminateJobError(_, failure)
                    if self.asks_of_job(tid) =>
                {
                    Err(failure)
                }
                Event::Shutdown => {
                    self.open.remove(&tid);
                    return Ok(Some(Report::Shutdown));
                }
                event => return Ok(Some(Report::Event(tid, event))),
            };
            let Some(command) = self.open.remove(&tid) else {
                continue;
            };
            match (&command, &result) {
                (Command::Init { .. }, Ok(())) => drop(self.send(Command::ModelDef)?),
                (Command::ModelDef, Ok(())) => drop(self.send(Command::StartEvents)?),
                _ => {}
            }
            return Ok(Some(Report::Done(tid, command, result)));
        }
        Ok(None)
    }
}
