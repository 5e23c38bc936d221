//! The results of repeated inspections.

use std::collections::BTreeMap;
use std::time::Duration;

use sdm_debug::reply::{TaskSamples, TaskStacks};
use sdm_debug::wire;
use sdm_idset::{IdSet, TaskId};
use xxhash_rust::xxh3::xxh3_64;

/// The samples so far of each task of a command.
#[derive(Default)]
pub(crate) struct Sampling(BTreeMap<TaskId, TaskSamples>);

impl Sampling {
    /// Adds a sample of a task.
    pub(crate) fn add(
        &mut self,
        task: TaskId,
        stacks: TaskStacks,
        stood: Duration,
        seen: &mut SampleHistory,
    ) {
        let moved = seen.is_elsewhere(task, &stacks);
        let samples = self.0.entry(task).or_default();
        samples.add(stacks, moved, microseconds(stood));
    }

    /// Sets the processor time of a task's samples.
    pub(crate) fn spend(&mut self, task: TaskId, processor: Duration) {
        if let Some(samples) = self.0.get_mut(&task) {
            samples.cost.processor_us = microseconds(processor);
        }
    }

    /// Removes the samples of a task and returns them; `None` if there are none.
    pub(crate) fn take(&mut self, task: TaskId) -> Option<TaskSamples> {
        self.0.remove(&task)
    }
}

/// The last samples, across commands that continue one another.
#[derive(Default)]
pub(crate) struct SampleHistory {
    /// Hash of the last stacks of each task.
    stacks: BTreeMap<TaskId, u64>,
    processor: Duration,
}

impl SampleHistory {
    /// Forgets these tasks' last samples.
    pub(crate) fn forget(&mut self, tasks: &IdSet) {
        self.stacks.retain(|task, _| !tasks.contains(*task));
    }

    /// True if a task's stacks differ from its last sample; false for the first sample.
    fn is_elsewhere(&mut self, task: TaskId, stacks: &TaskStacks) -> bool {
        // The number of active helpers of a runtime does not concern the program.
        let hash = xxh3_64(&wire::encode(&stacks.threads));
        let before = self.stacks.insert(task, hash);
        before.is_some_and(|before| before != hash)
    }

    /// The processor time since the last call. `all` is the looker's total since its start.
    pub(crate) fn spent(&mut self, all: Duration) -> Duration {
        let before = std::mem::replace(&mut self.processor, all);
        // A new looker may have been started since, whose total is smaller.
        all.checked_sub(before).unwrap_or(all)
    }
}

fn microseconds(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use sdm_debug::reply::StackFrame;

    use super::*;

    #[test]
    fn sampled_task_at_another_line_counts_as_moved() {
        let at = |line, helpers| {
            TaskStacks::of_main(vec![StackFrame::own("main", "halo.c", line)], helpers)
        };
        let task = TaskId(3);
        let mut seen = SampleHistory::default();
        let mut samples = |looks: &[(u32, u32)], goes_on: bool| {
            if !goes_on {
                seen.forget(&IdSet::single(task));
            }
            let mut sampling = Sampling::default();
            for (line, helpers) in looks {
                let stood = Duration::from_micros(u64::from(*line));
                sampling.add(task, at(*line, *helpers), stood, &mut seen);
            }
            sampling.take(task).unwrap()
        };
        let found = samples(&[(7, 1), (7, 2), (9, 2), (7, 0)], false);
        assert_eq!((found.looks, found.moves, found.helpers), (4, 2, 5));
        let times: Vec<u64> = found.stacks.iter().map(|(times, _)| *times).collect();
        assert_eq!(times, [3, 1]);
        assert_eq!((found.cost.stood_us, found.cost.longest_us), (30, 9));
        assert_eq!(samples(&[(7, 0)], true).moves, 0);
        assert_eq!(samples(&[(9, 0)], true).moves, 1);
        assert_eq!(samples(&[(7, 0)], false).moves, 0);
    }

    #[test]
    fn processor_time_since_the_last_call_is_returned() {
        let mut seen = SampleHistory::default();
        let spent = [30, 50, 50, 10].map(|all| seen.spent(Duration::from_millis(all)));
        assert_eq!(spent, [30, 20, 0, 10].map(Duration::from_millis));
    }
}
