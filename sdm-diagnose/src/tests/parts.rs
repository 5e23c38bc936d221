//! Tests of collective operations in which the data of some ranks is missing, and of epochs and messages of ranks that
//! are in another call.

use sdm_debug::probe::ArgumentRole as R;

use super::causes::{BARRIER, check_cause, standing};
use super::doubts::check_named;
use super::groups::add;
use super::*;

/// Rank 0 waits in an operation for the data of the ranks `awaited`. The other ranks are in a barrier.
fn lacking(function: &str, awaited: &str) -> Observed {
    let mut seen = standing(&[
        ("0", &format!("main:4 {function}:4"), "", ""),
        ("1-3", BARRIER, "", ""),
    ]);
    call(&mut seen, "0", function, &[(R::Root, "0"), WORLD]);
    add(&mut seen, "0", (R::Target, "its part", awaited));
    call(&mut seen, "1-3", "MPI_Barrier", &[WORLD]);
    seen
}

#[test]
fn rank_whose_contribution_the_root_lacks_is_blamed() {
    let part = "rank 0 waits in MPI_Gatherv for the data of rank 2, which is in MPI_Barrier";
    check_named(&lacking("MPI_Gatherv", "2"), "2", "2", part);
    // None of the parts has come: the root is alone in its operation.
    let part = "rank 0 waits in MPI_Gatherv for the data of all other ranks, of which 1-3 are in MPI_Barrier";
    check_named(&lacking("MPI_Gatherv", "1-3"), "0", "0", part);
}

/// Ranks 1 and 2 gather with different roots: themselves. The others have sent to rank 1 only.
#[test]
fn rank_that_gathers_alone_is_blamed() {
    let wait = "main:3 MPI_Wait:3";
    let seen = |of_second: &str| {
        let look: Look<'_> = &[
            ("0,3", BARRIER, "", ""),
            ("1", wait, "", ""),
            ("2", wait, "", ""),
        ];
        let mut seen = standing(look);
        call(&mut seen, "0,3", "MPI_Barrier", &[WORLD]);
        let request = [WORLD, (R::Operation, "MPI_Igather")];
        for (rank, lacking) in [("1", "2"), ("2", of_second)] {
            call(&mut seen, rank, "MPI_Wait", &request);
            add(&mut seen, rank, (R::Target, "not received yet", lacking));
        }
        seen
    };
    check_cause(&seen("0-1,3"), Cause::Root, &["2 MPI_Wait"]);
    // A rank has sent its part to rank 2.
    assert_eq!(judge(&seen("0-1")).suspects, set(""));
}

/// Rank 2 can have passed on the data of the other ranks to the root that they name.
#[test]
fn rank_that_forwards_contributions_is_not_blamed() {
    for function in ["MPI_Gather", "MPI_Reduce"] {
        let part = "(at fault: rank 0, or a rank that skipped that call)";
        check_named(&lacking(function, "2"), "", "", part);
    }
}

#[test]
fn missing_alltoallv_part_is_reported_as_unequal_counts() {
    let seen = lacking("MPI_Alltoallv", "2");
    check_named(
        &seen,
        "",
        "0,2",
        "the counts of rank 2 and of rank 0 differ",
    );
    assert_eq!(judge(&seen).cause, Cause::Count);
}

/// Ranks wait for the request of an operation, in which they lack the data of a rank that is elsewhere.
#[test]
fn rank_that_skips_nonblocking_collective_is_blamed() {
    let seen =
        |operation: &str, (waiting, awaited): ([&str; 2], [&str; 2]), missing: &str, then: &str| {
            let frame = format!("main:9 {then}:9");
            let wait = "main:3 MPI_Wait:3";
            let mut seen = standing(&[
                (waiting[0], wait, "", ""),
                (waiting[1], wait, "", ""),
                (missing, &frame, "", ""),
            ]);
            for (who, awaited) in waiting.into_iter().zip(awaited) {
                let arguments = [WORLD, (R::Operation, operation)];
                call(&mut seen, who, "MPI_Wait", &arguments);
                add(&mut seen, who, (R::Target, "its part", awaited));
            }
            call(&mut seen, missing, then, &[WORLD]);
            seen
        };
    let neighbors = seen(
        "MPI_Ineighbor_allgather",
        (["0", "2"], ["1", "1"]),
        "1,3-4",
        "MPI_Barrier",
    );
    let part = "ranks 0,2 wait in MPI_Wait for MPI_Ineighbor_allgather for the data of rank 1, which skipped that call";
    check_named(&neighbors, "1", "1", part);
    // Rank 3 gets its part by rank 0.
    let root = seen(
        "MPI_Iscatter",
        (["0,2", "3"], ["1", "0"]),
        "1",
        "MPI_Finalize",
    );
    check_named(
        &root,
        "1",
        "1",
        "while other ranks wait for it in MPI_Wait for MPI_Iscatter",
    );
}

/// Ranks 1 and 3 have left the gather that rank 0 is still in. Rank 2 is alone in its operation.
#[test]
fn lone_rank_in_another_collective_is_blamed_despite_a_gather() {
    let mut seen = standing(&[
        ("0", "main:4 MPI_Gather:4", "", ""),
        ("1,3", BARRIER, "", ""),
        ("2", "main:5 MPI_Allgather:5", "", ""),
    ]);
    call(&mut seen, "0", "MPI_Gather", &[(R::Root, "0"), WORLD]);
    call(&mut seen, "1,3", "MPI_Barrier", &[WORLD]);
    call(&mut seen, "2", "MPI_Allgather", &[WORLD]);
    check_named(&seen, "2", "2", "MPI_Barrier and MPI_Allgather");
}

#[test]
fn rank_in_an_extra_window_fence_is_blamed() {
    let mut seen = standing(&[
        ("0-1,3", BARRIER, "", ""),
        ("2", "main:5 MPI_Win_fence:5", "", ""),
    ]);
    call(&mut seen, "0-1,3", "MPI_Barrier", &[WORLD]);
    call(&mut seen, "2", "MPI_Win_fence", &[]);
    add(&mut seen, "2", (R::Window, "w", "0-3"));
    check_named(&seen, "2", "2", "MPI_Barrier and MPI_Win_fence");
}

/// Rank 0 waits for the epoch of rank 1, which has posted an epoch for rank 2 only.
#[test]
fn origin_and_target_with_unmatched_groups_are_named() {
    let mut seen = standing(&[
        ("0", "main:4 MPI_Win_complete:4", "", ""),
        ("1", "main:6 MPI_Win_wait:6", "", ""),
        ("2", "main:9 MPI_Win_free:9", "", ""),
    ]);
    call(&mut seen, "0", "MPI_Win_complete", &[]);
    add(&mut seen, "0", (R::Access, "77", "1"));
    call(&mut seen, "1", "MPI_Win_wait", &[]);
    add(&mut seen, "1", (R::Exposure, "77", "2"));
    call(&mut seen, "2", "MPI_Win_free", &[]);
    check_cause(&seen, Cause::Rma, &["0 MPI_Win_complete", "1 MPI_Win_wait"]);
}

/// Rank 0 is the root of an operation with the group of ranks 2-3, which name rank 1 as root. Rank 1 takes no part in
/// it.
#[test]
fn intercommunicator_ranks_naming_two_roots_are_named() {
    let place = "main:4 MPI_Bcast:4";
    let mut seen = standing(&[
        ("0", place, "", ""),
        ("2-3", place, "", ""),
        ("1", BARRIER, "", ""),
    ]);
    for (who, root) in [("0", "-3"), ("2-3", "1")] {
        let arguments = [(R::Communicator, "inter"), (R::Root, root)];
        call(&mut seen, who, "MPI_Bcast", &arguments);
        super::groups::within(&mut seen, who, "0-3");
    }
    call(&mut seen, "1", "MPI_Barrier", &[WORLD]);
    let part = "ranks 2-3 wait in MPI_Bcast for root 1 of the other group, but in that group rank 0 is the root (MPI_ROOT)";
    check_named(&seen, "", "0,2-3", part);
    assert_eq!(judge(&seen).cause, Cause::Root);
}

/// Rank 0 has sent its data to rank 1, and waits for the data of rank 3.
#[test]
fn pending_receive_of_a_sendrecv_names_its_sender() {
    let seen = |more: &[(R, &str)]| {
        let place = "main:4 MPI_Sendrecv:4";
        let mut seen = standing(&[("0", place, "", ""), ("1-3", BARRIER, "", "")]);
        let both = [(R::Destination, "1"), (R::Source, "3"), WORLD];
        let arguments = [&both[..], more].concat();
        call(&mut seen, "0", "MPI_Sendrecv", &arguments);
        call(&mut seen, "1-3", "MPI_Barrier", &[WORLD]);
        seen
    };
    let pending = seen(&[(R::Source, sdm_mpi::PENDING)]);
    let part = "rank 0 waits for rank 3, which waits for rank 0 in MPI_Barrier; one of these two ranks is wrong";
    check_named(&pending, "0,3", "0,3", part);
    let lines = judge(&pending).findings;
    let mut lines = lines.iter().flat_map(|one| &one.evidence);
    assert!(lines.any(|line| line.contains("its receive is pending")));
    // Where that is unknown, either message may be the missing one.
    assert!(!judge(&seen(&[])).conclusion.contains("one of these two"));
}

/// Rank 1 waits for rank 0, which waits for a message of an unknown rank. That need not be rank 2.
#[test]
fn rank_in_a_barrier_is_not_named_sender_of_unknown_message() {
    let mut seen = standing(&[
        ("0", "main:4 MPI_Wait:4", "", ""),
        ("1", "main:4 MPI_Recv:4", "", ""),
        ("2", BARRIER, "", ""),
    ]);
    call(&mut seen, "0", "MPI_Wait", &[]);
    receive(&mut seen, "1", "0");
    call(&mut seen, "2", "MPI_Barrier", &[WORLD]);
    check_named(&seen, "", "", "which rank left out its send or receive");
}

/// Ranks 4 and 5 wait in a broadcast for the data of ranks that are elsewhere. If the root had sent its data, the rank
/// that has not passed it on would have it.
#[test]
fn ranks_in_a_broadcast_that_its_root_skipped_are_blamed() {
    let seen = |arrived: [&str; 2]| {
        let mut seen = standing(&[
            ("0-3", "main:4 MPI_Comm_create:4", "", ""),
            ("4-5", "main:5 MPI_Bcast:5", "", ""),
        ]);
        for (who, tags) in ["0-2", "3"].into_iter().zip(arrived) {
            call(&mut seen, who, "MPI_Comm_create", &[WORLD]);
            add(&mut seen, who, (R::Tag, sdm_mpi::ARRIVED_TAGS, tags));
        }
        for (who, lacking) in [("4", "2"), ("5", "1")] {
            call(&mut seen, who, "MPI_Bcast", &[(R::Root, "0"), WORLD]);
            add(&mut seen, who, (R::Target, "not received yet", lacking));
            add(&mut seen, who, (R::Tag, sdm_mpi::AWAITED_TAGS, "-17"));
        }
        seen
    };
    let part = "different collective operations: MPI_Comm_create and MPI_Bcast";
    check_named(&seen(["none", "-12"]), "4-5", "4-5", part);
    // The root has sent, or nothing is known of rank 3.
    check_named(&seen(["none", "-12 -17"]), "", "", part);
    let mut unknown = seen(["none", "none"]);
    let waits = &mut unknown.samples.last_mut().unwrap().waits;
    let its = waits.iter_mut().find(|(who, _)| *who == set("3"));
    its.unwrap().1.call.as_mut().unwrap().arguments.pop();
    check_named(&unknown, "", "", part);
    let found = judge(&seen(["none", "none"]));
    let mut evidence = found.findings.iter().flat_map(|one| &one.evidence);
    assert!(evidence.all(|line| !line.contains("-17")), "{found:#?}");
}

/// Ranks 0 and 4 are still in the operation, with another root than rank 2.
#[test]
fn rank_that_gathers_alone_names_another_root() {
    let mut seen = standing(&[
        ("0,2,4", "main:4 MPI_Gatherv:4", "", ""),
        ("1,3", "main:9 MPI_Finalize:9", "", ""),
    ]);
    for (who, root, lacking) in [("0,4", "0", "2"), ("2", "2", "0-1,3-4")] {
        call(&mut seen, who, "MPI_Gatherv", &[(R::Root, root), WORLD]);
        add(&mut seen, who, (R::Target, "not received yet", lacking));
    }
    call(&mut seen, "1,3", "MPI_Finalize", &[]);
    check_cause(&seen, Cause::Root, &["2 MPI_Gatherv"]);
}

/// Rank 3 names root 1. The data that root 0 has sent to it is in no other rank's memory.
#[test]
fn rank_with_another_root_is_not_told_as_a_call_too_many() {
    let mut seen = standing(&[
        ("0-2", BARRIER, "", ""),
        ("3", "main:5 MPI_Scatterv:5", "", ""),
    ]);
    call(&mut seen, "0-2", "MPI_Barrier", &[WORLD]);
    add(&mut seen, "0-2", (R::Tag, sdm_mpi::ARRIVED_TAGS, "none"));
    call(&mut seen, "3", "MPI_Scatterv", &[(R::Root, "1"), WORLD]);
    add(&mut seen, "3", (R::Target, "not received yet", "1"));
    add(&mut seen, "3", (R::Tag, sdm_mpi::AWAITED_TAGS, "-25"));
    check_cause(&seen, Cause::Root, &["3 MPI_Scatterv"]);
}

/// The data of a root goes through ranks between it and the others.
#[test]
fn rank_between_the_root_and_others_is_named_as_such() {
    for (root, words) in [
        ("0", "for the data of 0 (not received yet)"),
        ("3", "for the root's data through 0 (not received yet)"),
    ] {
        let mut seen = standing(&[
            ("2", "main:5 MPI_Bcast:5", "", ""),
            ("0-1,3", BARRIER, "", ""),
        ]);
        call(&mut seen, "2", "MPI_Bcast", &[(R::Root, root), WORLD]);
        add(&mut seen, "2", (R::Target, "not received yet", "0"));
        call(&mut seen, "0-1,3", "MPI_Barrier", &[WORLD]);
        let told = judge(&seen).findings.into_iter().flat_map(|it| it.evidence);
        let told: Vec<String> = told.collect();
        assert!(told.iter().any(|line| line.contains(words)), "{told:#?}");
    }
}
