//! One number per task, grouped for display: tasks with the same number, or with the same distance from their own
//! rank. A ring of 100,000 ranks then takes two lines.

use std::collections::BTreeMap;

use sdm_core::aggregate::Rejected;
use sdm_idset::{IdSet, TaskId};

use super::coding::{Reader, Writer};

/// A number for each of some tasks.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Numbers {
    /// Numbers by ascending task; each task occurs once.
    points: Vec<(u32, i64)>,
}

/// The number that the tasks of a group have in common: the same value, or the same distance from the own rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Alike {
    /// The number minus the task's own rank.
    Away(i64),
    /// The number itself.
    Same(i64),
}

impl Numbers {
    /// Sets the number of each task of a set to the same value.
    pub(super) fn insert(&mut self, tasks: &IdSet, number: i64) {
        let more = tasks.iter().map(|task| (task.0, number));
        self.points.extend(more);
    }

    /// Merges in the numbers of other tasks.
    pub(super) fn absorb(&mut self, other: Self) {
        self.points.extend(other.points);
    }

    /// Sorts the numbers; of several for a task the last one counts. Call it before any read.
    pub(super) fn settle(&mut self) {
        self.points.sort_by_key(|(task, _)| *task);
        self.points.reverse();
        self.points.dedup_by_key(|(task, _)| *task);
        self.points.reverse();
    }

    /// The number of a task; `None` if it has none.
    #[must_use]
    pub fn of(&self, task: TaskId) -> Option<i64> {
        let at = self.points.binary_search_by_key(&task.0, |(task, _)| *task);
        at.ok().map(|at| self.points[at].1)
    }

    /// Every task with a number, and the number.
    pub fn iter(&self) -> impl Iterator<Item = (TaskId, i64)> + '_ {
        let points = self.points.iter();
        points.map(|(task, number)| (TaskId(*task), *number))
    }

    /// Number of tasks that have a number.
    #[must_use]
    pub fn len(&self) -> usize {
        self.points.len()
    }

    /// True if no task has a number.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.points.is_empty()
    }

    /// Groups by their numbers the tasks of `among`, or all tasks if it is `None`. Each task belongs to the larger of
    /// its two possible groups: same number, or same distance from its rank.
    #[must_use]
    pub fn alike(&self, among: Option<&IdSet>) -> BTreeMap<Alike, IdSet> {
        let chosen = || {
            let points = self.iter();
            points.filter(|(task, _)| among.is_none_or(|among| among.contains(*task)))
        };
        let mut counts: BTreeMap<Alike, u64> = BTreeMap::new();
        for (task, number) in chosen() {
            *counts.entry(away(task, number)).or_default() += 1;
            *counts.entry(Alike::Same(number)).or_default() += 1;
        }
        let mut groups: BTreeMap<Alike, IdSet> = BTreeMap::new();
        for (task, number) in chosen() {
            let (away, same) = (away(task, number), Alike::Same(number));
            let key = match counts[&away] > counts[&same] {
                true => away,
                false => same,
            };
            groups.entry(key).or_default().insert(task);
        }
        groups
    }

    /// Groups the tasks of `among` by their numbers alone.
    #[must_use]
    pub fn same(&self, among: &IdSet) -> BTreeMap<i64, IdSet> {
        let mut groups: BTreeMap<i64, IdSet> = BTreeMap::new();
        let chosen = self.iter().filter(|(task, _)| among.contains(*task));
        for (task, number) in chosen {
            groups.entry(number).or_default().insert(task);
        }
        groups
    }

    /// Writes the numbers in at most `bytes_max` bytes, group by group. If there is no room for all groups, the rest of
    /// them is left out.
    pub(super) fn write(&self, writer: &mut Writer, bytes_max: usize) {
        let mut written = Writer { out: Vec::new() };
        let mut count = 0;
        for (key, tasks) in self.alike(None) {
            let before = written.out.len();
            let (kind, number) = match key {
                Alike::Same(number) => (0, number),
                Alike::Away(number) => (1, number),
            };
            written.number(kind);
            written.number(zigzag(number));
            written.set(&tasks);
            if written.out.len() > bytes_max {
                written.out.truncate(before);
                break;
            }
            count += 1;
        }
        writer.size(count);
        writer.fixed(&written.out);
    }

    /// Reads the encoding of [`Numbers::write`]. Accepts at most one number per source.
    pub(super) fn read(reader: &mut Reader<'_>, sources: &IdSet) -> Result<Self, Rejected> {
        let mut numbers = Self::default();
        let mut seen = IdSet::new();
        for _ in 0..reader.count()? {
            let kind = reader.number()?;
            let number = unzigzag(reader.number()?);
            let tasks = reader.set()?;
            if !tasks.is_subset(sources) || !tasks.is_disjoint(&seen) {
                return Err(Rejected("one task has two numbers"));
            }
            seen.union_with(&tasks);
            match kind {
                0 => numbers.insert(&tasks, number),
                1 => {
                    let each = tasks.iter();
                    let each = each.map(|task| (task.0, number.wrapping_add(task.0.into())));
                    numbers.points.extend(each);
                }
                _ => return Err(Rejected("the values of the tasks have an unknown encoding")),
            }
        }
        numbers.settle();
        Ok(numbers)
    }
}

impl FromIterator<(TaskId, i64)> for Numbers {
    /// Collects the tasks' numbers; of several for a task the last one counts.
    fn from_iter<I: IntoIterator<Item = (TaskId, i64)>>(each: I) -> Self {
        let points = each.into_iter().map(|(task, number)| (task.0, number));
        let mut numbers = Self {
            points: points.collect(),
        };
        numbers.settle();
        numbers
    }
}

fn away(task: TaskId, number: i64) -> Alike {
    Alike::Away(number.wrapping_sub(task.0.into()))
}

fn zigzag(number: i64) -> u64 {
    (number.wrapping_shl(1) ^ (number >> 63)).cast_unsigned()
}

fn unzigzag(number: u64) -> i64 {
    (number >> 1).cast_signed() ^ -(number & 1).cast_signed()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::rule_numbers::RULE_PROBE;

    fn through_bytes(numbers: &Numbers, sources: &IdSet) -> (Numbers, usize) {
        let mut writer = Writer::new(RULE_PROBE);
        numbers.write(&mut writer, 1 << 20);
        let mut reader = Reader::new(RULE_PROBE, &writer.out, sources).unwrap();
        let read = Numbers::read(&mut reader, sources).unwrap();
        reader.end().unwrap();
        (read, writer.out.len())
    }

    fn of(points: impl Iterator<Item = (u32, i64)>) -> Numbers {
        let points = points.map(|(task, number)| (TaskId(task), number));
        points.collect()
    }

    #[test]
    fn ring_and_star_of_many_ranks_encode_in_few_bytes() {
        const COUNT: u32 = 100_000;
        let all = IdSet::all_below(COUNT);
        let ring = of((0..COUNT).map(|task| (task, i64::from((task + 1) % COUNT))));
        let (read, bytes) = through_bytes(&ring, &all);
        assert_eq!(read, ring);
        assert!(bytes < 100, "{bytes} bytes");
        let star = of((0..COUNT).map(|task| (task, 5)));
        let (read, bytes) = through_bytes(&star, &all);
        assert_eq!(read, star);
        assert!(bytes < 50, "{bytes} bytes");
        assert_eq!(ring.of(TaskId(COUNT - 1)), Some(0));
        assert_eq!(ring.of(TaskId(COUNT)), None);
    }

    #[test]
    fn classes_do_not_depend_on_merge_order() {
        let points = [(0, 5), (1, 5), (2, 5), (3, 4), (4, 5), (6, 7), (9, -1)];
        let whole = of(points.into_iter());
        for cut in 0..points.len() {
            let (mut one, two) = (
                of(points[..cut].iter().copied()),
                of(points[cut..].iter().copied()),
            );
            one.absorb(two);
            one.settle();
            assert_eq!(one, whole);
        }
        let same = whole.alike(None);
        assert_eq!(same[&Alike::Same(5)], "0-2,4".parse().unwrap());
        assert_eq!(same[&Alike::Away(1)], "3,6".parse().unwrap());
        assert_eq!(same[&Alike::Same(-1)], "9".parse().unwrap());
    }

    #[test]
    fn payload_with_two_numbers_for_a_task_is_refused() {
        let sources = "0-9".parse().unwrap();
        let mut writer = Writer::new(RULE_PROBE);
        writer.size(2);
        for number in [3, 4] {
            writer.number(0);
            writer.number(number);
            writer.all_sources();
        }
        let mut reader = Reader::new(RULE_PROBE, &writer.out, &sources).unwrap();
        assert!(Numbers::read(&mut reader, &sources).is_err());
    }

    #[test]
    fn zigzag_decodes_to_the_encoded_number() {
        for number in [0, 1, -1, i64::MAX, i64::MIN, 42] {
            assert_eq!(unzigzag(zigzag(number)), number);
        }
    }
}
