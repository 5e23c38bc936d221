//! Profiles: the merged stacks of tasks over many samples, and the tasks that were at another place from one sample to
//! the next.

mod flame;
mod speedscope;
mod tally;
mod tree;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use sdm_debug::reply::StackFrame;
use sdm_debug::rules::Samples;
use sdm_idset::IdSet;

pub use flame::flame;
pub use speedscope::speedscope;
use tally::Tally;
pub use tree::ProfileNode;

/// Maximum number of distinct stacks that are kept.
const STACKS_MAX: usize = 16 << 10;
/// Maximum number of classes. The smallest ones beyond it are merged.
pub const CLASSES_MAX: usize = 16;
/// Maximum number of parts that the time is divided into.
const PARTS_MAX: usize = 60;

/// The call stacks of tasks over many samples.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Profile {
    /// The sampled tasks.
    pub tasks: IdSet,
    /// Duration of the sampling.
    pub elapsed: Duration,
    /// Number of samples, summed over all tasks.
    pub looks: u64,
    /// Number of times that a thread was left out, as a helper of a runtime or for lack of room.
    pub helpers: u64,
    /// Time that tasks were stopped for samples, summed over all tasks, in microseconds.
    pub stood_us: u64,
    /// Upper bound of the time that a single task was stopped, in microseconds: the sum of the maxima of all reports.
    pub stood_most_us: u64,
    /// Maximum time of one sample, in microseconds.
    pub longest_us: u64,
    /// Processor time of the sampling processes, in microseconds.
    pub processor_us: u64,
    /// Tasks with another call stack than in the previous sample.
    pub moved: IdSet,
    /// Tasks with stacks that were not kept.
    pub others: IdSet,
    /// Number of samples of the stacks that were not kept.
    pub others_times: u64,
    stacks: BTreeMap<Vec<StackFrame>, Tally>,
    /// Number of reports so far.
    reports: usize,
    /// Number of times that neighbouring parts of the time were joined in pairs.
    joined: u32,
}

/// Tasks with the same most frequent call stack. Stacks that differ only in their lines count as one.
#[derive(Clone, Debug, PartialEq)]
pub struct ProfileClass {
    /// The tasks of the class.
    pub tasks: IdSet,
    /// False if each task of the class had the same call stack in every sample.
    pub moved: bool,
    /// The most frequent call stack, outermost frame first. The line of a frame is 0 where it varied. Empty for the
    /// merged class of the smallest ones.
    pub place: Vec<StackFrame>,
    /// Number of samples with that call stack.
    pub times: u64,
    /// Number of samples of the class in total.
    pub all: u64,
    /// Number of distinct call stacks. Stacks that differ only in their lines are distinct here.
    pub places: usize,
}

impl Profile {
    /// Adds a report, which has the samples of some tasks since the last report.
    pub fn absorb(&mut self, tasks: &IdSet, samples: &Samples) {
        self.tasks.union_with(tasks);
        self.looks = self.looks.saturating_add(samples.looks);
        self.helpers = self.helpers.saturating_add(samples.helpers);
        self.stood_us = self.stood_us.saturating_add(samples.stood_us);
        self.stood_most_us = self.stood_most_us.saturating_add(samples.stood_most_us);
        self.longest_us = self.longest_us.max(samples.longest_us);
        self.processor_us = self.processor_us.saturating_add(samples.processor_us);
        self.moved.union_with(&samples.moved);
        let (others, times) = samples.others();
        self.leave_out(others, times);
        let part = self.next_part();
        for (seen, who) in samples.seen() {
            if self.stacks.len() >= STACKS_MAX && !self.stacks.contains_key(&seen.frames) {
                self.leave_out(who, seen.times.saturating_mul(who.len()));
                continue;
            }
            let tally = self.stacks.entry(seen.frames.clone()).or_default();
            tally.add_in(part, seen.times, who);
        }
    }

    /// Counts a report; returns the part of the time that it belongs to. If there would be too many parts, neighbouring
    /// ones are joined in pairs.
    fn next_part(&mut self) -> usize {
        if self.reports >> self.joined >= PARTS_MAX {
            self.stacks.values_mut().for_each(Tally::join_parts);
            self.joined += 1;
        }
        let part = self.reports >> self.joined;
        self.reports += 1;
        part
    }

    /// Number of parts, of about the same length, that the time is divided into.
    #[must_use]
    pub fn parts(&self) -> usize {
        self.reports.div_ceil(1 << self.joined)
    }

    fn leave_out(&mut self, tasks: &IdSet, times: u64) {
        self.others.union_with(tasks);
        self.others_times = self.others_times.saturating_add(times);
    }

    /// True if there is no stack.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.stacks.is_empty()
    }

    /// Number of samples of threads of these tasks whose stacks were kept.
    #[must_use]
    pub fn times(&self, tasks: &IdSet) -> u64 {
        let times = self.stacks.values().map(|tally| tally.times(tasks));
        times.fold(0, u64::saturating_add)
    }

    /// The stacks of these tasks as one tree.
    #[must_use]
    pub fn tree(&self, tasks: &IdSet) -> Vec<ProfileNode> {
        let is_whole = *tasks == self.tasks;
        let parts = |frames: &[StackFrame]| match self.stacks.get(frames) {
            Some(tally) if is_whole => tally.parts(),
            _ => &[],
        };
        let stacks = self.stacks_of(tasks).into_iter();
        let stacks: Vec<tree::Stack<'_>> = stacks
            .map(|(frames, times, who)| (frames, times, who, parts(frames)))
            .collect();
        tree::nodes(&stacks, 0)
    }

    /// Each stack with the number of samples of these tasks, and the tasks.
    fn stacks_of(&self, tasks: &IdSet) -> Vec<(&[StackFrame], u64, IdSet)> {
        let stacks = self.stacks.iter().map(|(frames, tally)| {
            let who = tally.tasks().intersection(tasks);
            (&frames[..], tally.times(tasks), who)
        });
        stacks.filter(|(_, times, _)| *times > 0).collect()
    }

    /// Groups tasks by their most frequent call stack, compared without lines, largest class first. Tasks whose stack
    /// never changed are in classes of their own. If there are more than [`CLASSES_MAX`] classes, the smallest ones
    /// become one class without a stack, which is last.
    #[must_use]
    pub fn classes(&self) -> Vec<ProfileClass> {
        // Stacks that differ only in their lines are one place. Each place keeps its stacks with lines.
        let mut places: BTreeMap<Vec<StackFrame>, (Tally, BTreeSet<&[StackFrame]>)> =
            BTreeMap::new();
        for (frames, tally) in &self.stacks {
            let (sum, stacks) = places.entry(without_lines(frames)).or_default();
            tally.entries().for_each(|(times, who)| sum.add(times, who));
            stacks.insert(frames);
        }
        let mut ranked: Vec<(u64, &IdSet, &Vec<StackFrame>)> = Vec::new();
        for (place, (tally, _)) in &places {
            ranked.extend(tally.entries().map(|(times, who)| (times, who, place)));
        }
        ranked.sort_by_key(|(times, _, place)| (Reverse(*times), *place));
        let mut most: BTreeMap<(bool, &Vec<StackFrame>), IdSet> = BTreeMap::new();
        let mut left = self.tasks.clone();
        for (_, who, place) in ranked {
            let new = who.intersection(&left);
            left.subtract(&new);
            let (moved, still) = (new.intersection(&self.moved), new.difference(&self.moved));
            for (moved, who) in [(true, moved), (false, still)] {
                if !who.is_empty() {
                    most.entry((moved, place)).or_default().union_with(&who);
                }
            }
        }
        let mut classes: Vec<ProfileClass> = Vec::new();
        for ((moved, place), tasks) in most {
            let (tally, stacks) = &places[place];
            let times = tally.times(&tasks);
            let stacks = stacks.iter().copied();
            let theirs = stacks.filter(|it| self.stacks[*it].times(&tasks) > 0);
            let place = common(theirs);
            classes.push(self.class(tasks, moved, place, times));
        }
        classes.sort_by_key(|class| (Reverse(class.tasks.len()), class.tasks.first()));
        if classes.len() > CLASSES_MAX {
            let rest = classes.split_off(CLASSES_MAX - 1);
            let tasks = IdSet::union_all(rest.iter().map(|class| &class.tasks));
            let moved = rest.iter().any(|class| class.moved);
            classes.push(self.class(tasks, moved, Vec::new(), 0));
        }
        classes
    }

    fn class(&self, tasks: IdSet, moved: bool, place: Vec<StackFrame>, times: u64) -> ProfileClass {
        ProfileClass {
            moved,
            place,
            times,
            all: self.times(&tasks),
            places: self.stacks_of(&tasks).len(),
            tasks,
        }
    }
}

fn without_lines(frames: &[StackFrame]) -> Vec<StackFrame> {
    let frames = frames.iter().map(|frame| StackFrame {
        line: 0,
        repeat: 1,
        ..frame.clone()
    });
    frames.collect()
}

/// The common frames of stacks with the same functions. Lines that differ are 0.
fn common<'a>(mut stacks: impl Iterator<Item = &'a [StackFrame]>) -> Vec<StackFrame> {
    let mut common = stacks.next().map_or(Vec::new(), <[_]>::to_vec);
    for stack in stacks {
        for (frame, other) in common.iter_mut().zip(stack) {
            if frame.line != other.line {
                frame.line = 0;
            }
            frame.repeat = frame.repeat.max(other.repeat);
        }
    }
    common
}

#[cfg(test)]
pub(crate) mod tests;
