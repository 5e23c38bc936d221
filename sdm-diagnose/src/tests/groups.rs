//! Tests of waits for the ranks of groups: epochs of windows, operations among neighbors, and calls that create a
//! communicator of a group.

use sdm_debug::probe::ArgumentRole as R;

use super::causes::{check_cause, standing};
use super::*;

const BARRIER: &str = "main:9 MPI_Barrier:9";

/// Adds an argument with a set of ranks to the last call of these tasks.
pub(super) fn add(seen: &mut Observed, tasks: &str, (role, expression, ranks): (R, &str, &str)) {
    let waits = &mut seen.samples.last_mut().unwrap().waits;
    let its = waits.iter_mut().find(|(of, _)| *of == set(tasks));
    let call = its.unwrap().1.call.as_mut().unwrap();
    call.arguments.push(CallArgument {
        role,
        expression: expression.to_owned(),
        value: Some(Value {
            text: ranks.to_owned(),
            cut: None,
        }),
        number: None,
        known: Known::Source,
    });
}

/// Rank 0 waits for targets 1 and 2. Only rank 1 has posted its epoch.
fn origin(rest: Look<'_>) -> Observed {
    let waiting: Look<'_> = &[
        ("0", "main:4 MPI_Win_complete:4", "", ""),
        ("1", "main:6 MPI_Win_wait:6", "", ""),
    ];
    let mut seen = standing(&[waiting, rest].concat());
    call(&mut seen, "0", "MPI_Win_complete", &[]);
    add(&mut seen, "0", (R::Access, "77", "1-2"));
    call(&mut seen, "1", "MPI_Win_wait", &[]);
    add(&mut seen, "1", (R::Exposure, "77", "0"));
    seen
}

#[test]
fn target_that_has_not_posted_is_named_with_its_origin() {
    let mut seen = origin(&[("2-3", BARRIER, "", "")]);
    call(&mut seen, "2-3", "MPI_Barrier", &[WORLD]);
    let named = ["0 MPI_Win_complete", "2-3 MPI_Barrier"];
    let found = judge(&seen);
    assert_eq!(found.cause, Cause::Rma);
    let both: Vec<IdSet> = found.guilty.iter().map(|one| one.tasks.clone()).collect();
    assert_eq!(both, [set("2"), set("0")], "{named:?} {found:#?}");
    assert!(found.conclusion.contains("MPI_Win_post is left out there"));
    // A target that computes can still post.
    let mut seen = origin(&[("3", BARRIER, "", "")]);
    call(&mut seen, "3", "MPI_Barrier", &[WORLD]);
    for (sample, line) in seen.samples.iter_mut().zip(["main:7", "main:8"]) {
        sample.stacks.push((set("2"), stacks(line)));
    }
    assert_eq!(judge(&seen).step, Step::HeldUp);
}

#[test]
fn origin_with_an_open_epoch_is_named_with_its_target() {
    let look: Look<'_> = &[
        ("0,3", BARRIER, "", ""),
        ("1", BARRIER, "", ""),
        ("2", "main:6 MPI_Win_wait:6", "", ""),
    ];
    let mut seen = standing(look);
    call(&mut seen, "0,3", "MPI_Barrier", &[WORLD]);
    call(&mut seen, "1", "MPI_Barrier", &[WORLD, (R::Handle, "5")]);
    add(&mut seen, "1", (R::Access, "77", "2"));
    call(&mut seen, "2", "MPI_Win_wait", &[]);
    add(&mut seen, "2", (R::Exposure, "77", "0-1"));
    let named = |seen: &Observed| {
        let found = judge(seen).guilty;
        IdSet::union_all(found.iter().map(|one| &one.tasks))
    };
    assert_eq!(named(&seen), set("1-2"));
    // Of origins without an open epoch none is known to have left it out.
    let waits = &mut seen.samples.last_mut().unwrap().waits;
    let of_1 = waits.iter_mut().find(|(of, _)| *of == set("1")).unwrap();
    of_1.1.call.as_mut().unwrap().arguments.pop();
    assert_eq!(named(&seen), set(""));
}

#[test]
fn epochs_that_wait_for_each_other_are_a_cycle() {
    let mut seen = standing(&[("0-1", "main:6 MPI_Win_wait:6", "", "")]);
    for (task, other) in [("0", "1"), ("1", "0")] {
        call(&mut seen, task, "MPI_Win_wait", &[]);
        add(&mut seen, task, (R::Exposure, "77", other));
    }
    check(
        &seen,
        Step::Deadlock,
        "",
        "each other's epochs in a cycle (0 -> 1 -> 0)",
    );
}

#[test]
fn neighbor_whose_part_has_not_come_is_blamed() {
    let place = "main:5 MPI_Neighbor_alltoall:5";
    let look: Look<'_> = &[
        ("0", place, "", ""),
        ("2", place, "", ""),
        ("1,3-5", BARRIER, "", ""),
    ];
    let mut seen = standing(look);
    for task in ["0", "2"] {
        call(
            &mut seen,
            task,
            "MPI_Neighbor_alltoall",
            &[(R::Communicator, "ring")],
        );
        add(&mut seen, task, (R::Target, "its neighbors", "1"));
    }
    call(&mut seen, "1,3-5", "MPI_Barrier", &[WORLD]);
    let text = "ranks 0,2 wait in MPI_Neighbor_alltoall for the data of rank 1, which skipped that call and waits in \
                MPI_Barrier";
    check(&seen, Step::CannotGoOn, "1", text);
}

/// Ranks 0 and 1 make an intercommunicator with the group of rank 2.
fn leaders(tag: &str) -> [(R, &str); 4] {
    [
        (R::Communicator, "low"),
        (R::Root, "0"),
        (R::Target, "2"),
        (R::Tag, tag),
    ]
}

#[test]
fn group_that_skips_an_intercommunicator_is_named() {
    let place = "main:5 MPI_Intercomm_create:5";
    let mut seen = standing(&[("0-1", place, "", ""), ("2-3", BARRIER, "", "")]);
    call(&mut seen, "0-1", "MPI_Intercomm_create", &leaders("5"));
    within(&mut seen, "0-1", "0-1");
    call(&mut seen, "2-3", "MPI_Barrier", &[WORLD]);
    check(
        &seen,
        Step::CannotGoOn,
        "",
        "wait in MPI_Intercomm_create for the group of rank 2",
    );
    check_cause(
        &seen,
        Cause::CallOrdering,
        &["0-1 MPI_Intercomm_create", "2 MPI_Barrier"],
    );
    let mut seen = standing(&[("0-1", place, "", ""), ("2-3", place, "", "")]);
    call(&mut seen, "0-1", "MPI_Intercomm_create", &leaders("5"));
    within(&mut seen, "0-1", "0-1");
    let high = [
        (R::Communicator, "high"),
        (R::Root, "2"),
        (R::Target, "0"),
        (R::Tag, "6"),
    ];
    call(&mut seen, "2-3", "MPI_Intercomm_create", &high);
    within(&mut seen, "2-3", "2-3");
    check(
        &seen,
        Step::CannotGoOn,
        "",
        "but with different tags: 5 and 6",
    );
    assert_eq!(judge(&seen).cause, Cause::Tag);
    // Rank 3 is not the leader of its group.
    let mut seen = standing(&[("0-1", place, "", ""), ("2-3", place, "", "")]);
    let low = leaders("6").map(|(role, text)| (role, if role == R::Target { "3" } else { text }));
    call(&mut seen, "0-1", "MPI_Intercomm_create", &low);
    within(&mut seen, "0-1", "0-1");
    call(&mut seen, "2-3", "MPI_Intercomm_create", &high);
    within(&mut seen, "2-3", "2-3");
    check(
        &seen,
        Step::CannotGoOn,
        "",
        "do not name each other's leader",
    );
    // Those who have to know the other side are the leaders, 0 and 2.
    let found = judge(&seen);
    let named = IdSet::union_all(found.guilty.iter().map(|one| &one.tasks));
    assert_eq!(named, set("0,2"), "{found:#?}");
    assert_eq!(judge(&seen).cause, Cause::Communicator);
    // Rank 1 is missing in its own group.
    let mut seen = standing(&[
        ("0", place, "", ""),
        ("1", BARRIER, "", ""),
        ("2-3", place, "", ""),
    ]);
    call(&mut seen, "0", "MPI_Intercomm_create", &leaders("6"));
    within(&mut seen, "0", "0-1");
    call(&mut seen, "1", "MPI_Barrier", &[WORLD]);
    call(&mut seen, "2-3", "MPI_Intercomm_create", &high);
    within(&mut seen, "2-3", "2-3");
    check(
        &seen,
        Step::CannotGoOn,
        "1",
        "rank 0 waits in MPI_Intercomm_create for rank 1 of the same group, which skipped that call and waits in MPI_Barrier",
    );
}

/// Sets the ranks of the communicator in the call of these tasks.
pub(super) fn within(seen: &mut Observed, tasks: &str, ranks: &str) {
    let waits = &mut seen.samples.last_mut().unwrap().waits;
    let its = waits.iter_mut().find(|(of, _)| *of == set(tasks)).unwrap();
    let arguments = &mut its.1.call.as_mut().unwrap().arguments;
    let text = ranks.to_owned();
    arguments[0].value = Some(Value { text, cut: None });
}

#[test]
fn rank_that_skips_mpi_comm_create_group_is_blamed() {
    let place = "main:5 MPI_Comm_create_group:5";
    let mut seen = standing(&[("0,4", place, "", ""), ("1-3", BARRIER, "", "")]);
    call(
        &mut seen,
        "0,4",
        "MPI_Comm_create_group",
        &[(R::Communicator, "some"), (R::Tag, "3")],
    );
    within(&mut seen, "0,4", "0,2,4");
    call(&mut seen, "1-3", "MPI_Barrier", &[WORLD]);
    check(
        &seen,
        Step::Deadlock,
        "2",
        "other ranks wait for it in MPI_Comm_create_group; it skipped that call and waits in MPI_Barrier",
    );
}

/// Rank 2 waits for the data of root 1, which is past the operation with the other ranks.
#[test]
fn rank_that_waits_for_a_root_past_the_call_is_blamed() {
    let seen = |operation: &str, others: &str, root: &str, awaited: &str| {
        let frame = format!("main:4 {operation}:4");
        let mut seen = standing(&[("2", &frame, "", ""), (others, BARRIER, "", "")]);
        call(&mut seen, "2", operation, &[(R::Root, root), WORLD]);
        add(&mut seen, "2", (R::Target, "its part", awaited));
        call(&mut seen, others, "MPI_Barrier", &[WORLD]);
        seen
    };
    for operation in ["MPI_Bcast", "MPI_Scatter"] {
        let seen = seen(operation, "0-1,3", "1", "1");
        let part = format!("rank 2 waits in {operation} for root 1, which is in MPI_Barrier");
        check(&seen, Step::CannotGoOn, "2", &part);
        assert_eq!(judge(&seen).cause, Cause::Root);
    }
    // Rank 3, which hands the data on, may have skipped the call, and of two ranks either.
    let part = "or a rank that skipped that call";
    check(
        &seen("MPI_Bcast", "0-1,3", "1", "3"),
        Step::CannotGoOn,
        "",
        part,
    );
    let of_two = judge(&seen("MPI_Bcast", "1", "1", "1"));
    assert!(!of_two.conclusion.contains("another root"), "{of_two:#?}");
}

/// Ranks wait for another program only after all ranks of the communicator have called.
#[test]
fn rank_that_skips_mpi_comm_spawn_or_connect_is_blamed() {
    for function in [
        "MPI_Comm_spawn",
        "mpi_comm_spawn_multiple_",
        "MPI_Comm_accept",
        "PMPI_Comm_connect",
    ] {
        let place = format!("main:5 {function}:5");
        let seen = |who: &str, elsewhere: &str, ranks: &str, then: &str| {
            let frame = format!("main:9 {then}:9");
            let mut seen = standing(&[(who, &place, "", ""), (elsewhere, &frame, "", "")]);
            call(&mut seen, who, function, &[(R::Communicator, "some")]);
            if !ranks.is_empty() {
                within(&mut seen, who, ranks);
            }
            call(&mut seen, elsewhere, then, &[WORLD]);
            seen
        };
        for then in ["MPI_Barrier", "MPI_Finalize"] {
            let found = judge(&seen("0,2", "1,3", "0-2", then));
            assert!(found.step.is_proved(), "{found:#?}");
            assert_eq!(found.suspects, set("1"), "{found:#?}");
        }
        // All are there, or it is unknown who has to be.
        for ranks in ["0,2", ""] {
            let found = judge(&seen("0,2", "1,3", ranks, "MPI_Barrier"));
            assert_eq!((found.step, found.held_up_by), (Step::HeldUp, set("0,2")));
        }
    }
}

/// Rank 2 waits for the data of root 1, which waits for rank 2 in an operation of all ranks. The other ranks wait for
/// messages.
#[test]
fn rank_and_the_root_that_waits_for_it_are_named() {
    let seen = |waits: &str, of: &str, operation: &str| {
        let [own, there] = [waits, operation].map(|name| format!("main:4 {name}:4"));
        let mut seen = standing(&[
            ("0,3", "main:3 MPI_Recv:3", "", ""),
            ("1", &there, "", ""),
            ("2", &own, "", ""),
        ]);
        receive(&mut seen, "0,3", "2");
        call(&mut seen, "1", operation, &[WORLD]);
        call(&mut seen, "2", waits, &[(R::Root, "1"), WORLD]);
        add(&mut seen, "2", (R::Target, "its part", of));
        seen
    };
    for waits in ["MPI_Bcast", "MPI_Scatterv"] {
        let seen = seen(waits, "1", "MPI_Barrier");
        let part =
            format!("rank 2 waits in {waits} for root 1, which waits for rank 2 in MPI_Barrier");
        check(&seen, Step::CannotGoOn, "", &part);
        let found = judge(&seen);
        let named = IdSet::union_all(found.guilty.iter().map(|one| &one.tasks));
        assert_eq!((named, found.cause), (set("1-2"), Cause::Root));
    }
    // Rank 3 hands the data on, or the root waits for a part of another rank.
    for (of, operation) in [("3", "MPI_Barrier"), ("1", "MPI_Reduce")] {
        let found = judge(&seen("MPI_Bcast", of, operation));
        assert!(!found.conclusion.contains("different roots"), "{found:#?}");
    }
}
