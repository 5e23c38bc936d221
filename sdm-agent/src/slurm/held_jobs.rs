//! The debug session of a Slurm job that SDM stops before `main`. The session has the name `slurm-` and the job's
//! number.

use crate::snapshot::{Attributes, set_session};

/// Prefix of the sessions' names.
pub(super) const PREFIX: &str = "slurm-";
/// Comment of the Slurm jobs that SDM holds.
pub(super) const COMMENT: &str = "held by sdm";

/// Adds the debug session to the attributes of a running job that SDM has marked as held.
pub(super) fn tell(attributes: &mut Attributes, comment: &str, number: &str) {
    if comment == COMMENT {
        set_session(attributes, PREFIX, number);
    }
}
