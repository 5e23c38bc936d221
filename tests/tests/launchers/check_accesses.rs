//! Wrong uses of memory by several operations, and races of messages, are reported; right ones are not.

use sdm_tests::place::Place;

use super::check::errors;
use super::check_matching::ranks_at;
use super::check_parts::{hold, hold_right, run};
use super::chosen::LAUNCHERS;

const SOURCE: &str = "mpi_accesses.c";

/// The errors in `mpi_accesses.c`: the function, the number, a part of the line, and the ranks.
const WRONG: [(&str, u32, &str, &str); 17] = [
    ("row_and_column", 201, "MPI_Irecv(&grid[2][0]", "0-1-2"),
    ("column_changes", 204, "/* of a column */", "0-1-2"),
    ("sum_changes", 204, "/* of a sum */", "0-1-2"),
    ("broadcast_changes", 204, "/* of a broadcast */", "1"),
    ("list_changes", 204, "/* of a list */", "0-1-2"),
    ("vector_changes", 204, "/* of a vector */", "0-1-2"),
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
fn mpi_buffer_and_window_errors_are_reported_at_their_lines() {
    hold(
        mpi_buffer_and_window_errors_are_reported_at_their_lines,
        SOURCE,
        &WRONG,
    );
}

#[test]
fn correct_buffer_and_window_accesses_cause_no_report() {
    hold_right(
        correct_buffer_and_window_accesses_cause_no_report,
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
fn race_of_mpi_any_source_receives_is_reported() {
    let rows = [
        ("any_before_asked", 504, "MPI_ANY_SOURCE, 32", ""),
        ("any_before_probed", 504, "MPI_ANY_SOURCE, 36", ""),
        ("any_before_other", 504, "MPI_ANY_SOURCE, 39", ""),
        ("any_before_named", 504, "MPI_ANY_SOURCE, 30", "0"),
        ("any_posted_before_named", 504, "MPI_ANY_SOURCE : 1", "0"),
    ];
    hold(race_of_mpi_any_source_receives_is_reported, SOURCE, &rows);
    hold_right(
        race_of_mpi_any_source_receives_is_reported,
        SOURCE,
        &["any_before_synchronous"],
    );
    hold_right(
        race_of_mpi_any_source_receives_is_reported,
        SOURCE,
        &["named_posted_before_any"],
    );
}

const HANDLES: &str = "mpi_handles.c";

#[test]
fn wrong_uses_of_handles_are_reported_at_their_lines() {
    let rows = [
        ("own_of_mpi", 110, "MPI_Type_free(&type)", "0-1-2"),
        ("own_of_mpi", 110, "MPI_Op_free(&op);", "0-1-2"),
        ("own_of_mpi", 110, "MPI_Type_get_contents(", "0-1-2"),
        ("no_neighbours", 110, "MPI_Neighbor_allgather(", "0-1-2"),
        ("sum_onto_itself", 108, "MPI_Reduce_local(", "0-1-2"),
        ("other_order", 403, "/* in another order */", "0-1-2"),
        ("own_accumulation", 111, "MPI_Accumulate(", "0-1-2"),
        (
            "other_operator_between",
            403,
            "rank == 2 ? MPI_MIN",
            "0-1-2",
        ),
        ("given_up", 110, "MPI_Cancel(&request)", "0-1-2"),
        ("other_end", 116, "/* within */", "0-1-2"),
        ("other_end", 116, "MPI_File_write_all_end(", "0-1-2"),
        (
            "handler_is_left",
            309,
            "MPI_Comm_create_errhandler(",
            "0-1-2",
        ),
        ("put_goes_on", 603, "MPI_Put(numbers, 1, MPI_INT, 0, 5", "1"),
        ("put_goes_on", 603, "MPI_Get(others, 1, MPI_INT, 0, 5", "2"),
        ("detached_twice", 604, "/* again */", "0-1-2"),
    ];
    hold(
        wrong_uses_of_handles_are_reported_at_their_lines,
        HANDLES,
        &rows,
    );
}

#[test]
fn right_uses_of_handles_cause_no_report() {
    hold_right(
        right_uses_of_handles_cause_no_report,
        HANDLES,
        &["right_windows", "right_handles"],
    );
}

/// Open MPI 4.1 refuses or crashes in two of the cases, and does not have the functions of the other.
#[test]
fn buffer_changes_and_puts_to_detached_memory_are_reported() {
    let (launcher, compiler) = LAUNCHERS[1];
    let place = Place::new();
    let _program = place.compile("mpi_handles", compiler);
    let names = [
        "partition_changes",
        "collective_changes",
        "put_to_detached",
        "started_when_free",
    ];
    let done = run(&place, HANDLES, launcher, &names).code(119);
    let told = errors(&place, &done);
    for (number, text) in [
        (102, "MPI_Start(&copy)"),
        (204, "/* of partitions */"),
        (204, "/* of collectives */"),
        (604, "MPI_Put(others, 1, MPI_INT, (rank + 1) % size, place"),
    ] {
        let at = format!("{HANDLES}:{}", Place::line(HANDLES, text));
        assert_eq!(ranks_at(&told, number, &at), "0-1-2", "{told:#?} {done}");
    }
    let at = format!("{HANDLES}:{}", Place::line(HANDLES, "MPI_Bcast(others + 5"));
    assert_eq!(ranks_at(&told, 201, &at), "1-2", "{told:#?} {done}");
    // The text about windows names each target.
    assert_eq!(told.len(), 7, "{told:#?} {done}");
}
