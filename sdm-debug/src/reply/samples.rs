//! The reply with the sampled stacks of a task, and their cost.

use serde::{Deserialize, Serialize};

use super::{StackFrame, TaskStacks};
use crate::fold::STACKS_MAX;

/// The folded stacks of one task over several samples.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TaskSamples {
    /// Number of samples of the task.
    pub looks: u32,
    /// Number of samples whose stacks differ from the sample before.
    pub moves: u32,
    /// The distinct stacks, outermost frame first, each with the number of times that a thread was found in it.
    pub stacks: Vec<(u64, Vec<StackFrame>)>,
    /// Number of times that a thread was left out, as a helper of a runtime or for lack of room.
    pub helpers: u64,
    /// The cost of the samples.
    pub cost: Cost,
}

/// The cost of samples, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Cost {
    /// Total time that the task was stopped.
    pub stood_us: u64,
    /// Longest time that the task was stopped for one sample.
    pub longest_us: u64,
    /// Processor time of the process that takes the samples. It samples all tasks of a server, so one task reports its
    /// whole time and the others 0.
    pub processor_us: u64,
}

impl TaskSamples {
    /// Adds a sample of `stacks`. `moved` is true if it differs from the sample before. `stood_us` is the time that the
    /// task was stopped for it.
    pub fn add(&mut self, stacks: TaskStacks, moved: bool, stood_us: u64) {
        self.looks = self.looks.saturating_add(1);
        self.moves = self.moves.saturating_add(moved.into());
        self.helpers = self.helpers.saturating_add(stacks.helpers.into());
        self.cost.stood_us = self.cost.stood_us.saturating_add(stood_us);
        self.cost.longest_us = self.cost.longest_us.max(stood_us);
        for thread in stacks.threads {
            let count = u64::from(thread.count);
            let mut known = self.stacks.iter();
            match known.position(|(_, frames)| *frames == thread.frames) {
                Some(at) => self.stacks[at].0 = self.stacks[at].0.saturating_add(count),
                None if self.stacks.len() >= STACKS_MAX => {
                    self.helpers = self.helpers.saturating_add(count);
                }
                None => self.stacks.push((count, thread.frames)),
            }
        }
    }
}
