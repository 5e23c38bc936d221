//! Properties of an MPI call, derived from its arguments: the ranks that it names, the operation that it waits for, and
//! whether a rank can leave that operation early.

use std::collections::BTreeSet;

use sdm_debug::calls::roles;
use sdm_debug::probe::{ArgumentRole, Call};
use sdm_idset::IdSet;
use sdm_mpi::{
    TORCH_PREFIX, is_fence, is_of_neighbors, needs_all, sends_from_root, started_collective,
    takes_parts, waits_for_any_request, waits_for_requests,
};

/// True if the argument of this role names no rank: `MPI_PROC_NULL`.
pub(super) fn is_nobody(role: ArgumentRole, number: Option<i64>) -> bool {
    number.and_then(|number| sdm_mpi::constant(role, number)) == Some(sdm_mpi::PROC_NULL)
}

/// True if a call waits, or may wait, for processes of another job.
pub(super) fn is_with_other_jobs(call: Option<&Call>) -> bool {
    let mut arguments = call.iter().flat_map(|call| &call.arguments);
    arguments.any(|one| one.role == ArgumentRole::OtherJobs)
}

/// True if ranks in a call's arguments are ranks of `MPI_COMM_WORLD`, or were translated to them.
pub(super) fn names_ranks_of_the_job(call: &Call) -> bool {
    let mut arguments = call.arguments.iter();
    arguments.any(|one| one.is_known_communicator() || one.role == ArgumentRole::Target)
}

/// True if the argument of a role is not a rank, or is a rank of the job.
///
/// A rank in another communicator or window is translated if its members are known. Otherwise it is the number in the
/// call, which means another rank of the job.
pub(super) fn is_rank_of_the_job(call: &Call, role: ArgumentRole) -> bool {
    use ArgumentRole as R;
    let within = match role {
        R::Source | R::Destination | R::Root => R::Communicator,
        R::Target => R::Window,
        _ => return true,
    };
    let takes = roles(&call.function)
        .iter()
        .any(|(_, role)| *role == within);
    let mut arguments = call.arguments.iter();
    !takes
        || arguments.any(|one| match within {
            R::Window => one.role == within && one.members().is_some(),
            _ => one.is_known_communicator(),
        })
}

/// The ranks that a call waits for, if the MPI library's memory shows several. None for other calls.
pub(super) fn awaited_ranks(call: &Call) -> Option<IdSet> {
    let mut arguments = call.arguments.iter();
    let argument = arguments.find(|one| one.role == ArgumentRole::Target);
    argument?.members()
}

/// True if a call lacks no data of other ranks: it hands data on.
pub(super) fn is_served(call: &Call) -> bool {
    let mut arguments = call.arguments.iter();
    arguments.any(|one| one.role == ArgumentRole::Target && one.expression == sdm_mpi::NOTHING)
}

/// True for an expression that stands for a fact which the verdict says, if it matters.
pub(super) fn is_unspoken(expression: &str) -> bool {
    use sdm_mpi::{ARRIVED_TAGS, AWAITED_TAGS, NOTHING, RECEIVED};
    [NOTHING, ARRIVED_TAGS, AWAITED_TAGS, RECEIVED].contains(&expression)
}

/// The tags in the argument of a call with this expression. None if it has no such argument.
pub(super) fn tags(call: &Call, expression: &str) -> Option<BTreeSet<i64>> {
    let mut arguments = call.arguments.iter();
    let found = arguments.find(|one| one.role == ArgumentRole::Tag && one.expression == expression);
    let words = found?.value.as_ref()?.text.split_whitespace();
    Some(words.filter_map(|word| word.parse().ok()).collect())
}

/// The senders of the messages of which a call waits for any one. None for other calls.
pub(super) fn alternatives(call: &Call) -> Option<IdSet> {
    awaited_ranks(call).filter(|_| waits_for_any_request(&call.function))
}

/// The name for all nonblocking collective operations, whose requests do not show which operation it is.
pub(super) const NONBLOCKING: &str = "nonblocking";

/// The functions that can have started the nonblocking operation that a call waits for. Empty if they are unknown.
pub(super) fn started_by(call: Option<&Call>) -> Vec<&str> {
    let arguments = call.into_iter().flat_map(|call| &call.arguments);
    let started = arguments.filter(|one| one.role == ArgumentRole::Operation);
    started.map(|one| one.expression.as_str()).collect()
}

/// The operation that a call waits for: that of its request, or the call itself.
pub(super) fn operation(call: &Call) -> &str {
    match &started_by(Some(call))[..] {
        [one] => one,
        _ => &call.function,
    }
}

/// The blocking name of the operation that a call waits for: `MPI_bcast` for a request of `MPI_Ibcast`.
fn blocking(call: &Call) -> String {
    let operation = operation(call);
    let started = started_collective(operation).filter(|_| !operation.starts_with(TORCH_PREFIX));
    started.map_or_else(|| operation.to_owned(), |name| format!("MPI_{name}"))
}

/// True if a call waits for the root's data, or for the data of ranks that can leave before it.
pub(super) fn waits_for_parts(call: &Call) -> bool {
    let blocking = blocking(call);
    sends_from_root(&blocking) || takes_parts(&blocking)
}

/// True if a call waits for the data of particular ranks.
pub(super) fn waits_for_data(call: &Call) -> bool {
    waits_for_neighbors(call) || waits_for_parts(call)
}

/// True if a call waits for the root's data.
pub(super) fn waits_for_root(call: &Call) -> bool {
    sends_from_root(&blocking(call))
}

/// True if a call waits for the data of its neighbors.
pub(super) fn waits_for_neighbors(call: &Call) -> bool {
    is_of_neighbors(&blocking(call))
}

/// True for operations that no rank leaves before all its ranks have entered.
///
/// A rank that has begun such a nonblocking operation must wait for it before later calls. But ranks can leave a
/// broadcast or a reduction early, nonblocking ones too. They can also leave a fence early if it begins an epoch and
/// ends none; but then no rank stays in it.
pub(super) fn is_owed(name: &str, call: Option<&Call>) -> bool {
    let started = started_by(call);
    let of_all = |function: &&str| started_collective(function).is_some_and(|it| needs_all(&it));
    match name {
        NONBLOCKING => started.len() == 1 && started.iter().all(of_all),
        name => needs_all(name) || is_fence(name),
    }
}

/// True for a call that waits for a nonblocking collective operation: the communicator of its request is known, and the
/// request is of no message.
pub(super) fn is_of_collective(call: Option<&Call>) -> bool {
    use ArgumentRole as R;
    let Some(call) = call.filter(|call| waits_for_requests(&call.function)) else {
        return false;
    };
    let has = |role| call.arguments.iter().any(|one| one.role == role);
    // The parts that it lacks are named beside the operation.
    let is_message = [R::Source, R::Destination, R::Target].into_iter().any(has);
    has(R::Communicator) && (has(R::Operation) || !is_message)
}
