//! Commands that were sent to an agent, and whose callers wait for the outcome.

use std::time::Instant;

use sdm_runtime::wire::command::Command;

/// Number of a command whose caller waits for the outcome.
pub type Ticket = u64;

/// Purpose of an open command.
#[derive(Debug)]
pub(crate) enum Purpose {
    /// A command of a caller, which waits for it.
    Asked(Ticket),
    /// A submission; its job number is known when the job is reported.
    Submission(Ticket, String),
}

/// A submission that the agent has accepted, and whose job the agent has not reported yet.
#[derive(Debug)]
pub(crate) struct AcceptedSubmission {
    pub(crate) ticket: Ticket,
    pub(crate) until: Instant,
}

/// True if the session cannot continue when this command fails.
pub(crate) fn is_needed(command: &Command) -> bool {
    matches!(
        command,
        Command::Init { .. } | Command::ModelDef | Command::StartEvents
    )
}
