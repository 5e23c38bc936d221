//! The distinct answers to a command.

use sdm_idset::IdSet;

use crate::rules::Merged;
use crate::{Failure, Reply};

/// A distinct answer, with all tasks that gave it.
#[derive(Clone, Debug, PartialEq)]
pub struct Class {
    /// The tasks that gave this answer.
    pub tasks: IdSet,
    /// The answer, the same for all of them.
    pub answer: ClassAnswer,
}

/// A distinct answer.
#[derive(Clone, Debug, PartialEq)]
pub enum ClassAnswer {
    /// The reply, merged by equality.
    Reply(Reply),
    /// The output of a merge rule.
    Merged(Merged),
    /// The failure of the command on these tasks.
    Failed(Failure),
    /// The other tasks, whose answers are not kept because there are too many distinct ones.
    Others,
}
