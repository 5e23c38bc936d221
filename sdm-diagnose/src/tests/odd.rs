//! Tests of ranks that are in another operation than the rest, and of the conclusions from that.

use sdm_debug::probe::ArgumentRole as R;

use super::*;

const IN_SENDRECV: &str = "main:80 MPI_Sendrecv:80";

/// A ring of 8 ranks. Rank 5 receives from the rank `source_of_5`.
fn ring(count: &str, source_of_5: u32) -> Observed {
    ring_with(count, source_of_5, |_| 1)
}

/// A ring of 8 ranks. Rank 5 receives from the rank `source_of_5`. `turn` gives the iteration of a rank, which is the
/// tag of its messages.
fn ring_with(count: &str, source_of_5: u32, turn: impl Fn(u32) -> u32) -> Observed {
    let look: Look<'_> = &[("0-7", IN_SENDRECV, "", "")];
    let mut seen = observed(&[look, look]);
    for rank in 0..8_u32 {
        let left = match rank {
            5 => source_of_5,
            _ => (rank + 7) % 8,
        };
        let tag = turn(rank).to_string();
        let [rank, left, right] = [rank, left, (rank + 1) % 8].map(|rank| rank.to_string());
        let arguments = [
            (R::Count, count),
            (R::Destination, &right),
            (R::Tag, &tag),
            (R::Source, &left),
            (R::ReceiveTag, &tag),
            WORLD,
        ];
        call(&mut seen, &rank, "MPI_Sendrecv", &arguments);
    }
    seen
}

/// Sets the ranks of the communicator in all calls, which have it as their first argument.
pub(super) fn of_ranks(seen: &mut Observed, ranks: &str) {
    for (_, waits) in &mut seen.samples.last_mut().unwrap().waits {
        let text = ranks.to_owned();
        let arguments = &mut waits.call.as_mut().unwrap().arguments;
        arguments[0].value = Some(Value { text, cut: None });
    }
}

/// A rank in a send-receive call may have sent its message long ago, to a rank that now waits for its next message.
#[test]
fn short_message_on_its_way_does_not_prevent_the_deadlock() {
    let seen = ring("8", 3);
    check(&seen, Step::Deadlock, "", "in a cycle");
    let found = judge(&seen);
    assert_eq!(found.circle, [0, 7, 6, 5, 3, 2, 1]);
    assert!(
        found.is_guessed(),
        "few elements of a derived type are long"
    );
    check(&ring("1000000", 3), Step::CannotTell, "", "do not complete");
    // Where all ranks fit on both sides, the late one already has the message that it waits for.
    check(&ring("8", 4), Step::CannotTell, "", "do not complete");
}

/// A tag proves nothing if its message may have been received long ago.
#[test]
fn tag_used_as_iteration_counter_is_not_reported_as_mismatch() {
    let seen = ring_with("8", 3, |rank| (rank + 3) % 8);
    check(&seen, Step::Deadlock, "", "in a cycle");
}

/// A rank that is still in a reduction may wait for a rank that has skipped it and is in the next operation.
#[test]
fn minority_in_a_reduction_is_not_certainly_at_fault() {
    let look: Look<'_> = &[
        ("0,2", "main:9 MPI_Reduce:9", "", ""),
        ("1,3-7", "main:12 MPI_Barrier:12", "", ""),
    ];
    let mut seen = observed(&[look, look]);
    call(&mut seen, "0,2", "MPI_Reduce", &[(R::Root, "0"), WORLD]);
    call(&mut seen, "1,3-7", "MPI_Barrier", &[WORLD]);
    let part = "MPI_Barrier and MPI_Reduce (at fault: ranks 0,2, or a rank that skipped that call)";
    check(&seen, Step::CannotGoOn, "", part);
}

/// All other ranks wait for the root in a scatter, which ranks leave one by one.
#[test]
fn only_rank_outside_a_scatter_is_blamed() {
    let look: Look<'_> = &[
        ("0", "main:9 MPI_Barrier:9", "", ""),
        ("1-3", "main:12 MPI_Scatter:12", "", ""),
    ];
    let mut seen = observed(&[look, look]);
    call(&mut seen, "0", "MPI_Barrier", &[WORLD]);
    call(&mut seen, "1-3", "MPI_Scatter", &[(R::Root, "0"), WORLD]);
    let part = "MPI_Scatter and MPI_Barrier";
    check(&seen, Step::CannotGoOn, "0", part);
}

#[test]
fn outlier_waiting_for_an_unknown_sender_is_not_blamed() {
    let look: Look<'_> = &[
        ("0", "main:80 MPI_Recv:80", "", ""),
        ("1-3", "main:12 MPI_Barrier:12", "", ""),
    ];
    let mut seen = observed(&[look, look]);
    call(&mut seen, "1-3", "MPI_Barrier", &[WORLD]);
    let part = "rank 0 waits for a message, and other ranks wait for it in MPI_Barrier; which rank left out its \
                send or receive is unknown";
    check(&seen, Step::Deadlock, "", part);
}

/// A communicator with all ranks of the job is treated like `MPI_COMM_WORLD`, whatever its name.
#[test]
fn mismatch_in_duplicated_communicator_is_found() {
    let seen = |text: &str| {
        let look: Look<'_> = &[
            ("0-1,3", WAITING, "", ""),
            ("2", "main:9 MPI_Barrier:9", "", ""),
        ];
        let mut seen = observed(&[look, look]);
        let comm = (R::Communicator, "comm");
        call(&mut seen, "0-1,3", "MPI_Allreduce", &[comm]);
        call(&mut seen, "2", "MPI_Barrier", &[comm]);
        of_ranks(&mut seen, text);
        seen
    };
    let part = "different collective operations: MPI_Allreduce and MPI_Barrier";
    check(&seen("0-3"), Step::CannotGoOn, "2", part);
    // Where the ranks are not known they may be other ones.
    check(&seen(""), Step::Deadlock, "", "no single rank is to blame");
}

/// A grid of two rows and four columns. Rank 5 sums over its row instead of its column, in which rank 1 waits for it.
#[test]
fn rank_in_its_row_instead_of_its_column_is_blamed() {
    let barrier = ("0,2-4,6-7", "main:9 MPI_Barrier:9", "", "");
    let seen = |rest: Look<'_>, lines: &[(&str, &str)]| {
        let look = [rest, &[("1", WAITING, "", ""), ("5", WAITING, "", "")]].concat();
        let mut seen = observed(&[&look, &look]);
        for (tasks, ranks) in lines {
            call(
                &mut seen,
                tasks,
                "MPI_Allreduce",
                &[(R::Communicator, "line")],
            );
            let waits = &mut seen.samples.last_mut().unwrap().waits;
            let its = waits.iter_mut().find(|(of, _)| *of == set(tasks));
            let arguments = &mut its.unwrap().1.call.as_mut().unwrap().arguments;
            let text = (*ranks).to_owned();
            arguments[0].value = Some(Value { text, cut: None });
        }
        call(&mut seen, rest[0].0, "MPI_Barrier", &[WORLD]);
        seen
    };
    let one = seen(&[barrier], &[("1", "1,5"), ("5", "4-7")]);
    check(
        &one,
        Step::CannotGoOn,
        "5",
        "in MPI_Allreduce, but in different communicators",
    );
    // As few ranks may have skipped the sum over the row.
    let even = seen(
        &[("0,2-4", barrier.1, "", "")],
        &[("1", "1,5"), ("5", "4-5")],
    );
    check(&even, Step::CannotGoOn, "", "in different communicators");
    let guilty = judge(&even).guilty;
    assert_eq!(
        IdSet::union_all(guilty.iter().map(|one| &one.tasks)),
        set("4-5")
    );
}

/// Rank 5 has left out the sum of its pair, or rank 4 that of the node.
#[test]
fn ranks_in_a_communicator_and_its_part_are_not_blamed() {
    let look: Look<'_> = &[
        ("0-3", "main:9 MPI_Barrier:9", "", ""),
        ("4", WAITING, "", ""),
        ("5-7", WAITING, "", ""),
    ];
    let mut seen = observed(&[look, look]);
    call(&mut seen, "0-3", "MPI_Barrier", &[WORLD]);
    for (tasks, context, ranks) in [("4", "480", "4-5"), ("5-7", "496", "4-7")] {
        let arguments = [(R::Communicator, "comm"), (R::Context, context)];
        call(&mut seen, tasks, "MPI_Allreduce", &arguments);
        let waits = &mut seen.samples.last_mut().unwrap().waits;
        let its = waits.iter_mut().find(|(of, _)| *of == set(tasks));
        let arguments = &mut its.unwrap().1.call.as_mut().unwrap().arguments;
        let text = ranks.to_owned();
        arguments[0].value = Some(Value { text, cut: None });
    }
    let part = "rank 4 skipped that of ranks 4-7, or rank 5 that of ranks 4-5";
    super::doubts::check_named(&seen, "", "", part);
}

/// Two communicators of the same ranks are distinguished before their operations are compared.
#[test]
fn counts_in_two_communicators_are_not_compared() {
    let look: Look<'_> = &[("0-3", WAITING, "", "")];
    let mut seen = observed(&[look, look]);
    for (tasks, context, count) in [("0-2", "7", "1"), ("3", "8", "4")] {
        let arguments = [
            (R::Communicator, "comm"),
            (R::Context, context),
            (R::Count, count),
        ];
        call(&mut seen, tasks, "MPI_Allreduce", &arguments);
    }
    of_ranks(&mut seen, "0-3");
    let part = "different communicators that have the same ranks";
    check(&seen, Step::CannotGoOn, "3", part);
}

/// An argument that is unknown on some ranks is not reported as different.
#[test]
fn unknown_count_is_no_mismatch() {
    let look: Look<'_> = &[
        ("0-3", WAITING, "", ""),
        ("4", "main:9 MPI_Barrier:9", "", ""),
    ];
    let mut seen = observed(&[look, look]);
    reduce_all(&mut seen, "0-2");
    call(&mut seen, "3", "MPI_Allreduce", &[WORLD]);
    call(&mut seen, "4", "MPI_Barrier", &[WORLD]);
    check(
        &seen,
        Step::CannotGoOn,
        "4",
        "different collective operations",
    );
}

#[test]
fn wait_graph_has_one_node_per_group_of_equal_ranks() {
    let look: Look<'_> = &[
        ("0-2,4-99", WAITING, "x", ""),
        ("3", "main:80 exchange:60 MPI_Recv:60", "", ""),
    ];
    let mut seen = observed(&[look, look]);
    receive(&mut seen, "3", "2");
    reduce_all(&mut seen, "0-2,4-99");
    let text = dot(&judge(&seen));
    for part in [
        "n0 [label=\"3\\nwaiting in MPI_Recv",
        "color=firebrick",
        "n0 -> n1;",
        "n2 -> n0 [label=\"98\"];",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(text.lines().count() < 12, "{text}");
}

#[test]
fn thread_that_computes_before_a_barrier_is_named() {
    let line = "another thread of its process computes in part () at";
    for (frames, is_named) in [
        ("region:9 part:6", true),
        ("region:10 GOMP_barrier:10", false),
        ("region:10 MPI_Recv:10", false),
    ] {
        let look: Look<'_> = &[
            ("0", "main:80 MPI_Barrier:80", "", ""),
            ("1", "main:7 region:10 GOMP_barrier:10", "", ""),
        ];
        let mut seen = observed(&[look, look]);
        for sample in &mut seen.samples {
            let mut other = stacks(frames).threads.remove(0);
            other.main = false;
            sample.stacks[1].1.threads.push(other);
        }
        call(&mut seen, "0", "MPI_Barrier", &[WORLD]);
        let found = judge(&seen);
        let mut lines = found.findings.iter().flat_map(|one| &one.evidence);
        let named = lines.any(|text| text.starts_with(line));
        assert_eq!(named, is_named, "{frames}: {found:#?}");
    }
}

#[test]
fn words_agree_with_the_number_of_ranks() {
    use crate::verdict::{in_number, ranks, waiting};
    let text = "[it waits|they wait] for [a lock|locks] of rank 3[|s]";
    assert_eq!(in_number(text, 1), "it waits for a lock of rank 3");
    assert_eq!(in_number(text, 2), "they wait for locks of rank 3s");
    assert_eq!(
        ranks(&set("3")) + "; " + &ranks(&set("1,3")),
        "rank 3; ranks 1,3"
    );
    assert_eq!(
        waiting(&set("3")) + "; " + &waiting(&set("1-2")),
        "rank 3 waits; ranks 1-2 wait"
    );
}
