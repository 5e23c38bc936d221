//! The commands `sdm cancel`, `hold` and `release`.

use sdm_rm::Question;

use super::choose::{DONE_WAIT, ask, job};
use super::error::ClusterError;
use super::for_each::each;
use crate::cli::JobArgs;

/// A change of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// The job is ended.
    Cancel,
    /// The job is not started until it is released.
    Hold,
    /// The job may be started again.
    Release,
}

/// Changes the named jobs. Failures are reported, and do not stop the others.
pub(super) fn change(args: &JobArgs, change: Change) -> Result<u8, ClusterError> {
    let named = args.of.manager.as_deref();
    each(&args.jobs, |text| change_one(text, named, change))
}

fn change_one(text: &str, named: Option<&str>, change: Change) -> Result<(), ClusterError> {
    let chosen = job(text, named)?;
    let job = chosen.job;
    let question = match change {
        Change::Cancel => Question::Cancel { job },
        Change::Hold => Question::Hold { job },
        Change::Release => Question::Release { job },
    };
    ask(&chosen.cluster, &question, DONE_WAIT)?;
    Ok(())
}
