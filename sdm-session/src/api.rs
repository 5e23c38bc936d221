//! What the commands of the front-end need of a session, apart from how it is carried out.

use std::io;
use std::time::Duration;

use sdm_core::message::Health;
use sdm_core::{CommandId, ids::SessionId};
use sdm_debug::rules::Merged;
use sdm_debug::{Command, Event, Failure, Reply};
use sdm_idset::IdSet;

/// How a command is sent.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SendOptions {
    /// How long a leaf waits before who is missing is named; absent: as long as it takes.
    pub timeout: Option<Duration>,
    /// The merge rule: 0 merges by equality.
    pub rule: u16,
    /// The rule's parameters.
    pub rule_params: Vec<u8>,
}

/// One distinct answer and all who gave it.
#[derive(Clone, Debug, PartialEq)]
pub struct Class {
    /// The tasks that gave this answer.
    pub tasks: IdSet,
    /// The answer, the same for all of them.
    pub answer: ClassAnswer,
}

/// A distinct answer.
#[derive(Clone, Debug, PartialEq)]
pub enum ClassAnswer {
    /// What they answered, where it was merged by equality.
    Reply(Reply),
    /// The output of a merge rule.
    Merged(Merged),
    /// The command failed on them; why.
    Failed(Failure),
    /// Too many distinct answers to keep apart.
    Others,
}

/// What a session says.
#[derive(Clone, Debug, PartialEq)]
pub enum SessionEvent {
    /// New answers to a command, each source once over the whole command.
    Answer {
        /// The command that is answered, as [`DebugSession::send`] gave it.
        id: CommandId,
        /// One per distinct answer.
        classes: Vec<Class>,
        /// Who did not answer in time and why; an answer can still follow.
        missing: Vec<(IdSet, String)>,
        /// Whose server is gone.
        lost: IdSet,
        /// True where these had been named missing or lost before.
        late: bool,
    },
    /// No destination of the command is open any more.
    Complete {
        /// The command that is over.
        id: CommandId,
    },
    /// Things that nobody asked for, in order.
    Events(Vec<(IdSet, Event)>),
    /// Tasks whose reachability changed.
    Health {
        /// The tasks whose reachability changed.
        tasks: IdSet,
        /// How it is now.
        health: Health,
        /// Who says so of whom.
        why: String,
    },
    /// A line that the launcher printed.
    Launcher {
        /// The text of the line, without its end.
        line: String,
    },
    /// What programs print where the launcher carries it, as it came.
    Passed {
        /// True for standard error, false for standard output.
        stderr: bool,
        /// The bytes as they came, whole lines or not.
        bytes: Vec<u8>,
    },
    /// The launcher has ended by itself.
    LauncherEnded {
        /// How: `exited with code 1`.
        status: String,
        /// What it said last.
        last_words: Vec<String>,
    },
    /// [`DebugSession::next_event`] was woken from another thread.
    Woken,
    /// The session is over; why.
    Ended(String),
}

/// A server of a session, and where it stands in the tree as it was planned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionMember {
    /// Its number; absent for the master.
    pub server: Option<u32>,
    /// Where it runs; empty where unknown.
    pub host: String,
    /// Where its parent reaches it, as connection strings; empty for the master.
    pub addresses: Vec<String>,
    /// The index of its parent among the members; absent for the master.
    pub parent: Option<usize>,
    /// Its own tasks.
    pub tasks: IdSet,
}

/// A session as its commands see it; scripted in tests.
pub trait DebugSession {
    /// The session's name.
    fn id(&self) -> SessionId;

    /// The tasks in the session: `all`.
    fn tasks(&self) -> &IdSet;

    /// The master and the servers, parents before their children; empty where it is not known.
    fn members(&self) -> &[SessionMember] {
        &[]
    }

    /// Sends a command to some of the tasks; what comes of it is told by events with this id.
    fn send(&mut self, to: &IdSet, command: &Command, options: &SendOptions) -> CommandId;

    /// Feeds what the launcher reads, or ends it; none where the programs are fed by commands.
    fn feed(&mut self, bytes: &[u8], eof: bool) -> Option<io::Result<()>> {
        let _ = (bytes, eof);
        None
    }

    /// Gives up a command; what is still unanswered fails with `cancelled`.
    fn cancel(&mut self, id: CommandId);

    /// The next event; absent where none came in time (`None` waits for ever).
    fn next_event(&mut self, wait: Option<Duration>) -> Option<SessionEvent>;
}
