//! Tests of the text for calls that tasks wait in.

use sdm_debug::probe::{TaskProbe, ThreadWait};
use sdm_debug::reply::StackFrame;
use sdm_idset::TaskId;

use super::*;

fn waits(holders: &[(u32, u32)]) -> TaskWaits {
    let wait = |(thread, holder): &(u32, u32)| ThreadWait {
        thread: *thread,
        what: WaitFor::Lock(LockWait {
            mutex: "&m".to_owned(),
            place: StackFrame::own("f", "a.c", 1),
            holder: Some(*holder),
            orphaned: false,
        }),
    };
    TaskWaits {
        call: None,
        threads: holders.iter().map(wait).collect(),
        ..TaskWaits::default()
    }
}

#[test]
fn lock_cycle_is_described_and_lock_chain_is_not() {
    let words = circle(&waits(&[(1, 2), (2, 3), (3, 2)])).unwrap();
    assert_eq!(
        words,
        [
            "thread 2 waits in f () at a.c:1 for &m, which thread 3 holds",
            "thread 3 waits in f () at a.c:1 for &m, which thread 2 holds"
        ]
    );
    assert_eq!(circle(&waits(&[(1, 2), (2, 3)])), None);
}

/// Rank 0 receives from the first of these ranks, and the other ranks from the following ones, in order.
fn received(from: &[i64], communicator: (&str, Option<i64>)) -> Vec<String> {
    let argument = |role, expression: &str, number| CallArgument {
        role,
        expression: expression.to_owned(),
        value: None,
        number,
        known: Known::Source,
    };
    let (name, handle) = communicator;
    let call = |source: i64| Call {
        function: "MPI_Recv".to_owned(),
        place: StackFrame::own("halo", "halo.c", 60),
        source: "MPI_Recv(...)".to_owned(),
        arguments: vec![
            argument(ArgumentRole::Count, "1", Some(1)),
            argument(ArgumentRole::Source, "left", Some(source)),
            argument(ArgumentRole::Tag, "MPI_ANY_TAG", None),
            argument(ArgumentRole::Communicator, name, handle),
        ],
    };
    let mut probes = Probes::default();
    for (rank, source) in (0..).zip(from) {
        let waits = TaskWaits {
            call: Some(call(*source)),
            ..TaskWaits::default()
        };
        let probe = TaskProbe {
            waits: Some(waits),
            ..TaskProbe::default()
        };
        probes.absorb(Probes::of(&IdSet::single(TaskId(rank)), probe));
    }
    let ranks = u32::try_from(from.len()).unwrap();
    Evidence::of(&probes).lines(&IdSet::all_below(ranks))
}

/// A tag that depends on the rank is shown as a number, not as a rank.
#[test]
fn tag_derived_from_the_rank_is_shown_as_rank_plus_offset() {
    let lines = |by: i64| {
        let mut probes = Probes::default();
        for rank in 0..4 {
            let tag = CallArgument {
                role: ArgumentRole::Tag,
                expression: "tag".to_owned(),
                value: None,
                number: Some(i64::from(rank) + by),
                known: Known::Source,
            };
            let call = Call {
                function: "MPI_Recv".to_owned(),
                place: StackFrame::own("halo", "halo.c", 60),
                source: "MPI_Recv(...)".to_owned(),
                arguments: vec![tag],
            };
            let waits = TaskWaits {
                call: Some(call),
                ..TaskWaits::default()
            };
            let probe = TaskProbe {
                waits: Some(waits),
                ..TaskProbe::default()
            };
            probes.absorb(Probes::of(&IdSet::single(TaskId(rank)), probe));
        }
        Evidence::of(&probes).lines(&IdSet::all_below(4))[1].clone()
    };
    assert_eq!(lines(101), "tag rank+101 (tag)");
    assert_eq!(lines(-3), "tag rank-3 (tag)");
    assert_eq!(lines(0), "tag its own rank (tag)");
}

fn facts(source: i64, communicator: (&str, Option<i64>)) -> String {
    let lines = received(&[source], communicator);
    assert_eq!(lines[0], "60: MPI_Recv(...)");
    lines[1].clone()
}

#[test]
fn few_argument_values_show_their_ranks_and_many_a_count() {
    let facts = |from: &[i64]| received(from, ("MPI_COMM_WORLD", None))[1].clone();
    let ring = facts(&[1, 2, 3, 0]);
    assert_eq!(ring, "from rank+1 [0-2], 0 [3] (left), tag MPI_ANY_TAG");
    let scattered = [4, 9, 4, 4, 9, 4, 9, 9, 9, 4].repeat(40);
    let scattered = facts(&scattered);
    assert!(scattered.contains(",...] (left)"), "{scattered}");
    assert!(scattered.len() < 140, "{scattered}");
    let many = facts(&[9, 7, 12, 5, 30]);
    assert_eq!(many, "from 5 different values (left), tag MPI_ANY_TAG");
}

/// In an intercommunicator the root argument is not a rank of the own group.
#[test]
fn mpi_root_and_proc_null_are_shown_by_name() {
    let mut probes = Probes::default();
    let call = Call {
        function: "MPI_Bcast".to_owned(),
        place: StackFrame::own("main", "halo.c", 60),
        source: "MPI_Bcast(...)".to_owned(),
        arguments: vec![CallArgument {
            role: ArgumentRole::Root,
            expression: "root".to_owned(),
            value: None,
            number: Some(-4),
            known: Known::Source,
        }],
    };
    let waits = TaskWaits {
        call: Some(call),
        ..TaskWaits::default()
    };
    let probe = TaskProbe {
        waits: Some(waits),
        ..TaskProbe::default()
    };
    probes.absorb(Probes::of(&IdSet::single(TaskId(0)), probe));
    let lines = Evidence::of(&probes).lines(&IdSet::all_below(1));
    assert_eq!(lines[1], "root MPI_ROOT (root)");
}

#[test]
fn message_is_described_by_source_tag_and_communicator() {
    let plain = facts(2, ("MPI_COMM_WORLD", None));
    assert_eq!(plain, "from 2 (left), tag MPI_ANY_TAG");
    assert_eq!(facts(2, ("comm", Some(1_140_850_688))), plain);
    let row = facts(2, ("row", Some(-2_080_374_784)));
    let of = "rank 2 of its communicator";
    assert_eq!(row, format!("from {of} (left), tag MPI_ANY_TAG, in row"));
}

/// In a reordered communicator, rank 2 is not rank 2 of the job. So a receive from the number of the own rank is not a
/// receive from itself.
#[test]
fn rank_in_unknown_communicator_is_not_shown_as_job_rank() {
    let facts = |from: &[i64]| received(from, ("row", Some(-2_080_374_784)))[1].clone();
    let tail = "of its communicator (left), tag MPI_ANY_TAG, in row";
    let own = facts(&[0, 1, 2, 3]);
    let each = "0 [0], 1 [1], 2 [2], 3 [3]";
    assert_eq!(own, format!("from rank {each} {tail}"));
    assert_eq!(facts(&[0, 0]), format!("from rank 0 {tail}"));
    let nobody = facts(&[-2, -2]);
    assert_eq!(nobody, "from MPI_PROC_NULL (left), tag MPI_ANY_TAG, in row");
}
