//! Ranks that are past what others still wait in, by right.

use sdm_debug::probe::ArgumentRole as R;

use super::*;

/// A rank that expects one message more than its neighbour sends, while a reduction and the end of the program wait for it.
#[test]
fn who_is_past_a_reduction_is_not_to_blame() {
    let at_end = "main:80 MPI_Finalize:32";
    let reducing = "main:80 MPI_Reduce:30";
    let exchanging = "main:80 halo:17 MPI_Sendrecv:17";
    let look: Look<'_> = &[
        ("1,3-5,7", at_end, "", ""),
        ("0,2", reducing, "", ""),
        ("6", exchanging, "", ""),
    ];
    let mut seen = observed(&[look, look]);
    call(&mut seen, "1,3-5,7", "MPI_Finalize", &[]);
    let arguments = [(R::Count, "1"), (R::Root, "0"), WORLD];
    call(&mut seen, "0,2", "MPI_Reduce", &arguments);
    let both = [(R::Destination, "7"), (R::Source, "5"), WORLD];
    call(&mut seen, "6", "MPI_Sendrecv", &both);
    let said = "one of ranks 5,7, which are in MPI_Finalize and send and receive nothing more";
    check(&seen, Step::CannotGoOn, "6", said);
    // Without what it waits for there is no proof of a wrong operation either.
    let look: Look<'_> = &[
        ("1,3-5,7", at_end, "", ""),
        ("0,2", reducing, "", ""),
        ("6", "main:80 halo:17 MPI_Waitany:17", "", ""),
    ];
    let mut seen = observed(&[look, look]);
    call(&mut seen, "1,3-5,7", "MPI_Finalize", &[]);
    call(&mut seen, "0,2", "MPI_Reduce", &arguments);
    let found = judge(&seen);
    assert!(!found.conclusion.contains("different"), "{found:#?}");
    assert!(!found.suspects.contains(TaskId(0)), "{found:#?}");
}
