//! The root: the front-end's end of the tree, where commands begin and answers are delivered.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use sdm_idset::IdSet;

use super::links::{Child, measure};
use super::{Action, Delivery, LinkId, Node, ProtocolError};
use crate::aggregate::Merge;
use crate::config::Config;
use crate::ids::{Attempt, CommandId, Epoch, ServerId};
use crate::limits;
use crate::message::{CommandMessage, EndPolicy, Health, Lane, ReachChange, Slice, SyncPolicy};

/// State that only the root has.
pub(super) struct Root {
    next_id: CommandId,
    /// Tasks that were reported to the user as silent or lost, and not as back.
    unreachable: IdSet,
    /// Children whose link was established before the plan was known.
    pub(super) early: Vec<(ServerId, LinkId)>,
}

/// Maximum number of complete commands whose missing or lost tasks may still answer; the oldest are dropped.
const LINGERING_MAX: usize = 64;

/// A command that the user of the tree submits at the root.
#[derive(Clone, PartialEq, Debug)]
pub struct Submission {
    /// The tasks that are to execute the command.
    pub destination: IdSet,
    /// The lane that the command takes down; answers always take control.
    pub lane: Lane,
    /// Policy by which each member decides when to send its answers to its parent.
    pub sync: SyncPolicy,
    /// Number of the merge rule for the answers; 0 merges equal ones.
    pub rule: u16,
    /// The rule's parameters.
    pub rule_params: Bytes,
    /// The command itself, opaque to the tree.
    pub payload: Bytes,
}

impl Submission {
    /// A command of the control lane. Its tasks are waited for, and equal answers are merged.
    #[must_use]
    pub fn new(destination: IdSet, payload: impl Into<Bytes>) -> Self {
        Self {
            destination,
            lane: Lane::Control,
            sync: SyncPolicy::WaitForAll,
            rule: 0,
            rule_params: Bytes::new(),
            payload: payload.into(),
        }
    }
}

impl Node {
    /// The front-end's end of the tree. Give it the master's link by [`Node::handle_child_up`]
    /// and the plan by [`Node::start`], in either order.
    #[must_use]
    pub fn root(
        now: Instant,
        rules: impl Fn(u16, &[u8]) -> Option<Box<dyn Merge>> + Send + Sync + 'static,
    ) -> Self {
        let mut node = Self::new(ServerId::FRONT_END, rules, now);
        node.orphan = None;
        node.root = Some(Box::new(Root {
            next_id: CommandId(1),
            unreachable: IdSet::new(),
            early: Vec::new(),
        }));
        node
    }

    /// Begins the session. The first entry of `plan` is the master; all servers are below it. Answers to
    /// [`CommandId::INIT`] report the tasks that are ready.
    ///
    /// # Errors
    /// A plan that is not a tree, or is too large to be sent.
    pub fn start(
        &mut self,
        now: Instant,
        config: Config,
        plan: Slice,
    ) -> Result<(), ProtocolError> {
        let Some((height, all)) = measure(&plan) else {
            return Err(ProtocolError(
                "the plan of the server tree is not a tree".to_owned(),
            ));
        };
        super::plan::check(&plan)?;
        self.height = height + 1;
        self.config = Some(Arc::new(config));
        self.known_above = all.clone();
        self.add_child(Child::new(plan, all.clone(), Epoch(1)));
        self.ask_init(now, &all);
        let early = self.root.as_mut().map(|root| &mut root.early);
        for (server, link) in early.map(std::mem::take).unwrap_or_default() {
            self.handle_child_up(now, link, server, Epoch(0));
        }
        Ok(())
    }

    /// Sends a command; its answers are delivered under the returned id.
    ///
    /// # Panics
    /// Before [`Node::start`], or at a node that is not the root: the caller's error.
    pub fn submit(&mut self, now: Instant, submission: Submission) -> CommandId {
        let root = self.root.as_mut().expect("only the root submits");
        let id = root.next_id;
        root.next_id.0 += 1;
        self.forget_lingering();
        let command = CommandMessage {
            id,
            attempt: Attempt(0),
            destination: submission.destination,
            lane: submission.lane,
            sync: submission.sync,
            rule: submission.rule,
            rule_params: submission.rule_params,
            settled_below: id,
            open: self.open.iter().map(super::OpenCommand::id).collect(),
            payload: submission.payload,
        };
        let at = self.open_position(id).expect_err("ids are never reused");
        if let Err(ProtocolError(why)) = self.begin(now, at, command.clone()) {
            // The limit of open commands is reached: no task is asked, and all are reported as missing.
            let answer = Delivery::Answer {
                id,
                blocks: Vec::new(),
                missing: vec![(command.destination, why)],
                lost: IdSet::new(),
                late: IdSet::new(),
            };
            self.actions.push_back(Action::Deliver(answer));
            self.actions
                .push_back(Action::Deliver(Delivery::Complete(id)));
        }
        id
    }

    /// Cancels a command. Destinations that have not answered fail with `cancelled`. Destinations to which the
    /// cancellation cannot be sent are reported missing.
    pub fn cancel(&mut self, now: Instant, id: CommandId) {
        // The root has no link above: only its own bookkeeping could refuse, and it does not.
        let _ = self.handle_cancel(now, id);
    }

    /// Ends the session; [`Action::Ended`] follows when all members below are gone, or the time limit has passed.
    pub fn finish(&mut self, now: Instant, policy: EndPolicy) {
        let _ = self.end(now, policy);
    }

    fn forget_lingering(&mut self) {
        let lingering = self.open.iter().filter(|open| open.completed).count();
        if lingering > LINGERING_MAX
            && let Some(at) = self.open.iter().position(|open| open.completed)
        {
            self.open.remove(at);
        }
    }

    pub(super) fn deliver_answer(&mut self, at: usize) {
        let open = &mut self.open[at];
        let id = open.id();
        open.flush_at = None;
        open.oldest = None;
        if open.has_something_to_tell() {
            let delivery = Delivery::Answer {
                id,
                blocks: open
                    .gathered
                    .take(open.rule.as_deref(), limits::PAYLOAD_BYTES_MAX),
                missing: open.untold_missing.take(),
                lost: std::mem::take(&mut open.untold_lost),
                late: std::mem::take(&mut open.late),
            };
            self.actions.push_back(Action::Deliver(delivery));
        }
        if open.open.is_empty() && !open.completed {
            open.completed = true;
            self.actions
                .push_back(Action::Deliver(Delivery::Complete(id)));
        }
        if open.open.is_empty() && open.missing.is_empty() && open.lost.is_empty() {
            self.open.remove(at);
        }
    }

    pub(super) fn deliver_reach(&mut self, mut change: ReachChange) {
        if let Some(root) = &mut self.root {
            match change.health {
                Health::Reachable => {
                    change.tasks.intersect_with(&root.unreachable);
                    root.unreachable.subtract(&change.tasks);
                }
                Health::Silent => {
                    change.tasks.subtract(&root.unreachable);
                    root.unreachable.union_with(&change.tasks);
                }
                Health::Lost => root.unreachable.union_with(&change.tasks),
            }
        }
        if !change.tasks.is_empty() {
            let delivery = Delivery::Reach(change);
            self.actions.push_back(Action::Deliver(delivery));
        }
    }

    /// The tasks of a command that are waited for; `None` if the command is not open.
    #[must_use]
    pub fn waited_for(&self, id: CommandId) -> Option<&IdSet> {
        let at = self.open_position(id).ok()?;
        Some(&self.open[at].open)
    }
}
