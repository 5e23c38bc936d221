//! Causes of a manager's ERROR state, and of commands that were not carried out.

use sdm_runtime::model::ManagerError;
use sdm_runtime::wire::client::ClientError;

/// Cause for which a command was not carried out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CommandError {
    /// The state of the manager does not allow the command.
    #[error("the cluster is not connected ({})", .0)]
    NotStarted(String),
    /// No job has this number.
    #[error("{0}: no such job")]
    NoJob(String),
    /// No queue has this name.
    #[error("{0}: no such queue")]
    NoQueue(String),
    /// The agent or the manager refuses, with its message.
    #[error("{0}")]
    Refused(String),
    /// The command does not fit into a message, or the protocol has no such command.
    #[error(transparent)]
    Wire(#[from] ClientError),
    /// A job was accepted, and its number is not known yet.
    #[error("the job was accepted, but its number is not known yet; `sdm jobs` will show it")]
    Unnumbered,
    /// The agent ended before it answered, so the outcome is unknown.
    #[error("whether the command took effect is unknown: {0}")]
    Lost(String),
}

/// Cause of a manager's ERROR state.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AgentFailure {
    /// The agent could not be started, with the reason.
    #[error("{0}")]
    NoAgent(String),
    /// The agent has ended, with its exit status and its last line of error output.
    #[error("the cluster's agent has ended: {0}")]
    Ended(String),
    /// The agent does not answer.
    #[error("the cluster's agent has not answered the command {0} for {1} s")]
    Stalled(&'static str, u64),
    /// The agent violates the protocol.
    #[error("the cluster's agent sent an invalid message: {0}")]
    Nonsense(ClientError),
    /// The agent refuses a command that is necessary to continue.
    #[error("the cluster's agent refuses the command {0}: {1}")]
    Refused(&'static str, String),
    /// The model of the manager's elements cannot be made.
    #[error(transparent)]
    Model(#[from] ManagerError),
}
