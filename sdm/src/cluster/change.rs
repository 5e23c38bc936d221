//! The commands `sdm cancel`, `hold`, `release`, `move` and `priority`.

use sdm_rm::Question;

use super::choose::{DONE_WAIT, ask, job};
use super::error::ClusterError;
use super::for_each::each;
use crate::cli::JobArgs;

/// A change of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change<'a> {
    /// The job is ended.
    Cancel,
    /// The job is not started until it is released.
    Hold,
    /// The job may be started again.
    Release,
    /// The job is moved to the queue of this name.
    Move(&'a str),
    /// The job gets this priority.
    Priority(i64),
}

/// Changes the named jobs. Failures are reported, and do not stop the others.
pub(super) fn change(args: &JobArgs, change: Change<'_>) -> Result<u8, ClusterError> {
    let named = args.of.manager.as_deref();
    each(&args.jobs, |text| change_one(text, named, change))
}

fn change_one(text: &str, named: Option<&str>, change: Change<'_>) -> Result<(), ClusterError> {
    let chosen = job(text, named)?;
    let job = chosen.job;
    let question = match change {
        Change::Cancel => Question::Cancel { job },
        Change::Hold => Question::Hold { job },
        Change::Release => Question::Release { job },
        Change::Move(queue) => Question::Move {
            job,
            queue: queue.to_owned(),
        },
        Change::Priority(value) => Question::Priority { job, value },
    };
    ask(&chosen.cluster, &question, DONE_WAIT)?;
    Ok(())
}
