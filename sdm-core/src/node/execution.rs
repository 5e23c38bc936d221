//! Own tasks: a command is executed at most once, and a repeat is answered from the stored answer.

use std::collections::BTreeMap;
use std::time::Instant;

use bytes::Bytes;
use sdm_idset::IdSet;

use super::audit::Disagreement;
use super::{Action, Node, reserve_first};
use crate::failure::{RawFailure, codes};
use crate::ids::CommandId;
use crate::limits;
use crate::message::{Block, Status};

/// Maximum size of a payload that is copied to be kept, in bytes.
const COPIED_BYTES_MAX: usize = 1024;

/// Own tasks that have received a command and have the same answer to it, until the command is settled. A task is in one
/// entry of a command only.
pub(super) struct Executed {
    id: CommandId,
    tasks: IdSet,
    answer: LocalAnswer,
}

/// The answer of tasks that have received a command.
enum LocalAnswer {
    /// The tasks have not answered yet.
    None,
    /// The answer of each of the tasks.
    Given(Status, Bytes),
    /// The payload was dropped to limit the memory.
    Dropped,
}

impl Executed {
    pub(super) fn id(&self) -> CommandId {
        self.id
    }

    fn is_unanswered(&self, id: CommandId) -> bool {
        self.id == id && matches!(self.answer, LocalAnswer::None)
    }

    fn bytes(&self) -> usize {
        match &self.answer {
            LocalAnswer::Given(_, payload) => payload.len(),
            LocalAnswer::None | LocalAnswer::Dropped => 0,
        }
    }

    /// The answer to a repeated command, for those of `tasks` that have answered; `None` if none of them has.
    fn repeated(&self, tasks: &IdSet) -> Option<Block> {
        let sources = self.tasks.intersection(tasks);
        match &self.answer {
            _ if sources.is_empty() => None,
            LocalAnswer::None => None,
            LocalAnswer::Given(status, payload) => Some(Block {
                status: *status,
                sources,
                payload: payload.clone(),
            }),
            LocalAnswer::Dropped => Some(answer_lost(sources)),
        }
    }
}

impl Node {
    /// Passes a command to own tasks that have not received it before. Tasks that have answered it are answered from
    /// the cache. [`CommandId::INIT`] is answered at once.
    pub(super) fn execute(&mut self, now: Instant, id: CommandId, tasks: &IdSet) {
        if id == CommandId::INIT {
            let ready = Block {
                status: Status::Ok,
                sources: tasks.clone(),
                payload: Bytes::new(),
            };
            self.count_local(now, id, ready);
            return;
        }
        let known = self.executed.iter().filter(|executed| executed.id == id);
        let again: Vec<Block> = known.clone().filter_map(|it| it.repeated(tasks)).collect();
        let fresh = tasks.difference(&IdSet::union_all(known.map(|it| &it.tasks)));
        if !fresh.is_empty() {
            self.note_executed(id, &fresh);
            let at = self.open_position(id).expect("what is executed is open");
            let payload = self.open[at].command.payload.clone();
            self.actions.push_back(Action::Execute {
                id,
                tasks: fresh,
                payload,
            });
        }
        for block in again {
            self.count_local(now, id, block);
        }
    }

    /// True if own tasks have received a command.
    pub(super) fn has_executed(&self, id: CommandId) -> bool {
        self.executed.iter().any(|executed| executed.id == id)
    }

    /// Records that own tasks receive a command for the first time.
    pub(super) fn note_executed(&mut self, id: CommandId, tasks: &IdSet) {
        let unanswered = self.executed.iter_mut().find(|it| it.is_unanswered(id));
        match unanswered {
            Some(unanswered) => unanswered.tasks.union_with(tasks),
            None => self.keep(id, tasks, LocalAnswer::None),
        }
    }

    fn keep(&mut self, id: CommandId, tasks: &IdSet, answer: LocalAnswer) {
        reserve_first(&mut self.executed);
        let tasks = tasks.clone();
        self.executed.push(Executed { id, tasks, answer });
    }

    /// Stores an answer until its command is settled. If the stored payloads exceed their limit, the oldest ones are
    /// dropped. It stays recorded that their tasks have answered.
    pub(super) fn remember(&mut self, id: CommandId, block: &Block) {
        if !self.has_executed(id) {
            return;
        }
        let payload = match block.payload.len() {
            // What a small payload is a part of may be far larger.
            0..=COPIED_BYTES_MAX => Bytes::copy_from_slice(&block.payload),
            _ => block.payload.clone(),
        };
        let answer = LocalAnswer::Given(block.status, payload);
        let unanswered = self.executed.iter_mut().find(|it| it.is_unanswered(id));
        match unanswered {
            Some(unanswered) if unanswered.tasks == block.sources => unanswered.answer = answer,
            unanswered => {
                if let Some(unanswered) = unanswered {
                    unanswered.tasks.subtract(&block.sources);
                }
                self.keep(id, &block.sources, answer);
            }
        }
        let mut bytes: usize = self.executed.iter().map(Executed::bytes).sum();
        // The oldest payloads go first; that the command was done is never forgotten.
        for executed in &mut self.executed {
            if bytes <= limits::REPLY_CACHE_BYTES_MAX {
                break;
            }
            bytes -= executed.bytes();
            if let LocalAnswer::Given(..) = executed.answer {
                executed.answer = LocalAnswer::Dropped;
            }
        }
    }

    /// Checks that a task answers a command once, and that stored answers stay within their bound.
    pub(super) fn audit_executed(&self) -> Result<(), Disagreement> {
        let mut all: BTreeMap<CommandId, IdSet> = BTreeMap::new();
        for Executed { id, tasks, .. } in &self.executed {
            let before = all.entry(*id).or_default();
            if !before.is_disjoint(tasks) {
                let tasks = before.intersection(tasks);
                return Err(Disagreement::AnsweredTwice { tasks, id: *id });
            }
            before.union_with(tasks);
        }
        let bytes: usize = self.executed.iter().map(Executed::bytes).sum();
        if bytes > limits::REPLY_CACHE_BYTES_MAX {
            return Err(Disagreement::Remembered(bytes));
        }
        Ok(())
    }
}

fn answer_lost(sources: IdSet) -> Block {
    let failure = RawFailure::new(
        codes::ANSWER_LOST,
        "the command was carried out, but its answer was too large to be sent again",
    );
    Block {
        status: Status::Failed,
        sources,
        payload: failure.encode(),
    }
}
