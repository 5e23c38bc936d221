//! Tests of ranks that wait for messages while the others wait for them in a collective operation.

use sdm_debug::probe::ArgumentRole as R;

use super::causes::{BARRIER, standing, within};
use super::doubts::check_named;
use super::groups::add;
use super::*;

const ANY: (R, &str) = (R::Source, sdm_mpi::ANY_SOURCE);

/// Each of these ranks waits in `MPI_Recv` for the other one, `None` for any rank. The others are in a barrier.
fn receiving(receives: &[(&str, Option<&str>)], others: &str) -> Observed {
    let waiting = receives
        .iter()
        .map(|(who, _)| (*who, "main:80 MPI_Recv:80", "", ""));
    let look: Vec<_> = waiting.chain([(others, BARRIER, "", "")]).collect();
    let mut seen = standing(&look);
    for (who, peer) in receives {
        match peer {
            Some(peer) => receive(&mut seen, who, peer),
            None => call(&mut seen, who, "MPI_Recv", &[ANY, (R::Tag, "7"), WORLD]),
        }
    }
    call(&mut seen, others, "MPI_Barrier", &[WORLD]);
    seen
}

/// A worker that has left out its result looks like a master that takes one too many.
#[test]
fn receiver_from_any_rank_is_not_blamed_alone() {
    let text =
        "waits for a message of any of several ranks, while other ranks wait for it in MPI_Barrier";
    check_named(&receiving(&[("0", None)], "1-3"), "", "", text);
    check_named(&receiving(&[("0", None)], "1-2"), "", "0-2", text);
    // The worker that waits for the master follows it.
    let farm = receiving(&[("0", None), ("1", Some("0"))], "2-4");
    check_named(&farm, "", "", text);
    let few = receiving(&[("0", None), ("1", Some("0"))], "2");
    check_named(&few, "", "0-2", text);
    // The message that has come in place of the expected one tells its sender.
    let mut tags = receiving(&[("0", None)], "1-5");
    add(
        &mut tags,
        "0",
        (R::Tag, sdm_mpi::UNEXPECTED, "4 from rank 2"),
    );
    check_named(&tags, "", "0,2", "a message with tag 4 from rank 2");
    assert_eq!(judge(&tags).cause, Cause::Tag);
}

/// Two ranks of a halo wait for ranks that left the exchange out.
#[test]
fn both_sides_of_several_missing_messages_are_named() {
    let seen = receiving(&[("3", Some("0")), ("4", Some("1"))], "0-2,5-9");
    let text = "ranks 3-4 wait for messages to or from ranks 0-1, which wait for them in MPI_Barrier: ranks 0-1 skipped a \
                call, or ranks 3-4 made one too many";
    check_named(&seen, "0-1,3-4", "0-1,3-4", text);
}

/// Rank 0 waits for rank 3, which waits in an operation of ranks 3 and 5-6 for two ranks that are past it.
#[test]
fn rank_behind_an_operation_of_some_ranks_is_not_blamed() {
    let look: Look<'_> = &[
        ("0", "main:80 MPI_Recv:80", "", ""),
        ("3", "main:2 MPI_Allreduce:2", "", ""),
        ("1-2,4-7", BARRIER, "", ""),
    ];
    let mut seen = standing(look);
    receive(&mut seen, "0", "3");
    within(&mut seen, "3", "MPI_Allreduce", "3,5-6");
    call(&mut seen, "1-2,4-7", "MPI_Barrier", &[WORLD]);
    let text = "ranks 5-6 skipped that call, or rank 3 made it once too often";
    check_named(&seen, "", "3,5-6", text);
}

/// Rank 0 sends to one rank and receives from another one. Both are in the barrier, and either may have left its part out.
#[test]
fn rank_that_waits_for_one_of_two_ranks_is_not_blamed() {
    let look: Look<'_> = &[
        ("0", "main:80 MPI_Sendrecv:80", "", ""),
        ("1-5", BARRIER, "", ""),
    ];
    let mut seen = standing(look);
    let arguments = [(R::Destination, "2"), (R::Source, "3"), WORLD];
    call(&mut seen, "0", "MPI_Sendrecv", &arguments);
    call(&mut seen, "1-5", "MPI_Barrier", &[WORLD]);
    let text = "it waits for a message that another rank may have failed to send or receive";
    check_named(&seen, "", "", text);
    let waits = &mut seen.samples.last_mut().unwrap().waits;
    let call = waits[0].1.call.as_mut().unwrap();
    let received = CallArgument {
        expression: sdm_mpi::RECEIVED.to_owned(),
        number: None,
        ..call.arguments[1].clone()
    };
    call.arguments.push(received);
    let text = "rank 0 waits for messages to or from rank 2, which waits for it in MPI_Barrier";
    check_named(&seen, "0,2", "0,2", text);
}

#[test]
fn rank_that_waits_for_a_cycle_is_not_blamed() {
    let cycle = [("0", Some("1")), ("1", Some("0")), ("4", Some("0"))];
    let text = "the other ranks wait in MPI_Barrier, which they have not reached (0 -> 1 -> 0)";
    check_named(&receiving(&cycle, "2-3,5-6"), "0-1", "0-1", text);
}

#[test]
fn rank_that_receives_from_nobody_may_wait_for_any_receiver() {
    let mut seen = standing(&[
        ("0", "main:80 MPI_Sendrecv:80", "", ""),
        ("1-3", BARRIER, "", ""),
    ]);
    let arguments = [(R::Destination, "right"), (R::Source, "-2"), WORLD];
    call(&mut seen, "0", "MPI_Sendrecv", &arguments);
    call(&mut seen, "1-3", "MPI_Barrier", &[WORLD]);
    check_named(&seen, "", "", "left out its send or receive is unknown");
}
