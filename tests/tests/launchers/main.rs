//! Whole sessions under the launchers of MPI.

mod mpi;
mod openmpi5;
mod ordinary;
mod pmix;
mod sharing;
