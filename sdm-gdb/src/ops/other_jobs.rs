//! Whether an MPI call may wait for processes of another job, to which this process is connected (`MPI_Comm_spawn`,
//! `MPI_Comm_connect`).

use sdm_debug::Failure;
use sdm_debug::probe::{ArgumentRole, CallArgument};
use sdm_inspect::mpi::Mpich;
use sdm_mpi::mpi_name;
use sdm_mpi::symbols::OPEN_MPI_JOINED;

use super::ranks::{Place, memory, symbol, with_mpich};
use super::threads::ReadThread;
use crate::gdb::Gdb;

/// The arguments of a call before any is read: none yet for a function with known arguments. For another MPI function
/// they only say that it may wait for processes of other jobs. `None` if it cannot wait for them, or is not a function
/// of MPI.
pub(super) async fn beginning(
    gdb: &Gdb,
    thread: &ReadThread,
    (function, is_known): (&str, bool),
) -> Result<Option<Vec<CallArgument>>, Failure> {
    if is_known {
        return Ok(Some(Vec::new()));
    }
    let may_wait = mpi_name(function).is_some() && is_connected(gdb, thread).await?;
    Ok(may_wait.then(|| vec![CallArgument::hidden(ArgumentRole::OtherJobs, 0)]))
}

/// Adds to a call's arguments that it may wait for processes of other jobs, if the process is connected to any and the
/// arguments do not exclude it. Without this, a job whose ranks all wait in MPI would be taken for a deadlock, while a
/// child that it has spawned computes.
pub(super) async fn add_possible(
    place: &Place<'_>,
    found: &mut Vec<CallArgument>,
) -> Result<(), Failure> {
    let is_told = found.iter().any(|one| one.role == ArgumentRole::OtherJobs);
    if !is_told && !is_within_the_job(found) && is_connected(place.gdb, place.thread).await? {
        found.push(CallArgument::hidden(ArgumentRole::OtherJobs, 0));
    }
    Ok(())
}

/// True if the arguments name a communicator of this job's ranks alone.
fn is_within_the_job(found: &[CallArgument]) -> bool {
    found.iter().any(CallArgument::is_known_communicator)
}

/// True if the process has a communicator with processes of other jobs.
async fn is_connected(gdb: &Gdb, thread: &ReadThread) -> Result<bool, Failure> {
    if let Some(address) = symbol(gdb, thread.id, OPEN_MPI_JOINED).await? {
        let mut count = [0; 4];
        let read = memory(gdb).and_then(|(_, memory)| memory.read(address, &mut count));
        return Ok(read.is_some() && i32::from_ne_bytes(count) > 0);
    }
    let process = with_mpich(gdb, thread).await?;
    let known = process
        .as_ref()
        .and_then(|(memory, variables)| Mpich::learn(&**memory, variables));
    Ok(known.is_some_and(|known| known.has_other_jobs()))
}
