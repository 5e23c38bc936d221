//! MPI functions: the ranks that each waits for, and the roles of its arguments.

#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

use crate::names::{TORCH_PREFIX, mpi_name};
use crate::usage::{Flow, NEIGHBORS, flow};

/// The role of an argument in a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum ArgumentRole {
    /// The number of elements.
    Count,
    /// The destination rank.
    Destination,
    /// The tag. In a call that sends and receives, the tag of the sent message.
    Tag,
    /// The source rank.
    Source,
    /// The tag of the received message in a call that sends and receives.
    ReceiveTag,
    /// The communicator of the call. For the functions of [`is_of_group`] it is the group, for those of [`is_of_file`]
    /// the file.
    Communicator,
    /// The file that a function of the C library uses: a descriptor, a stream or a name.
    File,
    /// The root rank of a collective operation, or the local leader of `MPI_Intercomm_create`.
    Root,
    /// The number of requests to wait for.
    Requests,
    /// The target rank of an RMA operation, the remote leader of `MPI_Intercomm_create`, or the ranks that a request
    /// waits for.
    Target,
    /// The context id of a communicator, as a number: the MPI library's name or number for it. It is the same at all
    /// ranks of the communicator.
    Context,
    /// No argument but a mark: the call waits for processes of another job. With the number 0 it only may wait for
    /// them.
    OtherJobs,
    /// MPICH's handle of a communicator at this rank. Other ranks can have another handle for it.
    Handle,
    /// The window of the call.
    Window,
    /// The function that has started a nonblocking collective operation, as the source names it: `MPI_Ibarrier`.
    Operation,
    /// The group of an open access epoch of this process. The expression is the context id of the epoch's window.
    Access,
    /// The group of an open exposure epoch of this process. The expression is the context id of the epoch's window.
    Exposure,
}

impl ArgumentRole {
    /// The keywords by which a Fortran call can name the argument, such as `comm` in `comm=row`.
    #[must_use]
    pub fn keywords(self) -> &'static [&'static str] {
        match self {
            Self::Source => &["source"],
            Self::Destination => &["dest"],
            Self::Tag => &["tag", "sendtag"],
            Self::ReceiveTag => &["recvtag"],
            Self::Root => &["root"],
            Self::Target => &["rank"],
            Self::Count | Self::Requests => &["count"],
            Self::Communicator => &["comm", "oldcomm", "comm_old"],
            Self::Window => &["win"],
            _ => &[],
        }
    }
}

/// The ranks that a function waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitsFor {
    /// All ranks of a communicator: no rank returns before all have called the function (`MPI_Allreduce`).
    All,
    /// Some ranks of a communicator, all of which call the function (`MPI_Bcast`).
    Members,
    /// A message: `MPI_Recv`.
    Message,
    /// No rank: the function polls for a message (`MPI_Iprobe`). A caller that polls in a loop waits as well, but may
    /// leave the loop for other reasons.
    Poll,
    /// No rank: the function returns at once (`MPI_Comm_rank`).
    Nobody,
    /// Another event, such as the other side of an epoch or a lock. Also the value for unknown functions.
    Other,
}

/// A function's name without `MPI_`, the ranks that it waits for, and the relevant arguments with their
/// positions from 0.
type Function = (&'static str, WaitsFor, &'static [(usize, ArgumentRole)]);

use ArgumentRole as R;
use WaitsFor as W;

/// The known functions, by name.
#[rustfmt::skip]
const FUNCTIONS: [Function; 102] = [
    ("address", W::Nobody, &[]),
    ("allgather", W::All, &[(6, R::Communicator)]),
    // A rank that no other rank sends anything can leave those with several counts.
    ("allgatherv", W::Members, &[(7, R::Communicator)]),
    ("allreduce", W::All, &[(2, R::Count), (5, R::Communicator)]),
    ("alltoall", W::All, &[(6, R::Communicator)]),
    ("alltoallv", W::Members, &[(8, R::Communicator)]),
    ("alltoallw", W::Members, &[(8, R::Communicator)]),
    ("barrier", W::All, &[(0, R::Communicator)]),
    ("bcast", W::Members, &[(1, R::Count), (3, R::Root), (4, R::Communicator)]),
    ("bsend", W::Message, &[(1, R::Count), (3, R::Destination), (4, R::Tag), (5, R::Communicator)]),
    ("cart_create", W::All, &[(0, R::Communicator)]),
    ("cart_sub", W::All, &[(0, R::Communicator)]),
    ("comm_accept", W::All, &[(3, R::Communicator)]),
    ("comm_connect", W::All, &[(3, R::Communicator)]),
    ("comm_create", W::All, &[(0, R::Communicator)]),
    ("comm_create_group", W::All, &[(1, R::Communicator), (2, R::Tag)]),
    ("comm_dup", W::All, &[(0, R::Communicator)]),
    ("comm_dup_with_info", W::All, &[(0, R::Communicator)]),
    ("comm_free", W::Members, &[]),
    ("comm_rank", W::Nobody, &[]),
    ("comm_size", W::Nobody, &[]),
    ("comm_spawn", W::All, &[(5, R::Communicator)]),
    ("comm_spawn_multiple", W::All, &[(6, R::Communicator)]),
    ("comm_split", W::All, &[(0, R::Communicator)]),
    ("comm_split_type", W::All, &[(0, R::Communicator)]),
    ("dist_graph_create", W::All, &[(0, R::Communicator)]),
    ("dist_graph_create_adjacent", W::All, &[(0, R::Communicator)]),
    ("error_string", W::Nobody, &[]),
    ("exscan", W::Members, &[(2, R::Count), (5, R::Communicator)]),
    ("file_close", W::Members, &[]),
    ("file_open", W::All, &[(0, R::Communicator)]),
    ("file_read_all", W::Members, &[]),
    ("file_read_at_all", W::Members, &[]),
    ("file_write_all", W::Members, &[]),
    ("file_write_at_all", W::Members, &[]),
    ("finalize", W::All, &[]),
    ("finalized", W::Nobody, &[]),
    ("gather", W::Members, &[(6, R::Root), (7, R::Communicator)]),
    ("gatherv", W::Members, &[(7, R::Root), (8, R::Communicator)]),
    ("get_address", W::Nobody, &[]),
    ("get_count", W::Nobody, &[]),
    ("get_processor_name", W::Nobody, &[]),
    ("graph_create", W::All, &[(0, R::Communicator)]),
    ("improbe", W::Poll, &[]),
    ("init", W::Members, &[]),
    ("init_thread", W::Members, &[]),
    ("initialized", W::Nobody, &[]),
    ("intercomm_create", W::All, &[(0, R::Communicator), (1, R::Root), (3, R::Target), (4, R::Tag)]),
    ("intercomm_merge", W::All, &[(0, R::Communicator)]),
    ("iprobe", W::Poll, &[(0, R::Source), (1, R::Tag), (2, R::Communicator)]),
    ("mprobe", W::Message, &[(0, R::Source), (1, R::Tag), (2, R::Communicator)]),
    ("mrecv", W::Message, &[]),
    ("neighbor_allgather", W::Members, &[(6, R::Communicator)]),
    ("neighbor_allgatherv", W::Members, &[(7, R::Communicator)]),
    ("neighbor_alltoall", W::Members, &[(6, R::Communicator)]),
    ("neighbor_alltoallv", W::Members, &[(8, R::Communicator)]),
    ("neighbor_alltoallw", W::Members, &[(8, R::Communicator)]),
    ("probe", W::Message, &[(0, R::Source), (1, R::Tag), (2, R::Communicator)]),
    ("recv", W::Message, &[(1, R::Count), (3, R::Source), (4, R::Tag), (5, R::Communicator)]),
    ("reduce", W::Members, &[(2, R::Count), (5, R::Root), (6, R::Communicator)]),
    // It is none of MPI's: the gradients of PyTorch's `DistributedDataParallel`.
    ("reduce_gradients", W::All, &[]),
    ("reduce_scatter", W::Members, &[(5, R::Communicator)]),
    ("reduce_scatter_block", W::All, &[(2, R::Count), (5, R::Communicator)]),
    ("request_get_status", W::Poll, &[]),
    ("rsend", W::Message, &[(1, R::Count), (3, R::Destination), (4, R::Tag), (5, R::Communicator)]),
    ("scan", W::Members, &[(2, R::Count), (5, R::Communicator)]),
    ("scatter", W::Members, &[(6, R::Root), (7, R::Communicator)]),
    ("scatterv", W::Members, &[(7, R::Root), (8, R::Communicator)]),
    ("send", W::Message, &[(1, R::Count), (3, R::Destination), (4, R::Tag), (5, R::Communicator)]),
    ("sendrecv", W::Message, &[(1, R::Count), (3, R::Destination), (4, R::Tag), (8, R::Source), (9, R::ReceiveTag), (10, R::Communicator)]),
    ("sendrecv_replace", W::Message, &[(1, R::Count), (3, R::Destination), (4, R::Tag), (5, R::Source), (6, R::ReceiveTag), (7, R::Communicator)]),
    ("ssend", W::Message, &[(1, R::Count), (3, R::Destination), (4, R::Tag), (5, R::Communicator)]),
    ("test", W::Poll, &[]),
    ("testall", W::Poll, &[(0, R::Requests)]),
    ("testany", W::Poll, &[(0, R::Requests)]),
    ("testsome", W::Poll, &[(0, R::Requests)]),
    ("type_size", W::Nobody, &[]),
    ("wait", W::Message, &[]),
    ("waitall", W::Message, &[(0, R::Requests)]),
    ("waitany", W::Message, &[(0, R::Requests)]),
    ("waitsome", W::Message, &[(0, R::Requests)]),
    ("win_allocate", W::All, &[(3, R::Communicator)]),
    ("win_allocate_shared", W::All, &[(3, R::Communicator)]),
    ("win_complete", W::Other, &[(0, R::Window)]),
    ("win_create", W::All, &[(4, R::Communicator)]),
    ("win_create_dynamic", W::All, &[(1, R::Communicator)]),
    ("win_fence", W::Members, &[(1, R::Window)]),
    ("win_flush", W::Other, &[(0, R::Target), (1, R::Window)]),
    ("win_flush_all", W::Other, &[(0, R::Window)]),
    ("win_flush_local", W::Other, &[(0, R::Target), (1, R::Window)]),
    ("win_flush_local_all", W::Other, &[(0, R::Window)]),
    ("win_free", W::Members, &[]),
    ("win_lock", W::Other, &[(1, R::Target), (3, R::Window)]),
    ("win_lock_all", W::Other, &[(1, R::Window)]),
    ("win_post", W::Other, &[(2, R::Window)]),
    ("win_start", W::Other, &[(0, R::Communicator), (2, R::Window)]),
    ("win_test", W::Poll, &[]),
    ("win_unlock", W::Other, &[(0, R::Target), (1, R::Window)]),
    ("win_unlock_all", W::Other, &[(0, R::Window)]),
    ("win_wait", W::Other, &[(0, R::Window)]),
    ("wtick", W::Nobody, &[]),
    ("wtime", W::Nobody, &[]),
];

fn known(name: &str) -> Option<&'static Function> {
    let at = FUNCTIONS.binary_search_by_key(&name, |function| function.0);
    at.ok().map(|at| &FUNCTIONS[at])
}

/// The ranks that a function waits for, by its name without `MPI_`.
fn waits_by_name(name: &str) -> WaitsFor {
    match known(name) {
        Some((_, waits, _)) => *waits,
        None if name.starts_with(NEIGHBORS) => W::Members,
        None => W::Other,
    }
}

/// The ranks that an MPI function waits for, by any of its names. None for other functions.
#[must_use]
pub fn waits_for(function: &str) -> Option<WaitsFor> {
    mpi_name(function).map(|name| waits_by_name(&name))
}

/// True for MPI functions that are known to wait: for other ranks, a message or another event. A caller that polls counts
/// as not waiting.
#[must_use]
pub fn is_waiting(function: &str) -> bool {
    mpi_name(function).is_some_and(|name| match waits_by_name(&name) {
        W::All | W::Members | W::Message => true,
        W::Poll | W::Nobody => false,
        // Also the value of unknown functions, most of which return at once.
        W::Other => known(&name).is_some(),
    })
}

/// The relevant arguments of a call, with their positions from 0. Empty for unknown functions, and for those of
/// `torch.distributed`. C, Fortran and `mpi_f08` have the same positions.
#[must_use]
pub fn roles(function: &str) -> &'static [(usize, ArgumentRole)] {
    // PyTorch's are called with other arguments, which are Python's.
    if function.starts_with(TORCH_PREFIX) {
        return &[];
    }
    match mpi_name(function) {
        Some(name) if is_of_file(function) => match &*name {
            "file_delete" | "file_get_errhandler" => &[],
            _ => &[(0, R::Communicator)],
        },
        Some(name) => known(&name).map_or(&[], |(_, _, roles)| *roles),
        None => &[],
    }
}

/// True for operations on a file, which stands for its communicator. The argument of this role is the file.
#[must_use]
pub fn is_of_file(function: &str) -> bool {
    let name = mpi_name(function).unwrap_or_default();
    name.starts_with("file_") && name != "file_open"
}

/// The argument of an operation of `torch.distributed` that is a rank: its role, and the names of the parameters for the
/// rank in the job and for the rank in the process group. None for other functions.
#[must_use]
pub fn torch_peer(function: &str) -> Option<(ArgumentRole, [&'static str; 2])> {
    const SOURCE: [&str; 2] = ["src", "group_src"];
    const DESTINATION: [&str; 2] = ["dst", "group_dst"];
    let name = mpi_name(function).filter(|_| function.starts_with(TORCH_PREFIX))?;
    Some(match name.as_str() {
        "bcast" | "scatter" => (R::Root, SOURCE),
        "reduce" | "gather" => (R::Root, DESTINATION),
        "recv" => (R::Source, SOURCE),
        "send" => (R::Destination, DESTINATION),
        _ => return None,
    })
}

/// True for collective operations in which no rank returns before all have called. `name` is in lower case and without
/// `MPI_`.
#[must_use]
pub fn needs_all(name: &str) -> bool {
    waits_by_name(name) == W::All
}

/// The collective operation that a function starts without waiting for it, in lower case and without `MPI_`: `barrier`
/// for `MPI_Ibarrier` and `MPI_Barrier_init`. Each collective operation of `torch.distributed` counts, too. None for
/// other functions.
#[must_use]
pub fn started_collective(function: &str) -> Option<String> {
    let name = mpi_name(function)?;
    if let Some(rest) = name.strip_prefix("comm_idup") {
        return Some(format!("comm_dup{rest}"));
    }
    // Each operation of PyTorch's can be started without waiting for it.
    let is_torch = function.starts_with(TORCH_PREFIX).then_some(name.as_str());
    let started = name
        .strip_suffix("_init")
        .or_else(|| name.strip_prefix('i'))
        .filter(|_| is_torch.is_none())
        .or(is_torch)?;
    let is_collective = matches!(waits_by_name(started), W::All | W::Members);
    is_collective.then(|| started.to_owned())
}

/// True for `MPI_Wait` and `MPI_Waitall`, which wait for all of their requests.
#[must_use]
pub fn waits_for_requests(function: &str) -> bool {
    matches!(mpi_name(function).as_deref(), Some("wait" | "waitall"))
}

/// True for `MPI_Waitany` and `MPI_Waitsome`, which wait until one of several requests is complete.
#[must_use]
pub fn waits_for_any_request(function: &str) -> bool {
    matches!(mpi_name(function).as_deref(), Some("waitany" | "waitsome"))
}

/// True for functions that wait for requests: for all of them, or for the first.
#[must_use]
pub fn takes_requests(function: &str) -> bool {
    waits_for_requests(function) || waits_for_any_request(function)
}

/// The blocking function with the same arguments up to the requests: `MPI_Wait` for `MPI_Test`. Other polling
/// functions, such as `MPI_Iprobe`, are returned as they are. None for functions that do not poll.
#[must_use]
pub fn waiting_function(function: &str) -> Option<String> {
    (waits_for(function)? == W::Poll).then(|| {
        let name = mpi_name(function).unwrap_or_default();
        match name.strip_prefix("test") {
            Some(rest) => format!("MPI_Wait{rest}"),
            None => function.to_owned(),
        }
    })
}

/// True for `MPI_Waitall`, which waits for several requests together.
#[must_use]
pub fn waits_for_several(function: &str) -> bool {
    mpi_name(function).as_deref() == Some("waitall")
}

/// True for functions that take the participating ranks as a group. This argument has the role of a communicator.
#[must_use]
pub fn is_of_group(function: &str) -> bool {
    let name = mpi_name(function);
    matches!(name.as_deref(), Some("comm_create_group" | "win_start"))
}

/// True for `MPI_Intercomm_create`, in which two groups of ranks take part, each with a leader.
#[must_use]
pub fn is_of_two_groups(function: &str) -> bool {
    mpi_name(function).as_deref() == Some("intercomm_create")
}

/// True for collective operations among neighbors, in which a rank waits for its neighbors only.
#[must_use]
pub fn is_of_neighbors(function: &str) -> bool {
    mpi_name(function).is_some_and(|name| name.starts_with(NEIGHBORS))
}

/// True for MPI's collective operations in which the root sends data, and the other ranks wait for it. False for those
/// of `torch.distributed`.
#[must_use]
pub fn sends_from_root(function: &str) -> bool {
    let name = mpi_name(function).filter(|_| !function.starts_with(TORCH_PREFIX));
    name.is_some_and(|name| flow(&name) == Some(Flow::FromRoot))
}

/// True for MPI's collective operations in which a rank waits for data from ranks that may return before it. False for
/// those of `torch.distributed`.
#[must_use]
pub fn takes_parts(function: &str) -> bool {
    const CALLS: [&str; 7] = [
        "alltoallv",
        "alltoallw",
        "exscan",
        "gather",
        "gatherv",
        "reduce",
        "scan",
    ];
    let name = mpi_name(function).filter(|_| !function.starts_with(TORCH_PREFIX));
    name.is_some_and(|name| CALLS.contains(&name.as_str()))
}

/// True for collective file operations.
#[must_use]
pub fn is_of_all(function: &str) -> bool {
    const OF_ALL: [&str; 8] = [
        "close",
        "open",
        "preallocate",
        "seek_shared",
        "set_atomicity",
        "set_size",
        "set_view",
        "sync",
    ];
    let name = mpi_name(function).unwrap_or_default();
    let operation = name.strip_prefix("file_").unwrap_or_default();
    let mut split = ["_begin", "_end"].iter();
    let split = split.find_map(|end| operation.strip_suffix(end));
    let whole = split.unwrap_or(operation);
    ["_all", "_ordered"].iter().any(|end| whole.ends_with(end)) || OF_ALL.contains(&operation)
}

/// True for collective operations that connect the ranks of a communicator with other programs. The ranks wait for
/// those programs only after all ranks have called.
#[must_use]
pub fn connects_programs(function: &str) -> bool {
    const CALLS: [&str; 4] = [
        "comm_accept",
        "comm_connect",
        "comm_spawn",
        "comm_spawn_multiple",
    ];
    mpi_name(function).is_some_and(|name| CALLS.contains(&name.as_str()))
}

/// True for calls that can depend on more than the job's ranks: other programs, a disk.
#[must_use]
pub fn is_outside(function: &str) -> bool {
    const BEGINNINGS: [&str; 6] = [
        "file_",
        "comm_spawn",
        "comm_accept",
        "comm_connect",
        "comm_disconnect",
        "comm_join",
    ];
    let name = mpi_name(function).unwrap_or_default();
    BEGINNINGS.iter().any(|part| name.starts_with(part)) || name == "abort"
}

/// True for collective operations on `MPI_COMM_WORLD` that have no argument for the communicator. `name` is in lower
/// case and without `MPI_`.
#[must_use]
pub fn is_of_world(name: &str) -> bool {
    matches!(name, "init" | "init_thread" | "finalize")
}

/// True for `MPI_Init` and `MPI_Init_thread`. False for PyTorch's `init_process_group`, in which a rank can wait for
/// ranks that have left it.
#[must_use]
pub fn starts_mpi(function: &str) -> bool {
    let name = mpi_name(function).filter(|_| !function.starts_with(TORCH_PREFIX));
    matches!(name.as_deref(), Some("init" | "init_thread"))
}

/// True for `MPI_Finalize`. `name` is in lower case and without `MPI_`.
#[must_use]
pub fn ends_mpi(name: &str) -> bool {
    name == "finalize"
}

/// True for `MPI_File_close`, after which no operation of the file follows. `name` is in lower case and without `MPI_`.
#[must_use]
pub fn closes_file(name: &str) -> bool {
    name == "file_close"
}

/// True for `MPI_Recv`, which waits for one message and does nothing else.
#[must_use]
pub fn only_receives(function: &str) -> bool {
    mpi_name(function).as_deref() == Some("recv")
}
