//! Generates the C statements that record messages, collective calls on windows and files, and the memory of
//! nonblocking operations. The name of the function and its parameters determine them.

use sdm_mpi::usage::{
    FILE_COLLECTIVES, NEIGHBORS, OBJECT_COLLECTIVES, SendMode, UNMATCHED, sending,
};

use crate::buffers::significant;
use crate::life::{kind_of, own_status};
use crate::prototypes::{Prototype, plain};

/// The C statements before and after a call. They record the messages that it sends or receives, and the memory of a
/// nonblocking operation. Empty for other functions.
pub(crate) fn message(number: usize, function: &Prototype) -> (String, String) {
    let name = function.name.as_str();
    let has = |wanted: &str| function.names().any(|it| it == wanted);
    if UNMATCHED.contains(&name) {
        return ("unmatched = 1;\n".to_owned(), String::new());
    }
    if let Some(what) = pairs(number, function) {
        return (
            String::new(),
            // Recorded also if MPI refuses the call, because the other side records its part.
            format!(
                "if ((rc == MPI_SUCCESS || !call.is_told) && comm != MPI_COMM_NULL && !is_inter(comm)) {{ {what} }}\n{}",
                opened(function)
            ),
        );
    }
    if let Some(both) = matched(number, function) {
        return both;
    }
    let sends = sending(name);
    let what = match (sends, name) {
        (Some(send), _) if send.is_prepared => {
            format!("prepared(&call, {number}, *request, comm, 0, dest, tag, buf, count, datatype)")
        }
        (Some(_), _) => format!("sent(&call, {number}, comm, dest, tag, count, datatype)"),
        (None, "Recv_init") => format!(
            "prepared(&call, {number}, *request, comm, 1, source, tag, buf, count, datatype)"
        ),
        (None, "Irecv") => {
            format!("posted(&call, {number}, *request, comm, source, tag, buf, count, datatype)")
        }
        (None, "Recv") => {
            format!(
                "received(&call, {number}, comm, source, tag, status, call.is_ignored, buf, count, datatype)"
            )
        }
        (None, "Sendrecv") => format!(
            "sent(&call, {number}, comm, dest, sendtag, sendcount, sendtype), received(&call, {number}, comm, source, recvtag, status, call.is_ignored, recvbuf, recvcount, recvtype)"
        ),
        (None, "Sendrecv_replace") => format!(
            "sent(&call, {number}, comm, dest, sendtag, count, datatype), received(&call, {number}, comm, source, recvtag, status, call.is_ignored, buf, count, datatype)"
        ),
        _ => return (String::new(), opened(function)),
    };
    let mut first = match has("status") {
        true => own_status("status"),
        false => String::new(),
    };
    if has("source") {
        first.push_str("call.time = now();\n");
    }
    let mut done = "!rc";
    if has("source") && has("status") {
        first.push_str(&taken(function));
        done = "!rc || is_truncated(rc)";
    }
    match sends.map(|send| (send.mode, send.is_prepared)) {
        Some((SendMode::Synchronous, _)) => first.push_str("is_known_elsewhere = 1;\n"),
        Some((SendMode::Ready, false)) => first.push_str("call.is_ready = 1;\n"),
        _ => {}
    }
    (first, format!("if ({done}) {what};\n"))
}

/// The C statements that record what a call receives, before it.
fn taken(function: &Prototype) -> String {
    let has = |wanted: &str| function.names().any(|it| it == wanted);
    let tag = if has("recvtag") { "recvtag" } else { "tag" };
    let elements = match has("recvcount") {
        true => "recvtype, recvcount",
        false => "datatype, count",
    };
    format!(
        "status->MPI_SOURCE = source; status->MPI_TAG = {tag}; call.taken = (struct taken){{status, {elements}, source, {tag}}};\n"
    )
}

/// The C statements before and after a call. The call is a matched probe, a receive of the probed message, or one that
/// makes the edges of a distributed graph. None for other functions.
fn matched(number: usize, function: &Prototype) -> Option<(String, String)> {
    let own = own_status("status");
    let given: Vec<_> = function.names().collect();
    Some(match (function.name.as_str(), &given[..]) {
        ("Mprobe", _) => (own, "if (!rc) probed(comm, *message, status);\n".to_owned()),
        ("Improbe", _) => (
            own,
            "if (!rc && *flag) probed(comm, *message, status);\n".to_owned(),
        ),
        ("Mrecv" | "Imrecv", [_, count, datatype, message, ..]) => (
            format!("uint64_t old_message = HANDLE(*{message});\n"),
            format!(
                "if (!rc || is_truncated(rc)) received_match(&call, {number}, old_message, {count}, {datatype});\n"
            ),
        ),
        ("Comm_create", [comm, group, ..]) => (
            String::new(),
            format!("if (!rc) members(&call, {number}, {comm}, {group});\n"),
        ),
        ("Dist_graph_create_adjacent", [comm, sources, source, _, targets, target, ..]) => (
            String::new(),
            format!(
                "if (!rc) edges(&call, {number}, {comm}, {sources}, {source}, {targets}, {target});\n"
            ),
        ),
        _ => return None,
    })
}

/// The C statements that record the elements that a collective operation sends to and receives from each single rank.
/// None for other functions.
fn pairs(number: usize, function: &Prototype) -> Option<String> {
    let name = function.name.as_str();
    if name.ends_with("_init") {
        return None;
    }
    let call = format!("(&call, {number}, comm, ");
    let both = |types: [&str; 2], values: [&str; 2]| {
        format!(
            "int is_own = sendbuf == MPI_IN_PLACE; \
             pairs{call}0, is_own ? LIST(recvcounts) : LIST(sendcounts), is_own ? {} : {}, is_own ? {} : {}); \
             pairs{call}1, LIST(recvcounts), {}, {});",
            types[1], types[0], values[1], values[0], types[1], values[1]
        )
    };
    let neighbours = |sent: &str, received: &str, [send, receive]: [&str; 2]| {
        format!(
            "pair_neighbours{call}0, {sent}, {send}); pair_neighbours{call}1, {received}, {receive});"
        )
    };
    Some(match plain(name).as_str() {
        "gatherv" => format!(
            "if (sendbuf != MPI_IN_PLACE) pair{call}0, root, sendcount, sendtype); \
             else pair{call}0, root, recvcounts[root], recvtype); \
             if (is_root(comm, root)) pairs{call}1, LIST(recvcounts), NULL, recvtype);"
        ),
        "scatterv" => format!(
            "if (is_root(comm, root)) pairs{call}0, LIST(sendcounts), NULL, sendtype); \
             if (recvbuf != MPI_IN_PLACE) pair{call}1, root, recvcount, recvtype); \
             else pair{call}1, root, sendcounts[root], sendtype);"
        ),
        "neighbor_allgather" | "neighbor_alltoall" => neighbours(
            "NO_LIST, sendcount",
            "NO_LIST, recvcount",
            ["NULL, sendtype", "NULL, recvtype"],
        ),
        "neighbor_allgatherv" => neighbours(
            "NO_LIST, sendcount",
            "LIST(recvcounts), 0",
            ["NULL, sendtype", "NULL, recvtype"],
        ),
        "neighbor_alltoallv" => neighbours(
            "LIST(sendcounts), 0",
            "LIST(recvcounts), 0",
            ["NULL, sendtype", "NULL, recvtype"],
        ),
        "neighbor_alltoallw" => neighbours(
            "LIST(sendcounts), 0",
            "LIST(recvcounts), 0",
            [
                "sendtypes, MPI_DATATYPE_NULL",
                "recvtypes, MPI_DATATYPE_NULL",
            ],
        ),
        "alltoallv" => both(["NULL", "NULL"], ["sendtype", "recvtype"]),
        "alltoallw" => both(
            ["sendtypes", "recvtypes"],
            ["MPI_DATATYPE_NULL", "MPI_DATATYPE_NULL"],
        ),
        _ => return None,
    })
}

/// The statement that records the memory of a nonblocking operation or split collective call, which must not change
/// before its end. For the end of a split call, the statement that checks the memory. Empty for other functions.
fn opened(function: &Prototype) -> String {
    let has = |wanted: &str| function.names().any(|it| it == wanted);
    let name = function.name.as_str();
    if name.starts_with("File_") && function.has_elements() {
        let (request, what) = match name {
            _ if name.contains("_i") && has("request") => {
                ("HANDLE(*request)", "memory_of(buf, count, datatype)")
            }
            _ if name.ends_with("_begin") => ("~HANDLE(fh)", "memory_of(buf, count, datatype)"),
            _ => return String::new(),
        };
        let reads = i32::from(name.contains("read"));
        return format!("if (!rc && depth == 1) open_memory(&call, {request}, {what}, {reads});\n");
    }
    if name.starts_with("File_") && name.ends_with("_end") {
        return "check_unchanged(&call, close_request(~HANDLE(fh)), \"the split call ends\");\n"
            .to_owned();
    }
    if has("request") && has("target_rank") {
        return opened_by_access(function);
    }
    let is_later = name.ends_with("_init");
    if !(name.starts_with('I') || is_later) || !has("request") || !has("comm") {
        return String::new();
    }
    let memory = match plain(name).as_str() {
        "bcast" => "memory_of(buffer, count, datatype), !is_root(comm, root)".to_owned(),
        "reduce" => "is_root(comm, root) ? memory_of(recvbuf, count, datatype) : (struct extent){0}, 1".to_owned(),
        "allreduce" | "scan" | "exscan" => "memory_of(recvbuf, count, datatype), 1".to_owned(),
        "allgather" | "alltoall" => {
            "memory_of(recvbuf, recvcount * group_size(comm), recvtype), 1".to_owned()
        }
        "gather" => "is_root(comm, root) ? memory_of(recvbuf, recvcount * group_size(comm), recvtype) : (struct extent){0}, 1".to_owned(),
        "gatherv" => "is_root(comm, root) ? memory_of_parts(recvbuf, LIST(recvcounts), LIST(displs), group_size(comm), recvtype) : (struct extent){0}, 1".to_owned(),
        "allgatherv" => "memory_of_parts(recvbuf, LIST(recvcounts), LIST(displs), group_size(comm), recvtype), 1".to_owned(),
        "alltoallv" => "memory_of_parts(recvbuf, LIST(recvcounts), LIST(rdispls), group_size(comm), recvtype), 1".to_owned(),
        "reduce_scatter" => "memory_of(recvbuf, recvcounts[rank_in(comm)], datatype), 1".to_owned(),
        "reduce_scatter_block" => "memory_of(recvbuf, recvcount, datatype), 1".to_owned(),
        "scatter" | "scatterv" => "recvbuf != MPI_IN_PLACE ? memory_of(recvbuf, recvcount, recvtype) : (struct extent){0}, 1".to_owned(),
        _ => String::new(),
    };
    let (is_sent, sent) = match plain(name).as_str() {
        "reduce" | "allreduce" | "scan" | "exscan" => ("1", "count, datatype"),
        "reduce_scatter" => ("1", "all_of(LIST(recvcounts), group_size(comm)), datatype"),
        "reduce_scatter_block" => ("1", "recvcount * group_size(comm), datatype"),
        "gather"
        | "gatherv"
        | "allgather"
        | "allgatherv"
        | "neighbor_allgather"
        | "neighbor_allgatherv" => ("1", "sendcount, sendtype"),
        "alltoall" => ("1", "sendcount * group_size(comm), sendtype"),
        "scatter" => (
            "is_root(comm, root)",
            "sendcount * group_size(comm), sendtype",
        ),
        _ => ("", ""),
    };
    let mut text = lists(function);
    if !memory.is_empty() {
        text.insert_str(0, &format!("open_request(&call, *request, {memory});\n"));
    }
    if !sent.is_empty() {
        text = format!("if ({is_sent}) open_sent(&call, *request, sendbuf, {sent});\n{text}");
    }
    if text.is_empty() {
        return text;
    }
    let later = i32::from(is_later);
    format!("if (rc == MPI_SUCCESS && !is_inter(comm)) {{ call.is_prepared = {later}; {text} }}\n")
}

/// The statements that record the arrays of counts, displacements and datatypes of a nonblocking operation, and the
/// memory that is sent by them. Those of neighbours have as many elements as there are neighbours, which is not looked up.
fn lists(function: &Prototype) -> String {
    let has = |wanted: &str| function.names().any(|it| it == wanted);
    let (name, mut text) = (plain(&function.name), String::new());
    let is_of_neighbors = name.starts_with(NEIGHBORS);
    let displs = match name.as_str() {
        "alltoallv" => "sdispls",
        "scatterv" => "displs",
        _ => "",
    };
    if !displs.is_empty() {
        let guard = significant(function, "sendbuf");
        text.push_str(&format!(
            "{guard}if (sendbuf != MPI_IN_PLACE) open_more(&call, *request, (uint64_t)1 << SENT_BIT, memory_of_parts(sendbuf, LIST(sendcounts), LIST({displs}), group_size(comm), sendtype));\n"
        ));
    }
    for (number, list) in [
        (0, "sendcounts"),
        (1, "sdispls"),
        (2, "recvcounts"),
        (3, "rdispls"),
        (3, "displs"),
    ] {
        let is_sent = list.starts_with('s') || (list == "displs" && name == "scatterv");
        let side = if is_sent { "sendbuf" } else { "recvbuf" };
        if has(list) && !is_of_neighbors {
            let guard = significant(function, side);
            text.push_str(&format!(
                "{guard}if ({side} != MPI_IN_PLACE) open_list(&call, *request, {number}, LIST({list}), group_size(comm));\n"
            ));
        }
    }
    for (number, types, side) in [(0, "sendtypes", "sendbuf"), (1, "recvtypes", "recvbuf")] {
        if has(types) && !is_of_neighbors {
            text.push_str(&format!(
                "open_types(&call, *request, {side}, {number}, {types}, group_size(comm));\n"
            ));
        }
    }
    text
}

/// The statement that records the memory of an access to a window that has a request: its origin buffer, and that of
/// the result.
fn opened_by_access(function: &Prototype) -> String {
    let has = |wanted: &str| function.names().any(|it| it == wanted);
    let own = match has("result_addr") {
        true => [("origin", 0, "(uint64_t)1 << SENT_BIT"), ("result", 1, "0")].to_vec(),
        false => [("origin", i32::from(function.name.starts_with("Rget")), "0")].to_vec(),
    };
    let text: String = own
        .into_iter()
        .map(|(side, is_written, more)| {
            format!(
                "open_origin(&call, *request, {more}, win, {side}_addr, {side}_count, {side}_datatype, {is_written}); "
            )
        })
        .collect();
    format!("if (rc == MPI_SUCCESS && target_rank != MPI_PROC_NULL) {{ {text}}}\n")
}

/// The statement that records a collective call on a window or a file. Empty for other functions.
pub(crate) fn collective_of_object(number: usize, function: &Prototype) -> String {
    let name = function.name.as_str();
    let is_file =
        name.starts_with("File_") && FILE_COLLECTIVES.iter().any(|end| name.ends_with(end));
    let first = function
        .parameters
        .iter()
        .find(|it| matches!(kind_of(it), Some("WINDOW" | "FILE_HANDLE")) && !it.is_array);
    let (true, Some(first)) = (is_file || OBJECT_COLLECTIVES.contains(&name), first) else {
        return String::new();
    };
    let kind = kind_of(first).unwrap_or_default();
    let split = match name {
        _ if name.ends_with("_begin") => "check_split(&call, fh, 1);\n",
        _ if name.ends_with("_end") => "check_split(&call, fh, 0);\n",
        "File_close" => "check_split(&call, *fh, -1);\n",
        _ => "",
    };
    let pointer = "*".repeat(first.pointers);
    format!(
        "{split}collective(&call, {number}, sequence_of({kind}, HANDLE({pointer}{})), -1, MPI_OP_NULL, 0, MPI_DATATYPE_NULL, {});\n",
        first.name,
        alike(function)
    )
}

/// The C expression for the arguments that must be equal on all ranks of a collective call, besides root, operator and
/// elements.
pub(crate) fn alike(function: &Prototype) -> String {
    // Headers have their own names for some.
    let named = |at| function.names().nth(at).unwrap_or_default();
    let values = match function.name.as_str() {
        "Cart_create" => {
            "more_flags(more_values((struct parts){.what = DIMENSIONS}, LIST(dims), ndims), periods, ndims)"
        }
        "Cart_sub" => "more_flags((struct parts){.what = KEPT}, remain_dims, dimensions_of(comm))",
        "Graph_create" => {
            return format!(
                "more_edges((struct parts){{.what = EDGES}}, {}, {}, {})",
                named(1),
                named(2),
                named(3)
            );
        }
        "File_set_view" => {
            "more_value(more_value((struct parts){.what = VIEW}, extent_of(etype)), number_of(datarep))"
        }
        "File_open" => "more_values((struct parts){.what = ACCESS}, LIST(&amode), 1)",
        "File_set_size" | "File_preallocate" => "more_value((struct parts){.what = BYTES}, size)",
        "File_seek_shared" => "more_value((struct parts){.what = OFFSET}, offset)",
        "File_set_atomicity" => "more_flags((struct parts){.what = ATOMICITY}, &flag, 1)",
        "Win_fence" => {
            return format!(
                "more_value((struct parts){{.what = ASSERTION}}, {} & (MPI_MODE_NOPRECEDE | MPI_MODE_NOSUCCEED))",
                named(0)
            );
        }
        name if plain(name) == "allgatherv" => {
            "more_amounts((struct parts){.what = AMOUNTS}, LIST(recvcounts), recvtype, group_size(comm))"
        }
        name if plain(name) == "reduce_scatter" => {
            "more_values((struct parts){.what = RECVCOUNTS}, LIST(recvcounts), group_size(comm))"
        }
        _ => "(struct parts){0}",
    };
    values.to_owned()
}
