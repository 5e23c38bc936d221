//! Text for sets of tasks: `ranks 0-62,64-127 (127)`.

use sdm_idset::{IdSet, TaskId, set_text};

/// The names of tasks: ranks, or other numbers with a prefix of their own.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Names {
    numbers: Option<(&'static str, Vec<(TaskId, u32)>)>,
}

impl Names {
    /// Names tasks by their ranks.
    #[must_use]
    pub fn ranks() -> Self {
        Self { numbers: None }
    }

    /// Names tasks by their process ids.
    #[must_use]
    pub fn pids(pids: Vec<(TaskId, u32)>) -> Self {
        Self {
            numbers: Some(("pid", pids)),
        }
    }

    /// Names tasks by the numbers of their core files.
    #[must_use]
    pub fn cores() -> Self {
        Self {
            numbers: Some(("core", Vec::new())),
        }
    }

    /// The label of a set: `rank 3`, or `ranks 0-3 (4)`. Sets longer than `width_max` are truncated.
    #[must_use]
    pub fn label(&self, tasks: &IdSet, width_max: usize) -> String {
        let noun = self.numbers.as_ref().map_or("rank", |(noun, _)| noun);
        if tasks.len() == 1 {
            return format!("{noun} {}", self.text(tasks, width_max));
        }
        format!("{noun}s {} ({})", self.text(tasks, width_max), tasks.len())
    }

    /// The set without a word in front.
    #[must_use]
    pub fn text(&self, tasks: &IdSet, width_max: usize) -> String {
        match &self.numbers {
            Some((_, numbers)) if !numbers.is_empty() => {
                let named: IdSet = numbers
                    .iter()
                    .filter(|(task, _)| tasks.contains(*task))
                    .map(|(_, pid)| TaskId(*pid))
                    .collect();
                set_text(&named, width_max)
            }
            _ => set_text(tasks, width_max),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn label_names_ranks_and_their_count() {
        let names = Names::ranks();
        assert_eq!(names.label(&IdSet::single(TaskId(3)), 40), "rank 3");
        assert_eq!(names.label(&IdSet::all_below(8), 40), "ranks 0-7 (8)");
        let holes: IdSet = [0, 1, 5, 6, 9, 10, 14, 15, 20, 21, 29]
            .into_iter()
            .map(TaskId)
            .collect();
        assert_eq!(names.label(&holes, 16), "ranks 0-1,5-6,9-10,... (11)");
    }

    #[test]
    fn attached_tasks_are_labelled_by_pid() {
        let names = Names::pids(vec![(TaskId(0), 4711), (TaskId(1), 4712), (TaskId(2), 9)]);
        assert_eq!(names.label(&IdSet::all_below(2), 40), "pids 4711-4712 (2)");
        assert_eq!(names.label(&IdSet::single(TaskId(2)), 40), "pid 9");
    }
}
