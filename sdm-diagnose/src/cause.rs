//! The cause that a diagnosis reports: an error of the program, or the activity of the ranks that others wait for.

/// The cause that a diagnosis reports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// No error is known.
    #[default]
    None,
    /// The cause is unknown.
    Unknown,
    /// A call is missing, superfluous, or in another order than on other ranks.
    CallOrdering,
    /// Ranks are in the same operation, or send and receive a message, but in different communicators.
    Communicator,
    /// Ranks name different roots.
    Root,
    /// Ranks give different counts.
    Count,
    /// A message is sent with another tag than the expected one, or ranks give different tags to the same operation.
    Tag,
    /// An epoch or lock of an RMA window is not opened or not closed.
    Rma,
    /// A thread waits for another thread of its process, or for a lock.
    Thread,
    /// A rank waits for a file, a pipe, a socket or a child process.
    Resource,
    /// A rank crashes, or aborts the job.
    Aborted,
    /// A rank has ended, or is lost.
    Ended,
    /// A signal or a debugger has stopped a rank.
    Stopped,
    /// A rank computes.
    Computing,
    /// A rank polls.
    Polling,
    /// A rank sleeps.
    Sleeping,
}

impl Cause {
    /// All causes.
    pub const ALL: [Self; 16] = [
        Self::None,
        Self::Unknown,
        Self::CallOrdering,
        Self::Communicator,
        Self::Root,
        Self::Count,
        Self::Tag,
        Self::Rma,
        Self::Thread,
        Self::Resource,
        Self::Aborted,
        Self::Ended,
        Self::Stopped,
        Self::Computing,
        Self::Polling,
        Self::Sleeping,
    ];

    /// The name of the cause in the records of `--json`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Unknown => "unknown",
            Self::CallOrdering => "call_ordering",
            Self::Communicator => "communicator",
            Self::Root => "root",
            Self::Count => "count",
            Self::Tag => "tag",
            Self::Rma => "rma",
            Self::Thread => "thread",
            Self::Resource => "resource",
            Self::Aborted => "aborted",
            Self::Ended => "ended",
            Self::Stopped => "stopped",
            Self::Computing => "computing",
            Self::Polling => "polling",
            Self::Sleeping => "sleeping",
        }
    }
}
