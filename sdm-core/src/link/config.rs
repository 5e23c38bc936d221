//! Configuration that both ends of a link have before they connect.

use std::time::Duration;

use crate::config::Config;
use crate::ids::SessionId;
use crate::limits::{BULK_START_BYTES, HANDSHAKE_WAIT, PING_AFTER, PINGS_UNANSWERED_MAX};
use crate::secure::SessionKey;

/// The session's identity and key, which both ends of a link must share, and the link's limits.
#[derive(Clone, Debug)]
pub struct LinkConfig {
    /// The session's key.
    pub key: SessionKey,
    /// The session that both ends must belong to.
    pub session: SessionId,
    /// Time limit for the handshake.
    pub handshake_wait: Duration,
    /// A peer quiet for this long is pinged.
    pub ping_after: Duration,
    /// Number of unanswered pings that make a peer silent.
    pub pings_unanswered_max: u32,
    /// Maximum number of received bulk bytes that the owner of the link has not released yet.
    pub bulk_window_bytes: u32,
}

impl LinkConfig {
    /// A configuration with the default limits.
    #[must_use]
    pub fn new(key: SessionKey, session: SessionId) -> Self {
        Self {
            key,
            session,
            handshake_wait: HANDSHAKE_WAIT,
            ping_after: PING_AFTER,
            pings_unanswered_max: PINGS_UNANSWERED_MAX,
            bulk_window_bytes: BULK_START_BYTES,
        }
    }

    /// Sets the limits for a silent peer from the session's configuration.
    pub fn apply(&mut self, config: &Config) {
        self.ping_after = config.ping_after;
        self.pings_unanswered_max = config.pings_unanswered_max;
    }
}
