//! The communicator of a file that a call names.

use sdm_debug::Failure;
use sdm_inspect::memory::Memory;
use sdm_inspect::mpi::{Communicator, Mpich, OpenMpi, Piece, communicator_of_file};
use sdm_mpi::mpi_name;
use sdm_mpi::usage::FREES;

use super::{memory, objects, variables_of_mpich};
use crate::gdb::Gdb;
use crate::ops::threads::ReadThread;

/// The communicator of the file at an address, which the MPI library keeps for this file alone; `None` if it is not found.
pub(in crate::ops) async fn of_file(
    gdb: &Gdb,
    thread: &ReadThread,
    (function, file): (&str, Option<Communicator>),
) -> Result<Option<Communicator>, Failure> {
    let (Some(Communicator::At(at)), Some((_, memory))) = (file, memory(gdb)) else {
        return Ok(None);
    };
    let Some(file) = handle(&*memory, function, at) else {
        return Ok(None);
    };
    if let Some(objects) = objects(gdb, thread.id).await? {
        let known = OpenMpi::learn(&*memory, objects);
        let found = known.and_then(|known| communicator_of_file(&known, file));
        return Ok(found.map(Communicator::At));
    }
    let variables = variables_of_mpich(gdb, thread.id).await?;
    let known = variables.and_then(|variables| Mpich::learn(&*memory, &variables)?.of_file(file));
    Ok(known.map(Communicator::Handle))
}

/// The address of the file. `MPI_File_close` takes the address of the variable with it.
fn handle(memory: &dyn Memory, function: &str, at: u64) -> Option<u64> {
    let name = mpi_name(function)?;
    match FREES.iter().any(|it| it.eq_ignore_ascii_case(&name)) {
        true => Some(Piece::read(memory, at, 8)?.word(0)),
        false => Some(at),
    }
}
