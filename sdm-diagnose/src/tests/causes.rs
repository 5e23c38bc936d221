//! Tests of the class of an error, and of the ranks and calls that it is attributed to.

use sdm_debug::probe::ArgumentRole as R;
use sdm_debug::probe::{JoinWait, WindowLock};

use super::*;

pub(super) const BARRIER: &str = "main:1 MPI_Barrier:1";
const ALLREDUCE: &str = "main:2 MPI_Allreduce:2";
const AT_END: &str = "main:9 MPI_Finalize:9";
const WAIT: &str = "main:3 MPI_Wait:3";

/// Puts tasks in a call on a communicator `row` that has these ranks.
pub(super) fn within(seen: &mut Observed, tasks: &str, function: &str, ranks: &str) {
    call(seen, tasks, function, &[(R::Communicator, "row")]);
    let waits = &mut seen.samples.last_mut().unwrap().waits;
    for (of, waits) in waits {
        if *of == set(tasks) {
            let text = ranks.to_owned();
            let call = waits.call.as_mut().unwrap();
            call.arguments[0].value = Some(Value { text, cut: None });
        }
    }
}

pub(super) fn standing(look: Look<'_>) -> Observed {
    observed(&[look, look])
}

/// Checks the class of the error, and the ranks with their calls (`tasks call`) that it is attributed to.
pub(super) fn check_cause(seen: &Observed, cause: Cause, guilty: &[&str]) {
    let found = judge(seen);
    let told = found.guilty.iter();
    let told: Vec<String> = told
        .map(|one| format!("{} {}", one.tasks, one.call))
        .collect();
    assert_eq!(
        (found.cause, &told[..]),
        (cause, &strings(guilty)[..]),
        "{found:#?}"
    );
    assert!(found.step.is_proved(), "{found:#?}");
}

fn strings(list: &[&str]) -> Vec<String> {
    list.iter().map(|one| (*one).to_owned()).collect()
}

#[test]
fn rank_in_finalize_is_blamed_for_a_skipped_collective() {
    let mut seen = standing(&[("2", ALLREDUCE, "", ""), ("0-1,3", AT_END, "", "")]);
    within(&mut seen, "2", "MPI_Allreduce", "2-3");
    call(&mut seen, "0-1,3", "MPI_Finalize", &[]);
    check_cause(&seen, Cause::CallOrdering, &["3 MPI_Finalize"]);
    // Where most of them are there the other one is in an operation too many.
    let mut seen = standing(&[("2", ALLREDUCE, "", ""), ("0-1,3", AT_END, "", "")]);
    within(&mut seen, "2", "MPI_Allreduce", "0-3");
    call(&mut seen, "0-1,3", "MPI_Finalize", &[]);
    let found = judge(&seen);
    assert!(found.suspects.is_disjoint(&set("0-1,3")), "{found:#?}");
}

#[test]
fn missing_message_is_blamed_on_sender_and_receiver() {
    let mut seen = standing(&[("0", AT_END, "", ""), ("1", "main:4 MPI_Recv:4", "", "")]);
    call(&mut seen, "0", "MPI_Finalize", &[]);
    receive(&mut seen, "1", "0");
    check_cause(
        &seen,
        Cause::CallOrdering,
        &["0 MPI_Finalize", "1 MPI_Recv"],
    );
}

#[test]
fn operation_in_two_communicators_is_reported() {
    // In the same one but for one of them, by the ranks that these have.
    let mut seen = standing(&[
        ("0,2", ALLREDUCE, "", ""),
        ("1", "main:5 MPI_Allreduce:5", "", ""),
    ]);
    within(&mut seen, "0,2", "MPI_Allreduce", "0-2");
    reduce_all(&mut seen, "1");
    check_cause(&seen, Cause::Communicator, &["1 MPI_Allreduce"]);
    // With this one the operation of the half would be complete.
    let mut seen = standing(&[
        ("0-1", AT_END, "", ""),
        ("2", ALLREDUCE, "", ""),
        ("3", "main:5 MPI_Allreduce:5", "", ""),
    ]);
    call(&mut seen, "0-1", "MPI_Finalize", &[]);
    within(&mut seen, "2", "MPI_Allreduce", "2-3");
    reduce_all(&mut seen, "3");
    check_cause(&seen, Cause::Communicator, &["3 MPI_Allreduce"]);
    // A message is sent in one and waited for in the other.
    let mut seen = standing(&[
        ("0", "main:6 MPI_Ssend:6", "", ""),
        ("1", "main:7 MPI_Recv:7", "", ""),
    ]);
    let to = [(R::Destination, "1"), (R::Tag, "99"), WORLD];
    call(&mut seen, "0", "MPI_Ssend", &to);
    let from = [(R::Source, "0"), (R::Tag, "99"), (R::Context, "12")];
    call(
        &mut seen,
        "1",
        "MPI_Recv",
        &[&from[..], &[(R::Communicator, "copy")]].concat(),
    );
    within_of_last(&mut seen, "0-1");
    check_cause(&seen, Cause::Communicator, &["0 MPI_Ssend", "1 MPI_Recv"]);
}

/// Rank 1 of a reordered communicator can be any rank of the job.
#[test]
fn ranks_of_unknown_communicators_prove_no_mismatch() {
    for (communicator, step) in [
        (&[WORLD][..], Step::CannotGoOn),
        (&[(R::Communicator, "row")], Step::Deadlock),
        (&[], Step::Deadlock),
    ] {
        let mut seen = standing(&[
            ("0", "main:6 MPI_Ssend:6", "", ""),
            ("1", "main:7 MPI_Recv:7", "", ""),
        ]);
        let to = [(R::Destination, "1"), (R::Tag, "5")];
        call(&mut seen, "0", "MPI_Ssend", &[&to, communicator].concat());
        let from = [(R::Source, "0"), (R::Tag, "9")];
        call(&mut seen, "1", "MPI_Recv", &[&from, communicator].concat());
        let found = judge(&seen);
        assert_eq!(found.step, step, "{communicator:?}: {found:#?}");
    }
}

/// Sets the ranks of the communicator in the last call.
fn within_of_last(seen: &mut Observed, ranks: &str) {
    let (_, waits) = seen.samples.last_mut().unwrap().waits.last_mut().unwrap();
    let arguments = waits.call.as_mut().unwrap().arguments.iter_mut();
    for argument in arguments.filter(|one| one.role == R::Communicator) {
        let text = ranks.to_owned();
        argument.value = Some(Value { text, cut: None });
    }
}

#[test]
fn wait_for_a_nonblocking_collective_is_judged_as_collective() {
    // Rank 3 is in the barrier of all ranks, while rank 2 waits for it in an operation of ranks 2-3.
    let mut seen = standing(&[("2", WAIT, "", ""), ("0-1,3", BARRIER, "", "")]);
    within(&mut seen, "2", "MPI_Wait", "2-3");
    call(&mut seen, "0-1,3", "MPI_Barrier", &[WORLD]);
    // Of an unknown operation either may be wrong.
    let either = ["3 MPI_Barrier", "2 MPI_Wait"];
    check_cause(&seen, Cause::CallOrdering, &either);
    let all = &mut seen.samples.last_mut().unwrap().waits;
    let of_2 = all.iter_mut().find(|(of, _)| *of == set("2"));
    let arguments = &mut of_2.unwrap().1.call.as_mut().unwrap().arguments;
    arguments.push(CallArgument {
        role: R::Operation,
        expression: "MPI_Iallreduce".to_owned(),
        ..arguments[0].clone()
    });
    // So may it of a known one: rank 2 can have made it once too often.
    check_cause(&seen, Cause::CallOrdering, &either);
    // Rank 2 may have begun the operation, and compute before it waits.
    let mut seen = standing(&[("0-1", WAIT, "", "")]);
    call(&mut seen, "0-1", "MPI_Wait", &[WORLD]);
    for (sample, line) in seen.samples.iter_mut().zip(["main:7", "main:8"]) {
        sample.stacks.push((set("2"), stacks(line)));
    }
    assert_eq!(judge(&seen).step, Step::HeldUp);
}

#[test]
fn receive_in_single_rank_communicator_is_blamed() {
    let mut seen = standing(&[("0", BARRIER, "", ""), ("1", "main:4 MPI_Recv:4", "", "")]);
    call(&mut seen, "0", "MPI_Barrier", &[WORLD]);
    let own = [(R::Source, sdm_mpi::ANY_SOURCE), (R::Communicator, "own")];
    call(&mut seen, "1", "MPI_Recv", &own);
    within_of_last(&mut seen, "1");
    check_cause(&seen, Cause::CallOrdering, &["1 MPI_Recv"]);
}

#[test]
fn rank_waiting_for_a_window_lock_is_not_sole_culprit() {
    let mut seen = standing(&[
        ("0,2", BARRIER, "", ""),
        ("1", "main:6 MPI_Win_lock:6", "", ""),
    ]);
    call(&mut seen, "0,2", "MPI_Barrier", &[WORLD]);
    call(&mut seen, "1", "MPI_Win_lock", &[(R::Target, "0")]);
    check_cause(&seen, Cause::Rma, &[]);
}

/// Puts tasks in a call for the lock of a rank's part of a window that all four ranks share.
fn lock_window(seen: &mut Observed, tasks: &str, function: &str, target: &str) {
    let arguments = [(R::Target, target), (R::Window, "win"), (R::Context, "480")];
    call(seen, tasks, function, &arguments);
    let (_, waits) = seen.samples.last_mut().unwrap().waits.last_mut().unwrap();
    let text = "0-3".to_owned();
    waits.call.as_mut().unwrap().arguments[1].value = Some(Value { text, cut: None });
}

/// Lets tasks hold the lock of `target`'s part of the window, or of all parts where `target` is None.
fn hold_lock(seen: &mut Observed, tasks: &str, target: Option<u32>) {
    let window_locks = vec![WindowLock {
        window: 480,
        target,
    }];
    let all = &mut seen.samples.last_mut().unwrap().waits;
    let mut held = vec![(set(tasks), TaskWaits::default())];
    for (of, waits) in all.iter_mut() {
        let both = of.intersection(&set(tasks));
        of.subtract(&both);
        held[0].0.subtract(&both);
        held.push((both, waits.clone()));
    }
    all.extend(held.into_iter().map(|(of, waits)| {
        let window_locks = window_locks.clone();
        (
            of,
            TaskWaits {
                window_locks,
                ..waits
            },
        )
    }));
    all.retain(|(of, _)| !of.is_empty());
}

#[test]
fn holder_of_a_window_lock_is_named() {
    let look: Look<'_> = &[
        ("0,2-3", BARRIER, "", ""),
        ("1", "main:6 MPI_Win_lock:6", "", ""),
    ];
    for (target, line) in [
        (Some(0), "holds the window lock at rank 0"),
        (None, "holds the window lock at all ranks"),
    ] {
        let mut seen = standing(look);
        call(&mut seen, "0,2-3", "MPI_Barrier", &[WORLD]);
        hold_lock(&mut seen, "2", target);
        lock_window(&mut seen, "1", "MPI_Win_lock", "0");
        check_cause(&seen, Cause::Rma, &["2 MPI_Barrier"]);
        let found = judge(&seen);
        assert!(
            found
                .conclusion
                .contains("a lock that other ranks wait for")
        );
        let mut lines = found.findings.iter().flat_map(|one| &one.evidence);
        assert!(lines.any(|one| one == line), "{found:#?}");
    }
    // A lock on another part of the window blocks no rank.
    let mut seen = standing(look);
    call(&mut seen, "0,2-3", "MPI_Barrier", &[WORLD]);
    hold_lock(&mut seen, "0,2-3", Some(2));
    lock_window(&mut seen, "1", "MPI_Win_lock", "0");
    assert_eq!(judge(&seen).suspects, IdSet::new());
}

#[test]
fn computing_lock_holder_delays_waiting_ranks() {
    let look: Look<'_> = &[
        ("0-1", "main:6 MPI_Win_lock:6", "", ""),
        ("2", "main:9 work:9", "", ""),
        ("3", BARRIER, "", ""),
    ];
    let later: Look<'_> = &[look[0], ("2", "main:9 work:9", "x", ""), look[2]];
    let mut seen = observed(&[look, later, look]);
    lock_window(&mut seen, "0-1", "MPI_Win_lock", "0");
    call(&mut seen, "3", "MPI_Barrier", &[WORLD]);
    hold_lock(&mut seen, "2", Some(0));
    check(&seen, Step::HeldUp, "2", "while it computes");
}

#[test]
fn cycle_of_window_locks_is_reported() {
    let mut seen = standing(&[("0-1", "main:6 MPI_Win_lock:6", "", "")]);
    for (task, other, own) in [("0", "1", 0), ("1", "0", 1)] {
        lock_window(&mut seen, task, "MPI_Win_lock", other);
        hold_lock(&mut seen, task, Some(own));
    }
    check_cause(&seen, Cause::Rma, &["0-1 MPI_Win_lock"]);
    let said = "the ranks wait for each other's locks in a cycle (0 -> 1 -> 0); no single rank is to blame";
    assert_eq!(judge(&seen).conclusion, said);
    // Exchanged data releases no lock.
    seen.samples[1].marks.exchanged = set("0-1");
    assert_eq!(judge(&seen).conclusion, said);
}

/// An unexpected message with another tag than the expected one is reported.
#[test]
fn unexpected_message_with_another_tag_is_reported() {
    let mut seen = standing(&[("0", AT_END, "", ""), ("1", "main:4 MPI_Recv:4", "", "")]);
    call(&mut seen, "0", "MPI_Finalize", &[]);
    receive(&mut seen, "1", "0");
    let (_, waits) = seen.samples[1].waits.last_mut().unwrap();
    waits.call.as_mut().unwrap().arguments.push(CallArgument {
        role: R::Tag,
        expression: sdm_mpi::UNEXPECTED.to_owned(),
        value: Some(Value {
            text: "81".to_owned(),
            cut: None,
        }),
        number: None,
        known: Known::Source,
    });
    check_cause(&seen, Cause::Tag, &["0 MPI_Finalize", "1 MPI_Recv"]);
    let found = judge(&seen);
    let said = "rank 0 sends tag 81 to rank 1, which waits for tag 99 from it";
    assert_eq!(found.conclusion, said);
    let mut lines = found.findings.iter().flat_map(|finding| &finding.evidence);
    let line = "from 0, tag 99, a message with tag 81 has arrived";
    assert!(lines.any(|one| one == line), "{found:#?}");
}

#[test]
fn aborting_rank_is_named_for_any_wait() {
    let mut seen = standing(&[("0,2", BARRIER, "", ""), ("1", "main:5 quit:7", "", "")]);
    call(&mut seen, "0,2", "MPI_Barrier", &[WORLD]);
    let what = "about to call MPI_Abort in quit () at a.c:7".to_owned();
    seen.gone
        .push((set("1"), format!("stopped, and about to end: {what}")));
    seen.aborting.push((set("1"), what));
    check_cause(&seen, Cause::Aborted, &["1 quit"]);
    let said = "about to call MPI_Abort in quit () at a.c:7";
    assert_eq!(judge(&seen).conclusion, said);
}

#[test]
fn ended_job_is_reported_as_ended() {
    let look: Look<'_> = &[("0-3", BARRIER, "", "")];
    let mut seen = observed(&[look]);
    seen.gone
        .push((set("0-2"), "ended with exit code 0".to_owned()));
    let only_some = judge(&seen);
    assert_eq!(only_some.step, Step::CannotTell, "{only_some:#?}");
    seen.gone
        .push((set("3"), "ended with exit code 1".to_owned()));
    let said =
        "the job has ended, no process is left: ended with exit code 0; ended with exit code 1";
    check(&seen, Step::NoHangSeen, "", said);
    // Whether a rank has ended is unknown if its server is lost.
    seen.gone[0].1 = "lost: sdm-server has ended".to_owned();
    assert_eq!(judge(&seen).step, Step::CannotTell);
}

#[test]
fn thread_waiting_for_missing_thread_is_blamed() {
    let mut seen = standing(&[
        ("0", "main:5 waitpid:5", "", ""),
        ("1", "main:6 work:9 pthread_mutex_lock:9", "", ""),
    ]);
    let waits = TaskWaits {
        threads: vec![ThreadWait {
            thread: 1,
            what: WaitFor::Nobody,
        }],
        ..TaskWaits::default()
    };
    seen.samples[1].waits.push((set("1"), waits));
    check_cause(&seen, Cause::Thread, &["1 pthread_mutex_lock"]);
    let part = "it waits for another thread of its process, but there is none";
    check(&seen, Step::CannotGoOn, "1", part);
}

#[test]
fn differing_gather_roots_are_reported() {
    let gather = "main:6 MPI_Gather:6";
    let mut seen = standing(&[
        ("0", gather, "", ""),
        ("2", gather, "", ""),
        ("1", AT_END, "", ""),
    ]);
    call(&mut seen, "1", "MPI_Finalize", &[]);
    for (task, root) in [("0", "0"), ("2", "1")] {
        call(&mut seen, task, "MPI_Gather", &[(R::Root, root), WORLD]);
    }
    check_cause(&seen, Cause::Root, &["2 MPI_Gather"]);
}

#[test]
fn rank_that_skips_a_window_fence_is_named() {
    let mut seen = standing(&[
        ("2", "main:6 MPI_Win_fence:6", "", ""),
        ("0-1,3", BARRIER, "", ""),
    ]);
    call(
        &mut seen,
        "2",
        "MPI_Win_fence",
        &[(R::Window, "win"), (R::Context, "480")],
    );
    let (_, waits) = seen.samples[1].waits.last_mut().unwrap();
    let text = "2-3".to_owned();
    waits.call.as_mut().unwrap().arguments[0].value = Some(Value { text, cut: None });
    call(&mut seen, "0-1,3", "MPI_Barrier", &[WORLD]);
    check_cause(&seen, Cause::Rma, &["3 MPI_Barrier", "2 MPI_Win_fence"]);
    let found = judge(&seen);
    let mut lines = found.findings.iter().flat_map(|one| &one.evidence);
    assert!(lines.any(|one| one == "of the window win"), "{found:#?}");
}

#[test]
fn rank_outside_a_neighborhood_collective_is_not_named() {
    let neighbours = "main:6 MPI_Neighbor_allgather:6";
    let mut seen = standing(&[("0,2", neighbours, "", ""), ("1,3", BARRIER, "", "")]);
    within(&mut seen, "0,2", "MPI_Neighbor_allgather", "0-3");
    call(&mut seen, "1,3", "MPI_Barrier", &[WORLD]);
    let found = judge(&seen);
    assert!(
        found.step.is_proved() && found.guilty.is_empty(),
        "{found:#?}"
    );
}

#[test]
fn waitany_on_ended_ranks_is_reported() {
    let any = "main:6 MPI_Waitany:6";
    let seen = |peers: &str| {
        let mut seen = standing(&[("0", any, "", ""), ("1-3", AT_END, "", "")]);
        call(&mut seen, "1-3", "MPI_Finalize", &[]);
        call(
            &mut seen,
            "0",
            "MPI_Waitany",
            &[(R::Target, "its requests"), WORLD],
        );
        let (_, waits) = seen.samples[1].waits.last_mut().unwrap();
        let text = peers.to_owned();
        let each = &mut waits.call.as_mut().unwrap().arguments[0];
        each.value = Some(Value { text, cut: None });
        seen
    };
    let guilty = ["1-2 MPI_Finalize", "0 MPI_Waitany"];
    check_cause(&seen("1-2"), Cause::CallOrdering, &guilty);
    // One of them keeps running.
    let mut on = seen("1-2");
    for (sample, line) in on.samples.iter_mut().zip(["main:7", "main:8"]) {
        sample.stacks.retain(|(tasks, _)| *tasks == set("0"));
        sample.stacks.push((set("1,3"), stacks(AT_END)));
        sample.stacks.push((set("2"), stacks(line)));
    }
    assert_eq!(judge(&on).step, Step::HeldUp);
}

#[test]
fn window_operation_is_reported_as_rma() {
    let mut seen = standing(&[
        ("0,2", "main:6 MPI_Win_fence:6", "", ""),
        ("1", BARRIER, "", ""),
    ]);
    call(&mut seen, "1", "MPI_Barrier", &[WORLD]);
    check_cause(&seen, Cause::Rma, &["1 MPI_Barrier"]);
}

#[test]
fn mpi_thread_is_judged_if_main_thread_joins_it() {
    let mut seen = standing(&[
        ("0", "main:6 pthread_join:6", "", ""),
        ("1", AT_END, "", ""),
    ]);
    let frames = ["receive", "MPI_Recv"].map(|name| StackFrame::own(name, "halo.c", 60));
    for sample in &mut seen.samples {
        sample.stacks[0].1.threads.push(ThreadStack {
            count: 1,
            main: false,
            frames: frames.to_vec(),
        });
    }
    receive(&mut seen, "0", "1");
    let waits = &mut seen.samples[1].waits[0].1;
    waits.threads.push(ThreadWait {
        thread: 1,
        what: WaitFor::Join(JoinWait {
            thread: 2,
            place: StackFrame::own("main", "halo.c", 6),
        }),
    });
    call(&mut seen, "1", "MPI_Finalize", &[]);
    check_cause(
        &seen,
        Cause::CallOrdering,
        &["0 MPI_Recv", "1 MPI_Finalize"],
    );
}
