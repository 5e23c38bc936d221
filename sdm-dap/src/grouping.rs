//! Divides tasks into threads: by equal stacks, or one for each task, and never too many.
//!
//! A stop may bring thousands of classes, so no class is compared with all others. A task's stack is looked up, and
//! equal stacks are found by hash. Data is copied only for those that become threads.

use std::cmp::Reverse;

use sdm_debug::reply::{Backtrace, Frame, Stop};
use sdm_idset::{IdSet, TaskId};
use sdm_view::coalesce::{Distinct, hash_of};

use crate::group::{CommonStop, Group};
use crate::tasks::Tasks;

/// Maximum number of threads that a client is shown: editors freeze at some hundreds.
pub(crate) const ROWS_MAX: usize = 64;

/// Divides the tasks now, by their known stacks; with `by_rank` each task by itself.
pub(crate) fn groups(tasks: &Tasks, stacks: &[(IdSet, Backtrace)], by_rank: bool) -> Vec<Group> {
    let owners = Owners::new(stacks);
    let mut drafts = Drafts {
        by_rank,
        ..Drafts::default()
    };
    for (stop, standing) in tasks.stops() {
        let mut left = standing.intersection(&owners.all);
        while let Some((whose, stack)) = left.first().and_then(|task| owners.stack(task)) {
            let whose = whose.intersection(&left);
            left.subtract(&whose);
            let frames = match stack.frames.as_slice() {
                [] => stop.frame.as_slice(),
                frames => frames,
            };
            drafts.add_standing(whose, stop, frames);
        }
        let bare = standing.difference(&owners.all);
        if !bare.is_empty() {
            drafts.add_standing(bare, stop, stop.frame.as_slice());
        }
    }
    let running = tasks.running();
    if !running.is_empty() {
        drafts.add_running(running);
    }
    let mut drafts = drafts.all;
    drafts.sort_by_key(|draft| draft.tasks.first());
    fold(drafts).into_iter().map(Draft::into_group).collect()
}

/// The stack of each task.
struct Owners<'a> {
    stacks: &'a [(IdSet, Backtrace)],
    /// Tasks whose stack is known.
    all: IdSet,
    /// Index of the stack of each task, by task number.
    of: Vec<usize>,
}

impl<'a> Owners<'a> {
    fn new(stacks: &'a [(IdSet, Backtrace)]) -> Self {
        let all = IdSet::union_all(stacks.iter().map(|(tasks, _)| tasks));
        let last = all.last().map_or(0, |task| task.0 as usize + 1);
        let mut of = vec![usize::MAX; last];
        for (at, (tasks, _)) in stacks.iter().enumerate() {
            for range in tasks.ranges() {
                of[*range.start() as usize..=*range.end() as usize].fill(at);
            }
        }
        Self { stacks, all, of }
    }

    /// The stack of a task, with all tasks that share it. `None` if the stack is not known.
    fn stack(&self, task: TaskId) -> Option<&'a (IdSet, Backtrace)> {
        self.stacks.get(*self.of.get(task.0 as usize)?)
    }
}

/// Stopped tasks with equal call stacks, before it is decided whether they become a thread.
struct Stand<'a> {
    stop: &'a Stop,
    frames: &'a [Frame],
    /// gdb's level of the first frame, by task set.
    bases: Vec<(IdSet, u32)>,
}

/// Tasks that may become a thread.
struct Draft<'a> {
    tasks: IdSet,
    standing: Option<Stand<'a>>,
    folded: Option<usize>,
}

/// All candidates for threads.
#[derive(Default)]
struct Drafts<'a> {
    all: Vec<Draft<'a>>,
    places: Distinct,
    by_rank: bool,
}

impl<'a> Drafts<'a> {
    fn add_standing(&mut self, tasks: IdSet, stop: &'a Stop, frames: &'a [Frame]) {
        let base = frames.first().map_or(0, |frame| frame.level);
        let stand = |tasks: &IdSet| Stand {
            stop,
            frames,
            bases: vec![(tasks.clone(), base)],
        };
        if self.by_rank {
            let each = tasks.iter().map(IdSet::single);
            self.all.extend(each.map(|tasks| Draft {
                standing: Some(stand(&tasks)),
                tasks,
                folded: None,
            }));
            return;
        }
        let new = stand(&tasks);
        let hash = new.telling();
        let all = &mut self.all;
        let is_like = |at: usize| {
            let known = all[at].standing.as_ref();
            known.is_some_and(|known| known.is_like(&new))
        };
        if let Some(at) = self.places.find(hash, is_like) {
            all[at].join(&tasks, new);
            return;
        }
        self.places.add(hash, all.len());
        all.push(Draft {
            tasks,
            standing: Some(new),
            folded: None,
        });
    }

    fn add_running(&mut self, tasks: IdSet) {
        let each: Vec<IdSet> = match self.by_rank {
            true => tasks.iter().map(IdSet::single).collect(),
            false => vec![tasks],
        };
        self.all.extend(each.into_iter().map(|tasks| Draft {
            tasks,
            standing: None,
            folded: None,
        }));
    }
}

impl<'a> Draft<'a> {
    /// Adds tasks with the same stop.
    fn join(&mut self, tasks: &IdSet, new: Stand<'a>) {
        if let Some(known) = &mut self.standing {
            if tasks.first() < self.tasks.first() {
                known.stop = new.stop;
            }
            for (whose, base) in new.bases {
                // Tasks inside a runtime differ in their depth, and many have the same depth.
                match known.bases.iter_mut().find(|(_, known)| *known == base) {
                    Some((known, _)) => known.union_with(&whose),
                    None => known.bases.push((whose, base)),
                }
            }
        }
        self.tasks.union_with(tasks);
    }

    fn is_crash(&self) -> bool {
        let standing = self.standing.as_ref();
        standing.is_some_and(|standing| standing.stop.reason.is_crash())
    }

    fn into_group(self) -> Group {
        Group {
            tasks: self.tasks,
            standing: self.standing.map(Stand::into_standing),
            folded: self.folded,
        }
    }
}

impl Stand<'_> {
    fn is_like(&self, other: &Self) -> bool {
        let (mut own, mut others) = (self.told(), other.told());
        self.frames.len() == other.frames.len()
            && self.stop.inside == other.stop.inside
            && self.stop.reason.is_crash() == other.stop.reason.is_crash()
            && own.by_ref().eq(others.by_ref())
    }

    /// A hash that is equal for tasks of one class.
    fn telling(&self) -> u64 {
        let frames: Vec<_> = self.told().collect();
        hash_of(&(frames, &self.stop.inside, self.stop.reason.is_crash()))
    }

    /// The parts of the frames that are equal for tasks in one class: without the depth inside a runtime and without
    /// arguments.
    fn told(&self) -> impl Iterator<Item = (u32, [&str; 4], u32)> {
        let base = self.frames.first().map_or(0, |frame| frame.level);
        self.frames.iter().map(move |frame| {
            let texts = [&frame.function, &frame.file, &frame.path, &frame.module];
            let level = frame.level.saturating_sub(base);
            (level, texts.map(String::as_str), frame.line)
        })
    }

    fn into_standing(self) -> CommonStop {
        let frames = self
            .told()
            .map(|(level, [function, file, path, module], line)| Frame {
                level,
                function: function.to_owned(),
                file: file.to_owned(),
                path: path.to_owned(),
                line,
                module: module.to_owned(),
                args: Vec::new(),
            });
        CommonStop {
            stop: self.stop.clone(),
            frames: frames.collect(),
            bases: self.bases,
        }
    }
}

/// Combines candidates without a row of their own into one; crashes and big classes get rows first.
fn fold(mut drafts: Vec<Draft<'_>>) -> Vec<Draft<'_>> {
    if drafts.len() <= ROWS_MAX {
        return drafts;
    }
    drafts.sort_by_cached_key(|draft| {
        let (count, first) = (draft.tasks.len(), draft.tasks.first());
        (!draft.is_crash(), Reverse(count), first)
    });
    let rest = drafts.split_off(ROWS_MAX - 1);
    drafts.sort_by_key(|draft| draft.tasks.first());
    let folded = Draft {
        tasks: IdSet::union_all(rest.iter().map(|draft| &draft.tasks)),
        folded: Some(rest.len()),
        standing: rest.into_iter().find_map(|draft| draft.standing),
    };
    drafts.push(folded);
    drafts
}

#[cfg(test)]
mod tests {
    use sdm_debug::reply::StopReason;

    use super::*;
    use crate::tasks::Condition;
    use crate::thread_ids::Rows;

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

    /// Running or stopped tasks: those at line 0 run.
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
                _ => Condition::CommonStop(Box::new(stop)),
            };
            tasks.set(set, condition);
        }
        tasks
    }

    fn regroup(rows: &mut Rows, places: &[(&str, u32)]) -> String {
        let groups = groups(&tasks(places), &[], rows.is_by_rank());
        rows.regroup(groups);
        let shown = rows
            .iter()
            .map(|row| format!("{}={}", row.id, row.group.tasks));
        shown.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn dap_thread_ids_follow_ranks_when_classes_split_or_join() {
        let mut rows = Rows::new(false);
        assert_eq!(regroup(&mut rows, &[("0-7", 10)]), "1=0-7");
        // The thread splits, and the part with the lowest task keeps the id.
        assert_eq!(
            regroup(&mut rows, &[("0-3", 10), ("4-7", 11)]),
            "1=0-3 2=4-7"
        );
        // The threads change places, and then join.
        assert_eq!(
            regroup(&mut rows, &[("0-3", 11), ("4-7", 10)]),
            "1=0-3 2=4-7"
        );
        rows.focused = 2;
        assert_eq!(regroup(&mut rows, &[("0-7", 12)]), "2=0-7");
        assert_eq!(regroup(&mut rows, &[("0-3", 1), ("4-7", 2)]), "2=0-3 3=4-7");
        // A stopped thread comes before a running one.
        assert_eq!(
            regroup(&mut rows, &[("0", 0), ("1-3", 5), ("4-7", 0)]),
            "2=1-3 3=0,4-7"
        );
    }

    #[test]
    fn each_rank_keeps_its_thread_id() {
        let mut rows = Rows::new(true);
        assert_eq!(regroup(&mut rows, &[("0-2", 10)]), "1=0 2=1 3=2");
        assert_eq!(regroup(&mut rows, &[("0", 0), ("2", 10)]), "1=0 3=2");
    }

    #[test]
    fn number_of_threads_is_bounded() {
        let mut rows = Rows::new(false);
        let sets: Vec<String> = (0..1000).map(|task| task.to_string()).collect();
        let places: Vec<_> = sets.iter().map(String::as_str).zip(1..).collect();
        regroup(&mut rows, &places);
        assert_eq!(rows.iter().count(), ROWS_MAX);
        let last = rows.iter().last().expect("there are some");
        assert_eq!(last.group.folded, Some(937));
        assert_eq!(
            last.group.name(false),
            "[63-999] 937 ranks: 937 other stacks"
        );
    }
}
