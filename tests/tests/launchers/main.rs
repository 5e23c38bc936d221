//! Whole sessions under the launchers of MPI.

mod check;
mod check_matching;
mod choice;
mod editors;
mod findings;
mod hangs;
mod mpi;
mod openmpi5;
mod ordinary;
mod pages;
mod pmix;
mod pmix_faults;
mod pmix_node;
mod pmix_spawn;
mod pmix_steer;
mod pmix_tool;
mod profile;
mod prte;
mod python;
mod queues;
mod screen;
mod seized;
mod sharing;
mod stories;
mod timeout;
mod wrapped;
