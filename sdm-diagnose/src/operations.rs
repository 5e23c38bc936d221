//! What the arguments of a call say of who takes part, and for whom else it waits.

use sdm_debug::probe::{ArgumentRole, Call, CallArgument};
use sdm_idset::IdSet;

/// True where a call waits for processes of another job.
pub(super) fn is_with_other_jobs(call: Option<&Call>) -> bool {
    let mut arguments = call.iter().flat_map(|call| &call.arguments);
    arguments.any(|one| one.role == ArgumentRole::OtherJobs)
}

/// True where a call's ranks are those of the job: of the communicator of all, or put in their place.
pub(super) fn names_ranks_of_the_job(call: &Call) -> bool {
    let mut arguments = call.arguments.iter();
    arguments.any(|one| match one.role {
        ArgumentRole::Communicator => one.is_world() || members_of(one).is_some(),
        ArgumentRole::Target => true,
        _ => false,
    })
}

/// The ranks of a communicator, where they are known.
pub(super) fn members_of(communicator: &CallArgument) -> Option<IdSet> {
    let text = &communicator.value.as_ref()?.text;
    let members: IdSet = text.parse().ok()?;
    Some(members).filter(|members| !members.is_empty())
}
