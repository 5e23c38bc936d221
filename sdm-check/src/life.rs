//! Generates the C statements that record the handles which a function makes, frees and completes. The name of the
//! function and its parameters determine them.

use sdm_mpi::usage::{
    FREES, HANDLES, LENDS, MAKES_COMMUNICATOR, MAKES_OF_GROUPS, MAKES_ON_COMMUNICATOR,
    TAKES_REQUEST,
};

use crate::prototypes::{Parameter, Prototype};

/// The C statements before and after a call, which record the handles that it creates and frees.
pub(crate) fn life(function: &Prototype) -> (String, String) {
    let name = function.name.as_str();
    if let Some(both) = completion(function) {
        return both;
    }
    let (mut before, mut behind) = (String::new(), String::new());
    for parameter in &function.parameters {
        let Some(kind) = kind_of(parameter) else {
            continue;
        };
        let own = &parameter.name;
        let is_one = parameter.pointers == 1 && !parameter.is_array && !parameter.is_const;
        let is_array = own.starts_with("array_of");
        if !is_one || is_array || LENDS.contains(&name) {
            continue;
        }
        if FREES.contains(&name) {
            before.push_str(&format!("uint64_t old_{own} = HANDLE(*{own});\n"));
            behind.push_str(&format!(
                "if (rc == MPI_SUCCESS) freed({kind}, old_{own});\n"
            ));
            if kind == "WINDOW" {
                behind.push_str(&format!("if (rc == MPI_SUCCESS) end_epochs(old_{own});\n"));
            }
        } else if kind != "REQUEST" {
            behind.push_str(&format!(
                "if (rc == MPI_SUCCESS) new_object(&call, {kind}, HANDLE(*{own}));\n"
            ));
            if kind == "WINDOW" {
                behind.push_str(&format!("if (rc == MPI_SUCCESS) begin_window(*{own});\n"));
            }
            if MAKES_ON_COMMUNICATOR.contains(&name) {
                behind.push_str(&format!(
                    "if (rc == MPI_SUCCESS && depth == 1) name_object(sequence_of(COMMUNICATOR, HANDLE(comm)), {kind}, HANDLE(*{own}), 0);\n"
                ));
            }
            if kind == "COMMUNICATOR" && MAKES_OF_GROUPS.contains(&name) {
                behind.push_str(&format!(
                    "if (rc == MPI_SUCCESS && depth == 1) name_by_groups(*{own}, tag);\n"
                ));
            }
            if kind == "COMMUNICATOR" && MAKES_COMMUNICATOR.contains(&name) {
                let parent = &function.parameters[0].name;
                behind.push_str(&format!(
                    "if (rc == MPI_SUCCESS && depth == 1) name_communicator({parent}, *{own});\n"
                ));
            }
        } else if !TAKES_REQUEST.contains(&name) {
            let stays = i32::from(name.ends_with("_init"));
            behind.push_str(&format!(
                "if (rc == MPI_SUCCESS && *{own} != MPI_REQUEST_NULL) made(&call, REQUEST, HANDLE(*{own}), {stays});\n"
            ));
        }
    }
    (before, behind)
}

/// The C statements before and after a call that completes requests. None for other functions.
fn completion(function: &Prototype) -> Option<(String, String)> {
    let all: Vec<_> = function.names().collect();
    // Without a status of its own, a call gets one: it names the sender.
    let last = *all.last()?;
    let one = |condition: &str| {
        let before = old_request(all[0], last);
        let behind = format!("{condition}completed(&call, old, *{}, {last});\n", all[0]);
        (before, behind)
    };
    let many = |body: String| {
        let (count, array) = (all[0], all[1]);
        let before = format!(
            "uint64_t few[64], *old = {count} <= 64 ? few : malloc({count} * sizeof *old);\n\
             for (int i = 0; old && i < {count}; i++) old[i] = HANDLE({array}[i]);\n\
             call.requests = old; call.request_count = old ? {count} : 0;\n{}",
            match last {
                "status" => own_status(last),
                _ => own_statuses(function, last, count),
            }
        );
        (
            before,
            format!(
                "if (old) {{ {body} }} if (old != few) free(old);{}\n",
                if last == "status" {
                    ""
                } else {
                    "free(more_statuses);"
                }
            ),
        )
    };
    let at = |index: &str, status: &str| {
        format!(
            "completed(&call, old[{index}], {}[{index}], {status});",
            all[1]
        )
    };
    let status_at =
        |index: &str| format!("{last} == MPI_STATUSES_IGNORE ? NULL : &{last}[{index}]");
    let each = |condition: &str| {
        let (count, one) = (all[0], at("i", &status_at("i")));
        // Where one fails, others are complete.
        format!(
            "if ({condition}1) for (int i = 0; i < {count}; i++) if (rc == MPI_SUCCESS || {}[i] == MPI_REQUEST_NULL) {one}",
            all[1]
        )
    };
    Some(match (function.name.as_str(), all.len()) {
        ("Wait", 2) => one(""),
        ("Test", 3) => one(&format!("if (*{}) ", all[1])),
        ("Waitall", 3) => many(each("")),
        ("Testall", 4) => many(each(&format!("*{} && ", all[2]))),
        ("Waitany", 4) => many(format!(
            "if (*{0} != MPI_UNDEFINED) {1}",
            all[2],
            at(&format!("*{}", all[2]), last)
        )),
        ("Testany", 5) => many(format!(
            "if (*{1} && *{0} != MPI_UNDEFINED) {2}",
            all[2],
            all[3],
            at(&format!("*{}", all[2]), last)
        )),
        ("Waitsome" | "Testsome", 5) => many(format!(
            "for (int i = 0; *{0} != MPI_UNDEFINED && i < *{0}; i++) {1}",
            all[2],
            at(&format!("{}[i]", all[3]), &status_at("i"))
        )),
        _ => return None,
    })
}

/// The C statements that keep the request that a call completes, and its status.
fn old_request(request: &str, status: &str) -> String {
    let own = own_status(status);
    format!(
        "uint64_t old = HANDLE(*{request}); call.requests = &old; call.request_count = 1;\n{own}\
         if ({status}) {{ {status}->MPI_SOURCE = {status}->MPI_TAG = MPI_UNDEFINED; call.taken.status = {status}; }}\n"
    )
}

/// The C statements that give a call a status of its own if the program passes `MPI_STATUS_IGNORE`.
pub(crate) fn own_status(status: &str) -> String {
    format!(
        "MPI_Status own_status; call.is_ignored = {status} == MPI_STATUS_IGNORE; if (call.is_ignored) {status} = &own_status;\n"
    )
}

/// The C statements that give a call statuses of its own if the program passes `MPI_STATUSES_IGNORE`: they name the
/// source of a receive from any source that is pending. Those of a call for all requests also name the one that failed.
fn own_statuses(function: &Prototype, statuses: &str, count: &str) -> String {
    let (pending, kept) = match function.name.ends_with("all") {
        true => ("", format!("call.statuses = {statuses};\n")),
        false => (" && pending_count", String::new()),
    };
    let wanted = format!("{statuses} == MPI_STATUSES_IGNORE{pending}");
    format!(
        "MPI_Status few_statuses[64], *more_statuses = NULL; call.is_ignored = {statuses} == MPI_STATUSES_IGNORE;\n\
         if ({wanted} && {count} > 64) more_statuses = malloc({count} * sizeof *more_statuses);\n\
         if ({wanted} && ({count} <= 64 || more_statuses)) {statuses} = more_statuses ? more_statuses : few_statuses;\n{kept}"
    )
}

pub(crate) fn kind_of(parameter: &Parameter) -> Option<&'static str> {
    let found = HANDLES.iter().find(|(base, _)| *base == parameter.base);
    found.map(|(_, kind)| *kind)
}
