//! Conversion of a backend's outputs into messages to the parent, with equal answers merged.

use bytes::Bytes;
use sdm_core::CommandId;
use sdm_core::aggregate::Aggregate;
use sdm_core::message::{Block, Lane, Status};
use sdm_debug::{BackendOutput, Failure, Reply, wire};
use sdm_idset::IdSet;

/// A message to the parent.
#[derive(Debug, PartialEq)]
pub(crate) enum ParentMessage {
    /// The answer to a command.
    Answer(CommandId, Block),
    /// An event: its tasks, its lane and its payload.
    Event(IdSet, Lane, Bytes),
}

/// The status and payload of an answer in the tree's encoding.
pub(crate) fn payload_of(result: Result<Reply, Failure>) -> (Status, Bytes) {
    match result {
        Ok(reply) => (Status::Ok, wire::encode(&reply).into()),
        Err(failure) => (Status::Failed, failure.encode()),
    }
}

/// Messages to the parent, in order. Equal answers of several tasks are merged into one, so that the tree
/// receives it once.
#[derive(Default)]
pub(crate) struct Outbox {
    list: Vec<ParentMessage>,
    /// The command that is being answered, with its answers so far; `None` after any other output, because a later
    /// answer must not overtake that output.
    answers: Option<(CommandId, Aggregate)>,
}

impl Outbox {
    /// Adds an output of the backend.
    pub(crate) fn add(&mut self, output: BackendOutput) {
        match output {
            BackendOutput::Answer { id, task, result } => {
                if self.answers.as_ref().is_some_and(|(of, _)| *of != id) {
                    self.end_answers();
                }
                let (status, payload) = payload_of(result);
                let sources = IdSet::single(task);
                let (_, answers) = self
                    .answers
                    .get_or_insert_with(|| (id, Aggregate::default()));
                let block = Block {
                    status,
                    sources,
                    payload,
                };
                answers.add(None, usize::MAX, block);
            }
            BackendOutput::Event { task, event } => {
                self.end_answers();
                let lane = if event.is_bulk() {
                    Lane::Bulk
                } else {
                    Lane::Control
                };
                let payload = wire::encode(&event).into();
                self.list
                    .push(ParentMessage::Event(IdSet::single(task), lane, payload));
            }
        }
    }

    fn end_answers(&mut self) {
        if let Some((id, answers)) = self.answers.take() {
            let blocks = answers.into_classes().into_iter();
            self.list
                .extend(blocks.map(|block| ParentMessage::Answer(id, block)));
        }
    }

    /// True if there is no message.
    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty() && self.answers.is_none()
    }
}

impl IntoIterator for Outbox {
    type Item = ParentMessage;
    type IntoIter = std::vec::IntoIter<ParentMessage>;

    fn into_iter(mut self) -> Self::IntoIter {
        self.end_answers();
        self.list.into_iter()
    }
}

#[cfg(test)]
mod tests {
    use sdm_debug::{Event, FailureCode};
    use sdm_idset::TaskId;

    use super::*;

    fn answer(id: u64, task: u32, result: Result<Reply, Failure>) -> BackendOutput {
        let (id, task) = (CommandId(id), TaskId(task));
        BackendOutput::Answer { id, task, result }
    }

    fn said(outputs: Vec<BackendOutput>) -> Vec<String> {
        let mut said = Outbox::default();
        for output in outputs {
            said.add(output);
        }
        let show = |upward| match upward {
            ParentMessage::Answer(id, block) => {
                format!("{} {} {:?}", id.0, block.sources, block.status)
            }
            ParentMessage::Event(tasks, ..) => format!("event {tasks}"),
        };
        said.into_iter().map(show).collect()
    }

    #[test]
    fn equal_answers_of_tasks_are_merged() {
        let text = |text: &str| Ok(Reply::Text(text.to_owned()));
        let failed = || Err(Failure::new(FailureCode::Gdb, "no symbol"));
        let got = said(vec![
            answer(7, 3, text("a")),
            answer(7, 0, text("b")),
            answer(7, 5, failed()),
            answer(7, 1, text("a")),
            answer(7, 6, failed()),
            answer(8, 3, text("a")),
        ]);
        assert_eq!(got, ["7 1,3 Ok", "7 0 Ok", "7 5-6 Failed", "8 3 Ok"]);
    }

    #[test]
    fn answer_does_not_overtake_earlier_events_of_its_task() {
        let exited = |task| BackendOutput::Event {
            task: TaskId(task),
            event: Event::Exited { code: 0 },
        };
        let got = said(vec![
            answer(7, 0, Ok(Reply::Done)),
            exited(1),
            answer(7, 1, Ok(Reply::Done)),
            answer(7, 2, Ok(Reply::Done)),
        ]);
        assert_eq!(got, ["7 0 Ok", "event 1", "7 1-2 Ok"]);
        let done = |id, task| answer(id, task, Ok(Reply::Done));
        let got = said(vec![done(8, 0), done(7, 1), done(8, 1)]);
        assert_eq!(got, ["8 0 Ok", "7 1 Ok", "8 1 Ok"]);
    }
}
