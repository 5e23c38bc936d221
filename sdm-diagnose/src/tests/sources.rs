//! Tests of messages from another source than the expected one, and of several errors at once.

use sdm_debug::probe::ArgumentRole as R;

use super::causes::{BARRIER, standing};
use super::doubts::check_named;
use super::groups::add;
use super::odd::of_ranks;
use super::*;

const RECEIVE: &str = "main:3 MPI_Recv:3";
const SEND: &str = "main:4 MPI_Ssend:4";

fn send(seen: &mut Observed, task: &str, to: &str) {
    let arguments = [(R::Destination, to), (R::Tag, "99"), WORLD];
    call(seen, task, "MPI_Ssend", &arguments);
}

/// Rank `from` sends to rank 3, which waits for rank 2. Rank 2 is in the barrier with the others.
fn stray(from: &str) -> Observed {
    let rest = set("0-4").difference(&set("3")).difference(&set(from));
    let rest = rest.to_string();
    let mut seen = standing(&[
        (&*rest, BARRIER, "", ""),
        ("3", RECEIVE, "", ""),
        (from, SEND, "", ""),
    ]);
    call(&mut seen, &rest, "MPI_Barrier", &[WORLD]);
    receive(&mut seen, "3", "2");
    send(&mut seen, from, "3");
    seen
}

#[test]
fn sender_to_a_receive_from_another_rank_is_named() {
    let expect = "rank 1 sends to rank 3, which waits for rank 2";
    check_named(&stray("1"), "", "1,3", expect);
    let mut seen = stray("4");
    check_named(&seen, "", "3-4", "rank 4 sends to rank 3");
    // A receiver that takes all messages in turn waits for rank 2 first.
    let (_, waits) = &mut seen.samples.last_mut().unwrap().waits[1];
    waits.call.as_mut().unwrap().arguments[0].expression = "source".to_owned();
    check_named(&seen, "2-3", "2-3", "one of these two ranks is wrong");
    // Two senders do that, too.
    let mut seen = standing(&[
        ("2,4", BARRIER, "", ""),
        ("3", RECEIVE, "", ""),
        ("0-1", SEND, "", ""),
    ]);
    call(&mut seen, "2,4", "MPI_Barrier", &[WORLD]);
    receive(&mut seen, "3", "2");
    send(&mut seen, "0-1", "3");
    let found = judge(&seen);
    assert!(!found.conclusion.contains("sends to"), "{found:#?}");
}

#[test]
fn each_of_several_cycles_is_named() {
    let mut seen = standing(&[("0-1", RECEIVE, "", ""), ("2-3", SEND, "", "")]);
    for (task, peer) in [("0", "1"), ("1", "0")] {
        receive(&mut seen, task, peer);
    }
    for (task, peer) in [("2", "3"), ("3", "2")] {
        send(&mut seen, task, peer);
    }
    let expect = "in 2 cycles (0 -> 1 -> 0; 2 -> 3 -> 2); no single rank";
    check_named(&seen, "", "0-3", expect);
    // Each is drawn: a node for each of its ranks, and who waits for whom.
    let graph = judge(&seen).graph_to_json();
    assert_eq!(graph["circles"], serde_json::json!([[0, 1], [2, 3]]));
    let nodes = graph["nodes"].as_array().unwrap().iter();
    let nodes: Vec<&str> = nodes.filter_map(|node| node["tasks"].as_str()).collect();
    assert_eq!(nodes, ["0", "1", "2", "3"]);
    assert_eq!(graph["edges"].as_array().unwrap().len(), 4);
}

/// Rank 1 waits for a message of rank 2, which waits for it in an operation of ranks 0 to 2.
#[test]
fn pair_blocked_between_receive_and_collective_is_named() {
    let reduce = "main:5 MPI_Allreduce:5";
    let mut seen = standing(&[
        ("0,2", reduce, "", ""),
        ("1", RECEIVE, "", ""),
        ("3-5", BARRIER, "", ""),
    ]);
    let half = [(R::Communicator, "half")];
    call(&mut seen, "0,2", "MPI_Allreduce", &half);
    of_ranks(&mut seen, "0-2");
    receive(&mut seen, "1", "2");
    call(&mut seen, "3-5", "MPI_Barrier", &[WORLD]);
    let expect = "rank 1 waits for rank 2, which waits for rank 1 in MPI_Allreduce";
    check_named(&seen, "1-2", "1-2", expect);
}

#[test]
fn nonblocking_collective_matched_with_blocking_one_is_named() {
    let wait = "main:5 MPI_Wait:5";
    let mut seen = standing(&[("0", wait, "", ""), ("1-2", WAITING, "", "")]);
    let operation = [WORLD, (R::Operation, "MPI_Iallreduce")];
    call(&mut seen, "0", "MPI_Wait", &operation);
    reduce_all(&mut seen, "1-2");
    let expect =
        "MPI_Allreduce and MPI_Iallreduce; a nonblocking operation does not match a blocking one";
    check_named(&seen, "0", "0", expect);
}

/// The source argument of the call cannot be read. The waiting rank can be the victim as well as the culprit.
#[test]
fn receiver_from_an_unknown_rank_is_not_blamed_alone() {
    let probe = "main:3 MPI_Mprobe:3";
    let check = |waiting: &str, others: &str, named: &str, part: &str| {
        let mut seen = standing(&[(others, BARRIER, "", ""), (waiting, probe, "", "")]);
        call(&mut seen, others, "MPI_Barrier", &[WORLD]);
        call(&mut seen, waiting, "MPI_Mprobe", &[(R::Tag, "MPI_ANY_TAG")]);
        check_named(&seen, "", named, part);
    };
    let part = "rank 2 waits for a message, and other ranks wait for it in MPI_Barrier; which rank left out its send or receive";
    check("2", "0-1,3", "", part);
    check("1,3", "0,2,4", "", "ranks 1,3 wait for a message");
    // In a job of two either is wrong.
    check("0", "1", "0-1", "rank 0 waits for a message");
}

/// An unexpected message shows why a receive waits: its tag, or its communicator.
#[test]
fn unexpected_message_tells_the_cause_of_a_deadlock() {
    let probe = "main:5 MPI_Probe:5";
    let seen = |source: &str, expression: &str, come: &str| {
        let mut seen = standing(&[("0", probe, "", ""), ("1-2", RECEIVE, "", "")]);
        let arguments = [(R::Source, source), (R::Tag, "7"), WORLD];
        call(&mut seen, "0", "MPI_Probe", &arguments);
        add(&mut seen, "0", (R::Tag, expression, come));
        receive(&mut seen, "1-2", "0");
        seen
    };
    for (source, expression, cause, part) in [
        (
            "-1",
            sdm_mpi::UNEXPECTED,
            Cause::Tag,
            "rank 0, which waits for another tag",
        ),
        (
            "2",
            sdm_mpi::ELSEWHERE,
            Cause::Communicator,
            "rank 0, which waits in another communicator",
        ),
    ] {
        let found = judge(&seen(source, expression, "77 from rank 2"));
        assert_eq!(found.cause, cause, "{found:#?}");
        let part = format!("a message with tag 77 from rank 2 has arrived at {part}");
        assert!(found.conclusion.ends_with(&part), "{found:#?}");
        // Its sender is none of the blocked ranks.
        let found = judge(&seen(source, expression, "77 from rank 9"));
        assert_eq!(found.cause, Cause::CallOrdering, "{found:#?}");
    }
}
