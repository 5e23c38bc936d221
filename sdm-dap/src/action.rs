//! The actions that an adapter requests from its owner, with their results.

use std::ffi::OsString;

use sdm_core::CommandId;
use sdm_debug::{Command, EndPolicy};
use sdm_idset::IdSet;
use sdm_session::SendOptions;

/// The adapter's own number for a command, from 1. The command is known by it until the session has assigned its id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ticket(pub u64);

/// A request to the owner of the adapter, about the session.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Open a session; answered by [`crate::Adapter::handle_opened`].
    Open(Opening),
    /// Send a command; answered by [`crate::Adapter::handle_sent`].
    Send {
        /// The command's ticket, which stands for it until its id is known.
        ticket: Ticket,
        /// The tasks that the command is sent to, at least one.
        to: IdSet,
        /// The command.
        command: Box<Command>,
        /// The options of the command.
        options: SendOptions,
    },
    /// Cancel a command.
    Cancel(CommandId),
    /// End the session; answered by [`crate::Adapter::handle_closed`].
    Close(EndPolicy),
    /// List the jobs to which a user could attach; answered by [`crate::Adapter::handle_jobs`].
    ListJobs,
    /// Admit another client to the session; answered by [`crate::Adapter::handle_invited`].
    Invite,
    /// Let this client debug one task of another client's session; answered by [`crate::Adapter::handle_joined`].
    Join,
    /// Relay a session of another process: all bytes of the client so far, and later ones by [`Action::Pass`], go to
    /// that address. Bytes from there go to the client, except the first message.
    Relay {
        /// The address, as received from the other process.
        address: String,
        /// Bytes that the client has sent so far.
        said: Vec<u8>,
    },
    /// Passes bytes of the client on to the other process.
    Pass(Vec<u8>),
    /// Close the connection once all output is written.
    Leave,
}

/// The session to open: the words of a command line of `sdm`, with the verb.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opening {
    /// The words, such as `run -n 4 -- ./app`, `attach 4711` or `emulate -n 10000`.
    pub words: Vec<OsString>,
}

/// An open session.
#[derive(Clone, Debug, PartialEq)]
pub struct Opened {
    /// The tasks of the session.
    pub tasks: IdSet,
    /// The commands that bring tasks under the debugger, starts or an attach, each with its tasks.
    pub begin: Vec<(IdSet, Command)>,
    /// Notes on the start or attach for the client's user, one line each.
    pub notes: Vec<String>,
}
