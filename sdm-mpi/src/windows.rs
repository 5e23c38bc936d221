//! Calls about RMA windows.

use crate::names::mpi_name;

/// True for a call about the epochs and locks of an RMA window.
#[must_use]
pub fn is_of_window(call: &str) -> bool {
    const COLLECTIVE: [&str; 5] = [
        "win_allocate",
        "win_allocate_shared",
        "win_create",
        "win_create_dynamic",
        "win_free",
    ];
    let name = mpi_name(call).unwrap_or_default();
    name.starts_with("win_") && !COLLECTIVE.contains(&name.as_str())
}

/// True for a call that waits for the other side of an epoch between groups of ranks.
#[must_use]
pub fn is_between_groups(call: &str) -> bool {
    const CALLS: [&str; 4] = ["win_start", "win_complete", "win_post", "win_wait"];
    mpi_name(call).is_some_and(|name| CALLS.contains(&name.as_str()))
}

/// True for a call that waits for the lock of an RMA window, or for the completion of operations under it.
#[must_use]
pub fn locks_window(call: &str) -> bool {
    const BEGINNINGS: [&str; 3] = ["win_lock", "win_unlock", "win_flush"];
    let name = mpi_name(call).unwrap_or_default();
    BEGINNINGS.iter().any(|part| name.starts_with(part))
}

/// True for a call that reads the memory of a window, or that completes such calls.
#[must_use]
pub fn reads_window(call: &str) -> bool {
    const CALLS: [&str; 4] = ["compare_and_swap", "fetch_and_op", "get", "get_accumulate"];
    let name = mpi_name(call).unwrap_or_default();
    locks_window(call) || CALLS.contains(&name.as_str())
}

/// True for `MPI_Win_fence`. `name` is in lower case and without `MPI_`.
#[must_use]
pub fn is_fence(name: &str) -> bool {
    name == "win_fence"
}

/// True for `MPI_Win_wait`, in which a target waits for the origins of its epoch.
#[must_use]
pub fn waits_for_origins(call: &str) -> bool {
    mpi_name(call).as_deref() == Some("win_wait")
}
