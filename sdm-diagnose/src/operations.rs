//! What the arguments of a call say of who takes part, and for whom else it waits.

use sdm_debug::probe::{ArgumentRole, Call, CallArgument};
use sdm_idset::IdSet;
use sdm_mpi::{waits_for_any_request, waits_for_requests};

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

/// Of whom the messages are of which a call waits for the first one.
pub(super) fn alternatives(call: &Call) -> Option<IdSet> {
    let mut arguments = call.arguments.iter();
    let is_it = |one: &&CallArgument| one.role == ArgumentRole::Target;
    let argument = arguments
        .find(is_it)
        .filter(|_| waits_for_any_request(&call.function));
    members_of(argument?)
}

/// The ranks of a communicator, where they are known.
pub(super) fn members_of(communicator: &CallArgument) -> Option<IdSet> {
    let text = &communicator.value.as_ref()?.text;
    let members: IdSet = text.parse().ok()?;
    Some(members).filter(|members| !members.is_empty())
}

/// What collective operations that do not block are called here, of which the request says no more.
pub(super) const NONBLOCKING: &str = "nonblocking";

/// True for a call that waits for a collective operation that does not block: of its request a communicator is known, and no message.
pub(super) fn is_of_collective(call: Option<&Call>) -> bool {
    use ArgumentRole as R;
    let Some(call) = call.filter(|call| waits_for_requests(&call.function)) else {
        return false;
    };
    let has = |role| call.arguments.iter().any(|one| one.role == role);
    has(R::Communicator) && ![R::Source, R::Destination, R::Target].into_iter().any(has)
}
