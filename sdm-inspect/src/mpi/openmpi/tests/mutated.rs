//! Memory of Open MPI of which some words are changed.

use super::*;
use crate::fuzz::walk_open_mpi;
use crate::mpi::pieces::walk_mutated;

#[test]
fn changed_memory_panics_no_reader() {
    let mut messages = with_request();
    with_messages(
        &mut messages,
        &[(2, 0, &[(0xa40_0000, 81), (0xa50_0000, -17)])],
    );
    for memory in [messages, with_window(), few(4, 1)] {
        assert!(OpenMpi::learn(&memory, OBJECTS).is_some());
        walk_mutated(&memory, |memory, places| {
            walk_open_mpi(memory, OBJECTS, places.into_iter());
        });
    }
}
