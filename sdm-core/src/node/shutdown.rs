//! The end of a session: the request goes down, the members below end, then this member does.

use std::time::{Duration, Instant};

use super::{Action, Node, ProtocolError};
use crate::message::{EndPolicy, Message};

/// Time limit of a member's wait for the members below it to end.
const END_WAIT: Duration = Duration::from_secs(6);

/// A session that is being ended.
pub(super) struct Shutdown {
    local_down: bool,
    told: bool,
    deadline: Instant,
}

impl Shutdown {
    pub(super) fn deadline(&self) -> Option<Instant> {
        (!self.told).then_some(self.deadline)
    }
}

impl Node {
    pub(super) fn end(&mut self, now: Instant, policy: EndPolicy) -> Result<(), ProtocolError> {
        if self.ending.is_some() {
            return Ok(());
        }
        self.ending = Some(Shutdown {
            local_down: false,
            told: false,
            deadline: now + END_WAIT,
        });
        for (server, link) in self.child_links() {
            self.actions.push_back(match link {
                Some(link) => Action::Send {
                    link,
                    message: Message::End(policy),
                },
                None => Action::StopConnecting(server),
            });
        }
        self.forget_unlinked();
        self.actions.push_back(Action::End(policy));
        Ok(())
    }

    /// Ends this member alone, on a request from outside the session; its children find
    /// another parent. [`Action::Ended`] follows when the own tasks are down.
    pub fn leave(&mut self, now: Instant, policy: EndPolicy) {
        if self.ending.is_some() {
            return;
        }
        self.ending = Some(Shutdown {
            local_down: false,
            told: false,
            deadline: now + END_WAIT,
        });
        for (server, link) in self.child_links() {
            self.actions.push_back(match link {
                Some(link) => Action::Close(link),
                None => Action::StopConnecting(server),
            });
        }
        self.children.clear();
        self.actions.push_back(Action::End(policy));
    }

    /// The own tasks are shut down, as [`Action::End`] asked.
    pub fn handle_local_down(&mut self) {
        if let Some(ending) = &mut self.ending {
            ending.local_down = true;
            self.check_ended();
        }
    }

    pub(super) fn check_ended(&mut self) {
        let children = self.children.len();
        if let Some(ending) = &mut self.ending
            && ending.local_down
            && children == 0
            && !ending.told
        {
            ending.told = true;
            self.actions.push_back(Action::Ended);
        }
    }

    pub(super) fn ending_timeout(&mut self, now: Instant) {
        if let Some(ending) = &mut self.ending
            && ending.deadline <= now
            && !ending.told
        {
            ending.told = true;
            self.actions.push_back(Action::Ended);
        }
    }

    /// True once the end has begun.
    #[must_use]
    pub fn is_ending(&self) -> bool {
        self.ending.is_some()
    }
}
