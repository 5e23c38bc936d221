//! The interface of a session for commands of a front-end, apart from its implementation.

use std::io;
use std::time::Duration;

use sdm_core::message::Health;
use sdm_core::{CommandId, ids::SessionId};
use sdm_debug::{Class, Command, Event};
use sdm_idset::IdSet;

/// Options of a command.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SendOptions {
    /// Time limit at each leaf of the tree, after which missing tasks are named. None: no limit. Run control commands
    /// ignore it.
    pub timeout: Option<Duration>,
    /// The merge rule: 0 merges by equality.
    pub rule: u16,
    /// The rule's parameters.
    pub rule_params: Vec<u8>,
}

/// An event of a session.
#[derive(Clone, Debug, PartialEq)]
pub enum SessionEvent {
    /// New answers to a command. Over all such events of a command, each task is in at most one class.
    Answer {
        /// The command that is answered, as returned by [`DebugSession::send`].
        id: CommandId,
        /// A class per distinct answer.
        classes: Vec<Class>,
        /// Tasks that did not answer in time, with the reason. Their answers can still follow.
        missing: Vec<(IdSet, String)>,
        /// Tasks whose server is lost.
        lost: IdSet,
        /// True if a task of the classes had been named missing or lost before.
        late: bool,
    },
    /// The command is complete: no task is open any more.
    Complete {
        /// The id of the command.
        id: CommandId,
    },
    /// Asynchronous events of tasks, in order.
    Events(Vec<(IdSet, Event)>),
    /// Tasks whose reachability changed.
    Health {
        /// The tasks whose reachability changed.
        tasks: IdSet,
        /// The new reachability.
        health: Health,
        /// The reason: which member reports it, and about which.
        why: String,
    },
    /// A line that the launcher printed.
    Launcher {
        /// The text of the line, without its newline.
        line: String,
    },
    /// Output of programs that the launcher carries, unchanged.
    Passed {
        /// True for standard error, false for standard output.
        stderr: bool,
        /// The bytes, unchanged. They need not be whole lines.
        bytes: Vec<u8>,
    },
    /// The launcher has ended without a request.
    LauncherEnded {
        /// The exit status: `exited with code 1`.
        status: String,
        /// The exit code; `None` if a signal has ended it.
        code: Option<i32>,
        /// The last lines of its output.
        last_words: Vec<String>,
    },
    /// [`DebugSession::next_event`] was woken from another thread.
    Woken,
    /// The session is over, with the reason.
    Ended(String),
}

/// A server or the master of a session, with its position in the planned tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionMember {
    /// The server's number. None for the master.
    pub server: Option<u32>,
    /// The host; empty if unknown.
    pub host: String,
    /// The addresses at which its parent reaches it, as connection strings. Empty for the master.
    pub addresses: Vec<String>,
    /// The index of the parent among the members. None for the master.
    pub parent: Option<usize>,
    /// The server's own tasks.
    pub tasks: IdSet,
}

/// A session, as commands use it. Tests use a scripted one.
pub trait DebugSession {
    /// The session's name.
    fn id(&self) -> SessionId;

    /// The tasks in the session: `all`.
    fn tasks(&self) -> &IdSet;

    /// The master and the servers, parents before their children. Empty if unknown.
    fn members(&self) -> &[SessionMember] {
        &[]
    }

    /// Sends a command to some of the tasks. The answers arrive as events with the returned id.
    fn send(&mut self, to: &IdSet, command: &Command, options: &SendOptions) -> CommandId;

    /// Passes input to the launcher; with `eof`, closes the launcher's input. None if commands carry the programs'
    /// input.
    fn feed(&mut self, bytes: &[u8], eof: bool) -> Option<io::Result<()>> {
        let _ = (bytes, eof);
        None
    }

    /// Cancels a command. Tasks without an answer fail with `cancelled`.
    fn cancel(&mut self, id: CommandId);

    /// The next event. None on time-out; without a time limit the call waits forever.
    fn next_event(&mut self, wait: Option<Duration>) -> Option<SessionEvent>;
}
