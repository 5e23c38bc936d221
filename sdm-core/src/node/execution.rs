//! Own tasks: a command is executed at most once, and a repeat is answered from the stored answer.

use std::time::Instant;

use bytes::Bytes;
use sdm_idset::IdSet;

use super::audit::Disagreement;
use super::{Action, Node, reserve_first};
use crate::failure::{RawFailure, codes};
use crate::ids::CommandId;
use crate::limits;
use crate::message::{Block, Status};

/// A command that own tasks have received, until it is settled.
pub(super) struct Executed {
    id: CommandId,
    /// The tasks that have received it.
    tasks: IdSet,
    /// The answers of the tasks, one block for each distinct answer. No block where the payload was dropped to limit
    /// the memory.
    answers: Vec<(IdSet, Option<Block>)>,
}

impl Executed {
    pub(super) fn id(&self) -> CommandId {
        self.id
    }

    fn bytes(&self) -> usize {
        let blocks = self.answers.iter().filter_map(|(_, block)| block.as_ref());
        blocks.map(|block| block.payload.len()).sum()
    }
}

impl Node {
    /// Passes a command to own tasks; tasks that have executed it before are answered from the cache.
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
        let known = self.executed.iter().position(|executed| executed.id == id);
        let at = known.unwrap_or_else(|| {
            self.note_executed(id, &IdSet::new());
            self.executed.len() - 1
        });
        let executed = &mut self.executed[at];
        let fresh = tasks.difference(&executed.tasks);
        executed.tasks.union_with(&fresh);
        let mut again = Vec::new();
        for (sources, block) in &executed.answers {
            let sources = sources.intersection(tasks);
            if !sources.is_empty() {
                again.push(match block {
                    Some(block) => Block {
                        sources,
                        ..block.clone()
                    },
                    None => answer_lost(sources),
                });
            }
        }
        if !fresh.is_empty() {
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
        reserve_first(&mut self.executed);
        self.executed.push(Executed {
            id,
            tasks: tasks.clone(),
            answers: Vec::new(),
        });
    }

    /// Stores an answer until its command is settled. Where stored payloads exceed their limit, the oldest ones are
    /// dropped, but not the fact that the tasks have answered.
    pub(super) fn remember(&mut self, id: CommandId, block: &Block) {
        let Some(at) = self.executed.iter().position(|executed| executed.id == id) else {
            return;
        };
        let answers = &mut self.executed[at].answers;
        reserve_first(answers);
        answers.push((block.sources.clone(), Some(block.clone())));
        let mut bytes: usize = self.executed.iter().map(Executed::bytes).sum();
        // The oldest payloads go first; that the command was done is never forgotten.
        for executed in &mut self.executed {
            if bytes <= limits::REPLY_CACHE_BYTES_MAX {
                break;
            }
            bytes -= executed.bytes();
            executed
                .answers
                .iter_mut()
                .for_each(|(_, block)| *block = None);
        }
    }

    /// Checks that a task answers a command once, and that stored answers stay within their bound.
    pub(super) fn audit_executed(&self) -> Result<(), Disagreement> {
        for executed in &self.executed {
            let mut answered = IdSet::new();
            for (sources, _) in &executed.answers {
                if !sources.is_disjoint(&answered) || !sources.is_subset(&executed.tasks) {
                    return Err(Disagreement::AnsweredTwice {
                        tasks: sources.clone(),
                        id: executed.id,
                    });
                }
                answered.union_with(sources);
            }
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
