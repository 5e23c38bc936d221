//! MPI's functions: their names, what their arguments are, and whom they wait for.
//!
//! This is what the standard and the two libraries have, as data; nothing here looks at a process or at a source.

#![forbid(unsafe_code)]

mod functions;
mod handles;
mod names;

pub use functions::{
    ArgumentRole, WaitsFor, is_of_all, is_of_world, is_outside, needs_all, roles, waits_for,
    waits_for_any_request, waits_for_requests, waits_for_several,
};
pub use handles::{
    ANY_SOURCE, ANY_TAG, ANY_TAG_NUMBER, COMM_SELF, COMM_WORLD, MPICH_SELF, MPICH_WORLD,
    OPEN_MPI_WORLD, UNEXPECTED, constant, is_world,
};
pub use names::{TORCH_PREFIX, fortran_name, mpi_name, outer_name};
