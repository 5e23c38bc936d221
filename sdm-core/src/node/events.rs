//! Events on their way up: gathered and merged for a limited time, which is counted from the event's origin over the
//! whole way.

use std::time::{Duration, Instant};

use bytes::Bytes;
use sdm_idset::IdSet;

use super::{Action, Delivery, Node, ProtocolError};
use crate::aggregate::Aggregate;
use crate::limits;
use crate::message::{Block, EventBlock, EventMessage, Lane, Message, Status};

/// Events of one lane that wait to be sent to the parent.
///
/// The events are in rounds. A task has at most one event in a round, and a later one in a later round, so that its
/// events keep their order. Within a round equal events are one, found by their hash as equal answers are.
#[derive(Default)]
pub(super) struct Window {
    rounds: Vec<Aggregate>,
    /// Number of distinct events in all rounds.
    count: usize,
    bytes: usize,
    /// Origin time of the oldest waiting event, at whichever member below it happened; `None` if no event waits.
    oldest: Option<Instant>,
    due: Option<Instant>,
}

/// Maximum payload of one bulk message, in bytes.
const BULK_BYTES: usize = limits::BULK_CHUNK_BYTES_MAX;
/// Estimated overhead of a block in addition to its payload, in bytes.
const BLOCK_BYTES: usize = 32;
/// Number of last rounds that are searched for an event's place, so that the cost of an event does not grow with
/// the number of waiting ones.
const ROUNDS_LOOKED_AT: usize = 16;

impl Window {
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.due
    }

    fn is_empty(&self) -> bool {
        self.rounds.is_empty()
    }

    fn holds(&self, tasks: &IdSet) -> bool {
        self.rounds
            .iter()
            .any(|round| !round.sources().is_disjoint(tasks))
    }

    /// Adds an event: to an equal one after all earlier events of its sources, or in the first round after these.
    fn add(&mut self, block: EventBlock, born: Instant, window: Duration) {
        self.oldest = Some(self.oldest.map_or(born, |oldest| oldest.min(born)));
        self.due = self.oldest.map(|oldest| oldest + window);
        let EventBlock { sources, payload } = block;
        let block = Block {
            status: Status::Ok,
            sources,
            payload,
        };
        let looked_at = self.rounds.len().saturating_sub(ROUNDS_LOOKED_AT);
        let said = |round: &Aggregate| !round.sources().is_disjoint(&block.sources);
        let behind = self.rounds[looked_at..].iter().rposition(said);
        let first = behind.map_or(looked_at, |at| looked_at + at + 1);
        if self.rounds[first..]
            .iter_mut()
            .any(|round| round.join(&block))
        {
            return;
        }
        self.count += 1;
        self.bytes += block.payload.len() + BLOCK_BYTES;
        if first == self.rounds.len() {
            super::reserve_first(&mut self.rounds);
            self.rounds.push(Aggregate::default());
        }
        // A round keeps all its blocks; the excess is sent to the parent.
        self.rounds[first].add(None, usize::MAX, block);
    }

    /// True if the waiting events fill a message, and are sent to the parent before their time.
    fn is_full(&self, bytes_max: usize) -> bool {
        self.bytes >= bytes_max || self.count >= limits::BLOCKS_MAX
    }

    /// Removes all waiting events, as messages that a link can carry. After a congestion there may be far more
    /// events than one message holds.
    fn take(&mut self, lane: Lane, bytes_max: usize, now: Instant) -> Vec<EventMessage> {
        let gathered = std::mem::take(self);
        let age = gathered
            .oldest
            .map_or(Duration::ZERO, |o| now.saturating_duration_since(o));
        let age_us = u32::try_from(age.as_micros()).unwrap_or(u32::MAX);
        let mut events: Vec<EventMessage> = Vec::new();
        let mut bytes = 0;
        let blocks = gathered
            .rounds
            .into_iter()
            .flat_map(Aggregate::into_classes);
        for Block {
            sources, payload, ..
        } in blocks
        {
            let block = EventBlock { sources, payload };
            let own = block.payload.len() + BLOCK_BYTES;
            match events.last_mut() {
                Some(event)
                    if bytes + own <= bytes_max && event.blocks.len() < limits::BLOCKS_MAX =>
                {
                    bytes += own;
                    event.blocks.push(block);
                }
                _ => {
                    bytes = own;
                    events.push(EventMessage {
                        lane,
                        age_us,
                        blocks: vec![block],
                    });
                }
            }
        }
        events
    }
}

/// Maximum payload that one message of a lane gathers, in bytes. A single block may be larger.
fn bytes_max(lane: Lane) -> usize {
    match lane {
        Lane::Control => limits::PAYLOAD_BYTES_MAX,
        Lane::Bulk => BULK_BYTES,
    }
}

impl Node {
    pub(super) fn handle_event(
        &mut self,
        now: Instant,
        child: usize,
        event: EventMessage,
    ) -> Result<(), ProtocolError> {
        let born = now
            .checked_sub(Duration::from_micros(event.age_us.into()))
            .unwrap_or(now);
        let mut counted = self.children[child].reach().clone();
        let is_known = |block: &EventBlock| block.sources.is_subset(&counted);
        if event.lane == Lane::Bulk && !event.blocks.iter().all(is_known) {
            // The report of a loss overtakes what the lost tasks have printed before.
            let lost = self.children[child].planned.difference(&self.reach());
            counted.union_with(&lost);
        }
        for mut block in event.blocks {
            // A child's report counts only for tasks that it reaches now.
            block.sources.intersect_with(&counted);
            if !block.sources.is_empty() {
                self.add_event(now, event.lane, block, born);
            }
        }
        Ok(())
    }

    /// Adds an event of own tasks.
    pub fn handle_local_event(&mut self, now: Instant, lane: Lane, tasks: &IdSet, payload: Bytes) {
        let sources = tasks.intersection(&self.local);
        self.add_event(now, lane, EventBlock { sources, payload }, now);
    }

    fn add_event(&mut self, now: Instant, lane: Lane, block: EventBlock, born: Instant) {
        if lane == Lane::Control {
            self.flush_answers_of(now, &block.sources);
        }
        if self.root.is_some() {
            self.actions
                .push_back(Action::Deliver(Delivery::Events(vec![block])));
            return;
        }
        let window = self
            .config
            .as_ref()
            .map_or(Duration::ZERO, |config| config.event_window);
        let waiting = match lane {
            Lane::Control => &mut self.control,
            Lane::Bulk => &mut self.bulk,
        };
        waiting.add(block, born, window);
        if waiting.is_full(bytes_max(lane)) || self.everyone_said(lane) {
            self.flush_events(lane, now);
        }
    }

    /// True if a single event waits, and it came from all tasks at or below this member: waiting longer gathers
    /// nothing.
    fn everyone_said(&self, lane: Lane) -> bool {
        let waiting = match lane {
            Lane::Control => &self.control,
            Lane::Bulk => &self.bulk,
        };
        waiting.count == 1 && *waiting.rounds[0].sources() == self.reach()
    }

    /// True if events of the control lane wait to be sent to the parent.
    pub(super) fn has_control_events(&self) -> bool {
        !self.control.is_empty()
    }

    fn flush_answers_of(&mut self, now: Instant, tasks: &IdSet) {
        let holds = |open: &super::OpenCommand| !open.gathered.sources().is_disjoint(tasks);
        if self.open.iter().any(holds) {
            self.flush_for(now, tasks);
        }
    }

    /// Sends the waiting events of the control lane of some tasks, before a newer message of these tasks.
    pub(super) fn flush_events_of(&mut self, now: Instant, tasks: &IdSet) {
        if self.control.holds(tasks) {
            self.flush_events(Lane::Control, now);
        }
    }

    pub(super) fn flush_events(&mut self, lane: Lane, now: Instant) {
        if self.parent_link().is_none() || (lane == Lane::Bulk && self.bulk_paused) {
            return;
        }
        let waiting = match lane {
            Lane::Control => &mut self.control,
            Lane::Bulk => &mut self.bulk,
        };
        if !waiting.is_empty() {
            for event in waiting.take(lane, bytes_max(lane), now) {
                self.send_up(Message::Event(event));
            }
        }
    }

    pub(super) fn events_timeout(&mut self, now: Instant) {
        for lane in [Lane::Control, Lane::Bulk] {
            let due = match lane {
                Lane::Control => self.control.due,
                Lane::Bulk => self.bulk_deadline(),
            };
            if due.is_some_and(|due| due <= now) {
                self.flush_events(lane, now);
                if self.parent_link().is_none() {
                    // It waits for a parent, not for the time.
                    self.control.due = None;
                    self.bulk.due = None;
                }
            }
        }
    }

    pub(super) fn bulk_deadline(&self) -> Option<Instant> {
        if self.bulk_paused {
            None
        } else {
            self.bulk.due
        }
    }

    /// Pauses the sending of bulk data if `paused` is true, because the parent has no room; otherwise resumes it.
    pub fn set_bulk_paused(&mut self, now: Instant, paused: bool) {
        self.bulk_paused = paused;
        if !paused && self.bulk.bytes >= BULK_BYTES {
            self.flush_events(Lane::Bulk, now);
        }
    }

    /// Bytes of bulk data that wait here to be sent to the parent, with an estimated overhead.
    #[must_use]
    pub fn bulk_bytes(&self) -> usize {
        self.bulk.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn added(events: &[(&str, &str)]) -> Vec<(String, Bytes)> {
        let now = Instant::now();
        let mut window = Window::default();
        for (tasks, text) in events {
            let block = EventBlock {
                sources: tasks.parse().unwrap(),
                payload: Bytes::copy_from_slice(text.as_bytes()),
            };
            window.add(block, now, Duration::ZERO);
        }
        let count = window.count;
        let events = window.take(Lane::Control, usize::MAX, now);
        let blocks: Vec<_> = events.into_iter().flat_map(|event| event.blocks).collect();
        assert_eq!(blocks.len(), count, "as many as were counted");
        let shown = |block: EventBlock| (block.sources.to_string(), block.payload);
        blocks.into_iter().map(shown).collect()
    }

    fn check(events: &[(&str, &str)], expect: &[(&str, &str)]) {
        let found = added(events);
        let found: Vec<_> = found
            .iter()
            .map(|(tasks, text)| (tasks.as_str(), &text[..]))
            .collect();
        let expect: Vec<_> = expect
            .iter()
            .map(|(tasks, text)| (*tasks, text.as_bytes()))
            .collect();
        assert_eq!(found, expect, "{events:?}");
    }

    #[test]
    fn equal_events_merge_without_reordering_a_task() {
        check(
            &[("0", "a"), ("0", "b"), ("1", "a"), ("1", "b")],
            &[("0-1", "a"), ("0-1", "b")],
        );
        // Task 1 has not reported a: its b joins that of task 0, and its later a follows.
        check(
            &[("0", "a"), ("0", "b"), ("1", "b"), ("1", "a")],
            &[("0", "a"), ("0-1", "b"), ("1", "a")],
        );
        check(&[("0", "a"), ("0", "a")], &[("0", "a"), ("0", "a")]);
        check(
            &[("0", "a"), ("1", "c"), ("0-1", "a")],
            &[("0", "a"), ("1", "c"), ("0-1", "a")],
        );
    }

    #[test]
    fn distinct_events_each_keep_their_tasks() {
        // As many kinds as need an index, each reported by a hundred tasks, twice.
        let kinds: Vec<String> = (0..50).map(|kind| format!("event {kind}")).collect();
        let tasks: Vec<String> = (0..5000).map(|task| task.to_string()).collect();
        let said = tasks.iter().zip(kinds.iter().cycle());
        let once: Vec<_> = said
            .map(|(task, kind)| (task.as_str(), kind.as_str()))
            .collect();
        let found = added(&[once.clone(), once].concat());
        assert_eq!(found.len(), 2 * kinds.len());
        for round in found.chunks(kinds.len()) {
            for ((tasks, text), (at, kind)) in round.iter().zip(kinds.iter().enumerate()) {
                assert_eq!(
                    (tasks.as_str(), &text[..]),
                    (format!("{at}-{}/50", at + 4950).as_str(), kind.as_bytes())
                );
            }
        }
    }

    #[test]
    fn event_window_is_full_at_the_maximum_number_of_blocks() {
        let now = Instant::now();
        let mut window = Window::default();
        for number in 0..limits::BLOCKS_MAX {
            assert!(!window.is_full(usize::MAX), "{number}");
            let block = EventBlock {
                sources: IdSet::all_below(1),
                payload: number.to_string().into(),
            };
            window.add(block, now, Duration::ZERO);
        }
        assert!(window.is_full(usize::MAX));
    }

    #[test]
    fn queued_events_are_split_into_messages_of_link_size() {
        let now = Instant::now();
        let mut window = Window::default();
        let count = 3 * limits::BLOCKS_MAX;
        for number in 0..count {
            let text = format!("{number} {}", "x".repeat(number % 3 * 20_000));
            let block = EventBlock {
                sources: IdSet::all_below(1),
                payload: text.into(),
            };
            window.add(block, now, Duration::ZERO);
        }
        let events = window.take(Lane::Bulk, BULK_BYTES, now);
        assert!(window.is_empty() && window.bytes == 0);
        for event in &events {
            let bytes: usize = event.blocks.iter().map(|it| it.payload.len()).sum();
            assert!(bytes <= BULK_BYTES || event.blocks.len() == 1, "{bytes}");
            assert!(event.blocks.len() <= limits::BLOCKS_MAX);
        }
        let blocks = events.iter().flat_map(|event| &event.blocks);
        for (number, block) in blocks.clone().enumerate() {
            let begin = format!("{number} ");
            assert!(block.payload.starts_with(begin.as_bytes()), "in order");
        }
        assert_eq!(blocks.count(), count);
    }
}
