//! Tests of ranks that have legitimately left or passed an operation in which others still wait.

use sdm_debug::probe::ArgumentRole as R;

use super::doubts::check_named;
use super::*;

/// One rank expects one message more than its neighbour sends. A reduction and the end of the program wait
/// for that rank.
#[test]
fn rank_past_a_reduction_is_not_blamed() {
    let at_end = "main:80 MPI_Finalize:32";
    let reducing = "main:80 MPI_Reduce:30";
    let exchanging = "main:80 halo:17 MPI_Sendrecv:17";
    let look: Look<'_> = &[
        ("1,3-5,7", at_end, "", ""),
        ("0,2", reducing, "", ""),
        ("6", exchanging, "", ""),
    ];
    let mut seen = observed(&[look, look]);
    call(&mut seen, "1,3-5,7", "MPI_Finalize", &[]);
    let arguments = [(R::Count, "1"), (R::Root, "0"), WORLD];
    call(&mut seen, "0,2", "MPI_Reduce", &arguments);
    let both = [(R::Destination, "7"), (R::Source, "5"), WORLD];
    call(&mut seen, "6", "MPI_Sendrecv", &both);
    let said = "to or from ranks 5,7, which are in MPI_Finalize";
    check(&seen, Step::CannotGoOn, "6", said);
    // Without the arguments of rank 6, a mismatch of operations is not proved either.
    let look: Look<'_> = &[
        ("1,3-5,7", at_end, "", ""),
        ("0,2", reducing, "", ""),
        ("6", "main:80 halo:17 MPI_Waitany:17", "", ""),
    ];
    let mut seen = observed(&[look, look]);
    call(&mut seen, "1,3-5,7", "MPI_Finalize", &[]);
    call(&mut seen, "0,2", "MPI_Reduce", &arguments);
    let found = judge(&seen);
    assert!(!found.conclusion.contains("different"), "{found:#?}");
    assert!(!found.suspects.contains(TaskId(0)), "{found:#?}");
    // A rank that two others wait for has omitted a message.
    let look: Look<'_> = &[
        ("1,3-7", at_end, "", ""),
        ("0,2", "main:80 MPI_Recv:80", "", ""),
    ];
    let mut seen = observed(&[look, look]);
    call(&mut seen, "1,3-7", "MPI_Finalize", &[]);
    receive(&mut seen, "0,2", "7");
    check(
        &seen,
        Step::CannotGoOn,
        "7",
        "other ranks wait for a message to or from rank 7",
    );
}

/// A root waits for one rank that computes. The other ranks have sent their data, and wait for the root's next call.
#[test]
fn rank_past_a_reduction_does_not_delay_its_root() {
    let look: Look<'_> = &[
        ("0", "main:80 reduce:1 MPI_Reduce:1", "", ""),
        ("1,3", "main:80 bcast:2 MPI_Bcast:2", "", ""),
        ("2", "main:80 compute:9", "", ""),
    ];
    let later: Look<'_> = &[look[0], look[1], ("2", "main:80 compute:9", "x", "")];
    let mut seen = observed(&[look, later, look]);
    let rooted = [(ArgumentRole::Root, "0"), WORLD];
    call(&mut seen, "0", "MPI_Reduce", &rooted);
    call(&mut seen, "1,3", "MPI_Bcast", &rooted);
    check(&seen, Step::HeldUp, "2", "while it computes");
}

/// A root is past its broadcast and waits for ranks that are still in it. One of these is delayed by the rank in
/// between, which computes.
#[test]
fn root_past_its_broadcast_does_not_delay_ranks_in_it() {
    let look: Look<'_> = &[
        ("0", "main:80 collect:1 MPI_Recv:1", "", ""),
        ("1,3", "main:80 bcast:2 MPI_Bcast:2", "", ""),
        ("2", "main:80 compute:9", "", ""),
    ];
    let later: Look<'_> = &[look[0], look[1], ("2", "main:80 compute:9", "x", "")];
    let mut seen = observed(&[look, later, look]);
    receive(&mut seen, "0", "3");
    call(
        &mut seen,
        "1,3",
        "MPI_Bcast",
        &[(ArgumentRole::Root, "0"), WORLD],
    );
    check(&seen, Step::HeldUp, "2", "while it computes");
    // Without a late rank there is a cycle.
    let nobody: Look<'_> = &[look[0], ("1-3", look[1].1, "", "")];
    let mut seen = observed(&[nobody, nobody]);
    receive(&mut seen, "0", "3");
    call(
        &mut seen,
        "1-3",
        "MPI_Bcast",
        &[(ArgumentRole::Root, "0"), WORLD],
    );
    check(
        &seen,
        Step::Deadlock,
        "0,3",
        "rank 0 waits for rank 3, which waits for rank 0 in MPI_Bcast",
    );
}

/// Ranks leave `MPI_Init` one by one. A rank that is still in it needs nothing more of ranks that have left it.
#[test]
fn rank_in_mpi_init_holds_up_ranks_that_have_left_it() {
    let init = "main:1 MPI_Init:1";
    let barrier = "main:2 MPI_Barrier:2";
    let receives = "main:3 MPI_Recv:3";
    let look: Look<'_> = &[
        ("0", barrier, "", ""),
        ("1", init, "", ""),
        ("2", receives, "", ""),
    ];
    let mut seen = observed(&[look, look]);
    call(&mut seen, "0", "MPI_Barrier", &[WORLD]);
    receive(&mut seen, "2", "1");
    let part = "the other ranks wait for it, which is still in MPI_Init";
    check(&seen, Step::HeldUp, "1", part);
    // Its start needs all ranks while none has left it.
    let look: Look<'_> = &[("0-2", init, "", "")];
    let seen = observed(&[look, look]);
    let part = "all observed ranks are still in MPI_Init";
    check(&seen, Step::CannotTell, "", part);
}

/// Beside a load a rank can get no processor time. Its stack still shows where it is.
#[test]
fn rank_without_processor_time_is_shown_at_its_place() {
    let look: Look<'_> = &[
        ("0", "main:2 MPI_Barrier:2", "", ""),
        ("1", "main:1 MPI_Init:1", "", ""),
    ];
    let mut seen = observed(&[look, look]);
    seen.samples[1].marks.starved = set("1");
    let found = judge(&seen);
    let mut findings = found.findings.iter();
    let starved = findings.find(|one| one.tasks == set("1")).unwrap();
    let place = "last seen in MPI_Init, called from main () at halo.c:1";
    assert_eq!(starved.evidence, [place]);
}

/// Rank 3 has its data of root 1 and hands the rest on to rank 0, which names itself.
#[test]
fn rank_that_hands_on_data_of_its_root_is_not_blamed() {
    let look: Look<'_> = &[
        ("0", "main:5 MPI_Scatter:5", "", ""),
        ("3", "main:5 MPI_Scatter:5", "", ""),
        ("1-2", "main:8 MPI_Barrier:8", "", ""),
    ];
    let mut seen = observed(&[look, look]);
    call(&mut seen, "0", "MPI_Scatter", &[(R::Root, "0"), WORLD]);
    call(&mut seen, "3", "MPI_Scatter", &[(R::Root, "1"), WORLD]);
    call(&mut seen, "1-2", "MPI_Barrier", &[WORLD]);
    let part = "with different roots: 0 and 1";
    check_named(&seen, "", "", part);
    // It lacks no data, so root 1 has sent it.
    call(&mut seen, "3", "MPI_Scatter", &[(R::Root, "1"), WORLD]);
    let waits = &mut seen.samples[1].waits;
    waits.retain(|(tasks, _)| *tasks != set("3"));
    let served = [(R::Root, "1"), WORLD, (R::Target, sdm_mpi::NOTHING)];
    call(&mut seen, "3", "MPI_Scatter", &served);
    check_named(&seen, "0", "0", part);
}

/// Rank 1 has skipped an exchange with a nonblocking barrier. Rank 2 waits for its message there, the others for the
/// barrier.
#[test]
fn rank_waiting_for_one_past_a_barrier_is_not_blamed() {
    let wait = "main:3 MPI_Waitall:3";
    let look: Look<'_> = &[
        ("0,3", wait, "", ""),
        ("1", "main:5 MPI_Allreduce:5", "", ""),
        ("2", wait, "", ""),
    ];
    let mut seen = observed(&[look, look]);
    let barrier = [WORLD, (R::Operation, "MPI_Ibarrier")];
    call(&mut seen, "0,3", "MPI_Waitall", &barrier);
    call(&mut seen, "2", "MPI_Waitall", &[(R::Source, "1"), WORLD]);
    reduce_all(&mut seen, "1");
    let part = "the other ranks wait in MPI_Waitall, which it has not reached";
    check_named(&seen, "1", "1", part);
}

/// Ranks that lack the root's own data, while the root waits in an operation that none leaves early: so no rank is past
/// the broadcast.
#[test]
fn ranks_of_a_broadcast_that_the_root_skips_are_blamed() {
    let seen = |function: &str, awaited: &str| {
        let look: Look<'_> = &[
            ("4-5", "main:9 MPI_Bcast:9", "", ""),
            ("0-3", &format!("main:5 {function}:5"), "", ""),
        ];
        let mut seen = observed(&[look, look]);
        call(&mut seen, "4-5", "MPI_Bcast", &[(R::Root, "0"), WORLD]);
        super::groups::add(&mut seen, "4-5", (R::Target, "its part", awaited));
        call(&mut seen, "0-3", function, &[WORLD]);
        seen
    };
    let part = "different collective operations: MPI_Comm_create and MPI_Bcast";
    check(
        &seen("MPI_Comm_create", "0,4"),
        Step::CannotGoOn,
        "4-5",
        part,
    );
    // Rank 1 hands the data on, and can have skipped it alone. A rank can have left a reduction.
    for (function, awaited) in [("MPI_Comm_create", "1"), ("MPI_Reduce", "0,4")] {
        let part = "(at fault: ranks 4-5, or a rank that skipped that call)";
        check(&seen(function, awaited), Step::CannotGoOn, "", part);
    }
}

/// An operation that creates a file or a communicator needs all ranks, which agree on its number.
#[test]
fn rank_alone_in_a_creating_operation_is_blamed() {
    for function in ["MPI_File_open", "MPI_Graph_create", "MPI_Dist_graph_create"] {
        let look: Look<'_> = &[
            ("0", &format!("main:5 {function}:5"), "", ""),
            ("1-3", "main:9 MPI_Barrier:9", "", ""),
        ];
        let mut seen = observed(&[look, look]);
        call(&mut seen, "0", function, &[WORLD]);
        let (thread, what) = (1, WaitFor::Polling);
        let waits = &mut seen.samples[1].waits[0].1;
        waits.threads.push(ThreadWait { thread, what });
        call(&mut seen, "1-3", "MPI_Barrier", &[WORLD]);
        let part = format!("different collective operations: MPI_Barrier and {function}");
        check(&seen, Step::CannotGoOn, "0", &part);
    }
}

/// Operations of a file need all ranks of its communicator, and none follows its closing.
#[test]
fn rank_that_closes_a_file_too_early_is_blamed() {
    let seen = |others: &str, contexts: [&str; 2]| {
        let writing = "main:5 MPI_File_write_at_all:5";
        let look: Look<'_> = &[
            (others, writing, "", ""),
            ("2", "main:9 MPI_File_close:9", "", ""),
        ];
        let mut seen = observed(&[look, look]);
        let calls = [(others, "MPI_File_write_at_all"), ("2", "MPI_File_close")];
        for ((tasks, function), context) in calls.into_iter().zip(contexts) {
            call(&mut seen, tasks, function, &[(R::Context, context)]);
            super::groups::add(&mut seen, tasks, (R::Communicator, "file", "0-3"));
            let waits = &mut seen.samples[1].waits;
            let its = waits.iter_mut().find(|(of, _)| *of == set(tasks)).unwrap();
            let (thread, what) = (1, WaitFor::Polling);
            its.1.threads.push(ThreadWait { thread, what });
        }
        seen
    };
    let part = "ranks 0-1,3 wait in MPI_File_write_at_all for rank 2, which waits in MPI_File_close of the same file";
    check_named(&seen("0-1,3", ["5", "5"]), "2", "2", part);
    // Of another file nothing is told.
    let other = judge(&seen("0-1,3", ["5", "6"]));
    assert!(!other.conclusion.contains("same file"), "{other:#?}");
}
