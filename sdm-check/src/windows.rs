//! Generates the C statements that record accesses to windows, and calls that order ranks. The name of the function and
//! its parameters determine them.

use sdm_mpi::usage::{COMPLETES, LOCAL, MAKES_ON_COMMUNICATOR, ORDERS, SHARED, is_mutual};

use crate::prototypes::{Prototype, plain};

/// The statements that check that an epoch allows an access to a window, and record it, or that check the origin buffers
/// of the accesses that a call completes. Empty for other functions.
pub(crate) fn access(number: usize, function: &Prototype) -> String {
    let has = |wanted: &str| function.names().any(|it| it == wanted);
    if COMPLETES.iter().any(|(name, _)| *name == function.name) {
        return "check_early(&call, 0, HANDLE(win));\n".to_owned();
    }
    if !has("target_rank") || !has("win") || !has("target_disp") {
        return String::new();
    }
    let is_request = has("request");
    let epoch = if is_request { "PASSIVE" } else { "ANY_ACCESS" };
    let name = plain(&function.name);
    let kind = match name.trim_start_matches('r') {
        "put" => "WRITES",
        "get" => "READS",
        _ => "ACCUMULATES",
    };
    let reduction = if has("op") { "reduction_of(op)" } else { "0" };
    // By its place: Open MPI has `target_cout` once.
    let count = function
        .names()
        .skip_while(|it| *it != "target_disp")
        .nth(1);
    let elements = match count.filter(|_| has("target_datatype")) {
        Some(count) => format!("{count}, target_datatype"),
        None => "1, datatype".to_owned(),
    };
    let typed = match has("target_datatype") {
        true => " && check_type(&call, target_datatype, \"target_datatype\")",
        false => "",
    };
    let operator = match (has("op"), has("target_datatype")) {
        (true, true) => "check_accumulation(&call, op, target_datatype);",
        (true, false) => "check_accumulation(&call, op, datatype);",
        (false, _) => "",
    };
    let mut text = format!(
        "check_access(&call, win, target_rank, {epoch});\n\
         if (target_rank != MPI_PROC_NULL{typed}) {{ check_bounds(&call, win, target_rank, target_disp, {elements}); {operator} }}\n\
         access_window(&call, {number}, win, target_rank, target_disp, {elements}, {kind}, {reduction});\n"
    );
    for (buffer, own, is_written) in [
        ("origin_addr", "origin", kind == "READS"),
        ("compare_addr", "compare", false),
        ("result_addr", "result", true),
    ] {
        if has(buffer) {
            let count = format!("{own}_count");
            let elements = match has(&count) {
                true => format!("{count}, {own}_datatype"),
                false => "1, datatype".to_owned(),
            };
            text.push_str(&format!(
                "if (target_rank != MPI_PROC_NULL) use_origin(&call, win, {buffer}, {elements}, {}, {});\n",
                i32::from(is_written),
                i32::from(is_request)
            ));
        }
    }
    text
}

/// The statements after a call that record the accesses that the call completes, and that the call may have ordered
/// ranks. Empty for other functions.
pub(crate) fn order(function: &Prototype) -> String {
    let name = function.name.as_str();
    let has = |wanted: &str| function.names().any(|it| it == wanted);
    let mut text = String::new();
    if let Some((_, is_remote)) = COMPLETES.iter().find(|(known, _)| *known == name) {
        let own = if name == "Win_free" { "old_win" } else { "win" };
        text.push_str(&format!(
            "end_segment(&call, (MPI_Win)(uintptr_t){own}, {});\n",
            i32::from(*is_remote)
        ));
    }
    let makes_window = name.starts_with("Win_") && MAKES_ON_COMMUNICATOR.contains(&name);
    if makes_window {
        text.push_str("if (rc == MPI_SUCCESS) { keep_unit(*win); if (depth == 1 && initialized) keep_shares(comm, *win); }\n");
    }
    if makes_window || is_mutual(name) {
        text.push_str("synchronised(comm);\n");
    } else if ORDERS.contains(&name)
        || SHARED.iter().any(|it| has(it)) && !LOCAL.contains(&name) && !has("target_rank")
    {
        // A call that only receives or waits gives no other rank an order.
        let is_silent = ["Recv", "Irecv", "Wait", "Waitall"].contains(&name);
        let tells = if is_silent { "" } else { " activity++;" };
        text.push_str(&format!("communications++;{tells}\n"));
    }
    text
}
