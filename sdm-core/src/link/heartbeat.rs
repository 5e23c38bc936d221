//! Is the other end still there? Any byte says yes; after some quiet a ping asks.

use std::time::{Duration, Instant};

/// Quicker pings than this would be a load; a configuration cannot ask for them.
const PING_AFTER_MIN: Duration = Duration::from_millis(10);

#[derive(PartialEq, Eq, Debug)]
pub(super) enum Pulse {
    /// Nothing new.
    Same,
    /// It has become silent.
    Lost,
}

#[derive(Debug)]
pub(super) struct Heartbeat {
    ping_after: Duration,
    unanswered_max: u32,
    /// Pings sent since the last byte came.
    unanswered: u32,
    silent: bool,
    /// When the next ping is due.
    ping_at: Instant,
    ping_due: bool,
    nonce: u64,
}

impl Heartbeat {
    pub(super) fn new(now: Instant, ping_after: Duration, unanswered_max: u32) -> Self {
        let ping_after = ping_after.max(PING_AFTER_MIN);
        Self {
            ping_after,
            unanswered_max,
            unanswered: 0,
            silent: false,
            ping_at: now + ping_after,
            ping_due: false,
            nonce: 0,
        }
    }

    /// They hold from the next sign of life or ping on.
    pub(super) fn set_limits(&mut self, ping_after: Duration, unanswered_max: u32) {
        self.ping_after = ping_after.max(PING_AFTER_MIN);
        self.unanswered_max = unanswered_max;
    }

    /// A byte came; true where the other end had been silent.
    pub(super) fn heard(&mut self, now: Instant) -> bool {
        self.unanswered = 0;
        self.ping_at = now + self.ping_after;
        std::mem::take(&mut self.silent)
    }

    /// Asks at once.
    pub(super) fn ping_now(&mut self, now: Instant) {
        self.ping_due = true;
        self.ping_at = now + self.ping_after;
    }

    pub(super) fn handle_timeout(&mut self, now: Instant) -> Pulse {
        if now < self.ping_at {
            return Pulse::Same;
        }
        // One step at a time: whoever was stopped itself asks first and judges later.
        let lost = !self.silent && self.unanswered >= self.unanswered_max;
        self.silent |= lost;
        self.unanswered = self.unanswered.saturating_add(1);
        self.ping_now(now);
        if lost { Pulse::Lost } else { Pulse::Same }
    }

    pub(super) fn is_silent(&self) -> bool {
        self.silent
    }

    pub(super) fn next(&self) -> Instant {
        self.ping_at
    }

    /// The nonce of a ping to send.
    pub(super) fn take_ping(&mut self) -> Option<u64> {
        std::mem::take(&mut self.ping_due).then(|| {
            self.nonce += 1;
            self.nonce
        })
    }
}
