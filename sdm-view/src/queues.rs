//! `queues`: the pending MPI messages of many tasks, equal ones in one row.

use std::collections::BTreeMap;

use sdm_debug::queues::{MessageKind, QueueName};
use sdm_debug::rules::{Alike, MergedQueues, MessageClass, Numbers};
use sdm_idset::IdSet;

/// The MPI message queues of the tasks.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct QueueTable {
    /// The messages, sends first, then by their first task.
    pub rows: Vec<QueueRow>,
    /// Tasks with empty queues.
    pub quiet: IdSet,
    /// Tasks with more messages than the rows contain.
    pub more: IdSet,
    /// Tasks whose MPI library does not expose its queue of unexpected messages.
    pub without_unexpected: IdSet,
}

/// Messages that are equal in some tasks.
#[derive(Clone, Debug, PartialEq)]
pub struct QueueRow {
    /// The tasks that have these messages.
    pub tasks: IdSet,
    /// Number of such messages in each of the tasks.
    pub count: u32,
    /// The kind of message: the queue and its attributes.
    pub kind: MessageKind,
    /// The sender or receiver at the other side.
    pub peer: PeerOf,
    /// The buffer's address, if it is the same for all these messages of all tasks. None otherwise.
    pub buffer: Option<u64>,
}

/// The peer of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PeerOf {
    /// Any peer.
    Any,
    /// A rank of `MPI_COMM_WORLD`, absolute or relative to the task's own; and the rank in the communicator.
    World(Alike, LocalRank),
    /// A rank of the communicator, or of its remote group. Its rank in `MPI_COMM_WORLD` is unknown, so that a distance
    /// from the task's own rank there would mean nothing.
    Local(i64),
    /// Unknown, because there were too many to keep.
    Unknown,
}

/// The rank in a communicator of a peer whose rank in `MPI_COMM_WORLD` is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LocalRank {
    /// The same rank as in `MPI_COMM_WORLD`.
    Same,
    /// Another rank, the same for all tasks.
    Rank(i64),
    /// The rank differs between the tasks, or is not known for all of them.
    Several,
}

impl QueueTable {
    /// Builds the table from merged queues.
    #[must_use]
    pub fn of(found: MergedQueues) -> Self {
        let mut gathered: BTreeMap<(MessageKind, PeerOf), Vec<(IdSet, Numbers)>> = BTreeMap::new();
        for class in &found.classes {
            for (peer, tasks) in peers(class) {
                let of = gathered.entry((class.kind.clone(), peer)).or_default();
                of.push((tasks, class.buffers.clone()));
            }
        }
        let mut rows = Vec::new();
        for ((kind, peer), parts) in gathered {
            let buffers: Vec<Numbers> = parts.iter().map(|(_, it)| it.clone()).collect();
            for (tasks, count) in counted(parts.into_iter().map(|(tasks, _)| tasks)) {
                rows.push(QueueRow {
                    buffer: same_in(&buffers, &tasks),
                    tasks,
                    count,
                    kind: kind.clone(),
                    peer,
                });
            }
        }
        rows.sort_by_key(|row| (row.kind.queue, row.tasks.first()));
        Self {
            rows,
            quiet: found.quiet,
            more: found.more.union(&found.cut),
            without_unexpected: found.without_unexpected,
        }
    }
}

impl QueueRow {
    /// The row as text: `1 pending receive: from rank-1, tag 99, MPI_COMM_WORLD, 40 bytes`. `rank-1` is the task's own
    /// rank minus 1.
    #[must_use]
    pub fn text(&self) -> String {
        let (queue, way) = match self.kind.queue {
            QueueName::Sends => ("send", "to"),
            QueueName::Receives => ("receive", "from"),
            QueueName::Unexpected => ("message", "from"),
        };
        let state = match (self.kind.queue, self.kind.is_matched) {
            (QueueName::Unexpected, _) => "unexpected",
            (_, true) => "matched",
            (_, false) => "pending",
        };
        let plural = if self.count == 1 { "" } else { "s" };
        let mut facts = vec![format!("{way} {}", self.peer_text())];
        facts.push(match self.kind.tag {
            Some(tag) => format!("tag {tag}"),
            None => "any tag".to_owned(),
        });
        facts.push(match self.kind.communicator.as_str() {
            "" => "an unnamed communicator".to_owned(),
            name => name.to_owned(),
        });
        facts.push(match self.kind.length_bytes {
            1 => "1 byte".to_owned(),
            bytes => format!("{bytes} bytes"),
        });
        if let Some(buffer) = self.buffer {
            facts.push(format!("at {buffer:#x}"));
        }
        let facts = facts.join(", ");
        format!("{} {state} {queue}{plural}: {facts}", self.count)
    }

    fn peer_text(&self) -> String {
        match self.peer {
            PeerOf::Any => "any rank".to_owned(),
            PeerOf::Unknown => "unknown ranks".to_owned(),
            PeerOf::Local(rank) if self.kind.is_remote => format!("rank {rank} of the other group"),
            PeerOf::Local(rank) => format!("rank {rank} of the communicator"),
            PeerOf::World(world, LocalRank::Rank(rank)) => {
                format!("{} (rank {rank} of the communicator)", rank_text(world))
            }
            PeerOf::World(world, LocalRank::Same | LocalRank::Several) => rank_text(world),
        }
    }
}

/// A rank as text: `rank 5`, or `rank-1` for each task's own rank minus 1.
pub(crate) fn rank_text(alike: Alike) -> String {
    match alike {
        Alike::Same(number) => format!("rank {number}"),
        Alike::Away(by) => sdm_diagnose::away_text(by),
    }
}

/// The peers of a message, each with its tasks.
fn peers(class: &MessageClass) -> Vec<(PeerOf, IdSet)> {
    if class.kind.any_peer {
        return vec![(PeerOf::Any, class.tasks.clone())];
    }
    let mut found = Vec::new();
    let mut left = class.tasks.clone();
    for (world, tasks) in class.world_alike() {
        left.subtract(&tasks);
        let is_same = |(task, peer)| class.peers.of(task) == Some(peer);
        let numbers = class.world_peers.iter();
        let mut numbers = numbers.filter(|(task, _)| tasks.contains(*task));
        let mut locals = class.peers.same(&tasks).into_iter();
        let local = match locals.find(|(_, of)| *of == tasks) {
            _ if numbers.all(is_same) => LocalRank::Same,
            Some((rank, _)) => LocalRank::Rank(rank),
            None => LocalRank::Several,
        };
        found.push((PeerOf::World(world, local), tasks));
    }
    for (local, tasks) in class.peers.same(&left) {
        left.subtract(&tasks);
        found.push((PeerOf::Local(local), tasks));
    }
    if !left.is_empty() {
        found.push((PeerOf::Unknown, left));
    }
    found
}

/// Groups tasks by the number of sets that they are in.
fn counted(sets: impl Iterator<Item = IdSet>) -> Vec<(IdSet, u32)> {
    // At `n` those that were in `n + 1` sets so far.
    let mut by_count: Vec<IdSet> = Vec::new();
    for set in sets {
        let mut rest = set;
        let mut risen = Vec::new();
        for (at, known) in by_count.iter_mut().enumerate() {
            let both = known.intersection(&rest);
            known.subtract(&both);
            rest.subtract(&both);
            risen.push((at + 1, both));
        }
        risen.push((0, rest));
        for (at, tasks) in risen.into_iter().filter(|(_, tasks)| !tasks.is_empty()) {
            if at == by_count.len() {
                by_count.push(IdSet::new());
            }
            by_count[at].union_with(&tasks);
        }
    }
    let counted = (1..).zip(by_count);
    let counted = counted.filter(|(_, tasks)| !tasks.is_empty());
    counted.map(|(count, tasks)| (tasks, count)).collect()
}

/// The number that all lists have for all of these tasks. None if the numbers differ.
fn same_in(numbers: &[Numbers], tasks: &IdSet) -> Option<u64> {
    let mut found = numbers.iter().flat_map(|numbers| {
        let its = numbers.iter();
        its.filter(|(task, _)| tasks.contains(*task))
    });
    let (_, first) = found.next()?;
    found
        .all(|(_, number)| number == first)
        .then_some(first.cast_unsigned())
}

#[cfg(test)]
mod tests {
    use sdm_debug::queues::{QueueMessage, TaskQueues};
    use sdm_debug::{Reply, wire};
    use sdm_idset::TaskId;

    use super::*;

    fn message(queue: QueueName, peer: Option<i64>, world: Option<i64>) -> QueueMessage {
        QueueMessage {
            kind: MessageKind {
                queue,
                is_matched: false,
                communicator: "MPI_COMM_WORLD".to_owned(),
                is_remote: false,
                any_peer: peer.is_none(),
                tag: Some(99),
                length_bytes: 40,
            },
            world_peer: world,
            peer,
            buffer: 0x1000,
        }
    }

    fn table(answers: impl Iterator<Item = (u32, Vec<QueueMessage>)>) -> QueueTable {
        let mut whole = MergedQueues::default();
        for (task, mut messages) in answers {
            messages.sort();
            let queues = TaskQueues {
                messages,
                more: 0,
                knows_unexpected: false,
            };
            let bytes = wire::encode(&Reply::Queues(queues));
            let task = IdSet::single(TaskId(task));
            whole.absorb(MergedQueues::decode(&task, &bytes).unwrap());
        }
        QueueTable::of(whole)
    }

    fn texts(table: &QueueTable) -> Vec<String> {
        let row = |row: &QueueRow| format!("{}: {}", row.tasks, row.text());
        table.rows.iter().map(row).collect()
    }

    use QueueName::{Receives, Sends};

    #[test]
    fn ring_of_messages_is_shown_in_two_rows() {
        let ring = (0..8).map(|task| {
            let before = Some((i64::from(task) + 7) % 8);
            (task, vec![message(Receives, before, before)])
        });
        let found = table(ring.chain([(8, Vec::new())]));
        assert_eq!(
            texts(&found),
            [
                "0: 1 pending receive: from rank 7, tag 99, MPI_COMM_WORLD, 40 bytes, at 0x1000",
                "1-7: 1 pending receive: from rank-1, tag 99, MPI_COMM_WORLD, 40 bytes, at 0x1000",
            ]
        );
        assert_eq!(found.quiet.to_string(), "8");
    }

    #[test]
    fn rows_count_equal_messages_and_show_both_peer_ranks() {
        let five = || message(Sends, Some(2), Some(5));
        let any = message(Receives, None, None);
        let three = vec![five(), five(), five(), any];
        let found = table([(0, three), (1, vec![five()])].into_iter());
        assert_eq!(
            texts(&found),
            [
                "0: 3 pending sends: to rank 5 (rank 2 of the communicator), tag 99, MPI_COMM_WORLD, 40 bytes, at 0x1000",
                "1: 1 pending send: to rank 5 (rank 2 of the communicator), tag 99, MPI_COMM_WORLD, 40 bytes, at 0x1000",
                "0: 1 pending receive: from any rank, tag 99, MPI_COMM_WORLD, 40 bytes, at 0x1000",
            ]
        );
    }

    /// In a communicator, a rank minus the task's own rank means nothing, because its ranks can have any order.
    #[test]
    fn distances_are_shown_only_between_world_ranks() {
        let one = |world: Option<i64>, local| vec![message(Receives, Some(local), world)];
        let unknown = table((0..3).map(|task| (task, one(None, i64::from(task)))));
        let row = |rank| {
            format!(
                "{rank}: 1 pending receive: from rank {rank} of the communicator, tag 99, MPI_COMM_WORLD, 40 bytes, at 0x1000"
            )
        };
        assert_eq!(texts(&unknown), [0, 1, 2].map(row));
        let known = table((0..3).map(|task| {
            let task = i64::from(task);
            (u32::try_from(task).unwrap(), one(Some(task + 1), 2 - task))
        }));
        let one =
            "0-2: 1 pending receive: from rank+1, tag 99, MPI_COMM_WORLD, 40 bytes, at 0x1000";
        assert_eq!(texts(&known), [one]);
    }

    #[test]
    fn receives_from_a_remote_group_merge_despite_buffers() {
        let mut other = message(Receives, Some(3), None);
        other.kind.is_remote = true;
        other.kind.tag = None;
        other.kind.communicator = String::new();
        let mut elsewhere = other.clone();
        elsewhere.buffer = 0x2000;
        let found = table([(0, vec![other]), (1, vec![elsewhere])].into_iter());
        assert_eq!(
            texts(&found),
            [
                "0-1: 1 pending receive: from rank 3 of the other group, any tag, an unnamed communicator, 40 bytes",
            ]
        );
    }
}
