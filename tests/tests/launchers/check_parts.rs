//! Wrong parts of buffers, datatypes, topologies, groups, matched messages and files are reported; right ones are not.

use sdm_tests::place::Place;
use sdm_tests::sdm::Done;

use super::check::{checked, errors};
use super::check_matching::ranks_at;
use super::chosen::{LAUNCHERS, chosen};

const SOURCE: &str = "mpi_parts.c";

/// The errors in `mpi_parts.c`: the function, the number, a part of the line, and the ranks.
const WRONG: [(&str, u32, &str, &str); 41] = [
    (
        "parts_overlap",
        117,
        "others, twos, in_order, MPI_INT, 0",
        "0",
    ),
    (
        "sent_within_received",
        108,
        "MPI_Allgatherv(others + 1",
        "0-1-2",
    ),
    (
        "same_buffer",
        108,
        "MPI_Alltoallv(numbers, ones, in_order",
        "0-1-2",
    ),
    (
        "same_buffer_of_types",
        108,
        "MPI_Alltoallw(numbers",
        "0-1-2",
    ),
    ("elements_overlap", 117, "MPI_Sendrecv(numbers, 6", "0-1-2"),
    (
        "no_such_node",
        118,
        "MPI_Graph_create(world, 3, index, edges, 0, &graph)",
        "0-1-2",
    ),
    ("no_such_direction", 118, "MPI_Cart_shift(line, 1", "0-1-2"),
    ("no_such_place", 118, "MPI_Cart_rank(line", "0-1-2"),
    (
        "half_an_edge",
        406,
        "MPI_Dist_graph_create_adjacent(world, rank != 2",
        "1",
    ),
    ("edges_in_turn", 406, "/* to nobody */", "1"),
    ("edges_in_turn", 406, "/* from nobody */", "2"),
    (
        "rank_twice",
        119,
        "MPI_Group_incl(all, 2, ranks, &some)",
        "0-1-2",
    ),
    ("not_within", 119, "MPI_Comm_create(half", "0-1-2"),
    ("matched_and_left", 311, "MPI_Mprobe(rank, 7", "0-1-2"),
    (
        "matched_and_left",
        503,
        "MPI_Send(numbers, 1, MPI_INT, rank, 7",
        "0-1-2",
    ),
    (
        "other_type_of_match",
        502,
        "MPI_Isend(numbers, 1, MPI_INT, rank, 8",
        "0-1-2",
    ),
    (
        "other_type_of_match",
        502,
        "MPI_Mrecv(others, 1, MPI_FLOAT, &message",
        "0-1-2",
    ),
    (
        "other_views",
        406,
        "rank ? MPI_INT : MPI_DOUBLE, \"native\"",
        "0-1-2",
    ),
    (
        "view_of_others",
        110,
        "MPI_File_set_view(made, 0, MPI_DOUBLE, MPI_INT",
        "0-1-2",
    ),
    (
        "read_is_under_way",
        201,
        "MPI_Sendrecv(numbers, 1, MPI_INT, rank, 0, others + 1",
        "0-1-2",
    ),
    ("read_is_under_way", 201, "MPI_File_iread_at(made", "0-1-2"),
    (
        "split_read_is_under_way",
        201,
        "MPI_Sendrecv_replace(others",
        "0-1-2",
    ),
    (
        "split_read_is_under_way",
        201,
        "MPI_File_read_at_all_begin(made",
        "0-1-2",
    ),
    ("own_operators", 403, "/* of others */", "0-1-2"),
    (
        "packed_too_long",
        501,
        "MPI_Pack(numbers, 3, MPI_INT, room, 16",
        "0-1-2",
    ),
    ("uncommitted_of_all", 104, "/* of all */", "0-1-2"),
    (
        "one_is_negative",
        103,
        "others, counts, in_order, MPI_INT, 0",
        "0",
    ),
    ("nulls", 101, "MPI_Info_set(MPI_INFO_NULL", "0-1-2"),
    ("nulls", 101, "MPI_Type_commit(&none)", "0-1-2"),
    ("nulls", 101, "MPI_ERRHANDLER_NULL)", "0-1-2"),
    (
        "no_such_ranks",
        119,
        "MPI_Group_translate_ranks(all, 1",
        "0-1-2",
    ),
    ("before_the_view", 103, "MPI_File_seek(made, -4", "0-1-2"),
    (
        "before_the_view",
        103,
        "MPI_File_set_view(made, -8",
        "0-1-2",
    ),
    ("nulls", 101, "MPI_Comm_compare(world", "0-1-2"),
    (
        "nulls",
        101,
        "MPI_Comm_free_keyval(&key); /* none */",
        "0-1-2",
    ),
    ("grid_of_others", 114, "MPI_Type_create_darray(", "0-1-2"),
    ("negative_parts", 103, "/* of each */", "0-1-2"),
    ("negative_parts", 103, "/* of one */", "0-1-2"),
    ("no_such_leader", 105, "MPI_Intercomm_create(", "0-1-2"),
    ("no_overhead", 115, "MPI_Bsend(numbers, 64", "0-1-2"),
    (
        "less_than_no_edges",
        103,
        "/* of less than none */",
        "0-1-2",
    ),
];

/// Runs a program of three ranks, the name of whose source is given, with the functions that it is to call.
pub(super) fn run(place: &Place, source: &str, launcher: &str, names: &[&str]) -> Done {
    let program = place.path().join(source.trim_end_matches(".c"));
    let sdm = checked(place, launcher, 3, &["--check", "--batch"]);
    sdm.program(&program, names).finish()
}

/// Places with the program of a source, of which [`chosen`] takes some: for each MPI, and for the functions for large
/// counts of the MPI that has them.
fn places(test: impl Fn(), source: &str) -> impl Iterator<Item = (Place, &'static str)> {
    const HEADER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/mpi_large.h");
    const PLAIN: &[&str] = &["-g"];
    const LARGE: &[&str] = &["-g", "-include", HEADER];
    let [open_mpi, mpich] = LAUNCHERS;
    let all = [(open_mpi, PLAIN), (mpich, PLAIN), (mpich, LARGE)];
    let all = chosen(test, &all).into_iter();
    all.map(move |((launcher, compiler), options)| {
        let place = Place::new();
        let _program = place.compile_with(source.trim_end_matches(".c"), compiler, options);
        (place, launcher)
    })
}

/// Runs the functions of the rows: each error is told at its line by its ranks, and no error of another number.
pub(super) fn hold(test: impl Fn(), source: &str, rows: &[(&str, u32, &str, &str)]) {
    for (place, launcher) in places(test, source) {
        let mut names: Vec<_> = rows.iter().map(|(name, ..)| *name).collect();
        names.dedup();
        let done = run(&place, source, launcher, &names).code(119);
        let told = errors(&place, &done);
        for (name, number, text, by) in rows {
            let at = format!("{source}:{}", Place::line(source, text));
            let found = ranks_at(&told, *number, &at);
            assert_eq!(found, *by, "M{number} of {name} in {told:#?} {done}");
        }
        let numbers: Vec<_> = rows
            .iter()
            .map(|(_, number, ..)| format!("M{number} "))
            .collect();
        let is_known = |what: &str| numbers.iter().any(|number| what.contains(number));
        assert!(
            told.iter().all(|(what, _)| is_known(what)),
            "{told:#?} {done}"
        );
    }
}

/// Runs functions of a program, and checks that no error is reported.
pub(super) fn hold_right(test: impl Fn(), source: &str, names: &[&str]) {
    for (place, launcher) in places(test, source) {
        let done = run(&place, source, launcher, names).code(0);
        assert_eq!(errors(&place, &done), [], "{done}");
    }
}

#[test]
fn mpi_argument_errors_are_reported_at_their_lines() {
    hold(
        mpi_argument_errors_are_reported_at_their_lines,
        SOURCE,
        &WRONG,
    );
}

#[test]
fn correct_mpi_arguments_cause_no_report() {
    let names = [
        "right_parts",
        "right_elements",
        "right_topologies",
        "right_groups",
        "right_matches",
        "right_files",
        "right_arguments",
        "large_types",
    ];
    hold_right(correct_mpi_arguments_cause_no_report, SOURCE, &names);
}

/// Open MPI 4.1 crashes in the first one and does not have the others.
#[test]
fn invalid_element_types_and_partition_numbers_are_reported() {
    let (launcher, compiler) = LAUNCHERS[1];
    let place = Place::new();
    let _program = place.compile("mpi_parts", compiler);
    let names = ["swapped_doubles", "right_partitions", "partition_too_many"];
    // Behind a partitioned call nothing is known of other messages.
    let told: Vec<_> = [&names[..], &["large_errors"]]
        .into_iter()
        .flat_map(|names| {
            let done = run(&place, SOURCE, launcher, names).code(119);
            errors(&place, &done)
        })
        .collect();
    for (number, text) in [
        (111, "MPI_Compare_and_swap("),
        (205, "MPI_Pready(last"),
        (201, "/* into a part */"),
        (502, "/* of large counts */"),
        (204, "/* of large places */"),
        (103, "/* one less than none */"),
    ] {
        let at = format!("{SOURCE}:{}", Place::line(SOURCE, text));
        assert_eq!(ranks_at(&told, number, &at), "0-1-2", "{told:#?}");
    }
    let at = format!("{SOURCE}:{}", Place::line(SOURCE, "/* of large parts */"));
    assert_eq!(ranks_at(&told, 117, &at), "0", "{told:#?}");
    // The texts of the message of another type name its two ranks.
    assert_eq!(told.len(), 12, "{told:#?}");
}

/// MPICH waits for good in the call.
#[test]
fn communicator_of_different_groups_on_ranks_is_reported() {
    let (launcher, compiler) = LAUNCHERS[0];
    let place = Place::new();
    let _program = place.compile("mpi_parts", compiler);
    let done = run(&place, SOURCE, launcher, &["other_group"]).code(119);
    let told = errors(&place, &done);
    let at = format!("{SOURCE}:{}", Place::line(SOURCE, "/* of another group */"));
    assert_eq!(ranks_at(&told, 406, &at), "2", "{told:#?} {done}");
    assert_eq!(told.len(), 1, "{told:#?} {done}");
}

/// No files are opened beside it: MPICH gives the freed key to its own part for files.
#[test]
fn key_that_was_freed_is_reported_when_set_on_a_communicator() {
    hold(
        key_that_was_freed_is_reported_when_set_on_a_communicator,
        SOURCE,
        &[("freed_key", 102, "MPI_Comm_set_attr(world, copy", "0-1-2")],
    );
}
