//! Who is elsewhere than the others, and what that proves.

use sdm_debug::probe::ArgumentRole as R;

use super::*;

const IN_SENDRECV: &str = "main:80 MPI_Sendrecv:80";

/// A ring in which rank 5 receives from another rank than sends to it.
fn ring(count: &str) -> Observed {
    let look: Look<'_> = &[("0-7", IN_SENDRECV, "", "")];
    let mut seen = observed(&[look, look]);
    for rank in 0..8_u32 {
        let left = if rank == 5 { 3 } else { (rank + 7) % 8 };
        let [rank, left, right] = [rank, left, (rank + 1) % 8].map(|rank| rank.to_string());
        let arguments = [
            (R::Count, count),
            (R::Destination, &right),
            (R::Tag, "1"),
            (R::Source, &left),
            (R::ReceiveTag, "1"),
            WORLD,
        ];
        call(&mut seen, &rank, "MPI_Sendrecv", &arguments);
    }
    seen
}

/// Who sends and receives at once may have sent long ago, to a rank that waits for its next message.
#[test]
fn what_is_short_is_not_on_its_way_any_more() {
    let seen = ring("8");
    check(&seen, Step::Deadlock, "", "in a circle");
    let found = judge(&seen);
    assert_eq!(found.circle, [0, 7, 6, 5, 3, 2, 1]);
    assert!(
        found.is_guessed(),
        "few elements of a derived type are long"
    );
    check(&ring("1000000"), Step::CannotTell, "", "should pass");
}

#[test]
fn for_whom_the_odd_one_waits_may_have_left_that_out() {
    let look: Look<'_> = &[
        ("0", "main:80 MPI_Recv:80", "", ""),
        ("1-3", "main:12 MPI_Barrier:12", "", ""),
    ];
    let mut seen = observed(&[look, look]);
    call(&mut seen, "1-3", "MPI_Barrier", &[WORLD]);
    let part = "was not reached here: it waits for a message, which another one may have left out";
    check(&seen, Step::Deadlock, "0", part);
}

/// The ranks of a communicator that all belong to are those of the job, whatever it is called.
#[test]
fn operations_of_a_duplicate_do_not_fit_together_either() {
    let seen = |text: &str| {
        let look: Look<'_> = &[
            ("0-1,3", WAITING, "", ""),
            ("2", "main:9 MPI_Barrier:9", "", ""),
        ];
        let mut seen = observed(&[look, look]);
        let comm = (R::Communicator, "comm");
        call(&mut seen, "0-1,3", "MPI_Allreduce", &[comm]);
        call(&mut seen, "2", "MPI_Barrier", &[comm]);
        let last = seen.samples.last_mut().unwrap();
        for (_, waits) in &mut last.waits {
            let text = text.to_owned();
            let arguments = &mut waits.call.as_mut().unwrap().arguments;
            arguments[0].value = Some(Value { text, cut: None });
        }
        seen
    };
    let part = "different collective operations: MPI_Allreduce and MPI_Barrier";
    check(&seen("0-3"), Step::CannotGoOn, "2", part);
    // Where the ranks are not known they may be other ones.
    check(&seen(""), Step::Deadlock, "", "no single one is to blame");
}

/// Of what is not known of all nothing is said to differ.
#[test]
fn a_count_that_is_not_known_is_no_other_one() {
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
