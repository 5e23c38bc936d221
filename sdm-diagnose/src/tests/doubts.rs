//! Tests of verdicts if the facts do not show which of several ranks is wrong. No rank is blamed alone then, and the
//! text says that one of them is wrong.

use sdm_debug::probe::ArgumentRole as R;

use super::*;

const AT_END: &str = "main:9 MPI_Finalize:9";
const BARRIER: &str = "main:8 MPI_Barrier:8";
const WAIT: &str = "main:3 MPI_Wait:3";

fn standing(look: Look<'_>) -> Observed {
    observed(&[look, look])
}

/// Checks the ranks to blame, and the ranks to which the error is attributed: those to blame, if there are any.
pub(super) fn check_named(seen: &Observed, blamed: &str, between: &str, part: &str) {
    let found = judge(seen);
    let named = IdSet::union_all(found.guilty.iter().map(|one| &one.tasks));
    assert!(found.conclusion.contains(part), "{part}: {found:#?}");
    assert!(found.step.is_proved(), "{found:#?}");
    let sets = (found.suspects.to_string(), named.to_string());
    assert_eq!(sets, (blamed.to_owned(), between.to_owned()), "{found:#?}");
}

/// Rank 2 has received its data of a broadcast and has left. Ranks 0-1 have different roots. A rank has certainly
/// skipped an operation only if no rank can leave it early.
#[test]
fn rank_past_a_nonblocking_broadcast_is_not_blamed() {
    let with = |operations: &[&str]| {
        let mut seen = standing(&[("0-1", WAIT, "", ""), ("2", AT_END, "", "")]);
        let operations = operations.iter().map(|name| (R::Operation, *name));
        let arguments: Vec<_> = [WORLD].into_iter().chain(operations).collect();
        call(&mut seen, "0-1", "MPI_Wait", &arguments);
        call(&mut seen, "2", "MPI_Finalize", &[]);
        seen
    };
    let unknown = "ranks 0-1 wait in MPI_Wait for a nonblocking collective operation, while rank 2 is in MPI_Finalize: rank 2 \
                   skipped that call, or the waiting ranks differ in their arguments; a rank can leave some nonblocking \
                   operations before all ranks have entered them, and the request does not show its operation";
    check_named(&with(&[]), "", "0-2", unknown);
    // Rank 2 may have made all its calls: 0 and 1 can have started the operations in different orders.
    let several = "the waiting ranks have started several operations, perhaps in different orders";
    check_named(&with(&["MPI_Ibarrier", "MPI_Ibcast"]), "", "", several);
    check_named(&with(&["MPI_Ibarrier", "MPI_Iallreduce"]), "", "", several);
    let early = "ranks 0-1 wait in MPI_Wait for MPI_Ireduce, while rank 2 is in \
                 MPI_Finalize: rank 2 skipped that call, or the waiting ranks differ in their arguments; a rank can leave \
                 that operation before all ranks have entered it";
    check_named(&with(&["MPI_Ireduce"]), "", "0-2", early);
    let skipped = "rank 2 is in MPI_Finalize, while other ranks wait for it in MPI_Wait for MPI_Ibarrier, which rank 2 skipped";
    check_named(&with(&["MPI_Ibarrier"]), "2", "2", skipped);
    let found = judge(&with(&["MPI_Ibarrier"]));
    let mut evidence = found.findings.iter().flat_map(|one| &one.evidence);
    assert!(
        evidence.any(|line| line == "for MPI_Ibarrier"),
        "{found:#?}"
    );
}

/// A rank in a barrier can be past a nonblocking operation in which others wait, unless no rank can leave that early.
#[test]
fn rank_in_barrier_is_blamed_for_a_missed_ibarrier_not_ibcast() {
    let with = |operation: &str| {
        let mut seen = standing(&[("0,2", WAIT, "", ""), ("1", BARRIER, "", "")]);
        call(
            &mut seen,
            "0,2",
            "MPI_Wait",
            &[WORLD, (R::Operation, operation)],
        );
        call(&mut seen, "1", "MPI_Barrier", &[WORLD]);
        seen
    };
    let part = "different collective operations: MPI_Ibarrier and MPI_Barrier";
    check_named(&with("MPI_Ibarrier"), "1", "1", part);
    let part = "different collective operations: MPI_Ibcast and MPI_Barrier";
    check_named(&with("MPI_Ibcast"), "", "", part);
}

/// The other side of an epoch may have left out a call, or the rank that waits may have.
#[test]
fn rank_that_waits_in_an_epoch_is_not_blamed_alone() {
    for (call_of_0, end) in [
        ("MPI_Win_wait", "MPI_Finalize"),
        ("MPI_Win_start", "MPI_Barrier"),
        ("MPI_Win_complete", "MPI_Barrier"),
    ] {
        let at = format!("main:5 {call_of_0}:5");
        let rest = format!("main:8 {end}:8");
        // Of several ranks of the other side one or all may be right.
        for (others, named) in [("1", "0-1"), ("1-2", "")] {
            let mut seen = standing(&[("0", &at, "", ""), (others, &rest, "", "")]);
            call(&mut seen, "0", call_of_0, &[]);
            call(&mut seen, others, end, &[WORLD]);
            let part = "either side has left out a call of its epoch";
            check_named(&seen, "", named, part);
            assert_eq!(judge(&seen).cause, Cause::Rma);
        }
    }
}

/// A root waits for the ranks that have not contributed. Ranks in `MPI_Finalize` have contributed.
#[test]
fn reduce_root_awaits_only_ranks_before_finalize() {
    for (at_end, last) in [("1", "2"), ("1-2", "3")] {
        let look: Look<'_> = &[
            ("0", "main:6 MPI_Reduce:6", "", ""),
            (at_end, AT_END, "", ""),
            (last, "main:5 MPI_Recv:5", "", ""),
        ];
        let mut seen = standing(look);
        call(&mut seen, "0", "MPI_Reduce", &[(R::Root, "0"), WORLD]);
        call(&mut seen, at_end, "MPI_Finalize", &[]);
        receive(&mut seen, last, "0");
        let found = judge(&seen);
        assert_eq!(found.circle, [0, last.parse().unwrap()], "{found:#?}");
        let named = IdSet::union_all(found.guilty.iter().map(|one| &one.tasks));
        assert_eq!(named, set(&format!("0,{last}")), "{found:#?}");
    }
}

/// The others have left a broadcast with another root, or have skipped it.
#[test]
fn last_rank_in_a_broadcast_is_not_blamed_alone() {
    let mut seen = standing(&[("0", "main:4 MPI_Bcast:4", "", ""), ("1-3", AT_END, "", "")]);
    call(&mut seen, "0", "MPI_Bcast", &[(R::Root, "0"), WORLD]);
    call(&mut seen, "1-3", "MPI_Finalize", &[]);
    let part = "(at fault: rank 0, or a rank that skipped that call)";
    check_named(&seen, "", "", part);
}

/// Ranks 1-3 wait in a broadcast for the data of root 0, which is in a gather. Rank 1 is in a reduction whose root is
/// in an allreduce with the other ranks.
#[test]
fn lone_rank_is_blamed_when_a_rooted_collective_mismatches() {
    let mut seen = standing(&[
        ("0", "main:4 MPI_Gather:4", "", ""),
        ("1-3", "main:6 MPI_Bcast:6", "", ""),
    ]);
    call(&mut seen, "0", "MPI_Gather", &[(R::Root, "0"), WORLD]);
    call(&mut seen, "1-3", "MPI_Bcast", &[(R::Root, "0"), WORLD]);
    check_named(&seen, "0", "0", "MPI_Bcast and MPI_Gather");
    let mut seen = standing(&[
        ("0,2-4", "main:4 MPI_Allreduce:4", "", ""),
        ("1", "main:6 MPI_Reduce:6", "", ""),
    ]);
    call(&mut seen, "0,2-4", "MPI_Allreduce", &[WORLD]);
    call(&mut seen, "1", "MPI_Reduce", &[(R::Root, "0"), WORLD]);
    check_named(&seen, "1", "1", "MPI_Allreduce and MPI_Reduce");
}

/// Each rank waits for its own number as the tag, and its neighbour has sent another one.
#[test]
fn receive_cycle_with_mismatched_tags_names_the_tags() {
    let with = |arrived: &[(u32, &str)]| {
        let mut seen = standing(&[("0-2", "main:6 MPI_Recv:6", "", "")]);
        for rank in 0..3_u32 {
            let [own, left] = [rank, (rank + 2) % 3].map(|rank| rank.to_string());
            let mut arguments = vec![(R::Source, left.as_str()), (R::Tag, own.as_str()), WORLD];
            let tag = arrived.iter().find(|(to, _)| *to == rank);
            arguments.extend(tag.map(|_| (R::Tag, sdm_mpi::UNEXPECTED)));
            call(&mut seen, &own, "MPI_Recv", &arguments);
            let (_, waits) = seen.samples.last_mut().unwrap().waits.last_mut().unwrap();
            let last = waits.call.as_mut().unwrap().arguments.last_mut().unwrap();
            let text = tag.map(|(_, tag)| (*tag).to_owned());
            last.value = text.map(|text| Value { text, cut: None });
        }
        judge(&seen)
    };
    let found = with(&[(0, "2"), (1, "0"), (2, "1")]);
    assert_eq!(
        (found.step, found.cause),
        (Step::Deadlock, Cause::Tag),
        "{found:#?}"
    );
    let part = "with other tags than are sent: rank 2 sends tag 2 to rank 0, which waits for tag 0 from it; rank";
    assert!(found.conclusion.contains(part), "{found:#?}");
    // One message with another tag can be due later: both ways are told, with its two ranks.
    let found = with(&[(0, "2")]);
    assert_eq!(found.cause, Cause::Tag, "{found:#?}");
    let part = "in a cycle (0 -> 2 -> 1 -> 0), and rank 2 sends tag 2 to rank 0, which waits for tag 0 from it: the tags";
    assert!(found.conclusion.contains(part), "{found:#?}");
    let named = IdSet::union_all(found.guilty.iter().map(|one| &one.tasks));
    assert_eq!(named, set("0,2"), "{found:#?}");
    assert_eq!(with(&[]).cause, Cause::CallOrdering);
}

/// A rank that computes does not wait for the ranks that poll.
#[test]
fn rank_computing_while_others_poll_is_awaited() {
    let looks: [Look<'_>; 2] = [
        &[
            ("1-2", "main:5 MPI_Test:5", "", ""),
            ("0", "main:4 work:7", "i=1", ""),
        ],
        &[
            ("1-2", "main:5 MPI_Test:5", "", ""),
            ("0", "main:4 work:7", "i=2", ""),
        ],
    ];
    let part = "the other ranks poll while";
    check(&observed(&looks), Step::HeldUp, "0", part);
    // A rank that sleeps, and was not seen polling, may wait for anything.
    let asleep = looks.map(|look| [("1-2", "main:5 usleep:5", "", ""), look[1]]);
    let asleep: Vec<Look<'_>> = asleep.iter().map(|look| &look[..]).collect();
    check(&observed(&asleep), Step::HeldUp, "1-2", "made no progress");
}

/// Processes of two jobs have no ranks in common: both jobs may be stuck.
#[test]
fn processes_of_two_jobs_are_not_judged_together() {
    let mut seen = standing(&[("0-3", "main:8 MPI_Recv:8", "", "")]);
    receive(&mut seen, "0-3", "0");
    seen.unranked = true;
    let found = judge(&seen);
    let expect =
        "all wait in MPI, but their ranks in one job are unknown: diagnose each job by itself";
    assert_eq!(
        (found.step, found.conclusion.as_str()),
        (Step::CannotTell, expect)
    );
}

/// A broadcast by each rank in turn, of which one rank has made one with another root. Each root is in its own call.
#[test]
fn ranks_with_three_roots_are_not_counted_against_two() {
    let seen = |roots: &[(&str, &str)]| {
        let all = roots.iter().map(|(who, _)| set(who)).collect::<Vec<_>>();
        let all = IdSet::union_all(&all).to_string();
        let mut seen = standing(&[(&*all, "main:6 MPI_Bcast:6", "", "")]);
        for (who, root) in roots {
            call(&mut seen, who, "MPI_Bcast", &[(R::Root, root), WORLD]);
        }
        seen
    };
    let part = "with different roots";
    let three = seen(&[("0,2", "2"), ("1", "1"), ("3", "3")]);
    check_named(&three, "", "0-3", part);
    let three = seen(&[("0,2,4", "2"), ("1", "1"), ("3", "3")]);
    check_named(&three, "1,3", "1,3", part);
}

/// Rank 2 waits in an operation of two ranks, and the other one is past it, or has not made it yet.
#[test]
fn both_ranks_of_an_operation_of_two_are_named() {
    let seen = |alone: &str, of: &str, rest: &str| {
        let mut seen = standing(&[
            (rest, BARRIER, "", ""),
            (alone, "main:6 MPI_Allreduce:6", "", ""),
        ]);
        call(&mut seen, rest, "MPI_Barrier", &[WORLD]);
        let half = [(R::Communicator, "half")];
        call(&mut seen, alone, "MPI_Allreduce", &half);
        super::odd::of_ranks(&mut seen, of);
        seen
    };
    let part = "rank 2 waits in MPI_Allreduce for rank 3, which waits in MPI_Barrier: rank 3 skipped that call, or rank 2";
    check_named(&seen("2", "2-3", "0-1,3"), "", "2-3", part);
    // Of three, two agree.
    let part = "other ranks wait for it in MPI_Allreduce; it skipped that call";
    check_named(&seen("1-2", "1-3", "0,3"), "3", "3", part);
}

/// Rank 0 scatters by itself, ranks 1 and 3 are past it, and rank 2 receives a message instead.
#[test]
fn receiver_and_root_of_a_scatter_are_both_named() {
    let look: Look<'_> = &[
        ("0", "main:6 MPI_Scatter:6", "", ""),
        ("2", "main:5 MPI_Recv:5", "", ""),
        ("1,3", BARRIER, "", ""),
    ];
    let mut seen = standing(look);
    call(&mut seen, "0", "MPI_Scatter", &[(R::Root, "0"), WORLD]);
    receive(&mut seen, "2", "0");
    call(&mut seen, "1,3", "MPI_Barrier", &[WORLD]);
    let part = "rank 2 waits for rank 0, which waits for rank 2 in MPI_Scatter";
    check_named(&seen, "0,2", "0,2", part);
}

/// A program that was started without its launcher is the only rank of its job.
#[test]
fn waiting_rank_of_a_job_of_one_is_said_to_be_the_only_one() {
    for source in ["0", sdm_mpi::ANY_SOURCE] {
        let seen = |who: &str| {
            let mut seen = standing(&[(who, "main:5 MPI_Recv:5", "", "")]);
            call(&mut seen, "0", "MPI_Recv", &[(R::Source, source), WORLD]);
            judge(&seen).conclusion
        };
        let part = "the job has no other rank: it was started without a launcher, or for one rank";
        assert!(seen("0").contains(part), "{source}");
        assert!(!seen("0-1").contains(part), "{source}");
    }
}
