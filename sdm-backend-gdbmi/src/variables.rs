//! Variables that a host of programs gives them.

use std::ffi::OsString;

use sdm_idset::{IdSet, TaskId};

/// How the environment of started programs differs from this process's.
#[derive(Clone, Debug, Default)]
pub struct Variables {
    /// The same for all: a value, or none where the variable is removed.
    pub same: Vec<(OsString, Option<OsString>)>,
    /// Those whose value is how many members of a set stand before the task: its number among them.
    pub numbers: Vec<(OsString, IdSet)>,
}

impl Variables {
    /// What differs for a task.
    #[must_use]
    pub(crate) fn of(&self, task: TaskId) -> Vec<(OsString, Option<OsString>)> {
        let before = IdSet::all_below(task.0);
        let numbers = self.numbers.iter().map(|(name, among)| {
            let number = among.intersection_len(&before);
            (name.clone(), Some(number.to_string().into()))
        });
        self.same.iter().cloned().chain(numbers).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_has_its_number_among_those_of_each_set() {
        let set = |text: &str| text.parse::<IdSet>().unwrap();
        let variables = Variables {
            same: vec![("GONE".into(), None)],
            numbers: vec![("RANK".into(), set("0-7")), ("LOCAL".into(), set("4-7"))],
        };
        let found = variables.of(TaskId(5));
        let number = |text: &str| Some(OsString::from(text));
        let expect = [
            ("GONE", None),
            ("RANK", number("5")),
            ("LOCAL", number("1")),
        ];
        assert_eq!(found, expect.map(|(name, value)| (name.into(), value)));
    }
}
