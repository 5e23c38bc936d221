//! SDM's internal breakpoints.
//!
//! Launchers kill a whole job without warning when one process aborts or exits before `MPI_Finalize`; these
//! breakpoints stop that process first. They also stop a process in which a sanitizer has found an error.
//!
//! Calls of `MPI_Init` and `MPI_Finalize` are counted by breakpoints that never stop, as their ignore count is never
//! used up. So there is no stop and no call into the program, and a step over `MPI_Init` is not disturbed.

use sdm_debug::Failure;
use sdm_mpi::symbols::{ABORT, COMM_RANK, FINALIZE, INIT, MPICH_ERRORS, OPEN_MPI_FATAL};

use crate::gdb::Gdb;
use crate::state::internal::{Finder, Internal};
use sdm_mi::{Results, quote};

/// Breakpoints of every program. The MPI ones stay pending in a program without MPI.
const ALWAYS: [(&str, Internal); 7] = [
    (INIT[0], Internal::Init),
    (INIT[1], Internal::Init),
    (COMM_RANK, Internal::World),
    (ABORT, Internal::Hold(ABORT)),
    ("abort", Internal::Hold("abort")),
    (
        "__sanitizer_report_error_summary",
        Internal::Found(Finder::Summary),
    ),
    ("__ubsan_on_report", Internal::Found(Finder::Undefined)),
];
/// Breakpoints added once a program has loaded MPI.
const WITH_MPI: [(&str, Internal); 7] = [
    (OPEN_MPI_FATAL[0], Internal::FatalError),
    (OPEN_MPI_FATAL[1], Internal::FatalError),
    (OPEN_MPI_FATAL[2], Internal::FatalError),
    (MPICH_ERRORS[0], Internal::MpichError),
    (MPICH_ERRORS[1], Internal::MpichError),
    (FINALIZE, Internal::Finalize),
    ("_exit", Internal::Exit),
];
/// Breakpoints added once a program has LeakSanitizer, which checks at exit or on request.
const WITH_LEAKS: [(&str, Internal); 2] = [
    ("exit", Internal::LeakCheck),
    ("__lsan_do_recoverable_leak_check", Internal::LeakCheck),
];
/// The function that shows the presence of LeakSanitizer.
const LEAKS: [(&str, Internal); 1] = [("__lsan_do_leak_check", Internal::LeakCheck)];
/// The breakpoint for checks of the use of MPI.
const CHECK: [(&str, Internal); 1] = [(sdm_check::ERROR_FUNCTION, Internal::Found(Finder::Check))];
/// MI's error text for an option that it does not know.
const UNKNOWN_OPTION: &str = "Unknown option";
/// Option for an ignore count so large that the breakpoint never stops.
const NEVER: &str = "-i 2147483647 ";

/// Inserts missing breakpoints. In a process that was attached to, or if the configuration excludes them, it inserts
/// only the one for checks of the use of MPI. All commands for one list of breakpoints are sent before the first
/// answer. At the first stop the program's libraries are loaded, so that few breakpoints stay pending.
pub(crate) async fn insert_internal(gdb: &Gdb) {
    watch_check(gdb).await;
    let wanted = {
        let state = gdb.get();
        state.config.internal_breakpoints && !state.origin.is_attached()
    };
    if !wanted {
        return;
    }
    let armed = std::mem::replace(&mut gdb.edit().breakpoints.armed, true);
    if !armed {
        insert_all(gdb, &ALWAYS).await;
    }
    watch_mpi(gdb).await;
    watch_leaks(gdb).await;
}

/// Inserts the breakpoint for checks of the use of MPI, if the start requested them.
async fn watch_check(gdb: &Gdb) {
    let is_armed = {
        let breakpoints = &mut gdb.edit().breakpoints;
        breakpoints.check.is_none() || std::mem::replace(&mut breakpoints.is_check_armed, true)
    };
    if !is_armed {
        insert_all(gdb, &CHECK).await;
    }
}

/// Inserts the breakpoints for MPI programs that are missing, if the program has loaded an MPI library.
async fn watch_mpi(gdb: &Gdb) {
    let wanted = {
        let state = gdb.get();
        let placed = state.breakpoints.is_placed(Internal::Init);
        placed && !state.breakpoints.mpi.watched
    };
    if wanted {
        gdb.edit().breakpoints.mpi.watched = true;
        insert_all(gdb, &WITH_MPI).await;
    }
}

/// Inserts the breakpoints for LeakSanitizer. Only programs with a sanitizer have it, and nothing shows that before
/// the libraries are loaded. A program that does not stop at `main` has no later chance.
async fn watch_leaks(gdb: &Gdb) {
    let (is_known, is_watched) = {
        let state = gdb.get();
        let is_loaded = state.breakpoints.is_placed(Internal::Exit);
        let is_known = is_loaded || is_sanitized(gdb);
        (is_known, state.breakpoints.leaks.watched)
    };
    if is_watched || is_known && !is_sanitized(gdb) {
        return;
    }
    gdb.edit().breakpoints.leaks.watched = true;
    insert_all(gdb, &LEAKS).await;
    let has_leaks = gdb.get().breakpoints.is_placed(Internal::LeakCheck);
    if has_leaks || !is_known {
        insert_all(gdb, &WITH_LEAKS).await;
    }
}

/// True once the program has loaded a sanitizer.
pub(super) fn is_sanitized(gdb: &Gdb) -> bool {
    let state = gdb.get();
    state
        .breakpoints
        .is_placed(Internal::Found(Finder::Summary))
}

pub(super) async fn insert_all(gdb: &Gdb, list: &[(&str, Internal)]) {
    let mut answers = Vec::new();
    for (function, what) in list {
        // `--qualified` excludes C++ methods of the same name.
        let line = line(function, *what, "--qualified ");
        answers.push((*what, *function, gdb.send(line)));
    }
    for (what, function, answer) in answers {
        let made = match answer.await {
            Err(failure) if failure.text.contains(UNKNOWN_OPTION) => {
                insert_unqualified(gdb, function, what).await
            }
            made => made,
        };
        // Without this breakpoint only its events are missed.
        if let Ok(results) = made {
            gdb.edit().breakpoints.add_internal(what, &results);
        }
    }
}

fn line(function: &str, what: Internal, qualified: &str) -> String {
    let never = match what {
        Internal::Init | Internal::Finalize => NEVER,
        _ => "",
    };
    let function = quote(function.as_bytes());
    format!("-break-insert -f {never}{qualified}--function {function}")
}

/// Inserts a breakpoint without `--qualified`, which gdb 10 and 11 do not know. The breakpoint covers all functions of
/// that name; locations inside C++ scopes are disabled, except for functions that report a finding.
async fn insert_unqualified(gdb: &Gdb, function: &str, what: Internal) -> Result<Results, Failure> {
    let results = gdb.mi(line(function, what, "")).await?;
    let made = results.tuple("bkpt").unwrap_or(&results);
    // Only sanitizers call functions with these names, and their own are in a namespace.
    let is_sanitizers = matches!(what, Internal::Found(_));
    let is_other =
        |place: &&Results| !is_sanitizers && place.text("func").is_some_and(|it| it.contains("::"));
    let mut others: Vec<String> = made
        .tuples("locations")
        .filter(is_other)
        .filter_map(|place| place.text("number").map(str::to_owned))
        .collect();
    if is_other(&made) {
        others.extend(made.text("number").map(|number| format!("{number}.1")));
    }
    for number in others {
        gdb.mi(format!("-break-disable {number}")).await?;
    }
    Ok(results)
}
