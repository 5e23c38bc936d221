//! Configuration of a whole session; the initialisation command carries it to every member.

use std::time::Duration;

use bytes::Bytes;

use crate::limits;

/// Fate of the session's processes at its end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EndPolicy {
    /// Kill the processes that SDM started, and detach from the others.
    KillStarted,
    /// Leave everything running.
    Detach,
}

/// Limits, time-outs and policies of a session. Durations are whole milliseconds on the wire.
#[derive(Clone, PartialEq, Debug)]
pub struct Config {
    /// Time limit for connecting to a server at start-up.
    pub start_wait: Duration,
    /// Extra time that a node at height h waits for answers, per unit of h; leaves have height 0.
    pub grace: Duration,
    /// Time for which an event may be held back for merging, over its whole way up.
    pub event_window: Duration,
    /// Time without a record from a peer after which the peer gets a ping.
    pub ping_after: Duration,
    /// Number of unanswered pings that make a peer silent. All of them fall within half of `ping_after`,
    /// counted from the first ping.
    pub pings_unanswered_max: u32,
    /// Time within which a lost server may reconnect.
    pub rejoin_wait: Duration,
    /// Time for which a member without a parent waits for a new one.
    pub orphan_wait: Duration,
    /// Maximum number of bytes of bulk data in flight on one link.
    pub bulk_window_bytes: u32,
    /// Maximum number of distinct answers kept apart per command.
    pub classes_max: u32,
    /// True if a session starts even if some servers are missing.
    pub partial: bool,
    /// Fate of the processes when the session is lost.
    pub on_lost: EndPolicy,
    /// Configuration of the backends, opaque to the tree.
    pub backend: Bytes,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            start_wait: Duration::from_secs(60),
            grace: Duration::from_millis(200),
            event_window: Duration::from_millis(5),
            ping_after: limits::PING_AFTER,
            pings_unanswered_max: limits::PINGS_UNANSWERED_MAX,
            rejoin_wait: Duration::from_secs(10),
            orphan_wait: Duration::from_secs(5),
            bulk_window_bytes: limits::BULK_WINDOW_BYTES,
            classes_max: 1024,
            partial: false,
            on_lost: EndPolicy::KillStarted,
            backend: Bytes::new(),
        }
    }
}
