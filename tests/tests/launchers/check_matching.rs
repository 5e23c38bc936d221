//! Messages, collective calls and accesses to windows that do not fit each other are reported; right ones are not.

use nix::sys::signal::Signal;
use sdm_tests::place::Place;
use sdm_tests::processes::signal;
use sdm_tests::sdm::Done;

use super::check::{checked, errors};
use super::chosen::{LAUNCHERS, chosen};

const SOURCE: &str = "mpi_matching.c";

/// The errors in `mpi_matching.c` after which it goes on: the function, the number, a part of the line, and the ranks.
const WRONG: [(&str, u32, &str, &str); 26] = [
    ("other_type", 502, "MPI_Send(numbers, 2, MPI_INT, 1, 1", "0"),
    (
        "other_type",
        502,
        "MPI_Recv(reals, 1, MPI_DOUBLE, 0, 1",
        "1",
    ),
    (
        "other_type_of_any",
        502,
        "MPI_Irecv(numbers, 4, MPI_UNSIGNED",
        "0-1",
    ),
    ("other_type_of_any", 502, "MPI_Send(numbers + 8", "0-1"),
    (
        "never_received",
        503,
        "MPI_Send(numbers, 1, MPI_INT, 1, 3",
        "0",
    ),
    (
        "race_of_sources",
        504,
        "MPI_Recv(others + 1, 1, MPI_INT, MPI_ANY_SOURCE, 18",
        "0",
    ),
    (
        "bytes_for_a_structure",
        502,
        "MPI_Send(numbers, 12, MPI_BYTE",
        "0",
    ),
    ("bytes_for_a_structure", 502, "MPI_Recv(reals, 2, both", "1"),
    ("no_operand", 111, "MPI_BYTE, MPI_SUM", "0-1"),
    ("negative_color", 113, "MPI_Comm_split(world, -5", "0-1"),
    (
        "changed",
        204,
        "MPI_Wait(&request, MPI_STATUS_IGNORE);\n}\nstatic void overlaps_collective",
        "0-1",
    ),
    ("overlaps_collective", 201, "MPI_Sendrecv(others, 2", "0-1"),
    ("overlaps_persistent", 201, "MPI_Send(others + 3", "0-1"),
    (
        "no_epoch",
        601,
        "MPI_Put(others, 1, MPI_INT, other, 0, 1, MPI_INT, made);\n    MPI_Win_free",
        "0-1",
    ),
    ("not_locked", 602, "MPI_Win_unlock(0, made)", "0-1"),
    (
        "puts_between_fences",
        603,
        "MPI_Put(others, 1, MPI_INT, 0, 3",
        "0-1",
    ),
    (
        "put_beside_get",
        603,
        "MPI_Put(others, 2, MPI_INT, 1, 5",
        "0",
    ),
    (
        "put_beside_get",
        603,
        "MPI_Get(others, 1, MPI_INT, 1, 6",
        "1",
    ),
    (
        "puts_of_one",
        603,
        "MPI_Put(others + 1, 2, MPI_INT, other, 7",
        "0-1",
    ),
    (
        "puts_under_shared_locks",
        603,
        "MPI_Put(others, 1, MPI_INT, 1, 10",
        "0-1",
    ),
    (
        "result_is_sent",
        201,
        "MPI_Put(others, 1, MPI_INT, other, 12",
        "0-1",
    ),
    (
        "origin_changes",
        204,
        "MPI_Win_flush_local_all(made)",
        "0-1",
    ),
    (
        "lost_of_two",
        503,
        "MPI_Send(numbers + 1, 1, MPI_INT, 1, 24",
        "0",
    ),
    ("too_long", 501, "MPI_Send(numbers, 4, MPI_INT, 1, 23", "0"),
    ("too_long", 501, "MPI_Recv(others, 2, MPI_INT, 0, 23", "1"),
    ("other_amounts", 404, "MPI_Gatherv(numbers, 1", "0-1"),
];

/// Number of the line of the fixture in which the text begins.
fn line(text: &str) -> usize {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let source = std::fs::read_to_string(path.join("fixtures").join(SOURCE)).expect("a fixture");
    let at = source.find(text).unwrap_or_else(|| panic!("no {text:?}"));
    source[..at].matches('\n').count() + 1
}

/// The ranks that report this error at this line of a file: as `0-1-2`.
pub(super) fn ranks_at(told: &[(String, String)], number: u32, at: &str) -> String {
    let start = format!("MPI check: M{number} ");
    let is_it = |what: &str| what.starts_with(&start) && has(what, at);
    let by = told.iter().filter(|(what, _)| is_it(what));
    let mut all: Vec<u32> = by.flat_map(|(_, by)| expand(by)).collect();
    all.sort_unstable();
    let all: Vec<_> = all.iter().map(u32::to_string).collect();
    all.join("-")
}

fn expand(set: &str) -> Vec<u32> {
    let set: sdm_idset::IdSet = set.parse().expect("a set");
    set.iter().map(|task| task.0).collect()
}

fn ranks(told: &[(String, String)], number: u32, line: usize) -> String {
    ranks_at(told, number, &format!("{SOURCE}:{line}"))
}

fn has(what: &str, at: &str) -> bool {
    what.match_indices(at).any(|(found, _)| {
        let behind = what[found + at.len()..].chars().next();
        !behind.is_some_and(|c| c.is_ascii_digit())
    })
}

fn run(place: &Place, launcher: &str, how: &[&str], names: &[&str]) -> Done {
    let mut all = vec!["--check", "--batch"];
    all.extend(how);
    let program = place.path().join("mpi_matching");
    checked(place, launcher, 2, &all)
        .program(&program, names)
        .finish()
}

#[test]
fn reduce_scatter_with_different_counts_is_reported() {
    for (launcher, compiler) in chosen(reduce_scatter_with_different_counts_is_reported, &LAUNCHERS)
    {
        let place = Place::new();
        let _program = place.compile("mpi_matching", compiler);
        // MPI may refuse what comes next, or wait for more.
        let done = run(&place, launcher, &[], &["other_parts"]);
        let told = errors(&place, &done);
        let at = line("MPI_Reduce_scatter(numbers");
        assert!(!ranks(&told, 404, at).is_empty(), "{told:#?} {done}");
        let counts = ["recvcounts 1, 3 at 0", "recvcounts 2, 2 at 1"];
        let has_both = |(what, _): &(String, String)| counts.iter().all(|it| what.contains(it));
        assert!(told.iter().any(has_both), "{told:#?} {done}");
    }
}

#[test]
fn message_and_window_errors_are_reported_by_their_ranks() {
    for (launcher, compiler) in chosen(
        message_and_window_errors_are_reported_by_their_ranks,
        &LAUNCHERS,
    ) {
        let place = Place::new();
        let _program = place.compile("mpi_matching", compiler);
        let mut names: Vec<_> = WRONG.iter().map(|(name, ..)| *name).collect();
        names.dedup();
        let done = run(&place, launcher, &[], &names).code(119);
        let told = errors(&place, &done);
        for (name, number, text, by) in WRONG {
            let found = ranks(&told, number, line(text));
            assert_eq!(found, by, "M{number} of {name} in {told:#?} {done}");
        }
        let says = |what: &str| told.iter().any(|(text, _)| text.contains(what));
        for what in [
            "was sent as 2 MPI_INT by MPI_Send",
            "was received as 1 MPI_DOUBLE by MPI_Recv",
            "has got a message of 1, and could have got that of 0 with tag 18, for which MPI_Recv at mpi_matching.c:",
            "MPI_SUM is not defined for MPI_BYTE",
            "uses bytes 24-27 of rank 1's window, and so does MPI_Get of rank 1, between the same fences",
            "uses bytes 32-35 of rank 0's window, and so does MPI_Put at mpi_matching.c:",
            "M503 MPI_Finalize: MPI_Send of 1 MPI_INT at mpi_matching.c:",
            "to 1 with tag 3, was never received",
        ] {
            assert!(says(what), "no {what} in {told:#?}");
        }
        let numbers: Vec<_> = WRONG
            .iter()
            .map(|(_, number, ..)| format!("M{number} "))
            .collect();
        for (what, _) in &told {
            assert!(
                numbers.iter().any(|number| what.contains(number)),
                "{what} {done}"
            );
        }
    }
}

#[test]
fn fatal_errors_are_reported_before_the_job_ends() {
    for (launcher, compiler) in chosen(fatal_errors_are_reported_before_the_job_ends, &LAUNCHERS) {
        for (name, number, text, by, says) in [
            (
                "truncated",
                501,
                "MPI_Recv(others, 2, MPI_INT, 0, 7",
                "1",
                " from 0 with tag 7 is longer than the receive buffer: 2 MPI_INT, 8 bytes",
            ),
            (
                "truncated_request",
                501,
                "/* too long */",
                "1",
                " is longer than the receive buffer of MPI_Irecv at mpi_matching.c:",
            ),
            (
                "truncated_among_others",
                501,
                "MPI_Waitall(2, both, MPI_STATUSES_IGNORE); /* one too long */",
                "1",
                " is longer than the receive buffer of MPI_Irecv at mpi_matching.c:",
            ),
            (
                "refused",
                112,
                "MPI_Group_range_incl(all, 1, far",
                "",
                "MPI refuses the call: ",
            ),
        ] {
            let place = Place::new();
            let _program = place.compile("mpi_matching", compiler);
            let done = run(&place, launcher, &[], &[name]);
            let told = errors(&place, &done);
            let found = ranks(&told, number, line(text));
            // The first that ends ends the others.
            let fits = if by.is_empty() {
                !found.is_empty()
            } else {
                found == by
            };
            assert!(fits, "{name} by {found} in {told:#?} {done}");
            assert_eq!(told.len(), 1, "{told:#?} {done}");
            assert!(told[0].0.contains(says), "no {says} in {told:#?} {done}");
        }
    }
}

/// The run ends by itself if a hang is proved. A hang in the collective calls of a file is not: there the test sends
/// the signal of a near time limit, once the error was reported.
#[test]
fn collectives_in_another_order_are_reported_before_they_hang() {
    for (launcher, compiler) in chosen(
        collectives_in_another_order_are_reported_before_they_hang,
        &LAUNCHERS,
    ) {
        let place = Place::new();
        let program = place.compile("mpi_matching", compiler);
        for (name, is_proved, says) in [
            (
                "other_order",
                true,
                "call 2 of MPI_COMM_WORLD: ranks differ: MPI_Barrier at 0; MPI_Allreduce at 1",
            ),
            (
                "file_by_one",
                false,
                "call 1 of a file: ranks differ: MPI_File_sync at 0; MPI_File_set_size at 1",
            ),
        ] {
            let running = checked(&place, launcher, 2, &["--check", "--batch"])
                .program(&program, &[name])
                .spawn();
            let ends = if is_proved {
                "the program cannot go on"
            } else {
                running.out.wait(0, says);
                signal(running.pid(), Signal::SIGUSR1);
                "SIGUSR1 was received: the time limit is near"
            };
            let done = running.finish().code(120);
            let ends = format!("session ended: {ends}\n");
            assert!(done.out.contains(&ends), "{done}");
            let told = errors(&place, &done);
            assert_eq!(told.len(), 1, "{told:#?} {done}");
            assert!(told[0].0.contains("M401 "), "{told:#?} {done}");
            assert!(told[0].0.contains(says), "{told:#?} {done}");
        }
    }
}

#[test]
fn accesses_in_a_program_with_threads_are_checked() {
    for (launcher, compiler) in chosen(accesses_in_a_program_with_threads_are_checked, &LAUNCHERS) {
        let place = Place::new();
        let _program = place.compile("mpi_matching", compiler);
        let done = run(&place, launcher, &[], &["threads", "origin_changes"]).code(119);
        let told = errors(&place, &done);
        let found = ranks(&told, 204, line("MPI_Win_flush_local_all(made)"));
        assert_eq!((told.len(), &*found), (1, "0-1"), "{told:#?} {done}");
        let done = run(&place, launcher, &[], &["threads", "epochs", "accesses"]).code(0);
        assert_eq!(errors(&place, &done), [], "{done}");
    }
}

#[test]
fn matching_calls_cause_no_report() {
    let names = [
        "same_signatures",
        "packed",
        "out_of_order",
        "not_started_beside",
        "freed_communicator",
        "sources_in_order",
        "epochs",
        "accesses",
        "parts",
        "handlers",
    ];
    for (launcher, compiler) in chosen(matching_calls_cause_no_report, &LAUNCHERS) {
        let place = Place::new();
        let _program = place.compile("mpi_matching", compiler);
        // Behind a message that is given up nothing is known of others.
        for all in [&names[..], &["cancelled", "out_of_order", "other_type"]] {
            let done = run(&place, launcher, &[], all).code(0);
            assert_eq!(errors(&place, &done), [], "{done}");
        }
    }
}
