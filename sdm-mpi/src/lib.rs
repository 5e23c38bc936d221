//! MPI functions: their names, the roles of their arguments, the ranks that they wait for, and error classes.
//!
//! The standard and the two libraries, as data. Nothing here examines a process or a source file.

#![forbid(unsafe_code)]

mod errors;
mod functions;
mod handles;
mod names;
pub mod symbols;
pub mod usage;
mod windows;

pub use errors::{mpich_error, open_mpi_error};
pub use functions::{
    ArgumentRole, WaitsFor, closes_file, connects_programs, ends_mpi, is_of_all, is_of_file,
    is_of_group, is_of_neighbors, is_of_two_groups, is_of_world, is_outside, is_waiting, needs_all,
    only_receives, roles, sends_from_root, started_collective, starts_mpi, takes_parts,
    takes_requests, torch_peer, waiting_function, waits_for, waits_for_any_request,
    waits_for_requests, waits_for_several,
};
pub use handles::{
    ANY_SOURCE, ANY_TAG, ANY_TAG_NUMBER, ARRIVED_TAGS, AWAITED_TAGS, COMM_SELF, COMM_WORLD,
    ELSEWHERE, FROM_RANK, MPICH_KIND, MPICH_NO_REQUEST, MPICH_SELF, MPICH_WORLD, NOTHING, PENDING,
    PROC_NULL, RECEIVED, ROOT, UNEXPECTED, constant, is_fatal_handler, is_world,
};
pub use names::{
    PROFILING_PREFIXES, TORCH_PREFIX, fortran_name, mpi_name, outer_name, torch_wait, torch_work,
    without_binding,
};
pub use windows::{
    is_between_groups, is_fence, is_of_window, locks_window, reads_window, waits_for_origins,
};
