//! The class of an error, and whose it is with which calls.

use sdm_debug::probe::ArgumentRole as R;
use sdm_debug::probe::JoinWait;

use super::*;

const BARRIER: &str = "main:1 MPI_Barrier:1";
const ALLREDUCE: &str = "main:2 MPI_Allreduce:2";
const AT_END: &str = "main:9 MPI_Finalize:9";
const WAIT: &str = "main:3 MPI_Wait:3";

/// A communicator with these ranks.
fn within(seen: &mut Observed, tasks: &str, function: &str, ranks: &str) {
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

fn standing(look: Look<'_>) -> Observed {
    observed(&[look, look])
}

/// The class, and `tasks call` of those whose error it is.
fn check_cause(seen: &Observed, cause: Cause, guilty: &[&str]) {
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
fn a_member_at_the_end_has_left_its_operation_out() {
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
fn a_message_that_never_comes_names_both_sides() {
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
fn one_operation_in_two_communicators_is_told() {
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

/// The communicator of the last call has these ranks.
fn within_of_last(seen: &mut Observed, ranks: &str) {
    let (_, waits) = seen.samples.last_mut().unwrap().waits.last_mut().unwrap();
    let arguments = waits.call.as_mut().unwrap().arguments.iter_mut();
    for argument in arguments.filter(|one| one.role == R::Communicator) {
        let text = ranks.to_owned();
        argument.value = Some(Value { text, cut: None });
    }
}

#[test]
fn a_collective_operation_that_does_not_block_is_one() {
    // Who is at the end has not begun it, or not waited for it.
    let mut seen = standing(&[("0-1", WAIT, "", ""), ("2", AT_END, "", "")]);
    call(&mut seen, "0-1", "MPI_Wait", &[WORLD]);
    call(&mut seen, "2", "MPI_Finalize", &[]);
    check_cause(&seen, Cause::CallOrdering, &["2 MPI_Finalize"]);
    // Who is in one of more ranks, and is waited for in its own.
    let mut seen = standing(&[("2", WAIT, "", ""), ("0-1,3", BARRIER, "", "")]);
    within(&mut seen, "2", "MPI_Wait", "2-3");
    call(&mut seen, "0-1,3", "MPI_Barrier", &[WORLD]);
    check_cause(&seen, Cause::CallOrdering, &["3 MPI_Barrier"]);
    // Who has begun it may compute before it waits.
    let mut seen = standing(&[("0-1", WAIT, "", "")]);
    call(&mut seen, "0-1", "MPI_Wait", &[WORLD]);
    for (sample, line) in seen.samples.iter_mut().zip(["main:7", "main:8"]) {
        sample.stacks.push((set("2"), stacks(line)));
    }
    assert_eq!(judge(&seen).step, Step::HeldUp);
}

#[test]
fn a_receive_where_nobody_else_is_waits_for_nobody() {
    let mut seen = standing(&[("0", BARRIER, "", ""), ("1", "main:4 MPI_Recv:4", "", "")]);
    call(&mut seen, "0", "MPI_Barrier", &[WORLD]);
    let own = [(R::Source, sdm_mpi::ANY_SOURCE), (R::Communicator, "own")];
    call(&mut seen, "1", "MPI_Recv", &own);
    within_of_last(&mut seen, "1");
    check_cause(&seen, Cause::CallOrdering, &["1 MPI_Recv"]);
}

#[test]
fn who_waits_for_the_lock_of_a_window_is_not_to_blame_alone() {
    let mut seen = standing(&[
        ("0,2", BARRIER, "", ""),
        ("1", "main:6 MPI_Win_lock:6", "", ""),
    ]);
    call(&mut seen, "0,2", "MPI_Barrier", &[WORLD]);
    call(&mut seen, "1", "MPI_Win_lock", &[(R::Target, "0")]);
    check_cause(&seen, Cause::Rma, &[]);
}

/// What has come under another tag than the one that is waited for.
#[test]
fn a_message_that_has_come_under_another_tag_is_told() {
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
    let said = "0 sends to 1 under tag 81, which waits for tag 99 from it";
    assert_eq!(found.conclusion, said);
    let mut lines = found.findings.iter().flat_map(|finding| &finding.evidence);
    let line = "from 0, tag 99, a message under tag 81 has come";
    assert!(lines.any(|one| one == line), "{found:#?}");
}

#[test]
fn a_root_that_has_left_its_gather_is_none() {
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
fn an_operation_of_windows_is_told_as_that() {
    let mut seen = standing(&[
        ("0,2", "main:6 MPI_Win_fence:6", "", ""),
        ("1", BARRIER, "", ""),
    ]);
    call(&mut seen, "1", "MPI_Barrier", &[WORLD]);
    check_cause(&seen, Cause::Rma, &["1 MPI_Barrier"]);
}

#[test]
fn the_thread_that_is_in_mpi_is_judged_where_the_main_one_waits_for_it() {
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
