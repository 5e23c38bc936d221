//! Collective operations in which ranks lack the parts of others, and epochs and messages of ranks that are elsewhere.

use sdm_debug::probe::ArgumentRole as R;

use super::causes::{check_cause, standing};
use super::groups::add;
use super::*;

/// Rank 0 waits for the epoch of rank 1, which has posted one for rank 2 only.
#[test]
fn origin_and_target_of_another_group_are_named() {
    let mut seen = standing(&[
        ("0", "main:4 MPI_Win_complete:4", "", ""),
        ("1", "main:6 MPI_Win_wait:6", "", ""),
        ("2", "main:9 MPI_Win_free:9", "", ""),
    ]);
    call(&mut seen, "0", "MPI_Win_complete", &[]);
    add(&mut seen, "0", (R::Access, "77", "1"));
    call(&mut seen, "1", "MPI_Win_wait", &[]);
    add(&mut seen, "1", (R::Exposure, "77", "2"));
    call(&mut seen, "2", "MPI_Win_free", &[]);
    check_cause(&seen, Cause::Rma, &["0 MPI_Win_complete", "1 MPI_Win_wait"]);
}
