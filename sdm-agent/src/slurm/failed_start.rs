//! Jobs whose program could not be started. Their batch script has written this into the comment of the job.

use sdm_runtime::attribute as id;
use sdm_runtime::states::Job;

use crate::snapshot::{self, Attributes, set, set_state};

/// Beginning of the comment of a job whose program cannot be started.
const CANNOT_START: &str = "sdm: cannot start ";
/// Exit code of a job whose program cannot be started.
const NO_PROGRAM: &str = "127";

/// Marks an ended job whose comment says that its program could not be started.
pub(super) fn mark(attributes: &mut Attributes, comment: &str) {
    let Some(why) = comment.strip_prefix(CANNOT_START) else {
        return;
    };
    let code = attributes
        .get(id::EXIT_CODE)
        .map_or(NO_PROGRAM, String::as_str);
    if snapshot::state(attributes) == Some(Job::Terminated) && code == NO_PROGRAM {
        set_state(attributes, Job::Error);
        set(attributes, id::JOB_STATUS_MESSAGE, why);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn job_with_missing_program_is_in_state_error() {
        let marked = |code: &str, comment: &str| {
            let mut attributes = Attributes::new();
            set_state(&mut attributes, Job::Terminated);
            set(&mut attributes, id::EXIT_CODE, code);
            mark(&mut attributes, comment);
            let why = attributes.get("jobStatusMessage").cloned();
            (snapshot::state(&attributes), why.unwrap_or_default())
        };
        let comment = "sdm: cannot start /a b: no such program";
        let error = (Some(Job::Error), "/a b: no such program".to_owned());
        assert_eq!(marked("127", comment), error);
        // Requeued, it ended by itself.
        let ended = (Some(Job::Terminated), String::new());
        assert_eq!(marked("0", comment), ended);
        assert_eq!(marked("127", "mine"), ended);
    }
}
