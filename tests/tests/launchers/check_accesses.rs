//! Wrong uses of memory by several operations, and races of messages, are reported; right ones are not.

use super::check_parts::{hold, hold_right};

const SOURCE: &str = "mpi_accesses.c";

/// The errors in `mpi_accesses.c`: the function, the number, a part of the line, and the ranks.
const WRONG: [(&str, u32, &str, &str); 15] = [
    ("row_and_column", 201, "MPI_Irecv(&grid[2][0]", "0-1-2"),
    ("column_changes", 204, "/* of a column */", "0-1-2"),
    ("sum_changes", 204, "/* of a sum */", "0-1-2"),
    ("list_changes", 204, "/* of a list */", "0-1-2"),
    ("part_is_sent", 201, "MPI_Sendrecv(others + 2", "0-1-2"),
    (
        "columns_of_window",
        603,
        "MPI_Put(others, 3, MPI_INT, 0, rank == 1",
        "1-2",
    ),
    ("other_sums", 603, "rank == 1 ? MPI_SUM : MPI_PROD", "1-2"),
    (
        "received_beside_put",
        603,
        "MPI_Put(others, 1, MPI_INT, 0, 2",
        "1",
    ),
    (
        "received_beside_put",
        603,
        "numbers + 2, 1, MPI_INT, 0, 26",
        "0",
    ),
    (
        "puts_of_posts",
        603,
        "MPI_Put(others, 1, MPI_INT, 0, place",
        "1-2",
    ),
    (
        "not_in_group",
        601,
        "MPI_Put(others, 1, MPI_INT, 0, rank",
        "0-1-2",
    ),
    ("flush_of_none", 601, "/* of none */", "0-1-2"),
    (
        "no_such_target",
        105,
        "MPI_Win_lock(MPI_LOCK_SHARED, size",
        "0-1-2",
    ),
    (
        "got_and_sent",
        201,
        "MPI_Sendrecv(others, 1, MPI_INT, rank, 37",
        "0-1-2",
    ),
    (
        "not_attached",
        604,
        "MPI_Put(others, 1, MPI_INT, (rank + 1) % size, next",
        "0-1-2",
    ),
];

#[test]
fn wrong_accesses_are_reported_at_their_lines() {
    hold(SOURCE, &WRONG);
}

#[test]
fn right_accesses_cause_no_report() {
    hold_right(
        SOURCE,
        &[
            "right_columns",
            "right_lists",
            "right_windows",
            "right_requests",
        ],
    );
}

#[test]
fn race_of_any_source_is_reported() {
    let rows = [
        ("any_before_asked", 504, "MPI_ANY_SOURCE, 32", ""),
        ("any_before_probed", 504, "MPI_ANY_SOURCE, 36", ""),
        ("any_before_other", 504, "MPI_ANY_SOURCE, 39", ""),
        ("any_before_named", 504, "MPI_ANY_SOURCE, 30", "0"),
        ("any_posted_before_named", 504, "MPI_ANY_SOURCE : 1", "0"),
    ];
    hold(SOURCE, &rows);
    hold_right(SOURCE, &["any_before_synchronous"]);
    hold_right(SOURCE, &["named_posted_before_any"]);
}
