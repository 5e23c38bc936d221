//! Fast path for a command to own tasks alone that is answered at once: executed without the state that an
//! open command needs.
//!
//! Afterwards the member has the same record as on the usual path: the command was executed, and its answer is kept
//! for repeats.

use std::time::Instant;

use bytes::Bytes;
use sdm_idset::IdSet;

use super::{LinkId, Node};
use crate::codec::BorrowedCommand;
use crate::ids::CommandId;
use crate::limits;
use crate::message::{Block, Lane, Status};

/// The own tasks of a member, for which a command has just arrived.
pub trait LocalTasks {
    /// Begins a command on `tasks`; `payload` is the encoded command. If all of them give the same answer at once, it
    /// is returned, and nothing follows. `None`: each task answers later, once
    /// ([`crate::member::Member::handle_local`]), and the owner gets [`crate::member::Output::Begun`].
    fn execute(
        &mut self,
        now: Instant,
        id: CommandId,
        tasks: &IdSet,
        payload: &[u8],
    ) -> Option<(Status, Bytes)>;
}

impl Node {
    /// True if this member has no children, and the link leads to its parent.
    pub(crate) fn is_leaf_of(&self, link: LinkId) -> bool {
        self.parent_link() == Some(link) && self.config.is_some() && self.children.is_empty()
    }

    /// True if a command of the parent of a leaf can be given to [`Node::execute_at_once`]: it is new, of the control
    /// lane, without a merge rule, and for own tasks alone. No earlier action or event has to be sent before its
    /// answer.
    pub(crate) fn is_quick(&self, command: &BorrowedCommand<'_>) -> bool {
        let id = command.id;
        let is_settled =
            self.settled.has(id) || (id < command.settled_below && !command.open.contains(&id));
        self.actions.is_empty()
            && !self.has_control_events()
            && id != CommandId::INIT
            && !is_settled
            && command.lane == Lane::Control
            && command.rule == 0
            && !command.destination.is_empty()
            && command.destination.is_subset(&self.local)
            && self.open.len() < limits::OPEN_COMMANDS_MAX
            && self.open_position(id).is_err()
            && !self.has_executed(id)
    }

    /// Passes a command to the own tasks, and returns the answer if they have it at once. Otherwise it returns `None`,
    /// and the command is open from now on, as after [`Node::handle_message`] and its execution.
    pub(crate) fn execute_at_once(
        &mut self,
        now: Instant,
        command: BorrowedCommand<'_>,
        tasks: &mut dyn LocalTasks,
    ) -> Option<Block> {
        let id = command.id;
        let number = format_args!("{}.{}", id.0, command.attempt.0);
        let _command = tracing::info_span!("command", id = %number).entered();
        tracing::info!(tasks = %command.destination, "received");
        self.settle(command.settled_below, &command.open);
        self.note_executed(id, &command.destination);
        let answer = tasks.execute(now, id, &command.destination, command.payload);
        let Some((status, payload)) = answer else {
            let at = self
                .open_position(id)
                .expect_err("the command is not open yet");
            let begun = self.begin(now, at, command.into_owned());
            begun.expect("there was room for one more");
            return None;
        };
        let block = Block {
            status,
            sources: command.destination,
            payload,
        };
        self.remember(id, &block);
        Some(block)
    }
}
