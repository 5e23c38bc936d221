//! Detection of a silent peer. Any record shows that the peer is alive; after `ping_after` without one a ping is
//! sent. An unanswered ping is followed by others soon. After half of `ping_after`, counted from the first ping,
//! the peer counts as silent.

use std::time::{Duration, Instant};

/// Minimum of `ping_after`: more frequent pings would be a load.
const PING_AFTER_MIN: Duration = Duration::from_millis(10);

#[derive(PartialEq, Eq, Debug)]
pub(super) enum Pulse {
    /// No change.
    Same,
    /// The other end has become silent.
    Lost,
    /// Bytes arrived all the time, but no record ended.
    Stuck,
}

#[derive(Debug)]
pub(super) struct Heartbeat {
    ping_after: Duration,
    unanswered_max: u32,
    /// Number of pings sent since the last complete record.
    unanswered: u32,
    /// Number of checks in a row, `ping_after` apart, at which bytes had arrived since the check before, but no
    /// complete record.
    trickles: u32,
    /// Time of the next check for bytes without a complete record.
    trickle_at: Instant,
    /// True if bytes have arrived since the last check or record.
    fed: bool,
    silent: bool,
    /// Time at which the next ping is due.
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
            trickles: 0,
            trickle_at: now + ping_after,
            fed: false,
            silent: false,
            ping_at: now + ping_after,
            ping_due: false,
            nonce: 0,
        }
    }

    /// Sets the limits, which apply from the next record or ping on.
    pub(super) fn set_limits(&mut self, ping_after: Duration, unanswered_max: u32) {
        self.ping_after = ping_after.max(PING_AFTER_MIN);
        self.unanswered_max = unanswered_max;
    }

    /// Records that bytes have arrived, possibly a part of a record.
    pub(super) fn fed(&mut self) {
        self.fed = true;
    }

    /// Notes a complete record; returns true if the other end had been silent.
    pub(super) fn heard(&mut self, now: Instant) -> bool {
        (self.unanswered, self.trickles, self.fed) = (0, 0, false);
        self.ping_at = now + self.ping_after;
        self.trickle_at = self.ping_at;
        std::mem::take(&mut self.silent)
    }

    /// Makes a ping due at once.
    pub(super) fn ping_now(&mut self, now: Instant) {
        self.ping_due = true;
        self.ping_at = now + self.ping_after;
    }

    /// The pause between an unanswered ping and the next one.
    fn again_after(&self) -> Duration {
        match self.silent || self.unanswered > self.unanswered_max {
            true => self.ping_after,
            false => {
                (self.ping_after / 2 / self.unanswered_max.max(1)).max(Duration::from_millis(1))
            }
        }
    }

    pub(super) fn handle_timeout(&mut self, now: Instant) -> Pulse {
        if now < self.ping_at {
            return Pulse::Same;
        }
        // A peer that is stopped in the middle of a record sends nothing at all meanwhile.
        if now >= self.trickle_at {
            self.trickle_at = now + self.ping_after;
            let fed = std::mem::take(&mut self.fed);
            self.trickles = if fed { self.trickles + 1 } else { 0 };
            if self.trickles > self.unanswered_max {
                return Pulse::Stuck;
            }
        }
        // One step at a time: after this process itself was stopped, it first asks again and judges later.
        let lost = !self.silent && self.unanswered >= self.unanswered_max;
        self.silent |= lost;
        self.unanswered = self.unanswered.saturating_add(1);
        self.ping_due = true;
        self.ping_at = now + self.again_after();
        if lost { Pulse::Lost } else { Pulse::Same }
    }

    pub(super) fn is_silent(&self) -> bool {
        self.silent
    }

    pub(super) fn next(&self) -> Instant {
        self.ping_at
    }

    /// Returns the nonce of the ping to send now; `None` if no ping is due.
    pub(super) fn take_ping(&mut self) -> Option<u64> {
        std::mem::take(&mut self.ping_due).then(|| {
            self.nonce += 1;
            self.nonce
        })
    }
}
