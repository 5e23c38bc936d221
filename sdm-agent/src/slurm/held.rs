//! How Slurm's jobs that wait in a session of SDM's are known.

use crate::snapshot::{Attributes, set_session};

/// What the names of their sessions begin with.
pub(super) const PREFIX: &str = "slurm-";
/// Their comment.
pub(super) const COMMENT: &str = "held by sdm";

/// Tells of the session of a marked job.
pub(super) fn tell(attributes: &mut Attributes, comment: &str, number: &str) {
    if comment == COMMENT {
        set_session(attributes, PREFIX, number);
    }
}
