//! Jobs that wait in a kept session of SDM's: how they are marked, and what their sessions are called.

use crate::snapshot::{Attributes, set};

/// The comment of such a job.
const COMMENT: &str = "held by sdm";
/// What the names of their sessions begin with; the job's number follows.
const SESSION: &str = "slurm-";

/// The option of `sbatch` that marks a job.
pub(super) fn mark() -> String {
    format!("--comment={COMMENT}")
}

/// The name of the session of a job whose number is this: a number, or what a shell makes one of.
pub(super) fn session(number: &str) -> String {
    format!("{SESSION}{number}")
}

/// Tells of the session of a marked job that runs.
pub(super) fn tell(attributes: &mut Attributes, comment: &str, number: &str) {
    if comment == COMMENT && attributes.get("jobState").is_some_and(|it| it == "RUNNING") {
        set(attributes, "debugSession", session(number));
    }
}
