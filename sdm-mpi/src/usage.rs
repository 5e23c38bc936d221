//! Rules for the use of MPI's functions, for checks: tables of functions by their names without `MPI_`, and of their
//! parameters by the standard's names.

/// The type of communicators.
pub const COMM: &str = "MPI_Comm";
/// The type of sessions.
pub const SESSION: &str = "MPI_Session";
/// The type of large counts.
pub const LARGE_COUNT: &str = "MPI_Count";
/// Prefix of the functions of the tool interface.
pub const TOOLS: &str = "MPI_T_";
/// Handle types, with the names of their kinds in the checking library.
pub const HANDLES: [(&str, &str); 8] = [
    (COMM, "COMMUNICATOR"),
    ("MPI_Datatype", "DATATYPE"),
    ("MPI_Group", "GROUP"),
    ("MPI_Win", "WINDOW"),
    ("MPI_File", "FILE_HANDLE"),
    ("MPI_Op", "OPERATOR"),
    ("MPI_Info", "INFO"),
    ("MPI_Request", "REQUEST"),
];
/// Functions that free what their argument points to.
pub const FREES: [&str; 9] = [
    "Comm_free",
    "Comm_disconnect",
    "Type_free",
    "Group_free",
    "Win_free",
    "File_close",
    "Op_free",
    "Info_free",
    "Request_free",
];
/// Functions with a handle parameter that is not recorded as new. The program need not free the handle, or does not own
/// it.
pub const LENDS: [&str; 8] = [
    "Comm_get_parent",
    "Type_match_size",
    "Type_create_f90_complex",
    "Type_create_f90_integer",
    "Type_create_f90_real",
    "File_get_view",
    "Type_commit",
    "Intercomm_create_from_groups",
];
/// Functions by which all ranks of a communicator, their first argument, create another communicator.
pub const MAKES_COMMUNICATOR: [&str; 11] = [
    "Comm_dup",
    "Comm_dup_with_info",
    "Comm_split",
    "Comm_split_type",
    "Comm_create",
    "Cart_create",
    "Cart_sub",
    "Graph_create",
    "Dist_graph_create",
    "Dist_graph_create_adjacent",
    "Intercomm_merge",
];
/// Functions by which the ranks of one or two groups create a communicator. They have a tag argument.
pub const MAKES_OF_GROUPS: [&str; 2] = ["Intercomm_create", "Comm_create_group"];
/// Functions by which all ranks of a communicator, one of the arguments, create a window or open a file.
pub const MAKES_ON_COMMUNICATOR: [&str; 5] = [
    "Win_create",
    "Win_allocate",
    "Win_allocate_shared",
    "Win_create_dynamic",
    "File_open",
];
/// Functions that all ranks of a window or a file call in the same order. Further functions of files are recognized by
/// [`FILE_COLLECTIVES`].
pub const OBJECT_COLLECTIVES: [&str; 9] = [
    "Win_fence",
    "Win_free",
    "File_close",
    "File_set_view",
    "File_set_size",
    "File_preallocate",
    "File_sync",
    "File_set_atomicity",
    "File_seek_shared",
];
/// Ends of the names of collective functions of files.
pub const FILE_COLLECTIVES: [&str; 4] = ["_all", "_ordered", "_begin", "_end"];
/// Functions after which sends are no longer compared with receives: their messages are not recorded, or a message may
/// be cancelled.
pub const UNMATCHED: [&str; 5] = [
    "Psend_init",
    "Precv_init",
    "Isendrecv",
    "Isendrecv_replace",
    "Cancel",
];
/// Functions with a request parameter that create no request.
pub const TAKES_REQUEST: [&str; 8] = [
    "Wait", "Test", "Waitall", "Testall", "Waitany", "Testany", "Cancel", "Start",
];
/// Beginnings of the names of further functions like those of [`ANYTIME`].
pub const ANYTIME_BEGINNINGS: [&str; 4] = ["Info_", "Session_", "Error_", "Errhandler_"];
/// Functions whose calls the check accepts before `MPI_Init` and after `MPI_Finalize`.
pub const ANYTIME: [&str; 8] = [
    "Init",
    "Init_thread",
    "Initialized",
    "Finalized",
    "Get_version",
    "Get_library_version",
    "Query_thread",
    "Is_thread_main",
];
/// Functions for which a null handle is a valid argument.
pub const NULL_IS_FINE: [&str; 1] = ["Comm_create_from_group"];
/// Names of parameters that are counts, which must not be negative.
pub const COUNTS: [&str; 9] = [
    "count",
    "sendcount",
    "recvcount",
    "origin_count",
    "target_count",
    "incount",
    "outcount",
    "result_count",
    "blocklength",
];
/// Buffers with their counts and types, by the names of the parameters.
pub const BUFFERS: [[&str; 3]; 10] = [
    ["buf", "count", "datatype"],
    ["buffer", "count", "datatype"],
    ["inbuf", "incount", "datatype"],
    ["outbuf", "outcount", "datatype"],
    ["sendbuf", "sendcount", "sendtype"],
    ["recvbuf", "recvcount", "recvtype"],
    ["sendbuf", "count", "datatype"],
    ["recvbuf", "count", "datatype"],
    ["recvbuf", "recvcount", "datatype"],
    ["origin_addr", "origin_count", "origin_datatype"],
];
/// Functions that need one kind of communicator: an intracommunicator, an intercommunicator, or one with a Cartesian
/// topology.
pub const SHAPES: [(&str, &[&str]); 3] = [
    (
        "INTRA",
        &[
            "Scan",
            "Exscan",
            "Iscan",
            "Iexscan",
            "Cart_create",
            "Graph_create",
        ],
    ),
    (
        "INTER",
        &["Intercomm_merge", "Comm_remote_size", "Comm_remote_group"],
    ),
    (
        "CARTESIAN",
        &[
            "Cart_coords",
            "Cart_get",
            "Cart_rank",
            "Cart_shift",
            "Cart_sub",
            "Cartdim_get",
        ],
    ),
];
/// Standard sends, with the synchronous sends that replace them in strict mode.
pub const STRICT: [(&str, &str); 3] = [
    ("Send", "Ssend"),
    ("Isend", "Issend"),
    ("Send_init", "Ssend_init"),
];
/// Functions that wait for the end of a standard send. In strict mode they wait for the receive.
pub const STRICT_WAITS: [&str; 2] = ["Send", "Sendrecv"];
/// Collective operations in which not every rank waits for all others. In strict mode a barrier precedes them.
pub const ROOTED: [&str; 8] = [
    "Bcast", "Gather", "Gatherv", "Scatter", "Scatterv", "Reduce", "Scan", "Exscan",
];
/// The way of the data in a collective operation with a root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// The root sends to all ranks.
    FromRoot,
    /// All ranks send to the root.
    ToRoot,
}

/// The way of the data in a collective operation, by its name in lower case. None for those without a root.
#[must_use]
pub fn flow(name: &str) -> Option<Flow> {
    match name {
        "bcast" | "scatter" | "scatterv" => Some(Flow::FromRoot),
        "gather" | "gatherv" | "reduce" => Some(Flow::ToRoot),
        _ => None,
    }
}

/// True for operations with a root, by name in lower case, in which a rank can pass on the data of others. In those with
/// a count for each rank only the root knows the counts.
#[must_use]
pub fn passes_on(name: &str) -> bool {
    flow(name).is_some() && !name.ends_with('v')
}

/// The mode of a send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendMode {
    /// MPI may buffer the message.
    Standard,
    /// The message goes to a buffer of the program's.
    Buffered,
    /// The send ends after its receive has begun.
    Synchronous,
    /// The receive must have begun before.
    Ready,
}

/// A function that sends one message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sending {
    /// The mode of the send.
    pub mode: SendMode,
    /// True if each start of the request sends the message, and not the call.
    pub is_prepared: bool,
}

/// The message that a function sends, by the function's name. None for other functions, also for those that send and
/// receive.
#[must_use]
pub fn sending(name: &str) -> Option<Sending> {
    let prepared = name.strip_suffix("_init");
    let started = prepared.or_else(|| name.strip_prefix('I'));
    let mode = match started.unwrap_or(name).to_ascii_lowercase().as_str() {
        "send" => SendMode::Standard,
        "bsend" => SendMode::Buffered,
        "ssend" => SendMode::Synchronous,
        "rsend" => SendMode::Ready,
        _ => return None,
    };
    let is_prepared = prepared.is_some();
    Some(Sending { mode, is_prepared })
}

/// Beginning of the names of operations among neighbors, in lower case.
pub const NEIGHBORS: &str = "neighbor_";
/// Operations that all ranks of a communicator call in the same order.
pub const COLLECTIVES: [&str; 22] = [
    "barrier",
    "bcast",
    "gather",
    "gatherv",
    "scatter",
    "scatterv",
    "allgather",
    "allgatherv",
    "alltoall",
    "alltoallv",
    "alltoallw",
    "reduce",
    "allreduce",
    "reduce_scatter",
    "reduce_scatter_block",
    "scan",
    "exscan",
    "neighbor_allgather",
    "neighbor_allgatherv",
    "neighbor_alltoall",
    "neighbor_alltoallv",
    "neighbor_alltoallw",
];
/// Collective operations in which each rank needs something of every other rank. Only counts of 0 let a rank leave those
/// with several counts before all have called.
pub const MUTUAL: [&str; 9] = [
    "Barrier",
    "Allreduce",
    "Allgather",
    "Allgatherv",
    "Alltoall",
    "Alltoallv",
    "Alltoallw",
    "Reduce_scatter",
    "Reduce_scatter_block",
];
/// True for the operations of [`MUTUAL`], by name in any case.
#[must_use]
pub fn is_mutual(name: &str) -> bool {
    MUTUAL.iter().any(|it| it.eq_ignore_ascii_case(name))
}

/// Parameters of functions by which ranks exchange data.
pub const SHARED: [&str; 8] = [
    "comm",
    "intercomm",
    "local_comm",
    "request",
    "array_of_requests",
    "message",
    "fh",
    "port_name",
];
/// Functions with a parameter of [`SHARED`] that involve only the calling rank.
pub const LOCAL: [&str; 9] = [
    "Comm_rank",
    "Comm_size",
    "Comm_group",
    "Comm_get_attr",
    "Comm_get_name",
    "Comm_set_name",
    "Comm_set_errhandler",
    "Cart_coords",
    "Topo_test",
];
/// Functions that complete the accesses to a window. True if the accesses are then complete at the target, too.
pub const COMPLETES: [(&str, bool); 9] = [
    ("Win_fence", true),
    ("Win_complete", true),
    ("Win_unlock", true),
    ("Win_unlock_all", true),
    ("Win_flush", true),
    ("Win_flush_all", true),
    ("Win_flush_local", false),
    ("Win_flush_local_all", false),
    ("Win_free", true),
];
/// Functions of windows after which the accesses of ranks are ordered.
pub const ORDERS: [&str; 8] = [
    "Win_fence",
    "Win_post",
    "Win_start",
    "Win_complete",
    "Win_wait",
    "Win_test",
    "Win_sync",
    "Win_free",
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ArgumentRole, WaitsFor, roles, waits_for};

    #[test]
    fn tables_of_collective_operations_agree() {
        let waits = |name: &str| waits_for(&format!("MPI_{name}")).unwrap();
        for name in MAKES_COMMUNICATOR {
            assert!(
                matches!(waits(name), WaitsFor::All | WaitsFor::Members),
                "{name}"
            );
            let first = roles(&format!("MPI_{name}")).first();
            assert_eq!(first, Some(&(0, ArgumentRole::Communicator)), "{name}");
        }
        for name in ROOTED {
            assert_eq!(waits(name), WaitsFor::Members, "{name}");
        }
        for name in COLLECTIVES {
            assert!(
                matches!(waits(name), WaitsFor::All | WaitsFor::Members),
                "{name}"
            );
        }
        for (name, synchronous) in STRICT.iter().filter(|(name, _)| !name.contains('_')) {
            assert_eq!(waits(name), waits(synchronous), "{name}");
        }
        for name in MUTUAL {
            let has_counts = name.ends_with(['v', 'w']) || name == "Reduce_scatter";
            assert_eq!(waits(name) == WaitsFor::Members, has_counts, "{name}");
            assert!(is_mutual(&name.to_lowercase()) && !is_mutual(&format!("I{name}")));
        }
        let passing = COLLECTIVES.into_iter().filter(|name| passes_on(name));
        assert!(passing.eq(["bcast", "gather", "scatter", "reduce"]));
    }

    #[test]
    fn sends_have_modes_and_replacements() {
        let of = |mode, is_prepared| Some(Sending { mode, is_prepared });
        for (name, synchronous) in STRICT {
            let is_prepared = name.ends_with("_init");
            assert_eq!(sending(name), of(SendMode::Standard, is_prepared), "{name}");
            assert_eq!(sending(synchronous), of(SendMode::Synchronous, is_prepared));
        }
        assert_eq!(sending("Ibsend"), of(SendMode::Buffered, false));
        assert_eq!(sending("Rsend_init"), of(SendMode::Ready, true));
        for other in ["Sendrecv", "Psend_init", "Isendrecv", "Recv", "Init"] {
            assert_eq!(sending(other), None, "{other}");
        }
        for name in STRICT_WAITS {
            let waits = waits_for(&format!("MPI_{name}"));
            assert_eq!(waits, Some(WaitsFor::Message), "{name}");
        }
    }
}
