//! What both ends of a link know beforehand.

use std::time::Duration;

use crate::config::Config;
use crate::ids::SessionId;
use crate::limits::{BULK_START_BYTES, HANDSHAKE_WAIT, PING_AFTER, PINGS_UNANSWERED_MAX};
use crate::secure::SessionKey;

/// What both ends of a link must know beforehand, and how it behaves.
#[derive(Clone, Debug)]
pub struct LinkConfig {
    /// The session's key.
    pub key: SessionKey,
    /// The session that both ends must belong to.
    pub session: SessionId,
    /// How long the handshake may take.
    pub handshake_wait: Duration,
    /// A peer quiet for this long is pinged.
    pub ping_after: Duration,
    /// How many unanswered pings make a peer silent.
    pub pings_unanswered_max: u32,
    /// How many bytes of bulk data may be here without having been released.
    pub bulk_window_bytes: u32,
}

impl LinkConfig {
    /// With the limits that hold where nothing else was said.
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

    /// Takes over what the session's configuration says of links.
    pub fn apply(&mut self, config: &Config) {
        self.ping_after = config.ping_after;
        self.pings_unanswered_max = config.pings_unanswered_max;
    }
}
