//! Memory of MPICH of which some words are changed.

use super::*;
use crate::fuzz::walk_mpich;
use crate::mpi::pieces::walk_mutated;

#[test]
fn changed_memory_panics_no_reader() {
    let request = with_request(2, 1, (0x1e0 << 48 | 1 << 32 | 7, OF_ONE));
    let variables = [LISTS..LISTS + 0x400, OF_ALL..OF_ALL + 0x1000];
    for memory in [request, with_window([[1, 0, 1]; 2])] {
        assert!(learn(&memory).is_some());
        walk_mutated(&memory, |memory, places| {
            walk_mpich(memory, &variables, places.into_iter());
        });
    }
}
