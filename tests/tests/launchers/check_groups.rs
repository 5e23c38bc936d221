//! Wrong uses of windows, topologies and communicators between groups are reported; right ones are not.

use nix::sys::signal::Signal;
use sdm_tests::place::Place;
use sdm_tests::processes::signal;
use sdm_tests::sdm::Done;

use super::check::{checked, errors};
use super::check_matching::ranks_at;
use super::chosen::{LAUNCHERS, chosen};

const SOURCE: &str = "mpi_groups.c";

/// The errors in `mpi_groups.c` after which it goes on: the function, the number, a part of the line, and the ranks.
const WRONG: [(&str, u32, &str, &str); 24] = [
    (
        "beyond_the_window",
        604,
        "MPI_Put(others, 4, MPI_INT, 1, 6",
        "0",
    ),
    (
        "before_the_window",
        604,
        "MPI_Get(others, 1, MPI_INT, 1, -1",
        "0",
    ),
    (
        "fence_while_locked",
        602,
        "MPI_Win_fence(MPI_MODE_NOPRECEDE |",
        "0-1-2-3",
    ),
    (
        "lock_within_fences",
        602,
        "MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, made)",
        "0-1-2-3",
    ),
    (
        "other_type_between",
        502,
        "MPI_Send(numbers, 1, MPI_INT, 1, 0, copy",
        "0",
    ),
    (
        "other_type_between",
        502,
        "MPI_Recv(others, 1, MPI_FLOAT",
        "3",
    ),
    (
        "lost_between",
        503,
        "MPI_Send(numbers, 1, MPI_INT, 0, 0, made",
        "2",
    ),
    (
        "other_amount_of_neighbours",
        404,
        "MPI_Neighbor_alltoallv(numbers, counts, places, MPI_INT, others, received, from",
        "2-3",
    ),
    (
        "other_type_of_neighbours",
        404,
        "rank == 1 ? MPI_FLOAT : MPI_INT, others",
        "0-1-2",
    ),
    ("other_edges", 406, "rank == 3 ? wrong : edges", "0-1-2-3"),
    (
        "other_assertion",
        406,
        "rank ? 0 : MPI_MODE_NOPRECEDE",
        "0-1-2-3",
    ),
    ("other_periods", 406, "periods, 0, &torn", "0-1-2-3"),
    (
        "ready_too_early",
        505,
        "MPI_Rsend(numbers, 1, MPI_INT, 1, 30",
        "0",
    ),
    ("repeated", 403, "rank == 3 ? MPI_MIN", "0-1-2-3"),
    ("repeated", 403, "rank == 2 ? MPI_SUM", "0-1-2-3"),
    (
        "several_in_order",
        502,
        "MPI_Send(numbers, 1, MPI_INT, 1, 40",
        "0",
    ),
    (
        "several_in_order",
        502,
        "MPI_Send(numbers, 2, MPI_INT, 1, 40",
        "0",
    ),
    ("several_in_order", 502, "MPI_Recv(reals, 1", "1"),
    ("several_in_order", 502, "MPI_Recv(reals, 2", "1"),
    (
        "several_in_order",
        503,
        "MPI_Send(numbers + 1, 1, MPI_INT, 1, 40",
        "0",
    ),
    (
        "several_in_order",
        503,
        "MPI_Send(numbers + 2, 1, MPI_INT, 1, 40",
        "0",
    ),
    ("changed_at_once", 204, "MPI_Waitall(2, both", "0"),
    ("other_datatypes", 204, "MPI_Wait(&whole", "0-1-2-3"),
    // Its request may be that of all that is complete at once, so it comes last.
    (
        "leaks_one_of_two",
        308,
        "MPI_Isend(numbers, 1, MPI_INT, 1, 47",
        "0",
    ),
];

fn run(place: &Place, launcher: &str, names: &[&str]) -> Done {
    let program = place.path().join("mpi_groups");
    let sdm = checked(place, launcher, 4, &["--check", "--batch"]);
    sdm.program(&program, names).finish()
}

#[test]
fn window_intercommunicator_and_topology_errors_are_reported() {
    for (launcher, compiler) in chosen(
        window_intercommunicator_and_topology_errors_are_reported,
        &LAUNCHERS,
    ) {
        let place = Place::new();
        let _program = place.compile("mpi_groups", compiler);
        let mut names: Vec<_> = WRONG.iter().map(|(name, ..)| *name).collect();
        names.dedup();
        let done = run(&place, launcher, &names).code(119);
        let told = errors(&place, &done);
        for (name, number, text, by) in WRONG {
            let at = format!("{SOURCE}:{}", Place::line(SOURCE, text));
            let found = ranks_at(&told, number, &at);
            assert_eq!(found, by, "M{number} of {name} in {told:#?} {done}");
        }
        let says = |what: &str| told.iter().any(|(text, _)| text.contains(what));
        for what in [
            "bytes 24 to 39 of the window of rank 1, which has 32",
            "was received as 1 MPI_INT by MPI_Neighbor_alltoallv",
            "periods 4, 0 at 0-2; MPI_Cart_create with dimensions and periods 4, 1 at 3",
            "to 1 with tag 30, was over before its receive began",
        ] {
            assert!(says(what), "no {what} in {told:#?}");
        }
        let numbers: Vec<_> = WRONG
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

#[test]
fn right_uses_of_windows_and_topologies_cause_no_report() {
    let names = [
        "within_the_window",
        "right_epochs",
        "right_between",
        "right_neighbours",
        "ready_in_time",
        "changes_between_waits",
    ];
    for (launcher, compiler) in chosen(
        right_uses_of_windows_and_topologies_cause_no_report,
        &LAUNCHERS,
    ) {
        let place = Place::new();
        let _program = place.compile("mpi_groups", compiler);
        let done = run(&place, launcher, &names).code(0);
        assert_eq!(errors(&place, &done), [], "{done}");
    }
}

#[test]
fn other_call_between_intercommunicator_groups_is_reported() {
    for (launcher, compiler) in chosen(
        other_call_between_intercommunicator_groups_is_reported,
        &LAUNCHERS,
    ) {
        let place = Place::new();
        let program = place.compile("mpi_groups", compiler);
        let running = checked(&place, launcher, 4, &["--check", "--batch"])
            .program(&program, &["other_call_between"])
            .spawn();
        running
            .out
            .wait(0, "call 1 of a communicator: ranks differ: MPI_");
        signal(running.pid(), Signal::SIGUSR1);
        let done = running.finish().code(120);
        let told = errors(&place, &done);
        let is_it = |(what, _): &(String, String)| what.contains("M401 MPI_");
        assert!(
            !told.is_empty() && told.iter().all(is_it),
            "{told:#?} {done}"
        );
    }
}

/// Operations that are under way in a freed window can abort the job.
#[test]
fn window_freed_within_fences_is_reported() {
    let place = Place::new();
    let _program = place.compile("mpi_groups", LAUNCHERS[0].1);
    let done = run(&place, LAUNCHERS[0].0, &["no_last_fence"]).code(119);
    let told = errors(&place, &done);
    let at = format!("{SOURCE}:{}", Place::line(SOURCE, "MPI_Win_free(&gone)"));
    assert_eq!(ranks_at(&told, 602, &at), "0-1-2-3", "{told:#?} {done}");
}
