//! What is known of MPI's calls by their names and arguments: who takes part, and for whom else they wait.

use sdm_debug::calls::mpi_name;
use sdm_debug::probe::{ArgumentRole, Call, CallArgument};
use sdm_idset::IdSet;

/// True where a call waits for processes of another job.
pub(super) fn is_with_other_jobs(call: Option<&Call>) -> bool {
    let mut arguments = call.iter().flat_map(|call| &call.arguments);
    arguments.any(|one| one.role == ArgumentRole::OtherJobs)
}

/// True for the call that waits for all of several requests.
pub(super) fn waits_for_several(call: &str) -> bool {
    mpi_name(call).as_deref() == Some("waitall")
}

/// True for operations on files in which all take part who have opened them.
pub(super) fn is_of_all(call: &str) -> bool {
    let name = mpi_name(call).unwrap_or_default();
    let operation = name.strip_prefix("file_").unwrap_or_default();
    const OF_ALL: [&str; 6] = [
        "close",
        "open",
        "preallocate",
        "set_size",
        "set_view",
        "sync",
    ];
    operation.ends_with("_all") || OF_ALL.contains(&operation)
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

/// True for collective operations that end for nobody before all have come.
pub(super) fn needs_all(name: &str) -> bool {
    const ALL: &[&str] = &[
        "allgather",
        "allgatherv",
        "allreduce",
        "alltoall",
        "alltoallv",
        "alltoallw",
        "barrier",
        "cart_create",
        "cart_sub",
        "comm_create",
        "comm_dup",
        "comm_dup_with_info",
        "comm_split",
        "comm_split_type",
        "finalize",
        "reduce_scatter_block",
        "win_allocate",
        "win_allocate_shared",
        "win_create",
        "win_create_dynamic",
    ];
    ALL.contains(&name)
}

/// True for calls that wait for others than the job's ranks: other programs, a disk.
pub(super) fn is_outside(call: &str) -> bool {
    let name = mpi_name(call).unwrap_or_default();
    let beginnings = [
        "file_",
        "comm_spawn",
        "comm_accept",
        "comm_connect",
        "comm_disconnect",
        "comm_join",
    ];
    beginnings.iter().any(|part| name.starts_with(part)) || name == "abort"
}
