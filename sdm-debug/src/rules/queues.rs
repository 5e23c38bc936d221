//! The merge rule for pending MPI messages: each kind with its tasks and their peers.

use std::collections::BTreeMap;

use sdm_core::aggregate::Rejected;
use sdm_idset::IdSet;
use serde::{Deserialize, Serialize};

use super::capped::Capped;
use super::coding::{Reader, Writer, is_merged};
use super::numbers::{Alike, Numbers};
use super::parts::{Part, insert, ordered, read_kind, write_kind};
use super::plain::MergedForm;
use super::rule_numbers::RULE_QUEUES;
use crate::queues::{MessageKind, TASK_MESSAGES_MAX, TaskQueues};
use crate::reply::Reply;
use crate::wire;

/// Maximum length of a communicator's name, in bytes. MPI allows 64 bytes, and each of them can become a character of
/// three bytes.
const NAME_BYTES_MAX: usize = 192;

/// The merged message queues of many tasks.
///
/// Merged payload: `fe 06`, the sets `quiet`, `more` and `without_unexpected`, then the kinds of messages (cut, count
/// and set of the others, count, and for each its bytes and its set). Then comes the count of number rows, and for
/// each the bytes of its kind, the meaning of its numbers, and the numbers, encoded as [`Numbers`].
#[derive(Clone, Debug, PartialEq, Default)]
pub struct MergedQueues {
    /// The classes of messages.
    pub classes: Vec<MessageClass>,
    /// Tasks without messages.
    pub quiet: IdSet,
    /// Tasks with more messages than one answer lists.
    pub more: IdSet,
    /// Tasks whose MPI library does not report unexpected messages to debuggers.
    pub without_unexpected: IdSet,
    /// Tasks with messages that the merged answer has no room for.
    pub cut: IdSet,
}

/// A message that each of some tasks has in a queue.
#[derive(Clone, Debug, PartialEq)]
pub struct MessageClass {
    /// The tasks that have the message.
    pub tasks: IdSet,
    /// The queue and the attributes that the messages of these tasks share.
    pub kind: MessageKind,
    /// The peers as ranks of `MPI_COMM_WORLD`, for the tasks for which they are known.
    pub world_peers: Numbers,
    /// The peers, as ranks of the communicator or of its remote group.
    pub peers: Numbers,
    /// The addresses of the buffers.
    pub buffers: Numbers,
}

impl MergedQueues {
    /// Reads a task's own answer or a merged payload of these sources.
    ///
    /// # Errors
    /// The payload has no message queues.
    pub fn decode(sources: &IdSet, payload: &[u8]) -> Result<Self, Rejected> {
        read(sources, payload).map(QueueParts::merged)
    }

    /// The merged form of equal answers of these tasks.
    ///
    /// # Errors
    /// There are more messages, or longer names, than allowed.
    pub fn of(tasks: &IdSet, queues: &TaskQueues) -> Result<Self, Rejected> {
        own(tasks, queues.clone()).map(QueueParts::merged)
    }

    /// Merges in the answers of other tasks.
    pub fn absorb(&mut self, other: Self) {
        for class in other.classes {
            let mut known = self.classes.iter_mut();
            // Each row of numbers has at most one number per task.
            let same = known
                .find(|known| known.kind == class.kind && known.tasks.is_disjoint(&class.tasks));
            match same {
                Some(known) => known.join(class),
                None => self.classes.push(class),
            }
        }
        self.quiet.union_with(&other.quiet);
        self.more.union_with(&other.more);
        self.without_unexpected
            .union_with(&other.without_unexpected);
        self.cut.union_with(&other.cut);
    }
}

impl MessageClass {
    fn join(&mut self, other: Self) {
        self.tasks.union_with(&other.tasks);
        for (known, more) in [
            (&mut self.world_peers, other.world_peers),
            (&mut self.peers, other.peers),
            (&mut self.buffers, other.buffers),
        ] {
            known.absorb(more);
            known.settle();
        }
    }

    /// Groups the tasks by the `MPI_COMM_WORLD` ranks of their peers.
    #[must_use]
    pub fn world_alike(&self) -> BTreeMap<Alike, IdSet> {
        self.world_peers.alike(Some(&self.tasks))
    }
}

/// A row of messages of one kind: the first such message of each task, or the second, and so on. A row of numbers holds
/// at most one number per task.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Nth {
    kind: MessageKind,
    nth: u32,
}

/// The field of a queued message to which a series of numbers, one for each task, belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum RowMeaning {
    WorldPeer,
    Peer,
    Buffer,
}

const WHAT: [RowMeaning; 3] = [RowMeaning::WorldPeer, RowMeaning::Peer, RowMeaning::Buffer];

#[derive(Clone, Debug, PartialEq, Default)]
pub(super) struct QueueParts {
    quiet: IdSet,
    more: IdSet,
    without_unexpected: IdSet,
    kinds: Capped<Part<Nth>>,
    numbers: BTreeMap<(Vec<u8>, RowMeaning), Numbers>,
}

impl QueueParts {
    /// Adds the equal answers of some tasks.
    fn insert(&mut self, tasks: &IdSet, queues: TaskQueues) {
        if !queues.knows_unexpected {
            self.without_unexpected.union_with(tasks);
        }
        if queues.more > 0 {
            self.more.union_with(tasks);
        } else if queues.messages.is_empty() {
            self.quiet.union_with(tasks);
        }
        let mut counts: BTreeMap<MessageKind, u32> = BTreeMap::new();
        for message in queues.messages {
            let count = counts.entry(message.kind.clone()).or_default();
            let nth = Nth {
                kind: message.kind,
                nth: *count,
            };
            *count += 1;
            let key = wire::encode(&nth);
            insert(&mut self.kinds, tasks, Some(nth));
            for (what, number) in [
                (RowMeaning::WorldPeer, message.world_peer),
                (RowMeaning::Peer, message.peer),
                (RowMeaning::Buffer, Some(message.buffer.cast_signed())),
            ] {
                if let Some(number) = number {
                    let numbers = self.numbers.entry((key.clone(), what)).or_default();
                    numbers.insert(tasks, number);
                }
            }
        }
    }

    fn merged(mut self) -> MergedQueues {
        self.numbers.values_mut().for_each(Numbers::settle);
        let mut of = |key: &[u8], what| {
            let known = self.numbers.remove(&(key.to_vec(), what));
            known.unwrap_or_default()
        };
        let each = |(tasks, part): (IdSet, Part<Nth>)| {
            let key = part.bytes;
            MessageClass {
                tasks,
                world_peers: of(&key, RowMeaning::WorldPeer),
                peers: of(&key, RowMeaning::Peer),
                buffers: of(&key, RowMeaning::Buffer),
                kind: part.value.kind,
            }
        };
        MergedQueues {
            quiet: self.quiet,
            more: self.more,
            without_unexpected: self.without_unexpected,
            cut: self.kinds.others.clone(),
            classes: ordered(self.kinds).into_iter().map(each).collect(),
        }
    }
}

impl MergedForm for QueueParts {
    fn read(sources: &IdSet, payload: &[u8]) -> Result<Self, Rejected> {
        read(sources, payload)
    }

    fn absorb(&mut self, other: Self) {
        self.quiet.union_with(&other.quiet);
        self.more.union_with(&other.more);
        self.without_unexpected
            .union_with(&other.without_unexpected);
        self.kinds.absorb(other.kinds);
        for (key, numbers) in other.numbers {
            self.numbers.entry(key).or_default().absorb(numbers);
        }
    }

    fn write(self, bytes_max: usize) -> Vec<u8> {
        write(self, bytes_max)
    }
}

fn write(parts: QueueParts, bytes_max: usize) -> Vec<u8> {
    let share = bytes_max / 16;
    let mut writer = Writer::new(RULE_QUEUES);
    // If there is no room for the set of tasks without messages, no task is reported to have none.
    for (set, all) in [
        (&parts.quiet, false),
        (&parts.more, true),
        (&parts.without_unexpected, true),
    ] {
        let before = writer.out.len();
        writer.set(set);
        if writer.out.len() - before > share {
            writer.out.truncate(before);
            match all {
                true => writer.all_sources(),
                false => writer.set(&IdSet::new()),
            }
        }
    }
    writer.fixed(&parts.kinds.within(6 * share, write_kind));
    let rest = bytes_max.saturating_sub(writer.out.len() + share);
    write_numbers(&mut writer, parts.numbers, rest);
    writer.out
}

fn write_numbers(
    writer: &mut Writer,
    numbers: BTreeMap<(Vec<u8>, RowMeaning), Numbers>,
    bytes_max: usize,
) {
    let mut written = Writer { out: Vec::new() };
    let (mut count, whole) = (0, numbers.len());
    for (at, ((key, what), mut numbers)) in numbers.into_iter().enumerate() {
        let left = bytes_max.saturating_sub(written.out.len()) / (whole - at);
        // The key with its length, the meaning of the numbers, and an empty count.
        let Some(room) = left.checked_sub(key.len() + 8) else {
            continue;
        };
        numbers.settle();
        written.size(key.len());
        written.fixed(&key);
        written.number(what as u64);
        numbers.write(&mut written, room);
        count += 1;
    }
    writer.size(count);
    writer.fixed(&written.out);
}

fn read(sources: &IdSet, payload: &[u8]) -> Result<QueueParts, Rejected> {
    if !is_merged(payload) {
        return match wire::decode(payload) {
            Ok(Reply::Queues(queues)) => own(sources, queues),
            _ => Err(Rejected("no queues")),
        };
    }
    let mut reader = Reader::new(RULE_QUEUES, payload, sources)?;
    let mut parts = QueueParts {
        quiet: reader.set()?,
        more: reader.set()?,
        without_unexpected: reader.set()?,
        kinds: read_kind(&mut reader, |_| true)?,
        ..QueueParts::default()
    };
    for _ in 0..reader.count()? {
        let key = reader.bytes()?.to_vec();
        let what = usize::try_from(reader.number()?).ok();
        let what = what.and_then(|at| WHAT.get(at));
        let what = what.ok_or(Rejected(
            "values belong to an unknown field of a queued message",
        ))?;
        let numbers = Numbers::read(&mut reader, sources)?;
        if wire::decode::<Nth>(&key).is_err() {
            return Err(Rejected(
                "values belong to a queued message that the answer does not have",
            ));
        }
        if parts.numbers.insert((key, *what), numbers).is_some() {
            return Err(Rejected(
                "the values of one field of a queued message occur twice",
            ));
        }
    }
    reader.end()?;
    Ok(parts)
}

/// The parts of the equal answers of these tasks, checked against their bounds.
fn own(tasks: &IdSet, queues: TaskQueues) -> Result<QueueParts, Rejected> {
    let names = || queues.messages.iter().map(|it| it.kind.communicator.len());
    if queues.messages.len() > TASK_MESSAGES_MAX || names().any(|bytes| bytes > NAME_BYTES_MAX) {
        return Err(Rejected("there are more messages than the maximum"));
    }
    let mut parts = QueueParts::default();
    parts.insert(tasks, queues);
    Ok(parts)
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use sdm_idset::TaskId;

    use super::super::plain;
    use super::*;
    use crate::queues::{QueueMessage, QueueName};

    fn set(text: &str) -> IdSet {
        text.parse().unwrap()
    }

    fn receive(peer: i64, tag: i64) -> QueueMessage {
        QueueMessage {
            kind: MessageKind {
                queue: QueueName::Receives,
                is_matched: false,
                communicator: "MPI_COMM_WORLD".to_owned(),
                is_remote: false,
                any_peer: false,
                tag: Some(tag),
                length_bytes: 40,
            },
            world_peer: Some(peer),
            peer: Some(peer),
            buffer: 0x1000,
        }
    }

    fn queues(messages: Vec<QueueMessage>) -> TaskQueues {
        TaskQueues {
            messages,
            more: 0,
            knows_unexpected: false,
        }
    }

    fn merged(answers: &[(IdSet, TaskQueues)], bytes_max: usize) -> (IdSet, Bytes) {
        let own = answers.iter();
        let own = own.map(|(tasks, it)| (tasks.clone(), wire::encode(&Reply::Queues(it.clone()))));
        plain::merged::<QueueParts>(&own.collect::<Vec<_>>(), bytes_max)
    }

    #[test]
    fn ring_of_receives_merges_to_one_class_in_any_order() {
        let ring = |task: u32| {
            let before = i64::from((task + 7) % 8);
            (
                IdSet::single(TaskId(task)),
                queues(vec![receive(before, 99)]),
            )
        };
        let mut answers: Vec<_> = (0..8).map(ring).collect();
        answers.push((set("8"), queues(Vec::new())));
        let (sources, payload) = merged(&answers, 1 << 20);
        let found = MergedQueues::decode(&sources, &payload).unwrap();
        assert_eq!(found.quiet, set("8"));
        assert_eq!(found.without_unexpected, set("0-8"));
        assert_eq!(found.classes.len(), 1);
        let class = &found.classes[0];
        assert_eq!(class.tasks, set("0-7"));
        let alike = class.world_alike();
        assert_eq!(alike[&Alike::Away(-1)], set("1-7"));
        assert_eq!(class.world_peers.of(TaskId(0)), Some(7));
        assert_eq!(class.buffers.of(TaskId(3)), Some(0x1000));
        answers.reverse();
        assert_eq!(merged(&answers, 1 << 20), (sources, payload));
    }

    #[test]
    fn pending_receives_of_a_rank_keep_their_own_peers() {
        let both = vec![receive(0, 1), receive(2, 1), receive(2, 5)];
        let (sources, payload) = merged(&[(set("1"), queues(both))], 1 << 20);
        let found = MergedQueues::decode(&sources, &payload).unwrap();
        let peers = found.classes.iter().map(|it| it.peers.of(TaskId(1)));
        let mut peers: Vec<_> = peers.collect();
        peers.sort_unstable();
        assert_eq!(peers, [Some(0), Some(2), Some(2)]);
    }

    #[test]
    fn queues_of_many_ranks_take_few_bytes_within_the_bound() {
        let all: Vec<_> = (0..2000)
            .map(|task| {
                let peer = i64::from(task + 1);
                (
                    IdSet::single(TaskId(task)),
                    queues(vec![receive(peer, i64::from(task))]),
                )
            })
            .collect();
        let (sources, payload) = merged(&all, 8 << 10);
        assert!(payload.len() <= 8 << 10);
        let found = MergedQueues::decode(&sources, &payload).unwrap();
        let kept = IdSet::union_all(found.classes.iter().map(|it| &it.tasks));
        assert_eq!(kept.union(&found.cut), sources);
    }

    #[test]
    fn malformed_queues_payload_is_refused() {
        let sources = set("0-3");
        let answer = (sources.clone(), queues(vec![receive(1, 2)]));
        let (_, payload) = merged(&[answer], 1 << 20);
        for end in 0..payload.len() {
            assert!(MergedQueues::decode(&sources, &payload[..end]).is_err());
        }
        assert!(MergedQueues::decode(&set("0"), &payload).is_err());
        let mut long = receive(1, 2);
        long.kind.communicator = "x".repeat(NAME_BYTES_MAX + 1);
        let own = wire::encode(&Reply::Queues(queues(vec![long])));
        assert!(MergedQueues::decode(&sources, &own).is_err());
    }
}
