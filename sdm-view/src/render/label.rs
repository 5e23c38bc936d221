//! Sets as a person reads them: `ranks 0-62,64-127 (127)`.

use std::fmt::{self, Write};

use sdm_idset::{IdSet, TaskId};

/// What tasks are called: ranks, or other numbers with a word of their own.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Names {
    numbers: Option<(&'static str, Vec<(TaskId, u32)>)>,
}

impl Names {
    /// Tasks are called by their rank.
    #[must_use]
    pub fn ranks() -> Self {
        Self { numbers: None }
    }

    /// Tasks are called by the process they stand for.
    #[must_use]
    pub fn pids(pids: Vec<(TaskId, u32)>) -> Self {
        Self {
            numbers: Some(("pid", pids)),
        }
    }

    /// Tasks are called by the number of the core file that they are: their own.
    #[must_use]
    pub fn cores() -> Self {
        Self {
            numbers: Some(("core", Vec::new())),
        }
    }

    /// `rank 3`, or `ranks 0-3 (4)`; sets longer than `width_max` are cut.
    #[must_use]
    pub fn label(&self, tasks: &IdSet, width_max: usize) -> String {
        let noun = self.numbers.as_ref().map_or("rank", |(noun, _)| noun);
        if tasks.len() == 1 {
            return format!("{noun} {}", self.text(tasks, width_max));
        }
        format!("{noun}s {} ({})", self.text(tasks, width_max), tasks.len())
    }

    /// The set alone.
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

/// The text form of a set, cut at a comma where it is longer than `width_max`: `0,3,7,...`.
#[must_use]
pub fn set_text(set: &IdSet, width_max: usize) -> String {
    let mut bounded = Bounded {
        text: String::new(),
        bytes_max: width_max.max(8),
    };
    if write!(bounded, "{set}").is_ok() {
        return bounded.text;
    }
    // Room for the dots behind the last whole part.
    let room = bounded.bytes_max - 4;
    let mut text = bounded.text;
    text.truncate(room + 1);
    let end = text.rfind(',').unwrap_or(room);
    text.truncate(end);
    text.push_str(",...");
    text
}

/// Takes text up to a bound and then fails, so that a set of a million parts costs no more.
struct Bounded {
    text: String,
    bytes_max: usize,
}

impl fmt::Write for Bounded {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        self.text.push_str(part);
        if self.text.len() > self.bytes_max {
            return Err(fmt::Error);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_says_who_and_how_many() {
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
    fn a_cut_set_stays_within_its_bound() {
        let set: IdSet = (0..2000).map(|id| TaskId(id * id)).collect();
        for width in 8..200 {
            let text = set_text(&set, width);
            assert!(text.len() <= width && text.ends_with(",..."), "{text}");
        }
    }

    #[test]
    fn attached_tasks_are_called_by_their_pid() {
        let names = Names::pids(vec![(TaskId(0), 4711), (TaskId(1), 4712), (TaskId(2), 9)]);
        assert_eq!(names.label(&IdSet::all_below(2), 40), "pids 4711-4712 (2)");
        assert_eq!(names.label(&IdSet::single(TaskId(2)), 40), "pid 9");
    }
}
