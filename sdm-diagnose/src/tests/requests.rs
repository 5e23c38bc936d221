//! Tests of ranks that wait for requests of which not everything could be read.

use sdm_debug::probe::ArgumentRole as R;

use super::*;

const WAIT: &str = "main:80 MPI_Wait:80";
const WAIT_FOR_ALL: &str = "main:80 MPI_Waitall:80";

/// Ranks 0 and 1 wait for each other's messages in the call of `place`. The other ranks are as in `look`.
fn pair(place: &str, look: Look<'_>) -> Observed {
    let look: Vec<_> = [&[("0-1", place, "", "")], look].concat();
    let mut seen = observed(&[&look, &look]);
    let function = place.split_once(' ').unwrap().1;
    let function = function.split_once(':').unwrap().0;
    for (task, peer) in [("0", "1"), ("1", "0")] {
        call(&mut seen, task, function, &[(R::Source, peer), WORLD]);
    }
    seen
}

/// The message of a request can be in transit, which nothing shows.
#[test]
fn deadlock_of_pending_requests_is_only_guessed() {
    let receiving = "main:80 MPI_Recv:80";
    let waiting: Look<'_> = &[("2-3", "main:12 MPI_Barrier:12", "", "")];
    for (place, others, longer) in [
        (WAIT_FOR_ALL, &[][..], true),
        (WAIT, &[], true),
        (receiving, &[], false),
        // These wait only for those who may go on; for those who do not they may wait as well.
        (WAIT, waiting, true),
        (receiving, waiting, false),
    ] {
        let mut seen = pair(place, others);
        if !others.is_empty() {
            call(&mut seen, "2-3", "MPI_Barrier", &[WORLD]);
        }
        let found = judge(&seen);
        assert_eq!(found.step, Step::Deadlock, "{place}: {found:#?}");
        assert_eq!(found.is_guessed(), longer, "{place}: {found:#?}");
    }
}

#[test]
fn ranks_outside_a_guessed_deadlock_do_not_change_it() {
    let look: Look<'_> = &[("2", "main:80 MPI_Recv:80", "", "")];
    let mut seen = pair(WAIT, look);
    call(&mut seen, "2", "MPI_Recv", &[(R::Source, "3"), WORLD]);
    for (sample, line) in seen.samples.iter_mut().zip(["main:7", "main:8"]) {
        sample.stacks.push((set("3"), stacks(line)));
    }
    let found = judge(&seen);
    assert_eq!(found.step, Step::Deadlock, "{found:#?}");
    assert!(found.is_guessed(), "{found:#?}");
}

/// A message that is sent to a rank with a matching request should pass.
#[test]
fn only_a_send_that_matches_no_pending_request_is_reported() {
    let passes = (Step::CannotTell, "do not complete");
    let never = (
        Step::CannotGoOn,
        "rank 1 sends tag 5 to rank 0, which waits for tag 9",
    );
    for (place, function, tag, (step, part)) in [
        (WAIT, "MPI_Wait", "5", passes),
        (WAIT, "MPI_Wait", "9", never),
        // Another request may match the sent message.
        (WAIT_FOR_ALL, "MPI_Waitall", "9", passes),
    ] {
        let look: Look<'_> = &[("0", place, "", ""), ("1", "main:80 MPI_Send:80", "", "")];
        let mut seen = observed(&[look, look]);
        let request = [(R::Source, "1"), (R::Tag, tag), WORLD];
        call(&mut seen, "0", function, &request);
        let sent = [(R::Destination, "0"), (R::Tag, "5"), WORLD];
        call(&mut seen, "1", "MPI_Send", &sent);
        check(&seen, step, "", part);
    }
}

/// After a message with another tag than the request's, its sender is in an operation of all ranks.
#[test]
fn unexpected_message_tag_is_reported_for_a_request() {
    for (place, function) in [(WAIT, "MPI_Wait"), (WAIT_FOR_ALL, "MPI_Waitall")] {
        let look: Look<'_> = &[
            ("0", place, "", ""),
            ("1", "main:90 MPI_Allreduce:9", "", ""),
        ];
        let mut seen = observed(&[look, look]);
        let come = (R::Tag, sdm_mpi::UNEXPECTED);
        let request = [(R::Source, "1"), (R::Tag, "11"), come, WORLD];
        call(&mut seen, "0", function, &request);
        let (_, waits) = seen.samples[1].waits.last_mut().unwrap();
        waits.call.as_mut().unwrap().arguments[2].value = Some(Value {
            text: "111".to_owned(),
            cut: None,
        });
        reduce_all(&mut seen, "1");
        let said = "rank 1 sends tag 111 to rank 0, which waits for tag 11 from it";
        check(&seen, Step::CannotGoOn, "", said);
    }
}

/// In an `MPI_Sendrecv` at the edge of a grid only one message is outstanding.
#[test]
fn message_to_mpi_proc_null_is_not_waited_for() {
    let look: Look<'_> = &[
        ("0-1", "main:19 MPI_Allreduce:19", "", ""),
        ("2-3", "main:13 MPI_Sendrecv:13", "", ""),
    ];
    let mut seen = observed(&[look, look]);
    reduce_all(&mut seen, "0-1");
    for (task, to, from) in [("2", "-2", "3"), ("3", "2", "-2")] {
        let both = [(R::Destination, to), (R::Source, from), WORLD];
        call(&mut seen, task, "MPI_Sendrecv", &both);
    }
    let found = judge(&seen);
    assert_eq!(found.graph.ones, [(2, 3), (3, 2)], "{found:#?}");
    // A message of any rank may be the outstanding one.
    call(
        &mut seen,
        "2",
        "MPI_Sendrecv",
        &[(R::Destination, "3"), (R::Source, "-1"), WORLD],
    );
    assert_eq!(judge(&seen).graph.ones, [(3, 2)]);
}

/// Rank 2 of a ring has swapped source and destination. Rank 3 has sent its message of step 1 to rank 0, which is one
/// step further, and waits for the message of rank 2.
#[test]
fn sendrecv_cycle_of_long_messages_is_no_tag_mismatch() {
    let look: Look<'_> = &[("0-3", "main:9 MPI_Sendrecv:9", "", "")];
    let mut seen = observed(&[look, look]);
    for (task, to, from, tag) in [
        ("0", "1", "3", "2"),
        ("1", "2", "0", "1"),
        ("2", "1", "3", "1"),
        ("3", "0", "2", "1"),
    ] {
        let count = (R::Count, "50000");
        let (to, from) = ((R::Destination, to), (R::Source, from));
        let tags = [(R::Tag, tag), (R::ReceiveTag, tag)];
        call(
            &mut seen,
            task,
            "MPI_Sendrecv",
            &[count, to, from, tags[0], tags[1], WORLD],
        );
    }
    let found = judge(&seen);
    assert_eq!(found.step, Step::Deadlock, "{found:#?}");
    assert_ne!(found.cause, Cause::Tag, "{found:#?}");
}

/// All ranks are in one operation. On one of them its communicator could not be read.
#[test]
fn rank_in_unreadable_communicator_is_not_reported_missing() {
    let look: Look<'_> = &[("0-3", "main:12 MPI_Barrier:12", "", "")];
    for without in [&[R::Context][..], &[R::Context, R::Communicator]] {
        let mut seen = observed(&[look, look]);
        for tasks in ["1-3", "0"] {
            let with = [(R::Communicator, "comm"), (R::Context, "7")];
            call(&mut seen, tasks, "MPI_Barrier", &with);
        }
        let last = seen.samples.last_mut().unwrap();
        for (tasks, waits) in &mut last.waits {
            let arguments = &mut waits.call.as_mut().unwrap().arguments;
            let text = "0-3".to_owned();
            arguments[0].value = Some(Value { text, cut: None });
            if *tasks == set("0") {
                if without.contains(&R::Communicator) {
                    arguments[0].value = None;
                }
                arguments.retain(|one| one.role != R::Context);
            }
        }
        check(&seen, Step::CannotTell, "", "in the same MPI_Barrier");
    }
}

/// Ranks that read a window until another one has written it do not compute.
#[test]
fn rank_that_reads_a_window_in_a_loop_counts_as_polling() {
    let barrier = ("0-1", "main:9 MPI_Barrier:9", "", "");
    let seen = |places: [&str; 3]| {
        let looks = places.map(|place| [barrier, ("2", place, place, "")]);
        let mut seen = observed(&[&looks[0], &looks[1], &looks[2]]);
        call(&mut seen, "0-1", "MPI_Barrier", &[WORLD]);
        judge(&seen)
    };
    let flush = "main:5 read:7 MPI_Win_flush:7";
    let found = seen([
        flush,
        "main:5 read:8 usleep:8",
        "main:5 read:6 MPI_Fetch_and_op:6",
    ]);
    assert_eq!((found.step, found.cause), (Step::HeldUp, Cause::Polling));
    assert_eq!(found.held_up_by, set("2"), "{found:#?}");
    assert_eq!(
        seen([flush, "main:5 work:8", flush]).cause,
        Cause::Computing
    );
}

/// Sends that wait only because of `--check=strict` are named as such; receives wait anyway.
#[test]
fn strict_sends_are_named_in_a_deadlock() {
    let sends = [(R::Destination, "1"), WORLD];
    let receives = [(R::Source, "1"), WORLD];
    for (function, arguments, part) in [
        ("MPI_Send", &sends, "has standard sends wait for their"),
        ("MPI_Waitall", &sends, "has standard sends wait for their"),
        ("MPI_Waitall", &receives, ""),
        ("MPI_Recv", &receives, ""),
    ] {
        let place = format!("main:6 {function}:6");
        let look: Look<'_> = &[("0-1", &place, "", "")];
        let mut seen = observed(&[look, look]);
        for (task, other) in [("0", "1"), ("1", "0")] {
            let arguments = [(arguments[0].0, other), WORLD];
            call(&mut seen, task, function, &arguments);
        }
        let plain = judge(&seen).conclusion;
        assert!(!plain.contains("--check"), "{plain}");
        seen.strict_sends = true;
        let strict = judge(&seen).conclusion;
        assert_eq!(
            strict.contains("--check=strict"),
            !part.is_empty(),
            "{function}: {strict}"
        );
        assert!(
            strict.contains(part) && strict.starts_with(&plain),
            "{strict}"
        );
    }
}
