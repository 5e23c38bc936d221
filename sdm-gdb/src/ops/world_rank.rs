//! Compares a process's rank in `MPI_COMM_WORLD` with the one that its launcher assigned.
//!
//! The binary does not show an MPI library that is loaded at run time, as Python's is. Under another MPI's launcher
//! each process is rank 0 of 1, and the job runs as separate jobs of one process.

use sdm_child::MpiSymbols;
use sdm_debug::Event;
use sdm_inspect::mpi::{Mpich, OpenMpi, PredefinedObjects};

use super::ranks::world;
use crate::gdb::Gdb;
use crate::state::internal::Internal;

/// Compares the process's rank in `MPI_COMM_WORLD` with its launcher's once, and reports a mismatch. `thread` is the
/// thread in which gdb evaluates. Before `MPI_Init` nothing is reported, and the check is repeated later.
pub(super) async fn check(gdb: &Gdb, thread: u32) {
    let is_known = gdb.get().breakpoints.mpi.world_known;
    let Some(pid) = gdb.get().pid().filter(|_| !is_known) else {
        return;
    };
    if !gdb.host().has_mpi(pid) {
        return;
    }
    if let Ok(Some(world)) = world(gdb, thread).await {
        compare(gdb, pid, world);
    }
}

/// Compares the ranks for a process without a gdb, whose MPI library has these symbols, and reports a mismatch.
pub(crate) fn check_at(gdb: &Gdb, symbols: MpiSymbols) {
    let Some(pid) = gdb.get().pid() else {
        return;
    };
    let Some(memory) = gdb.host().process_memory(pid) else {
        return;
    };
    let found = match symbols.open_mpi {
        Some((world, alone, empty)) => {
            let objects = PredefinedObjects {
                world,
                alone,
                empty,
            };
            OpenMpi::world(&*memory, objects)
        }
        None => symbols.mpich.and_then(|address| {
            let variables = gdb.host().variables(pid, address);
            Mpich::world(&*memory, &variables)
        }),
    };
    if let Some(world) = found {
        compare(gdb, pid, world);
    }
}

fn compare(gdb: &Gdb, pid: i32, (rank, size): (u32, u32)) {
    gdb.edit().breakpoints.mpi.world_known = true;
    if !fits((rank, size), gdb.host().launched_as(pid)) {
        gdb.tell(Event::World { rank, size });
    }
}

/// True if the rank is the one that the launcher assigned. Without such a rank, true if the job has more than one rank.
fn fits((rank, size): (u32, u32), launched: Option<(u32, Option<u32>)>) -> bool {
    match launched {
        Some((own, of)) => own == rank && of.is_none_or(|of| of == size),
        None => size > 1,
    }
}

/// Handles the first call of `MPI_Comm_rank`; later ones are of no interest.
pub(super) async fn reached(gdb: &Gdb, thread: u32) {
    forget(gdb);
    check(gdb, thread).await;
}

/// Deletes the breakpoint at `MPI_Comm_rank`, as it would disturb steps and `finish`.
pub(super) fn forget(gdb: &Gdb) {
    let number = gdb.edit().breakpoints.take_internal(Internal::World);
    if let Some(number) = number {
        gdb.post(format!("-break-delete {number}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comm_world_rank_must_agree_with_the_launcher() {
        for (world, launched, expect) in [
            ((3, 4), Some((3, Some(4))), true),
            ((3, 4), Some((3, None)), true),
            ((0, 1), Some((0, Some(4))), false),
            ((0, 1), Some((2, None)), false),
            ((0, 1), Some((0, Some(1))), true),
            ((1, 4), Some((2, Some(4))), false),
            ((0, 1), None, false),
            ((1, 2), None, true),
        ] {
            assert_eq!(fits(world, launched), expect, "{world:?} {launched:?}");
        }
    }
}
