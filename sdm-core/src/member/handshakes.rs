//! Strangers: incoming connections whose handshake is not complete.

use std::time::{Duration, Instant};

use super::{Member, Output};
use crate::limits;
use crate::node::LinkId;

/// Minimum time between two log entries about the same cause of a refusal.
const SAY_EVERY: Duration = Duration::from_secs(60);
/// Maximum number of distinct causes of refusals that are remembered.
const CAUSES_MAX: usize = 16;
/// Maximum number of strangers that have not shown that they hold the session's key.
const UNKNOWN_MAX: usize = limits::STRANGERS_MAX / 4 * 3;

/// Reasons of refused connections, for a log that strangers cannot fill.
#[derive(Default)]
pub(super) struct Refusals {
    causes: Vec<Cause>,
}

struct Cause {
    why: String,
    said: Instant,
    /// Number of refusals for this cause since its last log entry.
    unsaid: u64,
}

impl Refusals {
    /// The log entry for a refusal; `None` while an earlier one for the same cause is recent.
    fn line(&mut self, now: Instant, why: String) -> Option<String> {
        if let Some(cause) = self.causes.iter_mut().find(|cause| cause.why == why) {
            cause.unsaid += 1;
            if now < cause.said + SAY_EVERY {
                return None;
            }
            cause.said = now;
            let times = std::mem::take(&mut cause.unsaid);
            return Some(format!("{why} ({times} times since the last report)"));
        }
        if self.causes.len() == CAUSES_MAX {
            self.causes.remove(0);
        }
        self.causes.push(Cause {
            why: why.clone(),
            said: now,
            unsaid: 0,
        });
        Some(why)
    }
}

impl Member {
    /// Logs the reason for which a connection was refused, once per cause and period.
    pub(super) fn say_refused(&mut self, now: Instant, why: String) {
        if let Some(why) = self.refusals.line(now, why) {
            self.outputs.push_back(Output::Refused { why });
        }
    }

    /// Makes room for one more stranger by closing the oldest ones, as the new one may be the parent. Strangers that
    /// have shown the key are counted separately. So connections without the key cannot displace handshakes with it,
    /// nor can repeated handshakes displace new connections.
    pub(super) fn make_room_for_stranger(&mut self, now: Instant) {
        let mut oldest = Vec::new();
        for (has_key, max) in [
            (false, UNKNOWN_MAX),
            (true, limits::STRANGERS_MAX - UNKNOWN_MAX),
        ] {
            let strangers = self.peers.iter();
            let strangers = strangers.filter(|(_, peer)| !peer.known && peer.dialed.is_none());
            let strangers = strangers.filter(|(_, peer)| peer.link.has_shown_key() == has_key);
            let strangers: Vec<LinkId> = strangers.map(|(id, _)| *id).collect();
            // One more connection without a key is about to be accepted.
            let allowed = if has_key { max } else { max - 1 };
            let too_many = strangers.len().saturating_sub(allowed);
            oldest.extend(strangers.into_iter().take(too_many));
        }
        if oldest.is_empty() {
            return;
        }
        oldest.into_iter().for_each(|link| self.close(link));
        self.say_refused(now, "too many connections without a handshake".to_owned());
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::ids::ServerId;
    use crate::link::LinkConfig;
    use crate::node::Node;
    use crate::secure::{SessionKey, draw_session_id};

    #[test]
    fn repeated_refusals_are_logged_at_intervals() {
        let start = Instant::now();
        let mut refusals = Refusals::default();
        let mut at = |seconds, why: &str| {
            refusals.line(start + Duration::from_secs(seconds), why.to_owned())
        };
        assert_eq!(at(0, "a").as_deref(), Some("a"));
        assert_eq!(at(1, "a"), None);
        assert_eq!(at(2, "b").as_deref(), Some("b"));
        assert_eq!(at(59, "a"), None);
        let expect = "a (3 times since the last report)";
        assert_eq!(at(60, "a").as_deref(), Some(expect));
        for n in 0..1000 {
            at(61, &n.to_string());
        }
        assert_eq!(refusals.causes.len(), CAUSES_MAX);
    }

    #[test]
    fn new_connection_replaces_oldest_unauthenticated_one() {
        let now = Instant::now();
        let key = SessionKey::draw().unwrap();
        let config = LinkConfig::new(key, draw_session_id().unwrap());
        let node = Node::new(ServerId(3), |_, _| None, now + SAY_EVERY);
        let mut member = Member::new(node, Arc::new(config));
        let max = UNKNOWN_MAX;
        let links: Vec<LinkId> = (0..max + 10).filter_map(|_| member.accept(now)).collect();
        assert_eq!(links.len(), max + 10, "nobody is sent away unheard");
        let mut closed = Vec::new();
        let mut said = 0;
        while let Some(output) = member.poll_output() {
            match output {
                Output::Close { link, .. } => closed.push(link),
                Output::Refused { .. } => said += 1,
                _ => {}
            }
        }
        assert_eq!(closed, links[..10]);
        assert_eq!(said, 1);
    }
}
