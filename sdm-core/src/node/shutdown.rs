//! The end of a session or of one member: the request goes down, the members below end, then this member does. Also the
//! wait of a member without a parent.

use std::borrow::Cow;
use std::time::{Duration, Instant};

use super::links::name;
use super::{Action, Node, ProtocolError};
use crate::message::{EndPolicy, Lane, Message};

/// Time limit of a member's wait for the members below it to end.
const END_WAIT: Duration = Duration::from_secs(6);

/// The wait of a member without a parent. The member ends if no parent comes before the deadline.
pub(super) struct Orphan {
    deadline: Instant,
    why: Cow<'static, str>,
}

impl Orphan {
    /// The wait of a member that has not had a parent yet.
    pub(super) fn new(deadline: Instant) -> Self {
        let why = Cow::Borrowed("no parent has connected");
        Self { deadline, why }
    }

    /// The wait of a member that has lost its parent, with the reason.
    pub(super) fn after(deadline: Instant, why: &str) -> Self {
        let why = Cow::Owned(why.to_owned());
        Self { deadline, why }
    }

    pub(super) fn deadline(&self) -> Instant {
        self.deadline
    }
}

/// The end under way, of the session or of this member alone.
pub(super) struct Shutdown {
    /// Reason for the loss of the parent, if that loss has ended the member; otherwise `None`.
    parent_loss: Option<Cow<'static, str>>,
    local_down: bool,
    told: bool,
    deadline: Instant,
}

impl Shutdown {
    fn until(deadline: Instant) -> Self {
        Self {
            parent_loss: None,
            local_down: false,
            told: false,
            deadline,
        }
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        (!self.told).then_some(self.deadline)
    }
}

impl Node {
    pub(super) fn end(&mut self, now: Instant, policy: EndPolicy) -> Result<(), ProtocolError> {
        if self.ending.is_some() {
            return Ok(());
        }
        self.ending = Some(Box::new(Shutdown::until(now + END_WAIT)));
        for (server, link) in self.child_links() {
            self.actions.push_back(match link {
                Some(link) => Action::Send {
                    link,
                    message: Message::End(policy),
                },
                None => Action::StopConnecting(server),
            });
        }
        self.forget_unlinked(now);
        self.actions.push_back(Action::End(policy));
        Ok(())
    }

    /// Ends this member alone, on a request from outside the session; its children find another parent.
    /// [`Action::Ended`] follows when the own tasks are down, or at a time limit.
    pub fn leave(&mut self, now: Instant, policy: EndPolicy) {
        if self.ending.is_some() {
            return;
        }
        self.ending = Some(Box::new(Shutdown::until(now + END_WAIT)));
        for (server, link) in self.child_links() {
            self.actions.push_back(match link {
                Some(link) => Action::Close(link),
                None => Action::StopConnecting(server),
            });
        }
        self.children.clear();
        self.actions.push_back(Action::End(policy));
    }

    /// Records that the own tasks are shut down, as [`Action::End`] has requested. Their last events, which wait here
    /// to be sent together, are sent before the end.
    pub fn handle_local_down(&mut self, now: Instant) {
        self.flush_events(Lane::Control, now);
        self.flush_events(Lane::Bulk, now);
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
            self.send_up(Message::Ended);
            self.actions.push_back(Action::Ended);
        }
    }

    pub(super) fn ending_timeout(&mut self, now: Instant) {
        if let Some(ending) = &mut self.ending
            && ending.deadline <= now
            && !ending.told
        {
            ending.told = true;
            for child in std::mem::take(&mut self.children) {
                if !child.has_ended {
                    let why = format!("{} has not ended in {END_WAIT:?}", name(&child.slice[0]));
                    self.lose(now, &child.reach, &why);
                }
            }
            self.actions.push_back(Action::Ended);
        }
    }

    pub(super) fn orphan_timeout(&mut self, now: Instant) {
        let Some(orphan) = self.orphan.take_if(|orphan| orphan.deadline <= now) else {
            return;
        };
        let config = self.config.as_ref();
        let policy = config.map_or(EndPolicy::KillStarted, |config| config.on_lost);
        let asked_for = self.is_ending();
        let _ = self.end(now, policy);
        if let Some(ending) = self.ending.as_mut().filter(|_| !asked_for) {
            ending.parent_loss = Some(orphan.why);
        }
    }

    /// Reason for the loss of the parent, if this member ends because of that loss. `None` if it ends on request.
    #[must_use]
    pub fn parent_loss(&self) -> Option<&str> {
        self.ending.as_ref()?.parent_loss.as_deref()
    }

    /// True once the end has begun.
    #[must_use]
    pub fn is_ending(&self) -> bool {
        self.ending.is_some()
    }
}
