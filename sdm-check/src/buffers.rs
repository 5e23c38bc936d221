//! Generates the C statements that check the buffers of a call, their datatypes, and files.

use sdm_mpi::usage::{BUFFERS, Flow, LARGE_COUNT, NEIGHBORS, flow};

use crate::life::kind_of;
use crate::prototypes::{Parameter, Prototype, plain};

/// The text of an error about what a rank sends to itself.
const ITSELF: &str = "the rank sends %s to itself and receives %s from itself";

/// Adds the statements that check a call's buffers.
pub(crate) fn buffers(function: &Prototype, add: &mut impl FnMut(String)) {
    let (name, own) = (function.name.as_str(), &function.parameters);
    let by_name = |wanted: &str| own.iter().find(|it| it.name == wanted);
    let value = |it: &&Parameter| it.pointers == 0 && !it.is_array;
    let mut extents = Vec::new();
    for [buffer, count, datatype] in BUFFERS {
        let all = [buffer, count, datatype].map(by_name);
        let [Some(address), Some(amount), Some(typed)] = all else {
            continue;
        };
        if address.base != "void" || !value(&amount) || !value(&typed) {
            continue;
        }
        let guard = significant(function, buffer);
        let place = may_be_in_place(name, buffer);
        // A type that is not significant is not checked.
        add(format!(
            "{guard}if ({buffer} == MPI_IN_PLACE || check_type(&call, {datatype}, \"{datatype}\")) \
             check_buffer(&call, {buffer}, {count}, {datatype}, {place}, \"{buffer}\");\n"
        ));
        let receives = buffer == "recvbuf" || (buffer == "buf" && by_name("source").is_some());
        if receives {
            add(format!(
                "{guard}check_entries(&call, {buffer}, {count}, {datatype}, \"{datatype}\");\n"
            ));
        }
        if buffer == "sendbuf" || buffer == "recvbuf" {
            let blocks = blocks(name, buffer);
            extents.push((
                buffer,
                format!("memory_of({buffer}, {count}{blocks}, {datatype})"),
            ));
        }
    }
    parts(function, add);
    overlaps(function, add);
    sides(function, add);
    let is_compared = !name.ends_with("_init");
    for (buffer, extent) in extents.iter().filter(|_| is_compared) {
        let guard = significant(function, buffer);
        let receives = i32::from(*buffer == "recvbuf");
        let what = if receives == 1 { "receive" } else { "send" };
        add(format!(
            "{guard}if (are_open() && {buffer} != MPI_IN_PLACE) check_open(&call, \"the {what} buffer\", {extent}, {receives});\n"
        ));
    }
    if name.starts_with("File_") && function.has_elements() {
        let (reads, elements) = (i32::from(name.contains("read")), "buf, count, datatype");
        add(format!(
            "if (are_open()) check_open(&call, \"the buffer\", memory_of({elements}), {reads});\n"
        ));
    }
    if plain(name) == "bcast" && is_compared {
        add(
            "if (are_open() && !is_inter(comm)) check_open(&call, \"the buffer\", memory_of(buffer, count, datatype), !is_root(comm, root));\n"
                .to_owned(),
        );
    }
    if let [("sendbuf", send), ("recvbuf", receive)] = &extents[..] {
        let guard = significant(function, significant_side(name));
        add(format!(
            "{guard}if (sendbuf != MPI_IN_PLACE && recvbuf != MPI_IN_PLACE) check_aliases(&call, {send}, {receive});\n"
        ));
    }
}

/// Adds the statements that check the buffers of a collective operation that have a count for each rank.
fn parts(function: &Prototype, add: &mut impl FnMut(String)) {
    let (name, own) = (plain(&function.name), &function.parameters);
    let by_name = |wanted: &str| own.iter().find(|it| it.name == wanted);
    for side in ["send", "recv"] {
        let [buffer, counts, datatype] =
            ["buf", "counts", "type"].map(|part| format!("{side}{part}"));
        let is_typed = by_name(&datatype).is_some_and(|it| it.pointers == 0 && !it.is_array);
        let Some(counts) = by_name(&counts) else {
            continue;
        };
        let types = by_name(&format!("{side}types"));
        if !name.starts_with(NEIGHBORS) {
            let guard = significant(function, &buffer);
            let types = types.map_or("NULL", |it| &it.name);
            add(format!(
                "{guard}check_counts(&call, comm, {buffer}, LIST({0}), \"{0}\", {types}, \"{types}\");\n",
                counts.name
            ));
        }
        if is_typed && !name.starts_with(NEIGHBORS) {
            let (guard, place) = (
                significant(function, &buffer),
                may_be_in_place(&function.name, &buffer),
            );
            add(format!(
                "{guard}if ({buffer} == MPI_IN_PLACE || check_type(&call, {datatype}, \"{datatype}\")) \
                 check_buffer(&call, {buffer}, all_of(LIST({0}), group_size(comm)), {datatype}, {place}, \"{buffer}\");\n",
                counts.name
            ));
        }
    }
}

/// Adds the statement that checks whether the parts of several ranks in a buffer of a collective operation overlap.
fn overlaps(function: &Prototype, add: &mut impl FnMut(String)) {
    const SEND: &str = "sendbuf, sendcount, NO_LIST, NO_LIST, NULL, sendtype";
    const RECEIVE: &str = "recvbuf, recvcount, NO_LIST, NO_LIST, NULL, recvtype";
    if function.name.ends_with("_init") {
        return;
    }
    let (guard, send, receive) = match plain(&function.name).as_str() {
        "gatherv" => (
            "is_root(comm, root)",
            SEND,
            "recvbuf, 0, LIST(recvcounts), LIST(displs), NULL, recvtype",
        ),
        "scatterv" => (
            "is_root(comm, root)",
            "sendbuf, 0, LIST(sendcounts), LIST(displs), NULL, sendtype",
            RECEIVE,
        ),
        "allgatherv" => (
            "1",
            SEND,
            "recvbuf, 0, LIST(recvcounts), LIST(displs), NULL, recvtype",
        ),
        "alltoallv" => (
            "1",
            "sendbuf, 0, LIST(sendcounts), LIST(sdispls), NULL, sendtype",
            "recvbuf, 0, LIST(recvcounts), LIST(rdispls), NULL, recvtype",
        ),
        "alltoallw" => (
            "1",
            "sendbuf, 0, LIST(sendcounts), LIST(sdispls), sendtypes",
            "recvbuf, 0, LIST(recvcounts), LIST(rdispls), recvtypes",
        ),
        _ => return,
    };
    add(format!(
        "if (!is_inter(comm) && {guard}) check_parts(&call, comm, (struct buffer_side){{{send}}}, (struct buffer_side){{{receive}}});\n"
    ));
}

/// Adds the statement that compares the two sides of a call. In a collective operation these are what a rank sends to
/// itself and what it receives from itself. Otherwise these are the elements at the origin and at the target.
fn sides(function: &Prototype, add: &mut impl FnMut(String)) {
    let own = &function.parameters;
    let to_itself = |more| {
        let condition =
            format!("{more}!is_inter(comm) && sendbuf != MPI_IN_PLACE && recvbuf != MPI_IN_PLACE");
        (
            condition,
            "COLLECTIVES + 3",
            ITSELF,
            ["send", "recv"],
            "type",
        )
    };
    let (condition, number, text, sides, kind) = match plain(&function.name).as_str() {
        "allgather" | "alltoall" => to_itself(""),
        "gather" | "scatter" => to_itself("is_root(comm, root) && "),
        "allgatherv" => {
            add(format!(
                "if (!is_inter(comm) && sendbuf != MPI_IN_PLACE) check_sides(&call, COLLECTIVES + 3, \"{ITSELF}\", \
                 sendcount, sendtype, recvcounts[rank_in(comm)], recvtype);\n"
            ));
            return;
        }
        "put" | "get" | "rput" | "rget" => (
            "target_rank != MPI_PROC_NULL".to_owned(),
            "MESSAGE_TYPES",
            "%s at the origin, %s at the target",
            ["origin_", "target_"],
            "datatype",
        ),
        _ => return,
    };
    let all = sides
        .map(|side| [format!("{side}count"), format!("{side}{kind}")])
        .concat();
    // Headers have their own names for some.
    let has_all = all.iter().all(|name| own.iter().any(|it| it.name == *name));
    if has_all {
        let all = all.join(", ");
        add(format!(
            "if ({condition}) check_sides(&call, {number}, \"{text}\", {all});\n"
        ));
    }
}

/// The statements that check the datatypes of a function that makes a datatype of others, that gives a file its view,
/// or that counts elements. Empty for other functions.
pub(crate) fn types(function: &Prototype) -> String {
    let (name, own) = (function.name.as_str(), &function.parameters);
    let is_view = name == "File_set_view";
    let counts = ["Get_", "Status_set_", "Pack_"];
    if !is_view && !name.starts_with("Type_") && !counts.iter().any(|it| name.starts_with(it)) {
        return String::new();
    }
    let all = own.iter().filter(|it| kind_of(it) == Some("DATATYPE"));
    let one = |it: &Parameter| match is_view {
        true => format!("check_type(&call, {0}, \"{0}\");\n", it.name),
        false => format!(
            "check_handle(&call, DATATYPE, HANDLE({0}), \"{0}\");\n",
            it.name
        ),
    };
    let lengths = own.iter().find(|it| {
        ["int", LARGE_COUNT].contains(&it.base.as_str()) && it.name.starts_with("array_of_block")
    });
    let lengths = lengths.map_or_else(String::new, |it| {
        format!(
            "check_lengths(&call, count, LIST({0}), \"{0}\");\n",
            it.name
        )
    });
    all.filter(|it| it.pointers == 0 && !it.is_array)
        .map(one)
        .chain([lengths])
        .collect()
}

/// The C factor for the size of a buffer of a collective operation that holds the parts of several ranks. Empty for
/// other buffers.
fn blocks(name: &str, buffer: &str) -> &'static str {
    let name = plain(name);
    match (name.as_str(), buffer) {
        ("gather" | "allgather" | "alltoall", "recvbuf") | ("scatter" | "alltoall", "sendbuf") => {
            " * group_size(comm)"
        }
        _ => "",
    }
}

/// The buffer of a collective operation that is significant at fewer ranks than the other one; `recvbuf` if neither
/// is.
fn significant_side(name: &str) -> &'static str {
    match plain(name).as_str() {
        "scatter" => "sendbuf",
        _ => "recvbuf",
    }
}

/// The C condition under which a buffer is significant, with its type and count. Empty if it always is.
pub(crate) fn significant(function: &Prototype, buffer: &str) -> &'static str {
    let own = &function.parameters;
    let has = |wanted: &str| own.iter().any(|it| it.name == wanted);
    let name = plain(&function.name);
    let is_receive = buffer.starts_with("recv");
    // The one buffer of a broadcast is significant at all ranks.
    let is_of_root = match flow(&name) {
        Some(Flow::ToRoot) => is_receive,
        Some(Flow::FromRoot) => !is_receive && name != "bcast",
        None => false,
    };
    match name.as_str() {
        _ if is_of_root => "if (!is_inter(comm) && is_root(comm, root)) ",
        name if flow(name).is_some() => "if (!is_inter(comm)) ",
        "get_accumulate" | "rget_accumulate" => "if (op != MPI_NO_OP) ",
        "sendrecv" if is_receive => "if (source != MPI_PROC_NULL) ",
        "sendrecv" => "if (dest != MPI_PROC_NULL) ",
        _ if has("dest") && !has("source") => "if (dest != MPI_PROC_NULL) ",
        _ if has("source") && !has("dest") => "if (source != MPI_PROC_NULL) ",
        _ if has("target_rank") => "if (target_rank != MPI_PROC_NULL) ",
        _ => "",
    }
}

/// An expression that is true if a buffer can be `MPI_IN_PLACE`.
fn may_be_in_place(name: &str, buffer: &str) -> &'static str {
    let name = plain(name);
    match (flow(&name), buffer) {
        (Some(Flow::FromRoot), "recvbuf") | (Some(Flow::ToRoot), "sendbuf") => {
            "is_root(comm, root)"
        }
        (None, "sendbuf") if name != "sendrecv" && !name.starts_with(NEIGHBORS) => "1",
        _ => "0",
    }
}

/// The statements that check an access to a file. Empty for other functions.
pub(crate) fn file(function: &Prototype) -> String {
    let name = function.name.as_str();
    let (reads, writes) = (name.contains("read"), name.contains("write"));
    if !name.starts_with("File_") || !(reads || writes) {
        return String::new();
    }
    let offset = match function.names().any(|it| it == "offset") {
        true => "check_count(&call, offset, \"offset\");\n",
        false => "",
    };
    format!("check_file(&call, fh, {});\n{offset}", i32::from(writes))
}
