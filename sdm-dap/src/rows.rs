//! The threads that a client sees: classes of tasks that stand alike, or tasks one by one.
//!
//! Classes come and go with every stop, and a client holds on to numbers. So a number goes with the tasks: when a class
//! splits, the part that has its lowest task keeps the number, what stands going before what runs; when classes meet, the
//! number of the focused one is kept, and of others that of the lowest row. Rows keep their order, and new ones come last.

use std::cmp::Reverse;

use sdm_debug::reply::{Backtrace, Frame, Stop};
use sdm_idset::{IdSet, TaskId};
use sdm_view::render::set_text;

use crate::references::FrameHandle;
use crate::source::place;
use crate::tasks::Tasks;

/// The most threads that a client is told of: editors freeze at some hundreds.
pub(crate) const ROWS_MAX: usize = 64;
/// The longest set in a thread's name, in bytes.
const SET_BYTES_MAX: usize = 24;

/// Tasks that stand alike.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Standing {
    /// Why they stand: of the lowest task's stop.
    pub(crate) stop: Stop,
    /// The frames of the user's code, innermost first; never none where a place is known.
    pub(crate) frames: Vec<Frame>,
    /// gdb's level of the first of them, with its tasks.
    pub(crate) bases: Vec<(IdSet, u32)>,
}

/// Tasks that are one thread.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Group {
    pub(crate) tasks: IdSet,
    /// How they stand; absent where they run.
    pub(crate) standing: Option<Standing>,
    /// How many classes it is made of, where there are more than have a row: those of `standing` are the first.
    pub(crate) folded: Option<usize>,
}

/// A thread.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Row {
    /// The client's number of it, from 1.
    pub(crate) id: i64,
    pub(crate) group: Group,
}

/// What became of threads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Changes {
    pub(crate) ended: Vec<i64>,
    pub(crate) started: Vec<i64>,
}

/// All threads.
#[derive(Debug, Default)]
pub(crate) struct Rows {
    rows: Vec<Row>,
    last: i64,
    /// The thread that the client looks at, as far as it has said.
    pub(crate) focused: i64,
    /// Each task is a thread, and has its rank and 1 for a number.
    by_rank: bool,
    /// There is one task, whose number is 1, whatever its rank.
    single: bool,
}

impl Standing {
    /// The frame of this number from the innermost one.
    pub(crate) fn frame_handle(&self, index: usize, thread: Option<u32>) -> FrameHandle {
        let index = u32::try_from(index).unwrap_or(u32::MAX);
        let levels = self.bases.iter();
        let levels = levels.map(|(tasks, base)| (tasks.clone(), base.saturating_add(index)));
        FrameHandle {
            tasks: IdSet::union_all(self.bases.iter().map(|(tasks, _)| tasks)),
            levels: levels.collect(),
            thread,
        }
    }

    fn is_like(&self, other: &Self) -> bool {
        let crash = |standing: &Self| standing.stop.reason.is_crash();
        self.frames == other.frames
            && self.stop.inside == other.stop.inside
            && crash(self) == crash(other)
    }
}

impl Rows {
    /// No threads yet; `by_rank`: each task is to be one.
    pub(crate) fn new(by_rank: bool) -> Self {
        Self {
            by_rank,
            ..Self::default()
        }
    }

    /// There is but one task, a process of its own for the client.
    pub(crate) fn of_one() -> Self {
        Self {
            by_rank: true,
            single: true,
            ..Self::default()
        }
    }

    /// Each task is a thread.
    pub(crate) fn is_by_rank(&self) -> bool {
        self.by_rank
    }

    /// There is one task, and the threads of the client are those of its process.
    pub(crate) fn is_single(&self) -> bool {
        self.single
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter()
    }

    pub(crate) fn find(&self, id: i64) -> Option<&Row> {
        self.rows.iter().find(|row| row.id == id)
    }

    /// How tasks are divided now, by what is known of their stacks.
    pub(crate) fn groups(&self, tasks: &Tasks, stacks: &[(IdSet, Backtrace)]) -> Vec<Group> {
        let mut groups: Vec<Group> = Vec::new();
        for (stop, standing) in tasks.stops() {
            let mut bare = standing.clone();
            for (whose, stack) in stacks {
                let whose = whose.intersection(standing);
                if !whose.is_empty() {
                    bare.subtract(&whose);
                    let frames = match stack.frames.as_slice() {
                        [] => stop.frame.as_slice(),
                        frames => frames,
                    };
                    self.add(&mut groups, whose, stop, frames);
                }
            }
            if !bare.is_empty() {
                let frames = stop.frame.as_slice();
                self.add(&mut groups, bare, stop, frames);
            }
        }
        let running = tasks.running();
        if !running.is_empty() {
            self.add_all(&mut groups, running, None);
        }
        groups.sort_by_key(|group| group.tasks.first());
        fold(groups)
    }

    fn add(&self, groups: &mut Vec<Group>, tasks: IdSet, stop: &Stop, frames: &[Frame]) {
        let base = frames.first().map_or(0, |frame| frame.level);
        let frames = frames.iter().map(|frame| Frame {
            level: frame.level.saturating_sub(base),
            args: Vec::new(),
            ..frame.clone()
        });
        let standing = Standing {
            stop: stop.clone(),
            frames: frames.collect(),
            bases: vec![(tasks.clone(), base)],
        };
        self.add_all(groups, tasks, Some(standing));
    }

    fn add_all(&self, groups: &mut Vec<Group>, tasks: IdSet, standing: Option<Standing>) {
        if self.by_rank {
            for task in tasks.iter() {
                let tasks = IdSet::single(task);
                let standing = standing.clone().map(|standing| Standing {
                    bases: standing
                        .bases
                        .iter()
                        .map(|(_, base)| (tasks.clone(), *base))
                        .collect(),
                    ..standing
                });
                groups.push(Group {
                    tasks,
                    standing,
                    folded: None,
                });
            }
            return;
        }
        let equal = groups
            .iter_mut()
            .find_map(|group| match (&mut group.standing, &standing) {
                (Some(known), Some(new)) if known.is_like(new) => {
                    if tasks.first() < group.tasks.first() {
                        known.stop = new.stop.clone();
                    }
                    known.bases.extend(new.bases.iter().cloned());
                    Some(&mut group.tasks)
                }
                _ => None,
            });
        match equal {
            Some(known) => known.union_with(&tasks),
            None => groups.push(Group {
                tasks,
                standing,
                folded: None,
            }),
        }
    }

    /// Takes over how tasks are divided now.
    pub(crate) fn regroup(&mut self, mut groups: Vec<Group>) -> Changes {
        let before: Vec<i64> = self.rows.iter().map(|row| row.id).collect();
        let mut order: Vec<&Row> = self.rows.iter().collect();
        order.sort_by_key(|row| row.id != self.focused);
        let mut kept: Vec<(i64, Group)> = Vec::new();
        for row in order {
            if let Some(at) = heir(row, &groups, self.by_rank) {
                kept.push((row.id, groups.swap_remove(at)));
            }
        }
        let mut rows = Vec::new();
        for id in &before {
            if let Some(at) = kept.iter().position(|(kept, _)| kept == id) {
                let (id, group) = kept.swap_remove(at);
                rows.push(Row { id, group });
            }
        }
        groups.sort_by_key(|group| group.tasks.first());
        for group in groups {
            let id = self.number(&group);
            rows.push(Row { id, group });
        }
        self.rows = rows;
        let now: Vec<i64> = self.rows.iter().map(|row| row.id).collect();
        let missing = |these: &[i64], those: &[i64]| -> Vec<i64> {
            these
                .iter()
                .filter(|id| !those.contains(id))
                .copied()
                .collect()
        };
        Changes {
            ended: missing(&before, &now),
            started: missing(&now, &before),
        }
    }

    fn number(&mut self, group: &Group) -> i64 {
        if self.single && self.rows.is_empty() {
            return 1;
        }
        if let (true, None, Some(task)) = (self.by_rank, group.folded, group.tasks.first()) {
            return i64::from(task.0) + 1;
        }
        // Beyond those of ranks, which are a million at most.
        let first = if self.by_rank { 1 << 24 } else { 0 };
        self.last = self.last.max(first) + 1;
        self.last
    }
}

/// The group that goes on with a row's number.
fn heir(row: &Row, groups: &[Group], by_rank: bool) -> Option<usize> {
    let shared = |group: &Group| group.tasks.intersection(&row.group.tasks).first();
    let heirs = groups.iter().enumerate().filter_map(|(at, group)| {
        // A rank's number is its own.
        if by_rank && group.folded.is_some() != row.group.folded.is_some() {
            return None;
        }
        let first: TaskId = shared(group)?;
        Some((group.standing.is_none(), first, at))
    });
    heirs.min().map(|(_, _, at)| at)
}

/// Those that have no row of their own become one: crashes and big classes go before small ones.
fn fold(mut groups: Vec<Group>) -> Vec<Group> {
    if groups.len() <= ROWS_MAX {
        return groups;
    }
    let is_crash = |group: &Group| {
        let standing = group.standing.as_ref();
        standing.is_some_and(|standing| standing.stop.reason.is_crash())
    };
    groups.sort_by_key(|group| {
        (
            !is_crash(group),
            Reverse(group.tasks.len()),
            group.tasks.first(),
        )
    });
    let rest = groups.split_off(ROWS_MAX - 1);
    groups.sort_by_key(|group| group.tasks.first());
    let folded = Group {
        tasks: IdSet::union_all(rest.iter().map(|group| &group.tasks)),
        folded: Some(rest.len()),
        standing: rest.into_iter().find_map(|group| group.standing),
    };
    groups.push(folded);
    groups
}

impl Group {
    /// What the thread is called, where there are so many tasks in all.
    pub(crate) fn name(&self, by_rank: bool) -> String {
        let what = match (&self.standing, self.folded) {
            (_, Some(classes)) => return self.folded_name(classes),
            (None, None) => "running".to_owned(),
            (Some(standing), None) => described(standing),
        };
        let set = set_text(&self.tasks, SET_BYTES_MAX);
        match self.tasks.len() {
            1 => format!("rank {set}: {what}"),
            _ if by_rank => format!("ranks {set}: {what}"),
            count => format!("[{set}] {count} ranks: {what}"),
        }
    }

    fn folded_name(&self, classes: usize) -> String {
        let set = set_text(&self.tasks, SET_BYTES_MAX);
        let count = self.tasks.len();
        format!("[{set}] {count} ranks: other ({classes} classes)")
    }
}

/// Where they stand: `MPI_Barrier in solve halo.c:44`.
fn described(standing: &Standing) -> String {
    let place = standing
        .frames
        .first()
        .map_or_else(|| "stopped".to_owned(), place);
    match &standing.stop.inside {
        Some(inside) => format!("{inside} in {place}"),
        None => place,
    }
}

#[cfg(test)]
mod tests {
    use sdm_debug::reply::StopReason;

    use super::*;
    use crate::tasks::Condition;

    fn frame(line: u32) -> Frame {
        Frame {
            level: 0,
            function: "solve".to_owned(),
            file: "halo.c".to_owned(),
            path: "/halo.c".to_owned(),
            line,
            module: String::new(),
            args: Vec::new(),
        }
    }

    /// Tasks at these lines; line 0 runs.
    fn tasks(places: &[(&str, u32)]) -> Tasks {
        let sets: Vec<IdSet> = places
            .iter()
            .map(|(set, _)| set.parse().expect("a set"))
            .collect();
        let mut tasks = Tasks::new(IdSet::union_all(&sets));
        for (set, (_, line)) in sets.iter().zip(places) {
            let stop = Stop {
                reason: StopReason::StepEnd,
                frame: Some(frame(*line)),
                inside: None,
                source: None,
            };
            let condition = match line {
                0 => Condition::Running,
                _ => Condition::Standing(Box::new(stop)),
            };
            tasks.set(set, condition);
        }
        tasks
    }

    fn regroup(rows: &mut Rows, places: &[(&str, u32)]) -> String {
        let groups = rows.groups(&tasks(places), &[]);
        rows.regroup(groups);
        let shown = rows
            .iter()
            .map(|row| format!("{}={}", row.id, row.group.tasks));
        shown.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn numbers_go_with_the_tasks() {
        let mut rows = Rows::new(false);
        assert_eq!(regroup(&mut rows, &[("0-7", 10)]), "1=0-7");
        // It splits: the lowest part keeps the number.
        assert_eq!(
            regroup(&mut rows, &[("0-3", 10), ("4-7", 11)]),
            "1=0-3 2=4-7"
        );
        // They change places, and meet.
        assert_eq!(
            regroup(&mut rows, &[("0-3", 11), ("4-7", 10)]),
            "1=0-3 2=4-7"
        );
        rows.focused = 2;
        assert_eq!(regroup(&mut rows, &[("0-7", 12)]), "2=0-7");
        assert_eq!(regroup(&mut rows, &[("0-3", 1), ("4-7", 2)]), "2=0-3 3=4-7");
        // What stands goes before what runs.
        assert_eq!(
            regroup(&mut rows, &[("0", 0), ("1-3", 5), ("4-7", 0)]),
            "2=1-3 3=0,4-7"
        );
    }

    #[test]
    fn ranks_have_numbers_of_their_own() {
        let mut rows = Rows::new(true);
        assert_eq!(regroup(&mut rows, &[("0-2", 10)]), "1=0 2=1 3=2");
        assert_eq!(regroup(&mut rows, &[("0", 0), ("2", 10)]), "1=0 3=2");
    }

    #[test]
    fn there_are_never_more_than_a_client_can_show() {
        let mut rows = Rows::new(false);
        let sets: Vec<String> = (0..1000).map(|task| task.to_string()).collect();
        let places: Vec<_> = sets.iter().map(String::as_str).zip(1..).collect();
        regroup(&mut rows, &places);
        assert_eq!(rows.iter().count(), ROWS_MAX);
        let last = rows.iter().last().expect("there are some");
        assert_eq!(last.group.folded, Some(937));
        assert_eq!(
            last.group.name(false),
            "[63-999] 937 ranks: other (937 classes)"
        );
    }
}
