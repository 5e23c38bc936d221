//! Environment variables that SDM sets for the programs that it starts.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

use sdm_idset::{IdSet, TaskId};

/// Changes of the environment of one task: a value, or `None` to remove the variable.
pub(crate) type EnvironmentChanges = Vec<(OsString, Option<OsString>)>;
/// The changes as bytes, for messages.
pub(crate) type EnvironmentBytes = Vec<(Vec<u8>, Option<Vec<u8>>)>;

/// The differences between this process's environment and that of started programs.
#[derive(Clone, Debug, Default)]
pub struct Variables {
    /// Changes for all tasks: a value, or `None` to remove the variable.
    pub same: Vec<(OsString, Option<OsString>)>,
    /// Variables whose value is the task's index among the members of a set.
    pub numbers: Vec<(OsString, IdSet)>,
}

impl Variables {
    /// The changes for one task.
    #[must_use]
    pub fn of(&self, task: TaskId) -> EnvironmentChanges {
        let before = IdSet::all_below(task.0);
        let numbers = self.numbers.iter().map(|(name, among)| {
            let number = among.intersection_len(&before);
            (name.clone(), Some(number.to_string().into()))
        });
        self.same.iter().cloned().chain(numbers).collect()
    }

    /// The changes for a task, encoded for another process.
    #[must_use]
    pub fn bytes_of(&self, task: TaskId) -> EnvironmentBytes {
        let given = self.of(task).into_iter();
        given
            .map(|(name, value)| (name.into_vec(), value.map(OsString::into_vec)))
            .collect()
    }
}

/// Changes that were received from another process.
#[must_use]
pub(crate) fn given(bytes: EnvironmentBytes) -> EnvironmentChanges {
    let given = bytes.into_iter();
    given
        .map(|(name, value)| (OsString::from_vec(name), value.map(OsString::from_vec)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rank_variables_number_tasks_within_their_set() {
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
        assert_eq!(given(variables.bytes_of(TaskId(5))), found);
    }
}
