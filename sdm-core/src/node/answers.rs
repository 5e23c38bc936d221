//! Answers on their way up: counted once, merged, and sent in time.

use std::time::{Duration, Instant};

use bytes::Bytes;
use sdm_idset::IdSet;

use super::{Node, ProtocolError};
use crate::failure::{RawFailure, codes};
use crate::ids::CommandId;
use crate::limits;
use crate::message::{Answer, Block, Message, Status, SyncPolicy};

impl Node {
    pub(super) fn handle_answer(
        &mut self,
        now: Instant,
        child: usize,
        answer: Answer,
    ) -> Result<(), ProtocolError> {
        let Ok(at) = self.open_position(answer.id) else {
            return Ok(());
        };
        let server = self.children[child].server;
        if self.open[at].attempt_of(server) != answer.attempt {
            return Ok(());
        }
        let born = now
            .checked_sub(Duration::from_micros(answer.age_us.into()))
            .unwrap_or(now);
        let reach = self.children[child].reach().clone();
        let mut ask_again = false;
        for block in answer.blocks {
            ask_again |= !self.count(at, &reach, block, born);
        }
        let open = &mut self.open[at];
        for (tasks, why) in answer.missing {
            open.miss(&tasks.intersection(&reach), why, born);
        }
        open.lose(&answer.lost.intersection(&reach), born);
        if ask_again {
            self.send_again(at, child);
        }
        self.tell(now, answer.id);
        Ok(())
    }

    /// Counts one block of answers from `reach`. Returns false if the block cannot be divided and contains
    /// answers that were counted before; the rest must then be requested again.
    fn count(&mut self, at: usize, reach: &IdSet, mut block: Block, born: Instant) -> bool {
        let open = &mut self.open[at];
        let expected = open.uncounted().intersection(reach);
        if !block.sources.is_subset(&expected) {
            let divisible = open.rule.is_none() || block.status != Status::Ok;
            if !divisible {
                return block.sources.is_disjoint(&expected);
            }
            block.sources.intersect_with(&expected);
        }
        if block.sources.is_empty() {
            return true;
        }
        open.hear(&block.sources, born);
        let classes_max = self.config.as_ref().map_or(1, |config| config.classes_max) as usize;
        let open = &mut self.open[at];
        open.gathered.add(
            open.rule.as_deref(),
            classes_max.min(limits::CLASSES_MAX),
            block,
        );
        true
    }

    /// Handles an answer of own tasks to [`super::Action::Execute`]. The `payload` of a failed answer is an encoded
    /// [`RawFailure`].
    pub fn handle_local(
        &mut self,
        now: Instant,
        id: CommandId,
        tasks: &IdSet,
        status: Status,
        payload: Bytes,
    ) {
        let sources = tasks.intersection(&self.local);
        let block = Block {
            status,
            sources,
            payload,
        };
        self.remember(id, &block);
        self.count_local(now, id, block);
    }

    pub(super) fn count_local(&mut self, now: Instant, id: CommandId, block: Block) {
        if let Ok(at) = self.open_position(id) {
            let local = self.local.clone();
            self.count(at, &local, block, now);
            self.tell(now, id);
        }
    }

    /// Fails the initialisation for members that could not be reached, in their place. `why` names them and the reason.
    pub(super) fn fail_init(&mut self, now: Instant, tasks: &IdSet, why: &str) {
        if let Ok(at) = self.open_position(CommandId::INIT) {
            let payload = RawFailure::new(codes::UNREACHABLE, why).encode();
            let block = Block {
                status: Status::Failed,
                sources: tasks.clone(),
                payload,
            };
            self.count(at, tasks, block, now);
            self.tell(now, CommandId::INIT);
        }
    }

    /// Decides when the results of a command are sent to the parent, and sends them if they are due.
    pub(super) fn tell(&mut self, now: Instant, id: CommandId) {
        let Ok(at) = self.open_position(id) else {
            return;
        };
        let is_root = self.root.is_some();
        let window = self.config().event_window;
        let open = &mut self.open[at];
        if open.has_something_to_tell() && !open.open.is_empty() && !is_root {
            let waits = open.command.sync != SyncPolicy::DontWait;
            if waits && open.untold_missing.is_empty() && open.late.is_empty() {
                // It goes up whole, or when the time is over.
                return;
            }
            let due = open.oldest.unwrap_or(now) + window;
            if due > now {
                open.flush_at = Some(open.flush_at.map_or(due, |at| at.min(due)));
                return;
            }
        }
        self.flush(now, at);
    }

    /// Sends the results of a command that have not been sent yet, and forgets the command when it is over.
    pub(super) fn flush(&mut self, now: Instant, at: usize) {
        if self.root.is_some() {
            self.deliver_answer(at);
            return;
        }
        self.open[at].flush_at = None;
        // Without a parent it waits for the next one to ask.
        let Some(link) = self.parent_link() else {
            return;
        };
        let open = &mut self.open[at];
        // Only the parent that asked can count the answer; another one will ask itself.
        if open.has_something_to_tell() && open.asked_by == Some(link) {
            // Earlier events of the sources must be sent before the answer.
            let sources = open.gathered.sources().clone();
            self.flush_events_of(now, &sources);
            let open = &mut self.open[at];
            let blocks = open
                .gathered
                .take(open.rule.as_deref(), limits::PAYLOAD_BYTES_MAX);
            let oldest = open.oldest.take().unwrap_or(now);
            let age = now.saturating_duration_since(oldest).as_micros();
            let missing = open.untold_missing.take();
            open.late.clear();
            let answer = Answer {
                id: open.id(),
                attempt: open.command.attempt,
                age_us: u32::try_from(age).unwrap_or(u32::MAX),
                blocks,
                missing,
                lost: std::mem::take(&mut open.untold_lost),
            };
            let (id, attempt) = (answer.id.0, answer.attempt.0);
            tracing::debug!(command = %format_args!("{id}.{attempt}"), %sources, "answers go up");
            self.send_answer(answer);
        }
        let open = &self.open[at];
        let over = open.open.is_empty() && open.missing.is_empty() && open.lost.is_empty();
        if over && !open.has_something_to_tell() {
            self.open.remove(at);
            if self.open.is_empty() {
                self.open = Vec::new();
            }
        }
    }

    /// Sends an answer in as many messages as its size needs.
    fn send_answer(&mut self, mut answer: Answer) {
        const MESSAGE_BYTES: usize = limits::FRAME_BYTES_MAX / 4;
        loop {
            let mut bytes = 0;
            let is_beyond = |(at, block): (usize, &Block)| {
                bytes += block.payload.len() + 64;
                at > 0 && bytes > MESSAGE_BYTES
            };
            let Some(end) = answer.blocks.iter().enumerate().position(is_beyond) else {
                return self.send_up(Message::Answer(answer));
            };
            let rest = Answer {
                blocks: answer.blocks.split_off(end),
                missing: Vec::new(),
                lost: IdSet::new(),
                ..answer
            };
            self.send_up(Message::Answer(std::mem::replace(&mut answer, rest)));
        }
    }

    /// Sends gathered run-control answers and waiting events of some tasks, before a newer message of these tasks.
    pub(super) fn flush_for(&mut self, now: Instant, tasks: &IdSet) {
        let mut at = 0;
        while at < self.open.len() {
            let open = &self.open[at];
            let older = open.command.sync == SyncPolicy::DontWait
                && !open.gathered.sources().is_disjoint(tasks);
            let before = self.open.len();
            if older {
                self.flush(now, at);
            }
            at += usize::from(self.open.len() == before);
        }
        self.flush_events_of(now, tasks);
    }
}
