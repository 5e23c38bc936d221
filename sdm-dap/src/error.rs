//! Reasons for the refusal of a request.

use serde_json::Value;

/// The reason for the refusal of a request, as text for users.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// The adapter does not know this request.
    #[error("sdm does not know the request `{0}`")]
    Unknown(String),
    /// The arguments of the request are wrong.
    #[error("{command}: wrong arguments: {why}")]
    Arguments {
        /// The name of the request.
        command: String,
        /// The error in the arguments.
        why: String,
    },
    /// The request comes too early, or a second time.
    #[error("{command}: {why}")]
    Order {
        /// The name of the request.
        command: String,
        /// The unmet condition, as text: a request that must come first, or a request that is allowed once.
        why: &'static str,
    },
    /// No thread has this id.
    #[error("thread {0} does not exist: it has ended, or its ranks are part of another thread now")]
    Thread(i64),
    /// No frame has this id.
    #[error("frame {0} is no longer valid: its thread has run since")]
    Frame(i64),
    /// No variable has this reference.
    #[error("reference {0} is no longer valid: its thread has run since")]
    Reference(i64),
    /// The request needs stopped tasks.
    #[error("{0} is running; pause it first")]
    Runs(String),
    /// The request needs running tasks.
    #[error("no thread is running")]
    Stands,
    /// A limit on open requests, console lines or breakpoints was reached.
    #[error("more than {0} requests are pending")]
    Busy(usize),
    /// A launch or attach configuration that is incomplete or contradictory.
    #[error("launch.json: {0}")]
    Configuration(String),
    /// The session could not be opened.
    #[error("{0}")]
    Opening(String),
    /// Errors of the tasks, or any other reason in words.
    #[error("{0}")]
    Tasks(String),
    /// The request was cancelled.
    #[error("cancelled")]
    Cancelled,
}

impl RequestError {
    /// The number of the error in an error response, from a closed list.
    pub(crate) fn id(&self) -> i64 {
        match self {
            Self::Unknown(_) => 1000,
            Self::Arguments { .. } => 1001,
            Self::Order { .. } => 1002,
            Self::Busy(_) => 1003,
            Self::Cancelled => 1004,
            Self::Configuration(_) => 2000,
            Self::Opening(_) => 2001,
            Self::Thread(_) => 3000,
            Self::Frame(_) => 3001,
            Self::Reference(_) => 3002,
            Self::Runs(_) => 3003,
            Self::Stands => 3004,
            Self::Tasks(_) => 4000,
        }
    }

    /// True if an editor should show it in a dialog, as it is not visible otherwise.
    pub(crate) fn is_for_the_user(&self) -> bool {
        matches!(self, Self::Configuration(_) | Self::Opening(_))
    }
}

/// The result of a request: the body of its response, or `None` if it is answered later.
pub(crate) type Handled = Result<Option<Value>, RequestError>;

/// The error for a request that comes too early, or a second time.
pub(crate) fn early(command: &str, why: &'static str) -> RequestError {
    RequestError::Order {
        command: command.to_owned(),
        why,
    }
}

/// A hit condition that cannot be expressed by gdb's ignore count.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("hit count `{0}`: expected N, > N or >= N")]
pub(crate) struct HitCountError(pub(crate) String);
